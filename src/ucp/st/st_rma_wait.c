/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_wait.c - streams that wait for signals.
 *
 * The stream waits for a word of the library's own, which is stored by who
 * first finds that the wait may pass: the stream, which looks at the signal
 * whenever it looks at that word, or the service thread, when it knows of a
 * signal or of an error. Before a stream sleeps it counts itself among the
 * sleepers, and looks once more; who carries a signal out looks for sleepers
 * after that. Of the fences between one comes first: one of the two sees the
 * other.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_rma.h"
#include "st_lane.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_peer.h"
#include "st_queue.h"
#include "st_rma_direct.h"
#include "st_rma_host.h"
#include "st_rma_trig.h"
#include "st_trace.h"
#include "st_ucp.h"
#include "st_worker.h"

#include <stdlib.h>
#include <string.h>

/* Begin, wait, end, and the span */
#define UCP_ST_RMA_WAIT_CMDS (3 + UCP_ST_TRACE_MAX_CMDS)

/* How often it is looked for signals that nobody tells of, milliseconds */
#define UCP_ST_RMA_UNTOLD_MSEC 1

/** A wait. Read-only but for what says otherwise. */
typedef struct ucp_st_rma_wait {
    ucs_list_link_t      list;       /* in the worker's; wait_lock */
    ucp_st_queue_h       queue;
    ucp_st_memh_t        *mem;       /* held */
    ucp_st_peer_h        peer;       /* or NULL */
    const uint64_t       *signal;
    uint64_t             value;
    ucp_st_signal_cmp_t  cmp;
    volatile uint64_t    word;       /* 1: it passes; atomic */
    uint8_t              is_listed;  /* the stream's */
    uint8_t              is_sleepy;  /* counted as a sleeper; the stream's */
    uint8_t              is_reached; /* the service thread's */
    ucs_gstream_helper_t helper;
    ucs_gstream_bell_t   bell;       /* of a stream that has no other; its own
                                        */
} ucp_st_rma_wait_t;

static int ucp_st_rma_wait_is_met(const ucp_st_rma_wait_t *wait)
{
    /* Pairs with the release of who signals: the data is there */
    uint64_t signal = __atomic_load_n(wait->signal, __ATOMIC_ACQUIRE);

    return (wait->cmp == UCP_ST_SIGNAL_EQ) ? (signal == wait->value) :
                                             (signal >= wait->value);
}

/* Let it pass, if it may */
static int ucp_st_rma_wait_try(ucp_st_rma_wait_t *wait)
{
    if (!ucp_st_rma_wait_is_met(wait) &&
        (ucp_st_queue_status(wait->queue) == UCS_OK)) {
        return 0;
    }
    __atomic_store_n(&wait->word, 1, __ATOMIC_RELEASE);
    return 1;
}

