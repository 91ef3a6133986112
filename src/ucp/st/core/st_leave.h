/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_leave.h - how peers go: in order, or lost.
 *
 *   leaver                              peer
 *   LEAVE, or BYE alone     --------->  unmatched operations fail
 *   UNMATCH an operation    --------->  uses that both have begun go on
 *   BYE: all is freed       --------->  waits for the last open use
 *   closes its endpoints    <---------  BYE_ACK: the leaver is CANCELED
 *
 * The answer is the last message to a leaver: Cassini's provider ends a process
 * whose message meets an endpoint that is being closed. Where both leave, each
 * closes when it has answered and was answered. A host that makes no calls does
 * not answer. So a leaver that has waited for a moment asks the peer's service
 * thread (notice BYE). From its answer on that side sends nothing, while its
 * host learns of the leave as ever, when it reads.
 *
 * A transport that loses a peer does not know whether this side has read all of
 * the peer's messages. So a loss is only noted at first. It is decided when all
 * messages that had arrived by then were handled.
 */
#ifndef UCP_ST_LEAVE_H_
#define UCP_ST_LEAVE_H_

#include "core/st_peer.h"

/** The peer matches nothing more. The lock is held. */
void ucp_st_leave_handle_leave(ucp_st_peer_t *peer, const ucp_st_msg_op_t *msg);

/** The peer has freed all that it had. The lock is held. */
void ucp_st_leave_handle_bye(ucp_st_peer_t *peer, const ucp_st_msg_op_t *msg);

/** The peer knows of this side's BYE. The lock is held. */
void ucp_st_leave_handle_bye_ack(ucp_st_peer_t *peer,
                                 const ucp_st_msg_op_t *msg);

/**
 * Decide about the peers that are going, after UCP was progressed. `round` is
 * that call's number; `is_idle` says that it found nothing. The lock is held.
 */
void ucp_st_leave_settle(ucp_st_worker_h worker, uint64_t round, int is_idle);

/** Decide about lost peers in place of a host that makes no calls, if streams
 *  have waited for them long enough. Milliseconds until the next call, or -1.
 *  The lock is held. */
int ucp_st_leave_settle_late(ucp_st_worker_h worker);

/** Non-zero while a peer has not answered this side's BYE, or was not answered.
 *  The lock is held. */
int ucp_st_leave_is_unanswered(const ucp_st_peer_t *peer);

/** Non-zero while a stream waits for the peer. The lock is held. */
int ucp_st_leave_is_awaited(ucp_st_peer_t *peer);

/** Send BYE to all peers, and have UCP deliver it. The lock is not held, nor
 *  for the next one. */
void ucp_st_leave_say_bye(ucp_st_worker_h worker);

/** `time` seconds after that: ask the service threads of the peers that have
 *  not answered, whose hosts make no calls or are slow. Non-zero while it is
 *  worth while to wait for an answer. */
int ucp_st_leave_ask_last(ucp_st_worker_h worker, double time);

#endif
