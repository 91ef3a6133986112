/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_op.c - persistent operations: creation, failure, and the end of their
 * life.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_op.h"
#include "core/st_ahead.h"
#include "core/st_exchange.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_match.h"
#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_stage.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>
#include <ucs/type/param.h>

#include <stdlib.h>
#include <string.h>

#define UCP_ST_OP_FLAGS_ALL UCP_ST_OP_FLAG_ANY_TAG

void ucp_st_op_set_state(ucp_st_op_t *op, ucp_st_op_state_t state)
{
    static const uint8_t legal_from[] = {
        [UCP_ST_OP_INIT]     = UCS_BIT(UCP_ST_OP_MATCHING),
        [UCP_ST_OP_MATCHING] = UCS_BIT(UCP_ST_OP_INIT),
        [UCP_ST_OP_MATCHED]  = UCS_BIT(UCP_ST_OP_MATCHING),
        [UCP_ST_OP_FAILED]   = UCS_BIT(UCP_ST_OP_MATCHING) |
                               UCS_BIT(UCP_ST_OP_MATCHED)
    };

    if (!(legal_from[state] & UCS_BIT(op->state))) {
        ucs_error("operation %p: state %d cannot follow %d", op, state,
                  op->state);
    }
    __atomic_store_n(&op->state, state, __ATOMIC_RELEASE);
}

ucp_st_op_t *ucp_st_op_get(ucp_st_worker_h worker, uint64_t id)
{
    khash_t(ucp_st_ops) *table = &worker->op_table;
    khiter_t iter              = kh_get(ucp_st_ops, table, id);

    return (iter == kh_end(table)) ? NULL : kh_value(table, iter);
}

ucp_st_op_t *ucp_st_op_find(ucp_st_peer_t *peer, uint64_t id)
{
    ucp_st_op_t *op = ucp_st_op_get(peer->worker, id);

    return ((op == NULL) || (op->peer != peer)) ? NULL : op;
}

ucs_status_t ucp_st_op_check_all(const ucp_st_op_h *ops, size_t count,
                                 ucp_st_op_check_t check, ucp_st_queue_h queue,
                                 size_t *marked_p)
{
    ucs_status_t status;
    ucp_st_op_t *op;

    for (*marked_p = 0; *marked_p < count; ++*marked_p) {
        op = ops[*marked_p];
        if (op == NULL) {
            return UCS_ERR_INVALID_PARAM;
        }
        if (op->worker != ((queue != NULL) ? queue->worker : ops[0]->worker)) {
            ucs_error("operation %p belongs to another worker than the %s", op,
                      (queue != NULL) ? "queue" : "first one");
            return UCS_ERR_INVALID_PARAM;
        }
        if (op->marked) {
            ucs_log(op->worker->refuse_level, "operation %p is there twice",
                    op);
            return UCS_ERR_INVALID_PARAM;
        }
        status = check(queue, op);
        if (status != UCS_OK) {
            return status;
        }
        op->marked = 1;
    }
    return UCS_OK;
}

/* Uses that have completed. The NIC's own count is ahead of `completed`, which
 * follows when the completion is reaped. */
uint64_t ucp_st_op_uses_done(const ucp_st_op_t *op)
{
    uint64_t uses = (op->lane == NULL) ? 0 : op->lane->op.uses_done(op);

    return (uses > op->completed) ? uses : op->completed;
}

uint64_t ucp_st_op_uses_ended(const ucp_st_op_t *op)
{
    return ((op->lane != NULL) && op->is_exact) ? ucp_st_op_uses_done(op) :
                                                  op->completed;
}

int ucp_st_op_is_left(const ucp_st_op_t *op)
{
    return (op->queue == NULL) && (op->started > op->waited) &&
           (ucp_st_op_uses_done(op) >= op->started);
}

/* This side still reads or writes what is the peer's, which relies on it that
 * nothing does once it was told of the end, or answered */
static int ucp_st_op_is_reaching(const ucp_st_op_t *op)
{
    return (op->lane != NULL) && op->lane->op.is_reaching(op);
}

void ucp_st_op_tell_unmatched(ucp_st_op_t *op)
{
    ucp_st_msg_op_t msg = {
        .op_id     = op->remote_id,
        .src_op_id = op->id,
        .uses      = ucp_st_op_uses_done(op),
        .status    = (op->status == UCS_OK) ? UCS_ERR_CANCELED : op->status
    };

    op->tells_late = ucp_st_op_is_reaching(op);
    if (op->tells_late) {
        return;
    }
    op->is_told     = 1;
    op->told_uses   = msg.uses;
    op->told_status = (ucs_status_t)msg.status;
    op->told_time   = ucp_st_worker_now();
    ucp_st_outbox_post_with(op->peer, UCP_ST_MSG_UNMATCH, &msg, NULL, 0);
    if (op->state == UCP_ST_OP_FAILED) {
        ucp_st_watch_wake(op->worker); /* no host may make a call */
    }
}

