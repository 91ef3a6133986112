/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_mbw.c - benchmark: bandwidth of windows of messages in both directions,
 * between one or several pairs of ranks at once.
 *
 * The first half of the ranks is paired with the second one. Variants take
 * turns within each trial of a size. A trial makes what it needs, then runs
 * some single windows, then those that are timed; after each run the whole last
 * window is checked, whose content is another one each time.
 */
#include "mbw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MBW_CHECK_COUNT 2
#define MBW_MAX_SIZE    (1ul << 28)
#define MBW_MAX_WINDOW  1024
#define MBW_MAX_LENGTH  (1ul << 32) /* Of a window, in bytes */
#define MBW_FULL_COUNT  65536 /* Bytes of a window that gets all iterations */


/* Command line. */
typedef struct mbw_options {
    bench_options_t common;
    size_t          min;
    size_t          max;
    int             factor;
    int             window;
    int             iters;
    const char      *memory;
    int             by_mpi; /* What that means */
} mbw_options_t;


/* The program's state. Main thread only. */
typedef struct mbw_app {
    mbw_options_t  opts;
    mbw_data_t     data;
    mbw_exchange_t exchange;
    bench_result_t results[BENCH_NUM_VARIANTS];
    bench_report_t report;
} mbw_app_t;


static const mbw_ops_t *const mbw_ops[BENCH_NUM_VARIANTS] = {
    &mbw_mpi_ops,        &mbw_st_ops,  &mbw_st_ready_ops,  &mbw_put_ops,
    &mbw_put_strict_ops, &mbw_get_ops, &mbw_get_strict_ops,
    [__builtin_ctz(BENCH_VARIANT_REG)] = &mbw_reg_ops
};

static const char mbw_help[] =
        "Usage: mpirun -n RANKS st_mbw [options]\n"
        "Bandwidth of windows of messages, both ways, between pairs of ranks: "
        "the first half\nof them with the second one. reg: all ranks, or "
        "one, register memory of the length\nof a message; caches of UCX hide "
        "what that takes.\n\n"
        "  --min SIZE       smallest message, bytes; k, m, g allowed (8)\n"
        "  --max SIZE       largest message, always measured (256k)\n"
        "  --factor N       from one size to the next (4)\n"
        "  --window N       messages each way before all are waited for (32)\n"
        "  --iters N        windows timed together (50); fewer above 64k of a "
        "window\n"
        "  --memory WHOSE   malloc, or mpi: MPI_Alloc_mem() for messages "
        "(mpi)\n";


static int mbw_check_options(mbw_options_t *opts)
{
    if (opts->max < opts->min) {
        bench_error("--max is smaller than --min\n");
        return -1;
    }
    if (opts->max * opts->window > MBW_MAX_LENGTH) {
        bench_error("a window of %d messages of %zu bytes is too large\n",
                    opts->window, opts->max);
        return -1;
    }
    opts->by_mpi = bench_parse_memory(opts->memory);
    return (opts->by_mpi < 0) ? -1 : 0;
}

/* As bench_parse(). */
static int mbw_parse(mbw_options_t *opts, int argc, char **argv)
{
    const bench_option_t table[] = {
        {.name = "min", .min = 1, .max = MBW_MAX_SIZE, .size = &opts->min},
        {.name = "max", .min = 1, .max = MBW_MAX_SIZE, .size = &opts->max},
        {.name = "factor", .min = 2, .max = 1024, .number = &opts->factor},
        {.name = "window", .min = 1, .max = MBW_MAX_WINDOW,
         .number = &opts->window},
        {.name = "iters", .min = 1, .max = 1000000, .number = &opts->iters},
        {.name = "memory", .text = &opts->memory},
        {.name = NULL}
    };
    int ret = bench_parse(&opts->common, table, mbw_help, argc, argv);

    return (ret == 0) ? mbw_check_options(opts) : ret;
}

/* Runs windows and checks the last one; returns the time of one, us. */
static double mbw_measure(mbw_app_t *app, bench_result_t *result, int count)
{
    mbw_exchange_t *ex = &app->exchange;
    double start, time;

    mbw_data_reset(&app->data);
    ex->ops->prepare(ex);
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    start = MPI_Wtime();
    ex->ops->run(ex, count);
    time  = bench_max(MPI_Wtime() - start);

    if (!ex->ops->is_still) {
        result->errors += mbw_data_check(&app->data,
                                         (count - 1) % ex->ops->num_sets);
    }
    return time * 1e6 / count;
}

static int mbw_count(const mbw_options_t *opts, size_t size)
{
    size_t length = size * opts->window;
    size_t count  = opts->iters;

    if (length > MBW_FULL_COUNT) {
        count = count * MBW_FULL_COUNT / length;
    }
    return (count < 2) ? 2 : (int)count;
}

