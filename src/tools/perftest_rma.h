/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_rma.h - what a channel of a one-sided test has, and does in place of
 * starts and waits. Main thread only.
 */
#ifndef PERFTEST_RMA_H_
#define PERFTEST_RMA_H_

#include "perftest_test.h"

#include <ucp_st.h>

struct perftest_st_flow;

/* The memory of a channel, and the keys of the other side's. */
typedef struct perftest_rma {
    ucp_st_mem_h  local;      /* That this side puts from or gets to; or NULL */
    ucp_st_mem_h  shared;     /* That the other side accesses; or NULL */
    ucp_st_mem_h  signal;     /* Of word */
    ucp_st_rkey_h far_shared; /* Or NULL */
    ucp_st_rkey_h far_signal;
    uint64_t      *word;
    int           is_mappable; /* It is memory of the library */
    uint64_t      count;       /* Signals so far */
} perftest_rma_t;


/* Registers the memory of a channel. What was made is the flow's, also if it
 * fails. */
ucs_status_t perftest_rma_create(struct perftest_st_flow *flow);

/* Swaps keys with the other side; says why if that fails. */
perftest_ret_t perftest_rma_connect(perftest_run_t *run);

/* Gives everything back that the flow has; the first error. */
ucs_status_t perftest_rma_destroy(struct perftest_st_flow *flow);

/* Enqueues the next iteration of the channel. */
ucs_status_t perftest_rma_step(struct perftest_st_flow *flow);

/* Name of the lane; "none" where this side only looks on. */
const char *perftest_rma_lane(const struct perftest_st_flow *flow);

#endif
