/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_use.h - the trig lane: what a use of an operation consists of.
 */
#ifndef UCP_ST_TRIG_USE_H_
#define UCP_ST_TRIG_USE_H_

#include "st_op.h"
#include "st_trig.h"

#include <ucs/sys/math.h>

/** Non-zero if clear-to-sends are put to the send's side. */
static inline int ucp_st_trig_has_cts_put(const ucp_st_op_t *op)
{
    return (op->trig.plan.proto != UCP_ST_TRIG_READY) &&
           !op->trig.plan.is_cts_sent;
}

/** Non-zero if the operation puts something to its peer: a send its data, a
 *  receive clear-to-sends. */
static inline int ucp_st_trig_has_put(const ucp_st_op_t *op)
{
    return (op->dir == UCP_ST_DIR_SEND) || ucp_st_trig_has_cts_put(op);
}

/** Puts of a part's use, where it has any: of a send its writes, of a receive
 *  one clear-to-send. */
static inline size_t ucp_st_trig_puts_per_use(const ucp_st_trig_part_t *part)
{
    return (part->op->dir == UCP_ST_DIR_SEND) ? part->num_puts : 1;
}

/** Those of the part's puts that are not posted again for each use: as many as
 *  a use has. NULL if there was no memory for them. */
static inline uct_trig_op_h *ucp_st_trig_puts(ucp_st_trig_part_t *part)
{
    return (ucp_st_trig_puts_per_use(part) == 1) ? &part->put : part->puts;
}

/** The region to put to. */
static inline uct_trig_rkey_t ucp_st_trig_remote(const ucp_st_trig_part_t *part)
{
    return (uct_trig_rkey_t){
        .key     = part->remote.key,
        .address = part->remote.address,
        .length  = part->remote.length,
        .base    = part->is_offset ? part->remote.address : 0
    };
}

/** What the part's word is counted up by for a use. */
static inline uint64_t ucp_st_trig_unit(const ucp_st_trig_part_t *part)
{
    return part->is_mirrored ? part->num_puts : 1;
}

/** Of the message, from which byte on the part carries it. */
static inline size_t ucp_st_trig_offset(const ucp_st_trig_part_t *part)
{
    const ucp_st_trig_op_t *trig = &part->op->trig;

    return (size_t)(part - trig->parts) * trig->plan.share;
}

/** How many bytes of it. */
static inline size_t ucp_st_trig_length(const ucp_st_trig_part_t *part)
{
    const ucp_st_trig_plan_t *plan = &part->op->trig.plan;
    size_t rest                    = plan->length - ucp_st_trig_offset(part);

    return (rest < plan->share) ? rest : plan->share;
}

/** Puts, or additions to the word, that are done or failed. */
static inline uint64_t ucp_st_trig_done(const ucp_st_trig_part_t *part,
                                        ucp_st_trig_entry_t entry)
{
    return part->posted[entry] - part->pending[entry];
}

/** Non-zero for a receive whose data goes to an inbox. */
static inline int ucp_st_trig_has_inbox(const ucp_st_op_t *op)
{
    return (op->dir == UCP_ST_DIR_RECV) &&
           (op->trig.plan.proto == UCP_ST_TRIG_EAGER);
}

/** What a start adds to T, or a receive to R. */
static inline uint64_t ucp_st_trig_weight(const ucp_st_op_t *op)
{
    return ((op->dir == UCP_ST_DIR_SEND) &&
            (op->trig.plan.proto == UCP_ST_TRIG_EAGER)) ? 2 : 1;
}

/** Clear-to-sends that a send's use needs, of all that there were. */
static inline uint64_t ucp_st_trig_cts_needed(const ucp_st_op_t *op,
                                              uint64_t use)
{
    switch (op->trig.plan.proto) {
    case UCP_ST_TRIG_READY:
        return 0;
    case UCP_ST_TRIG_STANDARD:
        return use;
    default:
        return ucp_st_trig_plan_clears(&op->trig.plan, use);
    }
}

/** Which place of the inbox the data of a use has, from 0. */
static inline unsigned ucp_st_trig_inbox_index(const ucp_st_op_t *op,
                                               uint64_t use)
{
    return (use - 1) % op->trig.plan.depth;
}

/** Where in the inbox the data of a use is, bytes. */
static inline size_t ucp_st_trig_inbox_offset(const ucp_st_op_t *op,
                                              uint64_t use)
{
    return ucp_st_trig_inbox_index(op, use) * op->trig.plan.stride;
}

/** Where that is, in a receive's inbox. */
static inline void *ucp_st_trig_inbox_place(const ucp_st_trig_part_t *part,
                                            uint64_t use)
{
    return UCS_PTR_BYTE_OFFSET(part->inbox,
                               ucp_st_trig_inbox_offset(part->op, use));
}

/** Non-zero for the last of the uses that one clear-to-send is for. */
static inline int ucp_st_trig_is_last_of_round(const ucp_st_op_t *op,
                                               uint64_t use)
{
    return (use % ucp_st_trig_plan_round(&op->trig.plan)) == 0;
}

/** Bytes from where the first use's data is at the peer to where this one's
 *  is. */
static inline size_t ucp_st_trig_put_offset(const ucp_st_op_t *op, uint64_t use)
{
    return ((op->dir == UCP_ST_DIR_SEND) &&
            (op->trig.plan.proto == UCP_ST_TRIG_EAGER)) ?
           ucp_st_trig_inbox_offset(op, use) : 0;
}

/** What a put waits for: what starts add, and the clear-to-sends that there
 *  are. See st_trig.h. */
static inline uint64_t ucp_st_trig_put_threshold(const ucp_st_op_t *op,
                                                 uint64_t use)
{
    return (op->dir == UCP_ST_DIR_RECV) ?
           use : ((use * ucp_st_trig_weight(op)) +
                  ucp_st_trig_cts_needed(op, use));
}

/** So many uses are complete, and nobody has counted them. The lock is held. */
void ucp_st_trig_uses_add(ucp_st_op_t *op, uint64_t count);

/** Count uses that are complete without a completion to reap. The lock is held.
 */
void ucp_st_trig_catch_up(ucp_st_op_t *op);

/** The NIC says that the peer cannot be reached, not that a put is wrong. */
int ucp_st_trig_is_loss(ucs_status_t status);

/** Describe the work of a use; the entries are set aside. What was made before
 *  an error is destroyed with the part. */
ucs_status_t ucp_st_trig_entries_create(ucp_st_trig_part_t *part);

/** Undo it; nothing is posted. */
void ucp_st_trig_entries_destroy(ucp_st_trig_part_t *part);

/** Post the next put or word: UCS_OK, UCS_ERR_NO_RESOURCE if no entry is free
 *  for it, or another error; no effect then. */
ucs_status_t ucp_st_trig_entry_post(ucp_st_trig_part_t *part,
                                    ucp_st_trig_entry_t entry);

#endif
