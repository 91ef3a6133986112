/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_match.c - matching: order, sizes, wildcards, refusals, cancellation.
 */
#include "st_cunit.h"
#include "st_hook.h"
#include "st_pair.h"

#include "core/st_op.h"
#include "core/st_worker.h"


#include <string.h>

#define LEN 256

/* Run one use of a matched pair, A's first and B's second operation, and check
 * the bytes */
static void transfer(st_pair_t *pair, const ucp_st_op_h op[2], void *sbuf,
                     const void *rbuf, size_t length)
{
    static uint64_t seed = 100;

    st_fill(sbuf, length, ++seed);
    st_use(&pair->side[ST_B], op[ST_B]);
    st_use(&pair->side[ST_A], op[ST_A]);
    st_pair_sync(pair);
    CU_ASSERT_TRUE(st_check(rbuf, length, seed));
}

/* Several sends and receives with one tag pair in the order of matching, which
 * is not the order of creation */
ST_PAIR_CASE(order_same_tag)
{
    static uint8_t sbuf[3][LEN], rbuf[3][LEN];
    ucp_st_op_h send[3], recv[3];
    int i;

    for (i = 2; i >= 0; --i) {
        send[i] = st_send(a, sbuf[i], LEN, 7);
        recv[i] = st_recv(b, rbuf[i], LEN, 7);
    }
    CU_ASSERT_EQUAL(ucp_st_imatchall(send, 3), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_imatchall(recv, 3), UCS_OK);
    for (i = 0; i < 3; ++i) {
        while (ucp_st_match_test(send[i]) == UCS_INPROGRESS) {
            ucp_st_worker_progress(b->worker);
        }
        CU_ASSERT_EQUAL(ucp_st_match_test(send[i]), UCS_OK);
        CU_ASSERT_EQUAL(st_match_end(recv[i]), UCS_OK);
    }
    for (i = 0; i < 3; ++i) {
        transfer(pair, (ucp_st_op_h[]){send[i], recv[i]}, sbuf[i], rbuf[i],
                 LEN);
    }
    for (i = 0; i < 3; ++i) {
        st_free2(send[i], recv[i]);
    }
}

/* Receives matched in another order than the sends: tag and scope decide */
ST_PAIR_CASE(order_tags_scopes)
{
    static uint8_t sbuf[4][LEN], rbuf[4][LEN];
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG |
                      UCP_ST_OP_PARAM_FIELD_SCOPE,
        .length     = LEN
    };
    ucp_st_op_h send[4], recv[4];
    int i;

    for (i = 0; i < 4; ++i) {
        params.tag    = i & 1;
        params.scope  = i >> 1;
        params.buffer = sbuf[i];
        params.peer   = a->peer;
        send[i]       = st_op(a, 1, &params);
        params.buffer = rbuf[i];
        params.peer   = b->peer;
        recv[i]       = st_op(b, 0, &params);
    }
    CU_ASSERT_EQUAL(ucp_st_imatchall(send, 4), UCS_OK);
    for (i = 3; i >= 0; --i) {
        CU_ASSERT_EQUAL(ucp_st_imatchall(&recv[i], 1), UCS_OK);
    }
    for (i = 0; i < 4; ++i) {
        while (ucp_st_match_test(send[i]) == UCS_INPROGRESS) {
            ucp_st_worker_progress(b->worker);
        }
        CU_ASSERT_EQUAL(st_match_end(recv[i]), UCS_OK);
        transfer(pair, (ucp_st_op_h[]){send[i], recv[i]}, sbuf[i], rbuf[i],
                 LEN);
    }
    for (i = 0; i < 4; ++i) {
        st_free2(send[i], recv[i]);
    }
}

/* S7: empty messages order the streams and write nothing, also into a receive
 * with a buffer */
ST_PAIR_CASE(zero_length)
{
    static uint8_t rbuf[16];
    size_t recv_length;
    ucp_st_op_h send, recv;
    int k;

    for (recv_length = 0; recv_length <= sizeof(rbuf);
         recv_length += sizeof(rbuf)) {
        memset(rbuf, 0xee, sizeof(rbuf));
        send = st_send(a, NULL, 0, 1);
        recv = st_recv(b, (recv_length == 0) ? NULL : rbuf, recv_length, 1);
        st_match_ok(send, recv);
        for (k = 0; k < 3; ++k) {
            st_use(a, send);
            st_use(b, recv);
        }
        st_pair_sync(pair);
        CU_ASSERT_EQUAL(rbuf[0], 0xee);
        CU_ASSERT_EQUAL(rbuf[15], 0xee);
        st_free2(send, recv);
    }
}

