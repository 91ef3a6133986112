/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_hip.c - what streams of GPUs need of HIP, of ROCm 5.2 to 7. Before
 * 5.2 stores and waits went to the begin of the allocation that a word is in.
 *
 * HIP's functions work on the thread's current device, which is made that of
 * the stream for the time of a call. HIP knows its streams: a wrong handle is
 * an error of its.
 *
 * A store is a packet that waits for all before it and releases that to the
 * system, and then a kernel; a wait is a kernel, which looks at its word until
 * that is large enough. A newer ROCm 7 has no such packet
 * (gstream_hip_check_remote()). A kernel of this library waits for several
 * words at once, where it can be loaded (gstream_module.c), and stores several
 * behind the first one.
 *
 * hipStreamBatchMemOp() is not used: it runs the operations of a batch at the
 * same time, where those of a stream have an order.
 *
 * What is said of HIP here is read in its source, of ROCm 5.0 to 7.
 */
#ifdef HAVE_CONFIG_H
#  include "ucx_st_config.h"
#endif

#include "gstream_gpu.h"
#include "gstream_memory.h"
#include "gstream_module.h"
#include "ucs_hiprtc.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/preprocessor.h>

#include <stdlib.h>
#include <string.h>

/* Of hip_runtime_api.h */
enum {
    GSTREAM_HIP_MEMORY_DEVICE_5 = 1,     /* of ROCm 5, and of later ones */
    GSTREAM_HIP_MEMORY_DEVICE   = 2,
    GSTREAM_HIP_COPY_DEFAULT    = 4,
    GSTREAM_HIP_REGISTER_IO     = 4,
    GSTREAM_HIP_CAN_WAIT        = 10013, /* CanUseStreamWaitValue */
    GSTREAM_HIP_VERSION_6       = 60000000,
    GSTREAM_HIP_VERSION_7       = 70000000,
    GSTREAM_HIP_VERSION_7_2     = 70200000
};


/* Functions in `special` */
enum {
    GSTREAM_HIP_GET_DEVICE,
    GSTREAM_HIP_SET_DEVICE,
    GSTREAM_HIP_ENABLE_PEER,
    GSTREAM_HIP_GET_PRIORITY,
    GSTREAM_HIP_STREAM_DEVICE, /* Or NULL: since ROCm 5.6 */
    GSTREAM_HIP_WAIT64,
    GSTREAM_HIP_WAIT32,
    GSTREAM_HIP_COPY,
    GSTREAM_HIP_COPY2D,
    GSTREAM_HIP_LAUNCH,        /* Or NULL: Debian 12's HIP 5.2 has it in the
                                  header alone */
    GSTREAM_HIP_CALLBACK,
    GSTREAM_HIP_RESULT_NAME
};

typedef int (*gstream_hip_get_func_t)(int *device_p);
typedef int (*gstream_hip_set_func_t)(int device);
typedef int (*gstream_hip_peer_func_t)(int device, unsigned flags);
typedef int (*gstream_hip_stream_func_t)(void *stream, int *value_p);
typedef int (*gstream_hip_wait64_func_t)(void *stream, void *address,
                                         uint64_t value, unsigned flags,
                                         uint64_t mask);
typedef int (*gstream_hip_wait32_func_t)(void *stream, void *address,
                                         uint32_t value, unsigned flags,
                                         uint32_t mask);
typedef int (*gstream_hip_copy_func_t)(void *dst, const void *src,
                                       size_t length, int kind, void *stream);
typedef int (*gstream_hip_copy2d_func_t)(void *dst, size_t dst_pitch,
                                         const void *src, size_t src_pitch,
                                         size_t width, size_t height, int kind,
                                         void *stream);
typedef int (*gstream_hip_launch_func_t)(void *stream, void (*func)(void*),
                                         void *arg);
typedef void (*gstream_hip_callback_t)(void *stream, int status, void *arg);
typedef int (*gstream_hip_callback_func_t)(void *stream,
                                           gstream_hip_callback_t func,
                                           void *arg, unsigned flags);
typedef const char *(*gstream_hip_name_func_t)(int result);

