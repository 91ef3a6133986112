/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_copy.c - copies between any memory, which the host makes, and what
 * streams of GPUs ask about theirs.
 *
 * A device's memory is copied by a stream of our own on that device. It is
 * apart from the default stream, so that it waits for no stream of the
 * application, and nothing but such copies is ever in it. Its priority is the
 * greatest: copies are short, and the host waits for them. That gives it no
 * hardware queue of its own: on an H200 a stream of that priority was held up
 * by streams that waited, as others were. The streams stay for the life of the
 * process.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_fork.h"
#include "gstream_gpu.h"
#include "gstream_memory.h"
#include "gstream_thread.h"
#include "api/ucs_gstream_copy.h"
#include "api/ucs_gstream_memory.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/compiler_def.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Copies that threads of their own make, in the process */
#define GSTREAM_COPY_MAX_THREADS 16


/* By type and device. The lock is for making them: one that is there is found
 * without. */
static struct {
    pthread_mutex_t       lock;
    gstream_copy_stream_t *streams[UCS_GSTREAM_TYPE_LAST]; /* atomic */
    unsigned              num_threads;                     /* atomic */
} gstream_copy = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


/* Streams of the runtime stay where they are: nobody uses it */
void gstream_copy_forked(void)
{
    pthread_mutex_init(&gstream_copy.lock, NULL);
    __atomic_store_n(&gstream_copy.num_threads, 0, __ATOMIC_RELAXED);
}

/* Makes a device's stream. A result of the runtime. */
static int gstream_copy_make(const gstream_gpu_t *gpu, int device,
                             gstream_copy_stream_t *stream)
{
    gstream_gpu_place_t place = {.device = device};
    int greatest              = 0;
    int least                 = 0;
    void *native              = NULL;
    gstream_gpu_place_t last;
    int result;

    result = gpu->ops->make_home(gpu, &place, &stream->place);
    if (result == GSTREAM_GPU_OK) {
        result = gstream_gpu_begin(gpu, &stream->place, &last);
    }
    if (result == GSTREAM_GPU_OK) {
        (void)gpu->calls.get_range(&least, &greatest);
        result = gpu->calls.create(&native, GSTREAM_GPU_NON_BLOCKING, greatest);
        gstream_gpu_end(gpu, &last);
    }
    __atomic_store_n(&stream->native, native, __ATOMIC_RELEASE);
    return result;
}

/* Whether a stream is there; both loads pair with stores of the thread that has
 * made it */
static int gstream_copy_is_there(const gstream_gpu_t *gpu, int device,
                                 gstream_copy_stream_t **stream_p)
{
    gstream_copy_stream_t *streams =
            __atomic_load_n(&gstream_copy.streams[gpu->type], __ATOMIC_ACQUIRE);

    if (streams == NULL) {
        return 0;
    }
    *stream_p = &streams[device];
    return __atomic_load_n(&streams[device].native, __ATOMIC_ACQUIRE) != NULL;
}

ucs_status_t gstream_copy_get(const gstream_gpu_t *gpu, int device,
                              gstream_copy_stream_t **stream_p)
{
    gstream_copy_stream_t *streams;
    int result;

    if ((device < 0) || (device >= gpu->num_devices)) {
        return gstream_gpu_status(gpu, GSTREAM_GPU_INVALID,
                                  "no stream for copies");
    }
    if (gstream_copy_is_there(gpu, device, stream_p)) {
        return UCS_OK;
    }
    pthread_mutex_lock(&gstream_copy.lock);
    streams = gstream_copy.streams[gpu->type];
    if (streams == NULL) {
        streams = calloc(gpu->num_devices, sizeof(*streams));
        __atomic_store_n(&gstream_copy.streams[gpu->type], streams,
                         __ATOMIC_RELEASE);
    }
    if (streams == NULL) {
        result = GSTREAM_GPU_NO_MEMORY;
    } else {
        *stream_p = &streams[device];
        result    = (streams[device].native != NULL) ?
                            GSTREAM_GPU_OK :
                            gstream_copy_make(gpu, device, &streams[device]);
    }
    pthread_mutex_unlock(&gstream_copy.lock);
    return gstream_gpu_status(gpu, result, "no stream for copies");
}

