/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma.c - one-sided operations: how they are enqueued, and the component
 * that core calls.
 *
 * All parameters are checked first. Then the lane of the key makes the stream
 * commands. Commands in front of them may wait for operations on other lanes.
 * All commands are one batch. The counts are raised, and it is enqueued without
 * the worker's lock, as for starts (st_queue.c): to others, the stream has not
 * come to it. If it is refused the counts are lowered and the lane undoes its
 * part, which has not ended: on lanes host and direct the stream begins
 * operations before they can end, and lane trig keeps one that is being
 * enqueued (`enqueued` of ucp_st_rma_trig_t).
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_stage.h"
#include "core/st_trace.h"

#include <ucs_backoff.h>

#include <stdlib.h>
#include <string.h>

/* Waits for other lanes, the operation, and its span */
#define UCP_ST_RMA_BATCH_CMDS \
    (UCP_ST_QUEUE_MAX_WAYS + 1 + UCP_ST_TRACE_MAX_CMDS)

/* How long a NIC may take to report operations that are complete, seconds */
#define UCP_ST_RMA_REAP_TIME 1.0

void ucp_st_rma_reap(ucp_st_worker_h worker)
{
    double start    = ucp_st_worker_now();
    unsigned rounds = 0;
    ucp_st_queue_h queue;
    int is_behind;

    ucp_st_rma_wait_reap(worker);
    do {
        ucp_st_worker_lock(worker);
        ucs_list_for_each(queue, &worker->queues, list) {
            ucp_st_rma_kernel_reap(queue);
        }
        ucp_st_lanes_progress_all(worker);
        is_behind = ucp_st_rma_trig_is_behind(worker);
        ucp_st_worker_unlock(worker);
        if (!is_behind) {
            return;
        }
        ucs_backoff(&rounds);
    } while ((ucp_st_worker_now() - start) < UCP_ST_RMA_REAP_TIME);
}

void ucp_st_rma_ended(ucp_st_queue_h queue, unsigned way)
{
    volatile uint64_t *word = ucp_st_rma_word(queue, way);

    /* Pairs with the acquire load of the stream's wait. The queue may be gone
     * after it. */
    (void)__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
    ucs_gstream_wake(word);
}

/* A parameter if its bit is set, else 0 */
static uint64_t ucp_st_rma_field(uint64_t mask, uint64_t field, uint64_t value)
{
    return (mask & field) ? value : 0;
}

ucs_status_t ucp_st_rma_refuse(ucp_st_queue_h queue, const char *what)
{
    ucs_error("queue %p: one-sided operation: %s", queue, what);
    return UCS_ERR_INVALID_PARAM;
}

/* The way of the data. Service threads alone add: so that is atomic. */
static unsigned ucp_st_rma_data_way(const ucp_st_rma_t *rma)
{
    return (rma->type == UCP_ST_RMA_ADD) ? (unsigned)UCP_ST_LANE_HOST :
                                           rma->rkey->way;
}

