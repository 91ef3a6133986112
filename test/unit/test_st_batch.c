/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_batch.c - messages that are used once: with plain UCP on the other
 * side, order, wildcards, sizes, hosts that make no call; truncation,
 * cancellation, what is left over, peers that go, and what is refused.
 */
#include "st_cunit.h"
#include "st_msg.h"
#include "st_stream.h"

#include <stdlib.h>
#include <string.h>

#define LEN     512
#define BIG_LEN ((1u << 20) + 3)
#define BATCHES 50

#define FEATURES (UCP_FEATURE_AM | UCP_FEATURE_TAG)

/* Plain UCP calls of the test, progressed by whoever does */
static void plain_end(st_side_t *side, ucs_status_ptr_t request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        CU_ASSERT_EQUAL(UCS_PTR_STATUS(request), UCS_OK);
        return;
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(side->ucp_worker);
    }
    CU_ASSERT_EQUAL(ucp_request_check_status(request), UCS_OK);
    ucp_request_free(request);
}

static ucp_ep_h plain_ep(st_side_t *from, st_side_t *to)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS
    };
    ucp_address_t *address;
    size_t length;
    ucp_ep_h ep = NULL;

    CU_ASSERT_EQUAL_FATAL(ucp_worker_get_address(to->ucp_worker, &address,
                                                 &length), UCS_OK);
    params.address = address;
    CU_ASSERT_EQUAL_FATAL(ucp_ep_create(from->ucp_worker, &params, &ep),
                          UCS_OK);
    ucp_worker_release_address(to->ucp_worker, address);
    return ep;
}

/* Sends of a stream, received by plain UCP */
static void run_plain_recv(uint64_t features)
{
    static uint8_t sbuf[3][LEN], rbuf[3][LEN];
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request[3];
    ucp_st_req_h req[3];
    st_work_t work[3];
    st_pair_t pair;
    int i;

    st_pair_init_user(&pair, features);
    for (i = 0; i < 3; ++i) {
        work[i] = (st_work_t){.buffer = sbuf[i], .length = LEN, .seed = i};
        st_launch(&pair.side[ST_A], st_fill_func, &work[i]);
        req[i] = st_msg_send(&pair.side[ST_A], pair.side[ST_A].peer, sbuf[i],
                             LEN, 10 + i);
    }
    st_batch_run(&pair.side[ST_A]);
    for (i = 2; i >= 0; --i) {
        request[i] = ucp_tag_recv_nbx(pair.side[ST_B].ucp_worker, rbuf[i], LEN,
                                      10 + i, UINT64_MAX, &param);
    }
    for (i = 0; i < 3; ++i) {
        plain_end(&pair.side[ST_B], request[i]);
        CU_ASSERT_TRUE(st_check(rbuf[i], LEN, i));
    }
    st_sync(&pair.side[ST_A]);
    for (i = 0; i < 3; ++i) {
        st_msg_is_done(req[i], LEN, 0);
    }
    st_pair_cleanup(&pair);
}

ST_CASE_CALL(plain_recv, run_plain_recv(FEATURES | UCP_FEATURE_WAKEUP))

/* The thread sleeps for a time where UCP cannot wake it */
ST_CASE_CALL(plain_recv_timed, run_plain_recv(FEATURES))

/* Receives of a stream from plain UCP, with actual length and tag */
ST_CASE(plain_send)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_request_param_t param = {.op_attr_mask = 0};
    int errors                = 0;
    st_work_t work;
    ucp_st_req_h req;
    st_pair_t pair;
    ucp_ep_h ep;

    st_pair_init_user(&pair, FEATURES | UCP_FEATURE_WAKEUP);
    ep   = plain_ep(&pair.side[ST_B], &pair.side[ST_A]);
    req  = st_msg_recv(&pair.side[ST_A], rbuf, LEN, 5);
    work = (st_work_t){rbuf, LEN / 2, 7, &errors};
    st_batch_run(&pair.side[ST_A]);
    st_launch(&pair.side[ST_A], st_check_func, &work);
    st_fill(sbuf, LEN / 2, 7);
    plain_end(&pair.side[ST_B], ucp_tag_send_nbx(ep, sbuf, LEN / 2, 5, &param));
    st_sync(&pair.side[ST_A]);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(pair.side[ST_A].stream), UCS_OK);
    CU_ASSERT_EQUAL(errors, 0);
    st_msg_is_done(req, LEN / 2, 5);
    st_pair_cleanup(&pair);
}

