/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_fifo_end.c - messages of FIFOs that fail, are cancelled, or find no
 * room on the NIC; queues, peers and buffers that go.
 */
#include "fab_intercept.h"
#include "core/st_peer.h"
#include "core/st_worker.h"
#include "st_cunit.h"
#include "st_msg.h"
#include "st_stream.h"

#include <rdma/fi_errno.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN    512
#define ROUNDS 60
#define FEW    400
#define MANY   2100 /* More than a card has counters */

/* The NICs move them; else the hosts do */
static int is_nic(void)
{
    return st_lane() == UCP_ST_LANE_TRIG;
}

/* A message has ended its queue, once the other side's word has come */
static void check_error(st_side_t *side, ucs_status_t status, ucp_st_req_h req)
{
    ucp_st_queue_error_t error = {.op = NULL};

    CU_ASSERT_EQUAL(ucp_st_req_wait(req, NULL), status);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(side->queue, &error), status);
    CU_ASSERT_PTR_EQUAL(error.req, req);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(side->queue), status);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_wait(side->queue), status);
}

/* A side gets another queue, once all has ended on the one that has failed */
static void renew(st_side_t *side)
{
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(side->queue), UCS_OK);
    side->queue = st_queue(side, side->stream);
}

static void swap(st_pair_t *pair, uint64_t seed)
{
    static uint8_t sbuf[LEN], rbuf[LEN];

    st_fill(sbuf, LEN, seed);
    st_fifo_run(&pair->side[ST_B], 0, rbuf, LEN, 1);
    st_fifo_run(&pair->side[ST_A], 1, sbuf, LEN, 1);
    st_pair_sync(pair);
    CU_ASSERT_TRUE(st_check(rbuf, LEN, seed));
}

/* What fails, and what is cancelled with it, holds up no wait for some */
ST_PAIR_CASE(some)
{
    static uint8_t sbuf[LEN], rbuf[2][LEN];
    ucp_st_req_h recvs[2], send;

    recvs[0] = st_fifo_req(b, 0, rbuf[0], LEN, 1);
    recvs[1] = st_fifo_req(b, 0, rbuf[1], LEN - 1, 2);
    st_batch_start(b);
    st_some_wait(b, recvs, 1);
    st_some_wait(b, recvs, 2);
    send = st_fifo_req(a, 1, sbuf, LEN, 2);
    st_batch_start(a);
    check_error(a, UCS_ERR_MESSAGE_TRUNCATED, send);
    check_error(b, UCS_ERR_MESSAGE_TRUNCATED, recvs[1]);
    (void)st_msg_end(recvs[0], UCS_ERR_CANCELED);
    (void)st_msg_end(recvs[1], UCS_ERR_MESSAGE_TRUNCATED);
    (void)st_msg_end(send, UCS_ERR_MESSAGE_TRUNCATED);
}

/* A receive that is too short is an error of both, and writes nothing; what is
 * beside it is cancelled. Numbers go on behind it. */
ST_PAIR_CASE(truncation)
{
    static uint8_t sbuf[LEN], rbuf[LEN], other[LEN];
    ucp_st_req_h send, recv, beside;

    memset(rbuf, ST_SPOILED, LEN);
    memset(other, ST_SPOILED, LEN);
    recv   = st_fifo_req(b, 0, rbuf, 100, 1);
    beside = st_fifo_req(b, 0, other, LEN, 2);
    st_batch_run(b);
    send = st_fifo_req(a, 1, sbuf, LEN, 1);
    st_batch_start(a); /* a wait may come too late already */
    check_error(b, UCS_ERR_MESSAGE_TRUNCATED, recv);
    CU_ASSERT_EQUAL(rbuf[100], ST_SPOILED);
    CU_ASSERT_TRUE(st_is_spoiled(other, LEN));
    (void)st_msg_end(recv, UCS_ERR_MESSAGE_TRUNCATED);
    (void)st_msg_end(beside, UCS_ERR_CANCELED);
    check_error(a, UCS_ERR_MESSAGE_TRUNCATED, send);
    (void)st_msg_end(send, UCS_ERR_MESSAGE_TRUNCATED);
    renew(a);
    renew(b);
    swap(pair, 5);
    /* The receive of tag 2 was cancelled: its send will be, too */
    send = st_fifo_req(a, 1, sbuf, LEN, 2);
    st_batch_start(a);
    check_error(a, UCS_ERR_CANCELED, send);
    (void)st_msg_end(send, UCS_ERR_CANCELED);
    renew(a);
    swap(pair, 6);
}

