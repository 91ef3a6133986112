/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_poll.c - functions that waiting host streams call. */
#include "gstream_util.h"
#include "st_cunit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MAX_POLLERS 16

/* Take much longer than a stream polls in vain */
#define LONG_POLLS 20000


/* What a poller of the tests does: counts, and stores its word in time. */
typedef struct {
    _Atomic unsigned     calls;
    _Atomic unsigned     begins;
    _Atomic unsigned     ends;
    _Atomic unsigned     inside; /* Threads between begin and end */
    unsigned             last;   /* Stores to the word in this call; 0 for never
                                  */
    int                  is_moving; /* It says so */
    uint64_t             word;
    ucs_gstream_poller_t super;
} poller_t;

static int poll_word(void *arg)
{
    poller_t *poller = arg;

    CU_ASSERT(atomic_load(&poller->inside) > 0);
    if (atomic_fetch_add(&poller->calls, 1) + 1 == poller->last) {
        gstream_util_store(&poller->word, 1);
    }
    return poller->is_moving;
}

static void begin(void *arg)
{
    poller_t *poller = arg;

    atomic_fetch_add(&poller->inside, 1);
    atomic_fetch_add(&poller->begins, 1);
}

static void end(void *arg)
{
    poller_t *poller = arg;

    CU_ASSERT(atomic_load(&poller->inside) > 0);
    atomic_fetch_sub(&poller->inside, 1);
    atomic_fetch_add(&poller->ends, 1);
}

static void poller_add(poller_t *poller, ucs_status_t expected)
{
    poller->super.poll  = poll_word;
    poller->super.begin = begin;
    poller->super.end   = end;
    poller->super.arg   = poller;
    CU_ASSERT_EQUAL(ucs_gstream_poller_add(&poller->super), expected);
}

/* Whoever has begun has ended then */
static void poller_remove(poller_t *poller)
{
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(&poller->super), UCS_OK);
    CU_ASSERT(atomic_load(&poller->inside) == 0);
    CU_ASSERT(atomic_load(&poller->begins) == atomic_load(&poller->ends));
}

/* A wait ends by what the poller does, and by nothing else; a wait that is over
 * at once does not call it */
GSTREAM_CASE(drives)
{
    poller_t poller = {.last = 3};
    int i;

    poller_add(&poller, UCS_OK);
    for (i = 0; i < 2; ++i) {
        gstream_util_wait(stream, &poller.word, 1);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
        CU_ASSERT(atomic_load(&poller.calls) == 3);
        CU_ASSERT(atomic_load(&poller.begins) == 1);
        CU_ASSERT(atomic_load(&poller.ends) == 1);
    }
    poller_remove(&poller);
}

/* The thread of a group ends before it sleeps, and all have ended then */
ST_CASE(drives_group)
{
    ucs_gstream_group_h group = gstream_util_group(1);
    poller_t poller           = {.last = 3};
    gstream_util_t util;
    uint64_t gate             = 0;

    gstream_util_open_on(&util, group);
    poller_add(&poller, UCS_OK);
    gstream_util_wait(util.stream, &poller.word, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(util.stream), UCS_OK);
    CU_ASSERT(atomic_load(&poller.calls) >= 3);
    gstream_util_wait(util.stream, &gate, 1);
    gstream_util_until_asleep(util.tid);
    CU_ASSERT(atomic_load(&poller.inside) == 0);
    gstream_util_let_go(&gate, 1);
    gstream_util_finish(util.stream);
    poller_remove(&poller);
    gstream_util_group_finish(group);
}

/* begin() and end() need not be there */
GSTREAM_CASE(poll_alone)
{
    poller_t poller = {.last = 3, .inside = 1};

    poller.super.poll = poll_word;
    poller.super.arg  = &poller;
    CU_ASSERT_EQUAL(ucs_gstream_poller_add(&poller.super), UCS_OK);
    gstream_util_wait(stream, &poller.word, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(atomic_load(&poller.calls) == 3);
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(&poller.super), UCS_OK);
}

