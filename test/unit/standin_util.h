/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_util.h - one interface to both stand-ins of GPU runtimes, so that a
 * case runs on either. Results are the runtimes' numbers.
 */
#ifndef STANDIN_UTIL_H_
#define STANDIN_UTIL_H_

#include "st_cunit.h"
#include "standin_cuda.h"
#include "standin_hip.h"

#include <stddef.h>
#include <stdint.h>

/* Results */
enum {
    RT_OK              = 0,
    RT_INVALID         = 1,
    RT_NO_MEMORY       = 2,
    RT_NOT_INITIALIZED = 3,
    RT_NO_DEVICE       = 100,
    RT_CONTEXT         = 201,
    RT_HANDLE          = 400,
    RT_NOT_READY       = 600,
    RT_ADDRESS         = 700,
    RT_PEER_ENABLED    = 704,
    RT_REGISTERED      = 712,
    RT_NOT_REGISTERED  = 713,
    RT_LOST            = 719,
    RT_UNSUPPORTED     = 801,
    RT_CAPTURE         = 900,
    RT_INVALIDATED     = 901,
    RT_IMPLICIT        = 906,
    RT_CAPTURED        = 907
};

/* Operations of a batch, flags of a wait */
enum {
    RT_OP_WAIT32  = 1,
    RT_OP_WRITE32 = 2,
    RT_OP_FLUSH   = 3,
    RT_OP_WAIT64  = 4,
    RT_OP_WRITE64 = 5,
    RT_OP_BARRIER = 6,

    RT_GEQ = 0,
    RT_EQ  = 1,
    RT_AND = 2,
    RT_NOR = 3
};

#define RT_IO_MEMORY 4u

/** The functions of each library, by their names. */
#define RT_CUDA_FUNCS(_x) \
    _x(cuInit) _x(cuDriverGetVersion) _x(cuGetErrorName) \
    _x(cuDeviceGetCount) _x(cuDeviceGetAttribute) _x(cuDeviceCanAccessPeer) \
    _x(cuDevicePrimaryCtxRetain) _x(cuDevicePrimaryCtxRelease_v2) \
    _x(cuCtxCreate_v2) _x(cuCtxDestroy_v2) _x(cuCtxSetCurrent) \
    _x(cuCtxGetCurrent) _x(cuCtxPushCurrent_v2) _x(cuCtxPopCurrent_v2) \
    _x(cuCtxGetDevice) _x(cuCtxSynchronize) _x(cuCtxEnablePeerAccess) \
    _x(cuCtxGetStreamPriorityRange) _x(cuStreamCreateWithPriority) \
    _x(cuStreamDestroy_v2) _x(cuStreamGetCtx) _x(cuStreamGetPriority) \
    _x(cuStreamQuery) _x(cuStreamSynchronize) _x(cuStreamWaitEvent) \
    _x(cuStreamIsCapturing) _x(cuStreamBeginCapture_v2) \
    _x(cuStreamEndCapture) _x(cuGraphDestroy) _x(cuGraphGetNodes) \
    _x(cuStreamWriteValue64) _x(cuStreamWriteValue32_v2) \
    _x(cuStreamWriteValue64_v2) _x(cuStreamWaitValue32_v2) \
    _x(cuStreamWaitValue64_v2) _x(cuStreamBatchMemOp_v2) \
    _x(cuLaunchHostFunc) _x(cuLaunchKernel) _x(cuMemAlloc_v2) \
    _x(cuMemFree_v2) _x(cuMemHostAlloc) _x(cuMemFreeHost) \
    _x(cuMemHostRegister_v2) _x(cuMemHostUnregister) \
    _x(cuMemHostGetDevicePointer_v2) _x(cuMemGetAddressRange_v2) \
    _x(cuMemGetHandleForAddressRange) _x(cuPointerGetAttributes) \
    _x(cuPointerGetAttribute) _x(cuMemcpy) _x(cuMemcpyAsync) \
    _x(cuMemcpyDtoDAsync_v2) _x(cuMemcpy2DAsync_v2) _x(cuMemsetD8Async) \
    _x(cuEventCreate) _x(cuEventDestroy_v2) _x(cuEventRecord) \
    _x(cuEventQuery) _x(cuEventSynchronize) _x(cuEventElapsedTime) \
    _x(cuIpcGetMemHandle) _x(cuIpcOpenMemHandle_v2) _x(cuIpcCloseMemHandle) \
    _x(cuGetProcAddress_v2)

