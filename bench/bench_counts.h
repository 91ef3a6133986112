/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_counts.h - what a use of an application's messages takes of its stream
 * and of the network card: the same on every machine, but for what is proxied.
 *
 * Stores are those of starts. A receive whose data may come before its start
 * (UCX_ST_EAGER_MAX: single standard sends of short messages) starts nothing:
 * its clear-to-send, one a round of several uses, is a store of the wait. It is
 * not among the stores, but its write is among the deferred operations.
 */
#ifndef BENCH_COUNTS_H_
#define BENCH_COUNTS_H_

#include <st_report.h>

#include <mpi.h>

#include <stdint.h>
#include <stdio.h>


/* What uses took, of this rank. */
typedef struct bench_counts {
    uint64_t uses;
    uint64_t stores;    /* Of the stream, to start something */
    uint64_t words;     /* That the stream waited for */
    uint64_t deferred;  /* Operations of the card: writes, clear-to-sends and
                           additions to words */
    uint64_t counters;  /* Of the card, held by the requests */
    uint64_t entries;   /* The same, while no use is under way */
    uint64_t fallbacks; /* Pairs that found no room on a lane */
    uint64_t proxied;   /* Messages that a thread moved */
    uint64_t launches;  /* Kernels of the library, on streams of GPUs */
    uint64_t wakeups;   /* Of threads of the library, here and at peers */
    uint64_t freed;     /* Operations that peers have yet to let go */
} bench_counts_t;


/* Of all ranks: the means of a use and rank; held by a rank; sums. */
typedef struct bench_counts_mean {
    int      is_counted; /* Else the rest says nothing */
    double   stores;
    double   words;
    double   deferred;
    double   counters;
    double   entries;
    double   launches;
    double   wakeups;
    uint64_t fallbacks;
    uint64_t proxied;
    uint64_t uses;      /* Of a rank */
} bench_counts_mean_t;


/* What this rank's queues have counted, as MPIX_Queue_print_stats() writes it;
 * free() it. */
char *bench_counts_text(void);

/* Before requests are made. Collective over 'comm'. */
void bench_counts_begin(bench_counts_t *counts, MPI_Comm comm);

/* Adds what so many uses took since, while the requests are still there. */
void bench_counts_end(bench_counts_t *sum, const bench_counts_t *begin,
                      uint64_t uses);

/* Collective over 'comm'. */
void bench_counts_mean_get(const bench_counts_t *sum, MPI_Comm comm,
                           bench_counts_mean_t *mean);

/* A JSON member behind a comma, the head of a table, and its line of a row; on
 * streams of a GPU it has more. */
void bench_counts_json(FILE *file, const bench_counts_mean_t *mean);
void bench_counts_print_head(int is_gpu);
void bench_counts_print(const bench_counts_mean_t *mean,
                        const st_report_row_t *row, int is_gpu);

#endif