/* Every one of them is called */
GSTREAM_CASE(all)
{
    poller_t pollers[MAX_POLLERS + 1] = {{0}};
    unsigned i;

    for (i = 0; i < MAX_POLLERS; ++i) {
        poller_add(&pollers[i], UCS_OK);
    }
    poller_add(&pollers[MAX_POLLERS], UCS_ERR_NO_RESOURCE);
    pollers[MAX_POLLERS - 1].last = 2;
    gstream_util_wait(stream, &pollers[MAX_POLLERS - 1].word, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    for (i = 0; i < MAX_POLLERS; ++i) {
        CU_ASSERT(atomic_load(&pollers[i].calls) == 2);
        poller_remove(&pollers[i]);
    }
    CU_ASSERT(atomic_load(&pollers[MAX_POLLERS].calls) == 0);
}

/* After removal nobody is inside, though a stream still waits, and polls */
static void run_removed(ucs_gstream_group_h group)
{
    ucs_gstream_h stream = gstream_util_create_on(group, 0);
    poller_t moving      = {.is_moving = 1}; /* nobody sleeps */
    uint64_t gate        = 0;
    poller_t *poller;
    unsigned i, calls;

    poller_add(&moving, UCS_OK);
    gstream_util_wait(stream, &gate, 1);
    for (i = 0; i < 100; ++i) {
        poller = calloc(1, sizeof(*poller));
        CU_ASSERT_FATAL(poller != NULL);
        poller_add(poller, UCS_OK);
        while ((i % 2) && (group == NULL) &&
               (atomic_load(&poller->calls) == 0)) {
            sched_yield();
        }
        poller_remove(poller);
        calls = atomic_load(&poller->calls);
        sched_yield();
        CU_ASSERT(atomic_load(&poller->calls) == calls);
        free(poller); /* a sanitizer sees a call that comes late */
    }
    gstream_util_let_go(&gate, 1);
    gstream_util_finish(stream);
    poller_remove(&moving);
}

ST_CASE(removed)
{
    ucs_gstream_group_h group = gstream_util_group(1);

    run_removed(NULL);
    run_removed(group);
    gstream_util_group_finish(group);
}

/* A poller that takes its time, until it is let go or some seconds are over */
static _Atomic int is_slow_in, is_slow_late, slow_go;

static int poll_slowly(void *arg)
{
    uint64_t end = gstream_util_clock(CLOCK_MONOTONIC) + 60000000000ull;

    atomic_store(&is_slow_in, 1);
    while (!atomic_load(&slow_go) && !atomic_load(&is_slow_late)) {
        sched_yield();
        atomic_store(&is_slow_late, gstream_util_clock(CLOCK_MONOTONIC) > end);
    }
    return 0;
}

static const ucs_gstream_poller_t slow = {.poll = poll_slowly};

static void *slow_remove(void *arg)
{
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(&slow), UCS_OK);
    CU_ASSERT(atomic_load(&slow_go));
    return NULL;
}

/* Whoever waits for the end of a poll keeps nobody from adding and removing */
ST_CASE(remove_waits)
{
    ucs_gstream_h stream = gstream_util_create();
    poller_t other       = {0};
    uint64_t gate        = 0;
    pthread_t thread;

    CU_ASSERT_EQUAL(ucs_gstream_poller_add(&slow), UCS_OK);
    gstream_util_wait(stream, &gate, 1);
    while (!atomic_load(&is_slow_in)) {
        sched_yield();
    }
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, slow_remove, NULL) == 0);
    gstream_util_pass_time(50); /* for the remover to begin to wait */
    poller_add(&other, UCS_OK);
    poller_remove(&other);
    CU_ASSERT(!atomic_load(&is_slow_late));
    atomic_store(&slow_go, 1);
    pthread_join(thread, NULL);
    gstream_util_let_go(&gate, 1);
    gstream_util_finish(stream);
}

/* Before it sleeps a stream ends, and begins again when it is woken for less
 * than it waits for */
ST_CASE(sleeps)
{
    poller_t poller = {0};
    gstream_util_t util;
    uint64_t gate   = 0;
    unsigned round;

    gstream_util_open(&util);
    poller_add(&poller, UCS_OK);
    for (round = 1; round <= 3; ++round) {
        gstream_util_wait(util.stream, &gate, round);
        while (atomic_load(&poller.ends) < round) {
            sched_yield(); /* asleep before the wait, for lack of commands */
        }
        gstream_util_until_asleep(util.tid);
        CU_ASSERT(atomic_load(&poller.begins) == round);
        gstream_util_let_go(&gate, round);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(util.stream), UCS_OK);
        CU_ASSERT(atomic_load(&poller.inside) == 0);
    }
    poller_remove(&poller);
    gstream_util_finish(util.stream);
}

/* A stream whose poller does something does not sleep */
GSTREAM_CASE(moves)
{
    poller_t poller = {.is_moving = 1, .last = LONG_POLLS};

    poller_add(&poller, UCS_OK);
    gstream_util_wait(stream, &poller.word, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(atomic_load(&poller.begins) == 1);
    poller_remove(&poller);
}

ST_CASE(refused)
{
    ucs_gstream_poller_t poller = {.poll = poll_word};
    ucs_gstream_poller_t none   = {.poll = NULL};

    CU_ASSERT_EQUAL(ucs_gstream_poller_add(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_poller_add(&none), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(&none), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(&poller), UCS_ERR_NO_ELEM);
}

ST_SUITE("gstream_poll")
