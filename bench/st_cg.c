/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_cg.c - benchmark: conjugate gradients with a halo and two sums over all
 * ranks in each iteration, host-driven and stream-triggered. The grid is of a
 * given size, however many ranks share it (strong scaling).
 *
 * Variants take turns within each trial. A trial makes its requests, runs
 * iterations whose residual is checked against one that is computed anew, then
 * those that are timed. The first trial only warms up.
 */
#include "cg.h"

#include <stdio.h>
#include <stdlib.h>

#define CG_CHECK_COUNT 60


/* Command line. */
typedef struct cg_options {
    bench_options_t common;
    int             width;
    int             height;
    int             iters;
} cg_options_t;


/* The program's state. Main thread only, but for the data. */
typedef struct cg_app {
    cg_options_t   opts;
    cg_data_t      data;
    cg_solver_t    solver;
    bench_result_t results[BENCH_NUM_VARIANTS];
    bench_report_t report;
} cg_app_t;


static const cg_ops_t *const cg_ops[BENCH_NUM_VARIANTS] = {
    &cg_mpi_ops, &cg_st_ops
};

static const char cg_help[] =
        "Usage: mpirun -n N st_cg [options]\n"
        "Conjugate gradients on a grid whose rows all ranks share: halo of two "
        "rows and\ntwo sums over all ranks in an iteration. Its stream is the "
        "host's, not a GPU's.\n\n"
        "  --width N        nodes in a row (512)\n"
        "  --height N       rows (512)\n"
        "  --iters N        iterations timed together (50)\n";


static int cg_parse(cg_options_t *opts, int argc, char **argv)
{
    const bench_option_t table[] = {
        {.name = "width", .min = 1, .max = 1 << 15, .number = &opts->width},
        {.name = "height", .min = 1, .max = 1 << 15, .number = &opts->height},
        {.name = "iters", .min = 1, .max = 1000000, .number = &opts->iters},
        {.name = NULL}
    };

    return bench_parse(&opts->common, table, cg_help, argc, argv);
}

static void cg_trial(void *arg, int variant, int trial)
{
    cg_app_t *app          = arg;
    cg_solver_t *cg        = &app->solver;
    bench_result_t *result = &app->results[variant];
    double start, setup_us, time_us;

    cg->ops = cg_ops[variant];
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    start = MPI_Wtime();
    cg->ops->init(cg);
    setup_us = bench_max(MPI_Wtime() - start) * 1e6;

    cg_data_reset(&app->data);
    cg->ops->run(cg, CG_CHECK_COUNT);
    result->errors += cg_check(&app->data);

    cg_data_reset(&app->data);
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    start = MPI_Wtime();
    cg->ops->run(cg, app->opts.iters);
    time_us = bench_max(MPI_Wtime() - start) * 1e6 / app->opts.iters;
    if (trial >= 0) {
        result->setup_us[trial] = setup_us;
        result->time_us[trial]  = time_us;
    }
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    cg->ops->cleanup(cg);
}

/* Returns 0 if everything was right. */
static int cg_report(cg_app_t *app)
{
    const cg_options_t *opts = &app->opts;
    uint64_t errors;
    int ret;

    snprintf(app->report.params, sizeof(app->report.params),
             "\"width\":%d,\"height\":%d,\"iters\":%d,\"trials\":%d,",
             opts->width, opts->height, opts->iters, opts->common.trials);
    errors = bench_report_add(&app->report, &opts->common,
                              opts->width * sizeof(double), app->results,
                              MPI_COMM_WORLD);
    ret    = bench_report_finish(&app->report, &opts->common,
                                 app->solver.messages);
    return (errors == 0) ? ret : -1;
}

static int cg_main(cg_app_t *app, int rank)
{
    cg_solver_t *cg = &app->solver;
    int ret;

    if (rank == 0) {
        printf("st_cg: %dx%d nodes, %d iterations, %d trials; time is that of "
               "one iteration\n", app->opts.width, app->opts.height,
               app->opts.iters, app->opts.common.trials);
        fflush(stdout);
    }
    cg->data = &app->data;
    bench_check(MPIX_Host_stream_create(&cg->stream),
                "MPIX_Host_stream_create");
    bench_run(&app->opts.common, -1, cg_trial, app);
    ret = cg_report(app);
    bench_check(MPIX_Host_stream_free(&cg->stream), "MPIX_Host_stream_free");
    return ret;
}

int main(int argc, char **argv)
{
    static cg_app_t app = {
        .opts = {
            .common = {.known = BENCH_VARIANT_MPI | BENCH_VARIANT_ST},
            .width  = 512,
            .height = 512,
            .iters  = 50
        },
        .report = {.bench = "st_cg", .has_more = 1}
    };
    int ret;

    bench_init(&argc, &argv);
    ret = cg_parse(&app.opts, argc, argv);
    if (ret == 0) {
        ret = cg_data_init(&app.data, app.opts.width, app.opts.height);
        if (ret == 0) {
            ret = cg_main(&app, bench_rank());
            cg_data_cleanup(&app.data);
        }
    }

    MPI_Finalize();
    return (ret >= 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
