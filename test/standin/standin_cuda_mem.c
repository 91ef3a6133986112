/* SPDX-License-Identifier: BSD-3-Clause */
/* standin_cuda_mem.c - the names of CUDA's driver that are about memory. */
#include "standin.h"
#include "standin_cuda.h"

#include <string.h>


/* Memory */

CUDA(cuMemAlloc_v2, (uint64_t *address, size_t size),
     standin_mem_alloc(size, STANDIN_DEVICE, 0, address))
CUDA(cuMemAllocManaged, (uint64_t *address, size_t size, unsigned flags),
     ((flags != 1) && (flags != 2)) ? STANDIN_ERR_INVALID :
     standin_mem_alloc(size, STANDIN_MANAGED, 0, address))
CUDA(cuMemFree_v2, (uint64_t address),
     (address == 0) ? STANDIN_OK : standin_mem_free(address, 0))

int cuMemHostAlloc(void **address, size_t size, unsigned flags)
{
    uint64_t dev;
    int err = standin_mem_alloc(size, STANDIN_PINNED, flags, &dev);

    if (err == STANDIN_OK) {
        *address = (void*)(uintptr_t)dev;
    }
    return err;
}

CUDA(cuMemFreeHost, (void *address), standin_mem_free((uintptr_t)address, 1))
CUDA(cuMemHostRegister_v2, (void *address, size_t size, unsigned flags),
     (flags > 15) ? STANDIN_ERR_INVALID :
     standin_mem_register(address, size, (flags & 4) != 0, flags))
CUDA(cuMemHostUnregister, (void *address), standin_mem_unregister(address))
CUDA(cuMemHostGetDevicePointer_v2,
     (uint64_t *device, void *host, unsigned flags),
     (flags != 0) ? STANDIN_ERR_INVALID :
     standin_mem_device_pointer(host, device))

int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address)
{
    standin_info_t info;
    int err = standin_mem_info(address, &info);

    if (err == STANDIN_OK) {
        *base = info.start;
        *size = info.size;
    }
    return err;
}

static int standin_cuda_dmabuf(void *handle, uint64_t address, size_t size,
                               int type, uint64_t flags)
{
    return ((type != 1) || (flags != 0)) ? STANDIN_ERR_INVALID :
           standin_mem_export(address, size, handle);
}

STANDIN_SINCE(cuMemGetHandleForAddressRange, standin_cuda_dmabuf,
              STANDIN_CUDA_11_7);

/* An address that is not known has zeros, and no device */
static int standin_cuda_attribute(void *value, int attribute,
                                  const standin_info_t *info, int is_known)
{
    int is_device = (info->kind == STANDIN_DEVICE) ||
                    (info->kind == STANDIN_IPC) ||
                    (info->kind == STANDIN_MANAGED);
    unsigned type         = !is_known ? 0 : is_device ? 2 : 1;
    unsigned char none    = 0;
    unsigned char managed = is_known && (info->kind == STANDIN_MANAGED);
    unsigned char legacy  = is_known && (info->kind == STANDIN_DEVICE);
    unsigned char mapped  = (unsigned char)is_known;
    int device            = is_known ? info->device : -2;
    int err;

    err = standin_tell((const standin_attribute_t[]){
        {1, &info->ctx, sizeof(info->ctx)}, /* CONTEXT */
        {2, &type, sizeof(type)}, /* MEMORY_TYPE */
        {3, &info->dev, sizeof(info->dev)}, /* DEVICE_POINTER */
        {4, &info->host, sizeof(info->host)}, /* HOST_POINTER */
        {6, &none, sizeof(none)}, /* SYNC_MEMOPS */
        {7, &info->id, sizeof(info->id)}, /* BUFFER_ID */
        {8, &managed, sizeof(managed)}, /* IS_MANAGED */
        {9, &device, sizeof(device)}, /* DEVICE_ORDINAL */
        {10, &legacy, sizeof(legacy)}, /* IS_LEGACY_CUDA_IPC_CAPABLE */
        {11, &info->start, sizeof(info->start)}, /* RANGE_START_ADDR */
        {12, &info->size, sizeof(info->size)}, /* RANGE_SIZE */
        {13, &mapped, sizeof(mapped)}, /* MAPPED */
        {0, NULL, 0}
    }, attribute, value);
    return ((attribute == 4) && is_known && (info->host == 0)) ?
           STANDIN_ERR_INVALID : err;
}

int cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
    standin_info_t info;
    int err = standin_mem_info(address, &info);

    return (err != STANDIN_OK) ? err :
           standin_cuda_attribute(value, attribute, &info, 1);
}

