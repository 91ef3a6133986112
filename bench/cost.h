/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost.h - what the parts of st_cost share: two processes in lock step, each
 * with an st worker for each lane, and the rows of the report.
 *
 * Rank 0 sends and rank 1 receives. Main thread only.
 */
#ifndef COST_H_
#define COST_H_

#include "trig_bench.h"
#include "trig_uct.h"

#include <st_report.h>
#include <ucp_st.h>

#define COST_MAX_ADDRESS 16384
#define COST_MAX_VALUES  8
#define COST_MAX_ROWS    64
#define COST_MAX_TRIALS  101
#define COST_MAX_COUNTS  4096
#define COST_LENGTH      64   /* Of a message, bytes */
#define COST_NUM_LANES   2


/** Memory that both have from the start. */
typedef struct cost_page {
    trig_page_t trig;
    uint8_t     address[2][COST_MAX_ADDRESS];
    size_t      length[2];
    double      value[2][COST_MAX_VALUES]; /**< What each rank measured */
    char        counts[COST_NUM_LANES][2][COST_MAX_COUNTS]; /**< See
                                                        st_counts.h */
} cost_page_t;


/** A worker with one queue, for one setting of UCX_ST_LANES. */
typedef struct cost_side {
    ucp_st_worker_h worker; /**< NULL: not open */
    ucp_st_peer_h   peer;
    ucs_gstream_h   stream;
    ucp_st_queue_h  queue;
} cost_side_t;


/** A line of the report; of rank 0. */
typedef struct cost_row {
    char   variant[32];
    size_t size;
    double samples[COST_MAX_TRIALS]; /**< Microseconds */
    int    num_samples;
    double ratio;     /**< 0: none */
    char   more[256]; /**< Of the JSON; see st_report_row_t */
    char   note[256]; /**< Of the table */
} cost_row_t;


/** A process. */
typedef struct cost_rank {
    trig_rank_t me;
    cost_page_t *page;
    cost_side_t sides[COST_NUM_LANES];
    trig_fab_t  *fab; /**< Of the provider's own calls */
    trig_uct_t  *uct;
    const char  *provider;
    int         trials;
    size_t      max_pairs;
    size_t      num_ops;   /**< Operations that are started in turn */
    double      idle_s;
    cost_row_t  rows[COST_MAX_ROWS];
    int         num_rows;
} cost_rank_t;

extern const char *const cost_lanes[COST_NUM_LANES];


/** Gives up unless the status is UCS_OK. */
void cost_must(cost_rank_t *rank, const char *what, ucs_status_t status);

/** As trig_barrier(), with progress of all workers. */
void cost_barrier(cost_rank_t *rank);

/** The same, and lets messages of the library arrive, which hold memory. */
void cost_calm(cost_rank_t *rank);

/** Opens a worker on these lanes, its peer, stream and queue. Both ranks. */
void cost_side_open(cost_rank_t *rank, cost_side_t *side, const char *lanes);

/** Closes it. Both ranks. */
void cost_side_close(cost_rank_t *rank, cost_side_t *side);

/** Makes this rank's half of a pair, of COST_LENGTH bytes. */
ucp_st_op_h cost_op_init(cost_rank_t *rank, cost_side_t *side, void *buffer,
                         uint64_t tag);

/** Frees operations and waits until nothing is left of them. Both ranks. */
void cost_ops_free(cost_rank_t *rank, cost_side_t *side, ucp_st_op_h *ops,
                   size_t count);

/** Entries of the card that a side has posted or reserved now. */
uint64_t cost_entries(cost_rank_t *rank, cost_side_t *side);

/** Waits until a side has no more of them than so many. Both ranks. */
void cost_settle(cost_rank_t *rank, cost_side_t *side, uint64_t entries);

/** A new row; gives up if there are too many. */
cost_row_t *cost_row_add(cost_rank_t *rank, const char *what, const char *lane,
                         size_t size);

/** Adds one sample. */
void cost_row_sample(cost_row_t *row, double us);

/** Median of what the row has. */
double cost_row_median(cost_row_t *row);

/** Opens what makes the provider's own calls and uct_trig's, with the counters
 *  that they need: before pairs are matched until the card has none left. */
void cost_start_open(cost_rank_t *rank);

/** Closes it. Both ranks. */
void cost_start_close(cost_rank_t *rank);

/** The three parts; each adds its rows. Both ranks. */
void cost_idle_run(cost_rank_t *rank);
void cost_match_run(cost_rank_t *rank);
void cost_start_run(cost_rank_t *rank);

#endif
