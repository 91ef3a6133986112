/* SPDX-License-Identifier: BSD-3-Clause */
/* st_report.c - medians, the machine, and the parts of the JSON file. */
#include "st_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


static int st_report_compare(const void *a, const void *b)
{
    double x = *(const double*)a;
    double y = *(const double*)b;

    return (x > y) - (x < y);
}

void st_report_stats_get(double *samples, int count, st_report_stats_t *stats)
{
    int mid = count / 2;

    qsort(samples, count, sizeof(*samples), st_report_compare);
    stats->min    = samples[0];
    stats->max    = samples[count - 1];
    stats->median = (count % 2) ? samples[mid] :
                                  (samples[mid - 1] + samples[mid]) / 2;
}

double st_report_load(void)
{
    double load;

    return (getloadavg(&load, 1) == 1) ? load : -1;
}

long st_report_cores(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN);
}

const char *st_report_tls(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls == NULL) ? "" : tls;
}

/* Threads of this process, 0 if unknown. */
static int st_report_num_threads(void)
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

FILE *st_report_open(const char *path)
{
    FILE *file = fopen(path, "w");

    if (file == NULL) {
        fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
    }
    return file;
}

int st_report_close(FILE *file, const char *path)
{
    if (ferror(file) | fclose(file)) {
        fprintf(stderr, "cannot write %s\n", path);
        return -1;
    }
    return 0;
}

void st_report_json_text(FILE *file, const char *text)
{
    const char *p;

    fputc('"', file);
    for (p = text; *p != '\0'; ++p) {
        if ((*p == '"') || (*p == '\\')) {
            fprintf(file, "\\%c", *p);
        } else if ((unsigned char)*p < ' ') {
            fprintf(file, "\\u%04x", *p);
        } else {
            fputc(*p, file);
        }
    }
    fputc('"', file);
}

void st_report_json_string(FILE *file, const char *name, const char *text)
{
    fprintf(file, "\"%s\":", name);
    st_report_json_text(file, text);
    fputc(',', file);
}

void st_report_json_machine(FILE *file)
{
    st_report_json_string(file, "ucx_tls", st_report_tls());
    fprintf(file, "\"load\":%.2f,\"cores\":%ld,\"threads\":%d,",
            st_report_load(), st_report_cores(), st_report_num_threads());
}

void st_report_json_row(FILE *file, const st_report_row_t *row)
{
    fprintf(file, "\n  {\"size\":%zu,\"variant\":\"%s\",\"median_us\":%.4f,"
            "\"min_us\":%.4f,\"max_us\":%.4f,", row->size, row->variant,
            row->time.median, row->time.min, row->time.max);
    if (row->ratio > 0) {
        fprintf(file, "\"ratio\":%.4f,", row->ratio);
    } else {
        fprintf(file, "\"ratio\":null,");
    }
    if (row->setup_us >= 0) {
        fprintf(file, "\"setup_us\":%.3f,", row->setup_us);
    }
    fprintf(file, "\"verified\":%s%s}",
            (row->verified < 0) ? "null" : row->verified ? "true" : "false",
            (row->more == NULL) ? "" : row->more);
}
