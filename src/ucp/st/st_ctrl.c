/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ctrl.c - control messages over UCP active messages.
 *
 * Messages are UCP active message headers without data: they are small, and UCP
 * keeps their order on an endpoint; the sequence number checks that.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_ctrl.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_match.h"
#include "st_worker.h"

#include <stdlib.h>
#include <string.h>

/* Handlers of the messages about one operation; the lock is held */
typedef void (*ucp_st_ctrl_handler_t)(ucp_st_peer_t *peer,
                                      const ucp_st_msg_op_t *msg);

static void ucp_st_ctrl_handle_done(ucp_st_peer_t *peer,
                                    const ucp_st_msg_op_t *msg)
{
    ucp_st_op_t *op = ucp_st_op_find(peer->worker, msg->op_id);

    if ((op != NULL) && (op->peer == peer)) {
        ucp_st_op_peer_done(op);
    }
}

static void ucp_st_ctrl_handle_ping(ucp_st_peer_t *peer,
                                    const ucp_st_msg_op_t *msg)
{
    (void)peer;
    (void)msg;
}

static const ucp_st_ctrl_handler_t ucp_st_ctrl_handlers[UCP_ST_MSG_LAST] = {
    [UCP_ST_MSG_REKEY]       = ucp_st_match_handle_rekey,
    [UCP_ST_MSG_CANCEL]      = ucp_st_match_handle_cancel,
    [UCP_ST_MSG_CANCEL_ACK]  = ucp_st_ctrl_handle_done,
    [UCP_ST_MSG_UNMATCH]     = ucp_st_op_handle_unmatch,
    [UCP_ST_MSG_UNMATCH_ACK] = ucp_st_ctrl_handle_done,
    [UCP_ST_MSG_PING]        = ucp_st_ctrl_handle_ping,
    [UCP_ST_MSG_LEAVE]       = ucp_st_leave_handle_leave,
    [UCP_ST_MSG_BYE]         = ucp_st_leave_handle_bye,
    [UCP_ST_MSG_BYE_ACK]     = ucp_st_leave_handle_bye_ack
};

/* Check what came from the network. NULL if it is to be dropped. */
static ucp_st_peer_t *ucp_st_ctrl_check(ucp_st_worker_h worker,
                                        const ucp_st_msg_hdr_t *hdr,
                                        size_t length)
{
    ucp_st_peer_t *peer;
    size_t expected;

    if ((length < sizeof(*hdr)) || (hdr->version != UCP_ST_PROTO_VERSION) ||
        (hdr->type >= UCP_ST_MSG_LAST)) {
        ucs_error("dropped a control message that is not of version %d",
                  UCP_ST_PROTO_VERSION);
        return NULL;
    }
    expected = (hdr->type == UCP_ST_MSG_MATCH) ? sizeof(ucp_st_msg_match_t) :
                                                 sizeof(ucp_st_msg_op_t);
    if ((length != expected) || (hdr->length != expected)) {
        ucs_error("dropped a control message of type %d with %zu bytes instead "
                  "of %zu", hdr->type, length, expected);
        return NULL;
    }

    peer = ucp_st_peer_get(worker, hdr->src);
    if (peer == NULL) {
        ucs_error("no memory for a message of peer 0x%lx", hdr->src);
        return NULL;
    }
    if (hdr->seq != peer->next_rx_seq) {
        ucs_error("message %u of peer 0x%lx came in place of %u", hdr->seq,
                  peer->uuid, peer->next_rx_seq);
        ucp_st_peer_fail(peer, UCS_ERR_IO_ERROR);
        return NULL;
    }
    ++peer->next_rx_seq;
    return peer;
}

/* The lock is held */
static void ucp_st_ctrl_handle(ucp_st_worker_h worker,
                               const ucp_st_msg_hdr_t *hdr, size_t length)
{
    ucp_st_peer_t *peer = ucp_st_ctrl_check(worker, hdr, length);

    if ((peer == NULL) || (peer->status != UCS_OK)) {
        return;
    }
    if (hdr->type == UCP_ST_MSG_MATCH) {
        ucp_st_match_handle(peer, (const ucp_st_msg_match_t*)hdr);
    } else {
        ucp_st_ctrl_handlers[hdr->type](peer, (const ucp_st_msg_op_t*)hdr);
    }
}

