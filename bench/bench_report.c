/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_report.c - table, counts and JSON file of a benchmark. */
#include "bench_util.h"

#include <st_counts.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Bytes a microsecond are MB (10^6) a second. */
static double bench_rate(const bench_report_t *report,
                         const st_report_row_t *row)
{
    return report->num_messages * row->size / row->time.median;
}

/* Each trial's time. */
static void bench_json_trials(FILE *file, const bench_result_t *result,
                              int trials)
{
    int i;

    for (i = 0; i < trials; ++i) {
        fprintf(file, "%s%.4f", (i == 0) ? ",\"trials_us\":[" : ",",
                result->time_us[i]);
    }
    fputc(']', file);
}

/* What uses of a variant took, as a member of its row. MPI's own are not
 * counted, and those that a thread gives to MPI have other names. */
static void bench_report_count_uses(bench_report_t *report, FILE *file,
                                    int variant, const bench_result_t *result,
                                    MPI_Comm comm)
{
    bench_counts_mean_t *mean = &report->means[report->num_rows];

    if (((BENCH_VARIANTS_ST | BENCH_VARIANT_SINGLE | BENCH_VARIANTS_ONCE |
          BENCH_VARIANT_MPICH | BENCH_VARIANT_LIBMP) & (1u << variant)) &&
        (result->counts.uses > 0) &&
        (bench_sum(result->counts.stores, comm) > 0)) {
        bench_counts_mean_get(&result->counts, comm, mean);
        bench_counts_json(file, mean);
    }
}

uint64_t bench_report_add(bench_report_t *report,
                          const bench_options_t *options, size_t size,
                          bench_result_t *results, MPI_Comm comm)
{
    uint64_t errors = 0;
    double base     = 0;
    int baseline    = __builtin_ctz((options->baseline != 0) ?
                                            options->baseline :
                                            options->known);
    st_report_row_t *first = &report->rows[report->num_rows];
    st_report_stats_t setup;
    st_report_row_t *row;
    uint64_t wrong;
    size_t length;
    FILE *more;
    int variant;

    for (variant = 0; variant < BENCH_NUM_VARIANTS; ++variant) {
        if (!(options->variants & (1u << variant))) {
            continue;
        }
        wrong   = bench_sum(results[variant].errors, comm);
        errors += wrong;
        row     = &report->rows[report->num_rows];
        more    = bench_open_text(&report->more[report->num_rows], &length);
        bench_json_trials(more, &results[variant], options->trials);
        bench_report_count_uses(report, more, variant, &results[variant],
                                comm);
        ++report->num_rows;
        st_report_stats_get(results[variant].time_us, options->trials,
                            &row->time);
        st_report_stats_get(results[variant].setup_us, options->trials, &setup);
        base          = (variant == baseline) ? row->time.median : base;
        row->size     = size;
        row->variant  = bench_variants[variant];
        row->setup_us = (variant == baseline) ? 0 : setup.median;
        row->verified = (wrong == 0);
        if (report->num_messages > 0) {
            fprintf(more, ",\"mb_per_s\":%.3f", bench_rate(report, row));
        }
        if (results[variant].more != NULL) {
            fputs(results[variant].more, more);
        }
        fclose(more);
        row->more = report->more[row - report->rows];
    }
    for (row = first; row < report->rows + report->num_rows; ++row) {
        row->ratio = (base > 0) ? row->time.median / base : 0;
    }
    return errors;
}

/* How long the text of each rank is, and where it begins; returns the sum. */
static int bench_gather_lengths(int length, int *lengths, int *offsets)
{
    int total = 0;
    int ranks, i;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bench_check(MPI_Gather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0,
                           MPI_COMM_WORLD), "MPI_Gather");
    for (i = 0; (bench_rank() == 0) && (i < ranks); ++i) {
        offsets[i] = total;
        total     += lengths[i];
    }
    return total;
}

/* All ranks' counts to rank 0. */
static void bench_gather_counts(bench_report_t *report)
{
    char *mine = bench_counts_text();
    int length = (int)strlen(mine) + 1;
    int *lengths, *offsets;
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    lengths        = bench_alloc(2 * ranks * sizeof(*lengths));
    offsets        = lengths + ranks;
    report->counts = bench_alloc(bench_gather_lengths(length, lengths,
                                                      offsets));
    bench_check(MPI_Gatherv(mine, length, MPI_CHAR, report->counts, lengths,
                            offsets, MPI_CHAR, 0, MPI_COMM_WORLD),
                "MPI_Gatherv");
    report->clears      = bench_sum(st_counts_number(mine, "cts_fired"),
                                    MPI_COMM_WORLD);
    report->atomics     = bench_sum(st_counts_number(mine, "atomics_fired"),
                                    MPI_COMM_WORLD);
    report->half_starts = bench_sum(st_counts_number(mine, "host_starts") +
                                    st_counts_number(mine, "direct_starts"),
                                    MPI_COMM_WORLD);
    free(lengths);
    free(mine);
}

