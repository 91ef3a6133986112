/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig.c - from a trigger to the word that a remote process waits for.
 *
 * Two processes of this machine. The variants take turns, so that the load of
 * the machine hits all of them.
 */
#include "trig_bench.h"
#include "trig_uct.h"

#include <st_number.h>
#include <st_report.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#define ST_TRIG_MAX_ROWS   64
#define ST_TRIG_MAX_TRIALS 101
#define ST_TRIG_MAX_COUNT  1000000
#define ST_TRIG_RATE_SIZE  (1ul << 20)


typedef struct st_trig {
    trig_rank_t me;
    trig_fab_t  *fab;
    trig_uct_t  *uct;
    const char  *provider;
    const char  *json;
    size_t      trials;
    size_t      count;    /* Half round trips of a trial, small sizes */
    size_t      max;
    double      idle_s;
    pid_t       child;
} st_trig_t;

typedef struct st_trig_row st_trig_row_t;

/* A line of the report, and how its samples are got */
struct st_trig_row {
    const char  *variant;
    trig_step_t step;
    double      (*run)(st_trig_t *bench, const st_trig_row_t *row);
    int         baseline; /* Row to compare with, -1: none */
    double      samples[ST_TRIG_MAX_TRIALS];
    int         num_samples;
};

static struct {
    st_trig_row_t rows[ST_TRIG_MAX_ROWS];
    int           count;
} st_trig_table;


static double run_copy(st_trig_t *bench, const st_trig_row_t *row)
{
    return trig_copy(&bench->me, row->step.size, row->step.count);
}

static double run_attach(st_trig_t *bench, const st_trig_row_t *row)
{
    return trig_attach(&bench->me, row->step.size, row->step.count);
}

static double run_futex(st_trig_t *bench, const st_trig_row_t *row)
{
    return trig_futex(&bench->me, row->step.count);
}

static double run_write(st_trig_t *bench, const st_trig_row_t *row)
{
    return trig_fab_write(bench->fab, &row->step);
}

static double run_uct(st_trig_t *bench, const st_trig_row_t *row)
{
    return trig_uct_write(bench->uct, &row->step);
}

static double run_wake(st_trig_t *bench, const st_trig_row_t *row)
{
    return trig_fab_wake(bench->fab, row->step.count);
}

static double run_tagged(st_trig_t *bench, const st_trig_row_t *row)
{
    return trig_fab_tagged(bench->fab, row->step.count);
}

static double run_stream(st_trig_t *bench, const st_trig_row_t *row)
{
    return trig_fab_stream(bench->fab, &row->step);
}

/* Both machines' ways to copy; the better one is what a row is compared with */
static double run_best_copy(st_trig_t *bench, const st_trig_row_t *row)
{
    double copy   = trig_copy(&bench->me, row->step.size, row->step.count);
    double attach = trig_attach(&bench->me, row->step.size, row->step.count);

    return ((attach > 0) && (attach < copy)) ? attach : copy;
}

typedef struct st_trig_make {
    const char  *variant;
    double      (*run)(st_trig_t *bench, const st_trig_row_t *row);
    int         baseline;
    trig_step_t step;
} st_trig_make_t;

static int add_row(const st_trig_make_t *make)
{
    st_trig_row_t *row = &st_trig_table.rows[st_trig_table.count];

    row->variant  = make->variant;
    row->run      = make->run;
    row->baseline = make->baseline;
    row->step     = make->step;
    return st_trig_table.count++;
}

static unsigned count_for(const st_trig_t *bench, size_t size)
{
    unsigned count = (unsigned)(bench->count / (1 + (size / 4096)));

    return (count < 20) ? 20 : count;
}

static void add_size(const st_trig_t *bench, size_t size)
{
    st_trig_make_t make = {
        .variant  = "copy",
        .run      = run_copy,
        .baseline = -1,
        .step     = {.size = size, .count = count_for(bench, size)}
    };
    int base            = add_row(&make);
    int raw;

    make.baseline = base;
    if (size > 8) {
        make.variant = "attach";
        make.run     = run_attach;
        add_row(&make);
    }
    make.variant  = "raw";
    make.run      = run_write;
    raw           = add_row(&make);
    make.variant  = "uct_trig";
    make.run      = run_uct;
    make.baseline = raw;
    add_row(&make);
    if (size > 8) {
        make.variant     = "raw-mapped";
        make.run         = run_write;
        make.baseline    = base;
        make.step.mapped = 1;
        add_row(&make);
    }
}

