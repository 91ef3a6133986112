/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_msg.h - messages that are used once, for the cases about them.
 */
#ifndef ST_MSG_H_
#define ST_MSG_H_

#include "st_pair.h"

/** Parameters of a message. */
ucp_st_msg_params_t st_msg_params(ucp_st_peer_h peer, void *buffer,
                                  size_t length, ucp_tag_t tag);

/** Enqueue a message; asserts. Receives are from anywhere. */
ucp_st_req_h st_msg_send(st_side_t *side, ucp_st_peer_h peer, void *buffer,
                         size_t length, ucp_tag_t tag);
ucp_st_req_h st_msg_recv(st_side_t *side, void *buffer, size_t length,
                         ucp_tag_t tag);

/** One that nobody asks about: to the side's peer, or from anywhere. */
void st_enqueue(st_side_t *side, int is_send, void *buffer, size_t length,
                ucp_tag_t tag);

/** One of a FIFO, with the side's peer, in a scope that all have; asserts. */
ucp_st_req_h st_fifo_req(st_side_t *side, int is_send, void *buffer,
                         size_t length, ucp_tag_t tag);

/** The same, that nobody asks about. */
void st_fifo(st_side_t *side, int is_send, void *buffer, size_t length,
             ucp_tag_t tag);

/** The same, started and waited for by the stream at once. */
void st_fifo_run(st_side_t *side, int is_send, void *buffer, size_t length,
                 ucp_tag_t tag);

/** What the last receive of a FIFO has got, in the order of the stream. */
extern uint64_t st_fifo_actual;

/** Start what is enqueued, wait for it on the stream, or both; asserts. */
void st_batch_start(st_side_t *side);
void st_batch_wait(st_side_t *side);
void st_batch_run(st_side_t *side);

/** Wait on the stream for some messages; asserts. */
void st_some_wait(st_side_t *side, const ucp_st_req_h *reqs, size_t count);

/** Messages that only end if a wait for some of them waits for no others: made
 *  by `req`, as st_fifo_req(). */
typedef ucp_st_req_h (*st_req_func_t)(st_side_t *side, int is_send,
                                      void *buffer, size_t length,
                                      ucp_tag_t tag);

void st_some_run(st_pair_t *pair, st_req_func_t req);

/** Wait for a message, which ends with `status`, and give it back; its
 *  length. */
size_t st_msg_end(ucp_st_req_h req, ucs_status_t status);

/** Give a message back that is complete already, as the stream has passed the
 *  wait for it. */
void st_msg_is_done(ucp_st_req_h req, size_t length, ucp_tag_t tag);

#endif
