/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_jacobi3d.c - benchmark: Jacobi's method in three dimensions, in more
 * blocks than ranks, which exchange faces by MPI from and to staging buffers,
 * by channels, with metadata first, or by matched requests on a stream; weak
 * and strong scaling. The proxy application of the paper on GPU-aware
 * communication in Charm++, on host memory.
 *
 * The variants take turns. After each trial all fields are compared bit by bit
 * with a serial computation.
 */
#include "jacobi3d.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


typedef struct j3_options {
    bench_options_t common;
    const char      *mode;
    int             block;
    int             width;
    int             per_rank;
} j3_options_t;

typedef struct j3_bench {
    j3_options_t   opts;
    j3_app_t       app;
    bench_result_t results[BENCH_NUM_VARIANTS];
    double         exchange_us[BENCH_NUM_VARIANTS][BENCH_MAX_TRIALS];
    char           more[BENCH_NUM_VARIANTS][64]; /* Of the JSON */
    bench_report_t report;
} j3_bench_t;


/* Variants on a stream */
static const j3_st_t *const j3_sts[BENCH_NUM_VARIANTS] = {
    NULL, &j3_st, &j3_st_ready, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    &j3_st_single
};

static const char j3_help[] =
        "Usage: mpirun -n N st_jacobi3d [options]\n"
        "Jacobi's method on a grid in three dimensions, in several blocks a "
        "rank; time\nof an iteration. channel, metadata: driven by messages; "
        "staging: so, by MPI from\nbuffers to which faces are copied. st, "
        "st-ready: on a stream, each block's\nmessages an exchange; st-single: "
        "each by itself. The stream is the host's, not a\nGPU's.\n"
        "\n"
        "  --mode MODE      weak: the grid grows with the ranks; strong (weak)"
        "\n"
        "  --block N        weak: cells a side of a block (32)\n"
        "  --width N        strong: cells a side of the grid (96)\n"
        "  --per-rank N     blocks of a rank (4)\n"
        "  --iters N        iterations of a trial (20)\n";


/* As bench_parse(). */
static int j3_parse(j3_bench_t *bench, int argc, char **argv)
{
    j3_options_t *opts           = &bench->opts;
    const bench_option_t table[] = {
        {.name = "mode", .text = &opts->mode},
        {.name = "block", .min = 1, .max = 1024, .number = &opts->block},
        {.name = "width", .min = 1, .max = 4096, .number = &opts->width},
        {.name = "per-rank", .min = 1, .max = 4096, .number = &opts->per_rank},
        {.name = "iters", .min = 1, .max = 1000000,
         .number = &bench->app.iters},
        {.name = NULL}
    };
    int ret = bench_parse(&opts->common, table, j3_help, argc, argv);

    if ((ret == 0) && (strcmp(opts->mode, "weak") != 0) &&
        (strcmp(opts->mode, "strong") != 0)) {
        bench_error("--mode: '%s' is neither weak nor strong\n", opts->mode);
        return -1;
    }
    return ret;
}

/* How many blocks there are in each dimension, and cells. Returns 0, or prints
 * why it cannot be. */
static int j3_divide(j3_bench_t *bench)
{
    j3_app_t *app = &bench->app;
    int dim;

    MPI_Dims_create(app->num_ranks * bench->opts.per_rank, J3_DIMS, app->grid);
    for (dim = 0; dim < J3_DIMS; ++dim) {
        app->width[dim] = (bench->opts.mode[0] == 'w') ?
                          app->grid[dim] * bench->opts.block :
                          bench->opts.width;
        if (app->width[dim] < app->grid[dim]) {
            bench_error("%d blocks do not fit into %d cells\n",
                        app->grid[dim], app->width[dim]);
            return -1;
        }
    }
    return 0;
}

