/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_faces.c - benchmark: the halo exchange of Faces, host-driven and
 * stream-triggered.
 *
 * Outer iterations make queue and requests and match anew; middle iterations
 * set the start values and compare the result with a CPU reference; inner
 * iterations are timed. Variants take turns within each trial.
 */
#include "faces.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FACES_NUM_VARIANTS 3


/* Command line. */
typedef struct faces_options {
    const char *grid;
    const char *json;
    unsigned   variants;
    int        block;
    int        order;
    int        outer;
    int        middle;
    int        inner;
    int        trials;
} faces_options_t;


/* What was measured of one variant. */
typedef struct faces_result {
    double iter_us[BENCH_MAX_TRIALS];
    double setup_us[BENCH_MAX_TRIALS];
    int    errors; /* Wrong results on any rank */
} faces_result_t;


/* The program's state. Main thread only, but for the field. */
typedef struct faces_app {
    faces_options_t  opts;
    faces_grid_t     grid;
    faces_field_t    field;
    faces_exchange_t exchange;
    double           *expected;
    faces_result_t   results[FACES_NUM_VARIANTS];
    bench_report_t   report;
} faces_app_t;


static const char *const faces_names[] = {"mpi", "st", "st-ready", NULL};

static const faces_ops_t *const faces_ops[FACES_NUM_VARIANTS] = {
    &faces_mpi_ops, &faces_st_ops, &faces_st_ready_ops
};

static const struct option faces_long_options[] = {
    {"grid", required_argument, NULL, 'g'},
    {"block", required_argument, NULL, 'b'},
    {"order", required_argument, NULL, 'p'},
    {"outer", required_argument, NULL, 'o'},
    {"middle", required_argument, NULL, 'm'},
    {"inner", required_argument, NULL, 'i'},
    {"trials", required_argument, NULL, 't'},
    {"variants", required_argument, NULL, 'v'},
    {"json", required_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}
};


static void faces_usage(void)
{
    puts("Usage: mpirun -n RANKS st_faces [options]\n"
         "Halo exchange of a block of spectral elements with 26 neighbours.\n\n"
         "  --grid XxYxZ     ranks in each dimension, periodic "
         "(as MPI_Dims_create)\n"
         "  --block N        elements of a rank in each dimension (8)\n"
         "  --order N        polynomial order: N+1 points an edge (2)\n"
         "  --outer N        times that requests are made and matched (1)\n"
         "  --middle N       times that the field is set and verified (2)\n"
         "  --inner N        iterations timed together (20)\n"
         "  --trials N       repetitions, variants taking turns (3)\n"
         "  --variants LIST  of mpi,st,st-ready (all)\n"
         "  --json FILE      write the report to a file\n"
         "  --help           print this and stop\n\n"
         "The paper's loops: --outer 10 --middle 100 --inner 100");
}

static int faces_parse_option(faces_options_t *opts, int option,
                              const char *text)
{
    switch (option) {
    case 'g':
        opts->grid = text;
        return 0;
    case 'j':
        opts->json = text;
        return 0;
    case 'b':
        return bench_parse_int("block", text, 1, 64, &opts->block);
    case 'p':
        return bench_parse_int("order", text, 1, 16, &opts->order);
    case 'o':
        return bench_parse_int("outer", text, 1, 100000, &opts->outer);
    case 'm':
        return bench_parse_int("middle", text, 1, 100000, &opts->middle);
    case 'i':
        return bench_parse_int("inner", text, 1, 100000, &opts->inner);
    case 't':
        return bench_parse_int("trials", text, 1, BENCH_MAX_TRIALS,
                               &opts->trials);
    case 'v':
        return bench_parse_names("variants", text, faces_names,
                                 &opts->variants);
    default:
        return -1;
    }
}

/* Returns 0 to go on, 1 after printing the help, -1 for a wrong command
 * line. */
static int faces_parse(faces_options_t *opts, int argc, char **argv, int rank)
{
    int option;

    opterr = (rank == 0);
    while ((option = getopt_long(argc, argv, "h", faces_long_options, NULL)) !=
           -1) {
        if (option == 'h') {
            if (rank == 0) {
                faces_usage();
            }
            return 1;
        }
        if (faces_parse_option(opts, option, optarg) != 0) {
            return -1;
        }
    }

    if (optind < argc) {
        bench_error("unknown argument '%s'\n", argv[optind]);
        return -1;
    }
    return 0;
}

/* One middle iteration; returns the time of its inner loop, us. */
static double faces_middle(faces_app_t *app, faces_result_t *result)
{
    faces_exchange_t *ex = &app->exchange;
    double start, time;
    int error;

    faces_field_reset(&app->field, ex->ops->num_sets);
    ex->ops->prepare(ex);
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");

    start = MPI_Wtime();
    ex->ops->run(ex, app->opts.inner);
    time  = bench_max(MPI_Wtime() - start);

    error           = faces_check(&app->field, app->expected, ex->ops->name);
    result->errors += (bench_max(-error) > 0);
    return time * 1e6;
}

