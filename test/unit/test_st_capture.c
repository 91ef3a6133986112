/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_capture.c - S13: where the stream is being captured into a graph each
 * call is refused and nothing is enqueued. Host streams know no capture, and
 * streams of devices are not there yet: here a host stream is made to refuse as
 * the contract of their back ends says (gstream.h).
 */
#include "st_cunit.h"
#include "st_msg.h"
#include "st_pair.h"

#include <gstream.h>

#define LEN 300

static gstream_ops_t capturing_ops;
static const gstream_ops_t *real_ops;

static ucs_status_t refuse(ucs_gstream_h stream, const ucs_gstream_cmd_t *cmds,
                           size_t count)
{
    (void)stream;
    (void)cmds;
    (void)count;
    return UCS_ERR_UNSUPPORTED;
}

/* The stream is idle: nobody else looks at it */
static void capture_begin(ucs_gstream_h stream)
{
    real_ops              = stream->ops;
    capturing_ops         = *real_ops;
    capturing_ops.enqueue = refuse;
    stream->ops           = &capturing_ops;
}

static void capture_end(ucs_gstream_h stream)
{
    stream->ops = real_ops;
}

static void check_op(ucp_st_op_h op, uint64_t started)
{
    ucp_st_op_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_op_query(op, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.started, started);
}

static void check_counts(st_side_t *side, uint64_t starts, uint64_t waits)
{
    ucp_st_worker_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_worker_query(side->worker, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.stats.starts, starts);
    CU_ASSERT_EQUAL(attr.stats.waits, waits);
    CU_ASSERT_EQUAL(attr.stats.errors, 0);
    CU_ASSERT_EQUAL(ucp_st_queue_query(side->queue, NULL), UCS_OK);
}

/* A start and a wait are refused, one after the other; what was there before
 * goes on, and so does the queue afterwards */
static void use_captured(st_side_t *side, ucp_st_op_h op, uint64_t use)
{
    capture_begin(side->stream);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(side->queue, op), UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(side->queue, &op, 1),
                    UCS_ERR_UNSUPPORTED);
    check_op(op, use);
    check_counts(side, use, use);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(side->queue, op), UCS_ERR_NO_MESSAGE);
    capture_end(side->stream);
    st_start(side, op);

    CU_ASSERT_EQUAL(ucs_gstream_synchronize(side->stream), UCS_OK);
    capture_begin(side->stream);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(side->queue, op), UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(side->queue, &op, 1),
                    UCS_ERR_UNSUPPORTED);
    check_counts(side, use + 1, use);
    capture_end(side->stream);
}

ST_PAIR_CASE(operations)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_op_h send, recv;
    uint64_t use;

    send = st_send(a, sbuf, LEN, 1);
    recv = st_recv(b, rbuf, LEN, 1);
    st_match_ok(send, recv);
    for (use = 0; use < 20; ++use) {
        st_fill(sbuf, LEN, use);
        use_captured(b, recv, use);
        use_captured(a, send, use);
        st_wait(a, send);
        st_wait(b, recv);
        st_sync(a);
        st_sync(b);
        CU_ASSERT_TRUE(st_check(rbuf, LEN, use));
    }
    st_free(send);
    st_free(recv);
}

static void batch_captured(st_side_t *side)
{
    capture_begin(side->stream);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(side->queue),
                    UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_queue_query(side->queue, NULL), UCS_OK);
    capture_end(side->stream);
    st_batch_start(side);

    CU_ASSERT_EQUAL(ucs_gstream_synchronize(side->stream), UCS_OK);
    capture_begin(side->stream);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_wait(side->queue),
                    UCS_ERR_UNSUPPORTED);
    capture_end(side->stream);
}

ST_PAIR_CASE(batches)
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

ST_SUITE("st_capture")
