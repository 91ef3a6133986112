/* SPDX-License-Identifier: BSD-3-Clause */
/* forward_mem.c - HIP's memory, copies, events and IPC, by CUDA's driver. */
#include "forward.h"

#define FORWARD_HOST_FLAGS 7u /* Portable, mapped, and IO memory or, of new
                                 memory, write-combined; the same in both */
#define FORWARD_UNIFIED    4u /* CU_MEMORYTYPE_UNIFIED */


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
FORWARD(hipMallocManaged, (void **address, size_t size, unsigned flags),
        forward_enter(), managed_alloc, (uint64_t*)address, size, flags)

/* Memory for signals, which CUDA does not need */
int hipExtMallocWithFlags(void **address, size_t size, unsigned flags)
{
    return (flags == 0) ? hipMalloc(address, size) :
                          forward_end(FORWARD_UNSUPPORTED);
}

static FORWARD(forward_free, (void *address), forward_enter(), mem_free,
               (uintptr_t)address)

int hipFree(void *address)
{
    return (address == NULL) ? forward_end(FORWARD_OK) : forward_free(address);
}

FORWARD(hipHostMalloc, (void **address, size_t size, unsigned flags),
        forward_enter(), host_alloc, address, size, flags & FORWARD_HOST_FLAGS)

static FORWARD(forward_host_free, (void *address), forward_enter(), host_free,
               address)

int hipHostFree(void *address)
{
    return (address == NULL) ? forward_end(FORWARD_OK) :
                               forward_host_free(address);
}

FORWARD(hipHostRegister, (void *address, size_t size, unsigned flags),
        forward_enter(), host_register, address, size,
        flags & FORWARD_HOST_FLAGS)
FORWARD(hipHostUnregister, (void *address), forward_enter(), host_unregister,
        address)

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

FORWARD(hipMemGetHandleForAddressRange,
        (void *handle, void *address, size_t size, int type, uint64_t flags),
        forward_enter(), dmabuf, handle, (uintptr_t)address, size, type, flags)

static FORWARD(forward_pointer, (void *value, int attribute, void *address),
               forward_enter(), pointer, value, attribute, (uintptr_t)address)

/* Attributes that have the same numbers in both, as have the types of memory */
int hipPointerGetAttribute(void *value, int attribute, void *address)
{
    static const int known[] = {1, 2, 3, 4, 7, 8, 9, 11, 12};
    size_t i                 = 0;

    while ((i < sizeof(known) / sizeof(known[0])) && (known[i] != attribute)) {
        ++i;
    }
    return (i == sizeof(known) / sizeof(known[0])) ?
           forward_end(FORWARD_UNSUPPORTED) :
           forward_pointer(value, attribute, address);
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

FORWARD(hipMemcpyAsync,
        (void *dst, const void *src, size_t size, int kind, void *stream),
        forward_enter_stream(stream), copy_async, (uintptr_t)dst,
        (uintptr_t)src, size, stream)

static FORWARD(forward_copy_2d, (const standin_cuda_copy_t *copy, void *stream),
               forward_enter_stream(stream), copy_2d, copy, stream)

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
    return forward_copy_2d(&copy, stream);
}

FORWARD(hipMemsetAsync, (void *dst, int value, size_t size, void *stream),
        forward_enter_stream(stream), fill, (uintptr_t)dst,
        (unsigned char)value, size, stream)

/* Events; their flags are the same in both */

FORWARD(hipEventCreateWithFlags, (void **event, unsigned flags),
        forward_enter(), event_create, event, flags)

int hipEventCreate(void **event)
{
    return hipEventCreateWithFlags(event, 0);
}

FORWARD(hipEventDestroy, (void *event), forward_enter(), event_destroy, event)
FORWARD(hipEventRecord, (void *event, void *stream),
        forward_enter_stream(stream), event_record, event, stream)
FORWARD(hipEventQuery, (void *event), forward_enter(), event_query, event)
FORWARD(hipEventSynchronize, (void *event), forward_enter(), event_sync, event)
FORWARD(hipEventElapsedTime, (float *ms, void *start, void *end),
        forward_enter(), event_time, ms, start, end)

/* IPC handles */

FORWARD(hipIpcGetMemHandle, (standin_handle_t *handle, void *address),
        forward_enter(), ipc_get, handle, (uintptr_t)address)

int hipIpcOpenMemHandle(void **address, standin_handle_t handle,
                        unsigned flags)
{
    int result   = forward_enter();
    uint64_t dev = 0;

    if (result == FORWARD_OK) {
        result = (forward_cuda.ipc_open != NULL) ?
                         forward_cuda.ipc_open(&dev, handle, flags) :
                         FORWARD_UNSUPPORTED;
    }
    if (result == FORWARD_OK) {
        *address = (void*)(uintptr_t)dev;
    }
    return forward_end(result);
}

FORWARD(hipIpcCloseMemHandle, (void *address), forward_enter(), ipc_close,
        (uintptr_t)address)
