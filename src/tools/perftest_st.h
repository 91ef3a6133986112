/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_st.h - the engine of the st tests: persistent operations of ucp_st
 * that streams start and wait for. Main thread only, but for what the comments
 * leave to streams.
 */
#ifndef PERFTEST_ST_H_
#define PERFTEST_ST_H_

#include "perftest_rma.h"
#include "perftest_side.h"

#include <ucp_st.h>

#define PERFTEST_ST_ACKS 2


/* An operation, and whether it is started and not waited for. */
typedef struct perftest_st_use {
    ucp_st_op_h op;
    int         busy;
    const char  *what; /* For messages */
} perftest_st_use_t;


/* A channel of this engine. */
typedef struct perftest_st_flow {
    perftest_channel_t *channel;
    perftest_stream_t  *stream;
    perftest_rma_t     rma;                     /* In place of what follows, of
                                                   a one-sided test */
    perftest_st_use_t  *sends;                  /* Of each slot, or NULL */
    perftest_st_use_t  *recvs;
    perftest_st_use_t  acks[PERFTEST_ST_ACKS];  /* Receives at the sender, sends
                                                   at the receiver */
    uint64_t           words[PERFTEST_ST_ACKS]; /* Their payload */
    unsigned           num_acks;                /* 0 in a ping-pong */
    int                is_running;              /* Not in what comes before */
} perftest_st_flow_t;


/* Name of a lane. */
const char *perftest_st_lane_name(ucp_st_lane_t lane);

/* The flow of a channel. */
static inline perftest_st_flow_t *perftest_st_flow(perftest_channel_t *channel)
{
    return (perftest_st_flow_t*)channel->engine;
}

/* Makes the flow of a channel and its operations. They are added to 'ops',
 * which has room, and '*count' grows. */
ucs_status_t perftest_st_flow_create(perftest_channel_t *channel,
                                     ucp_st_op_h *ops, size_t *count);

/* Frees it; NULL is legal. Returns what an operation was not freed for. */
ucs_status_t perftest_st_flow_destroy(perftest_st_flow_t *flow);

/* The use that an operation belongs to, NULL if it is of another flow. */
const perftest_st_use_t *perftest_st_flow_find(const perftest_st_flow_t *flow,
                                               ucp_st_op_h op);

/* Starts what the other side may send to at once. */
ucs_status_t perftest_st_flow_prepare(perftest_st_flow_t *flow);

/* Enqueues the next iteration of the channel. */
ucs_status_t perftest_st_flow_step(perftest_st_flow_t *flow);

/* Waits for all that is started and not waited for, however it ends: after a
 * failure there may be uses that ended well before, and are to be waited for
 * before their operations can be freed. Then the stream has nothing to run. */
void perftest_st_flow_drain(perftest_st_flow_t *flow);

#endif
