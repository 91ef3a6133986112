/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_notice.c - what service threads tell each other of failures.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ctrl/st_notice.h"
#include "ctrl/st_ctrl.h"
#include "ctrl/st_leave.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_ucp.h"

#include <stdlib.h>
#include <string.h>

/* How long a peer's host may take to confirm that an operation was freed until
 * its service thread is told, seconds. A put that fails because of it is taken
 * for a fault after a second. */
#define UCP_ST_NOTICE_FREED_TIME 0.1

/* Zero without memory: it is tried again */
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
    ucp_st_svc_wake(svc);
    return 1;
}

/* Somebody there may listen */
static int ucp_st_notice_is_possible(const ucp_st_peer_t *peer)
{
    return (peer->svc_ep != NULL) && !peer->svc_ep->notice_broken &&
           !peer->is_self && !peer->said_bye && !peer->process.is_dead;
}

int ucp_st_notice_is_wanted(const ucp_st_peer_t *peer)
{
    return ucp_st_notice_is_possible(peer) && (peer->status != UCS_OK) &&
           !peer->is_noticed;
}

static void ucp_st_notice_look_ops(ucp_st_peer_t *peer, double now)
{
    ucp_st_notice_msg_t msg = {.type = UCP_ST_NOTICE_UNMATCH};
    ucp_st_op_t *op;

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

void ucp_st_notice_look(ucp_st_peer_t *peer, double now)
{
    ucp_st_notice_msg_t msg = {.type = UCP_ST_NOTICE_GONE};

    if (ucp_st_notice_is_wanted(peer)) {
        peer->is_noticed = ucp_st_notice_post(peer, &msg);
    } else if ((peer->status == UCS_OK) && ucp_st_notice_is_possible(peer)) {
        ucp_st_notice_look_ops(peer, now);
    }
}

void ucp_st_notice_ping(ucp_st_peer_t *peer)
{
    ucp_st_notice_msg_t msg = {.type = UCP_ST_NOTICE_PING};

    if ((peer->status == UCS_OK) && ucp_st_notice_is_possible(peer) &&
        !peer->svc_ep->is_pinging) {
        peer->svc_ep->is_pinging = ucp_st_notice_post(peer, &msg);
    }
}

/* For want of something here it is tried again later */
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
    }
}

/* UCP is done with a notice */
static void ucp_st_notice_sent(ucp_st_notice_t *notice, ucs_status_t status)
{
    ucp_st_worker_h worker = notice->peer->worker;

    ucp_st_worker_lock(worker);
    ucs_debug("notice %u to peer 0x%lx is sent: %s", notice->msg.type,
              notice->peer->uuid, ucs_status_string(status));
    --ucp_st_svc(worker)->num_notices;
    if (notice->msg.type == UCP_ST_NOTICE_PING) {
        notice->peer->svc_ep->is_pinging = 0;
    }
    if (ucp_st_ucp_is_local(status)) {
        ucp_st_notice_again(notice);
    } else if (status != UCS_OK) {
        ucp_st_svc_ep_lost_notice(notice->peer, status);
    }
    ucp_st_worker_unlock(worker);
    free(notice);
}

static void ucp_st_notice_sent_cb(void *request, ucs_status_t status, void *arg)
{
    ucp_st_notice_sent(arg, status);
    ucp_request_free(request);
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

    status = ucp_st_svc_ep_get_notice(notice->peer, &ep);
    if (status != UCS_OK) {
        ucp_st_notice_sent(notice, status);
        return;
    }
    request = ucp_am_send_nbx(ep, UCP_ST_SVC_AM_NOTICE, &notice->msg,
                              sizeof(notice->msg), NULL, 0, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_notice_sent(notice, UCS_PTR_STATUS(request));
    }
}

