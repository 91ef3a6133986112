/* SPDX-License-Identifier: BSD-3-Clause */
/* cost_side.c - workers of st_cost, and the operations on them. */
#include "cost.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COST_TIME_S  60 /* For what takes milliseconds */
#define COST_CALM_US 20000


const char *const cost_lanes[COST_NUM_LANES] = {"trig", "host"};

void cost_must(cost_rank_t *rank, const char *what, ucs_status_t status)
{
    trig_need(&rank->me, what, status);
}

static void cost_progress(cost_rank_t *rank)
{
    int i;

    for (i = 0; i < COST_NUM_LANES; ++i) {
        if (rank->sides[i].worker != NULL) {
            ucp_st_worker_progress(rank->sides[i].worker);
        }
    }
}

void cost_barrier(cost_rank_t *rank)
{
    uint32_t step  = trig_arrive(&rank->me);
    unsigned turns = 0;

    while (!trig_is_met(&rank->me, step)) {
        cost_progress(rank);
        trig_turn(&rank->me, &turns);
    }
}

void cost_calm(cost_rank_t *rank)
{
    double until = trig_now() + COST_CALM_US;

    cost_barrier(rank);
    while (trig_now() < until) {
        cost_progress(rank);
        sched_yield();
    }
    cost_barrier(rank);
}

static void cost_side_meet(cost_rank_t *rank, cost_side_t *side)
{
    cost_page_t *page = rank->page;
    int mine          = rank->me.rank;
    void *address;
    size_t length;

    cost_must(rank, "ucp_st_worker_get_address",
              ucp_st_worker_get_address(side->worker, &address, &length));
    if (length > COST_MAX_ADDRESS) {
        trig_give_up(&rank->me, "to fit the address in", 0);
    }
    memcpy(page->address[mine], address, length);
    page->length[mine] = length;
    ucp_st_worker_release_address(side->worker, address);
    cost_barrier(rank);
    cost_must(rank, "ucp_st_peer_create",
              ucp_st_peer_create(side->worker, page->address[!mine],
                                 page->length[!mine], &side->peer));
    cost_barrier(rank);
}

void cost_side_open(cost_rank_t *rank, cost_side_t *side, const char *lanes)
{
    ucp_st_worker_params_t worker_params = {.field_mask = 0};
    ucs_gstream_params_t stream_params   = {.field_mask = 0};
    ucp_st_queue_params_t queue_params   = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
    };

    if (setenv("UCX_ST_LANES", lanes, 1) != 0) {
        trig_give_up(&rank->me, "setenv", 0);
    }
    cost_must(rank, "ucp_st_worker_create",
              ucp_st_worker_create(&worker_params, &side->worker));
    cost_side_meet(rank, side);
    cost_must(rank, "ucs_gstream_create",
              ucs_gstream_create(&stream_params, &side->stream));
    queue_params.stream = side->stream;
    cost_must(rank, "ucp_st_queue_create",
              ucp_st_queue_create(side->worker, &queue_params, &side->queue));
}

void cost_side_close(cost_rank_t *rank, cost_side_t *side)
{
    cost_must(rank, "ucp_st_queue_destroy", ucp_st_queue_destroy(side->queue));
    cost_must(rank, "ucs_gstream_synchronize",
              ucs_gstream_synchronize(side->stream));
    cost_must(rank, "ucs_gstream_destroy", ucs_gstream_destroy(side->stream));
    ucp_st_peer_destroy(side->peer);
    cost_barrier(rank);
    cost_must(rank, "ucp_st_worker_destroy",
              ucp_st_worker_destroy(side->worker));
    side->worker = NULL;
    trig_barrier(&rank->me);
}

ucp_st_op_h cost_op_init(cost_rank_t *rank, cost_side_t *side, void *buffer,
                         uint64_t tag)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG,
        .buffer     = buffer,
        .length     = COST_LENGTH,
        .peer       = side->peer,
        .tag        = tag
    };
    ucp_st_op_h op;

    if (rank->me.rank == 0) {
        cost_must(rank, "ucp_st_send_init",
                  ucp_st_send_init(side->worker, &params, &op));
    } else {
        cost_must(rank, "ucp_st_recv_init",
                  ucp_st_recv_init(side->worker, &params, &op));
    }
    return op;
}

static void cost_stats_get(cost_rank_t *rank, cost_side_t *side,
                           ucp_st_stats_t *stats)
{
    ucp_st_worker_attr_t attr;

    cost_must(rank, "ucp_st_worker_query",
              ucp_st_worker_query(side->worker, &attr));
    *stats = attr.stats;
}

uint64_t cost_entries(cost_rank_t *rank, cost_side_t *side)
{
    ucp_st_stats_t stats;

    cost_stats_get(rank, side, &stats);
    return stats.entries;
}

void cost_settle(cost_rank_t *rank, cost_side_t *side, uint64_t entries)
{
    double limit   = trig_now() + (COST_TIME_S * 1e6);
    unsigned turns = 0;
    ucp_st_stats_t stats;

    for (;;) {
        cost_progress(rank);
        cost_stats_get(rank, side, &stats);
        if ((stats.freed == 0) && (stats.entries <= entries)) {
            break;
        }
        if (trig_now() > limit) {
            trig_give_up(&rank->me, "to come to rest", 0);
        }
        trig_turn(&rank->me, &turns);
    }
    cost_barrier(rank);
}

void cost_ops_free(cost_rank_t *rank, cost_side_t *side, ucp_st_op_h *ops,
                   size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        cost_must(rank, "ucp_st_op_free", ucp_st_op_free(ops[i]));
    }
    cost_settle(rank, side, UINT64_MAX);
}

cost_row_t *cost_row_add(cost_rank_t *rank, const char *what, const char *lane,
                         size_t size)
{
    cost_row_t *row = &rank->rows[rank->num_rows];

    if (rank->num_rows >= COST_MAX_ROWS) {
        trig_give_up(&rank->me, "to fit the rows in", 0);
    }
    ++rank->num_rows;
    memset(row, 0, sizeof(*row));
    snprintf(row->variant, sizeof(row->variant), "%s-%s", what, lane);
    row->size = size;
    return row;
}

void cost_row_sample(cost_row_t *row, double us)
{
    if (row->num_samples < COST_MAX_TRIALS) {
        row->samples[row->num_samples++] = us;
    }
}

double cost_row_median(cost_row_t *row)
{
    st_report_stats_t stats = {.median = 0};

    if (row->num_samples > 0) {
        st_report_stats_get(row->samples, row->num_samples, &stats);
    }
    return stats.median;
}
