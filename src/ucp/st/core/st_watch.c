/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_watch.c - the service thread, and a host that makes calls, look after
 * peers, and after what waits for them.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_watch.h"
#include "core/st_answer.h"
#include "core/st_lane.h"
#include "core/st_leave.h"
#include "core/st_op.h"
#include "core/st_waits.h"
#include "ctrl/st_ctrl.h"

#include <ucs/sys/math.h>

#include <math.h>

/* Looks for what waits are so far apart, seconds, unless warnings are to come
 * sooner */
#define UCP_ST_WATCH_LOOK_TIME 1.0

/* Warnings that are to come sooner than this have it looked no more often,
 * seconds */
#define UCP_ST_WATCH_MIN_TIME 10e-3

void ucp_st_watch_ask_peer(ucp_st_peer_t *peer)
{
    ucp_st_watch_t *watch = ucp_st_watch(peer->worker);

    if (peer != watch->last_asked) {
        watch->last_asked = peer;
        ucp_st_ctrl_ping(peer);
        ucp_st_peer_check(peer);
    }
}

/* Ask about the peers that operations wait for */
static void ucp_st_watch_ask_ops(ucp_st_worker_h worker)
{
    ucp_st_op_t *op;

    ucs_list_for_each(op, &worker->ops, list) {
        if (ucp_st_peer_is_real(op->peer) &&
            (ucp_st_op_is_matching(op) ||
             (op->started > ucp_st_op_uses_ended(op)))) {
            ucp_st_watch_ask_peer(op->peer);
        }
    }
}

unsigned ucp_st_watch_look(ucp_st_worker_h worker, int is_forced)
{
    ucp_st_watch_t *watch = ucp_st_watch(worker);
    double age            = (worker->config.warn_time > 0) ?
                            worker->config.warn_time : INFINITY;
    char text[UCP_ST_WAITS_WARN_SIZE];
    ucp_st_waits_t waits;
    unsigned count;

    ucp_st_waits_init(&waits, text, sizeof(text), age);
    ucp_st_worker_lock(worker);
    if (is_forced || ((waits.now - watch->look_time) >= watch->look_interval)) {
        ucp_st_waits_look(worker, &waits);
        watch->look_time  = waits.now;
        watch->look_count = waits.count;
    }
    count = watch->look_count;
    ucp_st_worker_unlock(worker);
    ucp_st_waits_warn(&waits);
    return count;
}

/* Non-zero while a NIC still holds operations with a peer that is gone */
static int ucp_st_watch_has_rest(const ucp_st_peer_t *peer)
{
    ucp_st_op_t *op;

    if (peer->status == UCS_OK) {
        return 0;
    }
    ucs_list_for_each(op, &peer->ops, peer_list) {
        if ((op->state == UCP_ST_OP_FAILED) && ucp_st_lanes_are_busy(op)) {
            return 1;
        }
    }
    return 0;
}

int ucp_st_watch_ask(ucp_st_worker_h worker, int is_time)
{
    int is_needed = 0;
    ucp_st_peer_t *peer;

    ucs_list_for_each(peer, &worker->peers, list) {
        /* Streams may come to wait for a peer that is there. One that is gone
         * is to be told that, NICs may still reach it, or hold operations. */
        if (!(peer->connected && !peer->is_self &&
              ((peer->status == UCS_OK) || !peer->closed ||
               ucp_st_ctrl_is_sending(peer))) &&
            !ucp_st_watch_has_rest(peer)) {
            continue;
        }
        is_needed = 1;
        if (!is_time) {
            break; /* Each peer that comes or goes has this called */
        }
        if ((peer->status != UCS_OK) || ucp_st_leave_is_awaited(peer)) {
            ucp_st_ctrl_ping(peer);
            ucp_st_peer_check(peer);
        }
    }
    return is_needed;
}

/* While there are peers the thread looks at them at a fixed, slow pace: a start
 * need not wake it because a stream may wait from now on. The same pace, and
 * without peers as long as something waits, has it look for what waits. */
static int ucp_st_watch_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_watch_t *watch  = ucp_st_watch(worker);
    double interval        = watch->interval;
    double now             = ucp_st_worker_now();
    double left            = watch->asked_time + interval - now;
    int is_needed, next;

    /* Stored before the look: what begins to wait after it reads 0 and wakes
     * this thread, as both take a lock */
    __atomic_store_n(&watch->is_watching, 0, __ATOMIC_RELAXED);
    ucp_st_worker_lock(worker);
    is_needed = ucp_st_watch_ask(worker, left <= 0);
    if (is_needed && (left <= 0)) {
        /* UCP may have refused to be slept on, or had no memory */
        ucp_st_net_wake(worker);
    }
    next = ucp_st_leave_look(worker);
    ucp_st_worker_unlock(worker);
    if ((left <= 0) || !is_needed) {
        is_needed |= (ucp_st_watch_look(worker, !is_needed) > 0);
    }
    __atomic_store_n(&watch->is_watching, is_needed, __ATOMIC_RELAXED);
    if (left <= 0) {
        watch->asked_time = now;
        left             = interval;
    }
    if (!is_needed) {
        return next;
    }
    left = ucs_min(1 + (left * 1e3), 1e6);
    return (next < 0) ? (int)left : ucs_min(next, (int)left);
}

