/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_report.c - table, counts and JSON file of a benchmark. */
#include "bench_util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


static int bench_compare(const void *a, const void *b)
{
    double x = *(const double*)a;
    double y = *(const double*)b;

    return (x > y) - (x < y);
}

/* Sorts 'samples' in place; 'count' is at least 1. */
static void bench_stats_get(double *samples, int count, bench_stats_t *stats)
{
    int mid = count / 2;

    qsort(samples, count, sizeof(*samples), bench_compare);
    stats->min    = samples[0];
    stats->max    = samples[count - 1];
    stats->median = (count % 2) ? samples[mid] :
                                  (samples[mid - 1] + samples[mid]) / 2;
}

uint64_t bench_report_add(bench_report_t *report,
                          const bench_options_t *options, size_t size,
                          bench_result_t *results, MPI_Comm comm)
{
    uint64_t errors = 0;
    double base     = 0;
    bench_stats_t setup;
    bench_row_t *row;
    uint64_t wrong;
    int variant;

    for (variant = 0; variant < BENCH_NUM_VARIANTS; ++variant) {
        if (!(options->variants & (1u << variant))) {
            continue;
        }
        wrong   = bench_sum(results[variant].errors, comm);
        errors += wrong;
        row     = &report->rows[report->num_rows++];
        bench_stats_get(results[variant].time_us, options->trials, &row->time);
        bench_stats_get(results[variant].setup_us, options->trials, &setup);
        base          = (variant == 0) ? row->time.median : base;
        row->size     = size;
        row->variant  = bench_variants[variant];
        row->ratio    = (base > 0) ? row->time.median / base : 0;
        row->setup_us = (variant == 0) ? 0 : setup.median;
        row->verified = (wrong == 0);
    }
    return errors;
}

static int bench_report_count(bench_report_t *report, uint64_t messages)
{
    MPIX_Queue_stats *totals = &report->totals;
    MPI_Comm comm            = MPI_COMM_WORLD;

    bench_check(MPIX_Queue_get_stats(totals), "MPIX_Queue_get_stats");
    report->messages     = bench_sum(messages, comm);
    totals->starts       = bench_sum(totals->starts, comm);
    totals->waits        = bench_sum(totals->waits, comm);
    totals->writes_fired = bench_sum(totals->writes_fired, comm);
    totals->proxied      = bench_sum(totals->proxied, comm);

    if ((totals->writes_fired == report->messages) && (totals->proxied == 0)) {
        return 0;
    }

    bench_error("%s: the counts of messages are wrong\n", report->bench);
    return -1;
}

/* Load of the last minute, -1 if unknown. */
static double bench_load(void)
{
    double load;

    return (getloadavg(&load, 1) == 1) ? load : -1;
}

static const char *bench_tls(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls == NULL) ? "" : tls;
}

static void bench_print_machine(const bench_report_t *report)
{
    const MPIX_Queue_stats *totals = &report->totals;

    printf("provider %s on %s, host stream, UCX_TLS=%s, %ld cores, load %.2f\n",
           (totals->provider[0] == '\0') ? "none" : totals->provider,
           (totals->device[0] == '\0') ? "none" : totals->device, bench_tls(),
           sysconf(_SC_NPROCESSORS_ONLN), bench_load());
}

static void bench_report_print(const bench_report_t *report)
{
    const bench_row_t *row;

    printf("\n%10s  %-9s %12s %12s %12s %7s %12s  %s\n", "bytes", "variant",
           "median us", "min us", "max us", "ratio", "setup us", "verified");
    for (row = report->rows; row < report->rows + report->num_rows; ++row) {
        printf("%10zu  %-9s %12.2f %12.2f %12.2f ", row->size, row->variant,
               row->time.median, row->time.min, row->time.max);
        if (row->ratio > 0) {
            printf("%7.2f", row->ratio);
        } else {
            printf("%7s", "-");
        }
        printf(" %12.0f  %s\n", row->setup_us, row->verified ? "yes" : "NO");
    }

    bench_print_machine(report);
    printf("messages x uses = %" PRIu64 ", deferred writes fired = %" PRIu64
           ", operations proxied = %" PRIu64 "\n",
           report->messages, report->totals.writes_fired,
           report->totals.proxied);
    fflush(stdout);
}

