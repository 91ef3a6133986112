/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_dwq_cq.c - deferred work of providers that report each operation in
 * the completion queue (cxi).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_dwq.h"
#include "cxi_trig_cntr.h"
#include "cxi_trig_iface.h"

#include <ucs/debug/log.h>


static ucs_status_t uct_cxi_trig_dwq_cq_init(uct_cxi_trig_iface_t *iface)
{
    return UCS_OK;
}

static void uct_cxi_trig_dwq_cq_cleanup(uct_cxi_trig_iface_t *iface)
{
}

static int uct_cxi_trig_dwq_cq_post(uct_cxi_trig_iface_t *iface,
                                    uct_cxi_trig_dwq_op_t *op)
{
    return fi_control(&uct_cxi_trig_iface_md(iface)->domain->fid, FI_QUEUE_WORK,
                      &op->req.work);
}

/* An ordinary operation of the endpoint, of the same description */
static int uct_cxi_trig_dwq_cq_run(uct_cxi_trig_iface_t *iface,
                                   uct_cxi_trig_dwq_op_t *op)
{
    struct fid_ep *ep = iface->net.ep;

    switch (op->req.work.op_type) {
    case FI_OP_WRITE:
        return fi_writemsg(ep, &op->put.op.msg, op->put.op.flags);
    case FI_OP_READ:
        return fi_readmsg(ep, &op->put.op.msg, op->put.op.flags);
    default:
        return fi_atomicmsg(ep, &op->atomic.op.msg, op->atomic.op.flags);
    }
}

/* The NIC counts what had an entry */
static void uct_cxi_trig_dwq_cq_release(uct_cxi_trig_iface_t *iface,
                                        uct_cxi_trig_dwq_op_t *op,
                                        ucs_status_t status)
{
    uct_trig_cntr_h completion = op->deferred.completion;

    if ((status == UCS_OK) && !op->has_entry && (completion != NULL) &&
        (uct_trig_cntr_add(completion, 1) != UCS_OK)) {
        ucs_error("interface %p: failed to count an operation", iface);
    }
}

static unsigned uct_cxi_trig_dwq_cq_poll(uct_cxi_trig_iface_t *iface)
{
    return 0;
}

static ucs_status_t uct_cxi_trig_dwq_cq_arm(uct_cxi_trig_iface_t *iface)
{
    return UCS_OK;
}

const uct_cxi_trig_dwq_ops_t uct_cxi_trig_dwq_cq_ops = {
    .init    = uct_cxi_trig_dwq_cq_init,
    .cleanup = uct_cxi_trig_dwq_cq_cleanup,
    .post    = uct_cxi_trig_dwq_cq_post,
    .run     = uct_cxi_trig_dwq_cq_run,
    .release = uct_cxi_trig_dwq_cq_release,
    .poll    = uct_cxi_trig_dwq_cq_poll,
    .arm     = uct_cxi_trig_dwq_cq_arm
};
