/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_net.c - the UCP worker that the service thread drives, and its endpoints.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ctrl/st_net.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_ucp.h"
#include "core/st_worker.h"
#include "ctrl/st_ctrl.h"

#include <ucs_backoff.h>

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* Rounds until other clients of the service thread have their turn */
#define UCP_ST_NET_MAX_ROUNDS 64

/* UCP may refuse to be slept on although there is nothing to do: a transport
 * waits for a peer that does not read. After so many times the thread looks
 * only every millisecond. */
#define UCP_ST_NET_MAX_IDLE 100

/* How long the end of a worker waits for UCP to close endpoints, behind the
 * time for what is to be sent, seconds */
#define UCP_ST_NET_CLOSE_TIME 0.5

void ucp_st_net_wake(ucp_st_worker_h worker)
{
    ucp_st_net_t *net = ucp_st_net(worker);

    if (!net->is_awake) {
        ucp_st_service_wake(&net->service);
    }
}

/* Have the service thread make or close the peer's endpoint. The lock is
 * held. */
static void ucp_st_net_list(ucp_st_peer_t *peer)
{
    ucp_st_net_peer_t *self = ucp_st_net_peer(peer);

    if (!self->is_listed) {
        self->is_listed = 1;
        ucs_list_add_tail(&ucp_st_net(peer->worker)->work, &self->list);
        ucp_st_net_wake(peer->worker);
    }
}

/* Close the endpoint that is to be closed. In the service thread, without the
 * lock. */
static void ucp_st_net_close_old(ucp_st_peer_t *peer)
{
    ucp_st_net_peer_t *self = ucp_st_net_peer(peer);
    ucp_ep_h ep;

    ucp_st_worker_lock(peer->worker);
    ep           = self->old_ep;
    self->old_ep = NULL;
    ucp_st_worker_unlock(peer->worker);
    if (ep != NULL) {
        ucp_st_ucp_ep_close_later(ep, &ucp_st_net(peer->worker)->num_closes);
    }
}

/* Make and close endpoints; how many peers there were. The lock is held, and
 * released meanwhile. */
static unsigned ucp_st_net_work_eps(ucp_st_worker_h worker)
{
    ucp_st_net_t *net = ucp_st_net(worker);
    unsigned count    = 0;
    ucp_st_net_peer_t *self;
    int is_wanted;
    ucp_ep_h ep;

    while (!ucs_list_is_empty(&net->work)) {
        self            = ucs_list_extract_head(&net->work, ucp_st_net_peer_t,
                                                list);
        is_wanted       = self->is_wanted;
        self->is_listed = 0;
        self->is_wanted = 0;
        ucp_st_worker_unlock(worker);
        ucp_st_net_close_old(self->peer);
        if (is_wanted) {
            (void)ucp_st_net_ep_get(self->peer, UCP_ST_NET_USE_DATA, &ep);
        }
        ++count;
        ucp_st_worker_lock(worker);
    }
    return count;
}

/* One round of all work; how much there was. In the service thread, or in the
 * one that has called ucp_st_net_stop(); the lock is not held. */
static unsigned ucp_st_net_work(ucp_st_worker_h worker)
{
    ucp_st_net_t *net = ucp_st_net(worker);
    unsigned count, i;

    ucp_st_worker_lock(worker);
    net->is_awake = 1;
    ++net->round;
    ucp_st_worker_unlock(worker);
    count = ucp_worker_progress(net->ucp_worker);

    ucp_st_worker_lock(worker);
    count += ucp_st_ctrl_up.settle(worker, net->round, count == 0);
    count += ucp_st_net_work_eps(worker);
    for (i = 0; i < net->num_clients; ++i) {
        count += net->clients[i]->work(worker);
    }
    /* While the lock was not held others may have added to the list without a
     * wake-up. Clients count theirs. */
    count        += !ucs_list_is_empty(&net->work);
    net->is_awake = (count > 0);
    ucp_st_worker_unlock(worker);
    return count;
}

/* In the service thread. UCP is armed after a round that found nothing: later
 * events make its descriptor readable, or wake the client. */
static int ucp_st_net_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_net_t *net      = ucp_st_net(worker);
    unsigned rounds        = 0;

    while (ucp_st_net_work(worker) > 0) {
        net->idle = 0;
        if (++rounds == UCP_ST_NET_MAX_ROUNDS) {
            return 0;
        }
    }
    if (net->num_closes > 0) {
        return 1; /* UCP may not make its descriptor readable at their end */
    }
    if (ucp_worker_arm(net->ucp_worker) == UCS_OK) {
        net->idle = 0;
        return -1;
    }
    return (++net->idle < UCP_ST_NET_MAX_IDLE) ? 0 : 1;
}

ucs_status_t ucp_st_net_set_handler(ucp_st_worker_h worker, unsigned id,
                                    unsigned flags, ucp_am_recv_callback_t cb)
{
    return ucp_st_ucp_set_handler(ucp_st_net(worker)->ucp_worker, id, flags, cb,
                                  worker);
}

