/* SPDX-License-Identifier: BSD-3-Clause */
/* cxi_trig_gpu.c - what a GPU's runtime says of memory, in words of UCX and
 * libfabric. */
#ifdef HAVE_CONFIG_H
#  include "ucx_st_config.h"
#endif

#include "cxi_trig_gpu.h"

#include <ucs_gpu.h>

#include <ucs/sys/math.h>


static const ucs_memory_type_t uct_cxi_trig_gpu_types[UCS_GPU_LAST] = {
    [UCS_GPU_CUDA] = UCS_MEMORY_TYPE_CUDA,
    [UCS_GPU_ROCM] = UCS_MEMORY_TYPE_ROCM
};

uint64_t uct_cxi_trig_gpu_loaded(void)
{
    unsigned loaded = ucs_gpu_loaded();
    uint64_t types  = 0;
    unsigned i;

    for (i = 0; i < UCS_GPU_LAST; ++i) {
        if (loaded & UCS_BIT(i)) {
            types |= UCS_BIT(uct_cxi_trig_gpu_types[i]);
        }
    }
    return types;
}

int uct_cxi_trig_gpu_find(const void *address, uct_cxi_trig_gpu_mem_t *mem)
{
    ucs_gpu_memory_t memory;

    (void)ucs_gpu_loaded();
    if (!ucs_gpu_find(address, &memory)) {
        return 0;
    }
    mem->type   = memory.is_managed ? UCS_MEMORY_TYPE_CUDA_MANAGED :
                                      uct_cxi_trig_gpu_types[memory.runtime];
    mem->iface  = (memory.runtime == UCS_GPU_CUDA) ? FI_HMEM_CUDA :
                                                     FI_HMEM_ROCR;
    mem->device = memory.device; /* libfabric has no number for ROCr's */
    mem->start  = memory.start;
    mem->length = memory.length;
    return 1;
}
