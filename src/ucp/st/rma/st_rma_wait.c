/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_wait.c - streams that wait for signals.
 *
 * A GPU's stream waits for the words of the signals itself where the caller
 * allows that these are stored to once the queue has failed, which ends the
 * wait (UCP_ST_WAIT_SIGNAL_FLAG_OVERWRITE). No thread looks at such a wait
 * unless something fails. A signal may come after that store and take its
 * place: so the service thread stores again until the stream has passed the
 * wait. Before the first store, what the queue has is stopped, and all queues
 * that wait for a signal in the same memory fail, too, as they may take the
 * store for the signal.
 *
 * Else the stream waits for a word of the library. The first thread that finds
 * that the wait may pass stores that word. It is the stream's thread, which
 * looks at the signal whenever it looks at the word; or the service thread,
 * once it knows of a signal or of an error. Before a stream sleeps it counts
 * itself among the sleepers, and looks once more. A thread that has carried a
 * signal out then looks for sleepers. Both use sequentially consistent
 * read-modify-writes of the count, of which one comes first: so one of the two
 * sees the other.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma_wait.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "core/st_stage.h"
#include "core/st_trace.h"
#include "core/st_watch.h"

#include <ucs_gstream_memory.h>
#include <ucs_gstream_move.h>

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* Begin, wait, end, and the span; or waits for as many words at most, and the
 * span */
#define UCP_ST_RMA_WAIT_CMDS (3 + UCP_ST_TRACE_MAX_CMDS)
#define UCP_ST_RMA_WAIT_MAX_WORDS 4096

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

