/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig.h - the trig lane of one operation.
 *
 * A use k of a pair, two-count standard send (protocol-rules, rule 1):
 *
 *   sender                                      receiver
 *   stream:  start adds 1 to T                  stream:  start adds 1 to R
 *                                               NIC:     R >= k: put to the
 *            T counts that put too  <---------           sender's pad
 *   NIC:     T >= 2k: put the data  --------->  buffer;  D counts it
 *            C >= k: word += 1                  NIC:     D >= k: word += 1
 *   stream:  wait for word >= k                 stream:  wait for word >= k
 *
 * Neither side counts for use k+1 before its own wait of use k has run (a start
 * goes on the same queue, or after the host has seen that wait pass), so that
 * only the k-th start and the k-th clear-to-send together make T >= 2k. A ready
 * send has no clear-to-send: T >= k, and the receive's start triggers nothing.
 *
 * A use k of a small one, eager-ahead (rules 2 and 3): the data need not wait
 * for the receive's start; it goes to memory of the library, the receive's
 * inbox, which has room for N uses, two rounds of M. A clear-to-send is for a
 * round, given when the last of its M uses has been copied out.
 *
 *   sender                                      receiver
 *   stream:  start adds 2 to T
 *   NIC:     T >= 2k + n(k): put the  ------->  place k % N of the inbox;
 *            data                               D counts it
 *            C >= k: word += 1                  NIC:     D >= k: word += 1
 *   stream:  wait for word >= k                 stream:  wait for word >= k,
 *                                                        copy it to the buffer;
 *                                                        k = jM: fence, add 1
 *                                                        to R
 *            T counts that put too  <---------  NIC:     R >= j: put to the
 *                                                        sender's pad
 *
 * n(k) is 0 for the first N uses, for which the inbox is free at match, and
 * (k-1)/M - 1, rounded down, from then on. With g starts and c clear-to-sends
 * counted by T and f uses fired: start k+1 comes after the sender's wait of use
 * k, which passes after put k, so g <= f+1; clear-to-send j comes after the
 * receiver's wait of use jM, which passes after put jM landed, so c <= f/M,
 * rounded down. That is n(f+1) + 1, or less: T = 2g+c reaches the threshold of
 * use f+1, 2(f+1) + n(f+1), only with g = f+1, as one clear-to-send that may be
 * ahead does not make up for a start, which adds 2; and then only with
 * c >= n(f+1). So use f+1 is started, and uses up to M * n(f+1) >= f+1-N have
 * been copied out, also the one whose place it takes. The copies' loads are
 * over when R is added to, by the fence: no put changes what a copy reads.
 * Nobody adds to R out of the order of one stream, as nobody adds to T.
 *
 * D is one counter for all places: put k+1 fires after C >= k, when put k was
 * visible at the receiver (uct_trig_ep_put()), so if D >= k then it is,
 * whatever the order in which D counts.
 *
 * Chunked: a long message is split over the NICs that both sides have, and each
 * NIC's part into as many writes as the NIC needs. Each part is a message of
 * its own as above, with its own T, R, C, D, pad and word: a start adds to all
 * of them, a wait waits for all words. All n writes of a part's use k have the
 * same threshold, and C and D count n a use: word k is due at n*k. Use k+1 of a
 * part fires only after its C >= n*k, as before.
 *
 * A send is complete once its data is in the inbox, and its side may go before
 * the receive is started: see `early` in st_op.h. The clear-to-send that
 * follows the peer's last use reaches nobody, which is no error.
 *
 * Errors: the regions are closed, then the words are released (st_op.c), a
 * send's when the NIC does not read its buffer any more (st_trig_drain.c). A
 * stream that passes a released wait copies what the inbox then holds - the
 * buffer is undefined after an error - and neither starts nor clears to send
 * any more (`halted`). A stream that stores to a trigger page cannot look at
 * that flag. So the counters T and R of such a NIC begin at a base that is
 * larger than all that streams will ever add, thresholds count from there, and
 * an operation that fails has them reset to 0 before its words are released:
 * what streams add from then on stays below every threshold. To get rid of what
 * is armed, the host adds more than the base, once the peer has closed its
 * region. A reset is a store to the trigger page, as a start is; it comes
 * before the release, behind which the stream's store comes.
 *
 * Inbox, word and counters stay until the stream has passed the last command
 * that names them.
 */
