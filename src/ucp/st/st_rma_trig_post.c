/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_trig_post.c - one-sided operations on lane trig: what the NIC is
 * given, and what becomes of it. The worker's lock is held.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_rma_trig.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_peer.h"
#include "st_queue.h"
#include "st_trig_use.h"
#include "st_worker.h"

#include <ucs/sys/math.h>

/* The queue is done with an operation, however it went */
static void ucp_st_rma_trig_end(ucp_st_rma_trig_op_t *op)
{
    if (op->is_quiet || op->is_ended) {
        return;
    }
    op->is_ended = 1;
    --op->rma.peer->rma_open;
    ucp_st_rma_drop(&op->rma);
    ucp_st_rma_ended(op->rma.queue, UCP_ST_LANE_TRIG);
}

void ucp_st_rma_trig_destroy(ucp_st_rma_trig_op_t *op)
{
    ucp_st_rma_trig_end(op);
    if (op->slot != NULL) {
        op->slot->is_used = 0;
    }
    ucp_st_rma_trig_put(op);
}

/* It fails at the limit of a counter only, before which operations are refused
 */
void ucp_st_rma_trig_count(uct_trig_cntr_h cntr, uint64_t value)
{
    if ((value > 0) && (uct_trig_cntr_add(cntr, value) != UCS_OK)) {
        ucs_error("lane 'trig': a counter is out of order");
    }
}

void ucp_st_rma_trig_abort(ucp_st_rma_trig_op_t *op)
{
    ucp_st_rma_trig_t *trig = op->trig;

    ucp_st_rma_trig_count(trig->done, ucp_st_rma_trig_counts(op));
    ucs_list_del(&op->list);
    ucs_list_add_tail(&trig->over, &op->list);
    ucp_st_rma_trig_end(op);
    if (op->is_signalled && (op->slot != NULL)) {
        ucp_st_rma_trig_count(op->slot->data, op->writes);
    }
    if (op->pending == 0) {
        ucp_st_rma_trig_destroy(op);
    }
}

/* A part has failed. A signal that waits for the data must not be sent to who
 * is there: the peer is given up, and then it is. */
static void ucp_st_rma_trig_failed(ucp_st_rma_trig_op_t *op,
                                   ucs_status_t status)
{
    ucp_st_peer_t *peer = op->rma.peer;

    ++op->failed;
    if (op->is_ended) {
        return;
    }
    ucs_diag("queue %p: a one-sided operation of %zu bytes to peer 0x%lx "
             "failed: %s", op->rma.queue, op->rma.length, peer->uuid,
             ucs_status_string(status));
    if (!peer->is_self &&
        (ucp_st_trig_is_loss(status) || (op->slot != NULL))) {
        ucp_st_leave_lost(peer, status);
        return;
    }
    ++op->trig->worker->stats.errors;
    ucp_st_queue_fail(op->rma.queue, NULL, status);
    ucp_st_rma_trig_abort(op);
}

/* The NIC does not reach the own word: the stream is let go, whatever it waits
 * for there */
static void ucp_st_rma_trig_quiet_failed(ucp_st_rma_trig_op_t *op,
                                         ucs_status_t status)
{
    ucp_st_rma_trig_t *trig = op->trig;

    ucs_error("lane 'trig': no way to the own word: %s",
              ucs_status_string(status));
    if (trig->queue != NULL) {
        ucp_st_queue_fail(trig->queue, NULL, status);
    }
    __atomic_store_n(ucp_st_rma_trig_word(trig), UCP_ST_RELEASE,
                     __ATOMIC_RELEASE);
}

/* The NIC has a part of it no more */
static void ucp_st_rma_trig_part_over(ucp_st_rma_trig_op_t *op)
{
    --op->pending;
    op->trig->rail->ahead -= op->is_ahead;
}

static void ucp_st_rma_trig_quiet_done(void *arg, ucs_status_t status)
{
    ucp_st_rma_trig_op_t *op = arg;

    ucp_st_rma_trig_part_over(op);
    if (status != UCS_OK) {
        ucp_st_rma_trig_quiet_failed(op, status);
    }
    ucs_gstream_wake(ucp_st_rma_trig_word(op->trig));
    ucp_st_rma_trig_destroy(op);
}

