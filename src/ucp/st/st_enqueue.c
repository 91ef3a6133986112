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

/* The commands of a call, in the queue's `cmds` */
typedef struct ucp_st_enqueue_cmds {
    size_t   count;
    uint64_t ops[UCP_ST_LANE_LAST]; /* that they are for, by lane */
} ucp_st_enqueue_cmds_t;

/* What starts and waits do each in its way. Functions that are given one are in
 * line, so that these are, too. */
typedef struct ucp_st_enqueue_kind {
    /* Whether all is as it mostly is, at a glance: check(), and the worker is
     * the queue's */
    int                (*is_usual)(ucp_st_queue_h queue, const ucp_st_op_t *op);
    ucs_status_t       (*check)(ucp_st_queue_h queue, const ucp_st_op_t *op);
    /* All operations of the call are good */
    void               (*begin)(const ucp_st_op_h *ops, size_t count);
    /* Add commands for operations, which are good */
    ucs_status_t       (*make)(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                               size_t count, ucp_st_enqueue_cmds_t *cmds);
    ucp_st_trace_cmd_t trace;
    /* It was enqueued in batch `seq` */
    void               (*commit)(ucp_st_queue_h queue, ucp_st_op_t *op,
                                 uint64_t seq);
    uint64_t           *(*totals)(ucp_st_queue_h queue); /* by lane */
} ucp_st_enqueue_kind_t;

static UCS_F_NOINLINE ucs_status_t
ucp_st_enqueue_check_op(ucp_st_queue_h queue, const ucp_st_op_t *op,
                        const ucp_st_enqueue_kind_t *kind)
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
    return kind->check(queue, op);
}

/* Marks what it has looked at, from the first one on: so many */
static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_st_enqueue_check(ucp_st_queue_h queue, const ucp_st_op_h *ops, size_t count,
                     const ucp_st_enqueue_kind_t *kind, size_t *marked_p)
{
    ucs_status_t status = UCS_OK;
    ucp_st_op_t *op;
    size_t i;

    for (i = 0; i < count; ++i) {
        op = ops[i];
        if (ucs_unlikely((op == NULL) || op->marked ||
                         !kind->is_usual(queue, op))) {
            status = ucp_st_enqueue_check_op(queue, op, kind);
            if (status != UCS_OK) {
                break;
            }
        }
        op->marked = 1;
    }
    *marked_p = i;
    return status;
}

/* Where events are recorded each operation has its span */
static UCS_F_NOINLINE ucs_status_t
ucp_st_enqueue_make_traced(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                           size_t count, const ucp_st_enqueue_kind_t *kind,
                           ucp_st_enqueue_cmds_t *cmds)
{
    ucs_status_t status = UCS_OK;
    size_t i;

    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        if (ops[i]->lane != NULL) {
            cmds->count += ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, ops[i],
                                            &queue->cmds[cmds->count]);
        }
        status = kind->make(queue, &ops[i], 1, cmds);
        if (ops[i]->lane != NULL) {
            cmds->count += ucp_st_trace_cmd(kind->trace, ops[i],
                                            &queue->cmds[cmds->count]);
        }
    }
    return status;
}

/* All operations are good */
static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_st_enqueue_batch(ucp_st_queue_h queue, const ucp_st_op_h *ops, size_t count,
                     const ucp_st_enqueue_kind_t *kind)
{
    ucp_st_enqueue_cmds_t cmds = {.count = 0};
    ucs_status_t status;
    unsigned lane;

    status = ucs_trace_is_on() ?
             ucp_st_enqueue_make_traced(queue, ops, count, kind, &cmds) :
             kind->make(queue, ops, count, &cmds);
    if (status == UCS_OK) {
        status = ucp_st_queue_enqueue(queue, cmds.count);
    }
    if (status != UCS_OK) {
        return status;
    }
    for (lane = 0; lane < UCP_ST_LANE_LAST; ++lane) {
        ucp_st_queue_count(&kind->totals(queue)[lane], cmds.ops[lane]);
    }
    return UCS_OK;
}

static UCS_F_ALWAYS_INLINE void
ucp_st_enqueue_commit(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                      size_t count, const ucp_st_enqueue_kind_t *kind)
{
    uint64_t seq = queue->seq;
    size_t i;

    for (i = 0; i < count; ++i) {
        ops[i]->marked = 0;
        kind->commit(queue, ops[i], seq);
    }
}

static ucs_status_t ucp_st_enqueue_undo(const ucp_st_op_h *ops, size_t marked,
                                        ucs_status_t status)
{
    size_t i;

    for (i = 0; i < marked; ++i) {
        ops[i]->marked = 0;
    }
    return status;
}

