/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_batch_ep.c - the endpoints for messages that are used once, of the UCP
 * worker that the user knows.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "tag/st_batch.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_ucp.h"

static void ucp_st_batch_ep_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ucp_st_peer_t *peer = arg;

    ucp_st_worker_lock(peer->worker);
    ucp_st_peer_lost(peer, status);
    ucp_st_worker_unlock(peer->worker);
}

ucs_status_t ucp_st_batch_ep_get(ucp_st_peer_t *peer, ucp_ep_h *ep_p)
{
    ucp_st_batch_peer_t *self = ucp_st_batch_peer(peer);
    ucs_status_t status;

    *ep_p = self->ep;
    if (*ep_p != NULL) {
        return UCS_OK;
    }
    status = ucp_st_ucp_ep_create(peer->worker->ucp_worker, peer->ucp_address,
                                  ucp_st_batch_ep_failed, peer, ep_p);
    if (status == UCS_OK) {
        ucp_st_worker_lock(peer->worker);
        self->ep = *ep_p;
        ucp_st_worker_unlock(peer->worker);
    }
    return status;
}

/* UCP completes a send that it has only buffered */
void ucp_st_batch_eps_flush(ucp_st_worker_h worker)
{
    double end = ucp_st_worker_now() + UCP_ST_BATCH_STOP_TIME;
    ucp_st_peer_t *peer;
    ucp_ep_h ep;

    ucp_st_worker_lock(worker);
    ucs_list_for_each(peer, &worker->peers, list) { /* it may only grow */
        ep = ucp_st_batch_peer(peer)->ep;
        if ((ep == NULL) || (peer->status != UCS_OK)) {
            continue;
        }
        ucp_st_worker_unlock(worker);
        ucp_st_ucp_ep_flush(worker->ucp_worker, ep, end);
        ucp_st_worker_lock(worker);
    }
    ucp_st_worker_unlock(worker);
}

void ucp_st_batch_eps_close(ucp_st_worker_h worker)
{
    double end = ucp_st_worker_now() + UCP_ST_BATCH_STOP_TIME;
    ucp_st_batch_peer_t *self;
    ucp_st_peer_t *peer;

    ucs_list_for_each(peer, &worker->peers, list) {
        self = ucp_st_batch_peer(peer);
        ucp_st_ucp_ep_close(worker->ucp_worker, self->ep,
                            peer->is_self ? 0 : UCP_EP_CLOSE_FLAG_FORCE, end);
        self->ep = NULL;
    }
}
