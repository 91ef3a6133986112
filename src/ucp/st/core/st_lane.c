/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_lane.c - the lanes of a worker.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_worker.h"

#include <stdlib.h>
#include <string.h>

/* Calls of progress() in a row: enough for all that a NIC's queues hold. What
 * comes meanwhile, as a third peer may go on for ever, is for the next time. */
#define UCP_ST_LANE_MAX_ROUNDS 256

const ucp_st_lane_ops_t *ucp_st_lane_get(ucp_st_lane_t id)
{
    return ((unsigned)id < UCP_ST_LANE_LAST) ? ucp_st_lane_table[id] : NULL;
}

const ucp_st_lane_ops_t *ucp_st_lane_find(const char *name)
{
    unsigned i;

    for (i = 0; i < UCP_ST_LANE_LAST; ++i) {
        if ((ucp_st_lane_table[i] != NULL) &&
            !strcmp(ucp_st_lane_table[i]->name, name)) {
            return ucp_st_lane_table[i];
        }
    }
    return NULL;
}

ucs_status_t ucp_st_lane_no_post(ucp_st_op_t *op, uint64_t use)
{
    (void)op;
    (void)use;
    return UCS_OK;
}

size_t ucp_st_lane_no_land(ucp_st_op_t *op, ucs_gstream_cmd_t *cmds)
{
    (void)op;
    (void)cmds;
    return 0;
}

void ucp_st_lane_no_op(ucp_st_op_t *op)
{
    (void)op;
}

void ucp_st_lane_no_leave_queue(ucp_st_op_t *op, ucp_st_queue_h queue)
{
    (void)op;
    (void)queue;
}

ucs_status_t ucp_st_lanes_open(ucp_st_worker_h worker)
{
    const ucs_config_names_array_t *names = &worker->config.lanes;
    ucs_status_t result                   = UCS_OK;
    const ucp_st_lane_ops_t *lane;
    ucs_status_t status;
    unsigned i;

    ucp_st_lane_skip_unnamed(worker);
    for (i = 0; i < names->count; ++i) {
        lane = ucp_st_lane_find(names->names[i]);
        /* The last one that is left must serve; one that was named should */
        if ((i == (names->count - 1)) && (worker->num_lanes == 0)) {
            worker->lane_log_level = UCS_LOG_LEVEL_ERROR;
        } else if (getenv("UCX_ST_LANES") != NULL) {
            worker->lane_log_level = UCS_LOG_LEVEL_WARN;
        } else {
            worker->lane_log_level = UCS_LOG_LEVEL_DIAG;
        }
        status = ucp_st_config_check_lane(worker, lane->id);
        if (status == UCS_OK) {
            status = lane->worker.open(worker);
        }
        if (status == UCS_OK) {
            worker->lanes[worker->num_lanes++] = lane;
        } else if (status == UCS_ERR_INVALID_PARAM) {
            /* A setting is wrong: another lane would hide that */
            ucp_st_lanes_close(worker);
            return status;
        } else if (result == UCS_OK) {
            result = status;
        }
        ucp_st_lane_failed(worker, lane->id, status);
    }
    return (worker->num_lanes > 0) ? UCS_OK : result;
}

void ucp_st_lanes_close(ucp_st_worker_h worker)
{
    while (worker->num_lanes > 0) {
        worker->lanes[--worker->num_lanes]->worker.close(worker);
    }
}

void ucp_st_lanes_progress_all(ucp_st_worker_h worker)
{
    unsigned i, rounds;

    for (i = 0; i < worker->num_lanes; ++i) {
        for (rounds = 0; rounds < UCP_ST_LANE_MAX_ROUNDS; ++rounds) {
            if (worker->lanes[i]->worker.progress(worker) == 0) {
                break;
            }
        }
    }
}

void ucp_st_lanes_poll(ucp_st_worker_h worker)
{
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        worker->lanes[i]->worker.poll(worker);
    }
}

void ucp_st_lanes_revoke(ucp_st_op_t *op)
{
    ucp_st_worker_h worker = op->worker;
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        if (op->offered & UCS_BIT(worker->lanes[i]->id)) {
            worker->lanes[i]->op.revoke(op);
        }
    }
}

int ucp_st_lanes_are_busy(const ucp_st_op_t *op)
{
    ucp_st_worker_h worker = op->worker;
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        if ((op->offered & UCS_BIT(worker->lanes[i]->id)) &&
            worker->lanes[i]->op.is_busy(op)) {
            return 1;
        }
    }
    return 0;
}

void ucp_st_lanes_release(ucp_st_op_t *op, unsigned keep)
{
    ucp_st_worker_h worker = op->worker;
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        if (op->offered & ~keep & UCS_BIT(worker->lanes[i]->id)) {
            worker->lanes[i]->op.release(op);
        }
    }
    op->offered &= keep;
}

void ucp_st_lanes_check(ucp_st_peer_t *peer)
{
    ucp_st_worker_h worker = peer->worker;
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        if (peer->lanes & UCS_BIT(worker->lanes[i]->id)) {
            worker->lanes[i]->peer.check(peer);
        }
    }
}
