/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ctrl.h - control messages: an outbox a worker, filled under its lock and
 * sent as UCP active messages without it.
 */
#ifndef UCP_ST_CTRL_H_
#define UCP_ST_CTRL_H_

#include "st_peer.h"
#include "st_worker.h"

/** Messages to one peer on their way to UCP: one active message. */
typedef struct ucp_st_frame_buf {
    ucs_list_link_t list;
    ucp_st_worker_h worker;
    ucp_st_peer_h   peer;
    size_t          length; /* of what is filled in */
    uint8_t         data[]; /* ucp_st_frame_t and messages */
} ucp_st_frame_buf_t;

/** Register the active message handler. The lock is not held. */
ucs_status_t ucp_st_ctrl_init(ucp_st_worker_h worker);

/** Unregister it, and drop what was not sent. The lock is not held. */
void ucp_st_ctrl_cleanup(ucp_st_worker_h worker);

/**
 * Put the match message of an operation in the outbox. The lock is held.
 */
ucs_status_t ucp_st_ctrl_post_match(ucp_st_op_t *op);

/**
 * Put a message and the bytes that follow it in the outbox; type and length of
 * the head of `msg` are filled in. Without memory the peer is declared gone.
 * The lock is held.
 */
void ucp_st_ctrl_post_with(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                           const ucp_st_msg_op_t *msg, const void *data,
                           size_t length);

/** The same with nothing behind it. */
void ucp_st_ctrl_post(ucp_st_peer_t *peer, ucp_st_msg_type_t type,
                      const ucp_st_msg_op_t *msg);

/**
 * Give the processor away between two calls of ucp_st_ctrl_progress(), the
 * first of which returned `progressed`. `idle_rounds` is 0 at first.
 */
void ucp_st_ctrl_pause(unsigned *idle_rounds, unsigned progressed);

/** Send the outbox. The lock is not held. */
void ucp_st_ctrl_flush(ucp_st_worker_h worker);

/**
 * Progress the UCP worker once, decide about peers that are going, ping now and
 * then those that something waits for, let go of freed operations, and send the
 * outbox; non-zero if UCP did something. The lock is not held.
 */
unsigned ucp_st_ctrl_progress(ucp_st_worker_h worker);

#endif
