/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_event.c - points in streams, waits for them, and their time. */
#include "gstream_util.h"
#include "st_cunit.h"

#include <ucs_gstream_event.h>

#include <pthread.h>
#include <stdlib.h>

#define TEST_STREAMS 5
#define TEST_EVENTS  7
#define TEST_STEPS   3000
#define TEST_SEEDS   20
#define TEST_ROUNDS  2000
#define TEST_MARKS   200


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

/* Holds a stream up until the word is 1. */

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

ST_CASE(never_recorded)
{
    ucs_gstream_h stream        = gstream_util_create();
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
    gstream_util_finish(stream);
}

ST_CASE(bad_arguments)
{
    ucs_gstream_h stream      = gstream_util_create();
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
    gstream_util_finish(stream);
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


/* Random programs: streams count their steps, record events and wait for them;
 * behind each wait all is there that its recording stands for */

typedef struct {
    uint64_t steps;               /* Of a stream; that stream only */
    uint64_t log[TEST_STEPS + 1]; /* Step k writes k to the k-th one */
    uint64_t enqueued;
} test_clock_t;

typedef struct {
    ucs_gstream_h       streams[TEST_STREAMS];
    test_clock_t        clocks[TEST_STREAMS];
    ucs_gstream_event_h events[TEST_EVENTS];
    unsigned            where[TEST_EVENTS]; /* Stream of the last recording */
    uint64_t            when[TEST_EVENTS];  /* Its steps; 0 for never */
    uint64_t            errors;             /* Atomic */
} test_program_t;

typedef struct {
    test_program_t *program;
    unsigned       where;
    uint64_t       when;
} test_seen_t;

static void test_step(void *args)
{
    test_clock_t *clock = *(test_clock_t**)args;

    ++clock->steps;
    clock->log[clock->steps] = clock->steps;
}

static void test_seen(void *args)
{
    const test_seen_t *seen = args;

    /* A plain load: the wait orders it, or a sanitizer complains */
    if (seen->program->clocks[seen->where].log[seen->when] != seen->when) {
        __atomic_fetch_add(&seen->program->errors, 1, __ATOMIC_RELAXED);
    }
}

static void test_program_step(test_program_t *program, unsigned where)
{
    test_clock_t *clock = &program->clocks[where];

    CU_ASSERT_EQUAL(ucs_gstream_enqueue_launch(program->streams[where],
                                               test_step, &clock,
                                               sizeof(clock)),
                    UCS_OK);
    ++clock->enqueued;
}

static void test_program_wait(test_program_t *program, unsigned where,
                              unsigned event)
{
    test_seen_t seen = {
        .program = program,
        .where   = program->where[event],
        .when    = program->when[event]
    };

    if (seen.when > 0) {
        test_wait(program->streams[where], program->events[event]);
        CU_ASSERT_EQUAL(ucs_gstream_enqueue_launch(program->streams[where],
                                                   test_seen, &seen,
                                                   sizeof(seen)),
                        UCS_OK);
    }
}

static void test_program_draw(test_program_t *program, unsigned *seed)
{
    unsigned where = rand_r(seed) % TEST_STREAMS;
    unsigned event = rand_r(seed) % TEST_EVENTS;

    switch (rand_r(seed) % 3) {
    case 0:
        test_program_step(program, where);
        break;
    case 1:
        test_program_step(program, where);
        test_record(program->streams[where], program->events[event]);
        program->where[event] = where;
        program->when[event]  = program->clocks[where].enqueued;
        break;
    default:
        test_program_wait(program, where, event);
        break;
    }
}

static void test_random_run(unsigned seed)
{
    test_program_t *program = calloc(1, sizeof(*program));
    unsigned i;

    CU_ASSERT_PTR_NOT_NULL_FATAL(program);
    for (i = 0; i < TEST_STREAMS; ++i) {
        program->streams[i] = gstream_util_create();
    }
    for (i = 0; i < TEST_EVENTS; ++i) {
        program->events[i] = test_event_create();
    }
    for (i = 0; i < TEST_STEPS; ++i) {
        test_program_draw(program, &seed);
    }
    for (i = 0; i < TEST_STREAMS; ++i) {
        gstream_util_finish(program->streams[i]);
        CU_ASSERT_EQUAL(program->clocks[i].steps, program->clocks[i].enqueued);
    }
    for (i = 0; i < TEST_EVENTS; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_event_destroy(program->events[i]), UCS_OK);
    }
    CU_ASSERT_EQUAL(program->errors, 0);
    free(program);
}

