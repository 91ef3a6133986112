/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_cycle.c - pairs that are made, used and freed one after the other,
 * many more than the NIC has counters: on Cassini a counter that is closed is
 * taken until its domain is closed.
 *
 * ST_CYCLES says how many pairs (default 10,000; a pair takes four counters).
 */
#include "st_cunit.h"
#include "st_pair.h"

#include <stdlib.h>
#include <string.h>

#define CYCLES_DEFAULT 10000


static unsigned cycles(void)
{
    const char *text = getenv("ST_CYCLES");

    return (text == NULL) ? CYCLES_DEFAULT : (unsigned)atoi(text);
}

/* Made, used twice and freed; data of another length each time */
static void cycle(st_pair_t *pair, st_side_t *a, st_side_t *b, unsigned number)
{
    uint8_t sbuf[64], rbuf[64];
    size_t length    = 1 + (number % sizeof(sbuf));
    ucp_st_op_h send = st_send(a, sbuf, length, 1);
    ucp_st_op_h recv = st_recv(b, rbuf, length, 1);
    unsigned use;

    st_match_ok(send, recv);
    for (use = 0; use < 2; ++use) {
        memset(sbuf, (int)(number + use), sizeof(sbuf));
        memset(rbuf, ~(int)(number + use), sizeof(rbuf));
        st_start(b, recv);
        st_start(a, send);
        st_wait(a, send);
        st_wait(b, recv);
        st_sync(a);
        st_sync(b);
        CU_ASSERT(!memcmp(sbuf, rbuf, length));
    }
    st_free2(send, recv);
}

ST_PAIR_CASE(pairs)
{
    unsigned number;
    ucp_st_op_attr_t attr;
    ucp_st_op_h send, recv;
    uint64_t word = 0;

    for (number = 0; number < cycles(); ++number) {
        cycle(pair, a, b, number);
    }

    /* And the lane is the same as at first */
    st_drain(pair);
    send = st_send(a, &word, sizeof(word), 2);
    recv = st_recv(b, &word, sizeof(word), 2);
    st_match_ok(send, recv);
    CU_ASSERT(ucp_st_op_query(send, &attr) == UCS_OK);
    CU_ASSERT(attr.lane == st_lane());
    st_free2(send, recv);
}

/* Workers, too: each has a counter for its endpoint */
ST_CASE(workers)
{
    st_side_t side;
    unsigned i;

    for (i = 0; i < 20; ++i) {
        CU_ASSERT_FATAL(st_side_init(&side));
        st_side_cleanup(&side);
    }
}

ST_SUITE("st_cycle")
