/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_pace.c - a host stream whose waits yield to other threads soon
 * pauses but little; not so where these only wait for the stream.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_pace.h"
#include "gstream_util.h"
#include "st_cunit.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LONG_NSEC 3000 /* that of a yield which lets another thread run */
#define NUM_WAITS 3    /* fewer than let the main thread sleep */
#define MANY      200  /* pauses of a stream that has a core of its own */
#define FEW       20   /* more than those of one that has not */
#define NEEDED    100  /* yields that others needed, more than enough */

static struct {
    pid_t            main_tid;
    int              is_synchronizing; /* the main thread does */
    _Atomic unsigned turns;            /* of it */
    int              is_waiting;       /* the stream does */
    unsigned         looks;            /* of its wait */
    unsigned         before[NUM_WAITS]; /* its first yield, by wait */
    uint64_t         word;
} test;

int __real_sched_yield(void);
int __wrap_sched_yield(void);

static int look(void *arg, ucs_gstream_poll_t next)
{
    ++test.looks;
    return 0;
}

static void until_turns(unsigned turns)
{
    while (atomic_load(&test.turns) < turns) {
        gstream_util_pass_time(1);
    }
}

/* Behind two turns of the main thread one has begun and ended meanwhile */
static void yield_stream(void)
{
    uint64_t start = gstream_util_clock(CLOCK_MONOTONIC);

    test.before[test.word] = test.looks;
    test.looks             = 0;
    while ((gstream_util_clock(CLOCK_MONOTONIC) - start) < LONG_NSEC) {
        /* it takes that long */
    }
    if (test.is_synchronizing) {
        until_turns(atomic_load(&test.turns) + 2);
    }
    gstream_util_store(&test.word, test.word + 1);
}

int __wrap_sched_yield(void)
{
    if (gstream_util_tid() == test.main_tid) {
        atomic_fetch_add(&test.turns, 1);
        return __real_sched_yield();
    }
    if (test.is_waiting) {
        yield_stream();
    }
    return 0;
}

/* The waits come when the main thread is where it will be */
static void begin(void *arg)
{
    until_turns(1);
    test.looks      = 0;
    test.is_waiting = 1;
}

static void end(void *arg)
{
    test.is_waiting = 0;
}

/* Each of the stream's waits yields once */
static void run(int is_synchronizing)
{
    ucs_gstream_h stream;
    uint64_t i;

    test.main_tid         = gstream_util_tid();
    test.is_synchronizing = is_synchronizing;
    test.word             = 0;
    atomic_store(&test.turns, 0);
    setenv("UCX_GSTREAM_YIELD_TIME", "1s", 1);
    stream = gstream_util_create();
    unsetenv("UCX_GSTREAM_YIELD_TIME");
    CU_ASSERT_EQUAL_FATAL(ucs_gstream_poller_add(look, NULL), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_func(stream, begin, NULL), UCS_OK);
    for (i = 1; i <= NUM_WAITS; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(stream, &test.word, i),
                        UCS_OK);
    }
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_func(stream, end, NULL), UCS_OK);
    if (!is_synchronizing) {
        atomic_store(&test.turns, 1);
        while (gstream_util_load(&test.word) < NUM_WAITS) {
            gstream_util_pass_time(1);
        }
    }
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(gstream_util_load(&test.word), NUM_WAITS);
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(look, NULL), UCS_OK);
    gstream_util_finish(stream);
}

/* Somebody else runs, who may have to before the wait ends */
static void test_for_others(void)
{
    int i;

    run(0);
    CU_ASSERT(test.before[0] >= MANY);
    for (i = 1; i < NUM_WAITS; ++i) {
        CU_ASSERT(test.before[i] < FEW);
    }
}

/* To let a thread look whether the stream is done brings that no nearer */
static void test_for_synchronizer(void)
{
    int i;

    run(1);
    for (i = 0; i < NUM_WAITS; ++i) {
        CU_ASSERT(test.before[i] >= MANY);
    }
}

/* Somebody went to sleep, and was woken so long after his first yield, ns */
static void wake_after(uint64_t nsec, int is_wanted,
                       const gstream_pace_config_t *config,
                       gstream_pace_memory_t *memory)
{
    gstream_pace_t pace;

    gstream_pace_begin_spin(&pace, config, memory);
    pace.start     = gstream_util_clock(CLOCK_MONOTONIC) - nsec;
    pace.is_wanted = is_wanted;
    gstream_pace_woken(&pace, memory);
}

/* It would not sleep so long after its first yield, ns, having let others run
 * so often since the time to yield was over */
static int is_awake_after(uint64_t nsec, unsigned needed,
                          const gstream_pace_config_t *config,
                          gstream_pace_memory_t *memory)
{
    gstream_pace_t pace;

    gstream_pace_begin_spin(&pace, config, memory);
    pace.pauses = 0;
    pace.yields = 1000;
    pace.needed = needed;
    pace.start  = gstream_util_clock(CLOCK_MONOTONIC) - nsec;
    return gstream_pace_step(&pace);
}

/* Who was woken soon stays awake for longer, until that is not enough; nobody
 * where others need the core, or where no time to yield is set */
static void test_patience(void)
{
    static const gstream_pace_config_t config = {.spin = 1, .yield_time = 1.0};
    static const gstream_pace_config_t none   = {.spin = 1, .yield_time = 0};
    const uint64_t most          = GSTREAM_PACE_PATIENCE * 1000000000ul;
    const uint64_t half          = most / 2;
    gstream_pace_memory_t memory = {0};

    CU_ASSERT(!is_awake_after(half, 0, &config, &memory));
    wake_after(half, 0, &config, &memory);
    CU_ASSERT(is_awake_after(half, 0, &config, &memory));
    CU_ASSERT(memory.is_patient);
    CU_ASSERT(!is_awake_after(most, 0, &config, &memory));
    wake_after(most, 0, &config, &memory);
    CU_ASSERT(!memory.is_patient);

    wake_after(0, 1, &config, &memory);
    CU_ASSERT(!memory.is_patient);
    wake_after(0, 0, &none, &memory);
    CU_ASSERT(!memory.is_patient);

    memory.is_patient = 1; /* but others need the core */
    CU_ASSERT(!is_awake_after(half, NEEDED, &config, &memory));
}

/* A patient one is late, and known to be so, once an impatient one would sleep;
 * what it moves has it begin anew */
static void test_late(void)
{
    static const gstream_pace_config_t config = {.spin = 1, .yield_time = 1e-4};
    gstream_pace_memory_t memory              = {.is_patient = 1};
    unsigned steps                            = 0;
    gstream_pace_t pace;

    gstream_pace_begin_spin(&pace, &config, &memory);
    CU_ASSERT(gstream_pace_step(&pace)); /* a pause */
    CU_ASSERT(!pace.is_late);
    while (gstream_pace_step(&pace) && !pace.is_late) {
        ++steps;
    }
    CU_ASSERT(steps > 0);
    CU_ASSERT(pace.is_late);
    gstream_pace_renew(&pace);
    CU_ASSERT(!pace.is_late);
}

static const st_cunit_case_t cases[] = {
    {"for_others", test_for_others},
    {"for_synchronizer", test_for_synchronizer},
    {"patience", test_patience},
    {"late", test_late}
};

int main(int argc, char **argv)
{
    return st_cunit_main("gstream_pace", cases, ST_CUNIT_COUNT(cases), argc,
                         argv);
}
