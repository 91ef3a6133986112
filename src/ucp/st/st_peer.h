/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_peer.h - a remote worker, as seen from here.
 */
#ifndef UCP_ST_PEER_H_
#define UCP_ST_PEER_H_

#include <ucp_st.h>

#include "st_op.h"
#include "st_proto.h"

#include <ucs/datastruct/list.h>

/** A match message that no operation here has taken yet. */
typedef struct ucp_st_remote_op {
    ucs_list_link_t    list;
    ucp_st_msg_match_t msg;
} ucp_st_remote_op_t;

/**
 * Made by ucp_st_peer_create(), or by the first message from a worker that this
 * one does not know yet; then without endpoints until the user gives its
 * address. Lives as long as the worker. Protected by the worker's lock.
 */
typedef struct ucp_st_peer {
    ucs_list_link_t list;       /* in the worker's peers */
    ucp_st_worker_h worker;
    uint64_t        uuid;
    int             is_self;
    ucs_status_t    status;     /* why it is gone; UCS_OK while it is not */
    int             said_leave; /* it matches nothing more */
    int             said_bye;   /* it has no operations any more */
    int             going;      /* counted in the worker's going_peers */
    ucs_status_t    lost;       /* what a transport said; UCS_OK if nothing */
    uint64_t        lost_round; /* the worker's round then */
    double          lost_time;  /* and the time, seconds */
    ucp_ep_h        ucp_ep;     /* control messages; NULL for self */
    uct_ep_h        trig_ep;    /* data */
    uint32_t        next_tx_seq;
    uint32_t        next_rx_seq;
    ucs_list_link_t unmatched;  /* local operations: ucp_st_op_t */
    ucs_list_link_t remote_ops; /* ucp_st_remote_op_t */
} ucp_st_peer_t;

/**
 * Find a worker's peer by uuid, or make one without endpoints. NULL without
 * memory. The lock is held.
 */
ucp_st_peer_t *ucp_st_peer_get(ucp_st_worker_h worker, uint64_t uuid);

/** Declare a peer gone: its operations fail with `status`. The lock is held. */
void ucp_st_peer_fail(ucp_st_peer_t *peer, ucs_status_t status);

/** Have the NIC find out whether a peer is there; the lock is held. */
void ucp_st_peer_check_nic(ucp_st_peer_t *peer);

/**
 * Close the endpoints of all peers and free them. UCP is called: the lock is
 * not held, and no other thread uses the worker.
 */
void ucp_st_peers_cleanup(ucp_st_worker_h worker);

#endif
