/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_life.c - benchmark: the Game of Life on a grid of cells of a given size,
 * however many ranks share it (strong scaling), host-driven and
 * stream-triggered.
 *
 * Variants take turns within each trial. A trial makes its requests, computes
 * some generations that are compared with those of one plain loop over the
 * whole grid, then those that are timed. The first trial only warms up.
 */
#include "bench_gpu.h"
#include "life.h"

#include <stdio.h>
#include <stdlib.h>

#define LIFE_CHECK_COUNT 8


/* Command line. */
typedef struct life_options {
    bench_options_t common;
    int             size[2];
    int             generations;
} life_options_t;


/* The program's state. Main thread only, but for the field. */
typedef struct life_app {
    life_options_t  opts;
    life_field_t    field;
    life_exchange_t exchange;
    bench_result_t  results[BENCH_NUM_VARIANTS];
    bench_report_t  report;
} life_app_t;


static const life_ops_t *const life_ops[BENCH_NUM_VARIANTS] = {
    &life_mpi_ops, &life_st_ops, &life_st_ready_ops, NULL, NULL, NULL, NULL,
    &life_st_hpe_ops, NULL, NULL, &life_st_single_ops, &life_mpi_device_ops,
    &life_nccl_ops, &life_nvshmem_ops
};

static const char life_help[] =
        "Usage: mpirun -n N st_life [options]\n"
        "The Game of Life on a grid that all ranks share: pack kernel, "
        "exchange with 8\nneighbours, kernel of a generation. st and st-ready: "
        "the messages are exchanges\nof MPIX; st-single: each by itself.\n\n"
        "  --width N        cells in x (512)\n"
        "  --height N       cells in y (512)\n"
        "  --generations N  timed together (100)\n"
        BENCH_STREAM_HELP;


static int life_parse(life_options_t *opts, bench_stream_t *stream, int argc,
                      char **argv)
{
    const bench_option_t table[] = {
        {.name = "width", .min = 1, .max = 1 << 15, .number = &opts->size[0]},
        {.name = "height", .min = 1, .max = 1 << 15, .number = &opts->size[1]},
        {.name = "generations", .min = 1, .max = 1000000,
         .number = &opts->generations},
        {.name = "stream", .text = &stream->name},
        {.name = NULL}
    };
    int ret = bench_parse(&opts->common, table, life_help, argc, argv);

    return (ret == 0) ? bench_stream_parse(stream, &opts->common) : ret;
}

/* Computes so many generations; returns the time, us. */
static double life_run(life_exchange_t *ex, int count)
{
    double start;

    ex->ops->prepare(ex);
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    start = MPI_Wtime();
    ex->ops->run(ex, count);
    return bench_max(MPI_Wtime() - start) * 1e6;
}

static void life_trial(void *arg, int variant, int trial)
{
    life_app_t *app        = arg;
    life_exchange_t *ex    = &app->exchange;
    bench_result_t *result = &app->results[variant];
    bench_counts_t begin;
    double start, setup_us, time_us;

    ex->ops             = life_ops[variant];
    app->field.num_sets = ex->ops->num_sets;
    bench_counts_begin(&begin, MPI_COMM_WORLD);
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    start = MPI_Wtime();
    ex->ops->init(ex);
    setup_us = bench_max(MPI_Wtime() - start) * 1e6;

    life_field_reset(&app->field);
    (void)life_run(ex, LIFE_CHECK_COUNT);
    if (app->field.device != NULL) {
        life_device_fetch(&app->field);
    }
    result->errors += life_compare(&app->field, LIFE_CHECK_COUNT);

    time_us = life_run(ex, app->opts.generations) / app->opts.generations;
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    if (trial >= 0) {
        result->setup_us[trial] = setup_us;
        result->time_us[trial]  = time_us;
        bench_counts_end(&result->counts, &begin,
                         (uint64_t)LIFE_CHECK_COUNT + app->opts.generations);
    }
    ex->ops->cleanup(ex);
}

/* Returns 0 if everything was right. */
static int life_report(life_app_t *app)
{
    const life_options_t *opts = &app->opts;
    const life_field_t *field  = &app->field;
    uint64_t errors;
    int ret;

    snprintf(app->report.params, sizeof(app->report.params),
             "\"width\":%d,\"height\":%d,\"grid\":\"%dx%d\","
             "\"generations\":%d,\"trials\":%d,\"memory\":\"%s\",",
             opts->size[0], opts->size[1], field->ranks[0], field->ranks[1],
             opts->generations, opts->common.trials,
             app->exchange.stream.memory);
    errors = bench_report_add(&app->report, &opts->common,
                              (size_t)opts->size[0] * opts->size[1],
                              app->results, MPI_COMM_WORLD);
    ret    = bench_report_finish(&app->report, &opts->common,
                                 app->exchange.messages);
    return (errors == 0) ? ret : -1;
}

static int life_main(life_app_t *app, int rank)
{
    life_exchange_t *ex = &app->exchange;
    int ret;

    if (rank == 0) {
        printf("st_life: %dx%d cells on %dx%d ranks, %d generations, %d "
               "trials; time is that of one generation\n", app->opts.size[0],
               app->opts.size[1], app->field.ranks[0], app->field.ranks[1],
               app->opts.generations, app->opts.common.trials);
        fflush(stdout);
    }
    ex->field = &app->field;
    bench_stream_create(&ex->stream, &app->report);
    bench_gpu_open(&ex->stream, &app->opts.common, MPI_COMM_WORLD);
    life_field_alloc(&app->field, &ex->stream);
    bench_run(&app->opts.common, -1, life_trial, app);
    ret = life_report(app);
    life_field_cleanup(&app->field);
    bench_gpu_close();
    bench_stream_free(&ex->stream);
    return ret;
}

int main(int argc, char **argv)
{
    static life_app_t app = {
        .opts = {
            .common = {
                .known = BENCH_VARIANT_MPI | BENCH_VARIANTS_ST |
                         BENCH_VARIANT_HPE | BENCH_VARIANT_SINGLE |
                         BENCH_VARIANTS_GPU
            },
            .size        = {512, 512},
            .generations = 100
        },
        .exchange.stream = {.name = "host"},
        .report.bench = "st_life"
    };
    int ranks, ret;

    bench_init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    ret = life_parse(&app.opts, &app.exchange.stream, argc, argv);
    if (ret == 0) {
        ret = life_field_init(&app.field, app.opts.size, bench_rank(), ranks);
        if (ret == 0) {
            ret = life_main(&app, bench_rank());
        }
    }

    MPI_Finalize();
    return (ret >= 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
