/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig.h - the trig lane of one operation.
 *
 * docs/protocols.md, "Lane trig", describes the protocols and argues that they
 * are sound. In short, for use k of a pair:
 *
 *                stream of the send    card of the send     card of the receive
 *   ready        T += 1                T >= k: data
 *   standard     T += 1                T >= 2k: data        R >= k: clear-to-
 *                                                           send, T += 1
 *   eager-ahead  T += 2                T >= 2k + n(k):      R >= j: clear-to-
 *                                      data, to the inbox   send, T += 1
 *   all                                C >= k: word += 1    D >= k: word += 1
 *
 * The start of a standard receive adds 1 to R. The wait of an eager-ahead one
 * copies the data out of its inbox, which has room for N uses; behind use jM,
 * with M = N/2, it adds 1 to R.
 *
 * A long message is split over the NICs that both sides have. Each share is a
 * part with counters and a word of its own: a start adds to all T or R, and a
 * wait waits for all words. A part's use may be several writes with the same
 * threshold; its word is due at n writes a use.
 *
 * Operations of one exchange share counters and a word on each NIC: see
 * st_trig_shared.h.
 *
 * After an error the regions are closed, then the words are released: those of
 * a send when the NIC does not read its buffer any more (st_trig_end.c).
 * Inbox, word and counters stay until the stream has passed the last command
 * that names them.
 */
#ifndef UCP_ST_TRIG_H_
#define UCP_ST_TRIG_H_

#include <ucp_st.h>

#include "core/st_lane.h"
#include "core/st_op.h"
#include "trig/st_trig_dev.h"
#include "trig/st_trig_plan.h"
#include "trig/st_trig_proto.h"
#include "trig/st_trig_shared.h"

#include <ucs_gstream_pair.h>

#include <ucs/datastruct/list.h>

/** What an operation has on one NIC. Protected by the worker's lock, but for
 *  what streams use. */
typedef struct ucp_st_trig_part {
    struct ucp_st_op    *op;
    /* Used by streams: */
    void                *inbox;    /* of an eager-ahead receive, or NULL */
    ucp_st_trig_start_t *start;    /* T or R; NULL: starts do nothing */
    ucp_st_trig_done_t  *done;     /* C or D, and the word */
    /* Used by the host alone: */
    uint32_t            num_puts;  /* writes of its share of a message */
    uint8_t             is_disposed; /* counted in `start`, */
    uint8_t             is_released; /* and in `done` */
    uint8_t             is_settled;
    ucp_st_trig_line_t  line;      /* of puts: those of a use, for use after
                                      use */
    ucs_list_link_t     start_list; /* in those of `start` */
    ucs_list_link_t     done_list;  /* in those of `done` */
    ucp_st_trig_rail_t  *rail;
    uct_ep_h            ep;        /* to the peer */
    uct_trig_rkey_t     remote;    /* where to put */
    uct_trig_op_h       *puts;     /* one for each put of a use */
    uct_trig_mem_h      mem;       /* what the peer writes; NULL once revoked */
    uct_trig_mem_h      local;     /* of a send: source of puts, where it must
                                      be given; or NULL */
    ucp_st_trig_piece_t pad;       /* source and target of clear-to-sends and of
                                      empty messages; its value is not used */
} ucp_st_trig_part_t;

/** Protected by the worker's lock. */
typedef struct ucp_st_trig_op {
    struct ucp_st_op   *op;       /* read-only */
    ucp_st_trig_part_t *parts;
    uint8_t            num_parts;
    uint8_t            reaches;   /* what moves is the user's buffer */
    uint8_t            released;  /* all waits pass */
    uint8_t            disposed;  /* what was armed has been fired */
    uint8_t            is_draining;
    uint8_t            is_canceling; /* disposed of by that, if it succeeds */
    uint8_t            asked;    /* types of streams that were told of pages */
    ucs_status_t       doubt;     /* why a put may have failed; or UCS_OK */
    ucp_st_trig_plan_t plan;
    ucp_st_trig_late_t late;
    ucs_list_link_t    end_list;  /* in the lane's ending */
    double             deadline;  /* there, a time of ucp_st_worker_now() */
    /* For kernels of the application, st_trig_ahead.c */
    ucs_gstream_pair_record_t *record; /* or NULL */
    uint64_t           device_key;
    ucp_st_trig_late_t starting;  /* late while a kernel's start of an operation
                                     that was halted has not ended */
} ucp_st_trig_op_t;

extern const ucp_st_lane_ops_t ucp_st_trig_lane;

/** What kernels of the application start; st_trig_ahead.c. */
extern const ucp_st_lane_ahead_ops_t ucp_st_trig_ahead;

