/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_leave.h - how peers go: in order, or lost.
 *
 *   leaver                              peer
 *   LEAVE, or BYE alone     --------->  what has no counterpart fails
 *   UNMATCH an operation    --------->  uses that both have begun go on
 *   BYE: all is freed       --------->  waits for the last open use
 *   closes its endpoints    <---------  BYE_ACK: the leaver is CANCELED
 *
 * A transport that loses a peer does not know what the peer had said before:
 * its last messages may have arrived here without having been read. A loss is
 * therefore noted only, and decided when what had arrived by then was handled.
 */
#ifndef UCP_ST_LEAVE_H_
#define UCP_ST_LEAVE_H_

#include "core/st_peer.h"

/** Non-zero while this side has a use or what a component knows under way that
 *  the peer takes part in, or a stream waits for something else of the peer.
 *  The lock is held. */
int ucp_st_leave_is_awaited(ucp_st_peer_t *peer);

/** Note that a transport has lost a peer. The lock is held. */
void ucp_st_leave_lost(ucp_st_peer_t *peer, ucs_status_t status);

/** The peer matches nothing more. The lock is held. */
void ucp_st_leave_handle_leave(ucp_st_peer_t *peer, const ucp_st_msg_op_t *msg);

/** The peer has freed all that it had. The lock is held. */
void ucp_st_leave_handle_bye(ucp_st_peer_t *peer, const ucp_st_msg_op_t *msg);

/** The peer knows of this side's goodbye. The lock is held. */
void ucp_st_leave_handle_bye_ack(ucp_st_peer_t *peer,
                                 const ucp_st_msg_op_t *msg);

/**
 * Decide about the peers that are going, after UCP was progressed. `round` is
 * that call's number; `is_idle` says that it found nothing. The lock is held.
 */
void ucp_st_leave_settle(ucp_st_worker_h worker, uint64_t round, int is_idle);

/**
 * Decide about lost peers in place of a host that makes no calls, if streams
 * have waited for them long enough. Milliseconds until it is to be called
 * again, or -1. The lock is held.
 */
int ucp_st_leave_settle_late(ucp_st_worker_h worker);

/** Say goodbye to all peers, and have UCP deliver it. The lock is not held. */
void ucp_st_leave_say_bye(ucp_st_worker_h worker);

/** Non-zero while a peer has not acknowledged it. The lock is held. */
int ucp_st_leave_is_waiting(ucp_st_worker_h worker);

#endif