/* S7: a null peer completes at once */
ST_PAIR_CASE(null_peer)
{
    ucp_st_op_params_t params = {.field_mask = 0};
    ucp_st_op_attr_t attr;
    ucp_st_op_h op[2];

    op[0] = st_op(a, 1, &params);
    op[1] = st_op(a, 0, &params);
    CU_ASSERT_EQUAL(ucp_st_matchall(op, 2, NULL), UCS_OK);
    st_use(a, op[0]);
    st_use(a, op[1]);
    st_use(a, op[0]);
    st_sync(a);
    CU_ASSERT_EQUAL(ucp_st_op_query(op[0], &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.lane, UCP_ST_LANE_NONE);
    CU_ASSERT_EQUAL(attr.completed, 2);
    st_free2(op[0], op[1]);
}

/* S7: messages to oneself; a blocking match of one half is refused */
ST_PAIR_CASE(self)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    st_side_t *side;
    ucp_st_op_h op[2];
    int k;

    side       = a;
    ucp_st_peer_destroy(side->peer);
    side->peer = st_side_peer(side, side);
    op[0]      = st_send(side, sbuf, LEN, 3);
    op[1]      = st_recv(side, rbuf, LEN, 3);
    CU_ASSERT_EQUAL(ucp_st_match(op[0]), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_match(op[1]), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_match_test(op[0]), UCS_ERR_NOT_CONNECTED);
    CU_ASSERT_EQUAL(ucp_st_matchall(op, 2, NULL), UCS_OK);
    for (k = 0; k < 5; ++k) {
        st_fill(sbuf, LEN, k);
        CU_ASSERT_EQUAL(ucp_st_enqueue_startall(side->queue, op, 2), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(side->queue, op, 2), UCS_OK);
        st_sync(side);
        CU_ASSERT_TRUE(st_check(rbuf, LEN, k));
    }
    st_free2(op[0], op[1]);

    /* One half by non-blocking match, then the other by blocking match */
    op[0] = st_send(side, sbuf, LEN, 3);
    op[1] = st_recv(side, rbuf, LEN, 3);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&op[0], 1), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_match(op[1]), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_match_test(op[0]), UCS_OK);
    st_free2(op[0], op[1]);
}

/* S8 and misuse of match: an error, and nothing is given to match */
ST_PAIR_CASE(refusals)
{
    static uint8_t buf[LEN];
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_FLAGS
    };
    ucs_status_t statuses[2]  = {UCS_ERR_LAST, UCS_ERR_LAST};
    ucp_st_op_h any_peer, any_tag, good, ops[2];

    params.peer  = UCP_ST_PEER_ANY;
    any_peer     = st_op(b, 0, &params);
    params.peer  = b->peer;
    params.flags = UCP_ST_OP_FLAG_ANY_TAG;
    any_tag      = st_op(b, 0, &params);
    good         = st_recv(b, buf, LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_match(any_peer), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_match(any_tag), UCS_ERR_INVALID_PARAM);

    ops[0] = good;
    ops[1] = any_tag;
    CU_ASSERT_EQUAL(ucp_st_imatchall(ops, 2), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_match_test(good), UCS_ERR_NOT_CONNECTED);
    ops[1] = any_peer;
    CU_ASSERT_EQUAL(ucp_st_matchall(ops, 2, statuses), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(statuses[0], UCS_ERR_LAST);
    CU_ASSERT_EQUAL(statuses[1], UCS_ERR_LAST);
    CU_ASSERT_EQUAL(ucp_st_match_test(good), UCS_ERR_NOT_CONNECTED);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(b->queue, any_peer),
                    UCS_ERR_NOT_CONNECTED);
    ops[1] = good;
    CU_ASSERT_EQUAL(ucp_st_imatchall(ops, 2), UCS_ERR_INVALID_PARAM);
    ops[1] = NULL;
    CU_ASSERT_EQUAL(ucp_st_imatchall(ops, 2), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_match_test(good), UCS_ERR_NOT_CONNECTED);
    CU_ASSERT_EQUAL(ucp_st_imatchall(ops, 0), UCS_OK);

    CU_ASSERT_EQUAL(ucp_st_imatchall(&good, 1), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&good, 1), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_match_test(good), UCS_INPROGRESS);
    st_free(good);
    st_free(any_tag);
    st_free(any_peer);
}

/* Operations of two workers are not given to match by one call, which has only
 * the lock of the first one's */
ST_PAIR_CASE(two_workers)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_op_h op[2];

    op[ST_A] = st_send(a, sbuf, LEN, 1);
    op[ST_B] = st_recv(b, rbuf, LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_imatchall(op, 2), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_match_test(op[ST_A]), UCS_ERR_NOT_CONNECTED);
    CU_ASSERT_EQUAL(ucp_st_match_test(op[ST_B]), UCS_ERR_NOT_CONNECTED);
    st_match_ok(op[ST_A], op[ST_B]);
    transfer(pair, op, sbuf, rbuf, LEN);
    st_free2(op[ST_A], op[ST_B]);
}

