/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_runtime.c - the runtimes of GPUs: opened when they are first needed,
 * and what they say of devices, memory and handles.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* dladdr() */
#endif

#include "gstream_gpu.h"
#include "gstream_device.h"
#include "gstream_fork.h"
#include "gstream_memory.h"
#include "gstream_module.h"
#include "api/ucs_loaded.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/math.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Of opening runtimes */
static pthread_mutex_t gstream_gpu_lock = PTHREAD_MUTEX_INITIALIZER;


static gstream_gpu_t *gstream_gpu_get(ucs_gstream_type_t type)
{
    return (type == UCS_GSTREAM_TYPE_CUDA) ? &gstream_cuda : &gstream_hip;
}

ucs_status_t gstream_gpu_status(const gstream_gpu_t *gpu, int result,
                                const char *what)
{
    if (gstream_gpu_is_ok(gpu, result)) {
        return UCS_OK;
    }
    ucs_error("%s: %s: %s", gpu->name, what,
              gpu->ops->result_name(gpu, result));
    switch (result) {
    case GSTREAM_GPU_NO_MEMORY:
        return UCS_ERR_NO_MEMORY;
    case GSTREAM_GPU_NOT_SUPPORTED:
        return UCS_ERR_UNSUPPORTED;
    default:
        return gstream_gpu_is_capture(result) ? UCS_ERR_UNSUPPORTED :
                                                UCS_ERR_IO_ERROR;
    }
}

/* Opens one library that has the runtime's functions; 0 if there is none, or
 * one of its functions is missing. */
static int gstream_gpu_open_library(gstream_gpu_t *gpu, int is_loaded)
{
    void *library = NULL;
    const gstream_gpu_name_t *name;
    Dl_info info;
    size_t i, j;
    void *func;

    if (gpu->is_off) {
        snprintf(gpu->reason, sizeof(gpu->reason),
                 "this build has no %s: configure it without --without-%s",
                 gpu->name,
                 (gpu->type == UCS_GSTREAM_TYPE_HIP) ? "rocm" : "cuda");
        return 0;
    }
    for (i = 0; (library == NULL) && (gpu->libraries[i] != NULL); ++i) {
        library = ucs_loaded_open(gpu->libraries[i]);
    }
    for (i = 0; !is_loaded && (library == NULL) && (gpu->libraries[i] != NULL);
         ++i) {
        library = dlopen(gpu->libraries[i], RTLD_LAZY);
    }
    if (library == NULL) {
        snprintf(gpu->reason, sizeof(gpu->reason),
                 "no library %s: install the driver or set LD_LIBRARY_PATH",
                 gpu->libraries[0]);
        return 0;
    }

    for (i = 0; i < gpu->num_names; ++i) {
        name = &gpu->names[i];
        func = NULL;
        for (j = 0; (func == NULL) && (j < GSTREAM_GPU_MAX_NAMES) &&
                    (name->names[j] != NULL); ++j) {
            func = dlsym(library, name->names[j]);
        }
        if ((func == NULL) && !name->is_optional) {
            snprintf(gpu->reason, sizeof(gpu->reason),
                     "%s has no %s: the version is too old",
                     gpu->libraries[0], name->names[0]);
            (void)dlclose(library);
            return 0;
        }
        memcpy((char*)&gpu->calls + name->offset, &func, sizeof(func));
        if ((func != NULL) && (dladdr(func, &info) != 0)) {
            snprintf(gpu->library, sizeof(gpu->library), "%s",
                     info.dli_fname);
        }
    }
    return 1; /* The handle is kept: the functions must not go away */
}

/* Looks at what was opened; 0 if it cannot be used. */
static int gstream_gpu_open_devices(gstream_gpu_t *gpu)
{
    int result = gpu->calls.init(0);

    if (result == GSTREAM_GPU_OK) {
        (void)gpu->calls.get_version(&gpu->version);
        result = gpu->calls.get_count(&gpu->num_devices);
    }
    if (!gstream_gpu_is_ok(gpu, result)) {
        snprintf(gpu->reason, sizeof(gpu->reason), "%s finds no device: %s",
                 gpu->libraries[0], gpu->ops->result_name(gpu, result));
        return 0;
    }
    if (gpu->num_devices == 0) {
        snprintf(gpu->reason, sizeof(gpu->reason), "%s finds no device",
                 gpu->libraries[0]);
        return 0;
    }
    return 1;
}

