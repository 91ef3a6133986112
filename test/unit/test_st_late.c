/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_late.c - the trig lane where the NIC takes no more deferred work, for
 * a while or at all. The hosts make no call meanwhile: what was refused is
 * posted or carried out all the same, and the streams go on.
 */
#include "fab_intercept.h"
#include "st_cunit.h"
#include "st_flow.h"
#include "st_stream.h"
#include "st_window.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>

#define MAX_REFUSED 16  /* more than the hosts and the service thread try */
#define ROUNDS      100

/* Until a stream has run everything, without a call of ucp_st.h; the limit of
 * the case bounds it */
static void await_streams(flow_t *flow)
{
    int i;

    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(flow->pair.side[i].stream),
                        UCS_OK);
    }
}

static void check_use(flow_t *flow, uint64_t seed)
{
    CU_ASSERT_TRUE(st_check(flow->rbuf, flow->length, seed));
    CU_ASSERT_TRUE(st_is_spoiled(flow->rbuf + flow->length, 64));
    memset(flow->rbuf, ST_SPOILED, flow->length);
}

/* Uses of which that many entries are refused first */
static void refuse_first(flow_t *flow, unsigned refused, int code)
{
    st_side_t *a = &flow->pair.side[ST_A];
    st_side_t *b = &flow->pair.side[ST_B];

    st_fill(flow->sbuf, flow->length, refused);
    fab_intercept_fail_next(FAB_CALL_QUEUE_WORK, refused, code);
    st_start(b, flow->recv);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(b->stream), UCS_OK);
    st_use(a, flow->send); /* a ready one needs its receive first */
    st_wait(b, flow->recv);
    await_streams(flow);
    check_use(flow, refused);
    fab_intercept_fail_all(FAB_CALL_LAST, 0);
    st_sync(a);
    st_sync(b);
}

/* However many are refused: the last one may be any of a use's entries, with
 * others that are posted and wait for it */
ST_CASE(refused)
{
    flow_t flow;
    unsigned n;
    size_t i;

    for (i = 0; i < FLOW_NUM_PROTOS; ++i) {
        if (flow_init_proto(&flow, &flow_protos[i])) {
            for (n = 0; n <= MAX_REFUSED; ++n) {
                refuse_first(&flow, n, (n & 1) ? FI_EAGAIN : FI_ENOSPC);
            }
            flow_cleanup(&flow);
        }
    }
}

/* None of what the hosts enqueue ahead, by more than an inbox, has been posted
 * when their last call ends */
ST_CASE(refused_ahead)
{
    enum {
        USES = 40
    };
    ucp_st_stats_t stats;
    uint64_t gate;
    flow_t flow;
    unsigned k;
    size_t i;

    for (i = 0; i < FLOW_NUM_PROTOS; ++i) {
        if (flow_protos[i].is_ready ||
            !flow_init_proto(&flow, &flow_protos[i])) {
            continue;
        }
        gate = 0;
        st_fill(flow.sbuf, flow.length, i);
        fab_intercept_fail_all(FAB_CALL_QUEUE_WORK, FI_EAGAIN);
        st_hold(&flow.pair.side[ST_A], &gate);
        st_hold(&flow.pair.side[ST_B], &gate);
        for (k = 0; k < USES; ++k) {
            st_use(&flow.pair.side[ST_A], flow.send);
            st_use(&flow.pair.side[ST_B], flow.recv);
        }
        fab_intercept_fail_next(FAB_CALL_QUEUE_WORK, MAX_REFUSED, FI_EAGAIN);
        st_let_go(&gate);
        await_streams(&flow);
        fab_intercept_fail_all(FAB_CALL_LAST, 0);
        check_use(&flow, i);
        stats = st_stats(&flow.pair.side[ST_A]);
        CU_ASSERT_EQUAL(stats.late_posts, USES);
        flow_cleanup(&flow);
    }
}

