/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_die.h - a side that kills or stops itself at a chosen point, for
 * tests of what the other side does.
 */
#ifndef PERFTEST_DIE_H_
#define PERFTEST_DIE_H_

#include <stddef.h>

/* Where a side may die. */
typedef enum {
    PERFTEST_DIE_NEVER,
    PERFTEST_DIE_MATCH,     /* In place of the first match */
    PERFTEST_DIE_START,     /* In place of the first start */
    PERFTEST_DIE_WAIT,      /* In place of the first wait; all that was started
                               before has run on the stream */
    PERFTEST_DIE_ITERATION  /* When an iteration begins */
} perftest_die_point_t;


/* Where, and by what. Changed by the main thread only. */
typedef struct perftest_die {
    perftest_die_point_t point;     /* NEVER once it has happened */
    size_t               iteration; /* Still to go, for ITERATION */
    int                  signum;
} perftest_die_t;


/* Reads match, start, wait or a number. Returns 0, or -1. */
int perftest_die_parse(perftest_die_t *die, const char *text, int signum);

/* At one of the points that are no iteration: true once, if it is there. */
int perftest_die_is_at(perftest_die_t *die, perftest_die_point_t point);

/* At the begin of each iteration: true once, if it is there. */
int perftest_die_is_iteration(perftest_die_t *die);

/* Says so and raises the signal. For a stream's command, too. */
void perftest_die_now(int signum);

#endif
