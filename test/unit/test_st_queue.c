/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_queue.c - starts and waits: order, reuse, refusals, run-ahead, ready
 * sends, resources; streams that are captured (S13).
 */
#include "st_cunit.h"
#include "st_flow.h"
#include "st_msg.h"
#include "st_stream.h"
#include "../integration/st_any.h"

#include <stdlib.h>
#include <string.h>

#define LEN  512
#define LONG ST_LONG
#define MANY 400 /* uses, with the host far ahead of the stream */

/* What a side that sends has done for its messages: the NIC has written them,
 * and nothing was proxied; or the stream has copied them, or a call of the host
 * for a stream that was not at its wait yet; or the service thread has sent
 * them all */
static void check_moved(const ucp_st_worker_attr_t *attr, uint64_t messages)
{
    ucp_st_lane_t lane          = st_lane();
    const ucp_st_stats_t *stats = &attr->stats;

    CU_ASSERT_EQUAL(stats->writes_fired,
                    (lane == UCP_ST_LANE_TRIG) ? messages : 0);
    CU_ASSERT_EQUAL(stats->copies,
                    (lane == UCP_ST_LANE_DIRECT) ? messages : 0);
    if (lane == UCP_ST_LANE_DIRECT) {
        CU_ASSERT(stats->proxied <= messages);
    } else if ((lane == UCP_ST_LANE_HOST) ||
               (st_any_type() == UCS_GSTREAM_TYPE_HOST)) {
        CU_ASSERT_EQUAL(stats->proxied,
                        (lane == UCP_ST_LANE_HOST) ? messages : 0);
    } /* else a stream does not reach an emulated card */
}

/* S1, S2, S4: the data of every use arrives in stream order */
FLOW_CASE(run_ahead, LEN, 0)
{
    unsigned uses = st_any_ahead(MANY);
    ucp_st_worker_attr_t attr;
    ucp_st_op_attr_t op_attr;

    flow_run_ahead(flow, uses);

    CU_ASSERT_EQUAL(ucp_st_worker_query(a->worker, &attr), UCS_OK);
    check_moved(&attr, uses);
    CU_ASSERT_EQUAL(attr.stats.starts, uses);
    CU_ASSERT_EQUAL(attr.stats.waits, uses);
    CU_ASSERT_EQUAL(attr.stats.lanes[st_lane()].matches, 1);
    CU_ASSERT_EQUAL(attr.stats.lanes[st_lane()].starts, uses);
    CU_ASSERT_EQUAL(attr.stats.lanes[st_lane()].waits, uses);
    CU_ASSERT_EQUAL(ucp_st_op_query(flow->recv, &op_attr), UCS_OK);
    CU_ASSERT_EQUAL(op_attr.started, uses);
    CU_ASSERT_EQUAL(op_attr.completed, uses);
}

/* S10: with few entries the host is not blocked; uses are posted late, or go
 * without an entry */
ST_CASE(few_entries)
{
    unsigned uses = st_any_ahead(MANY);
    ucp_st_stats_t stats;
    flow_t flow;

    setenv("UCX_CXI_TRIG_DEFERRED_ENTRIES", "4", 1);
    if (flow_init(&flow, LEN, 0)) {
        flow_run_ahead(&flow, uses);
        stats = st_stats(&flow.pair.side[ST_A]);
        if (st_lane() == UCP_ST_LANE_TRIG) {
            CU_ASSERT_EQUAL(stats.writes_fired, uses);
            CU_ASSERT(stats.late_posts > 0);
        } else {
            CU_ASSERT_EQUAL(stats.late_posts, 0);
        }
        flow_cleanup(&flow);
    }
    unsetenv("UCX_CXI_TRIG_DEFERRED_ENTRIES");
}

/* S10: an idle pair holds no entry, so that there may be more pairs than
 * entries. One side starts all sends, the other one receives them one by one,
 * from the last: those that have entries wait for those that have none, which a
 * thread carries out */
