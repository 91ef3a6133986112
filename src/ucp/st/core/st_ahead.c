/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ahead.c - handles for kernels of the application, and uses that these
 * start and wait for.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_ahead.h"
#include "core/st_log.h"
#include "core/st_stage.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

/* Kernels tell uses by half a word, of which the largest numbers end waits */
#define UCP_ST_AHEAD_MAX (UCP_ST_RELEASE >> 2)

int ucp_st_ahead_is_in_use(const ucp_st_op_t *op)
{
    return ucp_st_op_is_ahead(op) &&
           (ucp_st_op_uses_started(op) > op->enqueued) &&
           ucp_st_ahead_is_open(op->lane->op.ahead->record(op),
                                ucp_st_op_uses_started(op));
}

void ucp_st_ahead_take_back(ucp_st_op_t *op)
{
    op->started = ucp_st_op_uses_started(op);
    __atomic_store_n(&op->waited, ucs_min(op->waited, op->started),
                     __ATOMIC_RELAXED);
}

ucs_status_t ucp_st_ahead_leave(ucp_st_queue_h queue)
{
    ucp_st_op_t *op;

    ucs_list_for_each(op, &queue->worker->ops, list) {
        if ((op->queue == queue) && ucp_st_op_is_ahead(op)) {
            if (ucp_st_queue_status(queue) == UCS_OK) {
                return UCS_ERR_BUSY;
            }
            ucp_st_op_fail(op, UCS_ERR_CANCELED);
        }
    }
    return UCS_OK;
}

static ucs_status_t ucp_st_ahead_get_device(ucp_st_op_t *op,
                                            ucp_st_device_op_t *device)
{
    if (op->state == UCP_ST_OP_FAILED) {
        return op->status;
    }
    if ((op->state != UCP_ST_OP_MATCHED) || ucp_st_op_is_matching(op)) {
        ucs_log(op->worker->refuse_level, "operation %p is for no kernel "
                "before it is matched (ucp_st_match)", op);
        return UCS_ERR_NOT_CONNECTED;
    }
    if ((op->lane == NULL) || (op->exchange != NULL) || (op->func != NULL)) {
        ucs_log(op->worker->refuse_level,
                "operation %p is for no kernel: it %s", op,
                (op->lane == NULL)     ? "moves nothing (the null peer)" :
                (op->exchange != NULL) ? "is of an exchange" :
                                         "calls a function in each use");
        return UCS_ERR_UNSUPPORTED;
    }
    if (op->lane->op.ahead == NULL) {
        ucs_log(op->worker->refuse_level, "operation %p is on lane '%s', whose "
                "messages kernels do not start: they do on lane 'direct', "
                "where kernels reach both buffers (tier K), and on lane "
                "'trig', where a device reaches the card's trigger pages", op,
                op->lane->name);
        return UCS_ERR_UNSUPPORTED;
    }
    return op->lane->op.ahead->device(op, device);
}

ucs_status_t ucp_st_op_device(ucp_st_op_h op, ucp_st_device_op_t *device)
{
    ucs_status_t status = ucp_st_check_call((op != NULL) && (device != NULL));

    if (status == UCS_OK) {
        ucp_st_worker_lock(op->worker);
        status = ucp_st_ahead_get_device(op, device);
        ucp_st_worker_unlock(op->worker);
    }
    return status;
}

static ucs_status_t ucp_st_ahead_post(ucp_st_op_t *op, ucp_st_queue_h queue,
                                      uint64_t uses)
{
    ucs_gstream_pair_record_t *record;
    ucp_st_device_op_t device;
    ucs_status_t status;

    if (ucp_st_op_is_ahead(op) && (op->queue != queue)) {
        ucp_st_refuse(queue, "uses of operation %p ahead: those on another "
                      "queue are not over", op);
        return UCS_ERR_BUSY;
    }
    status = ucp_st_ahead_get_device(op, &device);
    if (status != UCS_OK) {
        return status;
    }
    if (op->state != UCP_ST_OP_MATCHED) { /* the lock was free meanwhile */
        return op->status;
    }
    if (uses > (op->max_uses - op->started)) {
        return UCS_ERR_CANCELED;
    }
    if (uses > (UCP_ST_AHEAD_MAX - op->started)) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    if (uses == 0) {
        return UCS_OK;
    }
    if (!ucs_gstream_pair_serves(queue->stream, op->starter.type,
                                 op->starter.device)) {
        ucp_st_refuse(queue, "uses of operation %p ahead: kernels of device %d "
                      "start it, and the queue's stream is not of that or of "
                      "another context", op, op->starter.device);
        return UCS_ERR_UNSUPPORTED;
    }
    status = op->lane->op.ahead->post(op, queue, uses);
    if (status != UCS_OK) {
        return status;
    }
    /* Kernels look at `posted` first */
    record = op->lane->op.ahead->record(op);
    if (op->ahead < op->started) {
        __atomic_store_n(&record->first, op->started + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&record->posted, op->started + uses, __ATOMIC_RELEASE);
    return UCS_OK;
}

/* Uses were posted: no command of the queue's stream has to do with them */
static void ucp_st_ahead_commit(ucp_st_op_t *op, ucp_st_queue_h queue,
                                uint64_t uses)
{
    if (op->ahead < op->started) {
        op->enqueued = op->started;
    }
    if (op->queue != queue) { /* the host has seen all of the other one pass */
        op->queue     = queue;
        op->start_seq = 0;
        __atomic_store_n(&op->last_seq, 0, __ATOMIC_RELAXED);
    }
    op->started += uses;
    op->ahead    = op->started;
    __atomic_store_n(&op->waited, op->started, __ATOMIC_RELAXED);
    ucp_st_queue_count(&queue->started[op->lane->id], uses);
    ucp_st_queue_count(&queue->waited[op->lane->id], uses);
}

ucs_status_t ucp_st_op_post_ahead(ucp_st_op_h op, ucp_st_queue_h queue,
                                  uint64_t uses)
{
    ucs_status_t status = ucp_st_check_call((op != NULL) && (queue != NULL));

    if (status != UCS_OK) {
        return status;
    }
    ucp_st_stage_look(&op, 1);
    ucp_st_worker_lock(queue->worker);
    status = ucp_st_queue_status(queue);
    if (status == UCS_OK) { /* it is of the queue's worker */
        status = ucp_st_op_check_all(&op, 1, ucp_st_queue_check_use, queue);
    }
    if (status == UCS_OK) {
        status = ucp_st_ahead_post(op, queue, uses);
    }
    if ((status == UCS_OK) && (uses > 0)) {
        ucp_st_ahead_commit(op, queue, uses);
    }
    ucp_st_worker_unlock(queue->worker);
    return status;
}
