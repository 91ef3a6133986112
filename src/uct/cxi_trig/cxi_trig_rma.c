/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_rma.c - puts and gets.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_rma.h"
#include "cxi_trig_addr.h"
#include "cxi_trig_tx.h"

#include <ucs/debug/log.h>
#include <uct/base/uct_iov.inl>

#include <rdma/fi_rma.h>

#include <inttypes.h>
#include <string.h>


/* What uct_cxi_trig_ep_{put,get}_zcopy() are given. */
typedef struct uct_cxi_trig_rma_args {
    const uct_iov_t  *iov;
    size_t           iovcnt;
    uint64_t         remote_addr;
    uct_rkey_t       rkey;
    uct_completion_t *comp;
} uct_cxi_trig_rma_args_t;


/* A message of libfabric; @a target must live as long. */
static struct fi_msg_rma uct_cxi_trig_rma_msg(uct_cxi_trig_tx_op_t *op,
                                              struct fi_rma_iov *target)
{
    *target = (struct fi_rma_iov){
        .addr = op->remote.addr,
        .len  = op->length,
        .key  = op->remote.key
    };
    return (struct fi_msg_rma){
        .msg_iov       = op->rma.iov.iov,
        .desc          = op->rma.iov.desc,
        .iov_count     = op->rma.iov.count,
        .addr          = op->peer->memory,
        .rma_iov       = target,
        .rma_iov_count = 1,
        .context       = &op->req
    };
}

static ssize_t uct_cxi_trig_rma_post_put(uct_cxi_trig_tx_op_t *op)
{
    struct fi_rma_iov target;
    struct fi_msg_rma msg = uct_cxi_trig_rma_msg(op, &target);

    /* A flush is to mean that the data is there */
    return fi_writemsg(op->peer->iface->net.ep, &msg,
                       FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static ssize_t uct_cxi_trig_rma_post_get(uct_cxi_trig_tx_op_t *op)
{
    struct fi_rma_iov target;
    struct fi_msg_rma msg = uct_cxi_trig_rma_msg(op, &target);

    return fi_readmsg(op->peer->iface->net.ep, &msg, FI_COMPLETION);
}

static void uct_cxi_trig_rma_unpack(uct_cxi_trig_tx_op_t *op)
{
    op->rma.unpack(op->rma.arg, op->payload, op->length);
}

static const uct_cxi_trig_tx_kind_t uct_cxi_trig_rma_put_copied = {
    .post     = uct_cxi_trig_rma_post_put,
    .finish   = uct_cxi_trig_tx_finish_none,
    .is_zcopy = 0,
    .is_rma   = 1,
    .stat     = UCT_TRIG_STATS_PUT
};

static const uct_cxi_trig_tx_kind_t uct_cxi_trig_rma_put_zcopied = {
    .post     = uct_cxi_trig_rma_post_put,
    .finish   = uct_cxi_trig_tx_finish_none,
    .is_zcopy = 1,
    .is_rma   = 1,
    .stat     = UCT_TRIG_STATS_PUT_ZCOPY
};

static const uct_cxi_trig_tx_kind_t uct_cxi_trig_rma_get_copied = {
    .post     = uct_cxi_trig_rma_post_get,
    .finish   = uct_cxi_trig_rma_unpack,
    .is_zcopy = 0,
    .is_rma   = 1,
    .stat     = UCT_TRIG_STATS_GET
};

static const uct_cxi_trig_tx_kind_t uct_cxi_trig_rma_get_zcopied = {
    .post     = uct_cxi_trig_rma_post_get,
    .finish   = uct_cxi_trig_tx_finish_none,
    .is_zcopy = 1,
    .is_rma   = 1,
    .stat     = UCT_TRIG_STATS_GET_ZCOPY
};

static const uct_cxi_trig_tx_kind_t uct_cxi_trig_rma_get_probe = {
    .post     = uct_cxi_trig_rma_post_get,
    .finish   = uct_cxi_trig_tx_finish_none,
    .is_zcopy = 0,
    .is_rma   = 0, /* nothing of the user's */
    .is_probe = 1,
    .stat     = UCT_TRIG_STATS_PROBE
};

/* For UCX_LOG_LEVEL=data */
static inline void uct_cxi_trig_rma_trace(const char *what, size_t length,
                                          uint64_t remote_addr)
{
    ucs_trace_data("TX: %s len %zu to 0x%" PRIx64, what, length, remote_addr);
}

/* The payload is all of the local memory. */
static void uct_cxi_trig_rma_use_payload(uct_cxi_trig_tx_op_t *op,
                                         size_t length)
{
    op->rma.iov.count   = 1;
    op->rma.iov.desc[0] = NULL;
    op->rma.iov.iov[0]  = (struct iovec){
        .iov_base = op->payload,
        .iov_len  = length
    };
}

ucs_status_t uct_cxi_trig_rma_probe(uct_cxi_trig_ep_t *ep,
                                    uct_completion_t *comp)
{
    uct_cxi_trig_iface_t *iface           = uct_cxi_trig_ep_iface(ep);
    const uct_cxi_trig_iface_addr_t *peer = &ep->peer->packed;
    size_t length                         = sizeof(iface->probe.word);
    uct_cxi_trig_tx_op_t *op;
    ucs_status_t status;

    status = uct_cxi_trig_tx_get(ep, &uct_cxi_trig_rma_get_probe, &op);
    if (status != UCS_OK) {
        return status;
    }

    op->remote.key  = peer->probe_key;
    op->remote.addr = uct_cxi_trig_addr_probe(iface, peer);
    uct_cxi_trig_rma_use_payload(op, length);
    ucs_trace_data("TX: probe");
    status = uct_cxi_trig_tx_start(op, length, comp);
    return (comp == NULL) ? UCS_OK : status; /* The error handler tells */
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

    if (length == 0) {
        /* No key is needed; but users expect to hear of a peer that is gone */
        return uct_cxi_trig_rma_probe(ep, NULL);
    }

    status = uct_cxi_trig_tx_get(ep, &uct_cxi_trig_rma_put_copied, &op);
    if (status != UCS_OK) {
        return status;
    }

    memcpy(op->payload, buffer, length);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, SHORT, length);
    uct_cxi_trig_rma_trace("PUT_SHORT", length, remote_addr);
    uct_cxi_trig_tx_set_remote(op, remote_addr, rkey);
    uct_cxi_trig_rma_use_payload(op, length);
    return uct_cxi_trig_tx_send(op, length);
}

ssize_t uct_cxi_trig_ep_put_bcopy(uct_ep_h uct_ep, uct_pack_callback_t pack_cb,
                                  void *arg, uint64_t remote_addr,
                                  uct_rkey_t rkey)
{
    uct_cxi_trig_ep_t *ep = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_tx_op_t *op;
    ucs_status_t status;
    size_t length;

    status = uct_cxi_trig_tx_get(ep, &uct_cxi_trig_rma_put_copied, &op);
    if (status != UCS_OK) {
        return status;
    }

    length = pack_cb(op->payload, arg);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, BCOPY, length);
    uct_cxi_trig_rma_trace("PUT_BCOPY", length, remote_addr);
    if (length == 0) {
        uct_cxi_trig_tx_drop(op);
        return 0;
    }

    uct_cxi_trig_tx_set_remote(op, remote_addr, rkey);
    uct_cxi_trig_rma_use_payload(op, length);
    status = uct_cxi_trig_tx_send(op, length);
    return (status == UCS_OK) ? (ssize_t)length : (ssize_t)status;
}

