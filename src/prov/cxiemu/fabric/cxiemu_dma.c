/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_dma.c - memory of GPUs, as the emulated card reaches it.
 *
 * A program that has memory of a GPU has loaded the runtime that gave it: that
 * one is found by its name, and nothing else is ever loaded. The few functions
 * that are used are declared here, so that no package of a GPU is needed.
 *
 * As CXI's provider does it, the pages of the whole allocation are exported:
 * not all runtimes take a part of it. Unlike that provider, nothing else is
 * tried: what runtimes have beside dma-buf is done in the kernel, for cards.
 */
#include "fabric/cxiemu_dma.h"
#include "cxiemu.h"
#include "fabric/cxiemu_log.h"
#include "nic/cxiemu_map.h"

#include <rdma/fi_errno.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CXIEMU_DMA_MAX_FUNCS 5


struct cxiemu_dma_runtime;

/** What a runtime says of an address. */
typedef struct cxiemu_dma_range {
    uintptr_t start;  /**< Of the whole allocation */
    size_t    length;
} cxiemu_dma_range_t;

/** A runtime. Constant, but for what is found of it: written once, under the
 *  lock. */
typedef struct cxiemu_dma_runtime {
    const char *name;
    const char *library;
    const char *names[CXIEMU_DMA_MAX_FUNCS]; /**< Of the functions, all of which
                                                  it must have */
    /** Whether an address is in a GPU. */
    int (*find)(const struct cxiemu_dma_runtime *runtime, const void *address,
                cxiemu_dma_range_t *range);
    /** A descriptor of whole pages, and where they are in it; 0, or the
     *  runtime's own code. */
    int (*export)(const struct cxiemu_dma_runtime *runtime,
                  const cxiemu_dma_range_t *pages, int *fd, uint64_t *offset);
    void       *funcs[CXIEMU_DMA_MAX_FUNCS];
    int        is_found; /**< Atomic; funcs is complete */
} cxiemu_dma_runtime_t;

/* Of CUDA's driver */
enum {
    CXIEMU_CU_POINTER_CONTEXT    = 1,
    CXIEMU_CU_POINTER_TYPE       = 2,
    CXIEMU_CU_POINTER_IS_MANAGED = 8,
    CXIEMU_CU_MEMORYTYPE_DEVICE  = 2,
    CXIEMU_CU_HANDLE_DMA_BUF_FD  = 1
};

typedef int (*cxiemu_cu_pointer_t)(unsigned count, int *attributes, void **data,
                                   uintptr_t address);
typedef int (*cxiemu_cu_range_t)(uintptr_t *start, size_t *length,
                                 uintptr_t address);
typedef int (*cxiemu_cu_export_t)(void *handle, uintptr_t start, size_t length,
                                  int type, unsigned long long flags);
typedef int (*cxiemu_cu_push_t)(void *context);
typedef int (*cxiemu_cu_pop_t)(void **context);

/* Of ROCr */
enum {
    CXIEMU_HSA_POINTER_HSA     = 1,
    CXIEMU_HSA_POINTER_IPC     = 4,
    CXIEMU_HSA_AGENT_DEVICE    = 17,
    CXIEMU_HSA_DEVICE_TYPE_GPU = 1
};

typedef struct cxiemu_hsa_agent {
    uint64_t handle;
} cxiemu_hsa_agent_t;

typedef struct cxiemu_hsa_info {
    uint32_t           size; /**< Of the structure, as we know it */
    int                type;
    void               *agent_base;
    void               *host_base;
    size_t             length;
    void               *user_data;
    cxiemu_hsa_agent_t owner;
} cxiemu_hsa_info_t;

typedef int (*cxiemu_hsa_pointer_t)(const void *address,
                                    cxiemu_hsa_info_t *info, void *alloc,
                                    uint32_t *num_agents,
                                    cxiemu_hsa_agent_t **agents);
typedef int (*cxiemu_hsa_agent_info_t)(cxiemu_hsa_agent_t agent, int attribute,
                                       void *value);
typedef int (*cxiemu_hsa_export_t)(const void *start, size_t length, int *fd,
                                   uint64_t *offset);


/* A driver that is not initialised, or does not know the address, says so, or
 * leaves everything 0. */
