/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_hip.c - the names of HIP's runtime, over what is common.
 *
 * A hipFunction_t is a C function with one argument, a copy of the buffer of
 * HIP_LAUNCH_PARAM_BUFFER_POINTER. The grid is for the function to know.
 *
 * hipLaunchHostFunc() is there from HIP 5.3 on (the header of 5.2 has it, the
 * library has not), hipStreamGetDevice() from 5.6 on, hipStreamBatchMemOp() and
 * hipMemGetHandleForAddressRange() from 6.4. Memory types have new numbers from
 * HIP 6 on.
 */
#include "standin.h"
#include "standin_hip.h"
#include "standin_hsa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STANDIN_HIP_5_2 50200000
#define STANDIN_HIP_5_3 50300000
#define STANDIN_HIP_5_6 50600000
#define STANDIN_HIP_6   60000000
#define STANDIN_HIP_6_4 60400000

#define STANDIN_HIP_SIGNAL 2u /* Flag of hipExtMallocWithFlags() */


const standin_kind_t standin_kind = {
    .name           = "HIP",
    .is_hip         = 1,
    .version        = 50220730,
    .callback_error = STANDIN_ERR_STATE,
    .queues_name    = "GPU_MAX_HW_QUEUES",
    .queues         = 4
};

static const standin_name_t standin_hip_names[] = {
    {STANDIN_OK, "hipSuccess"},
    {STANDIN_ERR_INVALID, "hipErrorInvalidValue"},
    {STANDIN_ERR_NO_MEMORY, "hipErrorOutOfMemory"},
    {STANDIN_ERR_NOT_INITIALIZED, "hipErrorNotInitialized"},
    {STANDIN_ERR_NO_DEVICE, "hipErrorNoDevice"},
    {STANDIN_ERR_BAD_DEVICE, "hipErrorInvalidDevice"},
    {STANDIN_ERR_CONTEXT, "hipErrorInvalidContext"},
    {STANDIN_ERR_MAP, "hipErrorMapFailed"},
    {STANDIN_ERR_NO_PEER, "hipErrorPeerAccessUnsupported"},
    {STANDIN_ERR_HANDLE, "hipErrorInvalidHandle"},
    {STANDIN_ERR_STATE, "hipErrorIllegalState"},
    {STANDIN_ERR_NOT_READY, "hipErrorNotReady"},
    {STANDIN_ERR_ADDRESS, "hipErrorIllegalAddress"},
    {STANDIN_ERR_PEER_ENABLED, "hipErrorPeerAccessAlreadyEnabled"},
    {STANDIN_ERR_REGISTERED, "hipErrorHostMemoryAlreadyRegistered"},
    {STANDIN_ERR_NOT_REGISTERED, "hipErrorHostMemoryNotRegistered"},
    {STANDIN_ERR_LOST, "hipErrorLaunchFailure"},
    {STANDIN_ERR_UNSUPPORTED, "hipErrorNotSupported"},
    {STANDIN_ERR_CAPTURE, "hipErrorStreamCaptureUnsupported"},
    {STANDIN_ERR_INVALIDATED, "hipErrorStreamCaptureInvalidated"},
    {STANDIN_ERR_UNMATCHED, "hipErrorStreamCaptureUnmatched"},
    {STANDIN_ERR_ISOLATION, "hipErrorStreamCaptureIsolation"},
    {STANDIN_ERR_IMPLICIT, "hipErrorStreamCaptureImplicit"},
    {STANDIN_ERR_CAPTURED, "hipErrorCapturedEvent"},
    {0, NULL}
};

static __thread int standin_hip_last;


/* A call's result; an error is the thread's last one */
static int standin_hip_end(int err)
{
    if ((err != STANDIN_OK) && (err != STANDIN_ERR_NOT_READY)) {
        standin_hip_last = err;
    }
    return err;
}

int hipInit(unsigned flags)
{
    return standin_hip_end((flags != 0)      ? STANDIN_ERR_INVALID :
                           (hsa_init() != 0) ? STANDIN_ERR_NOT_INITIALIZED :
                                               standin_init());
}

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

int hipSetDevice(int device)
{
    return standin_hip_end(standin_device_set(device));
}

int hipGetDevice(int *device)
{
    return standin_hip_end(standin_device_get(device));
}

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
    switch (attribute) {
    case 3: /* hipDeviceAttributeCanMapHostMemory */
        *value = 1;
        break;
    case 4: /* hipDeviceAttributeCanUseHostPointerForRegisteredMem */
        *value = !standin_set.offset;
        break;
    case 9: /* hipDeviceAttributeConcurrentManagedAccess */
        *value = standin_set.managed;
        break;
    case 10013: /* hipDeviceAttributeCanUseStreamWaitValue */
        *value = (standin_set.memops != 0);
        break;
    default:
        *value = 0;
        break;
    }
    return standin_hip_end(standin_leave(standin_device_check(device)));
}

