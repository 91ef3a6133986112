/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ctrl.c - control messages over UCP active messages.
 *
 * A frame is the header of a UCP active message without data. UCP keeps the
 * order of such messages on an endpoint; the sequence number checks that. Only
 * a bounded number of them is under way to a peer at once.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ctrl/st_ctrl.h"
#include "core/st_log.h"
#include "core/st_ucp.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* Longest frame; UCP's limit may be lower */
#define UCP_ST_CTRL_MAX_FRAME 4096

/* Frames to one peer that UCP has at once */
#define UCP_ST_CTRL_MAX_SENDS 64

/**
 * Messages to one peer: one active message. They are put together as long as
 * they wait: a match of n operations costs a number of active messages that is
 * a small part of n.
 */
typedef struct ucp_st_ctrl_frame {
    ucs_list_link_t list;   /* in the peer's frames */
    ucp_st_peer_h   peer;
    ucp_ep_h        ep;     /* that it was given to */
    size_t          length; /* of what is filled in */
    uint8_t         data[]; /* ucp_st_frame_t and messages */
} ucp_st_ctrl_frame_t;

/* It is known how to reach the peer */
static int ucp_st_ctrl_is_known(ucp_st_peer_t *peer)
{
    return ucp_st_net_peer(peer)->address != NULL;
}

int ucp_st_ctrl_has_heard(ucp_st_peer_t *peer)
{
    return ucp_st_ctrl_peer(peer)->next_rx_seq > 0;
}

int ucp_st_ctrl_is_sending(ucp_st_peer_t *peer)
{
    ucp_st_ctrl_peer_t *self = ucp_st_ctrl_peer(peer);

    return self->is_listed || (self->sends > 0);
}

void ucp_st_ctrl_list(ucp_st_peer_t *peer)
{
    ucp_st_ctrl_peer_t *self = ucp_st_ctrl_peer(peer);

    if (!self->is_listed && !ucs_list_is_empty(&self->frames) &&
        (peer->is_self || ucp_st_ctrl_is_known(peer))) {
        self->is_listed = 1;
        ucs_list_add_tail(&ucp_st_ctrl(peer->worker)->ready, &self->list);
        ucp_st_net_wake(peer->worker);
    }
}

static void ucp_st_ctrl_unlist(ucp_st_ctrl_peer_t *self)
{
    if (self->is_listed) {
        self->is_listed = 0;
        ucs_list_del(&self->list);
    }
}

static void ucp_st_ctrl_drop(ucp_st_peer_t *peer)
{
    ucp_st_ctrl_peer_t *self = ucp_st_ctrl_peer(peer);

    ucp_st_ctrl_unlist(self);
    while (!ucs_list_is_empty(&self->frames)) {
        free(ucs_list_extract_head(&self->frames, ucp_st_ctrl_frame_t, list));
    }
}

void *ucp_st_ctrl_reserve(ucp_st_peer_t *peer, ucp_st_ctrl_type_t type,
                          size_t length)
{
    ucp_st_ctrl_peer_t *self   = ucp_st_ctrl_peer(peer);
    size_t max_length          = ucp_st_ctrl(peer->worker)->max_frame;
    ucp_st_ctrl_frame_t *frame = ucs_list_is_empty(&self->frames) ? NULL :
                                 ucs_list_tail(&self->frames,
                                               ucp_st_ctrl_frame_t, list);
    ucp_st_ctrl_hdr_t *hdr;

    if ((frame == NULL) || ((frame->length + length) > max_length)) {
        frame = malloc(sizeof(*frame) + max_length);
        if (frame == NULL) {
            return NULL;
        }
        frame->peer   = peer;
        frame->length = sizeof(ucp_st_frame_t);
        ucs_list_add_tail(&self->frames, &frame->list);
        ucp_st_ctrl(peer->worker)->is_new = 1;
        ucp_st_ctrl_list(peer);
    }
    hdr            = (ucp_st_ctrl_hdr_t*)(frame->data + frame->length);
    frame->length += length;
    hdr->type      = type;
    hdr->reserved  = 0;
    hdr->length    = length;
    return hdr;
}

