/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_host.c - one-sided operations on lane host: messages between service
 * threads.
 *
 *   origin                                  target
 *   stream: hands the operation over
 *   thread: request, with a put's data ---> thread: moves the data, or adds
 *                                                   it; carries the signal out
 *           word of the queue + 1  <-------         reply, with got data
 *   stream: quiet waits for the word
 *
 * A stream pushes an operation on a stack of the worker with one
 * compare-and-swap, and the service thread takes the whole stack at once. The
 * service thread alone calls UCP, without the worker's lock. It sends a strict
 * operation once its flow (st_rma.h) has nothing in front of it. The target
 * answers over the endpoint that UCP gives it for that: it need not know the
 * origin as a peer.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_stage.h"
#include "core/st_ucp.h"
#include "ctrl/st_ctrl.h"

#include <stdlib.h>
#include <string.h>

/* Why an operation that was sent has not ended */
enum {
    UCP_ST_RMA_HOST_SENDING  = UCS_BIT(0), /* UCP has the request */
    UCP_ST_RMA_HOST_AWAITING = UCS_BIT(1), /* there is no reply */
    UCP_ST_RMA_HOST_MOVING   = UCS_BIT(2)  /* UCP writes the data of a get */
};

/** An operation at its origin. Protected by the worker's lock unless a field
 *  says otherwise. */
typedef struct ucp_st_rma_host_op {
    ucs_list_link_t           list;      /* in the peer's; or in unused ones */
    ucs_list_link_t           flow_list; /* in the flow's */
    ucs_list_link_t           ready;     /* in the worker's; while is_ready */
    ucp_st_stack_item_t       begun_item; /* in the worker's begun */
    ucp_st_rma_t              rma;       /* read-only */
    ucp_st_rma_flow_t         *flow;     /* read-only */
    ucp_st_rma_request_t      request;   /* read-only once it is sent */
    uint8_t                   is_begun;  /* the stream has come to it */
    uint8_t                   is_ready;
    uint8_t                   pending;   /* mask of the above; 0 until it is
                                            sent */
    ucs_status_t              status;
} ucp_st_rma_host_op_t;

/** A request at its target. Only the service thread uses it. */
typedef struct ucp_st_rma_job {
    ucp_st_worker_h      worker;
    ucp_ep_h             ep;      /* to the origin; valid in UCP's callbacks */
    ucp_st_rma_request_t request;
    ucp_st_rma_reply_t   reply;
    void                 *numbers; /* to be added; or NULL */
    ucp_st_memh_t        *mem;    /* held; or NULL */
    ucp_st_memh_t        *signal; /* the same */
} ucp_st_rma_job_t;

static ucs_status_t ucp_st_rma_host_reg(ucp_st_memh_t *mem)
{
    return UCS_OK; /* UCP registers memory itself when data moves */
}

static void ucp_st_rma_host_dereg(ucp_st_memh_t *mem)
{
}

static size_t ucp_st_rma_host_pack(const ucp_st_memh_t *mem, void *blob)
{
    return 0; /* the key's head has the number that the owner needs */
}

static ucs_status_t ucp_st_rma_host_unpack(ucp_st_rkey_t *rkey,
                                           const void *blob, size_t length)
{
    return (length == 0) ? UCS_OK : UCS_ERR_INVALID_ADDR;
}

static void ucp_st_rma_host_make_ready(ucp_st_rma_host_op_t *op)
{
    ucp_st_worker_h worker = op->rma.queue->worker;

    if (op->is_begun && !op->is_ready && (op->pending == 0)) {
        op->is_ready = 1;
        ucs_list_add_tail(&ucp_st_rma_dev(worker)->ready, &op->ready);
        ucp_st_net_wake(worker);
    }
}

static void ucp_st_rma_host_free(ucp_st_rma_host_op_t *op)
{
    ucs_list_del(&op->flow_list);
    ucs_list_del(&op->list);
    ucs_list_add_head(&ucp_st_rma_dev(op->rma.queue->worker)->free_ops,
                      &op->list);
}