int hipDeviceSynchronize(void)
{
    return standin_hip_end(standin_ctx_sync());
}

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

int hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    return standin_hip_end(standin_peer_can(device, peer, can));
}

int hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
    return standin_hip_end((flags == 0) ? standin_peer_enable(peer) :
                                          STANDIN_ERR_INVALID);
}

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

int hipStreamDestroy(void *stream)
{
    return standin_hip_end(standin_stream_destroy(stream));
}

int hipStreamGetPriority(void *stream, int *priority)
{
    standin_stream_info_t info;
    int err = standin_stream_info(stream, &info);

    if (err == STANDIN_OK) {
        *priority = info.priority;
    }
    return standin_hip_end(err);
}

static int standin_hip_stream_device(void *stream, int *device)
{
    standin_stream_info_t info;
    int err = standin_stream_info(stream, &info);

    if (err == STANDIN_OK) {
        *device = info.device;
    }
    return standin_hip_end(err);
}

int hipStreamQuery(void *stream)
{
    return standin_hip_end(standin_stream_query(stream));
}

int hipStreamSynchronize(void *stream)
{
    return standin_hip_end(standin_stream_sync(stream));
}

int hipStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    return standin_hip_end((flags != 0) ? STANDIN_ERR_INVALID :
                           standin_stream_wait_event(stream, event));
}

int hipStreamIsCapturing(void *stream, int *status)
{
    standin_stream_info_t info;
    int err = standin_stream_info(stream, &info);

    if (err == STANDIN_OK) {
        *status = info.capture;
    }
    return standin_hip_end(err);
}

int hipStreamBeginCapture(void *stream, int mode)
{
    return standin_hip_end(((mode < 0) || (mode > 2)) ? STANDIN_ERR_INVALID :
                           standin_capture_begin(stream));
}

int hipStreamEndCapture(void *stream, void **graph)
{
    return standin_hip_end(standin_capture_end(stream, graph));
}

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

static int standin_hip_batch(void *stream, unsigned count,
                             standin_hip_op_t *ops, unsigned flags)
{
    standin_op_t *all = calloc(count + 1, sizeof(*all));
    unsigned i;
    int err;

    _Static_assert(sizeof(standin_hip_op_t) == 48, "size of an operation");
    if ((flags != 0) || (all == NULL)) {
        free(all);
        return standin_hip_end((flags != 0) ? STANDIN_ERR_INVALID :
                                              STANDIN_ERR_NO_MEMORY);
    }
    for (i = 0; i < count; ++i) {
        all[i] = (standin_op_t){
            .op      = (int)ops[i].op,
            .flags   = ops[i].flags,
            .address = ops[i].address,
            .value   = ops[i].value,
            .mask    = UINT64_MAX
        };
    }
    err = standin_enqueue_ops(stream, all, count, 1);
    free(all);
    return standin_hip_end(err);
}

/* Its name is what tells HIP 6 */
static int standin_hip_properties(void *properties, int device)
{
    (void)properties;
    (void)device;
    return standin_hip_end(STANDIN_ERR_UNSUPPORTED);
}

STANDIN_SINCE(hipGetDevicePropertiesR0600, standin_hip_properties,
              STANDIN_HIP_6);
STANDIN_SINCE(hipStreamBatchMemOp, standin_hip_batch, STANDIN_HIP_6_4);
STANDIN_SINCE(hipStreamGetDevice, standin_hip_stream_device, STANDIN_HIP_5_6);

/* Kernels and host functions */

static int standin_hip_launch(void *stream, void (*func)(void *arg), void *arg)
{
    return standin_hip_end(standin_enqueue_host(stream, func, NULL, arg));
}

STANDIN_SINCE(hipLaunchHostFunc, standin_hip_launch, STANDIN_HIP_5_3);

int hipStreamAddCallback(void *stream,
                         void (*func)(void *stream, int status, void *arg),
                         void *arg, unsigned flags)
{
    return standin_hip_end((flags != 0) ? STANDIN_ERR_INVALID :
                           standin_enqueue_host(stream, NULL, func, arg));
}

int hipModuleLaunchKernel(void (*func)(void *args), unsigned grid_x,
                          unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared,
                          void *stream, void **params, void **extra)
{
    const void *args;
    size_t size;
    int err;

    (void)shared;
    if ((params != NULL) || !grid_x || !grid_y || !grid_z || !block_x ||
        !block_y || !block_z) {
        return standin_hip_end(STANDIN_ERR_INVALID);
    }
    err = standin_launch_args(extra, 3, &args, &size);
    if (err == STANDIN_OK) {
        err = standin_enqueue_kernel(stream, func, args, size);
    }
    return standin_hip_end(err);
}

/* Memory */

