/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma.c - one-sided operations: how they are enqueued.
 *
 * What the user gives is checked whole, then the lane of the key makes the
 * stream commands, in front of which others may wait for operations that went
 * over other lanes, and all of it is enqueued as one batch. Only then counts
 * move on.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_rma.h"
#include "st_lane.h"
#include "st_log.h"
#include "st_peer.h"
#include "st_queue.h"
#include "st_rma_trig.h"
#include "st_trace.h"
#include "st_worker.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Waits for other lanes, the operation, and its span */
#define UCP_ST_RMA_BATCH_CMDS \
    (UCP_ST_LANE_LAST + UCP_ST_RMA_MAX_CMDS + UCP_ST_TRACE_MAX_CMDS)

/* How long a NIC may take to tell of what is complete, seconds */
#define UCP_ST_RMA_REAP_TIME 1.0

void ucp_st_rma_queue_init(ucp_st_queue_h queue)
{
    ucs_list_head_init(&queue->rma.flows);
}

static int ucp_st_rma_queue_has_open(ucp_st_queue_h queue)
{
    unsigned i;

    for (i = 0; i < UCP_ST_LANE_LAST; ++i) {
        /* Pairs with the addition in ucp_st_rma_ended() */
        if (__atomic_load_n(&queue->rma.words[i], __ATOMIC_ACQUIRE) <
            queue->rma.issued[i]) {
            return 1;
        }
    }
    return 0;
}

static int ucp_st_rma_is_behind(ucp_st_worker_h worker)
{
    ucp_st_rma_trig_t *trig;

    ucs_list_for_each(trig, &worker->rma.trigs, list) {
        if (ucp_st_rma_trig_is_behind(trig)) {
            return 1;
        }
    }
    return 0;
}

void ucp_st_rma_reap(ucp_st_worker_h worker)
{
    double start = ucp_st_worker_now();

    do {
        ucp_st_lanes_progress_all(worker);
        (void)sched_yield();
    } while (ucp_st_rma_is_behind(worker) &&
             ((ucp_st_worker_now() - start) < UCP_ST_RMA_REAP_TIME));
}

int ucp_st_rma_queue_is_busy(ucp_st_queue_h queue)
{
    if (ucp_st_rma_queue_has_open(queue)) {
        ucp_st_rma_reap(queue->worker); /* it may be over */
    }
    return ucp_st_rma_queue_has_open(queue);
}

void ucp_st_rma_queue_cleanup(ucp_st_queue_h queue)
{
    ucp_st_rma_flow_t *flow, *tmp;

    ucs_list_for_each_safe(flow, tmp, &queue->rma.flows, list) {
        free(flow);
    }
    if (queue->rma.trig != NULL) {
        ucp_st_rma_trig_leave(queue->rma.trig);
    }
}

void ucp_st_rma_queue_count(ucp_st_queue_h queue, ucp_st_stats_t *stats)
{
    uint64_t *counts = queue->rma.counts;
    unsigned i;

    for (i = 0; i < UCP_ST_LANE_LAST; ++i) {
        stats->lanes[i].rmas += ucp_st_queue_count(&queue->rma.issued[i], 0);
    }
    stats->puts    += ucp_st_queue_count(&counts[UCP_ST_RMA_COUNT_PUT], 0);
    stats->gets    += ucp_st_queue_count(&counts[UCP_ST_RMA_COUNT_GET], 0);
    stats->signals += ucp_st_queue_count(&counts[UCP_ST_RMA_COUNT_SIGNAL], 0);
    stats->signal_waits += ucp_st_queue_count(&counts[UCP_ST_RMA_COUNT_WAIT],
                                              0);
    stats->quiets  += ucp_st_queue_count(&counts[UCP_ST_RMA_COUNT_QUIET], 0);
}

static void ucp_st_rma_take(const ucp_st_rma_t *rma)
{
    if (rma->length > 0) {
        ucp_st_rma_hold(&rma->mem->refs);
        ucp_st_rma_hold(&rma->rkey->refs);
    }
    if (rma->signal != NULL) {
        ucp_st_rma_hold(&rma->signal->refs);
    }
}

