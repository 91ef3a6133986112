/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost_start.c - what the host pays for starts and waits.
 *
 * The stream stands at a function that sleeps while they are enqueued, so that
 * it neither runs nor competes for the processor. The provider's own calls for
 * the same work, and uct_trig's, take turns with them: a use of a send is a
 * deferred write and a deferred atomic, on counters of the operation's own. The
 * stream triggers these as well.
 */
#include "cost.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each kind in a row, of which the last one counts: steady state is what a
 * start costs, not what the kind before has left in the caches */
#define COST_ROUNDS 3


/* What is enqueued: calls of one operation each, or one of all operations */
typedef enum {
    COST_START,
    COST_WAIT,
    COST_STARTALL,
    COST_WAITALL,
    COST_RAW,
    COST_UCT,
    COST_NUM_CALLS
} cost_call_t;

static const char *const cost_call_names[COST_NUM_CALLS] = {
    "start", "wait", "startall", "waitall", "post-raw", "post-uct"
};

typedef struct cost_start {
    sem_t       gate;
    ucp_st_op_h *ops[COST_NUM_LANES];
    uint8_t     *buffers;
    uint64_t    entries; /* That the operations hold while nothing runs */
    /* Samples of each rank, microseconds of an operation; the provider's are
     * with the first lane */
    double      us[COST_NUM_LANES][COST_NUM_CALLS][2][COST_MAX_TRIALS];
    /* A start, or its part of a startall, without the provider's calls */
    double      over[COST_NUM_LANES][COST_NUM_CALLS][COST_MAX_TRIALS];
} cost_start_t;


static void cost_gate(void *arg)
{
    while (sem_wait(arg) != 0);
}

static double cost_enqueue_each(cost_rank_t *rank, cost_side_t *side,
                                ucp_st_op_h *ops, cost_call_t call)
{
    double start = trig_now();
    size_t i;

    for (i = 0; i < rank->num_ops; ++i) {
        cost_must(rank, cost_call_names[call],
                  (call == COST_START) ?
                  ucp_st_enqueue_start(side->queue, ops[i]) :
                  ucp_st_enqueue_wait(side->queue, ops[i]));
    }
    return trig_now() - start;
}

static double cost_enqueue_all(cost_rank_t *rank, cost_side_t *side,
                               ucp_st_op_h *ops, cost_call_t call)
{
    double start = trig_now();

    cost_must(rank, cost_call_names[call],
              (call == COST_STARTALL) ?
              ucp_st_enqueue_startall(side->queue, ops, rank->num_ops) :
              ucp_st_enqueue_waitall(side->queue, ops, rank->num_ops));
    return trig_now() - start;
}

/* One use of all operations */
static void cost_start_use(cost_rank_t *rank, cost_start_t *cost, int lane,
                           cost_call_t call)
{
    cost_side_t *side = &rank->sides[lane];
    double *value     = rank->page->value[rank->me.rank];
    double *first     = &value[call];
    double *second    = &value[call + 1];

    if (lane == 0) { /* as with the provider's calls: nothing is under way */
        cost_settle(rank, side, cost->entries);
    }
    cost_barrier(rank);
    cost_must(rank, "ucs_gstream_enqueue_func",
              ucs_gstream_enqueue_func(side->stream, cost_gate, &cost->gate));
    cost_barrier(rank);
    if (call == COST_START) {
        *first  = cost_enqueue_each(rank, side, cost->ops[lane], COST_START);
        *second = cost_enqueue_each(rank, side, cost->ops[lane], COST_WAIT);
    } else {
        *first  = cost_enqueue_all(rank, side, cost->ops[lane], COST_STARTALL);
        *second = cost_enqueue_all(rank, side, cost->ops[lane], COST_WAITALL);
    }
    sem_post(&cost->gate);
    cost_must(rank, "ucp_st_queue_wait", ucp_st_queue_wait(side->queue, NULL));
    cost_barrier(rank);
}