/* The bytes here and at the peer */
static ucs_status_t ucp_st_rma_check_data(ucp_st_rma_t *rma, size_t offset)
{
    ucp_st_queue_h queue = rma->queue;

    if (rma->mem == NULL) {
        return ucp_st_rma_refuse(queue, "no local memory for the data");
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
    if (ucp_st_stage_is_device(&rma->mem->memory) &&
        !(rma->mem->lanes &
          UCS_BIT(ucp_st_rma_way_lane(ucp_st_rma_data_way(rma))))) {
        ucs_error("queue %p: memory %p is of a device, which the lane of the "
                  "peer's memory does not reach", queue, rma->mem->address);
        return UCS_ERR_UNSUPPORTED;
    }
    rma->buffer = rma->mem->address + offset;
    return UCS_OK;
}

static ucs_status_t ucp_st_rma_check(const ucp_st_rma_params_t *params,
                                     ucp_st_rma_t *rma)
{
    ucp_st_queue_h queue = rma->queue;
    uint64_t mask        = params->field_mask;
    uint64_t flags       = ucp_st_rma_field(mask, UCP_ST_RMA_PARAM_FIELD_FLAGS,
                                            params->flags);

    if (flags & ~(uint64_t)UCP_ST_RMA_FLAG_STRICT) {
        return ucp_st_rma_refuse(queue, "unknown flag");
    }
    rma->is_strict = !!(flags & UCP_ST_RMA_FLAG_STRICT);
    rma->mem       = (mask & UCP_ST_RMA_PARAM_FIELD_MEMH) ? params->memh : NULL;
    rma->rkey      = (mask & UCP_ST_RMA_PARAM_FIELD_RKEY) ? params->rkey : NULL;
    rma->length    = ucp_st_rma_field(mask, UCP_ST_RMA_PARAM_FIELD_LENGTH,
                                      params->length);
    rma->offset    = ucp_st_rma_field(mask,
                                      UCP_ST_RMA_PARAM_FIELD_REMOTE_OFFSET,
                                      params->remote_offset);
    if (rma->rkey == NULL) {
        return ((rma->length > 0) || (rma->signal == NULL)) ?
               ucp_st_rma_refuse(queue, "no remote key") : UCS_OK;
    }
    if (rma->rkey->peer->worker != queue->worker) {
        return ucp_st_rma_refuse(queue, "remote key of another worker");
    }
    if ((rma->signal != NULL) && (rma->rkey->peer != rma->peer)) {
        return ucp_st_rma_refuse(queue, "signal to another peer than the data");
    }
    rma->peer = rma->rkey->peer;
    if (rma->length == 0) {
        return ucp_st_rma_is_inside(rma->offset, 0, rma->rkey->length) ?
               UCS_OK : ucp_st_rma_refuse(queue, "offset beyond the memory");
    }
    return ucp_st_rma_check_data(
            rma, ucp_st_rma_field(mask, UCP_ST_RMA_PARAM_FIELD_OFFSET,
                                  params->offset));
}

ucs_status_t ucp_st_rma_check_word(ucp_st_queue_h queue, uint64_t address,
                                   uint64_t offset, uint64_t size)
{
    if (!ucp_st_rma_is_inside(offset, sizeof(uint64_t), size)) {
        return ucp_st_rma_refuse(queue, "signal outside the memory");
    }
    return (((address + offset) % sizeof(uint64_t)) != 0) ?
           ucp_st_rma_refuse(queue, "misaligned signal") : UCS_OK;
}

static ucs_status_t
ucp_st_rma_check_signal(const ucp_st_signal_params_t *params, ucp_st_rma_t *rma)
{
    ucp_st_queue_h queue = rma->queue;
    uint64_t mask        = params->field_mask;

    if (!(mask & UCP_ST_SIGNAL_PARAM_FIELD_RKEY) || (params->rkey == NULL)) {
        return ucp_st_rma_refuse(queue, "no remote key for the signal");
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
        return ucp_st_rma_refuse(queue, "remote key for the signal of another "
                                        "worker");
    }
    if ((unsigned)rma->signal_op > UCP_ST_SIGNAL_ADD) {
        return ucp_st_rma_refuse(queue, "unknown kind of signal");
    }
    return ucp_st_rma_check_word(queue, rma->signal->remote, rma->signal_offset,
                                 rma->signal->length);
}

/* The queue's operations with the peer, or NULL without memory. The lock is
 * held. */
static ucp_st_rma_flow_t *ucp_st_rma_get_flow(ucp_st_queue_h queue,
                                              ucp_st_peer_h peer)
{
    ucp_st_queue_rma_t *rma = ucp_st_queue_rma(queue);
    ucp_st_rma_flow_t *flow;

    ucs_list_for_each(flow, &rma->flows, list) {
        if (flow->peer == peer) {
            return flow;
        }
    }
    flow = calloc(1, sizeof(*flow));
    if (flow != NULL) {
        flow->peer = peer;
        ucs_list_head_init(&flow->ops);
        ucs_list_add_tail(&rma->flows, &flow->list);
    }
    return flow;
}

ucs_status_t ucp_st_rma_wait_word(ucp_st_queue_h queue, unsigned way,
                                  ucs_gstream_cmd_t *cmd)
{
    cmd->type           = UCS_GSTREAM_CMD_WAIT64;
    cmd->u.word.address = ucp_st_rma_word(queue, way);
    cmd->u.word.value   = ucp_st_queue_rma(queue)->issued[way];
    return UCS_OK;
}

static ucs_status_t ucp_st_rma_wait_way(ucp_st_queue_h queue, unsigned way,
                                        size_t *num_cmds_p)
{
    return ucp_st_rma_way_ops(way)->wait(queue, way,
                                         &queue->cmds[(*num_cmds_p)++]);
}

/* In front of a strict operation: wait for its flow's operations on other ways,
 * and on its own if that is not orderly. They are not counted as waited for, as
 * the commands may not be enqueued. */
static ucs_status_t
ucp_st_rma_wait_others(const ucp_st_rma_t *rma, const ucp_st_rma_flow_t *flow,
                       const ucp_st_rma_lane_ops_t *lane, size_t *num_cmds_p)
{
    const uint64_t *waited = ucp_st_queue_rma(rma->queue)->waited;
    ucs_status_t status    = UCS_OK;
    unsigned i;

    for (i = 0; (i < UCP_ST_QUEUE_MAX_WAYS) && (status == UCS_OK); ++i) {
        if ((flow->last[i] > waited[i]) &&
            ((i != rma->way) || !lane->is_orderly)) {
            status = ucp_st_rma_wait_way(rma->queue, i, num_cmds_p);
        }
    }
    return status;
}

/* Commands were enqueued: post their operations to the NIC */
static void ucp_st_rma_commit(ucp_st_queue_h queue)
{
    ucp_st_rma_trig_each(queue, ucp_st_rma_trig_commit);
}

/* Make the batch of an operation, whose signal is on the same lane; the lock is
 * held */
static ucs_status_t
ucp_st_rma_make(const ucp_st_rma_t *rma, ucp_st_rma_flow_t *flow,
                const ucp_st_rma_lane_ops_t *lane)
{
    ucp_st_queue_h queue    = rma->queue;
    ucs_gstream_cmd_t *cmds = queue->cmds;
    ucs_status_t status     = UCS_OK;
    size_t num_cmds;

    num_cmds = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL, cmds);
    if (rma->is_strict) {
        status = ucp_st_rma_wait_others(rma, flow, lane, &num_cmds);
    }
    if (status != UCS_OK) {
        return status;
    }
    if (rma->length > 0) {
        ucp_st_rma_hold(&rma->mem->refs);
        ucp_st_rma_hold(&rma->rkey->refs);
    }
    if (rma->signal != NULL) {
        ucp_st_rma_hold(&rma->signal->refs);
    }
    status = lane->start(rma, flow, &cmds[num_cmds++]);
    if (status != UCS_OK) {
        goto err;
    }
    num_cmds += ucp_st_rma_trace_cmd(rma, lane->id, &cmds[num_cmds]);
    status    = ucp_st_queue_commit(queue, num_cmds);
    if (status != UCS_OK) {
        goto err_start;
    }
    return UCS_OK;

err_start:
    lane->undo(rma, flow);
err:
    ucp_st_rma_drop(rma);
    return status;
}

