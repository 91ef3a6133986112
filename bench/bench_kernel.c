/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_kernel.c - loads the benchmarks' kernels, and launches them. */
#include "bench_kernel.h"

#include <st_stream.h>
#include <ucs_hiprtc.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Threads of a block, and blocks for each processor of the device */
#define BENCH_KERNEL_THREADS 256
#define BENCH_KERNEL_BLOCKS  4

/* Attributes of a device */
#define BENCH_THREADS_CUDA    1
#define BENCH_THREADS_HIP     56
#define BENCH_PROCESSORS_CUDA 16
#define BENCH_PROCESSORS_HIP  63
#define BENCH_KHZ_CUDA        13
#define BENCH_KHZ_HIP         5

/* Of a launch's list of arguments */
#define BENCH_ARGS     ((void*)1)
#define BENCH_SIZE     ((void*)2)
#define BENCH_END_CUDA ((void*)0)
#define BENCH_END_HIP  ((void*)3)


static const char *const bench_kernel_names[BENCH_KERNEL_LAST] = {
    [BENCH_KERNEL_PP_PACK]        = "bench_pp_pack",
    [BENCH_KERNEL_PP_UNPACK]      = "bench_pp_unpack",
    [BENCH_KERNEL_SPIN]           = "bench_spin",
    [BENCH_KERNEL_FACES_PACK]     = "bench_faces_pack",
    [BENCH_KERNEL_FACES_INTERIOR] = "bench_faces_interior",
    [BENCH_KERNEL_FACES_UNPACK]   = "bench_faces_unpack",
    [BENCH_KERNEL_LIFE_PACK]      = "bench_life_pack",
    [BENCH_KERNEL_LIFE_STEP]      = "bench_life_step"
};

/* Of a runtime */
typedef struct bench_module_calls {
    int (*load)(void **module, const void *image);
    int (*get)(void **function, void *module, const char *name);
    int (*ask)(int *value, int attribute, int device);
    bench_launch_func_t launch;
} bench_module_calls_t;


/* Returns 0 unless one is missing */
static int bench_module_find(ucs_gstream_type_t type,
                             bench_module_calls_t *calls)
{
    static const struct {
        size_t     offset;
        const char *hip;
        const char *cuda;
    } names[] = {
        {offsetof(bench_module_calls_t, load), "hipModuleLoadData",
         "cuModuleLoadData"},
        {offsetof(bench_module_calls_t, get), "hipModuleGetFunction",
         "cuModuleGetFunction"},
        {offsetof(bench_module_calls_t, ask), "hipDeviceGetAttribute",
         "cuDeviceGetAttribute"},
        {offsetof(bench_module_calls_t, launch), "hipModuleLaunchKernel",
         "cuLaunchKernel"}
    };
    void *func;
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        func = st_stream_find(type, (type == UCS_GSTREAM_TYPE_HIP) ?
                                            names[i].hip :
                                            names[i].cuda);
        if (func == NULL) {
            return -1;
        }
        memcpy((char*)calls + names[i].offset, &func, sizeof(func));
    }
    return 0;
}

/* HIP does not copy code that hipRTC has made, and keeps it */
static int bench_module_load(ucs_gstream_type_t type,
                             const bench_module_calls_t *calls, void **module,
                             char *reason)
{
    ucs_gstream_type_attr_t attr;
    void *code;
    int result = -1;

    if (type == UCS_GSTREAM_TYPE_CUDA) {
        return calls->load(module, bench_image_ptx);
    }
    if (bench_image_objects[0] != '\0') {
        result = calls->load(module, bench_image_objects);
    }
    if (result != 0) {
        (void)ucs_gstream_query_type(type, &attr);
        code = ucs_hiprtc_compile(attr.library,
                                  (const char*)bench_image_source, reason,
                                  UCS_GSTREAM_TEXT_MAX);
        if (code != NULL) {
            result = calls->load(module, code);
        }
    }
    return result;
}

/* An attribute of the first device that is not 0; 1 if it does not tell */
static unsigned bench_module_ask(ucs_gstream_type_t type,
                                 const bench_module_calls_t *calls, int hip,
                                 int cuda)
{
    int value = 0;

    return ((calls->ask(&value, (type == UCS_GSTREAM_TYPE_HIP) ? hip : cuda,
                        0) == 0) && (value > 0)) ? (unsigned)value : 1;
}

const char *bench_kernels_load(bench_kernels_t *kernels, ucs_gstream_h stream)
{
    static char reason[UCS_GSTREAM_TEXT_MAX];
    const ucs_gstream_type_t type = ucs_gstream_type(stream);
    bench_module_calls_t calls;
    void *module;
    int i, result;

    st_stream_enter(type);
    if (bench_module_find(type, &calls) != 0) {
        return "the runtime has no modules";
    }
    result = bench_module_load(type, &calls, &module, reason);
    for (i = 0; (i < BENCH_KERNEL_LAST) && (result == 0); ++i) {
        result = calls.get(&kernels->functions[i], module,
                           bench_kernel_names[i]);
    }
    if (result != 0) {
        if (reason[0] == '\0') {
            snprintf(reason, sizeof(reason), "the benchmarks' kernels cannot "
                     "be loaded: error %d", result);
        }
        return reason;
    }
    kernels->launch      = calls.launch;
    kernels->native      = ucs_gstream_native(stream);
    kernels->end         = (type == UCS_GSTREAM_TYPE_HIP) ? BENCH_END_HIP :
                                                            BENCH_END_CUDA;
    kernels->max_threads = bench_module_ask(type, &calls, BENCH_THREADS_HIP,
                                            BENCH_THREADS_CUDA);
    kernels->num_blocks  = BENCH_KERNEL_BLOCKS *
                           bench_module_ask(type, &calls, BENCH_PROCESSORS_HIP,
                                            BENCH_PROCESSORS_CUDA);
    kernels->khz         = bench_module_ask(type, &calls, BENCH_KHZ_HIP,
                                            BENCH_KHZ_CUDA);
    if (kernels->max_threads > BENCH_KERNEL_THREADS) {
        kernels->max_threads = BENCH_KERNEL_THREADS;
    }
    return NULL;
}

int bench_kernels_launch(const bench_kernels_t *kernels, bench_kernel_t kernel,
                         size_t count, void *args, size_t size)
{
    bench_kernel_head_t *head = args;
    unsigned threads          = kernels->max_threads;
    size_t blocks             = (count + threads - 1) / threads;
    void *extra[] = {BENCH_ARGS, args, BENCH_SIZE, &size, kernels->end};

    blocks            = (blocks == 0) ? 1 :
                        (blocks > kernels->num_blocks) ? kernels->num_blocks :
                                                         blocks;
    head->num_threads = threads;
    head->num_all     = threads * (unsigned)blocks;
    return kernels->launch(kernels->functions[kernel], (unsigned)blocks, 1, 1,
                           threads, 1, 1, 0, kernels->native, NULL, extra);
}
