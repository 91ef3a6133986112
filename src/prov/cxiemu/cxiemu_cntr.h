/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_cntr.h - counters and their doorbells.
 *
 * A counter has the value that the NIC counts with, and the value last written
 * back, which is what the host reads. In strict mode a read asks for a writeback
 * and returns the one before; fast mode progresses and writes back at once.
 */
#ifndef CXIEMU_CNTR_H_
#define CXIEMU_CNTR_H_

#include "cxiemu_domain.h"

#include <rdma/fi_eq.h>

#define CXIEMU_CNTR_SUCCESS_MAX ((1ull << 48) - 1)
#define CXIEMU_CNTR_FAILURE_MAX ((1ull << 7) - 1)

struct cxiemu_dwq_entry;


typedef struct cxiemu_cntr {
    struct fid_cntr         fid;
    cxiemu_domain_t         *domain;
    TAILQ_ENTRY(cxiemu_cntr) list;
    TAILQ_ENTRY(cxiemu_cntr) fired;
    int                     is_fired;  /**< In nic->fired */
    uint64_t                success;   /**< 48 bits, wraps as Cassini's does */
    uint64_t                failure;   /**< 7 bits, saturates */
    uint64_t                written;   /**< Last writeback, as in wb; atomic */
    int                     wb_wanted; /**< A read asked for a writeback */
    uint64_t                *wb;       /**< User's writeback buffer, or NULL */
    uint8_t                 *doorbell; /**< Trigger page, or NULL */
    uint64_t                seen[4];   /**< Doorbells' values last taken */
    struct cxiemu_dwq_entry **heap;    /**< Triggers by threshold, then age */
    size_t                  heap_count;
    size_t                  heap_size;
    unsigned                refs;      /**< Endpoints, regions, deferred work */
    struct fid              *mr;       /**< Region whose writes it counts */
} cxiemu_cntr_t;

/** Count; triggers run by the next cxiemu_dwq_run(). Lock held. */
void cxiemu_cntr_count(cxiemu_cntr_t *cntr, uint64_t success, uint64_t failure);

/** Set the success count (failure stays). Lock held. */
void cxiemu_cntr_assign(cxiemu_cntr_t *cntr, uint64_t success);

/** Do the writebacks that are due. Lock held. */
void cxiemu_cntr_writeback(cxiemu_nic_t *nic);

/** Take what was stored to doorbells; how many had something. Lock held. */
unsigned cxiemu_cntr_doorbells(cxiemu_nic_t *nic);

/** A counter from a libfabric handle of the same domain, or NULL. */
cxiemu_cntr_t *cxiemu_cntr_from(cxiemu_domain_t *domain, struct fid_cntr *fid);

#endif