/* Not started: nothing is known of it. Started and not matched: it ends, and so
 * does its queue. Matched: it goes on. */
ST_PAIR_CASE(cancel)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_req_h recv, beside;

    recv = st_fifo_req(b, 0, rbuf, LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_req_wait(recv, NULL), UCS_ERR_NO_MESSAGE);
    CU_ASSERT_EQUAL(ucp_st_req_cancel(recv), UCS_OK);
    (void)st_msg_end(recv, UCS_ERR_CANCELED);
    swap(pair, 1);

    recv   = st_fifo_req(b, 0, rbuf, LEN, 2);
    beside = st_fifo_req(b, 0, rbuf, LEN, 3);
    st_batch_start(b);
    st_begun(b);
    st_batch_wait(b);
    CU_ASSERT_EQUAL(ucp_st_req_cancel(recv), UCS_OK);
    check_error(b, UCS_ERR_CANCELED, recv);
    (void)st_msg_end(recv, UCS_ERR_CANCELED);
    (void)st_msg_end(beside, UCS_ERR_CANCELED);
    renew(b);
    swap(pair, 2);

    recv = st_fifo_req(b, 0, rbuf, LEN, 4);
    st_batch_run(b);
    st_fifo_run(a, 1, sbuf, LEN, 4);
    st_pair_sync(pair);
    CU_ASSERT_EQUAL(ucp_st_req_cancel(recv), UCS_OK);
    CU_ASSERT_EQUAL(st_msg_end(recv, UCS_OK), LEN);
}

/* One message of a queue fails while others are matched, and armed on the NICs
 * of both sides: the streams pass, nothing is written behind that, and the
 * other side hears of each. */
ST_CASE(fail_armed)
{
    static uint8_t sbuf[4][LEN], rbuf[4][LEN];
    uint64_t gates[2];
    ucp_st_req_h wrong, armed[8];
    st_pair_t pair;
    st_side_t *a, *b;
    int i, who;

    for (who = 0; who < 2; ++who) {
        st_pair_init(&pair);
        a        = &pair.side[ST_A];
        b        = &pair.side[ST_B];
        gates[0] = gates[1] = 0;
        memset(rbuf, ST_SPOILED, sizeof(rbuf));
        st_hold(a, &gates[0]);
        st_hold(b, &gates[1]);
        for (i = 0; i < 4; ++i) {
            armed[i]     = st_fifo_req(a, i % 2, (i % 2) ? sbuf[i] : rbuf[i],
                                       LEN, i);
            armed[4 + i] = st_fifo_req(b, !(i % 2), (i % 2) ? rbuf[i] : sbuf[i],
                                       LEN, i);
        }
        wrong = st_fifo_req(&pair.side[who], 0, NULL, 0, 9);
        st_batch_run(a);
        st_batch_run(b);
        while (is_nic() && ((st_stats(a).writes_posted < 2) ||
                            (st_stats(b).writes_posted < 2))) {
            ucp_st_worker_progress(a->worker);
            ucp_st_worker_progress(b->worker);
        }
        CU_ASSERT_EQUAL(ucp_st_req_cancel(wrong), UCS_OK);
        st_let_go(&gates[who]);
        check_error(&pair.side[who], UCS_ERR_CANCELED, wrong);
        st_let_go(&gates[1 - who]);
        CU_ASSERT_EQUAL(ucp_st_queue_wait(pair.side[1 - who].queue, NULL),
                        UCS_ERR_CANCELED);
        for (i = 0; i < 8; ++i) {
            (void)st_msg_end(armed[i], UCS_ERR_CANCELED);
        }
        (void)st_msg_end(wrong, UCS_ERR_CANCELED);
        CU_ASSERT_TRUE(st_is_spoiled(rbuf, sizeof(rbuf)));
        renew(a);
        renew(b);
        swap(&pair, who);
        st_pair_cleanup(&pair);
    }
}

