/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_notice.c - service threads tell each other of failures.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_notice.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_ucp.h"
#include "core/st_watch.h"
#include "ctrl/st_ctrl.h"

#include <stdlib.h>
#include <string.h>

/* How long a peer's host may take to confirm that an operation was freed,
 * seconds; then its service thread is told. A put that fails because of the
 * free is taken for a fault after a second. */
#define UCP_ST_NOTICE_FREED_TIME 0.1

/** A notice on its way. */
typedef struct ucp_st_notice {
    ucs_list_link_t     list; /* in the worker's notices, until UCP has it */
    ucp_st_peer_h       peer;
    ucp_st_notice_msg_t msg;
} ucp_st_notice_t;

/* Have the service thread send a notice. Zero without memory: the caller tries
 * again. */
static int ucp_st_notice_post(ucp_st_peer_t *peer,
                              const ucp_st_notice_msg_t *msg)
{
    ucp_st_worker_h worker  = peer->worker;
    ucp_st_svc_t *svc       = ucp_st_svc(worker);
    ucp_st_notice_t *notice = malloc(sizeof(*notice));

    if (notice == NULL) {
        return 0;
    }
    notice->peer    = peer;
    notice->msg     = *msg;
    notice->msg.src = worker->uuid;
    notice->msg.dst = peer->uuid;
    ucs_debug("notice %u to peer 0x%lx: operation %lu", msg->type, peer->uuid,
              msg->op_id);
    ucs_list_add_tail(&svc->notices, &notice->list);
    ++svc->num_notices;
    ++peer->svc_ep->num_notices;
    ucp_st_svc_wake(svc);
    return 1;
}

/* The peer's service thread may receive notices */
static int ucp_st_notice_is_possible(const ucp_st_peer_t *peer)
{
    return (peer->svc_ep != NULL) && !peer->svc_ep->notice_broken &&
           !peer->is_self && !peer->said_bye && !peer->asked_last &&
           !peer->told_last && !peer->process.is_dead;
}

int ucp_st_notice_is_sending(ucp_st_peer_t *peer)
{
    return (peer->svc_ep != NULL) && (peer->svc_ep->num_notices > 0);
}

int ucp_st_notice_bye(ucp_st_peer_t *peer)
{
    ucp_st_notice_msg_t msg = {.type = UCP_ST_NOTICE_BYE};

    return ucp_st_notice_is_possible(peer) && ucp_st_notice_post(peer, &msg);
}

/* Earlier notices take the same way; control messages do not */
void ucp_st_notice_answer_bye(ucp_st_peer_t *peer)
{
    ucp_st_notice_msg_t msg = {.type = UCP_ST_NOTICE_BYE_ACK};

    if (peer->owes_last && (peer->sends == 0) && (peer->svc_ep != NULL)) {
        peer->owes_last = !ucp_st_notice_post(peer, &msg);
    }
}

int ucp_st_notice_is_wanted(const ucp_st_peer_t *peer)
{
    return ucp_st_notice_is_possible(peer) && (peer->status != UCS_OK) &&
           !peer->is_noticed;
}

void ucp_st_notice_look(ucp_st_peer_t *peer, double now)
{
    ucp_st_notice_msg_t msg = {.type = UCP_ST_NOTICE_GONE};
    ucp_st_op_t *op;

    ucp_st_notice_answer_bye(peer);
    if (ucp_st_notice_is_wanted(peer)) {
        peer->is_noticed = ucp_st_notice_post(peer, &msg);
        return;
    }
    if ((peer->status != UCS_OK) || !ucp_st_notice_is_possible(peer)) {
        return;
    }
    msg.type = UCP_ST_NOTICE_UNMATCH;
    ucs_list_for_each(op, &peer->ops, peer_list) {
        if (op->is_told && !op->peer_closed && !op->is_noticed &&
            ((op->state == UCP_ST_OP_FAILED) ||
             (now > (op->told_time + UCP_ST_NOTICE_FREED_TIME)))) {
            msg.op_id      = op->remote_id;
            msg.src_op_id  = op->id;
            msg.uses       = op->told_uses;
            msg.status     = op->told_status;
            op->is_noticed = ucp_st_notice_post(peer, &msg);
        }
    }
}

/* Ask whether the peer is there, unless it is known to be gone: otherwise the
 * notice fails. */
static void ucp_st_notice_ping(ucp_st_peer_t *peer)
{
    ucp_st_notice_msg_t msg = {.type = UCP_ST_NOTICE_PING};

    if ((peer->status == UCS_OK) && ucp_st_notice_is_possible(peer) &&
        !peer->svc_ep->is_pinging) {
        peer->svc_ep->is_pinging = ucp_st_notice_post(peer, &msg);
    }
}

/* A message to a peer that is gone fails, and a peer that has lost this side
 * learns that this side waits for it. The endpoint of a peer that is gone is
 * closed: UCP then ends its operations with the peer, and their waits are
 * released. A peer that is closing is asked no more: if something still waits
 * for it, it waits in vain. */
