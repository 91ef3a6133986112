/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_gpu_first.c - what the first stream of a device of HIP, of the
 * stand-in, tries, and what it pins; and what is told before there is one.
 */
#include "gstream_util.h"
#include "standin_util.h"
#include "ucs_gstream_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static ucs_status_t make(ucs_gstream_h *stream)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = UCS_GSTREAM_TYPE_HIP
    };

    return ucs_gstream_create(&params, stream);
}

/* In a process of its own, as the stand-in's settings are read once: with this
 * one the host is not said to reach managed memory, or it is with "1" */
static int is_wrong(const void *setting)
{
    ucs_gstream_memory_attr_t attr = {0};
    void *address                  = NULL;

    return (setenv("STANDIN_MANAGED", setting, 1) != 0) ||
           (rt_alloc_managed(rt_open(1), &address, 256) != RT_OK) ||
           (ucs_gstream_memory_query(address, &attr) != UCS_OK) ||
           (attr.type != UCS_GSTREAM_TYPE_HIP) || !attr.is_managed ||
           (attr.is_hosts != (strcmp(setting, "1") == 0));
}

ST_CASE(managed)
{
    st_cunit_fork(is_wrong, "1");
    st_cunit_fork(is_wrong, "0");
}

/* A device that waits for signal memory only: a stream is refused, and the next
 * one, when it waits for all, is not */
ST_CASE(signal)
{
    const rt_t *rt = rt_open(1);
    ucs_gstream_h stream;

    rt->control.standin_set_signal(1);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(make(&stream), UCS_ERR_UNSUPPORTED);
    gstream_util_quiet(0);
    rt->control.standin_set_signal(0);
    CU_ASSERT_EQUAL_FATAL(make(&stream), UCS_OK);
    gstream_util_finish(stream);
}

/* A child has none of the words that a device reaches, and gets others */
static int has_word(const void *word)
{
    uintptr_t page = (uintptr_t)word & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    volatile uint64_t *other;

    if ((msync((void*)page, 1, MS_ASYNC) == 0) || (errno != ENOMEM)) {
        return 1;
    }
    other = ucs_gstream_word_get();
    if (other == NULL) {
        return 2;
    }
    *other = 1;
    return 0;
}

ST_CASE(child)
{
    volatile uint64_t *word = ucs_gstream_word_get();
    ucs_gstream_h stream;

    (void)rt_open(1);
    CU_ASSERT_EQUAL_FATAL(make(&stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_write64(stream, word, 1), UCS_OK);
    gstream_util_finish(stream);
    st_cunit_fork(has_word, (void*)word);
    CU_ASSERT_EQUAL(*word, 1);
    ucs_gstream_word_put(word);
}

ST_SUITE("gstream_gpu_first")