void ucp_st_watch_begin(ucp_st_worker_h worker)
{
    if (!__atomic_load_n(&ucp_st_watch(worker)->is_watching,
                         __ATOMIC_RELAXED)) {
        ucp_st_watch_wake(worker);
    }
}

static void ucp_st_watch_init(ucp_st_worker_h worker)
{
    ucp_st_watch_t *watch = ucp_st_watch(worker);
    double warn_time      = worker->config.warn_time;

    ucs_list_head_init(&watch->going_peers);
    watch->interval      = worker->config.ping_interval;
    watch->look_interval = UCP_ST_WATCH_LOOK_TIME;
    if (warn_time > 0) {
        warn_time            = ucs_max(warn_time, UCP_ST_WATCH_MIN_TIME);
        watch->interval      = ucs_min(watch->interval, warn_time);
        watch->look_interval = ucs_min(watch->look_interval, warn_time / 8);
    }
    ucp_st_callback_init(worker);
}

static void ucp_st_watch_cleanup(ucp_st_worker_h worker)
{
    ucp_st_callback_cleanup(worker);
}

static ucs_status_t ucp_st_watch_open(ucp_st_worker_h worker)
{
    ucp_st_watch_t *watch = ucp_st_watch(worker);
    ucs_status_t status;

    status = ucp_st_callback_start(worker);
    if (status != UCS_OK) {
        return status;
    }
    watch->service.serve = ucp_st_watch_serve;
    watch->service.arg   = worker;
    status               = ucp_st_service_add(&watch->service);
    if (status != UCS_OK) {
        goto err_stop_callbacks;
    }
    status = ucp_st_answer_add(worker);
    if (status != UCS_OK) {
        goto err_stop;
    }
    return UCS_OK;

err_stop:
    ucp_st_service_remove(&watch->service);
err_stop_callbacks:
    ucp_st_callback_stop(worker);
    return status;
}

static int ucp_st_watch_is_used(ucp_st_worker_h worker)
{
    return 0; /* it gives the user no handles */
}

static ucp_st_drain_t ucp_st_watch_drain(ucp_st_worker_h worker)
{
    ucp_st_peer_t *peer;

    ucs_list_for_each(peer, &worker->peers, list) {
        if (ucp_st_leave_is_unanswered(peer)) {
            return UCP_ST_DRAIN_ANSWERS;
        }
    }
    return UCP_ST_DRAIN_DONE;
}

static void ucp_st_watch_stop(ucp_st_worker_h worker)
{
    ucp_st_answer_remove(worker);
    ucp_st_service_remove(&ucp_st_watch(worker)->service);
    ucp_st_callback_stop(worker);
}

static void ucp_st_watch_peer_gone(ucp_st_peer_t *peer)
{
    /* NICs may still reach it */
    ucp_st_watch_wake(peer->worker);
}

const ucp_st_component_t ucp_st_watch_component = {
    .priv   = UCP_ST_PRIV_WATCH,
    .sizes  = {[UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_watch_t)},
    .worker = {
        .init    = ucp_st_watch_init,
        .open    = ucp_st_watch_open,
        .is_used = ucp_st_watch_is_used,
        .leave   = ucp_st_worker_hook_none,
        .drain   = ucp_st_watch_drain,
        .ask     = ucp_st_watch_ask_ops,
        .waits   = ucp_st_worker_hook_waits, /* core tells of operations */
        .stop    = ucp_st_watch_stop,
        .close   = ucp_st_worker_hook_none,
        .cleanup = ucp_st_watch_cleanup
    },
    .peer   = {
        .init       = ucp_st_peer_hook_none,
        .gone       = ucp_st_watch_peer_gone,
        .closed     = ucp_st_peer_hook_none,
        .is_used    = ucp_st_peer_hook_zero,
        .is_awaited = ucp_st_peer_hook_zero,
        .fifo       = ucp_st_peer_hook_fifo
    },
    .queue  = {
        .init    = ucp_st_queue_hook_none,
        .is_busy = ucp_st_queue_hook_zero,
        .fail    = ucp_st_queue_hook_none,
        .count   = ucp_st_queue_hook_count,
        .cleanup = ucp_st_queue_hook_none
    }
};
