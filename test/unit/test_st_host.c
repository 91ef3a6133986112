/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_host.c - the host lane: sizes and rendezvous, as the second choice
 * after the trig lane, ends of pairs with messages under way, sleep.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* syscall() */
#endif

#include "../integration/st_any.h"
#include "st_cunit.h"
#include "st_hook.h"
#include "st_pair.h"
#include "st_stream.h"

#include "ctrl/st_ctrl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_LEN ((1u << 20) + 5)
#define LEN     (64u << 10)
#define PAIRS   8

static uint8_t *sbuf, *rbuf; /* of MAX_LEN bytes */

/* Connects of the service thread over TCP, and those in which it may wait */
static unsigned connects, waiting_connects;

/* In place of libc's, also for UCX */
int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    char thread[16] = "";

    (void)prctl(PR_GET_NAME, thread);
    if ((address->sa_family == AF_INET) && !strcmp(thread, "ucp-st")) {
        __atomic_add_fetch(&connects, 1, __ATOMIC_SEQ_CST);
        if (!(fcntl(fd, F_GETFL) & O_NONBLOCK)) {
            __atomic_add_fetch(&waiting_connects, 1, __ATOMIC_SEQ_CST);
        }
    }
    return (int)syscall(SYS_connect, fd, address, length);
}

/* Pairs take the host lane, and messages of more than 1 KiB a rendezvous if
 * `is_rndv` is set. */
static void host_pair_init(st_pair_t *pair, int is_rndv)
{
    char *lanes = st_env_set("UCX_ST_LANES", "host");
    char *rndv  = is_rndv ? st_env_set("UCX_RNDV_THRESH", "1k") : NULL;

    st_pair_init(pair);
    if (is_rndv) {
        st_env_restore("UCX_RNDV_THRESH", rndv);
    }
    st_env_restore("UCX_ST_LANES", lanes);
    sbuf = malloc(MAX_LEN);
    rbuf = malloc(MAX_LEN);
}

static void host_pair_cleanup(st_pair_t *pair)
{
    st_pair_cleanup(pair);
    free(sbuf);
    free(rbuf);
}

/* Some uses of a message to the other side, or to itself, each checked */
static void transfer(st_pair_t *pair, ucp_st_op_h send, ucp_st_op_h recv,
                     size_t length)
{
    int k;

    for (k = 0; k < 3; ++k) {
        st_fill(sbuf, length, length + k);
        memset(rbuf, 0xee, MAX_LEN);
        st_start(&pair->side[ST_A], send);
        st_use(&pair->side[ST_B], recv);
        st_wait(&pair->side[ST_A], send);
        st_pair_sync(pair);
        CU_ASSERT_TRUE(st_check(rbuf, length, length + k));
        CU_ASSERT((length == MAX_LEN) || (rbuf[length] == 0xee));
    }
}

/* The same with a message that was used */
static void used_pair_init(st_pair_t *pair, int is_rndv, ucp_st_op_h op[2])
{
    host_pair_init(pair, is_rndv);
    op[ST_A] = st_send(&pair->side[ST_A], sbuf, LEN, 1);
    op[ST_B] = st_recv(&pair->side[ST_B], rbuf, LEN, 1);
    st_match_ok(op[ST_A], op[ST_B]);
    transfer(pair, op[ST_A], op[ST_B], LEN);
}

static void run_sizes(int is_rndv)
{
    static const size_t lengths[] = {0, 1, 8, 1024, 1025, 8192, LEN, MAX_LEN};
    ucp_st_worker_attr_t attr;
    ucp_st_op_h send, recv;
    st_pair_t pair;
    size_t i;

    host_pair_init(&pair, is_rndv);
    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        send = (i & 1) ? st_rsend(&pair.side[ST_A], sbuf, lengths[i], 1) :
                         st_send(&pair.side[ST_A], sbuf, lengths[i], 1);
        recv = st_recv(&pair.side[ST_B], rbuf, MAX_LEN, 1);
        st_match_ok(send, recv);
        transfer(&pair, send, recv, lengths[i]);
        st_free2(send, recv);
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_worker_query(pair.side[i].worker, &attr),
                        UCS_OK);
        CU_ASSERT_EQUAL(attr.num_lanes, 1);
        CU_ASSERT_EQUAL(attr.lanes[0], UCP_ST_LANE_HOST);
        CU_ASSERT_EQUAL(attr.stats.proxied, 3 * ST_CUNIT_COUNT(lengths));
        CU_ASSERT_EQUAL(attr.stats.fallbacks, 0);
        CU_ASSERT_EQUAL(attr.stats.errors, 0);
        CU_ASSERT_EQUAL(attr.stats.writes_posted, 0);
    }
    host_pair_cleanup(&pair);
}

