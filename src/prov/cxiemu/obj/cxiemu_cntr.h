/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_cntr.h - counters.
 *
 * A counter has the value that the NIC counts with, and the value last written
 * back, which is what the host reads. In strict mode a read asks for a
 * writeback and returns the one before; fast mode progresses and writes back at
 * once.
 */
#ifndef CXIEMU_CNTR_H_
#define CXIEMU_CNTR_H_

#include "obj/cxiemu_domain.h"

#include <rdma/fi_eq.h>

#define CXIEMU_CNTR_SUCCESS_MAX ((1ull << 48) - 1)
#define CXIEMU_CNTR_FAILURE_MAX ((1ull << 7) - 1)

/* Fields of a writeback, as Cassini lays them out */
#define CXIEMU_WB_FAILURE_SHIFT 48
#define CXIEMU_WB_VALID         (1ull << 63)


/** What waits for a counter; of a cxiemu_dwq_entry_t. */
typedef struct cxiemu_trigger {
    uint64_t threshold;
    uint64_t age;   /**< Ties: first in, first out */
    size_t   index; /**< In the counter's heap */
} cxiemu_trigger_t;

/** What few counters have. */
typedef struct cxiemu_cntr_more {
    uint64_t           flags;      /**< FI_GETOPSFLAG */
    uint64_t           last_read;  /**< For fi_trywait(); atomic */
    SLIST_ENTRY(cxiemu_cntr) wb_due; /**< In nic->wb_due */
    uint64_t           *wb;        /**< User's writeback buffer, or NULL */
    int                event_fd;   /**< FI_WAIT_FD, else -1 */
    int                armed;
    uint8_t            *doorbell;  /**< Trigger page, or NULL; atomic */
    int                trap;       /**< Slot of the trap mode, or -1 */
    int                is_watched;
    int                is_plain;   /**< Memory, and nobody tells of stores */
    LIST_ENTRY(cxiemu_cntr) watch; /**< In nic->doorbells */
} cxiemu_cntr_more_t;

typedef struct cxiemu_cntr {
    struct fid_cntr           fid;
    cxiemu_domain_t           *domain;
    cxiemu_cntr_more_t        *more;     /**< NULL until it is needed; atomic */
    STAILQ_ENTRY(cxiemu_cntr) fired;
    uint64_t                  success;   /**< 48 bits, wraps as Cassini's
                                              does */
    uint64_t                  written;   /**< Last writeback, as in wb;
                                              atomic */
    cxiemu_trigger_t          **heap;    /**< By threshold, then age */
    uint32_t                  heap_count;
    uint8_t                   heap_order; /**< There is room for 2 to the power
                                               of this, if there is a heap */
    uint8_t                   wait_obj;  /**< enum fi_wait_obj */
    uint8_t                   is_fired;  /**< In nic->fired */
    uint8_t                   wb_wanted; /**< In nic->wb_due */
    uint32_t                  refs;      /**< Endpoints, regions */
    uint16_t                  waiters;   /**< Threads in fi_cntr_wait() */
    uint8_t                   failure;   /**< 7 bits, saturates */
    uint8_t                   known_failure; /**< What the user knows of: more
                                                  than that ends a wait;
                                                  atomic */
} cxiemu_cntr_t;

/* A message takes up to four of them */
_Static_assert(sizeof(cxiemu_cntr_t) <= 96, "memory of a counter");

/** What few counters have, of this one: made by the first call, and freed with
 *  the counter. NULL if there is no memory. Lock held, or nobody else has the
 *  counter yet. */
cxiemu_cntr_more_t *cxiemu_cntr_need_more(cxiemu_cntr_t *cntr);

/** The same if it has it, or NULL; no lock needed. */
static inline cxiemu_cntr_more_t *cxiemu_cntr_more(const cxiemu_cntr_t *cntr)
{
    return __atomic_load_n(&cntr->more, __ATOMIC_ACQUIRE);
}

/** What a writeback writes now. Lock held. */
static inline uint64_t cxiemu_cntr_word(const cxiemu_cntr_t *cntr)
{
    return CXIEMU_WB_VALID | cntr->success |
           ((uint64_t)cntr->failure << CXIEMU_WB_FAILURE_SHIFT);
}

/** The user knows of so many failures. */
static inline void cxiemu_cntr_know(cxiemu_cntr_t *cntr, uint8_t failure)
{
    __atomic_store_n(&cntr->known_failure, failure, __ATOMIC_RELAXED);
}

/** Count; triggers run by the next cxiemu_dwq_run(). Lock held. */
void cxiemu_cntr_count(cxiemu_cntr_t *cntr, uint64_t success, uint64_t failure);

/** List the counter for cxiemu_dwq_run() if its first trigger is due. Lock
 *  held. */
void cxiemu_cntr_fire(cxiemu_cntr_t *cntr);

/** Set the success count (failure stays). Lock held. */
void cxiemu_cntr_assign(cxiemu_cntr_t *cntr, uint64_t success);

/** It was changed otherwise: have it written back, and tell sleepers. Lock
 *  held. */
void cxiemu_cntr_want_writeback(cxiemu_cntr_t *cntr);
void cxiemu_cntr_alert(cxiemu_cntr_t *cntr);

/** Do the writebacks that are due. Lock held. */
void cxiemu_cntr_writeback(cxiemu_nic_t *nic);

/** Write the counter back now. Lock held. */
void cxiemu_cntr_write_back_now(cxiemu_cntr_t *cntr);


#endif
