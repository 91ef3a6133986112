/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_sync.c - a thread that synchronizes with a host stream yields at
 * first, but not to a stream whose waits yield to it again and again.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_util.h"
#include "st_cunit.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LONG_NSEC 3000 /* that of a yield which lets another thread run */

/* What the main thread, which synchronizes, and the stream's share */
static struct {
    _Atomic unsigned num_yields; /* of the main thread */
    pid_t            main_tid;
    int              is_waiting;   /* the stream is; its own */
    int              until_asleep; /* else until it yields again */
    uint64_t         last; /* of the stream's waits, which are for 1, 2... */
    uint64_t         word;
} test;

int __real_sched_yield(void);
int __wrap_sched_yield(void);

/* The first one lasts until the stream is at its last wait */
static void yield_main(void)
{
    if (atomic_fetch_add(&test.num_yields, 1) == 0) {
        while (gstream_util_load(&test.word) < (test.last - 1)) {
            (void)__real_sched_yield(); /* not asleep */
        }
    }
}

/* Lets another thread run, as it seems, and what is waited for comes true: the
 * last time only when it was seen what the main thread does */
static void yield_stream(void)
{
    uint64_t start = gstream_util_clock(CLOCK_MONOTONIC);

    while ((gstream_util_clock(CLOCK_MONOTONIC) - start) < LONG_NSEC) {
        /* it takes that long */
    }
    while (atomic_load(&test.num_yields) == 0) {
        gstream_util_pass_time(1); /* before it synchronizes nothing counts */
    }
    if ((test.word + 1) == test.last) {
        if (test.until_asleep) {
            gstream_util_until_asleep(test.main_tid);
        }
        while (!test.until_asleep && (atomic_load(&test.num_yields) < 5)) {
            gstream_util_pass_time(1);
        }
    }
    gstream_util_store(&test.word, test.word + 1);
}

int __wrap_sched_yield(void)
{
    if (gstream_util_tid() == test.main_tid) {
        yield_main();
    } else if (test.is_waiting) {
        yield_stream();
    }
    return 0;
}

static void set_waiting(void *arg)
{
    test.is_waiting = (arg != NULL);
}

/* Synchronize with a stream that has so many waits */
static void run(uint64_t last, int until_asleep)
{
    ucs_gstream_h stream;
    uint64_t i;

    test.is_waiting   = 0;
    test.main_tid     = gstream_util_tid();
    test.last         = last;
    test.until_asleep = until_asleep;
    test.word         = 0;
    atomic_store(&test.num_yields, 0);
    setenv("UCX_GSTREAM_YIELD_TIME", "1s", 1);
    stream = gstream_util_create();
    unsetenv("UCX_GSTREAM_YIELD_TIME");
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_func(stream, set_waiting, &test),
                    UCS_OK);
    for (i = 1; i <= last; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(stream, &test.word, i),
                        UCS_OK);
    }
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_func(stream, set_waiting, NULL),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(gstream_util_load(&test.word), last);
    gstream_util_finish(stream);
}

/* It goes to sleep, long before its time: it has the core that the stream's
 * waits yield */
static void test_in_the_way(void)
{
    run(20, 1);
    CU_ASSERT(atomic_load(&test.num_yields) == 1);
}

/* Few waits are no reason to: to be woken takes longer */
static void test_few_waits(void)
{
    run(3, 0);
    CU_ASSERT(atomic_load(&test.num_yields) >= 5);
}

static const st_cunit_case_t cases[] = {
    {"in_the_way", test_in_the_way},
    {"few_waits", test_few_waits}
};

int main(int argc, char **argv)
{
    return st_cunit_main("gstream_sync", cases, ST_CUNIT_COUNT(cases), argc,
                         argv);
}
