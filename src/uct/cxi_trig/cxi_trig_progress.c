/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_progress.c - progress of an interface, and sleeping.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_progress.h"
#include "cxi_trig_cq.h"
#include "cxi_trig_ep.h"
#include "cxi_trig_pending.h"
#include "cxi_trig_rx.h"
#include "cxi_trig_target.h"
#include "cxi_trig_tx.h"

#include <rdma/fi_eq.h>

#include <poll.h>

/* Calls of which one is for the memory domain's endpoint, too */
#define UCT_CXI_TRIG_PROGRESS_TARGET 16


/* Receives are posted anew when there is nothing else to do, or few are left:
 * the answer to a message does not wait for that */
static int uct_cxi_trig_progress_may_fill(const uct_cxi_trig_iface_t *iface,
                                          unsigned count)
{
    unsigned left      = iface->rx.posted;
    unsigned queue_len = iface->rx.queue_len;

    return (left < queue_len) &&
           ((count == 0) || (left <= (queue_len / 2)) ||
            (left + UCT_CXI_TRIG_CQ_BATCH <= queue_len));
}

/* The domain's endpoint has no thread, nor a descriptor, of its own. */
static UCS_F_ALWAYS_INLINE void
uct_cxi_trig_progress_target(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_md_t *md = uct_cxi_trig_iface_md(iface);

    if (ucs_unlikely(++iface->calls >= UCT_CXI_TRIG_PROGRESS_TARGET)) {
        iface->calls = 0;
        if (md->target != NULL) {
            uct_cxi_trig_target_progress(md);
        }
    }
}

/* UCX calls this with its worker's lock, for which other threads spin: it
 * neither yields nor sleeps. */
unsigned uct_cxi_trig_progress(uct_iface_h uct_iface)
{
    uct_cxi_trig_iface_t *iface = ucs_derived_of(uct_iface,
                                                 uct_cxi_trig_iface_t);
    unsigned count;

    uct_cxi_trig_progress_target(iface);
    count  = uct_cxi_trig_cq_progress(iface);
    count += iface->dwq.ops->poll(iface);
    count += uct_cxi_trig_tx_retry(iface);
    if (uct_cxi_trig_progress_may_fill(iface, count)) {
        uct_cxi_trig_rx_fill(iface);
    }
    if (ucs_unlikely(!ucs_list_is_empty(&iface->failed))) {
        count += uct_cxi_trig_ep_report_failed(iface);
    }
    if (ucs_unlikely(!ucs_arbiter_is_empty(&iface->tx.pending))) {
        count += uct_cxi_trig_pending_dispatch(iface);
    }
    return count;
}

void uct_cxi_trig_progress_enable(uct_iface_h uct_iface, unsigned flags)
{
    uct_cxi_trig_iface_t *iface = ucs_derived_of(uct_iface,
                                                 uct_cxi_trig_iface_t);

    if (flags & UCT_PROGRESS_RECV) {
        uct_cxi_trig_rx_enable(iface);
    }
    uct_base_iface_progress_enable(uct_iface, flags);
}

ucs_status_t uct_cxi_trig_event_fd_get(uct_iface_h uct_iface, int *fd_p)
{
    uct_cxi_trig_iface_t *iface = ucs_derived_of(uct_iface,
                                                 uct_cxi_trig_iface_t);

    if (iface->net.wait_fd < 0) {
        return UCS_ERR_UNSUPPORTED;
    }
    *fd_p = iface->net.wait_fd;
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_event_arm(uct_iface_h uct_iface, unsigned events)
{
    uct_cxi_trig_iface_t *iface = ucs_derived_of(uct_iface,
                                                 uct_cxi_trig_iface_t);
    struct fid *fid             = &iface->net.cq->fid;
    struct pollfd pollfd        = {
        .fd     = iface->net.wait_fd,
        .events = POLLIN
    };
    ucs_status_t status;

    /* UCP may wait for the first message before it enables any progress */
    if (events & UCT_EVENT_RECV) {
        uct_cxi_trig_rx_enable(iface);
    }

    if (uct_cxi_trig_tx_has_work(iface) || !ucs_list_is_empty(&iface->failed) ||
        !ucs_list_is_empty(&iface->late) ||
        (!ucs_arbiter_is_empty(&iface->tx.pending) &&
         (iface->tx.avail > 0))) {
        return UCS_ERR_BUSY;
    }

    status = iface->dwq.ops->arm(iface);
    if (status != UCS_OK) {
        return status;
    }

    /* Some providers always agree to the first question */
    if ((fi_trywait(uct_cxi_trig_iface_md(iface)->fabric, &fid, 1) != 0) ||
        (poll(&pollfd, 1, 0) != 0)) {
        return UCS_ERR_BUSY;
    }
    return UCS_OK;
}
