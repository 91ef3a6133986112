/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_random.h - random legal programs (P6), run on groups of ranks.
 */
#ifndef ST_RANDOM_H_
#define ST_RANDOM_H_

#include "st_exec.h"
#include "st_gen.h"


/** What to run. */
typedef struct st_random_options {
    uint64_t         seed;       /**< Of the first program; the next has the
                                      next number */
    unsigned         count;      /**< Programs */
    double           time;       /**< Or as many as fit into so many seconds,
                                      of all lanes and sizes */
    int              as_threads; /**< Ranks are threads */
    int              some;       /**< A program for which there are not enough
                                      lanes is left out, not a failure */
    int              verbose;    /**< Print the programs */
    unsigned         limit;      /**< Seconds in which a program must end */
    const char       *lanes;     /**< UCX_ST_LANES, of a soak; NULL: as it is */
    st_gen_options_t gen;
} st_random_options_t;

#define ST_RANDOM_DEFAULTS \
    { .count = 100, .limit = 300, .gen = ST_GEN_DEFAULTS }


/** What was run; sums. */
typedef struct st_random_counts {
    uint64_t         programs;
    uint64_t         left_out; /**< For want of lanes */
    uint64_t         messages;
    uint64_t         ready;    /**< Of those */
    st_exec_counts_t exec;
    st_gen_counts_t  gen;
} st_random_counts_t;


/** Run programs until one fails. Prints that with the command that runs it
 *  again. 0, or 1. */
int st_random_run(const st_random_options_t *options,
                  st_random_counts_t *counts);

#endif
