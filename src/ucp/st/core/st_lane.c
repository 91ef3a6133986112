/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_lane.c - the lanes of a worker, and why it has not all of them.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_stage.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls of progress() in a row: enough for all that a NIC's queues hold.
 * Completions that come meanwhile are left for the next time, as a third peer
 * may send for ever. */
#define UCP_ST_LANE_MAX_ROUNDS 256

static const ucp_st_lane_ops_t *ucp_st_lane_find(const char *name)
{
    unsigned id;

    for (id = UCP_ST_LANE_NONE + 1; id < UCP_ST_LANE_LAST; ++id) {
        if (!strcmp(ucp_st_lane_table[id]->name, name)) {
            return ucp_st_lane_table[id];
        }
    }
    return NULL;
}

ucs_status_t ucp_st_lane_no_post(ucp_st_op_t *op, uint64_t use)
{
    return UCS_OK;
}

size_t ucp_st_lane_no_pages(ucp_st_op_t *op, ucs_gstream_type_t type,
                            ucs_gstream_word_t *pages)
{
    return 0;
}

void ucp_st_lane_no_prepare(ucp_st_worker_h worker, ucs_gstream_type_t type)
{
}

size_t ucp_st_lane_no_land(ucp_st_op_t *op, ucs_gstream_cmd_t *cmds)
{
    return 0;
}

void ucp_st_lane_no_op(ucp_st_op_t *op)
{
}

int ucp_st_lane_no_reaching(const ucp_st_op_t *op)
{
    return 0;
}

int ucp_st_lane_reaches_host(const ucp_st_op_t *op)
{
    return !ucp_st_stage_is_device(&op->memory);
}

void ucp_st_lane_no_leave_queue(ucp_st_op_t *op, ucp_st_queue_h queue)
{
}

void ucp_st_lanes_attr_set(ucp_st_lanes_attr_t *attr, ucp_st_lane_t id,
                           const char *reason)
{
    ucp_st_lane_attr_t *lane;
    unsigned i;

    for (i = 0; (attr != NULL) && (i < attr->count); ++i) {
        lane = &attr->lanes[i];
        if (!lane->is_open && (lane->reason[0] == '\0') &&
            ((id == UCP_ST_LANE_NONE) || (id == lane->lane))) {
            snprintf(lane->reason, sizeof(lane->reason), "%s", reason);
        }
    }
}

void ucp_st_lane_refuse(ucp_st_worker_h worker, ucp_st_lane_t lane,
                        const char *format, ...)
{
    ucs_log_level_t level = (lane == UCP_ST_LANE_NONE) ?
                            UCS_LOG_LEVEL_ERROR : worker->lane_log_level;
    char reason[UCP_ST_REASON_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    ucs_log(level, "%s", reason);
    ucp_st_lanes_attr_set(worker->lanes_attr, lane, reason);
}

ucs_status_t ucp_st_lanes_check_names(ucp_st_worker_h worker)
{
    const ucs_config_names_array_t *names = &worker->config.lanes;
    unsigned named                        = 0;
    const ucp_st_lane_ops_t *lane;
    unsigned i;

    if (names->count == 0) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_NONE,
                           "UCX_ST_LANES is empty: no lane is left");
        return UCS_ERR_UNSUPPORTED;
    }
    for (i = 0; i < names->count; ++i) {
        lane = ucp_st_lane_find(names->names[i]);
        if (lane == NULL) {
            ucp_st_lane_refuse(worker, UCP_ST_LANE_NONE,
                               "UCX_ST_LANES: there is no lane '%s' (lanes: "
                               "%s)", names->names[i], ucp_st_lane_names);
            return UCS_ERR_INVALID_PARAM;
        }
        if (named & UCS_BIT(lane->id)) {
            ucp_st_lane_refuse(worker, UCP_ST_LANE_NONE,
                               "UCX_ST_LANES: lane '%s' is there twice",
                               lane->name);
            return UCS_ERR_INVALID_PARAM;
        }
        named |= UCS_BIT(lane->id);
    }
    for (i = UCP_ST_LANE_NONE + 1; i < UCP_ST_LANE_LAST; ++i) {
        if (!(named & UCS_BIT(i))) {
            ucp_st_lanes_attr_set(worker->lanes_attr, (ucp_st_lane_t)i,
                                  "UCX_ST_LANES does not name it");
        }
    }
    return UCS_OK;
}