int ucp_st_ctrl_is_open(ucp_st_peer_t *peer, ucp_st_ctrl_type_t type)
{
    return (peer->state <= UCP_ST_PEER_LEAVING) &&
           (!peer->worker->said_bye || (type == UCP_ST_CTRL_BYE_ACK));
}

void ucp_st_ctrl_post_with(ucp_st_peer_t *peer, ucp_st_ctrl_type_t type,
                           const ucp_st_ctrl_op_t *params, const void *data,
                           size_t length)
{
    ucp_st_ctrl_op_t *msg;
    ucp_st_ctrl_hdr_t hdr;

    if (!ucp_st_ctrl_is_open(peer, type)) {
        return;
    }
    msg = ucp_st_ctrl_reserve(peer, type, sizeof(*msg) + length);
    if (msg == NULL) {
        ucp_st_ctrl_up.fail(peer, UCS_ERR_NO_MEMORY);
        return;
    }
    hdr      = msg->hdr;
    *msg     = *params;
    msg->hdr = hdr;
    if (length > 0) {
        memcpy(msg + 1, data, length);
    }
}

void ucp_st_ctrl_ping(ucp_st_peer_t *peer)
{
    if (!peer->is_self && ucp_st_ctrl_is_known(peer) &&
        !ucp_st_ctrl_is_sending(peer)) {
        ucp_st_ctrl_post(peer, UCP_ST_CTRL_PING, 0, 0);
    }
}

/* Close the endpoint if that is due */
static void ucp_st_ctrl_check_end(ucp_st_peer_t *peer)
{
    if (ucp_st_ctrl_peer(peer)->is_ending && !ucp_st_ctrl_is_sending(peer)) {
        ucp_st_net_drop_ep(peer);
    }
}

void ucp_st_ctrl_end(ucp_st_peer_t *peer)
{
    ucp_st_ctrl_peer(peer)->is_ending = 1;
    ucp_st_ctrl_check_end(peer);
}

/* UCP drops with the endpoint what was under way to the peer */
void ucp_st_ctrl_cut(ucp_st_peer_t *peer)
{
    ucp_st_ctrl_drop(peer);
    ucp_st_net_drop_ep(peer);
}

/* Without memory for GONE, the peer's next PING has it sent */
void ucp_st_ctrl_tell_gone(ucp_st_peer_t *peer)
{
    ucp_st_ctrl_op_t *msg;

    ucp_st_ctrl_cut(peer);
    if (ucp_st_net_peer(peer)->was_made &&
        !ucp_st_process_is_dead(&peer->process)) {
        msg = ucp_st_ctrl_reserve(peer, UCP_ST_CTRL_GONE, sizeof(*msg));
        if (msg != NULL) {
            memset(&msg->op_id, 0, sizeof(*msg) - sizeof(msg->hdr));
        }
    }
}

