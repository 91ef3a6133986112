/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_peer.h - how the trig lane reaches a peer.
 */
#ifndef UCP_ST_TRIG_PEER_H_
#define UCP_ST_TRIG_PEER_H_

#include <ucp_st.h>

#include "core/st_peer.h"
#include "trig/st_trig_dev.h"
#include "trig/st_trig_plan.h"

/** A peer's part of this lane; protected by the worker's lock. */
typedef struct ucp_st_trig_peer {
    ucp_st_trig_limits_t limits;        /* of both sides */
    uct_ep_h             eps[UCP_ST_TRIG_MAX_RAILS]; /* to its rail of that
                                           number, for as many as both sides
                                           have */
    unsigned             lost;          /* bit mask of those that the NICs have
                                           lost */
} ucp_st_trig_peer_t;

static inline ucp_st_trig_peer_t *ucp_st_trig_peer(const ucp_st_peer_t *peer)
{
    return peer->parts[UCP_ST_PART_LANES + UCP_ST_LANE_TRIG];
}

/** A NIC has lost a peer; uct_error_handler_t. Called from progress, with the
 *  lock held. */
ucs_status_t ucp_st_trig_peer_err_handler(void *arg, uct_ep_h ep,
                                          ucs_status_t status);

/** The lane's functions for peers: see st_lane.h. */
size_t ucp_st_trig_address_length(ucp_st_worker_h worker);
ucs_status_t ucp_st_trig_address_pack(ucp_st_worker_h worker, void *buffer);
ucs_status_t ucp_st_trig_peer_connect(ucp_st_peer_h peer, const void *address,
                                      size_t length);
void ucp_st_trig_peer_disconnect(ucp_st_peer_h peer);
void ucp_st_trig_peer_check(ucp_st_peer_h peer);

#endif
