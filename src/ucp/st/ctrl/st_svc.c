/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_svc.c - the UCP worker that the service thread drives, and its endpoints.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ctrl/st_svc.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_ucp.h"
#include "core/st_worker.h"
#include "ctrl/st_ctrl.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Rounds until other clients of the service thread have their turn */
#define UCP_ST_SVC_MAX_ROUNDS 64

/* UCP may refuse to be slept on although there is nothing to do: a transport
 * waits for a peer that does not read. After so many times the thread looks
 * only every millisecond. */
#define UCP_ST_SVC_MAX_IDLE 100

/* How long the end of a worker waits until all messages have left, seconds */
#define UCP_ST_SVC_FLUSH_TIME 5.0

/* The same for notices, whose receiver may not be there, seconds */
#define UCP_ST_SVC_NOTICE_TIME 0.2

void ucp_st_svc_init(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);

    ucs_list_head_init(&svc->closing);
    ucs_list_head_init(&svc->notices);
    svc->status = UCS_INPROGRESS;
}

void ucp_st_svc_wake(ucp_st_svc_t *svc)
{
    if (!svc->is_awake) {
        ucp_st_service_wake(&svc->service);
    }
}

/* One round of all work; how much there was. In the service thread, or in the
 * one that has called ucp_st_svc_stop(); the lock is not held. */
static unsigned ucp_st_svc_work(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);
    ucp_st_svc_ep_t *sep;
    unsigned count, i;
    ucp_ep_h ep;

    ucp_st_worker_lock(worker);
    svc->is_awake = 1;
    ucp_st_worker_unlock(worker);
    count = ucp_worker_progress(svc->ucp_worker);

    ucp_st_worker_lock(worker);
    /* Endpoints of peers that are gone: closing them ends UCP's work on them */
    while (!ucs_list_is_empty(&svc->closing)) {
        sep = ucs_list_extract_head(&svc->closing, ucp_st_svc_ep_t, list);
        sep->closing = 0;
        ep           = sep->ep;
        sep->ep      = NULL;
        ucp_st_worker_unlock(worker);
        ucp_st_ucp_ep_close_later(ep, &svc->num_closes);
        ++count;
        ucp_st_worker_lock(worker);
    }
    for (i = 0; i < svc->num_clients; ++i) {
        count += svc->clients[i]->work(worker);
    }
    /* While the lock was not held others may have added to the lists without a
     * wake-up. Clients count theirs. */
    count += !ucs_list_is_empty(&svc->closing) ||
             !ucs_list_is_empty(&svc->notices);
    svc->is_awake = (count > 0);
    ucp_st_worker_unlock(worker);
    return count;
}

/* In the service thread. UCP is armed after a round that found nothing: later
 * events make its descriptor readable, or wake the client. */
static int ucp_st_svc_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_svc_t *svc      = ucp_st_svc(worker);
    unsigned rounds        = 0;

    while (ucp_st_svc_work(worker) > 0) {
        svc->idle = 0;
        if (++rounds == UCP_ST_SVC_MAX_ROUNDS) {
            return 0;
        }
    }
    if (svc->num_closes > 0) {
        return 1; /* UCP may not make its descriptor readable at their end */
    }
    if (ucp_worker_arm(svc->ucp_worker) == UCS_OK) {
        svc->idle = 0;
        return -1;
    }
    return (++svc->idle < UCP_ST_SVC_MAX_IDLE) ? 0 : 1;
}

ucs_status_t ucp_st_svc_set_handler(ucp_st_worker_h worker, unsigned id,
                                    unsigned flags, ucp_am_recv_callback_t cb)
{
    return ucp_st_ucp_set_handler(ucp_st_svc(worker)->ucp_worker, id, flags, cb,
                                  worker);
}

void ucp_st_svc_add_client(ucp_st_svc_t *svc,
                           const ucp_st_svc_client_t *client)
{
    svc->clients[svc->num_clients++] = client;
}

