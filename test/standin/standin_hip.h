/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_hip.h - what the stand-in for libamdhip64.so has of HIP's runtime.
 * Results, flags and handles are as the runtime's, in plain types.
 */
#ifndef STANDIN_HIP_H_
#define STANDIN_HIP_H_

#include "standin_control.h"

#include <stddef.h>
#include <stdint.h>

/** hipPointerAttribute_t */
typedef struct {
    int      type; /**< To ROCm 5: 0 host, 1 device; from 6 on: 1 and 2 */
    int      device;
    void     *device_pointer;
    void     *host_pointer;
    int      is_managed;
    unsigned flags;
} standin_hip_pointer_t;

/** Results, and what they are called. */
#define STANDIN_HIP_NAMES \
    {0, "hipSuccess"}, \
    {1, "hipErrorInvalidValue"}, \
    {2, "hipErrorOutOfMemory"}, \
    {3, "hipErrorNotInitialized"}, \
    {4, "hipErrorDeinitialized"}, \
    {100, "hipErrorNoDevice"}, \
    {101, "hipErrorInvalidDevice"}, \
    {201, "hipErrorInvalidContext"}, \
    {200, "hipErrorInvalidImage"}, \
    {205, "hipErrorMapFailed"}, \
    {209, "hipErrorNoBinaryForGpu"}, \
    {217, "hipErrorPeerAccessUnsupported"}, \
    {304, "hipErrorOperatingSystem"}, \
    {400, "hipErrorInvalidHandle"}, \
    {401, "hipErrorIllegalState"}, \
    {500, "hipErrorNotFound"}, \
    {600, "hipErrorNotReady"}, \
    {700, "hipErrorIllegalAddress"}, \
    {704, "hipErrorPeerAccessAlreadyEnabled"}, \
    {705, "hipErrorPeerAccessNotEnabled"}, \
    {712, "hipErrorHostMemoryAlreadyRegistered"}, \
    {713, "hipErrorHostMemoryNotRegistered"}, \
    {719, "hipErrorLaunchFailure"}, \
    {801, "hipErrorNotSupported"}, \
    {900, "hipErrorStreamCaptureUnsupported"}, \
    {901, "hipErrorStreamCaptureInvalidated"}, \
    {902, "hipErrorStreamCaptureMerge"}, \
    {903, "hipErrorStreamCaptureUnmatched"}, \
    {904, "hipErrorStreamCaptureUnjoined"}, \
    {905, "hipErrorStreamCaptureIsolation"}, \
    {906, "hipErrorStreamCaptureImplicit"}, \
    {907, "hipErrorCapturedEvent"}, \
    {908, "hipErrorStreamCaptureWrongThread"}

#pragma GCC visibility push(default)

int hipInit(unsigned flags);
int hipRuntimeGetVersion(int *version);
int hipDriverGetVersion(int *version);
const char *hipGetErrorName(int err);
const char *hipGetErrorString(int err);
int hipGetLastError(void);
int hipPeekAtLastError(void);

int hipGetDeviceCount(int *count);
int hipSetDevice(int device);
int hipGetDevice(int *device);
int hipDeviceGetName(char *name, int length, int device);
int hipDeviceGetAttribute(int *value, int attribute, int device);
int hipDeviceSynchronize(void);
int hipDeviceGetStreamPriorityRange(int *least, int *greatest);
int hipDeviceGetPCIBusId(char *text, int length, int device);
int hipDeviceGetUuid(void *uuid, int device);
int hipDeviceCanAccessPeer(int *can, int device, int peer);
int hipDeviceEnablePeerAccess(int peer, unsigned flags);

int hipStreamCreate(void **stream);
int hipStreamCreateWithFlags(void **stream, unsigned flags);
int hipStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int hipStreamDestroy(void *stream);
int hipStreamGetPriority(void *stream, int *priority);
int hipStreamGetDevice(void *stream, int *device);
int hipStreamQuery(void *stream);
int hipStreamSynchronize(void *stream);
int hipStreamWaitEvent(void *stream, void *event, unsigned flags);
int hipStreamIsCapturing(void *stream, int *status);
int hipStreamBeginCapture(void *stream, int mode);
int hipStreamEndCapture(void *stream, void **graph);
int hipThreadExchangeStreamCaptureMode(int *mode);
int hipGraphDestroy(void *graph);
int hipGraphGetNodes(void *graph, void **nodes, size_t *count);

int hipStreamWriteValue32(void *stream, void *address, uint32_t value,
                          unsigned flags);
int hipStreamWriteValue64(void *stream, void *address, uint64_t value,
                          unsigned flags);
int hipStreamWaitValue32(void *stream, void *address, uint32_t value,
                         unsigned flags, uint32_t mask);
int hipStreamWaitValue64(void *stream, void *address, uint64_t value,
                         unsigned flags, uint64_t mask);
int hipStreamBatchMemOp(void *stream, unsigned count, standin_batch_op_t *ops,
                        unsigned flags);

int hipLaunchHostFunc(void *stream, void (*func)(void *arg), void *arg);
int hipStreamAddCallback(void *stream,
                         void (*func)(void *stream, int status, void *arg),
                         void *arg, unsigned flags);
int hipModuleLoadData(void **module, const void *image);
int hipModuleGetFunction(void **func, void *module, const char *name);
int hipModuleLaunchKernel(void (*func)(void *args), unsigned grid_x,
                          unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared,
                          void *stream, void **params, void **extra);

int hipMalloc(void **address, size_t size);
int hipMallocManaged(void **address, size_t size, unsigned flags);
int hipExtMallocWithFlags(void **address, size_t size, unsigned flags);
int hipFree(void *address);
int hipHostMalloc(void **address, size_t size, unsigned flags);
int hipHostFree(void *address);
int hipHostRegister(void *address, size_t size, unsigned flags);
int hipHostUnregister(void *address);
int hipHostGetDevicePointer(void **device, void *host, unsigned flags);
int hipMemGetAddressRange(void **base, size_t *size, void *address);
int hipMemGetHandleForAddressRange(void *handle, void *address, size_t size,
                                   int type, uint64_t flags);
int hipPointerGetAttributes(standin_hip_pointer_t *attributes,
                            const void *address);
int hipPointerGetAttribute(void *value, int attribute, void *address);

int hipMemcpy(void *dst, const void *src, size_t size, int kind);
int hipMemcpyAsync(void *dst, const void *src, size_t size, int kind,
                   void *stream);
int hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                     size_t width, size_t height, int kind, void *stream);
int hipMemsetAsync(void *dst, int value, size_t size, void *stream);

int hipEventCreate(void **event);
int hipEventCreateWithFlags(void **event, unsigned flags);
int hipEventDestroy(void *event);
int hipEventRecord(void *event, void *stream);
int hipEventQuery(void *event);
int hipEventSynchronize(void *event);
int hipEventElapsedTime(float *ms, void *start, void *end);

int hipIpcGetMemHandle(standin_handle_t *handle, void *address);
int hipIpcOpenMemHandle(void **address, standin_handle_t handle,
                        unsigned flags);
int hipIpcCloseMemHandle(void *address);

#pragma GCC visibility pop

#endif
