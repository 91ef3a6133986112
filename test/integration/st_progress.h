/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_progress.h - programs that must not deadlock, as cases by name.
 */
#ifndef ST_PROGRESS_H_
#define ST_PROGRESS_H_

#include "st_msg.h"


/** How to run a case. */
typedef struct st_progress_options {
    int        as_threads; /**< Ranks are threads, not processes */
    int        ranks;      /**< 0: as the case has it */
    int        needs_all;  /**< A pair that finds no lane is a failure */
    unsigned   percent;    /**< Of the iterations; fewer for slow builds */
    unsigned   limit;      /**< Seconds in which something must go on */
    const char *lanes[2];  /**< Of the operations of case p8 */
} st_progress_options_t;


#define ST_PROGRESS_DEFAULTS \
    { .percent = 100, .limit = 300, .lanes = {"host", "trig"} }

/** Flags of programs */
enum {
    ST_PROGRESS_PROCESSES = 1, /**< Not as threads */
    ST_PROGRESS_PAIR      = 2, /**< Of 2 ranks */
    ST_PROGRESS_NODE      = 4, /**< Ranks share memory, or signal each other */
    ST_PROGRESS_FUNCS     = 8  /**< A stream's function waits for another's */
};


/** A program. */
typedef struct st_progress_case {
    const char *name;
    int        ranks;
    int        flags;
    void       (*main)(st_rank_t *me);
    const char *ping; /**< UCX_ST_PING_INTERVAL; NULL: as it is */
} st_progress_case_t;


/** The cases; the last one has no name. */
extern const st_progress_case_t st_progress_cases[];

/** Run those of a name, or whose names go on with '_' behind it; NULL: all.
 *  Prints a line for each. 0, 1, or 77 if all that ran were skipped. */
int st_progress_run(const char *name, const st_progress_options_t *options);

/** The options of the running case. */
const st_progress_options_t *st_progress_options(const st_rank_t *me);

/** How many iterations there are to be, of so many. */
int st_progress_iterations(const st_rank_t *me, int iterations);

/** The other rank of a pair; -1 for the last one of an odd number. */
int st_progress_partner(const st_rank_t *me);

/** Make the message of a tag between this rank and its partner: from the rank
 *  with the even number if `from` is 0, else from the odd one. */
void st_progress_pair(st_rank_t *me, st_msg_t *msg, int from, uint64_t tag);

/** All ranks have matched what they need. Threads share the entries of a card,
 *  so they wait for each other: a rank that ran ahead would take them all.
 *  Ranks without a partner have to call this as well. */
void st_progress_matched(st_rank_t *me);

/** Compute, without a call of any library, until a word is >= a value. */
void st_progress_compute(const uint64_t *word, uint64_t value);

/** Add 1 to a word of 64 bits; for a stream. */
void st_progress_count(void *word);

/** Exchange with 26 neighbours. */
typedef struct st_halo {
    st_rank_t *me;
    size_t    num_recvs;
    size_t    num_sends;
    st_msg_t  recvs[26];
    st_msg_t  sends[26];
} st_halo_t;

/** Match with all neighbours; _some: or with those that a lane is found for. */
void st_halo_init_some(st_rank_t *me, st_halo_t *halo, size_t length);
void st_halo_init(st_rank_t *me, st_halo_t *halo, size_t length);
void st_halo_enqueue(st_halo_t *halo, ucp_st_queue_h queue,
                     ucs_gstream_h stream);
void st_halo_free(st_halo_t *halo);

/* The programs that must not deadlock */
void st_p1(st_rank_t *me);
void st_p2(st_rank_t *me);
void st_p3_one_side(st_rank_t *me);
void st_p3_both_sides(st_rank_t *me);
void st_p3_idle_queue(st_rank_t *me);
void st_p3_compute(st_rank_t *me);
void st_p3_poll(st_rank_t *me);
void st_p4_sends(st_rank_t *me);
void st_p4_recvs(st_rank_t *me);
void st_p4_second(st_rank_t *me);
void st_p5(st_rank_t *me);
void st_p7_ready(st_rank_t *me);
void st_p7_standard(st_rank_t *me);
void st_p8(st_rank_t *me);
void st_p8_fallback(st_rank_t *me);
void st_p9_many(st_rank_t *me);
void st_p9_stop(st_rank_t *me);
void st_p10_halo(st_rank_t *me);
void st_p10_idle(st_rank_t *me);
void st_p10_held(st_rank_t *me);

#endif
