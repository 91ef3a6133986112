/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_peer.h - a remote worker, as seen from here.
 */
#ifndef UCP_ST_PEER_H_
#define UCP_ST_PEER_H_

#include <ucp_st.h>

#include "core/st_component.h"
#include "core/st_key.h"
#include "core/st_op.h"
#include "core/st_process.h"
#include "core/st_proto.h"

#include <ucs/datastruct/list.h>

struct ucp_st_frame_buf;
struct ucp_st_svc_ep;

/**
 * Made by ucp_st_peer_create(), or by the first message from a worker that this
 * one does not know yet; then without endpoints until the user gives its
 * address. Lives as long as the worker. Protected by the worker's lock.
 */
typedef struct ucp_st_peer {
    ucs_list_link_t list;       /* in the worker's peers */
    void            *parts[UCP_ST_PART_LAST]; /* read-only */
    ucp_st_worker_h worker;
    uint64_t        uuid;
    int             is_self;
    int             connected;  /* its address is known; written with the
                                   worker's connect_lock as well */
    ucs_status_t    status;     /* why it is gone; UCS_OK while it is not */
    int             said_leave; /* it matches nothing more */
    int             said_bye;   /* it has no operations any more */
    int             told_bye;   /* this side has said so to the peer */
    int             said_last;  /* it sends nothing any more: its BYE_ACK */
    int             told_last;  /* nor does this side to it */
    int             asked_last; /* its service thread was sent BYE, last */
    int             owes_last;  /* that thread's BYE_ACK is still to be sent */
    int             said_gone;  /* it has declared this side gone, or waits for
                                   it although it is lost */
    int             is_noticed; /* it was told that it is declared gone */
    int             closed;     /* writes cannot reach its memory: its regions
                                   are closed, or no transport reaches it; of
                                   interest once it is gone */
    int             going;      /* lost or leaving: counted by ctrl */
    ucs_status_t    lost;       /* what a transport said; UCS_OK if nothing */
    uint64_t        lost_round; /* the worker's round then */
    double          lost_time;  /* and the time, seconds */
    ucp_ep_h        ucp_ep;     /* control messages; NULL for self */
    unsigned        lanes;      /* bit mask of those that reach it; written
                                   with the worker's connect_lock as well */
    ucp_st_process_t process;
    struct ucp_st_svc_ep *svc_ep; /* to its service thread; or NULL */
    unsigned        sends;      /* control messages that UCP has not completed;
                                   of the worker's */
    uint32_t        next_tx_seq;
    uint32_t        next_rx_seq;
    struct ucp_st_frame_buf *frame; /* last in the outbox, or NULL */
    ucs_list_link_t ops;        /* all with this peer: ucp_st_op_t */
    khash_t(ucp_st_keys) keys;  /* of what waits for a counterpart */
} ucp_st_peer_t;

/** Find a worker's peer by uuid, or NULL. The lock is held. */
ucp_st_peer_t *ucp_st_peer_find(ucp_st_worker_h worker, uint64_t uuid);

/**
 * Find a worker's peer by uuid, or make one without endpoints. NULL without
 * memory. The lock is held.
 */
ucp_st_peer_t *ucp_st_peer_get(ucp_st_worker_h worker, uint64_t uuid);

/** The next lane's part of an address or a key at `*p`, which is set to where
 *  it ends; NULL if it is cut off. */
const ucp_st_address_lane_t *ucp_st_address_next_lane(const uint8_t **p,
                                                      const uint8_t *end);

/** Declare a peer gone: its operations fail with `status`. The lock is held. */
void ucp_st_peer_fail(ucp_st_peer_t *peer, ucs_status_t status);

/** Note that a transport has lost a peer. The lock is held, as for the next
 *  one. */
void ucp_st_peer_lost(ucp_st_peer_t *peer, ucs_status_t status);

/** A peer that is lost or leaves is among those that ucp_st_leave_settle()
 *  looks at. */
void ucp_st_peer_go(ucp_st_peer_t *peer);

/** Find out whether the peer is there. The lock is held. */
void ucp_st_peer_check(ucp_st_peer_t *peer);

/** Whether a side has said BYE: neither asks by messages whether the other one
 *  is there. Lanes still check that in their own ways: their operations with
 *  the peer have to end. */
static inline int ucp_st_peer_leaves(const ucp_st_peer_t *peer)
{
    return peer->told_bye || peer->said_bye;
}

/** Whether the peer closes its endpoints, as the service thread knows, while
 *  this side's host has not read its BYE or still uses what it has sent. */
static inline int ucp_st_peer_is_closing(const ucp_st_peer_t *peer)
{
    return peer->told_last && !peer->told_bye;
}

/** From now on no write can reach the peer's memory. The lock is held. */
void ucp_st_peer_closed(ucp_st_peer_t *peer);

/**
 * Close the endpoints of all peers and free them. UCP is called: the lock is
 * not held, and no other thread uses the worker.
 */
void ucp_st_peers_cleanup(ucp_st_worker_h worker);

#endif
