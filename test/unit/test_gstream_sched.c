/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_sched.c - more streams than threads: order, waits for each
 * other, sleeping and waking up.
 */
#include "gstream_util.h"
#include "st_cunit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define TEST_STREAMS      16
#define TEST_EVENTS       7
#define TEST_STEPS        4000
#define TEST_SEEDS        24
#define TEST_THREADS_MAX  4
#define TEST_PING_PONGS   5000
#define TEST_CHURNERS     3
#define TEST_CHURN_ROUNDS 400
#define TEST_SLEEP_ROUNDS 50

/* Random programs: each step is a kernel that counts, with a store of the count
 * behind it and perhaps the recording of an event, or a wait for a count or an
 * event of any stream that is reached by then. Drawn in an order in which they
 * could run on one thread, they must end on any number of threads, with kernels
 * in order and their effects seen behind waits. */

typedef struct {
    volatile uint64_t word;                /* Steps that were announced */
    uint64_t          enqueued;
    uint64_t          runs;                /* That stream only */
    uint64_t          log[TEST_STEPS + 1]; /* Step k writes k to the k-th one */
} test_clock_t;

typedef struct test_program test_program_t;

typedef struct {
    test_program_t *program;
    unsigned       where;
    uint64_t       when;
} test_step_t;

struct test_program {
    ucs_gstream_h       streams[TEST_STREAMS];
    test_clock_t        clocks[TEST_STREAMS];
    ucs_gstream_event_h events[TEST_EVENTS];
    test_step_t         recorded[TEST_EVENTS]; /* Behind which step, last */
    uint64_t            errors;                /* Atomic */
};

static void test_error(test_program_t *program)
{
    __atomic_fetch_add(&program->errors, 1, __ATOMIC_RELAXED);
}

static void test_step(void *args)
{
    const test_step_t *step = args;
    test_clock_t *clock     = &step->program->clocks[step->where];

    /* A stream's own state is plain: two threads may never run it at once */
    if (++clock->runs != step->when) {
        test_error(step->program);
    }
    clock->log[step->when] = step->when;
}

static void test_seen(void *args)
{
    const test_step_t *step = args;

    /* A plain load: the wait orders it, or a sanitizer complains */
    if (step->program->clocks[step->where].log[step->when] != step->when) {
        test_error(step->program);
    }
}

/* A step, and perhaps an event behind it */
static void test_program_step(test_program_t *program, unsigned where,
                              int event)
{
    test_step_t step = {program, where, ++program->clocks[where].enqueued};

    gstream_util_launch(program->streams[where], test_step, &step,
                        sizeof(step));
    gstream_util_write(program->streams[where], &program->clocks[where].word,
                       step.when);
    if (event >= 0) {
        CU_ASSERT_EQUAL(ucs_gstream_enqueue_record(program->streams[where],
                                                   program->events[event]),
                        UCS_OK);
        program->recorded[event] = step;
    }
}

/* A wait for an event, or for the last step of some stream */
static void test_program_wait(test_program_t *program, ucs_gstream_h stream,
                              unsigned where, int event)
{
    test_step_t step = {program, where, program->clocks[where].enqueued};

    if (event >= 0) {
        step = program->recorded[event];
    }
    if (step.when == 0) {
        return; /* There is nothing yet */
    }
    if (event >= 0) {
        CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait_event(stream,
                                                       program->events[event]),
                        UCS_OK);
    } else {
        gstream_util_wait(stream, &program->clocks[where].word, step.when);
    }
    gstream_util_launch(stream, test_seen, &step, sizeof(step));
}

static void test_program_draw(test_program_t *program, unsigned *seed)
{
    unsigned me    = rand_r(seed) % TEST_STREAMS;
    unsigned where = rand_r(seed) % TEST_STREAMS;
    int event      = (rand_r(seed) % 2) ? (int)(rand_r(seed) % TEST_EVENTS) :
                                          -1;

    if (rand_r(seed) % 2) {
        test_program_step(program, me, event);
    } else {
        test_program_wait(program, program->streams[me], where, event);
    }
}

