/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_host.c - one-sided operations on lane host: the origin's side.
 *
 * As with uses of this lane a stream pushes an operation on a stack of the
 * worker with one compare-and-swap, and the service thread takes the whole
 * stack at once. UCP is called in that thread, without the worker's lock.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma_host.h"
#include "ctrl/st_ctrl.h"
#include "ctrl/st_leave.h"
#include "core/st_log.h"
#include "rma/st_rma.h"
#include "core/st_ucp.h"

#include <stdlib.h>
#include <string.h>

/* What keeps an operation that was sent from its end */
enum {
    UCP_ST_RMA_HOST_SENDING  = UCS_BIT(0), /* UCP has the request */
    UCP_ST_RMA_HOST_AWAITING = UCS_BIT(1), /* there is no reply */
    UCP_ST_RMA_HOST_MOVING   = UCS_BIT(2)  /* UCP writes what was got */
};

/** Protected by the worker's lock but for what says otherwise. */
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

static ucs_status_t ucp_st_rma_host_reg(ucp_st_memh_t *mem)
{
    (void)mem;
    return UCS_OK; /* UCP does what its transports need when data moves */
}

static void ucp_st_rma_host_dereg(ucp_st_memh_t *mem)
{
    (void)mem;
}

static size_t ucp_st_rma_host_pack(const ucp_st_memh_t *mem, void *blob)
{
    (void)mem;
    (void)blob;
    return 0; /* its number is all that the owner needs */
}

static ucs_status_t ucp_st_rma_host_unpack(ucp_st_rkey_t *rkey,
                                           const void *blob, size_t length)
{
    (void)rkey;
    (void)blob;
    return (length == 0) ? UCS_OK : UCS_ERR_INVALID_ADDR;
}

static void ucp_st_rma_host_make_ready(ucp_st_rma_host_op_t *op)
{
    ucp_st_worker_h worker = op->rma.queue->worker;

    if (op->is_begun && !op->is_ready && (op->pending == 0)) {
        op->is_ready = 1;
        ucs_list_add_tail(&ucp_st_rma_dev(worker)->ready, &op->ready);
        ucp_st_svc_wake(ucp_st_svc(worker));
    }
}

static void ucp_st_rma_host_free(ucp_st_rma_host_op_t *op)
{
    ucs_list_del(&op->flow_list);
    ucs_list_del(&op->list);
    ucs_list_add_head(&ucp_st_rma_dev(op->rma.queue->worker)->free_ops,
                      &op->list);
}

/* Nothing of it is under way any more. The lock is held. */
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
        /* It may be a strict one that waits for its turn */
        first = ucs_list_head(&flow->ops, ucp_st_rma_host_op_t, flow_list);
        ucp_st_rma_host_make_ready(first);
    }
    ucp_st_rma_ended(queue, UCP_ST_LANE_HOST);
}

/* Parts of it are over. The lock is held. */
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

/* UCP is done with a request */
static void ucp_st_rma_host_sent(ucp_st_rma_host_op_t *op, ucs_status_t status)
{
    ucp_st_peer_t *peer = op->rma.peer;
    unsigned mask       = UCP_ST_RMA_HOST_SENDING;

    if ((status != UCS_OK) &&
        (peer->is_self || ucp_st_ucp_is_local(status))) {
        mask |= UCP_ST_RMA_HOST_AWAITING;
    } else if (status != UCS_OK) {
        /* The operation fails with the peer */
        ucp_st_leave_lost(peer, status);
        status = UCS_OK;
    }
    ucp_st_rma_host_clear(op, mask, status);
}

static void ucp_st_rma_host_sent_cb(void *request, ucs_status_t status,
                                    void *arg)
{
    ucp_st_rma_host_op_t *op = arg;
    ucp_st_worker_h worker   = op->rma.queue->worker;

    ucp_st_worker_lock(worker);
    ucp_st_rma_host_sent(op, status);
    ucp_st_worker_unlock(worker);
    ucp_request_free(request);
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
    size_t length             = (op->rma.type == UCP_ST_RMA_PUT) ?
                                op->rma.length : 0;
    ucs_status_ptr_t request;
    ucs_status_t status;
    ucp_ep_h ep;

    ++worker->stats.proxied;
    op->pending = UCP_ST_RMA_HOST_SENDING | UCP_ST_RMA_HOST_AWAITING;
    ucp_st_worker_unlock(worker);
    /* UCP 1.13 does not look after a peer over an endpoint that waits for its
     * first answer, as one does that is to be answered over; the other does */
    status = ucp_st_svc_ep_get(op->rma.peer, UCP_ST_SVC_EP_NOTICE, &ep);
    if (status == UCS_OK) {
        status = ucp_st_svc_ep_get(op->rma.peer, UCP_ST_SVC_EP_DATA, &ep);
    }
    request = (status != UCS_OK) ?
              UCS_STATUS_PTR(status) :
              ucp_am_send_nbx(ep, UCP_ST_SVC_AM_RMA, &op->request,
                              sizeof(op->request), op->rma.buffer, length,
                              &param);
    ucp_st_worker_lock(worker);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_rma_host_sent(op, UCS_PTR_STATUS(request));
    }
}

