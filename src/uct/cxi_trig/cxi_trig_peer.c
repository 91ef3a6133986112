/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_peer.c - peers, counted by the operations that go to them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_peer.h"
#include "cxi_trig_addr.h"
#include "cxi_trig_ep.h"
#include "cxi_trig_status.h"

#include <ucs/debug/memtrack_int.h>

#include <string.h>


ucs_status_t uct_cxi_trig_peer_create(uct_cxi_trig_iface_t *iface,
                                      const uct_iface_addr_t *iface_addr,
                                      uct_cxi_trig_peer_t **peer_p)
{
    uct_cxi_trig_peer_t *peer;
    ucs_status_t status;

    peer = ucs_calloc(1, sizeof(*peer), "cxi_trig_peer");
    if (peer == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_cxi_trig_addr_insert(iface, iface_addr, &peer->addr,
                                      &peer->memory);
    if (status != UCS_OK) {
        ucs_free(peer);
        return status;
    }

    peer->iface = iface;
    peer->refs  = 1;
    peer->lost  = UCS_OK;
    uct_cxi_trig_track_init(&peer->track);
    memcpy(&peer->packed, iface_addr, sizeof(peer->packed));
    *peer_p     = peer;
    return UCS_OK;
}

void uct_cxi_trig_peer_put(uct_cxi_trig_peer_t *peer)
{
    if (--peer->refs > 0) {
        return;
    }

    if (peer->lost != UCS_OK) {
        --peer->iface->dwq.lost_peers;
    }

    uct_cxi_trig_addr_remove(peer->iface, peer->addr, peer->memory);
    ucs_free(peer);
}

/* The endpoint may be gone before. */
ucs_status_t uct_cxi_trig_peer_status(const uct_cxi_trig_peer_t *peer)
{
    return (peer->ep != NULL) ? peer->ep->status : peer->lost;
}

void uct_cxi_trig_peer_fail(uct_cxi_trig_peer_t *peer, ucs_status_t status)
{
    if ((peer->lost == UCS_OK) && uct_cxi_trig_status_is_peer(status)) {
        peer->lost = status;
        ++peer->iface->dwq.lost_peers;
    }
    if ((peer->ep != NULL) && (peer->ep->status == UCS_OK) && !peer->invalid) {
        peer->ep->status = status;
        uct_cxi_trig_ep_schedule_report(peer->ep);
    }
}
