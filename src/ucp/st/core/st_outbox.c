/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_outbox.c - control messages that wait to be sent.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_outbox.h"
#include "core/st_lane.h"
#include "core/st_op.h"
#include "core/st_worker.h"

#include <stdlib.h>
#include <string.h>

void ucp_st_outbox_take(ucp_st_frame_buf_t *buf)
{
    ucs_list_del(&buf->list);
    if (buf->peer->frame == buf) {
        buf->peer->frame = NULL;
    }
}

void ucp_st_outbox_cleanup(ucp_st_worker_h worker)
{
    ucp_st_frame_buf_t *buf, *tmp;

    ucs_list_for_each_safe(buf, tmp, &worker->outbox, list) {
        ucp_st_outbox_take(buf);
        free(buf);
    }
}

/* Room for a message to a peer; NULL without memory. The lock is held. */
static void *ucp_st_outbox_reserve(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
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
        buf->worker = worker;
        buf->peer   = peer;
        buf->length = sizeof(ucp_st_frame_t);
        ucs_list_add_tail(&worker->outbox, &buf->list);
        peer->frame = buf;
    }
    hdr           = (ucp_st_msg_hdr_t*)(buf->data + buf->length);
    buf->length  += length;
    hdr->type     = type;
    hdr->reserved = 0;
    hdr->length   = length;
    return hdr;
}

ucs_status_t ucp_st_outbox_post_match(ucp_st_op_t *op)
{
    ucp_st_worker_h worker = op->worker;
    ucp_st_msg_match_t *msg;
    unsigned i, count;

    msg = ucp_st_outbox_reserve(op->peer, UCP_ST_MSG_MATCH, sizeof(*msg));
    if (msg == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    msg->op_id  = op->id;
    msg->tag    = op->tag;
    msg->scope  = op->scope;
    msg->length = op->length;
    msg->dir    = op->dir;
    msg->mode   = op->mode;
    memset(msg->reserved, 0, sizeof(msg->reserved));
    memset(op->lane_order, 0, sizeof(op->lane_order));
    for (i = 0, count = 0; i < worker->num_lanes; ++i) {
        if (op->peer->lanes & UCS_BIT(worker->lanes[i]->id)) {
            op->lane_order[count++] = worker->lanes[i]->id;
        }
    }
    memcpy(msg->lanes, op->lane_order, sizeof(msg->lanes));
    return UCS_OK;
}

void ucp_st_outbox_post_with(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                             const ucp_st_msg_op_t *params, const void *data,
                             size_t length)
{
    ucp_st_msg_op_t *msg;
    ucp_st_msg_hdr_t hdr;

    if (peer->status != UCS_OK) {
        return;
    }
    msg = ucp_st_outbox_reserve(peer, type, sizeof(*msg) + length);
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

void ucp_st_outbox_post(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                        const ucp_st_msg_op_t *msg)
{
    ucp_st_outbox_post_with(peer, type, msg, NULL, 0);
}
