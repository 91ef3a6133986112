/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_trace.c - events of one-sided operations.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma.h"
#include "core/st_lane.h"
#include "core/st_trace.h"

/* Arguments of an operation's events: peer, bytes, and name of the lane */
#define UCP_ST_RMA_TRACE(_name) \
    {_name, "start", UCS_TRACE_SPAN, UCS_TRACE_FLOW_NONE, \
     {{"peer", UCS_TRACE_VALUE_HEX}, {"bytes", UCS_TRACE_VALUE_NUMBER}, \
      {"lane", UCS_TRACE_VALUE_TEXT}}}

static const ucs_trace_kind_t ucp_st_rma_trace_put = UCP_ST_RMA_TRACE("put");
static const ucs_trace_kind_t ucp_st_rma_trace_put_signal =
        UCP_ST_RMA_TRACE("put signal");
static const ucs_trace_kind_t ucp_st_rma_trace_signal =
        UCP_ST_RMA_TRACE("signal");
static const ucs_trace_kind_t ucp_st_rma_trace_get = UCP_ST_RMA_TRACE("get");
static const ucs_trace_kind_t ucp_st_rma_trace_add = UCP_ST_RMA_TRACE("add");

static void ucp_st_rma_trace_func(void *arg)
{
    void *const *items      = arg;
    const uint64_t values[] = {(uintptr_t)items[1], (uintptr_t)items[2],
                               (uintptr_t)items[3]};

    ucs_trace_pop(items[0], 0, values);
}

size_t ucp_st_rma_trace_cmd(const ucp_st_rma_t *rma, ucp_st_lane_t lane,
                            ucs_gstream_cmd_t *cmd)
{
    const ucs_trace_kind_t *kind =
            (rma->type == UCP_ST_RMA_GET) ? &ucp_st_rma_trace_get :
            (rma->type == UCP_ST_RMA_ADD) ? &ucp_st_rma_trace_add :
            (rma->signal == NULL)         ? &ucp_st_rma_trace_put :
            (rma->length > 0)             ? &ucp_st_rma_trace_put_signal :
                                            &ucp_st_rma_trace_signal;
    void *const items[]          = {
        (void*)kind,
        (void*)(uintptr_t)rma->peer->uuid,
        (void*)rma->length,
        (void*)ucp_st_lane_table[lane]->name
    };

    return ucs_trace_is_on() ?
           ucp_st_queue_add_launch(rma->queue, ucp_st_rma_trace_func, items, 4,
                                   cmd) : 0;
}
