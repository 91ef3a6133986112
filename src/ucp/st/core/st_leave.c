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
#include "core/st_notice.h"
#include "core/st_op.h"
#include "core/st_watch.h"
#include "core/st_worker.h"
#include "ctrl/st_ctrl.h"

#include <ucs/sys/math.h>

/* Where UCP always has something to do, a loss is decided after so many calls
 * of ucp_worker_progress() */
#define UCP_ST_LEAVE_LOST_ROUNDS 1000

/* How long a stream waits for a lost peer, at most, while the host makes no
 * call that would read the peer's last messages, seconds. The rest of
 * UCX_ST_ERR_TIMEOUT is for the lanes, to end their operations. */
#define UCP_ST_LEAVE_LOST_TIME 1.0

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

/* If the peer has sent BYE its operations are CANCELED, also if a transport
 * has seen its endpoints close meanwhile */
static void ucp_st_leave_declare(ucp_st_peer_t *peer)
{
    ucp_st_peer_fail(peer, peer->said_bye ? UCS_ERR_CANCELED : peer->lost);
}

void ucp_st_leave_handle_leave(ucp_st_peer_t *peer, const ucp_st_msg_op_t *msg)
{
    ucp_st_op_t *op, *tmp;

    peer->said_leave = 1;
    /* The peer has announced all its operations: an operation that has no
     * counterpart yet never gets one. A freed operation stays, for the answer
     * to its CANCEL. */
    ucs_list_for_each_safe(op, tmp, &peer->ops, peer_list) {
        if ((op->key != NULL) && !op->freed) {
            ucp_st_op_fail(op, UCS_ERR_CANCELED);
        }
    }
}

/* The peer's last use is complete here as well: it may go. It closes its
 * endpoints at this answer, so nothing may be sent behind it. A side that
 * leaves itself waits for the answer of the peer. */
static void ucp_st_leave_answer_bye(ucp_st_peer_t *peer)
{
    if (ucp_st_notice_is_sending(peer)) {
        ucp_st_peer_go(peer); /* it is the peer's service thread's */
        return;
    }
    ucp_st_outbox_post(peer, UCP_ST_MSG_BYE_ACK, 0, 0);
    peer->told_last = 1;
    if (!peer->told_bye || peer->said_last) {
        ucp_st_leave_declare(peer);
    }
}

/* The peer has said BYE, and was not answered */
static int ucp_st_leave_is_to_answer(ucp_st_peer_t *peer)
{
    return peer->said_bye && !(peer->told_bye && peer->told_last) &&
           !ucp_st_leave_has_open_use(peer);
}

void ucp_st_leave_handle_bye(ucp_st_peer_t *peer, const ucp_st_msg_op_t *msg)
{
    ucp_st_leave_handle_leave(peer, msg);
    peer->said_bye = 1;
    peer->closed   = 1;
    if (ucp_st_leave_is_to_answer(peer)) {
        ucp_st_leave_answer_bye(peer);
    } else {
        ucp_st_peer_go(peer);
    }
}

void ucp_st_leave_handle_bye_ack(ucp_st_peer_t *peer,
                                 const ucp_st_msg_op_t *msg)
{
    peer->said_last = 1;
    peer->closed    = 1;
    if (peer->said_bye && !peer->told_last) {
        return; /* it leaves, too: it is answered first */
    }
    peer->said_bye = 1; /* it knows that this side has, which is as good */
    ucp_st_peer_fail(peer, UCS_ERR_CANCELED);
}

void ucp_st_leave_settle(ucp_st_worker_h worker, uint64_t round, int is_idle)
{
    ucp_st_peer_t *peer;

    if (ucp_st_watch(worker)->going_peers == 0) {
        return;
    }
    ucs_list_for_each(peer, &worker->peers, list) {
        if (!peer->going || (peer->status != UCS_OK)) {
            continue;
        }
        if (ucp_st_leave_is_to_answer(peer)) {
            ucp_st_leave_answer_bye(peer);
        } else if ((peer->lost != UCS_OK) &&
                   ((is_idle && (round > peer->lost_round)) ||
                    (round > (peer->lost_round + UCP_ST_LEAVE_LOST_ROUNDS)))) {
            /* Messages that had arrived before the loss was noted are handled:
             * a call of ucp_worker_progress() that began later has found
             * nothing, or there were very many calls */
            ucp_st_leave_declare(peer);
        }
    }
}

