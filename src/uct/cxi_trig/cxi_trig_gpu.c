/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_gpu.c - what a GPU's runtime says of memory.
 *
 * A program that has memory of a GPU has loaded the runtime that gave it: that
 * one is found by its name, and nothing else is ever loaded. The few functions
 * that are used are declared here, so that no package of a GPU is needed.
 *
 * CUDA: cuPointerGetAttributes() of the driver. ROCm: hsa_amd_pointer_info() of
 * ROCr, which knows the memory of HIP too; its structure tells its own size,
 * where that of hipPointerGetAttributes() has changed with HIP 6.
 */
#ifdef HAVE_CONFIG_H
#  include "ucx_st_config.h"
#endif

#include "cxi_trig_gpu.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>


/** A runtime. Constant, but for what is found of it. */
typedef struct uct_cxi_trig_gpu_runtime {
    const char        *library;
    const char        *names[2]; /**< Of the functions that it must have */
    ucs_memory_type_t type;      /**< Of what it allocates on a GPU */
    int (*find)(const struct uct_cxi_trig_gpu_runtime *runtime,
                const void *address, uct_cxi_trig_gpu_mem_t *mem);
    void              *funcs[2]; /**< Those functions */
    int               is_found;  /**< Atomic; @a funcs is complete */
    uint64_t          loads;     /**< Libraries that had been loaded when it was
                                      not found; 0: not looked for yet. The
                                      lock's */
} uct_cxi_trig_gpu_runtime_t;


/* Of CUDA's driver */
enum {
    UCT_CXI_TRIG_CU_MEMORYTYPE_DEVICE  = 2,
    UCT_CXI_TRIG_CU_POINTER_TYPE       = 2,
    UCT_CXI_TRIG_CU_POINTER_IS_MANAGED = 8,
    UCT_CXI_TRIG_CU_POINTER_ORDINAL    = 9,
    UCT_CXI_TRIG_CU_POINTER_START      = 11,
    UCT_CXI_TRIG_CU_POINTER_SIZE       = 12
};

typedef int (*uct_cxi_trig_cu_pointer_t)(unsigned count, int *attributes,
                                         void **data, uintptr_t address);

/* Of ROCr */
enum {
    UCT_CXI_TRIG_HSA_POINTER_HSA     = 1,
    UCT_CXI_TRIG_HSA_POINTER_IPC     = 4,
    UCT_CXI_TRIG_HSA_AGENT_DEVICE    = 17,
    UCT_CXI_TRIG_HSA_DEVICE_TYPE_GPU = 1
};

typedef struct uct_cxi_trig_hsa_agent {
    uint64_t handle;
} uct_cxi_trig_hsa_agent_t;

typedef struct uct_cxi_trig_hsa_info {
    uint32_t                 size; /**< Of the structure, as we know it */
    int                      type;
    void                     *agent_base;
    void                     *host_base;
    size_t                   length;
    void                     *user_data;
    uct_cxi_trig_hsa_agent_t owner;
} uct_cxi_trig_hsa_info_t;

typedef int (*uct_cxi_trig_hsa_pointer_t)(const void *address,
                                          uct_cxi_trig_hsa_info_t *info,
                                          void *alloc, uint32_t *num_agents,
                                          uct_cxi_trig_hsa_agent_t **agents);

typedef int (*uct_cxi_trig_hsa_agent_info_t)(uct_cxi_trig_hsa_agent_t agent,
                                             int attribute, void *value);


/* A driver that is not initialised, or does not know the address, says so, or
 * leaves everything 0. */
static int
uct_cxi_trig_gpu_find_cuda(const uct_cxi_trig_gpu_runtime_t *runtime,
                           const void *address, uct_cxi_trig_gpu_mem_t *mem)
{
    unsigned type = 0, is_managed = 0;
    int device       = 0;
    uintptr_t start  = 0;
    size_t length    = 0;
    int attributes[] = {
        UCT_CXI_TRIG_CU_POINTER_TYPE, UCT_CXI_TRIG_CU_POINTER_IS_MANAGED,
        UCT_CXI_TRIG_CU_POINTER_ORDINAL, UCT_CXI_TRIG_CU_POINTER_START,
        UCT_CXI_TRIG_CU_POINTER_SIZE
    };
    void *data[]     = {&type, &is_managed, &device, &start, &length};
    uct_cxi_trig_cu_pointer_t query;

    query = (uct_cxi_trig_cu_pointer_t)runtime->funcs[0];
    if ((query(5, attributes, data, (uintptr_t)address) != 0) ||
        (type != UCT_CXI_TRIG_CU_MEMORYTYPE_DEVICE)) {
        return 0;
    }

    mem->type   = is_managed ? UCS_MEMORY_TYPE_CUDA_MANAGED :
                               UCS_MEMORY_TYPE_CUDA;
    mem->iface  = FI_HMEM_CUDA;
    mem->device = device;
    mem->start  = start;
    mem->length = length;
    return 1;
}

/* What belongs to a processor is the host's, whoever has allocated it; so is
 * what was only made known to the GPU. */
