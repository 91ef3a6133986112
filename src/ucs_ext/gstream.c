/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream.c - front of the streams: checks, dispatch, registry of handles. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream.h"
#include "gstream_fork.h"
#include "gstream_gpu.h"
#include "gstream_host.h"
#include "gstream_futex.h"
#include "gstream_sleep.h"
#include "api/ucs_backoff.h"
#include "api/ucs_fork.h"
#include "api/ucs_gstream_memory.h"
#include "api/ucs_trace.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/preprocessor.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>


/* Live streams; entries, their list links and the number of streams so far are
 * protected by lock. A stream that ends is counted, atomically, before it
 * does. */
static struct {
    pthread_mutex_t lock;
    ucs_list_link_t streams;
    uint64_t        num_streams;
    uint64_t        num_ends;
} gstream_registry = {
    .lock    = PTHREAD_MUTEX_INITIALIZER,
    .streams = UCS_LIST_INITIALIZER(&gstream_registry.streams,
                                    &gstream_registry.streams)
};


/* What the calling thread has found last, and how many streams had ended. */
static __thread struct {
    ucs_gstream_h stream;
    uint64_t      num_ends;
} gstream_found;


/* Back ends by type */
static const gstream_ops_t *const gstream_backends[UCS_GSTREAM_TYPE_LAST] = {
    [UCS_GSTREAM_TYPE_HOST] = &gstream_host_ops,
    [UCS_GSTREAM_TYPE_HIP]  = &gstream_hip_ops,
    [UCS_GSTREAM_TYPE_CUDA] = &gstream_cuda_ops
};


/* The entry of a handle that may be anything; the caller holds the lock. */
static ucs_gstream_h gstream_registry_find(ucs_gstream_h stream)
{
    ucs_gstream_h entry;

    ucs_list_for_each(entry, &gstream_registry.streams, list) {
        if (entry == stream) {
            return entry;
        }
    }

    return NULL;
}

/* Takes a live stream out and destroys it; puts it back if it is busy. The
 * caller holds the lock. */
static ucs_status_t gstream_registry_destroy(ucs_gstream_h stream)
{
    ucs_status_t status;

    /* Acquire: what its last user did with it is over, see
     * ucs_gstream_put(). No new one comes, which needs the lock. */
    if (__atomic_load_n(&stream->users, __ATOMIC_ACQUIRE) > 0) {
        ucs_debug("%s stream %p: not destroyed, queues or others use it",
                  stream->ops->name, (void*)stream);
        return UCS_ERR_BUSY;
    }

    /* Out first: once destroyed, the memory may be another stream's */
    ucs_list_del(&stream->list);
    __atomic_fetch_add(&gstream_registry.num_ends, 1, __ATOMIC_RELEASE);
    status = stream->ops->destroy(stream);
    if (status != UCS_OK) {
        ucs_list_add_tail(&gstream_registry.streams, &stream->list);
    }
    return status;
}

void gstream_registry_fork_begin(void)
{
    ucs_fork_lock(&gstream_registry.lock);
}

/* Streams of devices know by their runtime that they are a parent's */
void gstream_registry_fork_end(int is_child)
{
    ucs_gstream_h entry;

    if (is_child && !ucs_fork_has(&gstream_registry.lock)) {
        ucs_list_head_init(&gstream_registry.streams);
    } else if (is_child) {
        ucs_list_for_each(entry, &gstream_registry.streams, list) {
            if (entry->type == UCS_GSTREAM_TYPE_HOST) {
                entry->ops = &gstream_host_forked_ops;
            }
        }
    }
    ucs_fork_unlock(&gstream_registry.lock, is_child);
}

static ucs_gstream_type_t
gstream_params_type(const ucs_gstream_params_t *params)
{
    return (params->field_mask & UCS_GSTREAM_PARAM_FIELD_TYPE) ?
                   params->type :
                   UCS_GSTREAM_TYPE_HOST;
}

const char *ucs_gstream_type_name(ucs_gstream_type_t type)
{
    return ((unsigned)type < UCS_GSTREAM_TYPE_LAST) ?
                   gstream_backends[type]->name :
                   "?";
}

ucs_status_t ucs_gstream_query_type(ucs_gstream_type_t type,
                                    ucs_gstream_type_attr_t *attr)
{
    if ((attr == NULL) || ((unsigned)type >= UCS_GSTREAM_TYPE_LAST)) {
        return UCS_ERR_INVALID_PARAM;
    }

    memset(attr, 0, sizeof(*attr));
    snprintf(attr->name, sizeof(attr->name), "%s", ucs_gstream_type_name(type));
    return (type == UCS_GSTREAM_TYPE_HOST) ?
                   UCS_OK :
                   gstream_gpu_query_type(type, attr);
}

