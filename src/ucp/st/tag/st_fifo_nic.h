/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fifo_nic.h - messages of FIFOs: what a queue and a message have on the NIC
 * of lane trig, or where there is none, in its place. The worker's lock is held
 * for all of it, unless a function says otherwise.
 *
 * A queue has a counter S, to which its stream adds 1 for each start, a counter
 * C and a word. A send has, while it is under way, a counter T of its own.
 *
 *   send i      S >= its start:   T += 1           (the bridge)
 *               T >= 2:           put of the data  C counts it here, and at the
 *                                                  receiver
 *   receive i   S >= its start:   T += 1 of the send  (clear-to-send)
 *   wait k      C >= all that the messages before it count: word += 1
 *
 * A stream may start any number of times before it waits: each message has its
 * own T, which starts of others do not add to. A wait is for all messages that
 * were started so far, so that C counts nothing of a later one before it.
 * test/model/fifo.pml has the argument, and what breaks it. Without a NIC the
 * stream calls a function in place of S, and the service thread counts.
 */
#ifndef UCP_ST_FIFO_NIC_H_
#define UCP_ST_FIFO_NIC_H_

#include "tag/st_fifo.h"

/** Whether the NIC reaches the peer, and so moves messages to it and from it:
 *  both sides find the same. */
int ucp_st_fifo_nic_reaches(ucp_st_peer_h peer);

/** Make the queue's part, if there is none. The lock is not held. */
ucs_status_t ucp_st_fifo_nic_prepare(ucp_st_queue_h queue);

/** The message was made: find out what is moved. */
void ucp_st_fifo_nic_init(ucp_st_fifo_msg_t *msg);

/** UCS_OK if the counters take one start more; else UCS_ERR_EXCEEDS_LIMIT. */
ucs_status_t ucp_st_fifo_nic_check(const ucp_st_fifo_nic_t *nic);

/** Write the stream command that is a start: how many commands. The lock is not
 *  held. */
size_t ucp_st_fifo_nic_start_cmd(ucp_st_fifo_nic_t *nic,
                                 ucs_gstream_cmd_t *cmd);

/** The stream was given a start with the message: register what the peer is to
 *  write. */
ucs_status_t ucp_st_fifo_nic_begin(ucp_st_fifo_msg_t *msg);

/** The other half is known, and the message fits: post it. */
ucs_status_t ucp_st_fifo_nic_pair(ucp_st_fifo_msg_t *msg,
                                  const ucp_st_ctrl_fifo_t *other);

/** Write keys that the peer needs. */
void ucp_st_fifo_nic_keys(const ucp_st_fifo_msg_t *msg,
                          ucp_st_ctrl_fifo_t *ctrl);

/** Post what is to be posted of the queue, as far as there are entries. */
void ucp_st_fifo_nic_post(ucp_st_fifo_nic_t *nic);

/** Nothing more of the message is to be posted. */
void ucp_st_fifo_msg_done(ucp_st_fifo_msg_t *msg);

/** The message has ended before its data was moved: from now on the peer writes
 *  nothing here. */
void ucp_st_fifo_nic_close(ucp_st_fifo_msg_t *msg);

/** The message has ended: if its peer is silent it does not hold up its queue
 *  for long, nor keep the NIC's entries. */
void ucp_st_fifo_nic_limit(ucp_st_fifo_msg_t *msg);

/** A put of it has failed: if the peer does not say soon that its half is
 *  closed that was a fault (trig/st_trig_end.c, "Doubt"). */
void ucp_st_fifo_nic_doubt(ucp_st_fifo_msg_t *msg, ucs_status_t status);

/** Look for messages whose time is over: when to look again, milliseconds, or
 *  -1. In the service thread. */
int ucp_st_fifo_nic_look(ucp_st_worker_h worker);

/** The queue has failed: its starts have no effect any more. */
void ucp_st_fifo_nic_halt(ucp_st_fifo_nic_t *nic);

/** Something has ended: take the steps that are possible now. The message, or
 *  for NULL none, and the queue's part may be gone on return. */
void ucp_st_fifo_nic_settle(ucp_st_fifo_nic_t *nic, ucp_st_fifo_msg_t *msg);

/** Non-zero while the NIC carries out what was fired. */
int ucp_st_fifo_nic_is_firing(const ucp_st_fifo_nic_t *nic);

/** Non-zero once the stream has come to the message's start. */
int ucp_st_fifo_nic_is_begun(const ucp_st_fifo_msg_t *msg);

/** BY_PUT: put the data now. UCS_ERR_NO_RESOURCE: again, later. */
ucs_status_t ucp_st_fifo_nic_put(ucp_st_fifo_msg_t *msg);

/** Count a message whose data the host has put in place. */
void ucp_st_fifo_nic_count(ucp_st_fifo_msg_t *msg);

/** Close what no message uses any more. Nothing is under way. */
void ucp_st_fifo_nic_cleanup(ucp_st_worker_h worker);

#endif
