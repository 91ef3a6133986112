/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_pingpong.c - benchmark: round trips of two ranks with a pack and an unpack
 * kernel on each side, host-driven and stream-triggered.
 *
 * Variants take turns within each trial of a size. Before the timed round trips
 * of a trial come some whose payload changes every time and is checked in full.
 */
#include "pingpong.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define PP_NUM_VARIANTS 3
#define PP_CHECK_COUNT  3
#define PP_MAX_SIZES    64
#define PP_FULL_COUNT   65536 /* Largest message that gets all round trips */


/* Command line. */
typedef struct pp_options {
    const char *json;
    unsigned   variants;
    size_t     min;
    size_t     max;
    int        factor;
    int        iters;
    int        trials;
} pp_options_t;


/* The program's state. Main thread only, but for the data. */
typedef struct pp_app {
    pp_options_t   opts;
    int            rank;
    MPI_Comm       comm;
    void           *stream;
    MPIX_Queue     queue;
    pp_data_t      data;
    pp_exchange_t  exchange[PP_NUM_VARIANTS];
    double         times[PP_NUM_VARIANTS][BENCH_MAX_TRIALS];
    double         setup_us[PP_NUM_VARIANTS];
    uint64_t       errors[PP_NUM_VARIANTS];
    uint64_t       messages;
    bench_report_t report;
} pp_app_t;


static const char *const pp_names[] = {"mpi", "st", "st-ready", NULL};

static const pp_ops_t *const pp_ops[PP_NUM_VARIANTS] = {
    &pp_mpi_ops, &pp_st_ops, &pp_st_ready_ops
};

static const struct option pp_long_options[] = {
    {"min", required_argument, NULL, 'a'},
    {"max", required_argument, NULL, 'z'},
    {"factor", required_argument, NULL, 'f'},
    {"iters", required_argument, NULL, 'i'},
    {"trials", required_argument, NULL, 't'},
    {"variants", required_argument, NULL, 'v'},
    {"json", required_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}
};


static void pp_usage(void)
{
    puts("Usage: mpirun -n 2 st_pingpong [options]\n"
         "Round trips of two ranks: pack kernel, send, receive, unpack kernel, "
         "and back.\nMore ranks stay idle.\n\n"
         "  --min SIZE       smallest message, bytes; k, m, g allowed (8)\n"
         "  --max SIZE       largest message, always measured (1m)\n"
         "  --factor N       from one size to the next (4)\n"
         "  --iters N        round trips timed together (20); fewer above 64k\n"
         "  --trials N       repetitions, variants taking turns (3)\n"
         "  --variants LIST  of mpi,st,st-ready (all)\n"
         "  --json FILE      write the report to a file\n"
         "  --help           print this and stop");
}

static int pp_parse_option(pp_options_t *opts, int option, const char *text)
{
    switch (option) {
    case 'a':
        return bench_parse_size("min", text, 1, 1ul << 30, &opts->min);
    case 'z':
        return bench_parse_size("max", text, 1, 1ul << 30, &opts->max);
    case 'f':
        return bench_parse_int("factor", text, 2, 1024, &opts->factor);
    case 'i':
        return bench_parse_int("iters", text, 1, 1000000, &opts->iters);
    case 't':
        return bench_parse_int("trials", text, 1, BENCH_MAX_TRIALS,
                               &opts->trials);
    case 'v':
        return bench_parse_names("variants", text, pp_names, &opts->variants);
    case 'j':
        opts->json = text;
        return 0;
    default:
        return -1;
    }
}

/* Returns 0 to go on, 1 after printing the help, -1 for a wrong command
 * line. */
static int pp_parse(pp_options_t *opts, int argc, char **argv, int rank)
{
    int option;

    opterr = (rank == 0);
    while ((option = getopt_long(argc, argv, "h", pp_long_options, NULL)) !=
           -1) {
        if (option == 'h') {
            if (rank == 0) {
                pp_usage();
            }
            return 1;
        }
        if (pp_parse_option(opts, option, optarg) != 0) {
            return -1;
        }
    }

    if (optind < argc) {
        bench_error("unknown argument '%s'\n", argv[optind]);
        return -1;
    }
    if (opts->max < opts->min) {
        bench_error("--max is smaller than --min\n");
        return -1;
    }
    return 0;
}

static int pp_is_selected(const pp_app_t *app, int variant)
{
    return (app->opts.variants & (1u << variant)) != 0;
}

/* Runs round trips and checks their data; returns the time of one, us. */
static double pp_measure(pp_app_t *app, int variant, int count, int full)
{
    pp_exchange_t *ex = &app->exchange[variant];
    double start, time;

    pp_data_reset(&app->data, app->data.size, ex->ops->num_sets, full);
    ex->ops->prepare(ex);
    bench_check(MPI_Barrier(app->comm), "MPI_Barrier");
    start = MPI_Wtime();
    ex->ops->run(ex, count);
    time  = MPI_Wtime() - start;

    app->errors[variant] += pp_data_check(&app->data, count);
    return time * 1e6 / count;
}

static int pp_count(const pp_options_t *opts, size_t size)
{
    size_t count = opts->iters;

    if (size > PP_FULL_COUNT) {
        count = count * PP_FULL_COUNT / size;
    }
    return (count < 2) ? 2 : (int)count;
}