static ucs_status_t ucp_st_svc_am_handler(void *arg, const void *header,
                                          size_t header_length, void *data,
                                          size_t length,
                                          const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;

    ucp_st_worker_lock(worker);
    if (ucp_st_svc(worker)->is_served) { /* operations and peers still exist */
        ucp_st_ctrl_up.notice(worker, header, header_length);
    }
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

static ucs_status_t ucp_st_svc_create(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc          = ucp_st_svc(worker);
    ucp_worker_params_t params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED
    };
    ucs_status_t status;

    status = ucp_st_ucp_context_create(UCP_FEATURE_AM | UCP_FEATURE_WAKEUP, 1,
                                       "ucp_st_host", &svc->context);
    if (status != UCS_OK) {
        goto err;
    }
    status = ucp_worker_create(svc->context, &params, &svc->ucp_worker);
    if (status != UCS_OK) {
        goto err_context;
    }
    status = ucp_st_ucp_drop_all(svc->ucp_worker, UCP_ST_SVC_AM_LAST);
    if (status != UCS_OK) {
        goto err_worker;
    }
    status = ucp_st_svc_set_handler(worker, UCP_ST_SVC_AM_NOTICE, 0,
                                    ucp_st_svc_am_handler);
    if (status != UCS_OK) {
        goto err_worker;
    }
    status = ucp_worker_get_efd(svc->ucp_worker, &svc->service.fds[0]);
    if (status != UCS_OK) {
        goto err_worker;
    }
    status = ucp_worker_get_address(svc->ucp_worker, &svc->address,
                                    &svc->address_length);
    if (status != UCS_OK) {
        goto err_worker;
    }
    return UCS_OK;

err_worker:
    ucp_worker_destroy(svc->ucp_worker);
err_context:
    ucp_cleanup(svc->context);
err:
    return status;
}

ucs_status_t ucp_st_svc_open(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);

    if (svc->status == UCS_INPROGRESS) {
        svc->status = ucp_st_svc_create(worker);
    }
    return svc->status;
}

void ucp_st_svc_close(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);

    if (svc->status == UCS_OK) {
        ucp_worker_release_address(svc->ucp_worker, svc->address);
        ucp_worker_destroy(svc->ucp_worker);
        ucp_cleanup(svc->context);
    }
}

ucs_status_t ucp_st_svc_start(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);
    ucs_status_t status;

    if (svc->status != UCS_OK) {
        return UCS_OK; /* the worker goes on without it */
    }
    svc->service.serve   = ucp_st_svc_serve;
    svc->service.arg     = worker;
    svc->service.num_fds = 1;
    svc->is_served       = 1;
    status               = ucp_st_service_add(&svc->service);
    if (status != UCS_OK) {
        svc->is_served = 0;
    }
    return status;
}

void ucp_st_svc_stop(ucp_st_svc_t *svc)
{
    if (svc->is_served) {
        ucp_st_service_remove(&svc->service);
        svc->is_served = 0;
        svc->stop_time = ucp_st_worker_now() + UCP_ST_SVC_FLUSH_TIME;
    }
}

size_t ucp_st_svc_address_length(ucp_st_worker_h worker)
{
    ucp_st_svc_t *svc = ucp_st_svc(worker);

    return (svc->status == UCS_OK) ? svc->address_length : 0;
}

void ucp_st_svc_address_pack(ucp_st_worker_h worker, void *buffer)
{
    memcpy(buffer, ucp_st_svc(worker)->address,
           ucp_st_svc_address_length(worker));
}

ucs_status_t ucp_st_svc_ep_connect(ucp_st_peer_t *peer, const void *address,
                                   size_t length)
{
    ucp_st_svc_ep_t *sep;

    if ((length == 0) || (ucp_st_svc(peer->worker)->status != UCS_OK) ||
        (peer->svc_ep != NULL)) {
        return UCS_OK; /* one side has no such UCP worker, or it is known */
    }
    sep = calloc(1, sizeof(*sep) + length);
    if (sep == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    memcpy(sep->address, address, length);
    ucp_st_worker_lock(peer->worker);
    peer->svc_ep = sep;
    ucp_st_worker_unlock(peer->worker);
    return UCS_OK;
}

void ucp_st_svc_ep_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ucp_st_peer_t *peer = arg;

    ucp_st_worker_lock(peer->worker);
    ucp_st_ctrl_up.lost(peer, status);
    ucp_st_worker_unlock(peer->worker);
}

/* The same of an endpoint for notices */
static void ucp_st_svc_ep_notice_failed(void *arg, ucp_ep_h ep,
                                        ucs_status_t status)
{
    ucp_st_peer_t *peer = arg;

    ucp_st_worker_lock(peer->worker);
    ucp_st_ctrl_up.lost_notice(peer, status);
    ucp_st_worker_unlock(peer->worker);
}