ST_CASE_IF(more_pairs_than_entries, st_lane() == UCP_ST_LANE_TRIG,
           "the lane has no entries to run out of")
{
    enum {
        PAIRS = 8
    };
    static uint8_t sbuf[PAIRS][LONG], rbuf[PAIRS][LONG];
    ucp_st_op_h send[PAIRS], recv[PAIRS];
    st_side_t *a, *b;
    st_pair_t pair;
    char *lanes;
    int i, k;

    lanes = st_env_set("UCX_ST_LANES", "trig"); /* and no other */
    setenv("UCX_CXI_TRIG_DEFERRED_ENTRIES", "3", 1);
    if (st_pair_init(&pair)) {
        a = &pair.side[ST_A];
        b = &pair.side[ST_B];
        for (i = 0; i < PAIRS; ++i) {
            send[i] = st_send(a, sbuf[i], LONG, i);
            recv[i] = st_recv(b, rbuf[i], LONG, i);
            st_match_ok(send[i], recv[i]);
        }
        CU_ASSERT_EQUAL(st_stats(a).entries, 0);
        CU_ASSERT_EQUAL(st_stats(a).fallbacks, 0);
        for (k = 0; k < 10; ++k) {
            for (i = 0; i < PAIRS; ++i) {
                st_fill(sbuf[i], LONG, (PAIRS * k) + i);
                st_start(a, send[i]);
            }
            for (i = PAIRS - 1; i >= 0; --i) {
                st_use(b, recv[i]);
                st_wait(a, send[i]);
            }
            st_pair_sync(&pair);
            for (i = 0; i < PAIRS; ++i) {
                CU_ASSERT_TRUE(st_check(rbuf[i], LONG, (PAIRS * k) + i));
            }
        }
        CU_ASSERT(st_stats(a).proxied > 0);
        CU_ASSERT_EQUAL(st_stats(a).writes_fired, 10 * PAIRS);
        for (i = 0; i < PAIRS; ++i) {
            st_free2(send[i], recv[i]);
        }
        st_pair_cleanup(&pair);
    }
    unsetenv("UCX_CXI_TRIG_DEFERRED_ENTRIES");
    st_env_restore("UCX_ST_LANES", lanes);
}

/* However many uses wait for a stream, there is room to match another pair */
ST_CASE(match_while_ahead)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    uint64_t gate = 0;
    ucp_st_op_h send, recv;
    flow_t flow;
    unsigned i;

    setenv("UCX_CXI_TRIG_DEFERRED_ENTRIES", "40", 1);
    if (flow_init(&flow, LEN, 0)) {
        st_hold(&flow.pair.side[ST_A], &gate);
        st_hold(&flow.pair.side[ST_B], &gate);
        for (i = 0; i < st_any_ahead(MANY); ++i) {
            st_use(&flow.pair.side[ST_A], flow.send);
            st_use(&flow.pair.side[ST_B], flow.recv);
        }
        send = st_send(&flow.pair.side[ST_A], sbuf, LEN, 2);
        recv = st_recv(&flow.pair.side[ST_B], rbuf, LEN, 2);
        st_match_ok(send, recv);
        st_let_go(&gate);
        st_pair_sync(&flow.pair);
        st_free2(send, recv);
        flow_cleanup(&flow);
    }
    unsetenv("UCX_CXI_TRIG_DEFERRED_ENTRIES");
}

