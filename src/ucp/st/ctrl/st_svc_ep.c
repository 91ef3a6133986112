/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_svc_ep.c - what reaches a peer's service thread: endpoints of the UCP
 * worker that the service thread drives.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ctrl/st_ctrl.h"
#include "ctrl/st_leave.h"
#include "core/st_log.h"
#include "ctrl/st_notice.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "core/st_ucp.h"
#include "core/st_worker.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* How long the end of a worker waits until notices have left, whose receiver
 * may not be there, seconds */
#define UCP_ST_SVC_NOTICE_TIME 0.2

ucs_status_t ucp_st_svc_ep_connect(ucp_st_peer_t *peer, const void *address,
                                   size_t length)
{
    ucp_st_svc_ep_t *sep;

    if ((length == 0) || (ucp_st_svc(peer->worker)->status != UCS_OK)) {
        return UCS_OK; /* it is without */
    }
    sep = calloc(1, sizeof(*sep) + length);
    if (sep == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    sep->peer = peer;
    memcpy(sep->address, address, length);
    ucp_st_worker_lock(peer->worker);
    peer->svc_ep = sep;
    ucp_st_worker_unlock(peer->worker);
    return UCS_OK;
}

/* UCP's error callback: the peer is dead, or has closed its endpoint */
static void ucp_st_svc_ep_err_handler(void *arg, ucp_ep_h ep,
                                      ucs_status_t status)
{
    ucp_st_peer_t *peer    = arg;
    ucp_st_worker_h worker = peer->worker;

    (void)ep;
    ucp_st_worker_lock(worker);
    ucp_st_leave_lost(peer, status);
    ucp_st_worker_unlock(worker);
}

void ucp_st_svc_ep_lost_notice(ucp_st_peer_t *peer, ucs_status_t status)
{
    peer->svc_ep->notice_broken = 1;
    ucp_st_leave_lost(peer, status);
    if (peer->status != UCS_OK) {
        ucp_st_peer_closed(peer);
    }
}

static void ucp_st_svc_ep_notice_err_handler(void *arg, ucp_ep_h ep,
                                             ucs_status_t status)
{
    ucp_st_peer_t *peer    = arg;
    ucp_st_worker_h worker = peer->worker;

    (void)ep;
    ucp_st_worker_lock(worker);
    ucp_st_svc_ep_lost_notice(peer, status);
    ucp_st_worker_unlock(worker);
}

static ucs_status_t ucp_st_svc_ep_create(ucp_st_peer_t *peer,
                                         ucp_err_handler_cb_t cb,
                                         ucp_ep_h *ep_p)
{
    ucp_st_svc_ep_t *sep   = peer->svc_ep;
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address         = (const ucp_address_t*)sep->address,
        /* Not all that is fit for messages to oneself can tell errors */
        .err_mode        = peer->is_self ? UCP_ERR_HANDLING_MODE_NONE :
                                           UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = cb,
        .err_handler.arg = peer
    };

    return ucp_ep_create(ucp_st_svc(peer->worker)->ucp_worker, &params, ep_p);
}

/* The peer has been reached over the same transports before: what cannot be
 * reached any more, as later versions of UCX than 1.13 put it, is gone */
static ucs_status_t ucp_st_svc_ep_connect_status(ucs_status_t status)
{
    return (status == UCS_ERR_UNREACHABLE) ? UCS_ERR_CONNECTION_RESET :
                                             ucp_st_ucp_connect_status(status);
}

/* UCX would complain of a process that it is to connect with and that has
 * ended. The lock is held. */
static ucs_status_t ucp_st_svc_ep_is_there(ucp_st_peer_t *peer, ucp_ep_h ep)
{
    return ((ep == NULL) && ucp_st_process_is_dead(&peer->process)) ?
           UCS_ERR_CONNECTION_RESET : UCS_OK;
}

void ucp_st_svc_ep_renew_notice(ucp_st_peer_t *peer)
{
    ucp_st_svc_ep_t *sep = peer->svc_ep;

    sep->notice_broken = 0;
    sep->notice_stale  = (sep->notice_ep != NULL);
}

/* Close what had failed. The lock is not held. */
static void ucp_st_svc_ep_clean_notice(ucp_st_peer_t *peer)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_svc_ep_t *sep   = peer->svc_ep;
    ucp_ep_h ep            = NULL;

    ucp_st_worker_lock(worker);
    if (sep->notice_stale) {
        ep                = sep->notice_ep;
        sep->notice_ep    = NULL;
        sep->notice_stale = 0;
    }
    ucp_st_worker_unlock(worker);
    if (ep != NULL) {
        ucp_st_ucp_ep_close_later(ep, &ucp_st_svc(worker)->num_closes);
    }
}

ucs_status_t ucp_st_svc_ep_get_notice(ucp_st_peer_t *peer, ucp_ep_h *ep_p)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_svc_ep_t *sep   = peer->svc_ep;
    ucs_status_t status;

    ucp_st_svc_ep_clean_notice(peer);
    ucp_st_worker_lock(worker);
    *ep_p  = sep->notice_ep;
    status = sep->notice_broken ? UCS_ERR_CONNECTION_RESET :
                                  ucp_st_svc_ep_is_there(peer, *ep_p);
    ucp_st_worker_unlock(worker);
    if ((status != UCS_OK) || (*ep_p != NULL)) {
        return status;
    }
    status = ucp_st_svc_ep_create(peer, ucp_st_svc_ep_notice_err_handler,
                                  ep_p);
    if (status != UCS_OK) {
        ucs_diag("no notice reaches peer 0x%lx: %s", peer->uuid,
                 ucs_status_string(status));
        return ucp_st_svc_ep_connect_status(status);
    }
    ucp_st_worker_lock(worker);
    sep->notice_ep = *ep_p;
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