ST_CASE(random)
{
    unsigned seed;

    for (seed = 0; seed < TEST_SEEDS; ++seed) {
        test_random_run(seed);
    }
}


/* Two streams take turns by two events that are recorded again and again */

ST_CASE(ping_pong)
{
    ucs_gstream_h streams[2]      = {gstream_util_create(),
                                     gstream_util_create()};
    ucs_gstream_event_h events[2] = {test_event_create(), test_event_create()};
    uint64_t runs                 = 0; /* Of both: the events order them */
    unsigned i;

    for (i = 0; i < TEST_ROUNDS; ++i) {
        if (i > 0) {
            test_wait(streams[i % 2], events[(i + 1) % 2]);
        }
        gstream_util_func(streams[i % 2], gstream_util_count, &runs);
        test_record(streams[i % 2], events[i % 2]);
    }
    CU_ASSERT_EQUAL(ucs_gstream_event_synchronize(events[(i + 1) % 2]),
                    UCS_OK);
    CU_ASSERT_EQUAL(runs, TEST_ROUNDS);
    for (i = 0; i < 2; ++i) {
        gstream_util_finish(streams[i]);
        CU_ASSERT_EQUAL(ucs_gstream_event_destroy(events[i]), UCS_OK);
    }
}


/* The host waits */

typedef struct {
    pthread_t           thread;
    ucs_gstream_event_h event;
    pid_t               tid; /* Atomic */
    ucs_status_t        status;
} test_synchronizer_t;

static void *test_synchronizer_main(void *arg)
{
    test_synchronizer_t *sync = arg;

    __atomic_store_n(&sync->tid, gstream_util_tid(), __ATOMIC_RELEASE);
    sync->status = ucs_gstream_event_synchronize(sync->event);
    return NULL;
}

/* Several threads sleep; what is behind the event does not hold them up. */
ST_CASE(synchronize)
{
    ucs_gstream_h stream         = gstream_util_create();
    ucs_gstream_event_h event    = test_event_create();
    volatile uint64_t gates[2]   = {0};
    test_synchronizer_t syncs[3] = {{0}};
    pid_t tid;
    size_t i;

    gstream_util_wait(stream, &gates[0], 1);
    test_record(stream, event);
    gstream_util_wait(stream, &gates[1], 1);
    for (i = 0; i < ST_CUNIT_COUNT(syncs); ++i) {
        syncs[i].event  = event;
        syncs[i].status = UCS_ERR_LAST;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&syncs[i].thread, NULL,
                                             test_synchronizer_main, &syncs[i]),
                              0);
        do {
            gstream_util_pass_time(1);
            tid = __atomic_load_n(&syncs[i].tid, __ATOMIC_ACQUIRE);
        } while (tid == 0);
        gstream_util_until_asleep(tid);
    }

    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_ERR_BUSY);
    gstream_util_let_go(&gates[0], 1);
    for (i = 0; i < ST_CUNIT_COUNT(syncs); ++i) {
        pthread_join(syncs[i].thread, NULL);
        CU_ASSERT_EQUAL(syncs[i].status, UCS_OK);
    }
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_OK);
    gstream_util_let_go(&gates[1], 1);
    gstream_util_finish(stream);
}

/* A command may not wait for what comes behind it */

typedef struct {
    ucs_gstream_event_h event;
    volatile uint64_t   gate;
    ucs_status_t        pending;
    ucs_status_t        passed;
} test_own_t;

static void test_own_pending(void *arg)
{
    test_own_t *own = arg;

    own->pending = ucs_gstream_event_synchronize(own->event);
}

static void test_own_passed(void *arg)
{
    test_own_t *own = arg;

    own->passed = ucs_gstream_event_synchronize(own->event);
}

ST_CASE(own_command)
{
    ucs_gstream_h stream = gstream_util_create();
    test_own_t own       = {
        .event   = test_event_create(),
        .pending = UCS_ERR_LAST,
        .passed  = UCS_ERR_LAST
    };

    gstream_util_quiet(1);
    gstream_util_wait(stream, &own.gate, 1);
    gstream_util_func(stream, test_own_pending, &own);
    test_record(stream, own.event);
    gstream_util_func(stream, test_own_passed, &own);
    gstream_util_let_go(&own.gate, 1);
    gstream_util_finish(stream);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(own.pending, UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(own.passed, UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(own.event), UCS_OK);
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
