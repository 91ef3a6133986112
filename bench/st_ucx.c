/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ucx.c - what UCX makes of the transport: tagged messages and puts by UCP
 * over cxi_trig, beside the provider's own and UCP over tcp.
 *
 * Two processes of this machine. The variants take turns.
 */
#include "trig_table.h"
#include "ucx_bench.h"

#include <st_number.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ST_UCX_MAX_COUNT 1000000
#define ST_UCX_MAX_SIZE  TRIG_MAX_SIZE


/* What sends */
typedef enum {
    ST_UCX_RAW,
    ST_UCX_TRIG,
    ST_UCX_TCP,
    ST_UCX_NUM_WAYS
} st_ucx_way_t;

/* What is measured */
typedef enum {
    ST_UCX_TAG,
    ST_UCX_PUT,
    ST_UCX_WINDOW
} st_ucx_what_t;

typedef struct st_ucx {
    trig_pair_t  pair;
    trig_fab_t   *fab;
    ucx_way_t    *ways[ST_UCX_NUM_WAYS];
    trig_table_t table;
    const char   *json;
    size_t       count; /* Half round trips of a trial, small sizes */
    size_t       max;
} st_ucx_t;

/* By what and way. The words of a row's variant. */
static const char *const st_ucx_variants[][ST_UCX_NUM_WAYS] = {
    [ST_UCX_TAG]    = {"tag raw", "tag cxi_trig", "tag tcp"},
    [ST_UCX_PUT]    = {"put raw", "put cxi_trig", "put tcp"},
    [ST_UCX_WINDOW] = {"window raw", "window cxi_trig", "window tcp"}
};


static double run_tag(void *arg, const trig_row_t *row)
{
    ucx_way_t *way = arg;

    return way->tag(way, row->step.size, row->step.count);
}

static double run_put(void *arg, const trig_row_t *row)
{
    ucx_way_t *way = arg;

    return way->put(way, row->step.count);
}

static double run_window(void *arg, const trig_row_t *row)
{
    ucx_way_t *way = arg;

    return way->window(way, row->step.size, row->step.count);
}

/* All ways to do the same, with the provider's as baseline */
static void add_rows(st_ucx_t *bench, st_ucx_what_t what, size_t size,
                     unsigned count)
{
    static double (*const runs[])(void *arg, const trig_row_t *row) = {
        [ST_UCX_TAG]    = run_tag,
        [ST_UCX_PUT]    = run_put,
        [ST_UCX_WINDOW] = run_window
    };
    trig_row_t row = {
        .run      = runs[what],
        .baseline = -1,
        .step     = {.size = size, .count = (count == 0) ? 1 : count}
    };
    int first      = bench->table.count;
    int way;

    for (way = 0; way < ST_UCX_NUM_WAYS; ++way) {
        row.variant  = st_ucx_variants[what][way];
        row.arg      = bench->ways[way];
        row.baseline = (way == ST_UCX_RAW) ? -1 : first;
        trig_table_add(&bench->table, &row);
    }
}

static void add_all(st_ucx_t *bench)
{
    size_t size, cost;

    add_rows(bench, ST_UCX_PUT, 8, (unsigned)bench->count);
    for (size = 8; size <= bench->max; size *= 8) {
        cost = 1 + (size / 2048);
        add_rows(bench, ST_UCX_TAG, size, (unsigned)(bench->count / cost));
        add_rows(bench, ST_UCX_WINDOW, size,
                 (unsigned)(bench->count / UCX_WINDOW / cost));
    }
    if (bench->max == ST_UCX_MAX_SIZE) {
        add_rows(bench, ST_UCX_TAG, bench->max, (unsigned)bench->count / 100);
        add_rows(bench, ST_UCX_WINDOW, bench->max,
                 (unsigned)bench->count / 500);
    }
}

static void run_all(st_ucx_t *bench)
{
    trig_rank_t *me = &bench->pair.me;
    int way;

    bench->fab                = trig_fab_open(me, bench->table.provider);
    bench->ways[ST_UCX_RAW]   = ucx_raw_open(me, bench->fab);
    bench->ways[ST_UCX_TRIG]  = ucx_ucp_open(me, "cxi_trig,self", NULL);
    bench->ways[ST_UCX_TCP]   = ucx_ucp_open(me, "tcp,self", "lo");
    add_all(bench);
    trig_table_run(&bench->table);
    for (way = ST_UCX_NUM_WAYS - 1; way >= 0; --way) {
        bench->ways[way]->close(bench->ways[way]);
    }
}

static int usage(FILE *file)
{
    fprintf(file,
            "Usage: st_ucx [options]\n"
            "Tagged messages and puts of UCP over cxi_trig, between two "
            "processes of this\nmachine: against the provider's own, and UCP "
            "over tcp.\n"
            "\n"
            "  --provider NAME  libfabric provider (cxiemu)\n"
            "  --max BYTES      largest message, from 8; k, m allowed (1m)\n"
            "  --trials N       repetitions, variants taking turns (9)\n"
            "  --count N        half round trips of a trial, small sizes "
            "(2000)\n"
            "  --json FILE      write the report to a file\n"
            "  --help           print this and stop\n");
    return -1;
}

static int parse_option(st_ucx_t *bench, int opt)
{
    switch (opt) {
    case 'p':
        bench->table.provider = optarg;
        return 0;
    case 'm':
        return st_number_option("max", 8, ST_UCX_MAX_SIZE, &bench->max);
    case 't':
        return st_number_option("trials", 1, TRIG_TABLE_MAX_TRIALS,
                                &bench->table.trials);
    case 'c':
        return st_number_option("count", 1, ST_UCX_MAX_COUNT, &bench->count);
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

static int parse(st_ucx_t *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"provider", required_argument, NULL, 'p'},
        {"max", required_argument, NULL, 'm'},
        {"trials", required_argument, NULL, 't'},
        {"count", required_argument, NULL, 'c'},
        {"json", required_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}
    };
    int opt;

    while ((opt = getopt_long(argc, argv, "hp:", options, NULL)) != -1) {
        if (parse_option(bench, opt) != 0) {
            return -1;
        }
    }
    return (optind == argc) ? 0 : usage(stderr);
}

static int report(const st_ucx_t *bench)
{
    const trig_page_t *page = bench->pair.me.page;
    int ret                 = 0;

    trig_table_print(&bench->table, page);
    printf("data %s\n", trig_page_is_verified(page) ? "right" : "WRONG");
    if (bench->json != NULL) {
        ret = trig_table_json(&bench->table, page, "", bench->json);
    }
    return ((ret == 0) && trig_page_is_verified(page)) ? EXIT_SUCCESS :
                                                         EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static st_ucx_t bench = {
        .table = {.bench = "st_ucx", .provider = "cxiemu", .trials = 9},
        .count = 2000,
        .max   = ST_UCX_MAX_SIZE
    };
    int status            = EXIT_SUCCESS;

    if (parse(&bench, argc, argv) != 0) {
        return 2;
    }
    /* Both are to be the same provider */
    setenv("UCX_CXI_TRIG_PROVIDER", bench.table.provider, 1);
    if (trig_pair_start(&bench.pair, "st_ucx") != 0) {
        return EXIT_FAILURE;
    }
    run_all(&bench);
    if (bench.pair.me.rank == 0) {
        status = report(&bench);
    }
    trig_fab_close(bench.fab);
    return trig_pair_end(&bench.pair, status);
}
