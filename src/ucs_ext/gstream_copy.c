/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_copy.c - copies between any memory, which the host makes.
 *
 * A device's memory is copied by a stream of our own on that device. It is
 * apart from the default stream, so that it waits for no stream of the
 * application, and nothing but such copies is ever in it. The streams stay for
 * the life of the process.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_gpu.h"
#include "api/ucs_gstream_memory.h"

#include <ucs/debug/log_def.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>


/* A device's stream for copies */
typedef struct gstream_copy_stream {
    void                *native; /* NULL: not there yet */
    gstream_gpu_place_t place;
} gstream_copy_stream_t;


/* By type and device; the lock protects them, and what they are does not change
 * once they are there. */
static struct {
    pthread_mutex_t       lock;
    gstream_copy_stream_t *streams[UCS_GSTREAM_TYPE_LAST];
} gstream_copy = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


/* Makes a device's stream. A result of the runtime. */
static int gstream_copy_make(const gstream_gpu_t *gpu, int device,
                             gstream_copy_stream_t *stream)
{
    gstream_gpu_place_t place = {.device = device};
    gstream_gpu_place_t last;
    int result;

    result = gpu->ops->make_home(gpu, &place, &stream->place);
    if (result == GSTREAM_GPU_OK) {
        result = gpu->ops->enter(gpu, &stream->place, &last);
    }
    if (result == GSTREAM_GPU_OK) {
        result = gpu->calls.create(&stream->native, GSTREAM_GPU_NON_BLOCKING,
                                   0);
        gpu->ops->leave(gpu, &last);
    }
    return result;
}

/* Finds a device's stream, or makes it */
static ucs_status_t gstream_copy_get(const gstream_gpu_t *gpu, int device,
                                     gstream_copy_stream_t *stream)
{
    gstream_copy_stream_t **streams_p = &gstream_copy.streams[gpu->type];
    int result                        = GSTREAM_GPU_INVALID;

    pthread_mutex_lock(&gstream_copy.lock);
    if (*streams_p == NULL) {
        *streams_p = calloc(gpu->num_devices, sizeof(**streams_p));
    }
    if (*streams_p == NULL) {
        result = GSTREAM_GPU_NO_MEMORY;
    } else if ((device >= 0) && (device < gpu->num_devices)) {
        result  = ((*streams_p)[device].native != NULL) ?
                          GSTREAM_GPU_OK :
                          gstream_copy_make(gpu, device, &(*streams_p)[device]);
        *stream = (*streams_p)[device];
    }
    pthread_mutex_unlock(&gstream_copy.lock);
    return gstream_gpu_status(gpu, result, "no stream for copies");
}

ucs_status_t ucs_gstream_memory_copy(void *dst, const void *src, size_t length)
{
    gstream_copy_stream_t stream;
    gstream_gpu_place_t last;
    ucs_gstream_memory_attr_t attrs[2];
    const ucs_gstream_memory_attr_t *attr;
    const gstream_gpu_t *gpu;
    ucs_status_t status;
    int result;

    if (length == 0) {
        return UCS_OK;
    }
    (void)ucs_gstream_memory_query(dst, &attrs[0]);
    (void)ucs_gstream_memory_query(src, &attrs[1]);
    attr = &attrs[attrs[0].type == UCS_GSTREAM_TYPE_HOST];
    if (attr->type == UCS_GSTREAM_TYPE_HOST) {
        memcpy(dst, src, length);
        return UCS_OK;
    }
    if ((attrs[1].type != UCS_GSTREAM_TYPE_HOST) &&
        (attrs[1].type != attr->type)) {
        ucs_error("copy from memory %p to %p: they are of different runtimes "
                  "of GPUs", src, dst);
        return UCS_ERR_UNSUPPORTED;
    }

    gpu = gstream_gpu_open(attr->type, 1);
    if (gpu == NULL) {
        return UCS_ERR_NO_DEVICE;
    }
    status = gstream_copy_get(gpu, attr->device, &stream);
    if (status != UCS_OK) {
        return status;
    }
    result = gpu->ops->enter(gpu, &stream.place, &last);
    if (result == GSTREAM_GPU_OK) {
        result = gpu->ops->copy(gpu, stream.native, dst, src, length);
        if (result == GSTREAM_GPU_OK) {
            result = gpu->calls.synchronize(stream.native);
        }
        gpu->ops->leave(gpu, &last);
    }
    return gstream_gpu_status(gpu, result, "copy");
}