/* Several batches of equal tags: messages match in the order in which they were
 * enqueued, one wait covers all that were started, and nobody asks the host */
ST_PAIR_CASE(order)
{
    static uint8_t sbuf[BATCHES][2][8], rbuf[BATCHES][2][8];
    static st_work_t fill[BATCHES][2], check[BATCHES][2];
    int errors = 0;
    int k, i;

    for (k = 0; k < BATCHES; ++k) {
        for (i = 0; i < 2; ++i) {
            fill[k][i] = (st_work_t){.buffer = sbuf[k][i],
                                     .length = 8,
                                     .seed   = (2 * k) + i};
            st_launch(a, st_fill_func, &fill[k][i]);
            st_enqueue(a, 1, sbuf[k][i], 8, 1);
            st_enqueue(b, 0, rbuf[k][i], 8, 1);
        }
        st_batch_start(a);
        st_batch_start(b);
        if ((k % 3) == 2) {
            st_batch_wait(a);
            st_batch_wait(b);
        }
    }
    st_batch_wait(b);
    st_batch_wait(b); /* nothing is left to wait for */
    st_batch_wait(a);
    for (k = 0; k < BATCHES; ++k) {
        for (i = 0; i < 2; ++i) {
            check[k][i] = (st_work_t){rbuf[k][i], 8, (2 * k) + i, &errors};
            st_launch(b, st_check_func, &check[k][i]);
        }
    }
    st_pair_sync(pair);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(b->stream), UCS_OK);
    CU_ASSERT_EQUAL(errors, 0);
}

/* S8: any source and any tag, or a part of it */
ST_PAIR_CASE(wildcards)
{
    static uint8_t sbuf[3][LEN], rbuf[3][LEN];
    static const ucp_tag_t masks[] = {0, 0xff00, UINT64_MAX};
    static const ucp_tag_t tags[]  = {0x1234, 0x55aa, 0x5507};
    ucp_st_msg_params_t params;
    ucp_st_req_h req[3];
    int i;

    for (i = 0; i < 3; ++i) {
        params             = st_msg_params(UCP_ST_PEER_ANY, rbuf[i], LEN,
                                           0x5507);
        params.field_mask |= UCP_ST_MSG_PARAM_FIELD_TAG_MASK;
        params.tag_mask    = masks[i];
        if (i == 0) {
            params.field_mask &= ~(uint64_t)UCP_ST_MSG_PARAM_FIELD_PEER;
        }
        CU_ASSERT_EQUAL(ucp_st_enqueue_recv(b->queue, &params, &req[i]),
                        UCS_OK);
        /* One after the other: the first takes anything */
        st_batch_run(b);
        st_fill(sbuf[i], LEN, i);
        st_enqueue(a, 1, sbuf[i], 100 + i, tags[i]);
        st_batch_run(a);
        st_pair_sync(pair);
        CU_ASSERT_TRUE(st_check(rbuf[i], 100 + i, i));
        st_msg_is_done(req[i], 100 + i, tags[i]);
    }
}