/* What was posted runs as a use does, on the stream: its thread's core is where
 * the next posts find what they share with it */
static void cost_start_fire(cost_rank_t *rank, ucs_gstream_func_t fire,
                            void *arg)
{
    cost_side_t *side = &rank->sides[0];

    cost_must(rank, "ucs_gstream_enqueue_func",
              ucs_gstream_enqueue_func(side->stream, fire, arg));
    cost_must(rank, "ucs_gstream_synchronize",
              ucs_gstream_synchronize(side->stream));
    cost_barrier(rank);
}

static void cost_start_post_raw(cost_rank_t *rank, cost_start_t *cost)
{
    unsigned count = (unsigned)rank->num_ops;
    double *value  = rank->page->value[rank->me.rank];

    cost_settle(rank, &rank->sides[0], cost->entries);
    value[COST_RAW] = count * trig_fab_post(rank->fab, COST_LENGTH, count);
    cost_start_fire(rank, trig_fab_fire, rank->fab);
}

static void cost_start_post_uct(cost_rank_t *rank, cost_start_t *cost)
{
    unsigned count = (unsigned)rank->num_ops;
    double *value  = rank->page->value[rank->me.rank];

    cost_settle(rank, &rank->sides[0], cost->entries);
    value[COST_UCT] = count * trig_uct_post(rank->uct, COST_LENGTH, count);
    cost_start_fire(rank, trig_uct_fire, rank->uct);
}

/* What both ranks have measured since the last barrier but one */
static void cost_start_keep(cost_rank_t *rank, cost_start_t *cost, int lane,
                            int trial)
{
    int call, i;

    for (call = 0; (trial >= 0) && (call < COST_NUM_CALLS); ++call) {
        for (i = 0; i < 2; ++i) {
            cost->us[lane][call][i][trial] = rank->page->value[i][call] /
                                             (double)rank->num_ops;
        }
        cost->over[lane][call][trial] = (rank->page->value[0][call] -
                                         rank->page->value[0][COST_RAW]) /
                                        (double)rank->num_ops;
    }
}

static void cost_start_trial(cost_rank_t *rank, cost_start_t *cost, int trial)
{
    int lane, i;

    for (lane = 0; lane < COST_NUM_LANES; ++lane) {
        for (i = 0; i < COST_ROUNDS; ++i) {
            cost_start_post_raw(rank, cost);
        }
        for (i = 0; i < COST_ROUNDS; ++i) {
            cost_start_post_uct(rank, cost);
        }
        for (i = 0; i < COST_ROUNDS; ++i) {
            cost_start_use(rank, cost, lane, COST_START);
        }
        for (i = 0; i < COST_ROUNDS; ++i) {
            cost_start_use(rank, cost, lane, COST_STARTALL);
        }
        cost_start_keep(rank, cost, lane, trial);
    }
}

static void cost_start_samples(cost_rank_t *rank, cost_row_t *row,
                               const double *us)
{
    int trial;

    for (trial = 0; trial < rank->trials; ++trial) {
        cost_row_sample(row, us[trial]);
    }
}

static void cost_start_row(cost_rank_t *rank, cost_start_t *cost, int lane,
                           cost_call_t call)
{
    static const char *const sides[2] = {"send", "recv"};
    st_report_stats_t over;
    cost_row_t *row;
    char name[32];
    int i;

    for (i = 0; i < 2; ++i) {
        snprintf(name, sizeof(name), "%s-%s", cost_call_names[call], sides[i]);
        row = cost_row_add(rank, name, cost_lanes[lane], COST_LENGTH);
        cost_start_samples(rank, row, cost->us[lane][call][i]);
        snprintf(row->note, sizeof(row->note), "%.0f ns",
                 1000 * cost_row_median(row));
        if ((lane == 0) && (i == 0) &&
            ((call == COST_START) || (call == COST_STARTALL))) {
            st_report_stats_get(cost->over[lane][call], rank->trials, &over);
            snprintf(row->note, sizeof(row->note),
                     "%.0f ns, %.0f beside the provider's calls",
                     1000 * cost_row_median(row), 1000 * over.median);
            snprintf(row->more, sizeof(row->more),
                     ",\"beside_provider_ns\":%.1f", 1000 * over.median);
        }
    }
}

