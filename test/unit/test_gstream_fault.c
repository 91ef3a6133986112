/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_fault.c - streams where the system refuses, or never times
 * out. */
#include "gstream.h"
#include "gstream_pace.h"
#include "gstream_util.h"
#include "gstream_wrap.h"
#include "st_cunit.h"

#include <ucs_gstream_event.h>

#include <sched.h>

#define TEST_CHUNK   256  /* Commands that one allocation holds */
#define TEST_BATCH   2000
#define TEST_LAPS    200
#define TEST_ROUNDS  2000
#define TEST_RACES   20000
#define TEST_DELAYS  100  /* Pauses */

/* A stream that cannot be made leaves nothing behind (see the leak checkers) */

static void test_create_fails(int *fault, ucs_status_t expected)
{
    ucs_gstream_params_t params = {0};
    ucs_gstream_h stream        = NULL;

    gstream_wrap_set(fault, 0);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_create(&params, &stream), expected);
    gstream_util_quiet(0);
    CU_ASSERT_PTR_NULL(stream);
    gstream_wrap_reset();
}

ST_CASE(create)
{
    gstream_wrap_reset();
    test_create_fails(&gstream_wrap.fail_memalign, UCS_ERR_NO_MEMORY);
    test_create_fails(&gstream_wrap.fail_malloc, UCS_ERR_NO_MEMORY);
    test_create_fails(&gstream_wrap.fail_thread, UCS_ERR_NO_RESOURCE);
    gstream_util_finish(gstream_util_create());
}


/* Neither does an event that cannot be made, or not be recorded: it is what it
 * was */

ST_CASE(event)
{
    ucs_gstream_h stream      = gstream_util_create();
    ucs_gstream_event_h event = NULL;
    int before, i;

    gstream_wrap_reset();
    gstream_util_quiet(1);
    gstream_wrap_set(&gstream_wrap.fail_malloc, 0);
    CU_ASSERT_EQUAL(ucs_gstream_event_create(&event), UCS_ERR_NO_MEMORY);
    CU_ASSERT_PTR_NULL(event);
    gstream_wrap_reset();
    CU_ASSERT_EQUAL_FATAL(ucs_gstream_event_create(&event), UCS_OK);

    gstream_wrap_set(&gstream_wrap.fail_malloc, 0);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_record(stream, event),
                    UCS_ERR_NO_MEMORY);
    gstream_wrap_reset();
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_query(event), UCS_ERR_NO_ELEM);
    gstream_util_quiet(0);

    /* Recordings are used again: one is the last one, one is made meanwhile */
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_enqueue_record(stream, event), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    }
    before = gstream_wrap_get(&gstream_wrap.num_mallocs);
    for (i = 0; i < (TEST_CHUNK / 4); ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_enqueue_record(stream, event), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait_event(stream, event), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    }
    CU_ASSERT_EQUAL(gstream_wrap_get(&gstream_wrap.num_mallocs), before);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_OK);
    gstream_util_finish(stream);
}


/* A thread that waits for an event asks its stream. Another one that has seen
 * the stream idle can destroy it nevertheless. */

typedef struct {
    ucs_gstream_h stream;
    int           has_begun;
    ucs_status_t  status;
} test_end_t;

static void *test_destroy(void *arg)
{
    test_end_t *end = arg;

    __atomic_store_n(&end->has_begun, 1, __ATOMIC_RELEASE);
    end->status = ucs_gstream_destroy(end->stream);
    return NULL;
}

ST_CASE(asked)
{
    test_end_t end;
    pthread_t thread;
    uint64_t id;
    unsigned i, j;

    for (i = 0; i < TEST_LAPS; ++i) {
        end = (test_end_t){.stream = gstream_util_create()};
        id  = end.stream->id;
        CU_ASSERT_FATAL(gstream_ask_begin(end.stream, id));
        CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, test_destroy, &end),
                              0);
        while (!__atomic_load_n(&end.has_begun, __ATOMIC_ACQUIRE)) {
            sched_yield();
        }
        for (j = 0; j < i; ++j) {
            sched_yield();
        }
        gstream_ask_end(end.stream);
        CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
        CU_ASSERT_EQUAL(end.status, UCS_OK);
        CU_ASSERT(!gstream_ask_begin(end.stream, id));
    }
}


