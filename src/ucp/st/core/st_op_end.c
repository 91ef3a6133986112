/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_op_end.c - how operations and queues fail, and the end of an operation's
 * life.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_op.h"
#include "core/st_exchange.h"
#include "core/st_key.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_stage.h"
#include "ctrl/st_ctrl.h"

#include <ucs/sys/math.h>

#include <stdlib.h>

/* This side still reads or writes memory of the peer. The peer relies on it
 * that nothing does once it was told of the end, or answered. */
static int ucp_st_op_is_reaching(const ucp_st_op_t *op)
{
    return (op->lane != NULL) && op->lane->op.is_reaching(op);
}

void ucp_st_op_tell_unmatched(ucp_st_op_t *op)
{
    ucp_st_ctrl_op_t msg = {
        .op_id     = op->remote_id,
        .src_op_id = op->id,
        .uses      = ucp_st_op_uses_done(op),
        .status    = (op->status == UCS_OK) ? UCS_ERR_CANCELED : op->status
    };

    op->tells_late = ucp_st_op_is_reaching(op);
    if (op->tells_late) {
        return;
    }
    op->is_told = 1;
    ucp_st_ctrl_post_with(op->peer, UCP_ST_CTRL_UNMATCH, &msg, NULL, 0);
}

void ucp_st_op_dispose(ucp_st_op_t *op)
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
        ucp_st_key_forget(op);
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

/* The last start is in a submission of this queue behind the first `passed`
 * ones, or kernels have not made it */
static int ucp_st_op_is_unbegun(const ucp_st_op_t *op, ucp_st_queue_h queue,
                                uint64_t passed)
{
    return (op->queue == queue) && (op->state == UCP_ST_OP_MATCHED) &&
           (op->lane != NULL) &&
           ((passed < op->start_seq) ||
            (ucp_st_op_uses_started(op) < op->started));
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

void ucp_st_queue_fail(ucp_st_queue_h queue, ucp_st_op_h op,
                       ucs_status_t status)
{
    const ucp_st_component_t *component;

    if (queue->status != UCS_OK) {
        return;
    }
    queue->failed_op = op;
    __atomic_store_n(&queue->status, status, __ATOMIC_RELEASE);
    __atomic_store_n(queue->marks[UCP_ST_QUEUE_WORD_FAILED], 1,
                     __ATOMIC_RELEASE);
    ucp_st_for_each_component(component) {
        component->queue.fail(queue);
    }
    ucp_st_op_fail_unbegun(queue);
    __atomic_store_n(&queue->is_stopped, 1, __ATOMIC_RELEASE);
}

void ucp_st_queue_fail_stream(ucp_st_queue_h queue, const char *how)
{
    ucs_error("queue %p: its stream has failed%s", queue, how);
    ucp_st_worker_lock(queue->worker);
    ++queue->worker->stats.errors;
    ucp_st_queue_fail(queue, NULL, UCS_ERR_IO_ERROR);
    ucp_st_worker_unlock(queue->worker);
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

void ucp_st_exchange_put(ucp_st_exchange_t *exchange)
{
    unsigned i;

    if (--exchange->refs > 0) {
        return;
    }
    for (i = 0; i < UCP_ST_LANE_LAST; ++i) {
        free(exchange->priv[i]);
    }
    free(exchange->ops);
    free(exchange);
}

void ucp_st_exchange_leave(ucp_st_op_t *op)
{
    ucp_st_exchange_t *exchange = op->exchange;

    if (exchange != NULL) {
        exchange->ops[op->exchange_index] = NULL;
        op->exchange                      = NULL;
        ucp_st_exchange_put(exchange);
    }
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
        return; /* the peer has not confirmed */
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
        ucp_st_key_forget(op);
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
        ucp_st_key_forget(op);
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
 * here needs no answer. Zero if the operation is not gone, and still reaches
 * what is the peer's, which is to be answered when that is over. */
static int ucp_st_op_unmatched(ucp_st_op_t *op, const ucp_st_ctrl_op_t *msg)
{
    ucs_status_t status = ucp_st_proto_status(msg->status);

    op->peer_closed = 1;
    ucp_st_lanes_revoke(op);
    op->max_uses = msg->uses;
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

void ucp_st_op_handle_unmatch(ucp_st_peer_t *peer, const ucp_st_ctrl_op_t *msg)
{
    ucp_st_op_t *op = ucp_st_op_find(peer, msg->op_id);

    /* Behind the peer's BIND, which has matched it */
    if ((op != NULL) && (op->remote_id == msg->src_op_id) &&
        ((op->state == UCP_ST_OP_MATCHED) ||
         (op->state == UCP_ST_OP_FAILED)) &&
        !ucp_st_op_unmatched(op, msg)) {
        op->acks_late = 1;
        return;
    }
    /* Once the peer knows that the region is closed, it can get rid of work
     * that was to write here */
    ucp_st_ctrl_post(peer, UCP_ST_CTRL_UNMATCH_ACK, msg->src_op_id, 0);
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
        ucp_st_ctrl_post(op->peer, UCP_ST_CTRL_UNMATCH_ACK, op->remote_id, 0);
    }
}
