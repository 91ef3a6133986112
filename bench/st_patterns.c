/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_patterns.c - benchmark: how applications communicate, host-driven and
 * stream-triggered: V-cycles of multigrid, particles that move from rank to
 * rank, breadth-first search, sums of buckets of gradients.
 *
 * Variants take turns within each trial. A trial makes its requests, resets the
 * data, runs the iterations, which are timed, and checks their result. The
 * first trial only warms up.
 */
#include "patterns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* The program's state. Main thread only. */
typedef struct pt_app {
    pt_options_t       opts;
    const pt_pattern_t *pattern;
    pt_plan_t          plan;
    bench_result_t     results[BENCH_NUM_VARIANTS];
    bench_report_t     report;
} pt_app_t;


static const pt_pattern_t *const pt_patterns[] = {
    &pt_vcycle, &pt_particles, &pt_bfs, &pt_buckets
};

#define PT_NUM_PATTERNS (sizeof(pt_patterns) / sizeof(pt_patterns[0]))

static const char pt_help[] =
        "Usage: mpirun -n N st_patterns [options]\n"
        "How applications communicate; time of an iteration. The size is that "
        "of a rank.\n\n"
        "  vcycle     multigrid: halos of cubes of half the side, and so on; "
        "cells a side\n"
        "  particles  those that leave a box, in three phases; particles\n"
        "  bfs        breadth-first search: lengths that depend on data; "
        "vertices\n"
        "  buckets    sums of gradients, a bucket when it is ready; "
        "gradients\n\n"
        "st, st-ready: on a stream, messages that start together are an "
        "exchange of MPIX.\nbfs and buckets have no st-ready. The stream is "
        "the host's, not a GPU's.\n\n"
        "  --pattern NAME   of these (vcycle)\n"
        "  --size N         (16, 4096, 16384, 1m)\n"
        "  --buckets N      of gradients (8)\n"
        "  --iters N        iterations timed together (20)\n";


/* Chooses the pattern, and variants that it has. Returns 0, or -1 after
 * printing what is wrong. */
static int pt_choose(pt_app_t *app)
{
    pt_options_t *opts = &app->opts;
    size_t i;

    for (i = 0; i < PT_NUM_PATTERNS; ++i) {
        if (strcmp(opts->name, pt_patterns[i]->name) == 0) {
            app->pattern = pt_patterns[i];
        }
    }
    if (app->pattern == NULL) {
        bench_error("--pattern: '%s' is none of vcycle, particles, bfs and "
                    "buckets\n", opts->name);
        return -1;
    }
    opts->common.variants &= app->pattern->variants;
    if (opts->common.variants == 0) {
        bench_error("--variants: %s has none of these\n", opts->name);
        return -1;
    }
    opts->size = (opts->size == 0) ? app->pattern->size : opts->size;
    return 0;
}

static int pt_parse(pt_app_t *app, int argc, char **argv)
{
    pt_options_t *opts           = &app->opts;
    const bench_option_t table[] = {
        {.name = "pattern", .text = &opts->name},
        {.name = "size", .min = 1, .max = 1 << 28, .number = &opts->size},
        {.name = "buckets", .min = 1, .max = PT_MAX_SUMS,
         .number = &opts->buckets},
        {.name = "iters", .min = 1, .max = 1000000, .number = &opts->iters},
        {.name = NULL}
    };
    int ret = bench_parse(&opts->common, table, pt_help, argc, argv);

    return (ret == 0) ? pt_choose(app) : ret;
}

