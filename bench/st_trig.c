/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig.c - from a trigger to the word that a remote process waits for.
 *
 * Two processes of this machine. The variants take turns, so that the load of
 * the machine hits all of them.
 */
#include "trig_fab.h"
#include "trig_table.h"
#include "trig_uct.h"

#include <st_number.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define ST_TRIG_MAX_COUNT 1000000
#define ST_TRIG_RATE_SIZE (1ul << 20)


typedef struct st_trig {
    trig_pair_t  pair;
    trig_fab_t   *fab;
    trig_uct_t   *uct;
    trig_table_t table;
    const char   *json;
    size_t       count;    /* Half round trips of a trial, small sizes */
    size_t       max;
    double       idle_s;
} st_trig_t;


static double run_copy(void *arg, const trig_row_t *row)
{
    st_trig_t *bench = arg;

    return trig_copy(&bench->pair.me, row->step.size, row->step.count);
}

static double run_attach(void *arg, const trig_row_t *row)
{
    st_trig_t *bench = arg;

    return trig_attach(&bench->pair.me, row->step.size, row->step.count);
}

static double run_write(void *arg, const trig_row_t *row)
{
    st_trig_t *bench = arg;

    return trig_fab_write(bench->fab, &row->step);
}

static double run_uct(void *arg, const trig_row_t *row)
{
    st_trig_t *bench = arg;

    return trig_uct_write(bench->uct, &row->step);
}

static double run_tagged(void *arg, const trig_row_t *row)
{
    st_trig_t *bench = arg;

    return trig_fab_tagged(bench->fab, row->step.count);
}

static double run_stream(void *arg, const trig_row_t *row)
{
    st_trig_t *bench = arg;

    return trig_fab_stream(bench->fab, &row->step);
}

/* Both machines' ways to copy; the better one is what a row is compared with */
static double run_best_copy(void *arg, const trig_row_t *row)
{
    double copy   = run_copy(arg, row);
    double attach = run_attach(arg, row);

    return ((attach > 0) && (attach < copy)) ? attach : copy;
}

static unsigned count_for(const st_trig_t *bench, size_t size)
{
    unsigned count = (unsigned)(bench->count / (1 + (size / 4096)));

    return (count < 20) ? 20 : count;
}

static void add_size(st_trig_t *bench, size_t size)
{
    trig_row_t make = {
        .variant  = "copy",
        .run      = run_copy,
        .arg      = bench,
        .baseline = -1,
        .step     = {.size = size, .count = count_for(bench, size)}
    };
    int base        = trig_table_add(&bench->table, &make);
    int raw;

    make.baseline = base;
    if (size > 8) {
        make.variant = "attach";
        make.run     = run_attach;
        trig_table_add(&bench->table, &make);
    }
    make.variant  = "raw";
    make.run      = run_write;
    raw           = trig_table_add(&bench->table, &make);
    make.variant  = "uct_trig";
    make.run      = run_uct;
    make.baseline = raw;
    trig_table_add(&bench->table, &make);
}

static void add_words(st_trig_t *bench)
{
    trig_row_t make = {
        .variant  = "raw-pending-10",
        .run      = run_write,
        .arg      = bench,
        .baseline = -1,
        .step     = {.size = 8, .count = 200, .pending = 10}
    };

    make.baseline     = trig_table_add(&bench->table, &make);
    bench->table.rows[make.baseline].baseline = make.baseline;
    make.variant      = "raw-pending-200";
    make.step.pending = TRIG_PENDING;
    trig_table_add(&bench->table, &make);
    make.variant      = "tagged";
    make.run          = run_tagged;
    make.baseline     = -1;
    make.step.pending = 0;
    make.step.count   = (unsigned)bench->count;
    trig_table_add(&bench->table, &make);
}

static void add_rate(st_trig_t *bench)
{
    trig_row_t make = {
        .variant  = "copy-rate",
        .run      = run_best_copy,
        .arg      = bench,
        .baseline = -1,
        .step     = {.size = ST_TRIG_RATE_SIZE, .count = 50}
    };

    make.baseline    = trig_table_add(&bench->table, &make);
    make.variant     = "write-rate";
    make.run         = run_stream;
    make.step.count  = 100;
    trig_table_add(&bench->table, &make);
}

