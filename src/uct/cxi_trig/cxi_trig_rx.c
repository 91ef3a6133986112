/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_rx.c - receive descriptors and dispatch of messages.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_rx.h"
#include "cxi_trig_proto.h"
#include "cxi_trig_req.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

/* Descriptors that are allocated together */
#define UCT_CXI_TRIG_RX_CHUNK 32


typedef struct uct_cxi_trig_rx_op {
    uct_cxi_trig_req_t      req; /* Must be first */
    ucs_list_link_t         list;
    ssize_t                 length; /* Of what was received; -1: nothing yet */
    uct_cxi_trig_msg_t      msg;
    uint8_t                 payload[];
} uct_cxi_trig_rx_op_t;

_Static_assert((offsetof(uct_cxi_trig_rx_op_t, payload) % sizeof(void*)) == 0,
               "what aligns the payload aligns the descriptor, too");


static ucs_mpool_ops_t uct_cxi_trig_rx_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free
};


ucs_status_t uct_cxi_trig_rx_init(uct_cxi_trig_iface_t *iface,
                                  const uct_iface_params_t *params,
                                  unsigned queue_len)
{
    uct_cxi_trig_pool_params_t pool = {
        .elem_size = sizeof(uct_cxi_trig_rx_op_t) + iface->max_am,
        .chunk     = ucs_min(UCT_CXI_TRIG_RX_CHUNK, queue_len),
        .max_elems = queue_len,
        .ops       = &uct_cxi_trig_rx_mpool_ops,
        .name      = "cxi_trig_rx"
    };
    ucs_status_t status;

    status = uct_iface_param_am_alignment(
            params, pool.elem_size, offsetof(uct_cxi_trig_rx_op_t, payload),
            offsetof(uct_cxi_trig_rx_op_t, payload), &pool.alignment,
            &pool.align_offset);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_cxi_trig_pool_init(&iface->rx.mp, &pool);
    if (status != UCS_OK) {
        ucs_error("cannot create the pool of receive descriptors: %s",
                  ucs_status_string(status));
        return status;
    }

    ucs_list_head_init(&iface->rx.ops);
    iface->rx.posted    = 0;
    iface->rx.queue_len = queue_len;
    iface->rx.enabled   = 0;
    return UCS_OK;
}

static void uct_cxi_trig_rx_free(uct_cxi_trig_iface_t *iface,
                                 uct_cxi_trig_rx_op_t *op)
{
    ucs_list_del(&op->list);
    --iface->rx.posted;
    ucs_mpool_put(op);
}

void uct_cxi_trig_rx_cleanup(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_rx_op_t *op, *tmp;

    ucs_list_for_each_safe(op, tmp, &iface->rx.ops, list) {
        uct_cxi_trig_rx_free(iface, op);
    }
    ucs_mpool_cleanup(&iface->rx.mp, 1);
}

static void uct_cxi_trig_rx_deliver(uct_cxi_trig_iface_t *iface,
                                    uct_cxi_trig_rx_op_t *op, size_t length)
{
    if (length < sizeof(op->msg)) {
        ucs_diag("message of %zu bytes is ignored: no header", length);
        return;
    }

    length -= sizeof(op->msg);
    switch (op->msg.type) {
    case UCT_CXI_TRIG_MSG_AM:
        if (op->msg.am_id >= UCT_AM_ID_MAX) {
            ucs_diag("active message %u is ignored: no such handler",
                     op->msg.am_id);
            return;
        }
        uct_cxi_trig_stats_add(&iface->stats.received, length);
        uct_iface_trace_am(&iface->super, UCT_AM_TRACE_TYPE_RECV, op->msg.am_id,
                           op->payload, length, "RX");
        uct_iface_invoke_am(&iface->super, op->msg.am_id, op->payload, length,
                            0);
        return;
    case UCT_CXI_TRIG_MSG_WAKE:
        iface->dwq.has_wake = 0;
        return;
    default:
        ucs_diag("message of unknown type %u is ignored", op->msg.type);
    }
}

/*
 * UCX wants a peer's messages in order. Providers keep the order in which they
 * take receives for messages, but not that in which these complete: on cxi long
 * ones come in several packets, or are fetched. So there they are delivered in
 * the order of the receives. On sockets that is not done: a peer that is
 * stopped in the midst of a message would hold up the others, and each peer's
 * messages come one after the other.
 */
static void uct_cxi_trig_rx_complete(uct_cxi_trig_iface_t *iface,
                                     uct_cxi_trig_req_t *req, size_t length,
                                     ucs_status_t status)
{
    uct_cxi_trig_rx_op_t *op = ucs_container_of(req, uct_cxi_trig_rx_op_t, req);

    if (status != UCS_OK) {
        ucs_diag("receive of a message failed: %s", ucs_status_string(status));
    }
    op->length = (status == UCS_OK) ? (ssize_t)length : 0;
    if (uct_cxi_trig_iface_md(iface)->prov->is_cassini) {
        op = ucs_list_head(&iface->rx.ops, uct_cxi_trig_rx_op_t, list);
    }
    while (op->length >= 0) {
        if (op->length > 0) {
            uct_cxi_trig_rx_deliver(iface, op, op->length);
        }
        uct_cxi_trig_rx_free(iface, op);
        if (ucs_list_is_empty(&iface->rx.ops)) {
            break;
        }
        op = ucs_list_head(&iface->rx.ops, uct_cxi_trig_rx_op_t, list);
    }
}

void uct_cxi_trig_rx_fill(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_rx_op_t *op;
    int ret;

    while (iface->rx.enabled && (iface->rx.posted < iface->rx.queue_len)) {
        op = ucs_mpool_get(&iface->rx.mp);
        if (op == NULL) {
            return;
        }

        op->length       = -1;
        op->req.complete = uct_cxi_trig_rx_complete;
        ret              = fi_recv(iface->net.ep, &op->msg,
                                   sizeof(op->msg) + iface->max_am, NULL,
                                   FI_ADDR_UNSPEC, &op->req);
        if (ret != 0) {
            ucs_mpool_put(op);
            if (ret != -FI_EAGAIN) {
                ucs_diag("cannot post a receive: %s", fi_strerror(-ret));
            }
            return; /* Progress tries again */
        }

        ucs_list_add_tail(&iface->rx.ops, &op->list);
        ++iface->rx.posted;
    }
}

void uct_cxi_trig_rx_enable(uct_cxi_trig_iface_t *iface)
{
    iface->rx.enabled = 1;
    uct_cxi_trig_rx_fill(iface);
}
