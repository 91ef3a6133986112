/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_rma_end.c - one-sided operations that are refused, and what may not
 * be given back yet.
 */
#include "st_cunit.h"
#include "st_stream.h"
#include "st_window.h"

#include "core/st_peer.h"
#include "core/st_proto.h"
#include "core/st_queue.h"
#include "core/st_worker.h"
#include "rma/st_rma_proto.h"

#include <stdlib.h>
#include <string.h>

#define LEN 1000

/** A pair with windows, and what is enqueued there. */
typedef struct {
    st_pair_t                   pair;
    st_window_t                 windows[2];
    ucp_st_rma_params_t         params; /* of A: good ones */
    ucp_st_signal_params_t      signal;
    ucp_st_wait_signal_params_t wait;
} end_t;

static void end_run(void (*body)(end_t *end))
{
    end_t end;

    st_pair_init(&end.pair);
    st_windows_init(&end.pair, end.windows, LEN, 1);
    end.params = st_rma_params(&end.windows[ST_A], 0, LEN);
    end.signal = st_signal_params(&end.windows[ST_A], 0, 1);
    end.wait   = st_wait_params(&end.windows[ST_A], 0, 1);
    body(&end);
    st_windows_cleanup(end.windows);
    st_pair_cleanup(&end.pair);
}

#define END_CASE(_name) \
    static void st_body_##_name(end_t *end); \
    ST_CASE_CALL(_name, end_run(st_body_##_name)) \
    static void st_body_##_name(end_t *end)

/* Nothing has been enqueued, and the queue is as good as before */
static void end_check_nothing(end_t *end)
{
    ucp_st_stats_t stats;
    int i;

    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_queue_query(end->pair.side[i].queue, NULL),
                        UCS_OK);
        stats = st_stats(&end->pair.side[i]);
        CU_ASSERT_EQUAL(stats.puts, 0);
        CU_ASSERT_EQUAL(stats.gets, 0);
        CU_ASSERT_EQUAL(stats.signals, 0);
        CU_ASSERT_EQUAL(stats.signal_waits, 0);
        CU_ASSERT_EQUAL(stats.quiets, 0);
        CU_ASSERT_EQUAL(stats.lanes[st_lane()].rmas, 0);
    }
}

/* All three refuse them */
static void refuse_params(end_t *end, ucs_status_t status)
{
    ucp_st_queue_h queue = end->pair.side[ST_A].queue;

    CU_ASSERT_EQUAL(ucp_st_enqueue_put(queue, &end->params), status);
    CU_ASSERT_EQUAL(ucp_st_enqueue_get(queue, &end->params), status);
    CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(queue, &end->params,
                                              &end->signal), status);
    end->params = st_rma_params(&end->windows[ST_A], 0, LEN);
}

static void refuse_signal(end_t *end)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(end->pair.side[ST_A].queue,
                                              &end->params, &end->signal),
                    UCS_ERR_INVALID_PARAM);
    end->signal = st_signal_params(&end->windows[ST_A], 0, 1);
}

static void refuse_wait(end_t *end)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(end->pair.side[ST_A].queue,
                                               &end->wait),
                    UCS_ERR_INVALID_PARAM);
    end->wait = st_wait_params(&end->windows[ST_A], 0, 1);
}