static void mbw_trial(void *arg, int variant, int trial)
{
    mbw_app_t *app         = arg;
    mbw_exchange_t *ex     = &app->exchange;
    bench_result_t *result = &app->results[variant];
    double start;
    int i;

    ex->ops = mbw_ops[variant];
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    start = MPI_Wtime();
    ex->ops->init(ex);
    result->setup_us[trial] = (MPI_Wtime() - start) * 1e6;

    for (i = 0; i < MBW_CHECK_COUNT; ++i) {
        mbw_measure(app, result, 1);
    }
    result->time_us[trial] = mbw_measure(app, result,
                                         mbw_count(&app->opts, app->data.size));
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    ex->ops->cleanup(ex);
}

/* Returns the number of wrong messages. */
static uint64_t mbw_run_size(mbw_app_t *app, size_t size)
{
    app->data.size = size;
    memset(app->results, 0, sizeof(app->results));
    bench_run(&app->opts.common, 0, mbw_trial, app);
    return bench_report_add(&app->report, &app->opts.common, size,
                            app->results, MPI_COMM_WORLD);
}

static uint64_t mbw_run(mbw_app_t *app)
{
    const mbw_options_t *opts = &app->opts;
    uint64_t errors           = 0;
    size_t size;

    for (size = opts->min; size < opts->max; size *= opts->factor) {
        errors += mbw_run_size(app, size);
    }
    return errors + mbw_run_size(app, opts->max);
}

static void mbw_open(mbw_app_t *app)
{
    mbw_exchange_t *ex = &app->exchange;
    int window         = app->opts.window;
    int set;

    mbw_data_init(&app->data, app->opts.max);
    ex->data     = &app->data;
    ex->requests = bench_alloc(2 * MBW_NUM_SETS * window *
                               sizeof(*ex->requests));
    for (set = 0; set < MBW_NUM_SETS; ++set) {
        ex->recv[set] = ex->requests + (2 * set * window);
        ex->send[set] = ex->recv[set] + window;
    }
    bench_check(MPIX_Host_stream_create(&ex->stream),
                "MPIX_Host_stream_create");
    if (app->opts.common.variants & BENCH_VARIANTS_ST) {
        bench_check(MPIX_Queue_init(MPIX_QUEUE_HOST, ex->stream, &ex->queue),
                    "MPIX_Queue_init");
    }
    if (app->opts.common.variants & (BENCH_VARIANTS_RMA | BENCH_VARIANT_REG)) {
        mbw_rma_open(&app->data);
    }
}

static void mbw_close(mbw_app_t *app)
{
    mbw_exchange_t *ex = &app->exchange;

    if (app->opts.common.variants & (BENCH_VARIANTS_RMA | BENCH_VARIANT_REG)) {
        mbw_rma_close(&app->data);
    }
    if (ex->queue != MPIX_QUEUE_NULL) {
        bench_check(MPIX_Queue_free(&ex->queue), "MPIX_Queue_free");
    }
    bench_check(MPIX_Host_stream_free(&ex->stream), "MPIX_Host_stream_free");
    free(ex->requests);
    mbw_data_cleanup(&app->data);
}

/* All ranks. Returns 0 if everything was right. */
static int mbw_main(mbw_app_t *app, int rank, int ranks)
{
    const mbw_options_t *opts = &app->opts;
    uint64_t errors;
    int ret;

    if (rank == 0) {
        printf("st_mbw: pairs of ranks: %d, window: %d messages each way; time "
               "is that of a window, MB/s are of all ranks\n", ranks / 2,
               opts->window);
    }
    app->data.rank           = rank;
    app->data.peer           = (rank + (ranks / 2)) % ranks;
    app->data.by_mpi         = opts->by_mpi;
    app->data.window         = opts->window;
    app->report.num_messages = (uint64_t)ranks * opts->window;
    mbw_open(app);
    errors = mbw_run(app);

    snprintf(app->report.params, sizeof(app->report.params),
             "\"window\":%d,\"iters\":%d,\"trials\":%d,\"memory\":\"%s\","
             "\"one_sided_lane\":\"%s\",", opts->window, opts->iters,
             opts->common.trials, opts->memory, mbw_rma_lane());
    ret = bench_report_finish(&app->report, &opts->common,
                              app->exchange.messages);
    mbw_close(app);
    return (errors == 0) ? ret : -1;
}

int main(int argc, char **argv)
{
    static mbw_app_t app = {
        .opts = {
            .common = {
                .known = BENCH_VARIANT_MPI | BENCH_VARIANTS_ST |
                         BENCH_VARIANTS_RMA | BENCH_VARIANT_REG
            },
            .min    = 8,
            .max    = 1ul << 18,
            .factor = 4,
            .window = 32,
            .iters  = 50,
            .memory = "mpi"
        },
        .report.bench = "st_mbw"
    };
    int ranks, ret;

    bench_init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    ret = mbw_parse(&app.opts, argc, argv);
    if ((ret == 0) && (ranks % 2 != 0) &&
        ((ranks > 1) || (app.opts.common.variants != BENCH_VARIANT_REG))) {
        bench_error("st_mbw needs an even number of ranks\n");
        ret = -1;
    }
    if (ret == 0) {
        ret = mbw_main(&app, bench_rank(), ranks);
    }

    MPI_Finalize();
    return (ret >= 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
