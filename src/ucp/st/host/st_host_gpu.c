/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_gpu.c - lane host with memory of GPUs that UCX moves itself.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "host/st_host_gpu.h"
#include "core/st_stage.h"
#include "core/st_worker.h"
#include "ctrl/st_ctrl.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

#include <string.h>

static ucs_memory_type_t ucp_st_host_gpu_type(const ucp_st_op_t *op)
{
    return (op->memory.type == UCS_GSTREAM_TYPE_HIP) ? UCS_MEMORY_TYPE_ROCM :
                                                       UCS_MEMORY_TYPE_CUDA;
}

int ucp_st_host_gpu_reaches(const ucp_st_op_t *op)
{
    uint64_t types = ucp_st_svc(op->worker)->memory_types;

    return !ucp_st_stage_is_device(&op->memory) ||
           (!op->memory.is_managed &&
            (op->msg_length >= op->worker->config.host_gpu_min) &&
            (types & UCS_BIT(ucp_st_host_gpu_type(op))));
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
        param->memory_type   = ucp_st_host_gpu_type(op);
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
