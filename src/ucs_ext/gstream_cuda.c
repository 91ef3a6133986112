/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_cuda.c - what streams of GPUs need of CUDA's driver, 11 to 13.
 *
 * The driver's functions work on the thread's current context, which is made
 * that of the stream for the time of a call. Memory is registered in the
 * primary context of a device, which is kept: it is that of programs that use
 * cuda*() functions, and the last to go.
 */
#ifdef HAVE_CONFIG_H
#  include "ucx_st_config.h"
#endif

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* process_vm_readv() */
#endif

#include "gstream_gpu.h"
#include "gstream_module.h"
#include "api/ucs_gstream_memory.h"

#include <ucs/sys/preprocessor.h>

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of cuda.h */
enum {
    GSTREAM_CUDA_INVALID_HANDLE   = 400,
    GSTREAM_CUDA_REGISTER_IO      = 4,
    GSTREAM_CUDA_IPC_PEER         = 1,
    GSTREAM_CUDA_NO_BARRIER       = 1,
    GSTREAM_CUDA_MEMORY_HOST      = 1,
    GSTREAM_CUDA_MEMORY_DEVICE    = 2,
    GSTREAM_CUDA_HAS_64_BIT_V1    = 93,
    GSTREAM_CUDA_CAN_FLUSH        = 98,
    GSTREAM_CUDA_ORDER_OWNER      = 100,
    GSTREAM_CUDA_REMOTE_ORDER     = 118,
    GSTREAM_CUDA_HAS_64_BIT       = 122,
    GSTREAM_CUDA_VERSION_64_BIT   = 11070  /* The second form of memory
                                              operations, always on */
};


/* CUDA_MEMCPY2D */
typedef struct gstream_cuda_side2d {
    size_t     x; /* bytes */
    size_t     y; /* rows */
    int        type;
    const void *host;
    uint64_t   device;
    void       *array;
    size_t     pitch;
} gstream_cuda_side2d_t;

typedef struct gstream_cuda_copy2d {
    gstream_cuda_side2d_t src;
    gstream_cuda_side2d_t dst;
    size_t                width;
    size_t                height;
} gstream_cuda_copy2d_t;


/* Functions in `special` */
enum {
    GSTREAM_CUDA_STREAM_CONTEXT,
    GSTREAM_CUDA_GET_CURRENT,
    GSTREAM_CUDA_PUSH,
    GSTREAM_CUDA_POP,
    GSTREAM_CUDA_GET_DEVICE,
    GSTREAM_CUDA_RETAIN,
    GSTREAM_CUDA_ENABLE_PEER,
    GSTREAM_CUDA_WAIT64,
    GSTREAM_CUDA_WAIT32,
    GSTREAM_CUDA_COPY,
    GSTREAM_CUDA_COPY2D,
    GSTREAM_CUDA_LAUNCH,
    GSTREAM_CUDA_RESULT_NAME
};

typedef int (*gstream_cuda_context_func_t)(void *stream, void **context_p);
typedef int (*gstream_cuda_get_func_t)(void **context_p);
typedef int (*gstream_cuda_push_func_t)(void *context);
typedef int (*gstream_cuda_device_func_t)(int *device_p);
typedef int (*gstream_cuda_retain_func_t)(void **context_p, int device);
typedef int (*gstream_cuda_peer_func_t)(void *context, unsigned flags);
typedef int (*gstream_cuda_wait64_func_t)(void *stream, uint64_t address,
                                          uint64_t value, unsigned flags);
typedef int (*gstream_cuda_wait32_func_t)(void *stream, uint64_t address,
                                          uint32_t value, unsigned flags);
typedef int (*gstream_cuda_copy_func_t)(uint64_t dst, uint64_t src,
                                        size_t length, void *stream);
typedef int (*gstream_cuda_copy2d_func_t)(const gstream_cuda_copy2d_t *copy,
                                          void *stream);
typedef int (*gstream_cuda_launch_func_t)(void *stream, void (*func)(void*),
                                          void *arg);
typedef int (*gstream_cuda_name_func_t)(int result, const char **name_p);

#define GSTREAM_CUDA_CALL(_gpu, _type, _index) \
    ((_type)(_gpu)->calls.special[_index])


static int gstream_cuda_retain(const gstream_gpu_t *gpu, int device,
                               gstream_gpu_place_t *place)
{
    place->device = device;
    return GSTREAM_CUDA_CALL(gpu, gstream_cuda_retain_func_t,
                             GSTREAM_CUDA_RETAIN)(&place->context, device);
}

