/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_component.c - objects with parts for components and lanes.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_component.h"
#include "core/st_lane.h"

#include <ucs/sys/math.h>

#include <stdlib.h>

/* Parts begin where any type may */
#define UCP_ST_OBJECT_ALIGN 16

static size_t ucp_st_object_align(size_t size)
{
    return ucs_div_round_up(size, UCP_ST_OBJECT_ALIGN) * UCP_ST_OBJECT_ALIGN;
}

/* Where each part is, from the begin of the object, and the bytes of it all */
static size_t ucp_st_object_plan(ucp_st_object_t object, size_t size,
                                 size_t offsets[UCP_ST_PART_LAST])
{
    size_t total = ucp_st_object_align(size);
    const ucp_st_component_t *component;
    const ucp_st_lane_ops_t *lane;
    unsigned id;

    ucp_st_for_each_component(component) {
        offsets[component->part] = total;
        total += ucp_st_object_align(component->sizes[object]);
    }
    for (id = 0; id < UCP_ST_LANE_LAST; ++id) {
        lane = ucp_st_lane_get((ucp_st_lane_t)id);
        if (lane != NULL) {
            offsets[UCP_ST_PART_LANES + id] = total;
            total += ucp_st_object_align(lane->sizes[object]);
        }
    }
    return total;
}

void *ucp_st_object_alloc(ucp_st_object_t object, size_t size,
                          size_t parts_offset)
{
    size_t offsets[UCP_ST_PART_LAST] = {0};
    size_t total                     = ucp_st_object_plan(object, size,
                                                          offsets);
    void *result                     = calloc(1, total);
    void **parts;
    unsigned i;

    if (result != NULL) {
        parts = UCS_PTR_BYTE_OFFSET(result, parts_offset);
        for (i = 0; i < UCP_ST_PART_LAST; ++i) {
            parts[i] = UCS_PTR_BYTE_OFFSET(result, offsets[i]);
        }
    }
    return result;
}

void ucp_st_worker_hook_none(ucp_st_worker_h worker)
{
    (void)worker;
}

ucs_status_t ucp_st_worker_hook_ok(ucp_st_worker_h worker)
{
    (void)worker;
    return UCS_OK;
}

void ucp_st_peer_hook_none(ucp_st_peer_h peer)
{
    (void)peer;
}

int ucp_st_peer_hook_zero(ucp_st_peer_h peer)
{
    (void)peer;
    return 0;
}

void ucp_st_queue_hook_none(ucp_st_queue_h queue)
{
    (void)queue;
}

int ucp_st_queue_hook_zero(ucp_st_queue_h queue)
{
    (void)queue;
    return 0;
}

void ucp_st_queue_hook_count(ucp_st_queue_h queue, ucp_st_stats_t *stats)
{
    (void)queue;
    (void)stats;
}

const ucp_st_queue_hooks_t ucp_st_queue_hooks_none = {
    .init    = ucp_st_queue_hook_none,
    .is_busy = ucp_st_queue_hook_zero,
    .fail    = ucp_st_queue_hook_none,
    .count   = ucp_st_queue_hook_count,
    .cleanup = ucp_st_queue_hook_none
};
