/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_trig.h - one-sided operations on lane trig: deferred work of the NIC.
 *
 * Each queue has on the NIC a counter T, to which its stream adds 1 for every
 * operation, a counter C and a word:
 *
 *   put, get:         T >= n: the data        C counts it
 *   put with signal:  T >= n: the data        S counts it
 *                     S >= m: the signal      C counts it
 *   signal alone:     T >= n: the signal      C counts it
 *   quiet:            C >= all that operations before it count:
 *                                             word = their number
 *
 * The n-th operation of the queue has threshold n. S is a counter of the pair
 * of data and signal, lent by the queue while both are under way; m is what it
 * has counted before, and the writes of this data. A strict operation has the
 * stream wait as a quiet does, if there are others with the peer.
 *
 * A queue sets entries aside for itself when it needs the first one, and takes
 * more as far as uses of others may be posted ahead, too. What finds none free
 * waits here, in order, and is posted when one before it is complete: a
 * threshold that is reached already fires at once. So no queue holds what
 * another one needs.
 *
 * What fails is counted in the NIC's place, when the queue is in error: quiets
 * pass.
 */
#ifndef UCP_ST_RMA_TRIG_H_
#define UCP_ST_RMA_TRIG_H_

#include <ucp_st.h>
#include <uct_trig.h>

#include "st_rma.h"
#include "st_trig_rail.h"

#include <ucs/datastruct/list.h>

/** Pairs of data and signal that a queue has under way at most. */
#define UCP_ST_RMA_TRIG_SLOTS 32

/** What a pair of data and signal needs. */
typedef struct ucp_st_rma_trig_slot {
    uct_trig_cntr_h     data;    /* S; NULL: the slot was never used */
    ucp_st_trig_piece_t piece;   /* holds the value of the signal */
    uint64_t            counted; /* that S has counted when its data is over */
    int                 is_used;
} ucp_st_rma_trig_slot_t;

/** An operation, or a quiet. */
typedef struct ucp_st_rma_trig_op {
    ucs_list_link_t        list;      /* in late, posted or over */
    struct ucp_st_rma_trig *trig;
    ucp_st_rma_t           rma;       /* not of a quiet */
    int                    is_quiet;
    uint64_t               threshold; /* of T; of a quiet: of C */
    uint64_t               value;     /* of a quiet: what to add to the word */
    size_t                 writes;    /* of the data */
    size_t                 posted;    /* of these */
    size_t                 failed;    /* of these */
    unsigned               pending;   /* the NIC has so many */
    int                    is_signalled; /* the signal was posted */
    int                    is_ahead;  /* its entries are not those that the
                                         queue has set aside */
    int                    is_ended;  /* for the queue */
    ucp_st_rma_trig_slot_t *slot;     /* of one with a signal, once posted */
} ucp_st_rma_trig_op_t;

/** A queue's part. Protected by the worker's lock, but for what says otherwise.
 */
typedef struct ucp_st_rma_trig {
    ucs_list_link_t        list;    /* in the worker's */
    ucp_st_worker_h        worker;
    ucp_st_queue_h         queue;   /* NULL: it has left */
    ucp_st_trig_rail_t     *rail;
    uct_trig_cntr_h        start;   /* T */
    uct_trig_cntr_h        done;    /* C */
    uct_trig_doorbell_t    doorbell;/* of T */
    uct_trig_resv_t        resv;
    ucp_st_trig_piece_t    piece;   /* the word */
    uint64_t               started; /* operations */
    uint64_t               counted; /* of C, when all of them are over */
    uint64_t               asked;   /* operations that quiets have asked for */
    unsigned               untriggered; /* that streams could not add to T;
                                           atomic */
    ucs_list_link_t        late;    /* ucp_st_rma_trig_op_t that wait for
                                       entries; of the first one parts may be
                                       posted */
    ucs_list_link_t        posted;  /* all of it is */
    ucs_list_link_t        over;    /* the queue's no more, but the NIC's */
    ucp_st_rma_trig_slot_t slots[UCP_ST_RMA_TRIG_SLOTS];
} ucp_st_rma_trig_t;

/** Post what waits for entries, and give back what queues have left. The lock
 *  is held. */
void ucp_st_rma_trig_progress(ucp_st_worker_h worker);

/** Non-zero while operations have not ended here that the queue's stream has
 *  passed a quiet of. The lock is held. */
int ucp_st_rma_trig_is_behind(const ucp_st_rma_trig_t *trig);

/** Non-zero while something waits for entries. The lock is held. */
int ucp_st_rma_trig_is_late(ucp_st_worker_h worker);

/** Free what is not used any more, at the worker's end. */
void ucp_st_rma_trig_cleanup(ucp_st_worker_h worker);

/** The queue goes: its part is given back when the NIC is done with it. The
 *  lock is held. */
void ucp_st_rma_trig_leave(ucp_st_rma_trig_t *trig);

/** The peer is gone: end what is with it. The lock is held. */
void ucp_st_rma_trig_peer_gone(ucp_st_peer_h peer);

/** Where the queue's stream waits for the NIC. */
static inline volatile uint64_t *
ucp_st_rma_trig_word(const ucp_st_rma_trig_t *trig)
{
    return trig->piece.address;
}

/** What C counts of an operation. */
static inline uint64_t
ucp_st_rma_trig_counts(const ucp_st_rma_trig_op_t *op)
{
    return (op->rma.signal != NULL) ? 1 : op->writes;
}

/** Make a slot usable. The lock is held, as it is for the rest. */
ucs_status_t ucp_st_rma_trig_slot_init(ucp_st_rma_trig_t *trig,
                                       ucp_st_rma_trig_slot_t *slot);

/** End an operation that the NIC may still have, as its queue is in error: what
 *  it leaves there fires, and is dropped. */
void ucp_st_rma_trig_abort(ucp_st_rma_trig_op_t *op);

/** The NIC has nothing of an operation, and gets nothing any more. */
void ucp_st_rma_trig_destroy(ucp_st_rma_trig_op_t *op);

/** It is in use no more. */
void ucp_st_rma_trig_put(ucp_st_rma_trig_op_t *op);

/** Count in the NIC's place. */
void ucp_st_rma_trig_count(uct_trig_cntr_h cntr, uint64_t value);

/** Post what waits, in order, as far as there are entries. */
void ucp_st_rma_trig_post_late(ucp_st_rma_trig_t *trig);

#endif
