/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trig_util.h - a pair with counters and regions, for tests of triggered
 * operations. A puts into B's buffer; words of A and B are added to locally.
 */
#ifndef TRIG_UTIL_H_
#define TRIG_UTIL_H_

#include "st_cunit.h"
#include "uct_pair.h"

#include <unistd.h>

/** Pieces of a buffer, and their length. */
#define TRIG_SLOTS  16
#define TRIG_LENGTH 64


/** What the tests share. One thread. */
typedef struct {
    uct_pair_t        pair;
    uct_trig_cntr_h   trigger;      /**< At A */
    uct_trig_cntr_h   completion;   /**< At A: puts, then words */
    uct_trig_cntr_h   words;        /**< At A: completion of atomics */
    uct_trig_cntr_h   barrier[2];   /**< At A: trigger, completion */
    uct_trig_cntr_h   probe[2];     /**< At A and B: for trig_count() */
    uct_trig_cntr_h   b_writes;     /**< At B: counts writes to b_buffer */
    uct_trig_cntr_h   b_words;      /**< At B: completion of atomics */
    uct_trig_mem_h    a_mem;        /**< a_word */
    uct_trig_mem_h    b_mem;        /**< b_buffer */
    uct_trig_mem_h    b_word_mem;   /**< b_word */
    uct_trig_rkey_t   a_rkey;
    uct_trig_rkey_t   b_rkey;
    uct_trig_rkey_t   b_word_rkey;
    volatile uint64_t a_word;
    volatile uint64_t b_word;
    volatile uint64_t done;         /**< Calls of done() */
    volatile uint64_t barriers;     /**< Calls of the barrier's done() */
    ucs_status_t      status;       /**< Last one that done() got */
    uint64_t          barrier_count;
    uint64_t          probes[2];    /**< Added to the probes */
    uint8_t           a_buffer[TRIG_SLOTS * TRIG_LENGTH];
    uint8_t           b_buffer[TRIG_SLOTS * TRIG_LENGTH]
                              __attribute__((aligned(64)));
} trig_t;


/** Make everything; 0 or -1 after a message. @a settings: see uct_pair.h. */
int trig_create(trig_t *trig, const char *const *settings);

/** Undo it, checking that nothing is busy. */
void trig_destroy(trig_t *trig);

/** A case on "trig". */
#define TRIG_CASE(_name, _settings) \
    ST_CASE_WITH(_name, trig_t, trig, \
                 CU_ASSERT_FATAL(trig_create(trig, _settings) == 0), \
                 trig_destroy(trig))

/** Register memory; must succeed. Its key. */
uct_trig_rkey_t trig_reg(uct_iface_h iface, volatile void *address,
                         size_t length, uct_trig_cntr_h cntr,
                         uct_trig_mem_h *mem_p);

/** The counters and regions of one side alone, with the same checks. */
void trig_destroy_a(trig_t *trig);
void trig_destroy_b(trig_t *trig);

/** Close B with all that it has, add 1 to the trigger, and wait until A knows
 *  that B is gone. */
void trig_lose_b(trig_t *trig);

/** Entries that A can have now. */
unsigned trig_free_entries(const trig_t *trig);

/** A deferred operation on a counter with the usual done(). */
uct_trig_deferred_t trig_deferred(trig_t *trig, uct_trig_cntr_h trigger,
                                  uint64_t threshold);

/** The description of a put of A's piece @a slot into B's. */
uct_trig_put_t trig_describe_put(trig_t *trig, unsigned slot);

/** Call a function that posts, until the provider does not refuse it for want
 *  of room of which a program cannot know. For posts that have an entry. */
#define TRIG_POST(_call) \
    ({ \
        unsigned trig_tries = 0; \
        ucs_status_t trig_status; \
        while (((trig_status = (_call)) == UCS_ERR_NO_RESOURCE) && \
               (++trig_tries < 20000)) { \
            usleep((trig_tries < 100) ? 0 : 100); \
        } \
        trig_status; \
    })

/** Post such a put at @a threshold of the trigger; must succeed. */
void trig_put(trig_t *trig, unsigned slot, uint64_t threshold);

/** The same, whatever comes of it. */
ucs_status_t trig_try_put(trig_t *trig, unsigned slot, uint64_t threshold);

/** Post an atomic that adds 1 to a_word; must succeed. */
void trig_add_word(trig_t *trig, uct_trig_cntr_h trigger, uint64_t threshold);

/** Post one of B that adds 1 to b_word; must succeed. */
void trig_b_add_word(trig_t *trig, uct_trig_cntr_h trigger, uint64_t threshold);

/** Whether A's piece is in B's buffer. */
int trig_arrived(const trig_t *trig, unsigned slot);

/** The newest value of a counter; UINT64_MAX if it cannot be read. */
uint64_t trig_count(trig_t *trig, uct_trig_cntr_h cntr);

/**
 * Post, fire and complete operations of A and of B: whatever could have fired
 * before has been carried out then too.
 */
void trig_barrier(trig_t *trig);

#endif