/* An unused wait; NULL if there is none */
static ucp_st_rma_wait_t *ucp_st_rma_wait_find(ucp_st_rma_dev_t *dev)
{
    ucp_st_rma_wait_t *wait = NULL;

    (void)pthread_mutex_lock(&dev->wait_lock);
    if (!ucs_list_is_empty(&dev->free_waits)) {
        wait = ucs_list_extract_head(&dev->free_waits, ucp_st_rma_wait_t, list);
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
    return wait;
}

/* An unused wait, or a new one, with room for signals, of which all but that
 * and the word is 0; NULL without memory */
static ucp_st_rma_wait_t *ucp_st_rma_wait_get(ucp_st_worker_h worker,
                                              size_t count)
{
    ucp_st_rma_wait_t *wait = ucp_st_rma_wait_find(ucp_st_rma_dev(worker));

    if (wait == NULL) {
        ucp_st_rma_wait_reap(worker);
        wait = ucp_st_rma_wait_find(ucp_st_rma_dev(worker));
    }
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

/* Let a wait pass if it may; non-zero if so */
static int ucp_st_rma_wait_try(ucp_st_rma_wait_t *wait)
{
    if ((ucp_st_rma_wait_first(wait) != NULL) &&
        !ucp_st_queue_is_stopped(wait->queue)) {
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
        if (!wait->is_streams && ucp_st_rma_wait_try(wait)) {
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

void ucp_st_rma_look_for_kernels(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);

    if (!(__atomic_load_n(&dev->untold, __ATOMIC_RELAXED) &
          UCP_ST_RMA_UNTOLD_KERNEL) &&
        ucs_gstream_move_is_likely()) {
        /* A stream that has read 0 is counted when the thread looks */
        (void)__atomic_fetch_or(&dev->untold, UCP_ST_RMA_UNTOLD_KERNEL,
                                __ATOMIC_SEQ_CST);
        ucp_st_service_wake(&dev->service);
    }
}

/* The stream may sleep from now on. The service thread looks after the peer. */
static void ucp_st_rma_wait_sleep(ucp_st_rma_wait_t *wait, int is_notified)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(wait->queue->worker);
    int is_untold;

    if (wait->is_asleep) {
        return;
    }
    wait->is_asleep = 1;
    __atomic_fetch_add(&dev->sleepers, 1, __ATOMIC_SEQ_CST);
    ucp_st_direct_rma_sleep(wait->queue, is_notified);
    ucp_st_watch_begin(wait->queue->worker);
    is_untold = (__atomic_load_n(&dev->untold, __ATOMIC_SEQ_CST) != 0);
    if (is_untold) {
        (void)pthread_mutex_lock(&dev->wait_lock);
        dev->sleep_time = ucp_st_worker_now();
        (void)pthread_mutex_unlock(&dev->wait_lock);
    }
    if (wait->has_peer || is_untold) {
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
    ucs_status_t status;

    if (ucp_st_rma_wait_try(wait)) {
        return;
    }
    wait->is_listed = 1;
    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_add_tail(&dev->waits, &wait->list);
    status = ucp_st_rma_wait_mem_status(wait);
    (void)pthread_mutex_unlock(&dev->wait_lock);
    if (status != UCS_OK) { /* else what sets it finds the wait */
        ucp_st_service_wake(&dev->service);
    }
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

/* No thread looks at the words of a wait any more, which is in no list */
static void ucp_st_rma_wait_unuse(ucp_st_rma_dev_t *dev,
                                  ucp_st_rma_wait_t *wait)
{
    ucp_st_rma_wait_hold(wait, ucp_st_rma_release);
    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_add_head(&dev->free_waits, &wait->list);
    (void)pthread_mutex_unlock(&dev->wait_lock);
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
    ucp_st_rma_wait_unuse(dev, wait);
}

void ucp_st_rma_wait_reap(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);
    ucp_st_rma_wait_t *wait, *tmp;
    ucs_list_link_t over;

    ucs_list_head_init(&over);
    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_for_each_safe(wait, tmp, &dev->waits, list) {
        if (ucp_st_rma_wait_is_over(wait)) {
            ucs_list_del(&wait->list);
            ucs_list_add_tail(&over, &wait->list);
        }
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
    ucs_list_for_each_safe(wait, tmp, &over, list) {
        ucp_st_rma_wait_unuse(dev, wait);
    }
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
    uint64_t flags = (mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_FLAGS) ?
                     params->flags : 0;

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
    awaited->signal = (uint64_t*)(awaited->mem->address + offset);
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
    if (flags & ~(uint64_t)UCP_ST_WAIT_SIGNAL_FLAG_OVERWRITE) {
        return ucp_st_rma_refuse(queue, "unknown flag");
    }
    awaited->may_store = !!(flags & UCP_ST_WAIT_SIGNAL_FLAG_OVERWRITE);
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

    for (i = 0; (i < wait->count) && (status == UCS_OK); ++i) {
        if (wait->signals[i].peer != NULL) {
            status = wait->signals[i].peer->status;
        }
    }
    return status;
}

/* Check what may fail at any time. A wait that the stream does itself is found
 * by what fails from now on. */
static ucs_status_t ucp_st_rma_wait_list(ucp_st_rma_wait_t *wait)
{
    ucp_st_queue_h queue  = wait->queue;
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(queue->worker);
    ucs_status_t status;

    ucp_st_worker_lock(queue->worker);
    status = ucp_st_queue_status(queue);
    if (status == UCS_OK) {
        status = ucp_st_rma_wait_check_peers(wait);
    }
    if (status == UCS_OK) {
        status = ucp_st_rma_wait_mem_status(wait);
    }
    if ((status == UCS_OK) && wait->is_streams) {
        wait->seq       = queue->seq + 1;
        wait->is_listed = 1;
        (void)pthread_mutex_lock(&dev->wait_lock);
        ucs_list_add_tail(&dev->waits, &wait->list);
        (void)pthread_mutex_unlock(&dev->wait_lock);
    }
    ucp_st_worker_unlock(queue->worker);
    return status;
}

/* Whether a stream reaches the first and the last word of memory that is the
 * runtime's, and of which streams can wait for words: that is not managed */
static int ucp_st_rma_mem_has_words(const ucp_st_memh_t *mem,
                                    ucs_gstream_h stream)
{
    const uintptr_t size = sizeof(uint64_t);
    uintptr_t first      = ((uintptr_t)mem->address + size - 1) & ~(size - 1);
    uintptr_t last       = ((uintptr_t)mem->address + mem->length - size) &
                           ~(size - 1);

    return !mem->memory.is_managed &&
           ucs_gstream_reaches(stream, (uint64_t*)first) &&
           ucs_gstream_reaches(stream, (uint64_t*)last);
}

/* Whether a stream reaches all words of some memory. Finds that out once, which
 * may take long. */
static int ucp_st_rma_mem_is_reached(ucp_st_memh_t *mem, ucs_gstream_h stream)
{
    uint8_t *reach_p = &mem->reach[ucs_gstream_type(stream)];
    uint8_t reach    = __atomic_load_n(reach_p, __ATOMIC_RELAXED);

    if (mem->place.map != NULL) {
        return ucp_st_rma_place_find(&mem->place, stream) != NULL;
    }
    if (reach == UCP_ST_RMA_REACH_UNKNOWN) {
        reach = ucp_st_rma_mem_has_words(mem, stream) ? UCP_ST_RMA_REACH_YES :
                                                        UCP_ST_RMA_REACH_NO;
        __atomic_store_n(reach_p, reach, __ATOMIC_RELAXED);
    }
    return reach == UCP_ST_RMA_REACH_YES;
}

/* Whether the stream waits for the words of the signals itself */
static int ucp_st_rma_wait_is_for_stream(const ucp_st_rma_wait_t *wait)
{
    const ucp_st_rma_awaited_t *awaited = wait->signals;

    if (!ucp_st_queue_is_gpu(wait->queue) ||
        (wait->count > UCP_ST_RMA_WAIT_MAX_WORDS)) {
        return 0;
    }
    for (; awaited < (wait->signals + wait->count); ++awaited) {
        if (!awaited->may_store || (awaited->cmp != UCP_ST_SIGNAL_GE) ||
            (awaited->value >= UCP_ST_RELEASE) ||
            !ucp_st_rma_mem_is_reached(awaited->mem, wait->queue->stream)) {
            return 0;
        }
    }
    return 1;
}

/* Have the stream wait for the words of the signals */
static ucs_status_t ucp_st_rma_wait_enqueue_words(ucp_st_rma_wait_t *wait)
{
    ucp_st_queue_h queue = wait->queue;
    size_t num_cmds      = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL,
                                            queue->cmds);
    size_t i;

    for (i = 0; i < wait->count; ++i) {
        queue->words[i].address = wait->signals[i].signal;
        queue->words[i].value   = wait->signals[i].value;
    }
    num_cmds += ucp_st_queue_add_waits(queue, wait->count,
                                       &queue->cmds[num_cmds]);
    num_cmds += ucp_st_trace_cmd(UCP_ST_TRACE_SIGNAL_WAIT, NULL,
                                 &queue->cmds[num_cmds]);
    ucp_st_watch_begin(queue->worker);
    return ucp_st_queue_enqueue(queue, num_cmds);
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
    size_t max_words    = ucs_min(count, UCP_ST_RMA_WAIT_MAX_WORDS);
    ucs_status_t status = ucp_st_queue_prepare(queue, UCP_ST_RMA_WAIT_CMDS +
                                                      max_words);
    ucp_st_rma_wait_t *wait;

    if ((status != UCS_OK) || (count == 0)) {
        return status;
    }
    if (params == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    wait = ucp_st_rma_wait_get(queue->worker, count);
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
    wait->is_streams = ucp_st_rma_wait_is_for_stream(wait);
    status           = ucp_st_rma_wait_list(wait);
    if (status == UCS_OK) {
        status = wait->is_streams ? ucp_st_rma_wait_enqueue_words(wait) :
                                    ucp_st_rma_wait_enqueue(wait);
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
