/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_am.c - active messages and puts.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_am.h"
#include "cxi_trig_ep.h"
#include "cxi_trig_tx.h"
#include "uct_trig.h"

#include <ucs/debug/log.h>
#include <uct/base/uct_iov.inl>

#include <string.h>


ucs_status_t uct_cxi_trig_ep_am_short(uct_ep_h uct_ep, uint8_t id,
                                      uint64_t header, const void *payload,
                                      unsigned length)
{
    uct_cxi_trig_ep_t *ep = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_tx_op_t *op;
    ucs_status_t status;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(length + sizeof(header), 0,
                     uct_cxi_trig_ep_iface(ep)->seg_size, "am_short");

    status = uct_cxi_trig_tx_get(ep, &op);
    if (status != UCS_OK) {
        return status;
    }

    op->msg.am_id = id;
    uct_cxi_trig_am_fill(op->payload, header, payload, length);
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, sizeof(header) + length);
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
                     uct_cxi_trig_ep_iface(ep)->seg_size, "am_short_iov");

    status = uct_cxi_trig_tx_get(ep, &op);
    if (status != UCS_OK) {
        return status;
    }

    op->msg.am_id = id;
    ucs_iov_iter_init(&iter);
    length        = uct_iov_to_buffer(iov, iovcnt, &iter, op->payload,
                                      uct_cxi_trig_ep_iface(ep)->seg_size);
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, length);
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

    status = uct_cxi_trig_tx_get(ep, &op);
    if (status != UCS_OK) {
        return status;
    }

    op->msg.am_id = id;
    length        = pack_cb(op->payload, arg);
    UCT_TL_EP_STAT_OP(&ep->super, AM, BCOPY, length);
    status        = uct_cxi_trig_tx_send(op, length);
    return (status == UCS_OK) ? (ssize_t)length : (ssize_t)status;
}

/* The provider checks the key and the range; a wrong one fails the endpoint. */
static ucs_status_t uct_cxi_trig_put_get(uct_cxi_trig_ep_t *ep,
                                         uint64_t remote_addr, uct_rkey_t rkey,
                                         uct_cxi_trig_tx_op_t **op_p)
{
    const uct_trig_rkey_t *region = (const void*)(uintptr_t)rkey;
    ucs_status_t status           = uct_cxi_trig_tx_get(ep, op_p);

    if (status == UCS_OK) {
        (*op_p)->is_put = 1;
        (*op_p)->target = remote_addr - region->base;
        (*op_p)->key    = region->key;
    }
    return status;
}

/* An empty put is complete at once: not every provider carries one out. */
static ucs_status_t uct_cxi_trig_put_send(uct_cxi_trig_tx_op_t *op,
                                          size_t length)
{
    if (length == 0) {
        uct_cxi_trig_tx_drop(op);
        return UCS_OK;
    }
    return uct_cxi_trig_tx_send(op, length);
}

ucs_status_t uct_cxi_trig_ep_put_short(uct_ep_h uct_ep, const void *buffer,
                                       unsigned length, uint64_t remote_addr,
                                       uct_rkey_t rkey)
{
    uct_cxi_trig_ep_t *ep = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_tx_op_t *op;
    ucs_status_t status;

    UCT_CHECK_LENGTH(length, 0, uct_cxi_trig_ep_iface(ep)->seg_size,
                     "put_short");

    status = uct_cxi_trig_put_get(ep, remote_addr, rkey, &op);
    if (status != UCS_OK) {
        return status;
    }

    if (length > 0) {
        memcpy(op->payload, buffer, length);
    }
    UCT_TL_EP_STAT_OP(&ep->super, PUT, SHORT, length);
    return uct_cxi_trig_put_send(op, length);
}

ssize_t uct_cxi_trig_ep_put_bcopy(uct_ep_h uct_ep, uct_pack_callback_t pack_cb,
                                  void *arg, uint64_t remote_addr,
                                  uct_rkey_t rkey)
{
    uct_cxi_trig_ep_t *ep = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_tx_op_t *op;
    ucs_status_t status;
    size_t length;

    status = uct_cxi_trig_put_get(ep, remote_addr, rkey, &op);
    if (status != UCS_OK) {
        return status;
    }

    length = pack_cb(op->payload, arg);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, BCOPY, length);
    status = uct_cxi_trig_put_send(op, length);
    return (status == UCS_OK) ? (ssize_t)length : (ssize_t)status;
}
