/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cancel.c - the end of deferred work that waits for its trigger.
 *
 * A provider drops all that waits in a domain, or nothing, and does not say
 * what that was. It waits for what has fired. So what has not completed then
 * was dropped, and what was not to be dropped is queued again: its trigger may
 * have been reached meanwhile, and then it fires at once. What has no entry
 * does not wait.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_cancel.h"
#include "cxi_trig_addr.h"
#include "cxi_trig_cntr.h"
#include "cxi_trig_cq.h"
#include "cxi_trig_ep.h"
#include "uct_trig.h"

#include <ucs/debug/log.h>

#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>

/* How often what the provider refuses is tried again */
#define UCT_CXI_TRIG_CANCEL_TRIES 1000


/* Not where other interfaces would lose what is theirs, nor where completions
 * are counted. An interface that is being opened waits with the mutex: the
 * provider takes a second at most. */
static ucs_status_t uct_cxi_trig_cancel_flush(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_md_t *md = uct_cxi_trig_iface_md(iface);
    int ret               = -FI_EBUSY;

    if (md->prov->done != UCT_CXI_TRIG_DONE_CQ) {
        return UCS_ERR_UNSUPPORTED;
    }
    pthread_mutex_lock(&md->ifaces.mutex);
    if (md->ifaces.count == 1) {
        ret = fi_control(&md->domain->fid, FI_FLUSH_WORK, NULL);
    }
    pthread_mutex_unlock(&md->ifaces.mutex);
    if (ret == -FI_EAGAIN) {
        return UCS_ERR_BUSY;
    }
    if (ret != 0) {
        ucs_diag("cannot cancel deferred operations: %s", fi_strerror(-ret));
        return UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK;
}

static int uct_cxi_trig_cancel_has_work(const uct_cxi_trig_iface_t *iface)
{
    const uct_cxi_trig_dwq_op_t *op;

    ucs_list_for_each(op, &iface->dwq.all, all_list) {
        if (op->is_posted) {
            return 1;
        }
    }
    return 0;
}

void uct_cxi_trig_cancel_quietly(uct_cxi_trig_iface_t *iface)
{
    if (uct_cxi_trig_cancel_has_work(iface)) {
        (void)uct_cxi_trig_cancel_flush(iface);
    }
}

static int uct_cxi_trig_cancel_names(const uct_cxi_trig_dwq_op_t *op,
                                     const uct_trig_cntr_h *triggers,
                                     unsigned count)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        if (op->deferred.trigger == triggers[i]) {
            return 1;
        }
    }
    return count == 0;
}

static void uct_cxi_trig_cancel_repost(uct_cxi_trig_iface_t *iface,
                                       uct_cxi_trig_dwq_op_t *op)
{
    unsigned tries = UCT_CXI_TRIG_CANCEL_TRIES;
    int ret;

    /* The queue may be full for a moment, also of events */
    while (((ret = iface->dwq.ops->post(iface, op)) == -FI_EAGAIN) &&
           (tries-- > 0)) {
        uct_cxi_trig_cq_reap(iface);
    }
    if (ret != 0) {
        ucs_error("cannot queue a deferred operation again: %s",
                  fi_strerror(-ret));
        uct_cxi_trig_dwq_complete(iface, &op->req, 0,
                                  uct_cxi_trig_prov_status(
                                          uct_cxi_trig_iface_md(iface)->prov,
                                          ret));
    }
}

/* Completions post operations, and end some: the list only grows, at its end */
ucs_status_t uct_trig_iface_cancel(uct_iface_h uct_iface,
                                   const uct_trig_cntr_h *triggers,
                                   unsigned count)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_iface_from_uct(uct_iface);
    uct_cxi_trig_dwq_op_t *op;
    ucs_status_t status;

    if (iface == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    if (!uct_cxi_trig_cancel_has_work(iface)) {
        return UCS_OK;
    }

    ucs_list_for_each(op, &iface->dwq.all, all_list) {
        op->is_dropped = op->is_posted && op->has_entry;
    }
    status = uct_cxi_trig_cancel_flush(iface);
    if (status != UCS_OK) {
        return status;
    }

    /* What was over when the provider returned is in the queue */
    uct_cxi_trig_cq_reap(iface);
    ucs_list_for_each(op, &iface->dwq.all, all_list) {
        if (!op->is_dropped || !op->is_posted) {
            continue;
        }
        op->is_dropped = 0;
        if (uct_cxi_trig_cancel_names(op, triggers, count)) {
            uct_cxi_trig_dwq_complete(iface, &op->req, 0, UCS_ERR_CANCELED);
        } else {
            uct_cxi_trig_cancel_repost(iface, op);
        }
    }
    return UCS_OK;
}