ucs_status_t ucp_st_svc_ep_get(ucp_st_peer_t *peer, ucp_st_svc_ep_type_t type,
                               ucp_ep_h *ep_p)
{
    int is_notice          = (type == UCP_ST_SVC_EP_NOTICE);
    ucp_st_worker_h worker = peer->worker;
    ucp_st_svc_t *svc      = ucp_st_svc(worker);
    ucp_st_svc_ep_t *sep   = peer->svc_ep;
    ucp_ep_h *place        = is_notice ? &sep->notice_ep : &sep->ep;
    ucp_ep_h stale         = NULL;
    ucs_status_t status    = UCS_OK;
    ucp_ep_h ep;

    ucp_st_worker_lock(worker);
    if (is_notice && sep->notice_stale) {
        stale             = sep->notice_ep;
        sep->notice_ep    = NULL;
        sep->notice_stale = 0;
    }
    ep = *place;
    if (is_notice && sep->notice_broken) {
        status = UCS_ERR_CONNECTION_RESET;
    } else if (!is_notice && (peer->status != UCS_OK)) {
        status = peer->status;
    } else if (!is_notice && ucp_st_peer_is_closing(peer)) {
        status = UCS_ERR_CANCELED;
    } else if ((ep == NULL) && ucp_st_process_is_dead(&peer->process)) {
        /* UCX would log that it cannot connect */
        status = UCS_ERR_CONNECTION_RESET;
    }
    ucp_st_worker_unlock(worker);
    if (stale != NULL) {
        ucp_st_ucp_ep_close_later(stale, &svc->num_closes);
    }
    if ((status != UCS_OK) || (ep != NULL)) {
        *ep_p = ep;
        return status;
    }
    status = ucp_st_ucp_ep_create(svc->ucp_worker, sep->address,
                                  peer->is_self ? NULL :
                                  is_notice ? ucp_st_svc_ep_notice_failed :
                                              ucp_st_svc_ep_failed, peer, &ep);
    if (status != UCS_OK) {
        ucs_log(is_notice ? UCS_LOG_LEVEL_DIAG : UCS_LOG_LEVEL_ERROR,
                "failed to connect to the service thread of peer 0x%lx: %s",
                peer->uuid, ucs_status_string(status));
        /* The peer was reached over the same transports before. UCX after 1.13
         * says "unreachable" of one that is gone. */
        return (status == UCS_ERR_UNREACHABLE) ?
               UCS_ERR_CONNECTION_RESET : ucp_st_ucp_connect_status(status);
    }
    ucp_st_worker_lock(worker);
    *place = ep;
    ucp_st_worker_unlock(worker);
    *ep_p = ep;
    return UCS_OK;
}

/* Wait until `end` at most for all that was sent to leave this process */
static void ucp_st_svc_ep_flush(ucp_st_svc_t *svc, ucp_ep_h ep, double end)
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

/* Non-zero while UCP works on something with that peer */
static int ucp_st_svc_ep_is_used(ucp_st_peer_t *peer)
{
    ucp_st_svc_t *svc = ucp_st_svc(peer->worker);
    int is_used;
    unsigned i;

    ucp_st_worker_lock(peer->worker);
    is_used = 0;
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
    do { /* Nobody posts notices any more */
        (void)ucp_st_svc_work(worker);
    } while (!ucs_list_is_empty(&svc->notices));
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
    /* UCP ends its work for a closed endpoint in its progress */
    while (ucp_st_svc_ep_is_used(peer) &&
           (ucp_st_worker_now() < svc->stop_time)) {
        (void)ucp_st_svc_work(worker);
        (void)sched_yield();
    }
    (void)ucp_st_svc_work(worker);
}

void ucp_st_svc_ep_disconnect(ucp_st_peer_t *peer)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_svc_ep_t *sep   = peer->svc_ep;

    if (sep == NULL) {
        return;
    }
    ucp_st_worker_lock(worker);
    if ((sep->ep != NULL) || (sep->notice_ep != NULL) ||
        (sep->num_notices > 0) || !ucs_list_is_empty(&peer->ops)) {
        ucp_st_worker_unlock(worker);
        ucp_st_svc_ep_end(peer);
        ucp_st_worker_lock(worker);
    }
    /* In one go with the question, as the service thread may still serve other
     * peers, and answer this one until here */
    peer->svc_ep = NULL;
    ucp_st_worker_unlock(worker);
    free(sep);
}
