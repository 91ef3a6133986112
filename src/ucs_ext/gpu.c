/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu.c - whether an address is in a GPU's memory.
 *
 * CUDA: cuPointerGetAttributes() of the driver. ROCm: hsa_amd_pointer_info() of
 * ROCr, which knows the memory of HIP too; its structure tells its own size,
 * where that of hipPointerGetAttributes() has changed with HIP 6. The functions
 * are declared here, so that no package of a GPU is needed.
 *
 * That is what a card asks, which initialises no runtime: where an allocation
 * lies, also in a program without HIP. Streams ask HIP and CUDA's driver, and
 * start them (ucs_gstream_memory_query()): ROCr has no numbers of HIP's devices
 * and does not tell memory that is managed, or the host's and pinned.
 */
#include "ucs_gpu.h"
#include "ucs_loaded.h"
#include "ucx_st_config.h"

#include <dlfcn.h>
#include <pthread.h>

#define UCS_GPU_MAX_FUNCS 2


/* A runtime. Constant, but for what is found of it: written once under the
 * lock, before is_found is stored. */
typedef struct ucs_gpu_runtime {
    const char *library; /* NULL: configure has said that it is not used */
    const char *names[UCS_GPU_MAX_FUNCS]; /* Of the functions, all of which it
                                             must have */
    int (*find)(const struct ucs_gpu_runtime *runtime, const void *address,
                ucs_gpu_memory_t *memory);
    void       *handle;
    void       *funcs[UCS_GPU_MAX_FUNCS];
    int        is_found; /* Atomic */
    uint64_t   loads;    /* Libraries that had been loaded when it was not
                            found; 0: not looked for yet. The lock's */
} ucs_gpu_runtime_t;


/* Of CUDA's driver */
enum {
    UCS_GPU_CU_MEMORYTYPE_DEVICE  = 2,
    UCS_GPU_CU_POINTER_CONTEXT    = 1,
    UCS_GPU_CU_POINTER_TYPE       = 2,
    UCS_GPU_CU_POINTER_IS_MANAGED = 8,
    UCS_GPU_CU_POINTER_ORDINAL    = 9,
    UCS_GPU_CU_POINTER_START      = 11,
    UCS_GPU_CU_POINTER_SIZE       = 12
};

typedef int (*ucs_gpu_cu_pointer_t)(unsigned count, int *attributes,
                                    void **data, uintptr_t address);

/* Of ROCr */
enum {
    UCS_GPU_HSA_POINTER_HSA     = 1,
    UCS_GPU_HSA_POINTER_IPC     = 4,
    UCS_GPU_HSA_AGENT_DEVICE    = 17,
    UCS_GPU_HSA_DEVICE_TYPE_GPU = 1
};

typedef struct ucs_gpu_hsa_agent {
    uint64_t handle;
} ucs_gpu_hsa_agent_t;

typedef struct ucs_gpu_hsa_info {
    uint32_t            size; /* Of the structure, as we know it */
    int                 type;
    void                *agent_base;
    void                *host_base;
    size_t              length;
    void                *user_data;
    ucs_gpu_hsa_agent_t owner;
} ucs_gpu_hsa_info_t;

typedef int (*ucs_gpu_hsa_pointer_t)(const void *address,
                                     ucs_gpu_hsa_info_t *info, void *alloc,
                                     uint32_t *num_agents,
                                     ucs_gpu_hsa_agent_t **agents);
typedef int (*ucs_gpu_hsa_agent_info_t)(ucs_gpu_hsa_agent_t agent,
                                        int attribute, void *value);


/* A driver that is not initialised, or does not know the address, says so, or
 * leaves everything 0. What was not allocated in a context has none. */
static int ucs_gpu_find_cuda(const ucs_gpu_runtime_t *runtime,
                             const void *address, ucs_gpu_memory_t *memory)
{
    ucs_gpu_memory_t found = {.runtime = UCS_GPU_CUDA};
    unsigned type          = 0;
    int attributes[]       = {
        UCS_GPU_CU_POINTER_TYPE, UCS_GPU_CU_POINTER_IS_MANAGED,
        UCS_GPU_CU_POINTER_ORDINAL, UCS_GPU_CU_POINTER_CONTEXT,
        UCS_GPU_CU_POINTER_START, UCS_GPU_CU_POINTER_SIZE
    };
    void *data[]           = {&type, &found.is_managed, &found.device,
                              &found.context, &found.start, &found.length};

    if ((((ucs_gpu_cu_pointer_t)runtime->funcs[0])(
                 6, attributes, data, (uintptr_t)address) != 0) ||
        (type != UCS_GPU_CU_MEMORYTYPE_DEVICE)) {
        return 0;
    }
    *memory = found;
    return 1;
}

/* What belongs to a processor is the host's, whoever has allocated it; so is
 * what was only made known to the GPU. */
