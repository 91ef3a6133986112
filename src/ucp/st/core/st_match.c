/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_match.c - operations are given to match, and the outcome is told. How they
 * find their counterparts is in st_match_pair.c.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_match.h"
#include "core/st_outbox.h"
#include "core/st_fork.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_worker.h"

#include <ucs_trace.h>

/* Check one operation before anything is given to match; the lock of the worker
 * is held, which is that of all */
static ucs_status_t ucp_st_match_check(ucp_st_worker_h worker, ucp_st_op_t *op)
{
    if (op->worker != worker) {
        ucs_error("operation %p belongs to another worker than the first one",
                  op);
        return UCS_ERR_INVALID_PARAM;
    }
    if ((op->peer == UCP_ST_PEER_ANY) || (op->flags & UCP_ST_OP_FLAG_ANY_TAG)) {
        ucs_error("operation %p: a wildcard source or tag cannot be matched "
                  "ahead of time", op);
        return UCS_ERR_INVALID_PARAM;
    }
    if (op->state == UCP_ST_OP_FAILED) {
        return op->status;
    }
    if (op->state != UCP_ST_OP_INIT) {
        ucs_error("operation %p was given to match before", op);
        return UCS_ERR_BUSY;
    }
    if (op->marked) {
        ucs_error("operation %p is there twice", op);
        return UCS_ERR_INVALID_PARAM;
    }
    if (worker->leaving) {
        return UCS_ERR_CANCELED;
    }
    if (!ucp_st_peer_is_real(op->peer)) {
        return UCS_OK;
    }
    return ((op->peer->status == UCS_OK) && op->peer->said_leave) ?
           UCS_ERR_CANCELED : op->peer->status;
}

static ucs_status_t ucp_st_match_checkall(const ucp_st_op_h *ops, size_t count)
{
    ucs_status_t status = UCS_OK;
    size_t i, checked;

    for (checked = 0; checked < count; ++checked) {
        status = (ops[checked] == NULL) ?
                 UCS_ERR_INVALID_PARAM :
                 ucp_st_match_check(ops[0]->worker, ops[checked]);
        if (status != UCS_OK) {
            break;
        }
        ops[checked]->marked = 1;
    }
    for (i = 0; i < checked; ++i) {
        ops[i]->marked = 0;
    }
    return status;
}

/* The key of an operation to oneself; NULL for others, or if there is none */
static ucp_st_key_t *ucp_st_match_self_key(const ucp_st_op_t *op, int add)
{
    if (!ucp_st_peer_is_real(op->peer) || !op->peer->is_self) {
        return NULL;
    }
    return ucp_st_match_key(op->peer, op->tag, op->scope, add);
}

/* A blocking match of one half of a message to oneself would never return */
static ucs_status_t ucp_st_match_check_self(const ucp_st_op_h *ops,
                                            size_t count)
{
    ucs_status_t status = UCS_OK;
    ucp_st_key_t *key;
    size_t i;

    for (i = 0; i < count; ++i) {
        key = ucp_st_match_self_key(ops[i], 1);
        if (key != NULL) {
            ++key->added[ops[i]->dir];
        }
    }
    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        key = ucp_st_match_self_key(ops[i], 0);
        if ((key != NULL) &&
            ((key->count[UCP_ST_DIR_SEND] + key->added[UCP_ST_DIR_SEND]) !=
             (key->count[UCP_ST_DIR_RECV] + key->added[UCP_ST_DIR_RECV]))) {
            ucs_error("a blocking match of one half of a message to oneself "
                      "(tag 0x%lx)", ops[i]->tag);
            status = UCS_ERR_INVALID_PARAM;
        }
    }
    for (i = 0; i < count; ++i) {
        key = ucp_st_match_self_key(ops[i], 0);
        if (key != NULL) {
            key->added[UCP_ST_DIR_SEND] = 0;
            key->added[UCP_ST_DIR_RECV] = 0;
            ucp_st_match_key_put(ops[i]->peer, key);
        }
    }
    return status;
}