/* Handle a frame, after a check of its head. The lock is held. */
static void ucp_st_ctrl_receive(ucp_st_worker_h worker, const uint8_t *data,
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
    if (frame.dst != worker->uuid) {
        ucs_debug("dropped a message of worker 0x%lx for an earlier one, 0x%lx",
                  frame.src, frame.dst);
        return;
    }
    peer = ucp_st_ctrl_up.get_peer(worker, frame.src);
    if (peer == NULL) {
        ucs_error("no memory for a message of peer 0x%lx", frame.src);
        return;
    }
    if (!frame.is_alone &&
        (frame.seq != ucp_st_ctrl_peer(peer)->next_rx_seq++)) {
        ucs_error("peer 0x%lx: received message %u instead of %u", peer->uuid,
                  frame.seq, ucp_st_ctrl_peer(peer)->next_rx_seq - 1);
        ucp_st_ctrl_up.fail(peer, UCS_ERR_IO_ERROR);
        return;
    }
    for (offset = sizeof(frame); offset < length; offset += used) {
        used = ucp_st_ctrl_up.receive(peer, data + offset, length - offset);
        if (used == 0) {
            ucs_error("peer 0x%lx sent a malformed control message",
                      peer->uuid);
            ucp_st_ctrl_up.fail(peer, UCS_ERR_IO_ERROR);
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
    if (ucp_st_net(worker)->is_served) { /* operations and peers still exist */
        ucp_st_ctrl_receive(worker, header, header_length);
    }
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

/* One more of `sends`, until it is done. The lock is held. */
static void ucp_st_ctrl_send_begin(ucp_st_peer_t *peer)
{
    ++ucp_st_ctrl(peer->worker)->sends;
    ++ucp_st_ctrl_peer(peer)->sends;
}

static void ucp_st_ctrl_send_end(ucp_st_peer_t *peer)
{
    --ucp_st_ctrl(peer->worker)->sends;
    --ucp_st_ctrl_peer(peer)->sends;
    ucp_st_ctrl_check_end(peer);
}

/* UCP is done with a frame. One that was given to an endpoint that is closed by
 * now, or was not to be sent any more, says nothing. The lock is held. */
static void ucp_st_ctrl_sent(ucp_st_ctrl_frame_t *frame, ucs_status_t status)
{
    ucp_st_peer_t *peer = frame->peer;

    if ((status != UCS_OK) && (status != UCS_ERR_CANCELED) &&
        (frame->ep == ucp_st_net_peer(peer)->ep)) {
        ucp_st_ctrl_up.lost(peer, status);
    }
    ucp_st_ctrl_send_end(peer);
    free(frame);
}

static void ucp_st_ctrl_sent_cb(void *request, ucs_status_t status, void *arg)
{
    ucp_st_ctrl_frame_t *frame = arg;
    ucp_st_worker_h worker     = frame->peer->worker;

    ucp_st_worker_lock(worker);
    ucp_st_ctrl_sent(frame, status);
    ucp_st_worker_unlock(worker);
    ucp_request_free(request);
}

static void ucp_st_ctrl_flushed_cb(void *request, ucs_status_t status,
                                   void *arg)
{
    ucp_st_peer_t *peer    = arg;
    ucp_st_worker_h worker = peer->worker;

    ucp_st_worker_lock(worker);
    ucp_st_ctrl_send_end(peer); /* the endpoint tells of a failure */
    ucp_st_worker_unlock(worker);
    ucp_request_free(request);
}

/* The last message to a peer was given to UCP, which may have accepted it
 * without sending it, and would drop it when the endpoint is closed: a flush
 * counts as one more send. The lock is held, and released meanwhile. */
static void ucp_st_ctrl_flush(ucp_st_peer_t *peer)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = ucp_st_ctrl_flushed_cb,
        .user_data    = peer
    };
    ucs_status_ptr_t request;
    ucp_ep_h ep;

    ucp_st_ctrl_send_begin(peer);
    ep = ucp_st_net_peer(peer)->ep;
    ucp_st_worker_unlock(peer->worker);
    request = (ep == NULL) ? NULL : ucp_ep_flush_nbx(ep, &param);
    ucp_st_worker_lock(peer->worker);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_ctrl_send_end(peer);
    }
}

/* The frame holds GONE, which goes over another endpoint: not in order */
static int ucp_st_ctrl_is_alone(const ucp_st_ctrl_frame_t *frame)
{
    const void *data = frame->data + sizeof(ucp_st_frame_t);

    return ((const ucp_st_ctrl_hdr_t*)data)->type == UCP_ST_CTRL_GONE;
}

/* Give a frame to UCP. The lock is not held. */
static ucs_status_ptr_t ucp_st_ctrl_give(ucp_st_ctrl_frame_t *frame)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_AM_SEND_FLAG_EAGER,
        .cb.send      = ucp_st_ctrl_sent_cb,
        .user_data    = frame
    };
    ucs_status_t status;

    status = ucp_st_net_ep_get(frame->peer, ucp_st_ctrl_is_alone(frame) ?
                                            UCP_ST_NET_USE_GONE :
                                            UCP_ST_NET_USE_FRAME, &frame->ep);
    return (status != UCS_OK) ?
           UCS_STATUS_PTR(status) :
           ucp_am_send_nbx(frame->ep, UCP_ST_NET_AM_CTRL, frame->data,
                           frame->length, NULL, 0, &param);
}

