/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_util.h - what the benchmarks share: options, statistics, the queue's
 * counts and the report.
 */
#ifndef BENCH_UTIL_H_
#define BENCH_UTIL_H_

#include <mpix_queue.h>

#include <stddef.h>
#include <stdint.h>

#define BENCH_MAX_VARIANTS 8
#define BENCH_MAX_TRIALS   1000


/* Median and range of samples, microseconds. */
typedef struct bench_stats {
    double median;
    double min;
    double max;
} bench_stats_t;


/* One line of the report. */
typedef struct bench_row {
    size_t        size;      /* Bytes of the (largest) message */
    const char    *variant;
    bench_stats_t time;      /* Of one iteration */
    double        ratio;     /* To the baseline's median; 0: no baseline */
    double        setup_us;  /* To make and match requests; 0: none */
    int           verified;  /* All data was right on all ranks */
} bench_row_t;


/* What a run leaves behind. Filled and printed by rank 0; main thread only. */
typedef struct bench_report {
    const char       *bench;
    char             params[256]; /* The benchmark's own JSON members, or "" */
    bench_row_t      *rows;
    int              num_rows;
    int              max_rows;
    uint64_t         messages;    /* Messages x uses that went through queues */
    MPIX_Queue_stats totals;      /* Sums over ranks; names of rank 0 */
} bench_report_t;


/* Prints what failed and ends the job unless 'ret' is MPI_SUCCESS. */
void bench_check(int ret, const char *what);

/* Allocates zeroed, cache-line aligned memory; ends the job if there is no
 * memory. */
void *bench_alloc(size_t size);

/* Reads a decimal option value within [min, max]; k, m, g multiply by powers of
 * 1024. Returns 0, or -1 after printing why not (rank 0 only). */
int bench_parse_size(const char *option, const char *text, size_t min,
                     size_t max, size_t *value_p);

/* As bench_parse_size(), without multipliers. */
int bench_parse_int(const char *option, const char *text, int min, int max,
                    int *value_p);

/* Reads a list "a,b" of 'names' (NULL at the end) into a mask. Returns 0, or -1
 * after printing why not. */
int bench_parse_names(const char *option, const char *text,
                      const char *const *names, unsigned *mask_p);

/* Prints to stderr, on rank 0 of MPI_COMM_WORLD only. */
void bench_error(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Sorts 'samples' in place; 'count' is at least 1. */
void bench_stats_get(double *samples, int count, bench_stats_t *stats);

/* Largest value of all ranks, on every rank. Collective. */
double bench_max(double value);

/* Sum of all ranks, on every rank. Collective. */
uint64_t bench_sum(uint64_t value);

/* Prepares an empty report with room for 'max_rows'. */
void bench_report_init(bench_report_t *report, const char *bench, int max_rows);

/* Frees the rows. */
void bench_report_cleanup(bench_report_t *report);

/* Adds a line. The ratio is taken to the row 'baseline', which may be the new
 * one; -1 for none. */
void bench_report_add(bench_report_t *report, const bench_row_t *row,
                      int baseline);

/* Sums the messages and the queues' counts over the ranks. Collective. Returns
 * 0 if every message was one deferred write and no host thread moved any. */
int bench_report_count(bench_report_t *report, uint64_t messages);

/* Prints the table and the counts to stdout. Rank 0 only. */
void bench_report_print(const bench_report_t *report);

/* Writes the report to a file in JSON. Rank 0 only. Returns 0 or -1. */
int bench_report_write(const bench_report_t *report, const char *path);

#endif
