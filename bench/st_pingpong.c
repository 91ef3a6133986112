/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_pingpong.c - benchmark: round trips of two ranks with a pack and an unpack
 * kernel on each side, host-driven and stream-triggered.
 *
 * Variants take turns within each trial of a size. A trial makes its requests,
 * then runs some round trips whose payload changes every time and is checked in
 * full, then those that are timed, of which the last payload is checked. The
 * first trial of a size only warms up.
 */
#include "bench_gpu.h"
#include "pingpong.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs_trace.h>

#define PP_CHECK_COUNT 3
#define PP_LEAST_COUNT 30
#define PP_MAX_SIZE    (1ul << 30)
#define PP_FULL_COUNT  (1ul << 20) /* Largest message that gets all round
                                    * trips */


/* Command line. */
typedef struct pp_options {
    bench_options_t common;
    size_t          min;
    size_t          max;
    int             factor;
    int             iters;
    int             kernel_us;
} pp_options_t;


/* The program's state. Main thread only, but for the data. */
typedef struct pp_app {
    pp_options_t   opts;
    pp_data_t      data;
    pp_exchange_t  exchange;
    bench_result_t results[BENCH_NUM_VARIANTS];
    bench_report_t report;
} pp_app_t;


static const pp_ops_t *const pp_ops[BENCH_NUM_VARIANTS] = {
    &pp_mpi_ops, &pp_st_ops, &pp_st_ready_ops, NULL, NULL, NULL, NULL,
    &pp_st_hpe_ops, NULL, NULL, NULL, &pp_mpi_device_ops, &pp_nccl_ops,
    &pp_nvshmem_ops, &pp_st_fifo_ops, NULL, &pp_st_mpich_ops, &pp_st_win_ops
};

static const char pp_help[] =
        "Usage: mpirun -n 2 st_pingpong [options]\n"
        "Round trips of two ranks: pack kernel, send, receive, unpack kernel, "
        "and back.\nMore ranks stay idle.\n\n"
        "  --min SIZE       smallest message, bytes; k, m, g allowed (8)\n"
        "  --max SIZE       largest message, always measured (1m)\n"
        "  --factor N       from one size to the next (4)\n"
        "  --iters N        round trips timed together (20); above 1m\n"
        "                   fewer, but not below 30\n"
        "  --kernel-us N    a kernel of N us between a receive and what "
        "follows, in place\n                   of those that pack and unpack; "
        "0: none\n"
        BENCH_MEMORY_HELP BENCH_STREAM_HELP;


/* As bench_parse(). */
static int pp_parse(pp_options_t *opts, bench_stream_t *stream, int argc,
                    char **argv)
{
    const bench_option_t table[] = {
        {.name = "min", .min = 1, .max = PP_MAX_SIZE, .size = &opts->min},
        {.name = "max", .min = 1, .max = PP_MAX_SIZE, .size = &opts->max},
        {.name = "factor", .min = 2, .max = 1024, .number = &opts->factor},
        {.name = "iters", .min = 1, .max = 1000000, .number = &opts->iters},
        {.name = "kernel-us", .max = 1000000, .number = &opts->kernel_us},
        {.name = "memory", .text = &stream->memory},
        {.name = "stream", .text = &stream->name},
        {.name = NULL}
    };
    int ret = bench_parse(&opts->common, table, pp_help, argc, argv);

    if ((ret == 0) && (opts->max < opts->min)) {
        bench_error("--max is smaller than --min\n");
        return -1;
    }
    return (ret == 0) ? bench_stream_parse(stream, &opts->common) : ret;
}

/* Runs round trips and checks their data; returns the time of one, us. */
static double pp_measure(pp_app_t *app, bench_result_t *result, int count,
                         int full)
{
    pp_exchange_t *ex = &app->exchange;
    double start, time;
    uint64_t begin;

    pp_data_reset(&app->data, app->data.size, ex->ops, full);
    ex->ops->prepare(ex);
    bench_check(MPI_Barrier(ex->comm), "MPI_Barrier");
    begin = ucs_trace_begin();
    start = MPI_Wtime();
    ex->ops->run(ex, count);
    time  = MPI_Wtime() - start;
    ucs_trace_end(ex->ops->name, begin);

    result->errors += pp_data_check(&app->data, count);
    return time * 1e6 / count;
}

/* Fewer of long messages, but enough that what begins and ends them, as a
 * stream that wakes up, is little of their time */
static int pp_count(const pp_options_t *opts, size_t size)
{
    size_t count = opts->iters;
    size_t least = (count < PP_LEAST_COUNT) ? count : PP_LEAST_COUNT;

    if (size > PP_FULL_COUNT) {
        count = count * PP_FULL_COUNT / size;
        count = (count < least) ? least : count;
    }
    return (count < 2) ? 2 : (int)count;
}