/* Of rank 0: calls st_counts_check_trig() for each rank. That a thread starts
 * what the card moves is no error on a stream of a GPU, as none reaches an
 * emulated card; nor for messages of queues only, as each takes entries as soon
 * as it is enqueued. */
static int bench_check_lane(const bench_report_t *report)
{
    const char *counts = report->counts;
    int is_host        = (report->stream == NULL) ||
                         (strcmp(report->stream, "host") == 0);
    int is_started     = !is_host &&
                         (strcmp(report->totals.provider, "cxiemu") == 0);
    int is_ahead       = (report->totals.queue_messages > 0);
    int num_moved      = 0;
    int ret            = 0;
    char who[32];
    int ranks, i;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (i = 0; i < ranks; ++i) {
        snprintf(who, sizeof(who), "rank %d", i);
        if (st_counts_check_trig(report->bench, who, counts) != 0) {
            ++num_moved;
            if ((!is_started && !is_ahead) ||
                (st_counts_number(counts, "host_starts") > 0)) {
                ret = -1;
            }
        }
        counts += strlen(counts) + 1;
    }
    if (is_ahead && (num_moved > 0)) {
        fprintf(stderr, "%s: messages for queues only that are further ahead "
                "of the streams than the card has entries are a thread's: with "
                "fewer iterations, or a card that nobody shares, there are "
                "none\n", report->bench);
    }
    return ret;
}

static int bench_report_count(bench_report_t *report, uint64_t messages)
{
    MPIX_Queue_stats *totals = &report->totals;
    MPI_Comm comm            = MPI_COMM_WORLD;
    int ret                  = 0;
    uint64_t moved;

    bench_check(MPIX_Queue_get_stats(totals), "MPIX_Queue_get_stats");
    report->messages     = bench_sum(messages, comm);
    totals->starts       = bench_sum(totals->starts, comm);
    totals->waits        = bench_sum(totals->waits, comm);
    totals->writes_fired = bench_sum(totals->writes_fired, comm);
    totals->chunks       = bench_sum(totals->chunks, comm);
    totals->copies       = bench_sum(totals->copies, comm);
    totals->proxied      = bench_sum(totals->proxied, comm);
    totals->messages     = bench_sum(totals->messages, comm);
    totals->queue_messages = bench_sum(totals->queue_messages, comm);
    bench_gather_counts(report);
    if (bench_rank() == 0) {
        ret = bench_check_lane(report);
    }

    /* On the other lanes each message is a start of its send and one of its
     * receive */
    moved = totals->writes_fired - totals->chunks +
            (report->half_starts / 2);
    if ((moved == report->messages) ||
        ((report->has_more || (totals->queue_messages > 0)) &&
         (moved > report->messages))) {
        return ret;
    }

    bench_error("%s: the counts of messages are wrong\n", report->bench);
    return -1;
}

static void bench_print_machine(const bench_report_t *report)
{
    const MPIX_Queue_stats *totals = &report->totals;

    if (totals->provider[0] != '\0') {
        printf("provider %s on %s, ", totals->provider, totals->device);
    }
    printf("%s, UCX_TLS=%s, %ld cores, load %.2f\n",
           (report->stream != NULL) ? report->stream_device : "host stream",
           st_report_tls(), st_report_cores(), st_report_load());
}

/* If any is counted. */
static void bench_print_uses(const bench_report_t *report)
{
    int is_gpu = (report->stream != NULL) &&
                 (strcmp(report->stream, "host") != 0);
    int count  = 0;
    int i;

    for (i = 0; i < report->num_rows; ++i) {
        if (report->means[i].is_counted) {
            if (count++ == 0) {
                bench_counts_print_head(is_gpu);
            }
            bench_counts_print(&report->means[i], &report->rows[i], is_gpu);
        }
    }
}