static void add_words(const st_trig_t *bench)
{
    st_trig_make_t make = {
        .variant  = "futex",
        .run      = run_futex,
        .baseline = -1,
        .step     = {.size = 8, .count = 50}
    };

    if (trig_fab_can_sleep(bench->fab)) {
        make.baseline = add_row(&make);
        make.variant  = "raw-sleeping";
        make.run      = run_wake;
        add_row(&make);
    }
    make.variant      = "raw-pending-10";
    make.run          = run_write;
    make.baseline     = -1;
    make.step.count   = 200;
    make.step.pending = 10;
    make.baseline     = add_row(&make);
    st_trig_table.rows[make.baseline].baseline = make.baseline;
    make.variant      = "raw-pending-500";
    make.step.pending = 500;
    add_row(&make);
    make.variant      = "tagged";
    make.run          = run_tagged;
    make.baseline     = -1;
    make.step.pending = 0;
    make.step.count   = (unsigned)bench->count;
    add_row(&make);
}

static void add_rate(void)
{
    st_trig_make_t make = {
        .variant  = "copy-rate",
        .run      = run_best_copy,
        .baseline = -1,
        .step     = {.size = ST_TRIG_RATE_SIZE, .count = 50}
    };

    make.baseline    = add_row(&make);
    make.variant     = "write-rate";
    make.run         = run_stream;
    make.step.count  = 100;
    add_row(&make);
    make.variant     = "write-rate-mapped";
    make.step.mapped = 1;
    add_row(&make);
}

static void run_all(st_trig_t *bench)
{
    trig_page_t *page = bench->me.page;
    st_trig_row_t *row;
    int trial, i;
    double us;

    page->pid[bench->me.rank]      = getpid();
    page->user[bench->me.rank]     = (uintptr_t)bench->me.user;
    page->verified[bench->me.rank] = 1;
    bench->fab = trig_fab_open(&bench->me, bench->provider);
    bench->uct = trig_uct_open(&bench->me, bench->provider);
    add_size(bench, 8);
    add_words(bench);
    for (i = 64; (size_t)i <= bench->max; i *= 4) {
        add_size(bench, (size_t)i);
    }
    if (bench->max >= ST_TRIG_RATE_SIZE) {
        add_rate();
    }
    /* The first trial warms up */
    for (trial = -1; trial < (int)bench->trials; ++trial) {
        for (i = 0; i < st_trig_table.count; ++i) {
            row = &st_trig_table.rows[i];
            us  = row->run(bench, row);
            if ((trial >= 0) && (us >= 0)) {
                row->samples[row->num_samples++] = us;
            }
        }
    }
    trig_uct_close(bench->uct);
    trig_idle(&bench->me, bench->idle_s);
}

/* What the report says of a row, 0 if there is nothing to say */
static int get_row(const st_trig_t *bench, st_trig_row_t *row,
                   st_report_row_t *out)
{
    trig_page_t *page   = bench->me.page;
    st_trig_row_t *base = (row->baseline < 0) ? NULL :
                          &st_trig_table.rows[row->baseline];
    st_report_stats_t stats;

    if (row->num_samples == 0) {
        return 0;
    }
    memset(out, 0, sizeof(*out));
    out->size     = row->step.size;
    out->variant  = row->variant;
    out->setup_us = -1;
    out->verified = page->verified[0] && page->verified[1];
    st_report_stats_get(row->samples, row->num_samples, &out->time);
    if ((base != NULL) && (base->num_samples > 0)) {
        st_report_stats_get(base->samples, base->num_samples, &stats);
        out->ratio = out->time.median / stats.median;
    }
    return 1;
}

static void print_table(const st_trig_t *bench)
{
    trig_page_t *page = bench->me.page;
    st_report_row_t row;
    int i;

    printf("provider %s, data path %s, %ld cores, load %.2f, %zu trials\n",
           bench->provider, trig_fab_path(bench->fab), st_report_cores(),
           st_report_load(), bench->trials);
    printf("%9s %-18s %10s %10s %10s %7s\n", "bytes", "variant", "median us",
           "min us", "max us", "ratio");
    for (i = 0; i < st_trig_table.count; ++i) {
        if (!get_row(bench, &st_trig_table.rows[i], &row)) {
            continue;
        }
        printf("%9zu %-18s %10.3f %10.3f %10.3f", row.size, row.variant,
               row.time.median, row.time.min, row.time.max);
        if (row.ratio > 0) {
            printf(" %7.3f", row.ratio);
        }
        printf("\n");
    }
    printf("idle: %.3f %% and %.3f %% of a core; data %s\n",
           100 * page->cpu[0], 100 * page->cpu[1],
           (page->verified[0] && page->verified[1]) ? "right" : "WRONG");
}