/* Sizes up to a rendezvous, both to the other side and to oneself */
ST_PAIR_CASE(sizes)
{
    static const size_t lengths[] = {0, 1, 1000, 65536, BIG_LEN};
    uint8_t *sbuf                 = malloc(BIG_LEN);
    uint8_t *rbuf                 = malloc(BIG_LEN);
    ucp_st_req_h send, recv;
    st_side_t *to;
    size_t i, k;

    for (i = 0; i < (2 * ST_CUNIT_COUNT(lengths)); ++i) {
        k  = i / 2;
        to = &pair->side[i % 2];
        st_fill(sbuf, lengths[k], i);
        memset(rbuf, 0xee, BIG_LEN);
        recv = st_msg_recv(to, rbuf, BIG_LEN, i);
        send = st_msg_send(a, (i % 2) ? a->peer : a->self, sbuf, lengths[k], i);
        st_batch_run(a);
        st_batch_run(b);
        st_pair_sync(pair);
        CU_ASSERT_TRUE(st_check(rbuf, lengths[k], i));
        CU_ASSERT((lengths[k] == BIG_LEN) || (rbuf[lengths[k]] == 0xee));
        st_msg_is_done(send, lengths[k], 0);
        st_msg_is_done(recv, lengths[k], i);
    }
    free(sbuf);
    free(rbuf);
}

/* P10: both hosts compute, and make no call until their streams are through */
ST_PAIR_CASE(compute)
{
    static uint8_t sbuf[2][LEN], rbuf[2][LEN];
    int done[2] = {0, 0};
    st_side_t *side;
    int i;

    for (i = 0; i < 2; ++i) {
        side = &pair->side[i];
        st_fill(sbuf[i], LEN, i);
        /* Given back before its start: it does not happen */
        (void)ucp_st_req_free(st_msg_recv(side, rbuf[i], LEN, 1));
        st_enqueue(side, 0, rbuf[i], LEN, 1);
        st_enqueue(side, 1, sbuf[i], LEN, 1);
        st_batch_run(side);
        st_launch(side, st_raise_func, &done[i]);
    }
    st_compute_until(done);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_TRUE(st_check(rbuf[i], LEN, 1 - i));
        st_sync(&pair->side[i]);
    }
}

/* A stream that has passed a wait; what its host is told */
static void check_error(st_side_t *side, ucs_status_t status, ucp_st_req_h req)
{
    ucp_st_queue_error_t error   = {0};
    ucp_st_msg_params_t params   = {.field_mask = 0};

    CU_ASSERT_EQUAL(ucp_st_queue_wait(side->queue, &error), status);
    CU_ASSERT_EQUAL(error.status, status);
    CU_ASSERT_PTR_EQUAL(error.req, req);
    CU_ASSERT_PTR_EQUAL(error.op, NULL);
    CU_ASSERT_EQUAL(ucp_st_enqueue_send(side->queue, &params, &req), status);
    CU_ASSERT_EQUAL(ucp_st_enqueue_recv(side->queue, &params, &req), status);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(side->queue), status);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_wait(side->queue), status);
}

/* What is longer than its buffer is not written past it, and puts the queue in
 * error; a receive that waits beside it is cancelled before the stream goes on,
 * and what is started later does not happen. Another queue goes on. */
ST_PAIR_CASE(truncation)
{
    static uint8_t sbuf[LEN], rbuf[LEN], other[LEN];
    ucp_st_req_h send, recv, beside, late;
    ucp_st_queue_h first;

    memset(rbuf, 0xee, LEN);
    memset(other, 0xee, LEN);
    recv   = st_msg_recv(b, rbuf, 100, 1);
    beside = st_msg_recv(b, other, LEN, 2);
    st_batch_run(b);
    late = st_msg_send(b, b->peer, sbuf, LEN, 3);
    st_batch_run(b);
    send = st_msg_send(a, a->peer, sbuf, LEN, 1);
    st_batch_run(a);
    st_sync(a);
    check_error(b, UCS_ERR_MESSAGE_TRUNCATED, recv);
    CU_ASSERT_EQUAL(rbuf[100], 0xee);
    CU_ASSERT_EQUAL(other[0], 0xee);
    (void)st_msg_end(recv, UCS_ERR_MESSAGE_TRUNCATED);
    (void)st_msg_end(beside, UCS_ERR_CANCELED);
    (void)st_msg_end(late, UCS_ERR_CANCELED);
    (void)st_msg_end(send, UCS_OK);

    first    = b->queue;
    b->queue = st_queue(b, b->stream);
    recv     = st_msg_recv(b, rbuf, LEN, 4);
    st_batch_run(b);
    send = st_msg_send(a, a->peer, sbuf, LEN, 4);
    st_batch_run(a);
    st_pair_sync(pair);
    st_msg_is_done(send, LEN, 0);
    st_msg_is_done(recv, LEN, 4);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(first), UCS_OK);
}