/* Some sends of a FIFO end in another order than they were started. Their
 * receives, on three queues, hear of each. */
ST_PAIR_CASE(cancel_order)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_req_h sends[3], recv;
    st_side_t more;
    int i;

    for (i = 0; i < 3; ++i) {
        sends[i] = st_fifo_req(a, 1, sbuf, LEN, 1);
        st_batch_start(a);
    }
    CU_ASSERT_EQUAL(ucp_st_req_cancel(sends[1]), UCS_OK);
    for (i = 0; i < 3; ++i) {
        (void)st_msg_end(sends[i], UCS_ERR_CANCELED);
    }
    st_begun(a);
    renew(a);
    for (i = 0; i < 3; ++i) {
        st_more_init(&more, b);
        recv = st_fifo_req(&more, 0, rbuf, LEN, 1);
        st_batch_start(&more);
        check_error(&more, UCS_ERR_CANCELED, recv);
        (void)st_msg_end(recv, UCS_ERR_CANCELED);
        st_more_cleanup(&more);
    }
    swap(pair, 1);
}

/* A send that is armed, whose peer is declared gone, does not fire while that
 * has the receive open */
ST_CASE_IF(peer_declared_gone, is_nic(), "nothing is armed")
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    uint64_t gate = 0;
    ucp_st_req_h send, recv;
    st_pair_t pair;
    st_side_t *a, *b;

    st_pair_init(&pair);
    a = &pair.side[ST_A];
    b = &pair.side[ST_B];
    memset(rbuf, ST_SPOILED, LEN);
    recv = st_fifo_req(b, 0, rbuf, LEN, 1);
    st_batch_run(b);
    st_hold(a, &gate);
    send = st_fifo_req(a, 1, sbuf, LEN, 1);
    st_batch_run(a);
    while (st_stats(a).writes_posted < 1) {
        ucp_st_worker_progress(a->worker);
        ucp_st_worker_progress(b->worker);
    }
    ucp_st_worker_lock(a->worker);
    ucp_st_peer_fail(a->peer, UCS_ERR_CONNECTION_RESET);
    ucp_st_worker_unlock(a->worker);
    st_let_go(&gate);
    check_error(a, UCS_ERR_CONNECTION_RESET, send);
    /* Also if its clear-to-send has found the other half closed before */
    CU_ASSERT_EQUAL(ucp_st_queue_wait(b->queue, NULL),
                    UCS_ERR_CONNECTION_RESET);
    CU_ASSERT_TRUE(st_is_spoiled(rbuf, LEN));
    (void)st_msg_end(send, UCS_ERR_CONNECTION_RESET);
    (void)st_msg_end(recv, UCS_ERR_CONNECTION_RESET);
    st_pair_cleanup(&pair);
}

/* Many both ways, whose streams are let go in the end. What they need is
 * refused meanwhile; and then, of work, a few more times: where a provider
 * carries out what is due as it does deferred work, it takes none otherwise. */
