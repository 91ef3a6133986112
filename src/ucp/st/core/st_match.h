/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_match.h - pairing of local operations with those that peers announce.
 */
#ifndef UCP_ST_MATCH_H_
#define UCP_ST_MATCH_H_

#include "core/st_peer.h"

/** A peer gave an operation to match. The lock is held. */
void ucp_st_match_handle(ucp_st_peer_t *peer, const ucp_st_msg_match_t *msg);

/** A paired operation's counterpart: what its lanes offer. The lock is held. */
void ucp_st_match_handle_bind(ucp_st_peer_t *peer, const ucp_st_msg_op_t *msg);

/** A peer freed an operation that it had given to match. The lock is held. */
void ucp_st_match_handle_cancel(ucp_st_peer_t *peer,
                                const ucp_st_msg_op_t *msg);

/** An operation is not to be paired any more; for one that is not waiting for
 *  that it does nothing. The lock is held. */
void ucp_st_match_forget(ucp_st_op_t *op);

/** What waits under a tag and scope of a peer; made if it is not there and
 *  `add` is set. NULL if not, or without memory. The lock is held. */
ucp_st_key_t *ucp_st_match_key(ucp_st_peer_t *peer, uint64_t tag,
                               uint64_t scope, int add);

/** Free a key under which nothing waits. The lock is held. */
void ucp_st_match_key_put(ucp_st_peer_t *peer, ucp_st_key_t *key);

/** An operation waits for its counterpart from now on. The lock is held. */
ucs_status_t ucp_st_match_add(ucp_st_op_t *op);

/** Pair it with the peer's first announced counterpart, if that is there. The
 *  lock is held. */
void ucp_st_match_try(ucp_st_op_t *op);

/** Drop what a peer announced. Its operations are gone. */
void ucp_st_match_cleanup(ucp_st_peer_t *peer);

#endif
