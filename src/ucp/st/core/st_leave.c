/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_leave.c - how peers go: in order, or lost.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_leave.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_watch.h"
#include "core/st_worker.h"
#include "ctrl/st_ctrl.h"

#include <ucs/sys/math.h>

/* Where UCP always has something to do, a loss is decided after so many rounds
 * of the service thread */
#define UCP_ST_LEAVE_LOST_ROUNDS 1000

/* How long a leaver's answer waits for the last open use with it, seconds */
#define UCP_ST_LEAVE_ANSWER_TIME 0.2

/* How long the end of a worker waits for a peer that has sent nothing so far:
 * that may not know this side's address, and never answer, seconds */
#define UCP_ST_LEAVE_STRANGER_TIME 1.0

/* Non-zero while the peer takes part in a use, or in something of a component,
 * that is under way */
static int ucp_st_leave_has_open_use(ucp_st_peer_t *peer)
{
    const ucp_st_component_t *component;
    ucp_st_op_t *op;

    ucp_st_for_each_component(component) {
        if (component->peer.is_used(peer)) {
            return 1;
        }
    }
    ucs_list_for_each(op, &peer->ops, peer_list) {
        if (!op->freed && (op->state != UCP_ST_OP_FAILED) &&
            (ucp_st_op_uses_started(op) > ucp_st_op_uses_ended(op))) {
            return 1;
        }
    }
    return 0;
}

int ucp_st_leave_is_awaited(ucp_st_peer_t *peer)
{
    const ucp_st_component_t *component;

    ucp_st_for_each_component(component) {
        if (component->peer.is_awaited(peer)) {
            return 1;
        }
    }
    return ucp_st_leave_has_open_use(peer);
}

/* The peer has announced all its operations: an operation that has no
 * counterpart yet never gets one. A freed operation stays, for the answer to
 * its CANCEL. */
static void ucp_st_leave_fail_unmatched(ucp_st_peer_t *peer)
{
    ucp_st_op_t *op, *tmp;

    ucs_list_for_each_safe(op, tmp, &peer->ops, peer_list) {
        if ((op->key != NULL) && !op->freed) {
            ucp_st_op_fail(op, UCS_ERR_CANCELED);
        }
    }
}

void ucp_st_leave_handle_leave(ucp_st_peer_t *peer, const ucp_st_ctrl_op_t *msg)
{
    if (peer->state == UCP_ST_PEER_ACTIVE) {
        ucp_st_peer_set_state(peer, UCP_ST_PEER_QUIET);
    }
    ucp_st_leave_fail_unmatched(peer);
}

/* The peer's last use is complete here as well, or takes long: it may go. It
 * closes its endpoint at this answer, so nothing may be sent behind it. */
static void ucp_st_leave_answer_bye(ucp_st_peer_t *peer)
{
    ucp_st_ctrl_post(peer, UCP_ST_CTRL_BYE_ACK, 0, 0);
    ucp_st_peer_set_state(peer, UCP_ST_PEER_LEFT);
}

/* Take the steps that are possible now. A side that leaves itself waits for the
 * answer of the peer. */
static void ucp_st_leave_go_on(ucp_st_peer_t *peer)
{
    double waited = ucp_st_worker_now() - peer->bye_time;

    if ((peer->state == UCP_ST_PEER_LEAVING) &&
        (!ucp_st_leave_has_open_use(peer) ||
         (waited > UCP_ST_LEAVE_ANSWER_TIME))) {
        ucp_st_leave_answer_bye(peer);
    }
    if ((peer->state == UCP_ST_PEER_LEFT) && !peer->worker->said_bye &&
        (!ucp_st_leave_has_open_use(peer) ||
         (waited > UCP_ST_LEAVE_USE_TIME))) {
        ucp_st_peer_fail(peer, UCS_ERR_CANCELED);
    }
}

void ucp_st_leave_handle_bye(ucp_st_peer_t *peer, const ucp_st_ctrl_op_t *msg)
{
    ucp_st_leave_fail_unmatched(peer);
    peer->closed   = 1;
    peer->bye_time = ucp_st_worker_now();
    if (peer->state <= UCP_ST_PEER_QUIET) {
        ucp_st_peer_set_state(peer, UCP_ST_PEER_LEAVING);
        ucp_st_leave_go_on(peer);
        ucp_st_watch_wake(peer->worker);
    } else {
        peer->lost = UCS_ERR_CANCELED; /* of interest if it is lost already */
    }
}

void ucp_st_leave_handle_bye_ack(ucp_st_peer_t *peer,
                                 const ucp_st_ctrl_op_t *msg)
{
    peer->closed = 1;
    if (peer->state == UCP_ST_PEER_LEAVING) {
        ucp_st_leave_answer_bye(peer); /* it leaves, too */
    }
    ucp_st_peer_fail(peer, UCS_ERR_CANCELED);
}

