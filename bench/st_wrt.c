/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_wrt.c - wait reaction time: from the store of a word to the moment at
 * which the stream that waits for it goes on, against the number of streams
 * that wait.
 *
 * Each stream waits for a word of its own. The host stores to one of them after
 * the other; a kernel behind the wait takes the time. The variants take turns.
 *
 * Streams of GPUs have variants of their own, as they wait as their device
 * does: behind the wait is a function of the host, or a store of the stream,
 * for which the host looks.
 */
#include <st_number.h>
#include <st_report.h>
#include <st_stream.h>
#include <ucs_gstream.h>
#include <ucs_gstream_memory.h>

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ST_WRT_MAX_STREAMS 256
#define ST_WRT_MAX_TRIALS  101
#define ST_WRT_MAX_COUNT   100000
#define ST_WRT_MAX_WAIT_US 1000000
#define ST_WRT_MAX_ROWS    64
#define ST_WRT_LINE        64  /* Bytes that no two streams share */
#define ST_WRT_POLL_US     20  /* Until a stream is surely at its wait */
#define ST_WRT_SLEEP_US    300 /* Until it is surely asleep there */


/* Whose threads run the streams, and what they do while they wait */
typedef struct st_wrt_variant {
    const char *name;
    int        is_gpu;      /* Of streams of GPUs, else of the host */
    unsigned   num_threads; /* Of a group; 0: one of each stream's own */
    int        sleeps;
    int        stores;      /* Behind the wait is a store, else a function */
} st_wrt_variant_t;

static const st_wrt_variant_t st_wrt_variants[] = {
    {"own-poll", 0, 0, 0, 0},
    {"own-sleep", 0, 0, 1, 0},
    {"group-1-poll", 0, 1, 0, 0},
    {"group-1-sleep", 0, 1, 1, 0},
    {"group-2-poll", 0, 2, 0, 0},
    {"group-2-sleep", 0, 2, 1, 0},
    {"gpu-function", 1, 0, 0, 0},
    {"gpu-store", 1, 0, 0, 1}
};

#define ST_WRT_NUM_VARIANTS \
    (sizeof(st_wrt_variants) / sizeof(st_wrt_variants[0]))


/* A line of the report */
typedef struct st_wrt_row {
    const st_wrt_variant_t *variant;
    size_t                 num_streams;
    int                    baseline;  /* The row of one stream */
    double                 samples[ST_WRT_MAX_TRIALS]; /* Medians of trials */
    double                 worst;     /* Of all reactions */
    char                   more[64];  /* Of the JSON */
} st_wrt_row_t;


/* A stream that waits; the word has a cache line of its own, as has what the
 * kernel writes. */
typedef struct st_wrt_stream {
    _Alignas(ST_WRT_LINE) ucs_gstream_h stream;
    volatile uint64_t *word;   /* Of streams of all types, as the next one */
    volatile uint64_t *stored; /* By the stream: round that it passed */
    double   seen;   /* us; when the wait was over */
    uint64_t passed; /* Round of that; atomic */
    uint64_t errors; /* Words that were not there */
} st_wrt_stream_t;


typedef struct st_wrt {
    const char          *json;
    size_t              trials;
    size_t              count;       /* Reactions of a trial */
    size_t              max_streams;
    size_t              wait_us;     /* From a wait to its store; 0: as long as
                                        it takes to get there */
    ucs_gstream_type_t  type;
    char                text[ST_STREAM_TEXT_MAX]; /* What runs the streams */
    st_wrt_row_t        rows[ST_WRT_MAX_ROWS];
    int                 num_rows;
    ucs_gstream_group_h group;       /* Of the row that runs */
    st_wrt_stream_t     *streams;    /* max_streams */
    double              *reactions;  /* count */
    uint64_t            errors;
} st_wrt_t;


/* A kernel's arguments */
typedef struct st_wrt_args {
    st_wrt_stream_t *stream;
    uint64_t        round;
} st_wrt_args_t;


static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ts.tv_sec * 1e6) + (ts.tv_nsec / 1e3);
}

/* Gives up unless the status is UCS_OK. */
static void must(const char *what, ucs_status_t status)
{
    if (status != UCS_OK) {
        fprintf(stderr, "st_wrt: %s: status %d\n", what, (int)status);
        exit(EXIT_FAILURE);
    }
}