/* The NIC is done with a part of an operation */
static void ucp_st_rma_trig_done(void *arg, ucs_status_t status)
{
    ucp_st_rma_trig_op_t *op = arg;
    int has_all;

    if (status != UCS_OK) {
        ucp_st_rma_trig_failed(op, status);
    }
    ucp_st_rma_trig_part_over(op); /* until here it is there */
    has_all = (op->posted == op->writes) &&
              ((op->rma.signal == NULL) || op->is_signalled);
    if ((op->pending == 0) &&
        (op->is_ended || (has_all && (op->failed == 0)))) {
        ucp_st_rma_trig_destroy(op);
    }
}

static uct_trig_deferred_t
ucp_st_rma_trig_deferred(ucp_st_rma_trig_op_t *op, uct_trig_cntr_h trigger,
                         uint64_t threshold, uct_trig_cntr_h completion)
{
    uct_trig_deferred_t deferred = {
        .trigger    = trigger,
        .threshold  = threshold,
        .completion = completion,
        .resv       = op->is_ahead ? NULL : &op->trig->resv,
        .done       = ucp_st_rma_trig_done,
        .arg        = op
    };

    return deferred;
}

/* A slot that no pair of data and signal has */
static ucs_status_t ucp_st_rma_trig_get_slot(ucp_st_rma_trig_op_t *op)
{
    ucp_st_rma_trig_slot_t *slot = op->trig->slots;
    ucp_st_rma_trig_slot_t *end  = slot + UCP_ST_RMA_TRIG_SLOTS;
    ucs_status_t status;

    while ((slot < end) && slot->is_used) {
        ++slot;
    }
    if (slot == end) {
        return UCS_ERR_NO_RESOURCE;
    }
    if (slot->data == NULL) {
        status = ucp_st_rma_trig_slot_init(op->trig, slot);
        if (status != UCS_OK) {
            return UCS_ERR_NO_RESOURCE; /* there is one, if it is in use */
        }
    }
    slot->is_used  = 1;
    slot->counted += op->writes;
    op->slot       = slot;
    return UCS_OK;
}

static ucs_status_t ucp_st_rma_trig_post_data(ucp_st_rma_trig_op_t *op)
{
    const ucp_st_rma_t *rma      = &op->rma;
    uct_ep_h ep                  = rma->peer->trig.chain[0].ep;
    size_t offset                = op->posted * rma->peer->trig.limits.put_max;
    uct_trig_deferred_t deferred = ucp_st_rma_trig_deferred(
            op, op->trig->start, op->threshold,
            (op->slot != NULL) ? op->slot->data : op->trig->done);
    uct_trig_put_t put           = {
        .buffer      = rma->buffer + offset,
        .length      = ucs_min(rma->length - offset,
                               rma->peer->trig.limits.put_max),
        .local       = rma->mem->trig,
        .remote_addr = rma->rkey->remote + rma->offset + offset,
        .rkey        = rma->rkey->trig
    };
    uct_trig_get_t get           = {
        .buffer      = rma->buffer + offset,
        .length      = put.length,
        .local       = put.local,
        .remote_addr = put.remote_addr,
        .rkey        = put.rkey
    };

    return (rma->type == UCP_ST_RMA_PUT) ?
           uct_trig_ep_put(ep, &put, &deferred) :
           uct_trig_ep_get(ep, &get, &deferred);
}

static ucs_status_t ucp_st_rma_trig_post_signal(ucp_st_rma_trig_op_t *op)
{
    const ucp_st_rma_t *rma      = &op->rma;
    ucp_st_rma_trig_slot_t *slot = op->slot;
    uct_ep_h ep                  = rma->peer->trig.chain[0].ep;
    uint64_t address             = rma->signal->remote + rma->signal_offset;
    int has_data                 = (op->writes > 0);
    uct_trig_deferred_t deferred = ucp_st_rma_trig_deferred(
            op, has_data ? slot->data : op->trig->start,
            has_data ? slot->counted : op->threshold, op->trig->done);
    uct_trig_atomic_t add        = {
        .value       = rma->signal_value,
        .remote_addr = address,
        .rkey        = rma->signal->trig
    };
    uct_trig_put_t put           = {
        .buffer      = slot->piece.address,
        .length      = sizeof(uint64_t),
        .local       = slot->piece.slab->mem,
        .remote_addr = address,
        .rkey        = rma->signal->trig
    };

    if (rma->signal_op == UCP_ST_SIGNAL_ADD) {
        return uct_trig_ep_atomic_add64(ep, &add, &deferred);
    }
    *(uint64_t*)slot->piece.address = rma->signal_value;
    return uct_trig_ep_put(ep, &put, &deferred);
}

