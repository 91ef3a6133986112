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
 * queue, and what it writes belongs to the thread that calls for that queue. An
 * operation that fails meanwhile has a start that is not complete, so that it
 * puts the queue in error itself, and its waits pass.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_fork.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_queue.h"
#include "core/st_trace.h"
#include "core/st_worker.h"

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

/* What starts and waits do each in its way */
typedef struct ucp_st_enqueue_kind {
    ucs_status_t       (*check)(ucp_st_queue_h queue, const ucp_st_op_t *op);
    /* Add commands for operations, which are good, to the queue's */
    ucs_status_t       (*make)(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                               size_t count, size_t *num_cmds);
    ucp_st_trace_cmd_t trace;
    /* The operation's commands were enqueued in the queue's last batch */
    void               (*commit)(ucp_st_queue_h queue, ucp_st_op_t *op);
} ucp_st_enqueue_kind_t;

/* Marks what is good, from the first one on: so many */
static ucs_status_t ucp_st_enqueue_check(ucp_st_queue_h queue,
                                         const ucp_st_op_h *ops, size_t count,
                                         const ucp_st_enqueue_kind_t *kind,
                                         size_t *marked_p)
{
    ucs_status_t status;
    ucp_st_op_t *op;

    for (*marked_p = 0; *marked_p < count; ++*marked_p) {
        op = ops[*marked_p];
        if (op == NULL) {
            return UCS_ERR_INVALID_PARAM;
        }
        if (op->worker != queue->worker) {
            ucs_error("operation %p belongs to another worker than the queue",
                      op);
            return UCS_ERR_INVALID_PARAM;
        }
        if (op->marked) {
            ucs_error("operation %p is there twice", op);
            return UCS_ERR_INVALID_PARAM;
        }
        status = kind->check(queue, op);
        if (status != UCS_OK) {
            return status;
        }
        op->marked = 1;
    }
    return UCS_OK;
}

/* Where events are recorded each operation has its span */
static ucs_status_t
ucp_st_enqueue_make_traced(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                           size_t count, const ucp_st_enqueue_kind_t *kind,
                           size_t *num_cmds)
{
    ucs_status_t status = UCS_OK;
    size_t i;

    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        if (ops[i]->lane != NULL) {
            *num_cmds += ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, ops[i],
                                          &queue->cmds[*num_cmds]);
        }
        status = kind->make(queue, &ops[i], 1, num_cmds);
        if (ops[i]->lane != NULL) {
            *num_cmds += ucp_st_trace_cmd(kind->trace, ops[i],
                                          &queue->cmds[*num_cmds]);
        }
    }
    return status;
}

/* All or nothing */
static ucs_status_t ucp_st_enqueue_all(ucp_st_queue_h queue,
                                       const ucp_st_op_h *ops, size_t count,
                                       const ucp_st_enqueue_kind_t *kind)
{
    ucs_status_t status = ucp_st_queue_status(queue);
    size_t num_cmds     = 0;
    size_t marked, i;

    if ((status != UCS_OK) || (count == 0)) {
        return status;
    }
    status = ucp_st_enqueue_check(queue, ops, count, kind, &marked);
    if (status == UCS_OK) {
        status = ucs_trace_is_on() ?
                 ucp_st_enqueue_make_traced(queue, ops, count, kind,
                                            &num_cmds) :
                 kind->make(queue, ops, count, &num_cmds);
    }
    if (status == UCS_OK) {
        status = ucp_st_queue_enqueue(queue, num_cmds);
    }
    for (i = 0; i < marked; ++i) {
        ops[i]->marked = 0;
        if (status == UCS_OK) {
            kind->commit(queue, ops[i]);
        }
    }
    return status;
}

static ucs_status_t ucp_st_enqueue_begin(ucp_st_queue_h queue,
                                         const ucp_st_op_h *ops, size_t count)
{
    ucs_status_t status = ucp_st_check_call((queue != NULL) &&
                                            ((ops != NULL) || (count == 0)));

    if (status != UCS_OK) {
        return status;
    }
    return ucp_st_queue_reserve(queue, count * (UCP_ST_LANE_MAX_CMDS +
                                                 UCP_ST_TRACE_MAX_CMDS));
}

static ucp_st_lane_t ucp_st_enqueue_lane(const ucp_st_op_t *op)
{
    return (op->lane == NULL) ? UCP_ST_LANE_NONE : op->lane->id;
}