/* Cancelled before its start is enqueued, before the stream gets there, and
 * after UCP has it */
ST_CASE(cancel)
{
    static uint8_t rbuf[LEN];
    uint64_t gate = 0;
    ucp_st_req_info_t info;
    ucp_st_req_h recv, keep;
    st_pair_t pair;
    st_side_t *b;
    int stage;

    for (stage = 0; stage < 3; ++stage) {
        st_pair_init(&pair);
        b    = &pair.side[ST_B];
        keep = st_msg_recv(b, rbuf, LEN, 1);
        recv = st_msg_recv(b, rbuf, LEN, 2);
        CU_ASSERT_EQUAL(ucp_st_req_test(recv, &info), UCS_INPROGRESS);
        CU_ASSERT_EQUAL(ucp_st_req_wait(recv, NULL), UCS_ERR_NO_MESSAGE);
        if (stage == 0) {
            CU_ASSERT_EQUAL(ucp_st_req_cancel(recv), UCS_OK);
            CU_ASSERT_EQUAL(ucp_st_req_test(recv, &info), UCS_ERR_CANCELED);
            CU_ASSERT_EQUAL(ucp_st_req_cancel(keep), UCS_OK);
            st_batch_run(b);
            st_sync(b);
        } else if (stage == 1) {
            st_hold(b, &gate);
            st_batch_run(b);
            CU_ASSERT_EQUAL(ucp_st_req_cancel(recv), UCS_OK);
            CU_ASSERT_EQUAL(ucp_st_queue_query(b->queue, NULL), UCS_INPROGRESS);
            st_let_go(&gate);
            check_error(b, UCS_ERR_CANCELED, recv);
        } else {
            st_batch_start(b);
            st_sync(b); /* the stream has reached it */
            st_batch_wait(b);
            CU_ASSERT_EQUAL(ucp_st_req_cancel(recv), UCS_OK);
            check_error(b, UCS_ERR_CANCELED, recv);
        }
        CU_ASSERT_EQUAL(ucp_st_req_cancel(recv), UCS_OK);
        (void)st_msg_end(recv, UCS_ERR_CANCELED);
        (void)st_msg_end(keep, UCS_ERR_CANCELED);
        st_pair_cleanup(&pair);
    }
}

/* A large send that nobody receives cannot be cancelled, and does not keep the
 * stream once the queue is in error; the end of the worker ends it */