#define GSTREAM_HIP_CALL(_gpu, _type, _index) \
    ((_type)(_gpu)->calls.special[_index])


/* `last` has device -1 where the caller's is the right one */
static int gstream_hip_enter(const gstream_gpu_t *gpu,
                             const gstream_gpu_place_t *place,
                             gstream_gpu_place_t *last)
{
    int current, result;

    last->device = -1;
    result       = GSTREAM_HIP_CALL(gpu, gstream_hip_get_func_t,
                                    GSTREAM_HIP_GET_DEVICE)(&current);
    if ((result != GSTREAM_GPU_OK) || (current == place->device)) {
        return result;
    }
    last->device = current;
    return GSTREAM_HIP_CALL(gpu, gstream_hip_set_func_t,
                            GSTREAM_HIP_SET_DEVICE)(place->device);
}

static void gstream_hip_leave(const gstream_gpu_t *gpu,
                              const gstream_gpu_place_t *last)
{
    if (last->device >= 0) {
        (void)GSTREAM_HIP_CALL(gpu, gstream_hip_set_func_t,
                               GSTREAM_HIP_SET_DEVICE)(last->device);
    }
}

static int gstream_hip_check_stream(const gstream_gpu_t *gpu, void *handle)
{
    int priority;

    return ((uintptr_t)handle <= GSTREAM_GPU_LAST_DEFAULT) ?
                   GSTREAM_GPU_OK :
                   GSTREAM_HIP_CALL(gpu, gstream_hip_stream_func_t,
                                    GSTREAM_HIP_GET_PRIORITY)(handle,
                                                              &priority);
}

static int gstream_hip_is_stream(const gstream_gpu_t *gpu, void *handle)
{
    return gstream_gpu_is_ok(gpu, gstream_hip_check_stream(gpu, handle));
}

/* An older HIP does not tell a stream's device: that is the caller's */
static int gstream_hip_find_place(const gstream_gpu_t *gpu, void *native,
                                  gstream_gpu_place_t *place)
{
    int result = gstream_hip_check_stream(gpu, native);

    place->context = NULL;
    if (result != GSTREAM_GPU_OK) {
        return result;
    }
    if (((uintptr_t)native > GSTREAM_GPU_LAST_DEFAULT) &&
        (gpu->calls.special[GSTREAM_HIP_STREAM_DEVICE] != NULL)) {
        return GSTREAM_HIP_CALL(gpu, gstream_hip_stream_func_t,
                                GSTREAM_HIP_STREAM_DEVICE)(native,
                                                           &place->device);
    }
    return GSTREAM_HIP_CALL(gpu, gstream_hip_get_func_t,
                            GSTREAM_HIP_GET_DEVICE)(&place->device);
}

static int gstream_hip_make_home(const gstream_gpu_t *gpu,
                                 const gstream_gpu_place_t *place,
                                 gstream_gpu_place_t *home)
{
    (void)gpu;
    *home = *place;
    return GSTREAM_GPU_OK;
}

static int gstream_hip_enable_peer(const gstream_gpu_t *gpu,
                                   const gstream_gpu_place_t *peer)
{
    return GSTREAM_HIP_CALL(gpu, gstream_hip_peer_func_t,
                            GSTREAM_HIP_ENABLE_PEER)(peer->device, 0);
}

static int gstream_hip_wait64(const gstream_gpu_t *gpu, void *native,
                              uint64_t address, uint64_t value, unsigned flags)
{
    return GSTREAM_HIP_CALL(gpu, gstream_hip_wait64_func_t,
                            GSTREAM_HIP_WAIT64)(native,
                                                (void*)(uintptr_t)address,
                                                value, flags, UINT64_MAX);
}

static int gstream_hip_wait32(const gstream_gpu_t *gpu, void *native,
                              uint64_t address, uint32_t value, unsigned flags)
{
    return GSTREAM_HIP_CALL(gpu, gstream_hip_wait32_func_t,
                            GSTREAM_HIP_WAIT32)(native,
                                                (void*)(uintptr_t)address,
                                                value, flags, UINT32_MAX);
}