static void pt_trial(void *arg, int variant, int trial)
{
    pt_app_t *app          = arg;
    pt_plan_t *plan        = &app->plan;
    bench_result_t *result = &app->results[variant];
    bench_counts_t begin;
    double start, setup_us, time_us;

    plan->variant = 1u << variant;
    bench_counts_begin(&begin, MPI_COMM_WORLD);
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    start = MPI_Wtime();
    pt_init(plan);
    setup_us = bench_max(MPI_Wtime() - start) * 1e6;

    app->pattern->reset();
    pt_prepare(plan, app->opts.iters);
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    start = MPI_Wtime();
    pt_run(plan, app->opts.iters);
    time_us         = bench_max(MPI_Wtime() - start) * 1e6 / app->opts.iters;
    result->errors += app->pattern->check(app->opts.iters);
    if (trial >= 0) {
        result->setup_us[trial] = setup_us;
        result->time_us[trial]  = time_us;
        bench_counts_end(&result->counts, &begin, app->opts.iters);
    }
    pt_cleanup(plan);
}

/* Bytes of the longest message, or sum */
static size_t pt_length(const pt_plan_t *plan)
{
    const pt_exchange_t *exchange;
    size_t most = 0;
    size_t length;
    int i, k, size;

    for (i = 0; i < plan->num_exchanges; ++i) {
        exchange = &plan->exchanges[i];
        for (k = 0; k < exchange->num; ++k) {
            length = exchange->messages[k].length;
            most   = (length > most) ? length : most;
        }
    }
    for (i = 0; i < plan->num_sums; ++i) {
        MPI_Type_size(plan->sums[i].type, &size);
        length = (size_t)size * plan->sums[i].count;
        most   = (length > most) ? length : most;
    }
    return most;
}

/* Returns 0 if everything was right. */
static int pt_report(pt_app_t *app)
{
    const pt_options_t *opts = &app->opts;
    uint64_t errors;
    int ret;

    snprintf(app->report.params, sizeof(app->report.params),
             "\"pattern\":\"%s\",\"size\":%d,\"buckets\":%d,"
             "\"grid\":\"%dx%dx%d\",\"iters\":%d,\"trials\":%d,", opts->name,
             opts->size, opts->buckets, opts->grid[0], opts->grid[1],
             opts->grid[2], opts->iters, opts->common.trials);
    app->report.has_more = (app->plan.num_sums > 0);
    errors = bench_report_add(&app->report, &opts->common,
                              pt_length(&app->plan), app->results,
                              MPI_COMM_WORLD);
    ret    = bench_report_finish(&app->report, &opts->common,
                                 app->plan.messages);
    return (errors == 0) ? ret : -1;
}

static int pt_main(pt_app_t *app)
{
    pt_options_t *opts = &app->opts;
    int ret;

    bench_check(MPI_Dims_create(opts->ranks, 3, opts->grid),
                "MPI_Dims_create");
    if (opts->rank == 0) {
        printf("st_patterns: %s, %d of each of %dx%dx%d ranks, %d iterations, "
               "%d trials; time is that of one iteration\n", opts->name,
               opts->size, opts->grid[0], opts->grid[1], opts->grid[2],
               opts->iters, opts->common.trials);
        fflush(stdout);
    }
    bench_check(MPIX_Host_stream_create(&app->plan.stream),
                "MPIX_Host_stream_create");
    app->plan.comm = MPI_COMM_WORLD;
    if (app->pattern->open(&app->plan, opts) != 0) {
        return -1;
    }
    bench_run(&opts->common, -1, pt_trial, app);
    ret = pt_report(app);
    bench_check(MPIX_Host_stream_free(&app->plan.stream),
                "MPIX_Host_stream_free");
    return ret;
}

int main(int argc, char **argv)
{
    static pt_app_t app = {
        .opts = {
            .common  = {.known = BENCH_VARIANT_MPI | BENCH_VARIANTS_ST},
            .name    = "vcycle",
            .buckets = 8,
            .iters   = 20
        },
        .report.bench = "st_patterns"
    };
    int ret;

    bench_init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &app.opts.ranks);
    app.opts.rank = bench_rank();
    ret = pt_parse(&app, argc, argv);
    if (ret == 0) {
        ret = pt_main(&app);
    }
    MPI_Finalize();
    return (ret >= 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
