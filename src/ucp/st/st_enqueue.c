/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_enqueue.c - starts and waits as commands of a stream.
 *
 * A batch is checked whole, then given to the lanes as far as they have room,
 * then enqueued as one sequence of stream commands that ends with the store of
 * the batch's number. Only then the operations' counts move on: an error leaves
 * them as they were, and what a lane was given serves the next try.
 *
 * A start gives work to the lane and so takes the worker's lock. A wait takes
 * no lock: what it reads of an operation was written by a start of the same
 * queue, and what it writes belongs to who calls for that queue. An operation
 * that fails meanwhile has a start that is not complete, so that it puts the
 * queue in error itself, and its waits pass.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_ctrl.h"
#include "st_fork.h"
#include "st_lane.h"
#include "st_log.h"
#include "st_queue.h"
#include "st_trace.h"
#include "st_worker.h"

static ucp_st_lane_t ucp_st_enqueue_lane(const ucp_st_op_t *op)
{
    return (op->lane == NULL) ? UCP_ST_LANE_NONE : op->lane->id;
}

/* The lock is held */
static ucs_status_t ucp_st_start_check(ucp_st_queue_h queue,
                                       const ucp_st_op_t *op)
{
    if (op->state == UCP_ST_OP_FAILED) {
        return op->status;
    }
    if (op->state != UCP_ST_OP_MATCHED) {
        ucs_error("start of operation %p, which is not matched", op);
        return UCS_ERR_NOT_CONNECTED;
    }
    if (op->started >= op->max_uses) {
        ucs_error("start of operation %p, whose peer has freed its half", op);
        return UCS_ERR_CANCELED;
    }
    if ((op->started > op->waited) && !ucp_st_op_is_left(op)) {
        ucs_error("start of operation %p, which was started and not waited for",
                  op);
        return UCS_ERR_BUSY;
    }
    if ((op->queue != NULL) && (op->queue != queue) &&
        (op->queue->seen < op->last_seq)) {
        ucs_error("start of operation %p, whose last wait the host has not "
                  "seen pass on another queue", op);
        return UCS_ERR_BUSY;
    }
    return UCS_OK;
}