/* Nothing of the operation is under way any more. The lock is held. */
static void ucp_st_rma_host_end(ucp_st_rma_host_op_t *op)
{
    ucp_st_queue_h queue    = op->rma.queue;
    ucp_st_worker_h worker  = queue->worker;
    ucp_st_rma_flow_t *flow = op->flow;
    ucp_st_rma_host_op_t *first;

    if ((op->status != UCS_OK) && (ucp_st_queue_status(queue) == UCS_OK)) {
        ucs_diag("queue %p: a one-sided operation of %zu bytes to peer 0x%lx "
                 "failed: %s", queue, op->rma.length, op->rma.peer->uuid,
                 ucs_status_string(op->status));
        ++worker->stats.errors;
        ucp_st_queue_fail(queue, NULL, op->status);
    }
    ucp_st_rma_drop(&op->rma);
    ucp_st_rma_host_free(op);
    if (!ucs_list_is_empty(&flow->ops)) {
        /* It may be strict, and wait for its turn */
        first = ucs_list_head(&flow->ops, ucp_st_rma_host_op_t, flow_list);
        ucp_st_rma_host_make_ready(first);
    }
    ucp_st_rma_ended(queue, UCP_ST_LANE_HOST);
}

/* The parts in `mask` have ended. The lock is held. */
static void ucp_st_rma_host_clear(ucp_st_rma_host_op_t *op, unsigned mask,
                                  ucs_status_t status)
{
    if (op->status == UCS_OK) {
        op->status = status;
    }
    op->pending &= ~mask;
    if (op->pending == 0) {
        ucp_st_rma_host_end(op);
    }
}

/* UCP has sent a request, or failed to. `request` is NULL if that was at once.
 */
static void ucp_st_rma_host_sent_cb(void *request, ucs_status_t status,
                                    void *arg)
{
    ucp_st_rma_host_op_t *op = arg;
    ucp_st_peer_t *peer      = op->rma.peer;
    ucp_st_worker_h worker   = peer->worker;
    unsigned mask            = UCP_ST_RMA_HOST_SENDING;

    ucp_st_worker_lock(worker);
    if ((status != UCS_OK) &&
        (peer->is_self || ucp_st_ucp_is_local(status))) {
        mask |= UCP_ST_RMA_HOST_AWAITING;
    } else if (status != UCS_OK) {
        /* The operation fails with the peer */
        ucp_st_peer_lost(peer, status);
        status = UCS_OK;
    }
    ucp_st_rma_host_clear(op, mask, status);
    ucp_st_worker_unlock(worker);
    if (request != NULL) {
        ucp_request_free(request);
    }
}

/* The lock is held, and released meanwhile */
static void ucp_st_rma_host_send(ucp_st_rma_host_op_t *op)
{
    ucp_st_worker_h worker    = op->rma.queue->worker;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_AM_SEND_FLAG_REPLY,
        .cb.send      = ucp_st_rma_host_sent_cb,
        .user_data    = op
    };
    size_t length             = (op->rma.type == UCP_ST_RMA_GET) ?
                                0 : op->rma.length;
    ucs_status_ptr_t request;
    ucs_status_t status;
    ucp_ep_h ep;

    ++worker->stats.proxied;
    op->pending = UCP_ST_RMA_HOST_SENDING | UCP_ST_RMA_HOST_AWAITING;
    ucp_st_worker_unlock(worker);
    status  = ucp_st_net_ep_get(op->rma.peer, UCP_ST_NET_USE_DATA, &ep);
    request = (status != UCS_OK) ? UCS_STATUS_PTR(status) :
              ucp_am_send_nbx(ep, UCP_ST_NET_AM_RMA, &op->request,
                              sizeof(op->request), op->rma.buffer, length,
                              &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_rma_host_sent_cb(NULL, UCS_PTR_STATUS(request), op);
    }
    ucp_st_worker_lock(worker);
}

