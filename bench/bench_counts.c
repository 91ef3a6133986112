/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_counts.c - what a use takes of stream and card. */
#include "bench_util.h"

#include <st_counts.h>

#include <inttypes.h>
#include <stdlib.h>

/* Looks at requests that peers have yet to let go */
#define BENCH_MAX_LOOKS 1000


char *bench_counts_text(void)
{
    char *text  = NULL;
    size_t size = 0;
    FILE *file  = bench_open_text(&text, &size);

    bench_check(MPIX_Queue_print_stats(file), "MPIX_Queue_print_stats");
    fclose(file);
    return text;
}

/* What the process has counted so far. */
static void bench_counts_read(bench_counts_t *counts)
{
    char *text = bench_counts_text();

    counts->stores    = st_counts_number(text, "start_cmds");
    counts->words     = st_counts_number(text, "wait_words");
    counts->deferred  = st_counts_number(text, "writes_fired") +
                        st_counts_number(text, "cts_fired") +
                        st_counts_number(text, "atomics_fired") +
                        st_counts_number(text, "bridges_fired");
    counts->counters  = st_counts_number(text, "cntrs");
    counts->entries   = st_counts_number(text, "entries");
    counts->fallbacks = st_counts_number(text, "fallbacks");
    counts->proxied   = st_counts_number(text, "proxied");
    counts->launches  = st_counts_number(text, "launches");
    counts->wakeups   = st_counts_number(text, "wakeups");
    counts->freed     = st_counts_number(text, "freed");
    free(text);
}

void bench_counts_begin(bench_counts_t *counts, MPI_Comm comm)
{
    MPI_Request none = MPI_REQUEST_NULL;
    int looks        = 0;
    int flag;

    for (;;) {
        bench_counts_read(counts);
        if ((bench_sum(counts->freed, comm) == 0) ||
            (++looks == BENCH_MAX_LOOKS)) {
            return;
        }
        bench_check(MPIX_Is_matched(&none, &flag, MPI_STATUS_IGNORE),
                    "MPIX_Is_matched");
    }
}

void bench_counts_end(bench_counts_t *sum, const bench_counts_t *begin,
                      uint64_t uses)
{
    bench_counts_t end;

    bench_counts_read(&end);
    sum->uses      += uses;
    sum->stores    += end.stores - begin->stores;
    sum->words     += end.words - begin->words;
    sum->deferred  += end.deferred - begin->deferred;
    sum->fallbacks += end.fallbacks - begin->fallbacks;
    sum->proxied   += end.proxied - begin->proxied;
    sum->launches  += end.launches - begin->launches;
    sum->wakeups   += end.wakeups - begin->wakeups;
    sum->counters   = end.counters - begin->counters;
    sum->entries    = end.entries - begin->entries;
}

/* Mean over the ranks. */
static double bench_counts_mean(uint64_t value, uint64_t uses, MPI_Comm comm)
{
    int ranks;

    MPI_Comm_size(comm, &ranks);
    return (double)bench_sum(value, comm) / ((double)uses * ranks);
}

void bench_counts_mean_get(const bench_counts_t *sum, MPI_Comm comm,
                           bench_counts_mean_t *mean)
{
    const uint64_t uses = (sum->uses > 0) ? sum->uses : 1;

    mean->is_counted = 1;
    mean->stores     = bench_counts_mean(sum->stores, uses, comm);
    mean->words      = bench_counts_mean(sum->words, uses, comm);
    mean->deferred   = bench_counts_mean(sum->deferred, uses, comm);
    mean->counters   = bench_counts_mean(sum->counters, 1, comm);
    mean->entries    = bench_counts_mean(sum->entries, 1, comm);
    mean->launches   = bench_counts_mean(sum->launches, uses, comm);
    mean->wakeups    = bench_counts_mean(sum->wakeups, uses, comm);
    mean->uses       = sum->uses;
    mean->fallbacks  = bench_sum(sum->fallbacks, comm);
    mean->proxied    = bench_sum(sum->proxied, comm);
}

void bench_counts_json(FILE *file, const bench_counts_mean_t *mean)
{
    fprintf(file, ",\"counts\":{\"stores_per_use\":%.3f,"
            "\"words_per_use\":%.3f,\"deferred_per_use\":%.3f,"
            "\"counters_held\":%.3f,\"entries_held\":%.3f,"
            "\"fallbacks\":%" PRIu64 ",\"proxied\":%" PRIu64
            ",\"launches_per_use\":%.3f,\"wakeups_per_use\":%.3f,"
            "\"uses\":%" PRIu64 "}",
            mean->stores, mean->words, mean->deferred, mean->counters,
            mean->entries, mean->fallbacks, mean->proxied, mean->launches,
            mean->wakeups, mean->uses);
}

void bench_counts_print_head(int is_gpu)
{
    printf("\nof a use and rank: %6s %8s %9s; held: %s %s; in all: %s %s%s\n",
           "stores", "words", "deferred", "counters", "entries", "fallbacks",
           "proxied", is_gpu ? "; of a use: kernels wake-ups; bytes" : "");
}

void bench_counts_print(const bench_counts_mean_t *mean,
                        const st_report_row_t *row, int is_gpu)
{
    printf("%-9s  %14.2f %8.2f %9.2f %15.2f %7.2f %18" PRIu64 " %7" PRIu64,
           row->variant, mean->stores, mean->words, mean->deferred,
           mean->counters, mean->entries, mean->fallbacks, mean->proxied);
    if (is_gpu) {
        printf(" %19.2f %8.2f %10zu", mean->launches, mean->wakeups,
               row->size);
    }
    printf("\n");
}
