/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_channel.c - what a channel costs: messages between two processes of this
 * machine by a channel, and by one on a stream, beside raw tagged messages of
 * UCP, messages whose metadata come first, and copies to and from a staging
 * buffer.
 *
 * Each way has a UCP worker of its own, of the UCX_TLS of the environment. The
 * ways take turns.
 */
#include "channel_bench.h"
#include "trig_table.h"

#include <st_number.h>
#include <st_report.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define ST_CHANNEL_MAX_COUNT 1000000


typedef struct st_channel_bench {
    trig_pair_t    pair;
    channel_port_t *ports[CHANNEL_NUM_WAYS];
    trig_table_t   table;
    const char     *json;
    size_t         count; /* Round trips of a trial, small sizes */
    size_t         min;
    size_t         max;
    size_t         factor;
} st_channel_bench_t;


static double run_latency(void *arg, const trig_row_t *row)
{
    return channel_latency(arg, row->step.size, row->step.count);
}

static double run_windows(void *arg, const trig_row_t *row)
{
    return channel_windows(arg, row->step.size, row->step.count);
}

/* All ways, with raw UCP as baseline */
static void add_rows(st_channel_bench_t *bench, int is_latency, size_t size,
                     size_t count)
{
    trig_row_t row = {
        .run  = is_latency ? run_latency : run_windows,
        .step = {.size = size, .count = (count < 2) ? 2 : (unsigned)count}
    };
    int first      = bench->table.count;
    int way;

    for (way = 0; way < CHANNEL_NUM_WAYS; ++way) {
        row.variant  = is_latency ? channel_ways[way].latency :
                                    channel_ways[way].window;
        row.arg      = bench->ports[way];
        row.baseline = (way == 0) ? -1 : first;
        trig_table_add(&bench->table, &row);
    }
}

static void add_size(st_channel_bench_t *bench, size_t size)
{
    size_t cost = 1 + (size / 4096);

    add_rows(bench, 1, size, bench->count / cost);
    add_rows(bench, 0, size, bench->count / CHANNEL_WINDOW / cost);
}

static void run_all(st_channel_bench_t *bench)
{
    trig_rank_t *me = &bench->pair.me;
    size_t size;
    int way;

    for (way = 0; way < CHANNEL_NUM_WAYS; ++way) {
        bench->ports[way] = channel_port_open(me, &channel_ways[way]);
    }
    for (size = bench->min; size < bench->max; size *= bench->factor) {
        add_size(bench, size);
    }
    add_size(bench, bench->max);
    trig_table_run(&bench->table);
    for (way = CHANNEL_NUM_WAYS - 1; way >= 0; --way) {
        channel_port_close(bench->ports[way]);
    }
}

static int usage(FILE *file)
{
    fprintf(file,
            "Usage: st_channel [options]\n"
            "Round trips, and windows of 64 messages, between two processes of "
            "this machine:\nby raw UCP, by a channel, with metadata first, "
            "by a staging buffer, and by a\nchannel on a stream.\n"
            "\n"
            "  --min BYTES      smallest message, from 8; k, m allowed (8)\n"
            "  --max BYTES      largest message, always measured (4m)\n"
            "  --factor N       from one size to the next (8)\n"
            "  --trials N       repetitions, ways taking turns (9)\n"
            "  --count N        round trips of a trial, small sizes (2000)\n"
            "  --json FILE      write the report to a file\n"
            "  --help           print this and stop\n"
            "\n"
            "With UCX_TLS=posix,self set UCX_MM_ERROR_HANDLING=y, too, which "
            "streams need.\n");
    return -1;
}

static int parse_option(st_channel_bench_t *bench, int opt)
{
    switch (opt) {
    case 'n':
        return st_number_option("min", 8, CHANNEL_MAX_SIZE, &bench->min);
    case 'm':
        return st_number_option("max", 8, CHANNEL_MAX_SIZE, &bench->max);
    case 'f':
        return st_number_option("factor", 2, 1024, &bench->factor);
    case 't':
        return st_number_option("trials", 1, TRIG_TABLE_MAX_TRIALS,
                                &bench->table.trials);
    case 'c':
        return st_number_option("count", 1, ST_CHANNEL_MAX_COUNT,
                                &bench->count);
    case 'j':
        bench->json = optarg;
        return 0;
    case 'h':
        usage(stdout);
        exit(EXIT_SUCCESS);
    default:
        return usage(stderr);
    }
}

static int parse(st_channel_bench_t *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"min", required_argument, NULL, 'n'},
        {"max", required_argument, NULL, 'm'},
        {"factor", required_argument, NULL, 'f'},
        {"trials", required_argument, NULL, 't'},
        {"count", required_argument, NULL, 'c'},
        {"json", required_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}
    };
    int opt;

    while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (parse_option(bench, opt) != 0) {
            return -1;
        }
    }
    if (bench->max < bench->min) {
        fprintf(stderr, "st_channel: --max is smaller than --min\n");
        return -1;
    }
    return (optind == argc) ? 0 : usage(stderr);
}

static int report(const st_channel_bench_t *bench)
{
    const trig_page_t *page = bench->pair.me.page;
    char more[256];
    int ret = 0;

    trig_table_print(&bench->table, page);
    printf("UCX_TLS=%s, data %s\n", st_report_tls(),
           trig_page_is_verified(page) ? "right" : "WRONG");
    if (bench->json != NULL) {
        snprintf(more, sizeof(more), "\"ucx_tls\":\"%s\",\"window\":%u,",
                 st_report_tls(), CHANNEL_WINDOW);
        ret = trig_table_json(&bench->table, page, more, bench->json);
    }
    return ((ret == 0) && trig_page_is_verified(page)) ? EXIT_SUCCESS :
                                                         EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static st_channel_bench_t bench = {
        .table  = {.bench = "st_channel", .provider = "UCX", .trials = 9},
        .count  = 2000,
        .min    = 8,
        .max    = CHANNEL_MAX_SIZE,
        .factor = 8
    };
    int status                      = EXIT_SUCCESS;

    if (parse(&bench, argc, argv) != 0) {
        return 2;
    }
    if (trig_pair_start(&bench.pair, "st_channel") != 0) {
        return EXIT_FAILURE;
    }
    run_all(&bench);
    if (bench.pair.me.rank == 0) {
        status = report(&bench);
    }
    return trig_pair_end(&bench.pair, status);
}
