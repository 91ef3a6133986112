/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_module.c - the library's kernels in a device: loaded when its first
 * stream is made, never while something is enqueued, as to load code may wait
 * for the device.
 *
 * They are in the device's primary context and stay there, as does the code
 * that hipRTC made, which HIP does not copy. Streams of other contexts have
 * none.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_module.h"
#include "gstream_kernels.h"

#include <ucs/debug/assert.h>
#include <ucs/debug/log_def.h>
#include <ucs/sys/math.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Devices of a runtime that have kernels */
#define GSTREAM_MODULE_DEVICES 64

/* Threads of a kernel that waits: what a processor runs at the same time */
#define GSTREAM_MODULE_THREADS 32u

/* Of a launch's list of arguments, in both runtimes */
#define GSTREAM_MODULE_ARGS     ((void*)1)
#define GSTREAM_MODULE_SIZE     ((void*)2)
#define GSTREAM_MODULE_END_CUDA ((void*)0)
#define GSTREAM_MODULE_END_HIP  ((void*)3)


/* Of a device. Written under the lock before `is_tried`. */
typedef struct gstream_module {
    int                 is_tried;
    gstream_gpu_place_t home;
    gstream_kernels_t   kernels; /* NULL: there are none */
    char                reason[UCS_GSTREAM_TEXT_MAX]; /* ... and why */
} gstream_module_t;

static gstream_module_t gstream_modules[UCS_GSTREAM_TYPE_LAST]
                                       [GSTREAM_MODULE_DEVICES];
static pthread_mutex_t gstream_module_lock = PTHREAD_MUTEX_INITIALIZER;


/* Loads the module in the caller's current place. A result of the runtime. */
static int gstream_module_load(const gstream_gpu_t *gpu,
                               gstream_module_t *module)
{
    gstream_kernels_t kernels = {.gpu = gpu};
    void *native;
    int result;

    result = gpu->ops->load(gpu, &native, module->reason);
    if (result == GSTREAM_GPU_OK) {
        result = gpu->calls.get_function(&kernels.few, native,
                                         "ucs_gstream_waits_few");
    }
    if (result == GSTREAM_GPU_OK) {
        result = gpu->calls.get_function(&kernels.many, native,
                                         "ucs_gstream_waits_many");
    }
    if (result == GSTREAM_GPU_OK) {
        module->kernels = kernels;
    }
    return result;
}

static void gstream_module_try(const gstream_gpu_t *gpu,
                               const gstream_gpu_place_t *place,
                               gstream_module_t *module)
{
    gstream_gpu_place_t last;
    int result;

    result = gpu->ops->make_home(gpu, place, &module->home);
    if (result == GSTREAM_GPU_OK) {
        result = gstream_gpu_begin(gpu, &module->home, &last);
    }
    if (result == GSTREAM_GPU_OK) {
        result = gstream_module_load(gpu, module);
        gstream_gpu_end(gpu, &last);
    }
    if (gstream_gpu_is_ok(gpu, result)) {
        module->reason[0] = '\0';
        return;
    }
    if (module->reason[0] == '\0') {
        snprintf(module->reason, sizeof(module->reason),
                 "the kernel cannot be loaded: %s",
                 gpu->ops->result_name(gpu, result));
    }
    ucs_info("%s: device %d: a wait for several words is several calls: %s",
             gpu->name, place->device, module->reason);
}

const gstream_kernels_t *gstream_kernels_get(const gstream_gpu_t *gpu,
                                             const gstream_gpu_place_t *place)
{
    gstream_module_t *module;

    if (!gpu->has_kernels || (place->device >= GSTREAM_MODULE_DEVICES)) {
        return NULL;
    }
    module = &gstream_modules[gpu->type][place->device];
    pthread_mutex_lock(&gstream_module_lock);
    if (!module->is_tried) {
        gstream_module_try(gpu, place, module);
        __atomic_store_n(&module->is_tried, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&gstream_module_lock);
    return ((module->kernels.many != NULL) &&
            (module->home.context == place->context)) ? &module->kernels : NULL;
}

void gstream_kernels_tell(const gstream_gpu_t *gpu,
                          char text[UCS_GSTREAM_TEXT_MAX])
{
    const gstream_module_t *module;
    int device;

    text[0] = '\0';
    for (device = 0; device < GSTREAM_MODULE_DEVICES; ++device) {
        module = &gstream_modules[gpu->type][device];
        if (!__atomic_load_n(&module->is_tried, __ATOMIC_ACQUIRE)) {
            continue;
        }
        snprintf(text, UCS_GSTREAM_TEXT_MAX, "%s%s",
                 (module->reason[0] == '\0') ? "one kernel" : "a call each: ",
                 module->reason);
        if (module->reason[0] != '\0') {
            return;
        }
    }
}

static void gstream_kernels_set(gstream_kernel_op_t *to,
                                const gstream_gpu_op_t *ops, size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        to[i].address = ops[i].address;
        to[i].value   = ops[i].value;
    }
}

int gstream_kernels_wait(const gstream_kernels_t *kernels, void *native,
                         const gstream_gpu_op_t *ops, size_t num_waits,
                         size_t num_stores)
{
    const gstream_gpu_t *gpu = kernels->gpu;
    size_t count             = num_waits + num_stores;
    int is_few               = (count <= GSTREAM_KERNEL_FEW);
    size_t size              = is_few ? sizeof(gstream_kernel_few_t) :
                                        sizeof(gstream_kernel_many_t);
    unsigned threads         = ucs_min((unsigned)num_waits,
                                       GSTREAM_MODULE_THREADS);
    gstream_kernel_many_t args;
    void *extra[] = {GSTREAM_MODULE_ARGS, &args, GSTREAM_MODULE_SIZE, &size,
                     (gpu->type == UCS_GSTREAM_TYPE_CUDA) ?
                             GSTREAM_MODULE_END_CUDA :
                             GSTREAM_MODULE_END_HIP};

    ucs_assert(count <= GSTREAM_KERNEL_MANY);
    args.head = (gstream_kernel_head_t){
        .num_threads = threads,
        .num_waits   = (unsigned)num_waits,
        .num_stores  = (unsigned)num_stores
    };
    gstream_kernels_set(args.ops, ops, count);
    return gpu->calls.launch_kernel(is_few ? kernels->few : kernels->many, 1, 1,
                                    1, threads, 1, 1, 0, native, NULL, extra);
}
