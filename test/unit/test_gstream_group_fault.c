/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_group_fault.c - groups of threads where the system refuses, or
 * never times out.
 */
#include "gstream_util.h"
#include "gstream_wrap.h"
#include "st_cunit.h"

#include <sched.h>
#include <stdlib.h>

#define TEST_THREADS  3
#define TEST_RING     8
#define TEST_LAPS     1500
#define TEST_RACES    10000
#define TEST_DELAYS   100 /* Turns of an empty loop */
#define TEST_SERVICES 300

/* What cannot be made leaves nothing behind (see the leak checkers) */

static void test_group_fails(int *fault, int nth, ucs_status_t expected)
{
    ucs_gstream_group_params_t params = {
        .field_mask  = UCS_GSTREAM_GROUP_PARAM_FIELD_NUM_THREADS,
        .num_threads = TEST_THREADS
    };
    ucs_gstream_group_h group         = NULL;

    gstream_util_quiet(1);
    gstream_wrap_set(fault, nth);
    CU_ASSERT_EQUAL(ucs_gstream_group_create(&params, &group), expected);
    gstream_wrap_reset();
    gstream_util_quiet(0);
    CU_ASSERT_PTR_NULL(group);
}

static void test_stream_fails(ucs_gstream_group_h group, int *fault)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_GROUP,
        .group      = group
    };
    ucs_gstream_h stream        = NULL;

    gstream_util_quiet(1);
    gstream_wrap_set(fault, 0);
    CU_ASSERT_EQUAL(ucs_gstream_create(&params, &stream), UCS_ERR_NO_MEMORY);
    gstream_wrap_reset();
    gstream_util_quiet(0);
    CU_ASSERT_PTR_NULL(stream);
}

ST_CASE(create)
{
    ucs_gstream_group_h group;
    int nth;

    gstream_wrap_reset();
    test_group_fails(&gstream_wrap.fail_memalign, 0, UCS_ERR_NO_MEMORY);
    for (nth = 0; nth < TEST_THREADS; ++nth) {
        test_group_fails(&gstream_wrap.fail_thread, nth, UCS_ERR_NO_RESOURCE);
    }

    group = gstream_util_group(TEST_THREADS);
    test_stream_fails(group, &gstream_wrap.fail_memalign);
    test_stream_fails(group, &gstream_wrap.fail_malloc);
    gstream_util_finish(gstream_util_create_on(group, 0));
    gstream_util_group_finish(group);
}


/* No call is lost: with sleeps that have no time limit, it would hang. Threads
 * sleep at once. */

static ucs_gstream_group_h test_sleepy_group(unsigned num_threads)
{
    ucs_gstream_group_h group;

    gstream_util_sleepy(1);
    group = gstream_util_group(num_threads);
    gstream_util_sleepy(0);
    return group;
}

/* Streams in a ring hand a number around; the last one may have a thread of its
 * own. Several numbers are under way at once. */
static void test_ring_run(unsigned num_threads, int has_own)
{
    volatile uint64_t words[TEST_RING] = {0};
    ucs_gstream_group_h group          = test_sleepy_group(num_threads);
    ucs_gstream_h streams[TEST_RING];
    uint64_t lap;
    unsigned i;

    gstream_wrap_set(&gstream_wrap.no_timeouts, 1);
    gstream_util_sleepy(1);
    for (i = 0; i < TEST_RING; ++i) {
        streams[i] = gstream_util_create_on((has_own && (i == 0)) ? NULL :
                                                                    group,
                                            0);
    }
    gstream_util_sleepy(0);

    /* Every second stream begins with a number */
    for (lap = 1; lap <= TEST_LAPS; ++lap) {
        for (i = 0; i < TEST_RING; ++i) {
            gstream_util_wait(streams[i], &words[i], lap - !(i % 2));
            gstream_util_write(streams[i], &words[(i + 1) % TEST_RING], lap);
        }
    }
    for (i = 0; i < TEST_RING; ++i) {
        gstream_util_finish(streams[i]);
    }
    for (i = 0; i < TEST_RING; ++i) {
        CU_ASSERT_EQUAL(words[i], TEST_LAPS);
    }
    gstream_util_group_finish(group);
    gstream_wrap_reset();
}

ST_CASE(no_lost_store)
{
    unsigned num_threads;

    gstream_wrap_reset();
    for (num_threads = 1; num_threads <= TEST_THREADS; ++num_threads) {
        test_ring_run(num_threads, 0);
        test_ring_run(num_threads, 1);
    }
}

static void test_delay(unsigned turns)
{
    volatile unsigned left;

    for (left = turns; left > 0; --left) {
    }
}

/* In each round, threads fall asleep while the host stores to the words of two
 * streams, or enqueues to them. */
