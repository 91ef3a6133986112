/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_req.c - messages that are used once: the calls that enqueue, start and
 * wait for them, and those for one of them.
 *
 * A start is one command, which pushes the first of its messages on a stack of
 * the worker. A stream pushes with one compare-and-swap, and the service thread
 * takes the whole stack at once.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "tag/st_batch.h"
#include "tag/st_fifo.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_progress.h"
#include "core/st_stage.h"
#include "core/st_trace.h"

#include <ucs/type/param.h>

#include <stdlib.h>

/* A start or a wait of what UCP moves, one of FIFOs, and their span */
#define UCP_ST_BATCH_CMDS (2 + UCP_ST_TRACE_MAX_CMDS)

#define UCP_ST_MSG_PARAM(_params, _name, _FLAG, _default) \
    UCS_PARAM_VALUE(UCP_ST_MSG_PARAM_FIELD, _params, _name, _FLAG, _default)

/* A request of what `params` say; UCS_ERR_INVALID_PARAM if that makes no sense
 */
static ucs_status_t ucp_st_req_init(ucp_st_req_t *req, ucp_st_queue_h queue,
                                    ucp_st_dir_t dir,
                                    const ucp_st_msg_params_t *params)
{
    ucp_st_peer_h peer = (dir == UCP_ST_DIR_SEND) ? UCP_ST_PEER_NULL :
                                                    UCP_ST_PEER_ANY;

    *req = (ucp_st_req_t){
        .worker      = queue->worker,
        .queue       = queue,
        .dir         = dir,
        .state       = UCP_ST_REQ_ENQUEUED,
        .info.status = UCS_INPROGRESS,
        .buffer      = UCP_ST_MSG_PARAM(params, buffer, BUFFER, NULL),
        .length      = UCP_ST_MSG_PARAM(params, length, LENGTH, 0),
        .actual      = UCP_ST_MSG_PARAM(params, actual, ACTUAL, NULL),
        .tag         = UCP_ST_MSG_PARAM(params, tag, TAG, 0),
        .tag_mask    = UCP_ST_MSG_PARAM(params, tag_mask, TAG_MASK, UINT64_MAX),
        .peer        = UCP_ST_MSG_PARAM(params, peer, PEER, peer)
    };
    if ((req->buffer == NULL) && (req->length > 0)) {
        ucs_error("message of %zu bytes without a buffer", req->length);
        return UCS_ERR_INVALID_PARAM;
    }
    if ((req->peer == UCP_ST_PEER_ANY) && (dir == UCP_ST_DIR_SEND)) {
        ucs_error("a send needs a peer");
        return UCS_ERR_INVALID_PARAM;
    }
    if (ucp_st_peer_is_real(req->peer) &&
        (req->peer->worker != queue->worker)) {
        ucs_error("the message's peer belongs to another worker");
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_st_stage_query(req->buffer, req->length, &req->memory);
    if (ucp_st_stage_is_device(&req->memory)) {
        req->stage = ucs_gstream_memory_get(req->length);
        return (req->stage != NULL) ? UCS_OK : UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}

/* Find out what the message is of */
static ucs_status_t ucp_st_req_open(ucp_st_req_t *req,
                                    const ucp_st_msg_params_t *params)
{
    return (params->field_mask & UCP_ST_MSG_PARAM_FIELD_SCOPE) ?
           ucp_st_fifo_enqueue(req, req->queue, params) :
           ucp_st_batch_make_ready(req->worker);
}

static ucs_status_t ucp_st_req_enqueue(ucp_st_queue_h queue, ucp_st_dir_t dir,
                                       const ucp_st_msg_params_t *params,
                                       ucp_st_req_h *req_p)
{
    ucp_st_req_t *req;
    ucs_status_t status;

    status = ucp_st_check_call((queue != NULL) && (params != NULL));
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_queue_status(queue);
    if (status != UCS_OK) {
        return status;
    }
    req = malloc(sizeof(*req));
    if (req == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucp_st_req_init(req, queue, dir, params);
    if (status == UCS_OK) {
        status = ucp_st_req_open(req, params);
    }
    ucp_st_worker_lock(queue->worker);
    if (status == UCS_OK) {
        status = ucp_st_req_peer_status(req);
    }
    if (status != UCS_OK) {
        if (req->msg != NULL) {
            ucp_st_fifo_withdraw(req);
        }
        ucp_st_req_release(req);
    } else {
        if (req->msg == NULL) {
            ucs_list_add_tail(&ucp_st_queue_batch(queue)->enqueued,
                              &req->list);
        }
        if (req_p == NULL) {
            req->is_freed = 1;
        } else {
            ++ucp_st_batch(queue->worker)->handles;
            *req_p = req;
        }
    }
    ucp_st_worker_unlock(queue->worker);
    return status;
}

ucs_status_t ucp_st_enqueue_send(ucp_st_queue_h queue,
                                 const ucp_st_msg_params_t *params,
                                 ucp_st_req_h *req_p)
{
    return ucp_st_req_enqueue(queue, UCP_ST_DIR_SEND, params, req_p);
}

ucs_status_t ucp_st_enqueue_recv(ucp_st_queue_h queue,
                                 const ucp_st_msg_params_t *params,
                                 ucp_st_req_h *req_p)
{
    return ucp_st_req_enqueue(queue, UCP_ST_DIR_RECV, params, req_p);
}

/* Enqueue so many commands, with their span where events are recorded:
 * ucp_st_trace_cmd() made the first of them */
static ucs_status_t ucp_st_batch_enqueue(ucp_st_queue_h queue, size_t num_cmds,
                                         ucp_st_trace_cmd_t trace)
{
    num_cmds += ucp_st_trace_cmd(trace, NULL, &queue->cmds[num_cmds]);
    return ucp_st_queue_enqueue(queue, num_cmds);
}

/* Runs on the stream */
static void ucp_st_batch_start_func(void *arg)
{
    ucp_st_req_t *first   = arg;
    ucp_st_batch_t *batch = ucp_st_batch(first->worker);

    ucp_st_stack_push(&batch->begun, &first->begun_item);
    ucp_st_service_wake(&batch->service);
}

/* Make one start of all enqueued messages, or undo that; how many they are */
static uint64_t ucp_st_batch_link(ucp_st_queue_h queue,
                                  ucp_st_req_state_t state)
{
    ucp_st_queue_batch_t *batch = ucp_st_queue_batch(queue);
    uint64_t count              = 0;
    ucp_st_req_t *req;

    ucp_st_worker_lock(queue->worker);
    ucs_list_for_each(req, &batch->enqueued, list) {
        ucp_st_req_set_state(req, state);
        req->next = (req->list.next == &batch->enqueued) ? NULL :
                    ucs_list_next(&req->list, ucp_st_req_t, list);
        ++count;
    }
    ucp_st_worker_unlock(queue->worker);
    return count;
}

ucs_status_t ucp_st_enqueue_batch_start(ucp_st_queue_h queue)
{
    ucs_status_t status = ucp_st_queue_prepare(queue, UCP_ST_BATCH_CMDS);
    size_t num_cmds     = 0;
    size_t num_stores   = 0;
    uint64_t count      = 0;
    ucp_st_queue_batch_t *batch;

    if (status != UCS_OK) {
        return status;
    }
    batch    = ucp_st_queue_batch(queue);
    num_cmds = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL, queue->cmds);
    status   = ucp_st_fifo_start(queue, &queue->cmds[num_cmds], &num_stores);
    if ((status != UCS_OK) ||
        ((num_stores == 0) && ucs_list_is_empty(&batch->enqueued))) {
        return status;
    }
    num_cmds += num_stores;
    if (!ucs_list_is_empty(&batch->enqueued)) {
        /* Once the command is enqueued, the service thread may have the
         * messages, and may have freed them: the list must not be looked at any
         * more */
        count     = ucp_st_batch_link(queue, UCP_ST_REQ_STARTED);
        num_cmds += ucp_st_queue_add_func(queue, ucp_st_batch_start_func,
                                          ucs_list_head(&batch->enqueued,
                                                        ucp_st_req_t, list),
                                          0, &queue->cmds[num_cmds]);
    }
    status = ucp_st_batch_enqueue(queue, num_cmds, UCP_ST_TRACE_BATCH_START);
    if (ucp_st_queue_is_submitted(queue, status)) {
        ucs_list_head_init(&batch->enqueued);
        batch->started += count;
        (void)ucp_st_queue_count(&queue->start_cmds, num_stores);
        ucp_st_fifo_started(queue);
    } else if (count > 0) {
        (void)ucp_st_batch_link(queue, UCP_ST_REQ_ENQUEUED);
    }
    return status;
}

ucs_status_t ucp_st_enqueue_batch_wait(ucp_st_queue_h queue)
{
    ucs_status_t status = ucp_st_queue_prepare(queue, UCP_ST_BATCH_CMDS);
    ucp_st_queue_batch_t *batch;
    ucs_gstream_cmd_t *cmd;
    size_t num_cmds, num_words;

    if (status != UCS_OK) {
        return status;
    }
    batch     = ucp_st_queue_batch(queue);
    num_cmds  = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL, queue->cmds);
    num_words = ucp_st_fifo_wait(queue, &queue->cmds[num_cmds]);
    if ((num_words == 0) && (batch->waited == batch->started)) {
        return UCS_OK;
    }
    num_cmds += num_words;
    if (batch->waited != batch->started) {
        cmd                 = &queue->cmds[num_cmds++];
        cmd->type           = UCS_GSTREAM_CMD_WAIT64;
        cmd->u.word.address = queue->marks[UCP_ST_QUEUE_WORD_BATCH];
        cmd->u.word.value   = batch->started;
    }
    status = ucp_st_batch_enqueue(queue, num_cmds, UCP_ST_TRACE_BATCH_WAIT);
    if (status == UCS_OK) {
        batch->waited = batch->started;
        (void)ucp_st_queue_count(&queue->wait_words, num_words);
        ucp_st_fifo_waited(queue);
    }
    return status;
}

/* Whether a queue waits for the message; one that has left its gate does not */
static int ucp_st_req_has_gate(const ucp_st_req_t *req)
{
    return (req->gate != NULL) && (req->gate->gates != NULL);
}

/* Whether a wait of a queue can be for these messages, of any queue of the
 * worker: its lock, which is held, protects requests and the gates of all its
 * queues, so that it does not matter which threads call for the queues. A
 * request holds one gate: its end is told to one stream. */
static ucs_status_t ucp_st_req_check_all(ucp_st_queue_h queue,
                                         const ucp_st_req_h *reqs, size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        if ((reqs[i] == NULL) || (reqs[i]->worker != queue->worker)) {
            ucs_error("message %p, the %zu. to wait for, is not of the worker "
                      "of queue %p", reqs[i], i + 1, queue);
            return UCS_ERR_INVALID_PARAM;
        }
        if (reqs[i]->state == UCP_ST_REQ_ENQUEUED) {
            ucs_error("wait for message %p, whose start is not enqueued",
                      reqs[i]);
            return UCS_ERR_NO_MESSAGE;
        }
        if (ucp_st_req_has_gate(reqs[i]) &&
            (reqs[i]->gate->gates != &ucp_st_queue_batch(queue)->gates)) {
            ucs_error("wait for message %p, for which the stream of another "
                      "queue waits already", reqs[i]);
            return UCS_ERR_BUSY;
        }
    }
    return UCS_OK;
}

