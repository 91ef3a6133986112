/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_queue_submit.c - submissions: the commands of a call, in the scratch
 * memory of their queue, and how the stream gets them.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_log.h"
#include "core/st_queue.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

ucs_status_t ucp_st_queue_prepare(ucp_st_queue_h queue, size_t num_cmds)
{
    ucs_gstream_cmd_t *cmds;
    ucs_status_t status;
    size_t max;

    status = ucp_st_check_call(queue != NULL);
    if (status != UCS_OK) {
        return status;
    }
    queue->num_items  = 0;
    queue->num_words  = 0;
    queue->num_stores = 0;
    if (ucp_st_queue_is_gpu(queue)) {
        ucp_st_callbacks_drop(queue->callbacks);
    }
    if (num_cmds >= queue->max_cmds) {
        max  = 2 * (num_cmds + 1);
        cmds = malloc(max * (sizeof(*cmds) + sizeof(*queue->words) +
                             sizeof(*queue->items) + sizeof(*queue->saved)));
        if (cmds == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        free(queue->cmds);
        queue->cmds     = cmds;
        queue->words    = (ucs_gstream_word_t*)&cmds[max];
        queue->items    = (void**)&queue->words[max];
        queue->saved    = (ucp_st_queue_saved_t*)&queue->items[max];
        queue->max_cmds = max;
    }
    return ucp_st_queue_status(queue);
}

/* Whether the command before `cmd` is a store that has the service thread run a
 * function */
static int ucp_st_queue_is_behind_callback(ucp_st_queue_h queue,
                                           const ucs_gstream_cmd_t *cmd)
{
    return (cmd > queue->cmds) && (cmd[-1].type == UCS_GSTREAM_CMD_WRITE64) &&
           (cmd[-1].u.word.address == queue->marks[UCP_ST_QUEUE_WORD_CALLBACK]);
}

/* Write to `cmd` the store that has the service thread run a function, unless
 * the command before is such a store */
static size_t ucp_st_queue_add_number(ucp_st_queue_h queue,
                                      ucs_gstream_func_t func, void *arg,
                                      size_t size, ucs_gstream_cmd_t *cmd)
{
    size_t count = 0;

    if (!ucp_st_queue_is_behind_callback(queue, cmd)) {
        cmd->type           = UCS_GSTREAM_CMD_WRITE64;
        cmd->u.word.address = queue->marks[UCP_ST_QUEUE_WORD_CALLBACK];
        ++cmd;
        ++count;
    }
    cmd[-1].u.word.value = ucp_st_callbacks_add(queue->callbacks, func, arg,
                                                size);
    return count;
}

size_t ucp_st_queue_add_func(ucp_st_queue_h queue, ucs_gstream_func_t func,
                             void *arg, size_t size, ucs_gstream_cmd_t *cmd)
{
    if (ucp_st_queue_is_gpu(queue)) {
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

size_t ucp_st_queue_add_callback(ucp_st_queue_h queue, ucs_gstream_func_t func,
                                 void *const *items, size_t count,
                                 ucs_gstream_cmd_t *cmd)
{
    void **list = &queue->items[queue->num_items];

    if (!ucp_st_queue_is_gpu(queue)) {
        return ucp_st_queue_add_launch(queue, func, items, count, cmd);
    }
    memcpy(list, items, count * sizeof(*list));
    list[count] = NULL;
    return ucp_st_queue_add_number(queue, func, list,
                                   (count + 1) * sizeof(*list), cmd);
}

size_t ucp_st_queue_add_pair(ucp_st_queue_h queue,
                             const ucs_gstream_pair_t *pair,
                             ucs_gstream_cmd_t *cmd)
{
    void **list             = &queue->items[queue->num_items];
    ucs_gstream_cmd_t *last = (cmd > queue->cmds) ? (cmd - 1) : NULL;

    memcpy(list, pair, sizeof(*pair));
    queue->num_items += sizeof(*pair) / sizeof(*list);
    if ((last != NULL) && (last->type == UCS_GSTREAM_CMD_PAIRS) &&
        ((const void*)&last->u.pairs.pairs[last->u.pairs.count] == list)) {
        ++last->u.pairs.count;
        return 0;
    }
    cmd->type          = UCS_GSTREAM_CMD_PAIRS;
    cmd->u.pairs.pairs = (const ucs_gstream_pair_t*)list;
    cmd->u.pairs.count = 1;
    return 1;
}

ucs_status_t ucp_st_queue_commit(ucp_st_queue_h queue, size_t num_cmds)
{
    ucs_gstream_cmd_t *end = &queue->cmds[num_cmds];
    int is_callback        = ucp_st_queue_is_behind_callback(queue, end);
    ucs_gstream_cmd_t *cmd;

    if (ucp_st_queue_is_gpu(queue) && queue->callbacks->is_short) {
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

    ++queue->seq;
    if (!is_callback) {
        end->type           = UCS_GSTREAM_CMD_WRITE64;
        end->u.word.address = queue->marks[UCP_ST_QUEUE_WORD_PASSED];
        end->u.word.value   = queue->seq;
    }
    queue->num_cmds = num_cmds + !is_callback;
    if (ucp_st_queue_is_gpu(queue)) {
        ucp_st_callbacks_commit(queue->callbacks, queue->seq, is_callback);
    }
    return UCS_OK;
}

ucs_status_t ucp_st_queue_submit(ucp_st_queue_h queue)
{
    uint64_t launches   = ucs_gstream_launches(queue->stream);
    ucs_status_t status = ucs_gstream_enqueue(queue->stream, queue->cmds,
                                              queue->num_cmds);

    ucp_st_queue_count(&queue->launches,
                       ucs_gstream_launches(queue->stream) - launches);
    if (status == UCS_ERR_IO_ERROR) {
        queue->is_cut = 1;
        ucp_st_queue_fail_stream(queue, " in the midst of a call");
    } else if (status != UCS_OK) {
        if (ucp_st_queue_is_gpu(queue)) {
            ucp_st_callbacks_undo(queue->callbacks, queue->seq);
        }
        --queue->seq;
    }
    return status;
}

ucs_status_t ucp_st_queue_enqueue(ucp_st_queue_h queue, size_t num_cmds)
{
    ucs_status_t status = ucp_st_queue_commit(queue, num_cmds);

    return (status == UCS_OK) ? ucp_st_queue_submit(queue) : status;
}