static int gstream_cuda_enter(const gstream_gpu_t *gpu,
                              const gstream_gpu_place_t *place,
                              gstream_gpu_place_t *last)
{
    void *current = NULL;
    int result;

    last->context = NULL;
    result        = GSTREAM_CUDA_CALL(gpu, gstream_cuda_get_func_t,
                                      GSTREAM_CUDA_GET_CURRENT)(&current);
    if ((result != GSTREAM_GPU_OK) || (current == place->context)) {
        return result;
    }
    last->context = place->context;
    return GSTREAM_CUDA_CALL(gpu, gstream_cuda_push_func_t,
                             GSTREAM_CUDA_PUSH)(place->context);
}

static void gstream_cuda_leave(const gstream_gpu_t *gpu,
                               const gstream_gpu_place_t *last)
{
    void *context;

    if (last->context != NULL) {
        (void)GSTREAM_CUDA_CALL(gpu, gstream_cuda_get_func_t,
                                GSTREAM_CUDA_POP)(&context);
    }
}

/* The driver looks into what a handle points to: it must be memory */
static int gstream_cuda_is_stream(const gstream_gpu_t *gpu, void *handle)
{
    char byte;
    struct iovec local  = {.iov_base = &byte, .iov_len = 1};
    struct iovec remote = {.iov_base = handle, .iov_len = 1};

    (void)gpu;
    if ((uintptr_t)handle <= GSTREAM_GPU_LAST_DEFAULT) {
        return 1;
    }
    return (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1) ||
           (errno != EFAULT);
}

/* A thread without a context, which has made no call of cuda*(), has that of
 * device 0, as with those; without one the driver may tell nothing of a stream
 */
static int gstream_cuda_find_place(const gstream_gpu_t *gpu, void *native,
                                   gstream_gpu_place_t *place)
{
    gstream_gpu_place_t last;
    int result;

    place->context = NULL;
    if (!gstream_cuda_is_stream(gpu, native)) {
        return GSTREAM_CUDA_INVALID_HANDLE;
    }
    result = GSTREAM_CUDA_CALL(gpu, gstream_cuda_get_func_t,
                               GSTREAM_CUDA_GET_CURRENT)(&place->context);
    if ((result == GSTREAM_GPU_OK) && (place->context == NULL)) {
        result = gstream_cuda_retain(gpu, 0, place);
    }
    if ((result == GSTREAM_GPU_OK) &&
        ((uintptr_t)native > GSTREAM_GPU_LAST_DEFAULT)) {
        result = gstream_cuda_enter(gpu, place, &last);
        if (result == GSTREAM_GPU_OK) {
            result = GSTREAM_CUDA_CALL(gpu, gstream_cuda_context_func_t,
                                       GSTREAM_CUDA_STREAM_CONTEXT)(
                    native, &place->context);
            gstream_cuda_leave(gpu, &last);
        }
    }
    if (result == GSTREAM_GPU_OK) {
        result = gstream_cuda_enter(gpu, place, &last);
    }
    if (result == GSTREAM_GPU_OK) {
        result = GSTREAM_CUDA_CALL(gpu, gstream_cuda_device_func_t,
                                   GSTREAM_CUDA_GET_DEVICE)(&place->device);
        gstream_cuda_leave(gpu, &last);
    }
    return result;
}

static int gstream_cuda_make_home(const gstream_gpu_t *gpu,
                                  const gstream_gpu_place_t *place,
                                  gstream_gpu_place_t *home)
{
    return gstream_cuda_retain(gpu, place->device, home);
}

static int gstream_cuda_enable_peer(const gstream_gpu_t *gpu,
                                    const gstream_gpu_place_t *peer)
{
    return GSTREAM_CUDA_CALL(gpu, gstream_cuda_peer_func_t,
                             GSTREAM_CUDA_ENABLE_PEER)(peer->context, 0);
}

static int gstream_cuda_wait64(const gstream_gpu_t *gpu, void *native,
                               uint64_t address, uint64_t value, unsigned flags)
{
    return GSTREAM_CUDA_CALL(gpu, gstream_cuda_wait64_func_t,
                             GSTREAM_CUDA_WAIT64)(native, address, value,
                                                  flags);
}

static int gstream_cuda_wait32(const gstream_gpu_t *gpu, void *native,
                               uint64_t address, uint32_t value, unsigned flags)
{
    return GSTREAM_CUDA_CALL(gpu, gstream_cuda_wait32_func_t,
                             GSTREAM_CUDA_WAIT32)(native, address, value,
                                                  flags);
}

