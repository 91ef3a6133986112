/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_wait.c - streams that wait for signals.
 *
 * The stream waits for a word of the library. The first thread that finds that
 * the wait may pass stores that word. It is the stream's thread, which looks at
 * the signal whenever it looks at the word; or the service thread, once it
 * knows of a signal or of an error. Before a stream sleeps it counts itself
 * among the sleepers, and looks once more. A thread that has carried a signal
 * out then looks for sleepers. Both use sequentially consistent
 * read-modify-writes of the count, of which one comes first: so one of the two
 * sees the other.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_stage.h"
#include "core/st_trace.h"
#include "core/st_watch.h"

#include <ucs_gstream_memory.h>

#include <stdlib.h>
#include <string.h>

/* Begin, wait, end, and the span */
#define UCP_ST_RMA_WAIT_CMDS (3 + UCP_ST_TRACE_MAX_CMDS)

/* How often the service thread looks for signals that come without a
 * notification, milliseconds */
#define UCP_ST_RMA_UNTOLD_MSEC 1

/** A signal that a wait is for. Read-only. */
typedef struct ucp_st_rma_awaited {
    ucp_st_memh_t       *mem;    /* held */
    ucp_st_peer_h       peer;    /* or NULL */
    const uint64_t      *signal;
    uint64_t            value;
    ucp_st_signal_cmp_t cmp;
    const char          *name;   /* or NULL */
} ucp_st_rma_awaited_t;

/** A wait. Read-only unless a field says otherwise. */
typedef struct ucp_st_rma_wait {
    ucs_list_link_t      list;       /* in the worker's; wait_lock */
    ucp_st_queue_h       queue;
    size_t               count;      /* signals */
    ucp_st_rma_awaited_t *signals;   /* room for `max`; these and the word stay
                                        when the wait is unused */
    size_t               max;
    volatile uint64_t    *word;      /* 1: it passes; atomic */
    uint8_t              has_peer;   /* some signal has */
    uint8_t              is_helped;  /* the stream calls `helper` */
    uint8_t              is_listed;  /* the stream's */
    uint8_t              is_asleep;  /* counted as a sleeper; the stream's */
    ucp_st_look_t        look;       /* wait_lock */
    ucs_gstream_helper_t helper;
    ucs_gstream_notify_t notify;     /* if the queue's helper has none; the
                                        stream's */
} ucp_st_rma_wait_t;

static void ucp_st_rma_wait_free(ucp_st_rma_wait_t *wait)
{
    ucs_gstream_word_put(wait->word);
    free(wait->signals);
    free(wait);
}

/* Room for signals. Returns 0 without memory. */
static int ucp_st_rma_wait_reserve(ucp_st_rma_wait_t *wait, size_t count)
{
    ucp_st_rma_awaited_t *signals;

    if (count <= wait->max) {
        return 1;
    }
    signals = calloc(count, sizeof(*signals));
    if (signals == NULL) {
        return 0;
    }
    free(wait->signals);
    wait->signals = signals;
    wait->max     = count;
    return 1;
}

/* An unused wait, or a new one, with room for signals, of which all but that
 * and the word is 0; NULL without memory */
