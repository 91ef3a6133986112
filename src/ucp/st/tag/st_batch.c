/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_batch.c - messages that are used once: what the service thread does with
 * them, and what their end means for the queue.
 *
 * UCP is called without the worker's lock. It is of UCS_THREAD_MODE_MULTI: the
 * application may progress it, and so run the callbacks here, at any time.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "tag/st_batch.h"
#include "core/st_leave.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_progress.h"
#include "core/st_stage.h"
#include "core/st_ucp.h"
#include "core/st_watch.h"

#include <ucs_backoff.h>

#include <ucs/sys/math.h>

#include <stdlib.h>

/* Rounds of work until other clients of the service thread are served */
#define UCP_ST_BATCH_MAX_ROUNDS 64

/* If the thread cannot sleep on UCP's descriptor: empty rounds until it sleeps
 * for a millisecond */
#define UCP_ST_BATCH_MAX_IDLE 50

static void ucp_st_batch_init(ucp_st_worker_h worker)
{
    ucp_st_batch_t *batch = ucp_st_batch(worker);

    (void)pthread_mutex_init(&batch->ready_lock, NULL);
    ucs_list_head_init(&batch->work);
    ucs_list_head_init(&batch->posted);
    batch->fd = -1;
}

static void ucp_st_batch_queue_init(ucp_st_queue_h queue)
{
    ucp_st_queue_batch_t *batch = ucp_st_queue_batch(queue);

    ucs_list_head_init(&batch->enqueued);
    ucs_gstream_gates_init(&batch->gates, queue->marks[UCP_ST_QUEUE_WORD_REQS]);
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

/* Set the word that the queue's waits look at. In a queue in error they pass
 * once UCP writes to none of its buffers. */
static void ucp_st_batch_update_word(ucp_st_queue_h queue)
{
    ucp_st_queue_batch_t *batch = ucp_st_queue_batch(queue);
    volatile uint64_t *word     = queue->marks[UCP_ST_QUEUE_WORD_BATCH];
    uint64_t value              = batch->is_failing ? UCP_ST_RELEASE :
                                                      batch->done;

    if (!batch->is_failing || (batch->receives == 0)) {
        /* Pairs with the acquire load of the stream's wait */
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
        ucs_gstream_wake(word);
    }
}

void ucp_st_req_release(ucp_st_req_t *req)
{
    ucs_gstream_memory_put(req->stage, req->length);
    free(req);
}

void ucp_st_req_called(ucp_st_req_t *req)
{
    req->is_calling = 0;
    if (req->is_freed && (req->state == UCP_ST_REQ_DONE)) {
        ucp_st_req_release(req);
    }
}

void ucp_st_req_drop_gate(ucp_st_req_t *req)
{
    if (req->gate != NULL) {
        ucs_gstream_gate_drop(req->gate);
        req->gate = NULL;
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
        ucp_st_service_wake(&batch->service);
    }
}

/* Cancel the receives that UCP has, of one queue or, for NULL, of all */
static void ucp_st_batch_abort_receives(ucp_st_worker_h worker,
                                        ucp_st_queue_h queue)
{
    ucp_st_req_t *req;

    ucs_list_for_each(req, &ucp_st_batch(worker)->posted, list) {
        if (((queue == NULL) || (req->queue == queue)) &&
            (req->dir == UCP_ST_DIR_RECV)) {
            ucp_st_req_abort(req, UCS_ERR_CANCELED);
        }
    }
}

void ucp_st_req_fail_queue(ucp_st_req_t *req, ucs_status_t status)
{
    ucp_st_queue_h queue = req->queue;
    ucp_st_queue_batch_t *batch;

    if (queue == NULL) {
        return;
    }
    batch = ucp_st_queue_batch(queue);
    if (queue->status == UCS_OK) {
        queue->failed_req = req;
        ucp_st_queue_fail(queue, NULL, status);
    }
    if (!batch->is_failing) {
        batch->is_failing = 1;
        ++req->worker->stats.errors;
        ucp_st_batch_abort_receives(req->worker, queue);
    }
    ucp_st_batch_update_word(queue);
}

void ucp_st_req_finish(ucp_st_req_t *req, const ucp_st_req_info_t *info)
{
    ucp_st_queue_h queue        = req->queue;
    ucp_st_queue_batch_t *batch = (queue != NULL) ? ucp_st_queue_batch(queue) :
                                                    NULL;
    int was_started             = (req->state != UCP_ST_REQ_ENQUEUED);

    if (req->state == UCP_ST_REQ_POSTED) { /* UCP has it no longer */
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
    if ((batch != NULL) && was_started) {
        if (req->info.status != UCS_OK) {
            ucp_st_req_fail_queue(req, req->info.status);
        } else if (!req->is_fifo) {
            ucp_st_req_set_actual(req, info->length);
            ++batch->done;
            ucp_st_batch_update_word(queue);
        }
    }
    ucp_st_req_drop_gate(req);
    if (req->is_freed && !req->is_calling) {
        ucp_st_req_release(req);
    }
}

void ucp_st_req_finish_status(ucp_st_req_t *req, ucs_status_t status)
{
    ucp_st_req_info_t info = {.status = status};

    ucp_st_req_finish(req, &info);
}

/* What UCP reads or writes */
static void *ucp_st_batch_data(const ucp_st_req_t *req)
{
    return (req->stage != NULL) ? req->stage : req->buffer;
}

/* UCP's callback: in any thread, without the lock */
static void ucp_st_batch_completed(ucp_st_req_t *req, void *request,
                                   const ucp_st_req_info_t *info)
{
    ucp_st_worker_h worker = req->worker;
    int is_calling;

    ucp_st_worker_lock(worker);
    is_calling = req->is_calling;
    ucp_st_req_finish(req, info);
    ucp_st_worker_unlock(worker);
    if (!is_calling) {
        ucp_request_free(request);
    }
}

static void ucp_st_batch_sent_cb(void *request, ucs_status_t status, void *arg)
{
    ucp_st_req_t *req      = arg;
    ucp_st_req_info_t info = {.status = status, .length = req->length};

    ucp_st_batch_completed(req, request, &info);
}

static void ucp_st_batch_received_cb(void *request, ucs_status_t status,
                                     const ucp_tag_recv_info_t *tag_info,
                                     void *arg)
{
    ucp_st_req_t *req      = arg;
    ucp_st_req_info_t info = {
        .status     = status,
        .length     = tag_info->length,
        .sender_tag = tag_info->sender_tag
    };

    if ((status == UCS_OK) && (req->stage != NULL) && (info.length > 0)) {
        info.status = ucs_gstream_memory_copy_by(&req->memory, req->buffer,
                                                 req->stage, info.length);
    }
    ucp_st_batch_completed(req, request, &info);
}

/* In the service thread */
static ucs_status_ptr_t ucp_st_batch_send(ucp_st_req_t *req)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = ucp_st_batch_sent_cb,
        .user_data    = req
    };
    ucs_status_t status;
    ucp_ep_h ep;

    status = ucp_st_batch_ep_get(req->peer, &ep);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    if (req->stage != NULL) {
        status = ucs_gstream_memory_copy_by(&req->memory, req->stage,
                                            req->buffer, req->length);
        if (status != UCS_OK) {
            return UCS_STATUS_PTR(status);
        }
    }
    return ucp_tag_send_nbx(ep, ucp_st_batch_data(req), req->length,
                            req->tag, &param);
}

