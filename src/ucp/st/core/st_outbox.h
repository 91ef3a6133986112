/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_outbox.h - control messages that wait to be sent: an outbox a worker,
 * filled under its lock. Messages to a peer are put together as long as they
 * wait: a match of n operations costs a number of active messages that is a
 * small part of n.
 */
#ifndef UCP_ST_OUTBOX_H_
#define UCP_ST_OUTBOX_H_

#include "core/st_peer.h"

/** Messages to one peer: one active message. */
typedef struct ucp_st_frame_buf {
    ucs_list_link_t list;
    ucp_st_worker_h worker;
    ucp_st_peer_h   peer;
    size_t          length; /* of what is filled in */
    uint8_t         data[]; /* ucp_st_frame_t and messages */
} ucp_st_frame_buf_t;

/** Put the match message of an operation in the outbox. The lock is held, as it
 *  is for the next ones. */
ucs_status_t ucp_st_outbox_post_match(ucp_st_op_t *op);

/**
 * Put a message and the bytes that follow it in the outbox; type and length of
 * the head of `msg` are filled in. Without memory the peer is declared gone.
 */
void ucp_st_outbox_post_with(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                             const ucp_st_msg_op_t *msg, const void *data,
                             size_t length);

/** The same with nothing behind it. */
void ucp_st_outbox_post(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                        const ucp_st_msg_op_t *msg);

/** The frame leaves the outbox. */
void ucp_st_outbox_take(ucp_st_frame_buf_t *buf);

/** Drop what was not sent. The lock is not held, no other thread uses the
 *  worker. */
void ucp_st_outbox_cleanup(ucp_st_worker_h worker);

#endif
