/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_ep.h - endpoints.
 */
#ifndef UCT_CXI_TRIG_EP_H_
#define UCT_CXI_TRIG_EP_H_

#include "cxi_trig_iface.h"
#include "cxi_trig_peer.h"

#include <uct/base/uct_iface.h>


/**
 * Endpoint. One thread at a time.
 *
 *   working --an operation fails--> failed --progress--> reported
 *      |                                                    ^
 *      +------uct_ep_invalidate()--> invalid ---progress----+
 *
 * An invalid one still takes operations, and carries none out.
 */
typedef struct uct_cxi_trig_ep {
    uct_base_ep_t        super;
    uct_cxi_trig_peer_t  *peer;
    ucs_arbiter_group_t  pending;
    int                  dispatching; /**< A pending request is running */
    uint64_t             fence;       /**< As uct_cxi_trig_iface_t.tx.fence */
    ucs_status_t         status;      /**< UCS_OK, or why it has failed */
    ucs_list_link_t      failed;      /**< On the interface's list until the
                                           failure was reported */
    int                  reporting;   /**< It is on that list */
} uct_cxi_trig_ep_t;

UCS_CLASS_DECLARE_NEW_FUNC(uct_cxi_trig_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_cxi_trig_ep_t, uct_ep_t);


/** The interface of an endpoint. */
static inline uct_cxi_trig_iface_t *
uct_cxi_trig_ep_iface(const uct_cxi_trig_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_cxi_trig_iface_t);
}


/** Whether pending requests must go before a new operation of an endpoint. */
static inline int uct_cxi_trig_ep_is_blocked(const uct_cxi_trig_ep_t *ep)
{
    return !ep->dispatching &&
           !ucs_arbiter_group_is_empty((ucs_arbiter_group_t*)&ep->pending);
}

/** Have progress tell the user of an endpoint's end, which it does once. */
static inline void uct_cxi_trig_ep_schedule_report(uct_cxi_trig_ep_t *ep)
{
    ep->reporting = 1;
    ucs_list_add_tail(&uct_cxi_trig_ep_iface(ep)->failed, &ep->failed);
}

/** Tell the user of all failed endpoints; returns how many. */
unsigned uct_cxi_trig_ep_report_failed(uct_cxi_trig_iface_t *iface);

/** UCT's flush of an endpoint. */
ucs_status_t uct_cxi_trig_ep_flush(uct_ep_h ep, unsigned flags,
                                   uct_completion_t *comp);

/** UCT's fence of an endpoint: later operations wait for earlier ones. */
ucs_status_t uct_cxi_trig_ep_fence(uct_ep_h ep, unsigned flags);

/**
 * UCT's end of an endpoint whose peer may be well: what is in flight ends with
 * UCS_ERR_CANCELED, at once or, where it touches the user's memory, when the
 * provider has reported it, whatever it reports. What is started before
 * progress has told the error handler (UCS_ERR_ENDPOINT_TIMEOUT) ends then.
 * Deferred operations that were posted go on: they cannot be cancelled.
 */
ucs_status_t uct_cxi_trig_ep_invalidate(UCT_CXI_TRIG_INVALIDATE_ARGS);

#if UCT_CXI_TRIG_UCX_GE(1, 16)
/** UCT's question whether an endpoint leads to these addresses. */
int uct_cxi_trig_ep_is_connected(uct_ep_h ep,
                                 const uct_ep_is_connected_params_t *params);
#endif

/** UCT's check whether a peer is there: sends a probe, see cxi_trig_rma.h. */
ucs_status_t uct_cxi_trig_ep_check(uct_ep_h ep, unsigned flags,
                                   uct_completion_t *comp);

#endif
