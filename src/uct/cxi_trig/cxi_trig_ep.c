/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_ep.c - endpoints: creation, flush, failure.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_ep.h"
#include "cxi_trig_addr.h"
#include "cxi_trig_cq.h"
#include "cxi_trig_pending.h"
#include "cxi_trig_rma.h"
#include "cxi_trig_tx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

#include <time.h>

/* How long the end of an endpoint waits for its operations, in seconds */
#define UCT_CXI_TRIG_EP_DRAIN 1.0


static void uct_cxi_trig_ep_drop_pending(uct_pending_req_t *req, void *arg)
{
    ucs_warn("endpoint %p is destroyed with pending request %p", arg, req);
}

static UCS_CLASS_INIT_FUNC(uct_cxi_trig_ep_t, const uct_ep_params_t *params)
{
    uct_cxi_trig_iface_t *iface = ucs_derived_of(params->iface,
                                                 uct_cxi_trig_iface_t);
    const char *fault;
    ucs_status_t status;

    UCT_EP_PARAMS_CHECK_DEV_IFACE_ADDRS(params);
    UCS_CLASS_CALL_SUPER_INIT(uct_base_ep_t, &iface->super);

    fault = uct_cxi_trig_addr_refusal(iface, params->dev_addr,
                                      params->iface_addr);
    if (fault != NULL) {
        ucs_error("address of a peer refused by cxi_trig: %s", fault);
        return UCS_ERR_UNREACHABLE;
    }

    status = uct_cxi_trig_peer_create(iface, params->iface_addr, &self->peer);
    if (status != UCS_OK) {
        return status;
    }

    self->peer->ep    = self;
    self->dispatching = 0;
    self->fence       = 0;
    self->status      = UCS_OK;
    self->reporting   = 0;
    ucs_arbiter_group_init(&self->pending);
    return UCS_OK;
}

#if UCT_CXI_TRIG_UCX_GE(1, 16)
int uct_cxi_trig_ep_is_connected(uct_ep_h ep,
                                 const uct_ep_is_connected_params_t *params)
{
    const uct_cxi_trig_ep_t *self = ucs_derived_of(ep, uct_cxi_trig_ep_t);

    UCT_EP_IS_CONNECTED_CHECK_DEV_IFACE_ADDRS(params);
    return uct_base_ep_is_connected(ep, params) &&
           uct_cxi_trig_addr_is_same(&self->peer->packed, params->iface_addr);
}
#endif

/* Seconds */
static double uct_cxi_trig_ep_now(void)
{
    struct timespec ts = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + (ts.tv_nsec * 1e-9);
}

/* When the endpoint is gone the user takes all its operations for ended, and
 * may free their memory. No provider can be told to leave that memory alone, so
 * this waits for the operations. With a live peer they end soon. */
static void uct_cxi_trig_ep_drain(uct_cxi_trig_ep_t *ep)
{
    uct_cxi_trig_peer_t *peer = ep->peer;
    double end;

    if (!uct_cxi_trig_tx_is_awaited(peer)) {
        return;
    }

    end = uct_cxi_trig_ep_now() + UCT_CXI_TRIG_EP_DRAIN;
    while ((ep->status == UCS_OK) && !peer->invalid &&
           uct_cxi_trig_tx_is_awaited(peer)) {
        if (uct_cxi_trig_ep_now() > end) {
            ucs_warn("endpoint %p is destroyed with operations that have not "
                     "ended in time, and may still use their memory", ep);
            /* They may, but with a peer that is slow only after the user has
             * freed what they complete */
            uct_cxi_trig_tx_abandon(peer);
            return;
        }
        uct_cxi_trig_cq_drain(peer->iface, peer);
    }
}

static UCS_CLASS_CLEANUP_FUNC(uct_cxi_trig_ep_t)
{
    uct_cxi_trig_pending_purge(&self->super.super, uct_cxi_trig_ep_drop_pending,
                               self);
    ucs_arbiter_group_cleanup(&self->pending);
    uct_cxi_trig_ep_drain(self);
    if (self->reporting) {
        ucs_list_del(&self->failed);
    }
    self->peer->ep = NULL;
    uct_cxi_trig_track_purge(&self->peer->track, UCS_ERR_CANCELED);
    if (self->peer->invalid) {
        (void)uct_cxi_trig_tx_cancel(self->peer);
    }
    uct_cxi_trig_peer_put(self->peer);
}