/* P7: ready sends whose receive has been started on time */
FLOW_CASE(ready, LEN, 1)
{
    ucp_st_worker_attr_t attr;
    int k;

    for (k = 0; k < 50; ++k) {
        flow_use(flow, k); /* the receive's start has run before */
    }
    CU_ASSERT_EQUAL(ucp_st_worker_query(b->worker, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.stats.cts_fired, 0);
    CU_ASSERT_EQUAL(ucp_st_worker_query(a->worker, &attr), UCS_OK);
    check_moved(&attr, 50);
}

/* S1: a standard send started long before its receive, and too long to be sent
 * ahead, writes nothing until the receive has been started */
FLOW_CASE(send_first, LONG, 0)
{
    int is_trig = (st_lane() == UCP_ST_LANE_TRIG);
    ucp_st_stats_t stats;

    memset(flow->rbuf, 0xee, LONG);
    st_fill(flow->sbuf, LONG, 1);
    st_start(a, flow->send);
    st_sync(a); /* S3: the start does not block it */
    stats = st_stats(a);
    CU_ASSERT_EQUAL(stats.writes_fired, 0);
    CU_ASSERT_EQUAL(flow->rbuf[0], 0xee);

    st_use(b, flow->recv);
    st_sync(b);
    CU_ASSERT_TRUE(st_check(flow->rbuf, LONG, 1));
    st_wait(a, flow->send);
    st_sync(a);
    stats = st_stats(a);
    CU_ASSERT_EQUAL(stats.writes_fired, is_trig ? 1 : 0);
    CU_ASSERT_EQUAL(stats.eager, 0);
    CU_ASSERT_EQUAL(stats.chunks, 0);
}

/* S5: every misuse is refused, and enqueues nothing: the pair still works */
FLOW_CASE(misuse, LONG, 0)
{
    ucp_st_op_h send      = flow->send;
    ucp_st_op_h unmatched = st_send(a, flow->sbuf, LONG, 2);

    CU_ASSERT_EQUAL(ucp_st_enqueue_start(a->queue, unmatched),
                    UCS_ERR_NOT_CONNECTED);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(a->queue, send), UCS_ERR_NO_MESSAGE);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(a->queue, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(NULL, send), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(b->queue, send),
                    UCS_ERR_INVALID_PARAM); /* of another worker */
    st_start(a, send);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(a->queue, send), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_op_free(send), UCS_ERR_BUSY);
    st_wait(a, send);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(a->queue, send), UCS_ERR_NO_MESSAGE);
    CU_ASSERT_EQUAL(ucp_st_op_free(send), UCS_ERR_BUSY); /* not passed */
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(a->queue), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, NULL), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(a->worker), UCS_ERR_BUSY);

    st_use(b, flow->recv);
    st_pair_sync(&flow->pair);
    flow_run_ahead(flow, 10);
    st_free(unmatched);
}

/* S5: an operation moves to another queue only after the host has seen its wait
 * pass; a wait on another queue than the start's is refused */
FLOW_CASE(other_queue, LEN, 0)
{
    ucp_st_queue_h other;

    other = st_queue(a, a->stream);
    st_start(a, flow->send);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(other, flow->send),
                    UCS_ERR_INVALID_PARAM);
    st_wait(a, flow->send);
    st_use(b, flow->recv);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(other, flow->send), UCS_ERR_BUSY);
    st_sync(b);
    st_sync(a);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(other, flow->send), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(other, flow->send), UCS_OK);
    st_use(b, flow->recv);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(other, NULL), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(other), UCS_OK);
    st_sync(b);
}

/* S12: a stream is not destroyed while it has a queue, idle or not */
FLOW_CASE(stream_has_queue, LEN, 0)
{
    ucp_st_queue_h first, last;
    ucs_gstream_h stream;

    CU_ASSERT_EQUAL_FATAL(st_any_stream(&stream), UCS_OK);
    first = st_queue(a, stream);
    last  = st_queue(a, stream);
    CU_ASSERT_EQUAL_FATAL(ucs_gstream_destroy(stream), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(first), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_ERR_BUSY);
    CU_ASSERT(ucs_gstream_is_valid(stream));
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(last, flow->send), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(last, flow->send), UCS_OK);
    st_use(b, flow->recv);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(last, NULL), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(last), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_OK);
    st_sync(b);
}

/* The host wait is for the queue, not for others' commands behind it */
FLOW_CASE(wait_is_for_queue, LEN, 0)
{
    uint64_t gate = 0;

    st_use(a, flow->send);
    st_hold(a, &gate);
    st_use(b, flow->recv);
    st_pair_sync(&flow->pair);
    CU_ASSERT_EQUAL(ucs_gstream_query(a->stream), UCS_INPROGRESS);
    st_let_go(&gate);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(a->stream), UCS_OK);
}

/* The queue of a start goes before the use is complete, which then fails: there
 * is no queue that it could put in error */