ST_CASE(cancel_send)
{
    static uint8_t sbuf[BIG_LEN], rbuf[LEN];
    char *rndv = st_env_set("UCX_RNDV_THRESH", "1k");
    ucp_st_stats_t stats;
    ucp_st_req_h send, recv;
    st_pair_t pair;
    st_side_t *a;

    st_pair_init(&pair);
    st_env_restore("UCX_RNDV_THRESH", rndv);
    a    = &pair.side[ST_A];
    send = st_msg_send(a, a->peer, sbuf, BIG_LEN, 1);
    recv = st_msg_recv(a, rbuf, LEN, 2);
    st_batch_run(a);
    do {
        stats = st_stats(a);
    } while (stats.proxied < 2); /* UCP has both */
    CU_ASSERT_EQUAL(ucp_st_req_cancel(send), UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_req_test(send, NULL), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucp_st_req_cancel(recv), UCS_OK);
    check_error(a, UCS_ERR_CANCELED, recv);
    CU_ASSERT_EQUAL(ucp_st_req_test(send, NULL), UCS_INPROGRESS);
    (void)st_msg_end(recv, UCS_ERR_CANCELED);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(a->queue), UCS_OK);
    a->queue = NULL;
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(a->worker), UCS_ERR_BUSY);

    /* Received after all: the send is complete */
    recv = st_msg_recv(&pair.side[ST_B], rbuf, LEN, 1);
    st_batch_start(&pair.side[ST_B]); /* a wait may come too late already */
    CU_ASSERT_EQUAL(ucp_st_req_wait(recv, NULL), UCS_ERR_MESSAGE_TRUNCATED);
    check_error(&pair.side[ST_B], UCS_ERR_MESSAGE_TRUNCATED, recv);
    (void)st_msg_end(recv, UCS_ERR_MESSAGE_TRUNCATED);
    (void)st_msg_end(send, UCS_OK);
    st_pair_cleanup(&pair);
}

/* The null peer, messages that nobody asks about, and what queues and workers
 * do with those that are left */
ST_PAIR_CASE(left)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_req_h none[2], recv, left;

    none[0] = st_msg_send(a, UCP_ST_PEER_NULL, sbuf, LEN, 1);
    none[1] = st_msg_send(a, a->peer, sbuf, LEN, 2);
    st_batch_run(a);
    while (ucp_st_queue_query(a->queue, NULL) == UCS_INPROGRESS) {
        ucp_st_worker_progress(b->worker); /* some transports connect so */
    }
    st_msg_is_done(none[0], 0, 0);
    CU_ASSERT_EQUAL(ucp_st_req_free(none[1]), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_req_free(NULL), UCS_OK);

    /* A started receive outlives its queue, one that is not does not */
    recv = st_msg_recv(b, rbuf, LEN, 3);
    st_batch_start(b);
    left = st_msg_recv(b, rbuf, LEN, 4);
    st_sync(b);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(b->queue), UCS_OK);
    b->queue = NULL;
    (void)st_msg_end(left, UCS_ERR_CANCELED);
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(b->worker), UCS_ERR_BUSY);
    st_fill(sbuf, LEN, 3);
    st_enqueue(a, 1, sbuf, LEN, 3);
    st_batch_run(a);
    CU_ASSERT_EQUAL(st_msg_end(recv, UCS_OK), LEN);
    CU_ASSERT_TRUE(st_check(rbuf, LEN, 3));
    st_sync(a);

    /* One that never matches goes with the worker */
    st_enqueue(a, 0, rbuf, LEN, 77);
    st_batch_start(a);
    st_enqueue(a, 0, rbuf, LEN, 78); /* not started */
}

/* When the receive of sender_leaves is for UCP */
enum {
    BEFORE_LEAVE, /* maybe: nothing holds the stream */
    HELD,         /* the stream gets there when the sender is gone */
    ENQUEUED_LATE /* it is enqueued then */
};