unsigned ucp_st_notice_send_all(ucp_st_worker_h worker)
{
    ucs_list_link_t *notices = &ucp_st_svc(worker)->notices;
    unsigned count           = 0;
    ucp_st_notice_t *notice;

    while (!ucs_list_is_empty(notices)) {
        notice = ucs_list_extract_head(notices, ucp_st_notice_t, list);
        ucp_st_worker_unlock(worker);
        ucp_st_notice_send(notice);
        ++count;
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
        /* Before this side has read what the other half offers no stream waits
         * for it; the control message says it again, in its place */
        if ((op->remote_id != msg->src_op_id) ||
            ((op->state != UCP_ST_OP_MATCHED) &&
             (op->state != UCP_ST_OP_FAILED))) {
            return;
        }
        ucp_st_op_unmatched(op, msg->uses, (ucs_status_t)msg->status);
    }
    (void)ucp_st_notice_post(peer, &ack);
}

void ucp_st_notice_handle(ucp_st_worker_h worker,
                          const ucp_st_notice_msg_t *msg)
{
    ucp_st_peer_t *peer = ucp_st_peer_find(worker, msg->src);
    ucp_st_op_t *op;

    ucs_debug("notice %u of peer 0x%lx: operation %lu", msg->type, msg->src,
              msg->op_id);
    if ((peer == NULL) || (msg->dst != worker->uuid)) {
        ucs_debug("dropped a notice of worker 0x%lx to 0x%lx", msg->src,
                  msg->dst);
        return; /* of a worker that had this place before */
    }
    if (msg->type == UCP_ST_NOTICE_GONE) {
        /* What the peer had said before may not have been read yet, so that is
         * decided as a loss is */
        peer->said_gone = 1;
        ucp_st_leave_lost(peer, UCS_ERR_CONNECTION_RESET);
        ucp_st_peer_closed(peer);
    } else if (peer->status != UCS_OK) {
        /* A peer that is declared gone is told that, which says all */
        if ((msg->type == UCP_ST_NOTICE_PING) && (peer->svc_ep != NULL) &&
            peer->svc_ep->notice_broken) {
            /* Its stream waits for this side: that notice was lost */
            ucp_st_svc_ep_renew_notice(peer);
            peer->is_noticed = 0;
            ucp_st_watch_wake(worker);
        }
    } else if (msg->type == UCP_ST_NOTICE_UNMATCH) {
        ucp_st_notice_handle_unmatch(peer, msg);
    } else if (msg->type == UCP_ST_NOTICE_UNMATCH_ACK) {
        op = ucp_st_op_find(peer, msg->op_id);
        if ((op != NULL) && op->is_told && (op->remote_id == msg->src_op_id)) {
            ucp_st_op_peer_done(op);
        }
    } else if ((msg->type == UCP_ST_NOTICE_PING) && (peer->lost != UCS_OK)) {
        /* Its stream waits for what a transport may have lost: that is decided,
         * whatever the host here does */
        peer->said_gone = 1;
        ucp_st_watch_wake(worker);
    } else if (msg->type != UCP_ST_NOTICE_PING) {
        ucs_error("dropped a notice of unknown type %u from peer 0x%lx",
                  msg->type, peer->uuid);
    }
}

static ucs_status_t ucp_st_notice_am_handler(void *arg, const void *header,
                                             size_t header_length, void *data,
                                             size_t length,
                                             const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;
    ucp_st_notice_msg_t msg;

    (void)data;
    (void)length;
    (void)param;
    if (header_length != sizeof(msg)) {
        ucs_error("dropped a notice of %zu bytes", header_length);
        return UCS_OK;
    }
    memcpy(&msg, header, sizeof(msg));
    ucp_st_worker_lock(worker);
    if (ucp_st_svc(worker)->is_served) { /* operations and peers still exist */
        ucp_st_notice_handle(worker, &msg);
    }
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

ucs_status_t ucp_st_notice_open(ucp_st_worker_h worker)
{
    return ucp_st_svc_set_handler(worker, UCP_ST_SVC_AM_NOTICE, 0,
                                  ucp_st_notice_am_handler);
}

void ucp_st_notice_cleanup(ucp_st_worker_h worker)
{
    ucs_list_link_t *notices = &ucp_st_svc(worker)->notices;

    while (!ucs_list_is_empty(notices)) {
        free(ucs_list_extract_head(notices, ucp_st_notice_t, list));
    }
}
