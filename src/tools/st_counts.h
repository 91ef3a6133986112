/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_counts.h - what reports say of the counts of a process: texts with one
 * "name value" pair a line, as ucp_st_worker_print_stats() and
 * MPIX_Queue_print_stats() write them.
 */
#ifndef ST_COUNTS_H_
#define ST_COUNTS_H_

#include <stdint.h>
#include <stdio.h>

/* The value of a name, of '*length' characters; "" if it is not there. */
const char *st_counts_find(const char *counts, const char *name, int *length);

/* The same as a number; 0 if it is not there. */
uint64_t st_counts_number(const char *counts, const char *name);

/* Prints those that are numbers on one line behind 'who'; nothing if there are
 * none. */
void st_counts_print(const char *who, const char *counts);

/* Writes "WHO":{...} on a line of its own. */
void st_counts_json(FILE *file, const char *who, const char *counts);

/* Where the trig lane is asked for (UCX_ST_LANES names it first, or is not set
 * and the lane is open): 0 if the network card moved everything; else -1, and
 * the standard error output says what 'bench' saw at 'who'. 0 where another
 * lane is asked for. */
int st_counts_check_trig(const char *bench, const char *who,
                         const char *counts);

#endif
