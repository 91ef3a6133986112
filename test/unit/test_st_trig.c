/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_trig.c - the trig lane's protocols: at the borders of the sizes that
 * they are for, far ahead of the streams, and when they end in the middle.
 */
#include "st_cunit.h"
#include "st_flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_LEN (FLOW_EAGER_MAX + 64)
#define MANY    1000 /* uses, with the host far ahead of the stream */

#define LAND_LEN  1000
#define LAND_USES 100 /* an inbox has room for 32 */

/* Every length next to a border of a protocol or of a size of inboxes: the
 * right protocol on both sides, the right bytes, and not one more */
ST_CASE(borders)
{
    static const size_t lengths[] = {
        0, 1, 7, 8, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097,
        FLOW_EAGER_MAX - 1, FLOW_EAGER_MAX, FLOW_EAGER_MAX + 1
    };
    const char *name;
    flow_t flow;
    int is_ready;
    size_t i;
    int k;

    for (is_ready = 0; is_ready < 2; ++is_ready) {
        for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
            if ((i == 0) && !flow_init(&flow, MAX_LEN, is_ready)) {
                return;
            }
            st_free2(flow.send, flow.recv);
            flow_match(&flow, lengths[i], is_ready);
            name = is_ready ? "ready" :
                   ((lengths[i] == 0) || (lengths[i] > FLOW_EAGER_MAX)) ?
                   "standard" : "eager-ahead";
            flow_check_protocol(flow.send, name, lengths[i]);
            flow_check_protocol(flow.recv, name, lengths[i]);
            for (k = 0; k < 3; ++k) {
                flow_use(&flow, k);
            }
        }
        flow_cleanup(&flow);
    }
}

/** A length next to a border of what one write, or one device, is for. */
typedef struct {
    const char *name;
    size_t     length;
    unsigned   writes; /* of a use */
    const char *devices;
    const char *chunk_max;
} border_t;

static const border_t chunk_borders[] = {
    {"ready", 0, 1, NULL, "1000"},
    {"ready", 999, 1, NULL, "1000"},
    {"ready", 1000, 1, NULL, "1000"},
    {"chunked", 1001, 2, NULL, "1000"},
    {"chunked", 2000, 2, NULL, "1000"},
    {"chunked", 2001, 3, NULL, "1000"},
    {"chunked", 100000, 100, NULL, "1000"},
    {"chunked", 40, 40, NULL, "1"},
    {"ready", 8191, 1, "2", NULL},
    {"chunked-2", 8192, 2, "2", NULL},
    {"chunked-2", 8193, 2, "2", NULL},
    {"chunked-2", 8192, 4, "2", "4095"},
    {"chunked-2", 12287, 2, "4", NULL},
    {"chunked-3", 12288, 3, "4", NULL},
    {"chunked-3", 16383, 3, "4", NULL},
    {"chunked-4", 16384, 4, "4", NULL},
    {"chunked-4", 1000001, 4, "4", NULL},
    {"chunked-4", 100000, 3 * 26 + 25, "4", "1000"}
};

/* The same for long messages, which ready and standard sends split alike */
ST_CASE(chunk_borders)
{
    const border_t *border;
    proto_t proto;
    ucp_st_stats_t stats;
    flow_t flow;
    size_t i;
    int k;

    for (i = 0; i < 2 * ST_CUNIT_COUNT(chunk_borders); ++i) {
        border = &chunk_borders[i / 2];
        proto  = (proto_t){
            .length    = border->length,
            .is_ready  = i % 2,
            .devices   = border->devices,
            .chunk_max = border->chunk_max
        };
        setenv("UCX_ST_EAGER_MAX", "0", 1);
        if (flow_init_proto(&flow, &proto)) {
            proto.name = (!proto.is_ready && !strcmp(border->name, "ready")) ?
                         "standard" : border->name;
            flow_check_protocol(flow.send, proto.name, proto.length);
            flow_check_protocol(flow.recv, proto.name, proto.length);
            for (k = 0; k < 3; ++k) {
                flow_use(&flow, k);
            }
            stats = st_stats(&flow.pair.side[ST_A]);
            CU_ASSERT_EQUAL(stats.writes_fired, 3 * border->writes);
            CU_ASSERT_EQUAL(stats.chunks, 3 * (border->writes - 1));
            flow_cleanup(&flow);
        }
        unsetenv("UCX_ST_EAGER_MAX");
    }
}