/* The peer's earlier messages may not have been read yet */
void ucp_st_leave_handle_gone(ucp_st_peer_t *peer, const ucp_st_ctrl_op_t *msg)
{
    ucp_st_peer_lost(peer, UCS_ERR_CONNECTION_RESET);
    ucp_st_peer_closed(peer);
}

/* Go through the peers that go. A step for one may take it, or others, from the
 * list; so those that are still to come are in a list of the caller's. The lock
 * is held from here to the end. */
static void ucp_st_leave_begin(ucp_st_worker_h worker, ucs_list_link_t *rest)
{
    ucs_list_link_t *going = &ucp_st_watch(worker)->going_peers;

    ucs_list_head_init(rest);
    ucs_list_splice_tail(rest, going);
    ucs_list_head_init(going);
}

/* The next one, or NULL */
static ucp_st_peer_t *ucp_st_leave_next(ucp_st_worker_h worker,
                                        ucs_list_link_t *rest)
{
    ucp_st_peer_t *peer;

    if (ucs_list_is_empty(rest)) {
        return NULL;
    }
    peer = ucs_list_extract_head(rest, ucp_st_peer_t, going_list);
    ucs_list_add_tail(&ucp_st_watch(worker)->going_peers, &peer->going_list);
    return peer;
}

unsigned ucp_st_leave_settle(ucp_st_worker_h worker, uint64_t round,
                             int is_idle)
{
    unsigned count = 0;
    ucs_list_link_t rest;
    ucp_st_peer_t *peer;

    ucp_st_leave_begin(worker, &rest);
    while ((peer = ucp_st_leave_next(worker, &rest)) != NULL) {
        if (peer->state != UCP_ST_PEER_LOST) {
            continue;
        }
        ++count;
        if ((is_idle && (round > peer->lost_round)) ||
            (round > (peer->lost_round + UCP_ST_LEAVE_LOST_ROUNDS))) {
            /* Messages that had arrived before the loss was noted are handled:
             * a round that began later has found nothing, or there were very
             * many rounds */
            ucp_st_peer_fail(peer, peer->lost);
        }
    }
    return count;
}

int ucp_st_leave_look(ucp_st_worker_h worker)
{
    int next = -1;
    ucs_list_link_t rest;
    ucp_st_peer_t *peer;

    ucp_st_leave_begin(worker, &rest);
    while ((peer = ucp_st_leave_next(worker, &rest)) != NULL) {
        ucp_st_leave_go_on(peer);
        if ((peer->state == UCP_ST_PEER_LEAVING) ||
            ((peer->state == UCP_ST_PEER_LEFT) && !worker->said_bye)) {
            next = 1;
        }
    }
    return next;
}

/* A peer that was answered before closes: it needs no BYE, and answers none */
void ucp_st_leave_say_bye(ucp_st_worker_h worker)
{
    ucp_st_peer_t *peer;

    ucp_st_worker_lock(worker);
    ucs_list_for_each(peer, &worker->peers, list) {
        if (peer->state == UCP_ST_PEER_LEFT) {
            ucp_st_peer_fail(peer, UCS_ERR_CANCELED);
        } else if (!peer->is_self) {
            ucp_st_ctrl_post(peer, UCP_ST_CTRL_BYE, 0, 0);
        }
    }
    worker->said_bye = 1;
    ucp_st_worker_unlock(worker);
}

int ucp_st_leave_is_unanswered(ucp_st_peer_t *peer)
{
    return peer->connected && !peer->is_self &&
           (peer->state != UCP_ST_PEER_GONE);
}

int ucp_st_leave_is_worth_waiting(ucp_st_worker_h worker, double time)
{
    int is_awaited = 0;
    double limit;
    ucp_st_peer_t *peer;

    ucp_st_worker_lock(worker);
    ucs_list_for_each(peer, &worker->peers, list) {
        limit      = ucp_st_ctrl_has_heard(peer) ? worker->config.err_timeout :
                                                   UCP_ST_LEAVE_STRANGER_TIME;
        is_awaited = ucp_st_leave_is_unanswered(peer) && (time < limit);
        if (is_awaited) {
            break;
        }
    }
    ucp_st_worker_unlock(worker);
    return is_awaited;
}

ucs_status_t ucp_st_worker_leave(ucp_st_worker_h worker)
{
    ucs_status_t status = ucp_st_check_call(worker != NULL);
    ucp_st_peer_t *peer;

    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(worker);
    if (!worker->leaving) {
        worker->leaving = 1;
        ucs_list_for_each(peer, &worker->peers, list) {
            ucp_st_ctrl_post(peer, UCP_ST_CTRL_LEAVE, 0, 0);
        }
    }
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}