static void *cxiemu_dma_cuda_context(const cxiemu_dma_runtime_t *runtime,
                                     const void *address, int *is_device)
{
    unsigned type    = 0;
    unsigned managed = 0;
    void *context    = NULL;
    int attributes[] = {CXIEMU_CU_POINTER_TYPE, CXIEMU_CU_POINTER_IS_MANAGED,
                        CXIEMU_CU_POINTER_CONTEXT};
    void *data[]     = {&type, &managed, &context};

    *is_device = (((cxiemu_cu_pointer_t)runtime->funcs[0])(
                          3, attributes, data, (uintptr_t)address) == 0) &&
                 (type == CXIEMU_CU_MEMORYTYPE_DEVICE) && !(managed & 0xff);
    return context;
}

static int cxiemu_dma_find_cuda(const cxiemu_dma_runtime_t *runtime,
                                const void *address, cxiemu_dma_range_t *range)
{
    int is_device;

    (void)cxiemu_dma_cuda_context(runtime, address, &is_device);
    return is_device &&
           (((cxiemu_cu_range_t)runtime->funcs[1])(&range->start,
                                                   &range->length,
                                                   (uintptr_t)address) == 0);
}

/* In the context of the memory: the thread may have none, or another one. What
 * was not allocated in a context has none. */
static int cxiemu_dma_export_cuda(const cxiemu_dma_runtime_t *runtime,
                                  const cxiemu_dma_range_t *pages, int *fd,
                                  uint64_t *offset)
{
    int is_device, result;
    void *context = cxiemu_dma_cuda_context(runtime, (void*)pages->start,
                                            &is_device);

    if (context != NULL) {
        result = ((cxiemu_cu_push_t)runtime->funcs[3])(context);
        if (result != 0) {
            return result;
        }
    }
    *offset = 0;
    result  = ((cxiemu_cu_export_t)runtime->funcs[2])(
            fd, pages->start, pages->length, CXIEMU_CU_HANDLE_DMA_BUF_FD, 0);
    if (context != NULL) {
        (void)((cxiemu_cu_pop_t)runtime->funcs[4])(&context);
    }
    return result;
}

/* What belongs to a processor is the host's, whoever has allocated it. */
static int cxiemu_dma_find_rocr(const cxiemu_dma_runtime_t *runtime,
                                const void *address, cxiemu_dma_range_t *range)
{
    cxiemu_hsa_info_t info = {.size = sizeof(info)};
    int device             = ~CXIEMU_HSA_DEVICE_TYPE_GPU;

    if ((((cxiemu_hsa_pointer_t)runtime->funcs[0])(address, &info, NULL, NULL,
                                                   NULL) != 0) ||
        ((info.type != CXIEMU_HSA_POINTER_HSA) &&
         (info.type != CXIEMU_HSA_POINTER_IPC)) ||
        (((cxiemu_hsa_agent_info_t)runtime->funcs[1])(
                 info.owner, CXIEMU_HSA_AGENT_DEVICE, &device) != 0) ||
        (device != CXIEMU_HSA_DEVICE_TYPE_GPU)) {
        return 0;
    }

    range->start  = (uintptr_t)info.agent_base;
    range->length = info.length;
    return 1;
}

static int cxiemu_dma_export_rocr(const cxiemu_dma_runtime_t *runtime,
                                  const cxiemu_dma_range_t *pages, int *fd,
                                  uint64_t *offset)
{
    return ((cxiemu_hsa_export_t)runtime->funcs[2])(
            (const void*)pages->start, pages->length, fd, offset);
}

static cxiemu_dma_runtime_t cxiemu_dma_runtimes[] = {
    {
        .name    = "CUDA",
        .library = "libcuda.so.1",
        .names   = {"cuPointerGetAttributes", "cuMemGetAddressRange_v2",
                    "cuMemGetHandleForAddressRange", "cuCtxPushCurrent_v2",
                    "cuCtxPopCurrent_v2"},
        .find    = cxiemu_dma_find_cuda,
        .export  = cxiemu_dma_export_cuda
    },
    {
        .name    = "ROCm",
        .library = "libhsa-runtime64.so.1",
        .names   = {"hsa_amd_pointer_info", "hsa_agent_get_info",
                    "hsa_amd_portable_export_dmabuf"},
        .find    = cxiemu_dma_find_rocr,
        .export  = cxiemu_dma_export_rocr
    }
};

