/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_gpu.c - memory of devices, of the stand-ins or of a GPU.
 */
#include "mpix_gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MPIX_GPU_SKIPPED 77

mpix_gpu_t mpix_gpu;


static void *mpix_gpu_func(const mpix_gpu_t *gpu, const char *hip,
                           const char *cuda)
{
    void *func = dlsym(gpu->library, gpu->is_hip ? hip : cuda);

    if (func == NULL) {
        printf("FAILED rank %d: no %s\n", mpix_test.rank,
               gpu->is_hip ? hip : cuda);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return func;
}

/* CUDA's driver works in the thread's context */
void mpix_gpu_load(mpix_gpu_t *gpu, int is_hip)
{
    void *context = NULL;
    int (*init)(unsigned flags);
    int (*retain)(void **context, int device);
    int (*set)(void *context);

    gpu->is_hip  = is_hip;
    gpu->library = dlopen(is_hip ? "libamdhip64.so" : "libcuda.so.1",
                          RTLD_NOW | RTLD_LOCAL);
    if (gpu->library == NULL) {
        printf("FAILED rank %d: %s\n", mpix_test.rank, dlerror());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (!is_hip) {
        *(void**)&init   = mpix_gpu_func(gpu, NULL, "cuInit");
        *(void**)&retain = mpix_gpu_func(gpu, NULL, "cuDevicePrimaryCtxRetain");
        *(void**)&set    = mpix_gpu_func(gpu, NULL, "cuCtxSetCurrent");
        MPIX_CHECK((init(0) == 0) && (retain(&context, 0) == 0) &&
                   (set(context) == 0), "no context");
    }
}

char *mpix_gpu_alloc(const mpix_gpu_t *gpu, size_t size)
{
    char *place = NULL;
    int (*get)(char **place, size_t size);

    *(void**)&get = mpix_gpu_func(gpu, "hipMalloc", "cuMemAlloc_v2");
    MPIX_CHECK(get(&place, size) == 0, "no device memory");
    return place;
}

void mpix_gpu_free(const mpix_gpu_t *gpu, char *place)
{
    int (*put)(char *place);

    *(void**)&put = mpix_gpu_func(gpu, "hipFree", "cuMemFree_v2");
    MPIX_CHECK(put(place) == 0, "free");
}

void mpix_gpu_copy(const mpix_gpu_t *gpu, void *dst, const void *src,
                   size_t size)
{
    int (*hip)(void *dst, const void *src, size_t size, int kind);
    int (*cuda)(void *dst, const void *src, size_t size);
    int (*sync)(void *stream);

    if (gpu->is_hip) {
        *(void**)&hip = mpix_gpu_func(gpu, "hipMemcpy", NULL);
        MPIX_CHECK(hip(dst, src, size, 4) == 0, "copy");
    } else {
        *(void**)&cuda = mpix_gpu_func(gpu, NULL, "cuMemcpy");
        MPIX_CHECK(cuda(dst, src, size) == 0, "copy");
        /* The driver returns before data of the host is there */
        *(void**)&sync = mpix_gpu_func(gpu, NULL, "cuStreamSynchronize");
        MPIX_CHECK(sync(NULL) == 0, "copy");
    }
}

char *mpix_place_get(int is_device, size_t size)
{
    return is_device ? mpix_gpu_alloc(&mpix_gpu, size) : malloc(size);
}

void mpix_place_put(int is_device, char *place)
{
    if (is_device) {
        mpix_gpu_free(&mpix_gpu, place);
    } else {
        free(place);
    }
}

void mpix_check_refused(int code, int class, const char *more)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    MPI_Error_string(code, text, &length);
    MPIX_IS(class, code);
#ifndef MPICH_VERSION /* It has strings of its own */
    MPIX_CHECK(strstr(text, "in memory of") || strstr(text, "in memory that"),
               "\"%s\"", text);
    MPIX_CHECK(strstr(text, more) != NULL, "\"%s\"", text);
#endif
}

int mpix_gpu_main(const mpix_test_case_t *cases, const char *name, int argc,
                  char **argv)
{
    const char *stream = getenv("ST_TEST_STREAM");

    if ((stream == NULL) || (strcmp(stream, "hip") && strcmp(stream, "cuda"))) {
        printf("SKIPPED: ST_TEST_STREAM is neither hip nor cuda\n");
        return MPIX_GPU_SKIPPED;
    }

    mpix_test_init_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    mpix_gpu_load(&mpix_gpu, mpix_test.queue_type == MPIX_QUEUE_HIP);
    mpix_test_cases(cases, argc, argv);
    return mpix_test_end(name);
}
