/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forward.h - HIP's functions by CUDA's driver: what is common.
 *
 * A third libamdhip64.so for tests: the calls that this project makes of HIP go
 * to libcuda.so.1, so that streams of HIP work on a GPU of NVIDIA, or on the
 * stand-in for that driver. Handles, flags, numbers of attributes and most
 * results are the same in both. What has no counterpart is
 * hipErrorNotSupported.
 */
#ifndef FORWARD_H_
#define FORWARD_H_

#include "standin_cuda.h"
#include "standin_hip.h"

/* Results of HIP that this library itself gives */
enum {
    FORWARD_OK              = 0,
    FORWARD_INVALID         = 1,
    FORWARD_NO_MEMORY       = 2,
    FORWARD_NO_DEVICE       = 100,
    FORWARD_BAD_DEVICE      = 101,
    FORWARD_CONTEXT         = 201,
    FORWARD_HANDLE          = 400,
    FORWARD_STATE           = 401,
    FORWARD_NOT_READY       = 600,
    FORWARD_UNSUPPORTED     = 801,
    FORWARD_CAPTURE_FIRST   = 900,
    FORWARD_CAPTURE_LAST    = 908,
    FORWARD_UNKNOWN         = 999
};

/* Results of CUDA that HIP has other numbers for */
enum {
    FORWARD_CUDA_GONE          = 709, /* Context is destroyed */
    FORWARD_CUDA_NOT_PERMITTED = 800  /* As in a host function */
};

/* Default streams have handles up to this one, in both */
#define FORWARD_LAST_DEFAULT 2


/* Functions of the driver: CALL(field, name, name of an older one or NULL,
 * whether it may be missing) */
#define FORWARD_CALLS(CALL) \
    CALL(init, cuInit, NULL, 0) \
    CALL(version, cuDriverGetVersion, NULL, 0) \
    CALL(device_count, cuDeviceGetCount, NULL, 0) \
    CALL(device_name, cuDeviceGetName, NULL, 0) \
    CALL(device_attribute, cuDeviceGetAttribute, NULL, 0) \
    CALL(device_pci, cuDeviceGetPCIBusId, NULL, 1) \
    CALL(device_uuid, cuDeviceGetUuid_v2, "cuDeviceGetUuid", 1) \
    CALL(peer_can, cuDeviceCanAccessPeer, NULL, 1) \
    CALL(retain, cuDevicePrimaryCtxRetain, NULL, 0) \
    CALL(ctx_set, cuCtxSetCurrent, NULL, 0) \
    CALL(ctx_get, cuCtxGetCurrent, NULL, 0) \
    CALL(ctx_sync, cuCtxSynchronize, NULL, 0) \
    CALL(ctx_peer, cuCtxEnablePeerAccess, NULL, 1) \
    CALL(ctx_priorities, cuCtxGetStreamPriorityRange, NULL, 0) \
    CALL(stream_create, cuStreamCreateWithPriority, NULL, 0) \
    CALL(stream_destroy, cuStreamDestroy_v2, NULL, 0) \
    CALL(stream_priority, cuStreamGetPriority, NULL, 0) \
    CALL(stream_query, cuStreamQuery, NULL, 0) \
    CALL(stream_sync, cuStreamSynchronize, NULL, 0) \
    CALL(stream_wait, cuStreamWaitEvent, NULL, 0) \
    CALL(capturing, cuStreamIsCapturing, NULL, 0) \
    CALL(capture_begin, cuStreamBeginCapture_v2, NULL, 1) \
    CALL(capture_end, cuStreamEndCapture, NULL, 1) \
    CALL(capture_mode, cuThreadExchangeStreamCaptureMode, NULL, 1) \
    CALL(graph_destroy, cuGraphDestroy, NULL, 1) \
    CALL(graph_nodes, cuGraphGetNodes, NULL, 1) \
    CALL(write32, cuStreamWriteValue32_v2, "cuStreamWriteValue32", 0) \
    CALL(write64, cuStreamWriteValue64_v2, "cuStreamWriteValue64", 0) \
    CALL(wait32, cuStreamWaitValue32_v2, "cuStreamWaitValue32", 0) \
    CALL(wait64, cuStreamWaitValue64_v2, "cuStreamWaitValue64", 0) \
    CALL(batch, cuStreamBatchMemOp_v2, "cuStreamBatchMemOp", 0) \
    CALL(launch_host, cuLaunchHostFunc, NULL, 0) \
    CALL(module_load, cuModuleLoadData, NULL, 0) \
    CALL(module_function, cuModuleGetFunction, NULL, 0) \
    CALL(launch, cuLaunchKernel, NULL, 0) \
    CALL(mem_alloc, cuMemAlloc_v2, NULL, 0) \
    CALL(managed_alloc, cuMemAllocManaged, NULL, 1) \
    CALL(mem_free, cuMemFree_v2, NULL, 0) \
    CALL(host_alloc, cuMemHostAlloc, NULL, 0) \
    CALL(host_free, cuMemFreeHost, NULL, 0) \
    CALL(host_register, cuMemHostRegister_v2, NULL, 0) \
    CALL(host_unregister, cuMemHostUnregister, NULL, 0) \
    CALL(host_pointer, cuMemHostGetDevicePointer_v2, NULL, 0) \
    CALL(range, cuMemGetAddressRange_v2, NULL, 0) \
    CALL(dmabuf, cuMemGetHandleForAddressRange, NULL, 1) \
    CALL(pointer, cuPointerGetAttribute, NULL, 0) \
    CALL(copy, cuMemcpy, NULL, 0) \
    CALL(copy_async, cuMemcpyAsync, NULL, 0) \
    CALL(copy_2d, cuMemcpy2DAsync_v2, NULL, 0) \
    CALL(fill, cuMemsetD8Async, NULL, 0) \
    CALL(event_create, cuEventCreate, NULL, 0) \
    CALL(event_destroy, cuEventDestroy_v2, NULL, 0) \
    CALL(event_record, cuEventRecord, NULL, 0) \
    CALL(event_query, cuEventQuery, NULL, 0) \
    CALL(event_sync, cuEventSynchronize, NULL, 0) \
    CALL(event_time, cuEventElapsedTime, NULL, 0) \
    CALL(ipc_get, cuIpcGetMemHandle, NULL, 1) \
    CALL(ipc_open, cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 1) \
    CALL(ipc_close, cuIpcCloseMemHandle, NULL, 1)

