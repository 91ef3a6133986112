/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trace.h - what is recorded of operations (UCX_ST_TRACE).
 *
 * Whatever the lane, the stream commands of a start and of a wait stand between
 * two functions of this file, which make a span of them:
 *
 *     [push] [what the lane does for a start] [pop: span "start", arrow out]
 *     [push] [what the lane does for a wait]  [pop: span "wait", arrow in]
 *
 * The arrow goes from a send's start to its receive's wait. Its id follows from
 * what both sides know: their workers' uuids, their operations' ids, and the
 * number of the use.
 */
#ifndef UCP_ST_TRACE_H_
#define UCP_ST_TRACE_H_

#include "core/st_op.h"

#include <ucs_trace.h>

/** Stream commands that a span adds. */
#define UCP_ST_TRACE_MAX_CMDS 2

/** Of an operation that is matched while events are recorded. `started` and
 *  `waited` are its stream's, `move_begin` is protected by the worker's lock,
 *  the rest is constant. */
typedef struct ucp_st_trace_op {
    const ucp_st_op_t *op;
    uint64_t          pair;       /* of both sides */
    uint64_t          started;    /* uses whose start has run */
    uint64_t          waited;     /* uses whose wait has run */
    uint64_t          move_begin; /* of the use that a thread moves */
} ucp_st_trace_op_t;

/** What lane trig does, as far as the host sees it. */
typedef enum {
    UCP_ST_TRACE_POST, /**< Deferred work was given to the NIC */
    UCP_ST_TRACE_REAP  /**< The NIC has said that it is done */
} ucp_st_trace_nic_t;

/** The operation was matched: record it from now on, if UCX_ST_TRACE is set.
 *  The lock is held. */
void ucp_st_trace_match(ucp_st_op_t *op);

/** Stream commands around those of an operation's start or wait, or of messages
 *  that are used once or waits for one-sided operations (no operation). */
typedef enum {
    UCP_ST_TRACE_PUSH,        /**< Begins a span */
    UCP_ST_TRACE_START,       /**< Ends that of a start */
    UCP_ST_TRACE_WAIT,        /**< Of a wait */
    UCP_ST_TRACE_BATCH_START, /**< Of a start of messages */
    UCP_ST_TRACE_BATCH_WAIT,  /**< Of a wait for them */
    UCP_ST_TRACE_SIGNAL_WAIT, /**< Of a wait for a signal */
    UCP_ST_TRACE_QUIET        /**< Of a wait for puts, gets and signals */
} ucp_st_trace_cmd_t;

/** ucp_st_trace_cmd() while events are recorded. */
size_t ucp_st_trace_make_cmd(ucp_st_trace_cmd_t which, const ucp_st_op_t *op,
                             ucs_gstream_cmd_t *cmd);

/** Make a command of a span; returns how many: 0 if nothing is recorded. Reads
 *  only what the operation's match wrote. */
static inline size_t ucp_st_trace_cmd(ucp_st_trace_cmd_t which,
                                      const ucp_st_op_t *op,
                                      ucs_gstream_cmd_t *cmd)
{
    return ucs_trace_is_on() ? ucp_st_trace_make_cmd(which, op, cmd) : 0;
}

/** Deferred work of the trig lane: `entry` is a constant, its `number` counts
 *  from 1. The lock is held. */
void ucp_st_trace_nic(const ucp_st_op_t *op, ucp_st_trace_nic_t what,
                      const char *entry, uint64_t number);

/** A thread of the library begins to move a use's data. The lock is held. */
static inline void ucp_st_trace_move(ucp_st_op_t *op)
{
    if (ucs_trace_is_on() && (op->trace != NULL)) {
        op->trace->move_begin = ucs_trace_time();
    }
}

/** A thread of the library has moved a use's data. The lock is held. */
void ucp_st_trace_moved(const ucp_st_op_t *op, uint64_t use);

#endif
