/* SPDX-License-Identifier: BSD-3-Clause */
/* forward_mem.c - HIP's memory, copies, events and IPC, by CUDA's driver. */
#include "forward.h"

#include <string.h>

#define FORWARD_HOST_FLAGS 7u /* Portable, mapped, and IO memory or, of new
                                 memory, write-combined; the same in both */
#define FORWARD_UNIFIED    4u /* CU_MEMORYTYPE_UNIFIED */


/* Calls a function of the driver, and returns HIP's result. */
#define FORWARD(_func, ...) \
    do { \
        int result_ = forward_enter(); \
        \
        if ((result_ == FORWARD_OK) && (forward_cuda._func == NULL)) { \
            result_ = FORWARD_UNSUPPORTED; \
        } \
        return forward_end((result_ == FORWARD_OK) ? \
                                   forward_cuda._func(__VA_ARGS__) : \
                                   result_); \
    } while (0)

int hipMalloc(void **address, size_t size)
{
    int result   = forward_enter();
    uint64_t dev = 0;

    if ((result == FORWARD_OK) && (size > 0)) {
        result = forward_cuda.mem_alloc(&dev, size);
    }
    if (result == FORWARD_OK) {
        *address = (void*)(uintptr_t)dev;
    }
    return forward_end(result);
}

/* Addresses have the same form in both */
int hipMallocManaged(void **address, size_t size, unsigned flags)
{
    FORWARD(managed_alloc, (uint64_t*)address, size, flags);
}

/* Memory for signals, which CUDA does not need */
int hipExtMallocWithFlags(void **address, size_t size, unsigned flags)
{
    return (flags == 0) ? hipMalloc(address, size) :
                          forward_end(FORWARD_UNSUPPORTED);
}

int hipFree(void *address)
{
    if (address == NULL) {
        return forward_end(FORWARD_OK);
    }
    FORWARD(mem_free, (uintptr_t)address);
}

int hipHostMalloc(void **address, size_t size, unsigned flags)
{
    FORWARD(host_alloc, address, size, flags & FORWARD_HOST_FLAGS);
}

int hipHostFree(void *address)
{
    if (address == NULL) {
        return forward_end(FORWARD_OK);
    }
    FORWARD(host_free, address);
}

int hipHostRegister(void *address, size_t size, unsigned flags)
{
    FORWARD(host_register, address, size, flags & FORWARD_HOST_FLAGS);
}

int hipHostUnregister(void *address)
{
    FORWARD(host_unregister, address);
}

int hipHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    uint64_t dev = 0;
    int result   = forward_enter();

    if (result == FORWARD_OK) {
        result = forward_cuda.host_pointer(&dev, host, flags);
    }
    if (result == FORWARD_OK) {
        *device = (void*)(uintptr_t)dev;
    }
    return forward_end(result);
}

int hipMemGetAddressRange(void **base, size_t *size, void *address)
{
    uint64_t start = 0;
    int result     = forward_enter();

    if (result == FORWARD_OK) {
        result = forward_cuda.range(&start, size, (uintptr_t)address);
    }
    if (result == FORWARD_OK) {
        *base = (void*)(uintptr_t)start;
    }
    return forward_end(result);
}

int hipMemGetHandleForAddressRange(void *handle, void *address, size_t size,
                                   int type, uint64_t flags)
{
    FORWARD(dmabuf, handle, (uintptr_t)address, size, type, flags);
}

/* Attributes that have the same numbers in both, as have the types of memory */
int hipPointerGetAttribute(void *value, int attribute, void *address)
{
    static const int known[] = {1, 2, 3, 4, 7, 8, 9, 11, 12};
    size_t i                 = 0;

    while ((i < sizeof(known) / sizeof(known[0])) && (known[i] != attribute)) {
        ++i;
    }
    if (i == sizeof(known) / sizeof(known[0])) {
        return forward_end(FORWARD_UNSUPPORTED);
    }
    FORWARD(pointer, value, attribute, (uintptr_t)address);
}