UCS_CLASS_DEFINE(uct_cxi_trig_ep_t, uct_base_ep_t);
UCS_CLASS_DEFINE_NEW_FUNC(uct_cxi_trig_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DEFINE_DELETE_FUNC(uct_cxi_trig_ep_t, uct_ep_t);

ucs_status_t uct_cxi_trig_ep_invalidate(UCT_CXI_TRIG_INVALIDATE_ARGS)
{
    uct_cxi_trig_ep_t *self   = ucs_derived_of(ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_peer_t *peer = self->peer;

    if ((self->status == UCS_OK) && !peer->invalid) {
        peer->invalid = 1;
        uct_cxi_trig_ep_schedule_report(self);
        /* Completions may destroy the endpoint */
        uct_cxi_trig_peer_get(peer);
        (void)uct_cxi_trig_tx_cancel(peer);
        uct_cxi_trig_peer_put(peer);
    }
    return UCS_OK;
}

/* What the error handler is told: of a key that is none any more what UCX's own
 * transports tell of it, as UCP takes keys back when an endpoint is closed.
 * Operations end with the cause itself. */
static ucs_status_t uct_cxi_trig_ep_told(ucs_status_t cause)
{
    return ((cause == UCS_ERR_IO_ERROR) || (cause == UCS_ERR_INVALID_ADDR)) ?
           UCS_ERR_CONNECTION_RESET : cause;
}

static void uct_cxi_trig_ep_report(uct_cxi_trig_iface_t *iface,
                                   uct_cxi_trig_ep_t *ep)
{
    ucs_status_t cause = ep->status;
    ucs_log_level_t level;
    ucs_status_t status;

    /* The handler may destroy the endpoint */
    status = uct_iface_handle_ep_err(&iface->super.super, &ep->super.super,
                                     uct_cxi_trig_ep_told(cause));
    level  = uct_base_iface_failure_log_level(&iface->super, status, cause);
    ucs_log(ucs_max(level, UCS_LOG_LEVEL_ERROR), /* Fatal would abort */
            "endpoint %p of cxi_trig has failed: %s", ep,
            ucs_status_string(cause));
}

/* What was started after it was invalidated ends, too. */
static void uct_cxi_trig_ep_report_invalid(uct_cxi_trig_iface_t *iface,
                                           uct_cxi_trig_ep_t *ep)
{
    uct_cxi_trig_peer_t *peer = ep->peer;

    if (ep->status == UCS_OK) {
        ep->status = UCS_ERR_ENDPOINT_TIMEOUT; /* As of a peer that is gone */
    }
    uct_cxi_trig_peer_get(peer);
    uct_cxi_trig_ep_report(iface, ep);
    (void)uct_cxi_trig_tx_cancel(peer);
    uct_cxi_trig_peer_put(peer);
}

unsigned uct_cxi_trig_ep_report_failed(uct_cxi_trig_iface_t *iface)
{
    unsigned count = 0;
    uct_cxi_trig_ep_t *ep;

    while (!ucs_list_is_empty(&iface->failed)) {
        ep            = ucs_list_extract_head(&iface->failed, uct_cxi_trig_ep_t,
                                              failed);
        ep->reporting = 0;
        if (ep->peer->invalid) {
            uct_cxi_trig_ep_report_invalid(iface, ep);
        } else {
            uct_cxi_trig_ep_report(iface, ep);
        }
        ++count;
    }
    return count;
}

ucs_status_t uct_cxi_trig_ep_flush(uct_ep_h uct_ep, unsigned flags,
                                   uct_completion_t *comp)
{
    uct_cxi_trig_ep_t *ep = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    ucs_status_t status;

    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        uct_cxi_trig_pending_purge(uct_ep, NULL, NULL);
        /* Memory, here and there, is free again once the provider says so */
        return uct_cxi_trig_tx_cancel(ep->peer) ?
               uct_cxi_trig_track_flush(&ep->peer->track, comp) : UCS_OK;
    }

    if (ep->status != UCS_OK) {
        return ep->status;
    }
    if (uct_cxi_trig_ep_is_blocked(ep)) {
        return UCS_ERR_NO_RESOURCE;
    }

    status = uct_cxi_trig_track_flush(&ep->peer->track, comp);
    if (status == UCS_OK) {
        UCT_TL_EP_STAT_FLUSH(&ep->super);
    } else if (status == UCS_INPROGRESS) {
        UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
    }
    return status;
}

ucs_status_t uct_cxi_trig_ep_fence(uct_ep_h uct_ep, unsigned flags)
{
    uct_cxi_trig_ep_t *ep = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);

    ep->fence = ep->peer->track.next;
    UCT_TL_EP_STAT_FENCE(&ep->super);
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_ep_check(uct_ep_h uct_ep, unsigned flags,
                                   uct_completion_t *comp)
{
    uct_cxi_trig_ep_t *ep = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    ucs_status_t status;

    UCT_CXI_TRIG_KEEPALIVE_CHECK(flags, comp);

    if (comp != NULL) { /* From 1.22 on: wants to know, of this very peer */
        return uct_cxi_trig_rma_probe(ep, comp);
    }
    if (!ucs_list_is_empty(&ep->peer->track.ops)) {
        return UCS_OK; /* Something in flight tells as well */
    }

    status = uct_cxi_trig_rma_probe(ep, NULL);
    /* Asked too often, or it has failed: the next check, or the error handler,
     * tells */
    return (status == UCS_ERR_NO_MEMORY) ? status : UCS_OK;
}
