/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_dma.c - memory of GPUs, as the emulated card reaches it.
 *
 * As CXI's provider does it, the pages of the whole allocation are exported:
 * not all runtimes take a part of it. Unlike that provider, nothing else is
 * tried: what runtimes have beside dma-buf is done in the kernel, for cards.
 */
#include "base/cxiemu_dma.h"
#include "cxiemu.h"
#include "base/cxiemu_log.h"
#include "base/cxiemu_map.h"

#include <ucs_fork.h>
#include <ucs_gpu.h>

#include <rdma/fi_errno.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/** Whole pages. */
typedef struct cxiemu_dma_pages {
    uintptr_t start;
    size_t    length;
} cxiemu_dma_pages_t;

/** How a runtime gives a descriptor of pages that are a GPU's. */
typedef struct cxiemu_dma_runtime {
    const char *name;
    const char *function; /**< That gives it; not all versions have it */
    /** Call it: a descriptor, and where the pages are in it; 0, or the
     *  runtime's own code. */
    int (*export)(void *function, const ucs_gpu_memory_t *memory,
                  const cxiemu_dma_pages_t *pages, int *fd, uint64_t *offset);
} cxiemu_dma_runtime_t;

#define CXIEMU_CU_HANDLE_DMA_BUF_FD 1

typedef int (*cxiemu_cu_export_t)(void *handle, uintptr_t start, size_t length,
                                  int type, unsigned long long flags);
typedef int (*cxiemu_cu_push_t)(void *context);
typedef int (*cxiemu_cu_pop_t)(void **context);
typedef int (*cxiemu_hsa_export_t)(const void *start, size_t length, int *fd,
                                   uint64_t *offset);


/* In the context of the memory, if it has one: the thread may have none, or
 * another one. */
static int cxiemu_dma_export_cuda(void *function,
                                  const ucs_gpu_memory_t *memory,
                                  const cxiemu_dma_pages_t *pages, int *fd,
                                  uint64_t *offset)
{
    cxiemu_cu_push_t push = (cxiemu_cu_push_t)ucs_gpu_function(
            UCS_GPU_CUDA, "cuCtxPushCurrent_v2");
    cxiemu_cu_pop_t pop   = (cxiemu_cu_pop_t)ucs_gpu_function(
            UCS_GPU_CUDA, "cuCtxPopCurrent_v2");
    int has_context       = (memory->context != NULL) && (push != NULL) &&
                            (pop != NULL);
    void *context;
    int result;

    if (has_context) {
        result = push(memory->context);
        if (result != 0) {
            return result;
        }
    }
    *offset = 0;
    result  = ((cxiemu_cu_export_t)function)(fd, pages->start, pages->length,
                                             CXIEMU_CU_HANDLE_DMA_BUF_FD, 0);
    if (has_context) {
        (void)pop(&context);
    }
    return result;
}

static int cxiemu_dma_export_rocr(void *function,
                                  const ucs_gpu_memory_t *memory,
                                  const cxiemu_dma_pages_t *pages, int *fd,
                                  uint64_t *offset)
{
    (void)memory;
    return ((cxiemu_hsa_export_t)function)((const void*)pages->start,
                                           pages->length, fd, offset);
}

static const cxiemu_dma_runtime_t cxiemu_dma_runtimes[UCS_GPU_LAST] = {
    [UCS_GPU_CUDA] = {
        .name     = "CUDA",
        .function = "cuMemGetHandleForAddressRange",
        .export   = cxiemu_dma_export_cuda
    },
    [UCS_GPU_ROCM] = {
        .name     = "ROCm",
        .function = "hsa_amd_portable_export_dmabuf",
        .export   = cxiemu_dma_export_rocr
    }
};

/* Of the table of what is registered */
static pthread_mutex_t cxiemu_dma_lock = PTHREAD_MUTEX_INITIALIZER;
static cxiemu_dma_t *cxiemu_dma_table;


void cxiemu_dma_fork_begin(void)
{
    ucs_fork_lock(&cxiemu_dma_lock);
}

void cxiemu_dma_fork_end(int is_child)
{
    if (is_child && !ucs_fork_has(&cxiemu_dma_lock)) {
        cxiemu_dma_table = NULL;
    }
    ucs_fork_unlock(&cxiemu_dma_lock, is_child);
}

int cxiemu_reaches_gpus(void)
{
    unsigned loaded = ucs_gpu_loaded();
    int reaches     = 0;
    unsigned i;

    for (i = 0; i < UCS_GPU_LAST; ++i) {
        reaches |= ((loaded >> i) & 1) &&
                   (ucs_gpu_function(i, cxiemu_dma_runtimes[i].function) !=
                    NULL);
    }
    return reaches;
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
static int cxiemu_dma_export(cxiemu_dma_t *dma, const ucs_gpu_memory_t *memory)
{
    const cxiemu_dma_runtime_t *runtime = &cxiemu_dma_runtimes[memory->runtime];
    uintptr_t mask           = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    uintptr_t first          = dma->start & ~mask;
    cxiemu_dma_pages_t pages = {.start = memory->start & ~mask};
    void *function           = ucs_gpu_function(memory->runtime,
                                                runtime->function);
    uint64_t offset          = 0;
    int fd                   = -1;
    int result;

    if (function == NULL) {
        cxiemu_warn(MR, "memory of a GPU at %p: %s has no %s\n",
                    (void*)dma->start, runtime->name, runtime->function);
        return -FI_EOPNOTSUPP;
    }
    pages.length    = ((memory->start + memory->length + mask) & ~mask) -
                      pages.start;
    dma->map_length = ((dma->start + dma->length + mask) & ~mask) - first;
    result          = runtime->export(function, memory, &pages, &fd, &offset);
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
    ucs_gpu_memory_t memory;
    cxiemu_dma_t *dma;
    int ret;

    *dma_p = (registers || (length == 0)) ? NULL :
             cxiemu_dma_lookup((uintptr_t)address, length);
    if ((*dma_p != NULL) || (length == 0)) {
        return 0;
    }
    if (!ucs_gpu_find(address, &memory) || memory.is_managed) {
        return 0; /* the host's, or the host reaches it */
    }
    if ((length > memory.length) ||
        ((uintptr_t)address - memory.start > memory.length - length)) {
        return -FI_EFAULT;
    }
    dma = calloc(1, sizeof(*dma));
    if (dma == NULL) {
        return -FI_ENOMEM;
    }
    dma->start  = (uintptr_t)address;
    dma->length = length;
    dma->refs   = 1;
    ret         = cxiemu_dma_export(dma, &memory);
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
