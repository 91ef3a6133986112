/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost_match.c - time and memory of matched pairs.
 *
 * Memory is what a process holds more than before when its halves are matched:
 * - malloc: bytes in use of the C library's allocator, which all libraries
 *   below share (mallinfo2(): uordblks and hblkhd);
 * - mapped: growth of the address space (/proc/self/statm) without that of the
 *   allocator (arena and hblkhd).
 * The buffers, and all arrays of this program, are there before; so are slots
 * and inboxes, which the library keeps from one trial to the next.
 */
#include "cost.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


/* Places in the page's values */
enum {
    COST_INIT_US,
    COST_MATCH_US,
    COST_MALLOC,
    COST_MAPPED,
    COST_MATCHED
};

typedef struct cost_memory {
    double used;   /* Of the allocator, bytes */
    double mapped; /* Beside the allocator */
} cost_memory_t;

typedef struct cost_match {
    ucp_st_op_h  *ops;
    ucs_status_t *statuses;
    uint8_t      *buffers;
    cost_row_t   *base[COST_NUM_LANES]; /* That per-pair times are compared
                                           with */
} cost_match_t;

/* One row: a lane and a number of pairs */
typedef struct cost_case {
    int        lane;
    size_t     asked;
    size_t     pairs;  /* That find a place */
    cost_row_t *row;
    double     init_us[COST_MAX_TRIALS];
    double     used[COST_MAX_TRIALS];
    double     mapped[COST_MAX_TRIALS];
    char       limit[128];
} cost_case_t;


static void cost_memory_get(cost_rank_t *rank, cost_memory_t *memory)
{
    struct mallinfo2 info = mallinfo2();
    FILE *file            = fopen("/proc/self/statm", "r");
    unsigned long pages   = 0;

    if ((file == NULL) || (fscanf(file, "%lu", &pages) != 1)) {
        trig_give_up(&rank->me, "reading /proc/self/statm", 0);
    }
    fclose(file);
    memory->used   = (double)(info.uordblks + info.hblkhd);
    memory->mapped = ((double)pages * (double)sysconf(_SC_PAGESIZE)) -
                     (double)(info.arena + info.hblkhd);
}

/* Makes and matches so many pairs; they stay. What it took is in the page. */
static void cost_match_make(cost_rank_t *rank, cost_match_t *match, int lane,
                            size_t count)
{
    cost_side_t *side = &rank->sides[lane];
    double *value     = rank->page->value[rank->me.rank];
    cost_memory_t before, after;
    double start;
    size_t i;

    cost_calm(rank);
    cost_memory_get(rank, &before);
    start = trig_now();
    for (i = 0; i < count; ++i) {
        match->ops[i] = cost_op_init(rank, side,
                                     match->buffers + (i * COST_LENGTH), i);
    }
    value[COST_INIT_US] = trig_now() - start;
    cost_barrier(rank);
    start = trig_now();
    (void)ucp_st_matchall(match->ops, count, match->statuses);
    value[COST_MATCH_US] = trig_now() - start;
    cost_calm(rank);
    cost_memory_get(rank, &after);
    value[COST_MALLOC]  = after.used - before.used;
    value[COST_MAPPED]  = after.mapped - before.mapped;
    value[COST_MATCHED] = 0;
    for (i = 0; i < count; ++i) {
        if (match->statuses[i] == UCS_OK) {
            ++value[COST_MATCHED];
        } else if (match->statuses[i] != UCS_ERR_NO_RESOURCE) {
            cost_must(rank, "ucp_st_matchall", match->statuses[i]);
        }
    }
    cost_barrier(rank);
}

/* How many of those asked for can be matched, and what stops the next one */
static void cost_match_probe(cost_rank_t *rank, cost_match_t *match,
                             cost_case_t *tcase)
{
    cost_side_t *side = &rank->sides[tcase->lane];
    ucp_st_worker_attr_t attr;

    cost_match_make(rank, match, tcase->lane, tcase->asked);
    tcase->pairs = (size_t)rank->page->value[0][COST_MATCHED];
    if (tcase->pairs != (size_t)rank->page->value[1][COST_MATCHED]) {
        trig_give_up(&rank->me, "to match as many as the other side", 0);
    }
    if (tcase->pairs < tcase->asked) {
        cost_must(rank, "ucp_st_worker_query",
                  ucp_st_worker_query(side->worker, &attr));
        snprintf(tcase->limit, sizeof(tcase->limit),
                 "of %zu: no resource beyond %lu entries and %lu counters",
                 tcase->asked, attr.stats.entries, attr.stats.cntrs);
    }
    cost_ops_free(rank, side, match->ops, tcase->asked);
}