static int gstream_cuda_copy1d(const gstream_gpu_t *gpu, void *native,
                               const void *dst, const void *src, size_t length)
{
    return GSTREAM_CUDA_CALL(gpu, gstream_cuda_copy_func_t,
                             GSTREAM_CUDA_COPY)((uintptr_t)dst, (uintptr_t)src,
                                                length, native);
}

static gstream_cuda_side2d_t gstream_cuda_side2d(const void *place,
                                                 size_t pitch)
{
    ucs_gstream_memory_attr_t attr;
    int is_host;

    (void)ucs_gstream_memory_query(place, &attr);
    is_host = (attr.type == UCS_GSTREAM_TYPE_HOST);
    return (gstream_cuda_side2d_t){
        .type   = is_host ? GSTREAM_CUDA_MEMORY_HOST :
                            GSTREAM_CUDA_MEMORY_DEVICE,
        .host   = is_host ? place : NULL,
        .device = is_host ? 0 : (uintptr_t)place,
        .pitch  = pitch
    };
}

/* The driver may want pitches of its own where both sides are in a device:
 * this library's copies of rows have a side in the host's memory. */
static int gstream_cuda_copy(const gstream_gpu_t *gpu, void *native,
                             const ucs_gstream_cmd_t *cmd)
{
    const ucs_gstream_rect_t *rect = cmd->u.copy2d.rect;
    gstream_cuda_copy2d_t copy;

    if (cmd->type == UCS_GSTREAM_CMD_COPY) {
        return gstream_cuda_copy1d(gpu, native, cmd->u.copy.dst,
                                   cmd->u.copy.src, cmd->u.copy.length);
    }
    copy.src    = gstream_cuda_side2d(cmd->u.copy2d.src, rect->src_pitch);
    copy.dst    = gstream_cuda_side2d(cmd->u.copy2d.dst, rect->dst_pitch);
    copy.width  = rect->width;
    copy.height = rect->height;
    return GSTREAM_CUDA_CALL(gpu, gstream_cuda_copy2d_func_t,
                             GSTREAM_CUDA_COPY2D)(&copy, native);
}

static int gstream_cuda_launch(const gstream_gpu_t *gpu, void *native,
                               void *arg)
{
    return GSTREAM_CUDA_CALL(gpu, gstream_cuda_launch_func_t,
                             GSTREAM_CUDA_LAUNCH)(native, gstream_gpu_run_func,
                                                  arg);
}

static int gstream_cuda_load(const gstream_gpu_t *gpu, void **module_p,
                             char reason[UCS_GSTREAM_TEXT_MAX])
{
    (void)reason;
    return gpu->calls.load_module(module_p, gstream_image_ptx);
}

static unsigned gstream_cuda_flag(const gstream_gpu_t *gpu,
                                  gstream_gpu_flag_t flag)
{
    static const unsigned flags[GSTREAM_GPU_FLAG_LAST] = {
        [GSTREAM_GPU_REGISTER_IO] = GSTREAM_CUDA_REGISTER_IO,
        [GSTREAM_GPU_IPC_PEER]    = GSTREAM_CUDA_IPC_PEER,
        [GSTREAM_GPU_NO_BARRIER]  = GSTREAM_CUDA_NO_BARRIER
    };

    (void)gpu;
    return flags[flag];
}

static int gstream_cuda_is_device_type(const gstream_gpu_t *gpu, int type)
{
    (void)gpu;
    return type == GSTREAM_CUDA_MEMORY_DEVICE;
}

static const char *gstream_cuda_result_name(const gstream_gpu_t *gpu,
                                            int result)
{
    const char *name = NULL;

    (void)GSTREAM_CUDA_CALL(gpu, gstream_cuda_name_func_t,
                            GSTREAM_CUDA_RESULT_NAME)(result, &name);
    return (name != NULL) ? name : "unknown error";
}

static const char *gstream_cuda_check_device(const gstream_gpu_t *gpu,
                                             int device)
{
    int has_new = (gpu->version >= GSTREAM_CUDA_VERSION_64_BIT);
    int value   = 0;

    if ((gpu->calls.get_attribute(&value,
                                  has_new ? GSTREAM_CUDA_HAS_64_BIT :
                                            GSTREAM_CUDA_HAS_64_BIT_V1,
                                  device) == GSTREAM_GPU_OK) && value) {
        return NULL;
    }
    return has_new ? "it has no stream memory operations of 64 bits" :
                     "its stream memory operations of 64 bits are off: load "
                     "the driver's module with NVreg_EnableStreamMemOPs=1, or "
                     "take a driver of CUDA 11.7 or later";
}

