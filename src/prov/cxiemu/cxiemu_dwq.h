/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_dwq.h - deferred work: operations that wait for a counter.
 *
 *   queued (in the counter's heap) -> fired -> started (txop) -> done
 *
 * An entry of the process's limit is taken when work is queued and given back
 * when it has fired, as Cassini does.
 */
#ifndef CXIEMU_DWQ_H_
#define CXIEMU_DWQ_H_

#include "cxiemu_cntr.h"
#include "cxiemu_txop.h"

#include <rdma/fi_trigger.h>


typedef struct cxiemu_dwq_entry {
    TAILQ_ENTRY(cxiemu_dwq_entry) list; /**< All of the domain */
    uint64_t           threshold;
    uint64_t           age;        /**< Ties: first in, first out */
    cxiemu_cntr_t      *trigger;
    cxiemu_cntr_t      *completion; /**< May be NULL */
    enum fi_op_type    type;
    cxiemu_op_t        op;         /**< Operations on endpoints */
    cxiemu_cntr_t      *target;    /**< FI_OP_CNTR_SET and _ADD */
    uint64_t           value;
} cxiemu_dwq_entry_t;

/** Start the work of counters that fired, until nothing more does, bounded;
 *  how many. Lock held. */
unsigned cxiemu_dwq_run(cxiemu_nic_t *nic);

/** Deferred work is over: count at the completion counter (a success or a
 *  failure, by @a err, FI_E*) and free the entry. Lock held. */
void cxiemu_dwq_done(cxiemu_dwq_entry_t *entry, int err);

/** Drop the work that waits at a counter that is closed, or is of an endpoint
 *  that is. Lock held. */
void cxiemu_dwq_drop_cntr(cxiemu_cntr_t *cntr);
void cxiemu_dwq_drop_ep(struct cxiemu_ep *ep);

#endif