/* Send an operation if it is its turn. The lock is held, and released
 * meanwhile. */
static void ucp_st_rma_host_run(ucp_st_rma_host_op_t *op)
{
    ucs_status_t status = ucp_st_queue_status(op->rma.queue);

    if (status == UCS_OK) {
        status = op->rma.peer->status;
    }
    if (status != UCS_OK) {
        op->status = status;
        ucp_st_rma_host_end(op);
    } else if (op->rma.peer->state == UCP_ST_PEER_LOST) {
        op->pending = UCP_ST_RMA_HOST_AWAITING; /* fails with the peer */
    } else if (!op->rma.is_strict || (op->flow->ops.next == &op->flow_list)) {
        ucp_st_rma_host_send(op);
    }
}

static unsigned ucp_st_rma_host_work(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev     = ucp_st_rma_dev(worker);
    ucp_st_stack_item_t *item = ucp_st_stack_take(&dev->begun);
    unsigned count            = 0;
    ucp_st_rma_host_op_t *op;

    while (item != NULL) {
        op           = ucs_container_of(item, ucp_st_rma_host_op_t, begun_item);
        item         = item->next;
        op->is_begun = 1;
        ucp_st_rma_host_make_ready(op);
    }
    for (; !ucs_list_is_empty(&dev->ready) && (count < UCP_ST_NET_MAX_SENDS);
         ++count) {
        op = ucs_list_extract_head(&dev->ready, ucp_st_rma_host_op_t, ready);
        op->is_ready = 0;
        ucp_st_rma_host_run(op);
    }
    return count;
}

/* Runs on the stream */
static void ucp_st_rma_host_start_func(void *arg)
{
    ucp_st_rma_host_op_t *op = arg;
    ucp_st_worker_h worker   = op->rma.queue->worker;

    ucp_st_stack_push(&ucp_st_rma_dev(worker)->begun, &op->begun_item);
    ucp_st_service_wake(&ucp_st_net(worker)->service);
}

static ucs_status_t ucp_st_rma_host_start(const ucp_st_rma_t *rma,
                                          ucp_st_rma_flow_t *flow,
                                          ucs_gstream_cmd_t *cmd)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(rma->queue->worker);
    ucp_st_rma_host_op_t *op;

    op = ucp_st_rma_obj_get(&dev->free_ops, sizeof(*op));
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    op->rma     = *rma;
    op->flow    = flow;
    op->request = (ucp_st_rma_request_t){
        .type   = rma->type,
        .number = rma->number,
        .src    = rma->queue->worker->uuid,
        .dst    = rma->peer->uuid,
        .id     = ++dev->next_id,
        .length = rma->length
    };
    if (rma->length > 0) {
        op->request.mem_id = rma->rkey->mem_id;
        op->request.offset = rma->offset;
    }
    if (rma->signal != NULL) {
        op->request.has_signal    = 1;
        op->request.signal_op     = rma->signal_op;
        op->request.signal_mem_id = rma->signal->mem_id;
        op->request.signal_offset = rma->signal_offset;
        op->request.signal_value  = rma->signal_value;
    }
    ucs_list_add_tail(&ucp_st_rma_peer(rma->peer)->ops, &op->list);
    ucs_list_add_tail(&flow->ops, &op->flow_list);
    (void)ucp_st_queue_add_func(rma->queue, ucp_st_rma_host_start_func, op, 0,
                                cmd);
    return UCS_OK;
}

static void ucp_st_rma_host_undo(const ucp_st_rma_t *rma,
                                 ucp_st_rma_flow_t *flow)
{
    ucp_st_rma_host_free(ucs_list_tail(&flow->ops, ucp_st_rma_host_op_t,
                                       flow_list));
}