#define CXIEMU_DMA_NUM_RUNTIMES \
    (sizeof(cxiemu_dma_runtimes) / sizeof(cxiemu_dma_runtimes[0]))

/* Of what is found of runtimes, and of the table of what is registered */
static pthread_mutex_t cxiemu_dma_lock = PTHREAD_MUTEX_INITIALIZER;
static cxiemu_dma_t *cxiemu_dma_table;


/* The handle is kept: the functions must not go away. */
static int cxiemu_dma_load_runtime(cxiemu_dma_runtime_t *runtime)
{
    void *library = dlopen(runtime->library, RTLD_LAZY | RTLD_NOLOAD);
    unsigned i;

    if (library == NULL) {
        return 0;
    }
    for (i = 0; (i < CXIEMU_DMA_MAX_FUNCS) && (runtime->names[i] != NULL);
         ++i) {
        runtime->funcs[i] = dlsym(library, runtime->names[i]);
        if (runtime->funcs[i] == NULL) {
            cxiemu_info(MR, "memory of GPUs: %s has no %s\n", runtime->name,
                        runtime->names[i]);
            (void)dlclose(library);
            return 0;
        }
    }
    return 1;
}

unsigned cxiemu_dma_load(void)
{
    unsigned count = 0;
    cxiemu_dma_runtime_t *runtime;
    unsigned i;

    pthread_mutex_lock(&cxiemu_dma_lock);
    for (i = 0; i < CXIEMU_DMA_NUM_RUNTIMES; ++i) {
        runtime = &cxiemu_dma_runtimes[i];
        if (!runtime->is_found && cxiemu_dma_load_runtime(runtime)) {
            /* Pairs with the load in cxiemu_dma_ask() */
            __atomic_store_n(&runtime->is_found, 1, __ATOMIC_RELEASE);
        }
        count += (unsigned)runtime->is_found;
    }
    pthread_mutex_unlock(&cxiemu_dma_lock);
    return count;
}

int cxiemu_reaches_gpus(void)
{
    return cxiemu_dma_load() > 0;
}

/* The runtime that an address is of, or NULL: it is the host's. */
static const cxiemu_dma_runtime_t *cxiemu_dma_ask(const void *address,
                                                  cxiemu_dma_range_t *range)
{
    const cxiemu_dma_runtime_t *runtime;
    unsigned i;

    for (i = 0; i < CXIEMU_DMA_NUM_RUNTIMES; ++i) {
        runtime = &cxiemu_dma_runtimes[i];
        if (__atomic_load_n(&runtime->is_found, __ATOMIC_ACQUIRE) &&
            runtime->find(runtime, address, range)) {
            return runtime;
        }
    }
    return NULL;
}

/* A registration that covers the range, with a reference; or NULL. */
static cxiemu_dma_t *cxiemu_dma_lookup(uintptr_t start, size_t length)
{
    cxiemu_dma_t *dma;

    pthread_mutex_lock(&cxiemu_dma_lock);
    for (dma = cxiemu_dma_table; dma != NULL; dma = dma->next) {
        if ((start >= dma->start) && (length <= dma->length) &&
            (start - dma->start <= dma->length - length)) {
            ++dma->refs;
            break;
        }
    }
    pthread_mutex_unlock(&cxiemu_dma_lock);
    return dma;
}

/* Other processes carry out what is longer by the kernel's cross-memory attach,
 * which does not take every mapping of a device's memory. */
static int cxiemu_dma_is_attachable(void *address)
{
    char byte;

    return cxiemu_map_copy((uint32_t)getpid(), &byte, (uintptr_t)address,
                           sizeof(byte), 0) != -FI_EFAULT;
}

/* Map the pages of the range, of all that were exported. */
static int cxiemu_dma_map(cxiemu_dma_t *dma, int fd, uint64_t offset)
{
    void *map = mmap(NULL, dma->map_length, PROT_READ | PROT_WRITE, MAP_SHARED,
                     fd, (off_t)offset);

    if (map == MAP_FAILED) {
        cxiemu_warn(MR, "memory of a GPU at %p: its dma-buf cannot be mapped: "
                    "%s\n", (void*)dma->start, strerror(errno));
        return -FI_EOPNOTSUPP;
    }
    if (!cxiemu_dma_is_attachable(map)) {
        cxiemu_warn(MR, "memory of a GPU at %p: other processes cannot reach "
                    "its dma-buf\n", (void*)dma->start);
        (void)munmap(map, dma->map_length);
        return -FI_EOPNOTSUPP;
    }
    dma->map     = map;
    dma->address = (uint8_t*)map +
                   (dma->start & ((uintptr_t)sysconf(_SC_PAGESIZE) - 1));
    return 0;
}