ST_PAIR_CASE(bad_params)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_MODE |
                      UCP_ST_OP_PARAM_FIELD_FLAGS
    };
    ucp_st_op_h op;

    params.length = 1; /* without a buffer */
    CU_ASSERT_EQUAL(ucp_st_send_init(a->worker, &params, &op),
                    UCS_ERR_INVALID_PARAM);
    params.length = 0;
    params.mode   = (ucp_st_mode_t)17;
    CU_ASSERT_EQUAL(ucp_st_send_init(a->worker, &params, &op),
                    UCS_ERR_INVALID_PARAM);
    params.mode  = UCP_ST_MODE_STANDARD;
    params.flags = 1u << 31;
    CU_ASSERT_EQUAL(ucp_st_recv_init(a->worker, &params, &op),
                    UCS_ERR_INVALID_PARAM);
    params.flags = 0;
    params.peer  = b->peer; /* of the other worker */
    CU_ASSERT_EQUAL(ucp_st_recv_init(a->worker, &params, &op),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_send_init(NULL, &params, &op),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_op_free(NULL), UCS_ERR_INVALID_PARAM);
}

/* Until the operation is paired, and waits for the peer's offer */
static void until_paired(ucp_st_op_h op)
{
    int is_paired;

    do {
        ucp_st_worker_lock(op->worker);
        is_paired = (op->key == NULL);
        ucp_st_worker_unlock(op->worker);
    } while (!is_paired);
}

/* An operation freed while it waits for its match leaves no trace, whether or
 * not the peer had paired it */
ST_PAIR_CASE(cancel)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_op_h send, recv, stale;

    /* The peer has not paired it, and has nothing to pair it with while it
     * hears of both its match and its end */
    stale = st_send(a, sbuf, LEN, 5);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&stale, 1), UCS_OK);
    st_free(stale);
    send = st_send(a, sbuf, LEN, 7);
    recv = st_recv(b, rbuf, LEN, 7);
    st_match_ok(send, recv); /* B has heard all that A said before */
    st_free2(send, recv);
    send = st_send(a, sbuf, LEN, 5);
    recv = st_recv(b, rbuf, LEN, 5);
    st_match_ok(send, recv);
    transfer(pair, (ucp_st_op_h[]){send, recv}, sbuf, rbuf, LEN);
    st_free2(send, recv);

    /* The peer has: its half is matched once it knows what this side offers,
     * and then cannot be used */
    stale = st_send(a, sbuf, LEN, 6);
    recv  = st_recv(b, rbuf, LEN, 6);
    st_hook_hold(b->worker->uuid, 0);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&stale, 1), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&recv, 1), UCS_OK);
    until_paired(recv);
    CU_ASSERT_EQUAL(ucp_st_match_test(recv), UCS_INPROGRESS);
    st_free(stale);
    st_hook_am_send(NULL);
    while (ucp_st_match_test(recv) == UCS_INPROGRESS) {
        ucp_st_worker_progress(a->worker);
    }
    CU_ASSERT_TRUE(st_start_becomes(pair, b, recv, UCS_ERR_CANCELED));
    st_free(recv);
    st_drain(pair);
}

/* Bootstrap: what is no address is refused by name */
ST_PAIR_CASE(addresses)
{
    ucp_st_peer_h peer;
    uint8_t *address;
    size_t length;

    CU_ASSERT_EQUAL(ucp_st_worker_get_address(a->worker, (void**)&address,
                                              &length), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_peer_create(b->worker, address, 8, &peer),
                    UCS_ERR_INVALID_ADDR);
    CU_ASSERT_EQUAL(ucp_st_peer_create(b->worker, address, length - 1, &peer),
                    UCS_ERR_INVALID_ADDR);
    address[3] += 1; /* the version */
    CU_ASSERT_EQUAL(ucp_st_peer_create(b->worker, address, length, &peer),
                    UCS_ERR_UNSUPPORTED);
    address[0] += 1;
    CU_ASSERT_EQUAL(ucp_st_peer_create(b->worker, address, length, &peer),
                    UCS_ERR_INVALID_ADDR);
    address[0] -= 1;
    address[3] -= 1;
    /* The same worker again: the same peer */
    CU_ASSERT_EQUAL(ucp_st_peer_create(b->worker, address, length, &peer),
                    UCS_OK);
    CU_ASSERT_PTR_EQUAL(peer, b->peer);
    ucp_st_peer_destroy(peer);
    ucp_st_worker_release_address(a->worker, address);
}

