/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forward_hip.c - HIP's devices, streams, memory operations and kernels, by
 * CUDA's driver.
 *
 * The version is one of HIP 6, whose numbers of memory types are CUDA's.
 */
#include "forward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORWARD_VERSION 60000000

/* Lists of a launch's arguments */
#define FORWARD_EXTRA_END  ((void*)0) /* CUDA's */
#define FORWARD_EXTRA_DATA ((void*)1)
#define FORWARD_EXTRA_SIZE ((void*)2)


/* A callback, for the host function that calls it */
typedef struct {
    void (*func)(void *stream, int status, void *arg);
    void *stream;
    void *arg;
} forward_callback_t;


int hipInit(unsigned flags)
{
    return forward_end((flags == 0) ? forward_open() : FORWARD_INVALID);
}

int hipRuntimeGetVersion(int *version)
{
    *version = FORWARD_VERSION;
    return FORWARD_OK;
}

int hipDriverGetVersion(int *version)
{
    return hipRuntimeGetVersion(version);
}

const char *hipGetErrorName(int err)
{
    static const struct {
        int        err;
        const char *name;
    } names[] = {
        {0, "hipSuccess"},
        {1, "hipErrorInvalidValue"},
        {2, "hipErrorOutOfMemory"},
        {3, "hipErrorNotInitialized"},
        {4, "hipErrorDeinitialized"},
        {100, "hipErrorNoDevice"},
        {101, "hipErrorInvalidDevice"},
        {201, "hipErrorInvalidContext"},
        {205, "hipErrorMapFailed"},
        {217, "hipErrorPeerAccessUnsupported"},
        {304, "hipErrorOperatingSystem"},
        {400, "hipErrorInvalidHandle"},
        {401, "hipErrorIllegalState"},
        {500, "hipErrorNotFound"},
        {600, "hipErrorNotReady"},
        {700, "hipErrorIllegalAddress"},
        {704, "hipErrorPeerAccessAlreadyEnabled"},
        {705, "hipErrorPeerAccessNotEnabled"},
        {712, "hipErrorHostMemoryAlreadyRegistered"},
        {713, "hipErrorHostMemoryNotRegistered"},
        {719, "hipErrorLaunchFailure"},
        {801, "hipErrorNotSupported"},
        {900, "hipErrorStreamCaptureUnsupported"},
        {901, "hipErrorStreamCaptureInvalidated"},
        {902, "hipErrorStreamCaptureMerge"},
        {903, "hipErrorStreamCaptureUnmatched"},
        {904, "hipErrorStreamCaptureUnjoined"},
        {905, "hipErrorStreamCaptureIsolation"},
        {906, "hipErrorStreamCaptureImplicit"},
        {907, "hipErrorCapturedEvent"},
        {908, "hipErrorStreamCaptureWrongThread"}
    };
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        if (names[i].err == err) {
            return names[i].name;
        }
    }
    return "hipErrorUnknown";
}

const char *hipGetErrorString(int err)
{
    return hipGetErrorName(err);
}

int hipGetLastError(void)
{
    return forward_last();
}

int hipPeekAtLastError(void)
{
    return forward_peek();
}

/* Devices */

int hipGetDeviceCount(int *count)
{
    int result = forward_open();

    *count = 0;
    return forward_end((result == FORWARD_OK) ?
                               forward_cuda.device_count(count) :
                               result);
}

int hipSetDevice(int device)
{
    return forward_end(forward_set_device(device));
}

int hipGetDevice(int *device)
{
    int result = forward_enter();

    if (result == FORWARD_OK) {
        *device = forward_device();
    }
    return forward_end(result);
}

/* The name says that it is not a device of HIP's own */
int hipDeviceGetName(char *name, int length, int device)
{
    char below[128] = "";
    int result      = forward_open();

    if (result == FORWARD_OK) {
        result = forward_cuda.device_name(below, sizeof(below), device);
    }
    snprintf(name, (size_t)length, "%s, HIP forwarded to CUDA", below);
    return forward_end(result);
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    int result = forward_open();
    int number, version;

    if (result == FORWARD_OK) {
        result = forward_cuda.version(&version);
    }
    if (result != FORWARD_OK) {
        return forward_end(result);
    }
    switch (attribute) {
    case 3: /* hipDeviceAttributeCanMapHostMemory */
        number = 19;
        break;
    case 4: /* hipDeviceAttributeCanUseHostPointerForRegisteredMem */
        number = 91;
        break;
    case 9: /* hipDeviceAttributeConcurrentManagedAccess */
        number = 89;
        break;
    case 10013: /* hipDeviceAttributeCanUseStreamWaitValue; of 64 bits */
        number = (version >= 11070) ? 122 : 93;
        break;
    default:
        return forward_end(FORWARD_UNSUPPORTED);
    }
    return forward_end(forward_cuda.device_attribute(value, number, device));
}