/* S10: a use may have more writes than there are entries */
ST_CASE(chunks_without_entries)
{
    flow_t flow;
    int k;

    setenv("UCX_CXI_TRIG_DEFERRED_ENTRIES", "4", 1);
    setenv("UCX_ST_EAGER_MAX", "0", 1);
    flow_set_chunks(NULL, "100");
    if (flow_init(&flow, 901, 0)) {
        for (k = 0; k < 20; ++k) {
            flow_use(&flow, k);
        }
        CU_ASSERT_EQUAL(st_stats(&flow.pair.side[ST_A]).writes_fired, 20 * 10);
        flow_cleanup(&flow);
    }
    flow_set_chunks(NULL, NULL);
    unsetenv("UCX_ST_EAGER_MAX");
    unsetenv("UCX_CXI_TRIG_DEFERRED_ENTRIES");
}

/* The setting counts on both sides: the smaller one decides */
ST_CASE(limit_of_both)
{
    const char *name;
    flow_t flow;
    int small, is_longer;
    st_side_t *side = flow.pair.side;

    flow.sbuf = malloc(MAX_LEN);
    flow.rbuf = malloc(MAX_LEN);
    for (small = ST_A; small <= ST_B; ++small) {
        setenv("UCX_ST_EAGER_MAX", "100", 1);
        CU_ASSERT_FATAL(st_side_init(&side[small]));
        unsetenv("UCX_ST_EAGER_MAX");
        CU_ASSERT_FATAL(st_side_init(&side[1 - small]));
        side[ST_A].peer = st_side_peer(&side[ST_A], &side[ST_B]);
        side[ST_B].peer = st_side_peer(&side[ST_B], &side[ST_A]);
        for (is_longer = 0; is_longer < 2; ++is_longer) {
            flow_match(&flow, 100 + is_longer, 0);
            name = is_longer ? "standard" : "eager-ahead";
            flow_check_protocol(flow.send, name, 100 + is_longer);
            flow_check_protocol(flow.recv, name, 100 + is_longer);
            flow_use(&flow, is_longer);
            st_free2(flow.send, flow.recv);
        }
        st_pair_cleanup(&flow.pair);
    }
    flow_free(&flow);
}

/* The longest inbox that may be asked for, with one device and with all: the
 * pools of the devices lie beside each other */
ST_CASE(longest_inbox)
{
    static const char *const devices[] = {"1", "4"};
    flow_t flow;
    size_t i;
    int k;

    setenv("UCX_ST_EAGER_MAX", "1m", 1);
    for (i = 0; i < 2; ++i) {
        flow_set_chunks(devices[i], NULL);
        if (flow_init(&flow, 1 << 20, 0)) {
            for (k = 0; k < 8; ++k) { /* on any of the devices */
                st_free2(flow.send, flow.recv);
                flow_match(&flow, 1 << 20, 0);
                flow_check_protocol(flow.send, "eager-ahead", 1 << 20);
                flow_use(&flow, k);
            }
            flow_cleanup(&flow);
        }
    }
    flow_set_chunks(NULL, NULL);
    unsetenv("UCX_ST_EAGER_MAX");
}

/* Two sides with so many devices each; how many A has got */
static unsigned devices_init(st_pair_t *pair, unsigned count_a,
                             unsigned count_b)
{
    const unsigned counts[2] = {count_a, count_b};
    char text[8];
    int i;

    for (i = 0; i < 2; ++i) {
        snprintf(text, sizeof(text), "%u", counts[i]);
        setenv("UCX_ST_TRIG_DEVICES", text, 1);
        CU_ASSERT_FATAL(st_side_init(&pair->side[i]));
    }
    unsetenv("UCX_ST_TRIG_DEVICES");
    for (i = 0; i < 2; ++i) {
        pair->side[i].peer = st_side_peer(&pair->side[i], &pair->side[1 - i]);
    }
    return flow_count_devices(pair->side[ST_A].worker);
}