static ucp_st_rma_wait_t *ucp_st_rma_wait_get(ucp_st_rma_dev_t *dev,
                                              size_t count)
{
    ucp_st_rma_wait_t *wait = NULL;

    (void)pthread_mutex_lock(&dev->wait_lock);
    if (!ucs_list_is_empty(&dev->free_waits)) {
        wait = ucs_list_extract_head(&dev->free_waits, ucp_st_rma_wait_t, list);
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
    if (wait == NULL) {
        wait = calloc(1, sizeof(*wait));
        if (wait == NULL) {
            return NULL;
        }
        wait->word = ucs_gstream_word_get();
        if (wait->word == NULL) {
            free(wait);
            return NULL;
        }
    }
    if (!ucp_st_rma_wait_reserve(wait, count)) {
        ucp_st_rma_wait_free(wait);
        return NULL;
    }
    *wait       = (ucp_st_rma_wait_t){
        .signals = wait->signals,
        .max     = wait->max,
        .word    = wait->word
    };
    *wait->word = 0;
    return wait;
}

void ucp_st_rma_waits_free(ucp_st_rma_dev_t *dev)
{
    ucp_st_rma_wait_t *wait, *tmp;

    ucs_list_for_each_safe(wait, tmp, &dev->free_waits, list) {
        ucp_st_rma_wait_free(wait);
    }
}

static int ucp_st_rma_awaited_is_met(const ucp_st_rma_awaited_t *awaited)
{
    /* Pairs with the release of the signal: the data is there */
    uint64_t signal = __atomic_load_n(awaited->signal, __ATOMIC_ACQUIRE);

    return (awaited->cmp == UCP_ST_SIGNAL_EQ) ? (signal == awaited->value) :
                                                (signal >= awaited->value);
}

/* The first signal of a wait that has not come, NULL if all have */
static const ucp_st_rma_awaited_t *
ucp_st_rma_wait_first(const ucp_st_rma_wait_t *wait)
{
    size_t i;

    for (i = 0; i < wait->count; ++i) {
        if (!ucp_st_rma_awaited_is_met(&wait->signals[i])) {
            return &wait->signals[i];
        }
    }
    return NULL;
}

/* Let a wait pass if it may; non-zero if so */
static int ucp_st_rma_wait_try(ucp_st_rma_wait_t *wait)
{
    if ((ucp_st_rma_wait_first(wait) != NULL) &&
        (ucp_st_queue_status(wait->queue) == UCS_OK)) {
        return 0;
    }
    __atomic_store_n(wait->word, 1, __ATOMIC_RELEASE);
    return 1;
}

void ucp_st_rma_look(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);
    ucp_st_rma_wait_t *wait;

    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_for_each(wait, &dev->waits, list) {
        if (ucp_st_rma_wait_try(wait)) {
            ucs_gstream_wake(wait->word);
        }
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
}

void ucp_st_rma_signaled(ucp_st_worker_h worker)
{
    /* Pairs with the addition in ucp_st_rma_wait_sleep(): of two that run at
     * the same time one sees the other */
    if (__atomic_fetch_add(&ucp_st_rma_dev(worker)->sleepers, 0,
                           __ATOMIC_SEQ_CST) > 0) {
        ucp_st_rma_look(worker);
    }
}

/* The stream may sleep from now on. The service thread looks after the peer. */
static void ucp_st_rma_wait_sleep(ucp_st_rma_wait_t *wait, int is_notified)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(wait->queue->worker);

    if (wait->is_asleep) {
        return;
    }
    wait->is_asleep = 1;
    __atomic_fetch_add(&dev->sleepers, 1, __ATOMIC_SEQ_CST);
    ucp_st_direct_rma_sleep(wait->queue, is_notified);
    ucp_st_watch_begin(wait->queue->worker);
    if (wait->has_peer || dev->is_untold) {
        ucp_st_service_wake(&dev->service);
    }
}

/* The stream does not wait any more */
static void ucp_st_rma_wait_awake(ucp_st_rma_wait_t *wait)
{
    if (wait->is_asleep) {
        wait->is_asleep = 0;
        ucp_st_direct_rma_awake(wait->queue);
        __atomic_fetch_sub(&ucp_st_rma_dev(wait->queue->worker)->sleepers, 1,
                           __ATOMIC_SEQ_CST);
    }
}

/* Called for the stream while it waits */
static int ucp_st_rma_wait_help(void *arg, ucs_gstream_help_t when)
{
    ucp_st_rma_wait_t *wait            = arg;
    const ucs_gstream_helper_t *helper = wait->queue->helper;
    int has_moved                      = 0;

    if (helper != NULL) {
        has_moved = helper->func(helper->arg, when);
    }
    if (when == UCS_GSTREAM_HELP_END) {
        ucp_st_rma_wait_awake(wait);
        return has_moved;
    }
    if ((when == UCS_GSTREAM_HELP_SLEEP) || (when == UCS_GSTREAM_HELP_PARK)) {
        ucp_st_rma_wait_sleep(wait, when == UCS_GSTREAM_HELP_SLEEP);
    }
    if (ucp_st_rma_wait_try(wait) && (when == UCS_GSTREAM_HELP_PARK)) {
        ucs_gstream_wake(wait->word);
    }
    return has_moved;
}

