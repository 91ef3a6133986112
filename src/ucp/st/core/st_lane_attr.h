/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_lane_attr.h - why a worker has not all lanes: logged, and told by
 * ucp_st_lanes_query().
 */
#ifndef UCP_ST_LANE_ATTR_H_
#define UCP_ST_LANE_ATTR_H_

#include <ucp_st.h>

#include <ucs/sys/compiler_def.h>

/** Say why a lane cannot be opened: an error if nothing is left without it.
 *  UCP_ST_LANE_NONE: why no lane can be, an error. */
void ucp_st_lane_refuse(ucp_st_worker_h worker, ucp_st_lane_t lane,
                        const char *format, ...) UCS_F_PRINTF(3, 4);

/** Before lanes are opened: UCX_ST_LANES does not name all. */
void ucp_st_lane_skip_unnamed(ucp_st_worker_h worker);

/** A lane could not be opened; it may have said why. */
void ucp_st_lane_failed(ucp_st_worker_h worker, ucp_st_lane_t lane,
                        ucs_status_t status);

/** Begin to tell of all lanes. */
void ucp_st_lanes_attr_init(ucp_st_lanes_attr_t *attr);

/** The worker was made: tell of its lanes. */
void ucp_st_lanes_attr_fill(ucp_st_worker_h worker, ucp_st_lanes_attr_t *attr);

/** It could not be made: tell why of lanes that have no other reason. */
void ucp_st_lanes_attr_fail(ucs_status_t status, ucp_st_lanes_attr_t *attr);

#endif