static void test_race_run(unsigned num_threads, int by_store)
{
    volatile uint64_t words[2] = {0};
    ucs_gstream_group_h group  = test_sleepy_group(num_threads);
    ucs_gstream_h streams[2];
    uint64_t runs[2] = {0};
    uint64_t round;
    unsigned i;

    gstream_wrap_set(&gstream_wrap.no_timeouts, 1);
    for (i = 0; i < 2; ++i) {
        streams[i] = gstream_util_create_on(group, (int)i);
    }
    for (round = 1; round <= TEST_RACES; ++round) {
        for (i = 0; (i < 2) && by_store; ++i) {
            gstream_util_wait(streams[i], &words[i], round);
        }
        for (i = 0; i < 2; ++i) {
            test_delay(round % TEST_DELAYS);
            gstream_util_let_go(&words[i], round);
            gstream_util_func(streams[i], gstream_util_count, &runs[i]);
        }
        for (i = 0; i < 2; ++i) {
            CU_ASSERT_EQUAL(ucs_gstream_synchronize(streams[i]), UCS_OK);
        }
    }
    for (i = 0; i < 2; ++i) {
        gstream_util_finish(streams[i]);
        CU_ASSERT_EQUAL(runs[i], TEST_RACES);
    }
    gstream_util_group_finish(group);
    gstream_wrap_reset();
}

ST_CASE(no_lost_wake)
{
    gstream_wrap_reset();
    test_race_run(1, 1);
    test_race_run(TEST_THREADS, 1);
}

ST_CASE(no_lost_command)
{
    gstream_wrap_reset();
    test_race_run(1, 0);
    test_race_run(TEST_THREADS, 0);
}

/* A function of an urgent stream holds a thread up until a modest one has got
 * on, which for that needs the other thread: it is called by the runner of the
 * urgent one, as nobody else knows that it is needed. */

typedef struct {
    volatile uint64_t go;
    volatile uint64_t word;
    volatile uint64_t is_served;
} test_service_t;

/* Stores, and tells nobody. */
static void test_go(void *arg)
{
    test_service_t *service = arg;

    gstream_util_store(&service->go, 1);
}

static void test_block(void *arg)
{
    test_service_t *service = arg;

    gstream_util_let_go(&service->word, 1);
    while (gstream_util_load(&service->is_served) == 0) {
        sched_yield();
    }
}

/* The modest stream gets ready before the urgent one has its second turn. */
static void test_ready_round(ucs_gstream_h urgent, ucs_gstream_h modest,
                             test_service_t *service)
{
    ucs_gstream_cmd_t firsts[] = {
        gstream_util_cmd_func(test_go, service),
        gstream_util_cmd_func(test_block, service)
    };
    ucs_gstream_cmd_t seconds[] = {
        gstream_util_cmd_word(UCS_GSTREAM_CMD_WAIT64, &service->go, 1),
        gstream_util_cmd_word(UCS_GSTREAM_CMD_WRITE64, &service->is_served,
                              1)
    };

    CU_ASSERT_EQUAL(ucs_gstream_enqueue(modest, seconds, 2), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(urgent, firsts, 2), UCS_OK);
}

/* The modest stream begins to wait, at the end of its turn, before the urgent
 * one has its first turn. */
static void test_waiting_round(ucs_gstream_h urgent, ucs_gstream_h modest,
                               test_service_t *service)
{
    ucs_gstream_cmd_t firsts[] = {
        gstream_util_cmd_word(UCS_GSTREAM_CMD_WAIT64, &service->go, 1),
        gstream_util_cmd_func(test_block, service)
    };
    ucs_gstream_cmd_t seconds[] = {
        gstream_util_cmd_func(test_go, service),
        gstream_util_cmd_word(UCS_GSTREAM_CMD_WAIT64, &service->word, 1),
        gstream_util_cmd_word(UCS_GSTREAM_CMD_WRITE64, &service->is_served,
                              1)
    };

    CU_ASSERT_EQUAL(ucs_gstream_enqueue(urgent, firsts, 2), UCS_OK);
    gstream_util_pass_time(1); /* both threads asleep is the worst case */
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(modest, seconds, 3), UCS_OK);
}

static void test_service_run(void (*func)(ucs_gstream_h urgent,
                                          ucs_gstream_h modest,
                                          test_service_t *service),
                             const char *turn_time)
{
    volatile uint64_t end  = 0;
    test_service_t service = {0};
    ucs_gstream_h urgent, modest, other;
    ucs_gstream_group_h group;
    unsigned round;

    gstream_wrap_reset();
    setenv("UCX_GSTREAM_TURN_TIME", turn_time, 1);
    group = test_sleepy_group(2);
    unsetenv("UCX_GSTREAM_TURN_TIME");
    gstream_wrap_set(&gstream_wrap.no_timeouts, 1);
    urgent = gstream_util_create_on(group, -1);
    modest = gstream_util_create_on(group, 0);
    other  = gstream_util_create_on(group, 0);

    /* There is always one that waits, in the table of sleepers */
    gstream_util_wait(other, &end, 1);
    for (round = 0; round < TEST_SERVICES; ++round) {
        func(urgent, modest, &service);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(urgent), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(modest), UCS_OK);
        service.go = service.word = service.is_served = 0;
        test_delay(round % TEST_DELAYS);
    }
    gstream_util_let_go(&end, 1);
    gstream_util_finish(other);
    gstream_util_finish(urgent);
    gstream_util_finish(modest);
    gstream_util_group_finish(group);
    gstream_wrap_reset();
}

ST_CASE_CALL(no_lost_ready, test_service_run(test_ready_round, "0"))
ST_CASE_CALL(no_lost_waiting, test_service_run(test_waiting_round, "1s"))

ST_SUITE("gstream_group_fault")
