/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_batch_enqueue.c - messages that streams start: how they are enqueued.
 *
 * A start is one command, which pushes the first of its messages on a stack of
 * the worker. As with the host lane a stream pushes with one compare-and-swap,
 * and the service thread takes the whole stack at once.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "tag/st_batch.h"
#include "core/st_fork.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "tag/st_req.h"
#include "core/st_trace.h"

#include <stdlib.h>

/* A start or a wait, and its span */
#define UCP_ST_BATCH_CMDS (1 + UCP_ST_TRACE_MAX_CMDS)

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
    /* UCP cannot be asked whether a context has a feature; a receive that
     * matches nothing tells */
    request = ucp_tag_recv_nbx(worker->ucp_worker, NULL, 0, worker->uuid,
                               UINT64_MAX, &param);
    if (UCS_PTR_STATUS(request) == UCS_ERR_INVALID_PARAM) {
        ucs_error("messages of batches need a UCP worker whose context has "
                  "UCP_FEATURE_TAG");
        return UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK;
}

/* The first message of the worker */
static ucs_status_t ucp_st_batch_make_ready(ucp_st_worker_h worker)
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

/* A request of what `params` say; UCS_ERR_INVALID_PARAM if that makes no sense
 */
static ucs_status_t ucp_st_batch_fill(ucp_st_queue_h queue, ucp_st_dir_t dir,
                                      const ucp_st_msg_params_t *params,
                                      ucp_st_req_t *req)
{
    uint64_t mask = params->field_mask;

    *req = (ucp_st_req_t){
        .worker      = queue->worker,
        .queue       = queue,
        .dir         = dir,
        .state       = UCP_ST_REQ_ENQUEUED,
        .info.status = UCS_INPROGRESS,
        .buffer      = (mask & UCP_ST_MSG_PARAM_FIELD_BUFFER) ?
                       params->buffer : NULL,
        .length      = (mask & UCP_ST_MSG_PARAM_FIELD_LENGTH) ?
                       params->length : 0,
        .tag         = (mask & UCP_ST_MSG_PARAM_FIELD_TAG) ? params->tag : 0,
        .tag_mask    = (mask & UCP_ST_MSG_PARAM_FIELD_TAG_MASK) ?
                       params->tag_mask : UINT64_MAX,
        .peer        = (mask & UCP_ST_MSG_PARAM_FIELD_PEER) ? params->peer :
                       (dir == UCP_ST_DIR_SEND) ? UCP_ST_PEER_NULL :
                                                  UCP_ST_PEER_ANY
    };
    if ((req->buffer == NULL) && (req->length > 0)) {
        ucs_error("message of %zu bytes without a buffer", req->length);
        return UCS_ERR_INVALID_PARAM;
    }
    if ((req->peer == UCP_ST_PEER_ANY) && (dir == UCP_ST_DIR_SEND)) {
        ucs_error("a send needs a peer");
        return UCS_ERR_INVALID_PARAM;
    }
    if (ucp_st_req_has_peer(req) && (req->peer->worker != req->worker)) {
        ucs_error("the message's peer belongs to another worker");
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

static ucs_status_t ucp_st_batch_enqueue(ucp_st_queue_h queue, ucp_st_dir_t dir,
                                         const ucp_st_msg_params_t *params,
                                         ucp_st_req_h *req_p)
{
    ucp_st_req_t *req;
    ucs_status_t status;

    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    if ((queue == NULL) || (params == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    status = ucp_st_queue_status(queue);
    if (status == UCS_OK) {
        status = ucp_st_batch_make_ready(queue->worker);
    }
    if (status != UCS_OK) {
        return status;
    }
    req = malloc(sizeof(*req));
    if (req == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucp_st_batch_fill(queue, dir, params, req);
    ucp_st_worker_lock(queue->worker);
    if ((status == UCS_OK) && ucp_st_req_has_peer(req)) {
        status = req->peer->status;
    }
    if (status != UCS_OK) {
        free(req);
    } else {
        ucs_list_add_tail(&ucp_st_queue_batch(queue)->enqueued, &req->list);
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
    return ucp_st_batch_enqueue(queue, UCP_ST_DIR_SEND, params, req_p);
}

ucs_status_t ucp_st_enqueue_recv(ucp_st_queue_h queue,
                                 const ucp_st_msg_params_t *params,
                                 ucp_st_req_h *req_p)
{
    return ucp_st_batch_enqueue(queue, UCP_ST_DIR_RECV, params, req_p);
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
    ucp_st_queue_batch_t *batch;
    ucs_list_link_t *list;
    ucs_gstream_cmd_t *cmd;
    ucp_st_req_t *first;
    uint64_t count;
    size_t num_cmds;

    if (status != UCS_OK) {
        return status;
    }
    batch = ucp_st_queue_batch(queue);
    list  = &batch->enqueued;
    if (ucs_list_is_empty(list)) {
        return UCS_OK;
    }
    /* From the moment the command is enqueued on the messages may be anywhere,
     * and gone: the list must not be looked at any more */
    first            = ucs_list_head(list, ucp_st_req_t, list);
    count            = ucp_st_batch_link(queue, UCP_ST_REQ_STARTED);
    num_cmds         = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL, queue->cmds);
    cmd              = &queue->cmds[num_cmds++];
    cmd->type        = UCS_GSTREAM_CMD_FUNC;
    cmd->u.func.func = ucp_st_batch_start_func;
    cmd->u.func.arg  = first;
    num_cmds        += ucp_st_trace_cmd(UCP_ST_TRACE_BATCH_START, NULL,
                                        &queue->cmds[num_cmds]);
    status           = ucp_st_queue_enqueue(queue, num_cmds);
    if (status != UCS_OK) {
        (void)ucp_st_batch_link(queue, UCP_ST_REQ_ENQUEUED);
        return status;
    }
    ucs_list_head_init(list);
    batch->started += count;
    return UCS_OK;
}

ucs_status_t ucp_st_enqueue_batch_wait(ucp_st_queue_h queue)
{
    ucs_status_t status = ucp_st_queue_prepare(queue, UCP_ST_BATCH_CMDS);
    ucp_st_queue_batch_t *batch;
    ucs_gstream_cmd_t *cmd;
    size_t num_cmds;

    if (status != UCS_OK) {
        return status;
    }
    batch = ucp_st_queue_batch(queue);
    if (batch->waited == batch->started) {
        return UCS_OK;
    }
    num_cmds            = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL,
                                           queue->cmds);
    cmd                 = &queue->cmds[num_cmds++];
    cmd->type           = UCS_GSTREAM_CMD_WAIT64;
    cmd->u.word.address = &batch->word;
    cmd->u.word.value   = batch->started;
    num_cmds           += ucp_st_trace_cmd(UCP_ST_TRACE_BATCH_WAIT, NULL,
                                           &queue->cmds[num_cmds]);
    status              = ucp_st_queue_enqueue(queue, num_cmds);
    if (status == UCS_OK) {
        batch->waited = batch->started;
    }
    return status;
}
