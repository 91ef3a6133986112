/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_module.c - the library's kernels in a device: loaded when its first
 * stream is made, or the first operation on its memory, never while something
 * is enqueued, as to load code may wait for the device.
 *
 * They are in the device's primary context and stay there, as does the code
 * that hipRTC made, which HIP does not copy. Streams of other contexts have
 * none.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_module.h"

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


/* An attribute of a device that is not 0; 1 if it does not tell */
static unsigned gstream_module_ask(const gstream_gpu_t *gpu, int device,
                                   int cuda, int hip)
{
    int value = 0;
    int result;

    result = gpu->calls.get_attribute(
            &value, (gpu->type == UCS_GSTREAM_TYPE_CUDA) ? cuda : hip, device);
    return (gstream_gpu_is_ok(gpu, result) && (value > 0)) ? (unsigned)value :
                                                             1;
}

/* Loads the module in the caller's current place. A result of the runtime. */
static int gstream_module_load(const gstream_gpu_t *gpu,
                               gstream_module_t *module)
{
    gstream_kernels_t kernels = {.gpu = gpu};
    const struct {
        const char *name;
        void       **function_p;
    } names[] = {
        {"ucs_gstream_waits_few", &kernels.waits_few},
        {"ucs_gstream_waits_many", &kernels.waits_many},
        {"ucs_gstream_pairs_few", &kernels.pairs_few},
        {"ucs_gstream_pairs_many", &kernels.pairs_many},
        {"ucs_gstream_move", &kernels.move}
    };
    void *native;
    unsigned i;
    int result;

    result = gpu->ops->load(gpu, &native, module->reason);
    for (i = 0; (i < ucs_static_array_size(names)) &&
                (result == GSTREAM_GPU_OK); ++i) {
        result = gpu->calls.get_function(names[i].function_p, native,
                                         names[i].name);
    }
    if (result == GSTREAM_GPU_OK) {
        kernels.max_threads    = gstream_module_ask(
                gpu, module->home.device, GSTREAM_GPU_THREADS_CUDA,
                GSTREAM_GPU_THREADS_HIP);
        kernels.num_processors = gstream_module_ask(
                gpu, module->home.device, GSTREAM_GPU_PROCESSORS_CUDA,
                GSTREAM_GPU_PROCESSORS_HIP);
        module->kernels        = kernels;
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
    ucs_info("%s: device %d: no kernels: %s", gpu->name, place->device,
             module->reason);
}

const gstream_kernels_t *gstream_kernels_get(const gstream_gpu_t *gpu,
                                             const gstream_gpu_place_t *place)
{
    gstream_module_t *module;

    if (place->device >= GSTREAM_MODULE_DEVICES) {
        return NULL;
    }
    module = &gstream_modules[gpu->type][place->device];
    pthread_mutex_lock(&gstream_module_lock);
    if (!module->is_tried) {
        gstream_module_try(gpu, place, module);
        __atomic_store_n(&module->is_tried, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&gstream_module_lock);
    return ((module->kernels.gpu != NULL) &&
            (module->home.context == place->context)) ? &module->kernels : NULL;
}

void gstream_kernels_tell(const gstream_gpu_t *gpu,
                          char waits[UCS_GSTREAM_TEXT_MAX],
                          char kernels[UCS_GSTREAM_TEXT_MAX])
{
    const gstream_module_t *module;
    int device;

    waits[0]   = '\0';
    kernels[0] = '\0';
    for (device = 0; device < GSTREAM_MODULE_DEVICES; ++device) {
        module = &gstream_modules[gpu->type][device];
        if (!__atomic_load_n(&module->is_tried, __ATOMIC_ACQUIRE)) {
            continue;
        }
        snprintf(kernels, UCS_GSTREAM_TEXT_MAX, "%s",
                 (module->reason[0] == '\0') ? "loaded" : module->reason);
        if (gpu->has_kernels) {
            snprintf(waits, UCS_GSTREAM_TEXT_MAX, "%s%s",
                     (module->reason[0] == '\0') ? "one kernel" :
                                                   "a call each: ",
                     module->reason);
        }
        if (module->reason[0] != '\0') {
            return;
        }
    }
}

int gstream_kernels_launch(const gstream_gpu_t *gpu, void *native,
                           const gstream_launch_t *launch)
{
    size_t size   = launch->size;
    void *extra[] = {GSTREAM_MODULE_ARGS, launch->args, GSTREAM_MODULE_SIZE,
                     &size, (gpu->type == UCS_GSTREAM_TYPE_CUDA) ?
                                    GSTREAM_MODULE_END_CUDA :
                                    GSTREAM_MODULE_END_HIP};

    return gpu->calls.launch_kernel(launch->function, launch->blocks, 1, 1,
                                    launch->threads, 1, 1, 0, native, NULL,
                                    extra);
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
    size_t count = num_waits + num_stores;
    int is_few   = (count <= GSTREAM_KERNEL_FEW);
    gstream_kernel_many_t args;
    const gstream_launch_t launch = {
        .function = is_few ? kernels->waits_few : kernels->waits_many,
        .blocks   = 1,
        .threads  = ucs_min(ucs_max((unsigned)num_waits, 1u),
                            ucs_min(kernels->max_threads,
                                    GSTREAM_MODULE_THREADS)),
        .args     = &args,
        .size     = is_few ? sizeof(gstream_kernel_few_t) :
                             sizeof(gstream_kernel_many_t)
    };

    ucs_assert(count <= GSTREAM_KERNEL_MANY);
    args.head = (gstream_kernel_head_t){
        .num_threads = launch.threads,
        .num_waits   = (unsigned)num_waits,
        .num_stores  = (unsigned)num_stores
    };
    gstream_kernels_set(args.ops, ops, count);
    return gstream_kernels_launch(kernels->gpu, native, &launch);
}