void ucp_st_rma_host_peer_gone(ucp_st_peer_t *peer)
{
    ucp_st_rma_host_op_t *op, *tmp;

    ucs_list_for_each_safe(op, tmp, &ucp_st_rma_peer(peer)->ops, list) {
        if (op->pending & UCP_ST_RMA_HOST_AWAITING) {
            ucp_st_rma_host_clear(op, UCP_ST_RMA_HOST_AWAITING, peer->status);
        } else {
            ucp_st_rma_host_make_ready(op);
        }
    }
}

/* The operation that a reply is for, if it waits for one. The lock is held. */
static ucp_st_rma_host_op_t *
ucp_st_rma_host_find(ucp_st_worker_h worker, const ucp_st_rma_reply_t *reply)
{
    ucp_st_rma_host_op_t *op;
    ucp_st_peer_t *peer;

    if (!ucp_st_net(worker)->is_served || (reply->dst != worker->uuid)) {
        return NULL;
    }
    peer = ucp_st_peer_find(worker, reply->src);
    if (peer == NULL) {
        return NULL;
    }
    ucs_list_for_each(op, &ucp_st_rma_peer(peer)->ops, list) {
        if (op->request.id == reply->id) {
            return (op->pending & UCP_ST_RMA_HOST_AWAITING) ? op : NULL;
        }
    }
    return NULL;
}

/* UCP has moved the data of a get, or failed to. `request` is NULL if that was
 * at once. */
static void ucp_st_rma_host_moved_cb(void *request, ucs_status_t status,
                                     size_t length, void *arg)
{
    ucp_st_rma_host_op_t *op = arg;
    ucp_st_worker_h worker   = op->rma.peer->worker;

    ucp_st_worker_lock(worker);
    if ((status != UCS_OK) && !ucp_st_ucp_is_local(status)) {
        ucp_st_peer_lost(op->rma.peer, status);
        status = UCS_ERR_CONNECTION_RESET;
    }
    ucp_st_rma_host_clear(op, UCP_ST_RMA_HOST_MOVING, status);
    ucp_st_worker_unlock(worker);
    if (request != NULL) {
        ucp_request_free(request);
    }
}

/* Move the data of a get to its place. The lock is not held. */
static ucs_status_t ucp_st_rma_host_move(ucp_st_rma_host_op_t *op, void *data,
                                         int is_rndv)
{
    ucp_worker_h ucp_worker   = ucp_st_net(op->rma.queue->worker)->ucp_worker;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am   = ucp_st_rma_host_moved_cb,
        .user_data    = op
    };
    size_t length             = op->rma.length;
    ucs_status_ptr_t request  = NULL;

    if (is_rndv) {
        request = ucp_am_recv_data_nbx(ucp_worker, data, op->rma.buffer, length,
                                       &param);
    } else {
        memcpy(op->rma.buffer, data, length);
    }
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_rma_host_moved_cb(NULL, UCS_PTR_STATUS(request), length, op);
    }
    return is_rndv ? UCS_INPROGRESS : UCS_OK;
}

static ucs_status_t
ucp_st_rma_reply_am_handler(void *arg, const void *header, size_t header_length,
                            void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;
    int has_data           = 0;
    ucp_st_rma_host_op_t *op;
    ucp_st_rma_reply_t reply;
    ucs_status_t status;
    int is_get;

    if (header_length != sizeof(reply)) {
        ucs_error("dropped a reply with a header of %zu bytes", header_length);
        return UCS_OK;
    }
    memcpy(&reply, header, sizeof(reply));
    status = ucp_st_proto_status(reply.status);
    ucp_st_worker_lock(worker);
    op = ucp_st_rma_host_find(worker, &reply);
    if (op != NULL) {
        is_get = (op->rma.type == UCP_ST_RMA_GET);
        if ((status == UCS_OK) && (length != (is_get ? op->rma.length : 0))) {
            ucs_error("unexpected reply of %zu bytes from peer 0x%lx", length,
                      reply.src);
            status = UCS_ERR_IO_ERROR;
        }
        has_data = is_get && (status == UCS_OK);
        if (has_data) {
            op->pending |= UCP_ST_RMA_HOST_MOVING;
        }
        ucp_st_rma_host_clear(op, UCP_ST_RMA_HOST_AWAITING, status);
    }
    ucp_st_worker_unlock(worker);
    return has_data ? ucp_st_rma_host_move(op, data,
                                           !!(param->recv_attr &
                                              UCP_AM_RECV_ATTR_FLAG_RNDV)) :
                      UCS_OK;
}

