/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_lane.c - the lanes of a worker.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_lane.h"
#include "st_log.h"
#include "st_worker.h"

#include <stdlib.h>
#include <string.h>

static const ucp_st_lane_ops_t *const ucp_st_lane_table[UCP_ST_LANE_LAST] = {
    [UCP_ST_LANE_TRIG]   = &ucp_st_trig_lane_ops,
    [UCP_ST_LANE_HOST]   = &ucp_st_host_lane_ops,
    [UCP_ST_LANE_DIRECT] = &ucp_st_direct_lane_ops
};

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

const char *ucp_st_lane_names(void)
{
    return "direct, trig, host";
}

/* The last one that is left must serve; one that was named should */
static void ucp_st_lane_set_log_level(ucp_st_worker_h worker, int is_last)
{
    if (is_last && (worker->num_lanes == 0)) {
        worker->lane_log_level = UCS_LOG_LEVEL_ERROR;
    } else if (getenv("UCX_ST_LANES") != NULL) {
        worker->lane_log_level = UCS_LOG_LEVEL_WARN;
    } else {
        worker->lane_log_level = UCS_LOG_LEVEL_DIAG;
    }
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
        ucp_st_lane_set_log_level(worker, i == (names->count - 1));
        status = ucp_st_config_check_lane(worker, lane->id);
        if (status == UCS_OK) {
            status = lane->open(worker);
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
        worker->lanes[--worker->num_lanes]->close(worker);
    }
}

void ucp_st_lanes_progress_all(ucp_st_worker_h worker)
{
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        while (worker->lanes[i]->progress(worker) > 0) {
            /* finite: nothing new is started here */
        }
    }
}

void ucp_st_lanes_poll(ucp_st_worker_h worker)
{
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        worker->lanes[i]->poll(worker);
    }
}

void ucp_st_lanes_revoke(ucp_st_op_t *op)
{
    ucp_st_worker_h worker = op->worker;
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        if (op->offered & UCS_BIT(worker->lanes[i]->id)) {
            worker->lanes[i]->revoke(op);
        }
    }
}

ucs_status_t ucp_st_lanes_flush(ucp_st_worker_h worker)
{
    ucs_status_t result = UCS_OK;
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        if ((worker->lanes[i]->flush != NULL) &&
            (worker->lanes[i]->flush(worker) != UCS_OK)) {
            result = UCS_INPROGRESS;
        }
    }
    return result;
}

int ucp_st_lanes_are_busy(const ucp_st_op_t *op)
{
    ucp_st_worker_h worker = op->worker;
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        if ((op->offered & UCS_BIT(worker->lanes[i]->id)) &&
            worker->lanes[i]->is_busy(op)) {
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
            worker->lanes[i]->release(op);
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
            worker->lanes[i]->check(peer);
        }
    }
}
