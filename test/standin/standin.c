/* SPDX-License-Identifier: BSD-3-Clause */
/* standin.c - settings, devices, contexts, and what begins and ends a call. */
#include "standin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STANDIN_MAX_DEPTH 16   /* Contexts that a thread has pushed */
#define STANDIN_ROOM      1020 /* Calls; seen with CUDA 13.0 on an H200 */


pthread_mutex_t standin_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t standin_done  = PTHREAD_COND_INITIALIZER;
standin_settings_t standin_set;
standin_fail_t standin_fail;
unsigned standin_holds;
standin_counts_t standin_count;
standin_device_t standin_devices[STANDIN_MAX_DEVICES];
__thread int standin_in_callback;

static standin_ctx_t *standin_ctxs;
static int standin_initialized;
static int standin_is_child; /* Of a process that had initialised */

/* Contexts of a thread, the last one current; of HIP, its device */
static __thread standin_ctx_t *standin_stack[STANDIN_MAX_DEPTH];
static __thread int standin_depth;
static __thread int standin_device;


static long standin_number(const char *name, long preset, long max)
{
    const char *value = getenv(name);
    long number       = preset;

    if ((value != NULL) && (*value != '\0')) {
        number = strtol(value, NULL, 0);
    }
    return ((number < 0) || (number > max)) ? preset : number;
}

/* A version of one runtime is no version of the other */
static int standin_version(void)
{
    long version = standin_number("STANDIN_VERSION", 0, 1L << 30);

    return ((version == 0) || ((version > 1000000) != standin_kind.is_hip)) ?
           standin_kind.version : (int)version;
}

/* As the runtime has them, unless a setting of this library says otherwise */
static int standin_queues(void)
{
    long queues = standin_number(standin_kind.queues_name, standin_kind.queues,
                                 STANDIN_MAX_QUEUES);

    queues = standin_number("STANDIN_QUEUES", queues, STANDIN_MAX_QUEUES);
    return (queues == 0) ? 1 : (int)queues;
}

static void standin_seed(void)
{
    struct timespec now;

    standin_set.seed = (unsigned)standin_number("STANDIN_SEED", 1, 1L << 30);
    if ((standin_set.seed == 0) && (standin_set.delay_us > 0)) {
        clock_gettime(CLOCK_REALTIME, &now);
        standin_set.seed = ((unsigned)now.tv_nsec & 0xffffff) + 1;
        fprintf(stderr, "stand-in %s: STANDIN_SEED=%u\n", standin_kind.name,
                standin_set.seed);
    }
}

static int standin_turns(void)
{
    const char *name = getenv("STANDIN_TURNS");

    return (name == NULL) ? -1 : open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

/* What HIP's devices are is no such thing */
static int standin_sm(void)
{
    const char *value = getenv("STANDIN_ARCH");
    int sm            = 90;

    (void)sscanf((value != NULL) ? value : "", "sm_%d", &sm);
    return sm;
}

static void standin_settings_read(void)
{
    standin_set.devices  = (int)standin_number("STANDIN_DEVICES", 2,
                                               STANDIN_MAX_DEVICES);
    standin_set.version  = standin_version();
    standin_set.memops   = (int)standin_number("STANDIN_MEMOPS", -1, 1);
    standin_set.queues   = standin_queues();
    standin_set.offset   = (int)standin_number("STANDIN_OFFSET", 0, 1);
    standin_set.iomemory = (int)standin_number("STANDIN_IOMEMORY", 1, 1);
    standin_set.peer     = (int)standin_number("STANDIN_PEER", 1, 1);
    standin_set.signal   = (int)standin_number("STANDIN_SIGNAL", 0, 1);
    standin_set.dmabuf   = (int)standin_number("STANDIN_DMABUF", 1, 2);
    standin_set.mig      = (int)standin_number("STANDIN_MIG", 0, 1);
    standin_set.managed  = (int)standin_number("STANDIN_MANAGED", 1, 1);
    standin_set.ordered  = (int)standin_number("STANDIN_ORDERED", 1, 1);
    standin_set.protect  = (int)standin_number("STANDIN_PROTECT", 1, 1);
    standin_set.turns    = standin_turns();
    standin_set.modules  = (int)standin_number("STANDIN_MODULES", 1, 1);
    standin_set.sm       = standin_sm();
    standin_set.ipc      = (int)standin_number("STANDIN_IPC", 1, 1);
    standin_set.sms      = (unsigned)standin_number("STANDIN_SMS", 0, 1024);
    standin_set.depth    = (unsigned)standin_number("STANDIN_DEPTH",
                                                    STANDIN_ROOM, 100000);
    standin_set.delay_us = (unsigned)standin_number("STANDIN_DELAY_US", 0,
                                                    1000000);
    standin_set.memory   = (size_t)standin_number("STANDIN_MEMORY", 0,
                                                  1L << 60);
    standin_seed();
}

void standin_settings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, standin_settings_read);
}

