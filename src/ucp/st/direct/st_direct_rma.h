/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_rma.h - what one-sided operations use of the direct lane: mapped
 * memory, and how a stream that sleeps until a signal comes is woken.
 *
 * A peer's stream that has carried a signal out notifies the only sleeper, or
 * wakes the service thread, which looks after all of them, where there are more
 * or the sleeper has no wait record.
 */
#ifndef UCP_ST_DIRECT_RMA_H_
#define UCP_ST_DIRECT_RMA_H_

#include <ucp_st.h>

#include "direct/st_direct_shm.h"

/** The lane is open: have the service thread call `look`, with the lock held,
 *  when a peer has woken it. The lock is not held here. */
void ucp_st_direct_rma_open(ucp_st_worker_h worker,
                            void (*look)(ucp_st_worker_h worker));

/** The stream of a queue may sleep until a signal comes, which it looks for
 *  once more after this: on its wait record (`is_notified`), or where only the
 *  service thread finds it. On the stream; and once until the next one. */
void ucp_st_direct_rma_sleep(ucp_st_queue_h queue, int is_notified);

/** The stream of a queue does not sleep any more. */
void ucp_st_direct_rma_awake(ucp_st_queue_h queue);

/** A signal was carried out in the memory of a peer that the lane reaches: wake
 *  what sleeps there. */
void ucp_st_direct_rma_notify(ucp_st_peer_h peer);

#endif
