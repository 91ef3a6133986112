/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_queue.c - queues: creation, host wait, error, and starts and waits as
 * commands of a stream.
 *
 * The operations of a call are all checked first. Then they are given to the
 * lanes, and enqueued as one sequence of stream commands, a submission, that
 * ends with the store of the submission's number. An error leaves the
 * operations' counts as they were, and what a lane was given serves the next
 * try.
 *
 * A start gives work to the lane and so takes the worker's lock. Under it the
 * counts move on as well, before the commands are enqueued without it: a stream
 * of a device that is full blocks the caller until it goes on, and the service
 * thread, which lets it go on, needs the lock. Meanwhile others see what they
 * see when the commands are in the stream and have not run:
 *
 *   - The submission has not passed, as only its last command says so. So
 *     neither an operation nor what its commands name is given back, even if it
 *     fails and is freed.
 *   - An operation that fails, or whose queue or peer does, is halted before
 *     its start runs, which then has no effect, and its waits are released,
 *     also those that are enqueued later.
 *   - Nothing of the use completes but what needs no start, such as the arrival
 *     of data that a lane sends ahead: that may come before a start anyway.
 *
 * If the commands are refused the start is undone under the lock. An operation
 * that has failed by then stays failed, and its queue in error, as if it had
 * failed just after a start. What was restored of a queue is this one or NULL:
 * another one, whose last wait the host has seen pass, may be gone.
 *
 * A wait takes no lock: what it reads of an operation was written by a start of
 * the same queue, and what it writes belongs to the thread that calls for that
 * queue. An operation that fails meanwhile has a start that is not complete, so
 * that it puts the queue in error itself, and its waits pass.
 *
 * A stream of a device may fail in the midst of a submission, or be lost with
 * its device. The queue is in error then. In the first case the stream goes on
 * with what it has, and the queue is over when it is idle. In the second one
 * nothing more runs; but as nobody says what the device still does, the words
 * that it stores to are not used again.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_queue.h"
#include "core/st_ahead.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_progress.h"
#include "core/st_stage.h"
#include "core/st_trace.h"
#include "core/st_worker.h"

#include <ucs_gstream_memory.h>
#include <ucs_trace.h>

#include <ucs/sys/math.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Up to so many words are waited for one by one, more by one command */
#define UCP_ST_QUEUE_MAX_WAITS 2

/* A host that asks looks after a device's stream every so many times */
#define UCP_ST_QUEUE_ASK_ROUNDS 1000

/* A blocked host looks after its peers this often, seconds */
#define UCP_ST_QUEUE_WAIT_SLICE 1e-3