/* Where a copy goes, or comes from, whichever kind it is */
static void *gstream_copy_dst(const ucs_gstream_cmd_t *cmd)
{
    return (cmd->type == UCS_GSTREAM_CMD_COPY) ? cmd->u.copy.dst :
                                                 cmd->u.copy2d.dst;
}

static const void *gstream_copy_src(const ucs_gstream_cmd_t *cmd)
{
    return (cmd->type == UCS_GSTREAM_CMD_COPY) ? cmd->u.copy.src :
                                                 cmd->u.copy2d.src;
}

/* Whether a runtime copies memory without waiting: it allocated it, or it was
 * registered with it. Another one that knows it is no help. */
static int gstream_copy_is_known(const gstream_gpu_t *gpu, const void *address)
{
    uint64_t device;
    int type, is_managed;

    return (gstream_memory_map(gpu, address, &device) == UCS_OK) ||
           gstream_gpu_knows(gpu, address, &type, &is_managed);
}

int ucs_gstream_copy_is_pageable(ucs_gstream_type_t type, const void *address)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(type, 1);

    return (gpu == NULL) || !gstream_copy_is_known(gpu, address);
}

ucs_status_t gstream_gpu_check_copy(const gstream_gpu_t *gpu,
                                    const ucs_gstream_cmd_t *cmd,
                                    int *is_host_p)
{
    const void *places[] = {gstream_copy_dst(cmd), gstream_copy_src(cmd)};
    const void *pageable = NULL;
    int is_host          = 1;
    ucs_gstream_memory_attr_t attr;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(places); ++i) {
        (void)ucs_gstream_memory_query(places[i], &attr);
        is_host &= (attr.type == UCS_GSTREAM_TYPE_HOST);
        if ((attr.type != gpu->type) &&
            !gstream_copy_is_known(gpu, places[i])) {
            pageable = places[i];
        }
    }
    *is_host_p = is_host;
    if (!is_host && (pageable != NULL)) {
        ucs_error("%s: a copy between the device and memory %p, which is not "
                  "registered with this runtime, would block the caller",
                  gpu->name, pageable);
        return UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK;
}

int gstream_gpu_copy(const gstream_gpu_t *gpu, void *native,
                     const ucs_gstream_cmd_t *cmd)
{
    const ucs_gstream_cmd_t *rows = cmd;
    ucs_gstream_cmd_t row;

    if ((rows->type == UCS_GSTREAM_CMD_COPY2D) &&
        (rows->u.copy2d.rect->height == 1)) {
        row.type          = UCS_GSTREAM_CMD_COPY;
        row.u.copy.dst    = rows->u.copy2d.dst;
        row.u.copy.src    = rows->u.copy2d.src;
        row.u.copy.length = rows->u.copy2d.rect->width;
        cmd               = &row;
    }
    return gpu->ops->copy(gpu, native, cmd);
}

ucs_status_t gstream_gpu_copy_status(const gstream_gpu_t *gpu, int result,
                                     const ucs_gstream_cmd_t *cmd)
{
    int is_rows = (cmd->type == UCS_GSTREAM_CMD_COPY2D);
    char what[128];

    if (result == GSTREAM_GPU_OK) {
        return UCS_OK;
    }
    snprintf(what, sizeof(what), "copy of %zu %s from %p to %p",
             is_rows ? cmd->u.copy2d.rect->height : cmd->u.copy.length,
             is_rows ? "rows" : "bytes", gstream_copy_src(cmd),
             gstream_copy_dst(cmd));
    return gstream_gpu_status(gpu, result, what);
}

void gstream_copy_rows(void *dst, const void *src,
                       const ucs_gstream_rect_t *rect)
{
    const char *from = src;
    char *to         = dst;
    size_t i;

    if (rect->width == 0) {
        return;
    }
    for (i = 0; i < rect->height; ++i) {
        memcpy(to + (i * rect->dst_pitch), from + (i * rect->src_pitch),
               rect->width);
    }
}

