/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_report.c - what the client prints and writes. */
#include "ucx_st_config.h"

#include "perftest_report.h"
#include "st_counts.h"
#include "st_stream.h"

#include <string.h>


perftest_ret_t perftest_report_create(perftest_report_t *report,
                                      const perftest_options_t *options)
{
    report->options  = options;
    report->num_rows = 0;
    report->json     = NULL;
    if (options->json == NULL) {
        return PERFTEST_OK;
    }
    report->json = fopen(options->json, "w");
    if (report->json == NULL) {
        return perftest_fail(PERFTEST_REFUSED, "cannot write %s: %m",
                             options->json);
    }
    return PERFTEST_OK;
}

void perftest_report_destroy(perftest_report_t *report)
{
    if (report->json != NULL) {
        (void)fclose(report->json);
    }
}

void perftest_report_begin(const perftest_report_t *report)
{
    const perftest_options_t *options = report->options;

    if (options->only_final) {
        return;
    }
    if (options->csv) {
        printf("size,test,median_us,min_us,max_us,ratio,mb_per_s,"
               "messages_per_s,setup_us,lane,verified\n");
        return;
    }
    printf("%zu trials of %zu iterations after %zu; window %zu, streams %zu, "
           "ahead %zu\n", options->trials, options->iterations,
           options->warmup, options->window, options->streams, options->ahead);
    printf("%10s  %-8s %10s %10s %10s %7s %10s %-7s %s\n", "bytes", "test",
           "median us", "min us", "max us", "ratio", "MB/s", "lane", "data");
}

static const char *perftest_verdict(const st_report_row_t *row, int is_csv)
{
    if (row->verified < 0) {
        return is_csv ? "" : "-";
    }
    return row->verified ? "right" : "WRONG";
}

static void perftest_row_print_csv(const perftest_row_t *row)
{
    printf("%zu,%s,%.4f,%.4f,%.4f,", row->row.size, row->row.variant,
           row->row.time.median, row->row.time.min, row->row.time.max);
    if (row->row.ratio > 0) {
        printf("%.4f", row->row.ratio);
    }
    printf(",%.3f,%.0f,%.3f,%s,%s\n", row->mb_per_s, row->rate,
           row->row.setup_us, row->lane, perftest_verdict(&row->row, 1));
}

static void perftest_row_print(const perftest_row_t *row)
{
    char ratio[16] = "-";

    if (row->row.ratio > 0) {
        (void)snprintf(ratio, sizeof(ratio), "%.2f", row->row.ratio);
    }
    printf("%10zu  %-8s %10.3f %10.3f %10.3f %7s %10.2f %-7s %s\n",
           row->row.size, row->row.variant, row->row.time.median,
           row->row.time.min, row->row.time.max, ratio, row->mb_per_s,
           row->lane, perftest_verdict(&row->row, 0));
}

static void perftest_row_init(const perftest_report_t *report,
                              perftest_row_t *row, perftest_result_t *result)
{
    const perftest_options_t *options = report->options;
    double parallel;

    st_report_stats_get(result->time_us, (int)options->trials, &row->row.time);
    row->row.variant  = result->test->name;
    row->row.ratio    = 0;
    row->row.setup_us = result->setup_us;
    row->row.verified = options->check ? (result->errors == 0) : -1;
    row->row.more     = row->more;
    row->lane         = result->lane;
    /* The time of a latency test is that of one of the streams */
    parallel      = (result->test->pattern == PERFTEST_PATTERN_LAT) ?
                    (double)options->streams : 1;
    row->rate     = parallel * 1e6 / row->row.time.median;
    row->mb_per_s = row->rate * (double)row->row.size / 1e6;
    (void)snprintf(row->more, sizeof(row->more), ",\"lane\":\"%s\","
                   "\"mb_per_s\":%.3f,\"messages_per_s\":%.1f", row->lane,
                   row->mb_per_s, row->rate);
}

/* Ratios to the baselines among the rows of one size */
static void perftest_rows_compare(perftest_row_t *rows,
                                  const perftest_result_t *results, int count)
{
    const char *name;
    int i, j;

    for (i = 0; i < count; ++i) {
        name = results[i].test->baseline;
        name = (name == NULL) ? results[i].test->name : name;
        for (j = 0; j < count; ++j) {
            if (strcmp(rows[j].row.variant, name) == 0) {
                rows[i].row.ratio = rows[i].row.time.median /
                                    rows[j].row.time.median;
            }
        }
    }
}

