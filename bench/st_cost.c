/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_cost.c - what stream-triggered messages cost beside moving data: memory
 * and time of matching, the host's part of starts and waits, an idle process.
 *
 * Two processes of this machine, without MPI.
 */
#include "cost.h"

#include <st_counts.h>
#include <st_number.h>

#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A use of an operation holds two entries of the card, of its 504, in each of
 * three ways */
#define ST_COST_MAX_OPS   80
#define ST_COST_MAX_PAIRS 1000000


typedef struct st_cost {
    cost_rank_t rank;
    const char  *json;
    size_t      trials;
    size_t      idle_ms;
} st_cost_t;


/* This rank's counts of a lane's worker, for the report */
static void keep_counts(cost_rank_t *rank, int lane)
{
    char *counts = rank->page->counts[lane][rank->me.rank];
    FILE *file   = fmemopen(counts, COST_MAX_COUNTS, "w");

    if (file == NULL) {
        trig_give_up(&rank->me, "fmemopen", 0);
    }
    ucp_st_worker_print_stats(rank->sides[lane].worker, file);
    fclose(file);
}

static void run_all(cost_rank_t *rank)
{
    int lane;

    rank->page->trig.verified[rank->me.rank] = 1;
    cost_idle_run(rank);
    for (lane = 0; lane < COST_NUM_LANES; ++lane) {
        cost_side_open(rank, &rank->sides[lane], cost_lanes[lane]);
    }
    cost_start_open(rank);
    cost_match_run(rank);
    cost_start_run(rank);
    cost_start_close(rank);
    for (lane = 0; lane < COST_NUM_LANES; ++lane) {
        keep_counts(rank, lane);
        cost_barrier(rank);
        cost_side_close(rank, &rank->sides[lane]);
    }
}

static void get_row(cost_row_t *row, st_report_row_t *out)
{
    memset(out, 0, sizeof(*out));
    out->size     = row->size;
    out->variant  = row->variant;
    out->ratio    = row->ratio;
    out->setup_us = -1;
    out->verified = -1;
    out->more     = row->more;
    st_report_stats_get(row->samples, row->num_samples, &out->time);
}

static void print_table(st_cost_t *bench)
{
    cost_rank_t *rank = &bench->rank;
    st_report_row_t row;
    int i;

    printf("provider %s, %ld cores, load %.2f, %d trials\n", rank->provider,
           st_report_cores(), st_report_load(), rank->trials);
    printf("match: size is pairs, ratio that of a pair's time to the one of "
           "100 pairs\nidle: microseconds a second\n");
    printf("%7s %-20s %11s %11s %11s %6s\n", "size", "variant", "median us",
           "min us", "max us", "ratio");
    for (i = 0; i < rank->num_rows; ++i) {
        get_row(&rank->rows[i], &row);
        printf("%7zu %-20s %11.4f %11.4f %11.4f ", row.size, row.variant,
               row.time.median, row.time.min, row.time.max);
        if (row.ratio > 0) {
            printf("%6.2f", row.ratio);
        } else {
            printf("%6s", "-");
        }
        printf("  %s\n", rank->rows[i].note);
    }
}

/* The counts of both ranks' workers of both lanes; each worker has one lane */
static void write_stats(FILE *file, const cost_page_t *page)
{
    const char *comma = "";
    char who[32];
    int lane, i;

    fprintf(file, "\n],\"stats\":{");
    for (lane = 0; lane < COST_NUM_LANES; ++lane) {
        for (i = 0; i < 2; ++i) {
            snprintf(who, sizeof(who), "%s rank %d", cost_lanes[lane], i);
            fputs(comma, file);
            st_counts_json(file, who, page->counts[lane][i]);
            comma = ",";
        }
    }
    fputs("\n}}\n", file);
}

static int write_json(st_cost_t *bench)
{
    cost_rank_t *rank = &bench->rank;
    FILE *file        = st_report_open(bench->json);
    st_report_row_t row;
    int i;

    if (file == NULL) {
        return -1;
    }
    fputc('{', file);
    st_report_json_string(file, "bench", "st_cost");
    st_report_json_string(file, "provider", rank->provider);
    st_report_json_string(file, "stream", "host");
    fprintf(file, "\"ranks\":2,\"trials\":%d,\"ops\":%zu,\"idle_s\":%.3f,",
            rank->trials, rank->num_ops, rank->idle_s);
    st_report_json_machine(file);
    fprintf(file, "\"rows\":[");
    for (i = 0; i < rank->num_rows; ++i) {
        get_row(&rank->rows[i], &row);
        fputs((i > 0) ? "," : "", file);
        st_report_json_row(file, &row);
    }
    write_stats(file, rank->page);
    return st_report_close(file, bench->json);
}