static void pp_trial(void *arg, int variant, int trial)
{
    pp_app_t *app          = arg;
    pp_exchange_t *ex      = &app->exchange;
    bench_result_t *result = &app->results[variant];
    int count              = pp_count(&app->opts, app->data.size);
    int is_gpu             = (ex->stream.type != UCS_GSTREAM_TYPE_HOST);
    bench_counts_t begin;
    double start, setup_us, time_us;

    ex->ops = pp_ops[variant];
    if (is_gpu) {
        bench_counts_begin(&begin, ex->comm);
    }
    bench_check(MPI_Barrier(ex->comm), "MPI_Barrier");
    start = MPI_Wtime();
    ex->ops->init(ex);
    setup_us = (MPI_Wtime() - start) * 1e6;

    pp_measure(app, result, PP_CHECK_COUNT, 1);
    time_us = pp_measure(app, result, count, 0);
    bench_check(MPI_Barrier(ex->comm), "MPI_Barrier");
    if (trial >= 0) {
        result->setup_us[trial] = setup_us;
        result->time_us[trial]  = time_us;
    }
    if ((trial >= 0) && is_gpu) {
        bench_counts_end(&result->counts, &begin,
                         (uint64_t)PP_CHECK_COUNT + count);
    }
    ex->ops->cleanup(ex);
}

/* Returns the number of wrong messages. */
static uint64_t pp_run_size(pp_app_t *app, size_t size)
{
    app->data.size = size;
    memset(app->results, 0, sizeof(app->results));
    bench_run(&app->opts.common, -1, pp_trial, app);
    return bench_report_add(&app->report, &app->opts.common, size,
                            app->results, app->exchange.comm);
}

/* The two ranks' part. Returns the number of wrong messages. */
static uint64_t pp_run(pp_app_t *app)
{
    pp_exchange_t *ex = &app->exchange;
    uint64_t errors   = 0;
    size_t size;

    MPI_Comm_set_errhandler(ex->comm, MPI_ERRORS_RETURN);
    bench_stream_create(&ex->stream, &app->report);
    bench_gpu_open(&ex->stream, &app->opts.common, ex->comm);
    pp_data_init(&app->data, ex->rank, &ex->stream, app->opts.max,
                 (unsigned)((app->opts.iters > PP_CHECK_COUNT) ?
                                    app->opts.iters :
                                    PP_CHECK_COUNT));
    app->data.kernel_us = app->opts.kernel_us;
    if (app->opts.common.variants & (BENCH_VARIANTS_ST | BENCH_VARIANTS_ONCE)) {
        bench_check(MPIX_Queue_init(ex->stream.queue, ex->stream.handle,
                                    &ex->queue), "MPIX_Queue_init");
    }

    for (size = app->opts.min; size < app->opts.max;
         size *= app->opts.factor) {
        errors += pp_run_size(app, size);
    }
    errors += pp_run_size(app, app->opts.max);

    if (ex->queue != MPIX_QUEUE_NULL) {
        bench_check(MPIX_Queue_free(&ex->queue), "MPIX_Queue_free");
    }
    pp_data_cleanup(&app->data);
    bench_gpu_close();
    bench_stream_free(&ex->stream);
    return errors;
}

/* All ranks. Returns 0 if everything was right. */
static int pp_main(pp_app_t *app, int rank)
{
    pp_exchange_t *ex = &app->exchange;
    uint64_t errors   = 0;
    int ret;

    if (rank == 0) {
        puts("st_pingpong: time is that of one round trip");
    }
    ex->data = &app->data;
    ex->rank = rank;
    bench_check(MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED,
                               rank, &ex->comm), "MPI_Comm_split");
    if (ex->comm != MPI_COMM_NULL) {
        errors = pp_run(app);
        MPI_Comm_free(&ex->comm);
    }

    snprintf(app->report.params, sizeof(app->report.params),
             "\"iters\":%d,\"kernel_us\":%d,\"trials\":%d,\"memory\":\"%s\",",
             app->opts.iters, app->opts.kernel_us, app->opts.common.trials,
             ex->stream.memory);
    ret = bench_report_finish(&app->report, &app->opts.common, ex->messages);
    return (errors == 0) ? ret : -1;
}

int main(int argc, char **argv)
{
    static pp_app_t app = {
        .opts = {
            .common = {
                .known = BENCH_VARIANT_MPI | BENCH_VARIANTS_ST |
                         BENCH_VARIANTS_ONCE | BENCH_VARIANT_MPICH |
                         BENCH_VARIANT_WIN |
                         BENCH_VARIANT_MPI_DEVICE |
                         BENCH_VARIANT_NCCL | BENCH_VARIANT_NVSHMEM
            },
            .min       = 8,
            .max       = 1ul << 20,
            .factor    = 4,
            .iters     = 20,
            .kernel_us = -1
        },
        .exchange.stream = {.name = "host"},
        .report.bench = "st_pingpong"
    };
    int ranks, ret;

    bench_init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    ret = pp_parse(&app.opts, &app.exchange.stream, argc, argv);
    if ((ret == 0) && (ranks < 2)) {
        bench_error("st_pingpong needs two ranks\n");
        ret = -1;
    }
    if (ret == 0) {
        ret = pp_main(&app, bench_rank());
    }

    MPI_Finalize();
    return (ret >= 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