/* Make a gate, which the caller holds, too, held by those that are not
 * complete. One that holds another gate, of the same queue, does not count: the
 * stream is to pass that one before. A gate that is left when its queue goes
 * is freed by the last message that holds it. */
static ucs_status_t ucp_st_req_hold_all(ucp_st_queue_h queue,
                                        const ucp_st_req_h *reqs, size_t count,
                                        ucs_gstream_gate_t **gate_p)
{
    ucs_gstream_gate_t *gate;
    ucs_status_t status;
    size_t i;

    status = ucs_gstream_gate_create(&ucp_st_queue_batch(queue)->gates, &gate);
    if (status != UCS_OK) {
        return status;
    }
    for (i = 0; i < count; ++i) {
        if ((reqs[i]->state == UCP_ST_REQ_DONE) ||
            ucp_st_req_has_gate(reqs[i])) {
            continue;
        }
        if (reqs[i]->gate != NULL) {
            ucs_gstream_gate_drop(reqs[i]->gate);
        }
        ucs_gstream_gate_hold(gate);
        reqs[i]->gate = gate;
        if (reqs[i]->is_fifo) {
            ucp_st_fifo_await(reqs[i]);
        }
    }
    *gate_p = gate;
    return UCS_OK;
}

/* The stream waits at the gate, or did not take the command */
static void ucp_st_req_hold_end(ucs_gstream_gate_t *gate,
                                const ucp_st_req_h *reqs, size_t count,
                                int is_submitted)
{
    size_t i;

    if (is_submitted) {
        ucs_gstream_gate_drop(gate);
        return;
    }
    for (i = 0; i < count; ++i) {
        if (reqs[i]->gate == gate) {
            reqs[i]->gate = NULL;
        }
    }
    ucs_gstream_gate_cancel(gate);
}