static void run_all(st_trig_t *bench)
{
    trig_rank_t *me      = &bench->pair.me;
    const char *provider = bench->table.provider;
    size_t size;

    bench->fab = trig_fab_open(me, provider);
    bench->uct = trig_uct_open(me, provider);
    add_size(bench, 8);
    add_words(bench);
    for (size = 64; size <= bench->max; size *= 4) {
        add_size(bench, size);
    }
    if (bench->max >= ST_TRIG_RATE_SIZE) {
        add_rate(bench);
    }
    trig_table_run(&bench->table);
    trig_uct_close(bench->uct);
    trig_idle(me, bench->idle_s);
}

static int usage(FILE *file)
{
    fprintf(file,
            "Usage: st_trig [options]\n"
            "Deferred writes between two processes of this machine, without "
            "MPI: from the\ntrigger to the word at the target, by the "
            "provider and through the transport.\n"
            "\n"
            "  --provider NAME  libfabric provider (cxiemu)\n"
            "  --max BYTES      largest message, from 8; k, m allowed (1m)\n"
            "  --trials N       repetitions, variants taking turns (9)\n"
            "  --count N        half round trips of a trial, small sizes "
            "(1000)\n"
            "  --idle SECONDS   how long to be idle, to see what that costs "
            "(3)\n"
            "  --json FILE      write the report to a file\n"
            "  --help           print this and stop\n");
    return -1;
}

static int parse_option(st_trig_t *bench, int opt)
{
    switch (opt) {
    case 'p':
        bench->table.provider = optarg;
        return 0;
    case 'm':
        return st_number_option("max", 8, TRIG_MAX_SIZE, &bench->max);
    case 't':
        return st_number_option("trials", 1, TRIG_TABLE_MAX_TRIALS,
                                &bench->table.trials);
    case 'c':
        return st_number_option("count", 1, ST_TRIG_MAX_COUNT, &bench->count);
    case 'i':
        bench->idle_s = atof(optarg);
        return (bench->idle_s > 0) ? 0 : usage(stderr);
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

static int parse(st_trig_t *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"provider", required_argument, NULL, 'p'},
        {"max", required_argument, NULL, 'm'},
        {"trials", required_argument, NULL, 't'},
        {"count", required_argument, NULL, 'c'},
        {"idle", required_argument, NULL, 'i'},
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

static int report(const st_trig_t *bench)
{
    const trig_page_t *page = bench->pair.me.page;
    int ret                 = 0;
    char idle[64];

    trig_table_print(&bench->table, page);
    printf("idle: %.3f %% and %.3f %% of a core; data %s\n",
           100 * page->cpu[0], 100 * page->cpu[1],
           trig_page_is_verified(page) ? "right" : "WRONG");
    if (bench->json != NULL) {
        snprintf(idle, sizeof(idle), "\"idle\":[%.5f,%.5f],", page->cpu[0],
                 page->cpu[1]);
        ret = trig_table_json(&bench->table, page, idle, bench->json);
    }
    return ((ret == 0) && trig_page_is_verified(page)) ? EXIT_SUCCESS :
                                                         EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static st_trig_t bench = {
        .table  = {.bench = "st_trig", .provider = "cxiemu", .trials = 9},
        .count  = 1000,
        .max    = TRIG_MAX_SIZE,
        .idle_s = 3
    };
    int status             = EXIT_SUCCESS;

    if (parse(&bench, argc, argv) != 0) {
        return 2;
    }
    if (trig_pair_start(&bench.pair, "st_trig") != 0) {
        return EXIT_FAILURE;
    }
    run_all(&bench);
    if (bench.pair.me.rank == 0) {
        status = report(&bench);
    }
    trig_fab_close(bench.fab);
    return trig_pair_end(&bench.pair, status);
}
