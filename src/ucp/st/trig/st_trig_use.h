/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_use.h - the trig lane: what a use of an operation consists of.
 */
#ifndef UCP_ST_TRIG_USE_H_
#define UCP_ST_TRIG_USE_H_

#include "core/st_op.h"
#include "trig/st_trig.h"

#include <ucs/sys/math.h>

/** Non-zero if the operation puts something to its peer: a send its data, a
 *  receive clear-to-sends. */
static inline int ucp_st_trig_has_put(const ucp_st_op_t *op)
{
    return (op->dir == UCP_ST_DIR_SEND) ||
           (ucp_st_trig_op(op)->plan.proto != UCP_ST_TRIG_READY);
}

/** Puts of a part's use, where it has any: of a send its writes, of a receive
 *  one clear-to-send. */
static inline size_t ucp_st_trig_puts_per_use(const ucp_st_trig_part_t *part)
{
    return (part->op->dir == UCP_ST_DIR_SEND) ? part->num_puts : 1;
}

/** Of the message, from which byte on the part carries it. */
static inline size_t ucp_st_trig_offset(const ucp_st_trig_part_t *part)
{
    const ucp_st_trig_op_t *trig = ucp_st_trig_op(part->op);

    return (size_t)(part - trig->parts) * trig->plan.share;
}

/** How many bytes of it. */
static inline size_t ucp_st_trig_length(const ucp_st_trig_part_t *part)
{
    const ucp_st_trig_plan_t *plan = &ucp_st_trig_op(part->op)->plan;
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
           (ucp_st_trig_op(op)->plan.proto == UCP_ST_TRIG_EAGER);
}

/** What a start adds to T, or a receive to R. */
static inline uint64_t ucp_st_trig_weight(const ucp_st_op_t *op)
{
    return ((op->dir == UCP_ST_DIR_SEND) &&
            (ucp_st_trig_op(op)->plan.proto == UCP_ST_TRIG_EAGER)) ? 2 : 1;
}

/** Where in the inbox the data of a use is, bytes. */
static inline size_t ucp_st_trig_inbox_offset(const ucp_st_op_t *op,
                                              uint64_t use)
{
    const ucp_st_trig_plan_t *plan = &ucp_st_trig_op(op)->plan;

    return ((use - 1) % plan->depth) * plan->stride;
}

/** Bytes from where the first use's data is at the peer to where this one's
 *  is. */
static inline size_t ucp_st_trig_put_offset(const ucp_st_op_t *op, uint64_t use)
{
    return ((op->dir == UCP_ST_DIR_SEND) &&
            (ucp_st_trig_op(op)->plan.proto == UCP_ST_TRIG_EAGER)) ?
           ucp_st_trig_inbox_offset(op, use) : 0;
}

/** What a put waits for: what starts add, and of a send the clear-to-sends that
 *  its use needs, of all that there were. See st_trig.h. */
static inline uint64_t ucp_st_trig_put_threshold(const ucp_st_trig_part_t *part,
                                                 uint64_t use)
{
    const ucp_st_op_t *op          = part->op;
    const ucp_st_trig_plan_t *plan = &ucp_st_trig_op(op)->plan;
    uint64_t value                 = part->base +
                                     (use * ucp_st_trig_weight(op));

    if ((op->dir == UCP_ST_DIR_RECV) || (plan->proto == UCP_ST_TRIG_READY)) {
        return value;
    }
    return value + ((plan->proto == UCP_ST_TRIG_STANDARD) ?
                    use : ucp_st_trig_plan_clears(plan, use));
}

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
