/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_report.c - table, counts and JSON file of a benchmark. */
#include "bench_util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


void bench_report_init(bench_report_t *report, const char *bench, int max_rows)
{
    memset(report, 0, sizeof(*report));
    report->bench    = bench;
    report->rows     = bench_alloc(max_rows * sizeof(*report->rows));
    report->max_rows = max_rows;
}

void bench_report_cleanup(bench_report_t *report)
{
    free(report->rows);
    report->rows = NULL;
}

void bench_report_add(bench_report_t *report, const bench_row_t *row,
                      int baseline)
{
    bench_row_t *dst;
    double base;

    if (report->num_rows == report->max_rows) {
        return;
    }

    dst  = &report->rows[report->num_rows++];
    *dst = *row;
    base = (baseline < 0) ? 0 : report->rows[baseline].time.median;
    dst->ratio = (base > 0) ? row->time.median / base : 0;
}

int bench_report_count(bench_report_t *report, uint64_t messages)
{
    MPIX_Queue_stats *totals = &report->totals;

    bench_check(MPIX_Queue_get_stats(totals), "MPIX_Queue_get_stats");
    report->messages     = bench_sum(messages);
    totals->starts       = bench_sum(totals->starts);
    totals->waits        = bench_sum(totals->waits);
    totals->writes_fired = bench_sum(totals->writes_fired);
    totals->proxied      = bench_sum(totals->proxied);

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

void bench_report_print(const bench_report_t *report)
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

int bench_report_write(const bench_report_t *report, const char *path)
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