#define RT_HIP_FUNCS(_x) \
    _x(hipInit) _x(hipRuntimeGetVersion) _x(hipGetErrorName) \
    _x(hipGetLastError) _x(hipPeekAtLastError) _x(hipGetDeviceCount) \
    _x(hipSetDevice) \
    _x(hipGetDevice) _x(hipDeviceGetAttribute) _x(hipDeviceSynchronize) \
    _x(hipDeviceGetStreamPriorityRange) _x(hipDeviceCanAccessPeer) \
    _x(hipDeviceEnablePeerAccess) _x(hipStreamCreateWithPriority) \
    _x(hipStreamDestroy) _x(hipStreamGetPriority) _x(hipStreamGetDevice) \
    _x(hipStreamQuery) _x(hipStreamSynchronize) _x(hipStreamWaitEvent) \
    _x(hipStreamIsCapturing) _x(hipStreamBeginCapture) \
    _x(hipStreamEndCapture) _x(hipGraphDestroy) _x(hipGraphGetNodes) \
    _x(hipStreamWriteValue32) _x(hipStreamWriteValue64) \
    _x(hipStreamWaitValue32) _x(hipStreamWaitValue64) \
    _x(hipStreamBatchMemOp) _x(hipLaunchHostFunc) _x(hipStreamAddCallback) \
    _x(hipModuleLaunchKernel) _x(hipMalloc) _x(hipExtMallocWithFlags) \
    _x(hipFree) _x(hipHostMalloc) _x(hipHostFree) _x(hipHostRegister) \
    _x(hipHostUnregister) _x(hipHostGetDevicePointer) \
    _x(hipMemGetAddressRange) _x(hipMemGetHandleForAddressRange) \
    _x(hipPointerGetAttributes) _x(hipPointerGetAttribute) _x(hipMemcpy) \
    _x(hipMemcpyAsync) _x(hipMemcpy2DAsync) _x(hipMemsetAsync) \
    _x(hipEventCreateWithFlags) _x(hipEventDestroy) _x(hipEventRecord) \
    _x(hipEventQuery) _x(hipEventSynchronize) _x(hipEventElapsedTime) \
    _x(hipIpcGetMemHandle) _x(hipIpcOpenMemHandle) _x(hipIpcCloseMemHandle)

#define RT_CONTROL_FUNCS(_x) \
    _x(standin_counts) _x(standin_has_protection) _x(standin_lose_device) \
    _x(standin_dma) _x(standin_set_depth)

#define RT_MEMBER(_func) __typeof__(_func) *_func;

/** A runtime. The members that a version has not are NULL. */
typedef struct {
    int is_hip;
    struct {
        RT_CUDA_FUNCS(RT_MEMBER)
    } cu;
    struct {
        RT_HIP_FUNCS(RT_MEMBER)
    } hip;
    struct {
        RT_CONTROL_FUNCS(RT_MEMBER)
    } control;
} rt_t;

/** What a pointer is; @a is_device: not the host's memory. */
typedef struct {
    int    is_device;
    int    device;
    void   *dev;
    void   *start;
    size_t size;
} rt_info_t;

typedef struct {
    size_t dpitch, spitch, width, height;
} rt_rows_t;

typedef union {
    standin_cuda_ipc_t cu;
    standin_hip_ipc_t  hip;
} rt_ipc_t;

/** The library, opened; rt_start() also initialises, device 0 current. */
const rt_t *rt_open(int is_hip);
const rt_t *rt_start(int is_hip);

int rt_init(const rt_t *rt);
int rt_device_count(const rt_t *rt, int *count);
int rt_set_device(const rt_t *rt, int device);

/** Stream that does not wait for the legacy default stream, with a place of its
 *  own; NULL and a failed assertion if there is none. */
void *rt_stream(const rt_t *rt);
int rt_stream_create(const rt_t *rt, unsigned flags, int priority,
                     void **stream);
