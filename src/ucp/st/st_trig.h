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
 * On an emulated NIC the word follows C or D by itself: no operation adds to it
 * (`is_mirrored`; uct_trig_cntr_mirror()). It is n*k for use k then.
 *
 * A send is complete once its data is in the inbox, and its side may go before
 * the receive is started: see `early` in st_op.h. The clear-to-send that
 * follows the peer's last use reaches nobody, which is no error.
 *
 * Errors: the regions are closed, then the words are released (st_op.c), a
 * send's when the NIC does not read its buffer any more (st_trig_drain.c). A
 * stream that passes a released wait copies what the inbox then holds - the
 * buffer is undefined after an error - and neither starts nor clears to send
 * any more (`halted`); where the NIC is triggered by a store, which cannot
 * look at that, what it triggers names a region of the peer that is closed, or
 * clears a put for the inbox, whose region is. Inbox, word and counters stay
 * until the stream has passed the last command that names them.
 */
#ifndef UCP_ST_TRIG_H_
#define UCP_ST_TRIG_H_

#include <ucp_st.h>

#include "st_trig_dev.h"
#include "st_trig_plan.h"
#include "st_trig_proto.h"

#include <ucs/datastruct/list.h>

struct ucp_st_op;

/**
 * A cache line of registered memory: the word that streams wait on, counted up
 * by the NIC, and a place for the peer to write to.
 */
typedef struct ucp_st_trig_slot {
    volatile uint64_t word;
    uint64_t          pad; /* source and target of clear-to-sends, which tell
                              their number, and of empty sends */
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
    void                *inbox;   /* of an eager-ahead receive */
    uct_trig_cntr_h     start;    /* T or R: streams add to it; or NULL */
    union {
        volatile uint64_t *doorbell; /* of `start`, and how to use it: */
        uint64_t        round;    /* of a joined receive: uses that one
                                     clear-to-send is for */
    };
    uint8_t             doorbell_mode; /* uct_trig_doorbell_mode_t */
    uint8_t             is_mirrored:1; /* the word follows `data` by itself */
    uint8_t             is_offset:1;   /* addresses of `remote` count from its
                                          first byte */
    uint8_t             is_told:1;     /* of a joined receive: `round`, `begun`
                                          and `direct` count; set before its
                                          first use */
    union {
        uint8_t         is_parked;     /* a joined send's use is to be sent when
                                          there is room */
        uint8_t         is_clearing;   /* a receive's clear-to-send is to be
                                          sent; atomic */
    };
    uint32_t            num_puts; /* writes of the share of a message that it
                                     carries */
    uint64_t            run;      /* starts, or clear-to-sends, that were
                                     called for; the stream's, read by others */
    struct ucp_st_trig_part *next;/* of those whose use is to be sent with
                                     others: st_trig_coalesce.h */
    struct ucp_st_trig_chain *chain; /* to the peer */
    union {
        uint64_t        words;    /* what the word was counted up to, as far as
                                     that was reaped */
        uint64_t        room;     /* of a joined send: uses that the inbox has
                                     had room for */
    };
    union {
        struct { /* where to put: ucp_st_trig_remote() */
            uint64_t    key;
            uint64_t    address;
            uint64_t    length;
        } remote;
        struct { /* of a receive whose clear-to-sends are messages */
            uint64_t    begun;  /* starts, if it is joined; the stream's, read
                                   by others */
            uint64_t    direct; /* the last use whose data went to the buffer,
                                   not the inbox; set before the word */
            uint64_t    cleared;/* the last clear-to-send that was sent */
        };
    };
    /* The work of a use, posted for use after use: */
    uint64_t            posted[UCP_ST_TRIG_ENTRY_LAST];
    uint32_t            pending[UCP_ST_TRIG_ENTRY_LAST]; /* of those, neither
                                                            done nor failed */
    ucp_st_trig_rail_t  *rail;
    uct_trig_cntr_h     data;     /* C or D: counts the data */
    union {
        uct_trig_op_h   put;      /* where a use has one */
        uct_trig_op_h   *puts;    /* where it has several, and memory for them
                                     was there */
    };
    uct_trig_op_h       word_add;
    uct_trig_resv_t     resv[UCP_ST_TRIG_ENTRY_LAST];
    uct_trig_mem_h      mem;      /* what the peer writes; NULL once revoked */
    ucp_st_trig_slab_t  *slot_slab;
    union {
        ucp_st_trig_slab_t *inbox_slab; /* of an eager-ahead receive */
        uct_trig_mem_h  local;    /* of a send: source of puts, where it must be
                                     given; or NULL */
    };
} ucp_st_trig_part_t;

/* A pair has two of them, or more */
_Static_assert(sizeof(ucp_st_trig_part_t) <= 200, "memory of a pair");

/**
 * Protected by the worker's lock; `halted` is also read by the stream, and
 * `untriggered` is set by it.
 */
typedef struct ucp_st_trig_op {
    /* What most starts and waits need, next to what they look at before */
    uint64_t           plain_end; /* starts of uses below are plain: see
                                     ucp_st_trig_post() */
    volatile uint64_t  *word;     /* of the only part, where a use counts 1; or
                                     NULL */
    ucp_st_trig_part_t *parts;
    uint8_t            num_parts; /* 0: nothing is offered */
    uint8_t            is_called; /* streams trigger its NIC, or have it send
                                     clear-to-sends, by a call */
    uint8_t            is_late;
    uint8_t            halted;    /* starts must have no effect any more */
    uint8_t            untriggered; /* a start had none; atomic */
    uint8_t            released;  /* all waits pass */
    uint8_t            disposed;  /* what is armed has been fired */
    uint8_t            is_draining;
    uint8_t            joined;    /* st_trig_coalesce.h; set before its first
                                     use */
    ucs_status_t       doubt;     /* why a put may have failed; or UCS_OK */
    ucp_st_trig_plan_t plan;
    ucs_list_link_t    late_list; /* in the lane's late */
    union {
        struct { /* of an operation that is matched */
            ucs_list_link_t doubt_list; /* in the lane's doubtful */
            double          doubt_time; /* since when, seconds */
        };
        struct { /* of one that has failed */
            ucs_list_link_t drain_list; /* in the lane's draining */
            double          drain_time; /* since when, seconds */
        };
    };
    uint64_t           uses;      /* that all parts have counted up */
} ucp_st_trig_op_t;

/** The lane's functions for operations: see st_lane.h. */
ucs_status_t ucp_st_trig_offer(struct ucp_st_op *op, void *blob,
                               size_t *length_p);
ucs_status_t ucp_st_trig_bind(struct ucp_st_op *op, const void *blob,
                              size_t length);
ucs_status_t ucp_st_trig_post(struct ucp_st_op *op, uint64_t uses);
size_t ucp_st_trig_start_cmds(struct ucp_st_op *op, ucp_st_queue_h queue,
                              uint64_t use,
                              ucs_gstream_cmd_t *cmds);
size_t ucp_st_trig_start_run(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                             size_t count, size_t *num_cmds);
size_t ucp_st_trig_wait_words(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                              size_t count, size_t *num_words);
size_t ucp_st_trig_land_run(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                            size_t count, size_t *num_cmds);
uint64_t ucp_st_trig_uses_done(const struct ucp_st_op *op);
uint64_t ucp_st_trig_uses_landed(const struct ucp_st_op *op);
uint64_t ucp_st_trig_uses_begun(const struct ucp_st_op *op);
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
