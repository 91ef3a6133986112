/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_gpu_bad.c - streams of GPUs, of the stand-ins for the runtimes,
 * where they cannot be used.
 */
#include "gstream_util.h"
#include "st_cunit.h"
#include "standin_util.h"
#include "ucs_gstream_memory.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* What a runtime lacks, and what the text says of it */
typedef struct {
    const char         *file; /* of the runtime */
    ucs_gstream_type_t type;
    const char         *name; /* of a setting of the stand-in, and */
    const char         *value;
    const char         *reason;
} lack_t;

/* In a process of its own, as the stand-in's settings are read once. Not 0 if
 * the runtime can be used, or the text is another one. */
static int use_without(const void *arg)
{
    const lack_t *lack          = arg;
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = lack->type
    };
    ucs_gstream_type_attr_t attr;
    ucs_gstream_h stream;

    if ((setenv(lack->name, lack->value, 1) != 0) ||
        (dlopen(lack->file, RTLD_NOW) == NULL)) {
        return 1;
    }
    if ((ucs_gstream_query_type(lack->type, &attr) != UCS_ERR_UNSUPPORTED) ||
        (ucs_gstream_create(&params, &stream) != UCS_ERR_UNSUPPORTED)) {
        return 2;
    }
    return strstr(attr.reason, lack->reason) == NULL;
}

/* The first case, before a runtime is opened */
ST_CASE(lacks)
{
    static const lack_t lacks[] = {
        {STANDIN_DIR "/libcuda.so.1", UCS_GSTREAM_TYPE_CUDA, "STANDIN_DEVICES",
         "0", "libcuda.so.1 finds no device"},
        {STANDIN_DIR "/libamdhip64.so", UCS_GSTREAM_TYPE_HIP, "STANDIN_DEVICES",
         "0", "libamdhip64.so finds no device"},
        {STANDIN_DIR "/libcuda.so.1", UCS_GSTREAM_TYPE_CUDA, "STANDIN_MEMOPS",
         "0", "no stream memory operations of 64 bits"},
        {STANDIN_DIR "/libamdhip64.so", UCS_GSTREAM_TYPE_HIP, "STANDIN_MEMOPS",
         "0", "hipStreamWaitValue64"},
        {STANDIN_DIR "/libcuda.so.1", UCS_GSTREAM_TYPE_CUDA, "STANDIN_VERSION",
         "11060", "NVreg_EnableStreamMemOPs=1"},
        {GPU_STANDIN_DIR "/gpu_standin_cuda.so", UCS_GSTREAM_TYPE_CUDA,
         "STANDIN_VERSION", "1", "libcuda.so.1 has no cuInit: the version is "
         "too old"}
    };
    unsigned i;

    gstream_util_quiet(1);
    for (i = 0; i < ST_CUNIT_COUNT(lacks); ++i) {
        st_cunit_fork(use_without, &lacks[i]);
    }
    gstream_util_quiet(0);
}

/* A stream of this library is none of a runtime, which does not get to see it:
 * a driver may look into what it is given */
RT_CASE(handle)
{
    ucs_gstream_h streams[]     = {gstream_util_create_gpu(rt->is_hip),
                                   gstream_util_create()};
    unsigned long calls         = rt_counts(rt).calls;
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE |
                      UCS_GSTREAM_PARAM_FIELD_NATIVE,
        .type       = gstream_util_type(rt->is_hip)
    };
    unsigned i;

    for (i = 0; i < 2; ++i) {
        params.native = streams[i];
        gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    }
    CU_ASSERT_EQUAL(rt_counts(rt).calls, calls);
    gstream_util_finish(streams[0]);
    gstream_util_finish(streams[1]);
}

/* What a child that was forked may not use */
typedef struct {
    int           is_hip;
    ucs_gstream_h stream;
    void          *device;
} forked_t;

/* Not 0 if it can. */
static int use_forked(const void *arg)
{
    const forked_t *forked      = arg;
    ucs_gstream_h stream        = forked->stream;
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = gstream_util_type(forked->is_hip)
    };
    volatile uint64_t *word     = ucs_gstream_word_get();
    ucs_gstream_type_attr_t attr;
    ucs_gstream_memory_attr_t memory;
    ucs_gstream_h other;

    if ((ucs_gstream_query_type(params.type, &attr) != UCS_ERR_UNSUPPORTED) ||
        (strstr(attr.reason, "forked") == NULL)) {
        return 1;
    }
    if ((ucs_gstream_create(&params, &other) != UCS_ERR_UNSUPPORTED) ||
        (ucs_gstream_enqueue_write64(stream, word, 1) != UCS_ERR_IO_ERROR) ||
        (ucs_gstream_query(stream) != UCS_ERR_IO_ERROR) ||
        (ucs_gstream_synchronize(stream) != UCS_ERR_IO_ERROR)) {
        return 2;
    }
    return (ucs_gstream_memory_query(forked->device, &memory) != UCS_OK) ||
           (memory.type != UCS_GSTREAM_TYPE_HOST) ||
           (ucs_gstream_destroy(stream) != UCS_OK);
}

/* A runtime is not asked in a child, where its locks may be held for ever: that
 * of the stand-in is most of the time, while a stream waits */
RT_CASE(forked)
{
    forked_t forked         = {
        .is_hip = rt->is_hip,
        .stream = gstream_util_create_gpu(rt->is_hip)
    };
    volatile uint64_t *gate = ucs_gstream_word_get();

    CU_ASSERT_EQUAL_FATAL(rt_alloc(rt, &forked.device, 256), RT_OK);
    gstream_util_wait(forked.stream, gate, 1);
    gstream_util_quiet(1);
    st_cunit_fork(use_forked, &forked);
    gstream_util_quiet(0);
    gstream_util_store(gate, 1);
    gstream_util_finish(forked.stream);
    CU_ASSERT_EQUAL(rt_free(rt, forked.device), RT_OK);
    ucs_gstream_word_put(gate);
}

/* While a thread captures a stream of the application, what the library has for
 * itself, and streams that are not captured, go on, and spoil nothing */
RT_CASE(captured)
{
    void *native         = rt_stream(rt);
    ucs_gstream_h stream = gstream_util_create_gpu(rt->is_hip);
    char bytes[64]       = "captured";
    void *device         = NULL;
    size_t nodes         = 0;
    uint64_t *area       = aligned_alloc(4096, 4096);

    CU_ASSERT_EQUAL_FATAL(rt_alloc(rt, &device, sizeof(bytes)), RT_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area, 4096,
                                           UCS_GSTREAM_MEMORY_HOST), UCS_OK);
    CU_ASSERT_EQUAL_FATAL(rt_capture_begin(rt, native, 0), RT_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_copy(device, bytes, sizeof(bytes)),
                    UCS_OK);
    memset(bytes, 0, sizeof(bytes));
    CU_ASSERT_EQUAL(ucs_gstream_memory_copy(bytes, device, sizeof(bytes)),
                    UCS_OK);
    CU_ASSERT_STRING_EQUAL(bytes, "captured");
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_write64(stream, area, 1), UCS_OK);
    while (ucs_gstream_query(stream) == UCS_INPROGRESS) {
        (void)sched_yield();
    }
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, 1), UCS_OK);
    CU_ASSERT_EQUAL(rt_capture_end(rt, native, &nodes), RT_OK);
    CU_ASSERT_EQUAL(nodes, 0);
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(area), UCS_OK);
    free(area);
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, native), RT_OK);
}

ST_SUITE("gstream_gpu_bad")