/* On a group, or on threads of the streams' own if it is NULL */
static void test_random_run(ucs_gstream_group_h group, unsigned seed)
{
    test_program_t *program = calloc(1, sizeof(*program));
    unsigned i;

    CU_ASSERT_PTR_NOT_NULL_FATAL(program);
    for (i = 0; i < TEST_STREAMS; ++i) {
        program->streams[i] = gstream_util_create_on(group, (int)(i % 3) - 1);
    }
    for (i = 0; i < TEST_EVENTS; ++i) {
        CU_ASSERT_EQUAL_FATAL(ucs_gstream_event_create(&program->events[i]),
                              UCS_OK);
    }
    for (i = 0; i < TEST_STEPS; ++i) {
        test_program_draw(program, &seed);
    }
    for (i = 0; i < TEST_STREAMS; ++i) {
        gstream_util_finish(program->streams[i]);
        CU_ASSERT_EQUAL(program->clocks[i].runs, program->clocks[i].enqueued);
    }
    for (i = 0; i < TEST_EVENTS; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_event_destroy(program->events[i]), UCS_OK);
    }
    CU_ASSERT_EQUAL(program->errors, 0);
    free(program);
}

/* On 1 to 4 threads and on one for each stream, which sleep at once in every
 * other program. */
ST_CASE(random)
{
    ucs_gstream_group_h group;
    unsigned seed;

    for (seed = 0; seed < TEST_SEEDS; ++seed) {
        gstream_util_sleepy((seed / TEST_THREADS_MAX) % 2);
        group = gstream_util_group(1 + (seed % TEST_THREADS_MAX));
        test_random_run(group, seed);
        test_random_run(NULL, seed);
        gstream_util_group_finish(group);
        gstream_util_sleepy(0);
    }
}


/* Each stream waits for the next one, the last for the host: on one thread they
 * all wait at once, and pass in the order opposite to that in which they
 * came. */
ST_CASE(chain)
{
    volatile uint64_t words[TEST_STREAMS + 1] = {0};
    ucs_gstream_group_h group                 = gstream_util_group(1);
    ucs_gstream_h streams[TEST_STREAMS];
    unsigned i;

    for (i = 0; i < TEST_STREAMS; ++i) {
        streams[i] = gstream_util_create_on(group, 0);
        gstream_util_wait(streams[i], &words[i + 1], 1);
        gstream_util_write(streams[i], &words[i], 1);
    }
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(streams[0], 0.005),
                    UCS_INPROGRESS);
    CU_ASSERT_EQUAL(gstream_util_load(&words[0]), 0);
    gstream_util_let_go(&words[TEST_STREAMS], 1);
    for (i = 0; i < TEST_STREAMS; ++i) {
        gstream_util_finish(streams[i]);
        CU_ASSERT_EQUAL(words[i], 1);
    }
    gstream_util_group_finish(group);
}


/* Two streams take turns: of one group, of two, and with their own threads */

static void test_ping_pong_on(ucs_gstream_h ping, ucs_gstream_h pong)
{
    volatile uint64_t ball[2] = {0};
    uint64_t round;

    for (round = 1; round <= TEST_PING_PONGS; ++round) {
        gstream_util_wait(pong, &ball[0], round);
        gstream_util_write(pong, &ball[1], round);
        gstream_util_write(ping, &ball[0], round);
        gstream_util_wait(ping, &ball[1], round);
    }
    gstream_util_finish(ping);
    gstream_util_finish(pong);
    CU_ASSERT_EQUAL(ball[0], TEST_PING_PONGS);
    CU_ASSERT_EQUAL(ball[1], TEST_PING_PONGS);
}

ST_CASE(ping_pong)
{
    ucs_gstream_group_h groups[2] = {gstream_util_group(1),
                                     gstream_util_group(2)};

    test_ping_pong_on(gstream_util_create_on(groups[0], 0),
                      gstream_util_create_on(groups[0], 0));
    test_ping_pong_on(gstream_util_create_on(groups[1], 0),
                      gstream_util_create_on(groups[1], 0));
    test_ping_pong_on(gstream_util_create_on(groups[0], 0),
                      gstream_util_create_on(groups[1], 0));
    test_ping_pong_on(gstream_util_create_on(groups[0], 0),
                      gstream_util_create());
    test_ping_pong_on(gstream_util_create(), gstream_util_create());
    gstream_util_group_finish(groups[0]);
    gstream_util_group_finish(groups[1]);
}