/* The way of an operation, whose signal is on the same lane: a kernel carries
 * out all of it, or nothing */
static unsigned ucp_st_rma_choose_way(const ucp_st_rma_t *rma)
{
    const unsigned parts = ((rma->length > 0) ? UCP_ST_RMA_KERNEL_DATA : 0) |
                           ((rma->signal != NULL) ? UCP_ST_RMA_KERNEL_SIGNAL :
                                                    0);

    if ((rma->kernels & parts) == parts) {
        return UCP_ST_RMA_WAY_KERNEL;
    }
    return (rma->length > 0) ? ucp_st_rma_data_way(rma) : rma->signal->way;
}

/* Enqueue such an operation; the lock is held, and released meanwhile */
static ucs_status_t ucp_st_rma_enqueue_one(ucp_st_rma_t *rma)
{
    ucp_st_queue_h queue              = rma->queue;
    const unsigned way                = ucp_st_rma_choose_way(rma);
    const ucp_st_rma_lane_ops_t *lane = ucp_st_rma_way_ops(way);
    ucp_st_rma_flow_t *flow           = ucp_st_rma_get_flow(queue, rma->peer);
    uint64_t *issued                  = &ucp_st_queue_rma(queue)->issued[way];
    ucs_status_t status;
    uint64_t last;

    if (flow == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    rma->way = way;
    status   = ucp_st_rma_make(rma, flow, lane);
    if (status != UCS_OK) {
        return status;
    }
    last            = flow->last[way];
    flow->last[way] = ucp_st_queue_count(issued, 1);
    ucp_st_worker_unlock(queue->worker);
    status = ucp_st_queue_submit(queue);
    ucp_st_worker_lock(queue->worker);
    if (ucp_st_queue_is_submitted(queue, status)) {
        ucp_st_rma_commit(queue);
    } else {
        flow->last[way] = last;
        (void)ucp_st_queue_count(issued, UINT64_MAX);
        lane->undo(rma, flow);
        ucp_st_rma_drop(rma);
    }
    return status;
}

/* A signal on another way than its data is a strict operation of its own. If
 * it cannot be enqueued the queue fails: the put is enqueued already, and the
 * user could not enqueue the signal alone. The lock is held, and released
 * meanwhile. */
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
        ucs_error("queue %p: failed to enqueue the signal of a put: %s",
                  rma->queue, ucs_status_string(status));
        ucp_st_queue_fail(rma->queue, NULL, status);
    }
    return status;
}

