/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_hip.c - the names of HIP's runtime, over what is common.
 *
 * A hipFunction_t is of a module (standin_module.c), or a C function with one
 * argument, a copy of the buffer of HIP_LAUNCH_PARAM_BUFFER_POINTER, for which
 * the grid is to know.
 *
 * hipPointerGetAttribute() is there from HIP 5.1 on, hipDeviceGetUuid() and
 * hipThreadExchangeStreamCaptureMode() from 5.2, hipLaunchHostFunc() from 5.3
 * (the header of 5.2 has it, the library has not), hipStreamGetDevice() from
 * 5.6, hipStreamBatchMemOp() and hipMemGetHandleForAddressRange() from 6.4.
 * Memory types, and the flag that opens an IPC handle, have new numbers from
 * HIP 6 on.
 */
#include "standin.h"
#include "standin_hip.h"
#include "standin_hip_end.h"
#include "standin_hsa.h"
#include "standin_rtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


const standin_kind_t standin_kind = {
    .name           = "HIP",
    .is_hip         = 1,
    .version        = 50220730,
    .callback_error = STANDIN_ERR_STATE,
    .queues_name    = "GPU_MAX_HW_QUEUES",
    .queues         = 4
};

static const standin_name_t standin_hip_names[] = {
    STANDIN_HIP_NAMES,
    {0, NULL}
};

static __thread int standin_hip_last;


int standin_hip_end(int err)
{
    if (!standin_has_version(STANDIN_HIP_7) ||
        ((err != STANDIN_OK) && (err != STANDIN_ERR_NOT_READY))) {
        standin_hip_last = err;
    }
    return err;
}

HIP(hipInit, (unsigned flags),
    (flags != 0)      ? STANDIN_ERR_INVALID :
    (hsa_init() != 0) ? STANDIN_ERR_NOT_INITIALIZED : standin_init())

int hipRuntimeGetVersion(int *version)
{
    standin_settings();
    *version = standin_set.version;
    return STANDIN_OK;
}

int hipDriverGetVersion(int *version)
{
    return hipRuntimeGetVersion(version);
}

const char *hipGetErrorName(int err)
{
    const char *name = standin_name(standin_hip_names, err);

    return (name == NULL) ? "hipErrorUnknown" : name;
}

const char *hipGetErrorString(int err)
{
    return hipGetErrorName(err);
}

int hipGetLastError(void)
{
    int err = standin_hip_last;

    standin_hip_last = STANDIN_OK;
    return err;
}

int hipPeekAtLastError(void)
{
    return standin_hip_last;
}

/* Devices */

int hipGetDeviceCount(int *count)
{
    int err = standin_enter();

    *count = 0;
    if (err == STANDIN_OK) {
        *count = standin_set.devices;
        standin_leave(err);
    }
    return standin_hip_end(err);
}

HIP(hipSetDevice, (int device), standin_device_set(device))
HIP(hipGetDevice, (int *device), standin_device_get(device))

int hipDeviceGetName(char *name, int length, int device)
{
    standin_settings();
    snprintf(name, (size_t)length, "stand-in HIP device %d", device);
    return standin_hip_end(standin_device_check(device));
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    int err = standin_enter();

    if (err != STANDIN_OK) {
        return standin_hip_end(err);
    }
    *value = 0;
    (void)standin_tell((const standin_attribute_t[]){
        STANDIN_INT(3, 1), /* CanMapHostMemory */
        /* CanUseHostPointerForRegisteredMem */
        STANDIN_INT(4, !standin_set.offset),
        STANDIN_INT(9, standin_set.managed), /* ConcurrentManagedAccess */
        STANDIN_INT(56, STANDIN_MAX_THREADS), /* MaxThreadsPerBlock */
        STANDIN_INT(63, STANDIN_PROCESSORS), /* MultiprocessorCount */
        STANDIN_INT(10013, standin_set.memops != 0), /* CanUseStreamWaitValue */
        {0, NULL, 0}
    }, attribute, value);
    return standin_hip_end(standin_leave(standin_device_check(device)));
}

HIP(hipDeviceSynchronize, (void), standin_ctx_sync())

int hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least    = 1;
    *greatest = -1;
    return STANDIN_OK;
}

int hipDeviceGetPCIBusId(char *text, int length, int device)
{
    snprintf(text, (size_t)length, "0000:%02x:00.0",
             standin_set.mig ? 1u : (unsigned)(device + 1));
    return standin_hip_end(standin_device_check(device));
}

static int standin_hip_uuid(void *uuid, int device)
{
    memset(uuid, 0x40 + device, 16);
    return standin_hip_end(standin_device_check(device));
}

STANDIN_SINCE(hipDeviceGetUuid, standin_hip_uuid, STANDIN_HIP_5_2);

HIP(hipDeviceCanAccessPeer, (int *can, int device, int peer),
    standin_peer_can(device, peer, can))
HIP(hipDeviceEnablePeerAccess, (int peer, unsigned flags),
    (flags == 0) ? standin_peer_enable(peer) : STANDIN_ERR_INVALID)

/* Streams */

int hipStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    int bound = (priority > 1) ? 1 : (priority < -1) ? -1 : priority;

    return standin_hip_end((flags > 1) ? STANDIN_ERR_INVALID :
                           standin_stream_create(flags == 0, bound, stream));
}

int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    return hipStreamCreateWithPriority(stream, flags, 0);
}

int hipStreamCreate(void **stream)
{
    return hipStreamCreateWithPriority(stream, 0, 0);
}

HIP(hipStreamDestroy, (void *stream), standin_stream_destroy(stream))

HIP(hipStreamGetPriority, (void *stream, int *priority),
    standin_stream_priority(stream, priority))

