/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_util.h - one interface to both runtimes of GPUs, of which there are
 * stand-ins, so that a case runs on either. Results are the runtimes' numbers.
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
    RT_IMAGE           = 200,
    RT_CONTEXT         = 201,
    RT_NO_BINARY       = 209,
    RT_PTX             = 218,
    RT_HANDLE          = 400,
    RT_NOT_FOUND       = 500,
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
    _x(cuLaunchHostFunc) _x(cuModuleLoadData) _x(cuModuleGetFunction) \
    _x(cuLaunchKernel) _x(cuMemAlloc_v2) \
    _x(cuMemAllocManaged) \
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
    _x(hipModuleLoadData) _x(hipModuleGetFunction) \
    _x(hipModuleLaunchKernel) _x(hipMalloc) _x(hipExtMallocWithFlags) \
    _x(hipMallocManaged) \
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
    _x(standin_dma) _x(standin_set_depth) _x(standin_set_signal) \
    _x(standin_hold) _x(standin_fail_calls) _x(standin_is_real)

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

#define RT_U64(_pointer) ((uint64_t)(uintptr_t)(_pointer))

/** A call of either runtime: HIP's, and CUDA's. */
#define RT_CALL(_name, _params, _hip, _cuda) \
    static inline int _name _params \
    { \
        return rt->is_hip ? rt->hip._hip : rt->cu._cuda; \
    }

/** The library, opened as a program does that uses a GPU: the stand-in, or that
 *  in the folder that ST_HIP_DIR or ST_CUDA_DIR names, or if that is empty the
 *  one that the loader finds. rt_start() also initialises, device 0 current. */
const rt_t *rt_open(int is_hip);
const rt_t *rt_start(int is_hip);

RT_CALL(rt_init, (const rt_t *rt), hipInit(0), cuInit(0))
RT_CALL(rt_device_count, (const rt_t *rt, int *count), hipGetDeviceCount(count),
        cuDeviceGetCount(count))
int rt_set_device(const rt_t *rt, int device);

/** Stream that does not wait for the legacy default stream, with a place of its
 *  own; NULL and a failed assertion if there is none. */
void *rt_stream(const rt_t *rt);
RT_CALL(rt_stream_create,
        (const rt_t *rt, unsigned flags, int priority, void **stream),
        hipStreamCreateWithPriority(stream, flags, priority),
        cuStreamCreateWithPriority(stream, flags, priority))
RT_CALL(rt_stream_destroy, (const rt_t *rt, void *stream),
        hipStreamDestroy(stream), cuStreamDestroy_v2(stream))
RT_CALL(rt_stream_priority, (const rt_t *rt, void *stream, int *priority),
        hipStreamGetPriority(stream, priority),
        cuStreamGetPriority(stream, priority))
RT_CALL(rt_query, (const rt_t *rt, void *stream), hipStreamQuery(stream),
        cuStreamQuery(stream))
RT_CALL(rt_sync, (const rt_t *rt, void *stream), hipStreamSynchronize(stream),
        cuStreamSynchronize(stream))
RT_CALL(rt_sync_all, (const rt_t *rt), hipDeviceSynchronize(),
        cuCtxSynchronize())
RT_CALL(rt_write, (const rt_t *rt, void *stream, void *address, uint64_t value),
        hipStreamWriteValue64(stream, address, value, 0),
        cuStreamWriteValue64_v2(stream, RT_U64(address), value, 0))
RT_CALL(rt_wait,
        (const rt_t *rt, void *stream, void *address, uint64_t value,
         unsigned flags),
        hipStreamWaitValue64(stream, address, value, flags, UINT64_MAX),
        cuStreamWaitValue64_v2(stream, RT_U64(address), value, flags))
RT_CALL(rt_write32,
        (const rt_t *rt, void *stream, void *address, uint32_t value),
        hipStreamWriteValue32(stream, address, value, 0),
        cuStreamWriteValue32_v2(stream, RT_U64(address), value, 0))
RT_CALL(rt_wait32,
        (const rt_t *rt, void *stream, void *address, uint32_t value,
         unsigned flags),
        hipStreamWaitValue32(stream, address, value, flags, UINT32_MAX),
        cuStreamWaitValue32_v2(stream, RT_U64(address), value, flags))
RT_CALL(rt_batch,
        (const rt_t *rt, void *stream, unsigned count, standin_batch_op_t *ops),
        hipStreamBatchMemOp(stream, count, ops, 0),
        cuStreamBatchMemOp_v2(stream, count, ops, 0))

RT_CALL(rt_copy,
        (const rt_t *rt, void *stream, void *dst, const void *src, size_t size),
        hipMemcpyAsync(dst, src, size, 4, stream),
        cuMemcpyAsync(RT_U64(dst), RT_U64(src), size, stream))
RT_CALL(rt_copy_now, (const rt_t *rt, void *dst, const void *src, size_t size),
        hipMemcpy(dst, src, size, 4), cuMemcpy(RT_U64(dst), RT_U64(src), size))