static int gstream_hip_copy1d(const gstream_gpu_t *gpu, void *native, void *dst,
                              const void *src, size_t length)
{
    return GSTREAM_HIP_CALL(gpu, gstream_hip_copy_func_t,
                            GSTREAM_HIP_COPY)(dst, src, length,
                                              GSTREAM_HIP_COPY_DEFAULT, native);
}

static int gstream_hip_copy(const gstream_gpu_t *gpu, void *native,
                            const ucs_gstream_cmd_t *cmd)
{
    const ucs_gstream_rect_t *rect = cmd->u.copy2d.rect;

    if (cmd->type == UCS_GSTREAM_CMD_COPY) {
        return gstream_hip_copy1d(gpu, native, cmd->u.copy.dst, cmd->u.copy.src,
                                  cmd->u.copy.length);
    }
    return GSTREAM_HIP_CALL(gpu, gstream_hip_copy2d_func_t,
                            GSTREAM_HIP_COPY2D)(
            cmd->u.copy2d.dst, rect->dst_pitch, cmd->u.copy2d.src,
            rect->src_pitch, rect->width, rect->height,
            GSTREAM_HIP_COPY_DEFAULT, native);
}

static void gstream_hip_callback(void *stream, int status, void *arg)
{
    (void)stream;
    if (status == GSTREAM_GPU_OK) {
        gstream_gpu_run_func(arg);
    } else {
        free(arg); /* hipLaunchHostFunc() calls nothing then */
    }
}

static int gstream_hip_launch(const gstream_gpu_t *gpu, void *native, void *arg)
{
    if (gpu->calls.special[GSTREAM_HIP_LAUNCH] != NULL) {
        return GSTREAM_HIP_CALL(gpu, gstream_hip_launch_func_t,
                                GSTREAM_HIP_LAUNCH)(native,
                                                    gstream_gpu_run_func, arg);
    }
    return GSTREAM_HIP_CALL(gpu, gstream_hip_callback_func_t,
                            GSTREAM_HIP_CALLBACK)(native, gstream_hip_callback,
                                                  arg, 0);
}

/* HIP itself finds the device's code among the objects */
static int gstream_hip_load(const gstream_gpu_t *gpu, void **module_p,
                            char reason[UCS_GSTREAM_TEXT_MAX])
{
    int result = GSTREAM_GPU_NOT_SUPPORTED;
    void *code;

    if (gstream_image_objects[0] != '\0') {
        result = gpu->calls.load_module(module_p, gstream_image_objects);
    }
    if (gstream_gpu_is_ok(gpu, result)) {
        return result;
    }
    code = ucs_hiprtc_compile(gpu->library, (const char*)gstream_image_source,
                              reason, UCS_GSTREAM_TEXT_MAX);
    if (code != NULL) {
        result = gpu->calls.load_module(module_p, code);
        if (result != GSTREAM_GPU_OK) {
            free(code);
        }
    }
    return result;
}

/* hipIpcMemLazyEnablePeerAccess, without which nothing is opened, was 0 before
 * ROCm 6. hipHostRegisterIoMemory is ignored before ROCm 7, refused by 7.0 and
 * some of 7.1, and heeded from 7.2 on. In all it is the kernel's driver that
 * takes registers or does not. */
static unsigned gstream_hip_flag(const gstream_gpu_t *gpu,
                                 gstream_gpu_flag_t flag)
{
    if (flag == GSTREAM_GPU_IPC_PEER) {
        return gpu->version >= GSTREAM_HIP_VERSION_6;
    }
    if (flag == GSTREAM_GPU_NO_BARRIER) {
        return 0;
    }
    return ((gpu->version >= GSTREAM_HIP_VERSION_7) &&
            (gpu->version < GSTREAM_HIP_VERSION_7_2)) ?
                   0 :
                   GSTREAM_HIP_REGISTER_IO;
}

/* The numbers of memory types changed with ROCm 6 */
static int gstream_hip_is_device_type(const gstream_gpu_t *gpu, int type)
{
    return type == ((gpu->version >= GSTREAM_HIP_VERSION_6) ?
                            GSTREAM_HIP_MEMORY_DEVICE :
                            GSTREAM_HIP_MEMORY_DEVICE_5);
}