#define FORWARD_FIELD(_field, _name, _old, _optional) \
    __typeof__(&_name) _field;

typedef struct {
    FORWARD_CALLS(FORWARD_FIELD)
} forward_calls_t;

/* Complete once forward_open() has succeeded; those that may be missing can be
 * NULL. */
extern forward_calls_t forward_cuda;


/* Open the driver, once. A result of HIP. Any thread. */
int forward_open(void);

/* The same, and has the primary context of the thread's device be its current
 * one, as HIP's calls work there. */
int forward_enter(void);

/* The same, for a call that works on a stream, which has to be one of HIP's or
 * a default one. */
int forward_enter_stream(void *stream);

/* The primary context of a device, which is kept. */
int forward_context(int device, void **context);

/* The result of HIP for one of CUDA; an error is the thread's last one. */
int forward_end(int result);

/* A call of HIP that is one of the driver's, on what `_enter` has found fit. */
#define FORWARD(_name, _params, _enter, _func, ...) \
    int _name _params \
    { \
        int result = _enter; \
        \
        if ((result == FORWARD_OK) && (forward_cuda._func == NULL)) { \
            result = FORWARD_UNSUPPORTED; \
        } \
        return forward_end((result == FORWARD_OK) ? \
                                   forward_cuda._func(__VA_ARGS__) : \
                                   result); \
    }

/* The thread's last error, which is forgotten with the second one. */
int forward_peek(void);
int forward_last(void);

/* The thread's device. */
int forward_device(void);
int forward_set_device(int device);

/* Streams that this library has made, with their devices; find returns -1 if it
 * has not. */
int forward_stream_add(void *stream);
void forward_stream_remove(void *stream);
int forward_stream_find(void *stream);

#endif