ST_CASE(fails_without_queue)
{
    ucp_st_op_attr_t attr = {.status = UCS_OK};
    ucp_st_queue_h other;
    ucs_status_t status;
    st_side_t *a, *b;
    flow_t flow;

    if (!flow_init(&flow, LONG, 0)) {
        return;
    }
    a     = &flow.pair.side[ST_A];
    b     = &flow.pair.side[ST_B];
    other = st_queue(a, a->stream);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(other, flow.send), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(other, NULL), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(other), UCS_OK);
    st_free(flow.recv);
    while (attr.status == UCS_OK) {
        ucp_st_worker_progress(b->worker);
        ucp_st_worker_progress(a->worker);
        CU_ASSERT_EQUAL_FATAL(ucp_st_op_query(flow.send, &attr), UCS_OK);
    }
    CU_ASSERT_EQUAL(attr.status, UCS_ERR_CANCELED);
    CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, NULL), UCS_OK);
    do { /* the lane may have the buffer yet */
        ucp_st_worker_progress(b->worker);
        status = ucp_st_op_free(flow.send);
    } while (status == UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(status, UCS_OK);
    st_pair_cleanup(&flow.pair);
    flow_free(&flow);
}

static void check_op(ucp_st_op_h op, uint64_t started)
{
    ucp_st_op_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_op_query(op, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.started, started);
}

static void check_counts(st_side_t *side, uint64_t starts, uint64_t waits)
{
    ucp_st_stats_t stats = st_stats(side);

    CU_ASSERT_EQUAL(stats.starts, starts);
    CU_ASSERT_EQUAL(stats.waits, waits);
    CU_ASSERT_EQUAL(stats.errors, 0);
    CU_ASSERT_EQUAL(ucp_st_queue_query(side->queue, NULL), UCS_OK);
}

/* S13: a start and a wait are refused, one after the other; what was there
 * before goes on, and so does the queue afterwards */
static void use_captured(st_side_t *side, ucp_st_op_h op, uint64_t use)
{
    st_capture_begin(side);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(side->queue, op), UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(side->queue, &op, 1),
                    UCS_ERR_UNSUPPORTED);
    check_op(op, use);
    check_counts(side, use, use);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(side->queue, op), UCS_ERR_NO_MESSAGE);
    st_capture_end(side);
    st_start(side, op);

    st_begun(side);
    st_capture_begin(side);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(side->queue, op), UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(side->queue, &op, 1),
                    UCS_ERR_UNSUPPORTED);
    check_counts(side, use + 1, use);
    st_capture_end(side);
}

FLOW_CASE(captured, LEN, 0)
{
    uint64_t use;

    for (use = 0; use < 20; ++use) {
        st_fill(flow->sbuf, LEN, use);
        use_captured(b, flow->recv, use);
        use_captured(a, flow->send, use);
        st_wait(a, flow->send);
        st_wait(b, flow->recv);
        st_pair_sync(&flow->pair);
        CU_ASSERT_TRUE(st_check(flow->rbuf, LEN, use));
    }
}

static void batch_captured(st_side_t *side)
{
    st_capture_begin(side);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(side->queue),
                    UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_queue_query(side->queue, NULL), UCS_OK);
    st_capture_end(side);
    st_batch_start(side);

    CU_ASSERT_EQUAL(ucs_gstream_synchronize(side->stream), UCS_OK);
    st_capture_begin(side);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_wait(side->queue),
                    UCS_ERR_UNSUPPORTED);
    st_capture_end(side);
}

ST_PAIR_CASE(batch_captured)
{
    static uint8_t sbuf[2][LEN], rbuf[2][LEN];
    int i;

    for (i = 0; i < 2; ++i) {
        st_fill(sbuf[i], LEN, i);
        st_enqueue(a, 1, sbuf[i], LEN, i);
        st_enqueue(b, 0, rbuf[i], LEN, i);
    }
    batch_captured(b);
    batch_captured(a);
    for (i = 0; i < 2; ++i) {
        st_batch_wait(&pair->side[i]);
        st_sync(&pair->side[i]);
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_TRUE(st_check(rbuf[i], LEN, i));
    }
}

/* What a function of an operation works on */
typedef struct {
    uint8_t  *buffer;
    uint64_t use;      /* how often it has run */
    int      wrong;
    int      released;
} func_arg_t;

static void func_pack(void *arg)
{
    func_arg_t *func = arg;

    st_fill(func->buffer, LONG, ++func->use);
}

static void func_unpack(void *arg)
{
    func_arg_t *func = arg;

    func->wrong += !st_check(func->buffer, LONG, ++func->use);
    memset(func->buffer, ST_SPOILED, LONG);
}

static void func_release(void *arg)
{
    ++((func_arg_t*)arg)->released;
}

