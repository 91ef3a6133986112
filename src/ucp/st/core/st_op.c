/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_op.c - persistent operations: what the user calls for them.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_op.h"
#include "core/st_ahead.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_stage.h"
#include "core/st_worker.h"
#include "ctrl/st_ctrl.h"

#include <ucs/sys/math.h>
#include <ucs/type/param.h>

#include <stdlib.h>
#include <string.h>

#define UCP_ST_OP_FLAGS_ALL UCP_ST_OP_FLAG_ANY_TAG

/* The blocks of the buffer; UCS_ERR_INVALID_PARAM if they make no sense */
static ucs_status_t ucp_st_op_set_blocks(ucp_st_op_t *op,
                                         const ucp_st_op_params_t *params)
{
    int is_send   = (op->dir == UCP_ST_DIR_SEND);
    size_t block  = params->block;
    size_t stride = params->stride;

    if ((block == 0) || (op->length % block) || (stride < block) ||
        (stride > UCS_GSTREAM_PITCH_MAX)) {
        ucs_error("operation of %zu bytes in blocks of %zu, %zu bytes apart: "
                  "a multiple of the block, and a distance of that to %d "
                  "bytes, is supported", op->length, block, stride,
                  UCS_GSTREAM_PITCH_MAX);
        return UCS_ERR_INVALID_PARAM;
    }
    if ((stride > block) && (op->length > block)) {
        op->blocks.dst_pitch = is_send ? block : stride;
        op->blocks.src_pitch = is_send ? stride : block;
        op->blocks.width     = block;
    }
    return UCS_OK;
}

#define UCP_ST_OP_PARAM(_params, _name, _FLAG, _default) \
    UCS_PARAM_VALUE(UCP_ST_OP_PARAM_FIELD, _params, _name, _FLAG, _default)