int hipDeviceSynchronize(void)
{
    int result = forward_enter();

    return forward_end((result == FORWARD_OK) ? forward_cuda.ctx_sync() :
                                                result);
}

int hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    int result = forward_enter();

    return forward_end((result == FORWARD_OK) ?
                               forward_cuda.ctx_priorities(least, greatest) :
                               result);
}

int hipDeviceGetPCIBusId(char *text, int length, int device)
{
    int result = forward_open();

    if (result == FORWARD_OK) {
        result = (forward_cuda.device_pci != NULL) ?
                         forward_cuda.device_pci(text, length, device) :
                         FORWARD_UNSUPPORTED;
    }
    return forward_end(result);
}

int hipDeviceGetUuid(void *uuid, int device)
{
    int result = forward_open();

    if (result == FORWARD_OK) {
        result = (forward_cuda.device_uuid != NULL) ?
                         forward_cuda.device_uuid(uuid, device) :
                         FORWARD_UNSUPPORTED;
    }
    return forward_end(result);
}

int hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    int result = forward_open();

    if (result == FORWARD_OK) {
        result = (forward_cuda.peer_can != NULL) ?
                         forward_cuda.peer_can(can, device, peer) :
                         FORWARD_UNSUPPORTED;
    }
    return forward_end(result);
}

int hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
    int result = (flags == 0) ? forward_enter() : FORWARD_INVALID;
    void *context;

    if ((result == FORWARD_OK) && (forward_cuda.ctx_peer == NULL)) {
        result = FORWARD_UNSUPPORTED;
    }
    if (result == FORWARD_OK) {
        result = forward_context(peer, &context);
    }
    return forward_end((result == FORWARD_OK) ?
                               forward_cuda.ctx_peer(context, 0) :
                               result);
}

/* Streams */

int hipStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    int result = forward_enter();

    if (result == FORWARD_OK) {
        result = forward_cuda.stream_create(stream, flags, priority);
    }
    if (result == FORWARD_OK) {
        result = forward_stream_add(*stream);
        if (result != FORWARD_OK) {
            (void)forward_cuda.stream_destroy(*stream);
        }
    }
    return forward_end(result);
}

int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    return hipStreamCreateWithPriority(stream, flags, 0);
}

int hipStreamCreate(void **stream)
{
    return hipStreamCreateWithPriority(stream, 0, 0);
}

int hipStreamDestroy(void *stream)
{
    int result = forward_enter_stream(stream);

    if ((result == FORWARD_OK) && ((uintptr_t)stream <= FORWARD_LAST_DEFAULT)) {
        result = FORWARD_HANDLE;
    }
    if (result == FORWARD_OK) {
        /* Before another thread gets a stream of the same address */
        forward_stream_remove(stream);
        result = forward_cuda.stream_destroy(stream);
    }
    return forward_end(result);
}

/* Calls a function of the driver on a stream, and returns HIP's result. */
#define FORWARD_ON_STREAM(_func, _stream, ...) \
    do { \
        int result_ = forward_enter_stream(_stream); \
        \
        if ((result_ == FORWARD_OK) && (forward_cuda._func == NULL)) { \
            result_ = FORWARD_UNSUPPORTED; \
        } \
        return forward_end((result_ == FORWARD_OK) ? \
                                   forward_cuda._func(__VA_ARGS__) : \
                                   result_); \
    } while (0)

int hipStreamGetPriority(void *stream, int *priority)
{
    FORWARD_ON_STREAM(stream_priority, stream, stream, priority);
}

int hipStreamGetDevice(void *stream, int *device)
{
    int result = forward_enter_stream(stream);
    int found  = forward_stream_find(stream);

    if (result == FORWARD_OK) {
        *device = (found >= 0) ? found : forward_device();
    }
    return forward_end(result);
}

int hipStreamQuery(void *stream)
{
    FORWARD_ON_STREAM(stream_query, stream, stream);
}

int hipStreamSynchronize(void *stream)
{
    FORWARD_ON_STREAM(stream_sync, stream, stream);
}

int hipStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    FORWARD_ON_STREAM(stream_wait, stream, stream, event, flags);
}

int hipStreamIsCapturing(void *stream, int *status)
{
    FORWARD_ON_STREAM(capturing, stream, stream, status);
}

