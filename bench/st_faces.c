/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_faces.c - benchmark: the halo exchange of Faces, host-driven and
 * stream-triggered.
 *
 * Outer iterations make queue and requests and match anew; middle iterations
 * set the start values and compare the result with a CPU reference; inner
 * iterations are timed. Variants take turns within each trial.
 */
#include "bench_gpu.h"
#include "faces.h"

#include <ucs_trace.h>

#include <stdio.h>
#include <stdlib.h>


/* Command line. */
typedef struct faces_options {
    bench_options_t common;
    const char      *grid;
    int             block;
    int             order;
    int             outer;
    int             middle;
    int             inner;
} faces_options_t;


/* The program's state. Main thread only, but for the field. */
typedef struct faces_app {
    faces_options_t  opts;
    faces_grid_t     grid;
    faces_field_t    field;
    faces_exchange_t exchange;
    double           *expected;
    bench_result_t   results[BENCH_NUM_VARIANTS];
    bench_report_t   report;
} faces_app_t;


static const faces_ops_t *const faces_ops[BENCH_NUM_VARIANTS] = {
    &faces_mpi_ops, &faces_st_ops, &faces_st_ready_ops, NULL, NULL, NULL, NULL,
    &faces_st_hpe_ops, NULL, NULL, &faces_st_single_ops,
    &faces_mpi_device_ops, &faces_nccl_ops, &faces_nvshmem_ops,
    &faces_st_fifo_ops, &faces_st_paper_ops, &faces_st_mpich_ops, NULL,
    NULL, NULL, &faces_st_libmp_ops
};

static const char faces_help[] =
        "Usage: mpirun -n RANKS st_faces [options]\n"
        "Halo exchange of a block of spectral elements with 26 neighbours.\n"
        "The paper's loops: --outer 10 --middle 100 --inner 100\n\n"
        "  --grid XxYxZ     ranks in each dimension, periodic "
        "(as MPI_Dims_create)\n"
        "  --block N        elements of a rank in each dimension (8)\n"
        "  --order N        polynomial order: N+1 points an edge (2)\n"
        "  --outer N        times that requests are made and matched (1)\n"
        "  --middle N       times that the field is set and verified (2)\n"
        "  --inner N        iterations timed together (20)\n"
        BENCH_MEMORY_HELP BENCH_STREAM_HELP;


/* As bench_parse(). */
static int faces_parse(faces_options_t *opts, bench_stream_t *stream, int argc,
                       char **argv)
{
    const bench_option_t table[] = {
        {.name = "grid", .text = &opts->grid},
        {.name = "block", .min = 1, .max = 64, .number = &opts->block},
        {.name = "order", .min = 1, .max = 16, .number = &opts->order},
        {.name = "outer", .min = 1, .max = 100000, .number = &opts->outer},
        {.name = "middle", .min = 1, .max = 100000, .number = &opts->middle},
        {.name = "inner", .min = 1, .max = 100000, .number = &opts->inner},
        {.name = "memory", .text = &stream->memory},
        {.name = "stream", .text = &stream->name},
        {.name = NULL}
    };
    int ret = bench_parse(&opts->common, table, faces_help, argc, argv);

    return (ret == 0) ? bench_stream_parse(stream, &opts->common) : ret;
}

/* One middle iteration; returns the time of its inner loop, us. */
static double faces_middle(faces_app_t *app, bench_result_t *result)
{
    faces_exchange_t *ex = &app->exchange;
    double start, time;
    uint64_t begin;

    faces_field_reset(&app->field, ex->ops->num_sets);
    ex->ops->prepare(ex);
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");

    begin = ucs_trace_begin();
    start = MPI_Wtime();
    ex->ops->run(ex, app->opts.inner);
    time  = bench_max(MPI_Wtime() - start);
    ucs_trace_end(ex->ops->name, begin);

    if (app->field.device != NULL) {
        faces_device_fetch(&app->field);
    }
    if (faces_check(&app->field, app->expected, ex->ops->name) != 0) {
        ++result->errors;
    }
    return time * 1e6;
}

