/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_stream.c - streams of programs, and memory of GPUs' runtimes.
 *
 * The library has opened a runtime and says where it is; its functions are
 * looked up there, so that programs need no package of a GPU.
 */
#include "st_stream.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Flags of pinned memory, of both runtimes: for all contexts, and mapped */
#define ST_STREAM_PINNED_FLAGS 3u


/* Functions of a runtime, by kind of memory */
typedef struct st_stream_runtime {
    const char *name;
    const char *alloc[2];
    const char *free[2];
    const char *device_name;
} st_stream_runtime_t;

static const st_stream_runtime_t st_stream_runtimes[UCS_GSTREAM_TYPE_LAST] = {
    [UCS_GSTREAM_TYPE_HOST] = {.name = "host"},
    [UCS_GSTREAM_TYPE_HIP]  = {
        .name        = "hip",
        .alloc       = {"hipHostMalloc", "hipMalloc"},
        .free        = {"hipHostFree", "hipFree"},
        .device_name = "hipDeviceGetName"
    },
    [UCS_GSTREAM_TYPE_CUDA] = {
        .name        = "cuda",
        .alloc       = {"cuMemHostAlloc", "cuMemAlloc_v2"},
        .free        = {"cuMemFreeHost", "cuMemFree_v2"},
        .device_name = "cuDeviceGetName"
    }
};

typedef int (*st_stream_current_func_t)(void **context_p);
typedef int (*st_stream_retain_func_t)(void **context_p, int device);
typedef int (*st_stream_set_func_t)(void *context);
typedef int (*st_stream_pinned_func_t)(void **memory_p, size_t size,
                                       unsigned flags);
typedef int (*st_stream_device_func_t)(void **memory_p, size_t size);
typedef int (*st_stream_free_func_t)(void *memory);
typedef int (*st_stream_name_func_t)(char *name, int length, int device);


const char *st_stream_name(ucs_gstream_type_t type)
{
    return st_stream_runtimes[type].name;
}

int st_stream_parse(const char *text, ucs_gstream_type_t *type_p)
{
    unsigned type;

    for (type = 0; type < UCS_GSTREAM_TYPE_LAST; ++type) {
        if (strcmp(text, st_stream_runtimes[type].name) == 0) {
            *type_p = (ucs_gstream_type_t)type;
            return 0;
        }
    }
    return -1;
}

int st_stream_check(ucs_gstream_type_t type, char *reason)
{
    ucs_gstream_type_attr_t attr;

    if (ucs_gstream_query_type(type, &attr) == UCS_OK) {
        return 0;
    }
    snprintf(reason, UCS_GSTREAM_TEXT_MAX, "%s", attr.reason);
    return -1;
}

void *st_stream_find(ucs_gstream_type_t type, const char *name)
{
    ucs_gstream_type_attr_t attr;
    void *library;

    (void)ucs_gstream_query_type(type, &attr);
    if (attr.library[0] == '\0') {
        return NULL;
    }
    library = dlopen(attr.library, RTLD_LAZY | RTLD_NOLOAD);
    return (library == NULL) ? NULL : dlsym(library, name);
}

void st_stream_device(ucs_gstream_type_t type, char *name, size_t size)
{
    const char *symbol = st_stream_runtimes[type].device_name;
    st_stream_name_func_t func;

    snprintf(name, size, "an unknown device");
    func = (symbol == NULL) ?
                   NULL :
                   (st_stream_name_func_t)st_stream_find(type, symbol);
    if (func != NULL) {
        (void)func(name, (int)size, 0);
    }
}

void st_stream_describe(ucs_gstream_type_t type, char *text)
{
    const st_stream_runtime_t *runtime = &st_stream_runtimes[type];
    ucs_gstream_type_attr_t attr;
    char name[96];

    if (runtime->device_name == NULL) {
        snprintf(text, ST_STREAM_TEXT_MAX, "%s stream", runtime->name);
        return;
    }
    (void)ucs_gstream_query_type(type, &attr);
    st_stream_device(type, name, sizeof(name));
    snprintf(text, ST_STREAM_TEXT_MAX, "%s stream (%s %d on %s)",
             runtime->name, attr.name, attr.version, name);
}

void st_stream_enter(ucs_gstream_type_t type)
{
    st_stream_current_func_t current =
            (st_stream_current_func_t)st_stream_find(type, "cuCtxGetCurrent");
    st_stream_retain_func_t retain   =
            (st_stream_retain_func_t)st_stream_find(
                    type, "cuDevicePrimaryCtxRetain");
    st_stream_set_func_t set         =
            (st_stream_set_func_t)st_stream_find(type, "cuCtxSetCurrent");
    void *context                    = NULL;

    if ((current != NULL) && (retain != NULL) && (set != NULL) &&
        (current(&context) == 0) && (context == NULL) &&
        (retain(&context, 0) == 0)) {
        (void)set(context);
    }
}

void *st_stream_alloc(ucs_gstream_type_t type, st_stream_memory_t kind,
                      size_t size)
{
    const char *name = st_stream_runtimes[type].alloc[kind];
    void *memory     = NULL;
    void *func;

    func = (name == NULL) ? NULL : st_stream_find(type, name);
    if (func == NULL) {
        return NULL;
    }
    st_stream_enter(type);
    if (kind == ST_STREAM_MEMORY_PINNED) {
        return (((st_stream_pinned_func_t)func)(&memory, size,
                                                ST_STREAM_PINNED_FLAGS) == 0) ?
                       memory :
                       NULL;
    }
    return (((st_stream_device_func_t)func)(&memory, size) == 0) ? memory :
                                                                   NULL;
}

void st_stream_free(ucs_gstream_type_t type, st_stream_memory_t kind,
                    void *memory)
{
    const char *name = st_stream_runtimes[type].free[kind];
    st_stream_free_func_t func;

    if ((memory == NULL) || (name == NULL)) {
        return;
    }
    func = (st_stream_free_func_t)st_stream_find(type, name);
    if (func != NULL) {
        (void)func(memory);
    }
}
