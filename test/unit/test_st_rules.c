/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_rules.c - rules of the interface as an application sees them, on
 * any lane: order, asynchrony, refusals, sizes. S1 to S7 are those of the
 * design; what test_st_queue.c and test_st_match.c show is not repeated here.
 */
#include "st_cunit.h"
#include "st_flow.h"
#include "st_stream.h"

#include <stdlib.h>
#include <string.h>

#define LEN   300
#define GUARD 64
#define OPS   8

/** Messages from A to B. */
typedef struct {
    uint8_t     sbuf[OPS][LEN];
    uint8_t     rbuf[OPS][LEN];
    ucp_st_op_h send[OPS];
    ucp_st_op_h recv[OPS];
} batch_t;

static void batch_init(st_pair_t *pair, batch_t *batch)
{
    int i;

    for (i = 0; i < OPS; ++i) {
        st_fill(batch->sbuf[i], LEN, i);
        memset(batch->rbuf[i], 0, LEN);
        batch->send[i] = st_send(&pair->side[ST_A], batch->sbuf[i], LEN, i);
        batch->recv[i] = st_recv(&pair->side[ST_B], batch->rbuf[i], LEN, i);
        st_match_ok(batch->send[i], batch->recv[i]);
    }
}

static void batch_cleanup(batch_t *batch)
{
    int i;

    for (i = 0; i < OPS; ++i) {
        st_free(batch->send[i]);
        st_free(batch->recv[i]);
    }
}

static void startall(st_side_t *side, const ucp_st_op_h *ops)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(side->queue, ops, OPS), UCS_OK);
}

static void waitall(st_side_t *side, const ucp_st_op_h *ops)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(side->queue, ops, OPS), UCS_OK);
}

static void count_func(void *arg)
{
    __atomic_add_fetch((uint64_t*)arg, 1, __ATOMIC_ACQ_REL);
}

static uint64_t started(ucp_st_op_h op)
{
    ucp_st_op_attr_t attr = {0};

    CU_ASSERT_EQUAL(ucp_st_op_query(op, &attr), UCS_OK);
    return attr.started;
}

/* S1: the send reads its buffer when the stream gets to its start, not when the
 * host enqueues it */
FLOW_CASE(late_read, LEN, 0)
{
    uint64_t gate = 0;

    st_fill(flow->sbuf, LEN, 1);
    st_hold(a, &gate);
    st_use(a, flow->send);
    st_use(b, flow->recv);
    st_fill(flow->sbuf, LEN, 2);
    st_let_go(&gate);
    st_pair_sync(&flow->pair);
    CU_ASSERT_TRUE(st_check(flow->rbuf, LEN, 2));
}

/* S1: two queues of one stream are in one order, with functions between; what
 * is behind a wait does not run before it has passed */
ST_PAIR_CASE(two_queues)
{
    static uint8_t sbuf[2][ST_LONG], rbuf[2][ST_LONG];
    ucp_st_op_h send[2], recv[2];
    ucp_st_queue_h other;
    uint64_t count = 0;
    int i;

    other = st_queue(a, a->stream);
    for (i = 0; i < 2; ++i) {
        send[i] = st_send(a, sbuf[i], ST_LONG, i);
        recv[i] = st_recv(b, rbuf[i], ST_LONG, i);
        st_match_ok(send[i], recv[i]);
    }
    st_start(a, send[0]);
    st_launch(a, count_func, &count);
    st_sync(a);
    st_wait(a, send[0]);
    st_launch(a, count_func, &count);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(other, send[1]), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(other, send[1]), UCS_OK);
    st_launch(a, count_func, &count);

    /* The receive behind is started first: it gets nothing yet */
    st_start(b, recv[1]);
    st_sync(b);
    CU_ASSERT_EQUAL(ucp_st_queue_query(other, NULL), UCS_INPROGRESS);
    CU_ASSERT(__atomic_load_n(&count, __ATOMIC_ACQUIRE) <= 1);
    st_use(b, recv[0]);
    st_wait(b, recv[1]);
    st_sync(a);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(other, NULL), UCS_OK);
    st_sync(b);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(a->stream), UCS_OK);
    CU_ASSERT_EQUAL(count, 3);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(other), UCS_OK);
    for (i = 0; i < 2; ++i) {
        st_free2(send[i], recv[i]);
    }
}