static unsigned gstream_cuda_wait_flags(const gstream_gpu_t *gpu, int device)
{
    int value = 0;

    return ((gpu->calls.get_attribute(&value, GSTREAM_CUDA_CAN_FLUSH,
                                      device) == GSTREAM_GPU_OK) && value) ?
                   GSTREAM_GPU_WAIT_FLUSH :
                   0;
}

/* Writes of others are in order for the device that owns the memory if
 * CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING is
 * CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER or more (CUDA 11.3). Else waits must
 * flush them, as the document of CU_STREAM_WAIT_VALUE_FLUSH has it: it is
 * required where two remote writes arrive in order, the second one ends the
 * wait, and what follows is to see the first. Some devices have neither. */
static int gstream_cuda_is_ordered(const gstream_gpu_t *gpu, int device)
{
    int order = 0;

    return (gpu->calls.get_attribute(&order, GSTREAM_CUDA_REMOTE_ORDER,
                                     device) == GSTREAM_GPU_OK) &&
           (order >= GSTREAM_CUDA_ORDER_OWNER);
}

static const char *gstream_cuda_check_remote(const gstream_gpu_t *gpu,
                                             int device, int is_written)
{
    if (!is_written ||
        (gstream_cuda_wait_flags(gpu, device) & GSTREAM_GPU_WAIT_FLUSH) ||
        gstream_cuda_is_ordered(gpu, device)) {
        return NULL;
    }
    return "the device neither keeps remote writes in order "
           "(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING) nor flushes "
           "them in a wait (CU_STREAM_WAIT_VALUE_FLUSH)";
}

/* A kernel has nothing to flush them with */
static const char *gstream_cuda_check_kernel(const gstream_gpu_t *gpu,
                                             int device)
{
    return gstream_cuda_is_ordered(gpu, device) ? NULL :
           "the device does not keep remote writes in order "
           "(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING), and a "
           "kernel cannot flush them";
}

/* What waits for words waits for all */
static ucs_status_t gstream_cuda_try_wait(const gstream_gpu_t *gpu,
                                          void *native, int device)
{
    (void)gpu;
    (void)native;
    (void)device;
    return UCS_OK;
}

#define GSTREAM_CUDA_NAME(_field, ...) \
    { \
        .offset = ucs_offsetof(gstream_gpu_calls_t, _field), \
        .names  = {__VA_ARGS__} \
    }

#define GSTREAM_CUDA_NAME_OR_NULL(_field, ...) \
    { \
        .offset      = ucs_offsetof(gstream_gpu_calls_t, _field), \
        .names       = {__VA_ARGS__}, \
        .is_optional = 1 \
    }

