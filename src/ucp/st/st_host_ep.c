/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_ep.c - what reaches a peer's service thread: endpoints of the UCP
 * worker that the service thread drives.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_host_dev.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_notice.h"
#include "st_op.h"
#include "st_peer.h"
#include "st_ucp.h"
#include "st_worker.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* How long the end of a worker waits until notices have left, whose receiver
 * may not be there, seconds */
#define UCP_ST_HOST_NOTICE_TIME 0.2

ucs_status_t ucp_st_host_dev_connect(ucp_st_peer_t *peer, const void *address,
                                     size_t length)
{
    ucp_st_host_ep_t *hep;

    if ((length == 0) || (peer->worker->host.status != UCS_OK)) {
        return UCS_OK; /* it is without */
    }
    hep = calloc(1, sizeof(*hep) + length);
    if (hep == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    hep->peer = peer;
    memcpy(hep->address, address, length);
    peer->host_ep = hep;
    return UCS_OK;
}

/* UCP's error callback: the peer is dead, or has closed its endpoint */
static void ucp_st_host_dev_err_handler(void *arg, ucp_ep_h ep,
                                        ucs_status_t status)
{
    ucp_st_peer_t *peer    = arg;
    ucp_st_worker_h worker = peer->worker;

    (void)ep;
    ucp_st_worker_lock(worker);
    ucp_st_leave_lost(peer, status);
    ucp_st_worker_unlock(worker);
}

void ucp_st_host_dev_notice_lost(ucp_st_peer_t *peer, ucs_status_t status)
{
    peer->host_ep->notice_broken = 1;
    ucp_st_leave_lost(peer, status);
    if (peer->status != UCS_OK) {
        ucp_st_peer_closed(peer);
    }
}

static void ucp_st_host_dev_notice_err_handler(void *arg, ucp_ep_h ep,
                                               ucs_status_t status)
{
    ucp_st_peer_t *peer    = arg;
    ucp_st_worker_h worker = peer->worker;

    (void)ep;
    ucp_st_worker_lock(worker);
    ucp_st_host_dev_notice_lost(peer, status);
    ucp_st_worker_unlock(worker);
}

static ucs_status_t ucp_st_host_dev_ep_create(ucp_st_peer_t *peer,
                                              ucp_err_handler_cb_t cb,
                                              ucp_ep_h *ep_p)
{
    ucp_st_host_ep_t *hep  = peer->host_ep;
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address         = (const ucp_address_t*)hep->address,
        /* Not all that is fit for messages to oneself can tell errors */
        .err_mode        = peer->is_self ? UCP_ERR_HANDLING_MODE_NONE :
                                           UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = cb,
        .err_handler.arg = peer
    };

    return ucp_ep_create(peer->worker->host.ucp_worker, &params, ep_p);
}

/* The peer has been reached over the same transports before: what cannot be
 * reached any more, as later versions of UCX than 1.13 put it, is gone */
static ucs_status_t ucp_st_host_dev_connect_status(ucs_status_t status)
{
    return (status == UCS_ERR_UNREACHABLE) ? UCS_ERR_CONNECTION_RESET :
                                             ucp_st_ucp_connect_status(status);
}

/* UCX would complain of a process that it is to connect with and that has
 * ended. The lock is held. */
static ucs_status_t ucp_st_host_dev_is_there(ucp_st_peer_t *peer, ucp_ep_h ep)
{
    return ((ep == NULL) && ucp_st_process_is_dead(&peer->process)) ?
           UCS_ERR_CONNECTION_RESET : UCS_OK;
}

void ucp_st_host_dev_notice_renew(ucp_st_peer_t *peer)
{
    ucp_st_host_ep_t *hep = peer->host_ep;

    hep->notice_broken = 0;
    hep->notice_stale  = (hep->notice_ep != NULL);
}

/* Close what had failed. The lock is not held. */
static void ucp_st_host_dev_notice_clean(ucp_st_peer_t *peer)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_host_ep_t *hep  = peer->host_ep;
    ucp_ep_h ep            = NULL;

    ucp_st_worker_lock(worker);
    if (hep->notice_stale) {
        ep                = hep->notice_ep;
        hep->notice_ep    = NULL;
        hep->notice_stale = 0;
    }
    ucp_st_worker_unlock(worker);
    if (ep != NULL) {
        ucp_st_ep_close(worker->host.ucp_worker, ep, UCP_EP_CLOSE_FLAG_FORCE);
    }
}

ucs_status_t ucp_st_host_dev_notice_ep(ucp_st_peer_t *peer, ucp_ep_h *ep_p)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_host_ep_t *hep  = peer->host_ep;
    ucs_status_t status;

    ucp_st_host_dev_notice_clean(peer);
    ucp_st_worker_lock(worker);
    *ep_p  = hep->notice_ep;
    status = hep->notice_broken ? UCS_ERR_CONNECTION_RESET :
                                  ucp_st_host_dev_is_there(peer, *ep_p);
    ucp_st_worker_unlock(worker);
    if ((status != UCS_OK) || (*ep_p != NULL)) {
        return status;
    }
    status = ucp_st_host_dev_ep_create(peer, ucp_st_host_dev_notice_err_handler,
                                       ep_p);
    if (status != UCS_OK) {
        ucs_diag("no notice reaches peer 0x%lx: %s", peer->uuid,
                 ucs_status_string(status));
        return ucp_st_host_dev_connect_status(status);
    }
    ucp_st_worker_lock(worker);
    hep->notice_ep = *ep_p;
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

