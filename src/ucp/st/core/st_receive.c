/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_receive.c - control messages and notices that have come, and what else
 * ctrl tells core.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_leave.h"
#include "core/st_log.h"
#include "core/st_match.h"
#include "core/st_notice.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "ctrl/st_ctrl.h"

#include <ucs/sys/math.h>

#include <string.h>

/* Handlers of the messages about one operation; the lock is held */
typedef void (*ucp_st_receive_handler_t)(ucp_st_peer_t *peer,
                                      const ucp_st_msg_op_t *msg);

static void ucp_st_receive_handle_done(ucp_st_peer_t *peer,
                                       const ucp_st_msg_op_t *msg)
{
    ucp_st_op_t *op = ucp_st_op_find(peer, msg->op_id);

    if ((op != NULL) && (op->freed || op->is_told)) { /* it was asked */
        ucp_st_op_peer_done(op);
    }
}

static void ucp_st_receive_handle_ping(ucp_st_peer_t *peer,
                                       const ucp_st_msg_op_t *msg)
{
}

static const ucp_st_receive_handler_t
ucp_st_receive_handlers[UCP_ST_MSG_LAST] = {
    [UCP_ST_MSG_BIND]        = ucp_st_match_handle_bind,
    [UCP_ST_MSG_CANCEL]      = ucp_st_match_handle_cancel,
    [UCP_ST_MSG_CANCEL_ACK]  = ucp_st_receive_handle_done,
    [UCP_ST_MSG_UNMATCH]     = ucp_st_op_handle_unmatch,
    [UCP_ST_MSG_UNMATCH_ACK] = ucp_st_receive_handle_done,
    [UCP_ST_MSG_PING]        = ucp_st_receive_handle_ping,
    [UCP_ST_MSG_LEAVE]       = ucp_st_leave_handle_leave,
    [UCP_ST_MSG_BYE]         = ucp_st_leave_handle_bye,
    [UCP_ST_MSG_BYE_ACK]     = ucp_st_leave_handle_bye_ack
};

/* Handle the first of the messages; its length, or 0 if it is malformed. The
 * lock is held. */
static size_t ucp_st_receive_handle_one(ucp_st_peer_t *peer,
                                        const uint8_t *data, size_t length)
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
        ucp_st_receive_handlers[hdr->type](peer, (const ucp_st_msg_op_t*)hdr);
    }
    return hdr->length;
}

/* Handle a frame, after a check of its head. The lock is held. */
static void ucp_st_receive_frame(ucp_st_worker_h worker, const uint8_t *data,
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
        used = ucp_st_receive_handle_one(peer, data + offset, length - offset);
        if (used == 0) {
            ucs_error("peer 0x%lx sent a malformed control message",
                      peer->uuid);
            ucp_st_peer_fail(peer, UCS_ERR_IO_ERROR);
            return;
        }
    }
}

const ucp_st_ctrl_up_t ucp_st_ctrl_up = {
    .receive     = ucp_st_receive_frame,
    .notice      = ucp_st_notice_receive,
    .sent        = ucp_st_notice_answer_bye,
    .lost        = ucp_st_peer_lost,
    .lost_notice = ucp_st_notice_lost,
    .fail        = ucp_st_peer_fail
};
