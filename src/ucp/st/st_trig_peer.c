/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_peer.c - how the trig lane reaches a peer.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig_peer.h"
#include "st_leave.h"
#include "st_peer.h"
#include "st_trig_proto.h"
#include "st_worker.h"

#include <ucs/sys/math.h>

/* What this side can do */
static void ucp_st_trig_limits_get(ucp_st_worker_h worker,
                                   ucp_st_trig_limits_t *limits)
{
    limits->eager_max = ucs_min(worker->config.eager_max,
                                UCP_ST_TRIG_PIECE_MAX);
}

size_t ucp_st_trig_address_length(ucp_st_worker_h worker)
{
    return sizeof(ucp_st_trig_address_t) +
           ucp_st_trig_rail_address_length(&worker->trig.rails[0]);
}

ucs_status_t ucp_st_trig_address_pack(ucp_st_worker_h worker, void *buffer)
{
    ucp_st_trig_address_t *address = buffer;
    ucp_st_trig_limits_t limits;

    ucp_st_trig_limits_get(worker, &limits);
    address->eager_max = limits.eager_max;
    return ucp_st_trig_rail_address_pack(&worker->trig.rails[0], address + 1);
}

static int ucp_st_trig_peer_has_ep(const ucp_st_trig_peer_t *trig, uct_ep_h ep)
{
    unsigned i;

    for (i = 0; i < trig->num_rails; ++i) {
        if (trig->ep[i] == ep) {
            return 1;
        }
    }
    return 0;
}

ucs_status_t ucp_st_trig_peer_err_handler(void *arg, uct_ep_h ep,
                                          ucs_status_t status)
{
    ucp_st_worker_h worker = arg;
    ucp_st_peer_t *peer;

    ucs_list_for_each(peer, &worker->peers, list) {
        if (ucp_st_trig_peer_has_ep(&peer->trig, ep)) {
            ucp_st_leave_lost(peer, status);
            return UCS_OK;
        }
    }
    return UCS_ERR_NO_ELEM; /* the own endpoint: the transport logs it */
}

/* The limits of both sides: each sees the same two */
static void ucp_st_trig_peer_set_limits(ucp_st_peer_t *peer,
                                        const ucp_st_trig_address_t *address)
{
    ucp_st_trig_limits_t *limits = &peer->trig.limits;

    ucp_st_trig_limits_get(peer->worker, limits);
    limits->eager_max = ucs_min(limits->eager_max, address->eager_max);
}

ucs_status_t ucp_st_trig_peer_connect(ucp_st_peer_t *peer, const void *buffer,
                                      size_t length)
{
    const ucp_st_trig_address_t *address = buffer;
    ucp_st_worker_h worker               = peer->worker;
    ucp_st_trig_peer_t *trig             = &peer->trig;
    ucs_status_t status;

    if (length != ucp_st_trig_address_length(worker)) {
        return UCS_ERR_UNREACHABLE; /* of another provider */
    }
    ucp_st_worker_lock(worker);
    status = ucp_st_trig_rail_ep_create(&worker->trig.rails[0], address + 1,
                                        &trig->ep[0]);
    if (status == UCS_OK) {
        ucp_st_trig_peer_set_limits(peer, address);
        trig->num_rails = 1;
    }
    ucp_st_worker_unlock(worker);
    return status;
}

void ucp_st_trig_peer_disconnect(ucp_st_peer_t *peer)
{
    ucp_st_trig_peer_t *trig = &peer->trig;

    while (trig->num_rails > 0) {
        --trig->num_rails;
        /* Closing would free what the NIC still reads and writes */
        if (!ucp_st_trig_rail_is_busy(
                    &peer->worker->trig.rails[trig->num_rails])) {
            uct_ep_destroy(trig->ep[trig->num_rails]);
        }
    }
}

void ucp_st_trig_peer_check(ucp_st_peer_t *peer)
{
    unsigned i;

    /* An error is told by the endpoint's error handler */
    for (i = 0; i < peer->trig.num_rails; ++i) {
        (void)uct_ep_check(peer->trig.ep[i], 0, NULL);
    }
}
