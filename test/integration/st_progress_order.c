/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_progress_order.c - P1, P2, P3 and P7: pairs of ranks whose starts and
 * waits are in an order in which a careless implementation deadlocks.
 *
 * A is the rank with the even number. s(x) and r(x) start a send or a receive,
 * w(x) waits on the stream.
 */
#include "st_progress.h"

#include <ucs_gstream_memory.h>

#include <string.h>

#define ORDER_ONE 1 /* tags */
#define ORDER_TWO 2


/** A rank of a pair, with two messages, and two queues on a stream each. */
typedef struct {
    st_rank_t      *me;
    int            is_a;
    int            uses;
    st_msg_t       msgs[2];
    st_msg_t       *one;   /* Always from A */
    st_msg_t       *two;
    ucs_gstream_h  stream[2];
    ucp_st_queue_h queue[2];
} order_t;

/* Zero for a rank without a partner */
static int order_init(st_rank_t *me, order_t *order, int two_from, int uses)
{
    int i;

    memset(order, 0, sizeof(*order));
    if (st_progress_partner(me) < 0) {
        st_progress_matched(me);
        return 0;
    }
    order->me   = me;
    order->is_a = (me->index % 2) == 0;
    order->uses = st_progress_iterations(me, uses);
    order->one  = &order->msgs[0];
    order->two  = &order->msgs[1];
    for (i = 0; i < 2; ++i) {
        order->stream[i] = st_rank_stream(me, i);
        order->queue[i]  = st_rank_queue(me, &me->node, i);
    }
    st_progress_pair(me, order->one, 0, ORDER_ONE);
    st_progress_pair(me, order->two, two_from, ORDER_TWO);
    st_msg_match(me, order->msgs, 2);
    st_progress_matched(me);
    return 1;
}

static void order_end(order_t *order)
{
    int i;

    if (order->me == NULL) {
        return;
    }
    st_rank_at(order->me, "waiting for its queues");
    for (i = 0; i < 2; ++i) {
        st_msg_sync_stream(order->me, order->queue[i], order->stream[i]);
        ST_OK(order->me, ucp_st_queue_destroy(order->queue[i]));
    }
    for (i = 0; i < 2; ++i) {
        ST_CHECK(order->me, order->msgs[i].use == (uint64_t)order->uses);
        st_msg_free(&order->msgs[i]);
    }
}

static void begin(order_t *order, st_msg_t *msg, int queue)
{
    st_msg_begin(msg, order->queue[queue], order->stream[queue]);
}

static void end(order_t *order, st_msg_t *msg, int queue)
{
    st_msg_end(msg, order->queue[queue], order->stream[queue]);
}

static void sync_queue(order_t *order, int queue)
{
    st_msg_sync(order->me, order->queue[queue]);
}

/** What one rank of the pair does for one use. */
typedef void (*order_use_t)(order_t *order);

/* A program: so many uses, of which A does one thing and B another */
static void order_run(st_rank_t *me, int two_from, int uses, order_use_t use_a,
                      order_use_t use_b)
{
    order_t order;
    int k;

    if (!order_init(me, &order, two_from, uses)) {
        return;
    }
    for (k = 0; k < order.uses; ++k) {
        st_rank_at(me, "use %d", k);
        (order.is_a ? use_a : use_b)(&order);
    }
    order_end(&order);
}

/* One message after the other, each with its wait */
static void use_in_turn(order_t *order)
{
    st_msg_use(order->one, order->queue[0], order->stream[0]);
    st_msg_use(order->two, order->queue[0], order->stream[0]);
}

/* Both started, waited for in the other order */
static void use_swapped(order_t *order)
{
    begin(order, order->one, 0);
    begin(order, order->two, 0);
    end(order, order->two, 0);
    end(order, order->one, 0);
}

/* The other message on the second queue, between start and wait of 1: no stream
 * waits for 1 until the host has seen the other one */
static void use_beside(order_t *order)
{
    begin(order, order->one, 0);
    st_msg_use(order->two, order->queue[1], order->stream[1]);
    sync_queue(order, 1);
    end(order, order->one, 0);
}

/* A: s(1) w(1) s(X) w(X). B: r(1) r(X) w(X) w(1). */
void st_p1(st_rank_t *me)
{
    order_run(me, 0, 1000, use_in_turn, use_swapped);
}

/* A: s(1) r(Y) w(Y) w(1). B: r(1) w(1) s(Y) w(Y). */
void st_p2(st_rank_t *me)
{
    order_run(me, 1, 1000, use_swapped, use_in_turn);
}

