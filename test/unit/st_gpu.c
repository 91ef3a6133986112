/* SPDX-License-Identifier: BSD-3-Clause */
/* st_gpu.c - a pair of sides with streams of a GPU. */
#include "st_gpu.h"
#include "st_cunit.h"

#include <CUnit/CUnit.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library finds a runtime that the process has loaded already */
void *gpu_open(int is_hip)
{
    const char *dir = getenv(is_hip ? "ST_HIP_DIR" : "ST_CUDA_DIR");
    void *runtime;
    char path[512];

    dir = (dir != NULL) ? dir : STANDIN_DIR;
    snprintf(path, sizeof(path), "%s%s%s", dir, (*dir == '\0') ? "" : "/",
             is_hip ? "libamdhip64.so" : "libcuda.so.1");
    runtime = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CU_ASSERT_PTR_NOT_NULL(runtime);
    if (runtime == NULL) {
        fprintf(stderr, "%s\n", dlerror());
    }
    return runtime;
}

static void gpu_counts_none(standin_counts_t *counts)
{
    memset(counts, 0, sizeof(*counts));
}

int gpu_load(gpu_t *gpu)
{
    int (*is_real)(void);

    gpu->runtime = gpu_open(gpu->is_hip);
    if (gpu->runtime == NULL) {
        return 0;
    }
    *(void**)&gpu->counts = dlsym(gpu->runtime, "standin_counts");
    *(void**)&is_real     = dlsym(gpu->runtime, "standin_is_real");
    gpu->is_real          = (gpu->counts == NULL) ||
                            ((is_real != NULL) && is_real());
    if (gpu->is_real) {
        gpu->counts = gpu_counts_none;
    }
    return 1;
}

void *gpu_func(const gpu_t *gpu, const char *hip, const char *cuda)
{
    void *func = dlsym(gpu->runtime, gpu->is_hip ? hip : cuda);

    CU_ASSERT_PTR_NOT_NULL_FATAL(func);
    return func;
}

void gpu_set_device(const gpu_t *gpu, int device)
{
    int (*init)(unsigned flags);
    int (*set_hip)(int device);
    int (*retain)(void **context, int device);
    int (*set)(void *context);
    void *context;

    if (gpu->is_hip) {
        *(void**)&set_hip = gpu_func(gpu, "hipSetDevice", NULL);
        CU_ASSERT_EQUAL(set_hip(device), 0);
    } else {
        *(void**)&init   = gpu_func(gpu, NULL, "cuInit");
        *(void**)&retain = gpu_func(gpu, NULL, "cuDevicePrimaryCtxRetain");
        *(void**)&set    = gpu_func(gpu, NULL, "cuCtxSetCurrent");
        CU_ASSERT_EQUAL(init(0), 0);
        CU_ASSERT_EQUAL(retain(&context, device), 0);
        CU_ASSERT_EQUAL(set(context), 0);
    }
}

uint8_t *gpu_alloc(const gpu_t *gpu, size_t length)
{
    uint8_t *memory = NULL;
    int (*get)(uint8_t **address, size_t size);

    gpu_set_device(gpu, 0);
    *(void**)&get = gpu_func(gpu, "hipMalloc", "cuMemAlloc_v2");
    CU_ASSERT_EQUAL_FATAL(get(&memory, length), 0);
    return memory;
}

uint8_t *gpu_alloc_managed(const gpu_t *gpu, size_t length)
{
    int (*get)(uint8_t **address, size_t size, unsigned flags);
    uint8_t *memory = NULL;

    gpu_set_device(gpu, 0);
    *(void**)&get = gpu_func(gpu, "hipMallocManaged", "cuMemAllocManaged");
    CU_ASSERT_EQUAL_FATAL(get(&memory, length, 1), 0);
    return memory;
}

void gpu_free(const gpu_t *gpu, uint8_t *memory)
{
    int (*put)(uint8_t *address);

    *(void**)&put = gpu_func(gpu, "hipFree", "cuMemFree_v2");
    CU_ASSERT_EQUAL(put(memory), 0);
}

void gpu_run(int is_hip, const char *lane, gpu_body_t body)
{
    gpu_t gpu        = {.is_hip = is_hip};
    const char *name = is_hip ? "hip" : "cuda";
    char *stream, *st_lane, *lanes, *errors, *tls;

    stream = getenv("ST_TEST_STREAM");
    if ((stream != NULL) && (strcmp(stream, name) != 0)) {
        st_cunit_skip("ST_TEST_STREAM names the other runtime");
        return;
    }
    stream  = st_env_set("ST_TEST_STREAM", name);
    st_lane = st_env_set("ST_LANE", lane);
    lanes   = st_env_set("UCX_ST_LANES", lane);
    errors  = st_env_set("UCX_MM_ERROR_HANDLING", "y");
    tls     = st_env_set("UCX_TLS", ((lane != NULL) && strcmp(lane, "trig")) ?
                                            "posix,self" :
                                            "posix,self,cxi_trig");
    if (gpu_load(&gpu) && st_pair_init(&gpu.pair)) {
        gpu.side = gpu.pair.side;
        body(&gpu);
        st_pair_cleanup(&gpu.pair);
    }
    st_env_restore("UCX_TLS", tls);
    st_env_restore("UCX_MM_ERROR_HANDLING", errors);
    st_env_restore("UCX_ST_LANES", lanes);
    st_env_restore("ST_LANE", st_lane);
    st_env_restore("ST_TEST_STREAM", stream);
}