/* The threads of the parent are not here */
static void standin_forked(void)
{
    standin_is_child = standin_initialized;
}

/* The start of every call: it takes the lock in any case */
static int standin_call(void)
{
    pthread_mutex_lock(&standin_lock);
    ++standin_count.calls;
    if (standin_in_callback) {
        return standin_kind.callback_error;
    }
    return standin_is_child ? STANDIN_ERR_NOT_INITIALIZED : STANDIN_OK;
}

static int standin_init_locked(void)
{
    int err = (standin_set.devices > 0) ? STANDIN_OK : STANDIN_ERR_NO_DEVICE;

    if ((err == STANDIN_OK) && !standin_initialized) {
        standin_initialized = 1;
        pthread_atfork(NULL, NULL, standin_forked);
    }
    return err;
}

int standin_init(void)
{
    int err;

    standin_settings();
    err = standin_call();
    return standin_leave((err == STANDIN_OK) ? standin_init_locked() : err);
}

int standin_enter(void)
{
    int err;

    standin_settings();
    err = standin_call();
    if ((err == STANDIN_OK) && standin_kind.is_hip) {
        err = standin_init_locked();
    }
    if ((err == STANDIN_OK) && !standin_initialized) {
        err = STANDIN_ERR_NOT_INITIALIZED;
    }
    return (err == STANDIN_OK) ? STANDIN_OK : standin_leave(err);
}

int standin_leave(int err)
{
    pthread_mutex_unlock(&standin_lock);
    return err;
}

int standin_device_check(int device)
{
    return ((device >= 0) && (device < standin_set.devices)) ?
           STANDIN_OK : STANDIN_ERR_BAD_DEVICE;
}

static standin_ctx_t *standin_ctx_find(const void *handle)
{
    standin_ctx_t *ctx = standin_ctxs;

    while ((ctx != NULL) && (ctx != handle)) {
        ctx = ctx->next;
    }
    return ctx;
}

static int standin_ctx_new(int device, standin_ctx_t **ctx_p)
{
    standin_ctx_t *ctx = calloc(1, sizeof(*ctx));
    int err;

    if (ctx == NULL) {
        return STANDIN_ERR_NO_MEMORY;
    }
    ctx->device = device;
    err         = standin_stream_legacy(ctx);
    if (err != STANDIN_OK) {
        free(ctx);
        return err;
    }
    ctx->next    = standin_ctxs;
    standin_ctxs = ctx;
    *ctx_p       = ctx;
    return STANDIN_OK;
}

static void standin_ctx_end(standin_ctx_t *ctx)
{
    standin_ctx_t **ctx_p = &standin_ctxs;

    while (*ctx_p != ctx) {
        ctx_p = &(*ctx_p)->next;
    }
    *ctx_p = ctx->next;
    standin_stream_end_ctx(ctx);
    standin_mem_end_ctx(ctx);
    free(ctx);
}

static int standin_primary(int device, standin_ctx_t **ctx_p)
{
    standin_device_t *dev = &standin_devices[device];
    int err               = STANDIN_OK;

    if (dev->primary == NULL) {
        err = standin_ctx_new(device, &dev->primary);
    }
    *ctx_p = dev->primary;
    return err;
}