/* In a child that was forked, which has no thread of a runtime, and perhaps
 * locks of theirs that nobody unlocks. Nobody else is there. */
void gstream_gpu_forked(void)
{
    gstream_gpu_t *runtimes[] = {&gstream_cuda, &gstream_hip};
    unsigned i;

    pthread_mutex_init(&gstream_gpu_lock, NULL);
    for (i = 0; i < ucs_static_array_size(runtimes); ++i) {
        if (runtimes[i]->is_open) {
            snprintf(runtimes[i]->reason, sizeof(runtimes[i]->reason),
                     "%s was in use when this process was forked: have the "
                     "child execute a program", runtimes[i]->name);
            runtimes[i]->is_forked = 1;
        }
    }
}

static int gstream_gpu_open_locked(gstream_gpu_t *gpu, int is_loaded)
{
    if (gpu->is_open) {
        return 1;
    }
    if (gpu->is_useless ||
        (!ucs_loaded_has_new(&gpu->loads) && is_loaded) ||
        !gstream_gpu_open_library(gpu, is_loaded)) {
        return 0;
    }
    if (!gstream_gpu_open_devices(gpu)) {
        gpu->is_useless = 1; /* It finds none later either */
        return 0;
    }
    gpu->reason[0] = '\0';
    __atomic_store_n(&gpu->is_open, 1, __ATOMIC_RELEASE);
    return 1;
}

const gstream_gpu_t *gstream_gpu_open(ucs_gstream_type_t type, int is_loaded)
{
    gstream_gpu_t *gpu = gstream_gpu_get(type);
    int is_open        = __atomic_load_n(&gpu->is_open, __ATOMIC_ACQUIRE);

    if (!is_open) {
        pthread_mutex_lock(&gstream_gpu_lock);
        is_open = gstream_gpu_open_locked(gpu, is_loaded);
        pthread_mutex_unlock(&gstream_gpu_lock);
    }
    return (is_open && !gpu->is_forked) ? gpu : NULL;
}

ucs_status_t gstream_gpu_query_type(ucs_gstream_type_t type,
                                    ucs_gstream_type_attr_t *attr)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(type, 0);
    const char *why          = NULL;
    int device;

    if (gpu == NULL) {
        gpu = gstream_gpu_get(type);
        pthread_mutex_lock(&gstream_gpu_lock);
        snprintf(attr->reason, sizeof(attr->reason), "%s", gpu->reason);
        pthread_mutex_unlock(&gstream_gpu_lock);
        return UCS_ERR_UNSUPPORTED;
    }

    snprintf(attr->library, sizeof(attr->library), "%s", gpu->library);
    attr->version     = gpu->version;
    attr->num_devices = gpu->num_devices;
    attr->has_batches = (gpu->calls.batch != NULL);
    gstream_kernels_tell(gpu, attr->waits, attr->kernels);
    for (device = 0; device < gpu->num_devices; ++device) {
        why = gpu->ops->check_device(gpu, device);
        if (why == NULL) {
            return UCS_OK; /* one is enough */
        }
    }
    snprintf(attr->reason, sizeof(attr->reason), "%s", why);
    return UCS_ERR_UNSUPPORTED;
}

static void gstream_gpu_exchange(const gstream_gpu_t *gpu, int *mode_p)
{
    if (gpu->calls.exchange_mode != NULL) {
        (void)gpu->calls.exchange_mode(mode_p);
    }
}

void gstream_gpu_relax(const gstream_gpu_t *gpu, gstream_gpu_place_t *last)
{
    last->mode = GSTREAM_GPU_CAPTURE_RELAXED;
    gstream_gpu_exchange(gpu, &last->mode);
}

int gstream_gpu_begin(const gstream_gpu_t *gpu,
                      const gstream_gpu_place_t *place,
                      gstream_gpu_place_t *last)
{
    int result = gpu->ops->enter(gpu, place, last);

    if (result == GSTREAM_GPU_OK) {
        gstream_gpu_relax(gpu, last);
    }
    return result;
}

