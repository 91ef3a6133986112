/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_line.h - how far the cores of the first two ranks are from each other:
 * the time of a cache line to the other one and back. A virtual machine's cores
 * are moved while it runs. Main thread only.
 */
#ifndef BENCH_LINE_H_
#define BENCH_LINE_H_

#include <mpi.h>

#include <stdint.h>


typedef struct bench_line {
    MPI_Comm          comm;  /* Of the two; MPI_COMM_NULL elsewhere, or if they
                              * share no memory */
    int               rank;  /* There */
    MPI_Win           window;
    volatile uint64_t *word; /* In it: the ranks store to it in turns */
    uint64_t          count; /* What it holds when it is the first one's turn */
} bench_line_t;


/* Makes what bench_line_measure() needs. Collective over 'comm', of which the
 * first two ranks are meant. */
void bench_line_open(bench_line_t *line, MPI_Comm comm);

/* Frees it. Collective. */
void bench_line_close(bench_line_t *line);

/* Returns how long a cache line takes to the other rank's core and back, ns; 0
 * if there is no other one in the node. The two ranks', others return at
 * once. */
double bench_line_measure(bench_line_t *line);

#endif