static ucs_status_t ucp_st_wait_check(ucp_st_queue_h queue,
                                      const ucp_st_op_t *op)
{
    if (op->started == op->waited) {
        ucs_error("wait for operation %p, which is not started", op);
        return UCS_ERR_NO_MESSAGE;
    }
    if (op->queue != queue) {
        ucs_error("wait for operation %p on another queue than its start's",
                  op);
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

typedef ucs_status_t (*ucp_st_check_func_t)(ucp_st_queue_h queue,
                                            const ucp_st_op_t *op);

/* In line with the next one, so that `check` is no pointer any more */
static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_st_enqueue_check_op(ucp_st_queue_h queue, ucp_st_op_t *op,
                        ucp_st_check_func_t check)
{
    if (op == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (op->worker != queue->worker) {
        ucs_error("operation %p belongs to another worker than the queue", op);
        return UCS_ERR_INVALID_PARAM;
    }
    if (op->marked) {
        ucs_error("operation %p is there twice", op);
        return UCS_ERR_INVALID_PARAM;
    }
    return check(queue, op);
}

/* Marks what it has looked at, from the first one on: so many */
static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_st_enqueue_check(ucp_st_queue_h queue, const ucp_st_op_h *ops, size_t count,
                     ucp_st_check_func_t check, size_t *marked_p)
{
    ucs_status_t status = ucp_st_queue_status(queue);
    size_t marked       = 0;

    while ((marked < count) && (status == UCS_OK)) {
        status = ucp_st_enqueue_check_op(queue, ops[marked], check);
        if (status == UCS_OK) {
            ops[marked++]->marked = 1;
        }
    }
    *marked_p = marked;
    return status;
}

typedef void (*ucp_st_commit_func_t)(ucp_st_queue_h queue, ucp_st_op_t *op);

/* All of them were enqueued, unless that failed */
static UCS_F_ALWAYS_INLINE void
ucp_st_enqueue_end(ucp_st_queue_h queue, const ucp_st_op_h *ops, size_t marked,
                   ucp_st_commit_func_t commit, ucs_status_t status)
{
    size_t i;

    for (i = 0; i < marked; ++i) {
        ops[i]->marked = 0;
        if (status == UCS_OK) {
            commit(queue, ops[i]);
        }
    }
}

/* As ucp_st_trace_cmd(), which looks at each call */
static UCS_F_ALWAYS_INLINE size_t
ucp_st_enqueue_trace(int is_traced, ucp_st_trace_cmd_t which,
                     const ucp_st_op_t *op, ucs_gstream_cmd_t *cmd)
{
    return is_traced ? ucp_st_trace_make_cmd(which, op, cmd) : 0;
}

static void ucp_st_start_commit(ucp_st_queue_h queue, ucp_st_op_t *op)
{
    op->queue    = queue;
    op->last_seq = queue->seq;
    ++op->started;
    ucp_st_queue_count(&queue->started[ucp_st_enqueue_lane(op)], 1);
    if (op->lane == NULL) {
        op->completed = op->started;
    }
}

/* All operations are good: enqueue their starts; the lock is held */
static ucs_status_t ucp_st_start_batch(ucp_st_queue_h queue,
                                       const ucp_st_op_h *ops, size_t count)
{
    ucs_gstream_cmd_t *cmds = queue->cmds;
    int is_traced           = ucs_trace_is_on();
    size_t num_cmds         = 0;
    ucs_status_t status     = UCS_OK;
    ucp_st_op_t *op;
    size_t i;

    if ((ops[0]->started == 0) && (ops[0]->lane != NULL) &&
        (ops[0]->lane->join != NULL)) {
        ops[0]->lane->join(ops, count);
    }
    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        op = ops[i];
        if (op->lane != NULL) {
            status    = op->lane->post(op, op->started + 1);
            num_cmds += ucp_st_enqueue_trace(is_traced, UCP_ST_TRACE_PUSH, op,
                                             &cmds[num_cmds]);
            num_cmds += op->lane->start_cmds(op, queue, op->started + 1,
                                             &cmds[num_cmds]);
            num_cmds += ucp_st_enqueue_trace(is_traced, UCP_ST_TRACE_START, op,
                                             &cmds[num_cmds]);
        }
    }
    return (status == UCS_OK) ? ucp_st_queue_enqueue(queue, num_cmds) : status;
}

static ucs_status_t ucp_st_enqueue_begin(ucp_st_queue_h queue,
                                         const ucp_st_op_h *ops, size_t count)
{
    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    if ((queue == NULL) || ((ops == NULL) && (count > 0))) {
        return UCS_ERR_INVALID_PARAM;
    }
    return ucp_st_queue_reserve(queue, count * (UCP_ST_LANE_MAX_CMDS +
                                                 UCP_ST_TRACE_MAX_CMDS));
}

ucs_status_t ucp_st_enqueue_startall(ucp_st_queue_h queue,
                                     const ucp_st_op_h *ops, size_t count)
{
    uint64_t begin      = ucs_trace_begin();
    ucs_status_t status = ucp_st_enqueue_begin(queue, ops, count);
    size_t marked;

    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(queue->worker);
    status = ucp_st_enqueue_check(queue, ops, count, ucp_st_start_check,
                                  &marked);
    if ((status == UCS_OK) && (count > 0)) {
        status = ucp_st_start_batch(queue, ops, count);
    }
    ucp_st_enqueue_end(queue, ops, marked, ucp_st_start_commit, status);
    ucp_st_worker_unlock(queue->worker);
    ucs_trace_end("ucp_st_enqueue_startall", begin);
    return status;
}

ucs_status_t ucp_st_enqueue_start(ucp_st_queue_h queue, ucp_st_op_h op)
{
    return ucp_st_enqueue_startall(queue, &op, 1);
}

static void ucp_st_wait_commit(ucp_st_queue_h queue, ucp_st_op_t *op)
{
    op->last_seq = queue->seq;
    op->waited   = op->started;
    ucp_st_queue_count(&queue->waited[ucp_st_enqueue_lane(op)], 1);
}

/* What follows the waits, or where events are recorded each wait, so that a
 * use's copies are inside of its span */
static size_t ucp_st_wait_land(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                               size_t count, size_t num_cmds)
{
    ucp_st_op_t *op;
    size_t i;

    for (i = 0; i < count; ++i) {
        op = ops[i];
        if ((op->lane != NULL) && (op->lane->land_cmds != NULL)) {
            num_cmds += op->lane->land_cmds(op, queue, op->started,
                                            &queue->cmds[num_cmds]);
        }
    }
    return num_cmds;
}

/* All operations are good: enqueue the waits for them */
static ucs_status_t ucp_st_wait_batch(ucp_st_queue_h queue,
                                      const ucp_st_op_h *ops, size_t count)
{
    ucs_gstream_cmd_t *cmds = queue->cmds;
    int is_traced           = ucs_trace_is_on();
    int has_lands           = 0;
    size_t num_cmds         = 0;
    ucp_st_op_t *op;
    size_t i;

    for (i = 0; i < count; ++i) {
        op = ops[i];
        if (op->lane != NULL) {
            num_cmds  += ucp_st_enqueue_trace(is_traced, UCP_ST_TRACE_PUSH, op,
                                              &cmds[num_cmds]);
            num_cmds  += op->lane->wait_cmds(op, op->started, &cmds[num_cmds]);
            has_lands |= (op->lane->land_cmds != NULL);
            if (is_traced) {
                num_cmds  = ucp_st_wait_land(queue, &ops[i], 1, num_cmds);
                num_cmds += ucp_st_trace_make_cmd(UCP_ST_TRACE_WAIT, op,
                                                  &cmds[num_cmds]);
            }
        }
    }
    if (has_lands && !is_traced) {
        num_cmds = ucp_st_wait_land(queue, ops, count, num_cmds);
    }
    return ucp_st_queue_enqueue(queue, num_cmds);
}

ucs_status_t ucp_st_enqueue_waitall(ucp_st_queue_h queue,
                                    const ucp_st_op_h *ops, size_t count)
{
    uint64_t begin      = ucs_trace_begin();
    ucs_status_t status = ucp_st_enqueue_begin(queue, ops, count);
    size_t marked;

    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_enqueue_check(queue, ops, count, ucp_st_wait_check,
                                  &marked);
    if ((status == UCS_OK) && (count > 0)) {
        status = ucp_st_wait_batch(queue, ops, count);
    }
    ucp_st_enqueue_end(queue, ops, marked, ucp_st_wait_commit, status);
    ucs_trace_end("ucp_st_enqueue_waitall", begin);
    return status;
}

ucs_status_t ucp_st_enqueue_wait(ucp_st_queue_h queue, ucp_st_op_h op)
{
    return ucp_st_enqueue_waitall(queue, &op, 1);
}