/* Nothing of the request is under way any more */
static void ucp_st_rma_job_end(ucp_st_rma_job_t *job)
{
    if (job->mem != NULL) {
        ucp_st_rma_release(&job->mem->refs);
    }
    if (job->signal != NULL) {
        ucp_st_rma_release(&job->signal->refs);
    }
    free(job->numbers);
    free(job);
}

/* Others notice that an origin is gone */
static void ucp_st_rma_job_replied_cb(void *request, ucs_status_t status,
                                      void *arg)
{
    ucp_st_rma_job_end(arg);
    ucp_request_free(request);
}

/* The request was carried out, or has failed: signal, and reply, with the data
 * of a get */
static void ucp_st_rma_job_reply(ucp_st_rma_job_t *job, ucs_status_t status)
{
    const ucp_st_rma_request_t *request = &job->request;
    ucp_request_param_t param           = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = ucp_st_rma_job_replied_cb,
        .user_data    = job
    };
    size_t length                       = 0;
    void *data                          = NULL;
    ucs_status_ptr_t send;

    if ((status == UCS_OK) && (job->signal != NULL)) {
        ucp_st_rma_signal((uint64_t*)(job->signal->address +
                                      request->signal_offset),
                          (ucp_st_signal_op_t)request->signal_op,
                          request->signal_value);
        ucp_st_rma_signaled(job->worker);
    }
    if ((status == UCS_OK) && (request->type == UCP_ST_RMA_GET)) {
        data   = job->mem->address + request->offset;
        length = request->length;
    }
    job->reply = (ucp_st_rma_reply_t){
        .src    = job->worker->uuid,
        .dst    = request->src,
        .id     = request->id,
        .status = status
    };
    send = ucp_am_send_nbx(job->ep, UCP_ST_NET_AM_RMA_REPLY, &job->reply,
                           sizeof(job->reply), data, length, &param);
    if (!UCS_PTR_IS_PTR(send)) {
        ucp_st_rma_job_end(job);
    }
}

static void ucp_st_rma_job_add(ucp_st_rma_job_t *job, const void *numbers)
{
    ucp_st_rma_add((ucp_st_number_t)job->request.number,
                   job->mem->address + job->request.offset, numbers,
                   job->request.length);
}

/* UCP has moved a request's data, or failed to because the origin is gone and
 * needs no answer */
static void ucp_st_rma_job_moved_cb(void *request, ucs_status_t status,
                                    size_t length, void *arg)
{
    ucp_st_rma_job_t *job = arg;

    if (status == UCS_OK) {
        if (job->numbers != NULL) {
            ucp_st_rma_job_add(job, job->numbers);
        }
        ucp_st_rma_job_reply(arg, UCS_OK);
    } else {
        ucp_st_rma_job_end(arg);
    }
    ucp_request_free(request);
}

