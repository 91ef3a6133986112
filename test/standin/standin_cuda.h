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

#pragma GCC visibility push(default)

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetErrorName(int err, const char **name);
int cuGetErrorString(int err, const char **string);
int cuGetProcAddress(const char *symbol, void **func, int version,
                     uint64_t flags);
int cuGetProcAddress_v2(const char *symbol, void **func, int version,
                        uint64_t flags, int *status);

int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetName(char *name, int length, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetPCIBusId(char *text, int length, int device);
int cuDeviceGetUuid_v2(void *uuid, int device);
int cuDeviceCanAccessPeer(int *can, int device, int peer);
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuDevicePrimaryCtxRelease(int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxCreate_v2(void **ctx, unsigned flags, int device);
int cuCtxDestroy_v2(void *ctx);
int cuCtxSetCurrent(void *ctx);
int cuCtxGetCurrent(void **ctx);
int cuCtxPushCurrent_v2(void *ctx);
int cuCtxPopCurrent_v2(void **ctx);
int cuCtxGetDevice(int *device);
int cuCtxSynchronize(void);
int cuCtxEnablePeerAccess(void *peer, unsigned flags);
int cuCtxGetStreamPriorityRange(int *least, int *greatest);

int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int cuStreamDestroy_v2(void *stream);
int cuStreamGetCtx(void *stream, void **ctx);
int cuStreamGetPriority(void *stream, int *priority);
int cuStreamQuery(void *stream);
int cuStreamSynchronize(void *stream);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuStreamIsCapturing(void *stream, int *status);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuGraphDestroy(void *graph);
int cuGraphGetNodes(void *graph, void **nodes, size_t *count);

int cuStreamWriteValue32(void *stream, uint64_t address, uint32_t value,
                         unsigned flags);
int cuStreamWriteValue64(void *stream, uint64_t address, uint64_t value,
                         unsigned flags);
int cuStreamWaitValue32(void *stream, uint64_t address, uint32_t value,
                        unsigned flags);
int cuStreamWaitValue64(void *stream, uint64_t address, uint64_t value,
                        unsigned flags);
int cuStreamBatchMemOp(void *stream, unsigned count, standin_batch_op_t *ops,
                       unsigned flags);
int cuStreamWriteValue32_v2(void *stream, uint64_t address, uint32_t value,
                            unsigned flags);
int cuStreamWriteValue64_v2(void *stream, uint64_t address, uint64_t value,
                            unsigned flags);
int cuStreamWaitValue32_v2(void *stream, uint64_t address, uint32_t value,
                           unsigned flags);
int cuStreamWaitValue64_v2(void *stream, uint64_t address, uint64_t value,
                           unsigned flags);
int cuStreamBatchMemOp_v2(void *stream, unsigned count, standin_batch_op_t *ops,
                          unsigned flags);

int cuLaunchHostFunc(void *stream, void (*func)(void *arg), void *arg);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **func, void *module, const char *name);
int cuLaunchKernel(void (*func)(void *args), unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void *stream,
                   void **params, void **extra);

int cuMemAlloc_v2(uint64_t *address, size_t size);
int cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags);
int cuMemFree_v2(uint64_t address);
int cuMemHostAlloc(void **address, size_t size, unsigned flags);
int cuMemFreeHost(void *address);
int cuMemHostRegister_v2(void *address, size_t size, unsigned flags);
int cuMemHostUnregister(void *address);
int cuMemHostGetDevicePointer_v2(uint64_t *device, void *host, unsigned flags);
int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address);
int cuMemGetHandleForAddressRange(void *handle, uint64_t address, size_t size,
                                  int type, uint64_t flags);
int cuPointerGetAttribute(void *value, int attribute, uint64_t address);
int cuPointerGetAttributes(unsigned count, const int *attributes, void **values,
                           uint64_t address);

int cuMemcpy(uint64_t dst, uint64_t src, size_t size);
int cuMemcpyAsync(uint64_t dst, uint64_t src, size_t size, void *stream);
int cuMemcpyDtoDAsync_v2(uint64_t dst, uint64_t src, size_t size, void *stream);
int cuMemcpyDtoHAsync_v2(void *dst, uint64_t src, size_t size, void *stream);
int cuMemcpyHtoDAsync_v2(uint64_t dst, const void *src, size_t size,
                         void *stream);
int cuMemcpy2DAsync_v2(const standin_cuda_copy_t *copy, void *stream);
int cuMemsetD8Async(uint64_t dst, unsigned char value, size_t size,
                    void *stream);

int cuEventCreate(void **event, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
int cuEventQuery(void *event);
int cuEventSynchronize(void *event);
int cuEventElapsedTime(float *ms, void *start, void *end);

int cuIpcGetMemHandle(standin_handle_t *handle, uint64_t address);
int cuIpcOpenMemHandle(uint64_t *address, standin_handle_t handle,
                       unsigned flags);
int cuIpcOpenMemHandle_v2(uint64_t *address, standin_handle_t handle,
                          unsigned flags);
int cuIpcCloseMemHandle(uint64_t address);

#pragma GCC visibility pop

#endif
