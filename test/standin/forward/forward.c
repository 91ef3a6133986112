/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forward.c - the driver, the threads' devices, the streams, and what the
 * control of the stand-in below says.
 *
 * CUDA's driver looks into what a handle points to, HIP knows its streams: so
 * this library does.
 */
#include "forward.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FORWARD_MAX_DEVICES 64


/* A stream that was made here */
typedef struct forward_stream {
    void                  *handle;
    int                   device;
    struct forward_stream *next;
} forward_stream_t;

/* Where a function of the driver goes */
typedef struct {
    size_t     offset;
    const char *name;
    const char *old;
    int        is_optional;
} forward_name_t;

#define FORWARD_NAME(_field, _name, _old, _optional) \
    {offsetof(forward_calls_t, _field), #_name, _old, _optional},

static const forward_name_t forward_names[] = {
    FORWARD_CALLS(FORWARD_NAME)
};

forward_calls_t forward_cuda;

/* Protects what follows; the driver's functions are constant once
 * `forward_result` is not negative */
static pthread_mutex_t forward_lock = PTHREAD_MUTEX_INITIALIZER;
static int forward_result           = -1; /* Of opening; atomic */
static void *forward_library;
static void *forward_contexts[FORWARD_MAX_DEVICES];
static forward_stream_t *forward_streams;

static __thread int forward_error;
static __thread int forward_current;


int forward_end(int result)
{
    int err = result;

    switch (result) {
    case FORWARD_OK:
    case FORWARD_NOT_READY:
        return result;
    case FORWARD_CUDA_NOT_PERMITTED:
        err = FORWARD_STATE;
        break;
    case FORWARD_CUDA_GONE:
        err = FORWARD_CONTEXT;
        break;
    default: /* The rest are the same, or later than HIP's */
        err = (result > FORWARD_CAPTURE_LAST) ? FORWARD_UNKNOWN : result;
        break;
    }
    forward_error = err;
    return err;
}

int forward_peek(void)
{
    return forward_error;
}

int forward_last(void)
{
    int err = forward_error;

    forward_error = FORWARD_OK;
    return err;
}

/* With the lock */
static int forward_load(void)
{
    size_t i;
    void *func;

    forward_library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (forward_library == NULL) {
        return FORWARD_NO_DEVICE;
    }
    for (i = 0; i < sizeof(forward_names) / sizeof(forward_names[0]); ++i) {
        func = dlsym(forward_library, forward_names[i].name);
        if ((func == NULL) && (forward_names[i].old != NULL)) {
            func = dlsym(forward_library, forward_names[i].old);
        }
        if ((func == NULL) && !forward_names[i].is_optional) {
            return FORWARD_UNSUPPORTED;
        }
        memcpy((char*)&forward_cuda + forward_names[i].offset, &func,
               sizeof(func));
    }
    return forward_cuda.init(0);
}

int forward_open(void)
{
    int result = __atomic_load_n(&forward_result, __ATOMIC_ACQUIRE);

    if (result < 0) {
        pthread_mutex_lock(&forward_lock);
        result = forward_result;
        if (result < 0) {
            result = forward_load();
            __atomic_store_n(&forward_result, result, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&forward_lock);
    }
    return result;
}

int forward_context(int device, void **context)
{
    int count  = 0;
    int result = forward_cuda.device_count(&count);

    if (result != FORWARD_OK) {
        return result;
    }
    if ((device < 0) || (device >= count) || (device >= FORWARD_MAX_DEVICES)) {
        return FORWARD_BAD_DEVICE;
    }
    pthread_mutex_lock(&forward_lock);
    if (forward_contexts[device] == NULL) {
        result = forward_cuda.retain(&forward_contexts[device], device);
        if (result != FORWARD_OK) {
            forward_contexts[device] = NULL;
        }
    }
    *context = forward_contexts[device];
    pthread_mutex_unlock(&forward_lock);
    return result;
}

int forward_enter(void)
{
    void *current = NULL;
    void *context;
    int result;

    result = forward_open();
    if (result != FORWARD_OK) {
        return result;
    }
    result = forward_cuda.ctx_get(&current);
    if (result != FORWARD_OK) {
        return result;
    }
    result = forward_context(forward_current, &context);
    if ((result != FORWARD_OK) || (context == current)) {
        return result;
    }
    return forward_cuda.ctx_set(context);
}

int forward_device(void)
{
    return forward_current;
}

int forward_set_device(int device)
{
    int last = forward_current;
    int result;

    forward_current = device;
    result          = forward_enter();
    if (result != FORWARD_OK) {
        forward_current = last;
    }
    return result;
}

int forward_stream_add(void *handle)
{
    forward_stream_t *stream = malloc(sizeof(*stream));

    if (stream == NULL) {
        return FORWARD_NO_MEMORY;
    }
    stream->handle = handle;
    stream->device = forward_current;
    pthread_mutex_lock(&forward_lock);
    stream->next    = forward_streams;
    forward_streams = stream;
    pthread_mutex_unlock(&forward_lock);
    return FORWARD_OK;
}

void forward_stream_remove(void *handle)
{
    forward_stream_t **link = &forward_streams;
    forward_stream_t *stream;

    pthread_mutex_lock(&forward_lock);
    while ((*link != NULL) && ((*link)->handle != handle)) {
        link = &(*link)->next;
    }
    stream = *link;
    if (stream != NULL) {
        *link = stream->next;
    }
    pthread_mutex_unlock(&forward_lock);
    free(stream);
}

int forward_stream_find(void *handle)
{
    int device = -1;
    const forward_stream_t *stream;

    pthread_mutex_lock(&forward_lock);
    for (stream = forward_streams; stream != NULL; stream = stream->next) {
        if (stream->handle == handle) {
            device = stream->device;
            break;
        }
    }
    pthread_mutex_unlock(&forward_lock);
    return device;
}

int forward_enter_stream(void *stream)
{
    if (((uintptr_t)stream > FORWARD_LAST_DEFAULT) &&
        (forward_stream_find(stream) < 0)) {
        return FORWARD_HANDLE;
    }
    return forward_enter();
}

/* The stand-in below has these, a driver has not */

static void *forward_control(const char *name)
{
    return (forward_open() == FORWARD_OK) ? dlsym(forward_library, name) : NULL;
}

int standin_is_real(void)
{
    return forward_control("standin_counts") == NULL;
}

void standin_counts(standin_counts_t *counts)
{
    void (*func)(standin_counts_t *below);

    *(void**)&func = forward_control("standin_counts");
    memset(counts, 0, sizeof(*counts));
    if (func != NULL) {
        func(counts);
    }
}

int standin_has_protection(void)
{
    int (*func)(void);

    *(void**)&func = forward_control("standin_has_protection");
    return (func != NULL) ? func() : STANDIN_PROTECT_NONE;
}

void *standin_dma(const void *address, size_t size)
{
    void *(*func)(const void *below, size_t length);

    *(void**)&func = forward_control("standin_dma");
    return (func != NULL) ? func(address, size) : NULL;
}

void standin_hold(unsigned what)
{
    void (*func)(unsigned below);

    *(void**)&func = forward_control("standin_hold");
    if (func != NULL) {
        func(what);
    }
}

void standin_lose_device(int device)
{
    void (*func)(int below);

    *(void**)&func = forward_control("standin_lose_device");
    if (func != NULL) {
        func(device);
    }
}