/* The runtime of memory, and the stream of its device */
static ucs_status_t gstream_copy_find(const ucs_gstream_memory_attr_t *attr,
                                      const gstream_gpu_t **gpu_p,
                                      gstream_copy_stream_t **stream_p)
{
    *gpu_p = gstream_gpu_open(attr->type, 1);
    return (*gpu_p == NULL) ? UCS_ERR_NO_DEVICE :
                              gstream_copy_get(*gpu_p, attr->device, stream_p);
}

/* Has a device's stream copy, and waits for that */
static ucs_status_t gstream_copy_run(const ucs_gstream_memory_attr_t *attr,
                                     const ucs_gstream_cmd_t *cmd)
{
    const gstream_gpu_t *gpu;
    gstream_copy_stream_t *stream;
    gstream_gpu_place_t last;
    ucs_status_t status;
    int result;

    status = gstream_copy_find(attr, &gpu, &stream);
    if (status != UCS_OK) {
        return status;
    }
    result = gstream_gpu_begin(gpu, &stream->place, &last);
    if (result == GSTREAM_GPU_OK) {
        result = gstream_gpu_copy(gpu, stream->native, cmd);
        if (result == GSTREAM_GPU_OK) {
            result = gpu->calls.synchronize(stream->native);
        }
        gstream_gpu_end(gpu, &last);
    }
    return gstream_gpu_copy_status(gpu, result, cmd);
}

/* Makes a copy that is not empty */
static ucs_status_t gstream_copy_cmd(const ucs_gstream_cmd_t *cmd)
{
    void *dst       = gstream_copy_dst(cmd);
    const void *src = gstream_copy_src(cmd);
    ucs_gstream_memory_attr_t attrs[2];
    const ucs_gstream_memory_attr_t *attr;

    (void)ucs_gstream_memory_query(dst, &attrs[0]);
    (void)ucs_gstream_memory_query(src, &attrs[1]);
    attr = &attrs[attrs[0].type == UCS_GSTREAM_TYPE_HOST];
    if ((attr->type == UCS_GSTREAM_TYPE_HOST) &&
        (cmd->type == UCS_GSTREAM_CMD_COPY)) {
        memcpy(dst, src, cmd->u.copy.length);
        return UCS_OK;
    }
    if (attr->type == UCS_GSTREAM_TYPE_HOST) {
        gstream_copy_rows(dst, src, cmd->u.copy2d.rect);
        return UCS_OK;
    }
    if ((attrs[1].type != UCS_GSTREAM_TYPE_HOST) &&
        (attrs[1].type != attr->type)) {
        ucs_error("copy from memory %p to %p: they are of different runtimes "
                  "of GPUs", src, dst);
        return UCS_ERR_UNSUPPORTED;
    }
    return gstream_copy_run(attr, cmd);
}

ucs_status_t ucs_gstream_memory_copy_by(const ucs_gstream_memory_attr_t *attr,
                                         void *dst, const void *src,
                                         size_t length)
{
    const ucs_gstream_cmd_t cmd = {
        .type   = UCS_GSTREAM_CMD_COPY,
        .u.copy = {dst, src, length}
    };

    return gstream_copy_run(attr, &cmd);
}

ucs_status_t ucs_gstream_memory_enter(const ucs_gstream_memory_attr_t *attr)
{
    /* The runtime whose place the thread is at, and where it was before */
    static __thread const gstream_gpu_t *inside;
    static __thread gstream_gpu_place_t last;
    const gstream_gpu_t *gpu;
    gstream_copy_stream_t *stream;
    ucs_status_t status;
    int result;

    status = gstream_copy_find(attr, &gpu, &stream);
    if (status != UCS_OK) {
        return status;
    }
    if (inside != NULL) {
        inside->ops->leave(inside, &last);
    }
    result = gpu->ops->enter(gpu, &stream->place, &last);
    inside = (result == GSTREAM_GPU_OK) ? gpu : NULL;
    return gstream_gpu_status(gpu, result, "cannot enter a device");
}

