/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_queue.c - queues: creation, host wait, error, and starts and waits as
 * commands of a stream.
 *
 * The operations of a call are all checked first. Then they are given to the
 * lanes, and enqueued as one sequence of stream commands, a batch, that ends
 * with the store of the batch's number. Only then the operations' counts move
 * on: an error leaves them as they were, and what a lane was given serves the
 * next try.
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

#include "core/st_queue.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_op.h"
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
        !ucs_gstream_is_valid(params->stream)) {
        ucs_error("a queue needs a live stream, which the given handle is not");
        return UCS_ERR_INVALID_PARAM;
    }
    queue = ucp_st_object_alloc(UCP_ST_OBJECT_QUEUE, sizeof(*queue),
                                offsetof(struct ucp_st_queue, parts));
    if (queue == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    queue->worker = worker;
    queue->stream = params->stream;
    queue->status = UCS_OK;
    status        = ucp_st_queue_get_marks(queue);
    if (status != UCS_OK) {
        goto err;
    }
    status = ucp_st_calls_init(queue);
    if (status != UCS_OK) {
        goto err;
    }
    ucp_st_for_each_component(component) {
        component->queue.init(queue);
    }
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

/* Do what the service thread would do soon */
static void ucp_st_queue_run_calls(ucp_st_queue_h queue)
{
    if (queue->calls != NULL) {
        (void)ucp_st_calls_run(queue->calls);
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
    ucp_st_queue_run_calls(queue);
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
    ucp_st_queue_forget(queue);
    ucs_list_del(&queue->list);
    --worker->num_queues[ucs_gstream_type(queue->stream)];
    ucp_st_worker_unlock(worker);
    ucp_st_calls_cleanup(queue);
    ucp_st_queue_put_marks(queue);
    free(queue->cmds);
    free(queue);
    return UCS_OK;
}

void ucp_st_queue_add_counts(ucp_st_queue_h queue, ucp_st_stats_t *stats)
{
    const ucp_st_component_t *component;
    unsigned i;

    for (i = 0; i < UCP_ST_LANE_LAST; ++i) {
        stats->lanes[i].starts += ucp_st_queue_count(&queue->started[i], 0);
        stats->lanes[i].waits  += ucp_st_queue_count(&queue->waited[i], 0);
    }
    ucp_st_for_each_component(component) {
        component->queue.count(queue, stats);
    }
}

void ucp_st_queue_fail(ucp_st_queue_h queue, ucp_st_op_h op,
                       ucs_status_t status)
{
    const ucp_st_component_t *component;

    if (queue->status != UCS_OK) {
        return;
    }
    queue->failed_op = op;
    __atomic_store_n(&queue->status, status, __ATOMIC_RELEASE);
    ucp_st_for_each_component(component) {
        component->queue.fail(queue);
    }
    ucp_st_op_fail_unbegun(queue);
}

/* The stream's device is lost, so that it runs nothing any more: the queue is
 * in error, what is open in it ends without effect, and all has passed */
static void ucp_st_queue_lose(ucp_st_queue_h queue)
{
    ucp_st_worker_h worker = queue->worker;

    ucs_error("queue %p: its stream has failed", queue);
    ucp_st_worker_lock(worker);
    ++worker->stats.errors;
    ucp_st_queue_fail(queue, NULL, UCS_ERR_IO_ERROR);
    ucp_st_worker_unlock(worker);
    __atomic_store_n(queue->marks[UCP_ST_QUEUE_WORD_CALL], UINT64_MAX,
                     __ATOMIC_RELEASE);
    ucp_st_queue_run_calls(queue);
    __atomic_store_n(queue->marks[UCP_ST_QUEUE_WORD_PASSED], queue->seq,
                     __ATOMIC_RELEASE);
}

/* Ask the stream of a device now and then whether it has failed: the runtime
 * does not report that. Streams of the host do not fail. */
static void ucp_st_queue_check_stream(ucp_st_queue_h queue)
{
    if ((queue->calls != NULL) &&
        ((++queue->asked % UCP_ST_QUEUE_ASK_ROUNDS) == 0) &&
        (ucs_gstream_query(queue->stream) == UCS_ERR_IO_ERROR)) {
        ucp_st_queue_lose(queue);
    }
}

ucs_status_t ucp_st_queue_query(ucp_st_queue_h queue,
                                ucp_st_queue_error_t *error)
{
    ucs_status_t status = ucp_st_check_call(queue != NULL);

    if (status != UCS_OK) {
        return status;
    }
    ucp_st_queue_run_calls(queue);
    if (ucp_st_queue_passed(queue) < queue->seq) {
        (void)ucp_st_ctrl_progress(queue->worker);
        ucp_st_queue_check_stream(queue);
        return UCS_INPROGRESS;
    }
    queue->seen = queue->seq;
    status      = ucp_st_queue_status(queue);
    if (status == UCS_OK) {
        return UCS_OK;
    }
    /* Peers are told first: the host may make no further call for long */
    ucp_st_ctrl_flush(queue->worker);
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
        if ((status == UCS_ERR_IO_ERROR) && (queue->calls != NULL)) {
            ucp_st_queue_lose(queue);
            continue;
        }
        if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
            break;
        }
        if ((status == UCS_OK) && (queue->calls != NULL)) {
            ucp_st_worker_pause(&idle, 0); /* another thread runs its calls */
        }
    }
    ucs_trace_end("ucp_st_queue_wait", begin);
    return status;
}