void gstream_gpu_end(const gstream_gpu_t *gpu, gstream_gpu_place_t *last)
{
    gstream_gpu_exchange(gpu, &last->mode);
    gpu->ops->leave(gpu, last);
}

int gstream_gpu_register(const gstream_gpu_t *gpu, void *start, size_t length,
                         int is_io, uint64_t *device_p)
{
    unsigned flags = GSTREAM_GPU_REGISTER_ALL | GSTREAM_GPU_REGISTER_MAP |
                     (is_io ? gpu->ops->flag(gpu, GSTREAM_GPU_REGISTER_IO) : 0);
    gstream_gpu_place_t last;
    int result;

    result = gstream_gpu_begin(gpu, &gpu->home, &last);
    if (result == GSTREAM_GPU_OK) {
        result = gpu->calls.memory_register(start, length, flags);
        if (result == GSTREAM_GPU_OK) {
            result = gpu->calls.memory_device(device_p, start, 0);
            if (result != GSTREAM_GPU_OK) {
                (void)gpu->calls.memory_unregister(start);
            }
        }
        gstream_gpu_end(gpu, &last);
    }
    if (!gstream_gpu_is_ok(gpu, result)) {
        ucs_diag("%s: %s %p of %zu bytes cannot be registered: %s", gpu->name,
                 is_io ? "a device's registers" : "memory", start, length,
                 gpu->ops->result_name(gpu, result));
    }
    return result;
}

void gstream_gpu_unregister(ucs_gstream_type_t type, void *start)
{
    const gstream_gpu_t *gpu = gstream_gpu_get(type);
    gstream_gpu_place_t last;

    /* Where the context is gone, so is what was registered */
    if (gstream_gpu_is_ok(gpu, gstream_gpu_begin(gpu, &gpu->home, &last))) {
        (void)gstream_gpu_is_ok(gpu, gpu->calls.memory_unregister(start));
        gstream_gpu_end(gpu, &last);
    }
}

int ucs_gstream_type_reaches(ucs_gstream_type_t type,
                             const volatile uint64_t *word)
{
    const gstream_gpu_t *gpu;
    gstream_gpu_place_t place;
    uint64_t address;

    if ((word == NULL) || ((unsigned)type >= UCS_GSTREAM_TYPE_LAST)) {
        return 0;
    }
    if (type == UCS_GSTREAM_TYPE_HOST) {
        return 1;
    }
    gpu = gstream_gpu_open(type, 0);
    if ((gpu == NULL) || gstream_device_covers(word)) {
        return 0;
    }
    if (!__atomic_load_n(&gpu->has_home, __ATOMIC_ACQUIRE) &&
        (!gstream_gpu_is_ok(gpu, gpu->ops->find_place(gpu, NULL, &place)) ||
         (gstream_gpu_set_home(type, &place) != UCS_OK))) {
        return 0;
    }
    return gstream_memory_map(gpu, word, &address) == UCS_OK;
}

uint64_t gstream_gpu_address(const gstream_gpu_t *gpu, const void *memory)
{
    uint64_t address = 0;
    int result       = gpu->calls.pointer(&address, GSTREAM_GPU_POINTER_DEVICE,
                                          (uintptr_t)memory);

    return gstream_gpu_is_ok(gpu, result) ? address : 0;
}

int gstream_gpu_is_hosts(const gstream_gpu_t *gpu, int device)
{
    int attribute = (gpu->type == UCS_GSTREAM_TYPE_CUDA) ?
                            GSTREAM_GPU_CONCURRENT_CUDA :
                            GSTREAM_GPU_CONCURRENT_HIP;
    int value     = 0;

    return gstream_gpu_is_ok(gpu, gpu->calls.get_attribute(&value, attribute,
                                                           device)) && value;
}

/* An attribute of an address, an integer or a byte */
static int gstream_gpu_ask(const gstream_gpu_t *gpu, const void *address,
                           int attribute, int *value_p)
{
    *value_p = 0;
    return gstream_gpu_is_ok(gpu, gpu->calls.pointer(value_p, attribute,
                                                     (uintptr_t)address));
}

/* The type is not asked first: before 6.2 HIP takes what it does not know for
 * an array, and looks into it */
