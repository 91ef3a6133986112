/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_op.c - deferred operations that are described once and posted many
 * times.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_dwq.h"
#include "cxi_trig_ep.h"
#include "cxi_trig_iface.h"
#include "cxi_trig_peer.h"


static void uct_cxi_trig_op_keep(uct_cxi_trig_dwq_op_t *op, uint64_t room)
{
    op->is_kept = 1;
    op->offset  = 0;
    op->room    = room;
}

ucs_status_t uct_trig_op_create_put(uct_ep_h ep, const uct_trig_put_t *put,
                                    const uct_trig_deferred_t *deferred,
                                    uct_trig_op_h *op_p)
{
    uct_cxi_trig_dwq_op_t *op;
    ucs_status_t status;

    status = uct_cxi_trig_dwq_get_rma(ep, FI_OP_WRITE, put, deferred, &op);
    if (status != UCS_OK) {
        return status;
    }

    uct_cxi_trig_op_keep(op, put->rkey.length - put->length -
                             (put->remote_addr - put->rkey.address));
    *op_p = op;
    return UCS_OK;
}

ucs_status_t
uct_trig_op_create_add64(uct_ep_h ep, const uct_trig_atomic_t *atomic,
                         const uct_trig_deferred_t *deferred,
                         uct_trig_op_h *op_p)
{
    uct_cxi_trig_dwq_op_t *op;
    ucs_status_t status;

    status = uct_cxi_trig_dwq_get_add64(ep, atomic, deferred, &op);
    if (status != UCS_OK) {
        return status;
    }

    uct_cxi_trig_op_keep(op, 0);
    *op_p = op;
    return UCS_OK;
}

ucs_status_t uct_trig_op_post(uct_trig_op_h op, uint64_t threshold,
                              size_t offset, int is_due)
{
    uct_cxi_trig_iface_t *iface = op->peer->iface;
    ucs_status_t status         = uct_cxi_trig_peer_status(op->peer);

    if (status != UCS_OK) {
        return status;
    }
    if (op->is_posted || op->is_abandoned) {
        return UCS_ERR_BUSY;
    }
    if (offset > op->room) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (threshold > uct_cxi_trig_iface_md(iface)->prov->max_count) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    op->deferred.is_due    = is_due;
    op->req.work.threshold = threshold;
    if (offset != op->offset) { /* of a put, then */
        op->put.target.addr += offset - op->offset;
        op->offset           = offset;
    }
    return uct_cxi_trig_dwq_post(iface, op);
}

ucs_status_t uct_trig_op_destroy(uct_trig_op_h op)
{
    if (op->is_posted) {
        return UCS_ERR_BUSY;
    }

    op->is_kept = 0;
    uct_cxi_trig_dwq_free(op->peer->iface, op);
    return UCS_OK;
}