int rt_copy_rows(const rt_t *rt, void *stream, void *dst, const void *src,
                 const rt_rows_t *rows);
RT_CALL(rt_fill,
        (const rt_t *rt, void *stream, void *dst, int value, size_t size),
        hipMemsetAsync(dst, value, size, stream),
        cuMemsetD8Async(RT_U64(dst), (unsigned char)value, size, stream))
int rt_kernel(const rt_t *rt, void *stream, void (*func)(void *args),
              void *args, size_t size);
/** The same with a block of several threads. */
typedef struct rt_launch {
    void     (*func)(void *args);
    unsigned threads;
    void     *args;
    size_t   size; /* of these, bytes */
} rt_launch_t;

int rt_kernel_block(const rt_t *rt, void *stream, const rt_launch_t *launch);
RT_CALL(rt_module_load, (const rt_t *rt, void **module, const void *image),
        hipModuleLoadData(module, image), cuModuleLoadData(module, image))
RT_CALL(rt_module_function,
        (const rt_t *rt, void **func, void *module, const char *name),
        hipModuleGetFunction(func, module, name),
        cuModuleGetFunction(func, module, name))
int rt_host(const rt_t *rt, void *stream, void (*func)(void *arg), void *arg);

/* Addresses have the same form in both */
RT_CALL(rt_alloc, (const rt_t *rt, void **address, size_t size),
        hipMalloc(address, size), cuMemAlloc_v2((uint64_t*)address, size))
RT_CALL(rt_alloc_managed, (const rt_t *rt, void **address, size_t size),
        hipMallocManaged(address, size, 1),
        cuMemAllocManaged((uint64_t*)address, size, 1))
RT_CALL(rt_free, (const rt_t *rt, void *address), hipFree(address),
        cuMemFree_v2(RT_U64(address)))

/** Zeroed memory of the host, registered by the runtime. */
void *rt_host_alloc(const rt_t *rt, size_t size);
RT_CALL(rt_host_free, (const rt_t *rt, void *address), hipHostFree(address),
        cuMemFreeHost(address))
RT_CALL(rt_register,
        (const rt_t *rt, void *address, size_t size, unsigned flags),
        hipHostRegister(address, size, flags),
        cuMemHostRegister_v2(address, size, flags))
RT_CALL(rt_unregister, (const rt_t *rt, void *address),
        hipHostUnregister(address), cuMemHostUnregister(address))
int rt_device_pointer(const rt_t *rt, void *host, void **dev);
int rt_info(const rt_t *rt, const void *address, rt_info_t *info);
RT_CALL(rt_export, (const rt_t *rt, void *address, size_t size, int *fd),
        hipMemGetHandleForAddressRange(fd, address, size, 1, 0),
        cuMemGetHandleForAddressRange(fd, RT_U64(address), size, 1, 0))

RT_CALL(rt_event_create, (const rt_t *rt, void **event),
        hipEventCreateWithFlags(event, 0), cuEventCreate(event, 0))
RT_CALL(rt_event_destroy, (const rt_t *rt, void *event), hipEventDestroy(event),
        cuEventDestroy_v2(event))
RT_CALL(rt_event_record, (const rt_t *rt, void *event, void *stream),
        hipEventRecord(event, stream), cuEventRecord(event, stream))
RT_CALL(rt_event_query, (const rt_t *rt, void *event), hipEventQuery(event),
        cuEventQuery(event))
RT_CALL(rt_event_sync, (const rt_t *rt, void *event),
        hipEventSynchronize(event), cuEventSynchronize(event))
RT_CALL(rt_event_time, (const rt_t *rt, void *start, void *end, float *ms),
        hipEventElapsedTime(ms, start, end), cuEventElapsedTime(ms, start, end))
RT_CALL(rt_wait_event, (const rt_t *rt, void *stream, void *event),
        hipStreamWaitEvent(stream, event, 0),
        cuStreamWaitEvent(stream, event, 0))

RT_CALL(rt_capture_begin, (const rt_t *rt, void *stream, int mode),
        hipStreamBeginCapture(stream, mode),
        cuStreamBeginCapture_v2(stream, mode))

/** @a nodes commands were recorded. */
int rt_capture_end(const rt_t *rt, void *stream, size_t *nodes);
int rt_is_capturing(const rt_t *rt, void *stream);

RT_CALL(rt_ipc_get, (const rt_t *rt, void *address, standin_handle_t *handle),
        hipIpcGetMemHandle(handle, address),
        cuIpcGetMemHandle(handle, RT_U64(address)))
int rt_ipc_open(const rt_t *rt, const standin_handle_t *handle, void **address);
RT_CALL(rt_ipc_close, (const rt_t *rt, void *address),
        hipIpcCloseMemHandle(address), cuIpcCloseMemHandle(RT_U64(address)))

int rt_peer_can(const rt_t *rt, int device, int peer);
int rt_peer_enable(const rt_t *rt, int peer);

/** Whether it is a GPU's; its counts are all 0. */
int rt_is_real(const rt_t *rt);
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