static void bench_report_print(const bench_report_t *report)
{
    const st_report_row_t *row;

    printf("\n%10s  %-9s %12s %12s %12s %7s %12s  %s%s\n", "bytes", "variant",
           "median us", "min us", "max us", "ratio", "setup us", "verified",
           (report->num_messages > 0) ? "          MB/s" : "");
    for (row = report->rows; row < report->rows + report->num_rows; ++row) {
        printf("%10zu  %-9s %12.2f %12.2f %12.2f ", row->size, row->variant,
               row->time.median, row->time.min, row->time.max);
        if (row->ratio > 0) {
            printf("%7.2f", row->ratio);
        } else {
            printf("%7s", "-");
        }
        printf(" %12.0f  %s", row->setup_us, row->verified ? "yes" : "NO");
        if (report->num_messages > 0) {
            printf(" %18.1f", bench_rate(report, row));
        }
        printf("\n");
    }

    bench_print_machine(report);
    printf("messages x uses = %" PRIu64 ", deferred writes fired = %" PRIu64
           ", copies = %" PRIu64 ", operations proxied = %" PRIu64 "\n",
           report->messages, report->totals.writes_fired,
           report->totals.copies, report->totals.proxied);
    if (report->totals.writes_fired > 0) {
        printf("beside them clear-to-sends = %" PRIu64 ", additions to words "
               "= %" PRIu64 "\n", report->clears, report->atomics);
    }
    if (report->totals.messages > 0) {
        printf("messages that were used once = %" PRIu64 "\n",
               report->totals.messages);
    }
    if (report->totals.queue_messages > 0) {
        printf("messages that were used once, for queues only = %" PRIu64 "\n",
               report->totals.queue_messages);
    }
    if (report->totals.chunks > 0) {
        printf("of the writes %" PRIu64 " are further parts of a message\n",
               report->totals.chunks);
    }
    bench_print_uses(report);
    fflush(stdout);
}

static void bench_json_machine(FILE *file)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    st_report_json_string(file, "mpi", version);
    st_report_json_machine(file);
}

static void bench_json_counts(FILE *file, const bench_report_t *report)
{
    fprintf(file, "\"messages\":%" PRIu64 ",\"deferred_writes_fired\":%" PRIu64
            ",\"chunks\":%" PRIu64 ",\"copies\":%" PRIu64
            ",\"operations_proxied\":%" PRIu64 ",\"messages_once\":%" PRIu64
            ",",
            report->messages, report->totals.writes_fired,
            report->totals.chunks, report->totals.copies,
            report->totals.proxied, report->totals.messages);
    fprintf(file, "\"clear_to_sends\":%" PRIu64 ",\"atomics\":%" PRIu64 ",",
            report->clears, report->atomics);
}

static void bench_json_stats(FILE *file, const bench_report_t *report)
{
    const char *counts = report->counts;
    char who[32];
    int ranks, i;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    fprintf(file, "\n],\"stats\":{");
    for (i = 0; i < ranks; ++i) {
        snprintf(who, sizeof(who), "rank %d", i);
        fputs((i > 0) ? "," : "", file);
        st_counts_json(file, who, counts);
        counts += strlen(counts) + 1;
    }
    fputs("\n}}\n", file);
}

static int bench_report_write(const bench_report_t *report, const char *path)
{
    FILE *file = st_report_open(path);
    int ranks, i;

    if (file == NULL) {
        return -1;
    }

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    fputc('{', file);
    st_report_json_string(file, "bench", report->bench);
    st_report_json_string(file, "provider", report->totals.provider);
    st_report_json_string(file, "device", report->totals.device);
    st_report_json_string(file, "stream", (report->stream != NULL) ?
                                                  report->stream :
                                                  "host");
    if (report->stream != NULL) {
        st_report_json_string(file, "stream_device", report->stream_device);
    }
    fprintf(file, "\"ranks\":%d,", ranks);
    bench_json_machine(file);
    bench_json_counts(file, report);
    fprintf(file, "%s\"rows\":[", report->params);
    for (i = 0; i < report->num_rows; ++i) {
        st_report_json_row(file, &report->rows[i]);
        fputs((i + 1 < report->num_rows) ? "," : "", file);
    }
    bench_json_stats(file, report);
    return st_report_close(file, path);
}

int bench_report_finish(bench_report_t *report, const bench_options_t *options,
                        uint64_t messages)
{
    int ret = bench_report_count(report, messages);
    int i;

    if (bench_rank() == 0) {
        bench_report_print(report);
        if (options->json != NULL) {
            ret |= bench_report_write(report, options->json);
        }
    }
    free(report->counts);
    for (i = 0; i < report->num_rows; ++i) {
        free(report->more[i]);
    }
    return ret;
}
