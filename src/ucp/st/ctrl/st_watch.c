/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_watch.c - the service thread looks after peers in place of hosts that make
 * no calls: it asks whether those are alive that streams wait for, and decides
 * about those that are lost.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ctrl/st_ctrl.h"
#include "core/st_lane.h"
#include "ctrl/st_leave.h"
#include "ctrl/st_notice.h"
#include "core/st_op.h"
#include "core/st_peer.h"

#include <ucs/sys/math.h>

/* A NIC still holds something of operations with a peer that is gone */
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

/* Non-zero if streams may come to wait for the peer, or it is gone: to be told
 * that, or found out whether NICs still reach it, or can end what they hold */
static int ucp_st_watch_is_needed(const ucp_st_peer_t *peer)
{
    return (peer->connected && !peer->is_self &&
            ((peer->status == UCS_OK) || !peer->closed ||
             ucp_st_notice_is_wanted(peer))) ||
           ucp_st_watch_has_rest(peer);
}

int ucp_st_watch_ask(ucp_st_worker_h worker, int is_time)
{
    int is_needed = 0;
    double now    = ucp_st_worker_now();
    ucp_st_peer_t *peer;

    ucs_list_for_each(peer, &worker->peers, list) {
        if (!ucp_st_watch_is_needed(peer)) {
            continue;
        }
        is_needed = 1;
        ucp_st_notice_look(peer, now);
        if (is_time && ((peer->status != UCS_OK) ||
                        ucp_st_leave_is_awaited(peer))) {
            ucp_st_peer_check(peer);
        }
    }
    return is_needed;
}

/* While there are peers it looks at them at a fixed, slow pace: no start has to
 * tell it that streams may wait from now on */
static int ucp_st_watch_serve(void *arg)
{
    ucp_st_worker_h worker     = arg;
    ucp_st_ctrl_worker_t *ctrl = ucp_st_ctrl(worker);
    double interval            = worker->config.ping_interval;
    double now                 = ucp_st_worker_now();
    double left                = ctrl->watch_time + interval - now;
    int is_needed, settle;

    ucp_st_worker_lock(worker);
    is_needed = ucp_st_watch_ask(worker, left <= 0);
    if (is_needed && (left <= 0)) {
        /* A device may have refused UCP to be slept on */
        ucp_st_svc_wake(ucp_st_svc(worker));
    }
    settle = ucp_st_leave_settle_late(worker);
    ucp_st_worker_unlock(worker);
    if (left <= 0) {
        ctrl->watch_time = now;
        left               = interval;
    }
    if (!is_needed) {
        return settle;
    }
    left = ucs_min(1 + (left * 1e3), 1e6);
    return (settle < 0) ? (int)left : ucs_min(settle, (int)left);
}

ucs_status_t ucp_st_watch_start(ucp_st_worker_h worker)
{
    ucp_st_ctrl_worker_t *ctrl = ucp_st_ctrl(worker);

    ctrl->watch.serve = ucp_st_watch_serve;
    ctrl->watch.arg   = worker;
    return ucp_st_service_add(&ctrl->watch);
}

void ucp_st_watch_stop(ucp_st_worker_h worker)
{
    ucp_st_service_remove(&ucp_st_ctrl(worker)->watch);
}

void ucp_st_watch_wake(ucp_st_worker_h worker)
{
    ucp_st_service_wake(&ucp_st_ctrl(worker)->watch);
}
