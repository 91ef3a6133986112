/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_req.c - messages that are used once: what the host may ask and do, and
 * what their end means for the queue.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "tag/st_req.h"
#include "tag/st_batch.h"
#include "ctrl/st_ctrl.h"
#include "core/st_fork.h"
#include "core/st_log.h"

#include <stdlib.h>

int ucp_st_req_has_peer(const ucp_st_req_t *req)
{
    return (req->peer != UCP_ST_PEER_NULL) && (req->peer != UCP_ST_PEER_ANY);
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
    ucp_st_queue_batch_t *batch = ucp_st_queue_batch(queue);

    __atomic_store_n(&batch->word, value, __ATOMIC_RELEASE);
    ucs_gstream_wake(&batch->word);
}

/* A queue in error: let its waits pass once UCP writes to no buffer of it */
static void ucp_st_req_settle_queue(ucp_st_queue_h queue)
{
    ucp_st_queue_batch_t *batch = ucp_st_queue_batch(queue);

    if (batch->is_failing && (batch->receives == 0)) {
        ucp_st_req_store_word(queue, UCP_ST_RELEASE);
    }
}

void ucp_st_req_abort(ucp_st_req_t *req, ucs_status_t cause)
{
    ucp_st_batch_t *batch = ucp_st_batch(req->worker);

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
    ucp_st_queue_batch_t *batch;
    ucp_st_req_t *other;

    if (queue == NULL) {
        return;
    }
    batch = ucp_st_queue_batch(queue);
    ucp_st_queue_fail_req(queue, req, status);
    if (!batch->is_failing) {
        batch->is_failing = 1;
        ++req->worker->stats.errors;
        ucs_list_for_each(other, &ucp_st_batch(req->worker)->posted, list) {
            if ((other->queue == queue) && (other->dir == UCP_ST_DIR_RECV)) {
                ucp_st_req_abort(other, UCS_ERR_CANCELED);
            }
        }
    }
    ucp_st_req_settle_queue(queue);
}

void ucp_st_req_done(ucp_st_req_t *req, const ucp_st_req_info_t *info)
{
    ucp_st_queue_h queue        = req->queue;
    ucp_st_queue_batch_t *batch = (queue != NULL) ? ucp_st_queue_batch(queue) :
                                                    NULL;
    int was_started             = (req->state != UCP_ST_REQ_ENQUEUED);

    if (req->state == UCP_ST_REQ_POSTED) { /* UCP does not have it any more */
        ucs_list_del(&req->list);
        if ((batch != NULL) && (req->dir == UCP_ST_DIR_RECV)) {
            --batch->receives;
        }
        if (req->is_cancelled && !req->is_cancelling) {
            --ucp_st_batch(req->worker)->cancels;
        }
    }
    req->info = *info;
    if ((info->status == UCS_ERR_CANCELED) && req->is_cancelled) {
        req->info.status = req->cause;
    }
    ucp_st_req_set_state(req, UCP_ST_REQ_DONE);
    if ((batch == NULL) || !was_started) {
        return;
    }
    if (req->info.status != UCS_OK) {
        ucp_st_req_fail_queue(req, req->info.status);
        return;
    }
    ++batch->done;
    if (batch->is_failing) {
        ucp_st_req_settle_queue(queue);
    } else {
        ucp_st_req_store_word(queue, batch->done);
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
        ucp_st_worker_pause(&idle_rounds, ucp_st_ctrl_progress(req->worker));
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
    --ucp_st_batch(worker)->handles;
    if (req->state == UCP_ST_REQ_ENQUEUED) {
        ucp_st_req_withdraw(req);
    }
    if ((req->state == UCP_ST_REQ_DONE) && !req->is_calling) {
        free(req);
    } else {
        req->is_freed = 1;
    }
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}