/* Many small pairs, spread over the devices that both sides have */
static void devices_transfer(st_pair_t *pair)
{
    enum {
        PAIRS = 16,
        LEN   = 300
    };
    static uint8_t sbuf[PAIRS][LEN], rbuf[PAIRS][LEN];
    st_side_t *a = &pair->side[ST_A];
    st_side_t *b = &pair->side[ST_B];
    ucp_st_op_h send[PAIRS], recv[PAIRS];
    int i, k;

    for (i = 0; i < PAIRS; ++i) {
        send[i] = st_send(a, sbuf[i], LEN, i);
        recv[i] = st_recv(b, rbuf[i], LEN, i);
        st_match_ok(send[i], recv[i]);
    }
    for (k = 0; k < 20; ++k) {
        for (i = 0; i < PAIRS; ++i) {
            st_fill(sbuf[i], LEN, i + k);
        }
        CU_ASSERT_EQUAL(ucp_st_enqueue_startall(b->queue, recv, PAIRS), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_startall(a->queue, send, PAIRS), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(a->queue, send, PAIRS), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(b->queue, recv, PAIRS), UCS_OK);
        st_sync(a);
        st_sync(b);
        for (i = 0; i < PAIRS; ++i) {
            CU_ASSERT_TRUE(st_check(rbuf[i], LEN, i + k));
        }
    }
    for (i = 0; i < PAIRS; ++i) {
        st_free2(send[i], recv[i]);
    }
}

/* A side has as many devices as it asks for and there are; both sides use those
 * that both have */
ST_CASE(devices)
{
    static const unsigned counts[][2] = {{1, 1}, {2, 2}, {4, 4}, {1, 4},
                                         {3, 2}};
    st_pair_t pair;
    unsigned got;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(counts); ++i) {
        memset(&pair, 0, sizeof(pair));
        got = devices_init(&pair, counts[i][0], counts[i][1]);
        if (got < counts[i][0]) {
            st_cunit_skip("the provider has too few devices for all of it");
        }
        devices_transfer(&pair);
        st_pair_cleanup(&pair);
    }
}

ST_CASE(no_devices)
{
    ucp_st_worker_params_t params = {.field_mask = 0};
    ucp_st_worker_h worker;

    setenv("UCX_ST_TRIG_DEVICES", "0", 1);
    CU_ASSERT_EQUAL(ucp_st_worker_create(&params, &worker),
                    UCS_ERR_INVALID_PARAM);
    unsetenv("UCX_ST_TRIG_DEVICES");
}

/* S10: with two entries a side, however far the host is ahead; a ready send
 * cannot be so far ahead of its receive. Sockets takes some 5 ms for a use that
 * is posted late. */
ST_CASE(few_entries)
{
    const char *nic = getenv("ST_NIC");
    unsigned uses   = ((nic != NULL) && !strcmp(nic, "sockets")) ? MANY / 5 :
                                                                   MANY;
    const proto_t *proto;
    ucp_st_stats_t stats;
    flow_t flow;
    size_t i;

    for (i = 0; i < FLOW_NUM_PROTOS; ++i) {
        proto = &flow_protos[i];
        if (proto->is_ready) {
            continue;
        }
        setenv("UCX_CXI_TRIG_DEFERRED_ENTRIES", "2", 1);
        if (flow_init_proto(&flow, proto)) {
            flow_check_protocol(flow.send, proto->name, proto->length);
            flow_check_protocol(flow.recv, proto->name, proto->length);
            flow_run_ahead(&flow, uses);
            stats = st_stats(&flow.pair.side[ST_A]);
            CU_ASSERT_EQUAL(stats.writes_fired, uses * proto->writes);
            CU_ASSERT_EQUAL(stats.eager, (proto->ahead > 0) ? uses : 0);
            CU_ASSERT(stats.late_posts > 0);
            flow_cleanup(&flow);
        }
        unsetenv("UCX_CXI_TRIG_DEFERRED_ENTRIES");
    }
}

/* Pairs come and go, several at a time: what one leaves behind is the next
 * one's, and nothing stays */
ST_PAIR_CASE(reuse)
{
    enum {
        PAIRS = 24
    };
    static uint8_t sbuf[PAIRS][256], rbuf[PAIRS][256];
    ucp_st_op_h send[PAIRS], recv[PAIRS];
    ucp_st_stats_t stats;
    int i, round;
    size_t length;

    for (round = 0; round < 6; ++round) {
        for (i = 0; i < PAIRS; ++i) {
            length  = 1 + ((i * 37 + round * 11) % 256);
            send[i] = st_send(a, sbuf[i], length, i);
            recv[i] = st_recv(b, rbuf[i], 256, i);
            st_fill(sbuf[i], 256, i + round);
            memset(rbuf[i], ST_SPOILED, 256);
            st_match_ok(send[i], recv[i]);
        }
        CU_ASSERT_EQUAL(ucp_st_enqueue_startall(a->queue, send, PAIRS), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_startall(b->queue, recv, PAIRS), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(b->queue, recv, PAIRS), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(a->queue, send, PAIRS), UCS_OK);
        st_pair_sync(pair);
        for (i = 0; i < PAIRS; ++i) {
            length = 1 + ((i * 37 + round * 11) % 256);
            CU_ASSERT_TRUE(st_check(rbuf[i], length, i + round));
            CU_ASSERT_TRUE(st_is_spoiled(rbuf[i] + length, 256 - length));
            st_free2(send[i], recv[i]);
        }
    }
    st_drain(pair);
    stats = st_stats(b);
    CU_ASSERT_EQUAL(stats.ops, 0);
    CU_ASSERT_EQUAL(stats.entries, 0);
}