/* A batch that does not fit into memory is not enqueued at all */

static void test_fill(ucs_gstream_cmd_t *cmds, size_t count, uint64_t *runs)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        cmds[i] = gstream_util_cmd_func(gstream_util_count, runs);
    }
}

/* Enqueues a batch with its n-th allocation failing; whether one failed. */
static int test_batch_fails(ucs_gstream_h stream, const ucs_gstream_cmd_t *cmds,
                            int nth)
{
    ucs_status_t status;

    gstream_util_quiet(1);
    gstream_wrap_set(&gstream_wrap.fail_malloc, nth);
    status = ucs_gstream_enqueue(stream, cmds, TEST_BATCH);
    gstream_wrap_reset();
    gstream_util_quiet(0);
    CU_ASSERT((status == UCS_OK) || (status == UCS_ERR_NO_MEMORY));
    return status != UCS_OK;
}

static void test_batch_nth(const ucs_gstream_cmd_t *cmds, uint64_t *runs,
                           int nth)
{
    ucs_gstream_h stream = gstream_util_create();
    int failed;

    *runs  = 0;
    failed = test_batch_fails(stream, cmds, nth);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(*runs, failed ? 0 : TEST_BATCH);
    CU_ASSERT_EQUAL(failed, nth < (TEST_BATCH / TEST_CHUNK));

    /* What it had got is of use to the next batch */
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, TEST_BATCH), UCS_OK);
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(*runs, failed ? TEST_BATCH : (2 * TEST_BATCH));
}

ST_CASE(batch)
{
    static ucs_gstream_cmd_t cmds[TEST_BATCH];
    static uint64_t runs;
    int nth;

    gstream_wrap_reset();
    test_fill(cmds, TEST_BATCH, &runs);
    for (nth = 0; nth <= (TEST_BATCH / TEST_CHUNK); ++nth) {
        test_batch_nth(cmds, &runs, nth);
    }
}


/* Memory that was used once is used again */

ST_CASE(recycle)
{
    static ucs_gstream_cmd_t cmds[TEST_BATCH];
    static uint64_t runs;
    ucs_gstream_h stream;
    int before, lap;

    gstream_wrap_reset();
    stream = gstream_util_create();
    test_fill(cmds, TEST_BATCH, &runs);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, TEST_BATCH), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);

    before = gstream_wrap_get(&gstream_wrap.num_mallocs);
    for (lap = 0; lap < TEST_LAPS; ++lap) {
        CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, TEST_BATCH - 256),
                        UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    }
    CU_ASSERT_EQUAL(gstream_wrap_get(&gstream_wrap.num_mallocs), before);
    gstream_util_finish(stream);
}


/* Kernels need no memory of their own, however long their arguments are */

typedef struct {
    uint64_t      *runs;
    unsigned char rest[1000];
} test_args_t;

static void test_count_args(void *args)
{
    ++*((test_args_t*)args)->runs;
}

static void test_launch_lap(ucs_gstream_h stream, uint64_t *runs)
{
    test_args_t args = {
        .runs = runs
    };
    unsigned i;

    for (i = 0; i < TEST_CHUNK; ++i) {
        gstream_util_launch(stream, test_count_args, &args, sizeof(args));
    }
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
}

ST_CASE(recycle_args)
{
    static ucs_gstream_cmd_t cmds[TEST_BATCH * 10];
    static uint64_t runs;
    ucs_gstream_h stream;
    int before, lap;

    /* The longest queue that there is before is as long as a lap of kernels */
    gstream_wrap_reset();
    stream = gstream_util_create();
    test_fill(cmds, ST_CUNIT_COUNT(cmds), &runs);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, ST_CUNIT_COUNT(cmds)),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);

    runs   = 0;
    before = gstream_wrap_get(&gstream_wrap.num_mallocs);
    for (lap = 0; lap < TEST_LAPS; ++lap) {
        test_launch_lap(stream, &runs);
    }
    CU_ASSERT_EQUAL(gstream_wrap_get(&gstream_wrap.num_mallocs), before);
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(runs, TEST_LAPS * TEST_CHUNK);
}

