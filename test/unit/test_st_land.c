/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_land.c - where the data of small messages is before their receive is
 * waited for: not in its buffer.
 */
#include "st_cunit.h"
#include "st_flow.h"

#include <string.h>

#define LEN  1000
#define USES 100 /* an inbox has room for 32 */

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

    st_fill(flow->sbuf, LEN, seed);
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
    CU_ASSERT_TRUE(st_check(flow->rbuf, LEN, use));
    CU_ASSERT_TRUE(st_is_spoiled(&flow->rbuf[LEN], 64));
    memset(flow->rbuf, ST_SPOILED, LEN);
}

/* The receive has started: the data comes with the wait all the same */
FLOW_CASE(started, LEN, 0)
{
    uint64_t k;

    for (k = 1; k <= USES; ++k) {
        start(b, flow->recv);
        send_one(flow, k);
        until_landed(flow, k);
        CU_ASSERT_TRUE(st_is_spoiled(flow->rbuf, LEN + 64));
        wait_for(b, flow->recv);
        land_check(flow, k);
    }
}

/* It has not: nothing is written to the buffer, but for what its wait takes,
 * however many uses have come; then it has again */
FLOW_CASE(not_started, LEN, 0)
{
    uint64_t k = 0;
    int ahead;

    while (k < USES) {
        for (ahead = 1; ahead <= 5; ++ahead) {
            send_one(flow, k + ahead);
        }
        for (ahead = 1; ahead <= 5; ++ahead) {
            CU_ASSERT_TRUE(st_is_spoiled(flow->rbuf, LEN + 64));
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
FLOW_CASE(streams, LEN, 0)
{
    st_side_t more;
    uint64_t k;

    st_more_init(&more, b);
    for (k = 1; k <= USES; ++k) {
        start((k % 3 == 0) ? &more : b, flow->recv);
        send_one(flow, k);
        wait_for((k % 3 == 0) ? &more : b, flow->recv);
        land_check(flow, k);
    }
    st_more_cleanup(&more);
}

ST_SUITE("st_land")