static int report(st_cost_t *bench)
{
    cost_page_t *page = bench->rank.page;
    int ret           = 0;
    char who[32];
    int i;

    print_table(bench);
    (void)setenv("UCX_ST_LANES", "trig", 1); /* as that worker had it */
    for (i = 0; i < 2; ++i) {
        snprintf(who, sizeof(who), "rank %d", i);
        ret |= st_counts_check_trig("st_cost", who, page->counts[0][i]);
        if (!page->trig.verified[i]) {
            fprintf(stderr, "st_cost: rank %d: wrong data\n", i);
            ret = -1;
        }
    }
    if (bench->json != NULL) {
        ret |= write_json(bench);
    }
    return (ret == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void usage(FILE *file)
{
    fprintf(file,
            "Usage: st_cost [options]\n"
            "What stream-triggered messages cost beside moving data; two "
            "processes, no MPI.\n\n"
            "  --provider NAME  libfabric provider (UCX_CXI_TRIG_PROVIDER or "
            "cxiemu)\n"
            "  --trials N       repetitions, all taking turns (9)\n"
            "  --pairs N        most pairs that are matched at once, 1 to 1m "
            "(10000)\n"
            "  --ops N          operations that are started in turn, 1 to %d "
            "(64)\n"
            "  --idle MS        how long to be idle, milliseconds (3000)\n"
            "  --json FILE      write the report to a file\n"
            "  --help           print this and stop\n", ST_COST_MAX_OPS);
}

static int parse_option(st_cost_t *bench, int opt)
{
    switch (opt) {
    case 'p':
        bench->rank.provider = optarg;
        return 0;
    case 't':
        return st_number_option("trials", 1, COST_MAX_TRIALS, &bench->trials);
    case 'n':
        return st_number_option("pairs", 1, ST_COST_MAX_PAIRS,
                                &bench->rank.max_pairs);
    case 'o':
        return st_number_option("ops", 1, ST_COST_MAX_OPS,
                                &bench->rank.num_ops);
    case 'i':
        return st_number_option("idle", 1, 1000000, &bench->idle_ms);
    case 'j':
        bench->json = optarg;
        return 0;
    case 'h':
        usage(stdout);
        exit(EXIT_SUCCESS);
    default:
        usage(stderr);
        return -1;
    }
}

static int parse(st_cost_t *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"provider", required_argument, NULL, 'p'},
        {"trials", required_argument, NULL, 't'},
        {"pairs", required_argument, NULL, 'n'},
        {"ops", required_argument, NULL, 'o'},
        {"idle", required_argument, NULL, 'i'},
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
    if (optind < argc) {
        fprintf(stderr, "st_cost: '%s' is no option\n", argv[optind]);
        return -1;
    }
    bench->rank.trials = (int)bench->trials;
    bench->rank.idle_s = (double)bench->idle_ms / 1000;
    return 0;
}

static const char *default_provider(void)
{
    const char *name = getenv("UCX_CXI_TRIG_PROVIDER");

    return ((name == NULL) || !strcmp(name, "auto")) ? "cxiemu" : name;
}

/* Both processes' way, from the fork on */
static int run(st_cost_t *bench, pid_t child)
{
    int status = EXIT_SUCCESS;
    int theirs = 0;

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bench->rank.me.rank = 1;
    }
    run_all(&bench->rank);
    if (child != 0) {
        status = report(bench);
        if ((waitpid(child, &theirs, 0) != child) || (theirs != 0)) {
            status = EXIT_FAILURE;
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    static st_cost_t bench = {
        .rank    = {
            .max_pairs = 10000,
            .num_ops   = 64
        },
        .trials  = 9,
        .idle_ms = 3000
    };
    cost_page_t *page;
    pid_t child;

    bench.rank.provider = default_provider();
    if (parse(&bench, argc, argv) != 0) {
        return 2;
    }
    /* Of one arena it can be told what it has mapped */
    (void)mallopt(M_ARENA_MAX, 1);
    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if ((page == MAP_FAILED) ||
        (setenv("UCX_CXI_TRIG_PROVIDER", bench.rank.provider, 1) != 0)) {
        perror("st_cost");
        return EXIT_FAILURE;
    }
    bench.rank.page    = page;
    bench.rank.me.page = &page->trig;
    child              = fork();
    if (child < 0) {
        perror("st_cost: fork");
        return EXIT_FAILURE;
    }
    return run(&bench, child);
}
