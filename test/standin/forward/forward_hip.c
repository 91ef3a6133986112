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
        STANDIN_HIP_NAMES
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
    case 5: /* hipDeviceAttributeClockRate */
        number = 13;
        break;
    case 9: /* hipDeviceAttributeConcurrentManagedAccess */
        number = 89;
        break;
    case 56: /* hipDeviceAttributeMaxThreadsPerBlock */
        number = 1;
        break;
    case 63: /* hipDeviceAttributeMultiprocessorCount */
        number = 16;
        break;
    case 10013: /* hipDeviceAttributeCanUseStreamWaitValue; of 64 bits */
        number = (version >= 11070) ? 122 : 93;
        break;
    default:
        return forward_end(FORWARD_UNSUPPORTED);
    }
    return forward_end(forward_cuda.device_attribute(value, number, device));
}

FORWARD(hipDeviceSynchronize, (void), forward_enter(), ctx_sync)
FORWARD(hipDeviceGetStreamPriorityRange, (int *least, int *greatest),
        forward_enter(), ctx_priorities, least, greatest)
FORWARD(hipDeviceGetPCIBusId, (char *text, int length, int device),
        forward_open(), device_pci, text, length, device)
FORWARD(hipDeviceGetUuid, (void *uuid, int device), forward_open(),
        device_uuid, uuid, device)
FORWARD(hipDeviceCanAccessPeer, (int *can, int device, int peer),
        forward_open(), peer_can, can, device, peer)

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

FORWARD(hipStreamGetPriority, (void *stream, int *priority),
        forward_enter_stream(stream), stream_priority, stream, priority)

int hipStreamGetDevice(void *stream, int *device)
{
    int result = forward_enter_stream(stream);
    int found  = forward_stream_find(stream);

    if (result == FORWARD_OK) {
        *device = (found >= 0) ? found : forward_device();
    }
    return forward_end(result);
}

FORWARD(hipStreamQuery, (void *stream), forward_enter_stream(stream),
        stream_query, stream)
FORWARD(hipStreamSynchronize, (void *stream), forward_enter_stream(stream),
        stream_sync, stream)
FORWARD(hipStreamWaitEvent, (void *stream, void *event, unsigned flags),
        forward_enter_stream(stream), stream_wait, stream, event, flags)
FORWARD(hipStreamIsCapturing, (void *stream, int *status),
        forward_enter_stream(stream), capturing, stream, status)
FORWARD(hipStreamBeginCapture, (void *stream, int mode),
        forward_enter_stream(stream), capture_begin, stream, mode)

/* A driver without modes forbids nothing */
int hipThreadExchangeStreamCaptureMode(int *mode)
{
    int result = forward_open();

    if ((result == FORWARD_OK) && (forward_cuda.capture_mode != NULL)) {
        result = forward_cuda.capture_mode(mode);
    }
    return forward_end(result);
}

FORWARD(hipStreamEndCapture, (void *stream, void **graph),
        forward_enter_stream(stream), capture_end, stream, graph)
FORWARD(hipGraphDestroy, (void *graph), forward_enter_stream(NULL),
        graph_destroy, graph)
FORWARD(hipGraphGetNodes, (void *graph, void **nodes, size_t *count),
        forward_enter_stream(NULL), graph_nodes, graph, nodes, count)

/* Memory operations. CUDA's waits have no mask. */

FORWARD(hipStreamWriteValue32,
        (void *stream, void *address, uint32_t value, unsigned flags),
        forward_enter_stream(stream), write32, stream, (uintptr_t)address,
        value, flags)
FORWARD(hipStreamWriteValue64,
        (void *stream, void *address, uint64_t value, unsigned flags),
        forward_enter_stream(stream), write64, stream, (uintptr_t)address,
        value, flags)
FORWARD(hipStreamWaitValue32,
        (void *stream, void *address, uint32_t value, unsigned flags,
         uint32_t mask),
        (mask != UINT32_MAX) ? FORWARD_UNSUPPORTED :
        forward_enter_stream(stream),
        wait32, stream, (uintptr_t)address, value, flags)
FORWARD(hipStreamWaitValue64,
        (void *stream, void *address, uint64_t value, unsigned flags,
         uint64_t mask),
        (mask != UINT64_MAX) ? FORWARD_UNSUPPORTED :
        forward_enter_stream(stream),
        wait64, stream, (uintptr_t)address, value, flags)

/* HIP's operations of a batch have no order, CUDA's have */
FORWARD(hipStreamBatchMemOp,
        (void *stream, unsigned count, standin_batch_op_t *ops, unsigned flags),
        forward_enter_stream(stream), batch, stream, count, ops, flags)

/* Kernels and host functions */

FORWARD(hipLaunchHostFunc, (void *stream, void (*func)(void *arg), void *arg),
        forward_enter_stream(stream), launch_host, stream, func, arg)

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

/* HIP ends the list of arguments by 3, CUDA by 0 */
static void **forward_extra(void **extra, void *list[5])
{
    int i;

    if (extra == NULL) {
        return NULL;
    }
    for (i = 0; (i < 4) && ((extra[i] == FORWARD_EXTRA_DATA) ||
                            (extra[i] == FORWARD_EXTRA_SIZE)); i += 2) {
        list[i]     = extra[i];
        list[i + 1] = extra[i + 1];
    }
    list[i] = FORWARD_EXTRA_END;
    return list;
}

/* Modules and kernels are those of CUDA, and hipRTC gives PTX text */
FORWARD(hipModuleLoadData, (void **module, const void *image), forward_enter(),
        module_load, module, image)
FORWARD(hipModuleGetFunction, (void **func, void *module, const char *name),
        forward_enter(), module_function, func, module, name)
FORWARD(hipModuleLaunchKernel,
        (void (*func)(void *args), unsigned grid_x, unsigned grid_y,
         unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
         unsigned shared, void *stream, void **params, void **extra),
        forward_enter_stream(stream), launch, func, grid_x, grid_y, grid_z,
        block_x, block_y, block_z, shared, stream, params,
        forward_extra(extra, (void*[5]){NULL}))