/* Get the queue's words; what it has on errors is given back */
static ucs_status_t ucp_st_queue_get_marks(ucp_st_queue_h queue)
{
    unsigned i;

    for (i = 0; i < UCP_ST_QUEUE_WORD_LAST; ++i) {
        queue->marks[i] = ucs_gstream_word_get();
        if (queue->marks[i] == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
    }
    return UCS_OK;
}

static void ucp_st_queue_put_marks(ucp_st_queue_h queue)
{
    unsigned i;

    for (i = 0; i < UCP_ST_QUEUE_WORD_LAST; ++i) {
        ucs_gstream_word_put(queue->marks[i]);
    }
}

ucs_status_t ucp_st_queue_create(ucp_st_worker_h worker,
                                 const ucp_st_queue_params_t *params,
                                 ucp_st_queue_h *queue_p)
{
    const ucp_st_component_t *component;
    ucp_st_queue_h queue;
    unsigned i;
    ucs_status_t status;

    status = ucp_st_check_call((worker != NULL) && (params != NULL) &&
                               (queue_p != NULL));
    if (status != UCS_OK) {
        return status;
    }
    if (!(params->field_mask & UCP_ST_QUEUE_PARAM_FIELD_STREAM) ||
        (ucs_gstream_get(params->stream) != UCS_OK)) {
        ucs_error("a queue needs a live stream, which the given handle is not");
        return UCS_ERR_INVALID_PARAM;
    }
    queue = ucp_st_object_alloc(UCP_ST_OBJECT_QUEUE, sizeof(*queue),
                                offsetof(struct ucp_st_queue, priv));
    if (queue == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_stream;
    }
    queue->worker = worker;
    queue->stream = params->stream;
    queue->status = UCS_OK;
    status        = ucp_st_queue_get_marks(queue);
    if (status != UCS_OK) {
        goto err;
    }
    status = ucp_st_callbacks_init(queue);
    if (status != UCS_OK) {
        goto err;
    }
    ucp_st_for_each_component(component) {
        component->queue.init(queue);
    }
    ucp_st_lanes_prepare_type(worker, ucs_gstream_type(queue->stream));
    ucp_st_worker_lock(worker);
    for (i = 0; i < worker->num_lanes; ++i) {
        worker->lanes[i]->queue.init(queue);
    }
    ucs_list_add_tail(&worker->queues, &queue->list);
    ++worker->num_queues[ucs_gstream_type(queue->stream)];
    ucp_st_worker_unlock(worker);
    *queue_p = queue;
    return UCS_OK;

err:
    ucp_st_queue_put_marks(queue);
    free(queue);
err_stream:
    ucs_gstream_put(params->stream);
    return status;
}

/* The queue's operations are free to go to another one, and its counts stay */
static void ucp_st_queue_forget(ucp_st_queue_h queue)
{
    ucp_st_worker_h worker   = queue->worker;
    ucs_list_link_t *lists[] = {&worker->ops, &worker->on_stream,
                                &worker->deferred};
    const ucp_st_component_t *component;
    ucp_st_op_t *op;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(lists); ++i) {
        ucs_list_for_each(op, lists[i], list) {
            if (op->lane != NULL) {
                op->lane->op.leave_queue(op, queue);
            }
            if (op->queue == queue) {
                op->queue = NULL;
            }
        }
    }
    ucp_st_op_reap_freed(worker);
    ucp_st_queue_add_counts(queue, &worker->stats);
    ucp_st_for_each_component(component) {
        component->queue.cleanup(queue);
    }
    for (i = 0; i < worker->num_lanes; ++i) {
        worker->lanes[i]->queue.cleanup(queue);
    }
}

/* Run the callbacks that the service thread would run soon */
static void ucp_st_queue_run_callbacks(ucp_st_queue_h queue)
{
    if (ucp_st_queue_is_gpu(queue)) {
        (void)ucp_st_callbacks_run(queue->callbacks);
    }
}

/* The stream runs nothing of the queue any more. Open callbacks run without
 * effect, as the queue is in error. All submissions have passed. */
static void ucp_st_queue_end(ucp_st_queue_h queue)
{
    __atomic_store_n(queue->marks[UCP_ST_QUEUE_WORD_CALLBACK], UINT64_MAX,
                     __ATOMIC_RELEASE);
    ucp_st_queue_run_callbacks(queue);
    __atomic_store_n(queue->marks[UCP_ST_QUEUE_WORD_PASSED], queue->seq,
                     __ATOMIC_RELEASE);
}

/* Ask the stream of a device whether it has failed: the runtime does not report
 * that. Streams of the host do not fail. An answer that is bad once says
 * nothing: what is lost stays so. */
static void ucp_st_queue_check_stream(ucp_st_queue_h queue)
{
    ucs_status_t status;

    if (!ucp_st_queue_is_gpu(queue)) {
        return;
    }
    status = ucs_gstream_query(queue->stream);
    if (status == UCS_ERR_IO_ERROR) {
        status = ucs_gstream_query(queue->stream);
    }
    if (status == UCS_ERR_IO_ERROR) {
        __atomic_store_n(&queue->is_lost, 1, __ATOMIC_RELEASE);
        ucp_st_queue_fail_stream(queue, "");
        ucp_st_queue_end(queue);
    } else if ((status == UCS_OK) && queue->is_cut) {
        ucp_st_queue_end(queue);
    }
}

/* Look after the stream now and then */
void ucp_st_queue_ask(ucp_st_queue_h queue)
{
    if (queue->is_cut || ((++queue->asked % UCP_ST_QUEUE_ASK_ROUNDS) == 0)) {
        ucp_st_queue_check_stream(queue);
    }
}

