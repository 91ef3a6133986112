/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_wait_end.c - waits for signals that do not come: what they wait for,
 * and how they end.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma_wait.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_op.h"

/* How often the service thread looks for signals that come without a
 * notification, milliseconds; those of kernels every few microseconds in the
 * first time of a wait, seconds, as for callbacks */
#define UCP_ST_RMA_UNTOLD_MSEC 1
#define UCP_ST_RMA_SOON        10e-3

/* How often it stores to words of queues that have failed, milliseconds */
#define UCP_ST_RMA_RELEASE_MSEC 1

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
        awaited = ucp_st_rma_wait_is_over(wait) ? NULL :
                                                  ucp_st_rma_wait_first(wait);
        if (awaited == NULL) {
            continue;
        }
        if (wait->is_streams &&
            (ucp_st_queue_passed(wait->queue) + 1 < wait->seq)) {
            ++waits->count; /* when the stream comes to it is unknown */
            continue;
        }
        if (!ucp_st_waits_see(waits, &wait->look, 0)) {
            continue;
        }
        ucp_st_waits_begin_of(waits, worker, "a queue", &wait->look);
        ucp_st_rma_wait_describe(awaited, waits);
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
}

/* Operations on a way that have not ended */
static uint64_t ucp_st_rma_waits_count(ucp_st_queue_h queue, unsigned way)
{
    uint64_t issued = ucp_st_queue_count(&ucp_st_queue_rma(queue)->issued[way],
                                         0);
    uint64_t ended  = __atomic_load_n(ucp_st_rma_word(queue, way),
                                      __ATOMIC_RELAXED);

    return (issued > ended) ? (issued - ended) : 0;
}

/* Streams that are at a quiet: all that was enqueued before has run, or what
 * the quiet does not wait for */
static void ucp_st_rma_waits_quiet(ucp_st_queue_h queue, ucp_st_waits_t *waits)
{
    ucp_st_queue_rma_t *rma = ucp_st_queue_rma(queue);
    uint64_t seq            = __atomic_load_n(&rma->quiet_seq,
                                              __ATOMIC_RELAXED);
    uint64_t count          = 0;
    unsigned i;

    for (i = UCP_ST_LANE_NONE + 1; i < UCP_ST_QUEUE_MAX_WAYS; ++i) {
        count += ucp_st_rma_waits_count(queue, i);
    }
    if ((count == 0) || (ucp_st_queue_passed(queue) + 1 != seq) ||
        (ucp_st_queue_status(queue) != UCS_OK) ||
        !ucp_st_waits_see(waits, &rma->look, seq)) {
        return;
    }
    ucp_st_waits_begin_of(waits, queue->worker, "a quiet", &rma->look);
    ucp_st_waits_add(waits, "one-sided operations that have not ended:");
    for (i = UCP_ST_LANE_NONE + 1; i < UCP_ST_QUEUE_MAX_WAYS; ++i) {
        count = ucp_st_rma_waits_count(queue, i);
        if (count > 0) {
            ucp_st_waits_add(waits, " %lu on lane %s", count,
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

/* Why a wait will not pass, UCS_OK if it may, or has */
static ucs_status_t ucp_st_rma_wait_status(const ucp_st_rma_wait_t *wait)
{
    const ucp_st_rma_awaited_t *awaited = wait->signals;
    ucs_status_t status;

    if (ucp_st_rma_wait_is_over(wait)) {
        return UCS_OK;
    }
    status = ucp_st_rma_wait_mem_status(wait);
    if (status != UCS_OK) {
        return status;
    }
    for (; awaited < (wait->signals + wait->count); ++awaited) {
        if ((awaited->peer != NULL) && (awaited->peer->status != UCS_OK) &&
            !ucp_st_rma_awaited_is_met(awaited)) {
            return awaited->peer->status;
        }
    }
    return UCS_OK;
}

/* The queue of a wait that will not pass, if the queue has not failed; or NULL.
 * The queue stays while the lock is held. */
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
        ucs_diag("queue %p: a signal that it waits for does not come: %s",
                 queue, ucs_status_string(status));
        ++worker->stats.errors;
        ucp_st_queue_fail(queue, NULL, status);
    }
}

/* The status of a queue, if its stream is not over a wait that it does itself,
 * for signals of which some have not come; else UCS_OK */
static ucs_status_t ucp_st_rma_wait_error(const ucp_st_rma_wait_t *wait)
{
    return (wait->is_streams && !ucp_st_rma_wait_is_over(wait)) ?
           ucp_st_queue_status(wait->queue) : UCS_OK;
}

void ucp_st_rma_wait_queue_fail(ucp_st_queue_h queue)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(queue->worker);
    ucp_st_rma_wait_t *wait;
    ucs_status_t status;
    size_t i;

    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_for_each(wait, &dev->waits, list) {
        status = ucp_st_rma_wait_error(wait);
        if (status == UCS_OK) {
            continue;
        }
        for (i = 0; i < wait->count; ++i) {
            if ((ucp_st_rma_mem_status(wait->signals[i].mem) == UCS_OK) &&
                !ucp_st_rma_awaited_is_met(&wait->signals[i])) {
                __atomic_store_n(&wait->signals[i].mem->status, status,
                                 __ATOMIC_RELAXED);
            }
        }
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
    ucp_st_rma_wait_end_dead(queue->worker);
    ucp_st_service_wake(&dev->service);
}

/* Let streams pass the waits that they do themselves, and whose queues have
 * failed; non-zero while some have not. What the queues have is stopped, as the
 * worker's lock is held. */
static int ucp_st_rma_wait_release(ucp_st_rma_dev_t *dev)
{
    int is_left = 0;
    ucp_st_rma_awaited_t *awaited;
    ucp_st_rma_wait_t *wait;

    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_for_each(wait, &dev->waits, list) {
        if (ucp_st_rma_wait_error(wait) == UCS_OK) {
            continue;
        }
        is_left = 1;
        for (awaited = wait->signals; awaited < (wait->signals + wait->count);
             ++awaited) {
            if (__atomic_load_n(awaited->signal, __ATOMIC_RELAXED) <
                awaited->value) {
                __atomic_store_n(awaited->signal, UCP_ST_RELEASE,
                                 __ATOMIC_RELEASE);
            }
        }
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
    return is_left;
}

/* When to look for signals that come without a notification */
static int ucp_st_rma_untold_pace(ucp_st_rma_dev_t *dev)
{
    unsigned untold = __atomic_load_n(&dev->untold, __ATOMIC_RELAXED);
    int is_soon;

    if ((untold == 0) ||
        (__atomic_load_n(&dev->sleepers, __ATOMIC_SEQ_CST) == 0)) {
        return -1;
    }
    (void)pthread_mutex_lock(&dev->wait_lock);
    is_soon = ((ucp_st_worker_now() - dev->sleep_time) < UCP_ST_RMA_SOON);
    (void)pthread_mutex_unlock(&dev->wait_lock);
    return (is_soon && (untold & UCP_ST_RMA_UNTOLD_KERNEL)) ?
           UCP_ST_SERVICE_SOON : UCP_ST_RMA_UNTOLD_MSEC;
}

int ucp_st_rma_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_rma_dev_t *dev  = ucp_st_rma_dev(worker);
    int is_left;

    ucp_st_worker_lock(worker);
    ucp_st_rma_wait_end_dead(worker);
    is_left = ucp_st_rma_wait_release(dev);
    ucp_st_worker_unlock(worker);
    ucp_st_rma_look(worker);
    if (is_left) {
        return UCP_ST_RMA_RELEASE_MSEC;
    }
    return ucp_st_rma_untold_pace(dev);
}