/* Runs one variant's loops; a trial below 0 is not recorded. */
static void faces_trial(faces_app_t *app, int variant, int trial)
{
    faces_exchange_t *ex   = &app->exchange;
    faces_result_t *result = &app->results[variant];
    int outer              = (trial < 0) ? 1 : app->opts.outer;
    int middle             = (trial < 0) ? 1 : app->opts.middle;
    double iter_us         = 0;
    double setup_us        = 0;
    double start;
    int i, j;

    ex->ops = faces_ops[variant];
    for (i = 0; i < outer; ++i) {
        bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        start = MPI_Wtime();
        ex->ops->init(ex);
        setup_us += bench_max(MPI_Wtime() - start) * 1e6;
        for (j = 0; j < middle; ++j) {
            iter_us += faces_middle(app, result);
        }
        bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        ex->ops->cleanup(ex);
    }

    if (trial >= 0) {
        result->iter_us[trial]  = iter_us / ((double)outer * middle *
                                             app->opts.inner);
        result->setup_us[trial] = setup_us / outer;
    }
}

static void faces_run(faces_app_t *app)
{
    int trial, variant;

    for (trial = -1; trial < app->opts.trials; ++trial) {
        for (variant = 0; variant < FACES_NUM_VARIANTS; ++variant) {
            if (app->opts.variants & (1u << variant)) {
                faces_trial(app, variant, trial);
            }
        }
    }
}

static size_t faces_largest_message(const faces_field_t *field)
{
    return (size_t)field->width * field->width * sizeof(double);
}

/* Adds a row for each variant. Returns the number of wrong results. */
static int faces_collect(faces_app_t *app)
{
    int baseline = (app->opts.variants & 1) ? 0 : -1;
    int errors   = 0;
    bench_stats_t setup;
    bench_row_t row;
    int variant;

    for (variant = 0; variant < FACES_NUM_VARIANTS; ++variant) {
        if (!(app->opts.variants & (1u << variant))) {
            continue;
        }
        bench_stats_get(app->results[variant].iter_us, app->opts.trials,
                        &row.time);
        bench_stats_get(app->results[variant].setup_us, app->opts.trials,
                        &setup);
        row.size     = faces_largest_message(&app->field);
        row.variant  = faces_names[variant];
        row.setup_us = (variant == 0) ? 0 : setup.median;
        row.verified = (app->results[variant].errors == 0);
        errors      += app->results[variant].errors;
        bench_report_add(&app->report, &row, baseline);
    }
    return errors;
}

/* Returns 0 if everything was right. */
static int faces_report(faces_app_t *app, int rank)
{
    const faces_options_t *opts = &app->opts;
    const int *size             = app->grid.size;
    int ret                     = faces_collect(app);

    ret |= bench_report_count(&app->report, app->exchange.messages);
    if (rank != 0) {
        return ret;
    }

    snprintf(app->report.params, sizeof(app->report.params),
             "\"grid\":\"%dx%dx%d\",\"block\":%d,\"order\":%d,\"outer\":%d,"
             "\"middle\":%d,\"inner\":%d,\"trials\":%d,", size[0], size[1],
             size[2], opts->block, opts->order, opts->outer, opts->middle,
             opts->inner, opts->trials);
    bench_report_print(&app->report);
    if (opts->json != NULL) {
        ret |= bench_report_write(&app->report, opts->json);
    }
    return ret;
}

static void faces_print_head(const faces_app_t *app)
{
    const faces_options_t *opts = &app->opts;
    const int *size             = app->grid.size;

    printf("st_faces: %dx%dx%d ranks, block of %d^3 elements of order %d, "
           "%d x %d x %d iterations, %d trials\n", size[0], size[1], size[2],
           opts->block, opts->order, opts->outer, opts->middle, opts->inner,
           opts->trials);
    printf("messages of a rank: 6 x %zu B, 12 x %zu B, 8 x %zu B; time is that "
           "of one inner iteration\n", faces_largest_message(&app->field),
           app->field.width * sizeof(double), sizeof(double));
    fflush(stdout);
}

static int faces_main(faces_app_t *app, int rank)
{
    int ret;

    faces_field_init(&app->field, rank, app->opts.block, app->opts.order);
    app->expected       = bench_alloc(app->field.num_values * sizeof(double));
    app->exchange.grid  = &app->grid;
    app->exchange.field = &app->field;
    bench_report_init(&app->report, "st_faces", FACES_NUM_VARIANTS);
    bench_check(MPIX_Host_stream_create(&app->exchange.stream),
                "MPIX_Host_stream_create");
    if (rank == 0) {
        faces_print_head(app);
    }

    faces_reference(&app->field, &app->grid, app->opts.inner, app->expected);
    faces_run(app);
    ret = faces_report(app, rank);

    bench_check(MPIX_Host_stream_free(&app->exchange.stream),
                "MPIX_Host_stream_free");
    bench_report_cleanup(&app->report);
    free(app->expected);
    faces_field_cleanup(&app->field);
    return ret;
}

int main(int argc, char **argv)
{
    static faces_app_t app = {
        .opts = {
            .variants = (1u << FACES_NUM_VARIANTS) - 1,
            .block    = 8,
            .order    = 2,
            .outer    = 1,
            .middle   = 2,
            .inner    = 20,
            .trials   = 3
        }
    };
    int rank, ranks, provided, ret;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    ret = faces_parse(&app.opts, argc, argv, rank);
    if (ret == 0) {
        ret = faces_grid_init(&app.grid, app.opts.grid, rank, ranks);
        if (ret == 0) {
            ret = faces_main(&app, rank);
        }
    } else if (ret > 0) {
        ret = 0;
    }

    MPI_Finalize();
    return (ret == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