ucs_status_t uct_cxi_trig_ep_get_bcopy(uct_ep_h uct_ep,
                                       uct_unpack_callback_t unpack_cb,
                                       void *arg, size_t length,
                                       uint64_t remote_addr, uct_rkey_t rkey,
                                       uct_completion_t *comp)
{
    uct_cxi_trig_ep_t *ep = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_tx_op_t *op;
    ucs_status_t status;

    UCT_CHECK_LENGTH(length, 0, uct_cxi_trig_ep_iface(ep)->seg_size,
                     "get_bcopy");

    status = uct_cxi_trig_tx_get(ep, &uct_cxi_trig_rma_get_copied, &op);
    if (status != UCS_OK) {
        return status;
    }

    UCT_TL_EP_STAT_OP(&ep->super, GET, BCOPY, length);
    uct_cxi_trig_rma_trace("GET_BCOPY", length, remote_addr);
    if (length == 0) {
        uct_cxi_trig_tx_drop(op); /* the callback may send */
        unpack_cb(arg, NULL, 0);
        return UCS_OK;
    }

    uct_cxi_trig_tx_set_remote(op, remote_addr, rkey);
    uct_cxi_trig_rma_use_payload(op, length);
    op->rma.unpack = unpack_cb;
    op->rma.arg    = arg;
    return uct_cxi_trig_tx_start(op, length, comp);
}

static ucs_status_t uct_cxi_trig_rma_zcopy(uct_cxi_trig_ep_t *ep,
                                           const uct_cxi_trig_tx_kind_t *kind,
                                           const uct_cxi_trig_rma_args_t *args)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_ep_iface(ep);
    size_t length               = uct_iov_total_length(args->iov, args->iovcnt);
    uct_cxi_trig_tx_op_t *op;
    ucs_status_t status;

    UCT_CHECK_IOV_SIZE(args->iovcnt, iface->caps.max_iov, "put or get zcopy");
    UCT_CHECK_LENGTH(length, 0, iface->caps.max_zcopy, "put or get zcopy");

    status = uct_cxi_trig_tx_get(ep, kind, &op);
    if (status != UCS_OK) {
        return status;
    }
    uct_cxi_trig_rma_trace((kind == &uct_cxi_trig_rma_put_zcopied) ?
                           "PUT_ZCOPY" : "GET_ZCOPY", length,
                           args->remote_addr);
    if (length == 0) {
        uct_cxi_trig_tx_drop(op);
        return UCS_OK;
    }

    uct_cxi_trig_tx_set_remote(op, args->remote_addr, args->rkey);
    op->rma.iov.count = 0;
    uct_cxi_trig_tx_add_iov(iface, &op->rma.iov, args->iov, args->iovcnt);
    return uct_cxi_trig_tx_start(op, length, args->comp);
}

ucs_status_t uct_cxi_trig_ep_put_zcopy(uct_ep_h uct_ep, const uct_iov_t *iov,
                                       size_t iovcnt, uint64_t remote_addr,
                                       uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_cxi_trig_ep_t *ep        = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_rma_args_t args = {iov, iovcnt, remote_addr, rkey, comp};
    ucs_status_t status;

    status = uct_cxi_trig_rma_zcopy(ep, &uct_cxi_trig_rma_put_zcopied, &args);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, PUT, ZCOPY,
                                 uct_iov_total_length(iov, iovcnt));
    return status;
}

ucs_status_t uct_cxi_trig_ep_get_zcopy(uct_ep_h uct_ep, const uct_iov_t *iov,
                                       size_t iovcnt, uint64_t remote_addr,
                                       uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_cxi_trig_ep_t *ep        = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_rma_args_t args = {iov, iovcnt, remote_addr, rkey, comp};
    ucs_status_t status;

    status = uct_cxi_trig_rma_zcopy(ep, &uct_cxi_trig_rma_get_zcopied, &args);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, GET, ZCOPY,
                                 uct_iov_total_length(iov, iovcnt));
    return status;
}