static void run_few(fab_call_t call, int code)
{
    static uint8_t sbuf[2][ROUNDS][16], rbuf[2][ROUNDS][16];
    static ucp_st_req_h reqs[2][ROUNDS][2];
    uint64_t gates[2] = {0, 0};
    st_side_t *side;
    st_pair_t pair;
    int i, k;

    st_pair_init(&pair);
    swap(&pair, 1); /* the queues have what they need */
    fab_intercept_fail_all(call, code);
    for (i = 0; i < 2; ++i) {
        side = &pair.side[i];
        st_hold(side, &gates[i]);
        for (k = 0; k < ROUNDS; ++k) {
            st_fill(sbuf[i][k], 16, (ROUNDS * i) + k);
            reqs[i][k][0] = st_fifo_req(side, 1, sbuf[i][k], 16, 2 + k);
            reqs[i][k][1] = st_fifo_req(side, 0, rbuf[i][k], 16, 2 + k);
        }
        st_batch_run(side);
    }
    for (k = 0; k < 100; ++k) {
        ucp_st_worker_progress(pair.side[ST_A].worker);
        ucp_st_worker_progress(pair.side[ST_B].worker);
    }
    if (call == FAB_CALL_QUEUE_WORK) {
        fab_intercept_fail_next(call, 16, code);
    }
    st_let_go(&gates[0]);
    st_let_go(&gates[1]);
    st_pair_sync(&pair);
    fab_intercept_fail_all(FAB_CALL_LAST, 0);
    for (i = 0; i < 2; ++i) {
        for (k = 0; k < ROUNDS; ++k) {
            CU_ASSERT_TRUE(st_check(rbuf[1 - i][k], 16, (ROUNDS * i) + k));
            CU_ASSERT_EQUAL(st_msg_end(reqs[i][k][0], UCS_OK), 16);
            CU_ASSERT_EQUAL(st_msg_end(reqs[i][k][1], UCS_OK), 16);
        }
        CU_ASSERT(!is_nic() || (call == FAB_CALL_QUEUE_WORK) ||
                  (st_stats(&pair.side[i]).proxied > 0));
    }
    swap(&pair, 2);
    st_pair_cleanup(&pair);
}

/* The card has no counter left: hosts hand over what finds none */
ST_CASE_CALL(few_counters, run_few(FAB_CALL_CNTR, FI_ENOSPC))

/* It takes no deferred work: hosts carry out what is due */
ST_CASE_CALL(few_entries, run_few(FAB_CALL_QUEUE_WORK, FI_EAGAIN))

/* Sends that hold all counters of the card at once leave enough to the worker
 * when they are over: another queue of it finds its own. With the provider cxi
 * there are as many as leave it enough without that: it keeps mapped what it
 * refuses for want of entries, which its emulated card tells at its end. */
ST_PAIR_CASE(counters_left)
{
    static ucp_st_req_h reqs[MANY][2];
    static uint8_t sbuf[8], rbuf[8];
    uint64_t many = st_env_has_provider("cxi") ? FEW : MANY;
    uint64_t gate = 0;
    ucp_st_queue_h queue;
    ucp_st_stats_t stats;
    uint64_t i;

    st_hold(a, &gate);
    for (i = 0; i < many; ++i) {
        reqs[i][0] = st_fifo_req(a, 1, sbuf, 8, 1);
        reqs[i][1] = st_fifo_req(b, 0, rbuf, 8, 1);
    }
    st_batch_run(a);
    st_batch_run(b);
    do { /* all of them are matched */
        ucp_st_worker_progress(a->worker);
        ucp_st_worker_progress(b->worker);
        stats = st_stats(a);
    } while ((stats.fifo_nic + stats.fifo_put_cntr + stats.fifo_ucp) < many);
    st_let_go(&gate);
    for (i = 0; i < many; ++i) {
        (void)st_msg_end(reqs[i][0], UCS_OK);
        (void)st_msg_end(reqs[i][1], UCS_OK);
    }
    st_pair_sync(pair);
    queue    = a->queue;
    a->queue = st_queue(a, a->stream);
    swap(pair, 1);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(queue), UCS_OK);
}

/* A queue is destroyed with messages under way, which go on: some that nobody
 * asks about, a receive that the host waits for, and one that is not started */
