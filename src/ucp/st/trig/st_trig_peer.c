/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_peer.c - how the trig lane reaches a peer.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig_dev.h"
#include "ctrl/st_leave.h"
#include "core/st_worker.h"
#include "trig/st_trig_proto.h"

#include <ucs/sys/math.h>

#include <string.h>

/* What this side can do */
static void ucp_st_trig_limits_get(ucp_st_worker_h worker,
                                   ucp_st_trig_limits_t *limits)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    unsigned i;

    limits->num_rails = dev->num_rails;
    limits->eager_max = ucs_min(worker->config.eager_max,
                                UCP_ST_TRIG_PIECE_MAX / UCP_ST_TRIG_DEPTH_MIN);
    limits->share_min = worker->config.chunk_min;
    limits->put_max   = ucs_max(worker->config.chunk_max, 1);
    for (i = 0; i < dev->num_rails; ++i) {
        limits->put_max = ucs_min(limits->put_max,
                                  dev->rails[i].attr.max_put);
    }
}

size_t ucp_st_trig_address_length(ucp_st_worker_h worker)
{
    const ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);

    return sizeof(ucp_st_trig_address_t) +
           (dev->num_rails * ucp_st_trig_rail_address_length(&dev->rails[0]));
}

/* The address of one rail. All have the same length: they are of one
 * provider. */
static void *ucp_st_trig_address_rail(const ucp_st_trig_address_t *address,
                                      unsigned index)
{
    return UCS_PTR_BYTE_OFFSET(address, sizeof(*address) +
                               (index * address->rail_length));
}

ucs_status_t ucp_st_trig_address_pack(ucp_st_worker_h worker, void *buffer)
{
    const ucp_st_trig_dev_t *dev   = ucp_st_trig_dev(worker);
    ucp_st_trig_address_t *address = buffer;
    ucs_status_t status            = UCS_OK;
    ucp_st_trig_limits_t limits;
    unsigned i;

    ucp_st_trig_limits_get(worker, &limits);
    memset(address, 0, sizeof(*address));
    address->num_rails   = limits.num_rails;
    address->rail_length = ucp_st_trig_rail_address_length(&dev->rails[0]);
    address->eager_max   = limits.eager_max;
    address->share_min   = limits.share_min;
    address->put_max     = limits.put_max;
    for (i = 0; (i < dev->num_rails) && (status == UCS_OK); ++i) {
        status = ucp_st_trig_rail_address_pack(
                &dev->rails[i], ucp_st_trig_address_rail(address, i));
    }
    return status;
}

ucs_status_t ucp_st_trig_peer_err_handler(void *arg, uct_ep_h ep,
                                          ucs_status_t status)
{
    ucp_st_worker_h worker = arg;
    ucp_st_trig_peer_t *trig;
    ucp_st_peer_t *peer;
    unsigned i;

    ucs_list_for_each(peer, &worker->peers, list) {
        trig = ucp_st_trig_peer(peer);
        for (i = 0; i < trig->limits.num_rails; ++i) {
            if (trig->eps[i] != ep) {
                continue;
            }
            trig->lost |= UCS_BIT(i);
            ucp_st_leave_lost(peer, status);
            if (trig->lost == UCS_MASK(trig->limits.num_rails)) {
                ucp_st_peer_closed(peer); /* nothing arrives there */
            }
            return UCS_OK;
        }
    }
    return UCS_ERR_NO_ELEM; /* the own endpoint: the transport logs it */
}

/* The lock is held */
static void ucp_st_trig_peer_close(ucp_st_peer_t *peer)
{
    ucp_st_trig_rail_t *rails = ucp_st_trig_dev(peer->worker)->rails;
    ucp_st_trig_peer_t *trig  = ucp_st_trig_peer(peer);
    unsigned i;

    while (trig->limits.num_rails > 0) {
        i = --trig->limits.num_rails;
        /* Closing would free what the NIC still reads and writes */
        if (!ucp_st_trig_rail_is_busy(&rails[i])) {
            uct_ep_destroy(trig->eps[i]);
        }
    }
}

ucs_status_t ucp_st_trig_peer_connect(ucp_st_peer_t *peer, const void *buffer,
                                      size_t length)
{
    const ucp_st_trig_address_t *address = buffer;
    ucp_st_worker_h worker               = peer->worker;
    ucp_st_trig_rail_t *rails            = ucp_st_trig_dev(worker)->rails;
    ucp_st_trig_peer_t *trig             = ucp_st_trig_peer(peer);
    ucp_st_trig_limits_t *limits         = &trig->limits;
    ucs_status_t status                  = UCS_OK;
    unsigned i, max_rails;

    if ((length < sizeof(*address)) || (address->num_rails == 0) ||
        (address->rail_length != ucp_st_trig_rail_address_length(rails)) ||
        (length != (sizeof(*address) +
                    (address->num_rails * (size_t)address->rail_length)))) {
        return UCS_ERR_UNREACHABLE; /* of another provider */
    }
    ucp_st_worker_lock(worker);
    ucp_st_trig_limits_get(worker, limits);
    /* The limits of both sides: each sees the same two */
    max_rails         = ucs_min(limits->num_rails, address->num_rails);
    limits->eager_max = ucs_min(limits->eager_max, address->eager_max);
    limits->share_min = ucs_max(limits->share_min, address->share_min);
    limits->put_max   = ucs_min(limits->put_max, ucs_max(address->put_max, 1));
    /* Rail to rail. Which of them reach each other is the same seen from both
     * sides, and those behind one that does not are not used: so both use the
     * same number. */
    limits->num_rails = 0;
    for (i = 0; (i < max_rails) && (status == UCS_OK); ++i) {
        status = ucp_st_trig_rail_ep_create(
                &rails[i], ucp_st_trig_address_rail(address, i),
                &trig->eps[i]);
        limits->num_rails += (status == UCS_OK);
    }
    if ((status == UCS_ERR_UNREACHABLE) && (limits->num_rails > 0)) {
        status = UCS_OK;
    }
    if (status != UCS_OK) {
        ucp_st_trig_peer_close(peer);
    }
    ucp_st_worker_unlock(worker);
    return status;
}

void ucp_st_trig_peer_disconnect(ucp_st_peer_t *peer)
{
    /* The service thread progresses the interfaces until the lane is closed */
    ucp_st_worker_lock(peer->worker);
    ucp_st_trig_peer_close(peer);
    ucp_st_worker_unlock(peer->worker);
}

void ucp_st_trig_peer_check(ucp_st_peer_t *peer)
{
    ucp_st_trig_peer_t *trig = ucp_st_trig_peer(peer);
    unsigned i;

    /* The endpoint's error handler gets an error, in the next progress */
    for (i = 0; i < trig->limits.num_rails; ++i) {
        if (UCS_STATUS_IS_ERR(uct_ep_check(trig->eps[i], 0, NULL))) {
            ucp_st_trig_dev_wake(peer->worker);
        }
    }
}

uct_ep_h ucp_st_trig_rma_ep(ucp_st_peer_t *peer)
{
    return ucp_st_trig_peer(peer)->eps[0];
}

size_t ucp_st_trig_rma_put_max(ucp_st_peer_t *peer)
{
    return ucp_st_trig_peer(peer)->limits.put_max;
}