ucs_status_t ucp_st_queue_destroy(ucp_st_queue_h queue)
{
    const ucp_st_component_t *component;
    ucp_st_worker_h worker;
    ucs_status_t status;

    status = ucp_st_check_call(queue != NULL);
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_queue_run_callbacks(queue);
    if (ucp_st_queue_passed(queue) < queue->seq) {
        ucp_st_queue_check_stream(queue);
    }
    if (ucp_st_queue_passed(queue) < queue->seq) {
        return UCS_ERR_BUSY;
    }
    ucp_st_for_each_component(component) {
        if (component->queue.is_busy(queue)) {
            return UCS_ERR_BUSY;
        }
    }
    worker = queue->worker;
    ucp_st_worker_lock(worker);
    if (ucp_st_ahead_leave(queue) != UCS_OK) {
        ucp_st_worker_unlock(worker);
        return UCS_ERR_BUSY;
    }
    ucp_st_queue_forget(queue);
    ucs_list_del(&queue->list);
    --worker->num_queues[ucs_gstream_type(queue->stream)];
    ucp_st_worker_unlock(worker);
    ucp_st_callbacks_cleanup(queue);
    if (!queue->is_lost) {
        ucp_st_queue_put_marks(queue);
    }
    ucs_gstream_put(queue->stream);
    free(queue->cmds);
    free(queue);
    return UCS_OK;
}

void ucp_st_queue_add_counts(ucp_st_queue_h queue, ucp_st_stats_t *stats)
{
    const ucp_st_component_t *component;
    unsigned i;

    stats->start_cmds += ucp_st_queue_count(&queue->start_cmds, 0);
    stats->wait_words += ucp_st_queue_count(&queue->wait_words, 0);
    stats->launches   += ucp_st_queue_count(&queue->launches, 0);
    if (ucp_st_queue_is_gpu(queue)) {
        stats->wakeups += ucp_st_queue_count(&queue->callbacks->wakeups, 0);
    }
    for (i = 0; i < UCP_ST_LANE_LAST; ++i) {
        stats->lanes[i].starts += ucp_st_queue_count(&queue->started[i], 0);
        stats->lanes[i].waits  += ucp_st_queue_count(&queue->waited[i], 0);
    }
    ucp_st_for_each_component(component) {
        component->queue.count(queue, stats);
    }
}

ucs_status_t ucp_st_queue_query(ucp_st_queue_h queue,
                                ucp_st_queue_error_t *error)
{
    ucs_status_t status = ucp_st_check_call(queue != NULL);

    if (status != UCS_OK) {
        return status;
    }
    ucp_st_queue_run_callbacks(queue);
    if (ucp_st_queue_passed(queue) < queue->seq) {
        (void)ucp_st_progress(queue->worker);
        ucp_st_queue_ask(queue);
        return UCS_INPROGRESS;
    }
    queue->seen = queue->seq;
    status      = ucp_st_queue_status(queue);
    if (status == UCS_OK) {
        return UCS_OK;
    }
    /* Peers are told first: the host may make no further call for long */
    if (error != NULL) {
        error->status = status;
        error->op     = queue->failed_op;
        error->req    = queue->failed_req;
    }
    return status;
}

ucs_status_t ucp_st_queue_wait(ucp_st_queue_h queue,
                               ucp_st_queue_error_t *error)
{
    uint64_t begin = ucs_trace_begin();
    unsigned idle  = 0;
    ucs_status_t status;

    while ((status = ucp_st_queue_query(queue, error)) == UCS_INPROGRESS) {
        /* This may end early or late: the stream may hold other commands behind
         * ours. It is what wakes this thread most often. */
        status = ucs_gstream_synchronize_timeout(queue->stream,
                                                 UCP_ST_QUEUE_WAIT_SLICE);
        if ((status == UCS_ERR_IO_ERROR) && ucp_st_queue_is_gpu(queue)) {
            ucp_st_queue_check_stream(queue);
            continue;
        }
        if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
            break;
        }
        if ((status == UCS_OK) && ucp_st_queue_is_gpu(queue)) {
            ucp_st_progress_pause(&idle, 0); /* callbacks are being run */
        }
    }
    ucs_trace_end("ucp_st_queue_wait", begin);
    return status;
}

/* Write to `cmd` the call of the user's function, if there is one and it is
 * this direction's; how many commands */
static size_t ucp_st_queue_add_user(const ucp_st_op_t *op, ucp_st_dir_t dir,
                                    ucs_gstream_cmd_t *cmd)
{
    if ((op->func == NULL) || (op->dir != dir)) {
        return 0;
    }
    cmd->type        = UCS_GSTREAM_CMD_FUNC;
    cmd->u.func.func = op->func;
    cmd->u.func.arg  = op->func_arg;
    return 1;
}

