/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trig_bench.h - what the parts of st_trig, and st_cost, share: two processes
 * in lock step.
 *
 * The initiator is rank 0, the target rank 1; both run the same steps. Times
 * are of a half round trip, measured by rank 0 over many of them.
 */
#ifndef TRIG_BENCH_H_
#define TRIG_BENCH_H_

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

#define TRIG_MAX_SIZE (1ul << 20)
#define TRIG_NAME_MAX 128
#define TRIG_WAIT_S   120
#define TRIG_CALM_US  100000
#define TRIG_CARD_MAX 512
#define TRIG_BATCH    200u  /* Operations queued at once; entries are 504 */
#define TRIG_WORD     64u   /* Offset of the word that is waited for */
#define TRIG_SCRATCH  1024u /* The same of one that nobody waits for */
#define TRIG_WORDS    4096u /* Length of the region around it */


/** Memory that both have from the start; for baselines and for control. */
typedef struct trig_page {
    _Alignas(64) uint32_t barrier[2]; /**< Steps of each rank */
    _Alignas(64) uint64_t flag[2];    /**< Words of the baselines */
    _Alignas(64) double   sent;       /**< When rank 0 woke rank 1 */
    double   elapsed;                 /**< Sum of what it took */
    _Alignas(64) int      broken;     /**< One has given up */
    char     name[2][TRIG_NAME_MAX];
    size_t   name_length[2];
    uint64_t key[2];
    uint64_t key_word[2];
    uint64_t user[2];                 /**< Private buffers, for attaching */
    double   cpu[2];                  /**< Of the idle time, in cores */
    int      verified[2];
    int      pid[2];
    _Alignas(64) uint8_t card[2][TRIG_CARD_MAX]; /**< UCT's addresses, keys */
    _Alignas(4096) uint8_t data[2][TRIG_MAX_SIZE];
} trig_page_t;

/** A process. */
typedef struct trig_rank {
    int         rank;
    trig_page_t *page;
    uint8_t     *user; /**< Private memory, TRIG_MAX_SIZE */
} trig_rank_t;


/** Microseconds, of a clock that both processes share. */
double trig_now(void);

/** Both have come here; gives up (exit) if the other one has. */
void trig_barrier(trig_rank_t *me);

/** The same in two steps, for a caller with something to do meanwhile: the step
 *  that has been reached, and whether the other one has reached it. */
uint32_t trig_arrive(trig_rank_t *me);
int trig_is_met(const trig_rank_t *me, uint32_t step);

/** Does nothing for so long; what that cost goes to the page. */
void trig_idle(trig_rank_t *me, double seconds);

/** Ends both processes after a message. */
void trig_give_up(trig_rank_t *me, const char *what, int ret)
    __attribute__((noreturn));

/** The same, with UCX's text, unless all is well. */
void trig_need(trig_rank_t *me, const char *what, ucs_status_t status);

/** One turn of a loop that polls: pauses, looks whether the other one has
 *  given up now and then, and yields where cores are short. */
void trig_turn(trig_rank_t *me, unsigned *turns);

/** Data that depends on its sender, and whether it is all there. */
void trig_fill(uint8_t *data, size_t size, unsigned seed);
int trig_is_filled(const uint8_t *data, size_t size, unsigned seed);


/* Baselines; microseconds of a half round trip */

/** A copy into memory that both map, and a flag. */
double trig_copy(trig_rank_t *me, size_t size, unsigned count);

/** As trig_copy(), by process_vm_readv(); < 0 where it is forbidden. */
double trig_attach(trig_rank_t *me, size_t size, unsigned count);


/* The provider */

typedef struct trig_fab trig_fab_t;

static inline unsigned trig_min(unsigned a, unsigned b)
{
    return (a < b) ? a : b;
}

/** How a step waits and what it moves. */
typedef struct trig_step {
    size_t   size;
    unsigned count;    /**< Half round trips of each direction */
    unsigned pending;  /**< Other deferred operations that never fire */
} trig_step_t;

trig_fab_t *trig_fab_open(trig_rank_t *me, const char *provider);
void trig_fab_close(trig_fab_t *fab);

/** Queueing a deferred write, and then an atomic on one's own word that it
 *  triggers, for each of 'count' pairs of counters, at most TRIG_BATCH; of one
 *  pair. The size and the count are the same with each call. */
double trig_fab_post(trig_fab_t *fab, size_t size, unsigned count);

/** Of that trig_fab_t: fire what was posted and wait for its end. May be called
 *  in another thread while the poster waits. */
void trig_fab_fire(void *arg);

/** Deferred writes, back and forth. */
double trig_fab_write(trig_fab_t *fab, const trig_step_t *step);

/** Tagged words, back and forth. */
double trig_fab_tagged(trig_fab_t *fab, unsigned count);

/** Writes in a row, by rank 0; of one of them. */
double trig_fab_stream(trig_fab_t *fab, const trig_step_t *step);

#endif
