/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_stage.c - buffers that a lane does not reach.
 *
 * A stream of the buffer's own runtime copies by itself. A stream of the host
 * calls a function that has the runtime copy, and waits for that. A stream of
 * another runtime can do neither.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_stage.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_queue.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

void ucp_st_stage_query(const void *buffer, size_t length,
                        ucs_gstream_memory_attr_t *attr)
{
    *attr = (ucs_gstream_memory_attr_t){
        .type     = UCS_GSTREAM_TYPE_HOST,
        .is_hosts = 1
    };
    if (length > 0) {
        (void)ucs_gstream_memory_query(buffer, attr);
    }
}

ucs_status_t ucp_st_stage_set(ucp_st_op_t *op, const ucp_st_lane_ops_t *lane)
{
    op->data = op->buffer;
    if ((op->msg_length == 0) ||
        ((op->blocks.width == 0) && lane->op.reaches(op))) {
        return UCS_OK;
    }
    if (op->blocks.width > 0) {
        op->blocks.height = op->msg_length / op->blocks.width;
    }
    if ((op->stage != NULL) && (op->stage_length != op->msg_length)) {
        ucp_st_stage_release(op);
    }
    if (op->stage == NULL) {
        op->stage        = ucs_gstream_memory_get(op->msg_length);
        op->stage_length = op->msg_length;
    }
    op->data = op->stage;
    return (op->data == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void ucp_st_stage_look(const ucp_st_op_h *ops, size_t count)
{
    ucs_gstream_memory_attr_t memory;
    size_t i;

    for (i = 0; i < count; ++i) {
        if ((ops[i] != NULL) && ucp_st_stage_is_device(&ops[i]->memory)) {
            (void)ucs_gstream_memory_query(ops[i]->buffer, &memory);
            __atomic_store_n(&ops[i]->is_gone,
                             memory.type != ops[i]->memory.type,
                             __ATOMIC_RELAXED);
        }
    }
}

ucs_status_t ucp_st_stage_check(ucp_st_queue_h queue, const ucp_st_op_t *op)
{
    ucs_gstream_type_t type = ucs_gstream_type(queue->stream);

    if ((op->lane == NULL) || !ucp_st_stage_is_device(&op->memory)) {
        return UCS_OK;
    }
    /* On every lane: a runtime would take the memory for the host's, and a card
     * would send what its region still holds */
    if (__atomic_load_n(&op->is_gone, __ATOMIC_RELAXED)) {
        ucs_error("start of operation %p: its buffer %p was memory of %s and "
                  "is none any more", op, op->buffer,
                  ucs_gstream_type_name(op->memory.type));
        return UCS_ERR_INVALID_PARAM;
    }
    if (!(ucp_st_stage_is_used(op) || op->early) ||
        !ucp_st_queue_is_gpu(queue) || (type == op->memory.type)) {
        return UCS_OK;
    }
    ucp_st_refuse(queue, "start of operation %p: its buffer lies in memory of "
                  "%s, which streams of %s do not copy", op,
                  ucs_gstream_type_name(op->memory.type),
                  ucs_gstream_type_name(type));
    return UCS_ERR_UNSUPPORTED;
}

/* A stream of the host could not copy. The start that follows a send's copy has
 * no effect then. A receive is complete by now: its queue is told. */
void ucp_st_stage_failed(ucp_st_op_t *op, ucs_status_t status)
{
    ucp_st_worker_lock(op->worker);
    if (op->dir == UCP_ST_DIR_SEND) {
        ucp_st_op_fail(op, status);
    } else if (op->queue != NULL) {
        ucp_st_queue_fail(op->queue, op, status);
    }
    ucp_st_worker_unlock(op->worker);
}

/* Write the commands that copy: the whole blocks, then what a receive got of
 * the next one */
static size_t ucp_st_stage_cmds(const ucp_st_op_t *op, ucs_gstream_cmd_t *cmds)
{
    const ucs_gstream_rect_t *blocks = &op->blocks;
    int is_send                      = (op->dir == UCP_ST_DIR_SEND);
    void *dst                        = is_send ? op->data : op->buffer;
    const void *src                  = is_send ? op->buffer : op->data;
    size_t rest                      = op->msg_length;
    size_t num_cmds                  = 0;

    if (blocks->width > 0) {
        rest = op->msg_length % blocks->width;
        if (blocks->height > 0) {
            cmds[num_cmds].type          = UCS_GSTREAM_CMD_COPY2D;
            cmds[num_cmds].u.copy2d.dst  = dst;
            cmds[num_cmds].u.copy2d.src  = src;
            cmds[num_cmds].u.copy2d.rect = blocks;
            ++num_cmds;
        }
        dst = UCS_PTR_BYTE_OFFSET(dst, blocks->height * blocks->dst_pitch);
        src = UCS_PTR_BYTE_OFFSET(src, blocks->height * blocks->src_pitch);
    }
    if (rest > 0) {
        cmds[num_cmds].type          = UCS_GSTREAM_CMD_COPY;
        cmds[num_cmds].u.copy.dst    = dst;
        cmds[num_cmds].u.copy.src    = src;
        cmds[num_cmds].u.copy.length = rest;
        ++num_cmds;
    }
    return num_cmds;
}

static ucs_status_t ucp_st_stage_run(const ucs_gstream_cmd_t *cmd)
{
    return (cmd->type == UCS_GSTREAM_CMD_COPY) ?
           ucs_gstream_memory_copy(cmd->u.copy.dst, cmd->u.copy.src,
                                   cmd->u.copy.length) :
           ucs_gstream_memory_copy2d(cmd->u.copy2d.dst, cmd->u.copy2d.src,
                                     cmd->u.copy2d.rect);
}

/* Runs on a stream of the host. The operation stays while the stream names it.
 */
static void ucp_st_stage_func(void *arg)
{
    ucs_gstream_cmd_t cmds[UCP_ST_STAGE_MAX_CMDS];
    ucp_st_op_t *op     = arg;
    size_t num_cmds     = ucp_st_stage_cmds(op, cmds);
    ucs_status_t status = UCS_OK;
    size_t i;

    for (i = 0; (i < num_cmds) && (status == UCS_OK); ++i) {
        status = ucp_st_stage_run(&cmds[i]);
    }
    if (status != UCS_OK) {
        ucp_st_stage_failed(op, status);
    }
}

size_t ucp_st_stage_copy(ucp_st_op_t *op, ucp_st_queue_h queue,
                         ucp_st_dir_t dir, ucs_gstream_cmd_t *cmds)
{
    if (!ucp_st_stage_is_used(op) || (op->dir != dir)) {
        return 0;
    }
    if (ucp_st_queue_is_gpu(queue)) {
        return ucp_st_stage_cmds(op, cmds);
    }
    /* By ucs_gstream_memory_copy() */
    cmds[0].type        = UCS_GSTREAM_CMD_FUNC;
    cmds[0].u.func.func = ucp_st_stage_func;
    cmds[0].u.func.arg  = op;
    return 1;
}
