/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_pending.c - pending requests: one group an endpoint, served in turn.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_pending.h"
#include "cxi_trig_tx.h"

#include <ucs/debug/log.h>


typedef struct uct_cxi_trig_purge {
    uct_pending_purge_callback_t cb;
    void                         *arg;
} uct_cxi_trig_purge_t;


ucs_status_t uct_cxi_trig_pending_add(uct_ep_h uct_ep, uct_pending_req_t *req,
                                      unsigned flags)
{
    uct_cxi_trig_ep_t *ep       = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_ep_iface(ep);

    if (ucs_arbiter_group_is_empty(&ep->pending) &&
        (uct_cxi_trig_tx_check(ep) != UCS_ERR_NO_RESOURCE)) {
        return UCS_ERR_BUSY;
    }

    UCS_STATIC_ASSERT(sizeof(uct_pending_req_priv_arb_t) <=
                      UCT_PENDING_REQ_PRIV_LEN);
    uct_pending_req_arb_group_push(&ep->pending, req);
    ucs_arbiter_group_schedule(&iface->tx.pending, &ep->pending);
    UCT_TL_EP_STAT_PEND(&ep->super);
    ++iface->stats.pending;
    return UCS_OK;
}

static ucs_arbiter_cb_result_t
uct_cxi_trig_pending_run(ucs_arbiter_t *arbiter, ucs_arbiter_group_t *group,
                         ucs_arbiter_elem_t *elem, void *arg)
{
    uct_cxi_trig_ep_t *ep  = ucs_container_of(group, uct_cxi_trig_ep_t,
                                              pending);
    uct_pending_req_t *req = ucs_container_of(elem, uct_pending_req_t, priv);
    unsigned *count        = arg;
    ucs_status_t status;

    ep->dispatching = 1;
    status          = req->func(req);
    ep->dispatching = 0;

    if (status == UCS_OK) {
        ++(*count);
        return UCS_ARBITER_CB_RESULT_REMOVE_ELEM;
    } else if (status == UCS_INPROGRESS) {
        ++(*count);
        return UCS_ARBITER_CB_RESULT_NEXT_GROUP;
    } else if (uct_cxi_trig_tx_is_exhausted(uct_cxi_trig_ep_iface(ep))) {
        return UCS_ARBITER_CB_RESULT_STOP;
    }
    return UCS_ARBITER_CB_RESULT_RESCHED_GROUP; /* Not for want of room */
}

unsigned uct_cxi_trig_pending_dispatch(uct_cxi_trig_iface_t *iface)
{
    unsigned count = 0;

    ucs_arbiter_dispatch(&iface->tx.pending, 1, uct_cxi_trig_pending_run,
                         &count);
    return count;
}

static ucs_arbiter_cb_result_t
uct_cxi_trig_pending_drop(ucs_arbiter_t *arbiter, ucs_arbiter_group_t *group,
                          ucs_arbiter_elem_t *elem, void *arg)
{
    uct_pending_req_t *req            = ucs_container_of(elem,
                                                         uct_pending_req_t,
                                                         priv);
    const uct_cxi_trig_purge_t *purge = arg;

    if (purge->cb != NULL) {
        purge->cb(req, purge->arg);
    } else {
        ucs_debug("pending request %p is dropped", req);
    }
    return UCS_ARBITER_CB_RESULT_REMOVE_ELEM;
}

void uct_cxi_trig_pending_purge(uct_ep_h uct_ep,
                                uct_pending_purge_callback_t cb, void *arg)
{
    uct_cxi_trig_ep_t *ep      = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_purge_t purge = {
        .cb  = cb,
        .arg = arg
    };

    ucs_arbiter_group_purge(&uct_cxi_trig_ep_iface(ep)->tx.pending,
                            &ep->pending, uct_cxi_trig_pending_drop, &purge);
}