/* All or nothing */
static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_st_enqueue_all(ucp_st_queue_h queue, const ucp_st_op_h *ops, size_t count,
                   const ucp_st_enqueue_kind_t *kind)
{
    ucs_status_t status = ucp_st_queue_status(queue);
    size_t marked;

    if ((status != UCS_OK) || (count == 0)) {
        return status;
    }
    status = ucp_st_enqueue_check(queue, ops, count, kind, &marked);
    if (status == UCS_OK) {
        kind->begin(ops, count);
        status = ucp_st_enqueue_batch(queue, ops, count, kind);
    }
    if (status != UCS_OK) {
        return ucp_st_enqueue_undo(ops, marked, status);
    }
    ucp_st_enqueue_commit(queue, ops, count, kind);
    return UCS_OK;
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

static int ucp_st_start_is_usual(ucp_st_queue_h queue, const ucp_st_op_t *op)
{
    return (op->queue == queue) && (op->state == UCP_ST_OP_MATCHED) &&
           (op->started == op->waited) && (op->started < op->max_uses);
}

static void ucp_st_start_begin(const ucp_st_op_h *ops, size_t count)
{
    if ((ops[0]->started == 0) && (ops[0]->lane != NULL) &&
        (ops[0]->lane->join != NULL)) {
        ops[0]->lane->join(ops, count);
    }
}

/* Of one operation; the lock is held */
static ucs_status_t ucp_st_start_make_one(ucp_st_queue_h queue, ucp_st_op_t *op,
                                          size_t *num_cmds)
{
    ucs_status_t status = op->lane->post(op, op->started + 1);

    *num_cmds += op->lane->start_cmds(op, queue, op->started + 1,
                                      &queue->cmds[*num_cmds]);
    return status;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_st_start_make(ucp_st_queue_h queue, const ucp_st_op_h *ops, size_t count,
                  ucp_st_enqueue_cmds_t *cmds)
{
    ucs_status_t status = UCS_OK;
    const ucp_st_lane_ops_t *lane;
    size_t i, num;

    for (i = 0; (i < count) && (status == UCS_OK); i += num) {
        lane = ops[i]->lane;
        num  = 0;
        if ((lane != NULL) && (lane->start_run != NULL)) {
            num = lane->start_run(queue, &ops[i], count - i, &cmds->count);
        }
        if (num == 0) {
            num    = 1;
            status = (lane == NULL) ? UCS_OK :
                     ucp_st_start_make_one(queue, ops[i], &cmds->count);
        }
        cmds->ops[ucp_st_enqueue_lane(ops[i])] += num;
    }
    return status;
}

static void ucp_st_start_commit(ucp_st_queue_h queue, ucp_st_op_t *op,
                                uint64_t seq)
{
    op->queue    = queue;
    op->last_seq = seq;
    ++op->started;
    if (op->lane == NULL) {
        op->completed = op->started;
    }
}

static uint64_t *ucp_st_start_totals(ucp_st_queue_h queue)
{
    return queue->started;
}

static const ucp_st_enqueue_kind_t ucp_st_start_kind = {
    .is_usual = ucp_st_start_is_usual,
    .check    = ucp_st_start_check,
    .begin    = ucp_st_start_begin,
    .make     = ucp_st_start_make,
    .trace    = UCP_ST_TRACE_START,
    .commit   = ucp_st_start_commit,
    .totals   = ucp_st_start_totals
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

static int ucp_st_wait_is_usual(ucp_st_queue_h queue, const ucp_st_op_t *op)
{
    return (op->queue == queue) && (op->started != op->waited);
}

static void ucp_st_wait_begin(const ucp_st_op_h *ops, size_t count)
{
    (void)ops;
    (void)count; /* nothing to do */
}

/* What follows the waits */
static size_t ucp_st_wait_land(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                               size_t count, size_t num_cmds)
{
    const ucp_st_lane_ops_t *lane;
    size_t i, num;

    for (i = 0; i < count; i += num) {
        lane = ops[i]->lane;
        num  = ((lane == NULL) || (lane->land_run == NULL)) ?
               1 : lane->land_run(queue, &ops[i], count - i, &num_cmds);
    }
    return num_cmds;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
ucp_st_wait_make(ucp_st_queue_h queue, const ucp_st_op_h *ops, size_t count,
                 ucp_st_enqueue_cmds_t *cmds)
{
    size_t num_words = 0;
    int has_lands    = 0;
    const ucp_st_lane_ops_t *lane;
    size_t i, num;

    for (i = 0; i < count; i += num) {
        lane = ops[i]->lane;
        num  = 1;
        if (lane != NULL) {
            num        = lane->wait_words(queue, &ops[i], count - i,
                                          &num_words);
            has_lands |= (lane->land_run != NULL);
        }
        cmds->ops[ucp_st_enqueue_lane(ops[i])] += num;
    }
    cmds->count += ucp_st_queue_add_waits(queue, num_words,
                                          &queue->cmds[cmds->count]);
    if (has_lands) {
        cmds->count = ucp_st_wait_land(queue, ops, count, cmds->count);
    }
    return UCS_OK;
}

static void ucp_st_wait_commit(ucp_st_queue_h queue, ucp_st_op_t *op,
                               uint64_t seq)
{
    (void)queue;
    op->last_seq = seq;
    op->waited   = op->started;
}

static uint64_t *ucp_st_wait_totals(ucp_st_queue_h queue)
{
    return queue->waited;
}

static const ucp_st_enqueue_kind_t ucp_st_wait_kind = {
    .is_usual = ucp_st_wait_is_usual,
    .check    = ucp_st_wait_check,
    .begin    = ucp_st_wait_begin,
    .make     = ucp_st_wait_make,
    .trace    = UCP_ST_TRACE_WAIT,
    .commit   = ucp_st_wait_commit,
    .totals   = ucp_st_wait_totals
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