ucs_status_t ucs_gstream_create(const ucs_gstream_params_t *params,
                                ucs_gstream_h *stream_p)
{
    ucs_gstream_type_attr_t attr;
    ucs_gstream_type_t type;
    ucs_gstream_h stream;
    ucs_status_t status;

    if ((params == NULL) || (stream_p == NULL)) {
        ucs_error("cannot create a stream: NULL argument");
        return UCS_ERR_INVALID_PARAM;
    }

    type = gstream_params_type(params);
    if ((unsigned)type >= UCS_GSTREAM_TYPE_LAST) {
        ucs_error("cannot create a stream: unknown type %d", (int)type);
        return UCS_ERR_INVALID_PARAM;
    }

    /* A runtime may look into what it is given */
    if ((params->field_mask & UCS_GSTREAM_PARAM_FIELD_NATIVE) &&
        ucs_gstream_is_valid(params->native)) {
        ucs_error("cannot create a stream of %s on %p: that is a stream of "
                  "this library", ucs_gstream_type_name(type),
                  params->native);
        return UCS_ERR_INVALID_PARAM;
    }

    status = ucs_gstream_query_type(type, &attr);
    if (status != UCS_OK) {
        ucs_error("cannot create a stream: %s", attr.reason);
        return status;
    }

    status = ucs_trace_open();
    if (status == UCS_OK) {
        status = gstream_backends[type]->create(params, &stream);
    }
    if (status != UCS_OK) {
        return status;
    }

    pthread_mutex_lock(&gstream_registry.lock);
    stream->id = ++gstream_registry.num_streams;
    ucs_list_add_tail(&gstream_registry.streams, &stream->list);
    pthread_mutex_unlock(&gstream_registry.lock);
    *stream_p = stream;
    return UCS_OK;
}

ucs_status_t ucs_gstream_destroy(ucs_gstream_h stream)
{
    ucs_status_t status = UCS_ERR_INVALID_PARAM;
    ucs_gstream_h entry;

    /* The lock is held to the end: a stream that is busy stays valid for
     * everybody. An idle one is not long in ending. */
    pthread_mutex_lock(&gstream_registry.lock);
    entry = gstream_registry_find(stream);
    if (entry != NULL) {
        status = gstream_registry_destroy(entry);
    }
    pthread_mutex_unlock(&gstream_registry.lock);

    if (entry == NULL) {
        ucs_error("cannot destroy %p: not a live stream", (void*)stream);
    }
    return status;
}

int ucs_gstream_is_valid(ucs_gstream_h stream)
{
    uint64_t num_ends = __atomic_load_n(&gstream_registry.num_ends,
                                        __ATOMIC_ACQUIRE);
    int found;

    if ((stream != NULL) && (gstream_found.stream == stream) &&
        (gstream_found.num_ends == num_ends)) {
        return 1;
    }

    pthread_mutex_lock(&gstream_registry.lock);
    found = (gstream_registry_find(stream) != NULL);
    pthread_mutex_unlock(&gstream_registry.lock);
    if (found) {
        gstream_found.stream   = stream;
        gstream_found.num_ends = num_ends;
    }
    return found;
}