static const char *gstream_hip_result_name(const gstream_gpu_t *gpu, int result)
{
    const char *name = GSTREAM_HIP_CALL(gpu, gstream_hip_name_func_t,
                                        GSTREAM_HIP_RESULT_NAME)(result);

    return (name != NULL) ? name : "unknown error";
}

static const char *gstream_hip_check_device(const gstream_gpu_t *gpu,
                                            int device)
{
    int value = 0;

    return (gstream_gpu_is_ok(gpu, gpu->calls.get_attribute(
                                           &value, GSTREAM_HIP_CAN_WAIT,
                                           device)) && value) ?
                   NULL :
                   "it cannot wait for words (hipStreamWaitValue64): take a "
                   "device and driver that can";
}

/* HIP has no such flag. What comes over the bus is in order. */
static unsigned gstream_hip_wait_flags(const gstream_gpu_t *gpu, int device)
{
    (void)gpu;
    (void)device;
    return 0;
}

/* A newer ROCm 7 has the store's kernel release to the system when it ends,
 * behind the store; from which release on is not known. What kernels before it
 * wrote to the device's memory may be in the L2 alone until then: a NIC that
 * the store starts would read what was there before, or its data be overwritten
 * by what leaves the L2 late. With AMD_OPT_FLUSH=0 each kernel releases to the
 * system.
 *
 * What comes behind a wait begins with an acquire of the device's scope
 * (AMD_OPT_FLUSH=0 asks for the system's), which does not invalidate the L2. A
 * buffer has no old lines there: the store that starts a receive is behind a
 * release of system scope, which writes back and invalidates the L2, and
 * nothing reads the buffer before the wait. Lines of a window may be there,
 * which its device has read before: requests over PCIe invalidate these (LLVM's
 * "User Guide for AMDGPU", memory models of gfx90a and gfx940). A kernel that
 * runs already may see old data, as long as the memory is not fine-grained. Not
 * proved on hardware. */
static const char *gstream_hip_check_remote(const gstream_gpu_t *gpu,
                                            int device, int is_written)
{
    const char *flush = getenv("AMD_OPT_FLUSH");

    (void)device;
    (void)is_written;
    return ((gpu->version >= GSTREAM_HIP_VERSION_7) &&
            ((flush == NULL) || strcmp(flush, "0"))) ?
                   "with ROCm 7 a store may overtake what the stream wrote to "
                   "the device's memory before (set AMD_OPT_FLUSH=0 before the "
                   "program starts)" :
                   NULL;
}

/* The same for a kernel that starts and waits itself: its fences are of system
 * scope. The start's writes back and invalidates the L2, so that it has no old
 * lines of the buffer, which nothing reads before the wait; the wait's
 * invalidates what is nearer. Not proved on hardware, either. */
static const char *gstream_hip_check_kernel(const gstream_gpu_t *gpu,
                                            int device)
{
    (void)gpu;
    (void)device;
    return NULL;
}

