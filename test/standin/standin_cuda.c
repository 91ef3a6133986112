/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_cuda.c - the names of CUDA's driver, over what is common.
 *
 * A CUfunction is of a module (standin_module.c), or a C function with one
 * argument, a copy of the buffer of CU_LAUNCH_PARAM_BUFFER_POINTER, for which
 * the grid is to know.
 *
 * Memory operations: those with _v2 are there from CUDA 11.7 on, unless
 * STANDIN_MEMOPS=0; the others work with STANDIN_MEMOPS=1 alone, which stands
 * for the option of the driver that they need.
 */
#include "standin.h"
#include "standin_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


const standin_kind_t standin_kind = {
    .name           = "CUDA",
    .version        = 12020,
    .callback_error = STANDIN_ERR_NOT_PERMITTED,
    .queues_name    = "CUDA_DEVICE_MAX_CONNECTIONS",
    .queues         = 8
};

static const standin_name_t standin_cuda_names[] = {
    {STANDIN_OK, "CUDA_SUCCESS"},
    {STANDIN_ERR_INVALID, "CUDA_ERROR_INVALID_VALUE"},
    {STANDIN_ERR_NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {STANDIN_ERR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
    {STANDIN_ERR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
    {STANDIN_ERR_BAD_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {STANDIN_ERR_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {STANDIN_ERR_MAP, "CUDA_ERROR_MAP_FAILED"},
    {STANDIN_ERR_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
    {STANDIN_ERR_PTX, "CUDA_ERROR_INVALID_PTX"},
    {STANDIN_ERR_NO_PEER, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
    {STANDIN_ERR_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {STANDIN_ERR_STATE, "CUDA_ERROR_ILLEGAL_STATE"},
    {STANDIN_ERR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {STANDIN_ERR_NOT_READY, "CUDA_ERROR_NOT_READY"},
    {STANDIN_ERR_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {STANDIN_ERR_PEER_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    {STANDIN_ERR_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {STANDIN_ERR_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {STANDIN_ERR_LOST, "CUDA_ERROR_LAUNCH_FAILED"},
    {STANDIN_ERR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
    {STANDIN_ERR_UNSUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
    {STANDIN_ERR_CAPTURE, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {STANDIN_ERR_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {STANDIN_ERR_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
    {STANDIN_ERR_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    {STANDIN_ERR_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
    {STANDIN_ERR_CAPTURED, "CUDA_ERROR_CAPTURED_EVENT"},
    {0, NULL}
};


CUDA(cuInit, (unsigned flags),
     (flags == 0) ? standin_init() : STANDIN_ERR_INVALID)

int cuDriverGetVersion(int *version)
{
    standin_settings();
    *version = standin_set.version;
    return STANDIN_OK;
}

int cuGetErrorName(int err, const char **name)
{
    *name = standin_name(standin_cuda_names, err);
    return (*name == NULL) ? STANDIN_ERR_INVALID : STANDIN_OK;
}

CUDA(cuGetErrorString, (int err, const char **string),
     cuGetErrorName(err, string))

/* Devices and contexts */

int cuDeviceGetCount(int *count)
{
    int err = standin_enter();

    if (err == STANDIN_OK) {
        *count = standin_set.devices;
        standin_leave(err);
    }
    return err;
}

int cuDeviceGet(int *device, int ordinal)
{
    int err = standin_enter();

    if (err == STANDIN_OK) {
        *device = ordinal;
        err     = standin_leave(standin_device_check(ordinal));
    }
    return err;
}

int cuDeviceGetName(char *name, int length, int device)
{
    snprintf(name, (size_t)length, "stand-in CUDA device %d", device);
    return standin_device_check(device);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    int err = standin_enter();
    int is_new, memops;

    if (err != STANDIN_OK) {
        return err;
    }
    is_new = (standin_set.version >= STANDIN_CUDA_11_7);
    memops = (standin_set.memops != 0) && is_new;
    *value = 0;
    (void)standin_tell((const standin_attribute_t[]){
        STANDIN_INT(1, STANDIN_MAX_THREADS), /* MAX_THREADS_PER_BLOCK */
        STANDIN_INT(11, STANDIN_MAX_PITCH),
        STANDIN_INT(16, STANDIN_PROCESSORS), /* MULTIPROCESSOR_COUNT */
        STANDIN_INT(19, 1), /* CAN_MAP_HOST_MEMORY */
        STANDIN_INT(33, device + 1), /* PCI_BUS_ID */
        STANDIN_INT(41, 1), /* UNIFIED_ADDRESSING */
        /* COMPUTE_CAPABILITY_MAJOR, _MINOR */
        STANDIN_INT(75, standin_set.sm / 10),
        STANDIN_INT(76, standin_set.sm % 10),
        STANDIN_INT(89, standin_set.managed), /* CONCURRENT_MANAGED_ACCESS */
        /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
        STANDIN_INT(91, !standin_set.offset),
        /* CAN_USE_STREAM_MEM_OPS_V1, those of 64 bits, and WAIT_VALUE_NOR */
        STANDIN_INT(92, standin_set.memops == 1),
        STANDIN_INT(93, standin_set.memops == 1),
        STANDIN_INT(94, standin_set.memops == 1),
        STANDIN_INT(98, memops), /* CAN_FLUSH_REMOTE_WRITES */
        /* GPU_DIRECT_RDMA_WRITES_ORDERING: for the device that owns them */
        STANDIN_INT(118, 100 * standin_set.ordered),
        STANDIN_INT(122, memops), /* CAN_USE_64_BIT_STREAM_MEM_OPS */
        STANDIN_INT(123, memops), /* CAN_USE_STREAM_WAIT_VALUE_NOR */
        STANDIN_INT(124, standin_set.dmabuf && is_new), /* DMA_BUF_SUPPORTED */
        {0, NULL, 0}
    }, attribute, value);
    return standin_leave(standin_device_check(device));
}

int cuDeviceGetPCIBusId(char *text, int length, int device)
{
    snprintf(text, (size_t)length, "0000:%02x:00.0",
             standin_set.mig ? 1u : (unsigned)(device + 1));
    return standin_device_check(device);
}

int cuDeviceGetUuid_v2(void *uuid, int device)
{
    memset(uuid, 0x40 + device, 16);
    return standin_device_check(device);
}

CUDA(cuDeviceCanAccessPeer, (int *can, int device, int peer),
     standin_peer_can(device, peer, can))
CUDA(cuDevicePrimaryCtxRetain, (void **ctx, int device),
     standin_ctx_retain(device, ctx))
CUDA(cuDevicePrimaryCtxRelease, (int device), standin_ctx_release(device))
CUDA(cuDevicePrimaryCtxRelease_v2, (int device), standin_ctx_release(device))

int cuCtxCreate_v2(void **ctx, unsigned flags, int device)
{
    (void)flags;
    return standin_ctx_create(device, ctx);
}

CUDA(cuCtxDestroy_v2, (void *ctx), standin_ctx_destroy(ctx))
CUDA(cuCtxSetCurrent, (void *ctx), standin_ctx_set(ctx))
CUDA(cuCtxGetCurrent, (void **ctx), standin_ctx_get(ctx))
CUDA(cuCtxPushCurrent_v2, (void *ctx), standin_ctx_push(ctx))
CUDA(cuCtxPopCurrent_v2, (void **ctx), standin_ctx_pop(ctx))
CUDA(cuCtxGetDevice, (int *device), standin_device_get(device))
CUDA(cuCtxSynchronize, (void), standin_ctx_sync())

int cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
    int device;
    int err = (flags == 0) ? standin_ctx_device(peer, &device) :
                             STANDIN_ERR_INVALID;

    return (err != STANDIN_OK) ? err : standin_peer_enable(device);
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    *least    = 0;
    *greatest = -5;
    return STANDIN_OK;
}

/* Streams */

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    int bound = (priority > 0) ? 0 : (priority < -5) ? -5 : priority;

    return (flags > 1) ? STANDIN_ERR_INVALID :
           standin_stream_create(flags == 0, bound, stream);
}

CUDA(cuStreamCreate, (void **stream, unsigned flags),
     cuStreamCreateWithPriority(stream, flags, 0))
CUDA(cuStreamDestroy_v2, (void *stream), standin_stream_destroy(stream))

CUDA(cuStreamGetCtx, (void *stream, void **ctx),
     standin_stream_ctx(stream, ctx))
CUDA(cuStreamGetPriority, (void *stream, int *priority),
     standin_stream_priority(stream, priority))
CUDA(cuStreamQuery, (void *stream), standin_stream_query(stream))
CUDA(cuStreamSynchronize, (void *stream), standin_stream_sync(stream))
CUDA(cuStreamWaitEvent, (void *stream, void *event, unsigned flags),
     (flags > 1) ? STANDIN_ERR_INVALID :
     standin_stream_wait_event(stream, event))

CUDA(cuStreamIsCapturing, (void *stream, int *status),
     standin_stream_capture(stream, status))
CUDA(cuStreamBeginCapture_v2, (void *stream, int mode),
     ((mode < 0) || (mode > 2)) ? STANDIN_ERR_INVALID :
     standin_capture_begin(stream, mode))
CUDA(cuThreadExchangeStreamCaptureMode, (int *mode),
     standin_capture_exchange(mode))
CUDA(cuStreamEndCapture, (void *stream, void **graph),
     standin_capture_end(stream, graph))

int cuGraphDestroy(void *graph)
{
    free(graph);
    return STANDIN_OK;
}

int cuGraphGetNodes(void *graph, void **nodes, size_t *count)
{
    *count = ((const standin_graph_t*)graph)->nodes;
    return (nodes == NULL) ? STANDIN_OK : STANDIN_ERR_UNSUPPORTED;
}

/* Memory operations */

static int standin_cuda_op(void *stream, int op, uint64_t address,
                           const uint64_t value_flags[2])
{
    standin_op_t one = {
        .op      = op,
        .flags   = (unsigned)value_flags[1],
        .address = address,
        .value   = value_flags[0],
        .mask    = UINT64_MAX
    };

    return standin_enqueue_ops(stream, &one, 1, 0);
}

static int standin_cuda_write32(void *stream, uint64_t address, uint32_t value,
                                unsigned flags)
{
    return standin_cuda_op(stream, STANDIN_OP_WRITE32, address,
                           (uint64_t[]){value, flags});
}

static int standin_cuda_write64(void *stream, uint64_t address, uint64_t value,
                                unsigned flags)
{
    return standin_cuda_op(stream, STANDIN_OP_WRITE64, address,
                           (uint64_t[]){value, flags});
}

static int standin_cuda_wait32(void *stream, uint64_t address, uint32_t value,
                               unsigned flags)
{
    return standin_cuda_op(stream, STANDIN_OP_WAIT32, address,
                           (uint64_t[]){value, flags});
}

static int standin_cuda_wait64(void *stream, uint64_t address, uint64_t value,
                               unsigned flags)
{
    return standin_cuda_op(stream, STANDIN_OP_WAIT64, address,
                           (uint64_t[]){value, flags});
}

/* The driver's option for the first memory operations is not set */
static int standin_cuda_is_old(void)
{
    standin_settings();
    return standin_set.memops != 1;
}

CUDA(cuStreamWriteValue32,
     (void *stream, uint64_t address, uint32_t value, unsigned flags),
     standin_cuda_is_old() ? STANDIN_ERR_UNSUPPORTED :
     standin_cuda_write32(stream, address, value, flags))
CUDA(cuStreamWriteValue64,
     (void *stream, uint64_t address, uint64_t value, unsigned flags),
     standin_cuda_is_old() ? STANDIN_ERR_UNSUPPORTED :
     standin_cuda_write64(stream, address, value, flags))
CUDA(cuStreamWaitValue32,
     (void *stream, uint64_t address, uint32_t value, unsigned flags),
     standin_cuda_is_old() ? STANDIN_ERR_UNSUPPORTED :
     standin_cuda_wait32(stream, address, value, flags))
CUDA(cuStreamWaitValue64,
     (void *stream, uint64_t address, uint64_t value, unsigned flags),
     standin_cuda_is_old() ? STANDIN_ERR_UNSUPPORTED :
     standin_cuda_wait64(stream, address, value, flags))
CUDA(cuStreamBatchMemOp,
     (void *stream, unsigned count, standin_batch_op_t *ops, unsigned flags),
     standin_cuda_is_old() ? STANDIN_ERR_UNSUPPORTED :
     standin_enqueue_batch(stream, count, ops, flags))

STANDIN_SINCE(cuStreamWriteValue32_v2, standin_cuda_write32,
              STANDIN_CUDA_11_7);
STANDIN_SINCE(cuStreamWriteValue64_v2, standin_cuda_write64,
              STANDIN_CUDA_11_7);
STANDIN_SINCE(cuStreamWaitValue32_v2, standin_cuda_wait32, STANDIN_CUDA_11_7);
STANDIN_SINCE(cuStreamWaitValue64_v2, standin_cuda_wait64, STANDIN_CUDA_11_7);
STANDIN_SINCE(cuStreamBatchMemOp_v2, standin_enqueue_batch, STANDIN_CUDA_11_7);

/* Kernels and host functions */

CUDA(cuLaunchHostFunc, (void *stream, void (*func)(void *arg), void *arg),
     standin_enqueue_host(stream, func, NULL, arg))

int cuLaunchKernel(void (*func)(void *args), unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void *stream,
                   void **params, void **extra)
{
    standin_launch_t launch = {
        .func    = func,
        .blocks  = grid_x * grid_y * grid_z,
        .threads = block_x * block_y * block_z
    };
    int err;

    (void)shared;
    if ((params != NULL) || (launch.blocks == 0) || (launch.threads == 0)) {
        return STANDIN_ERR_INVALID;
    }
    err = standin_launch_args(extra, 0, &launch);
    return (err != STANDIN_OK) ? err : standin_enqueue_kernel(stream, &launch);
}

CUDA(cuModuleLoadData, (void **module, const void *image),
     standin_module_load(module, image))
CUDA(cuModuleGetFunction, (void **func, void *module, const char *name),
     standin_module_function(func, module, name))

/* Events */

int cuEventCreate(void **event, unsigned flags)
{
    if ((flags > 7) || ((flags & 6) == 4)) {
        return STANDIN_ERR_INVALID;
    }
    return standin_event_create(!(flags & 2), event);
}

CUDA(cuEventDestroy_v2, (void *event), standin_event_destroy(event))
CUDA(cuEventRecord, (void *event, void *stream),
     standin_event_record(event, stream))
CUDA(cuEventQuery, (void *event), standin_event_query(event))
CUDA(cuEventSynchronize, (void *event), standin_event_sync(event))
CUDA(cuEventElapsedTime, (float *ms, void *start, void *end),
     standin_event_time(start, end, ms))

/* The newest function that the caller's version has: memory operations are the
 * ones of which there are two */
static void *standin_cuda_lookup(const char *symbol, int version)
{
    int is_first = (strncmp(symbol, "cuStreamW", 9) == 0) ||
                   (strcmp(symbol, "cuStreamBatchMemOp") == 0);
    char name[80];
    void *func = NULL;
    void *library;
    Dl_info info;

    if (dladdr(&standin_kind, &info) == 0) {
        return NULL;
    }
    library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) {
        return NULL;
    }
    if (!is_first || (version >= STANDIN_CUDA_11_7)) {
        snprintf(name, sizeof(name), "%s_v2", symbol);
        func = dlsym(library, name);
    }
    if (func == NULL) {
        func = dlsym(library, symbol);
    }
    dlclose(library);
    return func;
}

static int standin_cuda_proc(const char *symbol, void **func, int version,
                             uint64_t flags)
{
    (void)flags;
    *func = standin_cuda_lookup(symbol, version);
    return (*func == NULL) ? STANDIN_ERR_NOT_FOUND : STANDIN_OK;
}

static int standin_cuda_proc_v2(const char *symbol, void **func, int version,
                                uint64_t flags, int *status)
{
    int err = standin_cuda_proc(symbol, func, version, flags);

    if (status != NULL) {
        *status = (err != STANDIN_OK); /* SYMBOL_NOT_FOUND */
    }
    return err;
}

STANDIN_SINCE(cuGetProcAddress, standin_cuda_proc, STANDIN_CUDA_11_3);
STANDIN_SINCE(cuGetProcAddress_v2, standin_cuda_proc_v2, STANDIN_CUDA_12);
