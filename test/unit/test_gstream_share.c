/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_share.c - the warning that streams share hardware queues of a
 * device, over the stand-ins for the runtimes of GPUs.
 */
#include "gstream_util.h"
#include "st_cunit.h"
#include "standin_util.h"
#include "uct_errors.h"

#include <stdlib.h>
#include <string.h>

#define MANY 40

#define OF_CUDA "CUDA_DEVICE_MAX_CONNECTIONS"
#define OF_HIP  "GPU_MAX_HW_QUEUES"

static void end(ucs_gstream_h *streams, unsigned count)
{
    while (count > 0) {
        gstream_util_finish(streams[--count]);
    }
}

/* With so many hardware queues: two are for the default stream and for copies,
 * and a warning comes once, with the first stream that finds none */
static void run(const rt_t *rt, const char *setting, unsigned queues)
{
    ucs_gstream_h streams[MANY];
    ucs_gstream_h same[MANY];
    void *native = rt_stream(rt); /* of the application */
    unsigned i;

    uct_errors_begin_text(UCS_LOG_LEVEL_WARN, "hardware queues");

    /* The application's stream is one, however many queues are made on it, and
     * default streams are counted already */
    for (i = 0; i < MANY; i += 2) {
        same[i]     = gstream_util_create_native(rt->is_hip, native);
        same[i + 1] = gstream_util_create_native(rt->is_hip, NULL);
    }
    for (i = 0; i < queues - 3; ++i) {
        streams[i] = gstream_util_create_gpu(rt->is_hip);
    }
    CU_ASSERT_EQUAL(uct_errors_count(), 0);

    /* Streams that are gone do not count, while one of the same is there */
    end(same, MANY - 2);
    end(streams, queues - 3);
    for (i = 0; i < queues - 3; ++i) {
        streams[i] = gstream_util_create_gpu(rt->is_hip);
    }
    CU_ASSERT_EQUAL(uct_errors_count(), 0);
    streams[i++] = gstream_util_create_gpu(rt->is_hip);
    CU_ASSERT_EQUAL(uct_errors_count(), 1);
    streams[i++] = gstream_util_create_gpu(rt->is_hip);
    CU_ASSERT_EQUAL(uct_errors_count(), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(uct_errors_last(), setting));
    CU_ASSERT_PTR_NOT_NULL(strstr(uct_errors_last(), "32"));

    (void)uct_errors_end();
    end(streams, i);
    end(&same[MANY - 2], 2);
}

/* What a runtime has by itself, and what it was asked for */
ST_CASE(cuda)
{
    unsetenv(OF_CUDA);
    run(rt_start(0), OF_CUDA, 8);
}

ST_CASE(hip)
{
    setenv(OF_HIP, "12", 1);
    run(rt_start(1), OF_HIP, 12);
}

ST_SUITE("gstream_share")