ST_CASE_CALL(sizes, run_sizes(0))
ST_CASE_CALL(sizes_rndv, run_sizes(1))

/* A message to oneself, by rendezvous */
ST_CASE(self_rndv)
{
    st_side_t *side;
    ucp_st_op_h op[2];
    st_pair_t pair;

    host_pair_init(&pair, 1);
    side       = &pair.side[ST_A];
    ucp_st_peer_destroy(side->peer);
    side->peer = side->self;
    side->self = st_side_peer(side, side);
    op[0]      = st_send(side, sbuf, MAX_LEN, 3);
    op[1]      = st_recv(side, rbuf, MAX_LEN, 3);
    CU_ASSERT_EQUAL(ucp_st_matchall(op, 2, NULL), UCS_OK);
    st_fill(sbuf, MAX_LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(side->queue, op, 2), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(side->queue, op, 2), UCS_OK);
    st_sync(side);
    CU_ASSERT_TRUE(st_check(rbuf, MAX_LEN, 1));
    st_free2(op[0], op[1]);
    host_pair_cleanup(&pair);
}

/* A pair that prefers lane trig. Zero, and nothing made, if this is not to be
 * tested here. */
static int mixed_pair_init(st_pair_t *pair)
{
    char *lanes, *eager;

    if (st_lane() != UCP_ST_LANE_TRIG) {
        st_cunit_skip("the trig lane is left out");
        return 0;
    }
    lanes = st_env_set("UCX_ST_LANES", "trig,host");
    eager = st_env_set("UCX_ST_EAGER_MAX", "0");
    st_pair_init(pair);
    st_env_restore("UCX_ST_EAGER_MAX", eager);
    st_env_restore("UCX_ST_LANES", lanes);
    return 1;
}

/* The lane that a matched pair has taken, the same on both sides */
static ucp_st_lane_t lane_of(const ucp_st_op_h op[2])
{
    ucp_st_op_attr_t attr[2];
    int i;

    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_op_query(op[i], &attr[i]), UCS_OK);
    }
    CU_ASSERT_EQUAL(attr[0].lane, attr[1].lane);
    return attr[0].lane;
}

/* What a side says about its pairs, `on_host` of them on the host lane */
static void check_fallbacks(const st_side_t *side, unsigned on_host)
{
    ucp_st_worker_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_worker_query(side->worker, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.num_lanes, 2);
    CU_ASSERT_EQUAL(attr.lanes[0], UCP_ST_LANE_TRIG);
    CU_ASSERT_EQUAL(attr.lanes[1], UCP_ST_LANE_HOST);
    CU_ASSERT_EQUAL(attr.stats.matches, PAIRS);
    CU_ASSERT_EQUAL(attr.stats.fallbacks, on_host);
    CU_ASSERT_EQUAL(attr.stats.lanes[UCP_ST_LANE_HOST].matches, on_host);
    CU_ASSERT_EQUAL(attr.stats.lanes[UCP_ST_LANE_TRIG].matches,
                    PAIRS - on_host);
}