ucs_status_t ucs_gstream_get(ucs_gstream_h stream)
{
    ucs_gstream_h entry;

    pthread_mutex_lock(&gstream_registry.lock);
    entry = gstream_registry_find(stream);
    if (entry != NULL) {
        (void)__atomic_fetch_add(&entry->users, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&gstream_registry.lock);
    return (entry != NULL) ? UCS_OK : UCS_ERR_INVALID_PARAM;
}

void ucs_gstream_put(ucs_gstream_h stream)
{
    (void)__atomic_fetch_sub(&stream->users, 1, __ATOMIC_RELEASE);
}

int gstream_ask_begin(ucs_gstream_h stream, uint64_t id)
{
    ucs_gstream_h entry;
    int is_live;

    pthread_mutex_lock(&gstream_registry.lock);
    entry   = gstream_registry_find(stream);
    is_live = (entry != NULL) && (entry->id == id);
    if (is_live) {
        (void)__atomic_fetch_add(&entry->asks, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&gstream_registry.lock);
    return is_live;
}

void gstream_ask_end(ucs_gstream_h stream)
{
    (void)__atomic_fetch_sub(&stream->asks, 1, __ATOMIC_RELEASE);
}

/* A stream that is idle or lost answers at once. The bound is for a runtime
 * that lets another thread wait: the front's lock is held. */
ucs_status_t gstream_ask_wait(ucs_gstream_h stream)
{
    uint64_t start  = gstream_time();
    unsigned rounds = 0;

    while (__atomic_load_n(&stream->asks, __ATOMIC_ACQUIRE) > 0) {
        if ((gstream_time() - start) > GSTREAM_NSEC_PER_SEC) {
            return UCS_ERR_BUSY;
        }
        ucs_backoff(&rounds);
    }
    return UCS_OK;
}

ucs_gstream_type_t ucs_gstream_type(ucs_gstream_h stream)
{
    return (stream != NULL) ? stream->type : UCS_GSTREAM_TYPE_LAST;
}

unsigned ucs_gstream_caps(ucs_gstream_h stream)
{
    return (stream != NULL) ? stream->ops->caps : 0;
}

unsigned ucs_gstream_type_caps(ucs_gstream_type_t type)
{
    return ((unsigned)type < UCS_GSTREAM_TYPE_LAST) ?
                   gstream_backends[type]->caps :
                   0;
}

void *ucs_gstream_native(ucs_gstream_h stream)
{
    return (stream != NULL) ? stream->ops->native(stream) : NULL;
}

int ucs_gstream_reaches(ucs_gstream_h stream, const volatile uint64_t *word)
{
    return (stream != NULL) && (word != NULL) &&
           stream->ops->reaches(stream, word);
}

ucs_status_t ucs_gstream_detect(void *handle, ucs_gstream_type_t *type_p)
{
    if (type_p == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    if ((handle != NULL) && ucs_gstream_is_valid(handle)) {
        *type_p = ucs_gstream_type(handle);
        return UCS_OK;
    }
    return gstream_gpu_detect(handle, type_p);
}

/* What is wrong with the word of a command; NULL if nothing. */
static const char *gstream_check_place(const volatile void *address,
                                       size_t size)
{
    if (address == NULL) {
        return "NULL word";
    }
    return (((uintptr_t)address % size) != 0) ? "misaligned word" : NULL;
}

static const char *gstream_check_word(const volatile uint64_t *address)
{
    return gstream_check_place(address, sizeof(*address));
}

static const char *gstream_check_word32(const ucs_gstream_cmd_t *cmd)
{
    if ((cmd->type == UCS_GSTREAM_CMD_WAIT32) &&
        ((unsigned)cmd->u.word32.cmp > UCS_GSTREAM_CMP_AND)) {
        return "unknown comparison";
    }
    return gstream_check_place(cmd->u.word32.address,
                               sizeof(*cmd->u.word32.address));
}

/* What is wrong with a kernel; NULL if nothing. */
static const char *gstream_check_launch(const ucs_gstream_cmd_t *cmd)
{
    if (cmd->u.launch.func == NULL) {
        return "NULL function";
    }
    if (cmd->u.launch.size > UCS_GSTREAM_ARGS_MAX) {
        return "arguments above " UCS_PP_MAKE_STRING(UCS_GSTREAM_ARGS_MAX)
               " bytes";
    }
    return ((cmd->u.launch.size > 0) && (cmd->u.launch.args == NULL)) ?
                   "NULL arguments" :
                   NULL;
}

static const char *gstream_check_helper(const ucs_gstream_helper_t *helper)
{
    if ((helper == NULL) || (helper->func == NULL)) {
        return "NULL helper";
    }
    return (helper->notify == NULL) ? "helper without notify" : NULL;
}

/* What is wrong with a wait for several words; NULL if nothing. */
static const char *gstream_check_waitall(const ucs_gstream_cmd_t *cmd)
{
    const ucs_gstream_word_t *words = cmd->u.waitall.words;
    size_t count                    = cmd->u.waitall.count;
    const char *defect              = NULL;
    size_t i;

    if ((count == 0) || (count > UCS_GSTREAM_WORDS_MAX)) {
        return "no words, or more than "
               UCS_PP_MAKE_STRING(UCS_GSTREAM_WORDS_MAX);
    }
    if (words == NULL) {
        return "NULL words";
    }
    if (cmd->u.waitall.helper != NULL) {
        defect = gstream_check_helper(cmd->u.waitall.helper);
    }
    for (i = 0; (i < count) && (defect == NULL); ++i) {
        defect = gstream_check_word(words[i].address);
    }
    return defect;
}

const char *gstream_check_rect(const void *dst, const void *src,
                               const ucs_gstream_rect_t *rect)
{
    if (rect == NULL) {
        return "NULL rectangle";
    }
    if ((rect->width == 0) || (rect->height == 0)) {
        return NULL;
    }
    if ((rect->height > 1) && ((rect->dst_pitch < rect->width) ||
                               (rect->src_pitch < rect->width))) {
        return "rows less than their width apart";
    }
    if ((rect->height > 1) && ((rect->dst_pitch > UCS_GSTREAM_PITCH_MAX) ||
                               (rect->src_pitch > UCS_GSTREAM_PITCH_MAX))) {
        return "rows more than " UCS_PP_MAKE_STRING(UCS_GSTREAM_PITCH_MAX)
               " bytes apart";
    }
    return ((dst == NULL) || (src == NULL)) ? "NULL buffer" : NULL;
}

/* What is wrong with a command; NULL if nothing. */
static const char *gstream_check_cmd(ucs_gstream_h stream,
                                     const ucs_gstream_cmd_t *cmd)
{
    const char *defect;

    switch (cmd->type) {
    case UCS_GSTREAM_CMD_FUNC:
        return (cmd->u.func.func == NULL) ? "NULL function" : NULL;
    case UCS_GSTREAM_CMD_WRITE64:
    case UCS_GSTREAM_CMD_WAIT64:
        return gstream_check_word(cmd->u.word.address);
    case UCS_GSTREAM_CMD_HELP64:
        defect = gstream_check_helper(cmd->u.word.helper);
        return (defect != NULL) ? defect :
                                  gstream_check_word(cmd->u.word.address);
    case UCS_GSTREAM_CMD_COPY:
        return ((cmd->u.copy.length > 0) && ((cmd->u.copy.dst == NULL) ||
                                             (cmd->u.copy.src == NULL))) ?
                       "NULL buffer" :
                       NULL;
    case UCS_GSTREAM_CMD_LAUNCH:
    case UCS_GSTREAM_CMD_WAITALL:
    case UCS_GSTREAM_CMD_COPY2D:
    case UCS_GSTREAM_CMD_PAIRS:
    case UCS_GSTREAM_CMD_MOVE:
    case UCS_GSTREAM_CMD_WRITE32:
    case UCS_GSTREAM_CMD_WAIT32:
        break; /* here they would make a jump table of the switch */
    }

    if (cmd->type == UCS_GSTREAM_CMD_LAUNCH) {
        return gstream_check_launch(cmd);
    }
    if ((cmd->type == UCS_GSTREAM_CMD_WRITE32) ||
        (cmd->type == UCS_GSTREAM_CMD_WAIT32)) {
        return gstream_check_word32(cmd);
    }
    if (cmd->type == UCS_GSTREAM_CMD_COPY2D) {
        return gstream_check_rect(cmd->u.copy2d.dst, cmd->u.copy2d.src,
                                  cmd->u.copy2d.rect);
    }
    if (cmd->type == UCS_GSTREAM_CMD_PAIRS) {
        return (stream->type == UCS_GSTREAM_TYPE_HOST) ?
                       "a stream of the host starts no pairs" :
               (cmd->u.pairs.count == 0) ? "no pairs" : NULL;
    }
    if (cmd->type == UCS_GSTREAM_CMD_MOVE) {
        return (stream->type == UCS_GSTREAM_TYPE_HOST) ?
                       "a stream of the host makes no moves" : NULL;
    }
    return (cmd->type == UCS_GSTREAM_CMD_WAITALL) ? gstream_check_waitall(cmd) :
                                                    "unknown type";
}

static ucs_status_t gstream_check_cmds(ucs_gstream_h stream,
                                       const ucs_gstream_cmd_t *cmds,
                                       size_t count)
{
    const char *defect;
    size_t i;

    for (i = 0; i < count; ++i) {
        defect = gstream_check_cmd(stream, &cmds[i]);
        if (ucs_unlikely(defect != NULL)) {
            ucs_error("%s stream %p: command %zu of %zu: %s", stream->ops->name,
                      (void*)stream, i, count, defect);
            return UCS_ERR_INVALID_PARAM;
        }
    }

    return UCS_OK;
}

ucs_status_t ucs_gstream_enqueue(ucs_gstream_h stream,
                                 const ucs_gstream_cmd_t *cmds, size_t count)
{
    ucs_status_t status;

    if (ucs_unlikely((stream == NULL) || ((cmds == NULL) && (count > 0)))) {
        ucs_error("cannot enqueue: NULL %s",
                  (stream == NULL) ? "stream" : "commands");
        return UCS_ERR_INVALID_PARAM;
    }

    status = gstream_check_cmds(stream, cmds, count);
    if ((status != UCS_OK) || (count == 0)) {
        return status;
    }

    return stream->ops->enqueue(stream, cmds, count);
}

ucs_status_t ucs_gstream_enqueue_func(ucs_gstream_h stream,
                                      ucs_gstream_func_t func, void *arg)
{
    ucs_gstream_cmd_t cmd = {
        .type   = UCS_GSTREAM_CMD_FUNC,
        .u.func = {func, arg}
    };

    return ucs_gstream_enqueue(stream, &cmd, 1);
}

ucs_status_t ucs_gstream_enqueue_launch(ucs_gstream_h stream,
                                        ucs_gstream_func_t func,
                                        const void *args, size_t size)
{
    ucs_gstream_cmd_t cmd = {
        .type     = UCS_GSTREAM_CMD_LAUNCH,
        .u.launch = {func, args, size}
    };

    return ucs_gstream_enqueue(stream, &cmd, 1);
}

ucs_status_t ucs_gstream_enqueue_write64(ucs_gstream_h stream,
                                         volatile uint64_t *address,
                                         uint64_t value)
{
    ucs_gstream_cmd_t cmd = {
        .type   = UCS_GSTREAM_CMD_WRITE64,
        .u.word = {.address = address, .value = value}
    };

    return ucs_gstream_enqueue(stream, &cmd, 1);
}

ucs_status_t ucs_gstream_enqueue_wait64(ucs_gstream_h stream,
                                        volatile uint64_t *address,
                                        uint64_t value)
{
    ucs_gstream_cmd_t cmd = {
        .type   = UCS_GSTREAM_CMD_WAIT64,
        .u.word = {.address = address, .value = value}
    };

    return ucs_gstream_enqueue(stream, &cmd, 1);
}

ucs_status_t ucs_gstream_enqueue_copy(ucs_gstream_h stream, void *dst,
                                      const void *src, size_t length)
{
    ucs_gstream_cmd_t cmd = {
        .type   = UCS_GSTREAM_CMD_COPY,
        .u.copy = {dst, src, length}
    };

    return ucs_gstream_enqueue(stream, &cmd, 1);
}

ucs_status_t ucs_gstream_enqueue_copy2d(ucs_gstream_h stream, void *dst,
                                        const void *src,
                                        const ucs_gstream_rect_t *rect)
{
    ucs_gstream_cmd_t cmd = {
        .type     = UCS_GSTREAM_CMD_COPY2D,
        .u.copy2d = {dst, src, rect}
    };

    return ucs_gstream_enqueue(stream, &cmd, 1);
}

void ucs_gstream_wake(const volatile uint64_t *address)
{
    ucs_gstream_wake_all(&address, 1);
}

void ucs_gstream_wake_all(const volatile uint64_t *const *addresses,
                          size_t count)
{
    gstream_sleep_fence();
    gstream_sleep_wake_all(addresses, count);
}

void ucs_gstream_notify(ucs_gstream_notify_t *notify)
{
    gstream_sleep_fence();
    gstream_sleep_notify(notify);
}

ucs_status_t ucs_gstream_synchronize(ucs_gstream_h stream)
{
    return ucs_gstream_synchronize_timeout(stream, INFINITY);
}

ucs_status_t ucs_gstream_synchronize_timeout(ucs_gstream_h stream,
                                             double timeout)
{
    uint64_t begin = ucs_trace_begin();
    ucs_status_t status;

    if (stream == NULL) {
        ucs_error("cannot synchronize: NULL stream");
        return UCS_ERR_INVALID_PARAM;
    }

    /* Not a number tests only, as a negative time does */
    status = stream->ops->synchronize(stream, (timeout > 0) ? timeout : 0);
    ucs_trace_end("ucs_gstream_synchronize", begin);
    return status;
}

ucs_status_t ucs_gstream_query(ucs_gstream_h stream)
{
    if (stream == NULL) {
        ucs_error("cannot query: NULL stream");
        return UCS_ERR_INVALID_PARAM;
    }

    return stream->ops->query(stream);
}