/* Set what `params` say; UCS_ERR_INVALID_PARAM if that makes no sense */
static ucs_status_t ucp_st_op_set_params(ucp_st_op_t *op,
                                         const ucp_st_op_params_t *params)
{
    uint64_t flags = UCP_ST_OP_PARAM(params, flags, FLAGS, 0);

    op->buffer   = UCP_ST_OP_PARAM(params, buffer, BUFFER, NULL);
    op->length   = UCP_ST_OP_PARAM(params, length, LENGTH, 0);
    op->peer     = UCP_ST_OP_PARAM(params, peer, PEER, UCP_ST_PEER_NULL);
    op->tag      = UCP_ST_OP_PARAM(params, tag, TAG, 0);
    op->scope    = UCP_ST_OP_PARAM(params, scope, SCOPE, 0);
    op->flags    = flags;
    op->func     = UCP_ST_OP_PARAM(params, func, FUNC, NULL);
    op->func_arg = UCP_ST_OP_PARAM(params, func_arg, FUNC, NULL);
    op->func_release = UCP_ST_OP_PARAM(params, func_release, FUNC, NULL);
    op->mode     = (op->dir == UCP_ST_DIR_SEND) ?
                   UCP_ST_OP_PARAM(params, mode, MODE, UCP_ST_MODE_STANDARD) :
                   UCP_ST_MODE_STANDARD;
    if ((op->buffer == NULL) && (op->length > 0)) {
        ucs_error("operation of %zu bytes without a buffer", op->length);
        return UCS_ERR_INVALID_PARAM;
    }
    if ((op->mode != UCP_ST_MODE_STANDARD) && (op->mode != UCP_ST_MODE_READY)) {
        ucs_error("unknown send mode %d", op->mode);
        return UCS_ERR_INVALID_PARAM;
    }
    if (flags & ~(uint64_t)UCP_ST_OP_FLAGS_ALL) {
        ucs_error("unknown operation flags 0x%lx", flags);
        return UCS_ERR_INVALID_PARAM;
    }
    if (ucp_st_peer_is_real(op->peer) && (op->peer->worker != op->worker)) {
        ucs_error("the operation's peer belongs to another worker");
        return UCS_ERR_INVALID_PARAM;
    }
    if ((params->field_mask & UCP_ST_OP_PARAM_FIELD_NAME) &&
        (params->name != NULL)) {
        op->name = strdup(params->name);
        if (op->name == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
    }
    ucp_st_stage_query(op->buffer, op->length, &op->memory);
    op->starter.type   = op->memory.type;
    op->starter.device = op->memory.device;
    return (params->field_mask & UCP_ST_OP_PARAM_FIELD_BLOCKS) ?
           ucp_st_op_set_blocks(op, params) : UCS_OK;
}

static ucs_status_t ucp_st_op_create(ucp_st_worker_h worker, ucp_st_dir_t dir,
                                     const ucp_st_op_params_t *params,
                                     ucp_st_op_h *op_p)
{
    ucs_status_t status;
    ucp_st_op_t *op;
    khiter_t iter;
    int ret;

    status = ucp_st_check_call((worker != NULL) && (params != NULL) &&
                               (op_p != NULL));
    if (status != UCS_OK) {
        return status;
    }
    op = calloc(1, sizeof(*op));
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    op->worker   = worker;
    op->dir      = dir;
    op->max_uses = UINT64_MAX;
    ucs_list_head_init(&op->peer_list);
    status = ucp_st_op_set_params(op, params);
    if (status != UCS_OK) {
        goto err_free;
    }
    ucp_st_lanes_prepare(op);
    ucp_st_worker_lock(worker);
    op->id = worker->next_op_id++;
    iter   = kh_put(ucp_st_ops, &worker->op_table, op->id, &ret);
    if (ret < 0) {
        status = UCS_ERR_NO_MEMORY;
        goto err_unlock;
    }
    kh_value(&worker->op_table, iter) = op;
    ucs_list_add_tail(&worker->ops, &op->list);
    if (ucp_st_peer_is_real(op->peer)) {
        ucs_list_add_tail(&op->peer->ops, &op->peer_list);
    }
    ++worker->stats.ops;
    ucp_st_worker_unlock(worker);
    *op_p = op;
    return UCS_OK;

err_unlock:
    ucp_st_worker_unlock(worker);
    ucs_gstream_cell_put(op->cell);
    free(op->ipc_key);
err_free:
    free(op->name);
    free(op);
    return status;
}

ucs_status_t ucp_st_send_init(ucp_st_worker_h worker,
                              const ucp_st_op_params_t *params,
                              ucp_st_op_h *op_p)
{
    return ucp_st_op_create(worker, UCP_ST_DIR_SEND, params, op_p);
}

ucs_status_t ucp_st_recv_init(ucp_st_worker_h worker,
                              const ucp_st_op_params_t *params,
                              ucp_st_op_h *op_p)
{
    return ucp_st_op_create(worker, UCP_ST_DIR_RECV, params, op_p);
}

ucs_status_t ucp_st_op_query(ucp_st_op_h op, ucp_st_op_attr_t *attr)
{
    ucs_status_t status = ucp_st_check_call((op != NULL) && (attr != NULL));

    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(op->worker);
    ucp_st_lanes_poll(op->worker);
    attr->lane      = (op->lane == NULL) ? UCP_ST_LANE_NONE : op->lane->id;
    attr->protocol  = (op->lane == NULL) ? "none" : op->lane->op.protocol(op);
    attr->length    = op->msg_length;
    attr->started   = op->started;
    attr->completed = ucp_st_op_uses_done(op);
    attr->status    = op->status;
    attr->queue     = op->queue;
    attr->reason    = (op->reason == NULL) ? "" : op->reason;
    ucp_st_worker_unlock(op->worker);
    return UCS_OK;
}

/* How the last use stands, whose commands have run; the lock is held */
static ucs_status_t ucp_st_op_test_passed(const ucp_st_op_t *op)
{
    ucs_status_t status = (op->queue == NULL) ? UCS_OK :
                          ucp_st_queue_status(op->queue);

    if (ucp_st_op_uses_done(op) >= op->started) {
        /* A receive's data may not be in place before a wait */
        return ((op->started == op->waited) ||
                (ucp_st_op_is_left(op) && (op->dir == UCP_ST_DIR_SEND))) ?
               UCS_OK : UCS_ERR_NO_MESSAGE;
    }
    if (op->state == UCP_ST_OP_FAILED) {
        return op->status;
    }
    return ((status == UCS_OK) && (op->started > op->waited)) ?
           UCS_INPROGRESS : status;
}

ucs_status_t ucp_st_op_test(ucp_st_op_h op)
{
    ucs_status_t status = ucp_st_check_call(op != NULL);
    int is_ahead;

    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(op->worker);
    ucp_st_lanes_poll(op->worker);
    is_ahead = ucp_st_op_is_ahead(op);
    status   = (ucp_st_op_is_on_stream(op) || is_ahead) ?
               UCS_INPROGRESS : ucp_st_op_test_passed(op);
    if (status == UCS_INPROGRESS) {
        op->asked = op->started;
    }
    if ((status == UCS_OK) && (op->queue != NULL)) {
        op->queue->seen = ucs_max(op->queue->seen, op->last_seq);
    }
    ucp_st_worker_unlock(op->worker);
    if (is_ahead && (op->queue != NULL)) {
        ucp_st_queue_ask(op->queue);
    }
    return status;
}

/* Tell the counterpart that this half ends */
static void ucp_st_op_detach(ucp_st_op_t *op)
{
    if (op->state == UCP_ST_OP_MATCHING) {
        /* The peer may have paired it already: it stays in the list, so that
         * the order of matching is the same on both sides, until the peer
         * either confirms or sends its half */
        if (op->key != NULL) {
            --op->key->count[op->dir];
        }
        ucp_st_ctrl_post(op->peer, UCP_ST_CTRL_CANCEL, 0, op->id);
    } else if ((op->state == UCP_ST_OP_MATCHED) && (op->lane != NULL)) {
        ucp_st_lanes_revoke(op);
        if (op->peer->status == UCS_OK) {
            ucp_st_op_tell_unmatched(op);
        }
    }
}

/* A use is under way and not known to have failed, or it cannot be stopped */
static int ucp_st_op_is_in_use(ucp_st_op_t *op)
{
    if (((op->lane != NULL) && op->lane->op.uses_buffer(op)) ||
        ((op->early || ucp_st_stage_is_used(op)) &&
         ucp_st_op_is_on_stream(op))) {
        return 1; /* the stream copies to it, or from it */
    }
    if ((op->state == UCP_ST_OP_FAILED) ||
        ((op->queue != NULL) && (ucp_st_queue_status(op->queue) != UCS_OK))) {
        return 0;
    }
    return ((op->started > op->waited) && !ucp_st_op_is_left(op)) ||
           ucp_st_op_is_on_stream(op) || ucp_st_ahead_is_in_use(op);
}

ucs_status_t ucp_st_op_free_begin(ucp_st_op_t *op)
{
    if ((op->lane != NULL) && op->lane->op.uses_buffer(op)) {
        (void)op->lane->worker.progress(op->worker); /* it may be complete */
    }
    if (ucp_st_op_is_in_use(op)) {
        return UCS_ERR_BUSY;
    }
    ucp_st_ahead_take_back(op);
    if ((op->state == UCP_ST_OP_MATCHED) &&
        (op->started > ucp_st_op_uses_done(op))) {
        /* Its queue is in error: no wait for the use follows */
        ucp_st_op_fail(op, UCS_ERR_CANCELED);
        if ((op->lane != NULL) && op->lane->op.uses_buffer(op)) {
            return UCS_ERR_BUSY;
        }
    }
    return UCS_OK;
}

void ucp_st_op_free_end(ucp_st_op_t *op)
{
    ucp_st_worker_h worker = op->worker;

    ucp_st_op_detach(op);
    op->freed = 1;
    ucs_list_del(&op->list);
    ucs_list_add_tail(&worker->on_stream, &op->list);
    --worker->stats.ops;
    ++worker->stats.freed;
    ucp_st_op_dispose(op);
    ucp_st_op_reap(op);
}

ucs_status_t ucp_st_op_free(ucp_st_op_h op)
{
    ucp_st_worker_h worker;
    ucs_status_t status;

    status = ucp_st_check_call(op != NULL);
    if (status != UCS_OK) {
        return status;
    }
    if (op->exchange != NULL) {
        ucs_error("operation %p is freed with its exchange", op);
        return UCS_ERR_INVALID_PARAM;
    }
    worker = op->worker;
    ucp_st_worker_lock(worker);
    status = ucp_st_op_free_begin(op);
    if (status == UCS_OK) {
        ucp_st_op_free_end(op);
    }
    ucp_st_worker_unlock(worker);
    return status;
}