static void ucp_st_ctrl_fill(ucp_st_ctrl_frame_t *frame)
{
    ucp_st_peer_t *peer = frame->peer;
    ucp_st_frame_t head = {
        .version  = UCP_ST_PROTO_VERSION,
        .is_alone = ucp_st_ctrl_is_alone(frame),
        .length   = frame->length,
        .seq      = ucp_st_ctrl_peer(peer)->next_tx_seq,
        .src      = peer->worker->uuid,
        .dst      = peer->uuid
    };

    memcpy(frame->data, &head, sizeof(head));
}

/* UCP has no memory now: the frame is the first again, unless the peer was
 * declared gone meanwhile */
static void ucp_st_ctrl_put_back(ucp_st_ctrl_frame_t *frame)
{
    ucp_st_ctrl_peer_t *self = ucp_st_ctrl_peer(frame->peer);

    ucp_st_ctrl_send_end(frame->peer);
    if ((frame->peer->state == UCP_ST_PEER_GONE) && !self->is_ending &&
        !ucp_st_ctrl_is_alone(frame)) {
        free(frame);
    } else {
        ucs_list_add_head(&self->frames, &frame->list);
    }
}

/* Send the peer's first frame; zero without memory. The lock is held, and
 * released meanwhile. */
static int ucp_st_ctrl_send(ucp_st_peer_t *peer)
{
    ucp_st_worker_h worker     = peer->worker;
    ucp_st_ctrl_peer_t *self   = ucp_st_ctrl_peer(peer);
    ucp_st_ctrl_frame_t *frame = ucs_list_extract_head(&self->frames,
                                                       ucp_st_ctrl_frame_t,
                                                       list);
    ucs_status_ptr_t request;

    ucp_st_ctrl_fill(frame);
    if (peer->is_self) {
        ++self->next_tx_seq;
        ucp_st_ctrl_receive(worker, frame->data, frame->length);
        free(frame);
        return 1;
    }
    ucp_st_ctrl_send_begin(peer);
    ucp_st_worker_unlock(worker);
    request = ucp_st_ctrl_give(frame);
    ucp_st_worker_lock(worker);
    if (ucp_st_ucp_is_full(UCS_PTR_RAW_STATUS(request))) {
        ucp_st_ctrl_put_back(frame);
        return 0;
    }
    self->next_tx_seq += !ucp_st_ctrl_is_alone(frame);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_ctrl_sent(frame, UCS_PTR_STATUS(request));
    }
    return 1;
}

/* Send what can be sent to a peer; how much that was. The lock is held, and
 * released meanwhile. */
static unsigned ucp_st_ctrl_send_peer(ucp_st_peer_t *peer)
{
    ucp_st_ctrl_peer_t *self = ucp_st_ctrl_peer(peer);
    unsigned count           = 0;

    ucp_st_ctrl_send_begin(peer); /* the endpoint stays for the flush */
    while (!ucs_list_is_empty(&self->frames) &&
           (self->sends <= UCP_ST_CTRL_MAX_SENDS) && ucp_st_ctrl_send(peer)) {
        ++count;
    }
    if (ucs_list_is_empty(&self->frames) && (count > 0) &&
        (peer->state >= UCP_ST_PEER_LEFT)) {
        ucp_st_ctrl_flush(peer);
    }
    ucp_st_ctrl_list(peer);
    ucp_st_ctrl_send_end(peer);
    return count;
}

/* One round: how much was sent. What cannot be sent now is not counted, and
 * tried again in the next round: when UCP has completed something, or when the
 * watch wakes the thread. What came up while the lock was not held has woken
 * nobody, and is counted. */
static unsigned ucp_st_ctrl_work(ucp_st_worker_h worker)
{
    ucp_st_ctrl_worker_t *ctrl = ucp_st_ctrl(worker);
    unsigned count             = 0;
    ucp_st_ctrl_peer_t *self;
    ucs_list_link_t ready;

    ucs_list_head_init(&ready);
    ucs_list_splice_tail(&ready, &ctrl->ready);
    ucs_list_head_init(&ctrl->ready);
    ctrl->is_new = 0;
    while (!ucs_list_is_empty(&ready)) {
        self   = ucs_list_head(&ready, ucp_st_ctrl_peer_t, list);
        ucp_st_ctrl_unlist(self);
        count += ucp_st_ctrl_send_peer(self->net.peer);
    }
    return count + ctrl->is_new;
}

