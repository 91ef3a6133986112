/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_trig.h - a queue's part of one-sided operations on lane trig.
 */
#ifndef UCP_ST_RMA_TRIG_H_
#define UCP_ST_RMA_TRIG_H_

#include "rma/st_rma.h"
#include "trig/st_trig_rma.h"

/* Puts with a signal that a queue has under way at most */
#define UCP_ST_RMA_TRIG_SLOTS 32

/* For data with a signal */
typedef struct ucp_st_rma_trig_slot {
    ucp_st_trig_tally_t tally;   /* S, and the value of the signal; all zero:
                                    the slot was never used */
    uint64_t            counted; /* S when its data is written */
    int                 is_used;
} ucp_st_rma_trig_slot_t;

/* An operation, or a quiet */
typedef struct ucp_st_rma_trig_op {
    ucs_list_link_t        list;      /* in waiting, posted or over */
    struct ucp_st_rma_trig *trig;
    ucp_st_rma_t           rma;       /* not of a quiet */
    int                    is_quiet;
    uint64_t               threshold; /* of T; of a quiet: of C */
    uint64_t               value;     /* of a quiet: added to the word */
    size_t                 writes;    /* of the data */
    ucp_st_trig_line_t     line;      /* of parts: these, then the signal, or
                                         the quiet's addition */
    int                    is_failed; /* a part has */
    int                    is_ended;  /* for the queue */
    ucp_st_rma_trig_slot_t *slot;     /* of one with a signal, once posted */
} ucp_st_rma_trig_op_t;

/* A queue's private data, made for its first operation. Protected by the
 * worker's lock unless a field says otherwise. */
typedef struct ucp_st_rma_trig {
    ucs_list_link_t        list;    /* in the worker's */
    ucp_st_worker_h        worker;
    ucp_st_queue_h         queue;   /* NULL: it has left */
    unsigned               nic;
    ucp_st_trig_rail_t     *rail;   /* Of that number */
    ucp_st_trig_trigger_t  start;   /* T */
    ucp_st_trig_tally_t    done;    /* C, and the word */
    int                    is_unsettled; /* T was reset, and what waits for it
                                            is still to be cancelled: no
                                            operation ends meanwhile */
    int                    is_canceling; /* it is just being */
    uint64_t               counted; /* C when all operations have ended */
    uint64_t               asked;   /* operations that quiets wait for */
    ucp_st_trig_late_t     late;    /* while there are ... */
    ucs_list_link_t        waiting; /* ucp_st_rma_trig_op_t that wait for
                                       entries; of the first one parts may be
                                       posted */
    struct ucp_st_rma_trig_op *enqueued; /* the last of them while its
                                       command is being enqueued, or NULL: it is
                                       neither posted nor ended meanwhile */
    ucs_list_link_t        posted;  /* completely */
    ucs_list_link_t        over;    /* ended, but the NIC still has parts */
    ucp_st_rma_trig_slot_t slots[UCP_ST_RMA_TRIG_SLOTS];
} ucp_st_rma_trig_t;

/** Count in the NIC's place. The lock is held, here and below. */
void ucp_st_rma_trig_count(uct_trig_cntr_h cntr, uint64_t value);

/** End the operations of queues that were halted. In the service thread. */
void ucp_st_rma_trig_settle(ucp_st_worker_h worker);

/** Post operations that wait, in order, as far as there are entries. */
void ucp_st_rma_trig_post_late(ucp_st_trig_late_t *late);


/** End operations of the queue, unless it is unsettled: all, or those that the
 *  NIC does not end, as their peer is gone, which fails the queue, or as they
 *  have failed; but those with a lost peer end with that. */
void ucp_st_rma_trig_abort_all(ucp_st_rma_trig_t *trig, int is_all);

#endif