/* UCX 1.13 tells length and tag of a message that is here already only to a
 * callback, which it then calls before it returns */
static ucs_status_ptr_t ucp_st_batch_recv(ucp_st_req_t *req)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv      = ucp_st_batch_received_cb,
        .user_data    = req
    };

    return ucp_tag_recv_nbx(req->worker->ucp_worker, ucp_st_batch_data(req),
                            req->length, req->tag, req->tag_mask, &param);
}

/* A call of UCP for a message has returned. If the message is complete by now,
 * the callback has left it to this thread to free both. The lock is held, and
 * released meanwhile. */
static void ucp_st_batch_called(ucp_st_req_t *req, void *request)
{
    ucp_st_worker_h worker = req->worker;
    int is_done            = (req->state == UCP_ST_REQ_DONE);

    ucp_st_req_called(req);
    if (!is_done) {
        return;
    }
    ucp_st_worker_unlock(worker);
    ucp_request_free(request);
    ucp_st_worker_lock(worker);
}

/* Give a message to UCP; the lock is held, and released meanwhile */
static void ucp_st_batch_post(ucp_st_req_t *req)
{
    ucp_st_worker_h worker = req->worker;
    int is_send            = (req->dir == UCP_ST_DIR_SEND);
    ucp_st_req_info_t info = {.length = is_send ? req->length : 0};
    ucs_status_ptr_t request;

    ucp_st_req_set_state(req, UCP_ST_REQ_POSTED);
    ucs_list_add_tail(&ucp_st_batch(worker)->posted, &req->list);
    if (!is_send && (req->queue != NULL)) {
        ++ucp_st_queue_batch(req->queue)->receives;
    }
    ++worker->stats.proxied;
    ++worker->stats.lanes[UCP_ST_LANE_HOST].msgs;
    req->is_calling = 1;
    ucp_st_worker_unlock(worker);
    request = is_send ? ucp_st_batch_send(req) : ucp_st_batch_recv(req);
    ucp_st_worker_lock(worker);

    if (UCS_PTR_IS_PTR(request)) {
        req->request = request;
        ucp_st_watch_begin(worker);
        ucp_st_batch_called(req, request);
    } else {
        req->is_calling = 0;
        info.status     = UCS_PTR_STATUS(request);
        ucp_st_req_finish(req, &info);
    }
}

