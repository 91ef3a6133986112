/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ctrl.c - control messages over UCP active messages.
 *
 * A frame is the header of a UCP active message without data. UCP keeps the
 * order of such messages on an endpoint; the sequence number checks that. Only
 * a bounded number of them is under way at once.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ctrl/st_ctrl.h"
#include "ctrl/st_answer.h"
#include "ctrl/st_leave.h"
#include "ctrl/st_notice.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_match.h"
#include "core/st_ucp.h"

#include <ucs/sys/math.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Longest frame; UCP's limit may be lower */
#define UCP_ST_CTRL_MAX_FRAME 4096

/* UCP has room for so many kinds of active messages at least */
#define UCP_ST_CTRL_MIN_IDS 64u

/* Looks for what waits are so far apart, seconds, unless warnings are to come
 * sooner */
#define UCP_ST_CTRL_LOOK_TIME 1.0

/* Warnings that are to come sooner than this have it looked no more often,
 * seconds */
#define UCP_ST_CTRL_MIN_TIME 10e-3

/* Frames that UCP has at once */
#define UCP_ST_CTRL_MAX_SENDS 64

/* Handlers of the messages about one operation; the lock is held */
typedef void (*ucp_st_ctrl_handler_t)(ucp_st_peer_t *peer,
                                      const ucp_st_msg_op_t *msg);

static void ucp_st_ctrl_handle_done(ucp_st_peer_t *peer,
                                    const ucp_st_msg_op_t *msg)
{
    ucp_st_op_t *op = ucp_st_op_find(peer, msg->op_id);

    if ((op != NULL) && (op->freed || op->is_told)) { /* it was asked */
        ucp_st_op_peer_done(op);
    }
}

