/* SPDX-License-Identifier: BSD-3-Clause */
/* standin_hip_mem.c - HIP's names for memory, copies and IPC handles. */
#include "standin.h"
#include "standin_hip.h"
#include "standin_hip_end.h"
#include "standin_hsa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STANDIN_HIP_SIGNAL 2u /* Flag of hipExtMallocWithFlags() */


/* Memory */

static int standin_hip_alloc(void **address, size_t size, int kind,
                             unsigned flags)
{
    uint64_t dev = 0;
    int err      = (size == 0) ? STANDIN_OK :
                   standin_mem_alloc(size, kind, flags, &dev);

    if (err == STANDIN_OK) {
        *address = (void*)(uintptr_t)dev;
    }
    return standin_hip_end(err);
}

int hipMalloc(void **address, size_t size)
{
    return standin_hip_alloc(address, size, STANDIN_DEVICE, 0);
}

int hipMallocManaged(void **address, size_t size, unsigned flags)
{
    return ((flags != 1) && (flags != 2)) ?
           standin_hip_end(STANDIN_ERR_INVALID) :
           standin_hip_alloc(address, size, STANDIN_MANAGED, 0);
}

/* Memory for signals is of 8 bytes, and the host may use it */
int hipExtMallocWithFlags(void **address, size_t size, unsigned flags)
{
    if ((flags & STANDIN_HIP_SIGNAL) && (size != 8)) {
        return standin_hip_end(STANDIN_ERR_INVALID);
    }
    return standin_hip_alloc(address, size,
                             (flags & STANDIN_HIP_SIGNAL) ? STANDIN_SIGNAL :
                                                            STANDIN_DEVICE,
                             flags);
}

HIP(hipFree, (void *address),
    (address == NULL) ? STANDIN_OK : standin_mem_free((uintptr_t)address, 0))

int hipHostMalloc(void **address, size_t size, unsigned flags)
{
    return standin_hip_alloc(address, size, STANDIN_PINNED, flags);
}

HIP(hipHostFree, (void *address),
    (address == NULL) ? STANDIN_OK : standin_mem_free((uintptr_t)address, 1))

int hipHostRegister(void *address, size_t size, unsigned flags)
{
    int is_io = (flags & 4) != 0;
    int err;

    if (is_io && standin_has_version(STANDIN_HIP_7) &&
        !standin_has_version(STANDIN_HIP_7_2)) {
        return standin_hip_end(STANDIN_ERR_INVALID);
    }
    err = standin_mem_register(address, size, is_io, flags);
    /* Whatever it is that the kernel's driver does not take */
    if (is_io && (err == STANDIN_ERR_INVALID) &&
        !standin_has_version(STANDIN_HIP_5_6)) {
        err = STANDIN_ERR_NO_MEMORY;
    }
    return standin_hip_end(err);
}

HIP(hipHostUnregister, (void *address), standin_mem_unregister(address))

int hipHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    uint64_t dev;
    int err = (flags != 0) ? STANDIN_ERR_INVALID :
              standin_mem_device_pointer(host, &dev);

    if (err == STANDIN_OK) {
        *device = (void*)(uintptr_t)dev;
    }
    return standin_hip_end(err);
}

int hipMemGetAddressRange(void **base, size_t *size, void *address)
{
    standin_info_t info;
    int err = standin_mem_info((uintptr_t)address, &info);

    if (err == STANDIN_OK) {
        *base = (void*)(uintptr_t)info.start;
        *size = info.size;
    }
    return standin_hip_end(err);
}

static HIP(standin_hip_dmabuf,
           (void *handle, void *address, size_t size, int type, uint64_t flags),
           ((type != 1) || (flags != 0)) ? STANDIN_ERR_INVALID :
           standin_mem_export((uintptr_t)address, size, handle))

STANDIN_SINCE(hipMemGetHandleForAddressRange, standin_hip_dmabuf,
              STANDIN_HIP_6_4);

/* For the stand-in of ROCr, which is below the real runtime */

int standin_hsa_find(uint64_t address, uint64_t *start, size_t *size)
{
    standin_info_t info;

    if ((standin_mem_info(address, &info) != STANDIN_OK) ||
        ((info.kind != STANDIN_DEVICE) && (info.kind != STANDIN_IPC))) {
        return 0;
    }
    *start = info.start;
    *size  = info.size;
    return 1;
}

int standin_hsa_share(uint64_t address, size_t size, int *fd, uint64_t *offset)
{
    return standin_mem_share(address, size, fd, offset);
}

/* The numbers of memory types have moved by one */
static int standin_hip_type(const standin_info_t *info)
{
    int is_device = (info->kind == STANDIN_DEVICE) ||
                    (info->kind == STANDIN_IPC) ||
                    (info->kind == STANDIN_MANAGED);

    return is_device + standin_has_version(STANDIN_HIP_6);
}

