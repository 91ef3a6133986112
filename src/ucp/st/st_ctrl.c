/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ctrl.c - control messages over UCP active messages.
 *
 * Messages to a peer are put together to frames as long as these wait in the
 * outbox: a match of n operations costs a number of active messages that is a
 * small part of n. A frame is a UCP active message header without data: UCP
 * keeps the order of those on an endpoint; the sequence number checks that. Not
 * more than a few are on the way at once.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_ctrl.h"
#include "st_lane.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_match.h"
#include "st_req.h"
#include "st_worker.h"

#include <ucs/sys/math.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Longest frame; what UCP can send may be less */
#define UCP_ST_CTRL_MAX_FRAME 4096

/* Frames that are given to UCP at once */
#define UCP_ST_CTRL_MAX_SENDS 64

/* Empty rounds of progress before a blocked host sleeps, and for how long */
#define UCP_ST_CTRL_YIELDS   200
#define UCP_ST_CTRL_SLEEP_NS 50000

/* Handlers of the messages about one operation; the lock is held */
typedef void (*ucp_st_ctrl_handler_t)(ucp_st_peer_t *peer,
                                      const ucp_st_msg_op_t *msg);

static void ucp_st_ctrl_handle_done(ucp_st_peer_t *peer,
                                    const ucp_st_msg_op_t *msg)
{
    ucp_st_op_t *op = ucp_st_op_find(peer, msg->op_id);

    if (op != NULL) {
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
    [UCP_ST_MSG_BIND]        = ucp_st_match_handle_bind,
    [UCP_ST_MSG_CANCEL]      = ucp_st_match_handle_cancel,
    [UCP_ST_MSG_CANCEL_ACK]  = ucp_st_ctrl_handle_done,
    [UCP_ST_MSG_UNMATCH]     = ucp_st_op_handle_unmatch,
    [UCP_ST_MSG_UNMATCH_ACK] = ucp_st_ctrl_handle_done,
    [UCP_ST_MSG_PING]        = ucp_st_ctrl_handle_ping,
    [UCP_ST_MSG_LEAVE]       = ucp_st_leave_handle_leave,
    [UCP_ST_MSG_BYE]         = ucp_st_leave_handle_bye,
    [UCP_ST_MSG_BYE_ACK]     = ucp_st_leave_handle_bye_ack
};

/* Check the head of what came from the network. NULL if it is to be dropped. */
static ucp_st_peer_t *ucp_st_ctrl_check(ucp_st_worker_h worker,
                                        const ucp_st_frame_t *frame,
                                        size_t length)
{
    ucp_st_peer_t *peer;

    if ((length < sizeof(*frame)) ||
        (frame->version != UCP_ST_PROTO_VERSION)) {
        ucs_error("dropped a control message that is not of version %d",
                  UCP_ST_PROTO_VERSION);
        return NULL;
    }
    if (frame->length != length) {
        ucs_error("dropped a control message of %zu bytes that should have %u",
                  length, frame->length);
        return NULL;
    }

    peer = ucp_st_peer_get(worker, frame->src);
    if (peer == NULL) {
        ucs_error("no memory for a message of peer 0x%lx", frame->src);
        return NULL;
    }
    if (frame->seq != peer->next_rx_seq) {
        ucs_error("message %u of peer 0x%lx came in place of %u", frame->seq,
                  peer->uuid, peer->next_rx_seq);
        ucp_st_peer_fail(peer, UCS_ERR_IO_ERROR);
        return NULL;
    }
    ++peer->next_rx_seq;
    return peer;
}

/* Shortest message of a type; 0 for an unknown one */
static size_t ucp_st_ctrl_min_length(unsigned type)
{
    if (type >= UCP_ST_MSG_LAST) {
        return 0;
    }
    return (type == UCP_ST_MSG_MATCH) ? sizeof(ucp_st_msg_match_t) :
                                        sizeof(ucp_st_msg_op_t);
}

/* Handle the first of the messages; its length, or 0 if it is none. The lock is
 * held. */
static size_t ucp_st_ctrl_handle_one(ucp_st_peer_t *peer, const uint8_t *data,
                                     size_t length)
{
    const ucp_st_msg_hdr_t *hdr = (const ucp_st_msg_hdr_t*)data;
    size_t min_length;

    if (length < sizeof(*hdr)) {
        return 0;
    }
    min_length = ucp_st_ctrl_min_length(hdr->type);
    if ((min_length == 0) || (hdr->length < min_length) ||
        (hdr->length > length)) {
        return 0;
    }
    if (hdr->type == UCP_ST_MSG_MATCH) {
        ucp_st_match_handle(peer, (const ucp_st_msg_match_t*)hdr);
    } else {
        ucp_st_ctrl_handlers[hdr->type](peer, (const ucp_st_msg_op_t*)hdr);
    }
    return hdr->length;
}

/* The lock is held */
static void ucp_st_ctrl_handle(ucp_st_worker_h worker, const uint8_t *data,
                               size_t length)
{
    ucp_st_peer_t *peer;
    size_t offset, used;
    ucp_st_frame_t frame;

    memset(&frame, 0, sizeof(frame));
    memcpy(&frame, data, ucs_min(length, sizeof(frame)));
    peer = ucp_st_ctrl_check(worker, &frame, length);
    if (peer == NULL) {
        return;
    }
    for (offset = sizeof(frame);
         (offset < length) && (peer->status == UCS_OK); offset += used) {
        used = ucp_st_ctrl_handle_one(peer, data + offset, length - offset);
        if (used == 0) {
            ucs_error("peer 0x%lx sent a control message that is none",
                      peer->uuid);
            ucp_st_peer_fail(peer, UCS_ERR_IO_ERROR);
            return;
        }
    }
}

static ucs_status_t ucp_st_ctrl_am_handler(void *arg, const void *header,
                                           size_t header_length, void *data,
                                           size_t length,
                                           const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;

    (void)data;
    (void)length;
    (void)param;
    ucp_st_worker_lock(worker);
    ucp_st_ctrl_handle(worker, header, header_length);
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

/* How long an active message may be; the worker's */
static ucs_status_t ucp_st_ctrl_set_max_frame(ucp_st_worker_h worker)
{
    ucp_worker_attr_t attr = {
        .field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER
    };
    ucs_status_t status    = ucp_worker_query(worker->ucp_worker, &attr);

    if (status != UCS_OK) {
        ucs_error("failed to query the UCP worker: %s",
                  ucs_status_string(status));
        return status;
    }
    worker->max_frame = ucs_min(attr.max_am_header, UCP_ST_CTRL_MAX_FRAME);
    if (worker->max_frame < (sizeof(ucp_st_frame_t) + UCP_ST_MSG_MAX)) {
        ucs_error("the UCP worker's transports carry active message headers of "
                  "%zu bytes only", attr.max_am_header);
        return UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK;
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
        return status;
    }
    status = ucp_st_ctrl_set_max_frame(worker);
    if (status != UCS_OK) {
        (void)ucp_st_ctrl_set_handler(worker, NULL);
    }
    return status;
}

/* The frame leaves the outbox */
static void ucp_st_ctrl_take(ucp_st_frame_buf_t *buf)
{
    ucs_list_del(&buf->list);
    if (buf->peer->frame == buf) {
        buf->peer->frame = NULL;
    }
}

void ucp_st_ctrl_cleanup(ucp_st_worker_h worker)
{
    ucp_st_frame_buf_t *buf, *tmp;

    (void)ucp_st_ctrl_set_handler(worker, NULL);
    ucs_list_for_each_safe(buf, tmp, &worker->outbox, list) {
        ucp_st_ctrl_take(buf);
        free(buf);
    }
}

/* A new frame at the end of the outbox; NULL without memory */
static ucp_st_frame_buf_t *ucp_st_ctrl_frame_add(ucp_st_peer_t *peer)
{
    ucp_st_worker_h worker  = peer->worker;
    ucp_st_frame_buf_t *buf = malloc(sizeof(*buf) + worker->max_frame);

    if (buf == NULL) {
        return NULL;
    }
    buf->worker = worker;
    buf->peer   = peer;
    buf->length = sizeof(ucp_st_frame_t);
    ucs_list_add_tail(&worker->outbox, &buf->list);
    peer->frame = buf;
    return buf;
}

/* Room for a message to a peer; NULL without memory. The lock is held. */
static void *ucp_st_ctrl_reserve(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                                 size_t length)
{
    ucp_st_frame_buf_t *buf = peer->frame;
    ucp_st_msg_hdr_t *hdr;

    if ((buf == NULL) || ((buf->length + length) > peer->worker->max_frame)) {
        buf = ucp_st_ctrl_frame_add(peer);
        if (buf == NULL) {
            return NULL;
        }
    }
    hdr           = (ucp_st_msg_hdr_t*)(buf->data + buf->length);
    buf->length  += length;
    hdr->type     = type;
    hdr->reserved = 0;
    hdr->length   = length;
    return hdr;
}

ucs_status_t ucp_st_ctrl_post_match(ucp_st_op_t *op)
{
    ucp_st_worker_h worker = op->worker;
    ucp_st_msg_match_t *msg;
    unsigned i, count;

    msg = ucp_st_ctrl_reserve(op->peer, UCP_ST_MSG_MATCH, sizeof(*msg));
    if (msg == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    msg->op_id  = op->id;
    msg->tag    = op->tag;
    msg->scope  = op->scope;
    msg->length = op->length;
    msg->dir    = op->dir;
    msg->mode   = op->mode;
    memset(msg->lanes, 0, sizeof(msg->lanes));
    memset(msg->reserved, 0, sizeof(msg->reserved));
    for (i = 0, count = 0; i < worker->num_lanes; ++i) {
        if (op->peer->lanes & UCS_BIT(worker->lanes[i]->id)) {
            msg->lanes[count++] = worker->lanes[i]->id;
        }
    }
    return UCS_OK;
}

void ucp_st_ctrl_post_with(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                           const ucp_st_msg_op_t *params, const void *data,
                           size_t length)
{
    ucp_st_msg_op_t *msg;
    ucp_st_msg_hdr_t hdr;

    if (peer->status != UCS_OK) {
        return;
    }
    msg = ucp_st_ctrl_reserve(peer, type, sizeof(*msg) + length);
    if (msg == NULL) {
        ucp_st_peer_fail(peer, UCS_ERR_NO_MEMORY);
        return;
    }
    hdr      = msg->hdr;
    *msg     = *params;
    msg->hdr = hdr;
    if (length > 0) {
        memcpy(msg + 1, data, length);
    }
}

void ucp_st_ctrl_post(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                      const ucp_st_msg_op_t *msg)
{
    ucp_st_ctrl_post_with(peer, type, msg, NULL, 0);
}

static void ucp_st_ctrl_sent(ucp_st_frame_buf_t *buf, ucs_status_t status)
{
    ucp_st_worker_h worker = buf->worker;

    ucp_st_worker_lock(worker);
    --worker->sends;
    if (status != UCS_OK) {
        ucp_st_leave_lost(buf->peer, status);
    }
    ucp_st_worker_unlock(worker);
    free(buf);
}

static void ucp_st_ctrl_send_cb(void *request, ucs_status_t status,
                                void *user_data)
{
    ucp_st_ctrl_sent(user_data, status);
    ucp_request_free(request);
}

/* The lock is not held */
static void ucp_st_ctrl_send(ucp_st_frame_buf_t *buf)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_AM_SEND_FLAG_EAGER,
        .cb.send      = ucp_st_ctrl_send_cb,
        .user_data    = buf
    };
    ucp_st_worker_h worker = buf->worker;
    ucs_status_ptr_t request;

    if (buf->peer->is_self) {
        ucp_st_worker_lock(worker);
        --worker->sends;
        ucp_st_ctrl_handle(worker, buf->data, buf->length);
        ucp_st_worker_unlock(worker);
        free(buf);
        return;
    }
    request = ucp_am_send_nbx(buf->peer->ucp_ep, worker->am_id, buf->data,
                              buf->length, NULL, 0, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_ctrl_sent(buf, UCS_PTR_STATUS(request));
    }
}

/* Fill in the head of a frame that is complete */
static void ucp_st_ctrl_seal(ucp_st_frame_buf_t *buf)
{
    ucp_st_frame_t frame = {
        .version = UCP_ST_PROTO_VERSION,
        .length  = buf->length,
        .seq     = buf->peer->next_tx_seq++,
        .src     = buf->worker->uuid
    };

    memcpy(buf->data, &frame, sizeof(frame));
}

/* Take the first frame that may be sent; NULL if there is none */
static ucp_st_frame_buf_t *ucp_st_ctrl_pop(ucp_st_worker_h worker)
{
    ucp_st_frame_buf_t *buf, *tmp;

    if (worker->sends >= UCP_ST_CTRL_MAX_SENDS) {
        return NULL; /* the next progress goes on */
    }
    ucs_list_for_each_safe(buf, tmp, &worker->outbox, list) {
        /* A goodbye is acknowledged, after all that was said before it */
        if ((buf->peer->status != UCS_OK) && !buf->peer->said_bye) {
            ucp_st_ctrl_take(buf);
            free(buf);
        } else if (buf->peer->is_self || (buf->peer->ucp_ep != NULL)) {
            ucp_st_ctrl_take(buf);
            ucp_st_ctrl_seal(buf);
            ++worker->sends;
            return buf;
        }
        /* else it waits for the user to give the peer's address */
    }
    return NULL;
}

void ucp_st_ctrl_flush(ucp_st_worker_h worker)
{
    ucp_st_frame_buf_t *buf;

    /* One thread at a time, so that messages keep their order */
    ucp_st_worker_lock(worker);
    if (!worker->outbox_busy) {
        worker->outbox_busy = 1;
        while ((buf = ucp_st_ctrl_pop(worker)) != NULL) {
            ucp_st_worker_unlock(worker);
            ucp_st_ctrl_send(buf);
            ucp_st_worker_lock(worker);
        }
        worker->outbox_busy = 0;
    }
    ucp_st_worker_unlock(worker);
}

/* Ask all transports about a peer: a message to one that is gone fails. On this
 * node its process is asked for, as transports of shared memory would take the
 * message, and keep it where the peer's host does not read. */
static void ucp_st_ctrl_ping_peer(ucp_st_peer_t *peer, ucp_st_peer_t **last_p)
{
    ucp_st_msg_op_t msg = {.op_id = 0};

    if (peer != *last_p) {
        *last_p = peer;
        if (!ucp_st_process_is_here(&peer->process)) {
            ucp_st_ctrl_post(peer, UCP_ST_MSG_PING, &msg);
        }
        ucp_st_peer_check(peer);
    }
}

/* Ask about the peers that something here waits for; the lock is held */
static void ucp_st_ctrl_ping(ucp_st_worker_h worker)
{
    ucp_st_peer_t *last = NULL;
    ucp_st_req_t *req;
    ucp_st_op_t *op;

    ucs_list_for_each(op, &worker->ops, list) {
        if (ucp_st_op_has_peer(op) && ((op->state == UCP_ST_OP_MATCHING) ||
                                       (op->started >
                                        ucp_st_op_uses_ended(op)))) {
            ucp_st_ctrl_ping_peer(op->peer, &last);
        }
    }
    ucs_list_for_each(req, &worker->batch.posted, list) {
        if (ucp_st_req_has_peer(req)) {
            ucp_st_ctrl_ping_peer(req->peer, &last);
        }
    }
}

void ucp_st_ctrl_pause(unsigned *idle_rounds, unsigned progressed)
{
    struct timespec ts = {.tv_nsec = UCP_ST_CTRL_SLEEP_NS};

    *idle_rounds = (progressed > 0) ? 0 : (*idle_rounds + 1);
    if (*idle_rounds > UCP_ST_CTRL_YIELDS) {
        (void)nanosleep(&ts, NULL);
    } else {
        (void)sched_yield(); /* peers may share the processor */
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
    ucp_st_lanes_poll(worker);
    ucp_st_op_reap_limbo(worker);
    ucp_st_worker_unlock(worker);
    ucp_st_ctrl_flush(worker);
    return count;
}
