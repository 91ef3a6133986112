/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_lane.h - what a data lane does for an operation. Nothing above this table
 * knows which lane carries it.
 */
#ifndef UCP_ST_LANE_H_
#define UCP_ST_LANE_H_

#include "st_op.h"

/** All functions are called with the worker's lock held. */
typedef struct ucp_st_lane_ops {
    const char    *name;
    ucp_st_lane_t id;

    /** Get all that one use needs, and describe it to the peer in `region`.
     *  Nothing is held on error. */
    ucs_status_t (*offer)(ucp_st_op_t *op, ucp_st_trig_region_t *region);

    /** The pair is matched: learn where the peer's region is. */
    ucs_status_t (*bind)(ucp_st_op_t *op, const ucp_st_trig_region_t *region);

    /** A receive whose send has 0 bytes: offer a region beside the buffer. */
    ucs_status_t (*rekey)(ucp_st_op_t *op, ucp_st_trig_region_t *region);

    /** Give the NIC what use k = `uses` and those before it need. UCS_OK also
     *  if entries are short: the rest is given as soon as there are some. */
    ucs_status_t (*post)(ucp_st_op_t *op, uint64_t uses);

    /** Stream command that starts use number `use`. */
    void (*start_cmd)(ucp_st_op_t *op, uint64_t use, ucs_gstream_cmd_t *cmd);

    /** Stream command that waits for use number `use`. */
    void (*wait_cmd)(ucp_st_op_t *op, uint64_t use, ucs_gstream_cmd_t *cmd);

    /** Uses whose waits pass; 0 once they were released. */
    uint64_t (*uses_done)(const ucp_st_op_t *op);

    /** Let all waits pass, now and later; may be called again. */
    void (*release_waits)(ucp_st_op_t *op);

    /** The peer must not reach this side any more. */
    void (*revoke)(ucp_st_op_t *op);

    /** The peer cannot be reached any more: get rid of what still waits to. */
    void (*dispose)(ucp_st_op_t *op);

    /** Non-zero while the NIC holds something of this operation. */
    int (*is_busy)(const ucp_st_op_t *op);

    /** Give back all that offer() got. The operation is not busy. */
    void (*release)(ucp_st_op_t *op);
} ucp_st_lane_ops_t;

extern const ucp_st_lane_ops_t ucp_st_trig_lane_ops;

#endif