void ucp_st_rma_look(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = &worker->rma;
    ucp_st_rma_wait_t *wait;

    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_for_each(wait, &dev->waits, list) {
        if (ucp_st_rma_wait_try(wait)) {
            ucs_gstream_wake(&wait->word);
        }
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
}

void ucp_st_rma_signaled(ucp_st_worker_h worker)
{
    /* Pairs with the addition in ucp_st_rma_wait_doze(): who does not see the
     * other's is seen */
    if (__atomic_fetch_add(&worker->rma.sleepers, 0, __ATOMIC_SEQ_CST) > 0) {
        ucp_st_rma_look(worker);
    }
}

/* A NIC may write signals that nobody tells of */
static int ucp_st_rma_wait_is_untold(ucp_st_worker_h worker)
{
    return (worker->trig.num_rails > 0) && !worker->trig.helped;
}

/* What sleeps on the bell of a desk that peers know */
static int ucp_st_rma_wait_has_desk(const ucp_st_rma_wait_t *wait)
{
    return (wait->queue->direct != NULL) &&
           (wait->queue->direct->handle != NULL);
}

/* The stream may sleep from now on. The service thread looks after the peer. */
static void ucp_st_rma_wait_doze(ucp_st_rma_wait_t *wait, int is_on_bell)
{
    ucp_st_rma_dev_t *dev = &wait->queue->worker->rma;

    if (wait->is_sleepy) {
        return;
    }
    wait->is_sleepy = 1;
    __atomic_fetch_add(&dev->sleepers, 1, __ATOMIC_SEQ_CST);
    if (wait->queue->direct != NULL) {
        ucp_st_rma_direct_doze(wait->queue,
                               is_on_bell && ucp_st_rma_wait_has_desk(wait));
    }
    if ((wait->peer != NULL) ||
        ucp_st_rma_wait_is_untold(wait->queue->worker)) {
        ucp_st_service_wake(&dev->service);
    }
}

static void ucp_st_rma_wait_rouse(ucp_st_rma_wait_t *wait)
{
    if (!wait->is_sleepy) {
        return;
    }
    wait->is_sleepy = 0;
    if (wait->queue->direct != NULL) {
        ucp_st_rma_direct_rouse(wait->queue);
    }
    __atomic_fetch_sub(&wait->queue->worker->rma.sleepers, 1, __ATOMIC_SEQ_CST);
}

/* Called for the stream while it waits */
static int ucp_st_rma_wait_help(void *arg, ucs_gstream_help_t when)
{
    ucp_st_rma_wait_t *wait = arg;
    int has_moved           = 0;
    const ucs_gstream_helper_t *helper;

    if (ucp_st_rma_wait_has_desk(wait)) {
        helper    = &wait->queue->direct->helper;
        has_moved = helper->func(helper->arg, when);
    }
    if (when == UCS_GSTREAM_HELP_END) {
        ucp_st_rma_wait_rouse(wait);
        return has_moved;
    }
    if ((when == UCS_GSTREAM_HELP_LAST) || (when == UCS_GSTREAM_HELP_PARK)) {
        ucp_st_rma_wait_doze(wait, when == UCS_GSTREAM_HELP_LAST);
    }
    if (ucp_st_rma_wait_try(wait) && (when == UCS_GSTREAM_HELP_PARK)) {
        ucs_gstream_wake(&wait->word);
    }
    return has_moved;
}

/* Runs on the stream */
static void ucp_st_rma_wait_begin(void *arg)
{
    ucp_st_rma_wait_t *wait = arg;
    ucp_st_rma_dev_t *dev   = &wait->queue->worker->rma;

    if (ucp_st_rma_wait_try(wait)) {
        return;
    }
    wait->is_listed = 1;
    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_add_tail(&dev->waits, &wait->list);
    (void)pthread_mutex_unlock(&dev->wait_lock);
    /* Its queue may have failed before anybody saw it in the list */
    (void)ucp_st_rma_wait_try(wait);
}

/* Give a wait back that is in no list */
static void ucp_st_rma_wait_put(ucp_st_rma_wait_t *wait)
{
    ucp_st_rma_dev_t *dev = &wait->queue->worker->rma;

    ucp_st_rma_release(&wait->mem->refs);
    if (wait->peer != NULL) {
        ucp_st_rma_release(&wait->peer->rma_waits);
    }
    (void)pthread_mutex_lock(&dev->wait_lock);
    if (wait->is_listed) {
        ucs_list_del(&wait->list);
    }
    ucs_list_add_head(&dev->free_waits, &wait->list);
    (void)pthread_mutex_unlock(&dev->wait_lock);
}

/* Runs on the stream */
static void ucp_st_rma_wait_end(void *arg)
{
    ucp_st_rma_wait_put(arg);
}

/* One whose peer is gone and whose queue does not know; its queue stays as long
 * as the stream waits there, which nothing else ends. The lock is held. */
static ucp_st_queue_h ucp_st_rma_wait_find_dead(ucp_st_rma_dev_t *dev,
                                                ucs_status_t *status_p)
{
    ucp_st_queue_h queue = NULL;
    ucp_st_rma_wait_t *wait;

    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_for_each(wait, &dev->waits, list) {
        if ((wait->peer != NULL) && (wait->peer->status != UCS_OK) &&
            (ucp_st_queue_status(wait->queue) == UCS_OK) &&
            !ucp_st_rma_wait_is_met(wait)) {
            queue     = wait->queue;
            *status_p = wait->peer->status;
            break;
        }
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
    return queue;
}

static void ucp_st_rma_wait_end_dead(ucp_st_worker_h worker)
{
    ucp_st_queue_h queue;
    ucs_status_t status;

    while ((queue = ucp_st_rma_wait_find_dead(&worker->rma, &status)) != NULL) {
        ucs_diag("queue %p: the peer of a wait for a signal is gone: %s", queue,
                 ucs_status_string(status));
        ++worker->stats.errors;
        ucp_st_queue_fail(queue, NULL, status);
    }
}

/* Operations that streams have not come to, and that nobody else ends */
static void ucp_st_rma_fail_flows(ucp_st_peer_t *peer)
{
    ucp_st_queue_h queue;
    ucp_st_rma_flow_t *flow;

    ucs_list_for_each(queue, &peer->worker->queues, list) {
        ucs_list_for_each(flow, &queue->rma.flows, list) {
            if ((flow->peer == peer) &&
                (flow->last[UCP_ST_LANE_DIRECT] >
                 __atomic_load_n(&queue->rma.words[UCP_ST_LANE_DIRECT],
                                 __ATOMIC_ACQUIRE))) {
                ucp_st_queue_fail(queue, NULL, peer->status);
            }
        }
    }
}

void ucp_st_rma_peer_gone(ucp_st_peer_t *peer)
{
    ucp_st_rma_wait_end_dead(peer->worker);
    ucp_st_rma_fail_flows(peer);
    ucp_st_rma_host_peer_gone(peer);
    ucp_st_rma_trig_peer_gone(peer);
}

/* One whose peer was not looked at yet; it stays at least until the next call
 */
static ucp_st_peer_h ucp_st_rma_wait_next_peer(ucp_st_rma_dev_t *dev)
{
    ucp_st_peer_h peer = NULL;
    ucp_st_rma_wait_t *wait;

    (void)pthread_mutex_lock(&dev->wait_lock);
    ucs_list_for_each(wait, &dev->waits, list) {
        if ((wait->peer != NULL) && !wait->is_reached) {
            wait->is_reached = 1;
            peer             = wait->peer;
            break;
        }
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
    return peer;
}

/* Over lane host nobody hears of a peer's end who has no endpoint to it */
static void ucp_st_rma_wait_reach(ucp_st_worker_h worker)
{
    ucs_status_t status;
    ucp_st_peer_h peer;
    ucp_ep_h ep;

    while ((peer = ucp_st_rma_wait_next_peer(&worker->rma)) != NULL) {
        if (!(peer->lanes & UCS_BIT(UCP_ST_LANE_HOST))) {
            continue;
        }
        status = ucp_st_host_dev_notice_ep(peer, &ep);
        if (status == UCS_OK) {
            ucp_st_service_wake(&worker->host.service);
        } else if (!ucp_st_ucp_is_local(status)) {
            ucp_st_worker_lock(worker);
            ucp_st_leave_lost(peer, status);
            ucp_st_worker_unlock(worker);
        }
    }
}

/* In the service thread */
static int ucp_st_rma_serve(void *arg)
{
    ucp_st_worker_h worker = arg;

    ucp_st_worker_lock(worker);
    ucp_st_rma_wait_end_dead(worker);
    ucp_st_worker_unlock(worker);
    ucp_st_rma_wait_reach(worker);
    ucp_st_rma_look(worker);
    return (ucp_st_rma_wait_is_untold(worker) &&
            (__atomic_load_n(&worker->rma.sleepers, __ATOMIC_RELAXED) > 0)) ?
           UCP_ST_RMA_UNTOLD_MSEC : -1;
}

void ucp_st_rma_init(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = &worker->rma;

    kh_init_inplace(ucp_st_mems, &dev->mems);
    ucs_list_head_init(&dev->ready);
    ucs_list_head_init(&dev->free_ops);
    ucs_list_head_init(&dev->free_trig_ops);
    ucs_list_head_init(&dev->trigs);
    ucs_list_head_init(&dev->waits);
    ucs_list_head_init(&dev->free_waits);
    (void)pthread_mutex_init(&dev->wait_lock, NULL);
}

ucs_status_t ucp_st_rma_serve_start(ucp_st_worker_h worker)
{
    worker->rma.service.serve = ucp_st_rma_serve;
    worker->rma.service.arg   = worker;
    return ucp_st_service_add(&worker->rma.service);
}

void ucp_st_rma_serve_stop(ucp_st_worker_h worker)
{
    ucp_st_service_remove(&worker->rma.service);
}

void ucp_st_rma_cleanup(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = &worker->rma;

    while (!ucs_list_is_empty(&dev->free_waits)) {
        free(ucs_list_extract_head(&dev->free_waits, ucp_st_rma_wait_t, list));
    }
    ucp_st_rma_host_cleanup(worker);
    ucp_st_rma_trig_cleanup(worker);
    kh_destroy_inplace(ucp_st_mems, &dev->mems);
    (void)pthread_mutex_destroy(&dev->wait_lock);
}

static ucp_st_rma_wait_t *ucp_st_rma_wait_get(ucp_st_rma_dev_t *dev)
{
    ucp_st_rma_wait_t *wait = NULL;

    (void)pthread_mutex_lock(&dev->wait_lock);
    if (!ucs_list_is_empty(&dev->free_waits)) {
        wait = ucs_list_extract_head(&dev->free_waits, ucp_st_rma_wait_t, list);
    }
    (void)pthread_mutex_unlock(&dev->wait_lock);
    if (wait == NULL) {
        wait = malloc(sizeof(*wait));
    }
    if (wait != NULL) {
        memset(wait, 0, sizeof(*wait));
    }
    return wait;
}

static ucs_status_t ucp_st_rma_wait_refuse(ucp_st_queue_h queue,
                                           const char *what)
{
    ucs_error("queue %p: wait for a signal: %s", queue, what);
    return UCS_ERR_INVALID_PARAM;
}

/* Fill `wait` in with what is good */
static ucs_status_t
ucp_st_rma_wait_check(ucp_st_queue_h queue,
                      const ucp_st_wait_signal_params_t *params,
                      ucp_st_rma_wait_t *wait)
{
    uint64_t mask = params->field_mask;
    size_t offset = (mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_OFFSET) ?
                    params->offset : 0;

    if (!(mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_MEMH) ||
        (params->memh == NULL)) {
        return ucp_st_rma_wait_refuse(queue, "no memory");
    }
    if (mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER) {
        wait->peer = params->peer;
    }
    if (wait->peer == UCP_ST_PEER_ANY) {
        return ucp_st_rma_wait_refuse(queue, "any peer");
    }
    wait->queue  = queue;
    wait->mem    = params->memh;
    wait->signal = (const uint64_t*)(wait->mem->address + offset);
    wait->cmp    = (mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_CMP) ?
                   params->cmp : UCP_ST_SIGNAL_GE;
    wait->value  = (mask & UCP_ST_WAIT_SIGNAL_PARAM_FIELD_VALUE) ?
                   params->value : 0;
    if ((wait->mem->worker != queue->worker) ||
        ((wait->peer != NULL) && (wait->peer->worker != queue->worker))) {
        return ucp_st_rma_wait_refuse(queue, "a handle of another worker");
    }
    if ((unsigned)wait->cmp > UCP_ST_SIGNAL_EQ) {
        return ucp_st_rma_wait_refuse(queue, "unknown comparison");
    }
    if (!ucp_st_rma_is_inside(offset, sizeof(*wait->signal),
                              wait->mem->length)) {
        return ucp_st_rma_wait_refuse(queue, "signal outside the memory");
    }
    return (((uintptr_t)wait->signal % sizeof(*wait->signal)) != 0) ?
           ucp_st_rma_wait_refuse(queue, "misaligned signal") : UCS_OK;
}

static void ucp_st_rma_wait_set_helper(ucp_st_rma_wait_t *wait)
{
    wait->helper.func = ucp_st_rma_wait_help;
    wait->helper.arg  = wait;
    wait->helper.bell = ucp_st_rma_wait_has_desk(wait) ?
                        wait->queue->direct->helper.bell : &wait->bell;
}

static size_t ucp_st_rma_wait_func_cmd(ucp_st_rma_wait_t *wait,
                                       ucs_gstream_func_t func,
                                       ucs_gstream_cmd_t *cmd)
{
    cmd->type        = UCS_GSTREAM_CMD_FUNC;
    cmd->u.func.func = func;
    cmd->u.func.arg  = wait;
    return 1;
}

static ucs_status_t ucp_st_rma_wait_enqueue(ucp_st_rma_wait_t *wait)
{
    ucp_st_queue_h queue    = wait->queue;
    ucs_gstream_cmd_t *cmds = queue->cmds;
    size_t num_cmds;

    num_cmds  = ucp_st_trace_cmd(UCP_ST_TRACE_PUSH, NULL, cmds);
    num_cmds += ucp_st_rma_wait_func_cmd(wait, ucp_st_rma_wait_begin,
                                         &cmds[num_cmds]);
    cmds[num_cmds].type           = UCS_GSTREAM_CMD_HELP64;
    cmds[num_cmds].u.word.address = &wait->word;
    cmds[num_cmds].u.word.value   = 1;
    cmds[num_cmds].u.word.helper  = &wait->helper;
    ++num_cmds;
    num_cmds += ucp_st_rma_wait_func_cmd(wait, ucp_st_rma_wait_end,
                                         &cmds[num_cmds]);
    num_cmds += ucp_st_trace_cmd(UCP_ST_TRACE_SIGNAL_WAIT, NULL,
                                 &cmds[num_cmds]);
    return ucp_st_queue_enqueue(queue, num_cmds);
}

/* The wait is the stream's, or given back */
static ucs_status_t ucp_st_rma_wait_start(ucp_st_rma_wait_t *wait)
{
    ucs_status_t status = UCS_OK;

    ucp_st_rma_wait_set_helper(wait);
    ucp_st_rma_hold(&wait->mem->refs);
    if (wait->peer != NULL) {
        ucp_st_rma_hold(&wait->peer->rma_waits);
        ucp_st_worker_lock(wait->queue->worker);
        status = wait->peer->status;
        ucp_st_worker_unlock(wait->queue->worker);
    }
    if (status == UCS_OK) {
        status = ucp_st_rma_wait_enqueue(wait);
    }
    if (status != UCS_OK) {
        ucp_st_rma_wait_put(wait);
    }
    return status;
}

ucs_status_t
ucp_st_enqueue_wait_signal(ucp_st_queue_h queue,
                           const ucp_st_wait_signal_params_t *params)
{
    ucs_status_t status = ucp_st_queue_prepare(queue, UCP_ST_RMA_WAIT_CMDS);
    ucp_st_rma_wait_t *wait;

    if (status != UCS_OK) {
        return status;
    }
    if (params == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    wait = ucp_st_rma_wait_get(&queue->worker->rma);
    if (wait == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucp_st_rma_wait_check(queue, params, wait);
    if (status != UCS_OK) {
        free(wait);
        return status;
    }
    status = ucp_st_rma_wait_start(wait);
    if (status == UCS_OK) {
        ucp_st_queue_count(&queue->rma.counts[UCP_ST_RMA_COUNT_WAIT], 1);
    }
    return status;
}
