/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_host.h - one-sided operations on lane host: messages between service
 * threads.
 *
 *   origin                                  target
 *   stream: hands the operation over
 *   thread: request, with a put's data ---> thread: moves the data,
 *                                                   carries the signal out
 *           word of the queue + 1  <-------         reply, with what was got
 *   stream: quiet waits for the word
 *
 * A strict operation is sent once its flow (st_rma.h) has nothing in front of
 * it. The target answers over the endpoint that UCP gives it for that: it needs
 * not know the origin.
 */
#ifndef UCP_ST_RMA_HOST_H_
#define UCP_ST_RMA_HOST_H_

#include <ucp_st.h>
#include <ucp/api/ucp.h>

/** Take part in what the service thread does with its UCP worker, if there is
 *  one. It is not driven yet. */
ucs_status_t ucp_st_rma_host_open(ucp_st_worker_h worker);

/** UCP's callback for requests. */
ucs_status_t
ucp_st_rma_request_am_handler(void *arg, const void *header,
                              size_t header_length, void *data, size_t length,
                              const ucp_am_recv_param_t *param);

/** The peer is gone: end what waits for its answer. The lock is held. */
void ucp_st_rma_host_peer_gone(ucp_st_peer_h peer);

#endif