/* Progress both sides until they have reaped so many additions to words */
static void progress_until(flow_t *flow, uint64_t words)
{
    ucp_st_worker_attr_t attr[2];
    int i;

    do {
        for (i = 0; i < 2; ++i) {
            (void)ucp_st_worker_progress(flow->pair.side[i].worker);
            CU_ASSERT_EQUAL(ucp_st_worker_query(flow->pair.side[i].worker,
                                                &attr[i]), UCS_OK);
        }
    } while ((attr[0].stats.atomics_fired < words) ||
             (attr[1].stats.atomics_fired < words));
}

/* A second use is late while the first one is under way, whose end a host
 * reaps: that host has tried the second one when it makes no more calls */
ST_CASE(refused_to_host)
{
    uint64_t gate;
    flow_t flow;
    int i;

    if (!flow_init(&flow, FLOW_EAGER_MAX + 8, 0)) {
        return;
    }
    for (i = 0; i < ROUNDS; ++i) {
        gate = 0;
        st_fill(flow.sbuf, flow.length, i);
        st_hold(&flow.pair.side[ST_A], &gate);
        st_use(&flow.pair.side[ST_A], flow.send);
        st_use(&flow.pair.side[ST_B], flow.recv);
        fab_intercept_fail_all(FAB_CALL_QUEUE_WORK, FI_EAGAIN);
        st_use(&flow.pair.side[ST_A], flow.send);
        st_use(&flow.pair.side[ST_B], flow.recv);
        st_let_go(&gate);
        progress_until(&flow, (2 * i) + 1);
        fab_intercept_fail_all(FAB_CALL_LAST, 0);
        await_streams(&flow);
        check_use(&flow, i);
    }
    flow_cleanup(&flow);
}

/* The same for one-sided operations: any part of them is refused, and what the
 * stream waits for. The lane waits for entries in the order of the stream. */
ST_PAIR_CASE(refused_rma)
{
    enum {
        LEN = 1000
    };
    st_window_t windows[2];
    unsigned n;

    st_windows_init(pair, windows, LEN, 1);
    for (n = 0; n <= MAX_REFUSED; ++n) {
        st_fill(windows[ST_A].memory, LEN, n);
        fab_intercept_fail_next(FAB_CALL_QUEUE_WORK, n, FI_EAGAIN);
        st_wait_signal(&windows[ST_B], 0, n + 1);
        st_put_signal(&windows[ST_A], LEN, 0, n + 1);
        st_quiet(&windows[ST_A]);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(a->stream), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(b->stream), UCS_OK);
        fab_intercept_fail_all(FAB_CALL_LAST, 0);
        CU_ASSERT_TRUE(st_check(windows[ST_B].memory, LEN, n));
        st_pair_sync(pair);
    }
    st_windows_cleanup(windows);
}

/* Nothing at all is posted: a thread carries out each write, clear-to-send and
 * addition, once */
ST_CASE(refused_always)
{
    const char *nic = getenv("ST_NIC");
    uint64_t parts;
    flow_t flow;
    size_t i;
    int k;

    if ((nic != NULL) && !strcmp(nic, "sockets")) {
        st_cunit_skip("its deferred work needs no entries of a card");
        return;
    }
    for (i = 0; i < FLOW_NUM_PROTOS; ++i) {
        if (!flow_init_proto(&flow, &flow_protos[i])) {
            continue;
        }
        fab_intercept_fail_all(FAB_CALL_QUEUE_WORK, FI_EAGAIN);
        for (k = 0; k < ROUNDS; ++k) {
            flow_use(&flow, k);
        }
        fab_intercept_fail_all(FAB_CALL_LAST, 0);
        parts = ROUNDS * flow_protos[i].writes;
        CU_ASSERT_EQUAL(st_stats(&flow.pair.side[ST_A]).writes_fired, parts);
        CU_ASSERT(st_stats(&flow.pair.side[ST_A]).proxied >= parts + ROUNDS);
        flow_cleanup(&flow);
    }
}

int main(int argc, char **argv)
{
    setenv("FI_CXIEMU_DEVICES", "4", 0);
    setenv("FI_CXIEMU_AGAIN", "0", 1);  /* the cases say what is refused */
    setenv("UCX_ST_LANES", "trig", 1); /* no other one is to help out */
    return st_cunit_main("st_late", argc, argv);
}