static void run_sender_leaves(int when, int seed)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    uint64_t gate     = 0;
    ucp_st_req_h recv = NULL;
    ucp_st_msg_params_t params;
    ucp_st_req_h send;
    st_side_t *a, *b;
    st_pair_t pair;

    st_pair_init(&pair);
    a      = &pair.side[ST_A];
    b      = &pair.side[ST_B];
    params = st_msg_params(b->peer, rbuf, LEN, 1);
    if (when == HELD) {
        st_hold(b, &gate);
    }
    if (when != ENQUEUED_LATE) {
        CU_ASSERT_EQUAL(ucp_st_enqueue_recv(b->queue, &params, &recv), UCS_OK);
        st_batch_run(b);
    }
    st_fill(sbuf, LEN, seed);
    send = st_msg_send(a, a->peer, sbuf, LEN, 1);
    st_batch_run(a);
    while (ucp_st_req_test(send, NULL) == UCS_INPROGRESS) {
        ucp_st_worker_progress(b->worker); /* some transports connect so */
    }
    (void)st_msg_end(send, UCS_OK);
    st_sync(a);
    if (when == BEFORE_LEAVE) {
        st_side_cleanup(a);
    } else {
        st_side_leave(a, b);
    }
    if (when == HELD) {
        st_let_go(&gate);
    } else if (when == ENQUEUED_LATE) {
        CU_ASSERT_EQUAL(ucp_st_enqueue_recv(b->queue, &params, &recv), UCS_OK);
        st_batch_run(b);
    }
    CU_ASSERT_EQUAL(st_msg_end(recv, UCS_OK), LEN);
    CU_ASSERT_TRUE(st_check(rbuf, LEN, seed));
    st_sync(b);

    /* It has sent no more */
    if (when == ENQUEUED_LATE) {
        CU_ASSERT_EQUAL(ucp_st_enqueue_recv(b->queue, &params, &recv), UCS_OK);
        st_batch_run(b);
        check_error(b, UCS_ERR_CANCELED, recv);
        (void)st_msg_end(recv, UCS_ERR_CANCELED);
        CU_ASSERT_EQUAL(ucp_st_queue_destroy(b->queue), UCS_OK);
        b->queue = NULL;
    }
    st_side_cleanup(b);
}

/* What a sender has sent is received, although it leaves at once, and that goes
 * another way than the message */
ST_CASE(sender_leaves)
{
    int i;

    for (i = 0; i < 5; ++i) {
        run_sender_leaves(BEFORE_LEAVE, i);
    }
    run_sender_leaves(HELD, 5);
    run_sender_leaves(ENQUEUED_LATE, 6);
}

/* A receive that names a peer fails with it, one from any source does not */
ST_CASE(peer_gone)
{
    static uint8_t rbuf[2][LEN];
    ucp_st_msg_params_t params;
    ucp_st_req_h named, any;
    st_pair_t pair;
    st_side_t *a;

    st_pair_init(&pair);
    a      = &pair.side[ST_A];
    params = st_msg_params(a->peer, rbuf[0], LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_recv(a->queue, &params, &named), UCS_OK);
    st_batch_run(a);
    st_side_leave(&pair.side[ST_B], a);
    check_error(a, UCS_ERR_CANCELED, named);
    (void)st_msg_end(named, UCS_ERR_CANCELED);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(a->queue), UCS_OK);
    a->queue = NULL;
    st_side_cleanup(a);

    st_pair_init(&pair);
    any = st_msg_recv(a, rbuf[1], LEN, 2);
    st_batch_start(a);
    st_sync(a);
    st_side_leave(&pair.side[ST_B], a);
    CU_ASSERT_EQUAL(ucp_st_req_test(any, NULL), UCS_INPROGRESS);
    params = st_msg_params(a->peer, rbuf[0], LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_send(a->queue, &params, &named),
                    UCS_ERR_CANCELED);
    CU_ASSERT_EQUAL(ucp_st_req_cancel(any), UCS_OK);
    (void)st_msg_end(any, UCS_ERR_CANCELED);
    st_side_cleanup(a);
}

static ucp_st_req_h some_req(st_side_t *side, int is_send, void *buffer,
                             size_t length, ucp_tag_t tag)
{
    return is_send ? st_msg_send(side, side->peer, buffer, length, tag) :
                     st_msg_recv(side, buffer, length, tag);
}

ST_PAIR_CASE(some)
{
    st_some_run(pair, some_req);
}

