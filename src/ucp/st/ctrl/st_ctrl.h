/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ctrl.h - control messages: a worker's outbox is sent as UCP active
 * messages, without the worker's lock.
 *
 * This folder is below core: it carries messages, and calls core by
 * ucp_st_ctrl_up alone.
 */
#ifndef UCP_ST_CTRL_H_
#define UCP_ST_CTRL_H_

#include "core/st_peer.h"
#include "core/st_worker.h"
#include "ctrl/st_svc.h"

/** A worker's part. Protected by its lock. */
typedef struct ucp_st_ctrl_worker {
    ucs_list_link_t outbox;      /* ucp_st_frame_buf_t, in order of sending */
    int             outbox_busy; /* a thread sends from it */
    unsigned        sends;       /* that UCP has not completed */
    ucp_st_svc_t    svc;         /* see there */
} ucp_st_ctrl_worker_t;

/** What core does about what comes. The worker's lock is held. */
typedef struct ucp_st_ctrl_up {
    /** A frame of control messages has come, to be checked. */
    void (*receive)(ucp_st_worker_h worker, const uint8_t *data, size_t length);

    /** A notice has come, to be checked. In the service thread. */
    void (*notice)(ucp_st_worker_h worker, const void *data, size_t length);

    /** UCP has completed a frame, or a flush. */
    void (*sent)(ucp_st_peer_h peer);

    /** A transport has lost a peer. */
    void (*lost)(ucp_st_peer_h peer, ucs_status_t status);

    /** The same, of the endpoint for notices. */
    void (*lost_notice)(ucp_st_peer_h peer, ucs_status_t status);

    /** There is no memory for what the peer has to know. */
    void (*fail)(ucp_st_peer_h peer, ucs_status_t status);
} ucp_st_ctrl_up_t;

/** Core's, in core/st_receive.c. */
extern const ucp_st_ctrl_up_t ucp_st_ctrl_up;

extern const ucp_st_component_t ucp_st_ctrl_component;

static inline ucp_st_ctrl_worker_t *ucp_st_ctrl(ucp_st_worker_h worker)
{
    return worker->parts[UCP_ST_PART_CTRL];
}

static inline ucp_st_svc_t *ucp_st_svc(ucp_st_worker_h worker)
{
    return &ucp_st_ctrl(worker)->svc;
}

/**
 * Messages to one peer: one active message, in the outbox of the worker. They
 * are put together as long as they wait: a match of n operations costs a number
 * of active messages that is a small part of n.
 */
typedef struct ucp_st_frame_buf {
    ucs_list_link_t list;
    ucp_st_peer_h   peer;
    size_t          length; /* of what is filled in */
    uint8_t         data[]; /* ucp_st_frame_t and messages */
} ucp_st_frame_buf_t;

/** Room for a message to a peer in the outbox, whose head is filled in; NULL
 *  without memory. The lock is held, as for the next ones. */
void *ucp_st_outbox_reserve(ucp_st_peer_h peer, ucp_st_msg_type_t type,
                            size_t length);

/**
 * Put a message and the bytes that follow it in the outbox; type and length of
 * the head of `msg` are filled in. Without memory the peer is declared gone.
 */
void ucp_st_outbox_post_with(ucp_st_peer_h peer, ucp_st_msg_type_t type,
                             const ucp_st_msg_op_t *msg, const void *data,
                             size_t length);

/** The same with nothing behind it, and only the ids that the type needs. */
static inline void ucp_st_outbox_post(ucp_st_peer_h peer,
                                      ucp_st_msg_type_t type, uint64_t op_id,
                                      uint64_t src_op_id)
{
    ucp_st_msg_op_t msg = {.op_id = op_id, .src_op_id = src_op_id};

    ucp_st_outbox_post_with(peer, type, &msg, NULL, 0);
}

/** Drop what was not sent to a peer, with the lock held; or, if it is NULL, to
 *  any, when no other thread uses the worker. */
void ucp_st_outbox_drop(ucp_st_worker_h worker, const ucp_st_peer_t *peer);

/** Send what is in the outbox. The lock is not held, nor for the next ones. */
void ucp_st_ctrl_flush(ucp_st_worker_h worker);

/** UCP has completed one of `sends`. */
void ucp_st_ctrl_sent(ucp_st_peer_h peer, ucs_status_t status);

/** Make the endpoint for control messages. */
ucs_status_t ucp_st_ctrl_connect(ucp_st_peer_h peer, const void *ucp_address,
                                 ucp_ep_h *ep_p);

/** Undo that, and ucp_st_svc_ep_connect(), until `end`, a time of
 *  ucp_st_worker_now(). No other thread uses the endpoints. */
void ucp_st_ctrl_disconnect(ucp_st_peer_h peer, double end);

#endif