/* As cxiemu_dma_map(), for what a runtime knows. */
static int cxiemu_dma_export(cxiemu_dma_t *dma,
                             const cxiemu_dma_runtime_t *runtime,
                             const cxiemu_dma_range_t *range)
{
    uintptr_t mask           = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    uintptr_t first          = dma->start & ~mask;
    cxiemu_dma_range_t pages = {.start = range->start & ~mask};
    uint64_t offset          = 0;
    int fd                   = -1;
    int result;

    pages.length    = ((range->start + range->length + mask) & ~mask) -
                      pages.start;
    dma->map_length = ((dma->start + dma->length + mask) & ~mask) - first;
    result          = runtime->export(runtime, &pages, &fd, &offset);
    if (result != 0) {
        cxiemu_warn(MR, "memory of a GPU at %p: %s gives no dma-buf for it "
                    "(error %d)\n", (void*)dma->start, runtime->name, result);
        return -FI_EOPNOTSUPP;
    }
    result = cxiemu_dma_map(dma, fd, offset + (first - pages.start));
    (void)close(fd); /* The mapping stays */
    return result;
}

static void cxiemu_dma_list(cxiemu_dma_t *dma)
{
    pthread_mutex_lock(&cxiemu_dma_lock);
    dma->is_listed   = 1;
    dma->next        = cxiemu_dma_table;
    cxiemu_dma_table = dma;
    pthread_mutex_unlock(&cxiemu_dma_lock);
}

int cxiemu_dma_open(const void *address, size_t length, int registers,
                    cxiemu_dma_t **dma_p)
{
    const cxiemu_dma_runtime_t *runtime;
    cxiemu_dma_range_t range;
    cxiemu_dma_t *dma;
    int ret;

    *dma_p = (registers || (length == 0)) ? NULL :
             cxiemu_dma_lookup((uintptr_t)address, length);
    if ((*dma_p != NULL) || (length == 0)) {
        return 0;
    }
    runtime = cxiemu_dma_ask(address, &range);
    if (runtime == NULL) {
        return 0;
    }
    if ((length > range.length) ||
        ((uintptr_t)address - range.start > range.length - length)) {
        return -FI_EFAULT;
    }
    dma = calloc(1, sizeof(*dma));
    if (dma == NULL) {
        return -FI_ENOMEM;
    }
    dma->start  = (uintptr_t)address;
    dma->length = length;
    dma->refs   = 1;
    ret         = cxiemu_dma_export(dma, runtime, &range);
    if (ret != 0) {
        free(dma);
        return ret;
    }
    if (registers) {
        cxiemu_dma_list(dma);
    }
    *dma_p = dma;
    return 0;
}

cxiemu_dma_t *cxiemu_dma_get(cxiemu_dma_t *dma)
{
    if (dma != NULL) {
        pthread_mutex_lock(&cxiemu_dma_lock);
        ++dma->refs;
        pthread_mutex_unlock(&cxiemu_dma_lock);
    }
    return dma;
}

void cxiemu_dma_put(cxiemu_dma_t *dma)
{
    int last;

    if (dma == NULL) {
        return;
    }
    pthread_mutex_lock(&cxiemu_dma_lock);
    last = (--dma->refs == 0);
    pthread_mutex_unlock(&cxiemu_dma_lock);
    if (last) {
        (void)munmap(dma->map, dma->map_length);
        free(dma);
    }
}

void cxiemu_dma_unlist(cxiemu_dma_t *dma)
{
    cxiemu_dma_t **link = &cxiemu_dma_table;

    pthread_mutex_lock(&cxiemu_dma_lock);
    if (dma->is_listed) {
        while (*link != dma) {
            link = &(*link)->next;
        }
        *link          = dma->next;
        dma->is_listed = 0;
    }
    pthread_mutex_unlock(&cxiemu_dma_lock);
}
