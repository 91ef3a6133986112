/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_rma.h - what one-sided operations, and messages of FIFOs, use of the
 * trig lane. Where a function does not say otherwise the worker's lock is held.
 */
#ifndef UCP_ST_TRIG_RMA_H_
#define UCP_ST_TRIG_RMA_H_

#include "core/st_peer.h"
#include "trig/st_trig_work.h"

#include <ucs_gstream_memory.h>

/** NICs of a worker: as many as the nodes of today have. */
#define UCP_ST_TRIG_MAX_RAILS 4

/** From now on have the lane's service thread call `settle`, which may cancel
 *  deferred work. May be called again, with the same function. */
void ucp_st_trig_rma_open(ucp_st_worker_h worker,
                          void (*settle)(ucp_st_worker_h worker));

/** There was no entry for what no completion need post, or what may become due:
 *  have the service thread post again soon. */
void ucp_st_trig_refused(ucp_st_worker_h worker);

/** Registered memory. */
typedef struct ucp_st_trig_rma_mem {
    unsigned       num_nics;
    uct_trig_mem_h mems[UCP_ST_TRIG_MAX_RAILS];
} ucp_st_trig_rma_mem_t;

/** The NICs: how many, and each. Messages of FIFOs use the first one. */
unsigned ucp_st_trig_rma_num_rails(ucp_st_worker_h worker);
ucp_st_trig_rail_t *ucp_st_trig_rma_rail(ucp_st_worker_h worker, unsigned nic);

/** What reaches the NIC of that number of a peer; NULL if nothing does. */
uct_ep_h ucp_st_trig_rma_ep(ucp_st_peer_t *peer, unsigned nic);

/** Longest write to a peer, bytes. */
size_t ucp_st_trig_rma_put_max(ucp_st_peer_t *peer);

/** The NICs move data from and, if it is written, to memory of a device; if not
 *  it is said why, for diagnosis. Calls the device's runtime. */
int ucp_st_trig_takes(ucp_st_worker_h worker, void *address, size_t length,
                      const ucs_gstream_memory_attr_t *memory, int is_written);

/** Have the service thread look at the worker again. With the lock held or
 *  not. */
void ucp_st_trig_dev_wake(ucp_st_worker_h worker);

/** The sooner of two times in milliseconds, of which -1 is never. */
static inline int ucp_st_trig_sooner(int a, int b)
{
    return ((a < 0) || ((b >= 0) && (b < a))) ? b : a;
}

/** The NIC says that the peer cannot be reached, not that a put is wrong. */
int ucp_st_trig_is_loss(ucs_status_t status);

#endif
