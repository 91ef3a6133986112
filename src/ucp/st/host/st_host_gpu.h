/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_gpu.h - lane host with memory of GPUs that UCX moves itself.
 *
 * UCX's transports of GPUs (cuda_copy and others) take such a buffer as it is,
 * and move a long message in pieces, or without the host's memory. They work on
 * the device that is current in the calling thread, also in later calls of
 * ucp_worker_progress(). Where UCX has none of them, or a message is short, the
 * buffer is staged: see st_stage.h. Each side decides on its own buffer.
 */
#ifndef UCP_ST_HOST_GPU_H_
#define UCP_ST_HOST_GPU_H_

#include "core/st_op.h"

#include <ucp/api/ucp.h>

/** The lane moves the operation's buffer as it is. */
int ucp_st_host_gpu_reaches(const ucp_st_op_t *op);

/** Tell UCX whose memory such a buffer is, and make its device current in the
 *  calling thread, which is the service thread. If the runtime fails, UCX's
 *  call does. */
void ucp_st_host_gpu_set(const ucp_st_op_t *op, ucp_request_param_t *param);

/** Copy data that has arrived in memory of the host to the buffer. */
ucs_status_t ucp_st_host_gpu_copy(const ucp_st_op_t *op, const void *data);

#endif