static ucs_status_t ucp_st_ctrl_am_handler(void *arg, const void *header,
                                           size_t header_length, void *data,
                                           size_t length,
                                           const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;
    union {
        ucp_st_msg_hdr_t   hdr;
        ucp_st_msg_match_t match;
        ucp_st_msg_op_t    op;
    } msg;

    (void)data;
    (void)length;
    (void)param;
    /* The header may be unaligned */
    memset(&msg, 0, sizeof(msg));
    memcpy(&msg, header,
           (header_length < sizeof(msg)) ? header_length : sizeof(msg));

    ucp_st_worker_lock(worker);
    ucp_st_ctrl_handle(worker, &msg.hdr, header_length);
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

static ucs_status_t ucp_st_ctrl_set_handler(ucp_st_worker_h worker,
                                            ucp_am_recv_callback_t cb)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id         = worker->am_id,
        .flags      = UCP_AM_FLAG_WHOLE_MSG,
        .cb         = cb,
        .arg        = worker
    };

    return ucp_worker_set_am_recv_handler(worker->ucp_worker, &param);
}

ucs_status_t ucp_st_ctrl_init(ucp_st_worker_h worker)
{
    ucs_status_t status;

    ucs_list_head_init(&worker->outbox);
    status = ucp_st_ctrl_set_handler(worker, ucp_st_ctrl_am_handler);
    if (status != UCS_OK) {
        ucs_error("the UCP worker cannot receive active message %u (its "
                  "context needs UCP_FEATURE_AM): %s", worker->am_id,
                  ucs_status_string(status));
    }
    return status;
}

void ucp_st_ctrl_cleanup(ucp_st_worker_h worker)
{
    ucp_st_msg_t *msg, *tmp;

    (void)ucp_st_ctrl_set_handler(worker, NULL);
    ucs_list_for_each_safe(msg, tmp, &worker->outbox, list) {
        ucs_list_del(&msg->list);
        free(msg);
    }
}

/* Put a message in the outbox; the lock is held */
static void ucp_st_ctrl_enqueue(ucp_st_peer_t *peer, ucp_st_msg_t *msg,
                                ucp_st_msg_type_t type, size_t length)
{
    ucp_st_worker_h worker = peer->worker;

    msg->worker        = worker;
    msg->peer          = peer;
    msg->u.hdr.version = UCP_ST_PROTO_VERSION;
    msg->u.hdr.type    = type;
    msg->u.hdr.length  = length;
    msg->u.hdr.seq     = peer->next_tx_seq++;
    msg->u.hdr.src     = worker->uuid;
    ucs_list_add_tail(&worker->outbox, &msg->list);
}

ucs_status_t ucp_st_ctrl_post_match(ucp_st_op_t *op,
                                    const ucp_st_trig_region_t *region)
{
    ucp_st_msg_t *msg = calloc(1, sizeof(*msg));

    if (msg == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    msg->u.match.op_id  = op->id;
    msg->u.match.tag    = op->tag;
    msg->u.match.scope  = op->scope;
    msg->u.match.length = op->length;
    msg->u.match.dir    = op->dir;
    msg->u.match.mode   = op->mode;
    if (region != NULL) {
        msg->u.match.lanes  = 1u << UCP_ST_LANE_TRIG;
        msg->u.match.region = *region;
    }
    ucp_st_ctrl_enqueue(op->peer, msg, UCP_ST_MSG_MATCH, sizeof(msg->u.match));
    return UCS_OK;
}

void ucp_st_ctrl_post(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                      const ucp_st_msg_op_t *params)
{
    ucp_st_msg_t *msg;

    if (peer->status != UCS_OK) {
        return;
    }
    msg = calloc(1, sizeof(*msg));
    if (msg == NULL) {
        ucp_st_peer_fail(peer, UCS_ERR_NO_MEMORY);
        return;
    }
    msg->u.op = *params;
    ucp_st_ctrl_enqueue(peer, msg, type, sizeof(msg->u.op));
}

static void ucp_st_ctrl_sent(ucp_st_msg_t *msg, ucs_status_t status)
{
    ucp_st_worker_h worker = msg->worker;

    ucp_st_worker_lock(worker);
    --worker->sends;
    if (status != UCS_OK) {
        ucp_st_leave_lost(msg->peer, status);
    }
    ucp_st_worker_unlock(worker);
    free(msg);
}

static void ucp_st_ctrl_send_cb(void *request, ucs_status_t status,
                                void *user_data)
{
    ucp_st_ctrl_sent(user_data, status);
    ucp_request_free(request);
}

/* The lock is not held */
static void ucp_st_ctrl_send(ucp_st_msg_t *msg)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_AM_SEND_FLAG_EAGER,
        .cb.send      = ucp_st_ctrl_send_cb,
        .user_data    = msg
    };
    ucp_st_worker_h worker = msg->worker;
    ucs_status_ptr_t request;

    if (msg->peer->is_self) {
        ucp_st_worker_lock(worker);
        --worker->sends;
        ucp_st_ctrl_handle(worker, &msg->u.hdr, msg->u.hdr.length);
        ucp_st_worker_unlock(worker);
        free(msg);
        return;
    }
    request = ucp_am_send_nbx(msg->peer->ucp_ep, worker->am_id, &msg->u,
                              msg->u.hdr.length, NULL, 0, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_ctrl_sent(msg, UCS_PTR_STATUS(request));
    }
}