/* Whether the user's function of a send comes before all starts: one store may
 * start all sends of an exchange */
static int ucp_st_start_is_first(ucp_st_queue_h queue, const ucp_st_op_t *op)
{
    return ucp_st_stage_is_used(op) || (queue->exchange != NULL);
}

/* Make the commands that start operations; the lock is held */
static ucs_status_t ucp_st_start_make(ucp_st_queue_h queue,
                                      const ucp_st_op_h *ops, size_t count,
                                      size_t *num_cmds)
{
    ucp_st_op_t *op;
    ucs_status_t status;
    size_t i, num;

    /* All copies come before all starts, so that these are one batch of a
     * device */
    for (i = 0; i < count; ++i) {
        if ((ops[i]->lane != NULL) && ucp_st_start_is_first(queue, ops[i])) {
            *num_cmds += ucp_st_queue_add_user(ops[i], UCP_ST_DIR_SEND,
                                               &queue->cmds[*num_cmds]);
            *num_cmds += ucp_st_stage_copy(ops[i], queue, UCP_ST_DIR_SEND,
                                           &queue->cmds[*num_cmds]);
        }
    }
    for (i = 0; i < count; ++i) {
        op = ops[i];
        if (op->lane == NULL) {
            continue;
        }
        status = op->lane->op.post(op, op->started + 1);
        if (status != UCS_OK) {
            return status;
        }
        if (!ucp_st_start_is_first(queue, op)) {
            *num_cmds += ucp_st_queue_add_user(op, UCP_ST_DIR_SEND,
                                               &queue->cmds[*num_cmds]);
        }
        num                = op->lane->op.start(op, queue, op->started + 1,
                                                &queue->cmds[*num_cmds]);
        *num_cmds         += num;
        queue->num_stores += num;
    }
    return UCS_OK;
}

size_t ucp_st_queue_add_waits(ucp_st_queue_h queue, size_t count,
                              ucs_gstream_cmd_t *cmds)
{
    ucs_gstream_word_t *words = &queue->words[queue->num_words];
    ucs_gstream_cmd_t *cmd    = cmds;
    size_t num, i;

    if (count <= UCP_ST_QUEUE_MAX_WAITS) {
        for (i = 0; i < count; ++i) {
            cmds[i].type           = UCS_GSTREAM_CMD_WAIT64;
            cmds[i].u.word.address = words[i].address;
            cmds[i].u.word.value   = words[i].value;
        }
        return count;
    }
    queue->num_words += count;
    for (; count > 0; count -= num, words += num, ++cmd) {
        num                   = ucs_min(count, UCS_GSTREAM_WORDS_MAX);
        cmd->type             = UCS_GSTREAM_CMD_WAITALL;
        cmd->u.waitall.words  = words;
        cmd->u.waitall.count  = num;
        cmd->u.waitall.helper = NULL;
    }
    return cmd - cmds;
}

/* Make the commands that wait for operations: the waits for the words of all of
 * them, then the commands that follow these waits, then the user's functions */
static ucs_status_t ucp_st_wait_make(ucp_st_queue_h queue,
                                     const ucp_st_op_h *ops, size_t count,
                                     size_t *num_cmds)
{
    ucs_gstream_word_t *words = &queue->words[queue->num_words];
    size_t num_words          = 0;
    size_t i;

    for (i = 0; i < count; ++i) {
        if (ops[i]->lane != NULL) {
            num_words += ops[i]->lane->op.wait_words(ops[i], &words[num_words]);
        }
    }
    *num_cmds         += ucp_st_queue_add_waits(queue, num_words,
                                                &queue->cmds[*num_cmds]);
    queue->num_stores += num_words;
    for (i = 0; i < count; ++i) {
        if (ops[i]->lane != NULL) {
            *num_cmds += ops[i]->lane->op.land(ops[i], &queue->cmds[*num_cmds]);
            *num_cmds += ucp_st_stage_copy(ops[i], queue, UCP_ST_DIR_RECV,
                                           &queue->cmds[*num_cmds]);
        }
    }
    for (i = 0; i < count; ++i) {
        if (ops[i]->lane != NULL) {
            *num_cmds += ucp_st_queue_add_user(ops[i], UCP_ST_DIR_RECV,
                                               &queue->cmds[*num_cmds]);
        }
    }
    return UCS_OK;
}