/** The lane's data of an operation; NULL if it holds nothing for it. */
static inline ucp_st_trig_op_t *ucp_st_trig_op(const ucp_st_op_t *op)
{
    return op->priv[UCP_ST_LANE_TRIG];
}

/** Non-zero if the operation puts something to its peer: a send its data, a
 *  receive clear-to-sends. */
static inline int ucp_st_trig_has_put(const ucp_st_op_t *op)
{
    return (op->dir == UCP_ST_DIR_SEND) ||
           (ucp_st_trig_op(op)->plan.proto != UCP_ST_TRIG_READY);
}

/** Non-zero for a receive whose data goes to an inbox. */
static inline int ucp_st_trig_has_inbox(const ucp_st_op_t *op)
{
    return (op->dir == UCP_ST_DIR_RECV) &&
           (ucp_st_trig_op(op)->plan.proto == UCP_ST_TRIG_EAGER);
}

/** Where in the inbox the data of a use is, bytes. */
static inline size_t ucp_st_trig_inbox_offset(const ucp_st_op_t *op,
                                              uint64_t use)
{
    const ucp_st_trig_plan_t *plan = &ucp_st_trig_op(op)->plan;

    return ((use - 1) % plan->depth) * plan->stride;
}

/** Puts of a part's use: of a send its writes, of a receive one clear-to-send
 *  or none. */
static inline size_t ucp_st_trig_puts_per_use(const ucp_st_trig_part_t *part)
{
    return (part->op->dir == UCP_ST_DIR_SEND) ?
           part->num_puts : (size_t)ucp_st_trig_has_put(part->op);
}

/** The part's share of the message. */
static inline void ucp_st_trig_share(const ucp_st_trig_part_t *part,
                                     ucp_st_trig_share_t *share)
{
    const ucp_st_trig_op_t *trig = ucp_st_trig_op(part->op);

    ucp_st_trig_plan_share(&trig->plan, (unsigned)(part - trig->parts), share);
}

/** Non-zero while a kernel is in the midst of a start, which may store to a
 *  trigger page. Asked behind ucp_st_trig_ahead_halt(). */
int ucp_st_trig_ahead_is_starting(const ucp_st_op_t *op);

/** Kernels start nothing any more. May be called again. */
void ucp_st_trig_ahead_halt(ucp_st_trig_op_t *trig);

/** The operation goes: give back what kernels look at, or keep it if there are
 *  uses that they have not come to. */
void ucp_st_trig_ahead_release(ucp_st_op_t *op);

/** The lane's functions of these names: see st_lane.h. */
void ucp_st_trig_leave_queue(struct ucp_st_op *op, ucp_st_queue_h queue);
ucs_status_t ucp_st_trig_post(struct ucp_st_op *op, uint64_t use);
void ucp_st_trig_halt(struct ucp_st_op *op);
void ucp_st_trig_release_waits(struct ucp_st_op *op);
void ucp_st_trig_dispose(struct ucp_st_op *op);

/* The worker's lock is held for all of the following: */

/** The NIC moves data of the memory that the operation's buffer lies in: the
 *  host's, or that of a device which can be registered. st_trig_gpu.c. */
int ucp_st_trig_reaches(const ucp_st_op_t *op);

/** Write to `cmd` the copy of the last use's data out of its place in the
 *  inbox: how many commands, 0 if the one before serves this copy, too. */
size_t ucp_st_trig_landing_cmd(ucp_st_op_t *op, ucs_gstream_cmd_t *cmd);

/** Describe the puts of a use. What was made before an error is destroyed with
 *  the part. */
ucs_status_t ucp_st_trig_puts_create(ucp_st_trig_part_t *part);

/** Undo it; nothing is posted. */
void ucp_st_trig_puts_destroy(ucp_st_trig_part_t *part);

/** An addition to a word is over; uct_trig_done_func_t. */
void ucp_st_trig_word_done(void *arg, ucs_status_t status);

/** Post more uses of a late operation as entries allow, which is then late no
 *  more, or fails. */
void ucp_st_trig_post_more(ucp_st_trig_late_t *late);

/** A put failed, for this reason or because the peer closed its region. */
void ucp_st_trig_doubt_add(struct ucp_st_op *op, ucs_status_t status);

/** A put is over: let the waits pass if only that was missing. */
void ucp_st_trig_drain_check(struct ucp_st_op *op);

/** The operation goes: take it from the lists of those that end. */
void ucp_st_trig_end_del(ucp_st_trig_op_t *trig);

/** Decide about the operations that were in doubt, or drained, for long enough.
 *  Milliseconds until it is to be called again, or -1. */
int ucp_st_trig_settle(ucp_st_worker_h worker);

#endif