int hipStreamBeginCapture(void *stream, int mode)
{
    FORWARD_ON_STREAM(capture_begin, stream, stream, mode);
}

/* A driver without modes forbids nothing */
int hipThreadExchangeStreamCaptureMode(int *mode)
{
    int result = forward_open();

    if ((result == FORWARD_OK) && (forward_cuda.capture_mode != NULL)) {
        result = forward_cuda.capture_mode(mode);
    }
    return forward_end(result);
}

int hipStreamEndCapture(void *stream, void **graph)
{
    FORWARD_ON_STREAM(capture_end, stream, stream, graph);
}

int hipGraphDestroy(void *graph)
{
    FORWARD_ON_STREAM(graph_destroy, NULL, graph);
}

int hipGraphGetNodes(void *graph, void **nodes, size_t *count)
{
    FORWARD_ON_STREAM(graph_nodes, NULL, graph, nodes, count);
}

/* Memory operations. CUDA's waits have no mask. */

int hipStreamWriteValue32(void *stream, void *address, uint32_t value,
                          unsigned flags)
{
    FORWARD_ON_STREAM(write32, stream, stream, (uintptr_t)address, value,
                      flags);
}

int hipStreamWriteValue64(void *stream, void *address, uint64_t value,
                          unsigned flags)
{
    FORWARD_ON_STREAM(write64, stream, stream, (uintptr_t)address, value,
                      flags);
}

int hipStreamWaitValue32(void *stream, void *address, uint32_t value,
                         unsigned flags, uint32_t mask)
{
    if (mask != UINT32_MAX) {
        return forward_end(FORWARD_UNSUPPORTED);
    }
    FORWARD_ON_STREAM(wait32, stream, stream, (uintptr_t)address, value, flags);
}

int hipStreamWaitValue64(void *stream, void *address, uint64_t value,
                         unsigned flags, uint64_t mask)
{
    if (mask != UINT64_MAX) {
        return forward_end(FORWARD_UNSUPPORTED);
    }
    FORWARD_ON_STREAM(wait64, stream, stream, (uintptr_t)address, value, flags);
}

/* HIP's operations of a batch have no order, CUDA's have */
int hipStreamBatchMemOp(void *stream, unsigned count, standin_hip_op_t *ops,
                        unsigned flags)
{
    _Static_assert(sizeof(*ops) == sizeof(standin_cuda_op_t), "an operation");
    FORWARD_ON_STREAM(batch, stream, stream, count, (standin_cuda_op_t*)ops,
                      flags);
}

/* Kernels and host functions */

int hipLaunchHostFunc(void *stream, void (*func)(void *arg), void *arg)
{
    FORWARD_ON_STREAM(launch_host, stream, stream, func, arg);
}

static void forward_call(void *arg)
{
    forward_callback_t callback = *(forward_callback_t*)arg;

    free(arg);
    callback.func(callback.stream, FORWARD_OK, callback.arg);
}

int hipStreamAddCallback(void *stream,
                         void (*func)(void *stream, int status, void *arg),
                         void *arg, unsigned flags)
{
    int result                   = (flags != 0) ? FORWARD_INVALID :
                                                  forward_enter_stream(stream);
    forward_callback_t *callback = malloc(sizeof(*callback));

    if ((result == FORWARD_OK) && (callback == NULL)) {
        result = FORWARD_NO_MEMORY;
    }
    if (result == FORWARD_OK) {
        callback->func   = func;
        callback->stream = stream;
        callback->arg    = arg;
        result           = forward_cuda.launch_host(stream, forward_call,
                                                    callback);
    }
    if (result != FORWARD_OK) {
        free(callback);
    }
    return forward_end(result);
}

/* Kernels are CUfunctions; HIP ends the list of arguments by 3, CUDA by 0 */
int hipModuleLaunchKernel(void (*func)(void *args), unsigned grid_x,
                          unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared,
                          void *stream, void **params, void **extra)
{
    void *list[5] = {FORWARD_EXTRA_END};
    int i         = 0;

    if (extra != NULL) {
        for (; (i < 4) && ((extra[i] == FORWARD_EXTRA_DATA) ||
                           (extra[i] == FORWARD_EXTRA_SIZE)); i += 2) {
            list[i]     = extra[i];
            list[i + 1] = extra[i + 1];
        }
        list[i] = FORWARD_EXTRA_END;
    }
    FORWARD_ON_STREAM(launch, stream, func, grid_x, grid_y, grid_z, block_x,
                      block_y, block_z, shared, stream, params,
                      (extra != NULL) ? list : NULL);
}