/* Make the commands that start operations, or wait for them, while events are
 * recorded. Each operation has a span of its own; of an exchange the first
 * one's has all, as they share commands. */
static ucs_status_t ucp_st_enqueue_make_spans(ucp_st_queue_h queue,
                                              const ucp_st_op_h *ops,
                                              size_t count, int is_start,
                                              size_t *num_cmds)
{
    ucs_status_t (*make)(ucp_st_queue_h, const ucp_st_op_h*, size_t, size_t*) =
            is_start ? ucp_st_start_make : ucp_st_wait_make;
    ucs_status_t status = UCS_OK;
    size_t i;

    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        *num_cmds += ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, ops[i],
                                      &queue->cmds[*num_cmds]);
        if (queue->exchange == NULL) {
            status = make(queue, &ops[i], 1, num_cmds);
        } else if (i == 0) {
            status = make(queue, ops, count, num_cmds);
        }
        *num_cmds += ucp_st_trace_cmd(is_start ? UCP_ST_TRACE_START :
                                                 UCP_ST_TRACE_WAIT,
                                      ops[i], &queue->cmds[*num_cmds]);
    }
    return status;
}

static ucp_st_lane_t ucp_st_op_lane(const ucp_st_op_t *op)
{
    return (op->lane == NULL) ? UCP_ST_LANE_NONE : op->lane->id;
}

/* The operation's start is in the queue's last submission; the lock is held */
static void ucp_st_start_commit(ucp_st_queue_h queue, ucp_st_op_t *op,
                                ucp_st_queue_saved_t *saved)
{
    saved->queue     = op->queue;
    saved->last_seq  = op->last_seq;
    saved->start_seq = op->start_seq;
    op->queue        = queue;
    op->last_seq     = queue->seq;
    op->start_seq    = queue->seq;
    ++op->started;
    if (op->lane == NULL) {
        op->completed = op->started;
    }
    ucp_st_queue_count(&queue->started[ucp_st_op_lane(op)], 1);
}

/* Undo ucp_st_start_commit() */
static void ucp_st_start_undo(ucp_st_queue_h queue, ucp_st_op_t *op,
                              const ucp_st_queue_saved_t *saved)
{
    op->queue     = (saved->queue == queue) ? queue : NULL;
    op->last_seq  = saved->last_seq;
    op->start_seq = saved->start_seq;
    --op->started;
    if (op->lane == NULL) {
        op->completed = op->started;
    }
    ucp_st_queue_count(&queue->started[ucp_st_op_lane(op)], UINT64_MAX);
}

/* The operation's wait is in the queue's last submission */
static void ucp_st_wait_commit(ucp_st_queue_h queue, ucp_st_op_t *op)
{
    /* Without the lock: see ucp_st_waits_of_op() */
    __atomic_store_n(&op->last_seq, queue->seq, __ATOMIC_RELAXED);
    __atomic_store_n(&op->waited, op->started, __ATOMIC_RELAXED);
    ucp_st_queue_count(&queue->waited[ucp_st_op_lane(op)], 1);
}

/* Have the stream's runtime take what the starts are to store to: that may be
 * registered first, which takes long or waits for other calls. The lock is
 * held, and released meanwhile. */
static void ucp_st_start_reach(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                               size_t count)
{
    ucs_gstream_type_t type = ucs_gstream_type(queue->stream);
    size_t num_pages        = 0;
    size_t i;

    for (i = 0; i < count; ++i) {
        if ((ops[i] != NULL) && (ops[i]->state == UCP_ST_OP_MATCHED) &&
            (ops[i]->lane != NULL)) {
            num_pages += ops[i]->lane->op.pages(ops[i], type,
                                                &queue->words[num_pages]);
        }
    }
    if (num_pages == 0) {
        return;
    }
    ucp_st_worker_unlock(queue->worker);
    for (i = 0; i < num_pages; ++i) {
        (void)ucs_gstream_reaches(queue->stream, queue->words[i].address);
    }
    ucp_st_worker_lock(queue->worker);
}

