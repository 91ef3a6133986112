/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_key.h - operations of both sides that wait for a counterpart, by tag and
 * scope. The worker's lock is held for all of it.
 */
#ifndef UCP_ST_KEY_H_
#define UCP_ST_KEY_H_

#include <ucp_st.h>

#include "core/st_proto.h"

#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/list.h>

struct ucp_st_op;

/** What two operations that pair have in common. */
typedef struct ucp_st_key_id {
    uint64_t tag;
    uint64_t scope;
} ucp_st_key_id_t;

/** A match message that no operation here has taken yet. */
typedef struct ucp_st_remote_op {
    ucs_list_link_t     list; /* in its key's remote operations */
    ucp_st_ctrl_match_t msg;
} ucp_st_remote_op_t;

/** Operations with one tag and scope that wait for their counterparts, each
 *  list in the order of being given to match, by @ref ucp_st_dir_t. */
typedef struct ucp_st_key {
    ucp_st_key_id_t id;
    ucs_list_link_t local[2];  /* ucp_st_op_t */
    ucs_list_link_t remote[2]; /* ucp_st_remote_op_t */
    size_t          count[2];  /* local ones that are not freed */
    size_t          added[2];  /* scratch: given to match now */
} ucp_st_key_t;

static inline khint_t ucp_st_key_hash(ucp_st_key_id_t id)
{
    return kh_int64_hash_func(id.tag * 0x9e3779b97f4a7c15ul + id.scope);
}

static inline int ucp_st_key_equal(ucp_st_key_id_t a, ucp_st_key_id_t b)
{
    return (a.tag == b.tag) && (a.scope == b.scope);
}

KHASH_INIT(ucp_st_keys, ucp_st_key_id_t, ucp_st_key_t*, 1, ucp_st_key_hash,
           ucp_st_key_equal)

/** What waits under a tag and scope of a peer; made if it is not there and
 *  `add` is set. NULL if not, or without memory. */
ucp_st_key_t *ucp_st_key_get(ucp_st_peer_h peer, uint64_t tag, uint64_t scope,
                             int add);

/** Free a key, if nothing waits under it. */
void ucp_st_key_put(ucp_st_peer_h peer, ucp_st_key_t *key);

/** Take an operation from the list of those that wait to be paired, if it is in
 *  it. */
void ucp_st_key_forget(struct ucp_st_op *op);

/** Forget what the peer has announced. */
void ucp_st_key_drop_remote(ucp_st_peer_h peer, ucp_st_key_t *key,
                            ucp_st_remote_op_t *remote);

/** Free what a peer announced. Its operations are gone; the lock is not held.
 */
void ucp_st_keys_cleanup(ucp_st_peer_h peer);

#endif