static void cost_start_report(cost_rank_t *rank, cost_start_t *cost)
{
    cost_row_t *row;
    int lane, call;

    for (call = COST_RAW; call <= COST_UCT; ++call) {
        row = cost_row_add(rank, cost_call_names[call], "send", COST_LENGTH);
        cost_start_samples(rank, row, cost->us[0][call][0]);
        snprintf(row->note, sizeof(row->note), "%.0f ns: a write, an atomic",
                 1000 * cost_row_median(row));
    }
    for (lane = 0; lane < COST_NUM_LANES; ++lane) {
        for (call = 0; call <= COST_WAITALL; ++call) {
            cost_start_row(rank, cost, lane, (cost_call_t)call);
        }
    }
}

static void cost_start_make(cost_rank_t *rank, cost_start_t *cost)
{
    size_t count = rank->num_ops;
    int lane;
    size_t i;

    memset(cost, 0, sizeof(*cost));
    cost->buffers = calloc(count, COST_LENGTH);
    if ((cost->buffers == NULL) || (sem_init(&cost->gate, 0, 0) != 0)) {
        trig_give_up(&rank->me, "malloc", 0);
    }
    for (lane = 0; lane < COST_NUM_LANES; ++lane) {
        cost->ops[lane] = calloc(count, sizeof(*cost->ops[lane]));
        if (cost->ops[lane] == NULL) {
            trig_give_up(&rank->me, "malloc", 0);
        }
        for (i = 0; i < count; ++i) {
            cost->ops[lane][i] = cost_op_init(rank, &rank->sides[lane],
                                              cost->buffers + (i * COST_LENGTH),
                                              i);
        }
        cost_must(rank, "ucp_st_matchall",
                  ucp_st_matchall(cost->ops[lane], count, NULL));
        cost_barrier(rank);
    }
    cost->entries = cost_entries(rank, &rank->sides[0]);
}

static void cost_start_drop(cost_rank_t *rank, cost_start_t *cost)
{
    int lane;

    for (lane = 0; lane < COST_NUM_LANES; ++lane) {
        cost_ops_free(rank, &rank->sides[lane], cost->ops[lane],
                      rank->num_ops);
        free(cost->ops[lane]);
    }
    (void)sem_destroy(&cost->gate);
    free(cost->buffers);
}

void cost_start_open(cost_rank_t *rank)
{
    unsigned count = (unsigned)rank->num_ops;

    rank->fab = trig_fab_open(&rank->me, rank->provider);
    rank->uct = trig_uct_open(&rank->me, rank->provider);
    /* The first post makes the counters */
    (void)trig_fab_post(rank->fab, COST_LENGTH, count);
    cost_start_fire(rank, trig_fab_fire, rank->fab);
    (void)trig_uct_post(rank->uct, COST_LENGTH, count);
    cost_start_fire(rank, trig_uct_fire, rank->uct);
}

void cost_start_close(cost_rank_t *rank)
{
    trig_uct_close(rank->uct);
    trig_barrier(&rank->me);
    trig_fab_close(rank->fab);
}

void cost_start_run(cost_rank_t *rank)
{
    static cost_start_t cost;
    int trial;

    cost_start_make(rank, &cost);
    /* The first trials warm up */
    for (trial = -2; trial < rank->trials; ++trial) {
        cost_start_trial(rank, &cost, trial);
    }
    cost_start_report(rank, &cost);
    cost_start_drop(rank, &cost);
}