void perftest_report_add(perftest_report_t *report, size_t size,
                         perftest_result_t *results)
{
    perftest_row_t *rows = &report->rows[report->num_rows];
    int count            = (int)report->options->num_tests;
    int i;

    for (i = 0; i < count; ++i) {
        rows[i].row.size = size;
        perftest_row_init(report, &rows[i], &results[i]);
    }
    perftest_rows_compare(rows, results, count);
    for (i = 0; i < count; ++i) {
        if (report->options->csv) {
            perftest_row_print_csv(&rows[i]);
        } else {
            perftest_row_print(&rows[i]);
        }
    }
    (void)fflush(stdout);
    report->num_rows += count;
}

static void perftest_report_json_name(FILE *file, const char *name,
                                      const char *counts)
{
    char text[128];
    const char *value;
    int length;

    value = st_counts_find(counts, name, &length);
    (void)snprintf(text, sizeof(text), "%.*s", length, value);
    st_report_json_string(file, name, text);
}

static void perftest_report_json_options(FILE *file,
                                         const perftest_options_t *options)
{
    st_report_json_string(file, "version", PACKAGE_VERSION);
    st_report_json_string(file, "memory",
                          options->is_device ? "device" : "host");
    fprintf(file, "\"iterations\":%zu,\"warmup\":%zu,\"trials\":%zu,"
            "\"window\":%zu,\"streams\":%zu,\"ahead\":%zu,\"check\":%s,",
            options->iterations, options->warmup, options->trials,
            options->window, options->streams, options->ahead,
            options->check ? "true" : "false");
}

static perftest_ret_t perftest_report_write(perftest_report_t *report,
                                            const char *client,
                                            const char *server)
{
    FILE *file = report->json;
    char stream[ST_STREAM_TEXT_MAX];
    int i;

    fputc('{', file);
    st_report_json_string(file, "bench", "ucx_st_perftest");
    perftest_report_json_name(file, "provider", client);
    perftest_report_json_name(file, "device", client);
    st_report_json_string(file, "stream",
                          st_stream_name(report->options->stream));
    st_stream_describe(report->options->stream, stream);
    st_report_json_string(file, "stream_device", stream);
    fprintf(file, "\"ranks\":2,");
    st_report_json_machine(file);
    perftest_report_json_options(file, report->options);
    fprintf(file, "\"rows\":[");
    for (i = 0; i < report->num_rows; ++i) {
        fputs((i > 0) ? "," : "", file);
        st_report_json_row(file, &report->rows[i].row);
    }
    fprintf(file, "\n],\"stats\":{");
    st_counts_json(file, "client", client);
    fputc(',', file);
    st_counts_json(file, "server", server);
    fputs("\n}}\n", file);
    report->json = NULL;
    return (st_report_close(file, report->options->json) == 0) ?
           PERFTEST_OK : PERFTEST_REFUSED;
}

static void perftest_report_print_end(const perftest_report_t *report,
                                      const char *client, const char *server)
{
    const char *provider, *device;
    int provider_length, device_length;
    char stream[ST_STREAM_TEXT_MAX];

    st_stream_describe(report->options->stream, stream);
    provider = st_counts_find(client, "provider", &provider_length);
    device   = st_counts_find(client, "device", &device_length);
    printf("provider %.*s on %.*s, %s, UCX_TLS=%s, %ld cores, load %.2f\n",
           (provider_length > 0) ? provider_length : 4,
           (provider_length > 0) ? provider : "none",
           (device_length > 0) ? device_length : 4,
           (device_length > 0) ? device : "none", stream, st_report_tls(),
           st_report_cores(), st_report_load());
    st_counts_print("client", client);
    st_counts_print("server", server);
}

perftest_ret_t perftest_report_end(perftest_report_t *report,
                                   const char *client, const char *server)
{
    if (!report->options->only_final && !report->options->csv) {
        perftest_report_print_end(report, client, server);
    }
    (void)fflush(stdout);
    (void)st_counts_check_trig("ucx_st_perftest", "client", client);
    (void)st_counts_check_trig("ucx_st_perftest", "server", server);
    return (report->json == NULL) ? PERFTEST_OK :
           perftest_report_write(report, client, server);
}