/* What streams have started becomes work; the lock is held */
static void ucp_st_batch_take_begun(ucp_st_batch_t *batch)
{
    ucp_st_stack_item_t *item = ucp_st_stack_take(&batch->begun);
    ucp_st_req_t *req;

    while (item != NULL) {
        req  = ucs_container_of(item, ucp_st_req_t, begun_item);
        item = item->next;
        for (; req != NULL; req = req->next) {
            ucs_list_add_tail(&batch->work, &req->list);
        }
    }
}

ucs_status_t ucp_st_req_peer_status(const ucp_st_req_t *req)
{
    if (!ucp_st_peer_is_real(req->peer)) {
        return UCS_OK;
    }
    if (req->dir == UCP_ST_DIR_RECV) {
        return (req->peer->status == UCS_ERR_CANCELED) ? UCS_OK :
                                                         req->peer->status;
    }
    return (req->peer->state == UCP_ST_PEER_LEFT) ? UCS_ERR_CANCELED :
                                                    req->peer->status;
}

/* UCP has found nothing to do: receives from peers that have left in order,
 * long enough ago, get nothing any more. Non-zero if there was one from such a
 * peer: look again soon. */
static int ucp_st_batch_end_late(ucp_st_worker_h worker)
{
    double now  = ucp_st_worker_now();
    int is_late = 0;
    ucp_st_req_t *req;

    ucp_st_worker_lock(worker);
    ucs_list_for_each(req, &ucp_st_batch(worker)->posted, list) {
        if ((req->dir == UCP_ST_DIR_RECV) && !req->is_cancelled &&
            ucp_st_peer_is_real(req->peer) &&
            (req->peer->status != UCS_OK)) {
            is_late = 1;
            if ((now - req->peer->bye_time) > UCP_ST_LEAVE_USE_TIME) {
                ucp_st_req_abort(req, req->peer->status);
            }
        }
    }
    ucp_st_worker_unlock(worker);
    return is_late;
}

/* In the order in which they were enqueued; the lock is held, and released
 * meanwhile */
static unsigned ucp_st_batch_post_all(ucp_st_batch_t *batch)
{
    unsigned count = 0;
    ucp_st_req_t *req;
    ucs_status_t status;

    while (!ucs_list_is_empty(&batch->work)) {
        req    = ucs_list_extract_head(&batch->work, ucp_st_req_t, list);
        status = UCS_OK;
        if (req->is_cancelled) {
            status = req->cause;
        } else if ((req->queue != NULL) &&
                   (ucp_st_queue_status(req->queue) != UCS_OK)) {
            status = UCS_ERR_CANCELED;
        } else {
            status = ucp_st_req_peer_status(req);
        }
        if ((status != UCS_OK) || (req->peer == UCP_ST_PEER_NULL)) {
            ucp_st_req_finish_status(req, status);
        } else {
            ucp_st_batch_post(req);
        }
        ++count;
    }
    return count;
}

/* Have UCP cancel receives; one that has matched is received all the same. The
 * lock is held, and released meanwhile: so each of the `cancels` is looked for
 * from the head of the list. */