/* The context of the calling thread, with the lock */
static int standin_current(standin_ctx_t **ctx_p)
{
    if (standin_kind.is_hip) {
        return standin_primary(standin_device, ctx_p);
    }
    *ctx_p = (standin_depth == 0) ? NULL :
             standin_ctx_find(standin_stack[standin_depth - 1]);
    return (*ctx_p == NULL) ? STANDIN_ERR_CONTEXT : STANDIN_OK;
}

int standin_enter_any(standin_ctx_t **ctx_p)
{
    int err = standin_enter();

    if (err == STANDIN_OK) {
        err = standin_current(ctx_p);
        if (err != STANDIN_OK) {
            standin_leave(err);
        }
    }
    return err;
}

int standin_enter_ctx(standin_ctx_t **ctx_p)
{
    int err = standin_enter_any(ctx_p);

    if (err == STANDIN_OK) {
        err = standin_devices[(*ctx_p)->device].error;
        if (err != STANDIN_OK) {
            standin_leave(err);
        }
    }
    return err;
}

int standin_ctx_create(int device, void **handle)
{
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter());
    err = standin_device_check(device);
    if (err == STANDIN_OK) {
        err = (standin_depth < STANDIN_MAX_DEPTH) ?
              standin_ctx_new(device, &ctx) : STANDIN_ERR_INVALID;
    }
    if (err == STANDIN_OK) {
        standin_stack[standin_depth++] = ctx;
        *handle                        = ctx;
    }
    return standin_leave(err);
}

int standin_ctx_destroy(void *handle)
{
    standin_ctx_t *ctx;

    STANDIN_TRY(standin_enter());
    ctx = standin_ctx_find(handle);
    if ((ctx == NULL) || (standin_devices[ctx->device].primary == ctx)) {
        return standin_leave(STANDIN_ERR_CONTEXT);
    }
    if ((standin_depth > 0) && (standin_stack[standin_depth - 1] == ctx)) {
        --standin_depth;
    }
    standin_ctx_end(ctx);
    return standin_leave(STANDIN_OK);
}

int standin_ctx_retain(int device, void **handle)
{
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter());
    err = standin_device_check(device);
    if (err == STANDIN_OK) {
        err = standin_primary(device, &ctx);
    }
    if (err == STANDIN_OK) {
        ++standin_devices[device].primary_refs;
        *handle = ctx;
    }
    return standin_leave(err);
}

int standin_ctx_release(int device)
{
    standin_device_t *dev;
    int err;

    STANDIN_TRY(standin_enter());
    err = standin_device_check(device);
    if (err == STANDIN_OK) {
        dev = &standin_devices[device];
        if (dev->primary_refs == 0) {
            err = STANDIN_ERR_CONTEXT;
        } else if (--dev->primary_refs == 0) {
            standin_ctx_end(dev->primary);
            dev->primary = NULL;
        }
    }
    return standin_leave(err);
}

int standin_ctx_push(void *handle)
{
    STANDIN_TRY(standin_enter());
    if ((standin_ctx_find(handle) == NULL) ||
        (standin_depth == STANDIN_MAX_DEPTH)) {
        return standin_leave(STANDIN_ERR_CONTEXT);
    }
    standin_stack[standin_depth++] = handle;
    return standin_leave(STANDIN_OK);
}

int standin_ctx_pop(void **handle)
{
    STANDIN_TRY(standin_enter());
    if (standin_depth == 0) {
        return standin_leave(STANDIN_ERR_CONTEXT);
    }
    --standin_depth;
    if (handle != NULL) {
        *handle = standin_stack[standin_depth];
    }
    return standin_leave(STANDIN_OK);
}

int standin_ctx_set(void *handle)
{
    STANDIN_TRY(standin_enter());
    if ((handle != NULL) && (standin_ctx_find(handle) == NULL)) {
        return standin_leave(STANDIN_ERR_CONTEXT);
    }
    if (standin_depth > 0) {
        --standin_depth;
    }
    if (handle != NULL) {
        standin_stack[standin_depth++] = handle;
    }
    return standin_leave(STANDIN_OK);
}

