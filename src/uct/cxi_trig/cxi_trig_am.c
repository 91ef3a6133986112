/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_am.c - active messages.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_am.h"

#include <ucs/debug/log.h>
#include <uct/base/uct_iov.inl>

#include <rdma/fi_endpoint.h>

#include <string.h>


static ssize_t uct_cxi_trig_am_post(uct_cxi_trig_tx_op_t *op)
{
    return fi_send(op->peer->iface->net.ep, &op->msg,
                   sizeof(op->msg) + op->length, NULL, op->peer->addr,
                   &op->req);
}

static ssize_t uct_cxi_trig_am_post_iov(uct_cxi_trig_tx_op_t *op)
{
    return fi_sendv(op->peer->iface->net.ep, op->am.iov, op->am.desc,
                    op->am.count, op->peer->addr, &op->req);
}

static const uct_cxi_trig_tx_kind_t uct_cxi_trig_am_copied = {
    .post     = uct_cxi_trig_am_post,
    .finish   = uct_cxi_trig_tx_finish_none,
    .is_zcopy = 0,
    .is_rma   = 0,
    .stat     = UCT_TRIG_STATS_AM
};

static const uct_cxi_trig_tx_kind_t uct_cxi_trig_am_zcopied = {
    .post     = uct_cxi_trig_am_post_iov,
    .finish   = uct_cxi_trig_tx_finish_none,
    .is_zcopy = 1,
    .is_rma   = 0,
    .stat     = UCT_TRIG_STATS_AM_ZCOPY
};

static ucs_status_t uct_cxi_trig_am_get(uct_cxi_trig_ep_t *ep, uint8_t id,
                                        uct_cxi_trig_tx_op_t **op_p)
{
    ucs_status_t status = uct_cxi_trig_tx_get(ep, &uct_cxi_trig_am_copied,
                                              op_p);

    if (status == UCS_OK) {
        (*op_p)->msg = (uct_cxi_trig_msg_t){
            .type  = UCT_CXI_TRIG_MSG_AM,
            .am_id = id
        };
    }
    return status;
}

/* For UCX_LOG_LEVEL=data, and tracers of messages: what lies in the payload */
static inline void uct_cxi_trig_am_trace(uct_cxi_trig_ep_t *ep,
                                         uct_cxi_trig_tx_op_t *op,
                                         size_t length, const char *how)
{
    uct_iface_trace_am(&uct_cxi_trig_ep_iface(ep)->super,
                       UCT_AM_TRACE_TYPE_SEND, op->msg.am_id, op->payload,
                       length, "TX: AM_%s", how);
}

ucs_status_t uct_cxi_trig_ep_am_short(uct_ep_h uct_ep, uint8_t id,
                                      uint64_t header, const void *payload,
                                      unsigned length)
{
    uct_cxi_trig_ep_t *ep = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_tx_op_t *op;
    ucs_status_t status;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(length + sizeof(header), 0,
                     uct_cxi_trig_ep_iface(ep)->max_am, "am_short");

    status = uct_cxi_trig_am_get(ep, id, &op);
    if (status != UCS_OK) {
        return status;
    }

    uct_cxi_trig_am_fill(op->payload, header, payload, length);
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, sizeof(header) + length);
    uct_cxi_trig_am_trace(ep, op, sizeof(header) + length, "SHORT");
    return uct_cxi_trig_tx_send(op, sizeof(header) + length);
}

ucs_status_t uct_cxi_trig_ep_am_short_iov(uct_ep_h uct_ep, uint8_t id,
                                          const uct_iov_t *iov, size_t iovcnt)
{
    uct_cxi_trig_ep_t *ep = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_tx_op_t *op;
    ucs_iov_iter_t iter;
    ucs_status_t status;
    size_t length;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(uct_iov_total_length(iov, iovcnt), 0,
                     uct_cxi_trig_ep_iface(ep)->max_am, "am_short_iov");

    status = uct_cxi_trig_am_get(ep, id, &op);
    if (status != UCS_OK) {
        return status;
    }

    ucs_iov_iter_init(&iter);
    length        = uct_iov_to_buffer(iov, iovcnt, &iter, op->payload,
                                      uct_cxi_trig_ep_iface(ep)->max_am);
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, length);
    uct_cxi_trig_am_trace(ep, op, length, "SHORT_IOV");
    return uct_cxi_trig_tx_send(op, length);
}

ssize_t uct_cxi_trig_ep_am_bcopy(uct_ep_h uct_ep, uint8_t id,
                                 uct_pack_callback_t pack_cb, void *arg,
                                 unsigned flags)
{
    uct_cxi_trig_ep_t *ep = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_tx_op_t *op;
    ucs_status_t status;
    size_t length;

    UCT_CHECK_AM_ID(id);

    status = uct_cxi_trig_am_get(ep, id, &op);
    if (status != UCS_OK) {
        return status;
    }

    length        = pack_cb(op->payload, arg);
    UCT_TL_EP_STAT_OP(&ep->super, AM, BCOPY, length);
    uct_cxi_trig_am_trace(ep, op, length, "BCOPY");
    status        = uct_cxi_trig_tx_send(op, length);
    return (status == UCS_OK) ? (ssize_t)length : (ssize_t)status;
}

ucs_status_t uct_cxi_trig_ep_am_zcopy(uct_ep_h uct_ep, uint8_t id,
                                      const void *header,
                                      unsigned header_length,
                                      const uct_iov_t *iov, size_t iovcnt,
                                      unsigned flags, uct_completion_t *comp)
{
    uct_cxi_trig_ep_t *ep       = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_ep_iface(ep);
    size_t length               = header_length +
                                  uct_iov_total_length(iov, iovcnt);
    uct_cxi_trig_tx_op_t *op;
    ucs_status_t status;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_IOV_SIZE(iovcnt, iface->caps.max_iov - 1, "am_zcopy");
    UCT_CHECK_LENGTH(length, 0, iface->max_am, "am_zcopy");

    status = uct_cxi_trig_am_get(ep, id, &op);
    if (status != UCS_OK) {
        return status;
    }

    op->kind      = &uct_cxi_trig_am_zcopied;
    /* The header lies behind ours, and is copied with it */
    op->am.count   = 1;
    op->am.desc[0] = NULL;
    op->am.iov[0]  = (struct iovec){
        .iov_base = &op->msg,
        .iov_len  = sizeof(op->msg) + header_length
    };
    memcpy(op->payload, header, header_length);
    uct_cxi_trig_tx_add_iov(iface, &op->am, iov, iovcnt);
    UCT_TL_EP_STAT_OP(&ep->super, AM, ZCOPY, length);
    uct_cxi_trig_am_trace(ep, op, header_length, "ZCOPY");
    return uct_cxi_trig_tx_start(op, length, comp);
}