/* The next use of the receive gives that seed */
static void expect_use(flow_t *flow, uint64_t seed)
{
    st_side_t *b = &flow->pair.side[ST_B];

    st_wait(b, flow->recv);
    st_sync(b);
    CU_ASSERT_TRUE(st_check(flow->rbuf, flow->length, seed));
    memset(flow->rbuf, ST_SPOILED, flow->length);
}

/* Eager-ahead sends complete without their receives as far as the inbox has
 * room, and the receive's buffer stays as it is until the receive's wait; one
 * more waits until half of the inbox is free */
static void eager_is_ahead(size_t length, int ahead)
{
    ucp_st_worker_attr_t attr;
    flow_t flow;
    st_side_t *a, *b;
    int k;

    if (!flow_init(&flow, length, 0)) {
        return;
    }
    a = &flow.pair.side[ST_A];
    b = &flow.pair.side[ST_B];
    for (k = 1; k <= ahead; ++k) {
        st_fill(flow.sbuf, length, k);
        st_use(a, flow.send);
        st_sync(a);
    }
    st_fill(flow.sbuf, length, k);
    st_start(a, flow.send);
    st_sync(a); /* so that the start comes before what makes room for it */
    st_wait(a, flow.send);
    CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, NULL), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucp_st_worker_query(a->worker, &attr), UCS_OK);
    CU_ASSERT_EQUAL((int)attr.stats.writes_fired, ahead);
    for (k = 1; k <= ahead; ++k) {
        /* Half of the inbox makes room for the one more */
        CU_ASSERT((k > (ahead / 2)) ||
                  (ucp_st_queue_query(a->queue, NULL) == UCS_INPROGRESS));
        st_start(b, flow.recv);
        st_sync(b);
        CU_ASSERT_TRUE(st_is_spoiled(flow.rbuf, length + 64));
        expect_use(&flow, k);
    }
    st_sync(a);
    st_start(b, flow.recv);
    expect_use(&flow, k);
    flow_query(b, 1 + (uint64_t)ahead, &attr);
    CU_ASSERT(attr.stats.cts_fired <= (1 + (uint64_t)ahead) / (ahead / 2));
    CU_ASSERT_EQUAL(attr.stats.eager, 1 + (uint64_t)ahead);
    CU_ASSERT_EQUAL(ucp_st_worker_query(a->worker, &attr), UCS_OK);
    flow_cleanup(&flow);
}

ST_CASE(eager_is_ahead)
{
    size_t i;

    for (i = 0; i < FLOW_NUM_PROTOS; ++i) {
        if (flow_protos[i].ahead > 0) {
            eager_is_ahead(flow_protos[i].length, flow_protos[i].ahead);
        }
    }
}

/* Where the data of small messages is before their receive is waited for: not
 * in its buffer */

static void start(st_side_t *side, ucp_st_op_h op)
{
    st_start(side, op);
    st_sync(side);
}

static void wait_for(st_side_t *side, ucp_st_op_h op)
{
    st_wait(side, op);
    st_sync(side);
}

static void send_one(flow_t *flow, uint64_t seed)
{
    st_side_t *a = &flow->pair.side[ST_A];

    st_fill(flow->sbuf, LAND_LEN, seed);
    start(a, flow->send);
    wait_for(a, flow->send);
}

/* Until a use of the receive has landed, which no stream waits for */
static void until_landed(flow_t *flow, uint64_t use)
{
    ucp_st_op_attr_t attr = {.completed = 0};

    do {
        CU_ASSERT_EQUAL(ucp_st_op_query(flow->recv, &attr), UCS_OK);
    } while (attr.completed < use);
}

/* What has landed of a use is there, and nothing else */
static void land_check(flow_t *flow, uint64_t use)
{
    CU_ASSERT_TRUE(st_check(flow->rbuf, LAND_LEN, use));
    CU_ASSERT_TRUE(st_is_spoiled(&flow->rbuf[LAND_LEN], 64));
    memset(flow->rbuf, ST_SPOILED, LAND_LEN);
}