static void bench_json_string(FILE *file, const char *name, const char *text)
{
    const char *p;

    fprintf(file, "\"%s\":\"", name);
    for (p = text; *p != '\0'; ++p) {
        if ((*p == '"') || (*p == '\\')) {
            fprintf(file, "\\%c", *p);
        } else if ((unsigned char)*p < ' ') {
            fprintf(file, "\\u%04x", *p);
        } else {
            fputc(*p, file);
        }
    }
    fputs("\",", file);
}

static void bench_json_row(FILE *file, const bench_row_t *row)
{
    fprintf(file, "\n  {\"size\":%zu,\"variant\":\"%s\",\"median_us\":%.3f,"
            "\"min_us\":%.3f,\"max_us\":%.3f,", row->size, row->variant,
            row->time.median, row->time.min, row->time.max);
    if (row->ratio > 0) {
        fprintf(file, "\"ratio\":%.4f,", row->ratio);
    } else {
        fprintf(file, "\"ratio\":null,");
    }
    fprintf(file, "\"setup_us\":%.3f,\"verified\":%s}", row->setup_us,
            row->verified ? "true" : "false");
}

/* Threads of this process, 0 if unknown. */
static int bench_num_threads(void)
{
    FILE *file  = fopen("/proc/self/status", "r");
    int threads = 0;
    char line[256];

    if (file == NULL) {
        return 0;
    }

    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "Threads: %d", &threads) == 1) {
            break;
        }
    }
    fclose(file);
    return threads;
}

static void bench_json_machine(FILE *file)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    bench_json_string(file, "mpi", version);
    bench_json_string(file, "ucx_tls", bench_tls());
    fprintf(file, "\"load\":%.2f,\"cores\":%ld,\"threads\":%d,", bench_load(),
            sysconf(_SC_NPROCESSORS_ONLN), bench_num_threads());
}

static void bench_json_counts(FILE *file, const bench_report_t *report)
{
    fprintf(file, "\"messages\":%" PRIu64 ",\"deferred_writes_fired\":%" PRIu64
            ",\"operations_proxied\":%" PRIu64 ",", report->messages,
            report->totals.writes_fired, report->totals.proxied);
}

static int bench_report_write(const bench_report_t *report, const char *path)
{
    FILE *file = fopen(path, "w");
    int ranks, i;

    if (file == NULL) {
        bench_error("cannot write %s: %s\n", path, strerror(errno));
        return -1;
    }

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    fputc('{', file);
    bench_json_string(file, "bench", report->bench);
    bench_json_string(file, "provider", report->totals.provider);
    bench_json_string(file, "device", report->totals.device);
    bench_json_string(file, "stream", "host");
    fprintf(file, "\"ranks\":%d,", ranks);
    bench_json_machine(file);
    bench_json_counts(file, report);
    fprintf(file, "%s\"rows\":[", report->params);
    for (i = 0; i < report->num_rows; ++i) {
        bench_json_row(file, &report->rows[i]);
        fputs((i + 1 < report->num_rows) ? "," : "", file);
    }
    fputs("\n]}\n", file);

    if (ferror(file) | fclose(file)) {
        bench_error("cannot write %s\n", path);
        return -1;
    }
    return 0;
}

int bench_report_finish(bench_report_t *report, const bench_options_t *options,
                        uint64_t messages)
{
    int ret = bench_report_count(report, messages);

    if (bench_rank() == 0) {
        bench_report_print(report);
        if (options->json != NULL) {
            ret |= bench_report_write(report, options->json);
        }
    }
    return ret;
}
