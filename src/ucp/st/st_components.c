/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_components.c - the components and lanes that the library is made of: the
 * one place that knows them all.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_component.h"
#include "core/st_lane.h"
#include "core/st_watch.h"
#include "ctrl/st_ctrl.h"
#include "direct/st_direct.h"
#include "host/st_host.h"
#include "rma/st_rma.h"
#include "tag/st_batch.h"
#include "tag/st_fifo.h"
#include "trig/st_trig.h"

/* What is before ctrl adds to its UCP worker, which it serves from then on */
const ucp_st_component_t *const ucp_st_components[UCP_ST_NUM_COMPONENTS] = {
    &ucp_st_rma_component,
    &ucp_st_tag_component,
    &ucp_st_fifo_component,
    &ucp_st_ctrl_component,
    &ucp_st_watch_component
};

const ucp_st_lane_ops_t *const ucp_st_lane_table[UCP_ST_LANE_LAST] = {
    [UCP_ST_LANE_TRIG]   = &ucp_st_trig_lane,
    [UCP_ST_LANE_HOST]   = &ucp_st_host_lane,
    [UCP_ST_LANE_DIRECT] = &ucp_st_direct_lane
};

const char ucp_st_lane_names[] = "direct, trig, host";
