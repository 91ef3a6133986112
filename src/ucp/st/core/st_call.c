/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_call.c - the service thread runs functions that streams only announce.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_call.h"
#include "core/st_queue.h"
#include "core/st_watch.h"
#include "core/st_worker.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* Room for the arguments of a call, so that most unused ones fit: bytes */
#define UCP_ST_CALL_ROOM 192

/* The thread looks every few microseconds, but where no stream has come to a
 * call for this long, seconds, only every so many milliseconds: by a tenth of
 * what it took a call is late then */
#define UCP_ST_CALL_SOON 10e-3
#define UCP_ST_CALL_MSEC 1


/** A call. */
typedef struct ucp_st_call {
    ucs_list_link_t    list;   /* in the queue's made, open or unused */
    uint64_t           number; /* of the queue, from 1 */
    uint64_t           seq;    /* of its batch */
    uint64_t           passed; /* batches that have passed with it */
    ucs_gstream_func_t func;
    void               *arg;   /* for it: the user's, or */
    size_t             room;
    char               args[] UCS_V_ALIGNED(16);
} ucp_st_call_t;


static ucp_st_call_worker_t *ucp_st_call_worker(ucp_st_worker_h worker)
{
    return &ucp_st_watch(worker)->calls;
}

static int ucp_st_calls_is_open(const ucp_st_calls_t *calls)
{
    return __atomic_load_n(&calls->first_seq, __ATOMIC_ACQUIRE) != UINT64_MAX;
}

static void ucp_st_calls_free(ucs_list_link_t *list)
{
    ucp_st_call_t *call, *tmp;

    ucs_list_for_each_safe(call, tmp, list, list) {
        free(call);
    }
}