static void ucp_st_ctrl_handle_ping(ucp_st_peer_t *peer,
                                    const ucp_st_msg_op_t *msg)
{
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

/* Handle the first of the messages; its length, or 0 if it is malformed. The
 * lock is held. */
static size_t ucp_st_ctrl_handle_one(ucp_st_peer_t *peer, const uint8_t *data,
                                     size_t length)
{
    const ucp_st_msg_hdr_t *hdr = (const ucp_st_msg_hdr_t*)data;
    size_t min_length;

    if ((length < sizeof(*hdr)) || (hdr->type >= UCP_ST_MSG_LAST)) {
        return 0;
    }
    min_length = (hdr->type == UCP_ST_MSG_MATCH) ? sizeof(ucp_st_msg_match_t) :
                                                   sizeof(ucp_st_msg_op_t);
    if ((hdr->length < min_length) || (hdr->length > length)) {
        return 0;
    }
    if (hdr->type == UCP_ST_MSG_MATCH) {
        ucp_st_match_handle(peer, (const ucp_st_msg_match_t*)hdr);
    } else {
        ucp_st_ctrl_handlers[hdr->type](peer, (const ucp_st_msg_op_t*)hdr);
    }
    return hdr->length;
}

/* Handle a frame, after a check of its head. The lock is held. */
static void ucp_st_ctrl_handle(ucp_st_worker_h worker, const uint8_t *data,
                               size_t length)
{
    ucp_st_frame_t frame = {.length = 0};
    ucp_st_peer_t *peer;
    size_t offset, used;

    memcpy(&frame, data, ucs_min(length, sizeof(frame)));
    if ((length < sizeof(frame)) || (frame.version != UCP_ST_PROTO_VERSION)) {
        ucs_error("dropped a control message that is not of version %d",
                  UCP_ST_PROTO_VERSION);
        return;
    }
    if (frame.length != length) {
        ucs_error("dropped a control message of %zu bytes that should have %u",
                  length, frame.length);
        return;
    }
    peer = ucp_st_peer_get(worker, frame.src);
    if (peer == NULL) {
        ucs_error("no memory for a message of peer 0x%lx", frame.src);
        return;
    }
    if (frame.seq != peer->next_rx_seq) {
        ucs_error("peer 0x%lx: received message %u instead of %u", peer->uuid,
                  frame.seq, peer->next_rx_seq);
        ucp_st_peer_fail(peer, UCS_ERR_IO_ERROR);
        return;
    }
    ++peer->next_rx_seq;
    for (offset = sizeof(frame);
         (offset < length) && (peer->status == UCS_OK); offset += used) {
        used = ucp_st_ctrl_handle_one(peer, data + offset, length - offset);
        if (used == 0) {
            ucs_error("peer 0x%lx sent a malformed control message",
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

    ucp_st_worker_lock(worker);
    ucp_st_ctrl_handle(worker, header, header_length);
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

ucs_status_t ucp_st_ctrl_set_handler(ucp_st_worker_h worker,
                                     ucp_worker_h ucp_worker, unsigned id,
                                     unsigned flags, ucp_am_recv_callback_t cb)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id         = id,
        .flags      = UCP_AM_FLAG_WHOLE_MSG | flags,
        .cb         = cb,
        .arg        = worker
    };

    return ucp_worker_set_am_recv_handler(ucp_worker, &param);
}

/* A peer may send what nothing here takes. UCP 1.13 calls what is in its memory
 * for handlers where none was set, also behind the largest number if there is
 * room: there is none if that is the first one that is set, and not small. */
ucs_status_t ucp_st_ctrl_drop_all(ucp_st_worker_h worker,
                                  ucp_worker_h ucp_worker, unsigned count)
{
    ucs_status_t status = UCS_OK;

    count = ucs_max(count, UCP_ST_CTRL_MIN_IDS);
    while ((count > 0) && (status == UCS_OK)) {
        status = ucp_st_ctrl_set_handler(worker, ucp_worker, --count, 0, NULL);
    }
    return status;
}

static void ucp_st_ctrl_unlisten(ucp_st_worker_h worker)
{
    (void)ucp_st_ctrl_set_handler(worker, worker->ucp_worker, worker->am_id, 0,
                                  NULL);
}

/* Receive control messages, and learn how long they may be */
static ucs_status_t ucp_st_ctrl_listen(ucp_st_worker_h worker)
{
    ucp_worker_attr_t attr = {
        .field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER
    };
    ucs_status_t status    = UCS_OK;

    if (worker->own_context != NULL) { /* else others are the user's */
        status = ucp_st_ctrl_drop_all(worker, worker->ucp_worker,
                                      worker->am_id + 1);
    }
    if (status == UCS_OK) {
        status = ucp_st_ctrl_set_handler(worker, worker->ucp_worker,
                                         worker->am_id, 0,
                                         ucp_st_ctrl_am_handler);
    }
    if (status != UCS_OK) {
        ucs_error("the UCP worker cannot receive active message %u (its "
                  "context needs UCP_FEATURE_AM): %s", worker->am_id,
                  ucs_status_string(status));
        return status;
    }
    status = ucp_worker_query(worker->ucp_worker, &attr);
    if (status != UCS_OK) {
        ucs_error("failed to query the UCP worker: %s",
                  ucs_status_string(status));
        goto err;
    }
    worker->max_frame = ucs_min(attr.max_am_header, UCP_ST_CTRL_MAX_FRAME);
    if (worker->max_frame < (sizeof(ucp_st_frame_t) + UCP_ST_MSG_MAX)) {
        ucs_error("the UCP worker's transports carry active message headers of "
                  "%zu bytes only", attr.max_am_header);
        status = UCS_ERR_UNSUPPORTED;
        goto err;
    }
    return UCS_OK;

err:
    ucp_st_ctrl_unlisten(worker);
    return status;
}

void ucp_st_ctrl_sent(ucp_st_peer_t *peer, ucs_status_t status)
{
    ucp_st_worker_h worker = peer->worker;

    ucp_st_worker_lock(worker);
    --ucp_st_ctrl(worker)->sends;
    --peer->sends;
    if (status != UCS_OK) {
        ucp_st_leave_lost(peer, status);
    }
    ucp_st_notice_answer_bye(peer);
    ucp_st_worker_unlock(worker);
}

/* `request` is NULL if UCP was done at once */
static void ucp_st_ctrl_send_cb(void *request, ucs_status_t status,
                                void *user_data)
{
    ucp_st_frame_buf_t *buf = user_data;

    ucp_st_ctrl_sent(buf->peer, status);
    free(buf);
    if (request != NULL) {
        ucp_request_free(request);
    }
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
    ucp_st_worker_h worker    = buf->peer->worker;
    ucs_status_ptr_t request;

    if (buf->peer->is_self) {
        ucp_st_worker_lock(worker);
        --ucp_st_ctrl(worker)->sends;
        --buf->peer->sends;
        ucp_st_ctrl_handle(worker, buf->data, buf->length);
        ucp_st_worker_unlock(worker);
        free(buf);
        return;
    }
    request = ucp_am_send_nbx(buf->peer->ucp_ep, worker->am_id, buf->data,
                              buf->length, NULL, 0, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_ctrl_send_cb(NULL, UCS_PTR_STATUS(request), buf);
    }
}

/* Take the first frame that may be sent; NULL if there is none */
static ucp_st_frame_buf_t *ucp_st_ctrl_pop(ucp_st_worker_h worker)
{
    ucp_st_ctrl_worker_t *ctrl = ucp_st_ctrl(worker);
    ucp_st_frame_t frame       = {
        .version = UCP_ST_PROTO_VERSION,
        .src     = worker->uuid
    };
    ucp_st_frame_buf_t *buf, *tmp;

    if (ctrl->sends >= UCP_ST_CTRL_MAX_SENDS) {
        return NULL; /* the next progress goes on */
    }
    ucs_list_for_each_safe(buf, tmp, &worker->outbox, list) {
        /* A BYE is still acknowledged, behind earlier messages */
        if ((buf->peer->status != UCS_OK) && !buf->peer->said_bye) {
            ucp_st_outbox_take(buf);
            free(buf);
        } else if (buf->peer->is_self || (buf->peer->ucp_ep != NULL)) {
            ucp_st_outbox_take(buf);
            frame.length = buf->length;
            frame.seq    = buf->peer->next_tx_seq++;
            memcpy(buf->data, &frame, sizeof(frame));
            ++ctrl->sends;
            ++buf->peer->sends;
            return buf;
        }
        /* else it waits for the user to give the peer's address */
    }
    return NULL;
}

void ucp_st_ctrl_flush(ucp_st_worker_h worker)
{
    ucp_st_ctrl_worker_t *ctrl = ucp_st_ctrl(worker);
    ucp_st_frame_buf_t *buf;

    /* One thread at a time, so that messages keep their order */
    ucp_st_worker_lock(worker);
    if (!ctrl->outbox_busy) {
        ctrl->outbox_busy = 1;
        while ((buf = ucp_st_ctrl_pop(worker)) != NULL) {
            ucp_st_worker_unlock(worker);
            ucp_st_ctrl_send(buf);
            ucp_st_worker_lock(worker);
        }
        ctrl->outbox_busy = 0;
    }
    ucp_st_worker_unlock(worker);
}

/* A message to a peer that is gone fails. On this node the peer's process is
 * looked at instead: transports of shared memory would take the message, and
 * keep it while the peer's host does not read. */
void ucp_st_ctrl_ask(ucp_st_peer_t *peer)
{
    ucp_st_ctrl_worker_t *ctrl = ucp_st_ctrl(peer->worker);

    if (peer != ctrl->last_asked) {
        ctrl->last_asked = peer;
        if (!ucp_st_process_is_here(&peer->process)) {
            ucp_st_outbox_post(peer, UCP_ST_MSG_PING, 0, 0);
        }
        ucp_st_peer_check(peer);
    }
}

/* Ask about the peers that operations wait for */
static void ucp_st_ctrl_ask_ops(ucp_st_worker_h worker)
{
    ucp_st_op_t *op;

    ucs_list_for_each(op, &worker->ops, list) {
        if (ucp_st_peer_is_real(op->peer) &&
            (ucp_st_op_is_matching(op) ||
             (op->started > ucp_st_op_uses_ended(op)))) {
            ucp_st_ctrl_ask(op->peer);
        }
    }
}

unsigned ucp_st_ctrl_look(ucp_st_worker_h worker, int is_forced)
{
    ucp_st_ctrl_worker_t *ctrl = ucp_st_ctrl(worker);
    double age                 = (worker->config.warn_time > 0) ?
                                 worker->config.warn_time : INFINITY;
    char text[UCP_ST_WAITS_WARN_SIZE];
    ucp_st_waits_t waits;
    unsigned count;

    ucp_st_waits_init(&waits, text, sizeof(text), age);
    ucp_st_worker_lock(worker);
    if (is_forced || ((waits.now - ctrl->look_time) >= ctrl->look_interval)) {
        ucp_st_waits_look(worker, &waits);
        ctrl->look_time  = waits.now;
        ctrl->look_count = waits.count;
    }
    count = ctrl->look_count;
    ucp_st_worker_unlock(worker);
    ucp_st_waits_warn(&waits);
    return count;
}

unsigned ucp_st_ctrl_progress(ucp_st_worker_h worker)
{
    ucp_st_ctrl_worker_t *ctrl = ucp_st_ctrl(worker);
    const ucp_st_component_t *component;
    unsigned count;
    uint64_t round;
    int is_time;
    double now;

    ucp_st_worker_lock(worker);
    round = ++ctrl->round;
    ucp_st_worker_unlock(worker);
    count = ucp_worker_progress(worker->ucp_worker);

    ucp_st_worker_lock(worker);
    ucp_st_leave_settle(worker, round, count == 0);
    /* Ask about the peers that something here waits for, if it is time */
    now     = ucp_st_worker_now();
    is_time = (now - ctrl->last_time) > ctrl->interval;
    if (is_time) {
        ctrl->last_time  = now;
        ctrl->last_asked = NULL;
        ucp_st_for_each_component(component) {
            component->worker.ask(worker);
        }
    }
    ucp_st_lanes_poll(worker);
    ucp_st_op_reap_freed(worker);
    ucp_st_worker_unlock(worker);
    ucp_st_ctrl_flush(worker);
    if (is_time) {
        (void)ucp_st_ctrl_look(worker, 0);
    }
    return count;
}

void ucp_st_ctrl_ep_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ucp_st_peer_t *peer    = arg;
    ucp_st_worker_h worker = peer->worker;

    ucp_st_worker_lock(worker);
    ucp_st_leave_lost(peer, status);
    ucp_st_worker_unlock(worker);
}

ucs_status_t ucp_st_ctrl_ep_create(ucp_st_peer_t *peer, ucp_worker_h ucp_worker,
                                   const void *address, ucp_err_handler_cb_t cb,
                                   ucp_ep_h *ep_p)
{
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address         = address,
        /* Some transports for messages to oneself cannot report errors */
        .err_mode        = peer->is_self ? UCP_ERR_HANDLING_MODE_NONE :
                                           UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = cb,
        .err_handler.arg = peer
    };

    return ucp_ep_create(ucp_worker, &params, ep_p);
}

ucs_status_t ucp_st_ctrl_connect(ucp_st_peer_t *peer, const void *ucp_address,
                                 ucp_ep_h *ep_p)
{
    int is_dead;

    *ep_p = NULL;
    if (peer->is_self) {
        return UCS_OK;
    }
    /* UCX from 1.14 on aborts later where the peer in shared memory is dead */
    ucp_st_worker_lock(peer->worker);
    is_dead = ucp_st_process_is_dead(&peer->process);
    ucp_st_worker_unlock(peer->worker);
    return is_dead ? UCS_ERR_CONNECTION_RESET :
           ucp_st_ctrl_ep_create(peer, peer->worker->ucp_worker, ucp_address,
                                 ucp_st_ctrl_ep_failed, ep_p);
}

void ucp_st_ctrl_disconnect(ucp_st_peer_t *peer, double end)
{
    ucp_st_svc_ep_disconnect(peer);
    ucp_st_ucp_ep_close(peer->worker->ucp_worker, peer->ucp_ep,
                        UCP_EP_CLOSE_FLAG_FORCE, end);
    peer->ucp_ep = NULL;
}

static void ucp_st_ctrl_init(ucp_st_worker_h worker)
{
    ucp_st_ctrl_worker_t *ctrl = ucp_st_ctrl(worker);
    double warn_time           = worker->config.warn_time;

    ctrl->interval      = worker->config.ping_interval;
    ctrl->look_interval = UCP_ST_CTRL_LOOK_TIME;
    if (warn_time > 0) {
        warn_time           = ucs_max(warn_time, UCP_ST_CTRL_MIN_TIME);
        ctrl->interval      = ucs_min(ctrl->interval, warn_time);
        ctrl->look_interval = ucs_min(ctrl->look_interval, warn_time / 8);
    }
    ucp_st_svc_init(worker);
    ucp_st_call_init(worker);
}

static void ucp_st_ctrl_cleanup(ucp_st_worker_h worker)
{
    ucp_st_call_cleanup(worker);
    ucp_st_svc_close(worker);
}

static ucs_status_t ucp_st_ctrl_open(ucp_st_worker_h worker)
{
    ucs_status_t status;

    status = ucp_st_svc_open(worker);
    if (status == UCS_OK) {
        status = ucp_st_notice_open(worker);
    }
    if (status != UCS_OK) {
        ucs_warn("no UCP worker for the service thread (%s): failures reach "
                 "peers only when both hosts make calls",
                 ucs_status_string(status));
    }
    status = ucp_st_ctrl_listen(worker);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_svc_start(worker);
    if (status != UCS_OK) {
        goto err_unlisten;
    }
    status = ucp_st_call_start(worker);
    if (status != UCS_OK) {
        goto err_stop;
    }
    status = ucp_st_watch_start(worker);
    if (status != UCS_OK) {
        goto err_stop_calls;
    }
    status = ucp_st_answer_add(worker);
    if (status != UCS_OK) {
        goto err_stop_watch;
    }
    return UCS_OK;

err_stop_watch:
    ucp_st_service_remove(&ucp_st_ctrl(worker)->watch);
err_stop_calls:
    ucp_st_call_stop(worker);
err_stop:
    ucp_st_svc_stop(ucp_st_svc(worker));
err_unlisten:
    ucp_st_ctrl_unlisten(worker);
    return status;
}

static int ucp_st_ctrl_is_used(ucp_st_worker_h worker)
{
    return 0; /* it gives the user no handles */
}

static ucp_st_drain_t ucp_st_ctrl_drain(ucp_st_worker_h worker)
{
    ucp_st_peer_t *peer;

    if (ucp_st_ctrl(worker)->sends > 0) {
        return UCP_ST_DRAIN_SENDS;
    }
    if (ucp_st_svc(worker)->num_notices > 0) {
        return UCP_ST_DRAIN_ANSWERS;
    }
    ucs_list_for_each(peer, &worker->peers, list) {
        if (ucp_st_leave_is_unanswered(peer)) {
            return UCP_ST_DRAIN_ANSWERS;
        }
    }
    return UCP_ST_DRAIN_DONE;
}

/* The peers' end still uses the UCP worker of the service thread */
static void ucp_st_ctrl_stop(ucp_st_worker_h worker)
{
    ucp_st_answer_remove(worker);
    ucp_st_service_remove(&ucp_st_ctrl(worker)->watch);
    ucp_st_call_stop(worker);
    ucp_st_ctrl_unlisten(worker);
}

/* Peers that used it have stopped it */
static void ucp_st_ctrl_close(ucp_st_worker_h worker)
{
    ucp_st_svc_stop(ucp_st_svc(worker));
}

static void ucp_st_ctrl_peer_gone(ucp_st_peer_t *peer)
{
    ucp_st_ctrl(peer->worker)->going_peers -= peer->going;
    /* The peer may still be there: the service thread tells it */
    ucp_st_watch_wake(peer->worker);
}

const ucp_st_component_t ucp_st_ctrl_component = {
    .part   = UCP_ST_PART_CTRL,
    .sizes  = {[UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_ctrl_worker_t)},
    .worker = {
        .init    = ucp_st_ctrl_init,
        .open    = ucp_st_ctrl_open,
        .is_used = ucp_st_ctrl_is_used,
        .drain   = ucp_st_ctrl_drain,
        .ask     = ucp_st_ctrl_ask_ops,
        .waits   = ucp_st_worker_hook_waits, /* core tells of operations */
        .stop    = ucp_st_ctrl_stop,
        .close   = ucp_st_ctrl_close,
        .cleanup = ucp_st_ctrl_cleanup
    },
    .peer   = {
        .init       = ucp_st_peer_hook_none,
        .gone       = ucp_st_ctrl_peer_gone,
        .is_used    = ucp_st_peer_hook_zero,
        .is_awaited = ucp_st_peer_hook_zero
    },
    .queue  = {
        .init    = ucp_st_queue_hook_none,
        .is_busy = ucp_st_queue_hook_zero,
        .fail    = ucp_st_queue_hook_none,
        .count   = ucp_st_queue_hook_count,
        .cleanup = ucp_st_queue_hook_none
    }
};