/* The lock is held */
static ucs_status_t ucp_st_start_make(ucp_st_queue_h queue,
                                      const ucp_st_op_h *ops, size_t count,
                                      size_t *num_cmds)
{
    ucp_st_op_t *op;
    ucs_status_t status;
    size_t i;

    for (i = 0; i < count; ++i) {
        op = ops[i];
        if (op->lane == NULL) {
            continue;
        }
        status = op->lane->op.post(op, op->started + 1);
        if (status != UCS_OK) {
            return status;
        }
        *num_cmds += op->lane->op.start(op, queue, op->started + 1,
                                        &queue->cmds[*num_cmds]);
    }
    return UCS_OK;
}

static void ucp_st_start_commit(ucp_st_queue_h queue, ucp_st_op_t *op)
{
    op->queue     = queue;
    op->last_seq  = queue->seq;
    op->start_seq = queue->seq;
    ++op->started;
    if (op->lane == NULL) {
        op->completed = op->started;
    }
    ucp_st_queue_count(&queue->started[ucp_st_enqueue_lane(op)], 1);
}

static const ucp_st_enqueue_kind_t ucp_st_start_kind = {
    .check  = ucp_st_start_check,
    .make   = ucp_st_start_make,
    .trace  = UCP_ST_TRACE_START,
    .commit = ucp_st_start_commit
};

ucs_status_t ucp_st_enqueue_startall(ucp_st_queue_h queue,
                                     const ucp_st_op_h *ops, size_t count)
{
    uint64_t begin      = ucs_trace_begin();
    ucs_status_t status = ucp_st_enqueue_begin(queue, ops, count);

    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(queue->worker);
    status = ucp_st_enqueue_all(queue, ops, count, &ucp_st_start_kind);
    ucp_st_worker_unlock(queue->worker);
    ucs_trace_end("ucp_st_enqueue_startall", begin);
    return status;
}

ucs_status_t ucp_st_enqueue_start(ucp_st_queue_h queue, ucp_st_op_h op)
{
    return ucp_st_enqueue_startall(queue, &op, 1);
}

/* The words of all operations are waited for together, then come the commands
 * that follow their waits */
static ucs_status_t ucp_st_wait_make(ucp_st_queue_h queue,
                                     const ucp_st_op_h *ops, size_t count,
                                     size_t *num_cmds)
{
    ucs_gstream_word_t *words = ucp_st_queue_words(queue);
    size_t num_words          = 0;
    size_t i;

    for (i = 0; i < count; ++i) {
        if (ops[i]->lane != NULL) {
            num_words += ops[i]->lane->op.wait_words(ops[i], &words[num_words]);
        }
    }
    *num_cmds += ucp_st_queue_add_waits(queue, num_words,
                                        &queue->cmds[*num_cmds]);
    for (i = 0; i < count; ++i) {
        if (ops[i]->lane != NULL) {
            *num_cmds += ops[i]->lane->op.land(ops[i], &queue->cmds[*num_cmds]);
        }
    }
    return UCS_OK;
}

static void ucp_st_wait_commit(ucp_st_queue_h queue, ucp_st_op_t *op)
{
    op->last_seq = queue->seq;
    op->waited   = op->started;
    ucp_st_queue_count(&queue->waited[ucp_st_enqueue_lane(op)], 1);
}

static const ucp_st_enqueue_kind_t ucp_st_wait_kind = {
    .check  = ucp_st_wait_check,
    .make   = ucp_st_wait_make,
    .trace  = UCP_ST_TRACE_WAIT,
    .commit = ucp_st_wait_commit
};

ucs_status_t ucp_st_enqueue_waitall(ucp_st_queue_h queue,
                                    const ucp_st_op_h *ops, size_t count)
{
    uint64_t begin      = ucs_trace_begin();
    ucs_status_t status = ucp_st_enqueue_begin(queue, ops, count);

    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_enqueue_all(queue, ops, count, &ucp_st_wait_kind);
    ucs_trace_end("ucp_st_enqueue_waitall", begin);
    return status;
}

ucs_status_t ucp_st_enqueue_wait(ucp_st_queue_h queue, ucp_st_op_h op)
{
    return ucp_st_enqueue_waitall(queue, &op, 1);
}
