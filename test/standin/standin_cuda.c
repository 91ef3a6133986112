/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_cuda.c - the names of CUDA's driver, over what is common.
 *
 * A CUfunction is a C function with one argument, a copy of the buffer of
 * CU_LAUNCH_PARAM_BUFFER_POINTER. The grid is for the function to know.
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

#define STANDIN_CUDA_NOT_FOUND 500


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
    {STANDIN_ERR_NO_PEER, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
    {STANDIN_ERR_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {STANDIN_ERR_STATE, "CUDA_ERROR_ILLEGAL_STATE"},
    {STANDIN_CUDA_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
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


int cuInit(unsigned flags)
{
    return (flags == 0) ? standin_init() : STANDIN_ERR_INVALID;
}

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

int cuGetErrorString(int err, const char **string)
{
    return cuGetErrorName(err, string);
}

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
    int memops;
    int err = standin_enter();

    if (err != STANDIN_OK) {
        return err;
    }
    memops = (standin_set.memops != 0) &&
             (standin_set.version >= STANDIN_CUDA_11_7);
    switch (attribute) {
    case 11: /* MAX_PITCH */
        *value = STANDIN_MAX_PITCH;
        break;
    case 19: /* CAN_MAP_HOST_MEMORY */
    case 41: /* UNIFIED_ADDRESSING */
        *value = 1;
        break;
    case 33: /* PCI_BUS_ID */
        *value = device + 1;
        break;
    case 75: /* COMPUTE_CAPABILITY_MAJOR */
        *value = 9;
        break;
    case 89: /* CONCURRENT_MANAGED_ACCESS */
        *value = standin_set.managed;
        break;
    case 91: /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
        *value = !standin_set.offset;
        break;
    case 92: /* CAN_USE_STREAM_MEM_OPS_V1 */
    case 93: /* CAN_USE_64_BIT_STREAM_MEM_OPS_V1 */
    case 94: /* CAN_USE_STREAM_WAIT_VALUE_NOR_V1 */
        *value = (standin_set.memops == 1);
        break;
    case 98: /* CAN_FLUSH_REMOTE_WRITES */
    case 122: /* CAN_USE_64_BIT_STREAM_MEM_OPS */
    case 123: /* CAN_USE_STREAM_WAIT_VALUE_NOR */
        *value = memops;
        break;
    case 124: /* DMA_BUF_SUPPORTED */
        *value = standin_set.dmabuf &&
                 (standin_set.version >= STANDIN_CUDA_11_7);
        break;
    default:
        *value = 0;
        break;
    }
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

int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    return standin_peer_can(device, peer, can);
}

int cuDevicePrimaryCtxRetain(void **ctx, int device)
{
    return standin_ctx_retain(device, ctx);
}

int cuDevicePrimaryCtxRelease(int device)
{
    return standin_ctx_release(device);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    return standin_ctx_release(device);
}

int cuCtxCreate_v2(void **ctx, unsigned flags, int device)
{
    (void)flags;
    return standin_ctx_create(device, ctx);
}

int cuCtxDestroy_v2(void *ctx)
{
    return standin_ctx_destroy(ctx);
}

int cuCtxSetCurrent(void *ctx)
{
    return standin_ctx_set(ctx);
}

int cuCtxGetCurrent(void **ctx)
{
    return standin_ctx_get(ctx);
}

int cuCtxPushCurrent_v2(void *ctx)
{
    return standin_ctx_push(ctx);
}

int cuCtxPopCurrent_v2(void **ctx)
{
    return standin_ctx_pop(ctx);
}

int cuCtxGetDevice(int *device)
{
    return standin_device_get(device);
}

int cuCtxSynchronize(void)
{
    return standin_ctx_sync();
}

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

int cuStreamCreate(void **stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

int cuStreamDestroy_v2(void *stream)
{
    return standin_stream_destroy(stream);
}

int cuStreamGetCtx(void *stream, void **ctx)
{
    standin_stream_info_t info;
    int err = standin_stream_info(stream, &info);

    if (err == STANDIN_OK) {
        *ctx = info.ctx;
    }
    return err;
}

int cuStreamGetPriority(void *stream, int *priority)
{
    standin_stream_info_t info;
    int err = standin_stream_info(stream, &info);

    if (err == STANDIN_OK) {
        *priority = info.priority;
    }
    return err;
}

int cuStreamQuery(void *stream)
{
    return standin_stream_query(stream);
}

int cuStreamSynchronize(void *stream)
{
    return standin_stream_sync(stream);
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    return (flags > 1) ? STANDIN_ERR_INVALID :
           standin_stream_wait_event(stream, event);
}

int cuStreamIsCapturing(void *stream, int *status)
{
    standin_stream_info_t info;
    int err = standin_stream_info(stream, &info);

    if (err == STANDIN_OK) {
        *status = info.capture;
    }
    return err;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
    return ((mode < 0) || (mode > 2)) ? STANDIN_ERR_INVALID :
           standin_capture_begin(stream, mode);
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    return standin_capture_exchange(mode);
}

int cuStreamEndCapture(void *stream, void **graph)
{
    return standin_capture_end(stream, graph);
}

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

static int standin_cuda_batch(void *stream, unsigned count,
                              standin_cuda_op_t *ops, unsigned flags)
{
    standin_op_t *all = calloc(count + 1, sizeof(*all));
    unsigned i;
    int err;

    _Static_assert(sizeof(standin_cuda_op_t) == 48, "size of an operation");
    if ((flags != 0) || (all == NULL)) {
        free(all);
        return (flags != 0) ? STANDIN_ERR_INVALID : STANDIN_ERR_NO_MEMORY;
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
    return err;
}

/* The driver's option for the first memory operations is not set */
static int standin_cuda_is_old(void)
{
    standin_settings();
    return standin_set.memops != 1;
}

int cuStreamWriteValue32(void *stream, uint64_t address, uint32_t value,
                         unsigned flags)
{
    return standin_cuda_is_old() ? STANDIN_ERR_UNSUPPORTED :
           standin_cuda_write32(stream, address, value, flags);
}

int cuStreamWriteValue64(void *stream, uint64_t address, uint64_t value,
                         unsigned flags)
{
    return standin_cuda_is_old() ? STANDIN_ERR_UNSUPPORTED :
           standin_cuda_write64(stream, address, value, flags);
}

int cuStreamWaitValue32(void *stream, uint64_t address, uint32_t value,
                        unsigned flags)
{
    return standin_cuda_is_old() ? STANDIN_ERR_UNSUPPORTED :
           standin_cuda_wait32(stream, address, value, flags);
}

int cuStreamWaitValue64(void *stream, uint64_t address, uint64_t value,
                        unsigned flags)
{
    return standin_cuda_is_old() ? STANDIN_ERR_UNSUPPORTED :
           standin_cuda_wait64(stream, address, value, flags);
}

int cuStreamBatchMemOp(void *stream, unsigned count, standin_cuda_op_t *ops,
                       unsigned flags)
{
    return standin_cuda_is_old() ? STANDIN_ERR_UNSUPPORTED :
           standin_cuda_batch(stream, count, ops, flags);
}

STANDIN_SINCE(cuStreamWriteValue32_v2, standin_cuda_write32,
              STANDIN_CUDA_11_7);
STANDIN_SINCE(cuStreamWriteValue64_v2, standin_cuda_write64,
              STANDIN_CUDA_11_7);
STANDIN_SINCE(cuStreamWaitValue32_v2, standin_cuda_wait32, STANDIN_CUDA_11_7);
STANDIN_SINCE(cuStreamWaitValue64_v2, standin_cuda_wait64, STANDIN_CUDA_11_7);
STANDIN_SINCE(cuStreamBatchMemOp_v2, standin_cuda_batch, STANDIN_CUDA_11_7);

/* Kernels and host functions */

int cuLaunchHostFunc(void *stream, void (*func)(void *arg), void *arg)
{
    return standin_enqueue_host(stream, func, NULL, arg);
}

int cuLaunchKernel(void (*func)(void *args), unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared, void *stream,
                   void **params, void **extra)
{
    const void *args;
    size_t size;
    int err;

    (void)shared;
    if ((params != NULL) || !grid_x || !grid_y || !grid_z || !block_x ||
        !block_y || !block_z) {
        return STANDIN_ERR_INVALID;
    }
    err = standin_launch_args(extra, 0, &args, &size);
    return (err != STANDIN_OK) ? err :
           standin_enqueue_kernel(stream, func, args, size);
}

/* Events */

int cuEventCreate(void **event, unsigned flags)
{
    if ((flags > 7) || ((flags & 6) == 4)) {
        return STANDIN_ERR_INVALID;
    }
    return standin_event_create(!(flags & 2), event);
}

int cuEventDestroy_v2(void *event)
{
    return standin_event_destroy(event);
}

int cuEventRecord(void *event, void *stream)
{
    return standin_event_record(event, stream);
}

int cuEventQuery(void *event)
{
    return standin_event_query(event);
}

int cuEventSynchronize(void *event)
{
    return standin_event_sync(event);
}

int cuEventElapsedTime(float *ms, void *start, void *end)
{
    return standin_event_time(start, end, ms);
}

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
    return (*func == NULL) ? STANDIN_CUDA_NOT_FOUND : STANDIN_OK;
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