ucs_status_t ucp_st_host_dev_get_ep(ucp_st_peer_t *peer, ucp_ep_h *ep_p)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_host_ep_t *hep  = peer->host_ep;
    ucs_status_t status;

    ucp_st_worker_lock(worker);
    *ep_p  = hep->ep;
    status = (peer->status != UCS_OK) ? peer->status :
                                        ucp_st_host_dev_is_there(peer, *ep_p);
    ucp_st_worker_unlock(worker);
    if ((status != UCS_OK) || (*ep_p != NULL)) {
        return status;
    }
    status = ucp_st_host_dev_ep_create(peer, ucp_st_host_dev_err_handler, ep_p);
    if (status != UCS_OK) {
        ucs_error("lane 'host': failed to connect to peer 0x%lx: %s",
                  peer->uuid, ucs_status_string(status));
        return ucp_st_host_dev_connect_status(status);
    }
    ucp_st_worker_lock(worker);
    hep->ep = *ep_p;
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

/* A message to a peer that is gone fails, and one that has lost this side hears
 * that it is waited for. Once a peer is gone its endpoint is closed: UCP ends
 * what it still does for operations with it, whose waits are released then. */
void ucp_st_host_dev_check(ucp_st_peer_t *peer)
{
    ucp_st_host_ep_t *hep = peer->host_ep;

    if (hep->ep != NULL) {
        ucp_st_notice_ping(peer);
    }
    if ((peer->status != UCS_OK) && (hep->ep != NULL) && !hep->closing) {
        hep->closing = 1;
        ucs_list_add_tail(&peer->worker->host.closing, &hep->list);
        ucp_st_host_dev_wake(&peer->worker->host);
    }
}

/* Wait, not without bound, until all that was sent has left this process */
static void ucp_st_host_dev_flush(ucp_st_host_dev_t *dev, ucp_ep_h ep,
                                  double end)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request  = ucp_ep_flush_nbx(ep, &param);

    if (!UCS_PTR_IS_PTR(request)) {
        return;
    }
    while ((ucp_request_check_status(request) == UCS_INPROGRESS) &&
           (ucp_st_worker_now() < end)) {
        ucp_worker_progress(dev->ucp_worker);
        (void)sched_yield();
    }
    ucp_request_free(request);
}

static void ucp_st_host_dev_close_ep(ucp_st_host_dev_t *dev,
                                     ucp_st_host_ep_t *hep)
{
    if (hep->ep != NULL) {
        ucp_st_ep_close(dev->ucp_worker, hep->ep,
                        hep->peer->is_self ? 0 : UCP_EP_CLOSE_FLAG_FORCE);
        hep->ep = NULL;
    }
}

static void ucp_st_host_dev_end_notices(ucp_st_host_dev_t *dev,
                                        ucp_st_host_ep_t *hep)
{
    if (hep->notice_ep == NULL) {
        return;
    }
    if (!hep->notice_broken) {
        ucp_st_host_dev_flush(dev, hep->notice_ep,
                              ucp_st_worker_now() + UCP_ST_HOST_NOTICE_TIME);
    }
    ucp_st_ep_close(dev->ucp_worker, hep->notice_ep, UCP_EP_CLOSE_FLAG_FORCE);
    hep->notice_ep = NULL;
}

/* UCP still works for an operation with that peer */
static int ucp_st_host_dev_is_used(ucp_st_peer_t *peer)
{
    int is_used;
    ucp_st_op_t *op;

    ucp_st_worker_lock(peer->worker);
    is_used = !ucs_list_is_empty(&peer->rma_ops);
    ucs_list_for_each(op, &peer->ops, peer_list) {
        is_used |= (op->host != NULL) &&
                   (op->host->is_moving || op->host->is_sending);
    }
    ucp_st_worker_unlock(peer->worker);
    return is_used;
}

/* End all that is under way with a peer, at the end of the worker */
static void ucp_st_host_dev_end(ucp_st_peer_t *peer)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_host_dev_t *dev = &worker->host;
    ucp_st_host_ep_t *hep  = peer->host_ep;

    ucp_st_host_dev_stop(dev);
    (void)ucp_st_host_dev_work(worker);
    if ((hep->ep != NULL) && (peer->status == UCS_OK)) {
        ucp_st_host_dev_flush(dev, hep->ep, dev->stop_time);
    }
    ucp_st_host_dev_end_notices(dev, hep);
    ucp_st_host_dev_close_ep(dev, hep);
    /* UCP ends what it does for a closed endpoint in its progress */
    while (ucp_st_host_dev_is_used(peer) &&
           (ucp_st_worker_now() < dev->stop_time)) {
        (void)ucp_st_host_dev_work(worker);
        (void)sched_yield();
    }
    (void)ucp_st_host_dev_work(worker);
}

/* A peer that was never used may go any time, others at the end of the worker
 * only */
void ucp_st_host_dev_disconnect(ucp_st_peer_t *peer)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_host_ep_t *hep  = peer->host_ep;
    int is_used;

    if (hep == NULL) {
        return;
    }
    ucp_st_worker_lock(worker);
    is_used = (hep->ep != NULL) || (hep->notice_ep != NULL) ||
              !ucs_list_is_empty(&peer->ops);
    ucp_st_worker_unlock(worker);
    if (is_used) {
        ucp_st_host_dev_end(peer);
    }
    peer->host_ep = NULL;
    free(hep);
}
