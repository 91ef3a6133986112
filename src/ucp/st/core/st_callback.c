/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_callback.c - the service thread runs functions that streams announce.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_callback.h"
#include "core/st_queue.h"
#include "core/st_watch.h"
#include "core/st_worker.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* Room for the arguments of a callback, so that most unused ones fit: bytes */
#define UCP_ST_CALLBACK_ROOM 192

/* The thread looks every few microseconds. Once no stream has come to a
 * callback for this long, seconds, it looks only every so many milliseconds: by
 * a tenth of what it took a callback is late then. */
#define UCP_ST_CALLBACK_SOON 10e-3
#define UCP_ST_CALLBACK_MSEC 1


/** A callback. */
typedef struct ucp_st_callback {
    ucs_list_link_t    list;   /* in the queue's made, open or unused */
    uint64_t           number; /* of the queue, from 1 */
    uint64_t           seq;    /* of its submission */
    uint64_t           passed; /* submissions that have passed with it */
    ucs_gstream_func_t func;
    void               *arg;   /* for it: the user's, or */
    size_t             room;
    char               args[] UCS_V_ALIGNED(16);
} ucp_st_callback_t;


static ucp_st_callback_worker_t *ucp_st_callback_worker(ucp_st_worker_h worker)
{
    return &ucp_st_watch(worker)->callbacks;
}

static int ucp_st_callbacks_is_open(const ucp_st_callbacks_t *callbacks)
{
    return __atomic_load_n(&callbacks->first_seq, __ATOMIC_ACQUIRE) !=
           UINT64_MAX;
}

static void ucp_st_callbacks_free(ucs_list_link_t *list)
{
    ucp_st_callback_t *callback, *tmp;

    ucs_list_for_each_safe(callback, tmp, list, list) {
        free(callback);
    }
}

