/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_peer.h - a peer's place in the address vector.
 *
 * An endpoint may be destroyed while operations to its peer are in flight or
 * deferred; the peer lives as long as any of them.
 */
#ifndef UCT_CXI_TRIG_PEER_H_
#define UCT_CXI_TRIG_PEER_H_

#include "cxi_trig_iface.h"
#include "cxi_trig_proto.h"

struct uct_cxi_trig_ep;


/** A peer; one an endpoint, plus one for the interface itself where needed. */
typedef struct uct_cxi_trig_peer {
    uct_cxi_trig_iface_t   *iface;
    struct uct_cxi_trig_ep *ep;    /**< NULL once the endpoint is gone */
    fi_addr_t              addr;   /**< Of messages and deferred operations */
    fi_addr_t              memory; /**< Of the memory of its domain */
    unsigned               refs;
    unsigned               held;   /**< Operations behind a fence */
    int                    invalid; /**< By uct_ep_invalidate() */
    ucs_status_t           lost;   /**< UCS_OK, or how it was lost */
    uct_cxi_trig_track_t   track;  /**< Immediate operations in flight */
    uct_cxi_trig_iface_addr_t packed; /**< As the peer gave it */
} uct_cxi_trig_peer_t;


/** Make a peer of a checked address, with one reference. */
ucs_status_t uct_cxi_trig_peer_create(uct_cxi_trig_iface_t *iface,
                                      const uct_iface_addr_t *iface_addr,
                                      uct_cxi_trig_peer_t **peer_p);

/** Take a reference. */
static inline void uct_cxi_trig_peer_get(uct_cxi_trig_peer_t *peer)
{
    ++peer->refs;
}

/** Give a reference back; the last one removes the address. */
void uct_cxi_trig_peer_put(uct_cxi_trig_peer_t *peer);

/** Why nothing can be sent to the peer any more, or UCS_OK. */
ucs_status_t uct_cxi_trig_peer_status(const uct_cxi_trig_peer_t *peer);

/**
 * An operation to the peer has failed: so has its endpoint, if it has one. If
 * the status tells that the peer is lost, so are deferred operations to it.
 */
void uct_cxi_trig_peer_fail(uct_cxi_trig_peer_t *peer, ucs_status_t status);

#endif