ucs_status_t ucp_st_queue_prepare(ucp_st_queue_h queue, size_t num_cmds)
{
    ucs_gstream_cmd_t *cmds;
    ucs_status_t status;
    size_t max;

    status = ucp_st_check_call(queue != NULL);
    if (status != UCS_OK) {
        return status;
    }
    queue->num_items = 0;
    queue->num_words = 0;
    if (queue->calls != NULL) {
        ucp_st_calls_drop(queue->calls);
    }
    if (num_cmds >= queue->max_cmds) {
        max  = 2 * (num_cmds + 1);
        cmds = malloc(max * (sizeof(*cmds) + sizeof(*queue->words) +
                             sizeof(*queue->items)));
        if (cmds == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        free(queue->cmds);
        queue->cmds     = cmds;
        queue->words    = (ucs_gstream_word_t*)&cmds[max];
        queue->items    = (void**)&queue->words[max];
        queue->max_cmds = max;
    }
    return ucp_st_queue_status(queue);
}

/* Write to `cmd` the store that has the service thread run a function, unless
 * the command before is such a store */
static size_t ucp_st_queue_add_number(ucp_st_queue_h queue,
                                      ucs_gstream_func_t func, void *arg,
                                      size_t size, ucs_gstream_cmd_t *cmd)
{
    volatile uint64_t *word = queue->marks[UCP_ST_QUEUE_WORD_CALL];
    size_t count            = 0;

    if ((cmd == queue->cmds) || (cmd[-1].type != UCS_GSTREAM_CMD_WRITE64) ||
        (cmd[-1].u.word.address != word)) {
        cmd->type           = UCS_GSTREAM_CMD_WRITE64;
        cmd->u.word.address = word;
        ++cmd;
        ++count;
    }
    cmd[-1].u.word.value = ucp_st_calls_add(queue->calls, func, arg, size);
    return count;
}

size_t ucp_st_queue_add_func(ucp_st_queue_h queue, ucs_gstream_func_t func,
                             void *arg, size_t size, ucs_gstream_cmd_t *cmd)
{
    if (queue->calls != NULL) {
        return ucp_st_queue_add_number(queue, func, arg, size, cmd);
    }
    if (size > 0) {
        cmd->type          = UCS_GSTREAM_CMD_LAUNCH;
        cmd->u.launch.func = func;
        cmd->u.launch.args = arg;
        cmd->u.launch.size = size;
    } else {
        cmd->type        = UCS_GSTREAM_CMD_FUNC;
        cmd->u.func.func = func;
        cmd->u.func.arg  = arg;
    }
    return 1;
}

size_t ucp_st_queue_add_launch(ucp_st_queue_h queue, ucs_gstream_func_t func,
                               void *const *items, size_t count,
                               ucs_gstream_cmd_t *cmd)
{
    void **list             = &queue->items[queue->num_items];
    size_t size             = count * sizeof(*list);
    ucs_gstream_cmd_t *last = (cmd > queue->cmds) ? (cmd - 1) : NULL;

    queue->num_items += count;
    if ((last != NULL) && (last->type == UCS_GSTREAM_CMD_LAUNCH) &&
        (last->u.launch.func == func) &&
        (last->u.launch.size <= (UCS_GSTREAM_ARGS_MAX - size))) {
        memcpy(list - 1, items, size); /* in place of the end */
        list[count - 1]      = NULL;
        last->u.launch.size += size;
        return 0;
    }
    memcpy(list, items, size);
    list[count]        = NULL;
    ++queue->num_items;
    cmd->type          = UCS_GSTREAM_CMD_LAUNCH;
    cmd->u.launch.func = func;
    cmd->u.launch.args = list;
    cmd->u.launch.size = size + sizeof(*list);
    return 1;
}

size_t ucp_st_queue_add_call(ucp_st_queue_h queue, ucs_gstream_func_t func,
                             void *const *items, size_t count,
                             ucs_gstream_cmd_t *cmd)
{
    void **list = &queue->items[queue->num_items];

    if (queue->calls == NULL) {
        return ucp_st_queue_add_launch(queue, func, items, count, cmd);
    }
    memcpy(list, items, count * sizeof(*list));
    list[count] = NULL;
    return ucp_st_queue_add_number(queue, func, list,
                                   (count + 1) * sizeof(*list), cmd);
}

ucs_status_t ucp_st_queue_enqueue(ucp_st_queue_h queue, size_t num_cmds)
{
    ucs_gstream_cmd_t *end = &queue->cmds[num_cmds];
    ucs_gstream_cmd_t *cmd;
    ucs_status_t status;

    if ((queue->calls != NULL) && queue->calls->is_short) {
        return UCS_ERR_NO_MEMORY;
    }

    /* While the stream waits, for any lane, it goes on with what it has begun
     * on another one */
    for (cmd = queue->cmds; (queue->helper != NULL) && (cmd < end); ++cmd) {
        if (cmd->type == UCS_GSTREAM_CMD_WAIT64) {
            cmd->type          = UCS_GSTREAM_CMD_HELP64;
            cmd->u.word.helper = queue->helper;
        } else if (cmd->type == UCS_GSTREAM_CMD_WAITALL) {
            cmd->u.waitall.helper = queue->helper;
        }
    }

    end->type           = UCS_GSTREAM_CMD_WRITE64;
    end->u.word.address = queue->marks[UCP_ST_QUEUE_WORD_PASSED];
    end->u.word.value   = queue->seq + 1;
    status              = ucs_gstream_enqueue(queue->stream, queue->cmds,
                                              num_cmds + 1);
    if (status == UCS_OK) {
        ++queue->seq;
        if (queue->calls != NULL) {
            ucp_st_calls_commit(queue->calls, queue->seq);
        }
    }
    return status;
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
    return ucp_st_stage_check(queue, op);
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

/* Make the commands that start operations; the lock is held */
static ucs_status_t ucp_st_start_make(ucp_st_queue_h queue,
                                      const ucp_st_op_h *ops, size_t count,
                                      size_t *num_cmds)
{
    ucp_st_op_t *op;
    ucs_status_t status;
    size_t i;

    /* All copies come before all starts, so that these are one batch of a
     * device */
    for (i = 0; i < count; ++i) {
        if ((ops[i]->lane != NULL) && ucp_st_stage_is_used(ops[i])) {
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
        if (!ucp_st_stage_is_used(op)) {
            *num_cmds += ucp_st_queue_add_user(op, UCP_ST_DIR_SEND,
                                               &queue->cmds[*num_cmds]);
        }
        *num_cmds += op->lane->op.start(op, queue, op->started + 1,
                                        &queue->cmds[*num_cmds]);
    }
    return UCS_OK;
}

/* Write to `cmds` waits for the next words, so many; how many commands */
static size_t ucp_st_queue_add_waits(ucp_st_queue_h queue, size_t count,
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
    *num_cmds += ucp_st_queue_add_waits(queue, num_words,
                                        &queue->cmds[*num_cmds]);
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

/* Make the commands that start operations, or wait for them. While events are
 * recorded each operation has a span of its own. */
static ucs_status_t ucp_st_enqueue_make(ucp_st_queue_h queue,
                                        const ucp_st_op_h *ops, size_t count,
                                        int is_start, size_t *num_cmds)
{
    ucs_status_t (*make)(ucp_st_queue_h, const ucp_st_op_h*, size_t, size_t*) =
            is_start ? ucp_st_start_make : ucp_st_wait_make;
    ucs_status_t status = UCS_OK;
    size_t i;

    if (!ucs_trace_is_on()) {
        return make(queue, ops, count, num_cmds);
    }
    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        *num_cmds += ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, ops[i],
                                      &queue->cmds[*num_cmds]);
        status     = make(queue, &ops[i], 1, num_cmds);
        *num_cmds += ucp_st_trace_cmd(is_start ? UCP_ST_TRACE_START :
                                                 UCP_ST_TRACE_WAIT,
                                      ops[i], &queue->cmds[*num_cmds]);
    }
    return status;
}

/* The operation's commands were enqueued in the queue's last batch */
static void ucp_st_enqueue_commit(ucp_st_queue_h queue, ucp_st_op_t *op,
                                  int is_start)
{
    ucp_st_lane_t lane = (op->lane == NULL) ? UCP_ST_LANE_NONE : op->lane->id;

    op->last_seq = queue->seq;
    if (!is_start) {
        op->waited = op->started;
        ucp_st_queue_count(&queue->waited[lane], 1);
        return;
    }
    op->queue     = queue;
    op->start_seq = queue->seq;
    ++op->started;
    if (op->lane == NULL) {
        op->completed = op->started;
    }
    ucp_st_queue_count(&queue->started[lane], 1);
}

/* All or nothing; for starts the lock is held */
static ucs_status_t ucp_st_enqueue_all(ucp_st_queue_h queue,
                                       const ucp_st_op_h *ops, size_t count,
                                       int is_start)
{
    ucs_status_t status = ucp_st_queue_status(queue);
    size_t num_cmds     = 0;
    size_t marked, i;

    if ((status != UCS_OK) || (count == 0)) {
        return status;
    }
    status = ucp_st_op_check_all(ops, count, is_start ? ucp_st_start_check :
                                                        ucp_st_wait_check,
                                 queue, &marked);
    if (status == UCS_OK) {
        status = ucp_st_enqueue_make(queue, ops, count, is_start, &num_cmds);
    }
    if (status == UCS_OK) {
        status = ucp_st_queue_enqueue(queue, num_cmds);
    }
    for (i = 0; i < marked; ++i) {
        ops[i]->marked = 0;
        if (status == UCS_OK) {
            ucp_st_enqueue_commit(queue, ops[i], is_start);
        }
    }
    return status;
}

static ucs_status_t ucp_st_enqueue_prepare(ucp_st_queue_h queue,
                                           const ucp_st_op_h *ops, size_t count)
{
    return ((ops == NULL) && (count > 0)) ?
           ucp_st_check_call(0) :
           ucp_st_queue_prepare(queue, count * (UCP_ST_LANE_MAX_CMDS + 2 +
                                                UCP_ST_TRACE_MAX_CMDS));
}

ucs_status_t ucp_st_enqueue_startall(ucp_st_queue_h queue,
                                     const ucp_st_op_h *ops, size_t count)
{
    uint64_t begin      = ucs_trace_begin();
    ucs_status_t status = ucp_st_enqueue_prepare(queue, ops, count);

    if (status == UCS_OK) {
        ucp_st_worker_lock(queue->worker);
        status = ucp_st_enqueue_all(queue, ops, count, 1);
        ucp_st_worker_unlock(queue->worker);
        ucs_trace_end("ucp_st_enqueue_startall", begin);
    }
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

    if (status == UCS_OK) {
        status = ucp_st_enqueue_all(queue, ops, count, 0);
        ucs_trace_end("ucp_st_enqueue_waitall", begin);
    }
    return status;
}

ucs_status_t ucp_st_enqueue_wait(ucp_st_queue_h queue, ucp_st_op_h op)
{
    return ucp_st_enqueue_waitall(queue, &op, 1);
}

ucs_status_t ucp_st_enqueue_check(ucp_st_queue_h queue, ucp_st_op_h op,
                                  int is_start)
{
    ucs_status_t status = ucp_st_check_call((queue != NULL) && (op != NULL));
    size_t marked;

    if (status == UCS_OK) {
        ucp_st_worker_lock(queue->worker);
        status     = ucp_st_op_check_all(&op, 1, is_start ? ucp_st_start_check :
                                                            ucp_st_wait_check,
                                         queue, &marked);
        op->marked = 0;
        ucp_st_worker_unlock(queue->worker);
    }
    return status;
}