/* P2 with two queues on A's side alone */
void st_p3_one_side(st_rank_t *me)
{
    order_run(me, 1, 300, use_beside, use_in_turn);
}

/* ... and on both sides: neither waits for 1 before Y is over */
void st_p3_both_sides(st_rank_t *me)
{
    order_run(me, 1, 300, use_beside, use_beside);
}

/* P1 with B's receive of 1 on a queue on which nothing waits: A's wait for 1
 * must pass */
void st_p3_idle_queue(st_rank_t *me)
{
    order_run(me, 0, 300, use_in_turn, use_beside);
}

/* P2 with two queues on A's side, all uses enqueued; then both hosts compute
 * until their streams have run all of it. A's first stream goes on to the wait
 * for 1 when the second has passed that for Y. */
void st_p3_compute(st_rank_t *me)
{
    volatile uint64_t *passed = ucs_gstream_word_get();
    uint64_t done             = 0;
    order_t order;
    int k;

    ST_CHECK(me, passed != NULL);
    if (!order_init(me, &order, 1, 300)) {
        ucs_gstream_word_put(passed);
        return;
    }
    for (k = 0; k < order.uses; ++k) {
        if (order.is_a) {
            begin(&order, order.one, 0);
            st_msg_use(order.two, order.queue[1], order.stream[1]);
            ST_OK(me, ucs_gstream_enqueue_write64(order.stream[1], passed,
                                                  k + 1));
            ST_OK(me, ucs_gstream_enqueue_wait64(order.stream[0], passed,
                                                 k + 1));
            end(&order, order.one, 0);
        } else {
            use_in_turn(&order);
        }
    }
    for (k = 0; k < 2; ++k) {
        ST_OK(me, ucs_gstream_enqueue_func(order.stream[k], st_progress_count,
                                           &done));
    }
    st_rank_at(me, "computing until its streams have run everything");
    st_progress_compute(&done, 2);
    order_end(&order);
    ucs_gstream_word_put(passed);
}

/* The host asks again and again; it makes no other call */
static void p3_poll_for(order_t *order, st_msg_t *msg)
{
    static const uint32_t never;
    ucs_status_t status;
    int i;

    while (st_msg_completed(msg) < msg->started) {
        for (i = 0; i < 2; ++i) {
            status = ucp_st_queue_query(order->queue[i], NULL);
            if (status != UCS_INPROGRESS) {
                ST_OK(order->me, status);
            }
        }
        st_world_sleep(&never, 0, 1);
    }
}

/* What follows the polls of a use */
static void p3_poll_end(order_t *order)
{
    end(order, order->one, 0);
    end(order, order->two, 1);
    sync_queue(order, 0);
    sync_queue(order, 1);
}

static void p3_poll_a(order_t *order)
{
    begin(order, order->one, 0);
    begin(order, order->two, 1);
    p3_poll_for(order, order->two);
    p3_poll_end(order);
}

static void p3_poll_b(order_t *order)
{
    begin(order, order->one, 0);
    p3_poll_for(order, order->one);
    begin(order, order->two, 1);
    p3_poll_for(order, order->two);
    p3_poll_end(order);
}

/* P2 where no stream waits: the hosts poll */
void st_p3_poll(st_rank_t *me)
{
    order_run(me, 1, 200, p3_poll_a, p3_poll_b);
}

/* B: r(1) s(T) w(T) w(1). A: r(T) w(T) s(1) w(1): when A starts 1, its receive
 * has been started. */
static void p7_mode(st_rank_t *me, ucp_st_mode_t mode)
{
    st_msg_params_t params = {.tag = ORDER_ONE, .length = 3000};
    order_t order;
    int k;

    if (!order_init(me, &order, 1, 1000)) {
        st_progress_matched(me);
        return;
    }
    /* A message of this mode in the place of the standard one */
    st_msg_free(order.one);
    params.is_send = order.is_a;
    params.mode    = mode;
    params.peer    = st_progress_partner(me);
    st_msg_init(me, order.one, &params);
    st_msg_match(me, order.one, 1);
    st_progress_matched(me);
    for (k = 0; k < order.uses; ++k) {
        if (order.is_a) {
            st_msg_use(order.two, order.queue[0], order.stream[0]);
            st_msg_use(order.one, order.queue[0], order.stream[0]);
        } else {
            use_swapped(&order);
        }
    }
    order_end(&order);
}

void st_p7_ready(st_rank_t *me)
{
    p7_mode(me, UCP_ST_MODE_READY);
}

void st_p7_standard(st_rank_t *me)
{
    p7_mode(me, UCP_ST_MODE_STANDARD);
}
