/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_queue.c - queues: creation, host wait, error.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_queue.h"
#include "core/st_fork.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_worker.h"

#include <ucs_trace.h>

#include <ucs/sys/math.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* So many words are waited for one by one: a command for all of them is worth
 * its trouble above */
#define UCP_ST_QUEUE_MAX_WAITS 2

/* A blocked host looks after its peers this often, seconds */
#define UCP_ST_QUEUE_WAIT_SLICE 1e-3

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
    ucp_st_for_each_component(component) {
        component->queue->init(queue);
    }
    ucp_st_worker_lock(worker);
    for (i = 0; i < worker->num_lanes; ++i) {
        worker->lanes[i]->queue.init(queue);
    }
    ucs_list_add_tail(&worker->queues, &queue->list);
    ucp_st_worker_unlock(worker);
    *queue_p = queue;
    return UCS_OK;
}

static void ucp_st_queue_forget_list(ucp_st_queue_h queue,
                                     ucs_list_link_t *list)
{
    ucp_st_op_t *op;

    ucs_list_for_each(op, list, list) {
        if (op->lane != NULL) {
            op->lane->op.leave_queue(op, queue);
        }
        if (op->queue == queue) {
            op->queue = NULL;
        }
    }
}

/* The queue's operations are free to go to another one, and its counts stay */
static void ucp_st_queue_forget(ucp_st_queue_h queue)
{
    ucp_st_worker_h worker = queue->worker;
    const ucp_st_component_t *component;
    unsigned i;

    ucp_st_queue_forget_list(queue, &worker->ops);
    ucp_st_queue_forget_list(queue, &worker->on_stream);
    ucp_st_queue_forget_list(queue, &worker->deferred);
    ucp_st_op_reap_freed(worker);
    ucp_st_queue_add_counts(queue, &worker->stats);
    ucp_st_for_each_component(component) {
        component->queue->cleanup(queue);
    }
    for (i = 0; i < worker->num_lanes; ++i) {
        worker->lanes[i]->queue.cleanup(queue);
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
    if (ucp_st_queue_passed(queue) < queue->seq) {
        return UCS_ERR_BUSY;
    }
    ucp_st_for_each_component(component) {
        if (component->queue->is_busy(queue)) {
            return UCS_ERR_BUSY;
        }
    }
    worker = queue->worker;
    ucp_st_worker_lock(worker);
    ucp_st_queue_forget(queue);
    ucs_list_del(&queue->list);
    ucp_st_worker_unlock(worker);
    free(queue->words);
    free(queue->items);
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
        component->queue->count(queue, stats);
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
    ucp_st_op_fail_unbegun(queue);
    ucp_st_for_each_component(component) {
        component->queue->fail(queue);
    }
}

void ucp_st_queue_fail_req(ucp_st_queue_h queue, ucp_st_req_h req,
                           ucs_status_t status)
{
    if (queue->status == UCS_OK) {
        queue->failed_req = req;
        ucp_st_queue_fail(queue, NULL, status);
    }
}

ucs_status_t ucp_st_queue_reserve(ucp_st_queue_h queue, size_t num_cmds)
{
    size_t needed = num_cmds + 1;
    ucs_gstream_cmd_t *cmds;
    ucs_gstream_word_t *words;
    void **items;

    queue->num_items = 0;
    queue->num_words = 0;
    if (needed <= queue->max_cmds) {
        return UCS_OK;
    }
    cmds = realloc(queue->cmds, 2 * needed * sizeof(*cmds));
    if (cmds == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    queue->cmds = cmds;
    items       = realloc(queue->items, 2 * needed * sizeof(*items));
    if (items == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    queue->items = items;
    words        = realloc(queue->words, 2 * needed * sizeof(*words));
    if (words == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    queue->words    = words;
    queue->max_cmds = 2 * needed;
    return UCS_OK;
}

static void ucp_st_queue_begin_call(ucp_st_queue_h queue,
                                    ucs_gstream_func_t func,
                                    void *const *items, size_t count,
                                    ucs_gstream_cmd_t *cmd)
{
    void **list = ucp_st_queue_items(queue);

    memmove(list, items, count * sizeof(*list));
    list[count]        = NULL;
    queue->num_items  += count + 1;
    cmd->type          = UCS_GSTREAM_CMD_LAUNCH;
    cmd->u.launch.func = func;
    cmd->u.launch.args = list;
    cmd->u.launch.size = (count + 1) * sizeof(*list);
}

size_t ucp_st_queue_add_call(ucp_st_queue_h queue, ucs_gstream_func_t func,
                             void *const *items, size_t count,
                             ucs_gstream_cmd_t *cmd)
{
    if ((cmd > queue->cmds) &&
        ucp_st_queue_extend_call(queue, func, items, count, &cmd[-1])) {
        return 0;
    }
    ucp_st_queue_begin_call(queue, func, items, count, cmd);
    return 1;
}

size_t ucp_st_queue_begin_start(ucp_st_queue_h queue, ucs_gstream_func_t one,
                                ucs_gstream_func_t all, void *arg,
                                ucs_gstream_cmd_t *cmd)
{
    void *both[] = {(cmd > queue->cmds) ? cmd[-1].u.func.arg : NULL, arg};

    if ((cmd > queue->cmds) && (cmd[-1].type == UCS_GSTREAM_CMD_FUNC) &&
        (cmd[-1].u.func.func == one)) {
        ucp_st_queue_begin_call(queue, all, both, 2, &cmd[-1]);
        return 0;
    }
    cmd->type        = UCS_GSTREAM_CMD_FUNC;
    cmd->u.func.func = one;
    cmd->u.func.arg  = arg;
    return 1;
}

size_t ucp_st_queue_add_waits(ucp_st_queue_h queue, size_t count,
                              ucs_gstream_cmd_t *cmds)
{
    ucs_gstream_word_t *words = ucp_st_queue_words(queue);
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

ucs_status_t ucp_st_queue_prepare(ucp_st_queue_h queue, size_t num_cmds)
{
    ucs_status_t status;

    status = ucp_st_check_call(queue != NULL);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_queue_status(queue);
    return (status == UCS_OK) ? ucp_st_queue_reserve(queue, num_cmds) : status;
}

/* While the stream waits, for whatever lane, it goes on with what it has begun
 * on another one */
static void ucp_st_queue_add_helper(ucp_st_queue_h queue, size_t num_cmds)
{
    const ucs_gstream_helper_t *helper = queue->helper;
    ucs_gstream_cmd_t *cmd;

    for (cmd = queue->cmds; cmd < (queue->cmds + num_cmds); ++cmd) {
        if (cmd->type == UCS_GSTREAM_CMD_WAIT64) {
            cmd->type          = UCS_GSTREAM_CMD_HELP64;
            cmd->u.word.helper = helper;
        } else if (cmd->type == UCS_GSTREAM_CMD_WAITALL) {
            cmd->u.waitall.helper = helper;
        }
    }
}

/* Runs on the stream. Nobody sleeps for the count, so that nobody is looked
 * for. */
static void ucp_st_queue_pass_func(void *arg)
{
    ucp_st_queue_h queue = arg;

    /* Pairs with the acquire load in ucp_st_queue_passed() */
    __atomic_store_n(&queue->passed, queue->passed + 1, __ATOMIC_RELEASE);
}

ucs_status_t ucp_st_queue_enqueue(ucp_st_queue_h queue, size_t num_cmds)
{
    ucs_gstream_cmd_t *end = &queue->cmds[num_cmds];
    ucs_status_t status;

    if (queue->helper != NULL) {
        ucp_st_queue_add_helper(queue, num_cmds);
    }

    /* The stream counts the batch that ends here; one of a device can only
     * store. A function would be a kernel for the trace. */
    if ((ucs_gstream_type(queue->stream) == UCS_GSTREAM_TYPE_HOST) &&
        !ucs_trace_is_on()) {
        end->type        = UCS_GSTREAM_CMD_FUNC;
        end->u.func.func = ucp_st_queue_pass_func;
        end->u.func.arg  = queue;
    } else {
        end->type           = UCS_GSTREAM_CMD_WRITE64;
        end->u.word.address = &queue->passed;
        end->u.word.value   = queue->seq + 1;
    }
    status = ucs_gstream_enqueue(queue->stream, queue->cmds, num_cmds + 1);
    if (status == UCS_OK) {
        ++queue->seq;
    }
    return status;
}

/* All has run: what the host is told */
static ucs_status_t ucp_st_queue_result(ucp_st_queue_h queue,
                                        ucp_st_queue_error_t *error)
{
    ucs_status_t status = ucp_st_queue_status(queue);

    queue->seen = queue->seq;
    if (status == UCS_OK) {
        return UCS_OK;
    }
    /* Peers are told before the host is, which may make no call for long */
    ucp_st_ctrl_ops.flush(queue->worker);
    if (error != NULL) {
        error->status = status;
        error->op     = queue->failed_op;
        error->req    = queue->failed_req;
    }
    return status;
}

ucs_status_t ucp_st_queue_query(ucp_st_queue_h queue,
                                ucp_st_queue_error_t *error)
{
    ucs_status_t status = ucp_st_check_call(queue != NULL);

    if (status != UCS_OK) {
        return status;
    }
    if (ucp_st_queue_passed(queue) < queue->seq) {
        (void)ucp_st_ctrl_ops.progress(queue->worker);
        return UCS_INPROGRESS;
    }
    return ucp_st_queue_result(queue, error);
}

ucs_status_t ucp_st_queue_wait(ucp_st_queue_h queue,
                               ucp_st_queue_error_t *error)
{
    uint64_t begin = ucs_trace_begin();
    ucs_status_t status;

    while ((status = ucp_st_queue_query(queue, error)) == UCS_INPROGRESS) {
        /* The stream may hold commands of others behind ours, so its being
         * idle is not what is waited for, only what wakes up most often */
        status = ucs_gstream_synchronize_timeout(queue->stream,
                                                 UCP_ST_QUEUE_WAIT_SLICE);
        if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
            break;
        }
    }
    ucs_trace_end("ucp_st_queue_wait", begin);
    return status;
}