void ucp_st_net_add_client(ucp_st_worker_h worker,
                           const ucp_st_net_client_t *client)
{
    ucp_st_net_t *net = ucp_st_net(worker);

    net->clients[net->num_clients++] = client;
}

ucs_status_t ucp_st_net_open(ucp_st_worker_h worker)
{
    ucp_st_net_t *net          = ucp_st_net(worker);
    ucp_worker_params_t params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED
    };
    ucs_status_t status;

    status = ucp_st_ucp_context_create(UCP_FEATURE_AM | UCP_FEATURE_WAKEUP, 1,
                                       "ucp_st_host", &net->context);
    if (status != UCS_OK) {
        goto err;
    }
    status = ucp_worker_create(net->context, &params, &net->ucp_worker);
    if (status != UCS_OK) {
        goto err_context;
    }
    status = ucp_st_ucp_drop_all(net->ucp_worker, UCP_ST_NET_AM_LAST);
    if (status != UCS_OK) {
        goto err_worker;
    }
    status = ucp_worker_get_efd(net->ucp_worker, &net->service.fds[0]);
    if (status != UCS_OK) {
        goto err_worker;
    }
    status = ucp_worker_get_address(net->ucp_worker, &net->address,
                                    &net->address_length);
    if (status != UCS_OK) {
        goto err_worker;
    }
    return UCS_OK;

err_worker:
    ucp_worker_destroy(net->ucp_worker);
    net->ucp_worker = NULL;
err_context:
    ucp_cleanup(net->context);
err:
    ucs_error("failed to make a UCP worker for the service thread: %s",
              ucs_status_string(status));
    return status;
}

void ucp_st_net_close(ucp_st_worker_h worker)
{
    ucp_st_net_t *net = ucp_st_net(worker);

    if (net->ucp_worker != NULL) {
        ucp_worker_release_address(net->ucp_worker, net->address);
        ucp_worker_destroy(net->ucp_worker);
        ucp_cleanup(net->context);
    }
}

ucs_status_t ucp_st_net_start(ucp_st_worker_h worker)
{
    ucp_st_net_t *net = ucp_st_net(worker);
    ucs_status_t status;

    net->service.serve   = ucp_st_net_serve;
    net->service.arg     = worker;
    net->service.num_fds = 1;
    net->is_served       = 1;
    status               = ucp_st_service_add(&net->service);
    if (status != UCS_OK) {
        net->is_served = 0;
    }
    return status;
}

void ucp_st_net_stop(ucp_st_worker_h worker)
{
    ucp_st_net_t *net = ucp_st_net(worker);

    if (net->is_served) {
        ucp_st_service_remove(&net->service);
        net->is_served = 0;
        net->stop_time = ucs_max(ucp_st_worker_now() + UCP_ST_NET_CLOSE_TIME,
                                 worker->send_end);
    }
}

void ucp_st_net_drop_ep(ucp_st_peer_t *peer)
{
    ucp_st_net_peer_t *self = ucp_st_net_peer(peer);

    if (self->ep != NULL) {
        self->old_ep = self->ep;
        self->ep     = NULL;
        ucp_st_net_list(peer);
    }
    self->status = UCS_INPROGRESS;
}

ucs_status_t ucp_st_net_connect(ucp_st_peer_t *peer, const void *address,
                                size_t length)
{
    ucp_st_net_peer_t *self = ucp_st_net_peer(peer);
    void *copy;

    ucp_st_worker_lock(peer->worker);
    if (self->address == NULL) {
        copy = malloc(length);
        if (copy == NULL) {
            ucp_st_worker_unlock(peer->worker);
            return UCS_ERR_NO_MEMORY;
        }
        self->address = memcpy(copy, address, length);
    }
    if ((self->status != UCS_OK) && !peer->is_self) {
        ucp_st_net_drop_ep(peer);
        self->is_wanted = 1;
        ucp_st_net_list(peer);
    }
    ucp_st_ctrl_list(peer); /* what waits for the address */
    ucp_st_worker_unlock(peer->worker);
    return UCS_OK;
}

ucs_status_t ucp_st_net_connect_status(ucp_st_peer_t *peer)
{
    return peer->is_self ? UCS_OK : ucp_st_net_peer(peer)->status;
}

static void ucp_st_net_ep_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ucp_st_peer_t *peer     = arg;
    ucp_st_net_peer_t *self = ucp_st_net_peer(peer);

    ucp_st_worker_lock(peer->worker);
    if (self->ep == ep) { /* else it is being closed */
        self->status = status;
        ucp_st_ctrl_up.lost(peer, status);
    }
    ucp_st_worker_unlock(peer->worker);
}