static unsigned ucp_st_batch_cancel_all(ucp_st_worker_h worker)
{
    ucp_st_batch_t *batch = ucp_st_batch(worker);
    unsigned count        = 0;
    ucp_st_req_t *req;
    void *request;

    while (batch->cancels > 0) {
        ucs_list_for_each(req, &batch->posted, list) {
            if (req->is_cancelled && !req->is_cancelling) {
                break;
            }
        }
        request            = req->request;
        req->is_cancelling = 1;
        req->is_calling    = 1;
        --batch->cancels;
        ucp_st_worker_unlock(worker);
        ucp_request_cancel(worker->ucp_worker, request);
        ucp_st_worker_lock(worker);
        ucp_st_batch_called(req, request);
        ++count;
    }
    return count;
}

/* Do what there is to do, once; returns how much that was. `is_pending_p` is
 * set to whether UCP still has messages. */
static unsigned ucp_st_batch_work(ucp_st_worker_h worker, int *is_pending_p)
{
    ucp_st_batch_t *batch = ucp_st_batch(worker);
    unsigned count;

    ucp_st_worker_lock(worker);
    ucp_st_batch_take_begun(batch);
    count         = ucp_st_batch_post_all(batch);
    count        += ucp_st_batch_cancel_all(worker);
    *is_pending_p = !ucs_list_is_empty(&batch->posted);
    ucp_st_worker_unlock(worker);
    return count + (*is_pending_p ? ucp_st_progress(worker) : 0);
}

/* UCP has messages and found nothing to do: returns when to look again, in
 * milliseconds. Peers that messages wait for are asked that often, too. */
static int ucp_st_batch_sleep(ucp_st_worker_h worker)
{
    ucp_st_batch_t *batch = ucp_st_batch(worker);

    if (ucp_st_batch_end_late(worker)) {
        return 1;
    }
    if ((batch->fd >= 0) &&
        (ucp_worker_arm(worker->ucp_worker) == UCS_OK)) {
        batch->idle            = 0;
        batch->service.num_fds = 1;
        return 1 + (int)ucs_min(worker->config.ping_interval * 1e3, 1e6);
    }
    return (++batch->idle < UCP_ST_BATCH_MAX_IDLE) ? 0 : 1;
}

/* In the service thread, which looks at UCP's descriptor only while UCP has
 * messages */
static int ucp_st_batch_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_batch_t *batch  = ucp_st_batch(worker);
    unsigned rounds        = 0;
    int is_pending;

    batch->service.num_fds = 0;
    while (ucp_st_batch_work(worker, &is_pending) > 0) {
        batch->idle = 0;
        if (++rounds == UCP_ST_BATCH_MAX_ROUNDS) {
            return 0;
        }
    }
    return is_pending ? ucp_st_batch_sleep(worker) : -1;
}

/* UCP cannot be asked whether a context has a feature: try a receive that
 * matches nothing */
static ucs_status_t ucp_st_batch_check_worker(ucp_st_worker_h worker)
{
    ucp_worker_attr_t attr    = {
        .field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE
    };
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL
    };
    ucs_status_ptr_t request;
    ucs_status_t status;

    status = ucp_worker_query(worker->ucp_worker, &attr);
    if (status != UCS_OK) {
        return status;
    }
    if (attr.thread_mode != UCS_THREAD_MODE_MULTI) {
        ucs_error("messages of batches are sent by a thread of the library: "
                  "the UCP worker must be of UCS_THREAD_MODE_MULTI");
        return UCS_ERR_UNSUPPORTED;
    }
    request = ucp_tag_recv_nbx(worker->ucp_worker, NULL, 0, worker->uuid,
                               UINT64_MAX, &param);
    if (UCS_PTR_STATUS(request) == UCS_ERR_INVALID_PARAM) {
        ucs_error("messages of batches need a UCP worker whose context has "
                  "UCP_FEATURE_TAG");
        return UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK;
}

/* Have the service thread serve the worker from now on */
static ucs_status_t ucp_st_batch_serve_start(ucp_st_worker_h worker)
{
    ucp_st_batch_t *batch = ucp_st_batch(worker);
    ucs_status_t status;

    if (worker->ucp_features & UCP_FEATURE_WAKEUP) {
        status = ucp_worker_get_efd(worker->ucp_worker, &batch->fd);
        if (status != UCS_OK) {
            return status;
        }
    }
    batch->service.serve  = ucp_st_batch_serve;
    batch->service.arg    = worker;
    batch->service.fds[0] = batch->fd;
    return ucp_st_service_add(&batch->service);
}