/* An operation of which the queue, the type and what its type alone has are
 * known; with `signal` or NULL */
static ucs_status_t ucp_st_rma_call(ucp_st_rma_t rma,
                                    const ucp_st_rma_params_t *params,
                                    const ucp_st_signal_params_t *signal)
{
    ucp_st_queue_h queue = rma.queue;
    ucp_st_queue_rma_t *counts;
    ucs_status_t status;
    unsigned way;

    if (params == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    status = ucp_st_queue_prepare(queue, UCP_ST_RMA_BATCH_CMDS);
    if ((status == UCS_OK) && (signal != NULL)) {
        status = ucp_st_rma_check_signal(signal, &rma);
    }
    if (status == UCS_OK) {
        status = ucp_st_rma_check(params, &rma);
    }
    if ((status == UCS_OK) && (rma.length > 0)) {
        way    = ucp_st_rma_data_way(&rma);
        status = ucp_st_rma_way_ops(way)->prepare(queue, way);
    }
    if ((status == UCS_OK) && (signal != NULL)) {
        status = rma.signal->lane->prepare(queue, rma.signal->way);
    }
    if (status != UCS_OK) {
        return status;
    }
    rma.kernels = ucp_st_rma_kernel_parts(&rma);
    ucp_st_worker_lock(queue->worker);
    if (rma.peer->status != UCS_OK) {
        status = rma.peer->status;
    } else if ((rma.length > 0) && (signal != NULL) &&
               (rma.signal->way != ucp_st_rma_data_way(&rma))) {
        status = ucp_st_rma_enqueue_two(&rma);
    } else if ((rma.length > 0) || (signal != NULL)) {
        status = ucp_st_rma_enqueue_one(&rma);
    }
    ucp_st_worker_unlock(queue->worker);
    if (status != UCS_OK) {
        return status;
    }
    counts = ucp_st_queue_rma(queue);
    if (signal != NULL) {
        ucp_st_queue_count(&counts->signals, 1);
    }
    if ((signal == NULL) || (rma.length > 0)) {
        ucp_st_queue_count((rma.type == UCP_ST_RMA_GET) ? &counts->gets :
                                                          &counts->puts, 1);
    }
    return UCS_OK;
}

ucs_status_t ucp_st_enqueue_put(ucp_st_queue_h queue,
                                const ucp_st_rma_params_t *params)
{
    return ucp_st_rma_call((ucp_st_rma_t){.queue = queue,
                                          .type  = UCP_ST_RMA_PUT},
                           params, NULL);
}

ucs_status_t ucp_st_enqueue_get(ucp_st_queue_h queue,
                                const ucp_st_rma_params_t *params)
{
    return ucp_st_rma_call((ucp_st_rma_t){.queue = queue,
                                          .type  = UCP_ST_RMA_GET},
                           params, NULL);
}

ucs_status_t ucp_st_enqueue_add(ucp_st_queue_h queue,
                                const ucp_st_rma_params_t *params,
                                ucp_st_number_t number)
{
    if (params == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    if ((unsigned)number > UCP_ST_NUMBER_DOUBLE) {
        return ucp_st_rma_refuse(queue, "unknown kind of number");
    }
    if ((params->field_mask & UCP_ST_RMA_PARAM_FIELD_LENGTH) &&
        ((params->length % ucp_st_rma_number_size(number)) != 0)) {
        return ucp_st_rma_refuse(queue, "a part of a number");
    }
    return ucp_st_rma_call((ucp_st_rma_t){.queue  = queue,
                                          .type   = UCP_ST_RMA_ADD,
                                          .number = number},
                           params, NULL);
}

ucs_status_t ucp_st_enqueue_put_signal(ucp_st_queue_h queue,
                                       const ucp_st_rma_params_t *params,
                                       const ucp_st_signal_params_t *signal)
{
    return (signal == NULL) ?
           UCS_ERR_INVALID_PARAM :
           ucp_st_rma_call((ucp_st_rma_t){.queue = queue,
                                          .type  = UCP_ST_RMA_PUT},
                           params, signal);
}

/* Make the batch of a quiet; the lock is held */
static ucs_status_t ucp_st_rma_make_quiet(ucp_st_queue_h queue)
{
    ucp_st_queue_rma_t *rma = ucp_st_queue_rma(queue);
    size_t num_cmds         = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL,
                                               queue->cmds);
    ucs_status_t status     = UCS_OK;
    unsigned i;

    for (i = 0; (i < UCP_ST_QUEUE_MAX_WAYS) && (status == UCS_OK); ++i) {
        if (rma->waited[i] < rma->issued[i]) {
            status = ucp_st_rma_wait_way(queue, i, &num_cmds);
        }
    }
    if (status != UCS_OK) {
        return status;
    }
    num_cmds += ucp_st_trace_cmd(UCP_ST_TRACE_QUIET, NULL,
                                 &queue->cmds[num_cmds]);
    return ucp_st_queue_commit(queue, num_cmds);
}

ucs_status_t ucp_st_enqueue_quiet(ucp_st_queue_h queue)
{
    ucs_status_t status = ucp_st_queue_prepare(queue, UCP_ST_RMA_BATCH_CMDS);
    ucp_st_queue_rma_t *rma;

    if (status != UCS_OK) {
        return status;
    }
    rma = ucp_st_queue_rma(queue);
    ucp_st_worker_lock(queue->worker);
    status = ucp_st_rma_make_quiet(queue);
    if (status == UCS_OK) {
        /* Lane trig posts what counts for it now: if the commands are refused
         * that serves the next quiet */
        ucp_st_rma_commit(queue);
    }
    ucp_st_worker_unlock(queue->worker);
    if (status == UCS_OK) {
        status = ucp_st_queue_submit(queue);
    }
    if (status == UCS_OK) {
        memcpy(rma->waited, rma->issued, sizeof(rma->waited));
        ucp_st_queue_count(&rma->quiets, 1);
        __atomic_store_n(&rma->quiet_seq, queue->seq, __ATOMIC_RELAXED);
    }
    return status;
}

static void ucp_st_rma_init(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);

    kh_init_inplace(ucp_st_mems, &dev->mems);
    ucs_list_head_init(&dev->ready);
    ucs_list_head_init(&dev->free_ops);
    ucs_list_head_init(&dev->free_trig_ops);
    ucs_list_head_init(&dev->free_kernel_ops);
    ucs_list_head_init(&dev->trigs);
    ucs_list_head_init(&dev->waits);
    ucs_list_head_init(&dev->free_waits);
    (void)pthread_mutex_init(&dev->wait_lock, NULL);
}