/* A kernel that finds no memory is not enqueued; nothing else is spoilt */
ST_CASE(launch_fails)
{
    ucs_gstream_h stream;
    volatile uint64_t gate = 0;
    uint64_t runs          = 0;
    uint64_t launched      = 0;
    test_args_t args       = {
        .runs = &runs
    };
    ucs_status_t status;
    unsigned i;

    gstream_wrap_reset();
    stream = gstream_util_create();
    gstream_util_wait(stream, &gate, 1);
    gstream_util_quiet(1);
    for (i = 0; i < TEST_CHUNK; ++i) { /* the next allocation fails, or none */
        gstream_wrap_set(&gstream_wrap.fail_malloc, (int)(i % 2));
        status = ucs_gstream_enqueue_launch(stream, test_count_args, &args,
                                            sizeof(args));
        CU_ASSERT((status == UCS_OK) || (status == UCS_ERR_NO_MEMORY));
        launched += (status == UCS_OK);
    }
    gstream_wrap_reset();
    gstream_util_quiet(0);
    CU_ASSERT(launched >= (TEST_CHUNK / 2));
    CU_ASSERT(launched < TEST_CHUNK);
    gstream_util_store(&gate, 1);
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(runs, launched);
}


/* No call is lost: with sleeps that have no time limit, it would hang */

static ucs_gstream_h test_create_sleepy(void)
{
    ucs_gstream_h stream;

    gstream_util_sleepy(1);
    stream = gstream_util_create();
    gstream_util_sleepy(0);
    return stream;
}

ST_CASE(no_lost_store)
{
    volatile uint64_t ball[2] = {0};
    ucs_gstream_h ping, pong;
    uint64_t round;

    gstream_wrap_reset();
    gstream_wrap_set(&gstream_wrap.no_timeouts, 1);
    ping = test_create_sleepy();
    pong = test_create_sleepy();
    for (round = 1; round <= TEST_ROUNDS; ++round) {
        gstream_util_write(ping, &ball[0], round);
        gstream_util_wait(ping, &ball[1], round);
        gstream_util_wait(pong, &ball[0], round);
        gstream_util_write(pong, &ball[1], round);
    }
    gstream_util_finish(ping);
    gstream_util_finish(pong);
    CU_ASSERT_EQUAL(ball[1], TEST_ROUNDS);
    gstream_wrap_reset();
}

/* A meeting of the host and the stream's thread, so that both go on within some
 * ns. The host then is 'delay' pauses late, or early. */
typedef struct {
    int      arrived; /* Atomic */
    unsigned delay;   /* Of the stream */
} test_meeting_t;

static void test_delay(unsigned pauses)
{
    while (pauses-- > 0) {
        gstream_pace_pause();
    }
}

static void test_meet(test_meeting_t *meeting, unsigned delay)
{
    int polls = 0;

    __atomic_fetch_add(&meeting->arrived, 1, __ATOMIC_SEQ_CST);
    while (gstream_wrap_get(&meeting->arrived) < 2) {
        if ((++polls % 1000) == 0) {
            sched_yield();
        }
    }
    test_delay(delay);
}

static void test_meet_stream(void *arg)
{
    test_meeting_t *meeting = arg;

    test_meet(meeting, meeting->delay);
}