static int write_json(const st_trig_t *bench)
{
    trig_page_t *page = bench->me.page;
    FILE *file        = st_report_open(bench->json);
    const char *comma = "";
    st_report_row_t row;
    int i;

    if (file == NULL) {
        return -1;
    }
    fprintf(file, "{\"bench\":\"st_trig\",\"provider\":\"%s\","
            "\"data_path\":\"%s\",\"stream\":\"host\",\"ranks\":2,"
            "\"cores\":%ld,\"load\":%.2f,\"trials\":%zu,\"idle\":[%.5f,%.5f],"
            "\"rows\":[", bench->provider, trig_fab_path(bench->fab),
            st_report_cores(), st_report_load(), bench->trials,
            page->cpu[0], page->cpu[1]);
    for (i = 0; i < st_trig_table.count; ++i) {
        if (get_row(bench, &st_trig_table.rows[i], &row)) {
            fputs(comma, file);
            st_report_json_row(file, &row);
            comma = ",";
        }
    }
    fputs("\n]}\n", file);
    return st_report_close(file, bench->json);
}

static int usage(FILE *file)
{
    fprintf(file,
            "usage: st_trig [--provider NAME] [--max BYTES] [--trials N] "
            "[--count N]\n               [--idle SECONDS] [--json FILE] "
            "[--help]\n");
    return -1;
}

static int parse_option(st_trig_t *bench, int opt)
{
    switch (opt) {
    case 'p':
        bench->provider = optarg;
        return 0;
    case 'm':
        return st_number_option("max", 8, TRIG_MAX_SIZE, &bench->max);
    case 't':
        return st_number_option("trials", 1, ST_TRIG_MAX_TRIALS,
                                &bench->trials);
    case 'c':
        return st_number_option("count", 1, ST_TRIG_MAX_COUNT, &bench->count);
    case 'i':
        bench->idle_s = atof(optarg);
        return (bench->idle_s > 0) ? 0 : usage(stderr);
    case 'j':
        bench->json = optarg;
        return 0;
    case 'h':
        usage(stdout);
        exit(EXIT_SUCCESS);
    default:
        return usage(stderr);
    }
}

static int parse(st_trig_t *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"provider", required_argument, NULL, 'p'},
        {"max", required_argument, NULL, 'm'},
        {"trials", required_argument, NULL, 't'},
        {"count", required_argument, NULL, 'c'},
        {"idle", required_argument, NULL, 'i'},
        {"json", required_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}
    };
    int opt;

    while ((opt = getopt_long(argc, argv, "hp:", options, NULL)) != -1) {
        if (parse_option(bench, opt) != 0) {
            return -1;
        }
    }
    return (optind == argc) ? 0 : usage(stderr);
}

static int report(st_trig_t *bench)
{
    trig_page_t *page = bench->me.page;
    int ret           = 0;

    print_table(bench);
    if (bench->json != NULL) {
        ret = write_json(bench);
    }
    return ((ret == 0) && page->verified[0] && page->verified[1]) ?
           EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    st_trig_t bench = {
        .provider = "cxiemu",
        .trials   = 9,
        .count    = 1000,
        .max      = TRIG_MAX_SIZE,
        .idle_s   = 3
    };
    int status = EXIT_SUCCESS, child = 0;

    if (parse(&bench, argc, argv) != 0) {
        return 2;
    }
    bench.me.page = mmap(NULL, sizeof(trig_page_t), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bench.me.user = malloc(TRIG_MAX_SIZE);
    if ((bench.me.page == MAP_FAILED) || (bench.me.user == NULL)) {
        perror("st_trig");
        return EXIT_FAILURE;
    }
    memset(bench.me.user, 1, TRIG_MAX_SIZE);
    memset(bench.me.page, 0, sizeof(trig_page_t));
    bench.child = fork();
    if (bench.child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bench.me.rank = 1;
    }
    run_all(&bench);
    if (bench.me.rank == 0) {
        status = report(&bench);
    }
    trig_fab_close(bench.fab);
    free(bench.me.user);
    if (bench.me.rank == 0) {
        waitpid(bench.child, &child, 0);
    }
    return (child == 0) ? status : EXIT_FAILURE;
}