static void *must_alloc(size_t size)
{
    void *memory;

    if (posix_memalign(&memory, ST_WRT_LINE, size) != 0) {
        fprintf(stderr, "st_wrt: no memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static void set_pace(const char *spin, const char *yield_time)
{
    if ((setenv("UCX_GSTREAM_SPIN", spin, 1) != 0) ||
        (setenv("UCX_GSTREAM_YIELD_TIME", yield_time, 1) != 0)) {
        perror("st_wrt: setenv");
        exit(EXIT_FAILURE);
    }
}

/* Runs behind the wait. */
static void react(void *arg)
{
    const st_wrt_args_t *args = arg;
    st_wrt_stream_t *stream   = args->stream;

    stream->seen    = now_us();
    stream->errors += (*stream->word != args->round);
    __atomic_store_n(&stream->passed, args->round, __ATOMIC_RELEASE);
}

static void enqueue_wait(const st_wrt_variant_t *variant,
                         st_wrt_stream_t *stream, uint64_t round)
{
    const st_wrt_args_t args = {stream, round};

    must("ucs_gstream_enqueue_wait64",
         ucs_gstream_enqueue_wait64(stream->stream, stream->word, round));
    if (variant->stores) {
        must("ucs_gstream_enqueue_write64",
             ucs_gstream_enqueue_write64(stream->stream, stream->stored,
                                         round));
        return;
    }
    must("ucs_gstream_enqueue_launch",
         ucs_gstream_enqueue_launch(stream->stream, react, &args,
                                    sizeof(args)));
}

static volatile uint64_t *must_get_word(void)
{
    volatile uint64_t *word = ucs_gstream_word_get();

    must("ucs_gstream_word_get", (word != NULL) ? UCS_OK : UCS_ERR_NO_MEMORY);
    return word;
}

static void open_streams(st_wrt_t *bench, const st_wrt_row_t *row)
{
    const ucs_gstream_group_params_t group_params = {
        .field_mask  = UCS_GSTREAM_GROUP_PARAM_FIELD_NUM_THREADS,
        .num_threads = row->variant->num_threads
    };
    ucs_gstream_params_t params                   = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = bench->type
    };
    st_wrt_stream_t *stream;
    size_t i;

    set_pace(row->variant->sleeps ? "0" : "50",
             row->variant->sleeps ? "0" : "1s");
    if (row->variant->num_threads > 0) {
        must("ucs_gstream_group_create",
             ucs_gstream_group_create(&group_params, &bench->group));
        params.field_mask |= UCS_GSTREAM_PARAM_FIELD_GROUP;
        params.group       = bench->group;
    }
    for (i = 0; i < row->num_streams; ++i) {
        stream = &bench->streams[i];
        memset(stream, 0, sizeof(*stream));
        stream->word   = must_get_word();
        stream->stored = must_get_word();
        must("ucs_gstream_create",
             ucs_gstream_create(&params, &stream->stream));
        enqueue_wait(row->variant, stream, 1);
    }
}

/* Lets the last wait of each stream pass, all before one is waited for: streams
 * of GPUs share queues, in which one waits behind another. Ends them. */
static void close_streams(st_wrt_t *bench, const st_wrt_row_t *row)
{
    st_wrt_stream_t *stream;
    size_t i;

    for (i = 0; i < row->num_streams; ++i) {
        stream = &bench->streams[i];
        __atomic_store_n(stream->word, *stream->word + 1, __ATOMIC_RELEASE);
        ucs_gstream_wake(stream->word);
    }
    for (i = 0; i < row->num_streams; ++i) {
        stream = &bench->streams[i];
        must("ucs_gstream_synchronize",
             ucs_gstream_synchronize(stream->stream));
        must("ucs_gstream_destroy", ucs_gstream_destroy(stream->stream));
        ucs_gstream_word_put(stream->stored);
        ucs_gstream_word_put(stream->word);
        bench->errors += stream->errors;
    }
    if (row->variant->num_threads > 0) {
        must("ucs_gstream_group_destroy",
             ucs_gstream_group_destroy(bench->group));
    }
}

/* Lets the streams get to where the measurement begins; or, if it was asked
 * for, just so much time pass. */
static void let_wait(const st_wrt_t *bench, const st_wrt_row_t *row)
{
    const size_t wait_us     = (bench->wait_us > 0) ? bench->wait_us :
                                                      ST_WRT_POLL_US;
    const struct timespec ts = {
        .tv_nsec = ST_WRT_SLEEP_US * 1000
    };
    double start             = now_us();

    if (row->variant->sleeps && (bench->wait_us == 0)) {
        (void)nanosleep(&ts, NULL);
        return;
    }
    do {
        sched_yield();
    } while ((now_us() - start) < (double)wait_us);
}

/* One reaction, in microseconds. */
static double run_round(const st_wrt_variant_t *variant,
                        st_wrt_stream_t *stream, uint64_t round)
{
    double start = now_us();

    __atomic_store_n(stream->word, round, __ATOMIC_RELEASE);
    ucs_gstream_wake(stream->word);
    if (variant->stores) {
        while (__atomic_load_n(stream->stored, __ATOMIC_ACQUIRE) != round) {
            sched_yield();
        }
        return now_us() - start;
    }
    while (__atomic_load_n(&stream->passed, __ATOMIC_ACQUIRE) != round) {
        sched_yield();
    }
    return stream->seen - start;
}

/* Median of the reactions of a trial */
static double run_row(st_wrt_t *bench, st_wrt_row_t *row)
{
    st_wrt_stream_t *stream;
    st_report_stats_t stats;
    uint64_t round;
    size_t i;

    open_streams(bench, row);
    for (i = 0; i < bench->count; ++i) {
        stream              = &bench->streams[i % row->num_streams];
        round               = 1 + (i / row->num_streams);
        let_wait(bench, row);
        bench->reactions[i] = run_round(row->variant, stream, round);
        enqueue_wait(row->variant, stream, round + 1);
    }
    close_streams(bench, row);
    st_report_stats_get(bench->reactions, (int)bench->count, &stats);
    row->worst = (stats.max > row->worst) ? stats.max : row->worst;
    return stats.median;
}

static void add_rows(st_wrt_t *bench)
{
    int is_gpu       = (bench->type != UCS_GSTREAM_TYPE_HOST);
    int num_variants = 0;
    size_t num_streams, i;
    st_wrt_row_t *row;

    for (num_streams = 1; num_streams <= bench->max_streams;
         num_streams *= 2) {
        for (i = 0; i < ST_WRT_NUM_VARIANTS; ++i) {
            if (st_wrt_variants[i].is_gpu != is_gpu) {
                continue;
            }
            row              = &bench->rows[bench->num_rows];
            row->variant     = &st_wrt_variants[i];
            row->num_streams = num_streams;
            num_variants    += (num_streams == 1);
            row->baseline    = bench->num_rows++ % num_variants;
        }
    }
}

static void run_all(st_wrt_t *bench)
{
    st_wrt_row_t *row;
    size_t trial;
    int i;

    bench->streams   = must_alloc(bench->max_streams *
                                  sizeof(*bench->streams));
    bench->reactions = must_alloc(bench->count * sizeof(*bench->reactions));
    add_rows(bench);
    /* The first trial warms up: the next one overwrites it */
    for (trial = 0; trial <= bench->trials; ++trial) {
        for (i = 0; i < bench->num_rows; ++i) {
            row        = &bench->rows[i];
            row->worst = (trial == 1) ? 0 : row->worst;
            row->samples[(trial == 0) ? 0 : (trial - 1)] = run_row(bench, row);
        }
    }
    free(bench->reactions);
    free(bench->streams);
}

/* What the report says of a row; sorts its samples */
static void get_row(st_wrt_t *bench, st_wrt_row_t *row, st_report_row_t *out)
{
    st_report_stats_t base;

    st_report_stats_get(bench->rows[row->baseline].samples, (int)bench->trials,
                        &base);
    memset(out, 0, sizeof(*out));
    st_report_stats_get(row->samples, (int)bench->trials, &out->time);
    snprintf(row->more, sizeof(row->more), ",\"worst_us\":%.4f", row->worst);
    out->size     = row->num_streams;
    out->variant  = row->variant->name;
    out->ratio    = out->time.median / base.median;
    out->setup_us = -1;
    out->verified = (bench->errors == 0);
    out->more     = row->more;
}

static void print_table(st_wrt_t *bench)
{
    st_report_row_t row;
    int i;

    printf("%s, %ld cores, load %.2f, %zu trials of %zu reactions\n",
           bench->text, st_report_cores(), st_report_load(), bench->trials,
           bench->count);
    printf("%7s %-14s %10s %10s %10s %7s %10s\n", "streams", "variant",
           "median us", "min us", "max us", "ratio", "worst us");
    for (i = 0; i < bench->num_rows; ++i) {
        get_row(bench, &bench->rows[i], &row);
        printf("%7zu %-14s %10.3f %10.3f %10.3f %7.3f %10.3f\n", row.size,
               row.variant, row.time.median, row.time.min, row.time.max,
               row.ratio, bench->rows[i].worst);
    }
    printf("words %s\n", (bench->errors == 0) ? "right" : "WRONG");
}

static int write_json(st_wrt_t *bench)
{
    FILE *file = st_report_open(bench->json);
    st_report_row_t row;
    int i;

    if (file == NULL) {
        return -1;
    }
    fputc('{', file);
    st_report_json_string(file, "bench", "st_wrt");
    st_report_json_string(file, "provider", "none");
    st_report_json_string(file, "stream", st_stream_name(bench->type));
    st_report_json_string(file, "stream_device", bench->text);
    fprintf(file, "\"ranks\":1,\"trials\":%zu,\"count\":%zu,\"wait_us\":%zu,",
            bench->trials, bench->count, bench->wait_us);
    st_report_json_machine(file);
    fprintf(file, "\"rows\":[");
    for (i = 0; i < bench->num_rows; ++i) {
        get_row(bench, &bench->rows[i], &row);
        fputs((i > 0) ? "," : "", file);
        st_report_json_row(file, &row);
    }
    fputs("\n]}\n", file);
    return st_report_close(file, bench->json);
}

static void usage(FILE *file)
{
    fprintf(file,
            "Usage: st_wrt [options]\n"
            "Wait reaction time: from the store of a word to the moment at "
            "which the stream\nthat waits for it goes on, against the number "
            "of streams that wait.\n\n"
            "  --streams N  most streams that wait, 1 to %d (32)\n"
            "  --wait-us N  time from a stream's wait to the store, 1 to %d "
            "(%d, or %d for\n               streams that sleep)\n"
            "  --trials N   repetitions, all taking turns, 1 to %d (9)\n"
            "  --count N    reactions of a trial, 1 to %d (200)\n"
            "  --stream TYPE  host, hip or cuda (host). Streams of GPUs have "
            "variants of\n               their own: behind the wait is a "
            "function of the host, which\n               the runtime calls, or "
            "a store of the stream\n"
            "  --json FILE  write the report to a file\n"
            "  --help       print this and stop\n", ST_WRT_MAX_STREAMS,
            ST_WRT_MAX_WAIT_US, ST_WRT_POLL_US, ST_WRT_SLEEP_US,
            ST_WRT_MAX_TRIALS, ST_WRT_MAX_COUNT);
}

static int parse_stream(st_wrt_t *bench, const char *text)
{
    char reason[UCS_GSTREAM_TEXT_MAX];

    if (st_stream_parse(text, &bench->type) != 0) {
        fprintf(stderr, "st_wrt: --stream: '%s' is none of host, hip and "
                "cuda\n", text);
        return -1;
    }
    if (st_stream_check(bench->type, reason) != 0) {
        fprintf(stderr, "st_wrt: --stream %s: %s\n", text, reason);
        return -1;
    }
    return 0;
}

static int parse_option(st_wrt_t *bench, int opt)
{
    switch (opt) {
    case 's':
        return st_number_option("streams", 1, ST_WRT_MAX_STREAMS,
                                &bench->max_streams);
    case 'w':
        return st_number_option("wait-us", 1, ST_WRT_MAX_WAIT_US,
                                &bench->wait_us);
    case 't':
        return st_number_option("trials", 1, ST_WRT_MAX_TRIALS, &bench->trials);
    case 'c':
        return st_number_option("count", 1, ST_WRT_MAX_COUNT, &bench->count);
    case 'g':
        return parse_stream(bench, optarg);
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

static int parse(st_wrt_t *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"streams", required_argument, NULL, 's'},
        {"wait-us", required_argument, NULL, 'w'},
        {"trials", required_argument, NULL, 't'},
        {"count", required_argument, NULL, 'c'},
        {"stream", required_argument, NULL, 'g'},
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
        fprintf(stderr, "st_wrt: '%s' is no option\n", argv[optind]);
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static st_wrt_t bench = {
        .trials      = 9,
        .count       = 200,
        .max_streams = 32
    };
    int ret               = 0;

    if (parse(&bench, argc, argv) != 0) {
        return 2;
    }
    st_stream_describe(bench.type, bench.text);
    run_all(&bench);
    print_table(&bench);
    if (bench.json != NULL) {
        ret = write_json(&bench);
    }
    return ((ret == 0) && (bench.errors == 0)) ? EXIT_SUCCESS : EXIT_FAILURE;
}