/* Runs on the stream, or as a call of it */
static void ucp_st_rma_wait_begin(void *arg)
{
    ucp_st_rma_wait_t *wait = arg;
    ucp_st_rma_dev_t *dev   = ucp_st_rma_dev(wait->queue->worker);

    if (ucp_st_rma_wait_try(wait)) {
        return;
    }
    wait->is_listed = 1;
    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_add_tail(&dev->waits, &wait->list);
    (void)pthread_mutex_unlock(&dev->wait_lock);
    if (!wait->is_helped) {
        ucp_st_rma_wait_sleep(wait, 0);
    }
    /* Its queue may have failed before it was in the list */
    (void)ucp_st_rma_wait_try(wait);
}

/* Hold the memory and the peers of all signals, or release them */
static void ucp_st_rma_wait_hold(const ucp_st_rma_wait_t *wait,
                                 void (*func)(unsigned *refs))
{
    size_t i;

    for (i = 0; i < wait->count; ++i) {
        func(&wait->signals[i].mem->refs);
        if (wait->signals[i].peer != NULL) {
            func(&ucp_st_rma_peer(wait->signals[i].peer)->num_waits);
        }
    }
}

/* The stream has passed the wait, or did not get it. As
 * ucp_st_rma_wait_begin(), or in a call of the user's. */
static void ucp_st_rma_wait_put(void *arg)
{
    ucp_st_rma_wait_t *wait = arg;
    ucp_st_rma_dev_t *dev   = ucp_st_rma_dev(wait->queue->worker);

    ucp_st_rma_wait_awake(wait);
    (void)pthread_mutex_lock(&dev->wait_lock);
    if (wait->is_listed) {
        ucs_list_del(&wait->list);
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
    /* Nobody looks at the words any more */
    ucp_st_rma_wait_hold(wait, ucp_st_rma_release);
    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_add_head(&dev->free_waits, &wait->list);
    (void)pthread_mutex_unlock(&dev->wait_lock);
}

/* What a stream waits for */
static void ucp_st_rma_wait_describe(const ucp_st_rma_awaited_t *awaited,
                                     ucp_st_waits_t *waits)
{
    if (awaited->name != NULL) {
        ucp_st_waits_add(waits, "%s", awaited->name);
        return;
    }
    ucp_st_waits_add(waits, "a signal that is to be %s %lu and is %lu, at byte "
                     "%zu of the registered memory %p",
                     (awaited->cmp == UCP_ST_SIGNAL_EQ) ? "equal to" :
                     "at least", awaited->value,
                     __atomic_load_n(awaited->signal, __ATOMIC_RELAXED),
                     (size_t)((const uint8_t*)awaited->signal -
                              awaited->mem->address),
                     (void*)awaited->mem->address);
    if (awaited->peer != NULL) {
        ucp_st_waits_add(waits, ", from peer 0x%lx", awaited->peer->uuid);
    }
}

/* Streams that wait for a signal */
static void ucp_st_rma_waits_signal(ucp_st_worker_h worker,
                                    ucp_st_waits_t *waits)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);
    const ucp_st_rma_awaited_t *awaited;
    ucp_st_rma_wait_t *wait;

    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_for_each(wait, &dev->waits, list) {
        awaited = ucp_st_rma_wait_first(wait);
        if ((awaited == NULL) || !ucp_st_waits_see(waits, &wait->look, 0)) {
            continue;
        }
        ucp_st_waits_begin_of(waits, worker, "a queue", &wait->look);
        ucp_st_rma_wait_describe(awaited, waits);
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
}

/* Streams that are at a quiet: all that was enqueued before has run */
static void ucp_st_rma_waits_quiet(ucp_st_queue_h queue, ucp_st_waits_t *waits)
{
    ucp_st_queue_rma_t *rma = ucp_st_queue_rma(queue);
    uint64_t seq            = __atomic_load_n(&rma->quiet_seq,
                                              __ATOMIC_RELAXED);
    uint64_t issued, ended;
    unsigned i;

    if ((ucp_st_queue_passed(queue) + 1 != seq) ||
        (ucp_st_queue_status(queue) != UCS_OK) ||
        !ucp_st_waits_see(waits, &rma->look, seq)) {
        return;
    }
    ucp_st_waits_begin_of(waits, queue->worker, "a quiet", &rma->look);
    ucp_st_waits_add(waits, "one-sided operations that have not ended:");
    for (i = UCP_ST_LANE_NONE + 1; i < UCP_ST_QUEUE_MAX_WAYS; ++i) {
        issued = ucp_st_queue_count(&rma->issued[i], 0);
        ended  = __atomic_load_n(ucp_st_rma_word(queue, i), __ATOMIC_RELAXED);
        if (issued > ended) {
            ucp_st_waits_add(waits, " %lu on lane %s", issued - ended,
                             ucp_st_lane_table[ucp_st_rma_way_lane(i)]->name);
        }
    }
}