/* Tell each lane that is open of one-sided operations */
static ucs_status_t ucp_st_rma_open(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        if (worker->lanes[i]->id == UCP_ST_LANE_TRIG) {
            dev->untold |= UCP_ST_RMA_UNTOLD_NIC;
        } else if (worker->lanes[i]->id == UCP_ST_LANE_DIRECT) {
            ucp_st_direct_rma_open(worker, ucp_st_rma_signaled);
        }
    }
    dev->service.serve = ucp_st_rma_serve;
    dev->service.arg   = worker;
    status             = ucp_st_rma_host_open(worker);
    return (status == UCS_OK) ? ucp_st_service_add(&dev->service) : status;
}

static int ucp_st_rma_is_used(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);

    return (kh_size(&dev->mems) > 0) || (dev->num_rkeys > 0);
}

static ucp_st_drain_t ucp_st_rma_drain(ucp_st_worker_h worker)
{
    return ucs_list_is_empty(&ucp_st_rma_dev(worker)->trigs) ?
           UCP_ST_DRAIN_DONE : UCP_ST_DRAIN_ANSWERS;
}

static void ucp_st_rma_stop(ucp_st_worker_h worker)
{
    ucp_st_service_remove(&ucp_st_rma_dev(worker)->service);
}

static void ucp_st_rma_cleanup(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);

    ucp_st_rma_waits_free(dev);
    ucp_st_rma_objs_free(&dev->free_ops);
    ucp_st_rma_objs_free(&dev->free_trig_ops);
    ucp_st_rma_objs_free(&dev->free_kernel_ops);
    kh_destroy_inplace(ucp_st_mems, &dev->mems);
    (void)pthread_mutex_destroy(&dev->wait_lock);
}

