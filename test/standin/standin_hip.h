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

/** hipIpcMemHandle_t */
typedef struct {
    char reserved[64];
} standin_hip_ipc_t;

/** hipStreamBatchMemOpParams; fields of a flush or barrier are not used */
typedef struct {
    uint32_t op;
    uint32_t op_flags;
    uint64_t address;
    uint64_t value;
    uint32_t flags;
    uint32_t reserved;
    uint64_t alias;
    uint64_t more;
} standin_hip_op_t;

/** hipPointerAttribute_t */
typedef struct {
    int      type; /**< To ROCm 5: 0 host, 1 device; from 6 on: 1 and 2 */
    int      device;
    void     *device_pointer;
    void     *host_pointer;
    int      is_managed;
    unsigned flags;
} standin_hip_pointer_t;

STANDIN_API int hipInit(unsigned flags);
STANDIN_API int hipRuntimeGetVersion(int *version);
STANDIN_API int hipDriverGetVersion(int *version);
STANDIN_API const char *hipGetErrorName(int err);
STANDIN_API const char *hipGetErrorString(int err);
STANDIN_API int hipGetLastError(void);
STANDIN_API int hipPeekAtLastError(void);

STANDIN_API int hipGetDeviceCount(int *count);
STANDIN_API int hipSetDevice(int device);
STANDIN_API int hipGetDevice(int *device);
STANDIN_API int hipDeviceGetName(char *name, int length, int device);
STANDIN_API int hipDeviceGetAttribute(int *value, int attribute, int device);
STANDIN_API int hipDeviceSynchronize(void);
STANDIN_API int hipDeviceGetStreamPriorityRange(int *least, int *greatest);
STANDIN_API int hipDeviceGetPCIBusId(char *text, int length, int device);
STANDIN_API int hipDeviceGetUuid(void *uuid, int device);
STANDIN_API int hipDeviceCanAccessPeer(int *can, int device, int peer);
STANDIN_API int hipDeviceEnablePeerAccess(int peer, unsigned flags);

STANDIN_API int hipStreamCreate(void **stream);
STANDIN_API int hipStreamCreateWithFlags(void **stream, unsigned flags);
STANDIN_API int hipStreamCreateWithPriority(void **stream, unsigned flags,
                                            int priority);
STANDIN_API int hipStreamDestroy(void *stream);
STANDIN_API int hipStreamGetPriority(void *stream, int *priority);
STANDIN_API int hipStreamGetDevice(void *stream, int *device);
STANDIN_API int hipStreamQuery(void *stream);
STANDIN_API int hipStreamSynchronize(void *stream);
STANDIN_API int hipStreamWaitEvent(void *stream, void *event, unsigned flags);
STANDIN_API int hipStreamIsCapturing(void *stream, int *status);
STANDIN_API int hipStreamBeginCapture(void *stream, int mode);
STANDIN_API int hipStreamEndCapture(void *stream, void **graph);
STANDIN_API int hipThreadExchangeStreamCaptureMode(int *mode);
STANDIN_API int hipGraphDestroy(void *graph);
STANDIN_API int hipGraphGetNodes(void *graph, void **nodes, size_t *count);

STANDIN_API int hipStreamWriteValue32(void *stream, void *address,
                                      uint32_t value, unsigned flags);
STANDIN_API int hipStreamWriteValue64(void *stream, void *address,
                                      uint64_t value, unsigned flags);
STANDIN_API int hipStreamWaitValue32(void *stream, void *address,
                                     uint32_t value, unsigned flags,
                                     uint32_t mask);
STANDIN_API int hipStreamWaitValue64(void *stream, void *address,
                                     uint64_t value, unsigned flags,
                                     uint64_t mask);
STANDIN_API int hipStreamBatchMemOp(void *stream, unsigned count,
                                    standin_hip_op_t *ops, unsigned flags);

STANDIN_API int hipLaunchHostFunc(void *stream, void (*func)(void *arg),
                                  void *arg);
STANDIN_API int hipStreamAddCallback(void *stream,
                                     void (*func)(void *stream, int status,
                                                  void *arg),
                                     void *arg, unsigned flags);
STANDIN_API int hipModuleLaunchKernel(void (*func)(void *args),
                                      unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x,
                                      unsigned block_y, unsigned block_z,
                                      unsigned shared, void *stream,
                                      void **params, void **extra);

STANDIN_API int hipMalloc(void **address, size_t size);
STANDIN_API int hipMallocManaged(void **address, size_t size, unsigned flags);
STANDIN_API int hipExtMallocWithFlags(void **address, size_t size,
                                      unsigned flags);
STANDIN_API int hipFree(void *address);
STANDIN_API int hipHostMalloc(void **address, size_t size, unsigned flags);
STANDIN_API int hipHostFree(void *address);
STANDIN_API int hipHostRegister(void *address, size_t size, unsigned flags);
STANDIN_API int hipHostUnregister(void *address);
STANDIN_API int hipHostGetDevicePointer(void **device, void *host,
                                        unsigned flags);
STANDIN_API int hipMemGetAddressRange(void **base, size_t *size,
                                      void *address);
STANDIN_API int hipMemGetHandleForAddressRange(void *handle, void *address,
                                               size_t size, int type,
                                               uint64_t flags);
STANDIN_API int hipPointerGetAttributes(standin_hip_pointer_t *attributes,
                                        const void *address);
STANDIN_API int hipPointerGetAttribute(void *value, int attribute,
                                       void *address);

STANDIN_API int hipMemcpy(void *dst, const void *src, size_t size, int kind);
STANDIN_API int hipMemcpyAsync(void *dst, const void *src, size_t size,
                               int kind, void *stream);
STANDIN_API int hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src,
                                 size_t spitch, size_t width, size_t height,
                                 int kind, void *stream);
STANDIN_API int hipMemsetAsync(void *dst, int value, size_t size,
                               void *stream);

STANDIN_API int hipEventCreate(void **event);
STANDIN_API int hipEventCreateWithFlags(void **event, unsigned flags);
STANDIN_API int hipEventDestroy(void *event);
STANDIN_API int hipEventRecord(void *event, void *stream);
STANDIN_API int hipEventQuery(void *event);
STANDIN_API int hipEventSynchronize(void *event);
STANDIN_API int hipEventElapsedTime(float *ms, void *start, void *end);

STANDIN_API int hipIpcGetMemHandle(standin_hip_ipc_t *handle, void *address);
STANDIN_API int hipIpcOpenMemHandle(void **address, standin_hip_ipc_t handle,
                                    unsigned flags);
STANDIN_API int hipIpcCloseMemHandle(void *address);

#endif
