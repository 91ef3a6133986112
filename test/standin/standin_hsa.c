/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_hsa.c - libhsa-runtime64.so.1: what libraries of networks ask ROCr,
 * below HIP, about memory. It knows nothing itself, but asks HIP's stand-in,
 * which loads it as the real one does.
 *
 * hsa_amd_portable_export_dmabuf() is there with ROCm 5.6.
 */
#include "standin_hsa.h"

#include <dlfcn.h>
#include <stdlib.h>

#define STANDIN_HSA_GPU      1 /* The only agent, of all devices */
#define STANDIN_HSA_INVALID  0x1001
#define STANDIN_HSA_ERROR    0x1000
#define STANDIN_HSA_SIZE_MIN offsetof(standin_hsa_info_t, global_flags)
#define STANDIN_HSA_5_6      50600000

typedef int (*standin_hsa_find_t)(uint64_t address, uint64_t *start,
                                  size_t *size);
typedef int (*standin_hsa_share_t)(uint64_t address, size_t size, int *fd,
                                   uint64_t *offset);


/* HIP's stand-in is never unloaded. UCX may have replaced dlopen() by one that
 * finds the file of a real one. */
static void *standin_hsa_ask(const char *name)
{
    void *hip = dlmopen(LM_ID_BASE, "libamdhip64.so.5",
                        RTLD_LAZY | RTLD_NOLOAD);

    return (hip == NULL) ? NULL : dlsym(hip, name);
}

int hsa_init(void)
{
    return 0;
}

/* Fails: transports of UCX for ROCm, which would find themselves on a GPU and
 * need much more, are not used */
int hsa_iterate_agents(int (*func)(uint64_t agent, void *data), void *data)
{
    (void)func;
    (void)data;
    return STANDIN_HSA_ERROR;
}

int hsa_amd_pointer_info(const void *address, standin_hsa_info_t *info,
                         void *(*alloc)(size_t size), uint32_t *num_agents,
                         uint64_t **agents)
{
    standin_hsa_find_t find = (standin_hsa_find_t)standin_hsa_ask(
            "standin_hsa_find");
    uint64_t start          = 0;
    size_t size             = 0;
    int is_found;

    (void)alloc;
    if ((info->size < STANDIN_HSA_SIZE_MIN) || (num_agents != NULL) ||
        (agents != NULL)) {
        return STANDIN_HSA_INVALID;
    }
    is_found         = (find != NULL) && find((uintptr_t)address, &start,
                                              &size);
    info->type       = is_found; /* HSA_EXT_POINTER_TYPE_HSA */
    info->agent_base = (void*)(uintptr_t)start;
    info->host_base  = NULL;
    info->length     = size;
    info->owner      = is_found ? STANDIN_HSA_GPU : 0;
    return 0;
}

int hsa_agent_get_info(uint64_t agent, int attribute, void *value)
{
    if ((agent != STANDIN_HSA_GPU) || (attribute != 17)) { /* DEVICE */
        return STANDIN_HSA_INVALID;
    }
    *(int*)value = 1; /* HSA_DEVICE_TYPE_GPU */
    return 0;
}

static int standin_hsa_export(const void *address, size_t size, int *fd,
                              uint64_t *offset)
{
    standin_hsa_share_t share = (standin_hsa_share_t)standin_hsa_ask(
            "standin_hsa_share");

    return ((share != NULL) &&
            (share((uintptr_t)address, size, fd, offset) == 0)) ?
           0 : STANDIN_HSA_ERROR;
}

/* A function that dlsym() finds with newer versions alone. HIP's own settings
 * may not be read yet. */
__attribute__((used))
static __typeof__(standin_hsa_export) *standin_hsa_resolve(void)
{
    const char *version = getenv("STANDIN_VERSION");

    return ((version != NULL) &&
            (strtol(version, NULL, 10) >= STANDIN_HSA_5_6)) ?
           standin_hsa_export : NULL;
}

__typeof__(standin_hsa_export) hsa_amd_portable_export_dmabuf
        __attribute__((ifunc("standin_hsa_resolve")));