/* The others may need this rank's UCP until they have all faces */
static void j3_meet(j3_app_t *app)
{
    MPI_Request request;
    int is_met = 0;

    bench_check(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
    while (!is_met) {
        ucp_worker_progress(app->worker);
        bench_check(MPI_Test(&request, &is_met, MPI_STATUS_IGNORE),
                    "MPI_Test");
    }
}

static void j3_progress(j3_app_t *app)
{
    j3_block_t *block;

    if ((app->way->progress(app) == 0) && (app->ready_head == NULL)) {
        sched_yield();
    }
    block = app->ready_head;
    if (block != NULL) {
        app->ready_head = block->ready;
        if (app->ready_head == NULL) {
            app->ready_tail = &app->ready_head;
        }
        j3_block_run(block);
    }
}

static const j3_way_t *j3_way(unsigned variant)
{
    return (variant == BENCH_VARIANT_CHANNEL) ? &j3_channel :
           (variant == BENCH_VARIANT_STAGING) ? &j3_staging :
                                                &j3_metadata;
}

/* All iterations; returns the time, s. */
static double j3_run_blocks(j3_app_t *app, int variant)
{
    double time;
    int i;

    app->way      = j3_way(1u << variant);
    app->num_sets = J3_SETS;
    j3_meet(app);
    time = MPI_Wtime();
    for (i = 0; i < app->num_blocks; ++i) {
        j3_block_begin(&app->blocks[i]);
    }
    while (app->num_done < app->num_blocks) {
        j3_progress(app);
    }
    time = MPI_Wtime() - time;
    j3_meet(app);
    return bench_max(time);
}

/* The same on a stream. */
static double j3_run_st(j3_app_t *app, const j3_st_t *st,
                        bench_result_t *result, int trial)
{
    bench_counts_t begin;
    double setup, time;

    app->num_sets = st->num_sets;
    bench_counts_begin(&begin, MPI_COMM_WORLD);
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    setup = MPI_Wtime();
    st->init(app);
    setup = bench_max(MPI_Wtime() - setup);
    st->prepare(app);
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    time = MPI_Wtime();
    st->run(app);
    time = bench_max(MPI_Wtime() - time);
    if (trial >= 0) {
        result->setup_us[trial] = setup * 1e6;
        bench_counts_end(&result->counts, &begin, app->iters);
    }
    j3_st_cleanup(app);
    return time;
}

static void j3_trial(void *arg, int variant, int trial)
{
    j3_bench_t *bench      = arg;
    j3_app_t *app          = &bench->app;
    bench_result_t *result = &bench->results[variant];
    double time, exchange_us;

    j3_blocks_reset(app);
    time            = (j3_sts[variant] == NULL) ?
                      j3_run_blocks(app, variant) :
                      j3_run_st(app, j3_sts[variant], result, trial);
    result->errors += j3_blocks_check(app);
    exchange_us     = bench_max(j3_blocks_exchange_us(app));
    if (trial >= 0) {
        result->time_us[trial]              = time * 1e6 / app->iters;
        bench->exchange_us[variant][trial] = exchange_us;
    }
}

/* The time of communication apart: as members of rows, and as lines. */
static void j3_add_exchanges(j3_bench_t *bench)
{
    const bench_options_t *opts = &bench->opts.common;
    st_report_stats_t stats;
    int variant;

    for (variant = 0; variant < BENCH_NUM_VARIANTS; ++variant) {
        if (opts->variants & (1u << variant)) {
            st_report_stats_get(bench->exchange_us[variant], opts->trials,
                                &stats);
            snprintf(bench->more[variant], sizeof(bench->more[variant]),
                     ",\"exchange_us\":%.4f", stats.median);
            bench->results[variant].more = bench->more[variant];
            if (bench->app.rank == 0) {
                printf("%-9s exchange of faces apart: %.2f us\n",
                       bench_variants[variant], stats.median);
            }
        }
    }
}

/* Bytes of the largest face */
static size_t j3_face_length(const j3_app_t *app)
{
    size_t most = 0;
    int i;

    for (i = 0; i < app->num_blocks * J3_SIDES; ++i) {
        if (app->blocks[i / J3_SIDES].sides[i % J3_SIDES].length > most) {
            most = app->blocks[i / J3_SIDES].sides[i % J3_SIDES].length;
        }
    }
    return most;
}

/* Returns 0 if everything was right. */
static int j3_run(j3_bench_t *bench)
{
    j3_app_t *app = &bench->app;
    uint64_t errors;
    int ret;

    j3_blocks_init(app, bench->opts.per_rank);
    j3_ways_open(app);
    bench_run(&bench->opts.common, -1, j3_trial, bench);
    j3_add_exchanges(bench);
    errors = bench_report_add(&bench->report, &bench->opts.common,
                              j3_face_length(app), bench->results,
                              MPI_COMM_WORLD);
    j3_ways_close(app);
    j3_blocks_cleanup(app);
    if (app->rank == 0) {
        printf("st_jacobi3d: %s scaling, %dx%dx%d cells in %dx%dx%d blocks, "
               "%d ranks; time is that of one iteration\n", bench->opts.mode,
               app->width[0], app->width[1], app->width[2], app->grid[0],
               app->grid[1], app->grid[2], app->num_ranks);
    }
    snprintf(bench->report.params, sizeof(bench->report.params),
             "\"mode\":\"%s\",\"cells\":[%d,%d,%d],\"blocks\":[%d,%d,%d],"
             "\"iters\":%d,\"trials\":%d,", bench->opts.mode, app->width[0],
             app->width[1], app->width[2], app->grid[0], app->grid[1],
             app->grid[2], app->iters, bench->opts.common.trials);
    ret = bench_report_finish(&bench->report, &bench->opts.common,
                              app->messages);
    return (errors == 0) ? ret : -1;
}

int main(int argc, char **argv)
{
    static j3_bench_t bench = {
        .opts = {
            .common   = {
                .known    = BENCH_VARIANT_STAGING | BENCH_VARIANT_METADATA |
                            BENCH_VARIANT_CHANNEL | BENCH_VARIANTS_ST |
                            BENCH_VARIANT_SINGLE,
                .baseline = BENCH_VARIANT_METADATA
            },
            .mode     = "weak",
            .block    = 32,
            .width    = 96,
            .per_rank = 4
        },
        .app.iters    = 20,
        .report.bench = "st_jacobi3d"
    };
    int ret;

    bench_init(&argc, &argv);
    bench.app.rank = bench_rank();
    MPI_Comm_size(MPI_COMM_WORLD, &bench.app.num_ranks);
    ret = j3_parse(&bench, argc, argv);
    if (ret == 0) {
        ret = j3_divide(&bench);
    }
    if (ret == 0) {
        ret = j3_run(&bench);
    }
    MPI_Finalize();
    return (ret >= 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