#ifndef UCP_ST_TRIG_H_
#define UCP_ST_TRIG_H_

#include <ucp_st.h>

#include "core/st_lane.h"
#include "trig/st_trig_dev.h"
#include "trig/st_trig_plan.h"
#include "trig/st_trig_proto.h"

#include <ucs/datastruct/list.h>

/**
 * A cache line of registered memory: the word that streams wait on, counted up
 * by the NIC, and a place for the peer to write to.
 */
typedef struct ucp_st_trig_slot {
    volatile uint64_t word;
    uint64_t          pad; /* source and target of clear-to-sends and of empty
                              sends; what it holds says nothing */
    uint64_t          reserved[6];
} ucp_st_trig_slot_t;

_Static_assert(sizeof(ucp_st_trig_slot_t) == 64, "one cache line");

/** The two kinds of entries of a use. */
typedef enum {
    UCP_ST_TRIG_ENTRY_PUT,  /**< Send: the data; receive: the clear-to-send */
    UCP_ST_TRIG_ENTRY_WORD, /**< The word that the stream waits on */
    UCP_ST_TRIG_ENTRY_LAST
} ucp_st_trig_entry_t;

/** What an operation has on one NIC. Protected by the worker's lock, but for
 *  what says otherwise. */
typedef struct ucp_st_trig_part {
    struct ucp_st_op    *op;
    /* What streams use: */
    ucp_st_trig_slot_t  *slot;
    void                *inbox;    /* of an eager-ahead receive */
    uct_trig_cntr_h     start;     /* T or R: streams add to it; or NULL */
    volatile uint64_t   *doorbell; /* of `start`; NULL: it is added to by a
                                      call */
    /* Of the host alone: */
    uint32_t            num_puts;  /* writes of the share of a message that it
                                      carries */
    uint64_t            base;      /* that thresholds of `start` count from */
    uint64_t            words;     /* uses that the word was counted up for, as
                                      far as that was reaped */
    /* The work of a use, posted for use after use: */
    uint64_t            posted[UCP_ST_TRIG_ENTRY_LAST];
    uint32_t            pending[UCP_ST_TRIG_ENTRY_LAST]; /* of those, neither
                                                            done nor failed */
    ucp_st_trig_rail_t  *rail;
    uct_ep_h            ep;        /* to the peer */
    uct_trig_rkey_t     remote;    /* where to put */
    uct_trig_cntr_h     data;      /* C or D: counts the data */
    uct_trig_op_h       *puts;     /* one for each put of a use */
    uct_trig_op_h       word_add;
    uct_trig_resv_t     resv[UCP_ST_TRIG_ENTRY_LAST];
    uct_trig_mem_h      mem;       /* what the peer writes; NULL once revoked */
    uct_trig_mem_h      local;     /* of a send: source of puts, where it must
                                      be given; or NULL */
    ucp_st_trig_slab_t  *slot_slab;
    ucp_st_trig_slab_t  *inbox_slab;
} ucp_st_trig_part_t;

/**
 * Protected by the worker's lock; `halted` is also read by the stream, and
 * `untriggered` is set by it.
 */