static ucs_status_t ucp_st_rma_trig_post_quiet(ucp_st_rma_trig_op_t *op)
{
    ucp_st_rma_trig_t *trig      = op->trig;
    uct_trig_deferred_t deferred = {
        .trigger   = trig->done,
        .threshold = op->threshold,
        .resv      = op->is_ahead ? NULL : &trig->resv,
        .done      = ucp_st_rma_trig_quiet_done,
        .arg       = op
    };
    uct_trig_atomic_t add        = {
        .value       = op->value,
        .remote_addr = (uintptr_t)trig->piece.address,
        .rkey        = trig->piece.slab->rkey
    };

    return uct_trig_ep_atomic_add64(trig->rail->self_ep, &add, &deferred);
}

/* An entry is free for the next part. Those that one operation has at a time
 * are of one kind. */
static int ucp_st_rma_trig_has_entry(ucp_st_rma_trig_op_t *op)
{
    const ucp_st_rma_trig_t *trig = op->trig;

    if (op->pending == 0) {
        op->is_ahead = (trig->resv.used == trig->resv.total);
    }
    return op->is_ahead ? (trig->rail->ahead < trig->rail->max_ahead) :
                          (trig->resv.used < trig->resv.total);
}

/* The next part of an operation, of which one is missing */
static ucs_status_t ucp_st_rma_trig_post_part(ucp_st_rma_trig_op_t *op)
{
    ucs_status_t status = UCS_OK;

    if (!ucp_st_rma_trig_has_entry(op)) {
        return UCS_ERR_NO_RESOURCE;
    }
    /* It may complete before it returns */
    ++op->pending;
    op->trig->rail->ahead += op->is_ahead;
    if (op->is_quiet) {
        status = ucp_st_rma_trig_post_quiet(op);
    } else if (op->posted < op->writes) {
        status = ucp_st_rma_trig_post_data(op);
        op->posted += (status == UCS_OK);
    } else {
        status = ucp_st_rma_trig_post_signal(op);
        op->is_signalled = (status == UCS_OK);
    }
    if (status != UCS_OK) {
        ucp_st_rma_trig_part_over(op);
    }
    return status;
}

/* All parts of an operation: UCS_ERR_NO_RESOURCE if there is no room for one
 * now */
static ucs_status_t ucp_st_rma_trig_post(ucp_st_rma_trig_op_t *op)
{
    int has_signal      = (op->rma.signal != NULL);
    ucs_status_t status = UCS_OK;

    if (has_signal && (op->slot == NULL)) {
        status = ucp_st_rma_trig_get_slot(op);
    }
    while ((status == UCS_OK) &&
           ((op->posted < op->writes) || (has_signal && !op->is_signalled) ||
            (op->is_quiet && (op->pending == 0)))) {
        status = ucp_st_rma_trig_post_part(op);
    }
    return status;
}

/* The first one that waits cannot be posted */
static void ucp_st_rma_trig_refused(ucp_st_rma_trig_op_t *op,
                                    ucs_status_t status)
{
    ucp_st_peer_t *peer = op->rma.peer;

    if (op->is_quiet) {
        ucp_st_rma_trig_quiet_failed(op, status);
        ucp_st_rma_trig_destroy(op);
    } else if (!peer->is_self && ucp_st_trig_is_loss(status)) {
        ucp_st_leave_lost(peer, status); /* it fails with the peer */
    } else {
        ++op->trig->worker->stats.errors;
        ucp_st_queue_fail(op->rma.queue, NULL, status);
        ucp_st_rma_trig_abort(op);
    }
}

void ucp_st_rma_trig_post_late(ucp_st_rma_trig_t *trig)
{
    ucp_st_rma_trig_op_t *op;
    ucs_status_t status;

    while (!ucs_list_is_empty(&trig->late)) {
        op = ucs_list_head(&trig->late, ucp_st_rma_trig_op_t, list);
        if (!op->is_quiet && (op->pending == 0) &&
            (ucp_st_queue_status(op->rma.queue) != UCS_OK)) {
            ucp_st_rma_trig_abort(op);
            continue;
        }
        status = ucp_st_rma_trig_post(op);
        if (status == UCS_OK) {
            ucs_list_del(&op->list);
            ucs_list_add_tail(&trig->posted, &op->list);
        } else {
            if (status != UCS_ERR_NO_RESOURCE) {
                ucp_st_rma_trig_refused(op, status);
            }
            return;
        }
    }
}
