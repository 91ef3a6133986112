/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_peer.h - other NICs, as links have them; and the ends of links.
 *
 * A NIC and another one have two links at most, one each way, which share the
 * other's memory and the descriptor that tells when its process ends. Lock held
 * in all functions.
 */
#ifndef CXIEMU_PEER_H_
#define CXIEMU_PEER_H_

#include "nic/cxiemu_link.h"


typedef struct cxiemu_peer {
    TAILQ_ENTRY(cxiemu_peer) list;   /**< nic->peers */
    LIST_ENTRY(cxiemu_peer)  bucket; /**< nic->peers_by_nonce */
    cxiemu_nic_t             *nic;
    uint64_t                 nonce;
    uint32_t                 pid;
    int                      pidfd;  /**< -1: there is none */
    cxiemu_map_t             *map;
    cxiemu_nic_shm_t         *shm;
    int                      may_attach;
    unsigned                 refs;   /**< Links */
    cxiemu_link_t            *tx;    /**< To it, if that is up */
} cxiemu_peer_t;


/** The other NIC of an address (of its endpoints any): 0, or the errors of
 *  cxiemu_link_get(). */
int cxiemu_peer_get(cxiemu_nic_t *nic, const cxiemu_addr_t *addr,
                    cxiemu_peer_t **peer_p);
void cxiemu_peer_put(cxiemu_peer_t *peer);

/** The NIC of a nonce if there is a link with it, else NULL. */
cxiemu_peer_t *cxiemu_peer_find(cxiemu_nic_t *nic, uint64_t nonce);

/** Whether its process has ended. */
int cxiemu_peer_is_dead(const cxiemu_peer_t *peer);


/** A ready bit came for a port that has no link: the link of a new peer, or
 *  NULL. */
cxiemu_link_t *cxiemu_link_accept(cxiemu_nic_t *nic, uint32_t port);

/** Give back the ports that processes took which are gone. */
void cxiemu_port_sweep(cxiemu_nic_t *nic);

/** Whether the other side has closed the link, or its NIC. */
int cxiemu_link_is_closed(const cxiemu_link_t *link);

/** Free a link that is lost, or was never used. */
void cxiemu_link_free(cxiemu_link_t *link);

#endif
