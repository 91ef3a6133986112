/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_standin.c - in place of a GPU's runtime: says of ranges of the host's
 * memory that they are a GPU's. Built once with the name of CUDA's driver, and
 * once with that of ROCr; of their functions it has those that tell of an
 * address. What it shows is that they are asked rightly, not how a GPU works.
 */
#include "../standin/standin_hsa.h"

/* The one range */
static uintptr_t start;
static size_t    length;
static int       device;
static int       is_managed; /* Of CUDA; of ROCm: it is a processor's */

void gpu_standin_label(const void *address, size_t size, int number,
                       int managed);

void gpu_standin_label(const void *address, size_t size, int number,
                       int managed)
{
    start      = (uintptr_t)address;
    length     = size;
    device     = number;
    is_managed = managed;
}

static int is_inside(uintptr_t address)
{
    return (address >= start) && (address - start < length);
}

#ifdef GPU_STANDIN_CUDA

int cuPointerGetAttributes(unsigned count, const int *attributes, void **data,
                           uint64_t address);

/* An unknown address is no error: everything is 0 */
int cuPointerGetAttributes(unsigned count, const int *attributes, void **data,
                           uint64_t address)
{
    int found = is_inside(address);
    unsigned i;

    for (i = 0; i < count; ++i) {
        switch (attributes[i]) {
        case 1: /* CU_POINTER_ATTRIBUTE_CONTEXT */
            *(void**)data[i] = NULL;
            break;
        case 2: /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
            *(unsigned*)data[i] = found ? 2 : 0;
            break;
        case 8: /* CU_POINTER_ATTRIBUTE_IS_MANAGED */
            *(unsigned*)data[i] = found && is_managed;
            break;
        case 9: /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
            *(int*)data[i] = found ? device : -2;
            break;
        case 11: /* CU_POINTER_ATTRIBUTE_RANGE_START_ADDR */
            *(uint64_t*)data[i] = found ? start : 0;
            break;
        case 12: /* CU_POINTER_ATTRIBUTE_RANGE_SIZE */
            *(size_t*)data[i] = found ? length : 0;
            break;
        default:
            return 1; /* CUDA_ERROR_INVALID_VALUE */
        }
    }
    return 0;
}

#else

int hsa_amd_pointer_info(const void *address, standin_hsa_info_t *info,
                         void *(*alloc)(size_t size), uint32_t *num_agents,
                         uint64_t **agents)
{
    int found = is_inside((uintptr_t)address);

    if (info->size < offsetof(standin_hsa_info_t, global_flags)) {
        return 0x1001; /* HSA_STATUS_ERROR_INVALID_ARGUMENT */
    }
    info->type       = found; /* HSA_EXT_POINTER_TYPE_HSA */
    info->agent_base = (void*)start;
    info->host_base  = NULL;
    info->length     = length;
    info->owner      = found ? 7 : 0;
    return 0;
}

int hsa_agent_get_info(uint64_t agent, int attribute, void *value)
{
    if ((agent != 7) || (attribute != 17)) { /* HSA_AGENT_INFO_DEVICE */
        return 0x1001;
    }
    *(int*)value = !is_managed; /* HSA_DEVICE_TYPE_GPU */
    return 0;
}

#endif