void ucp_st_notice_check(ucp_st_peer_t *peer)
{
    ucp_st_svc_ep_t *sep = peer->svc_ep;

    if ((sep->ep != NULL) && ucp_st_peer_is_closing(peer)) {
        ucp_st_peer_lost(peer, UCS_ERR_CONNECTION_RESET);
    } else if ((sep->ep != NULL) && !ucp_st_peer_leaves(peer)) {
        ucp_st_notice_ping(peer);
    }
    if ((peer->status != UCS_OK) && (sep->ep != NULL) && !sep->closing) {
        sep->closing = 1;
        ucs_list_add_tail(&ucp_st_svc(peer->worker)->closing, &sep->list);
        ucp_st_svc_wake(ucp_st_svc(peer->worker));
    }
}

/* This side had no room for a notice: it is posted again later */
static void ucp_st_notice_again(const ucp_st_notice_t *notice)
{
    ucp_st_op_t *op;

    if (notice->msg.type == UCP_ST_NOTICE_GONE) {
        notice->peer->is_noticed = 0;
    } else if (notice->msg.type == UCP_ST_NOTICE_UNMATCH) {
        op = ucp_st_op_find(notice->peer, notice->msg.src_op_id);
        if (op != NULL) {
            op->is_noticed = 0;
        }
    } else if (notice->msg.type == UCP_ST_NOTICE_BYE) {
        notice->peer->asked_last = 0;
    } else if (notice->msg.type == UCP_ST_NOTICE_BYE_ACK) {
        notice->peer->owes_last = 1;
    }
}

void ucp_st_notice_lost(ucp_st_peer_t *peer, ucs_status_t status)
{
    peer->svc_ep->notice_broken = 1;
    ucp_st_peer_lost(peer, status);
    if (peer->status != UCS_OK) {
        ucp_st_peer_closed(peer);
    }
}

/* UCP has sent a notice, or failed to. `request` is NULL if that was at once.
 */
static void ucp_st_notice_sent_cb(void *request, ucs_status_t status, void *arg)
{
    ucp_st_notice_t *notice = arg;
    ucp_st_worker_h worker  = notice->peer->worker;

    ucp_st_worker_lock(worker);
    ucs_debug("notice %u to peer 0x%lx is sent: %s", notice->msg.type,
              notice->peer->uuid, ucs_status_string(status));
    --ucp_st_svc(worker)->num_notices;
    --notice->peer->svc_ep->num_notices;
    if (notice->msg.type == UCP_ST_NOTICE_PING) {
        notice->peer->svc_ep->is_pinging = 0;
    }
    if (ucp_st_ucp_is_local(status)) {
        ucp_st_notice_again(notice);
    } else if (status != UCS_OK) {
        ucp_st_notice_lost(notice->peer, status);
    }
    ucp_st_worker_unlock(worker);
    free(notice);
    if (request != NULL) {
        ucp_request_free(request);
    }
}

/* The lock is not held */
static void ucp_st_notice_send(ucp_st_notice_t *notice)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_AM_SEND_FLAG_EAGER,
        .cb.send      = ucp_st_notice_sent_cb,
        .user_data    = notice
    };
    ucs_status_ptr_t request;
    ucs_status_t status;
    ucp_ep_h ep;

    status  = ucp_st_svc_ep_get(notice->peer, UCP_ST_SVC_EP_NOTICE, &ep);
    request = (status != UCS_OK) ? UCS_STATUS_PTR(status) :
              ucp_am_send_nbx(ep, UCP_ST_SVC_AM_NOTICE, &notice->msg,
                              sizeof(notice->msg), NULL, 0, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_notice_sent_cb(NULL, UCS_PTR_STATUS(request), notice);
    }
}

/* Give posted notices to UCP */
static unsigned ucp_st_notice_send_all(ucp_st_worker_h worker)
{
    ucs_list_link_t *notices = &ucp_st_svc(worker)->notices;
    unsigned count           = 0;
    ucp_st_notice_t *notice;

    for (; !ucs_list_is_empty(notices) && (count < UCP_ST_SVC_MAX_SENDS);
         ++count) {
        notice = ucs_list_extract_head(notices, ucp_st_notice_t, list);
        ucp_st_worker_unlock(worker);
        ucp_st_notice_send(notice);
        ucp_st_worker_lock(worker);
    }
    return count;
}

static void ucp_st_notice_handle_unmatch(ucp_st_peer_t *peer,
                                         const ucp_st_notice_msg_t *msg)
{
    ucp_st_op_t *op         = ucp_st_op_find(peer, msg->op_id);
    ucp_st_notice_msg_t ack = {
        .type      = UCP_ST_NOTICE_UNMATCH_ACK,
        .op_id     = msg->src_op_id,
        .src_op_id = msg->op_id
    };

    if (op != NULL) {
        /* No stream waits for an operation before this side has read the other
         * half's offer. The control message says the same again, in order. */
        if ((op->remote_id != msg->src_op_id) ||
            ((op->state != UCP_ST_OP_MATCHED) &&
             (op->state != UCP_ST_OP_FAILED))) {
            return;
        }
        if (!ucp_st_op_unmatched(op, msg->uses, msg->status)) {
            return; /* the control message is answered when that is over */
        }
    }
    if (!peer->told_last && (peer->svc_ep != NULL)) {
        (void)ucp_st_notice_post(peer, &ack);
    }
}

