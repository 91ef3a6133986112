/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_cuda.h - what the stand-in for libcuda.so.1 has of CUDA's driver.
 * Results, flags and handles are as the driver's, in plain types.
 */
#ifndef STANDIN_CUDA_H_
#define STANDIN_CUDA_H_

#include "standin_control.h"

#include <stddef.h>
#include <stdint.h>

/** CUipcMemHandle */
typedef struct {
    char reserved[64];
} standin_cuda_ipc_t;

/** CUstreamBatchMemOpParams; fields of a flush or barrier are not used */
typedef struct {
    uint32_t op;
    uint32_t op_flags;
    uint64_t address;
    uint64_t value;
    uint32_t flags;
    uint32_t reserved;
    uint64_t alias;
    uint64_t more;
} standin_cuda_op_t;

/** CUDA_MEMCPY2D */
typedef struct {
    size_t     src_x;
    size_t     src_y;
    unsigned   src_type; /**< 1 host, 2 device, 4 unified */
    const void *src_host;
    uint64_t   src_device;
    void       *src_array;
    size_t     src_pitch;
    size_t     dst_x;
    size_t     dst_y;
    unsigned   dst_type;
    void       *dst_host;
    uint64_t   dst_device;
    void       *dst_array;
    size_t     dst_pitch;
    size_t     width;
    size_t     height;
} standin_cuda_copy_t;

STANDIN_API int cuInit(unsigned flags);
STANDIN_API int cuDriverGetVersion(int *version);
STANDIN_API int cuGetErrorName(int err, const char **name);
STANDIN_API int cuGetErrorString(int err, const char **string);
STANDIN_API int cuGetProcAddress(const char *symbol, void **func, int version,
                                 uint64_t flags);
STANDIN_API int cuGetProcAddress_v2(const char *symbol, void **func,
                                    int version, uint64_t flags, int *status);

STANDIN_API int cuDeviceGetCount(int *count);
STANDIN_API int cuDeviceGet(int *device, int ordinal);
STANDIN_API int cuDeviceGetName(char *name, int length, int device);
STANDIN_API int cuDeviceGetAttribute(int *value, int attribute, int device);
STANDIN_API int cuDeviceGetPCIBusId(char *text, int length, int device);
STANDIN_API int cuDeviceGetUuid_v2(void *uuid, int device);
STANDIN_API int cuDeviceCanAccessPeer(int *can, int device, int peer);
STANDIN_API int cuDevicePrimaryCtxRetain(void **ctx, int device);
STANDIN_API int cuDevicePrimaryCtxRelease(int device);
STANDIN_API int cuDevicePrimaryCtxRelease_v2(int device);
STANDIN_API int cuCtxCreate_v2(void **ctx, unsigned flags, int device);
STANDIN_API int cuCtxDestroy_v2(void *ctx);
STANDIN_API int cuCtxSetCurrent(void *ctx);
STANDIN_API int cuCtxGetCurrent(void **ctx);
STANDIN_API int cuCtxPushCurrent_v2(void *ctx);
STANDIN_API int cuCtxPopCurrent_v2(void **ctx);
STANDIN_API int cuCtxGetDevice(int *device);
STANDIN_API int cuCtxSynchronize(void);
STANDIN_API int cuCtxEnablePeerAccess(void *peer, unsigned flags);
STANDIN_API int cuCtxGetStreamPriorityRange(int *least, int *greatest);

STANDIN_API int cuStreamCreate(void **stream, unsigned flags);
STANDIN_API int cuStreamCreateWithPriority(void **stream, unsigned flags,
                                           int priority);
STANDIN_API int cuStreamDestroy_v2(void *stream);
STANDIN_API int cuStreamGetCtx(void *stream, void **ctx);
STANDIN_API int cuStreamGetPriority(void *stream, int *priority);
STANDIN_API int cuStreamQuery(void *stream);
STANDIN_API int cuStreamSynchronize(void *stream);
STANDIN_API int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
STANDIN_API int cuStreamIsCapturing(void *stream, int *status);
STANDIN_API int cuStreamBeginCapture_v2(void *stream, int mode);
STANDIN_API int cuThreadExchangeStreamCaptureMode(int *mode);
STANDIN_API int cuStreamEndCapture(void *stream, void **graph);
STANDIN_API int cuGraphDestroy(void *graph);
STANDIN_API int cuGraphGetNodes(void *graph, void **nodes, size_t *count);

STANDIN_API int cuStreamWriteValue32(void *stream, uint64_t address,
                                     uint32_t value, unsigned flags);
