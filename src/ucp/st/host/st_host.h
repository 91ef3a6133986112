/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host.h - lane host: the service thread moves the data of operations as UCP
 * active messages, over whatever transports UCP has.
 *
 * A use k of a pair:
 *
 *   sender                                    receiver
 *   stream: start adds 1 to `begun`           stream: start adds 1 to `begun`
 *   thread: DATA(k)  -----------------------> thread: holds it
 *                                                     begun >= k: moves the
 *                                                     data to the buffer,
 *                                                     word = k
 *           word = k  <----------------------         ACK(k)
 *   stream: wait for word >= k                stream: wait for word >= k
 *
 * A send is complete when UCP has finished with its buffer and the receiver has
 * acknowledged the data, even if UCP buffered the data earlier. The rest of the
 * library relies on this: a use that one side has completed needs nothing of
 * that side any more, so that side may free the operation and leave.
 * Use k+1 is started only once the wait of use k is enqueued on the same
 * stream, so the sender is never ahead of the receiver by more than one
 * message. Ready sends use the same protocol.
 */
#ifndef UCP_ST_HOST_H_
#define UCP_ST_HOST_H_

#include "core/st_lane.h"

extern const ucp_st_lane_ops_t ucp_st_host_lane;

#endif