ucs_status_t ucp_st_batch_make_ready(ucp_st_worker_h worker)
{
    ucp_st_batch_t *batch = ucp_st_batch(worker);
    ucs_status_t status   = UCS_OK;

    if (__atomic_load_n(&batch->is_ready, __ATOMIC_ACQUIRE)) {
        return UCS_OK;
    }
    (void)pthread_mutex_lock(&batch->ready_lock);
    if (!batch->is_ready) {
        status = ucp_st_batch_check_worker(worker);
        if (status == UCS_OK) {
            status = ucp_st_batch_serve_start(worker);
        }
        if (status == UCS_OK) {
            __atomic_store_n(&batch->is_ready, 1, __ATOMIC_RELEASE);
        }
    }
    (void)pthread_mutex_unlock(&batch->ready_lock);
    return status;
}

static void ucp_st_batch_peer_gone(ucp_st_peer_t *peer)
{
    ucp_st_req_t *req;

    ucs_list_for_each(req, &ucp_st_batch(peer->worker)->posted, list) {
        if (req->peer != peer) {
            continue;
        }
        if (req->dir == UCP_ST_DIR_RECV) {
            ucp_st_req_abort(req, peer->status);
        } else {
            /* UCP completes the send when its endpoint fails; a stream need not
             * wait for that */
            ucp_st_req_fail_queue(req, peer->status);
            ucp_st_req_drop_gate(req);
        }
    }
}

static void ucp_st_batch_forget(ucs_list_link_t *list, ucp_st_queue_h queue)
{
    ucp_st_req_t *req;

    ucs_list_for_each(req, list, list) {
        if (req->queue == queue) {
            req->queue = NULL;
        }
    }
}

/* The stream has passed all commands. Messages that are not started are
 * cancelled, the others go on without the queue. */
static void ucp_st_batch_queue_gone(ucp_st_queue_h queue)
{
    ucp_st_batch_t *batch = ucp_st_batch(queue->worker);
    ucp_st_req_t *req;

    while (!ucs_list_is_empty(&ucp_st_queue_batch(queue)->enqueued)) {
        req = ucs_list_extract_head(&ucp_st_queue_batch(queue)->enqueued,
                                    ucp_st_req_t, list);
        ucp_st_req_finish_status(req, UCS_ERR_CANCELED);
    }
    ucs_gstream_gates_cleanup(&ucp_st_queue_batch(queue)->gates);
    ucp_st_batch_take_begun(batch);
    ucp_st_batch_forget(&batch->work, queue);
    ucp_st_batch_forget(&batch->posted, queue);
    if (!ucs_list_is_empty(&batch->work)) {
        ucp_st_service_wake(&batch->service);
    }
}

/* A receive names the peer: its message may come */
static int ucp_st_batch_peer_is_used(ucp_st_peer_t *peer)
{
    ucp_st_req_t *req;

    ucs_list_for_each(req, &ucp_st_batch(peer->worker)->posted, list) {
        if ((req->peer == peer) && (req->dir == UCP_ST_DIR_RECV)) {
            return 1;
        }
    }
    return 0;
}

/* Sends that UCP has, or is to get, are waited for */
static ucp_st_drain_t ucp_st_batch_get_drain(ucp_st_worker_h worker)
{
    ucp_st_batch_t *batch = ucp_st_batch(worker);
    ucp_st_req_t *req;

    if (!ucs_list_is_empty(&batch->work)) {
        return UCP_ST_DRAIN_SENDS;
    }
    ucs_list_for_each(req, &batch->posted, list) {
        if (req->dir == UCP_ST_DIR_SEND) {
            return UCP_ST_DRAIN_SENDS;
        }
    }
    return UCP_ST_DRAIN_DONE;
}

static void ucp_st_batch_stop(ucp_st_worker_h worker)
{
    ucp_st_batch_t *batch = ucp_st_batch(worker);
    ucp_st_req_t *req;

    if (!batch->is_ready) {
        return;
    }
    ucp_st_service_remove(&batch->service);
    ucp_st_worker_lock(worker);
    while (!ucs_list_is_empty(&batch->work)) {
        req = ucs_list_extract_head(&batch->work, ucp_st_req_t, list);
        ucp_st_req_finish_status(req, UCS_ERR_CANCELED);
    }
    ucp_st_batch_abort_receives(worker, NULL);
    (void)ucp_st_batch_cancel_all(worker);
    ucp_st_worker_unlock(worker);
    ucp_st_batch_eps_close(worker);
}