/* In a thread of its own. Behind the store the copy may be gone. */
static void gstream_copy_thread(void *arg)
{
    ucs_gstream_copy_t *copy       = arg;
    ucs_gstream_memory_attr_t attr = {
        .type   = copy->params.type,
        .device = copy->params.device
    };
    ucs_status_t status;

    status = ucs_gstream_memory_copy_by(&attr, copy->params.dst,
                                        copy->params.src, copy->params.length);
    __atomic_store_n(&copy->status, status, __ATOMIC_RELEASE);
    (void)__atomic_fetch_sub(&gstream_copy.num_threads, 1, __ATOMIC_RELAXED);
}

static ucs_status_t gstream_copy_start_thread(ucs_gstream_copy_t *copy)
{
    ucs_status_t status;

    if (__atomic_fetch_add(&gstream_copy.num_threads, 1, __ATOMIC_RELAXED) >=
        GSTREAM_COPY_MAX_THREADS) {
        status = UCS_INPROGRESS;
        goto err;
    }
    copy->number = 1;
    status       = gstream_thread_start_alone("copies of memory",
                                              gstream_copy_thread, copy);
    if (status != UCS_OK) {
        goto err;
    }
    return UCS_INPROGRESS;

err:
    (void)__atomic_fetch_sub(&gstream_copy.num_threads, 1, __ATOMIC_RELAXED);
    return status;
}

_Static_assert(GSTREAM_COPY_MAX == 64, "a bit for each");

/* Takes an event that no copy has; GSTREAM_COPY_MAX if there is none. The
 * acquire pairs with the release of the copy that had it. */