static int ucs_gpu_find_rocm(const ucs_gpu_runtime_t *runtime,
                             const void *address, ucs_gpu_memory_t *memory)
{
    ucs_gpu_hsa_info_t info = {.size = sizeof(info)};
    int device              = ~UCS_GPU_HSA_DEVICE_TYPE_GPU;

    if ((((ucs_gpu_hsa_pointer_t)runtime->funcs[0])(address, &info, NULL, NULL,
                                                    NULL) != 0) ||
        ((info.type != UCS_GPU_HSA_POINTER_HSA) &&
         (info.type != UCS_GPU_HSA_POINTER_IPC)) ||
        (((ucs_gpu_hsa_agent_info_t)runtime->funcs[1])(
                 info.owner, UCS_GPU_HSA_AGENT_DEVICE, &device) != 0) ||
        (device != UCS_GPU_HSA_DEVICE_TYPE_GPU)) {
        return 0;
    }
    *memory = (ucs_gpu_memory_t){
        .runtime = UCS_GPU_ROCM,
        .start   = (uintptr_t)info.agent_base,
        .length  = info.length
    };
    return 1;
}

static ucs_gpu_runtime_t ucs_gpu_runtimes[UCS_GPU_LAST] = {
    [UCS_GPU_CUDA] = {
#ifndef ST_CUDA_DISABLED
        .library = "libcuda.so.1",
#endif
        .names   = {"cuPointerGetAttributes"},
        .find    = ucs_gpu_find_cuda
    },
    [UCS_GPU_ROCM] = {
#ifndef ST_ROCM_DISABLED
        .library = "libhsa-runtime64.so.1",
#endif
        .names   = {"hsa_amd_pointer_info", "hsa_agent_get_info"},
        .find    = ucs_gpu_find_rocm
    }
};

/* Taken by a thread that looks for runtimes */
static pthread_mutex_t ucs_gpu_lock = PTHREAD_MUTEX_INITIALIZER;


/* A thread of the parent may have been about to find one */
void ucs_gpu_forked(void)
{
    unsigned i;

    (void)pthread_mutex_init(&ucs_gpu_lock, NULL);
    for (i = 0; i < UCS_GPU_LAST; ++i) {
        if (!ucs_gpu_runtimes[i].is_found) {
            ucs_gpu_runtimes[i].loads = 0;
        }
    }
}

/* The handle is kept: the functions must not go away. */
static int ucs_gpu_load(ucs_gpu_runtime_t *runtime)
{
    void *handle = ucs_loaded_open(runtime->library);
    unsigned i;

    if (handle == NULL) {
        return 0;
    }
    for (i = 0; (i < UCS_GPU_MAX_FUNCS) && (runtime->names[i] != NULL); ++i) {
        runtime->funcs[i] = dlsym(handle, runtime->names[i]);
        if (runtime->funcs[i] == NULL) {
            (void)dlclose(handle);
            return 0;
        }
    }
    runtime->handle = handle;
    return 1;
}

/* All that was found of it is there then */
static int ucs_gpu_is_found(const ucs_gpu_runtime_t *runtime)
{
    return __atomic_load_n(&runtime->is_found, __ATOMIC_ACQUIRE);
}

static int ucs_gpu_look(ucs_gpu_runtime_t *runtime)
{
    if ((runtime->library == NULL) || ucs_gpu_is_found(runtime)) {
        return runtime->library != NULL;
    }
    (void)pthread_mutex_lock(&ucs_gpu_lock);
    if (!runtime->is_found && ucs_loaded_has_new(&runtime->loads)) {
        __atomic_store_n(&runtime->is_found, ucs_gpu_load(runtime),
                         __ATOMIC_RELEASE);
    }
    (void)pthread_mutex_unlock(&ucs_gpu_lock);
    return ucs_gpu_is_found(runtime);
}

unsigned ucs_gpu_loaded(void)
{
    unsigned loaded = 0;
    unsigned i;

    for (i = 0; i < UCS_GPU_LAST; ++i) {
        loaded |= (unsigned)ucs_gpu_look(&ucs_gpu_runtimes[i]) << i;
    }
    return loaded;
}

int ucs_gpu_find(const void *address, ucs_gpu_memory_t *memory)
{
    const ucs_gpu_runtime_t *runtime;
    unsigned i;

    for (i = 0; i < UCS_GPU_LAST; ++i) {
        runtime = &ucs_gpu_runtimes[i];
        if (ucs_gpu_is_found(runtime) &&
            runtime->find(runtime, address, memory)) {
            return 1;
        }
    }
    return 0;
}

void *ucs_gpu_function(unsigned runtime, const char *name)
{
    return ucs_gpu_is_found(&ucs_gpu_runtimes[runtime]) ?
                   dlsym(ucs_gpu_runtimes[runtime].handle, name) :
                   NULL;
}
