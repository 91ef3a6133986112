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

#include "obj/cxiemu_cntr.h"
#include "op/cxiemu_txop.h"

#include <rdma/fi_trigger.h>


typedef struct cxiemu_dwq_entry {
    LIST_ENTRY(cxiemu_dwq_entry) list; /**< In nic->dwq or nic->dwq_free */
    uint64_t           threshold;
    uint64_t           age;        /**< Ties: first in, first out */
    size_t             index;      /**< In the counter's heap */
    int                queued;     /**< In the heap */
    uint8_t            held;       /**< In nic->held */
    uint8_t            entries;    /**< Of the service, that it takes */
    uint8_t            slots;      /**< Of the queue of commands */
    TAILQ_ENTRY(cxiemu_dwq_entry) held_list;
    cxiemu_cntr_t      *trigger;   /**< NULL when started */
    cxiemu_cntr_t      *completion; /**< May be NULL */
    enum fi_op_type    type;
    int                write_back; /**< Only a writeback of the trigger counter
                                        (FI_CXI_CNTR_WB) */
    cxiemu_op_t        op;         /**< Operations on endpoints */
    const void         *operand;   /**< Atomics read it when they fire */
    const void         *compare;
    cxiemu_cntr_t      *target;    /**< FI_OP_CNTR_SET and _ADD */
    uint64_t           value;
} cxiemu_dwq_entry_t;

/** Start the work of counters that fired, until nothing more does, bounded;
 *  how many. Lock held. */
unsigned cxiemu_dwq_run(cxiemu_nic_t *nic);

/** Deferred work that was started (its operation was given to
 *  cxiemu_txop_start(), with success) is over: count at the completion counter
 *  (a success or a failure, by @a err, FI_E*) and free the entry. Lock held. */
void cxiemu_dwq_done(cxiemu_dwq_entry_t *entry, int err);

/** Drop the work that waits at a counter that is closed, or is of an endpoint
 *  that is. Lock held. */
void cxiemu_dwq_drop_cntr(cxiemu_cntr_t *cntr);
void cxiemu_dwq_drop_ep(struct cxiemu_ep *ep);

/** Drop all that waits, once what was started is over: FI_FLUSH_WORK. 0; or
 *  -FI_EAGAIN, with no effect, if that takes long. Lock held on entry and on
 *  return, not in between. */
int cxiemu_dwq_flush(cxiemu_nic_t *nic);


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