ST_PAIR_CASE(queue_gone)
{
    static uint8_t sbuf[3][LEN], rbuf[3][LEN];
    ucp_st_req_h recv, left;
    int i;

    for (i = 0; i < 2; ++i) {
        st_fill(sbuf[i], LEN, i);
    }
    recv = st_fifo_req(b, 0, rbuf[0], LEN, 1);
    st_batch_start(b);
    left = st_fifo_req(b, 0, rbuf[2], LEN, 3);
    st_fifo(b, 0, rbuf[2], LEN, 4); /* dropped before its start */
    st_begun(b);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(b->queue), UCS_OK);
    b->queue = NULL;
    (void)st_msg_end(left, UCS_ERR_CANCELED);
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(b->worker), UCS_ERR_BUSY);
    st_fifo_run(a, 1, sbuf[0], LEN, 1);
    CU_ASSERT_EQUAL(st_msg_end(recv, UCS_OK), LEN);
    CU_ASSERT_TRUE(st_check(rbuf[0], LEN, 0));
    st_sync(a);
    /* One that never matches goes with the worker */
    left = st_fifo_req(a, 0, rbuf[1], LEN, 8);
    st_batch_start(a);
    CU_ASSERT_EQUAL(ucp_st_req_free(left), UCS_OK);
}

/* What was sent is received although the sender leaves at once; what was not
 * fails, and so does a send to one that has left */
ST_CASE(peer_leaves)
{
    static uint8_t sbuf[LEN], rbuf[2][LEN];
    ucp_st_req_h recv, none;
    st_pair_t pair;
    st_side_t *a, *b;
    int i;

    for (i = 0; i < 3; ++i) {
        st_pair_init(&pair);
        a    = &pair.side[ST_A];
        b    = &pair.side[ST_B];
        recv = st_fifo_req(b, 0, rbuf[0], LEN, 1);
        st_batch_run(b);
        st_fill(sbuf, LEN, i);
        none = st_fifo_req(a, 1, sbuf, LEN, 1);
        st_batch_run(a);
        while (ucp_st_req_test(none, NULL) == UCS_INPROGRESS) {
            ucp_st_worker_progress(b->worker);
        }
        (void)st_msg_end(none, UCS_OK);
        st_sync(a);
        none = st_fifo_req(b, 0, rbuf[1], LEN, 2);
        st_batch_run(b);
        st_side_leave(a, b);
        CU_ASSERT_EQUAL(st_msg_end(recv, UCS_OK), LEN);
        CU_ASSERT_TRUE(st_check(rbuf[0], LEN, i));
        check_error(b, UCS_ERR_CANCELED, none);
        (void)st_msg_end(none, UCS_ERR_CANCELED);
        CU_ASSERT_EQUAL(ucp_st_queue_destroy(b->queue), UCS_OK);
        b->queue = NULL;
        st_side_cleanup(b);
    }
}

/* The buffer of a receive is gone when its start is enqueued: an error, where
 * the NIC is to write to it */
ST_CASE_IF(unmapped, st_lane() == UCP_ST_LANE_TRIG,
           "nothing looks at the buffer before there is data")
{
    static uint8_t sbuf[LEN];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    ucp_st_req_h recv, send;
    ucs_status_t status;
    st_pair_t pair;
    uint8_t *rbuf;

    st_pair_init(&pair);
    rbuf = mmap(NULL, page, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(rbuf != MAP_FAILED);
    recv = st_fifo_req(&pair.side[ST_B], 0, rbuf, LEN, 1);
    CU_ASSERT_EQUAL(munmap(rbuf, page), 0);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(pair.side[ST_B].queue), UCS_OK);
    status = ucp_st_req_wait(recv, NULL);
    CU_ASSERT_NOT_EQUAL(status, UCS_OK);
    check_error(&pair.side[ST_B], status, recv);
    (void)st_msg_end(recv, status);
    send = st_fifo_req(&pair.side[ST_A], 1, sbuf, LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(pair.side[ST_A].queue), UCS_OK);
    check_error(&pair.side[ST_A], status, send);
    (void)st_msg_end(send, status);
    renew(&pair.side[ST_A]);
    renew(&pair.side[ST_B]);
    swap(&pair, 1);
    st_pair_cleanup(&pair);
}

ST_SUITE("st_fifo_end")