/* Get rid of posted work if it cannot reach the peer's memory any more */
static void ucp_st_op_dispose(ucp_st_op_t *op)
{
    if ((op->lane != NULL) &&
        (op->peer_closed ||
         ((op->peer->status != UCS_OK) && op->peer->closed))) {
        op->lane->op.dispose(op);
    }
}

static void ucp_st_op_fail_alone(ucp_st_op_t *op, ucs_status_t status)
{
    int was_matched = (op->state == UCP_ST_OP_MATCHED);
    int in_use;

    if (op->state == UCP_ST_OP_FAILED) {
        return;
    }
    op->completed = ucp_st_op_uses_done(op);
    in_use        = (ucp_st_op_uses_started(op) > op->completed);
    ucs_debug("operation %p fails: %s", op, ucs_status_string(status));
    ucp_st_op_set_state(op, UCP_ST_OP_FAILED);
    op->status = status;
    if (!was_matched) {
        ucp_st_match_forget(op);
    }

    /* Close the region, stop the starts, then release the streams. The queue's
     * state is set before, as the host looks at it once the stream has passed;
     * setting it releases waits of other operations. */
    ucp_st_lanes_revoke(op);
    if (op->lane != NULL) {
        op->lane->op.halt(op);
    }
    if (in_use) {
        ++op->worker->stats.errors;
        if (op->queue != NULL) { /* else it was destroyed after the start */
            ucp_st_queue_fail(op->queue, op, status);
        }
    }
    if (op->lane != NULL) {
        op->lane->op.release_waits(op);
    }
    if (!was_matched || (op->lane == NULL)) {
        return;
    }
    if (op->peer->status == UCS_OK) {
        ucp_st_op_tell_unmatched(op);
    }
    ucp_st_op_dispose(op);
}

/* An exchange fails as a whole, once: all are halted before the first wait of
 * it is released. What fails to match fails alone: the others end their
 * matching as they would, so that each pair's own error is seen at both ends,
 * and none can be started. */
void ucp_st_op_fail(ucp_st_op_t *op, ucs_status_t status)
{
    ucp_st_exchange_t *exchange = op->exchange;
    ucp_st_op_t *other;

    if ((exchange == NULL) || exchange->has_failed ||
        (op->state != UCP_ST_OP_MATCHED)) {
        ucp_st_op_fail_alone(op, status);
        return;
    }
    exchange->has_failed = 1;
    ucp_st_exchange_for_each(other, exchange) {
        if ((other->state == UCP_ST_OP_MATCHED) && (other->lane != NULL)) {
            ucp_st_lanes_revoke(other);
            other->lane->op.halt(other);
        }
    }
    ucp_st_op_fail_alone(op, status);
    ucp_st_exchange_for_each(other, exchange) {
        if (other->state != UCP_ST_OP_INIT) {
            ucp_st_op_fail_alone(other, status);
        }
    }
}

/* The last start is in a batch of this queue behind the first `passed` ones, or
 * kernels have not made it */
static int ucp_st_op_is_unbegun(const ucp_st_op_t *op, ucp_st_queue_h queue,
                                uint64_t passed)
{
    return (op->queue == queue) && (op->state == UCP_ST_OP_MATCHED) &&
           (op->lane != NULL) &&
           ((passed < op->start_seq) || ucp_st_ahead_is_unbegun(op));
}

void ucp_st_op_fail_unbegun(ucp_st_queue_h queue)
{
    ucs_list_link_t *lists[] = {&queue->worker->ops, &queue->worker->on_stream};
    /* Read once, as the stream goes on: all that are halted must fail, too */
    uint64_t passed          = ucp_st_queue_passed(queue);
    ucp_st_op_t *op;
    unsigned i;

    /* All are halted before the first wait is released: the stream may pass
     * that one, and run the start of the next */
    for (i = 0; i < ucs_static_array_size(lists); ++i) {
        ucs_list_for_each(op, lists[i], list) {
            if (ucp_st_op_is_unbegun(op, queue, passed)) {
                op->lane->op.halt(op);
            }
        }
    }
    for (i = 0; i < ucs_static_array_size(lists); ++i) {
        ucs_list_for_each(op, lists[i], list) {
            if (ucp_st_op_is_unbegun(op, queue, passed)) {
                ucp_st_op_fail(op, UCS_ERR_CANCELED);
            }
        }
    }
}

static void ucp_st_op_check_limit(ucp_st_op_t *op)
{
    if ((op->state != UCP_ST_OP_INIT) && (op->started > op->max_uses) &&
        (ucp_st_op_uses_done(op) >= op->max_uses)) {
        ucp_st_op_fail(op, UCS_ERR_CANCELED);
    }
}

void ucp_st_op_complete_uses(ucp_st_op_t *op, uint64_t count)
{
    if (op->state != UCP_ST_OP_FAILED) {
        op->completed += count;
        ucp_st_op_check_limit(op);
    }
}

/* Commands of a stream still name the operation */
static int ucp_st_op_is_on_stream(const ucp_st_op_t *op)
{
    return (op->queue != NULL) &&
           (ucp_st_queue_passed(op->queue) < op->last_seq);
}