ucs_status_t ucp_st_enqueue_req_waitall(ucp_st_queue_h queue,
                                        const ucp_st_req_h *reqs, size_t count)
{
    ucs_status_t status      = ucp_st_queue_prepare(queue, UCP_ST_BATCH_CMDS);
    ucs_gstream_gate_t *gate = NULL;
    ucs_gstream_cmd_t *cmd;
    size_t num_cmds;

    if ((status != UCS_OK) || (count == 0)) {
        return status;
    }
    if (reqs == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_st_worker_lock(queue->worker);
    status = ucp_st_req_check_all(queue, reqs, count);
    if (status == UCS_OK) {
        status = ucp_st_req_hold_all(queue, reqs, count, &gate);
    }
    ucp_st_worker_unlock(queue->worker);
    if (status != UCS_OK) {
        return status;
    }
    num_cmds            = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL,
                                           queue->cmds);
    cmd                 = &queue->cmds[num_cmds++];
    cmd->type           = UCS_GSTREAM_CMD_WAIT64;
    cmd->u.word.address = queue->marks[UCP_ST_QUEUE_WORD_REQS];
    cmd->u.word.value   = ucp_st_queue_batch(queue)->gates.count;
    status = ucp_st_batch_enqueue(queue, num_cmds, UCP_ST_TRACE_BATCH_WAIT);
    ucp_st_worker_lock(queue->worker);
    ucp_st_req_hold_end(gate, reqs, count,
                        ucp_st_queue_is_submitted(queue, status));
    ucp_st_worker_unlock(queue->worker);
    if (status == UCS_OK) {
        (void)ucp_st_queue_count(&queue->wait_words, 1);
    }
    return status;
}

