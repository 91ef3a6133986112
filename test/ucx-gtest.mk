# SPDX-License-Identifier: BSD-3-Clause
# Builds UCX's own test suite; contrib/run-ucx-gtest.sh calls it in the folder
# that the objects go into.
#   UCX       UCX's source
#   CONFIG    the folder of the configuration that the installed UCX was built by
#   HEADER    test/ucx-gtest.h
#   UCX_LIBS  what links with the installed UCX

gtest = $(UCX)/test/gtest
perf  = $(UCX)/src/tools/perf

sources := $(wildcard $(gtest)/common/*.cc $(gtest)/common/googletest/*.cc \
                      $(gtest)/uct/*.cc $(gtest)/uct/v2/*.cc \
                      $(gtest)/ucp/*.cc $(perf)/lib/*.c $(perf)/lib/*.cc)
# A second main(), sizes of structures, the card's matching of tags, which needs
# InfiniBand's transports to link, and what needs CUDA: contexts (1.18), devices
# that a GPU starts messages on (1.23)
left_out := $(gtest)/common/googletest/gtest_main.cc \
            $(gtest)/common/test_obj_size.cc $(gtest)/uct/test_tag.cc \
            $(gtest)/common/cuda_context.cc $(gtest)/uct/test_device.cc \
            $(gtest)/ucp/test_ucp_device.cc
objects := $(patsubst $(UCX)/%,%.o,$(filter-out $(left_out),$(sources)))

CPPFLAGS := -I$(CONFIG) -I$(UCX)/src -I$(UCX)/test -I$(UCX)/test/gtest \
            -I$(UCX)/src/tools/perf -DTOP_SRCDIR='"$(UCX)"' \
            -DGTEST_UCM_HOOK_LIB_DIR='""' -DHAVE_CONFIG_H
CFLAGS   := -O0 -g1 -fopenmp -MMD -MP
LIBS     := $(UCX_LIBS) -lucm -ldl -lrt -lpthread

gtest: $(objects)
	g++ -fopenmp -o $@ $(objects) $(LIBS)

$(objects): $(firstword $(MAKEFILE_LIST))

# Memory domains have a list of their own, in the file of their tests
$(filter %/test_md.cc.o,$(objects)): CPPFLAGS += -Dxpmem=cxi_trig
$(filter test/gtest/uct/% test/gtest/ucp/%,$(objects)): \
    CPPFLAGS += -include $(HEADER)

$(filter %.cc.o,$(objects)): %.cc.o: $(UCX)/%.cc
	@mkdir -p $(@D)
	g++ -std=c++11 $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(filter %.c.o,$(objects)): %.c.o: $(UCX)/%.c
	@mkdir -p $(@D)
	gcc $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

-include $(objects:.o=.d)
