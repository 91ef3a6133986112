/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_poll.c - functions that waiting host streams call. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "gstream_util.h"
#include "st_cunit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MAX_POLLERS 16

/* Take much longer than a stream polls in vain */
#define LONG_POLLS 20000


/* What a poller of the tests does: counts, and lets a word through in time. */
typedef struct {
    _Atomic unsigned calls;
    _Atomic unsigned inside;
    _Atomic unsigned lasts; /* Calls before the stream slept */
    _Atomic unsigned yields; /* Calls before it let others run */
    int              until_shared; /* Lets the word through then */
    unsigned         last; /* Stores to the word in this call; 0 for never */
    int              is_moving; /* It says so */
    uint64_t         word;
} poller_t;

static int poll_word(void *arg, ucs_gstream_poll_t next)
{
    poller_t *poller = arg;

    atomic_fetch_add(&poller->inside, 1);
    if (next == UCS_GSTREAM_POLL_LAST) {
        atomic_fetch_add(&poller->lasts, 1);
    } else if (next == UCS_GSTREAM_POLL_YIELD) {
        atomic_fetch_add(&poller->yields, 1);
    }
    if (poller->until_shared && (next != UCS_GSTREAM_POLL_SPIN)) {
        gstream_util_store(&poller->word, 1);
    }
    if (atomic_fetch_add(&poller->calls, 1) + 1 == poller->last) {
        gstream_util_store(&poller->word, 1);
    }
    atomic_fetch_sub(&poller->inside, 1);
    return poller->is_moving;
}

/* A wait ends by what the poller does, and by nothing else */
static void test_drives(void)
{
    ucs_gstream_h stream = gstream_util_create();
    poller_t poller      = {.last = 3};

    CU_ASSERT_EQUAL(ucs_gstream_poller_add(poll_word, &poller), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(stream, &poller.word, 1),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(atomic_load(&poller.calls) == 3);
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(poll_word, &poller), UCS_OK);
    gstream_util_finish(stream);
}

/* Every one of them is called */
static void test_all(void)
{
    ucs_gstream_h stream = gstream_util_create();
    poller_t pollers[MAX_POLLERS + 1] = {{0}};
    unsigned i;

    for (i = 0; i < MAX_POLLERS; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_poller_add(poll_word, &pollers[i]),
                        UCS_OK);
    }
    CU_ASSERT_EQUAL(ucs_gstream_poller_add(poll_word, &pollers[MAX_POLLERS]),
                    UCS_ERR_NO_RESOURCE);
    pollers[MAX_POLLERS - 1].last = 2;
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(
                            stream, &pollers[MAX_POLLERS - 1].word, 1),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    for (i = 0; i < MAX_POLLERS; ++i) {
        CU_ASSERT(atomic_load(&pollers[i].calls) == 2);
        CU_ASSERT_EQUAL(ucs_gstream_poller_remove(poll_word, &pollers[i]),
                        UCS_OK);
    }
    CU_ASSERT(atomic_load(&pollers[MAX_POLLERS].calls) == 0);
    gstream_util_finish(stream);
}

/* After removal nobody is inside, though a stream still waits */
static void test_removed(void)
{
    ucs_gstream_h stream = gstream_util_create();
    uint64_t gate        = 0;
    poller_t *poller;
    unsigned i, calls;

    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(stream, &gate, 1), UCS_OK);
    for (i = 0; i < 100; ++i) {
        poller = calloc(1, sizeof(*poller));
        CU_ASSERT_FATAL(poller != NULL);
        CU_ASSERT_EQUAL(ucs_gstream_poller_add(poll_word, poller), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_poller_remove(poll_word, poller), UCS_OK);
        CU_ASSERT(atomic_load(&poller->inside) == 0);
        calls = atomic_load(&poller->calls);
        sched_yield();
        CU_ASSERT(atomic_load(&poller->calls) == calls);
        free(poller); /* a sanitizer sees a call that comes late */
    }
    gstream_util_store(&gate, 1);
    gstream_util_finish(stream);
}