ucs_status_t ucp_st_calls_init(ucp_st_queue_h queue)
{
    ucp_st_call_worker_t *self = ucp_st_call_worker(queue->worker);
    ucp_st_calls_t *calls;

    if (ucs_gstream_caps(queue->stream) & UCS_GSTREAM_CAP_CHEAP) {
        return UCS_OK;
    }
    calls = calloc(1, sizeof(*calls));
    if (calls == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    (void)pthread_mutex_init(&calls->lock, NULL);
    ucs_list_head_init(&calls->made);
    ucs_list_head_init(&calls->open);
    ucs_list_head_init(&calls->unused);
    calls->worker    = queue->worker;
    calls->word      = queue->marks[UCP_ST_QUEUE_WORD_CALL];
    calls->first_seq = UINT64_MAX;
    queue->calls     = calls;
    (void)pthread_mutex_lock(&self->lock);
    ucs_list_add_tail(&self->queues, &calls->list);
    (void)pthread_mutex_unlock(&self->lock);
    return UCS_OK;
}

void ucp_st_calls_cleanup(ucp_st_queue_h queue)
{
    ucp_st_call_worker_t *self = ucp_st_call_worker(queue->worker);
    ucp_st_calls_t *calls      = queue->calls;

    if (calls == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&self->lock); /* the thread looks at none */
    ucs_list_del(&calls->list);
    (void)pthread_mutex_unlock(&self->lock);
    ucp_st_calls_free(&calls->made);
    ucp_st_calls_free(&calls->unused);
    (void)pthread_mutex_destroy(&calls->lock);
    free(calls);
}

void ucp_st_calls_drop(ucp_st_calls_t *calls)
{
    calls->last_made = calls->number;
    calls->is_short  = 0;
    if (ucs_list_is_empty(&calls->made)) {
        return;
    }
    (void)pthread_mutex_lock(&calls->lock);
    ucs_list_splice_tail(&calls->unused, &calls->made);
    (void)pthread_mutex_unlock(&calls->lock);
    ucs_list_head_init(&calls->made);
}

/* A call that is in no list, with room for its arguments; NULL without memory.
 * Once the queue has enough that are large enough, nothing is allocated. */
static ucp_st_call_t *ucp_st_calls_get(ucp_st_calls_t *calls, size_t size)
{
    size_t room         = ucs_max(size, UCP_ST_CALL_ROOM);
    ucp_st_call_t *call = NULL;

    (void)pthread_mutex_lock(&calls->lock);
    if (!ucs_list_is_empty(&calls->unused)) {
        call = ucs_list_extract_head(&calls->unused, ucp_st_call_t, list);
    }
    (void)pthread_mutex_unlock(&calls->lock);
    if ((call != NULL) && (call->room < size)) {
        free(call);
        call = NULL;
    }
    if (call == NULL) {
        call = malloc(sizeof(*call) + room);
        if (call != NULL) {
            call->room = room;
        }
    }
    return call;
}

uint64_t ucp_st_calls_add(ucp_st_calls_t *calls, ucs_gstream_func_t func,
                          void *arg, size_t size)
{
    ucp_st_call_t *call = ucp_st_calls_get(calls, size);

    if (call == NULL) {
        calls->is_short = 1;
        return 0;
    }
    call->func   = func;
    call->arg    = (size > 0) ? memcpy(call->args, arg, size) : arg;
    call->number = ++calls->last_made;
    ucs_list_add_tail(&calls->made, &call->list);
    return call->number;
}

/* The first open call is another one. The lock is held. */
static void ucp_st_calls_update(ucp_st_calls_t *calls)
{
    uint64_t seq = ucs_list_is_empty(&calls->open) ? UINT64_MAX :
                   ucs_list_head(&calls->open, ucp_st_call_t, list)->seq;

    /* Pairs with the acquire load in ucp_st_queue_passed(): what the calls did
     * is visible */
    __atomic_store_n(&calls->first_seq, seq, __ATOMIC_RELEASE);
}

void ucp_st_calls_commit(ucp_st_calls_t *calls, uint64_t seq, int is_end)
{
    ucp_st_call_worker_t *self = ucp_st_call_worker(calls->worker);
    int was_open;
    ucp_st_call_t *call;

    if (ucs_list_is_empty(&calls->made)) {
        return;
    }
    ucs_list_for_each(call, &calls->made, list) {
        call->seq    = seq;
        call->passed = seq - 1;
    }
    ucs_list_tail(&calls->made, ucp_st_call_t, list)->passed += (is_end != 0);
    calls->number = calls->last_made;
    (void)pthread_mutex_lock(&calls->lock);
    was_open = !ucs_list_is_empty(&calls->open);
    ucs_list_splice_tail(&calls->open, &calls->made);
    ucp_st_calls_update(calls);
    (void)pthread_mutex_unlock(&calls->lock);
    ucs_list_head_init(&calls->made);
    if (!was_open) { /* else the thread looks at the word */
        __atomic_store_n(&self->has_news, 1, __ATOMIC_RELEASE);
        ucp_st_service_wake(&self->service);
    }
}

void ucp_st_calls_undo(ucp_st_calls_t *calls, uint64_t seq)
{
    ucp_st_call_t *call;

    (void)pthread_mutex_lock(&calls->lock);
    while (!ucs_list_is_empty(&calls->open)) {
        call = ucs_list_tail(&calls->open, ucp_st_call_t, list);
        if (call->seq != seq) {
            break;
        }
        ucs_list_del(&call->list);
        ucs_list_add_head(&calls->unused, &call->list);
        --calls->number;
    }
    ucp_st_calls_update(calls);
    (void)pthread_mutex_unlock(&calls->lock);
}

unsigned ucp_st_calls_run(ucp_st_calls_t *calls)
{
    unsigned count = 0;
    ucp_st_call_t *call;

    if (!ucp_st_calls_is_open(calls)) {
        return 0;
    }
    (void)pthread_mutex_lock(&calls->lock);
    if (calls->is_running) {
        goto out;
    }
    calls->is_running = 1;
    while (!ucs_list_is_empty(&calls->open)) {
        call = ucs_list_head(&calls->open, ucp_st_call_t, list);
        if (__atomic_load_n(calls->word, __ATOMIC_ACQUIRE) < call->number) {
            break;
        }
        (void)pthread_mutex_unlock(&calls->lock);
        call->func(call->arg);
        ++count;
        (void)pthread_mutex_lock(&calls->lock);
        ucs_list_del(&call->list);
        ucs_list_add_head(&calls->unused, &call->list);
        __atomic_store_n(&calls->passed, call->passed, __ATOMIC_RELEASE);
        ucp_st_calls_update(calls);
    }
    calls->is_running = 0;
out:
    (void)pthread_mutex_unlock(&calls->lock);
    return count;
}

/* In the service thread. A queue stays while its calls are looked at: who
 * destroys it waits for the lock. */
static int ucp_st_call_serve(void *arg)
{
    ucp_st_call_worker_t *self = ucp_st_call_worker(arg);
    int has_news = __atomic_exchange_n(&self->has_news, 0, __ATOMIC_ACQUIRE);
    int is_open  = 0;
    ucp_st_calls_t *calls;
    double now;

    (void)pthread_mutex_lock(&self->lock);
    ucs_list_for_each(calls, &self->queues, list) {
        has_news |= (ucp_st_calls_run(calls) > 0);
        is_open  |= ucp_st_calls_is_open(calls);
    }
    (void)pthread_mutex_unlock(&self->lock);
    if (!is_open) {
        return -1;
    }
    now = ucp_st_worker_now();
    if (has_news) {
        self->time = now;
    }
    return ((now - self->time) < UCP_ST_CALL_SOON) ? UCP_ST_SERVICE_SOON :
                                                     UCP_ST_CALL_MSEC;
}

void ucp_st_call_init(ucp_st_worker_h worker)
{
    ucp_st_call_worker_t *self = ucp_st_call_worker(worker);

    (void)pthread_mutex_init(&self->lock, NULL);
    ucs_list_head_init(&self->queues);
}

ucs_status_t ucp_st_call_start(ucp_st_worker_h worker)
{
    ucp_st_call_worker_t *self = ucp_st_call_worker(worker);

    self->service.serve   = ucp_st_call_serve;
    self->service.arg     = worker;
    self->service.num_fds = 0;
    return ucp_st_service_add(&self->service);
}

void ucp_st_call_stop(ucp_st_worker_h worker)
{
    ucp_st_service_remove(&ucp_st_call_worker(worker)->service);
}

void ucp_st_call_cleanup(ucp_st_worker_h worker)
{
    (void)pthread_mutex_destroy(&ucp_st_call_worker(worker)->lock);
}