int ucp_st_leave_settle_late(ucp_st_worker_h worker)
{
    double lost_time = ucs_min(UCP_ST_LEAVE_LOST_TIME,
                               worker->config.err_timeout / 2);
    double next      = -1;
    ucp_st_peer_t *peer;
    double left;

    if (ucp_st_watch(worker)->going_peers == 0) {
        return -1;
    }
    ucs_list_for_each(peer, &worker->peers, list) {
        /* Only if a stream waits for the peer, or the peer has given up this
         * side. A host that waits makes calls. */
        if ((peer->lost == UCS_OK) || (peer->status != UCS_OK) ||
            (!peer->said_gone && !ucp_st_leave_is_awaited(peer))) {
            continue;
        }
        left = peer->lost_time + lost_time - ucp_st_worker_now();
        if (left <= 0) {
            ucp_st_leave_declare(peer);
        } else if ((next < 0) || (left < next)) {
            next = left;
        }
    }
    return (next < 0) ? -1 : (1 + (int)(next * 1e3));
}

static void ucp_st_leave_post_all(ucp_st_worker_h worker,
                                  ucp_st_msg_type_t type)
{
    ucp_st_peer_t *peer;

    ucs_list_for_each(peer, &worker->peers, list) {
        if (!peer->is_self || (type == UCP_ST_MSG_LEAVE)) {
            ucp_st_outbox_post(peer, type, 0, 0);
            peer->told_bye |= (type == UCP_ST_MSG_BYE) && !peer->told_last;
        }
    }
}

static void ucp_st_leave_flush_cb(void *request, ucs_status_t status,
                                  void *user_data)
{
    ucp_st_ctrl_sent(user_data, status);
    ucp_request_free(request);
}

/* UCP may have accepted a message without sending it, and would drop it when
 * the endpoint is closed. So a flush counts as one more send. The lock is held,
 * and released meanwhile. */
static void ucp_st_leave_flush(ucp_st_peer_t *peer)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = ucp_st_leave_flush_cb,
        .user_data    = peer
    };
    ucp_st_worker_h worker    = peer->worker;
    ucs_status_ptr_t request;

    if ((peer->ucp_ep == NULL) || (peer->status != UCS_OK)) {
        return;
    }
    ++ucp_st_ctrl(worker)->sends;
    ++peer->sends;
    ucp_st_worker_unlock(worker);
    request = ucp_ep_flush_nbx(peer->ucp_ep, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_ctrl_sent(peer, UCS_PTR_STATUS(request));
    }
    ucp_st_worker_lock(worker);
}

void ucp_st_leave_say_bye(ucp_st_worker_h worker)
{
    ucp_st_peer_t *peer;

    ucp_st_worker_lock(worker);
    ucp_st_leave_post_all(worker, UCP_ST_MSG_BYE);
    ucp_st_worker_unlock(worker);
    ucp_st_ctrl_flush(worker);
    /* Peers stay while the lock is released: their list may only grow */
    ucp_st_worker_lock(worker);
    ucs_list_for_each(peer, &worker->peers, list) {
        ucp_st_leave_flush(peer);
    }
    ucp_st_worker_unlock(worker);
}

int ucp_st_leave_is_unanswered(const ucp_st_peer_t *peer)
{
    int is_over = peer->said_last && (!peer->said_bye || peer->told_last);

    return peer->told_bye && (peer->ucp_ep != NULL) &&
           (peer->status == UCS_OK) && !is_over;
}

int ucp_st_leave_ask_last(ucp_st_worker_h worker, double time)
{
    int is_awaited = 0;
    double limit;
    ucp_st_peer_t *peer;

    ucp_st_worker_lock(worker);
    ucs_list_for_each(peer, &worker->peers, list) {
        if (!ucp_st_leave_is_unanswered(peer)) {
            continue;
        }
        /* The host of a peer that leaves as well makes calls, and answers */
        if (!peer->said_bye && !peer->asked_last) {
            peer->asked_last = ucp_st_notice_bye(peer);
        }
        limit       = (peer->next_rx_seq > 0) ? worker->config.err_timeout :
                                                UCP_ST_LEAVE_STRANGER_TIME;
        is_awaited |= (peer->said_bye || peer->asked_last) && (time < limit);
    }
    ucp_st_worker_unlock(worker);
    return is_awaited;
}

ucs_status_t ucp_st_worker_leave(ucp_st_worker_h worker)
{
    ucs_status_t status = ucp_st_check_call(worker != NULL);

    if (status != UCS_OK) {
        return status;
    }
    ucp_st_worker_lock(worker);
    if (!worker->leaving) {
        worker->leaving = 1;
        ucp_st_leave_post_all(worker, UCP_ST_MSG_LEAVE);
    }
    ucp_st_worker_unlock(worker);
    ucp_st_ctrl_flush(worker);
    return UCS_OK;
}