static void ucp_st_batch_close(ucp_st_worker_h worker)
{
    ucp_st_batch_t *batch = ucp_st_batch(worker);
    double end            = ucp_st_worker_now() + UCP_ST_BATCH_STOP_TIME;
    unsigned rounds       = 0;
    int is_pending;

    if (!batch->is_ready) {
        return;
    }
    do {
        (void)ucp_st_batch_work(worker, &is_pending);
        ucs_backoff(&rounds);
    } while (is_pending && (ucp_st_worker_now() < end));
    if (!ucs_list_is_empty(&batch->posted)) {
        ucs_warn("UCP has not ended all messages of a worker in time: they "
                 "were enqueued and not waited for");
    }
}

static void ucp_st_batch_cleanup(ucp_st_worker_h worker)
{
    (void)pthread_mutex_destroy(&ucp_st_batch(worker)->ready_lock);
}

static int ucp_st_batch_is_used(ucp_st_worker_h worker)
{
    return ucp_st_batch(worker)->handles > 0;
}

static void ucp_st_batch_ask(ucp_st_worker_h worker)
{
    ucp_st_req_t *req;

    ucs_list_for_each(req, &ucp_st_batch(worker)->posted, list) {
        if (ucp_st_peer_is_real(req->peer)) {
            ucp_st_watch_ask_peer(req->peer);
        }
    }
}

static void ucp_st_batch_waits(ucp_st_worker_h worker, ucp_st_waits_t *waits)
{
    ucp_st_req_t *req;

    ucs_list_for_each(req, &ucp_st_batch(worker)->posted, list) {
        if (!ucp_st_waits_see(waits, &req->look, 0)) {
            continue;
        }
        ucp_st_waits_begin_of(waits, worker, "a message", &req->look);
        ucp_st_waits_add(waits, "%s of %zu bytes %s ",
                         (req->dir == UCP_ST_DIR_SEND) ? "send" : "receive",
                         req->length,
                         (req->dir == UCP_ST_DIR_SEND) ? "to" : "from");
        if (ucp_st_peer_is_real(req->peer)) {
            ucp_st_waits_add(waits, "peer 0x%lx", req->peer->uuid);
        } else {
            ucp_st_waits_add(waits, "any peer");
        }
        ucp_st_waits_add(waits, ", tag 0x%lx", (uint64_t)req->tag);
        if (req->tag_mask != UINT64_MAX) {
            ucp_st_waits_add(waits, " of bits 0x%lx", (uint64_t)req->tag_mask);
        }
    }
}

const ucp_st_component_t ucp_st_tag_component = {
    .priv   = UCP_ST_PRIV_TAG,
    .sizes  = {
        [UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_batch_t),
        [UCP_ST_OBJECT_PEER]   = sizeof(ucp_st_batch_peer_t),
        [UCP_ST_OBJECT_QUEUE]  = sizeof(ucp_st_queue_batch_t)
    },
    /* The first message makes it ready: see ucp_st_batch_make_ready() */
    .worker = {
        .init    = ucp_st_batch_init,
        .open    = ucp_st_worker_hook_ok,
        .is_used = ucp_st_batch_is_used,
        .leave   = ucp_st_batch_eps_flush,
        .drain   = ucp_st_batch_get_drain,
        .ask     = ucp_st_batch_ask,
        .waits   = ucp_st_batch_waits,
        .stop    = ucp_st_batch_stop,
        .close   = ucp_st_batch_close,
        .cleanup = ucp_st_batch_cleanup
    },
    .peer   = {
        .init       = ucp_st_peer_hook_none,
        .gone       = ucp_st_batch_peer_gone,
        .closed     = ucp_st_peer_hook_none,
        .is_used    = ucp_st_batch_peer_is_used,
        .is_awaited = ucp_st_peer_hook_zero,
        .fifo       = ucp_st_peer_hook_fifo
    },
    /* Messages go on without their queue; they look at its status themselves */
    .queue  = {
        .init    = ucp_st_batch_queue_init,
        .is_busy = ucp_st_queue_hook_zero,
        .fail    = ucp_st_queue_hook_none,
        .count   = ucp_st_queue_hook_count,
        .cleanup = ucp_st_batch_queue_gone
    }
};