static unsigned gstream_copy_take(gstream_copy_stream_t *stream)
{
    uint64_t busy = __atomic_load_n(&stream->busy, __ATOMIC_RELAXED);
    unsigned i;

    do {
        if (busy == UINT64_MAX) {
            return GSTREAM_COPY_MAX;
        }
        i = (unsigned)__builtin_ctzll(~busy);
    } while (!__atomic_compare_exchange_n(&stream->busy, &busy,
                                          busy | UCS_BIT(i), 1,
                                          __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
    return i;
}

static void gstream_copy_give(gstream_copy_stream_t *stream, unsigned i)
{
    (void)__atomic_fetch_and(&stream->busy, ~UCS_BIT(i), __ATOMIC_RELEASE);
}

/* A result of the runtime. Where it takes a copy and then not its event, the
 * device is lost. */
static int gstream_copy_enqueue(const gstream_gpu_t *gpu,
                                const gstream_copy_stream_t *stream,
                                const ucs_gstream_cmd_t *cmd, void **event_p)
{
    gstream_gpu_place_t last;
    int result;

    result = gstream_gpu_begin(gpu, &stream->place, &last);
    if (result != GSTREAM_GPU_OK) {
        return result;
    }
    if (*event_p == NULL) {
        result = gpu->calls.event_create(event_p, GSTREAM_GPU_NO_TIMING);
    }
    if (result == GSTREAM_GPU_OK) {
        result = gstream_gpu_copy(gpu, stream->native, cmd);
    }
    if (result == GSTREAM_GPU_OK) {
        result = gpu->calls.event_record(*event_p, stream->native);
    }
    gstream_gpu_end(gpu, &last);
    return result;
}

/* Enqueues a copy if there is room */
static ucs_status_t gstream_copy_start(const gstream_gpu_t *gpu,
                                       gstream_copy_stream_t *stream,
                                       ucs_gstream_copy_t *copy)
{
    const ucs_gstream_cmd_t cmd = {
        .type   = UCS_GSTREAM_CMD_COPY,
        .u.copy = {copy->params.dst, copy->params.src, copy->params.length}
    };
    unsigned i                  = gstream_copy_take(stream);
    int result;

    if (i == GSTREAM_COPY_MAX) {
        return UCS_INPROGRESS;
    }
    result = gstream_copy_enqueue(gpu, stream, &cmd, &stream->events[i]);
    if (result != GSTREAM_GPU_OK) {
        gstream_copy_give(stream, i);
        return gstream_gpu_copy_status(gpu, result, &cmd);
    }
    copy->number = i + 1;
    return UCS_INPROGRESS;
}

/* What a query of the stream, or of an event in it, has returned */
static ucs_status_t gstream_copy_result(const gstream_gpu_t *gpu, int result)
{
    if (gstream_gpu_is_ok(gpu, result)) {
        return UCS_OK;
    }
    /* HIP 5.6 to 6.0 does not tell while the application captures a stream */
    if ((result == GSTREAM_GPU_NOT_READY) || gstream_gpu_is_capture(result)) {
        return UCS_INPROGRESS;
    }
    return gstream_gpu_status(gpu, result, "the stream for copies");
}

ucs_status_t gstream_copy_query(const gstream_gpu_t *gpu,
                                const gstream_copy_stream_t *stream)
{
    gstream_gpu_place_t last;
    int result;

    result = gstream_gpu_begin(gpu, &stream->place, &last);
    if (result == GSTREAM_GPU_OK) {
        result = gpu->calls.query(stream->native);
        gstream_gpu_end(gpu, &last);
    }
    return gstream_copy_result(gpu, result);
}

/* Whether a copy that is enqueued is over: its event is free then */
static ucs_status_t gstream_copy_ask(const gstream_gpu_t *gpu,
                                     gstream_copy_stream_t *stream, unsigned i)
{
    gstream_gpu_place_t last;
    ucs_status_t status;
    int result;

    result = gstream_gpu_begin(gpu, &stream->place, &last);
    if (result == GSTREAM_GPU_OK) {
        result = gpu->calls.event_query(stream->events[i]);
        gstream_gpu_end(gpu, &last);
    }
    status = gstream_copy_result(gpu, result);
    if (status != UCS_INPROGRESS) {
        gstream_copy_give(stream, i);
    }
    return status;
}

ucs_status_t ucs_gstream_copy_look(ucs_gstream_copy_t *copy)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(copy->params.type, 1);
    gstream_copy_stream_t *stream;
    ucs_status_t status;

    if (gpu == NULL) {
        return UCS_ERR_NO_DEVICE;
    }
    if (copy->params.is_pageable) {
        return (copy->number == 0) ?
                       gstream_copy_start_thread(copy) :
                       __atomic_load_n(&copy->status, __ATOMIC_ACQUIRE);
    }
    status = gstream_copy_get(gpu, copy->params.device, &stream);
    if (status != UCS_OK) {
        return status;
    }
    return (copy->number == 0) ?
                   gstream_copy_start(gpu, stream, copy) :
                   gstream_copy_ask(gpu, stream, copy->number - 1);
}

ucs_status_t ucs_gstream_copy_begin(const ucs_gstream_copy_params_t *params,
                                    ucs_gstream_copy_t *copy)
{
    copy->params = *params;
    copy->number = 0;
    copy->status = UCS_INPROGRESS;
    return ucs_gstream_copy_look(copy);
}

ucs_status_t ucs_gstream_memory_copy(void *dst, const void *src, size_t length)
{
    const ucs_gstream_cmd_t cmd = {
        .type   = UCS_GSTREAM_CMD_COPY,
        .u.copy = {dst, src, length}
    };

    return (length == 0) ? UCS_OK : gstream_copy_cmd(&cmd);
}

ucs_status_t ucs_gstream_memory_copy2d(void *dst, const void *src,
                                       const ucs_gstream_rect_t *rect)
{
    const ucs_gstream_cmd_t cmd = {
        .type     = UCS_GSTREAM_CMD_COPY2D,
        .u.copy2d = {dst, src, rect}
    };
    const char *defect          = gstream_check_rect(dst, src, rect);

    if (defect != NULL) {
        ucs_error("copy from memory %p to %p: %s", src, dst, defect);
        return UCS_ERR_INVALID_PARAM;
    }
    return ((rect->width == 0) || (rect->height == 0)) ? UCS_OK :
                                                         gstream_copy_cmd(&cmd);
}