int cuPointerGetAttributes(unsigned count, const int *attributes,
                           void **values, uint64_t address)
{
    standin_info_t info = {0};
    int err             = standin_mem_info(address, &info);
    int is_known        = (err == STANDIN_OK);
    unsigned i;

    err = (err == STANDIN_ERR_INVALID) ? STANDIN_OK : err;
    for (i = 0; (i < count) && (err == STANDIN_OK); ++i) {
        err = standin_cuda_attribute(values[i], attributes[i], &info,
                                     is_known);
        if ((attributes[i] == 4) && (err == STANDIN_ERR_INVALID)) {
            err = STANDIN_OK;
        }
    }
    return err;
}

/* Copies */

static int standin_cuda_copy(uint64_t dst, uint64_t src, size_t size,
                             void *stream, int devices)
{
    standin_copy_t copy = {
        .dst          = dst,
        .src          = src,
        .width        = size,
        .height       = 1,
        .is_dst_known = (devices & 2) != 0,
        .is_src_known = (devices & 1) != 0
    };

    return standin_enqueue_copy(stream, &copy, 0);
}

int cuMemcpy(uint64_t dst, uint64_t src, size_t size)
{
    standin_copy_t copy = {
        .dst    = dst,
        .src    = src,
        .width  = size,
        .height = 1
    };

    return standin_enqueue_copy(NULL, &copy, 1);
}

CUDA(cuMemcpyAsync, (uint64_t dst, uint64_t src, size_t size, void *stream),
     standin_cuda_copy(dst, src, size, stream, 0))
CUDA(cuMemcpyDtoDAsync_v2,
     (uint64_t dst, uint64_t src, size_t size, void *stream),
     standin_cuda_copy(dst, src, size, stream, 3))
CUDA(cuMemcpyDtoHAsync_v2, (void *dst, uint64_t src, size_t size, void *stream),
     standin_cuda_copy((uintptr_t)dst, src, size, stream, 1))
CUDA(cuMemcpyHtoDAsync_v2,
     (uint64_t dst, const void *src, size_t size, void *stream),
     standin_cuda_copy(dst, (uintptr_t)src, size, stream, 2))

int cuMemcpy2DAsync_v2(const standin_cuda_copy_t *copy, void *stream)
{
    standin_copy_t plain = {
        .dst          = (copy->dst_type == 1) ? (uintptr_t)copy->dst_host :
                                                copy->dst_device,
        .src          = (copy->src_type == 1) ? (uintptr_t)copy->src_host :
                                                copy->src_device,
        .dpitch       = copy->dst_pitch,
        .spitch       = copy->src_pitch,
        .width        = copy->width,
        .height       = copy->height,
        .is_dst_known = (copy->dst_type == 2),
        .is_src_known = (copy->src_type == 2)
    };

    if ((copy->dst_type == 3) || (copy->src_type == 3)) {
        return STANDIN_ERR_UNSUPPORTED;
    }
    plain.dst += copy->dst_y * copy->dst_pitch + copy->dst_x;
    plain.src += copy->src_y * copy->src_pitch + copy->src_x;
    return standin_enqueue_copy(stream, &plain, 0);
}

int cuMemsetD8Async(uint64_t dst, unsigned char value, size_t size,
                    void *stream)
{
    standin_fill_t fill = {
        .dst   = dst,
        .size  = size,
        .value = value
    };

    return standin_enqueue_fill(stream, &fill);
}

/* IPC handles */

int cuIpcGetMemHandle(standin_handle_t *handle, uint64_t address)
{
    standin_ipc_t plain = {0};
    int err             = standin_mem_ipc_get(address, &plain);

    _Static_assert(sizeof(plain) == sizeof(*handle), "size of an IPC handle");
    memcpy(handle, &plain, sizeof(plain));
    return err;
}

int cuIpcOpenMemHandle_v2(uint64_t *address, standin_handle_t handle,
                          unsigned flags)
{
    standin_ipc_t plain;

    memcpy(&plain, &handle, sizeof(plain));
    return (flags != 1) ? STANDIN_ERR_INVALID :
           standin_mem_ipc_open(&plain, address);
}

CUDA(cuIpcOpenMemHandle,
     (uint64_t *address, standin_handle_t handle, unsigned flags),
     cuIpcOpenMemHandle_v2(address, handle, flags))
CUDA(cuIpcCloseMemHandle, (uint64_t address), standin_mem_ipc_close(address))