END_CASE(params)
{
    ucp_st_queue_h queue;

    queue = end->pair.side[ST_A].queue;
    CU_ASSERT_EQUAL(ucp_st_enqueue_put(NULL, &end->params),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_put(queue, NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_get(queue, NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(queue, &end->params, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(queue, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_quiet(NULL), UCS_ERR_INVALID_PARAM);
    end->params.field_mask &= ~(uint64_t)UCP_ST_RMA_PARAM_FIELD_MEMH;
    refuse_params(end, UCS_ERR_INVALID_PARAM);
    end->params.rkey = NULL;
    refuse_params(end, UCS_ERR_INVALID_PARAM);
    end->params.field_mask |= UCP_ST_RMA_PARAM_FIELD_FLAGS;
    end->params.flags       = 1ul << 20;
    refuse_params(end, UCS_ERR_INVALID_PARAM);
    end->params.memh = end->windows[ST_B].memh; /* of another worker */
    refuse_params(end, UCS_ERR_INVALID_PARAM);
    end->params.rkey = end->windows[ST_B].rkey;
    refuse_params(end, UCS_ERR_INVALID_PARAM);

    end->signal.rkey = NULL;
    refuse_signal(end);
    end->signal.rkey = end->windows[ST_B].rkey;
    refuse_signal(end);
    end->signal.field_mask |= UCP_ST_SIGNAL_PARAM_FIELD_OP;
    end->signal.op          = (ucp_st_signal_op_t)7;
    refuse_signal(end);
    end->wait.field_mask = 0;
    refuse_wait(end);
    end->wait.memh = end->windows[ST_B].memh;
    refuse_wait(end);
    end->wait.field_mask |= UCP_ST_WAIT_SIGNAL_PARAM_FIELD_CMP;
    end->wait.cmp         = (ucp_st_signal_cmp_t)7;
    refuse_wait(end);
    end->wait.field_mask |= UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER;
    end->wait.peer        = UCP_ST_PEER_ANY;
    refuse_wait(end);
    end->wait.field_mask |= UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER;
    end->wait.peer        = end->pair.side[ST_B].peer;
    refuse_wait(end);
    end_check_nothing(end);
}

/* One byte too far, here and at the peer, and sums that wrap around */
END_CASE(bounds)
{
    size_t size;

    size              = end->signal.offset + (ST_WINDOW_SIGNALS * 8);
    end->params.length = size + 1;
    refuse_params(end, UCS_ERR_INVALID_PARAM);
    end->params.offset = size - LEN + 1;
    refuse_params(end, UCS_ERR_INVALID_PARAM);
    end->params.remote_offset = size - LEN + 1;
    refuse_params(end, UCS_ERR_INVALID_PARAM);
    end->params.offset = SIZE_MAX;
    refuse_params(end, UCS_ERR_INVALID_PARAM);
    end->params.remote_offset = SIZE_MAX - LEN + 1;
    refuse_params(end, UCS_ERR_INVALID_PARAM);
    end->params.length = SIZE_MAX;
    refuse_params(end, UCS_ERR_INVALID_PARAM);

    end->signal.offset = size;
    refuse_signal(end);
    end->signal.offset = size - 7;
    refuse_signal(end);
    end->signal.offset += 4; /* misaligned */
    refuse_signal(end);
    end->signal.offset = SIZE_MAX - 7;
    refuse_signal(end);
    end->wait.offset = size;
    refuse_wait(end);
    end->wait.offset = size - 4;
    refuse_wait(end);
    end->wait.offset += 4;
    refuse_wait(end);
    end->wait.offset = SIZE_MAX - 7;
    refuse_wait(end);
    end_check_nothing(end);

    /* The last bytes are good */
    end->params.offset        = size - LEN;
    end->params.remote_offset = size - LEN;
    CU_ASSERT_EQUAL(ucp_st_enqueue_put(end->pair.side[ST_A].queue,
                                       &end->params), UCS_OK);
    st_quiet(&end->windows[ST_A]);
    st_sync(&end->pair.side[ST_A]);
}

static ucs_status_t unpack(end_t *end, const void *buffer, size_t length)
{
    ucp_st_rkey_h rkey  = NULL;
    ucs_status_t status = ucp_st_rkey_unpack(end->pair.side[ST_A].peer, buffer,
                                             length, &rkey);

    if (status == UCS_OK) {
        CU_ASSERT_EQUAL(ucp_st_rkey_destroy(rkey), UCS_OK);
    } else {
        CU_ASSERT_PTR_NULL(rkey);
    }
    return status;
}

/* Keys that are cut off anywhere, of another version, of another worker, for no
 * lane, or no keys */
END_CASE(keys)
{
    ucp_st_rkey_hdr_t hdr;
    ucp_st_rkey_h rkey;
    size_t length, i;
    uint8_t *key;

    CU_ASSERT_EQUAL(ucp_st_rkey_pack(end->windows[ST_B].memh, (void**)&key,
                                     &length), UCS_OK);
    CU_ASSERT_EQUAL(unpack(end, key, length), UCS_OK);
    for (i = 0; i < length; ++i) {
        CU_ASSERT_EQUAL(unpack(end, key, i), UCS_ERR_INVALID_ADDR);
    }
    CU_ASSERT_EQUAL(ucp_st_rkey_unpack(end->pair.side[ST_A].self, key, length,
                                       &rkey), UCS_ERR_INVALID_ADDR);
    CU_ASSERT_EQUAL(ucp_st_rkey_unpack(NULL, key, length, &rkey),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_rkey_unpack(UCP_ST_PEER_ANY, key, length, &rkey),
                    UCS_ERR_INVALID_PARAM);
    memcpy(&hdr, key, sizeof(hdr));
    ++hdr.version;
    memcpy(key, &hdr, sizeof(hdr));
    CU_ASSERT_EQUAL(unpack(end, key, length), UCS_ERR_UNSUPPORTED);
    --hdr.version;
    hdr.num_lanes = 0;
    memcpy(key, &hdr, sizeof(hdr));
    CU_ASSERT_EQUAL(unpack(end, key, length), UCS_ERR_UNREACHABLE);
    memset(key, 0x55, length);
    CU_ASSERT_EQUAL(unpack(end, key, length), UCS_ERR_INVALID_ADDR);
    ucp_st_rkey_buffer_release(key);
    ucp_st_rkey_buffer_release(NULL);
    CU_ASSERT_EQUAL(ucp_st_rkey_destroy(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_rkey_query(NULL, NULL), UCS_ERR_INVALID_PARAM);
}

END_CASE(registration)
{
    ucp_st_worker_h worker;
    ucp_st_mem_h memh;
    uint8_t byte;

    worker = end->pair.side[ST_A].worker;
    CU_ASSERT_EQUAL(ucp_st_mem_reg(NULL, &byte, 1, &memh),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_reg(worker, NULL, 1, &memh),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_reg(worker, &byte, 0, &memh),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_reg(worker, &byte, 1, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_reg(worker, &byte, SIZE_MAX, &memh),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_dereg(NULL), UCS_ERR_INVALID_PARAM);
}

/* What the stream is yet to come to keeps all that it names */
END_CASE(busy)
{
    uint64_t gate = 0;

    st_hold(&end->pair.side[ST_A], &gate);
    st_put_signal(&end->windows[ST_A], LEN, 0, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(
                            end->pair.side[ST_B].queue,
                            &(ucp_st_wait_signal_params_t){
                                    .field_mask = end->wait.field_mask,
                                    .memh = end->windows[ST_B].memh,
                                    .offset = end->wait.offset,
                                    .value = 1}),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_mem_dereg(end->windows[ST_A].memh), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_mem_dereg(end->windows[ST_B].memh), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_rkey_destroy(end->windows[ST_A].rkey), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(end->pair.side[ST_A].queue),
                    UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(end->pair.side[ST_A].worker),
                    UCS_ERR_BUSY);
    st_let_go(&gate);
    st_quiet(&end->windows[ST_A]);
    st_pair_sync(&end->pair);
}

/* S13: what was refused while the stream is captured leaves nothing, and all
 * goes on afterwards */
END_CASE(capture)
{
    st_side_t *a = &end->pair.side[ST_A];

    st_capture_begin(a);
    refuse_params(end, UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(a->queue, &end->wait),
                    UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_enqueue_quiet(a->queue), UCS_ERR_UNSUPPORTED);
    st_capture_end(a);
    end_check_nothing(end);
    st_fill(end->windows[ST_A].memory, LEN, 1);
    st_put(&end->windows[ST_A], 0, LEN, 1);
    st_quiet(&end->windows[ST_A]);
    st_sync(a);
    CU_ASSERT_TRUE(st_check(end->windows[ST_B].memory, LEN, 1));
}

/* The peer has given its memory back: its side says so, nothing is written, and
 * waits of the queue pass. Lane direct writes to memory that nobody uses. */
END_CASE(stale_key)
{
    uint64_t gate = 0;

    if (st_lane() == UCP_ST_LANE_DIRECT) {
        st_cunit_skip("the stream copies to what it has mapped");
        return;
    }
    CU_ASSERT_EQUAL(ucp_st_mem_dereg(end->windows[ST_B].memh), UCS_OK);
    st_hold(&end->pair.side[ST_A], &gate);
    CU_ASSERT_EQUAL(ucp_st_enqueue_put(end->pair.side[ST_A].queue,
                                       &end->params), UCS_OK);
    st_quiet(&end->windows[ST_A]);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(end->pair.side[ST_A].queue,
                                               &end->wait), UCS_OK);
    st_let_go(&gate);
    CU_ASSERT_NOT_EQUAL(ucp_st_queue_wait(end->pair.side[ST_A].queue, NULL),
                        UCS_OK);
    CU_ASSERT_EQUAL(end->windows[ST_B].memory[0], 0);
    CU_ASSERT_EQUAL(ucp_st_mem_reg(end->pair.side[ST_B].worker,
                                   end->windows[ST_B].memory, LEN,
                                   &end->windows[ST_B].memh), UCS_OK);
}

/* The queue fails while its stream is held before operations. None of them has
 * an effect at the peer, as their data may depend on what failed; the stream
 * passes all waits, and operations of other queues go on. */
static void check_halted(end_t *end)
{
    st_window_t *windows = end->windows;

    CU_ASSERT_TRUE(st_check(windows[ST_B].memory, LEN, 1));
    CU_ASSERT_EQUAL(*st_signal(&windows[ST_B], 0), 0);
    CU_ASSERT_EQUAL(*st_signal(&windows[ST_B], 1), 0);
}

static int has_doorbells(void)
{
    const char *provider = getenv("UCX_CXI_TRIG_PROVIDER");

    return (provider == NULL) || strcmp(provider, "sockets");
}

END_CASE(queue_fails)
{
    st_side_t *a         = &end->pair.side[ST_A];
    st_window_t *windows = end->windows;
    ucp_st_queue_h queue = a->queue;
    uint64_t gate        = 0;
    int i;

    if ((st_lane() == UCP_ST_LANE_TRIG) && !has_doorbells()) {
        st_cunit_skip("without trigger pages they take effect");
        return;
    }
    st_fill(windows[ST_A].memory, LEN, 1);
    st_put(&windows[ST_A], 0, LEN, 0);
    st_quiet(&windows[ST_A]);
    st_sync(a);
    st_hold(a, &gate);
    for (i = 0; i < 3; ++i) {
        st_put_signal(&windows[ST_A], LEN, i % 2, 1);
        st_put(&windows[ST_A], 0, LEN, 1);
        st_quiet(&windows[ST_A]);
    }
    st_fill(windows[ST_A].memory, LEN, 2);
    ucp_st_worker_lock(a->worker);
    ucp_st_queue_fail(queue, NULL, UCS_ERR_IO_ERROR);
    ucp_st_worker_unlock(a->worker);
    st_let_go(&gate);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(queue, NULL), UCS_ERR_IO_ERROR);
    check_halted(end);

    a->queue = st_queue(a, a->stream);
    st_put(&windows[ST_A], 0, LEN, 0);
    st_quiet(&windows[ST_A]);
    st_sync(a);
    CU_ASSERT_TRUE(st_check(windows[ST_B].memory, LEN, 2));
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(queue), UCS_OK);
}

/* The peer is declared gone, and lives: of what the stream had not come to it
 * sees nothing; no signal without the data */
END_CASE(declared_gone)
{
    st_side_t *a         = &end->pair.side[ST_A];
    st_window_t *windows = end->windows;
    uint64_t gate        = 0;
    ucp_st_op_h op[2];
    int i;

    if ((st_lane() == UCP_ST_LANE_TRIG) && !has_doorbells()) {
        st_cunit_skip("without trigger pages they take effect");
        return;
    }
    if (st_lane() == UCP_ST_LANE_DIRECT) {
        st_cunit_skip("UCX's shared memory leaks when a peer is gone");
        return;
    }
    /* Both are connected, for messages of all kinds: UCX 1.13 aborts when a
     * connection of tcp is reset while it is being set up */
    op[ST_A] = st_send(a, windows[ST_A].memory, LEN, 0);
    op[ST_B] = st_recv(&end->pair.side[ST_B], windows[ST_B].memory, LEN, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    st_free2(op[ST_A], op[ST_B]);
    for (i = 0; i < 2; ++i) {
        st_put(&windows[i], 0, LEN, 0);
        st_quiet(&windows[i]);
        st_sync(&end->pair.side[i]);
    }
    st_hold(a, &gate);
    for (i = 0; i < 3; ++i) {
        st_put_signal(&windows[ST_A], LEN, i % 2, 1);
    }
    st_quiet(&windows[ST_A]);
    ucp_st_worker_lock(a->worker);
    ucp_st_peer_lost(a->peer, UCS_ERR_ENDPOINT_TIMEOUT);
    while (a->peer->status == UCS_OK) {
        ucp_st_worker_unlock(a->worker);
        (void)ucp_st_worker_progress(a->worker);
        ucp_st_worker_lock(a->worker);
    }
    ucp_st_worker_unlock(a->worker);
    st_let_go(&gate);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(a->queue, NULL),
                    UCS_ERR_ENDPOINT_TIMEOUT);
    CU_ASSERT_EQUAL(*st_signal(&windows[ST_B], 0), 0);
    CU_ASSERT_EQUAL(*st_signal(&windows[ST_B], 1), 0);
}

ST_SUITE("st_rma_end")