/* The receive has started: the data comes with the wait all the same */
FLOW_CASE(landed, LAND_LEN, 0)
{
    uint64_t k;

    for (k = 1; k <= LAND_USES; ++k) {
        start(b, flow->recv);
        send_one(flow, k);
        until_landed(flow, k);
        CU_ASSERT_TRUE(st_is_spoiled(flow->rbuf, LAND_LEN + 64));
        wait_for(b, flow->recv);
        land_check(flow, k);
    }
}

/* It has not: nothing is written to the buffer, but for what its wait takes,
 * however many uses have come; then it has again */
FLOW_CASE(landed_not_started, LAND_LEN, 0)
{
    uint64_t k = 0;
    int ahead;

    while (k < LAND_USES) {
        for (ahead = 1; ahead <= 5; ++ahead) {
            send_one(flow, k + ahead);
        }
        for (ahead = 1; ahead <= 5; ++ahead) {
            CU_ASSERT_TRUE(st_is_spoiled(flow->rbuf, LAND_LEN + 64));
            start(b, flow->recv);
            wait_for(b, flow->recv);
            land_check(flow, k + ahead);
        }
        k += 6;
        start(b, flow->recv);
        send_one(flow, k);
        wait_for(b, flow->recv);
        land_check(flow, k);
    }
}

/* The receive goes on, on a stream and on another one */
FLOW_CASE(landed_streams, LAND_LEN, 0)
{
    st_side_t more;
    uint64_t k;

    st_more_init(&more, b);
    for (k = 1; k <= LAND_USES; ++k) {
        start((k % 3 == 0) ? &more : b, flow->recv);
        send_one(flow, k);
        wait_for((k % 3 == 0) ? &more : b, flow->recv);
        land_check(flow, k);
    }
    st_more_cleanup(&more);
}

/* The sender of eager-ahead data goes before the receive is started, in three
 * ways: its operation is freed, and its worker destroyed before or after this
 * side hears of that. The data is there; there is no next use. */
ST_CASE(eager_sender_gone)
{
    st_side_t *a, *b;
    flow_t flow;
    int how;

    for (how = 0; how < 3; ++how) {
        if (!flow_init(&flow, 512, 0)) {
            return;
        }
        a = &flow.pair.side[ST_A];
        b = &flow.pair.side[ST_B];
        flow_use(&flow, 5);
        st_fill(flow.sbuf, 512, 6);
        st_use(a, flow.send);
        st_sync(a);
        st_free(flow.send);
        if (how > 0) {
            st_side_cleanup(a);
        }
        if (how != 1) {
            ucp_st_worker_progress(b->worker);
        }
        st_use(b, flow.recv);
        st_sync(b);
        CU_ASSERT_TRUE(st_check(flow.rbuf, 512, 6));
        if (how == 0) {
            CU_ASSERT_TRUE(st_start_becomes(&flow.pair, b, flow.recv,
                                            UCS_ERR_CANCELED));
        } else {
            CU_ASSERT_EQUAL(st_match_end(flow.recv), UCS_OK);
        }
        st_free(flow.recv);
        if (how == 0) {
            st_side_cleanup(a);
        }
        st_side_cleanup(b);
        flow_free(&flow);
    }
}

/* Wait on the host until the side's queue is in error */
static void await_error(st_pair_t *pair, int who, ucp_st_op_h op)
{
    ucp_st_queue_error_t error = {0};
    ucs_status_t status;

    do {
        status = ucp_st_queue_query(pair->side[who].queue, &error);
        ucp_st_worker_progress(pair->side[ST_A].worker);
        ucp_st_worker_progress(pair->side[ST_B].worker);
    } while (status == UCS_INPROGRESS);
    CU_ASSERT_EQUAL(status, UCS_ERR_CANCELED);
    CU_ASSERT_EQUAL(error.status, UCS_ERR_CANCELED);
    CU_ASSERT_PTR_EQUAL(error.op, op);
}

/* What is to happen after a few uses of a flow, when the half of `leaver` goes
 * while the other one waits, in all the uses that it can start */
typedef void (*leave_func_t)(flow_t *flow, int leaver, ucp_st_op_h op[2]);

