/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_component.c - objects with private data of components and lanes.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_component.h"
#include "core/st_lane.h"

#include <ucs/sys/math.h>

#include <stdlib.h>

/* Alignment of private data, bytes: enough for any type */
#define UCP_ST_OBJECT_ALIGN 16

static size_t ucp_st_object_align(size_t size)
{
    return ucs_div_round_up(size, UCP_ST_OBJECT_ALIGN) * UCP_ST_OBJECT_ALIGN;
}

void *ucp_st_object_alloc(ucp_st_object_t object, size_t size,
                          size_t priv_offset)
{
    size_t offsets[UCP_ST_PRIV_LAST] = {0};
    size_t total = ucp_st_object_align(size);
    const ucp_st_component_t *component;
    void **priv, *result;
    unsigned i;

    ucp_st_for_each_component(component) {
        offsets[component->priv] = total;
        total += ucp_st_object_align(component->sizes[object]);
    }
    for (i = UCP_ST_LANE_NONE + 1; i < UCP_ST_LANE_LAST; ++i) {
        offsets[UCP_ST_PRIV_LANES + i] = total;
        total += ucp_st_object_align(ucp_st_lane_table[i]->sizes[object]);
    }
    result = calloc(1, total);
    if (result != NULL) {
        priv = UCS_PTR_BYTE_OFFSET(result, priv_offset);
        for (i = 0; i < UCP_ST_PRIV_LAST; ++i) {
            priv[i] = UCS_PTR_BYTE_OFFSET(result, offsets[i]);
        }
    }
    return result;
}

void ucp_st_worker_hook_none(ucp_st_worker_h worker)
{
}

ucs_status_t ucp_st_worker_hook_ok(ucp_st_worker_h worker)
{
    return UCS_OK;
}

void ucp_st_worker_hook_waits(ucp_st_worker_h worker,
                              struct ucp_st_waits *waits)
{
}

void ucp_st_peer_hook_none(ucp_st_peer_h peer)
{
}

int ucp_st_peer_hook_zero(ucp_st_peer_h peer)
{
    return 0;
}

void ucp_st_peer_hook_fifo(ucp_st_peer_h peer,
                           const struct ucp_st_ctrl_fifo *msg)
{
}

void ucp_st_queue_hook_none(ucp_st_queue_h queue)
{
}

int ucp_st_queue_hook_zero(ucp_st_queue_h queue)
{
    return 0;
}

void ucp_st_queue_hook_count(ucp_st_queue_h queue, ucp_st_stats_t *stats)
{
}