void ucp_st_rma_waits(ucp_st_worker_h worker, ucp_st_waits_t *waits)
{
    ucp_st_queue_h queue;

    ucs_list_for_each(queue, &worker->queues, list) {
        ucp_st_rma_waits_quiet(queue, waits);
    }
    ucp_st_rma_waits_signal(worker, waits);
}

/* Why a wait will not pass, UCS_OK if it may */
static ucs_status_t ucp_st_rma_wait_status(const ucp_st_rma_wait_t *wait)
{
    const ucp_st_rma_awaited_t *awaited = wait->signals;

    for (; awaited < (wait->signals + wait->count); ++awaited) {
        if ((awaited->peer != NULL) && (awaited->peer->status != UCS_OK) &&
            !ucp_st_rma_awaited_is_met(awaited)) {
            return awaited->peer->status;
        }
    }
    return UCS_OK;
}

/* The queue of a wait whose peer is gone, if the queue has not failed; or NULL.
 * The queue stays while the stream waits, which nothing else ends. The lock is
 * held. */
static ucp_st_queue_h ucp_st_rma_wait_find_dead(ucp_st_rma_dev_t *dev,
                                                ucs_status_t *status_p)
{
    ucp_st_queue_h queue = NULL;
    ucp_st_rma_wait_t *wait;

    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_for_each(wait, &dev->waits, list) {
        *status_p = ucp_st_rma_wait_status(wait);
        if ((*status_p != UCS_OK) &&
            (ucp_st_queue_status(wait->queue) == UCS_OK)) {
            queue = wait->queue;
            break;
        }
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
    return queue;
}

void ucp_st_rma_wait_end_dead(ucp_st_worker_h worker)
{
    ucp_st_queue_h queue;
    ucs_status_t status;

    while ((queue = ucp_st_rma_wait_find_dead(ucp_st_rma_dev(worker),
                                              &status)) != NULL) {
        ucs_diag("queue %p: the peer of a wait for a signal is gone: %s", queue,
                 ucs_status_string(status));
        ++worker->stats.errors;
        ucp_st_queue_fail(queue, NULL, status);
    }
}

int ucp_st_rma_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_rma_dev_t *dev  = ucp_st_rma_dev(worker);

    ucp_st_worker_lock(worker);
    ucp_st_rma_wait_end_dead(worker);
    ucp_st_worker_unlock(worker);
    ucp_st_rma_look(worker);
    return (dev->is_untold &&
            (__atomic_load_n(&dev->sleepers, __ATOMIC_RELAXED) > 0)) ?
           UCP_ST_RMA_UNTOLD_MSEC : -1;
}

/* Check the parameters, and fill in `awaited` */
static ucs_status_t
ucp_st_rma_wait_check(ucp_st_queue_h queue,
                      const ucp_st_wait_signal_params_t *params,
                      ucp_st_rma_awaited_t *awaited)
{
    uint64_t mask = params->field_mask;
    size_t offset = (mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_OFFSET) ?
                    params->offset : 0;

    if (!(mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_MEMH) ||
        (params->memh == NULL)) {
        return ucp_st_rma_refuse(queue, "no memory with the signal");
    }
    awaited->peer = (mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER) ?
                    params->peer : NULL;
    if (awaited->peer == UCP_ST_PEER_ANY) {
        return ucp_st_rma_refuse(queue, "a wait cannot name any peer");
    }
    awaited->name   = (mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_NAME) ?
                      params->name : NULL;
    awaited->mem    = params->memh;
    awaited->signal = (const uint64_t*)(awaited->mem->address + offset);
    awaited->cmp    = (mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_CMP) ?
                      params->cmp : UCP_ST_SIGNAL_GE;
    awaited->value  = (mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_VALUE) ?
                      params->value : 0;
    if ((awaited->mem->worker != queue->worker) ||
        ((awaited->peer != NULL) && (awaited->peer->worker != queue->worker))) {
        return ucp_st_rma_refuse(queue, "a handle of another worker");
    }
    if ((unsigned)awaited->cmp > UCP_ST_SIGNAL_EQ) {
        return ucp_st_rma_refuse(queue, "unknown comparison");
    }
    if (!awaited->mem->memory.is_hosts) {
        /* The service thread looks at it, too */
        (void)ucp_st_rma_refuse(queue, "a wait for a signal needs its word in "
                                       "memory of the host");
        return UCS_ERR_UNSUPPORTED;
    }
    return ucp_st_rma_check_word(queue, (uintptr_t)awaited->mem->address,
                                 offset, awaited->mem->length);
}