/* What fails, and what is cancelled with it, holds up no such wait */
ST_PAIR_CASE(some_fail)
{
    static uint8_t sbuf[LEN], rbuf[2][LEN];
    ucp_st_req_h reqs[2];

    reqs[0] = st_msg_recv(b, rbuf[0], LEN, 1);
    reqs[1] = st_msg_recv(b, rbuf[1], LEN - 1, 2);
    st_batch_start(b);
    st_some_wait(b, reqs, 2);
    st_enqueue(a, 1, sbuf, LEN, 2);
    st_batch_run(a);
    st_sync(a);
    check_error(b, UCS_ERR_MESSAGE_TRUNCATED, reqs[1]);
    (void)st_msg_end(reqs[0], UCS_ERR_CANCELED);
    (void)st_msg_end(reqs[1], UCS_ERR_MESSAGE_TRUNCATED);
}

ST_PAIR_CASE(some_misuse)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_req_h reqs[2];

    reqs[0] = st_msg_recv(b, rbuf, LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_req_waitall(b->queue, reqs, 1),
                    UCS_ERR_NO_MESSAGE);
    st_batch_start(b);
    CU_ASSERT_EQUAL(ucp_st_enqueue_req_waitall(a->queue, reqs, 1),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_req_waitall(NULL, reqs, 1),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_req_waitall(b->queue, NULL, 1),
                    UCS_ERR_INVALID_PARAM);
    reqs[1] = NULL;
    CU_ASSERT_EQUAL(ucp_st_enqueue_req_waitall(b->queue, reqs, 2),
                    UCS_ERR_INVALID_PARAM);
    st_enqueue(a, 1, sbuf, LEN, 1);
    st_batch_run(a);
    st_some_wait(b, reqs, 1);
    st_pair_sync(pair);
    CU_ASSERT_EQUAL(st_msg_end(reqs[0], UCS_OK), LEN);
}

ST_PAIR_CASE(misuse)
{
    ucp_st_msg_params_t params = {.field_mask = 0};
    ucp_st_req_h req;

    CU_ASSERT_EQUAL(ucp_st_enqueue_send(NULL, &params, &req),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_send(a->queue, NULL, &req),
                    UCS_ERR_INVALID_PARAM);
    params = st_msg_params(a->peer, NULL, 1, 0); /* without a buffer */
    CU_ASSERT_EQUAL(ucp_st_enqueue_send(a->queue, &params, &req),
                    UCS_ERR_INVALID_PARAM);
    params = st_msg_params(UCP_ST_PEER_ANY, NULL, 0, 0);
    CU_ASSERT_EQUAL(ucp_st_enqueue_send(a->queue, &params, &req),
                    UCS_ERR_INVALID_PARAM);
    params.peer = b->peer; /* of another worker */
    CU_ASSERT_EQUAL(ucp_st_enqueue_recv(a->queue, &params, &req),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_wait(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_req_test(NULL, NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_req_wait(NULL, NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_req_cancel(NULL), UCS_ERR_INVALID_PARAM);
    st_batch_run(a); /* of nothing */
    CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, NULL), UCS_OK);
}

/* A UCP worker for one thread, or without tagged messages, is refused by the
 * first message, and by that only */
ST_CASE(refused)
{
    ucp_st_msg_params_t params = {.field_mask = 0};
    ucp_st_req_h req;
    st_side_t side;
    int i;

    for (i = 0; i < 2; ++i) {
        st_side_init_user(&side, (i == 0) ? FEATURES : UCP_FEATURE_AM,
                          (i == 0) ? UCS_THREAD_MODE_SERIALIZED :
                          UCS_THREAD_MODE_MULTI);
        CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(side.queue), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_send(side.queue, &params, &req),
                        UCS_ERR_UNSUPPORTED);
        CU_ASSERT_EQUAL(ucp_st_enqueue_recv(side.queue, &params, &req),
                        UCS_ERR_UNSUPPORTED);
        st_side_cleanup(&side);
    }
}

ST_SUITE("st_batch")
