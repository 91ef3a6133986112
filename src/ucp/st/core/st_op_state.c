/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_op_state.c - operations: their states, and how far their uses are.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_op.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

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

static ucs_status_t ucp_st_op_check(const ucp_st_op_t *op,
                                    ucp_st_worker_h worker,
                                    ucp_st_op_check_t check,
                                    ucp_st_queue_h queue)
{
    if (op == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (op->worker != worker) {
        ucs_error("operation %p belongs to another worker than the %s", op,
                  (queue != NULL) ? "queue" : "first one");
        return UCS_ERR_INVALID_PARAM;
    }
    if (op->is_checked) {
        ucs_log(worker->refuse_level, "operation %p is there twice", op);
        return UCS_ERR_INVALID_PARAM;
    }
    return check(queue, op);
}

ucs_status_t ucp_st_op_check_all(const ucp_st_op_h *ops, size_t count,
                                 ucp_st_op_check_t check, ucp_st_queue_h queue)
{
    ucs_status_t status = UCS_OK;
    size_t num_checked  = 0;
    ucp_st_worker_h worker;

    if ((count == 0) || (ops[0] == NULL)) {
        return (count == 0) ? UCS_OK : UCS_ERR_INVALID_PARAM;
    }
    worker = (queue != NULL) ? queue->worker : ops[0]->worker;
    while ((num_checked < count) && (status == UCS_OK)) {
        status = ucp_st_op_check(ops[num_checked], worker, check, queue);
        if (status == UCS_OK) {
            ops[num_checked++]->is_checked = 1;
        }
    }
    while (num_checked > 0) {
        ops[--num_checked]->is_checked = 0;
    }
    return status;
}

/* Uses that have completed. The NIC's own count is ahead of `completed`, which
 * follows when the completion is reaped. */
uint64_t ucp_st_op_uses_done(const ucp_st_op_t *op)
{
    uint64_t uses = (op->lane == NULL) ? 0 : op->lane->op.uses_done(op);

    return (uses > op->completed) ? uses : op->completed;
}

uint64_t ucp_st_op_uses_started(const ucp_st_op_t *op)
{
    uint64_t begun;

    if ((op->ahead == 0) || (op->ahead < op->started) || (op->lane == NULL)) {
        return op->started;
    }
    begun = ucs_max(op->lane->op.begun(op), op->enqueued);
    return ucs_min(begun, op->started);
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

/* Commands of a stream still name the operation */
int ucp_st_op_is_on_stream(const ucp_st_op_t *op)
{
    return (op->queue != NULL) &&
           (ucp_st_queue_passed(op->queue) < op->last_seq);
}