/* Why the peer's endpoint is not for that use, or UCS_OK. The lock is held. */
static ucs_status_t ucp_st_net_check_use(ucp_st_peer_t *peer,
                                         ucp_st_net_use_t use)
{
    switch (use) {
    case UCP_ST_NET_USE_DATA:
        return (peer->state == UCP_ST_PEER_LEFT) ? UCS_ERR_CANCELED :
                                                   peer->status;
    case UCP_ST_NET_USE_FRAME:
        return ((peer->state == UCP_ST_PEER_GONE) &&
                !ucp_st_ctrl_peer(peer)->is_ending) ? UCS_ERR_CANCELED :
                                                      UCS_OK;
    default:
        return UCS_OK;
    }
}

/* Make the endpoint, unless the peer was declared gone meanwhile. In the
 * service thread, without the lock. */
static ucs_status_t ucp_st_net_ep_make(ucp_st_peer_t *peer,
                                       ucp_st_net_use_t use, ucp_ep_h *ep_p)
{
    ucp_st_net_peer_t *self = ucp_st_net_peer(peer);
    ucs_status_t status;

    status = ucp_st_ucp_ep_create(ucp_st_net(peer->worker)->ucp_worker,
                                  self->address, ucp_st_net_ep_failed, peer,
                                  ep_p);
    ucp_st_worker_lock(peer->worker);
    if (status != UCS_OK) {
        ucs_diag("failed to connect to the service thread of peer 0x%lx: %s",
                 peer->uuid, ucs_status_string(status));
        self->status = status;
        *ep_p        = NULL;
    } else {
        status = ucp_st_net_check_use(peer, use);
        if (status == UCS_OK) {
            self->ep       = *ep_p;
            self->status   = UCS_OK;
            self->was_made = 1;
        }
    }
    ucp_st_worker_unlock(peer->worker);
    if ((status != UCS_OK) && (*ep_p != NULL)) {
        ucp_st_ucp_ep_close_later(*ep_p, &ucp_st_net(peer->worker)->num_closes);
    }
    return status;
}

ucs_status_t ucp_st_net_ep_get(ucp_st_peer_t *peer, ucp_st_net_use_t use,
                               ucp_ep_h *ep_p)
{
    ucp_st_net_peer_t *self = ucp_st_net_peer(peer);
    ucs_status_t status, ep_status;

    ucp_st_worker_lock(peer->worker);
    *ep_p     = self->ep;
    status    = ucp_st_net_check_use(peer, use);
    ep_status = self->status;
    ucp_st_worker_unlock(peer->worker);
    if (status != UCS_OK) {
        return status;
    }
    if ((*ep_p != NULL) || ((ep_status != UCS_INPROGRESS) &&
                            !ucp_st_ucp_is_full(ep_status))) {
        return ep_status;
    }
    ucp_st_net_close_old(peer); /* there is room for one */
    return ucp_st_net_ep_make(peer, use, ep_p);
}

/* Non-zero while UCP works on something with that peer */
static int ucp_st_net_is_used(ucp_st_peer_t *peer)
{
    ucp_st_net_t *net = ucp_st_net(peer->worker);
    int is_used;
    unsigned i;

    ucp_st_worker_lock(peer->worker);
    is_used = ucp_st_net_peer(peer)->is_listed;
    for (i = 0; i < net->num_clients; ++i) {
        is_used |= net->clients[i]->is_used(peer);
    }
    ucp_st_worker_unlock(peer->worker);
    return is_used;
}

/* Work for the peer while that is needed, until the end of flushing at most */
static void ucp_st_net_work_while(ucp_st_peer_t *peer,
                                  int (*is_needed)(ucp_st_peer_h peer))
{
    unsigned rounds = 0;

    (void)ucp_st_net_work(peer->worker);
    while (is_needed(peer) &&
           (ucp_st_worker_now() < ucp_st_net(peer->worker)->stop_time)) {
        ucs_backoff(&rounds);
        (void)ucp_st_net_work(peer->worker);
    }
}

void ucp_st_net_disconnect(ucp_st_peer_t *peer)
{
    ucp_st_net_t *net       = ucp_st_net(peer->worker);
    ucp_st_net_peer_t *self = ucp_st_net_peer(peer);

    ucp_st_net_stop(peer->worker);
    ucp_st_net_work_while(peer, ucp_st_ctrl_is_sending);
    if ((self->ep != NULL) && (self->status == UCS_OK)) {
        ucp_st_ucp_ep_flush(net->ucp_worker, self->ep, net->stop_time);
    }
    ucp_st_ucp_ep_close(net->ucp_worker, self->ep,
                        peer->is_self ? 0 : UCP_EP_CLOSE_FLAG_FORCE,
                        net->stop_time);
    self->ep = NULL;
    /* UCP ends its work for a closed endpoint in its progress */
    ucp_st_net_work_while(peer, ucp_st_net_is_used);
    free(self->address);
    self->address = NULL;
}