/* A stream that waits is served while a function holds another thread up: the
 * function waits until it was. The store is announced, or is not. */

typedef struct {
    volatile uint64_t word;
    volatile uint64_t is_served;
    int               is_announced;
} test_service_t;

static void test_service_block(void *arg)
{
    test_service_t *service = arg;

    gstream_util_store(&service->word, 1);
    if (service->is_announced) {
        ucs_gstream_wake(&service->word);
    }
    while (gstream_util_load(&service->is_served) == 0) {
        sched_yield();
    }
}

static void test_service_run(ucs_gstream_group_h group, int is_announced)
{
    ucs_gstream_h waiter   = gstream_util_create_on(group, 0);
    ucs_gstream_h blocker  = gstream_util_create_on(group, 0);
    uint64_t runs          = 0;
    test_service_t service = {
        .is_announced = is_announced
    };

    gstream_util_wait(waiter, &service.word, 1);
    gstream_util_write(waiter, &service.is_served, 1);
    if (!is_announced) {
        /* The thread that looks at the word from time to time in its sleep is
         * to be the one that is woken for the function, once in a while */
        gstream_util_pass_time(2);
        gstream_util_func(blocker, gstream_util_count, &runs);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(blocker), UCS_OK);
        gstream_util_pass_time(1);
    }
    gstream_util_func(blocker, test_service_block, &service);
    gstream_util_finish(blocker);
    gstream_util_finish(waiter);
}

ST_CASE(service)
{
    ucs_gstream_group_h group;
    unsigned sleepy, i;

    for (sleepy = 0; sleepy < 2; ++sleepy) {
        gstream_util_sleepy((int)sleepy);
        group = gstream_util_group(2);
        gstream_util_sleepy(0);
        for (i = 0; i < TEST_SLEEP_ROUNDS; ++i) {
            test_service_run(group, (int)(i % 2));
        }
        gstream_util_group_finish(group);
    }
}

/* Functions of as many streams as there are threads run at once. */
typedef struct {
    _Atomic unsigned arrived;
    unsigned         expected;
} test_meeting_t;

static void test_meet(void *arg)
{
    test_meeting_t *meeting = arg;

    atomic_fetch_add(&meeting->arrived, 1);
    while (atomic_load(&meeting->arrived) < meeting->expected) {
        sched_yield();
    }
}

/* All become ready by one store while all threads sleep, or at once. */
static void test_meet_round(ucs_gstream_h *streams, unsigned count)
{
    volatile uint64_t word = 0;
    test_meeting_t meeting = {
        .expected = count
    };
    unsigned i;

    for (i = 0; i < count; ++i) {
        gstream_util_wait(streams[i], &word, 1);
        gstream_util_func(streams[i], test_meet, &meeting);
    }
    gstream_util_let_go(&word, 1);
    for (i = 0; i < count; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(streams[i]), UCS_OK);
    }
}

ST_CASE(at_once)
{
    ucs_gstream_h streams[TEST_THREADS_MAX];
    ucs_gstream_group_h group;
    unsigned sleepy, i;

    for (sleepy = 0; sleepy < 2; ++sleepy) {
        gstream_util_sleepy((int)sleepy);
        group = gstream_util_group(TEST_THREADS_MAX);
        for (i = 0; i < TEST_THREADS_MAX; ++i) {
            streams[i] = gstream_util_create_on(group, 0);
        }
        gstream_util_sleepy(0);
        for (i = 0; i < TEST_SLEEP_ROUNDS; ++i) {
            test_meet_round(streams, TEST_THREADS_MAX);
        }
        for (i = 0; i < TEST_THREADS_MAX; ++i) {
            gstream_util_finish(streams[i]);
        }
        gstream_util_group_finish(group);
    }
}


/* Streams come and go on a group that others keep busy */

typedef struct {
    pthread_t           thread;
    ucs_gstream_group_h group;
    uint64_t            failures;
} test_churner_t;

