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
#include "core/st_log.h"
#include "core/st_ucp.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* Longest frame; UCP's limit may be lower */
#define UCP_ST_CTRL_MAX_FRAME 4096

/* Frames that UCP has at once */
#define UCP_ST_CTRL_MAX_SENDS 64

/* The frame leaves the outbox */
static void ucp_st_outbox_take(ucp_st_frame_buf_t *buf)
{
    ucs_list_del(&buf->list);
    if (buf->peer->frame == buf) {
        buf->peer->frame = NULL;
    }
}

void ucp_st_outbox_drop(ucp_st_worker_h worker, const ucp_st_peer_t *peer)
{
    ucp_st_frame_buf_t *buf, *tmp;

    ucs_list_for_each_safe(buf, tmp, &ucp_st_ctrl(worker)->outbox, list) {
        if ((peer == NULL) || (buf->peer == peer)) {
            ucp_st_outbox_take(buf);
            free(buf);
        }
    }
}

void *ucp_st_outbox_reserve(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                            size_t length)
{
    ucp_st_worker_h worker  = peer->worker;
    ucp_st_frame_buf_t *buf = peer->frame;
    ucp_st_msg_hdr_t *hdr;

    if ((buf == NULL) || ((buf->length + length) > worker->max_frame)) {
        buf = malloc(sizeof(*buf) + worker->max_frame);
        if (buf == NULL) {
            return NULL;
        }
        buf->peer   = peer;
        buf->length = sizeof(ucp_st_frame_t);
        ucs_list_add_tail(&ucp_st_ctrl(worker)->outbox, &buf->list);
        peer->frame = buf;
    }
    hdr           = (ucp_st_msg_hdr_t*)(buf->data + buf->length);
    buf->length  += length;
    hdr->type     = type;
    hdr->reserved = 0;
    hdr->length   = length;
    return hdr;
}

/* Behind BYE there is only the answer to the peer's, and nothing behind that */
static int ucp_st_outbox_is_open(const ucp_st_peer_t *peer,
                                 ucp_st_msg_type_t type)
{
    return (peer->status == UCS_OK) && !peer->told_last &&
           (!peer->told_bye || (type == UCP_ST_MSG_BYE_ACK));
}

void ucp_st_outbox_post_with(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                             const ucp_st_msg_op_t *params, const void *data,
                             size_t length)
{
    ucp_st_msg_op_t *msg;
    ucp_st_msg_hdr_t hdr;

    if (!ucp_st_outbox_is_open(peer, type)) {
        return;
    }
    msg = ucp_st_outbox_reserve(peer, type, sizeof(*msg) + length);
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

static ucs_status_t ucp_st_ctrl_am_handler(void *arg, const void *header,
                                           size_t header_length, void *data,
                                           size_t length,
                                           const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;

    ucp_st_worker_lock(worker);
    ucp_st_ctrl_up.receive(worker, header, header_length);
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

static void ucp_st_ctrl_unlisten(ucp_st_worker_h worker)
{
    (void)ucp_st_ucp_set_handler(worker->ucp_worker, worker->am_id, 0, NULL,
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
        status = ucp_st_ucp_drop_all(worker->ucp_worker, worker->am_id + 1);
    }
    if (status == UCS_OK) {
        status = ucp_st_ucp_set_handler(worker->ucp_worker, worker->am_id, 0,
                                        ucp_st_ctrl_am_handler, worker);
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
        ucp_st_ctrl_up.lost(peer, status);
    }
    ucp_st_ctrl_up.sent(peer);
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
        ucp_st_ctrl_up.receive(worker, buf->data, buf->length);
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
    ucs_list_for_each_safe(buf, tmp, &ctrl->outbox, list) {
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
           ucp_st_ucp_ep_create(peer->worker->ucp_worker, ucp_address,
                                ucp_st_svc_ep_failed, peer, ep_p);
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
    ucs_list_head_init(&ucp_st_ctrl(worker)->outbox);
    ucp_st_svc_init(worker);
}

static void ucp_st_ctrl_cleanup(ucp_st_worker_h worker)
{
    ucp_st_svc_close(worker);
}

static ucs_status_t ucp_st_ctrl_open(ucp_st_worker_h worker)
{
    ucs_status_t status;

    status = ucp_st_svc_open(worker);
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
        ucp_st_ctrl_unlisten(worker);
    }
    return status;
}

static int ucp_st_ctrl_is_used(ucp_st_worker_h worker)
{
    return 0; /* it gives the user no handles */
}

static ucp_st_drain_t ucp_st_ctrl_drain(ucp_st_worker_h worker)
{
    return (ucp_st_ctrl(worker)->sends > 0)       ? UCP_ST_DRAIN_SENDS :
           (ucp_st_svc(worker)->num_notices > 0) ? UCP_ST_DRAIN_ANSWERS :
                                                    UCP_ST_DRAIN_DONE;
}

/* Peers that used it have stopped it */
static void ucp_st_ctrl_close(ucp_st_worker_h worker)
{
    ucp_st_svc_stop(ucp_st_svc(worker));
}

/* The peers' end still uses the UCP worker of the service thread */
const ucp_st_component_t ucp_st_ctrl_component = {
    .part   = UCP_ST_PART_CTRL,
    .sizes  = {[UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_ctrl_worker_t)},
    .worker = {
        .init    = ucp_st_ctrl_init,
        .open    = ucp_st_ctrl_open,
        .is_used = ucp_st_ctrl_is_used,
        .drain   = ucp_st_ctrl_drain,
        .ask     = ucp_st_worker_hook_none,
        .waits   = ucp_st_worker_hook_waits,
        .stop    = ucp_st_ctrl_unlisten,
        .close   = ucp_st_ctrl_close,
        .cleanup = ucp_st_ctrl_cleanup
    },
    .peer   = {
        .init       = ucp_st_peer_hook_none,
        .gone       = ucp_st_peer_hook_none,
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