/* Find the memory of a request. The lock is held. */
static ucs_status_t ucp_st_rma_job_get_mem(ucp_st_rma_job_t *job)
{
    const ucp_st_rma_request_t *request = &job->request;
    ucp_st_worker_h worker              = job->worker;
    int is_add                          = (request->type == UCP_ST_RMA_ADD);
    uintptr_t word;

    if (request->length > 0) {
        /* Additions need no key of lane host, but memory of the host */
        job->mem = ucp_st_rma_mem_get(worker,
                                      is_add ? ~0u : UCS_BIT(UCP_ST_LANE_HOST),
                                      request->mem_id, request->offset,
                                      request->length);
        if (job->mem == NULL) {
            return UCS_ERR_INVALID_ADDR;
        }
        if (ucp_st_stage_is_device(&job->mem->memory)) {
            return UCS_ERR_UNSUPPORTED;
        }
    }
    if (request->has_signal) {
        job->signal = ucp_st_rma_mem_get(worker, UCS_BIT(UCP_ST_LANE_HOST),
                                         request->signal_mem_id,
                                         request->signal_offset,
                                         sizeof(uint64_t));
        if (job->signal == NULL) {
            return UCS_ERR_INVALID_ADDR;
        }
        word = (uintptr_t)job->signal->address + request->signal_offset;
        return ((word % sizeof(uint64_t)) == 0) ? UCS_OK : UCS_ERR_INVALID_ADDR;
    }
    return UCS_OK;
}

/* Non-zero if the request is for this worker, and well-formed. The lock is
 * held. */
static int ucp_st_rma_job_is_good(const ucp_st_rma_job_t *job, size_t length)
{
    const ucp_st_rma_request_t *request = &job->request;
    int is_get                          = (request->type == UCP_ST_RMA_GET);

    if (!ucp_st_net(job->worker)->is_served ||
        (request->dst != job->worker->uuid)) {
        return 0; /* for an earlier worker */
    }
    if ((request->type > UCP_ST_RMA_ADD) ||
        (request->signal_op > UCP_ST_SIGNAL_ADD) ||
        (request->number > UCP_ST_NUMBER_DOUBLE) ||
        (is_get && (request->length == 0)) ||
        (length != (is_get ? 0 : request->length)) ||
        ((request->type == UCP_ST_RMA_ADD) &&
         ((length % ucp_st_rma_number_size(request->number)) != 0))) {
        ucs_error("dropped a malformed one-sided operation of peer 0x%lx",
                  request->src);
        return 0;
    }
    return 1;
}

/* Where the data of a request goes; NULL without memory */
static void *ucp_st_rma_job_place(ucp_st_rma_job_t *job)
{
    if (job->request.type == UCP_ST_RMA_PUT) {
        return job->mem->address + job->request.offset;
    }
    job->numbers = malloc(job->request.length);
    return job->numbers;
}

/* Carry a good request out: UCS_INPROGRESS if UCP's data is used later */
static ucs_status_t ucp_st_rma_job_run(ucp_st_rma_job_t *job, void *data,
                                       int is_rndv)
{
    ucp_worker_h ucp_worker   = ucp_st_net(job->worker)->ucp_worker;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am   = ucp_st_rma_job_moved_cb,
        .user_data    = job
    };
    uint64_t length           = (job->request.type == UCP_ST_RMA_GET) ?
                                0 : job->request.length;
    ucs_status_ptr_t request  = NULL;
    void *place;

    if ((length > 0) && is_rndv) {
        place = ucp_st_rma_job_place(job);
        if (place == NULL) {
            ucp_st_rma_job_reply(job, UCS_ERR_NO_MEMORY);
            return UCS_OK;
        }
        request = ucp_am_recv_data_nbx(ucp_worker, data, place, length, &param);
    } else if (length > 0) {
        if (job->request.type == UCP_ST_RMA_ADD) {
            ucp_st_rma_job_add(job, data);
        } else {
            memcpy(job->mem->address + job->request.offset, data, length);
        }
    }
    if (request == NULL) {
        if (job->numbers != NULL) {
            ucp_st_rma_job_add(job, job->numbers);
        }
        ucp_st_rma_job_reply(job, UCS_OK);
    } else if (UCS_PTR_IS_ERR(request)) {
        ucp_st_rma_job_reply(job, UCS_PTR_STATUS(request));
    }
    return ((length > 0) && is_rndv) ? UCS_INPROGRESS : UCS_OK;
}