static void *test_churner_main(void *arg)
{
    test_churner_t *churner     = arg;
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_GROUP,
        .group      = churner->group
    };
    ucs_gstream_h stream;
    unsigned round;
    uint64_t runs;

    for (round = 0; round < TEST_CHURN_ROUNDS; ++round) {
        runs = 0;
        if ((ucs_gstream_create(&params, &stream) != UCS_OK) ||
            (ucs_gstream_enqueue_func(stream, gstream_util_count, &runs) !=
             UCS_OK) ||
            (ucs_gstream_enqueue_func(stream, gstream_util_count, &runs) !=
             UCS_OK)) {
            ++churner->failures;
            break;
        }
        while (ucs_gstream_destroy(stream) == UCS_ERR_BUSY) {
            sched_yield();
        }
        churner->failures += (runs != 2);
    }
    return NULL;
}

ST_CASE(churn)
{
    ucs_gstream_group_h group              = gstream_util_group(2);
    test_churner_t churners[TEST_CHURNERS] = {{0}};
    unsigned i;

    for (i = 0; i < TEST_CHURNERS; ++i) {
        churners[i].group = group;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&churners[i].thread, NULL,
                                             test_churner_main, &churners[i]),
                              0);
    }
    test_ping_pong_on(gstream_util_create_on(group, 0),
                      gstream_util_create_on(group, 0));
    for (i = 0; i < TEST_CHURNERS; ++i) {
        pthread_join(churners[i].thread, NULL);
        CU_ASSERT_EQUAL(churners[i].failures, 0);
    }
    gstream_util_group_finish(group);
}


/* Sleeping. All streams of a group of one thread, of which the first one tells
 * which that is */

typedef struct {
    ucs_gstream_group_h group;
    gstream_util_t      first;
    ucs_gstream_h       streams[TEST_STREAMS];
    volatile uint64_t   words[TEST_STREAMS];
} test_sleepers_t;

static void test_sleepers_open(test_sleepers_t *sleepers)
{
    unsigned i;

    sleepers->group = gstream_util_group(1);
    gstream_util_open_on(&sleepers->first, sleepers->group);
    for (i = 0; i < TEST_STREAMS; ++i) {
        sleepers->words[i]   = 0;
        sleepers->streams[i] = gstream_util_create_on(sleepers->group, 0);
        gstream_util_wait(sleepers->streams[i], &sleepers->words[i], 1);
    }
    gstream_util_until_asleep(sleepers->first.tid);
}

static void test_sleepers_close(test_sleepers_t *sleepers)
{
    unsigned i;

    for (i = 0; i < TEST_STREAMS; ++i) {
        gstream_util_finish(sleepers->streams[i]);
    }
    gstream_util_finish(sleepers->first.stream);
    gstream_util_group_finish(sleepers->group);
}

/* Each is woken by the host, by a stream, or by itself, and no other one goes
 * on. */
ST_CASE(wake_each)
{
    ucs_gstream_h writer = gstream_util_create();
    test_sleepers_t sleepers;
    unsigned i;

    test_sleepers_open(&sleepers);
    for (i = 0; i < TEST_STREAMS; ++i) {
        gstream_util_until_asleep(sleepers.first.tid);
        CU_ASSERT_EQUAL(ucs_gstream_query(sleepers.streams[i]),
                        UCS_INPROGRESS);
        switch (i % 3) {
        case 0:
            gstream_util_let_go(&sleepers.words[i], 1);
            break;
        case 1:
            gstream_util_write(writer, &sleepers.words[i], 1);
            break;
        default:
            gstream_util_store(&sleepers.words[i], 1);
            break;
        }
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(sleepers.streams[i]), UCS_OK);
    }
    test_sleepers_close(&sleepers);
    gstream_util_finish(writer);
}

ST_CASE(sleep_cost)
{
    test_sleepers_t sleepers;
    unsigned i;

    test_sleepers_open(&sleepers);
    gstream_util_check_sleep(&sleepers.first, 1);
    /* With no stream that waits it sleeps for good */
    for (i = 0; i < TEST_STREAMS; ++i) {
        gstream_util_let_go(&sleepers.words[i], 1);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(sleepers.streams[i]), UCS_OK);
    }
    gstream_util_check_sleep(&sleepers.first, 0);
    test_sleepers_close(&sleepers);
}

ST_SUITE("gstream_sched")