ucs_status_t ucp_st_svc_ep_get(ucp_st_peer_t *peer, ucp_ep_h *ep_p)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_svc_ep_t *sep   = peer->svc_ep;
    ucs_status_t status;

    ucp_st_worker_lock(worker);
    *ep_p  = sep->ep;
    status = (peer->status != UCS_OK) ? peer->status :
                                        ucp_st_svc_ep_is_there(peer, *ep_p);
    ucp_st_worker_unlock(worker);
    if ((status != UCS_OK) || (*ep_p != NULL)) {
        return status;
    }
    status = ucp_st_svc_ep_create(peer, ucp_st_svc_ep_err_handler, ep_p);
    if (status != UCS_OK) {
        ucs_error("lane 'host': failed to connect to peer 0x%lx: %s",
                  peer->uuid, ucs_status_string(status));
        return ucp_st_svc_ep_connect_status(status);
    }
    ucp_st_worker_lock(worker);
    sep->ep = *ep_p;
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

/* A message to a peer that is gone fails, and one that has lost this side hears
 * that it is waited for. Once a peer is gone its endpoint is closed: UCP ends
 * what it still does for operations with it, whose waits are released then. */
void ucp_st_svc_ep_check(ucp_st_peer_t *peer)
{
    ucp_st_svc_ep_t *sep = peer->svc_ep;

    if (sep->ep != NULL) {
        ucp_st_notice_ping(peer);
    }
    if ((peer->status != UCS_OK) && (sep->ep != NULL) && !sep->closing) {
        sep->closing = 1;
        ucs_list_add_tail(&ucp_st_svc(peer->worker)->closing, &sep->list);
        ucp_st_svc_wake(ucp_st_svc(peer->worker));
    }
}

/* Wait, not without bound, until all that was sent has left this process */
static void ucp_st_svc_ep_flush(ucp_st_svc_t *svc, ucp_ep_h ep,
                                double end)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request  = ucp_ep_flush_nbx(ep, &param);

    if (!UCS_PTR_IS_PTR(request)) {
        return;
    }
    while ((ucp_request_check_status(request) == UCS_INPROGRESS) &&
           (ucp_st_worker_now() < end)) {
        ucp_worker_progress(svc->ucp_worker);
        (void)sched_yield();
    }
    ucp_request_free(request);
}

/* UCP still works for something with that peer */
static int ucp_st_svc_ep_is_used(ucp_st_peer_t *peer)
{
    ucp_st_svc_t *svc = ucp_st_svc(peer->worker);
    int is_used       = 0;
    unsigned i;

    ucp_st_worker_lock(peer->worker);
    for (i = 0; i < svc->num_clients; ++i) {
        is_used |= svc->clients[i]->is_used(peer);
    }
    ucp_st_worker_unlock(peer->worker);
    return is_used;
}

/* End all that is under way with a peer, at the end of the worker */
static void ucp_st_svc_ep_end(ucp_st_peer_t *peer)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_svc_t *svc      = ucp_st_svc(worker);
    ucp_st_svc_ep_t *sep   = peer->svc_ep;

    ucp_st_svc_stop(svc);
    (void)ucp_st_svc_work(worker);
    if ((sep->ep != NULL) && (peer->status == UCS_OK)) {
        ucp_st_svc_ep_flush(svc, sep->ep, svc->stop_time);
    }
    if ((sep->notice_ep != NULL) && !sep->notice_broken) {
        ucp_st_svc_ep_flush(svc, sep->notice_ep,
                            ucp_st_worker_now() + UCP_ST_SVC_NOTICE_TIME);
    }
    ucp_st_ucp_ep_close(svc->ucp_worker, sep->notice_ep,
                        UCP_EP_CLOSE_FLAG_FORCE, svc->stop_time);
    sep->notice_ep = NULL;
    ucp_st_ucp_ep_close(svc->ucp_worker, sep->ep,
                        peer->is_self ? 0 : UCP_EP_CLOSE_FLAG_FORCE,
                        svc->stop_time);
    sep->ep = NULL;
    /* UCP ends what it does for a closed endpoint in its progress */
    while (ucp_st_svc_ep_is_used(peer) &&
           (ucp_st_worker_now() < svc->stop_time)) {
        (void)ucp_st_svc_work(worker);
        (void)sched_yield();
    }
    (void)ucp_st_svc_work(worker);
}

/* A peer that was never used may go any time, others at the end of the worker
 * only */
void ucp_st_svc_ep_disconnect(ucp_st_peer_t *peer)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_svc_ep_t *sep   = peer->svc_ep;
    int is_used;

    if (sep == NULL) {
        return;
    }
    ucp_st_worker_lock(worker);
    is_used = (sep->ep != NULL) || (sep->notice_ep != NULL) ||
              !ucs_list_is_empty(&peer->ops);
    ucp_st_worker_unlock(worker);
    if (is_used) {
        ucp_st_svc_ep_end(peer);
    }
    peer->svc_ep = NULL;
    free(sep);
}
