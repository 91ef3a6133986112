/* SPDX-License-Identifier: BSD-3-Clause */
/* faces_counts.c - what a use of the exchange takes of stream and card. */
#include "faces.h"

#include <st_counts.h>

#include <stdlib.h>
#include <string.h>

/* Looks at requests that peers have yet to let go */
#define FACES_MAX_LOOKS 1000


/* What the process has counted so far. */
static void faces_counts_read(faces_counts_t *counts)
{
    char *text = bench_counts();

    counts->stores    = st_counts_number(text, "start_cmds");
    counts->words     = st_counts_number(text, "wait_words");
    counts->deferred  = st_counts_number(text, "writes_fired") +
                        st_counts_number(text, "cts_fired") +
                        st_counts_number(text, "atomics_fired");
    counts->counters  = st_counts_number(text, "cntrs");
    counts->entries   = st_counts_number(text, "entries");
    counts->fallbacks = st_counts_number(text, "fallbacks");
    counts->proxied   = st_counts_number(text, "proxied");
    counts->freed     = st_counts_number(text, "freed");
    free(text);
}

void faces_counts_begin(faces_counts_t *counts)
{
    MPI_Request none = MPI_REQUEST_NULL;
    int looks        = 0;
    int flag;

    for (;;) {
        faces_counts_read(counts);
        if ((bench_sum(counts->freed, MPI_COMM_WORLD) == 0) ||
            (++looks == FACES_MAX_LOOKS)) {
            return;
        }
        bench_check(MPIX_Is_matched(&none, &flag, MPI_STATUS_IGNORE),
                    "MPIX_Is_matched");
    }
}

void faces_counts_end(faces_counts_t *sum, const faces_counts_t *begin,
                      uint64_t uses)
{
    faces_counts_t end;

    faces_counts_read(&end);
    sum->uses      += uses;
    sum->stores    += end.stores - begin->stores;
    sum->words     += end.words - begin->words;
    sum->deferred  += end.deferred - begin->deferred;
    sum->fallbacks += end.fallbacks - begin->fallbacks;
    sum->proxied   += end.proxied - begin->proxied;
    sum->counters   = end.counters - begin->counters;
    sum->entries    = end.entries - begin->entries;
}

/* Mean over the ranks. */
static double faces_counts_mean(uint64_t value, uint64_t uses)
{
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return (double)bench_sum(value, MPI_COMM_WORLD) / ((double)uses * ranks);
}

void faces_counts_mean_get(const faces_counts_t *sum,
                           faces_counts_mean_t *mean)
{
    const uint64_t uses = (sum->uses > 0) ? sum->uses : 1;

    mean->stores    = faces_counts_mean(sum->stores, uses);
    mean->words     = faces_counts_mean(sum->words, uses);
    mean->deferred  = faces_counts_mean(sum->deferred, uses);
    mean->counters  = faces_counts_mean(sum->counters, 1);
    mean->entries   = faces_counts_mean(sum->entries, 1);
    mean->fallbacks = bench_sum(sum->fallbacks, MPI_COMM_WORLD);
    mean->proxied   = bench_sum(sum->proxied, MPI_COMM_WORLD);
}

void faces_counts_json(const faces_counts_mean_t *mean, char *text, size_t max)
{
    snprintf(text, max, ",\"counts\":{\"stores_per_use\":%.3f,"
             "\"words_per_use\":%.3f,\"deferred_per_use\":%.3f,"
             "\"counters_held\":%.3f,\"entries_held\":%.3f,"
             "\"fallbacks\":%llu,\"proxied\":%llu}", mean->stores, mean->words,
             mean->deferred, mean->counters, mean->entries,
             (unsigned long long)mean->fallbacks,
             (unsigned long long)mean->proxied);
}

void faces_counts_print(const faces_counts_mean_t *mean, const char *variant)
{
    printf("%-9s  %8.2f %8.2f %9.2f %9.2f %8.2f %10llu %8llu\n", variant,
           mean->stores, mean->words, mean->deferred, mean->counters,
           mean->entries, (unsigned long long)mean->fallbacks,
           (unsigned long long)mean->proxied);
}