STANDIN_API int cuStreamWriteValue64(void *stream, uint64_t address,
                                     uint64_t value, unsigned flags);
STANDIN_API int cuStreamWaitValue32(void *stream, uint64_t address,
                                    uint32_t value, unsigned flags);
STANDIN_API int cuStreamWaitValue64(void *stream, uint64_t address,
                                    uint64_t value, unsigned flags);
STANDIN_API int cuStreamBatchMemOp(void *stream, unsigned count,
                                   standin_cuda_op_t *ops, unsigned flags);
STANDIN_API int cuStreamWriteValue32_v2(void *stream, uint64_t address,
                                        uint32_t value, unsigned flags);
STANDIN_API int cuStreamWriteValue64_v2(void *stream, uint64_t address,
                                        uint64_t value, unsigned flags);
STANDIN_API int cuStreamWaitValue32_v2(void *stream, uint64_t address,
                                       uint32_t value, unsigned flags);
STANDIN_API int cuStreamWaitValue64_v2(void *stream, uint64_t address,
                                       uint64_t value, unsigned flags);
STANDIN_API int cuStreamBatchMemOp_v2(void *stream, unsigned count,
                                      standin_cuda_op_t *ops, unsigned flags);

STANDIN_API int cuLaunchHostFunc(void *stream, void (*func)(void *arg),
                                 void *arg);
STANDIN_API int cuLaunchKernel(void (*func)(void *args), unsigned grid_x,
                               unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared, void *stream,
                               void **params, void **extra);

STANDIN_API int cuMemAlloc_v2(uint64_t *address, size_t size);
STANDIN_API int cuMemAllocManaged(uint64_t *address, size_t size,
                                  unsigned flags);
STANDIN_API int cuMemFree_v2(uint64_t address);
STANDIN_API int cuMemHostAlloc(void **address, size_t size, unsigned flags);
STANDIN_API int cuMemFreeHost(void *address);
STANDIN_API int cuMemHostRegister_v2(void *address, size_t size,
                                     unsigned flags);
STANDIN_API int cuMemHostUnregister(void *address);
STANDIN_API int cuMemHostGetDevicePointer_v2(uint64_t *device, void *host,
                                             unsigned flags);
STANDIN_API int cuMemGetAddressRange_v2(uint64_t *base, size_t *size,
                                        uint64_t address);
STANDIN_API int cuMemGetHandleForAddressRange(void *handle, uint64_t address,
                                              size_t size, int type,
                                              uint64_t flags);
STANDIN_API int cuPointerGetAttribute(void *value, int attribute,
                                      uint64_t address);
STANDIN_API int cuPointerGetAttributes(unsigned count, const int *attributes,
                                       void **values, uint64_t address);

STANDIN_API int cuMemcpy(uint64_t dst, uint64_t src, size_t size);
STANDIN_API int cuMemcpyAsync(uint64_t dst, uint64_t src, size_t size,
                              void *stream);
STANDIN_API int cuMemcpyDtoDAsync_v2(uint64_t dst, uint64_t src, size_t size,
                                     void *stream);
STANDIN_API int cuMemcpyDtoHAsync_v2(void *dst, uint64_t src, size_t size,
                                     void *stream);
STANDIN_API int cuMemcpyHtoDAsync_v2(uint64_t dst, const void *src,
                                     size_t size, void *stream);
STANDIN_API int cuMemcpy2DAsync_v2(const standin_cuda_copy_t *copy,
                                   void *stream);
STANDIN_API int cuMemsetD8Async(uint64_t dst, unsigned char value, size_t size,
                                void *stream);

STANDIN_API int cuEventCreate(void **event, unsigned flags);
STANDIN_API int cuEventDestroy_v2(void *event);
STANDIN_API int cuEventRecord(void *event, void *stream);
STANDIN_API int cuEventQuery(void *event);
STANDIN_API int cuEventSynchronize(void *event);
STANDIN_API int cuEventElapsedTime(float *ms, void *start, void *end);

STANDIN_API int cuIpcGetMemHandle(standin_cuda_ipc_t *handle,
                                  uint64_t address);
STANDIN_API int cuIpcOpenMemHandle(uint64_t *address,
                                   standin_cuda_ipc_t handle, unsigned flags);
STANDIN_API int cuIpcOpenMemHandle_v2(uint64_t *address,
                                      standin_cuda_ipc_t handle,
                                      unsigned flags);
STANDIN_API int cuIpcCloseMemHandle(uint64_t address);

#endif
