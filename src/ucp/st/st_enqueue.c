/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_enqueue.c - starts and waits as commands of a stream.
 *
 * A batch is checked whole, then given to the NIC as far as entries allow, then
 * enqueued as one sequence of stream commands that ends with the store of the
 * batch's number. Only then the operations' counts move on: an error leaves
 * them as they were, and what the NIC was given serves the next try.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_ctrl.h"
#include "st_lane.h"
#include "st_log.h"
#include "st_queue.h"
#include "st_worker.h"

#include <stdlib.h>

/** What makes a start a start, and a wait a wait. The lock is held. */
typedef struct ucp_st_enqueue_ops {
    /** Whether the operation may be in this batch. */
    ucs_status_t (*check)(ucp_st_queue_h queue, const ucp_st_op_t *op);
    /** Get it ready; may be repeated. */
    ucs_status_t (*prepare)(ucp_st_op_t *op);
    /** Its stream command; the operation has a lane. */
    void (*cmd)(ucp_st_op_t *op, ucs_gstream_cmd_t *cmd);
    /** The batch is enqueued. */
    void (*commit)(ucp_st_queue_h queue, ucp_st_op_t *op);
} ucp_st_enqueue_ops_t;

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
    if (op->started > op->waited) {
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

static ucs_status_t ucp_st_start_prepare(ucp_st_op_t *op)
{
    return (op->lane == NULL) ? UCS_OK : op->lane->post(op, op->started + 1);
}

static void ucp_st_start_cmd(ucp_st_op_t *op, ucs_gstream_cmd_t *cmd)
{
    op->lane->start_cmd(op, op->started + 1, cmd);
}

static void ucp_st_start_commit(ucp_st_queue_h queue, ucp_st_op_t *op)
{
    op->queue    = queue;
    op->last_seq = queue->seq;
    ++op->started;
    ++queue->worker->stats.starts;
    if (op->lane == NULL) {
        op->completed = op->started;
    }
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

static ucs_status_t ucp_st_wait_prepare(ucp_st_op_t *op)
{
    (void)op;
    return UCS_OK;
}

static void ucp_st_wait_cmd(ucp_st_op_t *op, ucs_gstream_cmd_t *cmd)
{
    op->lane->wait_cmd(op, op->started, cmd);
}

static void ucp_st_wait_commit(ucp_st_queue_h queue, ucp_st_op_t *op)
{
    op->last_seq = queue->seq;
    op->waited   = op->started;
    ++queue->worker->stats.waits;
}

static const ucp_st_enqueue_ops_t ucp_st_start_ops = {
    .check   = ucp_st_start_check,
    .prepare = ucp_st_start_prepare,
    .cmd     = ucp_st_start_cmd,
    .commit  = ucp_st_start_commit
};

static const ucp_st_enqueue_ops_t ucp_st_wait_ops = {
    .check   = ucp_st_wait_check,
    .prepare = ucp_st_wait_prepare,
    .cmd     = ucp_st_wait_cmd,
    .commit  = ucp_st_wait_commit
};

static ucs_status_t ucp_st_enqueue_check_op(ucp_st_queue_h queue,
                                            ucp_st_op_t *op,
                                            const ucp_st_enqueue_ops_t *ops)
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
    return ops->check(queue, op);
}

static ucs_status_t ucp_st_enqueue_check(ucp_st_queue_h queue,
                                         const ucp_st_op_h *op_array,
                                         size_t count,
                                         const ucp_st_enqueue_ops_t *ops)
{
    ucs_status_t status = ucp_st_queue_status(queue);
    size_t i, marked;

    for (marked = 0; (marked < count) && (status == UCS_OK); ++marked) {
        status = ucp_st_enqueue_check_op(queue, op_array[marked], ops);
        if (status != UCS_OK) {
            break;
        }
        op_array[marked]->marked = 1;
    }
    for (i = 0; i < marked; ++i) {
        op_array[i]->marked = 0;
    }
    return status;
}

/* Room for one command an operation and the store of the batch's number */
static ucs_status_t ucp_st_enqueue_grow(ucp_st_queue_h queue, size_t count)
{
    ucs_gstream_cmd_t *cmds;

    if (count < queue->max_cmds) {
        return UCS_OK;
    }
    cmds = realloc(queue->cmds, 2 * (count + 1) * sizeof(*cmds));
    if (cmds == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    queue->cmds     = cmds;
    queue->max_cmds = 2 * (count + 1);
    return UCS_OK;
}

/* All operations are good: enqueue the batch; the lock is held */
static ucs_status_t ucp_st_enqueue_batch(ucp_st_queue_h queue,
                                         const ucp_st_op_h *op_array,
                                         size_t count,
                                         const ucp_st_enqueue_ops_t *ops)
{
    size_t num_cmds     = 0;
    ucs_status_t status = UCS_OK;
    ucs_gstream_cmd_t *last;
    size_t i;

    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        status = ops->prepare(op_array[i]);
        if (op_array[i]->lane != NULL) {
            ops->cmd(op_array[i], &queue->cmds[num_cmds++]);
        }
    }
    if (status != UCS_OK) {
        return status;
    }

    last                 = &queue->cmds[num_cmds++];
    last->type           = UCS_GSTREAM_CMD_WRITE64;
    last->u.word.address = &queue->passed;
    last->u.word.value   = queue->seq + 1;
    status = ucs_gstream_enqueue(queue->stream, queue->cmds, num_cmds);
    if (status != UCS_OK) {
        return status;
    }
    ++queue->seq;
    for (i = 0; i < count; ++i) {
        ops->commit(queue, op_array[i]);
    }
    return UCS_OK;
}

static ucs_status_t ucp_st_enqueue(ucp_st_queue_h queue,
                                   const ucp_st_op_h *op_array, size_t count,
                                   const ucp_st_enqueue_ops_t *ops)
{
    ucs_status_t status;

    if ((queue == NULL) || ((op_array == NULL) && (count > 0))) {
        return UCS_ERR_INVALID_PARAM;
    }
    status = ucp_st_enqueue_grow(queue, count);
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(queue->worker);
    status = ucp_st_enqueue_check(queue, op_array, count, ops);
    if ((status == UCS_OK) && (count > 0)) {
        status = ucp_st_enqueue_batch(queue, op_array, count, ops);
    }
    ucp_st_worker_unlock(queue->worker);
    return status;
}

ucs_status_t ucp_st_enqueue_startall(ucp_st_queue_h queue,
                                     const ucp_st_op_h *ops, size_t count)
{
    return ucp_st_enqueue(queue, ops, count, &ucp_st_start_ops);
}

ucs_status_t ucp_st_enqueue_start(ucp_st_queue_h queue, ucp_st_op_h op)
{
    return ucp_st_enqueue(queue, &op, 1, &ucp_st_start_ops);
}

ucs_status_t ucp_st_enqueue_waitall(ucp_st_queue_h queue,
                                    const ucp_st_op_h *ops, size_t count)
{
    return ucp_st_enqueue(queue, ops, count, &ucp_st_wait_ops);
}

ucs_status_t ucp_st_enqueue_wait(ucp_st_queue_h queue, ucp_st_op_h op)
{
    return ucp_st_enqueue(queue, &op, 1, &ucp_st_wait_ops);
}