/* S2: whatever is enqueued, the call returns, though the stream stands still
 * and the peer does nothing at all */
ST_PAIR_CASE(asynchronous)
{
    static batch_t batch;
    uint64_t gate = 0;
    int k;

    batch_init(pair, &batch);
    st_hold(a, &gate);
    for (k = 0; k < 30; ++k) {
        startall(a, batch.send);
        waitall(a, batch.send);
    }
    CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, NULL), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(gate, 0);
    st_let_go(&gate);
    for (k = 0; k < 30; ++k) {
        startall(b, batch.recv);
        waitall(b, batch.recv);
    }
    st_pair_sync(pair);
    for (k = 0; k < OPS; ++k) {
        CU_ASSERT_TRUE(st_check(batch.rbuf[k], LEN, k));
    }
    batch_cleanup(&batch);
}

/* S3: starts of either kind pass, though no counterpart is started */
ST_PAIR_CASE(start_passes)
{
    static batch_t batch;
    uint64_t count = 0;
    int first;

    batch_init(pair, &batch);
    for (first = ST_A; first <= ST_B; ++first) {
        count = 0;
        startall(&pair->side[first], (first == ST_A) ? batch.send : batch.recv);
        st_launch(&pair->side[first], count_func, &count);
        st_sync(&pair->side[first]);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(pair->side[first].stream),
                        UCS_OK);
        CU_ASSERT_EQUAL(count, 1);
        startall(&pair->side[1 - first],
                 (first == ST_A) ? batch.recv : batch.send);
        waitall(a, batch.send);
        waitall(b, batch.recv);
        st_pair_sync(pair);
    }
    batch_cleanup(&batch);
}

/* A start or wait of a batch of which one must not be there; all others would
 * be good, and none of them is enqueued */
static void refuse(st_side_t *side, batch_t *batch, int is_start,
                   ucp_st_op_h bad, ucs_status_t status)
{
    ucp_st_op_h ops[OPS];
    uint64_t before;
    int place;

    for (place = 0; place < OPS; place += OPS - 1) {
        memcpy(ops, batch->send, sizeof(ops));
        ops[place] = bad;
        before     = started(batch->send[OPS / 2]);
        CU_ASSERT_EQUAL((is_start ? ucp_st_enqueue_startall :
                                    ucp_st_enqueue_waitall)(side->queue, ops,
                                                            OPS), status);
        CU_ASSERT_EQUAL(started(batch->send[OPS / 2]), before);
    }
}