/* Announce one operation; the lock is held */
static void ucp_st_match_start(ucp_st_op_t *op)
{
    ucs_status_t status;

    ucp_st_op_set_state(op, UCP_ST_OP_MATCHING);
    op->status = UCS_OK;
    if (!ucp_st_peer_is_real(op->peer)) {
        ucp_st_op_set_state(op, UCP_ST_OP_MATCHED);
        return;
    }

    status = ucp_st_match_add(op);
    if (status == UCS_OK) {
        status = ucp_st_outbox_post_match(op);
    }
    if (status != UCS_OK) {
        ucp_st_op_fail(op, status);
        return;
    }
    ucp_st_match_try(op);
}

/* Check all, then announce all; the lock is not held */
static ucs_status_t ucp_st_match_startall(const ucp_st_op_h *ops, size_t count,
                                          int blocking)
{
    ucp_st_worker_h worker;
    ucs_status_t status;
    size_t i;

    if (count == 0) {
        return UCS_OK;
    }
    status = ucp_st_check_call((ops != NULL) && (ops[0] != NULL));
    if (status != UCS_OK) {
        return status;
    }

    worker = ops[0]->worker;
    ucp_st_worker_lock(worker);
    /* What uses hold that are over must not be missing here */
    ucp_st_lanes_progress_all(worker);
    status = ucp_st_match_checkall(ops, count);
    if ((status == UCS_OK) && blocking) {
        status = ucp_st_match_check_self(ops, count);
    }
    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        ucp_st_match_start(ops[i]);
    }
    ucp_st_worker_unlock(worker);
    ucp_st_ctrl_ops.flush(worker);
    return status;
}

ucs_status_t ucp_st_imatchall(const ucp_st_op_h *ops, size_t count)
{
    return ucp_st_match_startall(ops, count, 0);
}

/* Outcome as far as known; the lock is held */
static ucs_status_t ucp_st_match_status(const ucp_st_op_t *op)
{
    switch (op->state) {
    case UCP_ST_OP_MATCHED:
        return UCS_OK;
    case UCP_ST_OP_MATCHING:
        return UCS_INPROGRESS;
    case UCP_ST_OP_INIT:
        return (op->status == UCS_OK) ? UCS_ERR_NOT_CONNECTED : op->status;
    default:
        return op->status;
    }
}

ucs_status_t ucp_st_match_test(ucp_st_op_h op)
{
    ucs_status_t status;

    status = ucp_st_check_call(op != NULL);
    if (status != UCS_OK) {
        return status;
    }
    (void)ucp_st_ctrl_ops.progress(op->worker);
    ucp_st_worker_lock(op->worker);
    status = ucp_st_match_status(op);
    ucp_st_worker_unlock(op->worker);
    return status;
}

static size_t ucp_st_match_count_pending(const ucp_st_op_h *ops, size_t count)
{
    size_t pending = 0;
    size_t i;

    ucp_st_worker_lock(ops[0]->worker);
    for (i = 0; i < count; ++i) {
        pending += (ops[i]->state == UCP_ST_OP_MATCHING);
    }
    ucp_st_worker_unlock(ops[0]->worker);
    return pending;
}

ucs_status_t ucp_st_matchall(const ucp_st_op_h *ops, size_t count,
                             ucs_status_t *statuses)
{
    uint64_t begin       = ucs_trace_begin();
    ucs_status_t result  = UCS_OK;
    unsigned idle_rounds = 0;
    ucs_status_t status;
    size_t i;

    status = ucp_st_match_startall(ops, count, 1);
    if ((status != UCS_OK) || (count == 0)) {
        return status;
    }
    while (ucp_st_match_count_pending(ops, count) > 0) {
        ucp_st_worker_pause(&idle_rounds,
                            ucp_st_ctrl_ops.progress(ops[0]->worker));
    }

    ucp_st_worker_lock(ops[0]->worker);
    for (i = 0; i < count; ++i) {
        status = ucp_st_match_status(ops[i]);
        if (statuses != NULL) {
            statuses[i] = status;
        }
        if (result == UCS_OK) {
            result = status;
        }
    }
    ucp_st_worker_unlock(ops[0]->worker);
    ucs_trace_end("ucp_st_matchall", begin);
    return result;
}

ucs_status_t ucp_st_match(ucp_st_op_h op)
{
    return ucp_st_matchall(&op, 1, NULL);
}
