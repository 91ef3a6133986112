/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_report.h - what the reports of benchmarks share: medians, the machine, and
 * the parts of the JSON file.
 */
#ifndef ST_REPORT_H_
#define ST_REPORT_H_

#include <stddef.h>
#include <stdio.h>

/* Median and range of samples, microseconds. */
typedef struct st_report_stats {
    double median;
    double min;
    double max;
} st_report_stats_t;


/* One line of a report. */
typedef struct st_report_row {
    size_t            size;     /* Bytes of the (largest) message */
    const char        *variant;
    st_report_stats_t time;     /* Of one iteration */
    double            ratio;    /* To the baseline's median; 0: no baseline */
    double            setup_us; /* To make ready; below 0: not measured */
    int               verified; /* All data was right; below 0: not checked */
    const char        *more;    /* Further JSON members, each with a comma in
                                   front of it; NULL: none */
} st_report_row_t;


/* Sorts 'samples' in place; 'count' is at least 1. */
void st_report_stats_get(double *samples, int count, st_report_stats_t *stats);

/* Load of the last minute, -1 if unknown. */
double st_report_load(void);

/* Processors that are there. */
long st_report_cores(void);

/* UCX_TLS, "" if it is not set. */
const char *st_report_tls(void);

/* Opens a file to write; prints why it cannot and returns NULL. */
FILE *st_report_open(const char *path);

/* Closes it. Returns 0 if all of it was written; prints it otherwise. */
int st_report_close(FILE *file, const char *path);

/* Writes text as a JSON string. */
void st_report_json_text(FILE *file, const char *text);

/* Writes "NAME":"TEXT", with the comma. */
void st_report_json_string(FILE *file, const char *name, const char *text);

/* Writes the members ucx_tls, load, cores and threads, with a comma after each;
 * the threads are those of this process. */
void st_report_json_machine(FILE *file);

/* Writes a row as a JSON object on a line of its own. */
void st_report_json_row(FILE *file, const st_report_row_t *row);

#endif
