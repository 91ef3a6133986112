/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost_idle.c - what a process costs that has an open queue and a matched peer,
 * and does nothing.
 */
#include "cost.h"

#include <stdio.h>


/* One use, so that all that is made at first need is there */
static void cost_idle_use(cost_rank_t *rank, cost_side_t *side, ucp_st_op_h op)
{
    cost_must(rank, "ucp_st_match", ucp_st_match(op));
    cost_must(rank, "ucp_st_enqueue_start",
              ucp_st_enqueue_start(side->queue, op));
    cost_must(rank, "ucp_st_enqueue_wait",
              ucp_st_enqueue_wait(side->queue, op));
    cost_must(rank, "ucp_st_queue_wait", ucp_st_queue_wait(side->queue, NULL));
    cost_barrier(rank);
}

static void cost_idle_lanes(cost_rank_t *rank, const char *name,
                            const char *lanes)
{
    static uint8_t buffer[COST_LENGTH];
    cost_side_t *side = &rank->sides[0];
    const double *cpu = rank->page->trig.cpu;
    cost_row_t *row;
    ucp_st_op_h op;

    cost_side_open(rank, side, lanes);
    op = cost_op_init(rank, side, buffer, 0);
    cost_idle_use(rank, side, op);
    trig_idle(&rank->me, rank->idle_s);
    row = cost_row_add(rank, "idle", name, 0);
    cost_row_sample(row, cpu[0] * 1e6);
    cost_row_sample(row, cpu[1] * 1e6);
    snprintf(row->more, sizeof(row->more),
             ",\"percent_of_a_core\":[%.4f,%.4f]", 100 * cpu[0],
             100 * cpu[1]);
    snprintf(row->note, sizeof(row->note), "%.3f %% and %.3f %% of a core",
             100 * cpu[0], 100 * cpu[1]);
    cost_ops_free(rank, side, &op, 1);
    cost_side_close(rank, side);
}

void cost_idle_run(cost_rank_t *rank)
{
    cost_idle_lanes(rank, "trig", "trig");
    cost_idle_lanes(rank, "host", "host");
    cost_idle_lanes(rank, "both", "trig,host");
}