/* S5: startall and waitall take all or nothing, for each cause and place */
ST_PAIR_CASE(all_or_nothing)
{
    static uint8_t buf[LEN];
    static batch_t batch;
    ucp_st_op_h unmatched, busy, busy_recv;
    int i;

    unmatched = st_send(a, buf, LEN, 99);
    busy      = st_send(a, buf, LEN, 98);
    busy_recv = st_recv(b, buf, LEN, 98);
    st_match_ok(busy, busy_recv);
    batch_init(pair, &batch);
    st_start(a, busy);
    refuse(a, &batch, 1, unmatched, UCS_ERR_NOT_CONNECTED);
    refuse(a, &batch, 1, busy, UCS_ERR_BUSY);
    refuse(a, &batch, 1, NULL, UCS_ERR_INVALID_PARAM);
    refuse(a, &batch, 1, batch.recv[0], UCS_ERR_INVALID_PARAM);
    refuse(a, &batch, 1, batch.send[1], UCS_ERR_INVALID_PARAM); /* twice */
    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(a->queue, batch.send, 0), UCS_OK);
    st_sync(a);
    startall(a, batch.send);
    st_wait(a, busy);
    refuse(a, &batch, 0, unmatched, UCS_ERR_NO_MESSAGE);
    refuse(a, &batch, 0, busy, UCS_ERR_NO_MESSAGE);
    refuse(a, &batch, 0, NULL, UCS_ERR_INVALID_PARAM);
    refuse(a, &batch, 0, batch.recv[0], UCS_ERR_INVALID_PARAM);
    refuse(a, &batch, 0, batch.send[1], UCS_ERR_INVALID_PARAM);

    /* Nothing of a refused wait is there: the good one is the first */
    waitall(a, batch.send);
    startall(b, batch.recv);
    waitall(b, batch.recv);
    st_use(b, busy_recv);
    st_pair_sync(pair);
    for (i = 0; i < OPS; ++i) {
        CU_ASSERT_EQUAL(started(batch.send[i]), 1);
        CU_ASSERT_TRUE(st_check(batch.rbuf[i], LEN, i));
    }
    st_free(unmatched);
    st_free(busy);
    st_free(busy_recv);
    batch_cleanup(&batch);
}

/* S6: truncation of one pair of several, told for it alone and on both sides;
 * nothing is written, in the buffer or behind it */
ST_PAIR_CASE(truncation)
{
    static uint8_t sbuf[3][LEN], rbuf[3][LEN + GUARD];
    static const size_t room[3] = {LEN, LEN - 1, LEN + 1};
    ucp_st_op_h send[3], recv[3];
    ucs_status_t status[2], expected;
    int i, k;

    memset(rbuf, ST_SPOILED, sizeof(rbuf));
    for (i = 0; i < 3; ++i) {
        st_fill(sbuf[i], LEN, i);
        send[i] = st_send(a, sbuf[i], LEN, 5);
        recv[i] = st_recv(b, rbuf[i], room[i], 5);
    }
    CU_ASSERT_EQUAL(ucp_st_imatchall(send, 3), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_imatchall(recv, 3), UCS_OK);
    for (i = 0; i < 3; ++i) {
        expected = (i == 1) ? UCS_ERR_MESSAGE_TRUNCATED : UCS_OK;
        /* Progress of both, whatever the first one says */
        do {
            status[0] = ucp_st_match_test(send[i]);
            status[1] = ucp_st_match_test(recv[i]);
        } while ((status[0] == UCS_INPROGRESS) ||
                 (status[1] == UCS_INPROGRESS));
        CU_ASSERT_EQUAL(ucp_st_match_test(send[i]), expected);
        CU_ASSERT_EQUAL(ucp_st_match_test(recv[i]), expected);
        CU_ASSERT_EQUAL(ucp_st_enqueue_start(a->queue, send[i]), expected);
        CU_ASSERT_EQUAL(ucp_st_enqueue_start(b->queue, recv[i]), expected);
        if (i != 1) {
            st_wait(a, send[i]);
            st_wait(b, recv[i]);
        } else {
            CU_ASSERT_EQUAL(ucp_st_match(recv[i]), expected);
        }
    }
    st_pair_sync(pair);
    for (i = 0; i < 3; ++i) {
        k = (i == 1) ? 0 : LEN;
        CU_ASSERT_TRUE(st_is_spoiled(&rbuf[i][k], LEN + GUARD - k));
        CU_ASSERT(st_check(rbuf[i], LEN, i) == (i != 1));
        st_free2(send[i], recv[i]);
    }
}

/* S6: the actual length is told on both sides, of all that fits into a receive;
 * no byte is written behind it */