static void pp_setup(pp_app_t *app, int variant)
{
    pp_exchange_t *ex = &app->exchange[variant];
    double start;

    *ex = (pp_exchange_t){
        .ops      = pp_ops[variant],
        .data     = &app->data,
        .rank     = app->rank,
        .comm     = app->comm,
        .stream   = app->stream,
        .queue    = app->queue,
        .messages = &app->messages
    };
    app->errors[variant] = 0;
    bench_check(MPI_Barrier(app->comm), "MPI_Barrier");
    start = MPI_Wtime();
    ex->ops->init(ex);
    app->setup_us[variant] = (variant == 0) ? 0 : (MPI_Wtime() - start) * 1e6;
}

static uint64_t pp_sum_errors(const pp_app_t *app, int variant)
{
    uint64_t sum = 0;

    bench_check(MPI_Allreduce(&app->errors[variant], &sum, 1, MPI_UINT64_T,
                              MPI_SUM, app->comm), "MPI_Allreduce");
    return sum;
}

/* Adds the rows of a size. Returns the number of wrong messages. */
static uint64_t pp_collect(pp_app_t *app)
{
    int baseline    = pp_is_selected(app, 0) ? app->report.num_rows : -1;
    uint64_t errors = 0;
    uint64_t wrong;
    bench_row_t row;
    int variant;

    for (variant = 0; variant < PP_NUM_VARIANTS; ++variant) {
        if (!pp_is_selected(app, variant)) {
            continue;
        }
        wrong        = pp_sum_errors(app, variant);
        errors      += wrong;
        row.size     = app->data.size;
        row.variant  = pp_names[variant];
        row.setup_us = app->setup_us[variant];
        row.verified = (wrong == 0);
        bench_stats_get(app->times[variant], app->opts.trials, &row.time);
        bench_report_add(&app->report, &row, baseline);
    }
    return errors;
}

static uint64_t pp_run_size(pp_app_t *app, size_t size)
{
    int count = pp_count(&app->opts, size);
    int trial, variant;

    app->data.size = size;
    for (variant = 0; variant < PP_NUM_VARIANTS; ++variant) {
        if (pp_is_selected(app, variant)) {
            pp_setup(app, variant);
        }
    }

    for (trial = 0; trial < app->opts.trials; ++trial) {
        for (variant = 0; variant < PP_NUM_VARIANTS; ++variant) {
            if (pp_is_selected(app, variant)) {
                pp_measure(app, variant, PP_CHECK_COUNT, 1);
                app->times[variant][trial] = pp_measure(app, variant, count, 0);
            }
        }
    }

    for (variant = 0; variant < PP_NUM_VARIANTS; ++variant) {
        if (pp_is_selected(app, variant)) {
            pp_ops[variant]->cleanup(&app->exchange[variant]);
        }
    }
    return pp_collect(app);
}

/* The two ranks' part. Returns the number of wrong messages. */
static uint64_t pp_run(pp_app_t *app)
{
    uint64_t errors = 0;
    size_t size;

    pp_data_init(&app->data, app->rank, app->opts.max);
    bench_check(MPIX_Host_stream_create(&app->stream),
                "MPIX_Host_stream_create");
    if (app->opts.variants & ~1u) {
        bench_check(MPIX_Queue_init(MPIX_QUEUE_HOST, app->stream, &app->queue),
                    "MPIX_Queue_init");
    }

    for (size = app->opts.min; size < app->opts.max;
         size *= app->opts.factor) {
        errors += pp_run_size(app, size);
    }
    errors += pp_run_size(app, app->opts.max);

    if (app->queue != MPIX_QUEUE_NULL) {
        bench_check(MPIX_Queue_free(&app->queue), "MPIX_Queue_free");
    }
    bench_check(MPIX_Host_stream_free(&app->stream), "MPIX_Host_stream_free");
    pp_data_cleanup(&app->data);
    return errors;
}

/* All ranks. Returns 0 if everything was right. */
static int pp_main(pp_app_t *app, int rank)
{
    uint64_t errors = 0;
    int ret;

    bench_check(MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED,
                               rank, &app->comm), "MPI_Comm_split");
    bench_report_init(&app->report, "st_pingpong",
                      PP_NUM_VARIANTS * PP_MAX_SIZES);
    app->rank = rank;
    if (app->comm != MPI_COMM_NULL) {
        MPI_Comm_set_errhandler(app->comm, MPI_ERRORS_RETURN);
        errors = pp_run(app);
        MPI_Comm_free(&app->comm);
    }

    ret = bench_report_count(&app->report, app->messages);
    if (rank == 0) {
        snprintf(app->report.params, sizeof(app->report.params),
                 "\"iters\":%d,\"trials\":%d,", app->opts.iters,
                 app->opts.trials);
        puts("st_pingpong: time is that of one round trip");
        bench_report_print(&app->report);
        if (app->opts.json != NULL) {
            ret |= bench_report_write(&app->report, app->opts.json);
        }
    }
    bench_report_cleanup(&app->report);
    return (errors == 0) ? ret : -1;
}

int main(int argc, char **argv)
{
    static pp_app_t app = {
        .opts = {
            .variants = (1u << PP_NUM_VARIANTS) - 1,
            .min      = 8,
            .max      = 1ul << 20,
            .factor   = 4,
            .iters    = 20,
            .trials   = 3
        }
    };
    int rank, ranks, provided, ret;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    ret = pp_parse(&app.opts, argc, argv, rank);
    if ((ret == 0) && (ranks < 2)) {
        bench_error("st_pingpong needs two ranks\n");
        ret = -1;
    }
    if (ret == 0) {
        ret = pp_main(&app, rank);
    } else if (ret > 0) {
        ret = 0;
    }

    MPI_Finalize();
    return (ret == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