/* A word that is 0; it is made once and stays, as streams wait for it */
static volatile uint64_t *gstream_hip_zero(void)
{
    static volatile uint64_t *zero; /* atomic */
    volatile uint64_t *other = NULL;
    volatile uint64_t *word  = __atomic_load_n(&zero, __ATOMIC_ACQUIRE);

    if (word != NULL) {
        return word;
    }
    word = ucs_gstream_word_get();
    if ((word != NULL) &&
        !__atomic_compare_exchange_n(&zero, &other, word, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        ucs_gstream_word_put(word);
        word = other;
    }
    return word;
}

/* With GPU_STREAMOPS_CP_WAIT=1 in the environment waits are for signal memory
 * alone, which no attribute tells. So the first stream of a device tries a
 * wait. */
static ucs_status_t gstream_hip_try_wait(const gstream_gpu_t *gpu, void *native,
                                         int device)
{
    static uint64_t tried; /* bits of devices; atomic */
    uint64_t bit            = 1ull << (device % 64);
    volatile uint64_t *zero = gstream_hip_zero();
    int is_capturing        = 0;
    uint64_t address;
    int result;

    if (zero == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    if ((__atomic_load_n(&tried, __ATOMIC_RELAXED) & bit) ||
        !gstream_gpu_is_ok(gpu,
                           gpu->calls.is_capturing(native, &is_capturing)) ||
        is_capturing || (gstream_memory_map(gpu, zero, &address) != UCS_OK)) {
        return UCS_OK; /* the first wait says what is wrong */
    }
    result = gstream_hip_wait64(gpu, native, address, 0, GSTREAM_GPU_WAIT_GEQ);
    if (gstream_gpu_is_ok(gpu, result)) {
        (void)__atomic_fetch_or(&tried, bit, __ATOMIC_RELAXED);
        return UCS_OK;
    }
    ucs_error("%s: no stream on device %d: hipStreamWaitValue64 refuses a word "
              "of registered host memory (%s): unset GPU_STREAMOPS_CP_WAIT",
              gpu->name, device, gstream_hip_result_name(gpu, result));
    return UCS_ERR_UNSUPPORTED;
}

#define GSTREAM_HIP_NAME(_field, _name) \
    { \
        .offset = ucs_offsetof(gstream_gpu_calls_t, _field), \
        .names  = {_name} \
    }

#define GSTREAM_HIP_NAME_OR_NULL(_field, _name) \
    { \
        .offset      = ucs_offsetof(gstream_gpu_calls_t, _field), \
        .names       = {_name}, \
        .is_optional = 1 \
    }

static const gstream_gpu_name_t gstream_hip_names[] = {
    GSTREAM_HIP_NAME(init, "hipInit"),
    GSTREAM_HIP_NAME(get_version, "hipRuntimeGetVersion"),
    GSTREAM_HIP_NAME(get_count, "hipGetDeviceCount"),
    GSTREAM_HIP_NAME(get_attribute, "hipDeviceGetAttribute"),
    GSTREAM_HIP_NAME(create, "hipStreamCreateWithPriority"),
    GSTREAM_HIP_NAME(destroy, "hipStreamDestroy"),
    GSTREAM_HIP_NAME(get_range, "hipDeviceGetStreamPriorityRange"),
    GSTREAM_HIP_NAME(write64, "hipStreamWriteValue64"),
    GSTREAM_HIP_NAME(write32, "hipStreamWriteValue32"),
    GSTREAM_HIP_NAME(query, "hipStreamQuery"),
    GSTREAM_HIP_NAME(synchronize, "hipStreamSynchronize"),
    GSTREAM_HIP_NAME(event_create, "hipEventCreateWithFlags"),
    GSTREAM_HIP_NAME(event_record, "hipEventRecord"),
    GSTREAM_HIP_NAME(event_query, "hipEventQuery"),
    GSTREAM_HIP_NAME(is_capturing, "hipStreamIsCapturing"),
    GSTREAM_HIP_NAME(exchange_mode, "hipThreadExchangeStreamCaptureMode"),
    GSTREAM_HIP_NAME(memory_register, "hipHostRegister"),
    GSTREAM_HIP_NAME(memory_unregister, "hipHostUnregister"),
    GSTREAM_HIP_NAME(memory_device, "hipHostGetDevicePointer"),
    GSTREAM_HIP_NAME(pointer, "hipPointerGetAttribute"),
    GSTREAM_HIP_NAME(allocate, "hipMalloc"),
    GSTREAM_HIP_NAME(load_module, "hipModuleLoadData"),
    GSTREAM_HIP_NAME(get_function, "hipModuleGetFunction"),
    GSTREAM_HIP_NAME(launch_kernel, "hipModuleLaunchKernel"),
    GSTREAM_HIP_NAME(last, "hipPeekAtLastError"),
    GSTREAM_HIP_NAME(clear, "hipGetLastError"),
    GSTREAM_HIP_NAME_OR_NULL(ipc.get_pci, "hipDeviceGetPCIBusId"),
    GSTREAM_HIP_NAME_OR_NULL(ipc.get_uuid, "hipDeviceGetUuid"),
    GSTREAM_HIP_NAME_OR_NULL(ipc.can_access, "hipDeviceCanAccessPeer"),
    GSTREAM_HIP_NAME_OR_NULL(ipc.get_allocation, "hipMemGetAddressRange"),
    GSTREAM_HIP_NAME_OR_NULL(ipc.get_handle, "hipIpcGetMemHandle"),
    GSTREAM_HIP_NAME_OR_NULL(ipc.open, "hipIpcOpenMemHandle"),
    GSTREAM_HIP_NAME_OR_NULL(ipc.close, "hipIpcCloseMemHandle"),
    GSTREAM_HIP_NAME(special[GSTREAM_HIP_GET_DEVICE], "hipGetDevice"),
    GSTREAM_HIP_NAME(special[GSTREAM_HIP_SET_DEVICE], "hipSetDevice"),
    GSTREAM_HIP_NAME(special[GSTREAM_HIP_ENABLE_PEER],
                     "hipDeviceEnablePeerAccess"),
    GSTREAM_HIP_NAME(special[GSTREAM_HIP_GET_PRIORITY], "hipStreamGetPriority"),
    GSTREAM_HIP_NAME_OR_NULL(special[GSTREAM_HIP_STREAM_DEVICE],
                             "hipStreamGetDevice"),
    GSTREAM_HIP_NAME(special[GSTREAM_HIP_WAIT64], "hipStreamWaitValue64"),
    GSTREAM_HIP_NAME(special[GSTREAM_HIP_WAIT32], "hipStreamWaitValue32"),
    GSTREAM_HIP_NAME(special[GSTREAM_HIP_COPY], "hipMemcpyAsync"),
    GSTREAM_HIP_NAME(special[GSTREAM_HIP_COPY2D], "hipMemcpy2DAsync"),
    GSTREAM_HIP_NAME_OR_NULL(special[GSTREAM_HIP_LAUNCH], "hipLaunchHostFunc"),
    GSTREAM_HIP_NAME(special[GSTREAM_HIP_CALLBACK], "hipStreamAddCallback"),
    GSTREAM_HIP_NAME(special[GSTREAM_HIP_RESULT_NAME], "hipGetErrorName")
};

static const char *const gstream_hip_libraries[] = {
#ifdef ST_ROCM_PREFIX
    ST_ROCM_PREFIX "/lib/libamdhip64.so",
    ST_ROCM_PREFIX "/lib64/libamdhip64.so",
#endif
    "libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
    "libamdhip64.so.5", NULL
};

static const gstream_gpu_ops_t gstream_hip_gpu_ops = {
    .find_place     = gstream_hip_find_place,
    .make_home      = gstream_hip_make_home,
    .enter          = gstream_hip_enter,
    .leave          = gstream_hip_leave,
    .enable_peer    = gstream_hip_enable_peer,
    .wait64         = gstream_hip_wait64,
    .wait32         = gstream_hip_wait32,
    .copy           = gstream_hip_copy,
    .launch         = gstream_hip_launch,
    .load           = gstream_hip_load,
    .is_stream      = gstream_hip_is_stream,
    .flag           = gstream_hip_flag,
    .is_device_type = gstream_hip_is_device_type,
    .result_name    = gstream_hip_result_name,
    .check_device   = gstream_hip_check_device,
    .try_wait       = gstream_hip_try_wait,
    .wait_flags     = gstream_hip_wait_flags,
    .check_remote   = gstream_hip_check_remote,
    .check_kernel   = gstream_hip_check_kernel
};

gstream_gpu_t gstream_hip = {
    .type      = UCS_GSTREAM_TYPE_HIP,
    .name      = "HIP",
    .libraries = gstream_hip_libraries,
#ifdef ST_ROCM_DISABLED
    .is_off    = 1,
#endif
    .has_kernels = 1,
    .names     = gstream_hip_names,
    .num_names = sizeof(gstream_hip_names) / sizeof(gstream_hip_names[0]),
    .ops       = &gstream_hip_gpu_ops,

    .queues_name = "GPU_MAX_HW_QUEUES",
    .num_queues  = 4
};