/* Why a peer of the wait is gone, UCS_OK if none is */
static ucs_status_t ucp_st_rma_wait_check_peers(const ucp_st_rma_wait_t *wait)
{
    ucs_status_t status = UCS_OK;
    size_t i;

    ucp_st_worker_lock(wait->queue->worker);
    for (i = 0; (i < wait->count) && (status == UCS_OK); ++i) {
        if (wait->signals[i].peer != NULL) {
            status = wait->signals[i].peer->status;
        }
    }
    ucp_st_worker_unlock(wait->queue->worker);
    return status;
}

/* Have the stream begin the wait, wait, and give it back */
static ucs_status_t ucp_st_rma_wait_enqueue(ucp_st_rma_wait_t *wait)
{
    ucp_st_queue_h queue = wait->queue;
    size_t num_cmds      = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL,
                                            queue->cmds);
    ucs_gstream_cmd_t *cmd;

    wait->helper.func   = ucp_st_rma_wait_help;
    wait->helper.arg    = wait;
    wait->helper.notify = (queue->helper != NULL) ? queue->helper->notify :
                                                    &wait->notify;
    wait->is_helped     = !!(ucs_gstream_caps(queue->stream) &
                             UCS_GSTREAM_CAP_HELP);
    num_cmds           += ucp_st_queue_add_func(queue, ucp_st_rma_wait_begin,
                                                wait, 0,
                                                &queue->cmds[num_cmds]);
    cmd                 = &queue->cmds[num_cmds++];
    cmd->type           = UCS_GSTREAM_CMD_HELP64;
    cmd->u.word.address = wait->word;
    cmd->u.word.value   = 1;
    cmd->u.word.helper  = &wait->helper;
    num_cmds           += ucp_st_queue_add_func(queue, ucp_st_rma_wait_put,
                                                wait, 0,
                                                &queue->cmds[num_cmds]);
    num_cmds           += ucp_st_trace_cmd(UCP_ST_TRACE_SIGNAL_WAIT, NULL,
                                           &queue->cmds[num_cmds]);
    return ucp_st_queue_enqueue(queue, num_cmds);
}

ucs_status_t
ucp_st_enqueue_wait_signal(ucp_st_queue_h queue,
                           const ucp_st_wait_signal_params_t *params)
{
    return ucp_st_enqueue_wait_signals(queue, &params, 1);
}

ucs_status_t
ucp_st_enqueue_wait_signals(ucp_st_queue_h queue,
                            const ucp_st_wait_signal_params_t *const params[],
                            size_t count)
{
    ucs_status_t status = ucp_st_queue_prepare(queue, UCP_ST_RMA_WAIT_CMDS);
    ucp_st_rma_wait_t *wait;

    if ((status != UCS_OK) || (count == 0)) {
        return status;
    }
    if (params == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    wait = ucp_st_rma_wait_get(ucp_st_rma_dev(queue->worker), count);
    if (wait == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    wait->queue = queue;
    while ((wait->count < count) && (status == UCS_OK)) {
        status = (params[wait->count] == NULL) ?
                 UCS_ERR_INVALID_PARAM :
                 ucp_st_rma_wait_check(queue, params[wait->count],
                                       &wait->signals[wait->count]);
        wait->has_peer |= (wait->signals[wait->count].peer != NULL);
        ++wait->count;
    }
    if (status != UCS_OK) {
        ucp_st_rma_wait_free(wait);
        return status;
    }
    ucp_st_rma_wait_hold(wait, ucp_st_rma_hold);
    status = ucp_st_rma_wait_check_peers(wait);
    if (status == UCS_OK) {
        status = ucp_st_rma_wait_enqueue(wait);
    }
    if (!ucp_st_queue_is_submitted(queue, status)) {
        ucp_st_rma_wait_put(wait);
    }
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_queue_count(&ucp_st_queue_rma(queue)->signal_waits, 1);
    return UCS_OK;
}