/* Only a lane and the peer may still wait for the operation. The peer needs
 * nothing of the lane. */
static void ucp_st_op_destroy(ucp_st_op_t *op, int is_forced)
{
    khash_t(ucp_st_ops) *table = &op->worker->op_table;

    if (ucp_st_lanes_are_busy(op)) {
        return;
    }
    ucp_st_lanes_release(op, 0);
    ucp_st_stage_release(op);
    if (op->is_told && !op->peer_closed && (op->peer->status == UCS_OK) &&
        !is_forced) {
        return; /* a peer that does not confirm is told again */
    }
    ucs_list_del(&op->list);
    ucs_list_del(&op->peer_list);
    kh_del(ucp_st_ops, table, kh_get(ucp_st_ops, table, op->id));
    --op->worker->stats.freed;
    ucp_st_exchange_leave(op);
    free(op->trace);
    ucs_gstream_cell_put(op->cell);
    free(op->ipc_key);
    free(op->name);
    free(op);
}

void ucp_st_op_drop_all(ucp_st_worker_h worker)
{
    ucp_st_op_t *op, *tmp;

    ucp_st_op_reap_freed(worker); /* no queue is left */
    ucs_list_for_each_safe(op, tmp, &worker->deferred, list) {
        ucp_st_match_forget(op);
        ucp_st_op_destroy(op, 1);
    }
}

void ucp_st_op_reap(ucp_st_op_t *op)
{
    if (!op->freed || ucp_st_op_is_on_stream(op)) {
        return;
    }
    /* No command names it any more. Lanes and peers that it waits for call
     * here. */
    ucs_list_del(&op->list);
    ucs_list_add_tail(&op->worker->deferred, &op->list);
    if (op->func_release != NULL) {
        op->func_release(op->func_arg);
        op->func_release = NULL;
    }
    if (op->state != UCP_ST_OP_MATCHING) {
        ucp_st_op_destroy(op, 0);
    }
}

void ucp_st_op_reap_freed(ucp_st_worker_h worker)
{
    ucp_st_op_t *op, *tmp;

    ucs_list_for_each_safe(op, tmp, &worker->on_stream, list) {
        ucp_st_op_reap(op);
    }
}

void ucp_st_op_peer_gone(ucp_st_op_t *op)
{
    if (op->state == UCP_ST_OP_MATCHING) {
        ucp_st_match_forget(op);
        ucp_st_op_set_state(op, UCP_ST_OP_FAILED);
    }
    ucp_st_op_dispose(op);
    ucp_st_op_reap(op);
}

void ucp_st_op_peer_done(ucp_st_op_t *op)
{
    op->peer_closed = 1;
    ucp_st_op_peer_gone(op);
}

/* The peer does not read or write here any more: the uses that it took part in
 * are delivered. Its own region is closed as well. So a half that was freed
 * here needs no answer: the peer's host may make no calls, and has heard
 * nothing. */
int ucp_st_op_unmatched(ucp_st_op_t *op, uint64_t uses, int32_t reason)
{
    ucs_status_t status = ucp_st_proto_status(reason);

    op->peer_closed = 1;
    ucp_st_lanes_revoke(op);
    op->max_uses = uses;
    if ((status == UCS_ERR_CANCELED) || (status == UCS_OK)) {
        ucp_st_op_check_limit(op);
    } else {
        ucp_st_op_fail(op, status);
    }
    if ((op->state == UCP_ST_OP_FAILED) || op->freed) {
        ucp_st_op_dispose(op);
    }
    if (ucp_st_op_is_reaching(op)) {
        return 0;
    }
    ucp_st_op_reap(op);
    return 1;
}

void ucp_st_op_handle_unmatch(ucp_st_peer_t *peer, const ucp_st_msg_op_t *msg)
{
    ucp_st_op_t *op = ucp_st_op_find(peer, msg->op_id);

    /* Behind the peer's BIND, which has matched it */
    if ((op != NULL) && (op->remote_id == msg->src_op_id) &&
        ((op->state == UCP_ST_OP_MATCHED) ||
         (op->state == UCP_ST_OP_FAILED)) &&
        !ucp_st_op_unmatched(op, msg->uses, msg->status)) {
        op->acks_late = 1;
        return;
    }
    /* Once the peer knows that the region is closed, it can get rid of work
     * that was to write here */
    ucp_st_outbox_post(peer, UCP_ST_MSG_UNMATCH_ACK, msg->src_op_id, 0);
}

void ucp_st_op_settled(ucp_st_op_t *op)
{
    if (op->peer->status != UCS_OK) {
        return;
    }
    if (op->tells_late) {
        ucp_st_op_tell_unmatched(op);
    }
    if (op->acks_late) {
        op->acks_late = 0;
        ucp_st_outbox_post(op->peer, UCP_ST_MSG_UNMATCH_ACK, op->remote_id, 0);
    }
}

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
        ucp_st_outbox_post(op->peer, UCP_ST_MSG_CANCEL, 0, op->id);
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
    ucp_st_ctrl_flush(worker);
    return status;
}