/* The peer closes its endpoints at the answer. Where this side leaves as well
 * the host makes calls, and answers. What the BYE means for operations is left
 * to the host anyway: it reads what the peer has sent before. */
static void ucp_st_notice_handle_bye(ucp_st_peer_t *peer)
{
    if (peer->told_bye || peer->told_last) {
        return;
    }
    peer->told_last = 1;
    ucp_st_outbox_drop(peer->worker, peer);
    peer->owes_last = (peer->svc_ep != NULL) && !peer->svc_ep->notice_broken;
    ucp_st_notice_answer_bye(peer);
}

static void ucp_st_notice_handle(ucp_st_worker_h worker,
                          const ucp_st_notice_msg_t *msg)
{
    ucp_st_peer_t *peer = ucp_st_peer_find(worker, msg->src);
    ucp_st_op_t *op;

    ucs_debug("notice %u of peer 0x%lx: operation %lu", msg->type, msg->src,
              msg->op_id);
    if ((msg->type == UCP_ST_NOTICE_BYE) && (msg->dst == worker->uuid)) {
        /* The host may still make it a peer */
        peer = ucp_st_peer_get(worker, msg->src);
    }
    if ((peer == NULL) || (msg->dst != worker->uuid)) {
        ucs_debug("dropped a notice of worker 0x%lx to 0x%lx", msg->src,
                  msg->dst);
        return; /* it is of, or for, an earlier worker */
    }
    if (msg->type == UCP_ST_NOTICE_GONE) {
        /* The peer's earlier messages may not have been read yet, so this is
         * decided as a loss is */
        peer->said_gone = 1;
        ucp_st_peer_lost(peer, UCS_ERR_CONNECTION_RESET);
        ucp_st_peer_closed(peer);
    } else if (peer->status != UCS_OK) {
        /* The peer was declared gone, and is told that */
        if ((msg->type == UCP_ST_NOTICE_PING) && (peer->svc_ep != NULL) &&
            peer->svc_ep->notice_broken) {
            /* Its stream waits for this side: it was not told. The endpoint
             * is broken, but the peer is there, so another one may do. */
            peer->svc_ep->notice_broken = 0;
            peer->svc_ep->notice_stale  = (peer->svc_ep->notice_ep != NULL);
            peer->is_noticed            = 0;
            ucp_st_watch_wake(worker);
        }
    } else if (msg->type == UCP_ST_NOTICE_BYE) {
        ucp_st_notice_handle_bye(peer);
    } else if (msg->type == UCP_ST_NOTICE_BYE_ACK) {
        peer->said_last = 1; /* its regions may still be open */
    } else if (msg->type == UCP_ST_NOTICE_UNMATCH) {
        ucp_st_notice_handle_unmatch(peer, msg);
    } else if (msg->type == UCP_ST_NOTICE_UNMATCH_ACK) {
        op = ucp_st_op_find(peer, msg->op_id);
        if ((op != NULL) && op->is_told && (op->remote_id == msg->src_op_id)) {
            ucp_st_op_peer_done(op);
        }
    } else if ((msg->type == UCP_ST_NOTICE_PING) && (peer->lost != UCS_OK)) {
        /* Its stream waits for this side, and a transport may have lost the
         * peer: that is decided even if the host here makes no calls */
        peer->said_gone = 1;
        ucp_st_watch_wake(worker);
    } else if (msg->type != UCP_ST_NOTICE_PING) {
        ucs_error("dropped a notice of unknown type %u from peer 0x%lx",
                  msg->type, peer->uuid);
    }
}

void ucp_st_notice_receive(ucp_st_worker_h worker, const void *data,
                           size_t length)
{
    ucp_st_notice_msg_t msg;

    if (length != sizeof(msg)) {
        ucs_error("dropped a notice of %zu bytes", length);
        return;
    }
    memcpy(&msg, data, sizeof(msg));
    ucp_st_notice_handle(worker, &msg);
}

void ucp_st_notice_init(ucp_st_worker_h worker)
{
    static const ucp_st_svc_client_t client = {
        .work    = ucp_st_notice_send_all,
        .is_used = ucp_st_notice_is_sending
    };

    ucp_st_svc_add_client(ucp_st_svc(worker), &client);
}

void ucp_st_notice_cleanup(ucp_st_worker_h worker)
{
    ucs_list_link_t *notices = &ucp_st_svc(worker)->notices;

    while (!ucs_list_is_empty(notices)) {
        free(ucs_list_extract_head(notices, ucp_st_notice_t, list));
    }
}