/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_receive.c - control messages that have come, and what else ctrl tells
 * core.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_leave.h"
#include "core/st_match.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "ctrl/st_ctrl.h"

/* Handlers of the messages about one operation; the lock is held */
typedef void (*ucp_st_receive_handler_t)(ucp_st_peer_t *peer,
                                         const ucp_st_ctrl_op_t *msg);

static void ucp_st_receive_handle_done(ucp_st_peer_t *peer,
                                       const ucp_st_ctrl_op_t *msg)
{
    ucp_st_op_t *op = ucp_st_op_find(peer, msg->op_id);

    if ((op != NULL) && (op->freed || op->is_told)) { /* it was asked */
        ucp_st_op_peer_done(op);
    }
}

static void ucp_st_receive_handle_ping(ucp_st_peer_t *peer,
                                       const ucp_st_ctrl_op_t *msg)
{
}

static void ucp_st_receive_handle_fifo(ucp_st_peer_t *peer,
                                       const ucp_st_ctrl_fifo_t *msg)
{
    const ucp_st_component_t *component;

    ucp_st_for_each_component(component) {
        component->peer.fifo(peer, msg);
    }
}

static const ucp_st_receive_handler_t
ucp_st_receive_handlers[UCP_ST_CTRL_LAST] = {
    [UCP_ST_CTRL_BIND]        = ucp_st_match_handle_bind,
    [UCP_ST_CTRL_CANCEL]      = ucp_st_match_handle_cancel,
    [UCP_ST_CTRL_CANCEL_ACK]  = ucp_st_receive_handle_done,
    [UCP_ST_CTRL_UNMATCH]     = ucp_st_op_handle_unmatch,
    [UCP_ST_CTRL_UNMATCH_ACK] = ucp_st_receive_handle_done,
    [UCP_ST_CTRL_PING]        = ucp_st_receive_handle_ping,
    [UCP_ST_CTRL_GONE]        = ucp_st_leave_handle_gone,
    [UCP_ST_CTRL_LEAVE]       = ucp_st_leave_handle_leave,
    [UCP_ST_CTRL_BYE]         = ucp_st_leave_handle_bye,
    [UCP_ST_CTRL_BYE_ACK]     = ucp_st_leave_handle_bye_ack
};

/* A message of a peer that was declared gone. If it waits for this side, and
 * has not left, it was not told. */
static void ucp_st_receive_from_gone(ucp_st_peer_t *peer, uint8_t type)
{
    if (type == UCP_ST_CTRL_GONE) {
        ucp_st_peer_closed(peer);
    } else if (((type == UCP_ST_CTRL_PING) || (type == UCP_ST_CTRL_BYE)) &&
               (peer->status != UCS_ERR_CANCELED) &&
               !ucp_st_ctrl_is_sending(peer)) {
        ucp_st_ctrl_tell_gone(peer);
    }
}

static size_t ucp_st_receive(ucp_st_peer_t *peer, const uint8_t *data,
                             size_t length)
{
    const ucp_st_ctrl_hdr_t *hdr = (const ucp_st_ctrl_hdr_t*)data;
    size_t min_length;

    if ((length < sizeof(*hdr)) || (hdr->type >= UCP_ST_CTRL_LAST)) {
        return 0;
    }
    min_length = (hdr->type == UCP_ST_CTRL_MATCH) ?
                         sizeof(ucp_st_ctrl_match_t) :
                 (hdr->type == UCP_ST_CTRL_FIFO) ?
                         sizeof(ucp_st_ctrl_fifo_t) : sizeof(ucp_st_ctrl_op_t);
    if ((hdr->length < min_length) || (hdr->length > length)) {
        return 0;
    }
    if (peer->state == UCP_ST_PEER_GONE) {
        ucp_st_receive_from_gone(peer, hdr->type);
    } else if (hdr->type == UCP_ST_CTRL_MATCH) {
        ucp_st_match_handle(peer, (const ucp_st_ctrl_match_t*)hdr);
    } else if (hdr->type == UCP_ST_CTRL_FIFO) {
        ucp_st_receive_handle_fifo(peer, (const ucp_st_ctrl_fifo_t*)hdr);
    } else {
        ucp_st_receive_handlers[hdr->type](peer, (const ucp_st_ctrl_op_t*)hdr);
    }
    return hdr->length;
}

static void ucp_st_receive_lost(ucp_st_peer_t *peer, ucs_status_t status)
{
    if (peer->state == UCP_ST_PEER_GONE) {
        ucp_st_peer_closed(peer);
    } else {
        ucp_st_peer_lost(peer, status);
    }
}

const ucp_st_ctrl_up_t ucp_st_ctrl_up = {
    .get_peer = ucp_st_peer_get,
    .receive  = ucp_st_receive,
    .lost     = ucp_st_receive_lost,
    .settle   = ucp_st_leave_settle,
    .fail     = ucp_st_peer_fail
};