void ucp_st_rma_drop(const ucp_st_rma_t *rma)
{
    if (rma->length > 0) {
        ucp_st_rma_release(&rma->mem->refs);
        ucp_st_rma_release(&rma->rkey->refs);
    }
    if (rma->signal != NULL) {
        ucp_st_rma_release(&rma->signal->refs);
    }
}

void ucp_st_rma_ended(ucp_st_queue_h queue, ucp_st_lane_t lane)
{
    volatile uint64_t *word = &queue->rma.words[lane];

    /* Pairs with the acquire load of the stream's wait. The queue may be gone
     * after it. */
    (void)__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
    ucs_gstream_wake(word);
}

void ucp_st_rma_signal(uint64_t *word, ucp_st_signal_op_t op, uint64_t value)
{
    if (op == UCP_ST_SIGNAL_ADD) {
        (void)__atomic_fetch_add(word, value, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
    }
}

/* Where a parameter is set, else 0 */
static uint64_t ucp_st_rma_field(uint64_t mask, uint64_t field, uint64_t value)
{
    return (mask & field) ? value : 0;
}

static void ucp_st_rma_read(const ucp_st_rma_params_t *params,
                            ucp_st_rma_t *rma, uint64_t *flags_p)
{
    uint64_t mask = params->field_mask;

    rma->mem    = (mask & UCP_ST_RMA_PARAM_FIELD_MEMH) ? params->memh : NULL;
    rma->rkey   = (mask & UCP_ST_RMA_PARAM_FIELD_RKEY) ? params->rkey : NULL;
    rma->length = ucp_st_rma_field(mask, UCP_ST_RMA_PARAM_FIELD_LENGTH,
                                   params->length);
    rma->offset = ucp_st_rma_field(mask, UCP_ST_RMA_PARAM_FIELD_REMOTE_OFFSET,
                                   params->remote_offset);
    *flags_p    = ucp_st_rma_field(mask, UCP_ST_RMA_PARAM_FIELD_FLAGS,
                                   params->flags);
}

static ucs_status_t ucp_st_rma_refuse(ucp_st_queue_h queue, const char *what)
{
    ucs_error("queue %p: one-sided operation: %s", queue, what);
    return UCS_ERR_INVALID_PARAM;
}

/* The bytes here and at the peer */
static ucs_status_t ucp_st_rma_check_data(ucp_st_rma_t *rma, size_t offset)
{
    ucp_st_queue_h queue = rma->queue;

    if (rma->mem == NULL) {
        return ucp_st_rma_refuse(queue, "bytes, but no memory here");
    }
    if (rma->mem->worker != queue->worker) {
        return ucp_st_rma_refuse(queue, "memory of another worker");
    }
    if (!ucp_st_rma_is_inside(offset, rma->length, rma->mem->length)) {
        ucs_error("queue %p: %zu bytes at offset %zu are not inside memory of "
                  "%zu bytes", queue, rma->length, offset, rma->mem->length);
        return UCS_ERR_INVALID_PARAM;
    }
    if (!ucp_st_rma_is_inside(rma->offset, rma->length, rma->rkey->length)) {
        ucs_error("queue %p: %zu bytes at offset %zu are not inside the peer's "
                  "memory of %zu bytes", queue, rma->length, rma->offset,
                  rma->rkey->length);
        return UCS_ERR_INVALID_PARAM;
    }
    rma->buffer = rma->mem->address + offset;
    return UCS_OK;
}

static ucs_status_t ucp_st_rma_check(const ucp_st_rma_params_t *params,
                                     ucp_st_rma_t *rma)
{
    ucp_st_queue_h queue = rma->queue;
    uint64_t flags;

    ucp_st_rma_read(params, rma, &flags);
    if (flags & ~(uint64_t)UCP_ST_RMA_FLAG_STRICT) {
        return ucp_st_rma_refuse(queue, "unknown flag");
    }
    rma->is_strict = !!(flags & UCP_ST_RMA_FLAG_STRICT);
    if (rma->rkey == NULL) {
        return ((rma->length > 0) || (rma->signal == NULL)) ?
               ucp_st_rma_refuse(queue, "no key") : UCS_OK;
    }
    if (rma->rkey->peer->worker != queue->worker) {
        return ucp_st_rma_refuse(queue, "key of another worker");
    }
    rma->peer = rma->rkey->peer;
    if (rma->length == 0) {
        return ucp_st_rma_is_inside(rma->offset, 0, rma->rkey->length) ?
               UCS_OK : ucp_st_rma_refuse(queue, "offset beyond the memory");
    }
    return ucp_st_rma_check_data(
            rma, ucp_st_rma_field(params->field_mask,
                                  UCP_ST_RMA_PARAM_FIELD_OFFSET,
                                  params->offset));
}

static ucs_status_t
ucp_st_rma_check_signal(const ucp_st_signal_params_t *params, ucp_st_rma_t *rma)
{
    ucp_st_queue_h queue = rma->queue;
    uint64_t mask        = params->field_mask;

    if (!(mask & UCP_ST_SIGNAL_PARAM_FIELD_RKEY) || (params->rkey == NULL)) {
        return ucp_st_rma_refuse(queue, "signal without key");
    }
    rma->signal        = params->rkey;
    rma->peer          = params->rkey->peer;
    rma->signal_offset = ucp_st_rma_field(mask,
                                          UCP_ST_SIGNAL_PARAM_FIELD_OFFSET,
                                          params->offset);
    rma->signal_value  = ucp_st_rma_field(mask, UCP_ST_SIGNAL_PARAM_FIELD_VALUE,
                                          params->value);
    rma->signal_op     = (mask & UCP_ST_SIGNAL_PARAM_FIELD_OP) ?
                         params->op : UCP_ST_SIGNAL_SET;
    if (rma->peer->worker != queue->worker) {
        return ucp_st_rma_refuse(queue, "signal's key of another worker");
    }
    if ((unsigned)rma->signal_op > UCP_ST_SIGNAL_ADD) {
        return ucp_st_rma_refuse(queue, "unknown kind of signal");
    }
    if (!ucp_st_rma_is_inside(rma->signal_offset, sizeof(uint64_t),
                              rma->signal->length)) {
        return ucp_st_rma_refuse(queue, "signal outside the peer's memory");
    }
    if (((rma->signal->remote + rma->signal_offset) % sizeof(uint64_t)) != 0) {
        return ucp_st_rma_refuse(queue, "misaligned signal");
    }
    return UCS_OK;
}

/* The queue's operations with the peer, or NULL without memory. The lock is
 * held. */
static ucp_st_rma_flow_t *ucp_st_rma_get_flow(ucp_st_queue_h queue,
                                              ucp_st_peer_h peer)
{
    ucp_st_rma_flow_t *flow;

    ucs_list_for_each(flow, &queue->rma.flows, list) {
        if (flow->peer == peer) {
            return flow;
        }
    }
    flow = calloc(1, sizeof(*flow));
    if (flow != NULL) {
        flow->peer = peer;
        ucs_list_head_init(&flow->ops);
        ucs_list_add_tail(&queue->rma.flows, &flow->list);
    }
    return flow;
}

void ucp_st_rma_commit_nothing(ucp_st_queue_h queue)
{
    (void)queue;
}

ucs_status_t ucp_st_rma_wait_word(ucp_st_queue_h queue, ucp_st_lane_t lane,
                                  ucs_gstream_cmd_t *cmd)
{
    cmd->type           = UCS_GSTREAM_CMD_WAIT64;
    cmd->u.word.address = &queue->rma.words[lane];
    cmd->u.word.value   = queue->rma.issued[lane];
    return UCS_OK;
}

/* In front of a strict operation: what its flow has on other lanes, or on one
 * where it would not take its turn. Those are not counted as waited for, as
 * nothing may come of it. */
static ucs_status_t
ucp_st_rma_wait_others(const ucp_st_rma_t *rma, const ucp_st_rma_flow_t *flow,
                       const ucp_st_rma_lane_ops_t *lane,
                       ucs_gstream_cmd_t *cmds, size_t *num_cmds_p)
{
    ucs_status_t status = UCS_OK;
    unsigned i;

    for (i = 0; (i < UCP_ST_LANE_LAST) && rma->is_strict &&
                (status == UCS_OK); ++i) {
        if ((flow->last[i] > rma->queue->rma.waited[i]) &&
            ((i != lane->id) || !lane->is_orderly)) {
            status = ucp_st_rma_lane(i)->wait(rma->queue,
                                              &cmds[(*num_cmds_p)++]);
        }
    }
    return status;
}

static void ucp_st_rma_commit(ucp_st_queue_h queue)
{
    unsigned i;

    for (i = 0; i < UCP_ST_LANE_LAST; ++i) {
        if (queue->rma.issued[i] > 0) {
            ucp_st_rma_lane(i)->commit(queue);
        }
    }
}

static const ucp_st_rma_lane_ops_t *
ucp_st_rma_lane_of(const ucp_st_rma_t *rma)
{
    return (rma->length > 0) ? rma->rkey->lane : rma->signal->lane;
}

/* Enqueue an operation, whose signal is on the same lane; the lock is held */
static ucs_status_t ucp_st_rma_enqueue_one(const ucp_st_rma_t *rma)
{
    const ucp_st_rma_lane_ops_t *lane = ucp_st_rma_lane_of(rma);
    ucp_st_queue_h queue              = rma->queue;
    ucs_gstream_cmd_t *cmds           = queue->cmds;
    ucp_st_rma_flow_t *flow           = ucp_st_rma_get_flow(queue, rma->peer);
    ucs_status_t status;
    size_t num_cmds, more;

    if (flow == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    num_cmds = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL, cmds);
    status   = ucp_st_rma_wait_others(rma, flow, lane, cmds, &num_cmds);
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_rma_take(rma);
    status = lane->start(rma, flow, &cmds[num_cmds], &more);
    if (status != UCS_OK) {
        ucp_st_rma_drop(rma);
        return status;
    }
    num_cmds += more;
    num_cmds += ucp_st_trace_rma_cmd(rma, lane->id, &cmds[num_cmds]);
    status    = ucp_st_queue_enqueue(queue, num_cmds);
    if (status != UCS_OK) {
        lane->undo(queue, flow);
        ucp_st_rma_drop(rma);
        return status;
    }
    flow->last[lane->id] = ucp_st_queue_count(&queue->rma.issued[lane->id], 1);
    ucp_st_rma_commit(queue);
    return UCS_OK;
}

/* A signal that goes over another lane than its data is a strict operation of
 * its own. If it cannot be enqueued the put alone is there, which is nothing
 * that the user can do without: the queue fails. */
static ucs_status_t ucp_st_rma_enqueue_two(const ucp_st_rma_t *rma)
{
    ucp_st_rma_t data   = *rma;
    ucp_st_rma_t signal = *rma;
    ucs_status_t status;

    data.signal      = NULL;
    signal.length    = 0;
    signal.is_strict = 1;
    status           = ucp_st_rma_enqueue_one(&data);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_rma_enqueue_one(&signal);
    if (status != UCS_OK) {
        ucs_error("queue %p: no signal behind a put: %s", rma->queue,
                  ucs_status_string(status));
        ucp_st_queue_fail(rma->queue, NULL, status);
    }
    return status;
}

/* The lock is held */
static ucs_status_t ucp_st_rma_enqueue(const ucp_st_rma_t *rma)
{
    if (rma->peer->status != UCS_OK) {
        return rma->peer->status;
    }
    if ((rma->length == 0) && (rma->signal == NULL)) {
        return UCS_OK;
    }
    return ((rma->length > 0) && (rma->signal != NULL) &&
            (rma->signal->lane != rma->rkey->lane)) ?
           ucp_st_rma_enqueue_two(rma) : ucp_st_rma_enqueue_one(rma);
}

static void ucp_st_rma_count(ucp_st_queue_h queue, ucp_st_rma_count_t what)
{
    ucp_st_queue_count(&queue->rma.counts[what], 1);
}

static ucs_status_t ucp_st_rma_call(ucp_st_rma_t *rma,
                                    const ucp_st_rma_params_t *params,
                                    const ucp_st_signal_params_t *signal)
{
    ucs_status_t status = ucp_st_queue_prepare(rma->queue,
                                               UCP_ST_RMA_BATCH_CMDS);
    ucp_st_peer_h peer;

    if ((status == UCS_OK) && (signal != NULL)) {
        status = ucp_st_rma_check_signal(signal, rma);
    }
    peer = rma->peer;
    if (status == UCS_OK) {
        status = ucp_st_rma_check(params, rma);
    }
    if (status != UCS_OK) {
        return status;
    }
    if ((signal != NULL) && (rma->peer != peer)) {
        return ucp_st_rma_refuse(rma->queue,
                                 "signal to another peer than the data");
    }
    ucp_st_worker_lock(rma->queue->worker);
    status = ucp_st_rma_enqueue(rma);
    ucp_st_worker_unlock(rma->queue->worker);
    return status;
}

ucs_status_t ucp_st_enqueue_put(ucp_st_queue_h queue,
                                const ucp_st_rma_params_t *params)
{
    ucp_st_rma_t rma = {.queue = queue, .type = UCP_ST_RMA_PUT};
    ucs_status_t status;

    if (params == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    status = ucp_st_rma_call(&rma, params, NULL);
    if (status == UCS_OK) {
        ucp_st_rma_count(queue, UCP_ST_RMA_COUNT_PUT);
    }
    return status;
}

ucs_status_t ucp_st_enqueue_get(ucp_st_queue_h queue,
                                const ucp_st_rma_params_t *params)
{
    ucp_st_rma_t rma = {.queue = queue, .type = UCP_ST_RMA_GET};
    ucs_status_t status;

    if (params == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    status = ucp_st_rma_call(&rma, params, NULL);
    if (status == UCS_OK) {
        ucp_st_rma_count(queue, UCP_ST_RMA_COUNT_GET);
    }
    return status;
}

ucs_status_t ucp_st_enqueue_put_signal(ucp_st_queue_h queue,
                                       const ucp_st_rma_params_t *params,
                                       const ucp_st_signal_params_t *signal)
{
    ucp_st_rma_t rma = {.queue = queue, .type = UCP_ST_RMA_PUT};
    ucs_status_t status;

    if ((params == NULL) || (signal == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    status = ucp_st_rma_call(&rma, params, signal);
    if (status == UCS_OK) {
        if (rma.length > 0) {
            ucp_st_rma_count(queue, UCP_ST_RMA_COUNT_PUT);
        }
        ucp_st_rma_count(queue, UCP_ST_RMA_COUNT_SIGNAL);
    }
    return status;
}

/* The lock is held */
static ucs_status_t ucp_st_rma_quiet(ucp_st_queue_h queue)
{
    ucp_st_queue_rma_t *rma = &queue->rma;
    ucs_status_t status     = UCS_OK;
    size_t num_cmds;
    unsigned i;

    num_cmds = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL, queue->cmds);
    for (i = 0; (i < UCP_ST_LANE_LAST) && (status == UCS_OK); ++i) {
        if (rma->waited[i] < rma->issued[i]) {
            status = ucp_st_rma_lane(i)->wait(queue, &queue->cmds[num_cmds++]);
        }
    }
    if (status != UCS_OK) {
        return status;
    }
    num_cmds += ucp_st_trace_cmd(UCP_ST_TRACE_QUIET, NULL,
                                 &queue->cmds[num_cmds]);
    status    = ucp_st_queue_enqueue(queue, num_cmds);
    if (status != UCS_OK) {
        return status;
    }
    memcpy(rma->waited, rma->issued, sizeof(rma->waited));
    ucp_st_rma_commit(queue);
    return UCS_OK;
}

ucs_status_t ucp_st_enqueue_quiet(ucp_st_queue_h queue)
{
    ucs_status_t status = ucp_st_queue_prepare(queue, UCP_ST_RMA_BATCH_CMDS);

    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(queue->worker);
    status = ucp_st_rma_quiet(queue);
    ucp_st_worker_unlock(queue->worker);
    if (status == UCS_OK) {
        ucp_st_rma_count(queue, UCP_ST_RMA_COUNT_QUIET);
    }
    return status;
}