/* The stream has said so often that it sleeps, and does */
static void await_last(const gstream_util_t *util, poller_t *poller,
                       unsigned lasts)
{
    while (atomic_load(&poller->lasts) < lasts) {
        sched_yield(); /* asleep before the wait, for lack of commands */
    }
    gstream_util_until_asleep(util->tid);
    CU_ASSERT(atomic_load(&poller->lasts) == lasts);
}

/* Before it sleeps a stream says so, once; and again if it is roused, having
 * polled as long as at first */
static void test_last(void)
{
    poller_t poller = {0};
    gstream_util_t util;
    uint64_t gate   = 0;
    unsigned calls;

    gstream_util_open(&util);
    CU_ASSERT_EQUAL(ucs_gstream_poller_add(poll_word, &poller), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(util.stream, &gate, 1), UCS_OK);
    await_last(&util, &poller, 1);
    calls = atomic_load(&poller.calls);
    ucs_gstream_rouse();
    await_last(&util, &poller, 2);
    CU_ASSERT(atomic_load(&poller.calls) > calls + 1);
    gstream_util_store(&gate, 1);
    ucs_gstream_wake(&gate);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(util.stream), UCS_OK);
    CU_ASSERT(atomic_load(&poller.lasts) == 2);
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(poll_word, &poller), UCS_OK);
    ucs_gstream_rouse(); /* nobody */
    gstream_util_finish(util.stream);
}

/* Needs the processor again and again, for longer than switching takes */
static void *compete(void *arg)
{
    _Atomic int *stop = arg;
    volatile unsigned work;

    while (!atomic_load(stop)) {
        for (work = 0; work < 50000; ++work) {
        }
        sched_yield();
    }
    return NULL;
}

/* A stream whose poller moves something does not sleep */
static void test_moves(void)
{
    ucs_gstream_h stream = gstream_util_create();
    poller_t poller      = {.is_moving = 1, .last = LONG_POLLS};

    CU_ASSERT_EQUAL(ucs_gstream_poller_add(poll_word, &poller), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(stream, &poller.word, 1),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(atomic_load(&poller.lasts) == 0);
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(poll_word, &poller), UCS_OK);
    gstream_util_finish(stream);
}

/* Where another thread needs its processor the stream says so */
static void test_shared(void)
{
    _Atomic int stop = 0;
    poller_t poller  = {.until_shared = 1};
    ucs_gstream_h stream;
    cpu_set_t before, one;
    pthread_t other;

    CU_ASSERT_FATAL(sched_getaffinity(0, sizeof(before), &before) == 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    setenv("UCX_GSTREAM_YIELD_TIME", "1s", 1);
    /* Both threads inherit the one processor */
    CU_ASSERT_FATAL(sched_setaffinity(0, sizeof(one), &one) == 0);
    stream = gstream_util_create();
    CU_ASSERT_FATAL(pthread_create(&other, NULL, compete, &stop) == 0);
    CU_ASSERT_FATAL(sched_setaffinity(0, sizeof(before), &before) == 0);
    unsetenv("UCX_GSTREAM_YIELD_TIME");
    CU_ASSERT_EQUAL(ucs_gstream_poller_add(poll_word, &poller), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(stream, &poller.word, 1),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(atomic_load(&poller.yields) == 1);
    CU_ASSERT(atomic_load(&poller.lasts) == 0);
    atomic_store(&stop, 1);
    pthread_join(other, NULL);
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(poll_word, &poller), UCS_OK);
    gstream_util_finish(stream);
}

static void test_refused(void)
{
    poller_t poller = {0};

    CU_ASSERT_EQUAL(ucs_gstream_poller_add(NULL, &poller),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(NULL, &poller),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_poller_remove(poll_word, &poller),
                    UCS_ERR_NO_ELEM);
}

static const st_cunit_case_t test_cases[] = {
    {"drives", test_drives},
    {"all", test_all},
    {"removed", test_removed},
    {"last", test_last},
    {"moves", test_moves},
    {"shared", test_shared},
    {"refused", test_refused}
};

int main(int argc, char **argv)
{
    return st_cunit_main("gstream_poll", test_cases,
                         ST_CUNIT_COUNT(test_cases), argc, argv);
}
