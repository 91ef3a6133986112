/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trig_table.h - what benchmarks of two processes that take turns share: rows
 * that are measured in turns, so that the load of the machine hits all of them,
 * and the report of them.
 */
#ifndef TRIG_TABLE_H_
#define TRIG_TABLE_H_

#include "trig_bench.h"

#include <stdio.h>
#include <sys/types.h>

#define TRIG_TABLE_MAX_ROWS   256
#define TRIG_TABLE_MAX_TRIALS 101


typedef struct trig_row trig_row_t;

/** A line of the report, and how its samples are got. */
struct trig_row {
    const char  *variant;
    trig_step_t step;
    /** Microseconds; < 0 if that cannot be measured here */
    double      (*run)(void *arg, const trig_row_t *row);
    void        *arg;
    int         baseline; /**< Row to compare with, -1: none */
    double      samples[TRIG_TABLE_MAX_TRIALS];
    int         num_samples;
};

/** What is told beside the rows. */
typedef struct trig_table {
    const char *bench;
    const char *provider;
    size_t     trials;
    trig_row_t rows[TRIG_TABLE_MAX_ROWS];
    int        count;
} trig_table_t;

/** The two processes. */
typedef struct trig_pair {
    trig_rank_t me;
    pid_t       child; /**< Of rank 0 */
} trig_pair_t;


/** Make the second process, which is rank 1. Returns 0, or prints why not. */
int trig_pair_start(trig_pair_t *pair, const char *bench);

/** Both: the end. Rank 0 waits for rank 1; the exit status, which is `status`
 *  unless rank 1 has failed. */
int trig_pair_end(trig_pair_t *pair, int status);

/** Add a row of which variant, step, run, arg and baseline are taken; its
 *  number. */
int trig_table_add(trig_table_t *table, const trig_row_t *row);

/** Measure all rows as often as there are trials, and once before. */
void trig_table_run(trig_table_t *table);

/** Print the rows to standard output. */
void trig_table_print(const trig_table_t *table, const trig_page_t *page);

/** Write the report; `more` is further members of it, each with a comma behind,
 *  or "". Returns 0, or prints why not. */
int trig_table_json(const trig_table_t *table, const trig_page_t *page,
                    const char *more, const char *json);

/** Whether both have seen right data only. */
int trig_page_is_verified(const trig_page_t *page);

#endif
