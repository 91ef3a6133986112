/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_req.c - messages that are used once: what the host may ask and do, and
 * what their end means for the queue.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_req.h"
#include "st_batch.h"
#include "st_ctrl.h"
#include "st_fork.h"
#include "st_log.h"
#include "st_queue.h"
#include "st_worker.h"

#include <stdlib.h>

int ucp_st_req_has_peer(const ucp_st_req_t *req)
{
    return (req->peer != UCP_ST_PEER_NULL) && (req->peer != UCP_ST_PEER_ANY);
}

ucp_st_req_t *ucp_st_req_create(ucp_st_queue_h queue, ucp_st_dir_t dir,
                                const ucp_st_msg_params_t *params)
{
    uint64_t mask     = params->field_mask;
    ucp_st_req_t *req = calloc(1, sizeof(*req));

    if (req == NULL) {
        return NULL;
    }
    req->worker      = queue->worker;
    req->queue       = queue;
    req->dir         = dir;
    req->state       = UCP_ST_REQ_ENQUEUED;
    req->info.status = UCS_INPROGRESS;
    req->buffer      = (mask & UCP_ST_MSG_PARAM_FIELD_BUFFER) ?
                       params->buffer : NULL;
    req->length      = (mask & UCP_ST_MSG_PARAM_FIELD_LENGTH) ?
                       params->length : 0;
    req->tag         = (mask & UCP_ST_MSG_PARAM_FIELD_TAG) ? params->tag : 0;
    req->tag_mask    = (mask & UCP_ST_MSG_PARAM_FIELD_TAG_MASK) ?
                       params->tag_mask : UINT64_MAX;
    req->peer        = (mask & UCP_ST_MSG_PARAM_FIELD_PEER) ? params->peer :
                       (dir == UCP_ST_DIR_SEND) ? UCP_ST_PEER_NULL :
                                                  UCP_ST_PEER_ANY;
    return req;
}

void ucp_st_req_destroy(ucp_st_req_t *req)
{
    free(req);
}

/* Every edge leads on, or back from a start that could not be enqueued */
void ucp_st_req_set_state(ucp_st_req_t *req, ucp_st_req_state_t state)
{
    if ((state <= req->state) && !((state == UCP_ST_REQ_ENQUEUED) &&
                                   (req->state == UCP_ST_REQ_STARTED))) {
        ucs_error("message %p: state %d cannot follow %d", req, state,
                  req->state);
    }
    __atomic_store_n(&req->state, state, __ATOMIC_RELEASE);
}

/* The release store pairs with the acquire load of the stream's wait */
static void ucp_st_req_store_word(ucp_st_queue_h queue, uint64_t value)
{
    __atomic_store_n(&queue->batch.word, value, __ATOMIC_RELEASE);
    ucs_gstream_wake(&queue->batch.word);
}

/* A queue in error: let its waits pass once UCP writes to no buffer of it */
static void ucp_st_req_settle_queue(ucp_st_queue_h queue)
{
    if (queue->batch.is_failing && (queue->batch.receives == 0)) {
        ucp_st_req_store_word(queue, UCP_ST_RELEASE);
    }
}

void ucp_st_req_abort(ucp_st_req_t *req, ucs_status_t cause)
{
    ucp_st_batch_t *batch = &req->worker->batch;

    if (req->is_cancelled) {
        return;
    }
    req->is_cancelled = 1;
    req->cause        = cause;
    if (req->state == UCP_ST_REQ_POSTED) {
        ++batch->cancels;
        ucp_st_batch_wake(req->worker);
    }
}

void ucp_st_req_fail_queue(ucp_st_req_t *req, ucs_status_t status)
{
    ucp_st_queue_h queue = req->queue;
    ucp_st_req_t *other;

    if (queue == NULL) {
        return;
    }
    ucp_st_queue_fail_req(queue, req, status);
    if (!queue->batch.is_failing) {
        queue->batch.is_failing = 1;
        ++req->worker->stats.errors;
        ucs_list_for_each(other, &req->worker->batch.posted, list) {
            if ((other->queue == queue) && (other->dir == UCP_ST_DIR_RECV)) {
                ucp_st_req_abort(other, UCS_ERR_CANCELED);
            }
        }
    }
    ucp_st_req_settle_queue(queue);
}