/* Take the first message that may be sent; NULL if there is none */
static ucp_st_msg_t *ucp_st_ctrl_pop(ucp_st_worker_h worker)
{
    ucp_st_msg_t *msg, *tmp;

    ucs_list_for_each_safe(msg, tmp, &worker->outbox, list) {
        /* A goodbye is acknowledged, after all that was said before it */
        if ((msg->peer->status != UCS_OK) && !msg->peer->said_bye) {
            ucs_list_del(&msg->list);
            free(msg);
        } else if (msg->peer->is_self || (msg->peer->ucp_ep != NULL)) {
            ucs_list_del(&msg->list);
            ++worker->sends;
            return msg;
        }
        /* else it waits for the user to give the peer's address */
    }
    return NULL;
}

void ucp_st_ctrl_flush(ucp_st_worker_h worker)
{
    ucp_st_msg_t *msg;

    /* One thread at a time, so that messages keep their order */
    ucp_st_worker_lock(worker);
    if (!worker->outbox_busy) {
        worker->outbox_busy = 1;
        while ((msg = ucp_st_ctrl_pop(worker)) != NULL) {
            ucp_st_worker_unlock(worker);
            ucp_st_ctrl_send(msg);
            ucp_st_worker_lock(worker);
        }
        worker->outbox_busy = 0;
    }
    ucp_st_worker_unlock(worker);
}

/* Ask both transports about the peers that something here waits for: a message
 * to one that is gone fails. The lock is held. */
static void ucp_st_ctrl_ping(ucp_st_worker_h worker)
{
    ucp_st_msg_op_t msg     = {.op_id = 0};
    ucp_st_peer_t *previous = NULL;
    ucp_st_op_t *op;

    ucs_list_for_each(op, &worker->ops, list) {
        if (ucp_st_op_has_peer(op) && (op->peer != previous) &&
            ((op->state == UCP_ST_OP_MATCHING) ||
             (op->started > op->completed))) {
            previous = op->peer;
            ucp_st_ctrl_post(previous, UCP_ST_MSG_PING, &msg);
            ucp_st_peer_check_nic(previous);
        }
    }
}

unsigned ucp_st_ctrl_progress(ucp_st_worker_h worker)
{
    unsigned count;
    uint64_t round;
    double now;

    ucp_st_worker_lock(worker);
    round = ++worker->round;
    ucp_st_worker_unlock(worker);
    count = ucp_worker_progress(worker->ucp_worker);
    now   = ucp_st_worker_now();

    ucp_st_worker_lock(worker);
    ucp_st_leave_settle(worker, round, count == 0);
    if ((now - worker->last_ping) > worker->config.ping_interval) {
        ucp_st_ctrl_ping(worker);
        worker->last_ping = now;
    }
    ucp_st_op_reap_all(worker);
    ucp_st_worker_unlock(worker);
    ucp_st_ctrl_flush(worker);
    return count;
}
