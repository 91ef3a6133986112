/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_dwq.h - deferred work: operations that wait for a counter.
 *
 *   [held ->] queued (in the counter's heap) -> fired -> started (txop) -> done
 *
 * An entry of the service's is taken when work is queued and given back when it
 * has fired, as Cassini does. Where there is none, fast mode refuses the work.
 * In strict mode the queue of commands stalls, as Cassini's does: it holds the
 * work, and all that comes behind, until there is one.
 */
#ifndef CXIEMU_DWQ_H_
#define CXIEMU_DWQ_H_

#include "op/cxiemu_op.h"


/** Start the work of counters that fired, until nothing more does, bounded;
 *  how many. Lock held. */
unsigned cxiemu_dwq_run(cxiemu_nic_t *nic);

/** Drop all that waits. Lock held. */
void cxiemu_dwq_drop_all(cxiemu_nic_t *nic);

/** Whether nothing that was started is under way at the NIC @a arg. Lock
 *  held. */
int cxiemu_dwq_is_settled(void *arg);

/** Drop the work that waits at a counter that is closed, or is of an endpoint
 *  that is. Lock held. */
void cxiemu_dwq_drop_cntr(cxiemu_cntr_t *cntr);
void cxiemu_dwq_drop_ep(struct cxiemu_ep *ep);

/* For cxiemu_work.c, which queues work */

/** Fast mode: take entries; 0, or -FI_ENOSPC. */
int cxiemu_dwq_reserve(size_t count);
void cxiemu_dwq_release(size_t count);

/** Strict mode: whether the queue of commands takes so many slots; 0, or
 *  -FI_EAGAIN, which it also says at times without a reason that a program
 *  could know. Lock held. */
int cxiemu_dwq_room(cxiemu_nic_t *nic, size_t slots);

/** Strict mode: queue a copy of the entry, or hold it. The memory is there
 *  (cxiemu_dwq_prepare()). Lock held. */
void cxiemu_dwq_submit(cxiemu_nic_t *nic, const cxiemu_dwq_entry_t *work);

/** Set a counter behind what is held; 0, or -FI_E*. Lock held. */
int cxiemu_dwq_hold_set(cxiemu_nic_t *nic, cxiemu_cntr_t *cntr,
                        uint64_t value);

/** Queue what was held, as far as there are entries; how many. Lock held. */
unsigned cxiemu_dwq_admit(cxiemu_nic_t *nic);

/** Have memory for so many entries of a counter; 0 or -FI_ENOMEM. Lock held. */
int cxiemu_dwq_prepare(cxiemu_nic_t *nic, cxiemu_cntr_t *cntr, size_t count);

/** Queue a copy of the entry, for which the above have succeeded. Lock held. */
void cxiemu_dwq_insert(cxiemu_nic_t *nic, const cxiemu_dwq_entry_t *work);

/** The NIC ends: free the entries kept for reuse. */
void cxiemu_dwq_cleanup(cxiemu_nic_t *nic);

#endif