int gstream_gpu_knows(const gstream_gpu_t *gpu, const void *address,
                      int *type_p, int *is_managed_p)
{
    return gstream_gpu_ask(gpu, address, GSTREAM_GPU_POINTER_MANAGED,
                           is_managed_p) &&
           gstream_gpu_ask(gpu, address, GSTREAM_GPU_POINTER_TYPE, type_p);
}

ucs_status_t ucs_gstream_memory_query(const void *address,
                                      ucs_gstream_memory_attr_t *attr)
{
    /* HIP may lie over CUDA, which knows all of its memory, too */
    static const ucs_gstream_type_t types[] = {UCS_GSTREAM_TYPE_HIP,
                                               UCS_GSTREAM_TYPE_CUDA};
    const gstream_gpu_t *gpu;
    int type, is_managed, device;
    unsigned i;

    if (attr == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    memset(attr, 0, sizeof(*attr));
    attr->type     = UCS_GSTREAM_TYPE_HOST;
    attr->is_hosts = 1;
    for (i = 0; i < ucs_static_array_size(types); ++i) {
        gpu = gstream_gpu_open(types[i], 1);
        if ((gpu == NULL) ||
            !gstream_gpu_knows(gpu, address, &type, &is_managed)) {
            continue;
        }
        (void)gstream_gpu_ask(gpu, address, GSTREAM_GPU_POINTER_ORDINAL,
                              &device);
        attr->is_pinned  = 1;
        attr->is_managed = !!(is_managed & 0xff);
        if (attr->is_managed || gpu->ops->is_device_type(gpu, type)) {
            attr->type         = types[i];
            attr->device       = device;
            attr->is_hosts     = attr->is_managed &&
                                 gstream_gpu_is_hosts(gpu, device);
        }
        break;
    }
    return UCS_OK;
}

const char *
ucs_gstream_memory_remote_fault(const ucs_gstream_memory_attr_t *attr,
                                int is_written)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(attr->type, 1);

    return gpu->ops->check_remote(gpu, attr->device, is_written);
}

const char *
ucs_gstream_memory_kernel_fault(const ucs_gstream_memory_attr_t *attr)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(attr->type, 1);

    return gpu->ops->check_kernel(gpu, attr->device);
}

ucs_status_t gstream_gpu_detect(void *handle, ucs_gstream_type_t *type_p)
{
    const gstream_gpu_t *hip  = gstream_gpu_open(UCS_GSTREAM_TYPE_HIP, 1);
    const gstream_gpu_t *cuda = gstream_gpu_open(UCS_GSTREAM_TYPE_CUDA, 1);
    const char *what          = "is no stream of HIP nor of CUDA";

    if ((hip == NULL) && (cuda == NULL)) {
        what = "is none of this library, and no runtime of GPUs that works is "
               "loaded";
    } else if ((uintptr_t)handle <= GSTREAM_GPU_LAST_DEFAULT) {
        if ((hip == NULL) || (cuda == NULL)) {
            *type_p = (hip != NULL) ? UCS_GSTREAM_TYPE_HIP :
                                      UCS_GSTREAM_TYPE_CUDA;
            return UCS_OK;
        }
        what = "is a default stream of both HIP and CUDA, which are loaded";
    } else if ((hip != NULL) && hip->ops->is_stream(hip, handle)) {
        *type_p = UCS_GSTREAM_TYPE_HIP; /* it knows its streams */
        return UCS_OK;
    } else if ((cuda != NULL) && cuda->ops->is_stream(cuda, handle)) {
        *type_p = UCS_GSTREAM_TYPE_CUDA;
        return UCS_OK;
    }
    ucs_error("stream %p %s", handle, what);
    return UCS_ERR_INVALID_PARAM;
}

ucs_status_t gstream_gpu_set_home(ucs_gstream_type_t type,
                                  const gstream_gpu_place_t *place)
{
    gstream_gpu_t *gpu = gstream_gpu_get(type);
    int result         = GSTREAM_GPU_OK;

    pthread_mutex_lock(&gstream_gpu_lock);
    if (!gpu->has_home) {
        result = gpu->ops->make_home(gpu, place, &gpu->home);
        __atomic_store_n(&gpu->has_home, result == GSTREAM_GPU_OK,
                         __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&gstream_gpu_lock);
    return gstream_gpu_status(gpu, result, "no context for registered memory");
}
