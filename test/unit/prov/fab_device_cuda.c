/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_device_cuda.c - stores by a GPU to registered host memory. The driver is
 * opened at run time; its interface is declared here as far as it is used.
 */
#include "fab_device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CUDA_HOST_REGISTER_PORTABLE  = 1,
    CUDA_HOST_REGISTER_DEVICEMAP = 2
};

struct fab_device {
    void     *context;
    void     *page;
    uint64_t address; /* of the page, as the GPU sees it */
};

static struct {
    void *library;
    int  (*init)(unsigned flags);
    int  (*device_get)(int *device, int ordinal);
    int  (*retain)(void **context, int device);
    int  (*set_current)(void *context);
    int  (*host_register)(void *address, size_t length, unsigned flags);
    int  (*host_unregister)(void *address);
    int  (*device_pointer)(uint64_t *result, void *address, unsigned flags);
    int  (*write_value)(void *stream, uint64_t address, uint64_t value,
                        unsigned flags);
    int  (*synchronize)(void *stream);
} cuda;

/* Non-zero if the function is there; a function pointer is no object's */
static int cuda_find(void *func, const char *name)
{
    *(void**)func = dlsym(cuda.library, name);
    return *(void**)func != NULL;
}

static int cuda_load(void)
{
    cuda.library = dlopen("libcuda.so.1", RTLD_NOW);
    return (cuda.library != NULL) && cuda_find(&cuda.init, "cuInit") &&
           cuda_find(&cuda.device_get, "cuDeviceGet") &&
           cuda_find(&cuda.retain, "cuDevicePrimaryCtxRetain") &&
           cuda_find(&cuda.set_current, "cuCtxSetCurrent") &&
           cuda_find(&cuda.host_register, "cuMemHostRegister_v2") &&
           cuda_find(&cuda.host_unregister, "cuMemHostUnregister") &&
           cuda_find(&cuda.device_pointer, "cuMemHostGetDevicePointer_v2") &&
           cuda_find(&cuda.write_value, "cuStreamWriteValue64_v2") &&
           cuda_find(&cuda.synchronize, "cuStreamSynchronize") &&
           (cuda.init(0) == 0);
}

static int cuda_register(fab_device_t *device, size_t length)
{
    unsigned flags = CUDA_HOST_REGISTER_PORTABLE | CUDA_HOST_REGISTER_DEVICEMAP;
    int ordinal, ret;

    if ((cuda.device_get(&ordinal, 0) != 0) ||
        (cuda.retain(&device->context, ordinal) != 0) ||
        (cuda.set_current(device->context) != 0)) {
        return 0;
    }
    ret = cuda.host_register(device->page, length, flags);
    if (ret != 0) {
        fprintf(stderr, "cuMemHostRegister() of a trigger page: error %d\n",
                ret);
        return 0;
    }
    return cuda.device_pointer(&device->address, device->page, 0) == 0;
}

static fab_device_t *cuda_open(void *page, size_t length)
{
    fab_device_t *device = calloc(1, sizeof(*device));

    if (device == NULL) {
        return NULL;
    }
    device->page = page;
    if (!cuda_load() || !cuda_register(device, length)) {
        free(device);
        return NULL;
    }
    return device;
}

static int cuda_store(fab_device_t *device, size_t offset, uint64_t value)
{
    return (cuda.set_current(device->context) == 0) &&
           (cuda.write_value(NULL, device->address + offset, value, 0) == 0) &&
           (cuda.synchronize(NULL) == 0);
}

static void cuda_close(fab_device_t *device)
{
    (void)cuda.host_unregister(device->page);
    free(device);
}

const fab_device_ops_t fab_device_cuda = {
    .name  = "cuda",
    .open  = cuda_open,
    .store = cuda_store,
    .close = cuda_close
};