ucs_status_t ucp_st_callbacks_init(ucp_st_queue_h queue)
{
    ucp_st_callback_worker_t *self = ucp_st_callback_worker(queue->worker);
    ucp_st_callbacks_t *callbacks;

    if (ucs_gstream_caps(queue->stream) & UCS_GSTREAM_CAP_CHEAP) {
        return UCS_OK;
    }
    callbacks = calloc(1, sizeof(*callbacks));
    if (callbacks == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    (void)pthread_mutex_init(&callbacks->lock, NULL);
    ucs_list_head_init(&callbacks->made);
    ucs_list_head_init(&callbacks->open);
    ucs_list_head_init(&callbacks->unused);
    callbacks->worker    = queue->worker;
    callbacks->word      = queue->marks[UCP_ST_QUEUE_WORD_CALLBACK];
    callbacks->first_seq = UINT64_MAX;
    queue->callbacks     = callbacks;
    (void)pthread_mutex_lock(&self->lock);
    ucs_list_add_tail(&self->queues, &callbacks->list);
    (void)pthread_mutex_unlock(&self->lock);
    return UCS_OK;
}

void ucp_st_callbacks_cleanup(ucp_st_queue_h queue)
{
    ucp_st_callback_worker_t *self = ucp_st_callback_worker(queue->worker);
    ucp_st_callbacks_t *callbacks  = queue->callbacks;

    if (callbacks == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&self->lock); /* the thread looks at none */
    ucs_list_del(&callbacks->list);
    (void)pthread_mutex_unlock(&self->lock);
    ucp_st_callbacks_free(&callbacks->made);
    ucp_st_callbacks_free(&callbacks->unused);
    (void)pthread_mutex_destroy(&callbacks->lock);
    free(callbacks);
}

void ucp_st_callbacks_drop(ucp_st_callbacks_t *callbacks)
{
    callbacks->last_made = callbacks->number;
    callbacks->is_short  = 0;
    if (ucs_list_is_empty(&callbacks->made)) {
        return;
    }
    (void)pthread_mutex_lock(&callbacks->lock);
    ucs_list_splice_tail(&callbacks->unused, &callbacks->made);
    (void)pthread_mutex_unlock(&callbacks->lock);
    ucs_list_head_init(&callbacks->made);
}

/* A callback that is in no list, with room for its arguments; NULL without
 * memory. Once the queue has enough that are large enough, nothing is
 * allocated. */
static ucp_st_callback_t *ucp_st_callbacks_get(ucp_st_callbacks_t *callbacks,
                                               size_t size)
{
    size_t room                 = ucs_max(size, UCP_ST_CALLBACK_ROOM);
    ucp_st_callback_t *callback = NULL;

    (void)pthread_mutex_lock(&callbacks->lock);
    if (!ucs_list_is_empty(&callbacks->unused)) {
        callback = ucs_list_extract_head(&callbacks->unused, ucp_st_callback_t,
                                         list);
    }
    (void)pthread_mutex_unlock(&callbacks->lock);
    if ((callback != NULL) && (callback->room < size)) {
        free(callback);
        callback = NULL;
    }
    if (callback == NULL) {
        callback = malloc(sizeof(*callback) + room);
        if (callback != NULL) {
            callback->room = room;
        }
    }
    return callback;
}

uint64_t ucp_st_callbacks_add(ucp_st_callbacks_t *callbacks,
                              ucs_gstream_func_t func, void *arg, size_t size)
{
    ucp_st_callback_t *callback = ucp_st_callbacks_get(callbacks, size);

    if (callback == NULL) {
        callbacks->is_short = 1;
        return 0;
    }
    callback->func   = func;
    callback->arg    = (size > 0) ? memcpy(callback->args, arg, size) : arg;
    callback->number = ++callbacks->last_made;
    ucs_list_add_tail(&callbacks->made, &callback->list);
    return callback->number;
}

/* The first open callback is another one. The lock is held. */
static void ucp_st_callbacks_update(ucp_st_callbacks_t *callbacks)
{
    uint64_t seq = UINT64_MAX;

    if (!ucs_list_is_empty(&callbacks->open)) {
        seq = ucs_list_head(&callbacks->open, ucp_st_callback_t, list)->seq;
    }

    /* Pairs with the acquire load in ucp_st_queue_passed(): what the
     * callbacks did is visible */
    __atomic_store_n(&callbacks->first_seq, seq, __ATOMIC_RELEASE);
}

void ucp_st_callbacks_commit(ucp_st_callbacks_t *callbacks, uint64_t seq,
                             int is_end)
{
    ucp_st_callback_worker_t *self = ucp_st_callback_worker(callbacks->worker);
    int was_open;
    ucp_st_callback_t *callback;

    if (ucs_list_is_empty(&callbacks->made)) {
        return;
    }
    ucs_list_for_each(callback, &callbacks->made, list) {
        callback->seq    = seq;
        callback->passed = seq - 1;
    }
    callback = ucs_list_tail(&callbacks->made, ucp_st_callback_t, list);
    callback->passed += (is_end != 0);
    callbacks->number = callbacks->last_made;
    (void)pthread_mutex_lock(&callbacks->lock);
    was_open = !ucs_list_is_empty(&callbacks->open);
    ucs_list_splice_tail(&callbacks->open, &callbacks->made);
    ucp_st_callbacks_update(callbacks);
    (void)pthread_mutex_unlock(&callbacks->lock);
    ucs_list_head_init(&callbacks->made);
    if (!was_open) { /* else the thread looks at the word */
        (void)ucp_st_queue_count(&callbacks->wakeups, 1);
        __atomic_store_n(&self->has_news, 1, __ATOMIC_RELEASE);
        ucp_st_service_wake(&self->service);
    }
}

void ucp_st_callbacks_undo(ucp_st_callbacks_t *callbacks, uint64_t seq)
{
    ucp_st_callback_t *callback;

    (void)pthread_mutex_lock(&callbacks->lock);
    while (!ucs_list_is_empty(&callbacks->open)) {
        callback = ucs_list_tail(&callbacks->open, ucp_st_callback_t, list);
        if (callback->seq != seq) {
            break;
        }
        ucs_list_del(&callback->list);
        ucs_list_add_head(&callbacks->unused, &callback->list);
        --callbacks->number;
    }
    ucp_st_callbacks_update(callbacks);
    (void)pthread_mutex_unlock(&callbacks->lock);
}

unsigned ucp_st_callbacks_run(ucp_st_callbacks_t *callbacks)
{
    unsigned count = 0;
    ucp_st_callback_t *callback;

    if (!ucp_st_callbacks_is_open(callbacks)) {
        return 0;
    }
    (void)pthread_mutex_lock(&callbacks->lock);
    if (callbacks->is_running) {
        goto out;
    }
    callbacks->is_running = 1;
    while (!ucs_list_is_empty(&callbacks->open)) {
        callback = ucs_list_head(&callbacks->open, ucp_st_callback_t, list);
        if (__atomic_load_n(callbacks->word, __ATOMIC_ACQUIRE) <
            callback->number) {
            break;
        }
        (void)pthread_mutex_unlock(&callbacks->lock);
        callback->func(callback->arg);
        ++count;
        (void)pthread_mutex_lock(&callbacks->lock);
        ucs_list_del(&callback->list);
        ucs_list_add_head(&callbacks->unused, &callback->list);
        __atomic_store_n(&callbacks->passed, callback->passed,
                         __ATOMIC_RELEASE);
        ucp_st_callbacks_update(callbacks);
    }
    callbacks->is_running = 0;
out:
    (void)pthread_mutex_unlock(&callbacks->lock);
    return count;
}

/* In the service thread. A queue stays while its callbacks are looked at: to
 * destroy it takes the lock. */
static int ucp_st_callback_serve(void *arg)
{
    ucp_st_callback_worker_t *self = ucp_st_callback_worker(arg);
    int has_news = __atomic_exchange_n(&self->has_news, 0, __ATOMIC_ACQUIRE);
    int is_open  = 0;
    ucp_st_callbacks_t *callbacks;
    double now;

    (void)pthread_mutex_lock(&self->lock);
    ucs_list_for_each(callbacks, &self->queues, list) {
        has_news |= (ucp_st_callbacks_run(callbacks) > 0);
        is_open  |= ucp_st_callbacks_is_open(callbacks);
    }
    (void)pthread_mutex_unlock(&self->lock);
    if (!is_open) {
        return -1;
    }
    now = ucp_st_worker_now();
    if (has_news) {
        self->time = now;
    }
    return ((now - self->time) < UCP_ST_CALLBACK_SOON) ? UCP_ST_SERVICE_SOON :
                                                         UCP_ST_CALLBACK_MSEC;
}

void ucp_st_callback_init(ucp_st_worker_h worker)
{
    ucp_st_callback_worker_t *self = ucp_st_callback_worker(worker);

    (void)pthread_mutex_init(&self->lock, NULL);
    ucs_list_head_init(&self->queues);
}

ucs_status_t ucp_st_callback_start(ucp_st_worker_h worker)
{
    ucp_st_callback_worker_t *self = ucp_st_callback_worker(worker);

    self->service.serve   = ucp_st_callback_serve;
    self->service.arg     = worker;
    self->service.num_fds = 0;
    return ucp_st_service_add(&self->service);
}

void ucp_st_callback_stop(ucp_st_worker_h worker)
{
    ucp_st_service_remove(&ucp_st_callback_worker(worker)->service);
}

void ucp_st_callback_cleanup(ucp_st_worker_h worker)
{
    (void)pthread_mutex_destroy(&ucp_st_callback_worker(worker)->lock);
}