static int standin_hip_alloc(void **address, size_t size, int kind,
                             unsigned flags)
{
    uint64_t dev = 0;
    int err      = (size == 0) ? STANDIN_OK :
                   standin_mem_alloc(size, kind, flags, &dev);

    if (err == STANDIN_OK) {
        *address = (void*)(uintptr_t)dev;
    }
    return standin_hip_end(err);
}

int hipMalloc(void **address, size_t size)
{
    return standin_hip_alloc(address, size, STANDIN_DEVICE, 0);
}

int hipMallocManaged(void **address, size_t size, unsigned flags)
{
    return ((flags != 1) && (flags != 2)) ?
           standin_hip_end(STANDIN_ERR_INVALID) :
           standin_hip_alloc(address, size, STANDIN_MANAGED, 0);
}

/* Memory for signals is of 8 bytes, and the host may use it */
int hipExtMallocWithFlags(void **address, size_t size, unsigned flags)
{
    if ((flags & STANDIN_HIP_SIGNAL) && (size != 8)) {
        return standin_hip_end(STANDIN_ERR_INVALID);
    }
    return standin_hip_alloc(address, size,
                             (flags & STANDIN_HIP_SIGNAL) ? STANDIN_SIGNAL :
                                                            STANDIN_DEVICE,
                             flags);
}

int hipFree(void *address)
{
    return standin_hip_end((address == NULL) ? STANDIN_OK :
                           standin_mem_free((uintptr_t)address, 0));
}

int hipHostMalloc(void **address, size_t size, unsigned flags)
{
    return standin_hip_alloc(address, size, STANDIN_PINNED, flags);
}

int hipHostFree(void *address)
{
    return standin_hip_end((address == NULL) ? STANDIN_OK :
                           standin_mem_free((uintptr_t)address, 1));
}

int hipHostRegister(void *address, size_t size, unsigned flags)
{
    return standin_hip_end(standin_mem_register(address, size,
                                                (flags & 4) != 0, flags));
}

int hipHostUnregister(void *address)
{
    return standin_hip_end(standin_mem_unregister(address));
}

int hipHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    uint64_t dev;
    int err = (flags != 0) ? STANDIN_ERR_INVALID :
              standin_mem_device_pointer(host, &dev);

    if (err == STANDIN_OK) {
        *device = (void*)(uintptr_t)dev;
    }
    return standin_hip_end(err);
}

int hipMemGetAddressRange(void **base, size_t *size, void *address)
{
    standin_info_t info;
    int err = standin_mem_info((uintptr_t)address, &info);

    if (err == STANDIN_OK) {
        *base = (void*)(uintptr_t)info.start;
        *size = info.size;
    }
    return standin_hip_end(err);
}

static int standin_hip_dmabuf(void *handle, void *address, size_t size,
                              int type, uint64_t flags)
{
    return standin_hip_end(((type != 1) || (flags != 0)) ?
                           STANDIN_ERR_INVALID :
                           standin_mem_export((uintptr_t)address, size,
                                              handle));
}

STANDIN_SINCE(hipMemGetHandleForAddressRange, standin_hip_dmabuf,
              STANDIN_HIP_6_4);

/* For the stand-in of ROCr, which is below the real runtime */

int standin_hsa_find(uint64_t address, uint64_t *start, size_t *size)
{
    standin_info_t info;

    if ((standin_mem_info(address, &info) != STANDIN_OK) ||
        ((info.kind != STANDIN_DEVICE) && (info.kind != STANDIN_IPC))) {
        return 0;
    }
    *start = info.start;
    *size  = info.size;
    return 1;
}

int standin_hsa_share(uint64_t address, size_t size, int *fd, uint64_t *offset)
{
    return standin_mem_share(address, size, fd, offset);
}

/* The numbers of memory types have moved by one */
static int standin_hip_type(const standin_info_t *info)
{
    int is_device = (info->kind == STANDIN_DEVICE) ||
                    (info->kind == STANDIN_IPC) ||
                    (info->kind == STANDIN_MANAGED);

    return is_device + (standin_set.version >= STANDIN_HIP_6);
}

int hipPointerGetAttributes(standin_hip_pointer_t *attributes,
                            const void *address)
{
    standin_info_t info;
    int err = standin_mem_info((uintptr_t)address, &info);

    if (err == STANDIN_OK) {
        *attributes = (standin_hip_pointer_t){
            .type           = standin_hip_type(&info),
            .device         = info.device,
            .device_pointer = (void*)(uintptr_t)info.dev,
            .host_pointer   = (void*)(uintptr_t)info.host,
            .is_managed     = (info.kind == STANDIN_MANAGED),
            .flags          = info.flags
        };
    }
    return standin_hip_end(err);
}