static ucp_st_req_state_t ucp_st_req_state(const ucp_st_req_t *req)
{
    return __atomic_load_n(&req->state, __ATOMIC_ACQUIRE);
}

/* Fill in what is known; returns the message's status */
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
    ucs_status_t status = ucp_st_check_call(req != NULL);

    if (status != UCS_OK) {
        return status;
    }
    if (ucp_st_req_state(req) != UCP_ST_REQ_DONE) {
        if (req->is_fifo) {
            ucp_st_fifo_ask(req);
        }
        ucp_st_progress(req->worker);
    }
    return ucp_st_req_get_info(req, info);
}

ucs_status_t ucp_st_req_query(ucp_st_req_h req, ucp_st_req_info_t *info)
{
    ucs_status_t status = ucp_st_check_call(req != NULL);

    return (status == UCS_OK) ? ucp_st_req_get_info(req, info) : status;
}

ucs_status_t ucp_st_req_wait(ucp_st_req_h req, ucp_st_req_info_t *info)
{
    ucs_status_t status  = ucp_st_check_call(req != NULL);
    unsigned idle_rounds = 0;
    ucp_st_req_state_t state;

    if (status != UCS_OK) {
        return status;
    }
    while ((state = ucp_st_req_state(req)) != UCP_ST_REQ_DONE) {
        if (state == UCP_ST_REQ_ENQUEUED) {
            ucs_error("wait for message %p, whose start is not enqueued", req);
            (void)ucp_st_req_get_info(req, info);
            return UCS_ERR_NO_MESSAGE;
        }
        if (req->is_fifo) {
            ucp_st_fifo_ask(req);
        }
        ucp_st_progress_pause(&idle_rounds, ucp_st_progress(req->worker));
    }
    return ucp_st_req_get_info(req, info);
}

/* Cancel a message that no command of a stream names; the lock is held */
static void ucp_st_req_withdraw(ucp_st_req_t *req)
{
    if (req->msg != NULL) {
        ucp_st_fifo_withdraw(req);
    } else {
        ucs_list_del(&req->list);
    }
    ucp_st_req_finish_status(req, UCS_ERR_CANCELED);
}

ucs_status_t ucp_st_req_cancel(ucp_st_req_h req)
{
    ucs_status_t status = ucp_st_check_call(req != NULL);

    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(req->worker);
    if (req->state == UCP_ST_REQ_ENQUEUED) {
        ucp_st_req_withdraw(req);
    } else if ((req->state == UCP_ST_REQ_POSTED) &&
               (req->dir == UCP_ST_DIR_SEND)) {
        status = UCS_ERR_UNSUPPORTED;
    } else if (req->is_fifo) {
        ucp_st_fifo_cancel(req, UCS_ERR_CANCELED);
    } else if (req->state != UCP_ST_REQ_DONE) {
        ucp_st_req_abort(req, UCS_ERR_CANCELED);
    }
    ucp_st_worker_unlock(req->worker);
    return status;
}

ucs_status_t ucp_st_req_free(ucp_st_req_h req)
{
    ucs_status_t status = ucp_st_check_call(1);
    ucp_st_worker_h worker;

    if ((status != UCS_OK) || (req == NULL)) {
        return status;
    }
    worker = req->worker;
    ucp_st_worker_lock(worker);
    --ucp_st_batch(worker)->handles;
    req->is_freed = 1;
    if (req->state == UCP_ST_REQ_ENQUEUED) {
        ucp_st_req_withdraw(req);
    } else if ((req->state == UCP_ST_REQ_DONE) && !req->is_calling) {
        ucp_st_req_release(req);
    }
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}