/* In each round, the stream falls asleep on a word while the host stores. */
ST_CASE(no_lost_wake)
{
    volatile uint64_t word = 0;
    test_meeting_t meeting = {0};
    ucs_gstream_cmd_t cmds[2];
    ucs_gstream_h stream;
    uint64_t round;

    gstream_wrap_reset();
    gstream_wrap_set(&gstream_wrap.no_timeouts, 1);
    stream  = test_create_sleepy();
    cmds[0] = gstream_util_cmd_func(test_meet_stream, &meeting);
    for (round = 1; round <= TEST_RACES; ++round) {
        gstream_wrap_set(&meeting.arrived, 0);
        cmds[1] = gstream_util_cmd_word(UCS_GSTREAM_CMD_WAIT64, &word, round);
        CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, 2), UCS_OK);
        test_meet(&meeting, round % TEST_DELAYS);
        gstream_util_let_go(&word, round);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    }
    gstream_util_finish(stream);
    gstream_wrap_reset();
}

/* Whoever sleeps on one of the words is woken, wherever it is in the list */
ST_CASE(wake_all)
{
    enum { COUNT = 5 };
    volatile uint64_t words[COUNT + 1] = {0}; /* nobody sleeps on the last */
    const volatile uint64_t *list[COUNT + 1];
    ucs_gstream_h streams[COUNT];
    gstream_util_t util;
    int i;

    gstream_wrap_reset();
    gstream_wrap_set(&gstream_wrap.no_timeouts, 1);
    for (i = 0; i < COUNT; ++i) {
        gstream_util_open(&util);
        streams[i] = util.stream;
        gstream_util_wait(streams[i], &words[i], 1);
        gstream_util_until_asleep(util.tid);
    }
    for (i = 0; i <= COUNT; ++i) {
        list[i] = &words[COUNT - i];
        gstream_util_store(&words[i], 1);
    }
    ucs_gstream_wake_all(list, 0);
    ucs_gstream_wake_all(list, COUNT + 1);
    for (i = 0; i < COUNT; ++i) {
        gstream_util_finish(streams[i]);
    }
    gstream_wrap_reset();
}

/* In each round, the stream falls asleep for lack of commands while the host
 * enqueues the next one. */
ST_CASE(no_lost_command)
{
    test_meeting_t meeting = {0};
    ucs_gstream_h stream;
    uint64_t runs = 0;
    unsigned round;

    gstream_wrap_reset();
    stream = test_create_sleepy();
    for (round = 0; round < TEST_RACES; ++round) {
        gstream_wrap_set(&meeting.arrived, 0);
        gstream_util_func(stream, test_meet_stream, &meeting);
        test_meet(&meeting, round % TEST_DELAYS);
        gstream_util_func(stream, gstream_util_count, &runs);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    }
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(runs, TEST_RACES);
}

/* In each round, the host falls asleep in synchronize while the last command
 * ends. */
ST_CASE(no_lost_end)
{
    test_meeting_t meeting = {0};
    ucs_gstream_h stream;
    unsigned round;

    gstream_wrap_reset();
    stream = test_create_sleepy();
    for (round = 0; round < TEST_RACES; ++round) {
        gstream_wrap_set(&meeting.arrived, 0);
        meeting.delay = round % TEST_DELAYS;
        gstream_util_func(stream, test_meet_stream, &meeting);
        test_meet(&meeting, 0);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    }
    gstream_util_finish(stream);
}


/* A wake costs a system call only if somebody sleeps on that very word */

ST_CASE(wake_calls)
{
    volatile uint64_t words[128] = {0};
    gstream_util_t util;
    int before;
    size_t i;

    gstream_wrap_reset();
    gstream_util_open(&util);
    gstream_util_wait(util.stream, &words[0], 1);
    gstream_util_until_asleep(util.tid);

    before = gstream_wrap_get(&gstream_wrap.num_wakes);
    for (i = 1; i < ST_CUNIT_COUNT(words); ++i) {
        ucs_gstream_wake(&words[i]);
    }
    CU_ASSERT_EQUAL(gstream_wrap_get(&gstream_wrap.num_wakes), before);

    gstream_util_let_go(&words[0], 1);
    CU_ASSERT(gstream_wrap_get(&gstream_wrap.num_wakes) <= (before + 1));
    gstream_util_finish(util.stream);
}

ST_SUITE("gstream_fault")
