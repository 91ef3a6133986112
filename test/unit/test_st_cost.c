/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_cost.c - what an enqueue asks of the system in steady state: no
 * memory, no system call but one wake of a stream that sleeps, and no lock but
 * the one around what is given to the NIC.
 */
#include "st_cunit.h"
#include "st_intercept.h"
#include "st_pair.h"
#include "st_stream.h"

#include <stdio.h>
#include <string.h>

#define NUM_OPS 8
#define LENGTH  64
#define WARM_UP 40
#define ROUNDS  200

/** What the calling thread's enqueues asked for, summed up. */
typedef struct cost {
    st_intercept_counts_t starts;
    st_intercept_counts_t waits;
} cost_t;

static uint8_t buffers[2][NUM_OPS][LENGTH];

/* A call with all operations, and what it has asked for */
static void call(ucs_status_t (*func)(ucp_st_queue_h, const ucp_st_op_h*,
                                      size_t),
                 st_side_t *side, ucp_st_op_h *ops, st_intercept_counts_t *sum)
{
    st_intercept_counts_t counts;
    ucs_status_t status;

    st_intercept_start(ST_INTERCEPT_ST, 1);
    status = func(side->queue, ops, NUM_OPS);
    counts = st_intercept_stop();
    CU_ASSERT_EQUAL(status, UCS_OK);
    sum->allocations  += counts.allocations;
    sum->frees        += counts.frees;
    sum->mutex_locks  += counts.mutex_locks;
    sum->system_calls += counts.system_calls;
}

static void rounds(st_pair_t *pair, ucp_st_op_h ops[2][NUM_OPS], unsigned count,
                   cost_t *cost)
{
    unsigned i;
    int j;

    for (i = 0; i < count; ++i) {
        for (j = 1; j >= 0; --j) {
            call(ucp_st_enqueue_startall, &pair->side[j], ops[j],
                 &cost->starts);
            call(ucp_st_enqueue_waitall, &pair->side[j], ops[j], &cost->waits);
        }
        st_pair_sync(pair);
    }
}

static void check(const st_intercept_counts_t *counts, unsigned locks)
{
    CU_ASSERT_EQUAL(counts->allocations, 0);
    CU_ASSERT_EQUAL(counts->frees, 0);
    CU_ASSERT(counts->mutex_locks <= locks);
    CU_ASSERT(counts->system_calls <= 2 * ROUNDS);
    if (counts->allocations + counts->frees > 0) {
        printf("%lu allocations, %lu frees\n", counts->allocations,
               counts->frees);
    }
}

ST_CASE_IF(steady_state, st_intercept_is_possible(),
           "a sanitizer stands in front of the allocator")
{
    ucp_st_op_h ops[2][NUM_OPS];
    cost_t cost = {.starts = {0}};
    st_pair_t pair;
    unsigned i;

    if (st_needs_host()) {
        return; /* runtimes of others allocate */
    }
    st_pair_init(&pair);
    for (i = 0; i < NUM_OPS; ++i) {
        ops[ST_A][i] = (i % 2) ? st_rsend(&pair.side[ST_A], buffers[ST_A][i],
                                          LENGTH, i) :
                                 st_send(&pair.side[ST_A], buffers[ST_A][i],
                                         LENGTH, i);
        ops[ST_B][i] = st_recv(&pair.side[ST_B], buffers[ST_B][i], LENGTH, i);
        st_match_ok(ops[ST_A][i], ops[ST_B][i]);
    }
    rounds(&pair, ops, WARM_UP, &cost);
    memset(&cost, 0, sizeof(cost));
    rounds(&pair, ops, ROUNDS, &cost);
    check(&cost.starts, 2 * ROUNDS);
    check(&cost.waits, 0);
    for (i = 0; i < NUM_OPS; ++i) {
        st_free2(ops[ST_A][i], ops[ST_B][i]);
    }
    st_pair_cleanup(&pair);
}

ST_SUITE("st_cost")