/* Without memory no answer is possible: the origin is declared gone, and told
 * that. The lock is not held. */
static void ucp_st_rma_job_no_memory(ucp_st_worker_h worker,
                                      const ucp_st_rma_request_t *request)
{
    ucp_st_peer_t *peer;

    ucs_error("no memory for a one-sided operation of peer 0x%lx",
              request->src);
    ucp_st_worker_lock(worker);
    peer = ucp_st_net(worker)->is_served ?
           ucp_st_peer_find(worker, request->src) : NULL;
    if (peer != NULL) {
        ucp_st_peer_lost(peer, UCS_ERR_NO_MEMORY);
    }
    ucp_st_worker_unlock(worker);
}

static ucs_status_t
ucp_st_rma_request_am_handler(void *arg, const void *header,
                              size_t header_length, void *data, size_t length,
                              const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;
    int is_rndv            = !!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    ucp_st_rma_job_t *job;
    ucs_status_t status;
    int is_good;

    if ((header_length != sizeof(job->request)) ||
        !(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) {
        ucs_error("dropped a one-sided operation with a header of %zu bytes",
                  header_length);
        return UCS_OK;
    }
    job = calloc(1, sizeof(*job));
    if (job == NULL) {
        ucp_st_rma_job_no_memory(worker, header);
        return UCS_OK;
    }
    job->worker = worker;
    job->ep     = param->reply_ep;
    memcpy(&job->request, header, sizeof(job->request));
    ucp_st_worker_lock(worker);
    is_good = ucp_st_rma_job_is_good(job, length);
    status  = is_good ? ucp_st_rma_job_get_mem(job) : UCS_OK;
    ucp_st_worker_unlock(worker);
    if (!is_good) {
        free(job);
        return UCS_OK;
    }
    if (status != UCS_OK) {
        ucs_error("a one-sided operation of peer 0x%lx is for memory that is "
                  "%s", job->request.src, (status == UCS_ERR_UNSUPPORTED) ?
                  "a device's" : "not registered (any more)");
        ucp_st_rma_job_reply(job, status);
        return UCS_OK;
    }
    return ucp_st_rma_job_run(job, data, is_rndv);
}

static int ucp_st_rma_host_is_used(ucp_st_peer_t *peer)
{
    return !ucs_list_is_empty(&ucp_st_rma_peer(peer)->ops);
}

ucs_status_t ucp_st_rma_host_open(ucp_st_worker_h worker)
{
    static const ucp_st_net_client_t client = {
        .work    = ucp_st_rma_host_work,
        .is_used = ucp_st_rma_host_is_used
    };
    ucs_status_t status;

    status = ucp_st_net_set_handler(worker, UCP_ST_NET_AM_RMA, 0,
                                    ucp_st_rma_request_am_handler);
    if (status == UCS_OK) {
        status = ucp_st_net_set_handler(worker, UCP_ST_NET_AM_RMA_REPLY, 0,
                                        ucp_st_rma_reply_am_handler);
    }
    if (status == UCS_OK) {
        ucp_st_net_add_client(worker, &client);
    }
    return status;
}

const ucp_st_rma_lane_ops_t ucp_st_rma_host_ops = {
    .id         = UCP_ST_LANE_HOST,
    .is_orderly = 1,
    .reg        = ucp_st_rma_host_reg,
    .dereg      = ucp_st_rma_host_dereg,
    .pack       = ucp_st_rma_host_pack,
    .unpack     = ucp_st_rma_host_unpack,
    .release    = ucp_st_rma_release_none,
    .prepare    = ucp_st_rma_prepare_none,
    .start      = ucp_st_rma_host_start,
    .undo       = ucp_st_rma_host_undo,
    .wait       = ucp_st_rma_wait_word
};
