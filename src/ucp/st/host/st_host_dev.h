/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_dev.h - what the host lane has once for a worker: operations with
 * something to do, which the service thread works on (st_svc.h).
 */
#ifndef UCP_ST_HOST_DEV_H_
#define UCP_ST_HOST_DEV_H_

#include "core/st_lane.h"
#include "core/st_stack.h"
#include "core/st_worker.h"

#include <ucs/datastruct/list.h>

struct ucp_st_host_msg;

/** Protected by the worker's lock but for what says otherwise. */
typedef struct ucp_st_host_dev {
    ucp_st_stack_t  begun; /* operations that streams have started; atomic */
    ucs_list_link_t work;  /* operations with something to do */
    ucs_list_link_t trash; /* messages to give back to UCP */
} ucp_st_host_dev_t;

extern const ucp_st_lane_ops_t ucp_st_host_lane;

static inline ucp_st_host_dev_t *ucp_st_host_dev(ucp_st_worker_h worker)
{
    return worker->parts[UCP_ST_PART_LANES + UCP_ST_LANE_HOST];
}

/** The lane's functions of these names: see st_lane.h. */
ucs_status_t ucp_st_host_dev_open(ucp_st_worker_h worker);
void ucp_st_host_dev_close(ucp_st_worker_h worker);

/** A stream has started a use: have the service thread look. Lock-free, and
 *  without a system call unless that thread sleeps. */
void ucp_st_host_dev_push(struct ucp_st_op *op);

/** Have the service thread call ucp_st_host_run(). The lock is held. */
void ucp_st_host_dev_add(struct ucp_st_op *op);

/** Have the service thread give a message back. The lock is held. */
void ucp_st_host_dev_drop(ucp_st_worker_h worker, struct ucp_st_host_msg *msg);

#endif