static void ucp_st_rma_peer_init(ucp_st_peer_t *peer)
{
    ucs_list_head_init(&ucp_st_rma_peer(peer)->ops);
}

static int ucp_st_rma_peer_is_used(ucp_st_peer_t *peer)
{
    ucp_st_rma_peer_t *rma = ucp_st_rma_peer(peer);

    return (rma->num_trig > 0) || !ucs_list_is_empty(&rma->ops);
}

static int ucp_st_rma_peer_is_awaited(ucp_st_peer_t *peer)
{
    ucp_st_rma_wait_reap(peer->worker);
    return __atomic_load_n(&ucp_st_rma_peer(peer)->num_waits,
                           __ATOMIC_RELAXED) > 0;
}

static void ucp_st_rma_peer_gone(ucp_st_peer_t *peer)
{
    ucp_st_queue_h queue;
    ucp_st_rma_flow_t *flow;
    volatile uint64_t *word;

    ucp_st_rma_wait_end_dead(peer->worker);
    /* Lane direct: only the stream ends its operations, and it has not come to
     * these yet. Its queue fails, so they have no effect. */
    ucs_list_for_each(queue, &peer->worker->queues, list) {
        if (ucp_st_rma_kernel_is_behind(queue, peer)) {
            ucp_st_queue_fail(queue, NULL, peer->status);
        }
        word = ucp_st_rma_word(queue, UCP_ST_LANE_DIRECT);
        ucs_list_for_each(flow, &ucp_st_queue_rma(queue)->flows, list) {
            if ((flow->peer == peer) &&
                (flow->last[UCP_ST_LANE_DIRECT] >
                 __atomic_load_n(word, __ATOMIC_ACQUIRE))) {
                ucp_st_queue_fail(queue, NULL, peer->status);
            }
        }
    }
    ucp_st_rma_host_peer_gone(peer);
    ucp_st_rma_trig_peer_gone(peer);
}

static void ucp_st_rma_queue_init(ucp_st_queue_h queue)
{
    ucs_list_head_init(&ucp_st_queue_rma(queue)->flows);
    ucs_list_head_init(&ucp_st_queue_rma(queue)->kernels);
}

