/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_event.c - points in streams, waits for them, and their time. */
#include "gstream_util.h"
#include "st_cunit.h"

#include <stdlib.h>
#include <time.h>

#define TEST_MARKS 200


static ucs_gstream_event_h test_event_create(void)
{
    ucs_gstream_event_h event = NULL;

    CU_ASSERT_EQUAL_FATAL(ucs_gstream_event_create(&event), UCS_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(event);
    return event;
}

static void test_record(ucs_gstream_h stream, ucs_gstream_event_h event)
{
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_record(stream, event), UCS_OK);
}

static void test_wait(ucs_gstream_h stream, ucs_gstream_event_h event)
{
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait_event(stream, event), UCS_OK);
}

/* An event from its creation to its end */

ST_CASE(states)
{
    ucs_gstream_h stream      = gstream_util_create();
    ucs_gstream_event_h event = test_event_create();
    volatile uint64_t gate[2] = {0};
    unsigned i;

    for (i = 0; i < 2; ++i) {
        gstream_util_wait(stream, &gate[i], 1);
        test_record(stream, event);
        CU_ASSERT_EQUAL(ucs_gstream_event_query(event), UCS_INPROGRESS);
        CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_ERR_BUSY);
        gstream_util_let_go(&gate[i], 1);
        CU_ASSERT_EQUAL(ucs_gstream_event_synchronize(event), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_event_query(event), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_event_synchronize(event), UCS_OK);
    }
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(ucs_gstream_event_query(event), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_OK);
}

/* A wait keeps the event busy, too, until it has run */
ST_CASE(waiter_is_use)
{
    ucs_gstream_h recorder    = gstream_util_create();
    ucs_gstream_h waiter      = gstream_util_create();
    ucs_gstream_event_h event = test_event_create();
    volatile uint64_t gate    = 0;

    gstream_util_wait(waiter, &gate, 1);
    test_record(recorder, event);
    test_wait(waiter, event);
    CU_ASSERT_EQUAL(ucs_gstream_event_synchronize(event), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(waiter), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_ERR_BUSY);
    gstream_util_let_go(&gate, 1);
    gstream_util_finish(waiter);
    gstream_util_finish(recorder);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_OK);
}

GSTREAM_CASE(never_recorded)
{
    ucs_gstream_event_h never   = test_event_create();
    ucs_gstream_event_h is_past = test_event_create();
    double seconds              = 7;

    test_record(stream, is_past);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_event_query(never), UCS_ERR_NO_ELEM);
    CU_ASSERT_EQUAL(ucs_gstream_event_synchronize(never), UCS_ERR_NO_ELEM);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait_event(stream, never),
                    UCS_ERR_NO_ELEM);
    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(is_past, never, &seconds),
                    UCS_ERR_NO_ELEM);
    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(never, is_past, &seconds),
                    UCS_ERR_NO_ELEM);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(seconds, 7);
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(never), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(is_past), UCS_OK);
}

