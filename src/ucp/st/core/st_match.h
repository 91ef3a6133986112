/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_match.h - pairing of local operations with those that peers announce.
 */
#ifndef UCP_ST_MATCH_H_
#define UCP_ST_MATCH_H_

#include "core/st_peer.h"

/** A peer gave an operation to match. The lock is held. */
void ucp_st_match_handle(ucp_st_peer_t *peer, const ucp_st_ctrl_match_t *msg);

/** A paired operation's counterpart has sent its lanes' offers. The lock is
 *  held. */
void ucp_st_match_handle_bind(ucp_st_peer_t *peer, const ucp_st_ctrl_op_t *msg);

/** A peer freed an operation that it had given to match. The lock is held. */
void ucp_st_match_handle_cancel(ucp_st_peer_t *peer,
                                const ucp_st_ctrl_op_t *msg);

#endif
