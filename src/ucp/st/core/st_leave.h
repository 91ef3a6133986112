/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_leave.h - how peers go: in order, or lost.
 *
 *   leaver                              peer
 *   LEAVE, or BYE alone     --------->  unmatched operations fail
 *   UNMATCH an operation    --------->  uses that both have begun go on
 *   BYE: all is freed       --------->  waits for the last open use, a moment
 *   closes its endpoint     <---------  BYE_ACK: the leaver is CANCELED
 *
 * The answer is the last message to a leaver: Cassini's provider ends a process
 * whose message meets an endpoint that is being closed. Where both leave, each
 * closes when it has answered and was answered.
 *
 * A transport that loses a peer does not know whether this side has read all of
 * the peer's messages. So a loss is only noted at first. It is decided when all
 * messages that had arrived by then were handled. A peer that was declared gone
 * may be there: it is told (GONE), and declares this side gone in turn.
 */
#ifndef UCP_ST_LEAVE_H_
#define UCP_ST_LEAVE_H_

#include "core/st_peer.h"

/** After how long behind a BYE a use that is still open fails: what the leaver
 *  has sent before may come another way, and so later; seconds. */
#define UCP_ST_LEAVE_USE_TIME 0.5

/** The peer matches nothing more. The lock is held, as for the next ones. */
void ucp_st_leave_handle_leave(ucp_st_peer_t *peer,
                               const ucp_st_ctrl_op_t *msg);

/** The peer has freed all that it had. */
void ucp_st_leave_handle_bye(ucp_st_peer_t *peer, const ucp_st_ctrl_op_t *msg);

/** The peer knows of this side's BYE. */
void ucp_st_leave_handle_bye_ack(ucp_st_peer_t *peer,
                                 const ucp_st_ctrl_op_t *msg);

/** The peer has declared this side gone. */
void ucp_st_leave_handle_gone(ucp_st_peer_t *peer, const ucp_st_ctrl_op_t *msg);

/** ucp_st_ctrl_up_t.settle. */
unsigned ucp_st_leave_settle(ucp_st_worker_h worker, uint64_t round,
                             int is_idle);

/** Answer the peers that leave, and end what has ended with those that have
 *  left. Milliseconds until the next call, or -1. */
int ucp_st_leave_look(ucp_st_worker_h worker);

/** Non-zero while a peer has not answered this side's BYE, or was not
 *  answered. */
int ucp_st_leave_is_unanswered(ucp_st_peer_t *peer);

/** Non-zero while a stream waits for the peer. */
int ucp_st_leave_is_awaited(ucp_st_peer_t *peer);

/** Send BYE to all peers. The lock is not held, nor for the next one. */
void ucp_st_leave_say_bye(ucp_st_worker_h worker);

/** `time` seconds after BYE was sent: non-zero while it is worth while to wait
 *  for an answer. */
int ucp_st_leave_is_worth_waiting(ucp_st_worker_h worker, double time);

#endif