static int ucp_st_rma_queue_has_open(ucp_st_queue_h queue)
{
    ucp_st_queue_rma_t *rma = ucp_st_queue_rma(queue);
    unsigned i;

    for (i = 0; i < UCP_ST_QUEUE_MAX_WAYS; ++i) {
        /* Pairs with the addition in ucp_st_rma_ended() */
        if (__atomic_load_n(ucp_st_rma_word(queue, i), __ATOMIC_ACQUIRE) <
            rma->issued[i]) {
            return 1;
        }
    }
    return 0;
}

static int ucp_st_rma_queue_is_busy(ucp_st_queue_h queue)
{
    if (ucp_st_rma_queue_has_open(queue)) {
        ucp_st_rma_reap(queue->worker); /* a report may be missing */
    }
    return ucp_st_rma_queue_has_open(queue);
}

static void ucp_st_rma_queue_fail(ucp_st_queue_h queue)
{
    ucp_st_rma_trig_each(queue, ucp_st_rma_trig_halt);
    ucp_st_rma_wait_queue_fail(queue);
}

static void ucp_st_rma_queue_count(ucp_st_queue_h queue, ucp_st_stats_t *stats)
{
    ucp_st_queue_rma_t *rma = ucp_st_queue_rma(queue);
    unsigned i;

    for (i = 0; i < UCP_ST_RMA_NUM_WAYS; ++i) {
        stats->lanes[ucp_st_rma_way_lane(i)].rmas +=
                ucp_st_queue_count(&rma->issued[i], 0);
    }
    stats->puts         += ucp_st_queue_count(&rma->puts, 0);
    stats->gets         += ucp_st_queue_count(&rma->gets, 0);
    stats->signals      += ucp_st_queue_count(&rma->signals, 0);
    stats->signal_waits += ucp_st_queue_count(&rma->signal_waits, 0);
    stats->quiets       += ucp_st_queue_count(&rma->quiets, 0);
}

static void ucp_st_rma_queue_cleanup(ucp_st_queue_h queue)
{
    ucp_st_queue_rma_t *rma = ucp_st_queue_rma(queue);
    ucp_st_rma_flow_t *flow, *tmp;

    ucp_st_rma_wait_reap(queue->worker);
    ucp_st_rma_kernel_reap(queue);
    ucs_gstream_cell_put(rma->cell);
    ucs_list_for_each_safe(flow, tmp, &rma->flows, list) {
        free(flow);
    }
    ucp_st_rma_trig_each(queue, ucp_st_rma_trig_leave);
}

const ucp_st_component_t ucp_st_rma_component = {
    .priv   = UCP_ST_PRIV_RMA,
    .sizes  = {
        [UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_rma_dev_t),
        [UCP_ST_OBJECT_PEER]   = sizeof(ucp_st_rma_peer_t),
        [UCP_ST_OBJECT_QUEUE]  = sizeof(ucp_st_queue_rma_t)
    },
    /* ask(): the service thread asks about the peers. close(): the lanes give
     * back their parts of operations. */
    .worker = {
        .init    = ucp_st_rma_init,
        .open    = ucp_st_rma_open,
        .is_used = ucp_st_rma_is_used,
        .leave   = ucp_st_worker_hook_none,
        .drain   = ucp_st_rma_drain,
        .ask     = ucp_st_worker_hook_none,
        .waits   = ucp_st_rma_waits,
        .stop    = ucp_st_rma_stop,
        .close   = ucp_st_worker_hook_none,
        .cleanup = ucp_st_rma_cleanup
    },
    .peer   = {
        .init       = ucp_st_rma_peer_init,
        .gone       = ucp_st_rma_peer_gone,
        .closed     = ucp_st_peer_hook_none,
        .is_used    = ucp_st_rma_peer_is_used,
        .is_awaited = ucp_st_rma_peer_is_awaited,
        .fifo       = ucp_st_peer_hook_fifo
    },
    .queue  = {
        .init    = ucp_st_rma_queue_init,
        .is_busy = ucp_st_rma_queue_is_busy,
        .fail    = ucp_st_rma_queue_fail,
        .count   = ucp_st_rma_queue_count,
        .cleanup = ucp_st_rma_queue_cleanup
    }
};