/* Send it, if it is its turn. The lock is held, and released meanwhile. */
static void ucp_st_rma_host_run(ucp_st_rma_host_op_t *op)
{
    ucs_status_t status = ucp_st_queue_status(op->rma.queue);

    if (status == UCS_OK) {
        status = op->rma.peer->status;
    }
    if (status != UCS_OK) {
        op->status = status;
        ucp_st_rma_host_end(op);
    } else if (op->rma.peer->lost != UCS_OK) {
        op->pending = UCP_ST_RMA_HOST_AWAITING; /* it fails with the peer */
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
    while (!ucs_list_is_empty(&dev->ready)) {
        op = ucs_list_extract_head(&dev->ready, ucp_st_rma_host_op_t, ready);
        op->is_ready = 0;
        ucp_st_rma_host_run(op);
        ++count;
    }
    return count;
}

/* Runs on the stream */
static void ucp_st_rma_host_start_func(void *arg)
{
    ucp_st_rma_host_op_t *op = arg;
    ucp_st_worker_h worker   = op->rma.queue->worker;

    ucp_st_stack_push(&ucp_st_rma_dev(worker)->begun, &op->begun_item);
    ucp_st_service_wake(&ucp_st_svc(worker)->service);
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
    cmd->type        = UCS_GSTREAM_CMD_FUNC;
    cmd->u.func.func = ucp_st_rma_host_start_func;
    cmd->u.func.arg  = op;
    return UCS_OK;
}

static void ucp_st_rma_host_undo(ucp_st_queue_h queue,
                                 ucp_st_rma_flow_t *flow)
{
    (void)queue;
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

/* The operation that a reply names, if it waits for one. The lock is held. */
static ucp_st_rma_host_op_t *
ucp_st_rma_host_find(ucp_st_worker_h worker, const ucp_st_rma_reply_t *reply)
{
    ucp_st_rma_host_op_t *op;
    ucp_st_peer_t *peer;

    if (!ucp_st_svc(worker)->is_served || (reply->dst != worker->uuid)) {
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

static void ucp_st_rma_host_got(ucp_st_rma_host_op_t *op, ucs_status_t status)
{
    ucp_st_worker_h worker = op->rma.queue->worker;

    ucp_st_worker_lock(worker);
    if ((status != UCS_OK) && !ucp_st_ucp_is_local(status)) {
        ucp_st_leave_lost(op->rma.peer, status);
        status = UCS_ERR_CONNECTION_RESET;
    }
    ucp_st_rma_host_clear(op, UCP_ST_RMA_HOST_MOVING, status);
    ucp_st_worker_unlock(worker);
}

static void ucp_st_rma_host_got_cb(void *request, ucs_status_t status,
                                   size_t length, void *arg)
{
    (void)length;
    ucp_st_rma_host_got(arg, status);
    ucp_request_free(request);
}

/* Move what a reply brings to its place. The lock is not held. */
static ucs_status_t ucp_st_rma_host_take(ucp_st_rma_host_op_t *op, void *data,
                                         int is_rndv)
{
    ucp_worker_h ucp_worker   = ucp_st_svc(op->rma.queue->worker)->ucp_worker;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am   = ucp_st_rma_host_got_cb,
        .user_data    = op
    };
    ucs_status_ptr_t request;

    if (!is_rndv) {
        memcpy(op->rma.buffer, data, op->rma.length);
        ucp_st_rma_host_got(op, UCS_OK);
        return UCS_OK;
    }
    request = ucp_am_recv_data_nbx(ucp_worker, data, op->rma.buffer,
                                   op->rma.length, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_rma_host_got(op, UCS_PTR_STATUS(request));
    }
    return UCS_INPROGRESS;
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
    status = (ucs_status_t)reply.status;
    ucp_st_worker_lock(worker);
    op = ucp_st_rma_host_find(worker, &reply);
    if (op != NULL) {
        is_get = (op->rma.type == UCP_ST_RMA_GET);
        if ((status == UCS_OK) && (length != (is_get ? op->rma.length : 0))) {
            ucs_error("reply of %zu bytes from peer 0x%lx does not fit", length,
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
    return has_data ? ucp_st_rma_host_take(op, data,
                                           !!(param->recv_attr &
                                              UCP_AM_RECV_ATTR_FLAG_RNDV)) :
                      UCS_OK;
}

static int ucp_st_rma_host_is_used(ucp_st_peer_t *peer)
{
    return !ucs_list_is_empty(&ucp_st_rma_peer(peer)->ops);
}

ucs_status_t ucp_st_rma_host_open(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc                       = ucp_st_svc(worker);
    static const ucp_st_svc_client_t client = {
        .work    = ucp_st_rma_host_work,
        .is_used = ucp_st_rma_host_is_used
    };
    ucs_status_t status;

    if (svc->status != UCS_OK) {
        return UCS_OK; /* lane host is not there either */
    }
    status = ucp_st_svc_set_handler(worker, UCP_ST_SVC_AM_RMA, 0,
                                    ucp_st_rma_request_am_handler);
    if (status == UCS_OK) {
        status = ucp_st_svc_set_handler(worker, UCP_ST_SVC_AM_RMA_REPLY, 0,
                                        ucp_st_rma_reply_am_handler);
    }
    if (status == UCS_OK) {
        ucp_st_svc_add_client(svc, &client);
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
    .start      = ucp_st_rma_host_start,
    .undo       = ucp_st_rma_host_undo,
    .wait       = ucp_st_rma_wait_word
};