GSTREAM_CASE(bad_arguments)
{
    ucs_gstream_event_h event = test_event_create();
    ucs_gstream_event_h other = event;
    double seconds            = 7;

    test_record(stream, event);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_event_create(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_event_query(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_event_synchronize(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(NULL, event, &seconds),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(event, NULL, &seconds),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(event, event, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_record(stream, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_record(NULL, event),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait_event(stream, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait_event(NULL, event),
                    UCS_ERR_INVALID_PARAM);
    setenv("UCX_GSTREAM_SPIN", "many", 1);
    CU_ASSERT_EQUAL(ucs_gstream_event_create(&other), UCS_ERR_INVALID_PARAM);
    unsetenv("UCX_GSTREAM_SPIN");
    gstream_util_quiet(0);
    CU_ASSERT_PTR_EQUAL(other, event);
    CU_ASSERT_EQUAL(seconds, 7);

    /* What was refused has left the event as it was */
    CU_ASSERT_EQUAL(ucs_gstream_event_query(event), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_OK);
}


/* A wait is for the recording that was the last one when it was enqueued */

ST_CASE(record_again)
{
    ucs_gstream_h first       = gstream_util_create();
    ucs_gstream_h second      = gstream_util_create();
    ucs_gstream_h waiter      = gstream_util_create();
    ucs_gstream_h later       = gstream_util_create();
    ucs_gstream_event_h event = test_event_create();
    volatile uint64_t gate    = 0;
    uint64_t runs             = 0;

    gstream_util_wait(first, &gate, 1);
    test_record(first, event);
    test_wait(waiter, event);
    gstream_util_func(waiter, gstream_util_count, &runs);

    /* Passed before the first one: the event is, but not what waits for that */
    test_record(second, event);
    CU_ASSERT_EQUAL(ucs_gstream_event_synchronize(event), UCS_OK);
    test_wait(later, event);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(later), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(waiter, 0.005),
                    UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucs_gstream_event_query(event), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_ERR_BUSY);

    gstream_util_let_go(&gate, 1);
    gstream_util_finish(first);
    gstream_util_finish(waiter);
    gstream_util_finish(second);
    gstream_util_finish(later);
    CU_ASSERT_EQUAL(runs, 1);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_OK);
}


/* The host waits */

/* Several threads sleep; what is behind the event does not hold them up. */
GSTREAM_CASE(synchronize)
{
    ucs_gstream_event_h event        = test_event_create();
    volatile uint64_t gates[2]       = {0};
    gstream_util_waiter_t waiters[3] = {{0}};
    size_t i;

    gstream_util_wait(stream, &gates[0], 1);
    test_record(stream, event);
    gstream_util_wait(stream, &gates[1], 1);
    for (i = 0; i < ST_CUNIT_COUNT(waiters); ++i) {
        waiters[i].event = event;
        gstream_util_waiter_start(&waiters[i]);
    }

    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_ERR_BUSY);
    gstream_util_let_go(&gates[0], 1);
    for (i = 0; i < ST_CUNIT_COUNT(waiters); ++i) {
        gstream_util_waiter_join(&waiters[i]);
    }
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_OK);
    gstream_util_let_go(&gates[1], 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
}

/* A command may not wait for what comes behind it */

typedef struct {
    ucs_gstream_event_h event;
    ucs_status_t        status;
} test_own_t;

static void test_own_synchronize(void *arg)
{
    test_own_t *own = arg;

    own->status = ucs_gstream_event_synchronize(own->event);
}

ST_CASE(own_command)
{
    ucs_gstream_h stream      = gstream_util_create();
    ucs_gstream_event_h event = test_event_create();
    test_own_t pending        = {event, UCS_ERR_LAST};
    test_own_t passed         = {event, UCS_ERR_LAST};
    volatile uint64_t gate    = 0;

    gstream_util_quiet(1);
    gstream_util_wait(stream, &gate, 1);
    gstream_util_func(stream, test_own_synchronize, &pending);
    test_record(stream, event);
    gstream_util_func(stream, test_own_synchronize, &passed);
    gstream_util_let_go(&gate, 1);
    gstream_util_finish(stream);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(pending.status, UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(passed.status, UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_OK);
}


/* Time */

static void test_now(void *arg)
{
    clock_gettime(CLOCK_MONOTONIC, arg);
}

static double test_between(const struct timespec *start,
                           const struct timespec *end)
{
    return (double)(end->tv_sec - start->tv_sec) +
           ((double)(end->tv_nsec - start->tv_nsec) / 1e9);
}

/* The time between two events is not above that of commands around them, and
 * not below that of commands between them; to a nanosecond. */
ST_CASE(elapsed)
{
    ucs_gstream_h stream              = gstream_util_create();
    ucs_gstream_event_h events[2]     = {test_event_create(),
                                         test_event_create()};
    struct timespec around[2], inside[2];
    volatile uint64_t gate = 0;
    double seconds         = 7;
    double back            = 7;

    gstream_util_func(stream, test_now, &around[0]);
    test_record(stream, events[0]);
    gstream_util_func(stream, test_now, &inside[0]);
    gstream_util_wait(stream, &gate, 1);
    gstream_util_func(stream, test_now, &inside[1]);
    test_record(stream, events[1]);
    gstream_util_func(stream, test_now, &around[1]);
    CU_ASSERT_EQUAL(ucs_gstream_event_synchronize(events[0]), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(events[0], events[1], &seconds),
                    UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(events[1], events[0], &seconds),
                    UCS_INPROGRESS);
    CU_ASSERT_EQUAL(seconds, 7);
    gstream_util_pass_time(2);
    gstream_util_let_go(&gate, 1);
    gstream_util_finish(stream);

    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(events[0], events[1], &seconds),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(events[1], events[0], &back),
                    UCS_OK);
    CU_ASSERT(seconds <= (test_between(&around[0], &around[1]) + 5e-10));
    CU_ASSERT(seconds >= (test_between(&inside[0], &inside[1]) - 5e-10));
    CU_ASSERT(seconds >= 0.002);
    CU_ASSERT_EQUAL(back, -seconds);
    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(events[0], events[0], &seconds),
                    UCS_OK);
    CU_ASSERT_EQUAL(seconds, 0);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(events[0]), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(events[1]), UCS_OK);
}

/* Along two streams that hand over to each other it never goes back, and the
 * parts make the whole. */
ST_CASE(elapsed_order)
{
    ucs_gstream_h streams[2] = {gstream_util_create(), gstream_util_create()};
    ucs_gstream_event_h marks[TEST_MARKS];
    double part, whole, sum = 0;
    unsigned i;

    for (i = 0; i < TEST_MARKS; ++i) {
        marks[i] = test_event_create();
        if (i > 0) {
            test_wait(streams[i % 2], marks[i - 1]);
        }
        test_record(streams[i % 2], marks[i]);
    }
    gstream_util_finish(streams[0]);
    gstream_util_finish(streams[1]);

    for (i = 1; i < TEST_MARKS; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(marks[i - 1], marks[i],
                                                  &part),
                        UCS_OK);
        CU_ASSERT(part >= 0);
        sum += part;
    }
    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(marks[0], marks[TEST_MARKS - 1],
                                              &whole),
                    UCS_OK);
    CU_ASSERT((sum - whole) < 1e-9);
    CU_ASSERT((whole - sum) < 1e-9);
    for (i = 0; i < TEST_MARKS; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_event_destroy(marks[i]), UCS_OK);
    }
}

ST_SUITE("gstream_event")