static double cost_match_sum(const cost_rank_t *rank, int value)
{
    return rank->page->value[0][value] + rank->page->value[1][value];
}

static void cost_match_trial(cost_rank_t *rank, cost_match_t *match,
                             cost_case_t *tcase, int trial)
{
    const cost_page_t *page = rank->page;
    double count            = (double)tcase->pairs;
    double us;

    cost_match_make(rank, match, tcase->lane, tcase->pairs);
    if ((size_t)page->value[0][COST_MATCHED] < tcase->pairs) {
        trig_give_up(&rank->me, "to match as many as before", 0);
    }
    us = page->value[0][COST_MATCH_US];
    if (page->value[1][COST_MATCH_US] > us) {
        us = page->value[1][COST_MATCH_US];
    }
    if (trial >= 0) {
        cost_row_sample(tcase->row, us);
        tcase->init_us[trial] = cost_match_sum(rank, COST_INIT_US) / count;
        tcase->used[trial]    = cost_match_sum(rank, COST_MALLOC) / count;
        tcase->mapped[trial]  = cost_match_sum(rank, COST_MAPPED) / count;
    }
    cost_barrier(rank);
    cost_ops_free(rank, &rank->sides[tcase->lane], match->ops, tcase->pairs);
}

static void cost_match_report(cost_rank_t *rank, cost_match_t *match,
                              cost_case_t *tcase)
{
    cost_row_t *row  = tcase->row;
    cost_row_t *base = match->base[tcase->lane];
    double us        = cost_row_median(row) / (double)tcase->pairs;
    st_report_stats_t init, used, mapped;

    st_report_stats_get(tcase->init_us, rank->trials, &init);
    st_report_stats_get(tcase->used, rank->trials, &used);
    st_report_stats_get(tcase->mapped, rank->trials, &mapped);
    if (base != NULL) {
        row->ratio = us * (double)base->size / cost_row_median(base);
    }
    snprintf(row->more, sizeof(row->more),
             ",\"us_per_pair\":%.4f,\"init_us_per_pair\":%.4f,"
             "\"malloc_bytes_per_pair\":%.1f,\"mapped_bytes_per_pair\":%.1f,"
             "\"limit\":\"%s\"", us, init.median, used.median, mapped.median,
             tcase->limit);
    snprintf(row->note, sizeof(row->note),
             "%.2f us, malloc %.0f B, mapped %.0f B a pair%s%s", us,
             used.median, mapped.median, (tcase->limit[0] == '\0') ? "" : "; ",
             tcase->limit);
}

static void cost_match_alloc(cost_rank_t *rank, cost_match_t *match)
{
    size_t count = rank->max_pairs;

    match->ops      = calloc(count, sizeof(*match->ops));
    match->statuses = calloc(count, sizeof(*match->statuses));
    match->buffers  = calloc(count, COST_LENGTH);
    if ((match->ops == NULL) || (match->statuses == NULL) ||
        (match->buffers == NULL)) {
        trig_give_up(&rank->me, "malloc", 0);
    }
    memset(match->buffers, 1, count * COST_LENGTH);
}

/* The cases of each lane: 1, 100, ... pairs */
static int cost_match_cases(cost_rank_t *rank, cost_match_t *match,
                            cost_case_t *cases)
{
    int count = 0;
    size_t asked;
    int lane;

    for (lane = 0; lane < COST_NUM_LANES; ++lane) {
        for (asked = 1; asked <= rank->max_pairs; asked *= 100) {
            cases[count].lane  = lane;
            cases[count].asked = asked;
            cost_match_probe(rank, match, &cases[count]);
            if (cases[count].pairs == 0) {
                trig_give_up(&rank->me, "to match a single pair", 0);
            }
            cases[count].row = cost_row_add(rank, "match", cost_lanes[lane],
                                            cases[count].pairs);
            if (asked == 100) {
                match->base[lane] = cases[count].row;
            }
            ++count;
        }
    }
    return count;
}

void cost_match_run(cost_rank_t *rank)
{
    static cost_case_t cases[COST_NUM_LANES * 4];
    cost_match_t match = {.ops = NULL};
    int count, trial, i;

    cost_match_alloc(rank, &match);
    count = cost_match_cases(rank, &match, cases);
    /* The first trial warms up */
    for (trial = -1; trial < rank->trials; ++trial) {
        for (i = 0; i < count; ++i) {
            cost_match_trial(rank, &match, &cases[i], trial);
        }
    }
    for (i = 0; i < count; ++i) {
        cost_match_report(rank, &match, &cases[i]);
    }
    free(match.buffers);
    free(match.statuses);
    free(match.ops);
}