/* S10: a pair that finds no counters takes the next lane, and is counted */
ST_CASE(fallback)
{
    const char *nic = getenv("ST_NIC");
    uint64_t value[2][PAIRS];
    ucp_st_op_h op[PAIRS][2];
    unsigned on_host = 0;
    st_pair_t pair;
    int i, k;

    if ((nic != NULL) && (!strcmp(nic, "sockets") || !strcmp(nic, "cxi"))) {
        st_cunit_skip("only the emulated card can have few counters");
        return;
    }
    if (!mixed_pair_init(&pair)) {
        return;
    }
    for (i = 0; i < PAIRS; ++i) {
        op[i][ST_A] = st_send(&pair.side[ST_A], &value[ST_A][i], 8, i);
        op[i][ST_B] = st_recv(&pair.side[ST_B], &value[ST_B][i], 8, i);
        st_match_ok(op[i][ST_A], op[i][ST_B]);
        on_host += (lane_of(op[i]) == UCP_ST_LANE_HOST);
    }
    CU_ASSERT((on_host > 0) && (on_host < PAIRS));
    check_fallbacks(&pair.side[ST_A], on_host);
    check_fallbacks(&pair.side[ST_B], on_host);
    for (k = 0; k < 3; ++k) {
        for (i = 0; i < PAIRS; ++i) {
            value[ST_A][i] = (10 * k) + i;
            st_start(&pair.side[ST_A], op[i][ST_A]);
            st_use(&pair.side[ST_B], op[i][ST_B]);
            st_wait(&pair.side[ST_A], op[i][ST_A]);
        }
        st_pair_sync(&pair);
        for (i = 0; i < PAIRS; ++i) {
            CU_ASSERT_EQUAL((int)value[ST_B][i], (10 * k) + i);
        }
    }
    for (i = 0; i < PAIRS; ++i) {
        st_free2(op[i][ST_A], op[i][ST_B]);
    }
    st_pair_cleanup(&pair);
}

/* A side that has the host lane alone, and one that would like another */
ST_CASE(one_side)
{
    char *lanes = st_env_set("UCX_ST_LANES", "trig,host");
    ucp_st_op_attr_t attr;
    ucp_st_op_h send, recv;
    st_pair_t pair;
    st_side_t *a, *b;

    a       = &pair.side[ST_A];
    b       = &pair.side[ST_B];
    st_side_init(a);
    setenv("UCX_ST_LANES", "host", 1);
    st_side_init(b);
    st_env_restore("UCX_ST_LANES", lanes);
    a->peer = st_side_peer(a, b);
    b->peer = st_side_peer(b, a);
    sbuf    = malloc(MAX_LEN);
    rbuf    = malloc(MAX_LEN);
    send    = st_send(a, sbuf, LEN, 1);
    recv    = st_recv(b, rbuf, LEN, 1);
    st_match_ok(send, recv);
    CU_ASSERT_EQUAL(ucp_st_op_query(send, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.lane, UCP_ST_LANE_HOST);
    CU_ASSERT_EQUAL(ucp_st_op_query(recv, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.lane, UCP_ST_LANE_HOST);
    transfer(&pair, send, recv, LEN);
    st_free2(send, recv);
    host_pair_cleanup(&pair);
}

/* One side has started a use when the other one frees its half: the use is
 * released and nothing of it is left, whether the message was small enough to
 * be there already or not */
static void run_freed(int is_rndv, int waiter)
{
    ucp_st_queue_error_t error = {0};
    ucp_st_op_h op[2];
    st_pair_t pair;

    used_pair_init(&pair, is_rndv, op);
    memset(rbuf, 0xee, LEN);
    st_use(&pair.side[waiter], op[waiter]);
    st_free(op[1 - waiter]);
    while (ucp_st_queue_query(pair.side[waiter].queue, &error) ==
           UCS_INPROGRESS) {
        ucp_st_worker_progress(pair.side[1 - waiter].worker);
    }
    CU_ASSERT_EQUAL(error.status, UCS_ERR_CANCELED);
    CU_ASSERT_PTR_EQUAL(error.op, op[waiter]);
    CU_ASSERT_EQUAL(rbuf[0], 0xee);
    CU_ASSERT_EQUAL(rbuf[LEN - 1], 0xee);
    st_free(op[waiter]);
    host_pair_cleanup(&pair);
}

ST_CASE(freed_receive)
{
    run_freed(0, ST_A);
    run_freed(1, ST_A);
}

ST_CASE(freed_send)
{
    run_freed(0, ST_B);
    run_freed(1, ST_B);
}

/* A worker ends with a message that nobody took, and its peer hears of it */
static void run_unconsumed(int is_rndv)
{
    ucp_st_queue_error_t error = {0};
    ucp_st_op_h op[2];
    st_pair_t pair;

    used_pair_init(&pair, is_rndv, op);
    st_use(&pair.side[ST_A], op[ST_A]);
    st_free(op[ST_B]);
    st_side_leave(&pair.side[ST_B], &pair.side[ST_A]);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(pair.side[ST_A].queue, &error),
                    UCS_ERR_CANCELED);
    st_free(op[ST_A]);
    st_side_cleanup(&pair.side[ST_A]);
    free(sbuf);
    free(rbuf);
}

ST_CASE(unconsumed)
{
    run_unconsumed(0);
    run_unconsumed(1);
}

/* Messages of this kind get the number of a use that has not come yet; with
 * the hook set. The numbers in the head: operation, use, sender. */
static unsigned wrong_id;

static ucs_status_t send_wrong(unsigned id, void *header)
{
    uint64_t *numbers = header;

    numbers[1] += (id == wrong_id);
    return UCS_OK;
}

/* The operation that gets such a message fails and writes nothing, and its
 * stream goes on; the other side is told */
static void run_wrong(unsigned id, int to)
{
    ucp_st_queue_error_t error = {0};
    uint64_t gate              = 0;
    ucp_st_op_h op[2];
    st_pair_t pair;
    int i;

    used_pair_init(&pair, 0, op);
    memset(rbuf, 0xee, LEN);
    wrong_id = id;
    st_hook_am_send(send_wrong);
    for (i = 0; i < 2; ++i) { /* all is enqueued before anything fails */
        st_hold(&pair.side[i], &gate);
        st_use(&pair.side[i], op[i]);
    }
    st_let_go(&gate);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(pair.side[to].queue, &error),
                    UCS_ERR_IO_ERROR);
    CU_ASSERT_PTR_EQUAL(error.op, op[to]);
    CU_ASSERT((to == ST_A) || (rbuf[0] == 0xee));
    CU_ASSERT((to == ST_A) || (rbuf[LEN - 1] == 0xee));
    st_hook_am_send(NULL);
    /* A use of the receive that is complete already stays so */
    CU_ASSERT_EQUAL(ucp_st_queue_wait(pair.side[!to].queue, NULL),
                    (to == ST_A) ? UCS_OK : UCS_ERR_IO_ERROR);
    CU_ASSERT_TRUE(st_start_becomes(&pair, &pair.side[!to], op[!to],
                                    UCS_ERR_IO_ERROR));
    st_free2(op[ST_A], op[ST_B]);
    host_pair_cleanup(&pair);
}