static void ucp_st_starts_undo(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                               size_t count)
{
    size_t i;

    ucp_st_worker_lock(queue->worker);
    for (i = 0; i < count; ++i) {
        ucp_st_start_undo(queue, ops[i], &queue->saved[i]);
    }
    ucp_st_worker_unlock(queue->worker);
}

static ucs_status_t ucp_st_enqueue_prepare(ucp_st_queue_h queue,
                                           const ucp_st_op_h *ops, size_t count)
{
    return ((ops == NULL) && (count > 0)) ?
           ucp_st_check_call(0) :
           ucp_st_queue_prepare(queue, count * (UCP_ST_LANE_MAX_CMDS + 1 +
                                                UCP_ST_STAGE_MAX_CMDS +
                                                UCP_ST_TRACE_MAX_CMDS));
}

ucs_status_t ucp_st_enqueue_startall(ucp_st_queue_h queue,
                                     const ucp_st_op_h *ops, size_t count)
{
    uint64_t begin      = ucs_trace_begin();
    ucs_status_t status = ucp_st_enqueue_prepare(queue, ops, count);
    size_t num_cmds     = 0;
    size_t i;

    if (status != UCS_OK) {
        return status;
    }
    if (count == 0) {
        goto out;
    }
    ucp_st_stage_look(ops, count);
    ucp_st_worker_lock(queue->worker);
    if (ucp_st_queue_is_gpu(queue)) {
        ucp_st_start_reach(queue, ops, count);
    }
    status = ucp_st_queue_status(queue);
    if (status == UCS_OK) {
        status = ucp_st_op_check_all(ops, count, ucp_st_queue_check_start,
                                     queue);
    }
    if (status == UCS_OK) {
        status = ucs_trace_is_on() ?
                 ucp_st_enqueue_make_spans(queue, ops, count, 1, &num_cmds) :
                 ucp_st_start_make(queue, ops, count, &num_cmds);
    }
    if (status == UCS_OK) {
        status = ucp_st_queue_commit(queue, num_cmds);
    }
    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        ucp_st_start_commit(queue, ops[i], &queue->saved[i]);
    }
    ucp_st_worker_unlock(queue->worker);
    if (status != UCS_OK) {
        goto out;
    }
    status = ucp_st_queue_submit(queue);
    if (ucp_st_queue_is_submitted(queue, status)) {
        ucp_st_queue_count(&queue->start_cmds, queue->num_stores);
    } else {
        ucp_st_starts_undo(queue, ops, count);
    }
out:
    ucs_trace_end("ucp_st_enqueue_startall", begin);
    return status;
}

ucs_status_t ucp_st_enqueue_start(ucp_st_queue_h queue, ucp_st_op_h op)
{
    return ucp_st_enqueue_startall(queue, &op, 1);
}

ucs_status_t ucp_st_enqueue_waitall(ucp_st_queue_h queue,
                                    const ucp_st_op_h *ops, size_t count)
{
    uint64_t begin      = ucs_trace_begin();
    ucs_status_t status = ucp_st_enqueue_prepare(queue, ops, count);
    size_t num_cmds     = 0;
    size_t i;

    if (status != UCS_OK) {
        return status;
    }
    if (count == 0) {
        goto out;
    }
    status = ucp_st_op_check_all(ops, count, ucp_st_queue_check_wait, queue);
    if (status == UCS_OK) {
        status = ucs_trace_is_on() ?
                 ucp_st_enqueue_make_spans(queue, ops, count, 0, &num_cmds) :
                 ucp_st_wait_make(queue, ops, count, &num_cmds);
    }
    if (status == UCS_OK) {
        status = ucp_st_queue_commit(queue, num_cmds);
    }
    if (status != UCS_OK) {
        goto out;
    }
    status = ucp_st_queue_submit(queue);
    if (ucp_st_queue_is_submitted(queue, status)) {
        for (i = 0; i < count; ++i) {
            ucp_st_wait_commit(queue, ops[i]);
        }
        ucp_st_queue_count(&queue->wait_words, queue->num_stores);
    }
out:
    ucs_trace_end("ucp_st_enqueue_waitall", begin);
    return status;
}

ucs_status_t ucp_st_enqueue_wait(ucp_st_queue_h queue, ucp_st_op_h op)
{
    return ucp_st_enqueue_waitall(queue, &op, 1);
}