int hipPointerGetAttributes(standin_hip_pointer_t *attributes,
                            const void *address)
{
    standin_info_t info;
    int err = standin_mem_info((uintptr_t)address, &info);

    if (err == STANDIN_OK) {
        *attributes = (standin_hip_pointer_t){
            .type           = standin_hip_type(&info),
            .device         = info.device,
            .device_pointer = (void*)(uintptr_t)info.dev,
            .host_pointer   = (void*)(uintptr_t)info.host,
            .is_managed     = (info.kind == STANDIN_MANAGED),
            .flags          = info.flags
        };
    }
    return standin_hip_end(err);
}

static int standin_hip_pointer(void *value, int attribute, void *address)
{
    standin_info_t info;
    int err = standin_mem_info((uintptr_t)address, &info);
    unsigned type, id;
    unsigned char managed;

    if ((err == STANDIN_ERR_INVALID) && (attribute == 2) &&
        !standin_has_version(STANDIN_HIP_6_2)) {
        fprintf(stderr, "stand-in: HIP would take what is at %p for an array\n",
                address);
        abort();
    }
    if (err != STANDIN_OK) {
        return standin_hip_end(err);
    }
    type    = (unsigned)standin_hip_type(&info);
    id      = (unsigned)info.id;
    managed = (info.kind == STANDIN_MANAGED);
    return standin_hip_end(standin_tell((const standin_attribute_t[]){
        {1, &info.ctx, sizeof(info.ctx)}, /* CONTEXT */
        {2, &type, sizeof(type)}, /* MEMORY_TYPE */
        {3, &info.dev, sizeof(info.dev)}, /* DEVICE_POINTER */
        {4, &info.host, sizeof(info.host)}, /* HOST_POINTER */
        {7, &id, sizeof(id)}, /* BUFFER_ID */
        {8, &managed, sizeof(managed)}, /* IS_MANAGED */
        {9, &info.device, sizeof(info.device)}, /* DEVICE_ORDINAL */
        {11, &info.start, sizeof(info.start)}, /* RANGE_START_ADDR */
        {12, &info.size, sizeof(info.size)}, /* RANGE_SIZE */
        {0, NULL, 0}
    }, attribute, value));
}

STANDIN_SINCE(hipPointerGetAttribute, standin_hip_pointer, STANDIN_HIP_5_1);

/* Copies. Kinds: 1 host to device, 2 device to host, 3 both are devices, 4 or
 * 0 whatever they are */

static standin_copy_t standin_hip_copy(void *dst, const void *src, size_t size,
                                       int kind)
{
    return (standin_copy_t){
        .dst          = (uintptr_t)dst,
        .src          = (uintptr_t)src,
        .width        = size,
        .height       = 1,
        .is_dst_known = (kind & 1) != 0,
        .is_src_known = (kind & 2) != 0
    };
}

int hipMemcpy(void *dst, const void *src, size_t size, int kind)
{
    standin_copy_t copy = standin_hip_copy(dst, src, size, kind);

    return standin_hip_end(standin_enqueue_copy(NULL, &copy, 1));
}

int hipMemcpyAsync(void *dst, const void *src, size_t size, int kind,
                   void *stream)
{
    standin_copy_t copy = standin_hip_copy(dst, src, size, kind);

    return standin_hip_end(standin_enqueue_copy(stream, &copy, 0));
}

int hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                     size_t width, size_t height, int kind, void *stream)
{
    standin_copy_t copy = standin_hip_copy(dst, src, width, kind);

    copy.dpitch = dpitch;
    copy.spitch = spitch;
    copy.height = height;
    return standin_hip_end(standin_enqueue_copy(stream, &copy, 0));
}

int hipMemsetAsync(void *dst, int value, size_t size, void *stream)
{
    standin_fill_t fill = {
        .dst   = (uintptr_t)dst,
        .size  = size,
        .value = (uint8_t)value
    };

    return standin_hip_end(standin_enqueue_fill(stream, &fill));
}

/* IPC handles */

int hipIpcGetMemHandle(standin_handle_t *handle, void *address)
{
    standin_ipc_t plain = {0};
    int err             = standin_mem_ipc_get((uintptr_t)address, &plain);

    _Static_assert(sizeof(plain) == sizeof(*handle), "size of an IPC handle");
    memcpy(handle, &plain, sizeof(plain));
    return standin_hip_end(err);
}

int hipIpcOpenMemHandle(void **address, standin_handle_t handle,
                        unsigned flags)
{
    standin_ipc_t plain;
    uint64_t dev;
    int err = STANDIN_ERR_INVALID;

    memcpy(&plain, &handle, sizeof(plain));
    if (flags == (unsigned)standin_has_version(STANDIN_HIP_6)) {
        err = standin_mem_ipc_open(&plain, &dev);
    }
    if (err == STANDIN_OK) {
        *address = (void*)(uintptr_t)dev;
    }
    return standin_hip_end(err);
}

HIP(hipIpcCloseMemHandle, (void *address),
    standin_mem_ipc_close((uintptr_t)address))
