/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_report.h - what the client prints and writes: a table or CSV, and a
 * JSON file. Main thread only.
 */
#ifndef PERFTEST_REPORT_H_
#define PERFTEST_REPORT_H_

#include "perftest_log.h"
#include "perftest_options.h"
#include "perftest_test.h"
#include "st_report.h"

#include <stdio.h>

#define PERFTEST_MAX_ROWS (PERFTEST_MAX_TESTS * PERFTEST_MAX_SIZES)

typedef struct perftest_row {
    st_report_row_t row;
    const char      *lane;
    double          rate;      /* Messages a second, of all streams */
    double          mb_per_s;  /* 10^6 bytes a second */
    char            more[128]; /* row.more */
} perftest_row_t;


typedef struct perftest_report {
    const perftest_options_t *options;
    FILE                     *json;  /* NULL if none is asked for */
    perftest_row_t           rows[PERFTEST_MAX_ROWS];
    int                      num_rows;
} perftest_report_t;


/* What was measured of one test with one size. */
typedef struct perftest_result {
    const perftest_test_t *test;
    const char            *lane;
    double                time_us[PERFTEST_MAX_TRIALS]; /* Of a message */
    double                setup_us;                     /* To make and match */
    uint64_t              errors;                       /* Wrong messages */
} perftest_result_t;


/* Opens the file that is asked for, so that it fails before the work. */
perftest_ret_t perftest_report_create(perftest_report_t *report,
                                      const perftest_options_t *options);

/* Gives up what perftest_report_create() opened. */
void perftest_report_destroy(perftest_report_t *report);

/* Prints what comes before the rows. */
void perftest_report_begin(const perftest_report_t *report);

/* Adds and prints the rows of one size; sorts the times. */
void perftest_report_add(perftest_report_t *report, size_t size,
                         perftest_result_t *results);

/* Prints the counts, and writes the file. Counts are the texts of
 * ucp_st_worker_print_stats() at each side, or "". */
perftest_ret_t perftest_report_end(perftest_report_t *report,
                                   const char *client, const char *server);

#endif
