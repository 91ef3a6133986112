/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_gpu.c - lane host with memory of GPUs that UCX moves itself.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "host/st_host_gpu.h"
#include "core/st_stage.h"
#include "core/st_ucp.h"
#include "core/st_worker.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

#include <string.h>

int ucp_st_host_gpu_reaches(const ucp_st_op_t *op)
{
    return !ucp_st_stage_is_device(&op->memory) ||
           (!op->memory.is_managed &&
            (op->msg_length >= op->worker->config.host_gpu_min) &&
            ucp_st_ucp_copies(op->memory.type));
}

/* The buffer is in a device, and not staged */
static int ucp_st_host_gpu_is_used(const ucp_st_op_t *op)
{
    return ucp_st_stage_is_device(&op->memory) && !ucp_st_stage_is_used(op) &&
           (op->msg_length > 0);
}

void ucp_st_host_gpu_set(const ucp_st_op_t *op, ucp_request_param_t *param)
{
    if (ucp_st_host_gpu_is_used(op)) {
        param->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        param->memory_type   = (op->memory.type == UCS_GSTREAM_TYPE_HIP) ?
                                       UCS_MEMORY_TYPE_ROCM :
                                       UCS_MEMORY_TYPE_CUDA;
        (void)ucs_gstream_memory_enter(&op->memory);
    }
}

ucs_status_t ucp_st_host_gpu_copy(const ucp_st_op_t *op, const void *data)
{
    if (ucp_st_host_gpu_is_used(op)) {
        return ucs_gstream_memory_copy(op->data, data, op->msg_length);
    }
    if (op->msg_length > 0) {
        memcpy(op->data, data, op->msg_length);
    }
    return UCS_OK;
}
