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

/** The lane's data of registered memory. */
typedef struct ucp_st_direct_mem {
    ucp_st_direct_map_t *map; /* that it lies in, or NULL */
} ucp_st_direct_mem_t;

/** The lane's data of a key. */
typedef struct ucp_st_direct_rkey {
    ucp_st_direct_map_t *map; /* or NULL: it is this process's own */
    uint8_t             *far; /* address here */
} ucp_st_direct_rkey_t;

/** Have streams of devices reach `length` bytes at `address`, if these are in a
 *  short block of ucp_st_mem_alloc(), whose memory stays for the life of the
 *  process. It is registered when a stream first names it. */
void ucp_st_mem_add_range(const void *address, size_t length);

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