static int
uct_cxi_trig_gpu_find_rocm(const uct_cxi_trig_gpu_runtime_t *runtime,
                           const void *address, uct_cxi_trig_gpu_mem_t *mem)
{
    uct_cxi_trig_hsa_info_t info = {
        .size = sizeof(info)
    };
    int device = ~UCT_CXI_TRIG_HSA_DEVICE_TYPE_GPU;
    uct_cxi_trig_hsa_agent_info_t query_agent;
    uct_cxi_trig_hsa_pointer_t query;

    query       = (uct_cxi_trig_hsa_pointer_t)runtime->funcs[0];
    query_agent = (uct_cxi_trig_hsa_agent_info_t)runtime->funcs[1];
    if ((query(address, &info, NULL, NULL, NULL) != 0) ||
        ((info.type != UCT_CXI_TRIG_HSA_POINTER_HSA) &&
         (info.type != UCT_CXI_TRIG_HSA_POINTER_IPC)) ||
        (query_agent(info.owner, UCT_CXI_TRIG_HSA_AGENT_DEVICE,
                     &device) != 0) ||
        (device != UCT_CXI_TRIG_HSA_DEVICE_TYPE_GPU)) {
        return 0;
    }

    mem->type   = UCS_MEMORY_TYPE_ROCM;
    mem->iface  = FI_HMEM_ROCR;
    mem->device = 0; /* libfabric has no number for it */
    mem->start  = (uintptr_t)info.agent_base;
    mem->length = info.length;
    return 1;
}

static uct_cxi_trig_gpu_runtime_t uct_cxi_trig_gpu_runtimes[] = {
#ifndef ST_CUDA_DISABLED
    {
        .library = "libcuda.so.1",
        .names   = {"cuPointerGetAttributes"},
        .type    = UCS_MEMORY_TYPE_CUDA,
        .find    = uct_cxi_trig_gpu_find_cuda
    },
#endif
#ifndef ST_ROCM_DISABLED
    {
        .library = "libhsa-runtime64.so.1",
        .names   = {"hsa_amd_pointer_info", "hsa_agent_get_info"},
        .type    = UCS_MEMORY_TYPE_ROCM,
        .find    = uct_cxi_trig_gpu_find_rocm
    },
#endif
    {
        .library = NULL
    }
};

/* Taken by the first thread that looks for a runtime */
static pthread_mutex_t uct_cxi_trig_gpu_lock = PTHREAD_MUTEX_INITIALIZER;


/* The handle is kept: the functions must not go away. */
static int uct_cxi_trig_gpu_load(uct_cxi_trig_gpu_runtime_t *runtime)
{
    void *library = dlopen(runtime->library, RTLD_LAZY | RTLD_NOLOAD);
    unsigned i;

    if (library == NULL) {
        return 0;
    }

    for (i = 0; (i < 2) && (runtime->names[i] != NULL); ++i) {
        runtime->funcs[i] = dlsym(library, runtime->names[i]);
        if (runtime->funcs[i] == NULL) {
            (void)dlclose(library);
            return 0;
        }
    }
    return 1;
}

static int uct_cxi_trig_gpu_read_loads(struct dl_phdr_info *info, size_t size,
                                       void *arg)
{
    uint64_t *loads_p = arg;

    if (size >= (offsetof(struct dl_phdr_info, dlpi_adds) +
                 sizeof(info->dlpi_adds))) {
        *loads_p = info->dlpi_adds;
    }
    return 1; /* The first library knows it */
}

/* Libraries that the process has loaded so far, or 0 if that is not known. To
 * ask for one by its name searches folders each time that it is not there. */
static uint64_t uct_cxi_trig_gpu_count_loads(void)
{
    uint64_t loads = 0;

    (void)dl_iterate_phdr(uct_cxi_trig_gpu_read_loads, &loads);
    return loads;
}

static int uct_cxi_trig_gpu_look(uct_cxi_trig_gpu_runtime_t *runtime)
{
    uint64_t loads = uct_cxi_trig_gpu_count_loads();

    if ((loads != 0) && (loads == runtime->loads)) {
        return 0; /* None since then */
    }
    runtime->loads = loads;
    return uct_cxi_trig_gpu_load(runtime);
}

static int uct_cxi_trig_gpu_is_loaded(uct_cxi_trig_gpu_runtime_t *runtime)
{
    int found = __atomic_load_n(&runtime->is_found, __ATOMIC_ACQUIRE);

    if (found) {
        return 1;
    }

    (void)pthread_mutex_lock(&uct_cxi_trig_gpu_lock);
    found = runtime->is_found;
    if (!found) {
        found = uct_cxi_trig_gpu_look(runtime);
        __atomic_store_n(&runtime->is_found, found, __ATOMIC_RELEASE);
    }
    (void)pthread_mutex_unlock(&uct_cxi_trig_gpu_lock);
    return found;
}

uint64_t uct_cxi_trig_gpu_loaded(void)
{
    uint64_t types = 0;
    uct_cxi_trig_gpu_runtime_t *runtime;

    for (runtime = uct_cxi_trig_gpu_runtimes; runtime->library != NULL;
         ++runtime) {
        if (uct_cxi_trig_gpu_is_loaded(runtime)) {
            types |= UCS_BIT(runtime->type);
        }
    }
    return types;
}

int uct_cxi_trig_gpu_find(const void *address, uct_cxi_trig_gpu_mem_t *mem)
{
    uct_cxi_trig_gpu_runtime_t *runtime;

    for (runtime = uct_cxi_trig_gpu_runtimes; runtime->library != NULL;
         ++runtime) {
        if (uct_cxi_trig_gpu_is_loaded(runtime) &&
            runtime->find(runtime, address, mem)) {
            return 1;
        }
    }
    return 0;
}