ucs_status_t ucp_st_lanes_open(ucp_st_worker_h worker)
{
    const ucs_config_names_array_t *names = &worker->config.lanes;
    ucs_status_t result                   = UCS_OK;
    const ucp_st_lane_ops_t *lane;
    ucs_status_t status;
    unsigned i;

    worker->is_ordered = (getenv("UCX_ST_LANES") != NULL);
    for (i = 0; i < names->count; ++i) {
        lane = ucp_st_lane_find(names->names[i]);
        /* The last lane must open if no other has; one that the user has named
         * should */
        if ((i == (names->count - 1)) && (worker->num_lanes == 0)) {
            worker->lane_log_level = UCS_LOG_LEVEL_ERROR;
        } else if (worker->is_ordered) {
            worker->lane_log_level = UCS_LOG_LEVEL_WARN;
        } else {
            worker->lane_log_level = UCS_LOG_LEVEL_DIAG;
        }
        status = lane->worker.open(worker);
        if (status == UCS_OK) {
            worker->lanes[worker->num_lanes++] = lane;
            continue;
        }
        if (status == UCS_ERR_INVALID_PARAM) {
            /* A setting is wrong: another lane would hide that */
            ucp_st_lanes_close(worker);
            return status;
        }
        ucp_st_lanes_attr_set(worker->lanes_attr, lane->id,
                              ucs_status_string(status));
        result = (result == UCS_OK) ? status : result;
    }
    return (worker->num_lanes > 0) ? UCS_OK : result;
}

uint64_t ucp_st_lanes_stream_types(ucp_st_worker_h worker)
{
    uint64_t types = worker->stream_types;
    unsigned type;

    for (type = 0; (worker->stream_types == 0) &&
                   (type < UCS_GSTREAM_TYPE_LAST); ++type) {
        if (worker->num_queues[type] > 0) {
            types |= UCS_BIT(type);
        }
    }
    return (types != 0) ? types : UCS_BIT(UCS_GSTREAM_TYPE_HOST);
}

static int ucp_st_lane_serves_all(ucp_st_worker_h worker,
                                  const ucp_st_lane_ops_t *lane, uint64_t types)
{
    unsigned type;

    ucs_for_each_bit(type, types) {
        if (!lane->worker.serves(worker, (ucs_gstream_type_t)type)) {
            return 0;
        }
    }
    return 1;
}

void ucp_st_lanes_order(ucp_st_op_t *op)
{
    ucp_st_worker_h worker = op->worker;
    uint64_t types         = ucp_st_lanes_stream_types(worker);
    unsigned num_left      = 0;
    unsigned count         = 0;
    uint8_t left[UCP_ST_PROTO_MAX_LANES];
    const ucp_st_lane_ops_t *lane;
    unsigned i;

    memset(op->lane_order, 0, sizeof(op->lane_order));
    for (i = 0; i < worker->num_lanes; ++i) {
        lane = worker->lanes[i];
        if (!(op->peer->lanes & UCS_BIT(lane->id))) {
            continue;
        }
        if (worker->is_ordered || ucp_st_lane_serves_all(worker, lane, types)) {
            op->lane_order[count++] = lane->id;
        } else {
            left[num_left++] = lane->id;
        }
    }
    memcpy(&op->lane_order[count], left, num_left);
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

void ucp_st_lanes_cancel(ucp_st_worker_h worker)
{
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        worker->lanes[i]->worker.cancel(worker);
    }
}

void ucp_st_lanes_prepare_type(ucp_st_worker_h worker, ucs_gstream_type_t type)
{
    unsigned i;

    if (ucs_gstream_type_caps(type) & UCS_GSTREAM_CAP_CHEAP) {
        return;
    }
    for (i = 0; i < worker->num_lanes; ++i) {
        worker->lanes[i]->worker.prepare(worker, type);
    }
}

void ucp_st_lanes_prepare(ucp_st_op_t *op)
{
    unsigned i;

    for (i = 0; i < op->worker->num_lanes; ++i) {
        op->worker->lanes[i]->op.prepare(op);
    }
}

void ucp_st_lanes_revoke(ucp_st_op_t *op)
{
    unsigned id;

    ucs_for_each_bit(id, op->offered) {
        ucp_st_lane_table[id]->op.revoke(op);
    }
}

int ucp_st_lanes_are_busy(const ucp_st_op_t *op)
{
    unsigned id;

    ucs_for_each_bit(id, op->offered) {
        if (ucp_st_lane_table[id]->op.is_busy(op)) {
            return 1;
        }
    }
    return 0;
}

void ucp_st_lanes_release(ucp_st_op_t *op, unsigned keep)
{
    unsigned id;

    ucs_for_each_bit(id, op->offered & ~keep) {
        ucp_st_lane_table[id]->op.release(op);
    }
    op->offered &= keep;
}