/* In all protocols, for both halves */
static void leave_in_the_middle(int uses, leave_func_t leave)
{
    ucp_st_op_h op[2];
    flow_t flow;
    int leaver, k;
    size_t i;

    for (i = 0; i < 2 * FLOW_NUM_PROTOS; ++i) {
        leaver = i % 2;
        if (flow_protos[i / 2].is_ready && (leaver == ST_B)) {
            continue; /* a ready send waits for nobody */
        }
        if (!flow_init_proto(&flow, &flow_protos[i / 2])) {
            continue;
        }
        op[ST_A] = flow.send;
        op[ST_B] = flow.recv;
        for (k = 1; k <= uses; ++k) {
            flow_use(&flow, k);
        }
        for (k = 0; k < 2 + flow_protos[i / 2].ahead; ++k) {
            st_use(&flow.pair.side[1 - leaver], op[1 - leaver]);
        }
        st_free(op[leaver]);
        leave(&flow, leaver, op);
        flow_free(&flow);
    }
}

static void leave_freed(flow_t *flow, int leaver, ucp_st_op_h op[2])
{
    await_error(&flow->pair, 1 - leaver, op[1 - leaver]);
    st_free(op[1 - leaver]);
    st_drain(&flow->pair);
    st_pair_cleanup(&flow->pair);
}

/* S9: one half is freed while the other one waits, a few uses on; what waits is
 * released, also uses that were enqueued behind it */
ST_CASE_CALL(freed_in_the_middle, leave_in_the_middle(2, leave_freed))

static void leave_gone(flow_t *flow, int leaver, ucp_st_op_h op[2])
{
    st_side_t *left = &flow->pair.side[1 - leaver];

    st_side_cleanup(&flow->pair.side[leaver]);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(left->queue, NULL), UCS_ERR_CANCELED);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(left->queue, op[1 - leaver]),
                    UCS_ERR_CANCELED);
    st_free(op[1 - leaver]);
    st_side_cleanup(left);
}

/* The same where the whole worker goes */
ST_CASE_CALL(gone_in_the_middle, leave_in_the_middle(1, leave_gone))

/* Uses until the NIC fails one, or all; what both sides' queues say then */
static void use_until_failure(flow_t *flow, ucs_status_t status[2])
{
    st_side_t *side = flow->pair.side;
    ucp_st_op_h op[2];
    int i, k;

    op[ST_A] = flow->send;
    op[ST_B] = flow->recv;
    for (i = 0; i < 2; ++i) {
        status[i] = UCS_OK;
        for (k = 0; (k < MANY) && (status[i] == UCS_OK); ++k) {
            status[i] = ucp_st_enqueue_start(side[i].queue, op[i]);
            if (status[i] == UCS_OK) {
                status[i] = ucp_st_enqueue_wait(side[i].queue, op[i]);
            }
        }
    }
    for (i = 0; i < 2; ++i) {
        status[i] = ucp_st_queue_wait(side[i].queue, NULL);
    }
}

/* S9: a NIC that fails operations at random, data, clear-to-sends and words
 * alike: both sides' streams are released, and both hosts are told */
ST_CASE(injected_failures)
{
    ucs_status_t status[2];
    flow_t flow;
    size_t i;
    int k;

    if (getenv("FI_CXIEMU_FAIL") == NULL) {
        st_cunit_skip("needs FI_CXIEMU_FAIL");
        return;
    }
    for (i = 0; i < FLOW_NUM_PROTOS; ++i) {
        if (!flow_protos[i].is_ready &&
            flow_init_proto(&flow, &flow_protos[i])) {
            use_until_failure(&flow, status);
            for (k = 0; k < 2; ++k) { /* one may fail after the other's end */
                CU_ASSERT((status[k] == UCS_OK) ||
                          (status[k] == UCS_ERR_IO_ERROR));
            }
            flow_cleanup(&flow);
        }
    }
}

/* Only what belongs to uses is to fail: control messages go another way, and
 * nobody asks whether the peer is there, for a question that fails is a peer
 * that is lost */
static void fail_uses(void)
{
    char seed[32];

    unsetenv("UCX_TLS");
    setenv("UCX_ST_PING_INTERVAL", "10m", 1);
    snprintf(seed, sizeof(seed), "%ld", (long)time(NULL));
    setenv("FI_CXIEMU_SEED", seed, 0);
    printf("FI_CXIEMU_SEED=%s\n", getenv("FI_CXIEMU_SEED"));
}

int main(int argc, char **argv)
{
    setenv("FI_CXIEMU_DEVICES", "4", 0);
    setenv("UCX_ST_LANES", "trig", 1); /* no other one is to help out */
    if (getenv("FI_CXIEMU_FAIL") != NULL) {
        fail_uses();
    }
    return st_cunit_main("st_trig", argc, argv);
}
