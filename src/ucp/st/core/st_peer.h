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

/**
 * How a peer stands.
 *
 *            its LEAVE          its BYE             answered
 *   ACTIVE -----------> QUIET -----------> LEAVING -----------> LEFT
 *      |                  |                   |                   |
 *      +------------------+-- a transport ----+-------------------+
 *                         |   has lost it                         |
 *                         v                   uses with it have   |
 *                       LOST                  ended, or it has    |
 *                         | its messages      answered this       |
 *                         | were read         side's BYE          |
 *                         v                                       |
 *                       GONE <------------------------------------+
 *
 * ACTIVE and LOST skip what the peer does not say. An error of the peer's, or
 * want of memory for it, leads from each state to GONE.
 */
typedef enum {
    UCP_ST_PEER_ACTIVE,
    UCP_ST_PEER_QUIET,   /**< It matches nothing more */
    UCP_ST_PEER_LEAVING, /**< It has freed all that it had */
    UCP_ST_PEER_LEFT,    /**< Nothing more is sent to it */
    UCP_ST_PEER_LOST,
    UCP_ST_PEER_GONE     /**< `status` says why */
} ucp_st_peer_state_t;

/**
 * Made by ucp_st_peer_create(), or by the first message from a worker that this
 * one does not know yet; then without endpoints until the user gives its
 * address. Lives as long as the worker. Protected by the worker's lock.
 */
typedef struct ucp_st_peer {
    ucs_list_link_t list;       /* in the worker's peers */
    ucs_list_link_t going_list; /* in the watch's going_peers, while it is
                                   lost or leaving */
    void            *priv[UCP_ST_PRIV_LAST]; /* read-only */
    ucp_st_worker_h worker;
    uint64_t        uuid;
    int             is_self;
    int             connected;  /* its address is known; written with the
                                   worker's connect_lock as well */
    void            *ucp_address; /* of its UCP worker; set with `connected`,
                                   read-only then */
    ucp_st_peer_state_t state;
    ucs_status_t    status;     /* why it is gone; UCS_OK while it is not */
    int             closed;     /* writes cannot reach its memory: its regions
                                   are closed, or no transport reaches it; of
                                   interest once it is gone */
    ucs_status_t    lost;       /* why, once it is lost */
    uint64_t        lost_round; /* the service thread's round then */
    double          bye_time;   /* when it has said BYE, seconds */
    unsigned        lanes;      /* bit mask of those that reach it; written
                                   with the worker's connect_lock as well */
    ucp_st_process_t process;
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

/** Change the state along an edge of the diagram; another one is taken as well,
 *  and logged. The lock is held, as for the next ones. */
void ucp_st_peer_set_state(ucp_st_peer_t *peer, ucp_st_peer_state_t state);

/** Declare a peer gone: its operations fail with `status`. UCS_ERR_CANCELED: it
 *  has left; otherwise it is told, as it may be there. */
void ucp_st_peer_fail(ucp_st_peer_t *peer, ucs_status_t status);

/** Note that a transport has lost a peer. */
void ucp_st_peer_lost(ucp_st_peer_t *peer, ucs_status_t status);

/** Find out whether the peer is there. */
void ucp_st_peer_check(ucp_st_peer_t *peer);

/** From now on no write can reach the peer's memory. The lock is held. */
void ucp_st_peer_closed(ucp_st_peer_t *peer);

/**
 * Close the endpoints of all peers and free them. UCP is called: the lock is
 * not held, and no other thread uses the worker.
 */
void ucp_st_peers_cleanup(ucp_st_worker_h worker);

#endif