void ucp_st_ctrl_disconnect(ucp_st_peer_t *peer)
{
    ucp_st_net_disconnect(peer);
    ucp_st_worker_lock(peer->worker);
    ucp_st_ctrl_drop(peer);
    ucp_st_worker_unlock(peer->worker);
}

static void ucp_st_ctrl_init(ucp_st_worker_h worker)
{
    static const ucp_st_net_client_t client = {
        .work    = ucp_st_ctrl_work,
        .is_used = ucp_st_ctrl_is_sending
    };

    ucs_list_head_init(&ucp_st_ctrl(worker)->ready);
    ucs_list_head_init(&ucp_st_net(worker)->work);
    ucp_st_net_add_client(worker, &client);
}

/* Receive control messages, and learn how long they may be */
static ucs_status_t ucp_st_ctrl_open(ucp_st_worker_h worker)
{
    ucp_worker_attr_t attr     = {
        .field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER
    };
    ucp_st_ctrl_worker_t *ctrl = ucp_st_ctrl(worker);
    ucs_status_t status;

    status = ucp_st_net_set_handler(worker, UCP_ST_NET_AM_CTRL, 0,
                                    ucp_st_ctrl_am_handler);
    if (status == UCS_OK) {
        status = ucp_worker_query(ctrl->net.ucp_worker, &attr);
    }
    if (status != UCS_OK) {
        ucs_error("the UCP worker of the service thread takes no active "
                  "messages: %s", ucs_status_string(status));
        return status;
    }
    ctrl->max_frame = ucs_min(attr.max_am_header, UCP_ST_CTRL_MAX_FRAME);
    if (ctrl->max_frame < (sizeof(ucp_st_frame_t) + UCP_ST_CTRL_MAX)) {
        ucs_error("the UCP worker's transports carry active message headers of "
                  "%zu bytes only", attr.max_am_header);
        return UCS_ERR_UNSUPPORTED;
    }
    return ucp_st_net_start(worker);
}

static int ucp_st_ctrl_is_used(ucp_st_worker_h worker)
{
    return 0; /* it gives the user no handles */
}

static ucp_st_drain_t ucp_st_ctrl_drain(ucp_st_worker_h worker)
{
    ucp_st_ctrl_worker_t *ctrl = ucp_st_ctrl(worker);

    return ((ctrl->sends > 0) || !ucs_list_is_empty(&ctrl->ready)) ?
           UCP_ST_DRAIN_SENDS : UCP_ST_DRAIN_DONE;
}

static void ucp_st_ctrl_peer_init(ucp_st_peer_h peer)
{
    ucp_st_ctrl_peer_t *self = ucp_st_ctrl_peer(peer);

    ucs_list_head_init(&self->frames);
    self->net.peer   = peer;
    self->net.status = UCS_INPROGRESS;
}

/* close() comes when the peers have gone, as their end uses the UCP worker */
const ucp_st_component_t ucp_st_ctrl_component = {
    .priv   = UCP_ST_PRIV_CTRL,
    .sizes  = {
        [UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_ctrl_worker_t),
        [UCP_ST_OBJECT_PEER]   = sizeof(ucp_st_ctrl_peer_t)
    },
    .worker = {
        .init    = ucp_st_ctrl_init,
        .open    = ucp_st_ctrl_open,
        .is_used = ucp_st_ctrl_is_used,
        .leave   = ucp_st_worker_hook_none,
        .drain   = ucp_st_ctrl_drain,
        .ask     = ucp_st_worker_hook_none,
        .waits   = ucp_st_worker_hook_waits,
        .stop    = ucp_st_worker_hook_none,
        .close   = ucp_st_net_stop,
        .cleanup = ucp_st_net_close
    },
    .peer   = {
        .init       = ucp_st_ctrl_peer_init,
        .gone       = ucp_st_peer_hook_none,
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
