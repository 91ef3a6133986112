/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_lane_attr.c - why a worker has not all lanes.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_lane_attr.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of a lane, or of all for none; the first reason stays */
static void ucp_st_lanes_attr_set(ucp_st_lanes_attr_t *attr, ucp_st_lane_t id,
                                  const char *reason)
{
    ucp_st_lane_attr_t *lane;
    unsigned i;

    for (i = 0; i < attr->count; ++i) {
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
    if (worker->lanes_attr != NULL) {
        ucp_st_lanes_attr_set(worker->lanes_attr, lane, reason);
    }
}

static int ucp_st_lane_is_named(ucp_st_worker_h worker, const char *name)
{
    const ucs_config_names_array_t *names = &worker->config.lanes;
    unsigned i;

    for (i = 0; i < names->count; ++i) {
        if (!strcmp(names->names[i], name)) {
            return 1;
        }
    }
    return 0;
}

void ucp_st_lane_skip_unnamed(ucp_st_worker_h worker)
{
    ucp_st_lanes_attr_t *attr = worker->lanes_attr;
    unsigned i;

    for (i = 0; (attr != NULL) && (i < attr->count); ++i) {
        if (!ucp_st_lane_is_named(worker, attr->lanes[i].name)) {
            ucp_st_lanes_attr_set(attr, attr->lanes[i].lane,
                                  "UCX_ST_LANES does not name it");
        }
    }
}

void ucp_st_lane_failed(ucp_st_worker_h worker, ucp_st_lane_t lane,
                        ucs_status_t status)
{
    if ((worker->lanes_attr != NULL) && (status != UCS_OK)) {
        ucp_st_lanes_attr_set(worker->lanes_attr, lane,
                              ucs_status_string(status));
    }
}

void ucp_st_lanes_attr_init(ucp_st_lanes_attr_t *attr)
{
    const ucp_st_lane_ops_t *ops;
    ucp_st_lane_attr_t *lane;
    unsigned id;

    memset(attr, 0, sizeof(*attr));
    for (id = 0; id < UCP_ST_LANE_LAST; ++id) {
        ops = ucp_st_lane_get((ucp_st_lane_t)id);
        if (ops != NULL) {
            lane       = &attr->lanes[attr->count++];
            lane->lane = ops->id;
            snprintf(lane->name, sizeof(lane->name), "%s", ops->name);
        }
    }
}

void ucp_st_lanes_attr_fill(ucp_st_worker_h worker, ucp_st_lanes_attr_t *attr)
{
    unsigned i, j;

    for (i = 0; i < attr->count; ++i) {
        for (j = 0; j < worker->num_lanes; ++j) {
            attr->lanes[i].is_open |= (worker->lanes[j]->id ==
                                       attr->lanes[i].lane);
        }
    }
}

void ucp_st_lanes_attr_fail(ucs_status_t status, ucp_st_lanes_attr_t *attr)
{
    ucp_st_lanes_attr_set(attr, UCP_ST_LANE_NONE, ucs_status_string(status));
}