int standin_ctx_device(void *handle, int *device)
{
    standin_ctx_t *ctx;

    STANDIN_TRY(standin_enter());
    ctx = standin_ctx_find(handle);
    if (ctx != NULL) {
        *device = ctx->device;
    }
    return standin_leave((ctx == NULL) ? STANDIN_ERR_CONTEXT : STANDIN_OK);
}

int standin_ctx_get(void **handle)
{
    STANDIN_TRY(standin_enter());
    *handle = (standin_depth == 0) ? NULL : standin_stack[standin_depth - 1];
    return standin_leave(STANDIN_OK);
}

int standin_device_set(int device)
{
    int err;

    STANDIN_TRY(standin_enter());
    err = standin_device_check(device);
    if (err == STANDIN_OK) {
        standin_device = device;
    }
    return standin_leave(err);
}

int standin_device_get(int *device)
{
    standin_ctx_t *ctx;

    STANDIN_TRY(standin_enter_any(&ctx));
    *device = ctx->device;
    return standin_leave(STANDIN_OK);
}

int standin_peer_can(int device, int peer, int *can)
{
    STANDIN_TRY(standin_enter());
    if ((standin_device_check(device) != STANDIN_OK) ||
        (standin_device_check(peer) != STANDIN_OK)) {
        return standin_leave(STANDIN_ERR_BAD_DEVICE);
    }
    *can = standin_set.peer && (device != peer);
    return standin_leave(STANDIN_OK);
}

int standin_peer_enable(int peer)
{
    standin_ctx_t *ctx;
    standin_device_t *dev;
    int err = STANDIN_OK;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    dev = &standin_devices[ctx->device];
    if ((standin_device_check(peer) != STANDIN_OK) || (peer == ctx->device)) {
        err = STANDIN_ERR_BAD_DEVICE;
    } else if (!standin_set.peer) {
        err = STANDIN_ERR_NO_PEER;
    } else if (dev->peers & (1u << peer)) {
        err = STANDIN_ERR_PEER_ENABLED;
    } else {
        dev->peers |= 1u << peer;
    }
    return standin_leave(err);
}

int standin_has_version(int version)
{
    standin_settings();
    return standin_set.version >= version;
}

int standin_tell(const standin_attribute_t *table, int attribute, void *value)
{
    for (; table->value != NULL; ++table) {
        if (table->attribute == attribute) {
            memcpy(value, table->value, table->size);
            return STANDIN_OK;
        }
    }
    return STANDIN_ERR_INVALID;
}

const char *standin_name(const standin_name_t *names, int err)
{
    while ((names->name != NULL) && (names->err != err)) {
        ++names;
    }
    return names->name;
}

void standin_counts(standin_counts_t *counts)
{
    pthread_mutex_lock(&standin_lock);
    *counts = standin_count;
    pthread_mutex_unlock(&standin_lock);
}

void standin_lose_device(int device)
{
    pthread_mutex_lock(&standin_lock);
    standin_devices[device].error = STANDIN_ERR_LOST;
    standin_stream_wake();
    pthread_mutex_unlock(&standin_lock);
}

void standin_set_depth(unsigned depth)
{
    standin_settings();
    pthread_mutex_lock(&standin_lock);
    standin_set.depth = depth;
    pthread_cond_broadcast(&standin_done);
    pthread_mutex_unlock(&standin_lock);
}

void standin_hold(unsigned what)
{
    pthread_mutex_lock(&standin_lock);
    standin_holds = what;
    pthread_cond_broadcast(&standin_done);
    pthread_mutex_unlock(&standin_lock);
}

void standin_wait_held(unsigned what)
{
    if (standin_holds & what) {
        ++standin_count.held;
    }
    while (standin_holds & what) {
        pthread_cond_wait(&standin_done, &standin_lock);
    }
}

void standin_fail_calls(unsigned skip, unsigned count, int error)
{
    pthread_mutex_lock(&standin_lock);
    standin_fail = (standin_fail_t){skip, count, error};
    pthread_mutex_unlock(&standin_lock);
}

void standin_set_signal(int is_signal)
{
    standin_settings();
    pthread_mutex_lock(&standin_lock);
    standin_set.signal = is_signal;
    pthread_mutex_unlock(&standin_lock);
}