ST_CASE(wrong_use)
{
    run_wrong(UCP_ST_NET_AM_DATA, ST_B);
    run_wrong(UCP_ST_NET_AM_ACK, ST_A);
}

/* While a stream waits for a message that does not come nobody works for it */
ST_CASE(sleeps)
{
    ucp_st_op_h op[2];
    st_pair_t pair;

    used_pair_init(&pair, 0, op);
    st_use(&pair.side[ST_B], op[ST_B]);
    /* A GPU polls what it waits for; its stand-in has threads that do */
    st_cunit_expect_idle((st_any_type() == UCS_GSTREAM_TYPE_HOST) ? NULL :
                                                                    "ucp-st");
    st_use(&pair.side[ST_A], op[ST_A]);
    st_pair_sync(&pair);
    st_free2(op[ST_A], op[ST_B]);
    host_pair_cleanup(&pair);
}

static int runs_tcp(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls != NULL) && !strncmp(tls, "tcp", 3);
}

/* A node that is gone does not answer; the thread serves other peers meanwhile,
 * and does not wait */
ST_CASE_IF(connects_at_once, runs_tcp(), "UCX_TLS is not tcp")
{
    ucp_st_op_h op[2];
    st_pair_t pair;

    connects = waiting_connects = 0;
    used_pair_init(&pair, 0, op);
    CU_ASSERT(connects > 0);
    CU_ASSERT(waiting_connects == 0);
    st_free2(op[ST_A], op[ST_B]);
    host_pair_cleanup(&pair);
}

int main(int argc, char **argv)
{
    setenv("FI_CXIEMU_CNTRS", "24", 1); /* not for all of PAIRS */
    return st_cunit_main("st_host", argc, argv);
}