static ucp_st_op_h func_op(st_side_t *side, int is_send, func_arg_t *func)
{
    const ucp_st_op_params_t params = {
        .field_mask   = UCP_ST_OP_PARAM_FIELD_BUFFER |
                        UCP_ST_OP_PARAM_FIELD_LENGTH |
                        UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_FUNC,
        .buffer       = func->buffer,
        .length       = LONG,
        .peer         = side->peer,
        .func         = is_send ? func_pack : func_unpack,
        .func_arg     = func,
        .func_release = func_release
    };

    return st_op(side, is_send, &params);
}

/* A send packs in its start and a receive unpacks in its wait, and not in one
 * that is refused; what they work on is given back once */
ST_PAIR_CASE(functions)
{
    func_arg_t out = {.buffer = malloc(LONG)}, in = {.buffer = malloc(LONG)};
    ucp_st_op_h send = func_op(a, 1, &out);
    ucp_st_op_h recv = func_op(b, 0, &in);
    int i;

    st_match_ok(send, recv);
    for (i = 0; i < 20; ++i) {
        st_start(a, send);
        CU_ASSERT_EQUAL(ucp_st_enqueue_start(a->queue, send), UCS_ERR_BUSY);
        st_wait(a, send);
        st_use(b, recv);
        CU_ASSERT_EQUAL(ucp_st_enqueue_wait(b->queue, recv),
                        UCS_ERR_NO_MESSAGE);
    }
    st_pair_sync(pair);
    CU_ASSERT_EQUAL(out.use, 20);
    CU_ASSERT_EQUAL(in.use, 20);
    CU_ASSERT_EQUAL(in.wrong, 0);
    CU_ASSERT_EQUAL(out.released + in.released, 0);
    st_free2(send, recv);
    st_drain(pair);
    CU_ASSERT_EQUAL(out.released, 1);
    CU_ASSERT_EQUAL(in.released, 1);
    free(out.buffer);
    free(in.buffer);
}

/* Waits until a use has ended; how */
static ucs_status_t test_until_end(flow_t *flow, ucp_st_op_h op)
{
    ucs_status_t status;

    while ((status = ucp_st_op_test(op)) == UCS_INPROGRESS) {
        (void)ucp_st_worker_progress(flow->pair.side[ST_A].worker);
        (void)ucp_st_worker_progress(flow->pair.side[ST_B].worker);
    }
    return status;
}

/* A use is over for the host once the stream has passed its wait; then another
 * queue may start the operation, though commands of this one are in flight */
FLOW_CASE(op_test, LONG, 0)
{
    ucp_st_queue_h other = st_queue(b, b->stream);
    uint64_t gate        = 0;
    ucp_st_op_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_op_test(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_op_test(flow->recv), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_check(b->queue, flow->recv, 1), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_check(b->queue, flow->recv, 0),
                    UCS_ERR_NO_MESSAGE);
    st_start(b, flow->recv);
    CU_ASSERT_EQUAL(ucp_st_enqueue_check(b->queue, flow->recv, 1),
                    UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_op_test(flow->recv), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucp_st_op_query(flow->recv, &attr), UCS_OK);
    CU_ASSERT_PTR_EQUAL(attr.queue, b->queue);

    st_fill(flow->sbuf, LONG, 1);
    st_use(a, flow->send);
    CU_ASSERT_EQUAL(test_until_end(flow, flow->recv), UCS_ERR_NO_MESSAGE);
    st_hold(b, &gate);
    st_wait(b, flow->recv);
    CU_ASSERT_EQUAL(ucp_st_op_test(flow->recv), UCS_INPROGRESS);
    st_let_go(&gate);
    CU_ASSERT_EQUAL(test_until_end(flow, flow->recv), UCS_OK);
    CU_ASSERT_TRUE(st_check(flow->rbuf, LONG, 1));
    CU_ASSERT_EQUAL(test_until_end(flow, flow->send), UCS_OK);

    CU_ASSERT_EQUAL(ucp_st_enqueue_start(other, flow->recv), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(other, flow->recv), UCS_OK);
    st_use(a, flow->send);
    CU_ASSERT_EQUAL(test_until_end(flow, flow->recv), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(other, NULL), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(other), UCS_OK);
    st_sync(a);
}

ST_SUITE("st_queue")
