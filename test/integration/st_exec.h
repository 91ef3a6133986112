/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_exec.h - runs a rank's part of a program (st_prog.h) on the library and
 * checks all data. What goes wrong ends the group, as st_rank.h has it.
 */
#ifndef ST_EXEC_H_
#define ST_EXEC_H_

#include "st_prog.h"
#include "st_rank.h"


/** What the ranks of a program share. */
typedef struct st_exec_shared {
    uint32_t no_lane; /**< Operations that found no lane in this program */
} st_exec_shared_t;


/** What a rank has done; sums. */
typedef struct st_exec_counts {
    uint64_t uses;  /**< Of its receives */
    uint64_t bytes; /**< In them */
    uint64_t host;  /**< Operations on another lane than the NIC's */
} st_exec_counts_t;


/** Run a rank's part. If `shared` is not NULL, a program for whose operations
 *  there are not enough lanes is given up by all ranks; else it is a failure.
 *  Zero if it was given up. */
int st_exec_run(st_rank_t *me, const st_prog_t *prog, st_exec_shared_t *shared,
                st_exec_counts_t *counts);

/** Print what the running program of a rank waits for; any thread. */
void st_exec_report(st_rank_t *me);

#endif