int hipPointerGetAttribute(void *value, int attribute, void *address)
{
    standin_info_t info;
    int err = standin_mem_info((uintptr_t)address, &info);

    if (err != STANDIN_OK) {
        return standin_hip_end(err);
    }
    switch (attribute) {
    case 1: /* CONTEXT */
        *(void**)value = info.ctx;
        break;
    case 2: /* MEMORY_TYPE */
        *(unsigned*)value = (unsigned)standin_hip_type(&info);
        break;
    case 3: /* DEVICE_POINTER */
        *(void**)value = (void*)(uintptr_t)info.dev;
        break;
    case 4: /* HOST_POINTER */
        *(void**)value = (void*)(uintptr_t)info.host;
        break;
    case 7: /* BUFFER_ID */
        *(unsigned*)value = (unsigned)info.id;
        break;
    case 8: /* IS_MANAGED */
        *(unsigned char*)value = (info.kind == STANDIN_MANAGED);
        break;
    case 9: /* DEVICE_ORDINAL */
        *(int*)value = info.device;
        break;
    case 11: /* RANGE_START_ADDR */
        *(void**)value = (void*)(uintptr_t)info.start;
        break;
    case 12: /* RANGE_SIZE */
        *(size_t*)value = info.size;
        break;
    default:
        err = STANDIN_ERR_INVALID;
        break;
    }
    return standin_hip_end(err);
}

/* Copies. Kinds: 1 host to device, 2 device to host, 3 both are devices, 4 or
 * 0 whatever they are */

static standin_copy_t standin_hip_copy(void *dst, const void *src, size_t size,
                                       int kind)
{
    return (standin_copy_t){
        .dst          = (uintptr_t)dst,
        .src          = (uintptr_t)src,
        .width        = size,
        .height       = 1,
        .is_dst_known = (kind & 1) != 0,
        .is_src_known = (kind & 2) != 0
    };
}

int hipMemcpy(void *dst, const void *src, size_t size, int kind)
{
    standin_copy_t copy = standin_hip_copy(dst, src, size, kind);

    return standin_hip_end(standin_enqueue_copy(NULL, &copy, 1));
}

int hipMemcpyAsync(void *dst, const void *src, size_t size, int kind,
                   void *stream)
{
    standin_copy_t copy = standin_hip_copy(dst, src, size, kind);

    return standin_hip_end(standin_enqueue_copy(stream, &copy, 0));
}

int hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                     size_t width, size_t height, int kind, void *stream)
{
    standin_copy_t copy = standin_hip_copy(dst, src, width, kind);

    copy.dpitch = dpitch;
    copy.spitch = spitch;
    copy.height = height;
    return standin_hip_end(standin_enqueue_copy(stream, &copy, 0));
}

int hipMemsetAsync(void *dst, int value, size_t size, void *stream)
{
    standin_fill_t fill = {
        .dst   = (uintptr_t)dst,
        .size  = size,
        .value = (uint8_t)value
    };

    return standin_hip_end(standin_enqueue_fill(stream, &fill));
}

/* Events */

int hipEventCreateWithFlags(void **event, unsigned flags)
{
    return standin_hip_end(standin_event_create(!(flags & 2), event));
}

int hipEventCreate(void **event)
{
    return hipEventCreateWithFlags(event, 0);
}

int hipEventDestroy(void *event)
{
    return standin_hip_end(standin_event_destroy(event));
}

int hipEventRecord(void *event, void *stream)
{
    return standin_hip_end(standin_event_record(event, stream));
}

int hipEventQuery(void *event)
{
    return standin_hip_end(standin_event_query(event));
}

int hipEventSynchronize(void *event)
{
    return standin_hip_end(standin_event_sync(event));
}

int hipEventElapsedTime(float *ms, void *start, void *end)
{
    return standin_hip_end(standin_event_time(start, end, ms));
}

/* IPC handles */

int hipIpcGetMemHandle(standin_hip_ipc_t *handle, void *address)
{
    standin_ipc_t plain = {0};
    int err             = standin_mem_ipc_get((uintptr_t)address, &plain);

    _Static_assert(sizeof(plain) == sizeof(*handle), "size of an IPC handle");
    memcpy(handle, &plain, sizeof(plain));
    return standin_hip_end(err);
}

int hipIpcOpenMemHandle(void **address, standin_hip_ipc_t handle,
                        unsigned flags)
{
    standin_ipc_t plain;
    uint64_t dev;
    int err = STANDIN_ERR_INVALID;

    memcpy(&plain, &handle, sizeof(plain));
    if (flags == 1) {
        err = standin_mem_ipc_open(&plain, &dev);
    }
    if (err == STANDIN_OK) {
        *address = (void*)(uintptr_t)dev;
    }
    return standin_hip_end(err);
}

int hipIpcCloseMemHandle(void *address)
{
    return standin_hip_end(standin_mem_ipc_close((uintptr_t)address));
}