static const gstream_gpu_name_t gstream_cuda_names[] = {
    GSTREAM_CUDA_NAME(init, "cuInit"),
    GSTREAM_CUDA_NAME(get_version, "cuDriverGetVersion"),
    GSTREAM_CUDA_NAME(get_count, "cuDeviceGetCount"),
    GSTREAM_CUDA_NAME(get_attribute, "cuDeviceGetAttribute"),
    GSTREAM_CUDA_NAME(create, "cuStreamCreateWithPriority"),
    GSTREAM_CUDA_NAME(destroy, "cuStreamDestroy_v2"),
    GSTREAM_CUDA_NAME(get_range, "cuCtxGetStreamPriorityRange"),
    GSTREAM_CUDA_NAME(write64, "cuStreamWriteValue64_v2",
                      "cuStreamWriteValue64"),
    GSTREAM_CUDA_NAME(write32, "cuStreamWriteValue32_v2",
                      "cuStreamWriteValue32"),
    GSTREAM_CUDA_NAME(batch, "cuStreamBatchMemOp_v2", "cuStreamBatchMemOp"),
    GSTREAM_CUDA_NAME(query, "cuStreamQuery"),
    GSTREAM_CUDA_NAME(synchronize, "cuStreamSynchronize"),
    GSTREAM_CUDA_NAME(event_create, "cuEventCreate"),
    GSTREAM_CUDA_NAME(event_record, "cuEventRecord"),
    GSTREAM_CUDA_NAME(event_query, "cuEventQuery"),
    GSTREAM_CUDA_NAME(is_capturing, "cuStreamIsCapturing"),
    GSTREAM_CUDA_NAME_OR_NULL(exchange_mode,
                              "cuThreadExchangeStreamCaptureMode"),
    GSTREAM_CUDA_NAME(memory_register, "cuMemHostRegister_v2"),
    GSTREAM_CUDA_NAME(memory_unregister, "cuMemHostUnregister"),
    GSTREAM_CUDA_NAME(memory_device, "cuMemHostGetDevicePointer_v2"),
    GSTREAM_CUDA_NAME(pointer, "cuPointerGetAttribute"),
    GSTREAM_CUDA_NAME(allocate, "cuMemAlloc_v2"),
    GSTREAM_CUDA_NAME(load_module, "cuModuleLoadData"),
    GSTREAM_CUDA_NAME(get_function, "cuModuleGetFunction"),
    GSTREAM_CUDA_NAME(launch_kernel, "cuLaunchKernel"),
    GSTREAM_CUDA_NAME_OR_NULL(ipc.get_pci, "cuDeviceGetPCIBusId"),
    GSTREAM_CUDA_NAME_OR_NULL(ipc.get_uuid, "cuDeviceGetUuid_v2",
                              "cuDeviceGetUuid"),
    GSTREAM_CUDA_NAME_OR_NULL(ipc.can_access, "cuDeviceCanAccessPeer"),
    GSTREAM_CUDA_NAME_OR_NULL(ipc.get_allocation, "cuMemGetAddressRange_v2"),
    GSTREAM_CUDA_NAME_OR_NULL(ipc.get_handle, "cuIpcGetMemHandle"),
    GSTREAM_CUDA_NAME_OR_NULL(ipc.open, "cuIpcOpenMemHandle_v2",
                              "cuIpcOpenMemHandle"),
    GSTREAM_CUDA_NAME_OR_NULL(ipc.close, "cuIpcCloseMemHandle"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_STREAM_CONTEXT], "cuStreamGetCtx"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_GET_CURRENT], "cuCtxGetCurrent"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_PUSH], "cuCtxPushCurrent_v2"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_POP], "cuCtxPopCurrent_v2"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_GET_DEVICE], "cuCtxGetDevice"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_RETAIN],
                      "cuDevicePrimaryCtxRetain"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_ENABLE_PEER],
                      "cuCtxEnablePeerAccess"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_WAIT64], "cuStreamWaitValue64_v2",
                      "cuStreamWaitValue64"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_WAIT32], "cuStreamWaitValue32_v2",
                      "cuStreamWaitValue32"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_COPY], "cuMemcpyAsync"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_COPY2D], "cuMemcpy2DAsync_v2"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_LAUNCH], "cuLaunchHostFunc"),
    GSTREAM_CUDA_NAME(special[GSTREAM_CUDA_RESULT_NAME], "cuGetErrorName")
};

static const char *const gstream_cuda_libraries[] = {
#ifdef ST_CUDA_PREFIX
    ST_CUDA_PREFIX "/lib/libcuda.so.1", ST_CUDA_PREFIX "/lib64/libcuda.so.1",
#endif
    "libcuda.so.1", NULL
};

static const gstream_gpu_ops_t gstream_cuda_gpu_ops = {
    .find_place     = gstream_cuda_find_place,
    .make_home      = gstream_cuda_make_home,
    .enter          = gstream_cuda_enter,
    .leave          = gstream_cuda_leave,
    .enable_peer    = gstream_cuda_enable_peer,
    .wait64         = gstream_cuda_wait64,
    .wait32         = gstream_cuda_wait32,
    .copy           = gstream_cuda_copy,
    .launch         = gstream_cuda_launch,
    .load           = gstream_cuda_load,
    .is_stream      = gstream_cuda_is_stream,
    .flag           = gstream_cuda_flag,
    .is_device_type = gstream_cuda_is_device_type,
    .result_name    = gstream_cuda_result_name,
    .check_device   = gstream_cuda_check_device,
    .try_wait       = gstream_cuda_try_wait,
    .wait_flags     = gstream_cuda_wait_flags,
    .check_remote   = gstream_cuda_check_remote,
    .check_kernel   = gstream_cuda_check_kernel
};

gstream_gpu_t gstream_cuda = {
    .type      = UCS_GSTREAM_TYPE_CUDA,
    .name      = "CUDA",
    .libraries = gstream_cuda_libraries,
#ifdef ST_CUDA_DISABLED
    .is_off    = 1,
#endif
    .names     = gstream_cuda_names,
    .num_names = sizeof(gstream_cuda_names) / sizeof(gstream_cuda_names[0]),
    .ops       = &gstream_cuda_gpu_ops,

    .queues_name = "CUDA_DEVICE_MAX_CONNECTIONS",
    .num_queues  = 8
};