/* UCP does not have it any more; the lock is held */
static void ucp_st_req_unpost(ucp_st_req_t *req)
{
    ucs_list_del(&req->list);
    if ((req->queue != NULL) && (req->dir == UCP_ST_DIR_RECV)) {
        --req->queue->batch.receives;
    }
    if (req->is_cancelled && !req->is_cancelling) {
        --req->worker->batch.cancels;
    }
}

void ucp_st_req_done(ucp_st_req_t *req, const ucp_st_req_info_t *info)
{
    ucp_st_queue_h queue = req->queue;
    int was_started      = (req->state != UCP_ST_REQ_ENQUEUED);

    if (req->state == UCP_ST_REQ_POSTED) {
        ucp_st_req_unpost(req);
    }
    req->info = *info;
    if ((info->status == UCS_ERR_CANCELED) && req->is_cancelled) {
        req->info.status = req->cause;
    }
    ucp_st_req_set_state(req, UCP_ST_REQ_DONE);
    if ((queue == NULL) || !was_started) {
        return;
    }
    if (req->info.status != UCS_OK) {
        ucp_st_req_fail_queue(req, req->info.status);
        return;
    }
    ++queue->batch.done;
    if (queue->batch.is_failing) {
        ucp_st_req_settle_queue(queue);
    } else {
        ucp_st_req_store_word(queue, queue->batch.done);
    }
}

static ucp_st_req_state_t ucp_st_req_state(const ucp_st_req_t *req)
{
    return __atomic_load_n(&req->state, __ATOMIC_ACQUIRE);
}

/* What is known; `status` is what the caller is told */
static ucs_status_t ucp_st_req_get_info(const ucp_st_req_t *req,
                                        ucp_st_req_info_t *info)
{
    ucp_st_req_info_t result = {.status = UCS_INPROGRESS};

    if (ucp_st_req_state(req) == UCP_ST_REQ_DONE) {
        result = req->info;
    }
    if (info != NULL) {
        *info = result;
    }
    return result.status;
}

ucs_status_t ucp_st_req_test(ucp_st_req_h req, ucp_st_req_info_t *info)
{
    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    if (req == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (ucp_st_req_state(req) != UCP_ST_REQ_DONE) {
        ucp_st_ctrl_progress(req->worker);
    }
    return ucp_st_req_get_info(req, info);
}

ucs_status_t ucp_st_req_wait(ucp_st_req_h req, ucp_st_req_info_t *info)
{
    unsigned idle_rounds = 0;
    ucp_st_req_state_t state;

    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    if (req == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    while ((state = ucp_st_req_state(req)) != UCP_ST_REQ_DONE) {
        if (state == UCP_ST_REQ_ENQUEUED) {
            ucs_error("wait for message %p, whose start is not enqueued", req);
            (void)ucp_st_req_get_info(req, info);
            return UCS_ERR_NO_MESSAGE;
        }
        ucp_st_ctrl_pause(&idle_rounds, ucp_st_ctrl_progress(req->worker));
    }
    return ucp_st_req_get_info(req, info);
}

/* Cancel what no command of a stream names; the lock is held */
static void ucp_st_req_withdraw(ucp_st_req_t *req)
{
    static const ucp_st_req_info_t info = {.status = UCS_ERR_CANCELED};

    ucs_list_del(&req->list);
    ucp_st_req_done(req, &info);
}

ucs_status_t ucp_st_req_cancel(ucp_st_req_h req)
{
    ucs_status_t status = UCS_OK;

    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    if (req == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_st_worker_lock(req->worker);
    if (req->state == UCP_ST_REQ_ENQUEUED) {
        ucp_st_req_withdraw(req);
    } else if ((req->state == UCP_ST_REQ_POSTED) &&
               (req->dir == UCP_ST_DIR_SEND)) {
        status = UCS_ERR_UNSUPPORTED;
    } else if (req->state != UCP_ST_REQ_DONE) {
        ucp_st_req_abort(req, UCS_ERR_CANCELED);
    }
    ucp_st_worker_unlock(req->worker);
    return status;
}

ucs_status_t ucp_st_req_free(ucp_st_req_h req)
{
    ucp_st_worker_h worker;

    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    if (req == NULL) {
        return UCS_OK;
    }
    worker = req->worker;
    ucp_st_worker_lock(worker);
    --worker->batch.handles;
    if (req->state == UCP_ST_REQ_ENQUEUED) {
        ucp_st_req_withdraw(req);
    }
    if ((req->state == UCP_ST_REQ_DONE) && !req->is_calling) {
        ucp_st_req_destroy(req);
    } else {
        req->is_freed = 1;
    }
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}