/* A peer that says goodbye fails what waits for it */
ST_CASE(goodbye)
{
    static uint8_t rbuf[LEN];
    st_side_t a, b;
    ucp_st_op_h recv;

    st_side_init(&a);
    st_side_init(&b);
    a.peer = st_side_peer(&a, &b);
    b.peer = st_side_peer(&b, &a);
    recv   = st_recv(&a, rbuf, LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&recv, 1), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_match_test(recv), UCS_INPROGRESS);
    st_side_leave(&b, &a);
    CU_ASSERT_EQUAL(st_match_end(recv), UCS_ERR_CANCELED);
    st_free(recv);
    /* ... and what is given to match with it later */
    recv = st_recv(&a, rbuf, LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_match(recv), UCS_ERR_CANCELED);
    st_free(recv);
    st_side_cleanup(&a);
}

/* A worker that matches nothing more: what has no counterpart fails, on both
 * sides, also if it is announced later; a matched pair goes on, also a use that
 * was begun before */
ST_PAIR_CASE(leave)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_op_h send, recv, lonely, self;
    ucp_st_op_params_t params = {.field_mask = UCP_ST_OP_PARAM_FIELD_PEER};

    send = st_send(a, sbuf, LEN, 1);
    recv = st_recv(b, rbuf, LEN, 1);
    st_match_ok(send, recv);
    st_use(a, send);
    lonely = st_send(a, sbuf, LEN, 2);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&lonely, 1), UCS_OK);
    params.peer = b->self;
    self        = st_op(b, 1, &params);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&self, 1), UCS_OK);

    CU_ASSERT_EQUAL(ucp_st_worker_leave(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_worker_leave(b->worker), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_worker_leave(b->worker), UCS_OK);
    CU_ASSERT_EQUAL(st_match_end(self), UCS_ERR_CANCELED);
    CU_ASSERT_EQUAL(st_match_end(lonely), UCS_ERR_CANCELED);
    st_free(self);
    st_free(lonely);
    lonely = st_send(a, sbuf, LEN, 2);
    CU_ASSERT_EQUAL(ucp_st_match(lonely), UCS_ERR_CANCELED);
    st_free(lonely);
    lonely = st_recv(b, rbuf, LEN, 3);
    CU_ASSERT_EQUAL(ucp_st_match(lonely), UCS_ERR_CANCELED);
    st_free(lonely);

    st_use(b, recv);
    st_pair_sync(pair);
    transfer(pair, (ucp_st_op_h[]){send, recv}, sbuf, rbuf, LEN);
    st_free2(send, recv);
}

/* The same to a worker that the leaving one hears of only later */
ST_CASE(leave_unknown)
{
    static uint8_t sbuf[LEN];
    ucp_st_op_h send;
    st_side_t a, b;

    st_side_init(&a);
    st_side_init(&b);
    CU_ASSERT_EQUAL(ucp_st_worker_leave(b.worker), UCS_OK);
    a.peer = st_side_peer(&a, &b);
    send   = st_send(&a, sbuf, LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&send, 1), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_match_test(send), UCS_INPROGRESS);
    b.peer = st_side_peer(&b, &a);
    while (ucp_st_match_test(send) == UCS_INPROGRESS) {
        ucp_st_worker_progress(b.worker);
    }
    CU_ASSERT_EQUAL(ucp_st_match_test(send), UCS_ERR_CANCELED);
    st_free(send);
    st_side_leave(&a, &b);
    st_side_cleanup(&b);
}

/* A peer goes right after its half of a use, before this side has seen that the
 * use is complete: it completes all the same, in both directions */
ST_CASE(goodbye_after_use)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_op_h send, recv;
    st_pair_t pair;
    int leaver;

    for (leaver = ST_A; leaver <= ST_B; ++leaver) {
        st_pair_init(&pair);
        st_fill(sbuf, LEN, leaver);
        send = st_send(&pair.side[ST_A], sbuf, LEN, 1);
        recv = st_recv(&pair.side[ST_B], rbuf, LEN, 1);
        st_match_ok(send, recv);
        st_use(&pair.side[ST_A], send);
        st_use(&pair.side[ST_B], recv);
        st_sync(&pair.side[leaver]);
        st_free((leaver == ST_A) ? send : recv);
        st_side_cleanup(&pair.side[leaver]);
        st_sync(&pair.side[1 - leaver]);
        CU_ASSERT_TRUE(st_check(rbuf, LEN, leaver));
        st_free((leaver == ST_A) ? recv : send);
        st_side_cleanup(&pair.side[1 - leaver]);
    }
}

ST_SUITE("st_match")
