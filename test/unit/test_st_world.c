/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_world.c - groups of ranks: what they share, and how their failures,
 * deaths and hangs are told.
 */
#include "st_cunit.h"
#include "../integration/st_bytes.h"
#include "../integration/st_msg.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS 3

static char reason[ST_WORLD_REASON];

/* Run as processes and as threads; both have to end in the same way */
static int run(void (*func)(st_rank_t *me), int as_threads, unsigned limit)
{
    st_world_params_t params = {
        .count      = RANKS,
        .as_threads = as_threads,
        .limit      = limit,
        .shared     = st_world_alloc(RANKS * sizeof(uint32_t)),
        .main       = func
    };
    int result               = st_world_run(&params, reason);

    st_world_free(params.shared, RANKS * sizeof(uint32_t));
    return result;
}

static void meet_main(st_rank_t *me)
{
    uint32_t *words = me->shared;
    uint32_t k;
    int i;

    for (k = 1; k <= 100; ++k) {
        words[me->index] = k;
        if (k % 2) {
            st_rank_barrier(me);
        } else {
            st_rank_barrier_idle(me);
        }
        for (i = 0; i < me->count; ++i) {
            ST_CHECK(me, words[i] == k);
        }
        st_rank_barrier(me);
    }
}

ST_CASE(barrier)
{
    CU_ASSERT_EQUAL(run(meet_main, 0, 60), 0);
    CU_ASSERT_EQUAL(run(meet_main, 1, 60), 0);
}

static void nothing_main(st_rank_t *me)
{
    (void)me;
}

/* Workers that go as soon as they know each other */
ST_CASE(open_close)
{
    int i;

    for (i = 0; i < 8; ++i) {
        CU_ASSERT_EQUAL(run(nothing_main, i % 2, 60), 0);
    }
}

/* Several groups of messages, one after the other; what they held is given back
 * every time */
static void reuse_main(st_rank_t *me)
{
    ucp_st_queue_h queue   = st_rank_queue(me, &me->node, 0);
    st_msg_params_t params = {.length = 100};
    st_msg_t msgs[2];
    int round, i;

    for (round = 0; round < 5; ++round) {
        for (i = 0; i < 2; ++i) {
            params.is_send = i;
            params.peer    = (me->index + (i ? 1 : (me->count - 1))) %
                             me->count;
            st_msg_init(me, &msgs[i], &params);
        }
        st_msg_match(me, msgs, 2);
        st_msg_work(&msgs[1], st_rank_stream(me, 0));
        st_msg_startall(msgs, 2, queue);
        st_msg_waitall(msgs, 2, queue);
        st_msg_work(&msgs[0], st_rank_stream(me, 0));
        st_msg_sync_stream(me, queue, st_rank_stream(me, 0));
        st_msg_free(&msgs[0]);
        st_msg_free(&msgs[1]);
        st_rank_settle(me, &me->node);
    }
    ST_OK(me, ucp_st_queue_destroy(queue));
}

ST_CASE(reuse)
{
    CU_ASSERT_EQUAL(run(reuse_main, 0, 60), 0);
    CU_ASSERT_EQUAL(run(reuse_main, 1, 60), 0);
}

static void fail_main(st_rank_t *me)
{
    st_rank_at(me, "a place");
    if (me->index == 1) {
        ST_IS(me, UCS_ERR_BUSY, ucp_st_op_free(NULL));
    }
    st_rank_barrier(me);
}

static void skip_main(st_rank_t *me)
{
    if (me->index == 2) {
        st_rank_skip(me, "no %s", "reason");
    }
    st_rank_barrier(me);
}

ST_CASE(failure)
{
    int as_threads;

    for (as_threads = 0; as_threads < 2; ++as_threads) {
        CU_ASSERT_EQUAL(run(fail_main, as_threads, 60), EXIT_FAILURE);
        CU_ASSERT_PTR_NOT_NULL(strstr(reason, "rank 1 of 3"));
        CU_ASSERT_PTR_NOT_NULL(strstr(reason, "at a place"));
        CU_ASSERT_PTR_NOT_NULL(strstr(reason, "ucp_st_op_free"));
        CU_ASSERT_EQUAL(run(skip_main, as_threads, 60), ST_WORLD_SKIP);
        CU_ASSERT_PTR_NOT_NULL(strstr(reason, "no reason"));
    }
}

static void die_main(st_rank_t *me)
{
    if (me->index == 2) {
        (void)kill(getpid(), SIGKILL);
    }
    st_rank_barrier(me);
}

static void leave_main(st_rank_t *me)
{
    if (me->index == 2) {
        _exit(3);
    }
    st_rank_barrier(me);
}

ST_CASE(death)
{
    int as_threads;

    for (as_threads = 0; as_threads < 2; ++as_threads) {
        CU_ASSERT_EQUAL(run(die_main, as_threads, 60), EXIT_FAILURE);
        CU_ASSERT_PTR_NOT_NULL(strstr(reason, "signal 9"));
        CU_ASSERT_EQUAL(run(leave_main, as_threads, 60), EXIT_FAILURE);
        CU_ASSERT_PTR_NOT_NULL(strstr(reason, "status 3"));
    }
}

/* The limit must be longer than it takes to open a worker */
static void hang_main(st_rank_t *me)
{
    static const uint32_t never;

    st_rank_at(me, "a place that it does not leave");
    while (me->index == 1) {
        st_world_sleep(&never, 0, 1000);
    }
    st_rank_at(me, "a barrier");
    st_rank_barrier(me);
}

ST_CASE(hang)
{
    CU_ASSERT_EQUAL(run(hang_main, 0, 3), EXIT_FAILURE);
    CU_ASSERT_PTR_NOT_NULL(strstr(reason, "time limit"));
    CU_ASSERT_PTR_NOT_NULL(strstr(reason, "rank 1"));
}

/* A payload is no other's, and not what a buffer holds before it comes */
ST_CASE(bytes)
{
    size_t lengths[] = {1, 7, 8, 9, 100, 4097};
    uint8_t *buffer;
    size_t i, length;

    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        length = lengths[i];
        buffer = st_bytes_alloc(length);
        CU_ASSERT_PTR_NOT_NULL_FATAL(buffer);
        CU_ASSERT_EQUAL(st_bytes_check_poison(buffer, 0,
                                              length + ST_BYTES_GUARD),
                        ST_BYTES_NONE);
        st_bytes_fill(buffer, length, 17);
        CU_ASSERT_EQUAL(st_bytes_check(buffer, length, 17), ST_BYTES_NONE);
        CU_ASSERT_EQUAL(st_bytes_check(buffer, length, 18), 0);
        CU_ASSERT_EQUAL(st_bytes_check_poison(buffer, length,
                                              length + ST_BYTES_GUARD),
                        ST_BYTES_NONE);
        buffer[length - 1] ^= 1;
        CU_ASSERT_EQUAL(st_bytes_check(buffer, length, 17), length - 1);
        buffer[length] ^= 1;
        CU_ASSERT_EQUAL(st_bytes_check_poison(buffer, length,
                                              length + ST_BYTES_GUARD), length);
        free(buffer);
    }
}

ST_SUITE("st_world")