ST_PAIR_CASE(lengths)
{
    static const size_t lengths[] = {0, 1, 3, 8, 63, 64, 65, LEN - 1, LEN};
    static uint8_t sbuf[LEN], rbuf[LEN + GUARD];
    ucp_st_op_attr_t attr;
    ucp_st_op_h send, recv;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        memset(rbuf, ST_SPOILED, sizeof(rbuf));
        st_fill(sbuf, LEN, i);
        send = st_send(a, sbuf, lengths[i], 1);
        recv = st_recv(b, rbuf, LEN, 1);
        st_match_ok(send, recv);
        CU_ASSERT_EQUAL(ucp_st_op_query(send, &attr), UCS_OK);
        CU_ASSERT_EQUAL(attr.length, lengths[i]);
        CU_ASSERT_EQUAL(ucp_st_op_query(recv, &attr), UCS_OK);
        CU_ASSERT_EQUAL(attr.length, lengths[i]);
        CU_ASSERT_EQUAL(attr.lane, st_lane());
        st_use(a, send);
        st_use(b, recv);
        st_pair_sync(pair);
        CU_ASSERT_TRUE(st_check(rbuf, lengths[i], i));
        CU_ASSERT_TRUE(st_is_spoiled(&rbuf[lengths[i]],
                                     sizeof(rbuf) - lengths[i]));
        st_free2(send, recv);
    }
}

/* S7: one batch of a null peer's, an empty message, one to oneself and an
 * ordinary one. The halves of that to oneself are given to match one by one. */
ST_PAIR_CASE(mixed_batch)
{
    static uint8_t buf[4][LEN];
    ucp_st_op_params_t null_params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH,
        .buffer     = buf[0],
        .length     = LEN
    };
    ucp_st_op_params_t self_params = null_params;
    ucp_st_op_h ops[5], peers[2];
    int k;

    ops[0] = st_op(a, 0, &null_params);
    CU_ASSERT_EQUAL(ucp_st_match(ops[0]), UCS_OK);
    self_params.field_mask |= UCP_ST_OP_PARAM_FIELD_PEER;
    self_params.peer        = a->self;
    self_params.buffer      = buf[1];
    ops[1]                  = st_op(a, 0, &self_params);
    self_params.buffer      = buf[2];
    ops[2]                  = st_op(a, 1, &self_params);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&ops[1], 1), UCS_OK); /* receive first */
    CU_ASSERT_EQUAL(ucp_st_imatchall(&ops[2], 1), UCS_OK);
    CU_ASSERT_EQUAL(st_match_end(ops[1]), UCS_OK);
    CU_ASSERT_EQUAL(st_match_end(ops[2]), UCS_OK);
    ops[3]   = st_send(a, NULL, 0, 3);
    peers[0] = st_recv(b, NULL, 0, 3);
    ops[4]   = st_recv(a, buf[3], LEN, 4);
    peers[1] = st_send(b, buf[2], LEN, 4);
    st_match_ok(ops[3], peers[0]);
    st_match_ok(ops[4], peers[1]);
    memset(buf[0], ST_SPOILED, LEN);
    for (k = 0; k < 3; ++k) {
        st_fill(buf[2], LEN, k);
        CU_ASSERT_EQUAL(ucp_st_enqueue_startall(a->queue, ops, 5), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_startall(b->queue, peers, 2), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(a->queue, ops, 5), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(b->queue, peers, 2), UCS_OK);
        st_pair_sync(pair);
        CU_ASSERT_TRUE(st_check(buf[1], LEN, k));
        CU_ASSERT_TRUE(st_check(buf[3], LEN, k));
        CU_ASSERT_EQUAL(buf[0][0], ST_SPOILED);
    }
    for (k = 0; k < 5; ++k) {
        st_free(ops[k]);
    }
    st_free2(peers[0], peers[1]);
}

int main(int argc, char **argv)
{
    /* Cases look at sends that wait for their receives to be started */
    setenv("UCX_ST_EAGER_MAX", "0", 1);
    return st_cunit_main("st_rules", argc, argv);
}