int hipPointerGetAttributes(standin_hip_pointer_t *attributes,
                            const void *address)
{
    standin_hip_pointer_t found = {0};
    void *place                 = (void*)(uintptr_t)address;
    int managed                 = 0;
    int err;

    err = hipPointerGetAttribute(&found.type, 2, place);
    if (err != FORWARD_OK) {
        return err;
    }
    /* Not all memory has each of them */
    (void)hipPointerGetAttribute(&found.device, 9, place);
    (void)hipPointerGetAttribute(&found.device_pointer, 3, place);
    (void)hipPointerGetAttribute(&found.host_pointer, 4, place);
    (void)hipPointerGetAttribute(&managed, 8, place);
    (void)forward_last();
    found.is_managed = managed & 0xff;
    *attributes      = found;
    return FORWARD_OK;
}

/* Copies: the driver finds out what is where */

/* HIP returns when all is done; the driver before data of the host, which it
 * has read, is in the device */
int hipMemcpy(void *dst, const void *src, size_t size, int kind)
{
    int result = forward_enter();

    (void)kind;
    if (result == FORWARD_OK) {
        result = forward_cuda.copy((uintptr_t)dst, (uintptr_t)src, size);
    }
    if (result == FORWARD_OK) {
        result = forward_cuda.stream_sync(NULL);
    }
    return forward_end(result);
}

/* The same for calls on a stream. */
#define FORWARD_ON(_func, _stream, ...) \
    do { \
        int result_ = forward_enter_stream(_stream); \
        \
        return forward_end((result_ == FORWARD_OK) ? \
                                   forward_cuda._func(__VA_ARGS__) : \
                                   result_); \
    } while (0)

int hipMemcpyAsync(void *dst, const void *src, size_t size, int kind,
                   void *stream)
{
    (void)kind;
    FORWARD_ON(copy_async, stream, (uintptr_t)dst, (uintptr_t)src, size,
               stream);
}

int hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                     size_t width, size_t height, int kind, void *stream)
{
    const standin_cuda_copy_t copy = {
        .src_type   = FORWARD_UNIFIED,
        .src_device = (uintptr_t)src,
        .src_pitch  = spitch,
        .dst_type   = FORWARD_UNIFIED,
        .dst_device = (uintptr_t)dst,
        .dst_pitch  = dpitch,
        .width      = width,
        .height     = height
    };

    (void)kind;
    FORWARD_ON(copy_2d, stream, &copy, stream);
}

int hipMemsetAsync(void *dst, int value, size_t size, void *stream)
{
    FORWARD_ON(fill, stream, (uintptr_t)dst, (unsigned char)value, size,
               stream);
}

/* Events; their flags are the same in both */

int hipEventCreateWithFlags(void **event, unsigned flags)
{
    FORWARD(event_create, event, flags);
}

int hipEventCreate(void **event)
{
    return hipEventCreateWithFlags(event, 0);
}

int hipEventDestroy(void *event)
{
    FORWARD(event_destroy, event);
}

int hipEventRecord(void *event, void *stream)
{
    FORWARD_ON(event_record, stream, event, stream);
}

int hipEventQuery(void *event)
{
    FORWARD(event_query, event);
}

int hipEventSynchronize(void *event)
{
    FORWARD(event_sync, event);
}

int hipEventElapsedTime(float *ms, void *start, void *end)
{
    FORWARD(event_time, ms, start, end);
}

/* IPC handles */

int hipIpcGetMemHandle(standin_hip_ipc_t *handle, void *address)
{
    _Static_assert(sizeof(*handle) == sizeof(standin_cuda_ipc_t), "a handle");
    FORWARD(ipc_get, (standin_cuda_ipc_t*)(void*)handle, (uintptr_t)address);
}

int hipIpcOpenMemHandle(void **address, standin_hip_ipc_t handle,
                        unsigned flags)
{
    int result   = forward_enter();
    uint64_t dev = 0;
    standin_cuda_ipc_t below;

    memcpy(&below, &handle, sizeof(below));
    if (result == FORWARD_OK) {
        result = (forward_cuda.ipc_open != NULL) ?
                         forward_cuda.ipc_open(&dev, below, flags) :
                         FORWARD_UNSUPPORTED;
    }
    if (result == FORWARD_OK) {
        *address = (void*)(uintptr_t)dev;
    }
    return forward_end(result);
}

int hipIpcCloseMemHandle(void *address)
{
    FORWARD(ipc_close, (uintptr_t)address);
}