/* One variant's loops, short ones to warm up. */
static void faces_trial(void *arg, int variant, int trial)
{
    faces_app_t *app       = arg;
    faces_exchange_t *ex   = &app->exchange;
    bench_result_t *result = &app->results[variant];
    int outer              = (trial < 0) ? 1 : app->opts.outer;
    int middle             = (trial < 0) ? 1 : app->opts.middle;
    double time_us         = 0;
    double setup_us        = 0;
    bench_counts_t begin;
    double start;
    int i, j;

    ex->ops = faces_ops[variant];
    for (i = 0; i < outer; ++i) {
        bench_counts_begin(&begin, MPI_COMM_WORLD);
        bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        start = MPI_Wtime();
        ex->ops->init(ex);
        setup_us += bench_max(MPI_Wtime() - start) * 1e6;
        for (j = 0; j < middle; ++j) {
            time_us += faces_middle(app, result);
        }
        bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        if (trial >= 0) {
            bench_counts_end(&result->counts, &begin,
                             (uint64_t)middle * app->opts.inner);
        }
        ex->ops->cleanup(ex);
    }

    if (trial >= 0) {
        result->time_us[trial]  = time_us / ((double)outer * middle *
                                             app->opts.inner);
        result->setup_us[trial] = setup_us / outer;
    }
}

static size_t faces_largest_message(const faces_field_t *field)
{
    return (size_t)field->width * field->width * sizeof(double);
}

/* Returns 0 if everything was right. */
static int faces_report(faces_app_t *app)
{
    const faces_options_t *opts = &app->opts;
    const int *size             = app->grid.size;
    uint64_t errors;
    int ret;

    snprintf(app->report.params, sizeof(app->report.params),
             "\"grid\":\"%dx%dx%d\",\"block\":%d,\"order\":%d,\"outer\":%d,"
             "\"middle\":%d,\"inner\":%d,\"trials\":%d,\"memory\":\"%s\",",
             size[0], size[1], size[2], opts->block, opts->order, opts->outer,
             opts->middle, opts->inner, opts->common.trials,
             app->exchange.stream.memory);
    errors = bench_report_add(&app->report, &opts->common,
                              faces_largest_message(&app->field), app->results,
                              MPI_COMM_WORLD);
    ret    = bench_report_finish(&app->report, &opts->common,
                                 app->exchange.messages);
    return (errors == 0) ? ret : -1;
}

static void faces_print_head(const faces_app_t *app)
{
    const faces_options_t *opts = &app->opts;
    const int *size             = app->grid.size;

    printf("st_faces: %dx%dx%d ranks, block of %d^3 elements of order %d, "
           "%d x %d x %d iterations, %d trials\n", size[0], size[1], size[2],
           opts->block, opts->order, opts->outer, opts->middle, opts->inner,
           opts->common.trials);
    printf("messages of a rank: 6 x %zu B, 12 x %zu B, 8 x %zu B; time is that "
           "of one inner iteration\n", faces_largest_message(&app->field),
           app->field.width * sizeof(double), sizeof(double));
    fflush(stdout);
}

static int faces_main(faces_app_t *app, int rank)
{
    int ret;

    bench_stream_create(&app->exchange.stream, &app->report);
    bench_gpu_open(&app->exchange.stream, &app->opts.common, MPI_COMM_WORLD);
    faces_field_init(&app->field, &app->exchange.stream, rank, app->opts.block,
                     app->opts.order);
    app->expected       = bench_alloc(app->field.num_values * sizeof(double));
    app->exchange.grid  = &app->grid;
    app->exchange.field = &app->field;
    if (rank == 0) {
        faces_print_head(app);
    }

    faces_reference(&app->field, &app->grid, app->opts.inner, app->expected);
    bench_run(&app->opts.common, -1, faces_trial, app);
    ret = faces_report(app);

    free(app->expected);
    faces_field_cleanup(&app->field);
    bench_gpu_close();
    bench_stream_free(&app->exchange.stream);
    return ret;
}

int main(int argc, char **argv)
{
    static faces_app_t app = {
        .opts = {
            .common = {
                .known = BENCH_VARIANT_MPI | BENCH_VARIANTS_ST |
                         BENCH_VARIANTS_ONCE | BENCH_VARIANT_PAPER |
                         BENCH_VARIANT_SINGLE | BENCH_VARIANT_MPICH |
                         BENCH_VARIANT_LIBMP |
                         BENCH_VARIANT_MPI_DEVICE | BENCH_VARIANT_NCCL |
                         BENCH_VARIANT_NVSHMEM
            },
            .block  = 8,
            .order  = 2,
            .outer  = 1,
            .middle = 2,
            .inner  = 20
        },
        .exchange.stream = {.name = "host"},
        .report.bench = "st_faces"
    };
    int ranks, ret;

    bench_init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    ret = faces_parse(&app.opts, &app.exchange.stream, argc,
                      argv);
    if (ret == 0) {
        ret = faces_grid_init(&app.grid, app.opts.grid, bench_rank(), ranks);
        if (ret == 0) {
            ret = faces_main(&app, bench_rank());
        }
    }

    MPI_Finalize();
    return (ret >= 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
