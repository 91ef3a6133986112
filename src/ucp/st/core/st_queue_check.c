/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_queue_check.c - whether an operation may be started on a queue, or waited
 * for.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_ahead.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_queue.h"
#include "core/st_stage.h"
#include "core/st_worker.h"

/* What is of an exchange is started and waited for with it */
static ucs_status_t ucp_st_enqueue_refuse_part(ucp_st_queue_h queue,
                                               const ucp_st_op_t *op)
{
    ucp_st_refuse(queue, "start or wait of operation %p, which is of an "
                  "exchange, by itself", op);
    return UCS_ERR_INVALID_PARAM;
}

ucs_status_t ucp_st_queue_check_use(ucp_st_queue_h queue, const ucp_st_op_t *op)
{
    if (op->exchange != queue->exchange) {
        return ucp_st_enqueue_refuse_part(queue, op);
    }
    if (op->state == UCP_ST_OP_FAILED) {
        return op->status;
    }
    if ((op->state != UCP_ST_OP_MATCHED) || ucp_st_op_is_matching(op)) {
        ucp_st_refuse(queue, "start of operation %p, which is not matched", op);
        return UCS_ERR_NOT_CONNECTED;
    }
    if (op->started >= op->max_uses) {
        ucp_st_refuse(queue,
                      "start of operation %p, whose peer has freed its half",
                      op);
        return UCS_ERR_CANCELED;
    }
    if ((op->started > op->waited) && !ucp_st_op_is_left(op)) {
        ucp_st_refuse(queue, "start of operation %p, which was started and not "
                      "waited for", op);
        return UCS_ERR_BUSY;
    }
    if ((op->queue != NULL) && (op->queue != queue) &&
        (op->queue->seen < op->last_seq)) {
        ucp_st_refuse(queue, "start of operation %p, whose last wait the host "
                      "has not seen pass on another queue", op);
        return UCS_ERR_BUSY;
    }
    return ucp_st_stage_check(queue, op);
}

ucs_status_t ucp_st_queue_check_start(ucp_st_queue_h queue,
                                      const ucp_st_op_t *op)
{
    if (ucp_st_op_is_ahead(op)) {
        ucp_st_refuse(queue, "start of operation %p, of which kernels have "
                      "uses ahead that are not over", op);
        return UCS_ERR_BUSY;
    }
    return ucp_st_queue_check_use(queue, op);
}

ucs_status_t ucp_st_queue_check_wait(ucp_st_queue_h queue,
                                     const ucp_st_op_t *op)
{
    if (op->exchange != queue->exchange) {
        return ucp_st_enqueue_refuse_part(queue, op);
    }
    if (op->started == op->waited) {
        ucp_st_refuse(queue, "wait for operation %p, which is not started", op);
        return UCS_ERR_NO_MESSAGE;
    }
    if (op->queue != queue) {
        ucp_st_refuse(queue, "wait for operation %p on another queue than its "
                      "start's", op);
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

ucs_status_t ucp_st_enqueue_check(ucp_st_queue_h queue, ucp_st_op_h op,
                                  int is_start)
{
    ucs_status_t status = ucp_st_check_call((queue != NULL) && (op != NULL));

    if (status == UCS_OK) {
        ucp_st_stage_look(&op, is_start ? 1 : 0);
        ucp_st_worker_lock(queue->worker);
        status = ucp_st_op_check_all(&op, 1,
                                     is_start ? ucp_st_queue_check_start :
                                                ucp_st_queue_check_wait, queue);
        ucp_st_worker_unlock(queue->worker);
    }
    return status;
}