static HIP(standin_hip_stream_device, (void *stream, int *device),
           standin_stream_device(stream, device))

HIP(hipStreamQuery, (void *stream), standin_stream_query(stream))
HIP(hipStreamSynchronize, (void *stream), standin_stream_sync(stream))
HIP(hipStreamWaitEvent, (void *stream, void *event, unsigned flags),
    (flags != 0) ? STANDIN_ERR_INVALID :
    standin_stream_wait_event(stream, event))

HIP(hipStreamIsCapturing, (void *stream, int *status),
    standin_stream_capture(stream, status))

HIP(hipStreamBeginCapture, (void *stream, int mode),
    ((mode < 0) || (mode > 2)) ? STANDIN_ERR_INVALID :
    standin_capture_begin(stream, mode))
HIP(hipStreamEndCapture, (void *stream, void **graph),
    standin_capture_end(stream, graph))

static HIP(standin_hip_exchange, (int *mode), standin_capture_exchange(mode))

STANDIN_SINCE(hipThreadExchangeStreamCaptureMode, standin_hip_exchange,
              STANDIN_HIP_5_2);

int hipGraphDestroy(void *graph)
{
    free(graph);
    return STANDIN_OK;
}

int hipGraphGetNodes(void *graph, void **nodes, size_t *count)
{
    *count = ((const standin_graph_t*)graph)->nodes;
    return standin_hip_end((nodes == NULL) ? STANDIN_OK :
                                             STANDIN_ERR_UNSUPPORTED);
}

/* Memory operations */

static int standin_hip_op(void *stream, standin_op_t op)
{
    return standin_hip_end(standin_enqueue_ops(stream, &op, 1, 0));
}

int hipStreamWriteValue32(void *stream, void *address, uint32_t value,
                          unsigned flags)
{
    return standin_hip_op(stream, (standin_op_t){
        .op      = STANDIN_OP_WRITE32,
        .flags   = flags,
        .address = (uintptr_t)address,
        .value   = value
    });
}

int hipStreamWriteValue64(void *stream, void *address, uint64_t value,
                          unsigned flags)
{
    return standin_hip_op(stream, (standin_op_t){
        .op      = STANDIN_OP_WRITE64,
        .flags   = flags,
        .address = (uintptr_t)address,
        .value   = value
    });
}

int hipStreamWaitValue32(void *stream, void *address, uint32_t value,
                         unsigned flags, uint32_t mask)
{
    return standin_hip_op(stream, (standin_op_t){
        .op      = STANDIN_OP_WAIT32,
        .flags   = flags,
        .address = (uintptr_t)address,
        .value   = value,
        .mask    = mask
    });
}

int hipStreamWaitValue64(void *stream, void *address, uint64_t value,
                         unsigned flags, uint64_t mask)
{
    return standin_hip_op(stream, (standin_op_t){
        .op      = STANDIN_OP_WAIT64,
        .flags   = flags,
        .address = (uintptr_t)address,
        .value   = value,
        .mask    = mask
    });
}

static HIP(standin_hip_batch,
           (void *stream, unsigned count, standin_batch_op_t *ops,
            unsigned flags),
           standin_enqueue_batch(stream, count, ops, flags))

STANDIN_SINCE(hipStreamBatchMemOp, standin_hip_batch, STANDIN_HIP_6_4);
STANDIN_SINCE(hipStreamGetDevice, standin_hip_stream_device, STANDIN_HIP_5_6);

/* Kernels and host functions */

static HIP(standin_hip_launch,
           (void *stream, void (*func)(void *arg), void *arg),
           standin_enqueue_host(stream, func, NULL, arg))

STANDIN_SINCE(hipLaunchHostFunc, standin_hip_launch, STANDIN_HIP_5_3);

HIP(hipStreamAddCallback,
    (void *stream, void (*func)(void *stream, int status, void *arg),
     void *arg, unsigned flags),
    (flags != 0) ? STANDIN_ERR_INVALID :
    standin_enqueue_host(stream, NULL, func, arg))

int hipModuleLaunchKernel(void (*func)(void *args), unsigned grid_x,
                          unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared,
                          void *stream, void **params, void **extra)
{
    standin_launch_t launch = {
        .func    = func,
        .blocks  = grid_x * grid_y * grid_z,
        .threads = block_x * block_y * block_z
    };
    int err;

    (void)shared;
    if ((params != NULL) || (launch.blocks == 0) || (launch.threads == 0)) {
        return standin_hip_end(STANDIN_ERR_INVALID);
    }
    err = standin_launch_args(extra, 3, &launch);
    if (err == STANDIN_OK) {
        err = standin_enqueue_kernel(stream, &launch);
    }
    return standin_hip_end(err);
}

HIP(hipModuleLoadData, (void **module, const void *image),
    standin_module_load(module, image))
HIP(hipModuleGetFunction, (void **func, void *module, const char *name),
    standin_module_function(func, module, name))

#define STANDIN_HIP_RTC(_name, _func) \
    STANDIN_BEFORE(_name, _func, STANDIN_HIP_7);
STANDIN_RTC_FUNCS(STANDIN_HIP_RTC)

/* Events */

HIP(hipEventCreateWithFlags, (void **event, unsigned flags),
    standin_event_create(!(flags & 2), event))

int hipEventCreate(void **event)
{
    return hipEventCreateWithFlags(event, 0);
}

HIP(hipEventDestroy, (void *event), standin_event_destroy(event))
HIP(hipEventRecord, (void *event, void *stream),
    standin_event_record(event, stream))
HIP(hipEventQuery, (void *event), standin_event_query(event))
HIP(hipEventSynchronize, (void *event), standin_event_sync(event))
HIP(hipEventElapsedTime, (float *ms, void *start, void *end),
    standin_event_time(start, end, ms))