int rt_stream_destroy(const rt_t *rt, void *stream);
int rt_stream_priority(const rt_t *rt, void *stream, int *priority);
int rt_query(const rt_t *rt, void *stream);
int rt_sync(const rt_t *rt, void *stream);
int rt_sync_all(const rt_t *rt);
int rt_write(const rt_t *rt, void *stream, void *address, uint64_t value);
int rt_wait(const rt_t *rt, void *stream, void *address, uint64_t value,
            unsigned flags);
int rt_write32(const rt_t *rt, void *stream, void *address, uint32_t value);
int rt_wait32(const rt_t *rt, void *stream, void *address, uint32_t value,
              unsigned flags);
int rt_batch(const rt_t *rt, void *stream, unsigned count,
             standin_cuda_op_t *ops);

int rt_copy(const rt_t *rt, void *stream, void *dst, const void *src,
            size_t size);
int rt_copy_now(const rt_t *rt, void *dst, const void *src, size_t size);
int rt_copy_rows(const rt_t *rt, void *stream, void *dst, const void *src,
                 const rt_rows_t *rows);
int rt_fill(const rt_t *rt, void *stream, void *dst, int value, size_t size);
int rt_kernel(const rt_t *rt, void *stream, void (*func)(void *args),
              void *args, size_t size);
int rt_host(const rt_t *rt, void *stream, void (*func)(void *arg), void *arg);

int rt_alloc(const rt_t *rt, void **address, size_t size);
int rt_free(const rt_t *rt, void *address);

/** Zeroed memory of the host, registered by the runtime. */
void *rt_host_alloc(const rt_t *rt, size_t size);
int rt_host_free(const rt_t *rt, void *address);
int rt_register(const rt_t *rt, void *address, size_t size, unsigned flags);
int rt_unregister(const rt_t *rt, void *address);
int rt_device_pointer(const rt_t *rt, void *host, void **dev);
int rt_info(const rt_t *rt, const void *address, rt_info_t *info);
int rt_export(const rt_t *rt, void *address, size_t size, int *fd);

int rt_event_create(const rt_t *rt, void **event);
int rt_event_destroy(const rt_t *rt, void *event);
int rt_event_record(const rt_t *rt, void *event, void *stream);
int rt_event_query(const rt_t *rt, void *event);
int rt_event_sync(const rt_t *rt, void *event);
int rt_event_time(const rt_t *rt, void *start, void *end, float *ms);
int rt_wait_event(const rt_t *rt, void *stream, void *event);

int rt_capture_begin(const rt_t *rt, void *stream);

/** @a nodes commands were recorded. */
int rt_capture_end(const rt_t *rt, void *stream, size_t *nodes);
int rt_is_capturing(const rt_t *rt, void *stream);

int rt_ipc_get(const rt_t *rt, void *address, rt_ipc_t *handle);
int rt_ipc_open(const rt_t *rt, const rt_ipc_t *handle, void **address);
int rt_ipc_close(const rt_t *rt, void *address);

int rt_peer_can(const rt_t *rt, int device, int peer);
int rt_peer_enable(const rt_t *rt, int peer);

standin_counts_t rt_counts(const rt_t *rt);

/**
 * Run the case again in a process of its own with settings, unless this is that
 * process. Settings are read once, and a lost device stays lost.
 *
 * @param [in] tcase    Name of the case.
 * @param [in] settings "NAME=VALUE ...".
 *
 * @return Whether the case is to run here.
 */
int rt_is_child(const char *tcase, const char *settings);

/** A case for both runtimes, @a _rt. */
#define RT_CASE(_name) \
    static void rt_body_##_name(const rt_t *rt); \
    ST_CASE_CALL(_name##_cuda, rt_body_##_name(rt_start(0))) \
    ST_CASE_CALL(_name##_hip, rt_body_##_name(rt_start(1))) \
    static void rt_body_##_name(const rt_t *rt)

/** The same with settings, in processes of their own. */
#define RT_CASE_SET(_name, _of_cuda, _of_hip) \
    static void rt_body_##_name(const rt_t *rt); \
    ST_CASE(_name##_cuda) \
    { \
        if (rt_is_child(#_name "_cuda", _of_cuda)) { \
            rt_body_##_name(rt_start(0)); \
        } \
    } \
    ST_CASE(_name##_hip) \
    { \
        if (rt_is_child(#_name "_hip", _of_hip)) { \
            rt_body_##_name(rt_start(1)); \
        } \
    } \
    static void rt_body_##_name(const rt_t *rt)

#endif
