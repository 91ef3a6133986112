/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_gpu.c - streams of GPUs.
 *
 * A stream here is a handle of the application's stream, or of one that was
 * made for it, and enqueues to that at once. Stores and waits go in one batch
 * where the runtime has such; a function is a host function of the runtime.
 *
 * What is visible when (the runtimes' documents of the functions named):
 *
 *   - A store comes after all that the stream did before, for the whole system:
 *     cuStreamWriteValue64() without CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
 *     puts a barrier like __threadfence_system() in front, and
 *     hipStreamWriteValue64() a packet with a release of system scope, up to
 *     ROCm 6 (gstream_hip.c). So a NIC that the store starts sees what kernels
 *     wrote.
 *   - What comes after a wait comes after the store that ended it. What a NIC
 *     wrote to the device's memory before it wrote the word may still be under
 *     way inside the device: CU_STREAM_WAIT_VALUE_FLUSH, where the device has
 *     it, makes it visible (see gstream_gpu_ops_t.wait_flags). Words and data
 *     that both lie in the host's memory need no more than the order of the
 *     bus.
 *
 * A stream's `lock` keeps the commands of one call together and protects its
 * scratch memory. It is held during calls of the runtime that enqueue, which
 * wait for room in the stream, and where they register memory or launch a host
 * function for room that a kernel or a copy waits for in another one.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_gpu_stream.h"
#include "gstream_futex.h"
#include "api/ucs_backoff.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define GSTREAM_GPU_CAPS \
    (UCS_GSTREAM_CAP_WRITE | UCS_GSTREAM_CAP_WAIT | UCS_GSTREAM_CAP_COPY | \
     UCS_GSTREAM_CAP_FUNC)


__thread gstream_gpu_stream_t *gstream_gpu_current;

ucs_status_t gstream_gpu_enter(gstream_gpu_stream_t *stream,
                               gstream_gpu_place_t *last)
{
    const gstream_gpu_t *gpu = stream->gpu;

    if (gpu->is_forked) {
        ucs_error("%s stream %p: it is of the process that was forked",
                  gpu->name, (void*)stream);
        return UCS_ERR_IO_ERROR;
    }
    return (gstream_gpu_status(gpu,
                               gpu->ops->enter(gpu, &stream->place, last),
                               "the stream's context or device is gone") ==
            UCS_OK) ?
                   UCS_OK :
                   UCS_ERR_IO_ERROR;
}

ucs_status_t gstream_gpu_enter_checked(gstream_gpu_stream_t *stream,
                                       const char *call,
                                       gstream_gpu_place_t *last)
{
    const gstream_gpu_t *gpu = stream->gpu;
    int is_capturing         = 0;
    ucs_status_t status;

    status = gstream_gpu_enter(stream, last);
    if (status != UCS_OK) {
        return status;
    }
    status = gstream_gpu_status(gpu,
                                gpu->calls.is_capturing(stream->native,
                                                        &is_capturing),
                                call);
    if ((status == UCS_OK) && is_capturing) {
        ucs_error("%s: %s: the stream is being captured into a graph",
                  gpu->name, call);
        status = UCS_ERR_UNSUPPORTED;
    }
    if (status != UCS_OK) {
        gpu->ops->leave(gpu, last);
    }
    return status;
}

/* What is wrong with the parameters; NULL if nothing. */
static const char *gstream_gpu_check(const ucs_gstream_params_t *params)
{
    if (params->field_mask & (UCS_GSTREAM_PARAM_FIELD_GROUP |
                              UCS_GSTREAM_PARAM_FIELD_CPUS)) {
        return "groups and processors are for streams of the host";
    }
    if ((params->field_mask & UCS_GSTREAM_PARAM_FIELD_NATIVE) &&
        (params->field_mask & UCS_GSTREAM_PARAM_FIELD_PRIORITY)) {
        return "the application's stream has its priority already";
    }
    return NULL;
}

/* Makes a stream of the runtime at the caller's place */
static ucs_status_t gstream_gpu_make_native(gstream_gpu_stream_t *stream,
                                            const ucs_gstream_params_t *params)
{
    const gstream_gpu_t *gpu = stream->gpu;
    int least                = 0;
    int greatest             = 0;
    int priority             = 0;
    gstream_gpu_place_t last;
    ucs_status_t status;

    status = gstream_gpu_enter(stream, &last);
    if (status != UCS_OK) {
        return status;
    }
    (void)gpu->calls.get_range(&least, &greatest);
    if (params->field_mask & UCS_GSTREAM_PARAM_FIELD_PRIORITY) {
        /* Smaller is more urgent for both */
        priority = ucs_max(ucs_min(params->priority, least), greatest);
    }
    status         = gstream_gpu_status(
            gpu, gpu->calls.create(&stream->native, GSTREAM_GPU_NON_BLOCKING,
                                   priority), "cannot create a stream");
    stream->is_own = (status == UCS_OK);
    gpu->ops->leave(gpu, &last);
    return status;
}

/* Undoes that */
static void gstream_gpu_end_native(gstream_gpu_stream_t *stream)
{
    const gstream_gpu_t *gpu = stream->gpu;
    gstream_gpu_place_t last;

    if (stream->is_own && !gpu->is_forked &&
        gstream_gpu_is_ok(gpu, gpu->ops->enter(gpu, &stream->place, &last))) {
        (void)gstream_gpu_is_ok(gpu, gpu->calls.destroy(stream->native));
        gpu->ops->leave(gpu, &last);
    }
}

/* Finds the stream's place, or makes the stream; and what its device can do */
static ucs_status_t gstream_gpu_init(gstream_gpu_stream_t *stream,
                                     const ucs_gstream_params_t *params)
{
    const gstream_gpu_t *gpu = stream->gpu;
    int has_native           = !!(params->field_mask &
                                  UCS_GSTREAM_PARAM_FIELD_NATIVE);
    gstream_gpu_place_t last;
    ucs_status_t status;
    const char *why;
    int result;

    stream->native = has_native ? params->native : NULL;
    result         = gpu->ops->find_place(gpu, stream->native, &stream->place);
    status         = gstream_gpu_status(
            gpu, result, has_native ? "the handle is no stream of a live "
                                      "context" : "no context for a stream");
    if (status != UCS_OK) {
        return UCS_ERR_INVALID_PARAM;
    }

    why = gpu->ops->check_device(gpu, stream->place.device);
    if (why != NULL) {
        ucs_error("%s: no stream on device %d: %s", gpu->name,
                  stream->place.device, why);
        return UCS_ERR_UNSUPPORTED;
    }
    stream->wait_flags = gpu->ops->wait_flags(gpu, stream->place.device);
    status             = gstream_gpu_set_home(gpu->type, &stream->place);
    if (status != UCS_OK) {
        return status;
    }
    if (!has_native) {
        status = gstream_gpu_make_native(stream, params);
        if (status != UCS_OK) {
            return status;
        }
    }
    if (gstream_gpu_enter(stream, &last) != UCS_OK) {
        status = UCS_ERR_IO_ERROR;
    } else {
        status = gpu->ops->try_wait(gpu, stream->native, stream->place.device);
        gpu->ops->leave(gpu, &last);
    }
    if (status != UCS_OK) {
        gstream_gpu_end_native(stream);
        return status;
    }
    stream->kernels = gstream_kernels_get(gpu, &stream->place);
    return UCS_OK;
}

/* The front has set the type, as it is not the host's */
static ucs_status_t gstream_gpu_create(const ucs_gstream_params_t *params,
                                       ucs_gstream_h *stream_p)
{
    const gstream_ops_t *ops = (params->type == UCS_GSTREAM_TYPE_CUDA) ?
                                       &gstream_cuda_ops :
                                       &gstream_hip_ops;
    const gstream_gpu_t *gpu = gstream_gpu_open(params->type, 0);
    const char *defect       = gstream_gpu_check(params);
    gstream_gpu_stream_t *stream;
    ucs_status_t status;

    if (defect != NULL) {
        ucs_error("cannot create a stream of %s: %s", ops->name, defect);
        return UCS_ERR_INVALID_PARAM;
    }
    if (gpu == NULL) {
        return UCS_ERR_UNSUPPORTED; /* The front has said why */
    }

    stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    stream->super.ops    = ops;
    stream->super.type   = params->type;
    stream->gpu          = gpu;
    stream->share.passed = ucs_gstream_memory_get(sizeof(uint64_t));
    status               = (stream->share.passed == NULL) ?
                                   UCS_ERR_NO_MEMORY :
                                   gstream_gpu_init(stream, params);
    if (status != UCS_OK) {
        ucs_gstream_memory_put(stream->share.passed, sizeof(uint64_t));
        free(stream);
        return status;
    }
    pthread_mutex_init(&stream->lock, NULL);
    *stream->share.passed = 0;

    stream->share.gpu    = gpu;
    stream->share.device = stream->place.device;
    stream->share.native = stream->native;
    gstream_share_add(&stream->share);
    *stream_p = &stream->super;
    return UCS_OK;
}

/* What a query or a wait of the host returns for a result */
static ucs_status_t gstream_gpu_host_status(const gstream_gpu_t *gpu,
                                            int result)
{
    if (!gstream_gpu_is_ok(gpu, result) && (result == GSTREAM_GPU_NOT_READY)) {
        return UCS_INPROGRESS;
    }
    return gstream_gpu_status(gpu, result, "a stream cannot be asked");
}

static ucs_status_t gstream_gpu_query(ucs_gstream_h super)
{
    gstream_gpu_stream_t *stream = gstream_gpu_derived(super);
    const gstream_gpu_t *gpu     = stream->gpu;
    gstream_gpu_place_t last;
    ucs_status_t status;
    int result;

    if (gstream_gpu_current != NULL) {
        /* A host function may not call the runtime */
        return (gstream_gpu_current == stream) ? UCS_INPROGRESS : UCS_ERR_BUSY;
    }
    status = gstream_gpu_enter_checked(stream, "query of a stream", &last);
    if (status != UCS_OK) {
        return status;
    }
    gstream_gpu_relax(gpu, &last); /* another stream may be captured */
    result = gpu->calls.query(stream->native);
    gstream_gpu_end(gpu, &last);
    return gstream_gpu_host_status(gpu, result);
}

static ucs_status_t gstream_gpu_destroy(ucs_gstream_h super)
{
    gstream_gpu_stream_t *stream = gstream_gpu_derived(super);
    ucs_status_t status          = UCS_OK;

    /* One that failed runs nothing any more. The application's streams run what
     * they have, which needs nothing of this. */
    if (stream->is_own) {
        status = gstream_gpu_query(super);
    }
    if (((status != UCS_OK) && (status != UCS_ERR_IO_ERROR)) ||
        (gstream_ask_wait(super) != UCS_OK)) {
        return UCS_ERR_BUSY;
    }
    gstream_share_remove(&stream->share);
    gstream_gpu_end_native(stream);
    /* A mark that is still to come keeps its word for ever */
    if (stream->is_own ||
        (__atomic_load_n(stream->share.passed, __ATOMIC_ACQUIRE) ==
         stream->mark)) {
        ucs_gstream_memory_put(stream->share.passed, sizeof(uint64_t));
    }
    pthread_mutex_destroy(&stream->lock);
    free(stream->ops);
    free(stream->steps);
    free(stream);
    return UCS_OK;
}

/* Looks until the stream is idle, or a time has passed. An event would tell of
 * what was enqueued before the call, but takes room in a stream that may have
 * none. The stream's place is the caller's. A result of the runtime. */
static int gstream_gpu_poll(gstream_gpu_stream_t *stream, double timeout)
{
    uint64_t start  = gstream_time();
    unsigned rounds = 0;
    int result;

    while (((result = stream->gpu->calls.query(stream->native)) ==
            GSTREAM_GPU_NOT_READY) &&
           ((gstream_time() - start) < (timeout * GSTREAM_NSEC_PER_SEC))) {
        ucs_backoff(&rounds);
    }
    return result;
}

static ucs_status_t gstream_gpu_synchronize(ucs_gstream_h super, double timeout)
{
    gstream_gpu_stream_t *stream = gstream_gpu_derived(super);
    const gstream_gpu_t *gpu     = stream->gpu;
    gstream_gpu_place_t last;
    ucs_status_t status;
    int result;

    if (gstream_gpu_current != NULL) {
        return UCS_ERR_BUSY; /* A host function may not call the runtime */
    }
    status = gstream_gpu_enter_checked(stream, "wait of the host for a stream",
                                       &last);
    if (status != UCS_OK) {
        return status;
    }
    gstream_gpu_relax(gpu, &last); /* as for a query */
    result = isinf(timeout) ? gpu->calls.synchronize(stream->native) :
                              gstream_gpu_poll(stream, timeout);
    gstream_gpu_end(gpu, &last);
    return gstream_gpu_host_status(gpu, result);
}

uint64_t ucs_gstream_launches(ucs_gstream_h stream)
{
    return ((stream == NULL) || (stream->type == UCS_GSTREAM_TYPE_HOST)) ?
                   0 :
                   __atomic_load_n(&gstream_gpu_derived(stream)->launches,
                                   __ATOMIC_RELAXED);
}

static void *gstream_gpu_native(ucs_gstream_h super)
{
    return gstream_gpu_derived(super)->native;
}

#define GSTREAM_GPU_OPS(_name) \
    { \
        .name        = _name, \
        .caps        = GSTREAM_GPU_CAPS, \
        .create      = gstream_gpu_create, \
        .destroy     = gstream_gpu_destroy, \
        .enqueue     = gstream_gpu_enqueue, \
        .synchronize = gstream_gpu_synchronize, \
        .query       = gstream_gpu_query, \
        .reaches     = gstream_gpu_reaches, \
        .native      = gstream_gpu_native \
    }

const gstream_ops_t gstream_cuda_ops = GSTREAM_GPU_OPS("CUDA");
const gstream_ops_t gstream_hip_ops  = GSTREAM_GPU_OPS("HIP");