typedef struct ucp_st_trig_op {
    struct ucp_st_op   *op;       /* read-only */
    ucp_st_trig_part_t *parts;
    uct_trig_op_h      *puts;     /* of all parts */
    uint8_t            num_parts;
    uint8_t            is_late;
    uint8_t            halted;    /* starts must have no effect any more */
    uint8_t            untriggered; /* a start had none; atomic */
    uint8_t            released;  /* all waits pass */
    uint8_t            disposed;  /* what is armed has been fired */
    uint8_t            is_draining;
    ucs_status_t       doubt;     /* why a put may have failed; or UCS_OK */
    ucp_st_trig_plan_t plan;
    ucs_list_link_t    late_list; /* in the lane's late */
    ucs_list_link_t    doubt_list;/* in the lane's doubtful */
    ucs_list_link_t    drain_list;/* in the lane's draining */
    double             since;     /* when it came into one of the latter two,
                                     seconds */
    uint64_t           uses;      /* that all parts have counted up */
} ucp_st_trig_op_t;

extern const ucp_st_lane_ops_t ucp_st_trig_lane;

/** The lane's part of an operation; NULL if it holds nothing for it. */
static inline ucp_st_trig_op_t *ucp_st_trig_op(const ucp_st_op_t *op)
{
    return op->parts[UCP_ST_LANE_TRIG];
}

/** The lane's functions for operations: see st_lane.h. */
ucs_status_t ucp_st_trig_offer(struct ucp_st_op *op, void *blob,
                               size_t *length_p);
ucs_status_t ucp_st_trig_bind(struct ucp_st_op *op, const void *blob,
                              size_t length);
ucs_status_t ucp_st_trig_post(struct ucp_st_op *op, uint64_t uses);
size_t ucp_st_trig_start(struct ucp_st_op *op, ucp_st_queue_h queue,
                         uint64_t use, ucs_gstream_cmd_t *cmds);
size_t ucp_st_trig_wait_words(const struct ucp_st_op *op,
                              ucs_gstream_word_t *words);
size_t ucp_st_trig_land(struct ucp_st_op *op, ucs_gstream_cmd_t *cmds);
uint64_t ucp_st_trig_uses_done(const struct ucp_st_op *op);
void ucp_st_trig_halt(struct ucp_st_op *op);
void ucp_st_trig_release_waits(struct ucp_st_op *op);
void ucp_st_trig_revoke(struct ucp_st_op *op);
void ucp_st_trig_dispose(struct ucp_st_op *op);
int ucp_st_trig_is_busy(const struct ucp_st_op *op);
void ucp_st_trig_release(struct ucp_st_op *op);

/** Take an operation from the list of those with uses to post. The lock is
 *  held. */
void ucp_st_trig_late_del(ucp_st_trig_op_t *trig);

/** A put failed, for this reason or because the peer closed its region. The
 *  lock is held. */
void ucp_st_trig_doubt_add(struct ucp_st_op *op, ucs_status_t status);

/** Why it failed is known, or does not matter any more. The lock is held. */
void ucp_st_trig_doubt_del(ucp_st_trig_op_t *trig);

/** Decide about those that were in doubt for long enough. Milliseconds until it
 *  is to be called again, or -1. The lock is held. */
int ucp_st_trig_doubts_settle(ucp_st_worker_h worker);

/** Store the release to the words, again where an addition of the NIC may have
 *  been between its load and its store. The lock is held. */
void ucp_st_trig_store_release(struct ucp_st_op *op);

/** A put is over: let the waits pass if only that was missing. The lock is
 *  held. */
void ucp_st_trig_drain_check(struct ucp_st_op *op);

/** The operation goes. The lock is held. */
void ucp_st_trig_drain_del(ucp_st_trig_op_t *trig);

/** Let the waits pass of those that have been kept for long enough.
 *  Milliseconds until it is to be called again, or -1. The lock is held. */
int ucp_st_trig_drains_settle(ucp_st_worker_h worker);

/** Post more uses of a late operation as entries allow, which is then late no
 *  more or fails; non-zero if it failed, and others with it. The lock is held.
 */
int ucp_st_trig_post_more(struct ucp_st_op *op);

/** Post the uses of late operations as entries allow. The lock is held. */
void ucp_st_trig_post_late(ucp_st_worker_h worker);

#endif
