/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_cq.h - completion queues.
 */
#ifndef CXIEMU_CQ_H_
#define CXIEMU_CQ_H_

#include "obj/cxiemu_domain.h"

#include <rdma/fi_eq.h>

/** Most entries that are kept, whatever size is asked for: some 30 MiB */
#define CXIEMU_CQ_MAX (1u << 18)


/** One entry, in the widest format. */
typedef struct cxiemu_cq_event {
    struct fi_cq_err_entry entry; /**< err = 0: a success */
    fi_addr_t              src;   /**< Of a receive */
} cxiemu_cq_event_t;

typedef struct cxiemu_cq {
    struct fid_cq       fid;
    cxiemu_domain_t     *domain;
    enum fi_cq_format   format;
    enum fi_wait_obj    wait_obj;
    int                 event_fd;  /**< FI_WAIT_FD, else -1 */
    int                 armed;     /**< fi_trywait() said that it is empty */
    int                 by_threshold; /**< FI_CQ_COND_THRESHOLD */
    unsigned            signaled;  /**< Calls of fi_cq_signal() */
    int                 overrun;   /**< Entries were lost; atomic */
    cxiemu_cq_event_t   *ring;     /**< Grows when it is full */
    size_t              size;      /**< A power of two */
    size_t              head;      /**< head, tail: written with the lock; read
                                        without it by pollers, which wait for
                                        the lock only if there is something */
    size_t              tail;
    unsigned            refs;      /**< Endpoints */
    cxiemu_cq_event_t   lost;      /**< What finds no room */
} cxiemu_cq_t;

static inline cxiemu_cq_event_t *cxiemu_cq_at(cxiemu_cq_t *cq, size_t position)
{
    return &cq->ring[position & (cq->size - 1)];
}

/** The place of the next entry, zeroed, to be filled in and pushed. Lock held.
 *  (To fill in one elsewhere and copy it would make the copy's loads wait for
 *  narrower stores, and those for all that was stored to memory of peers.) */
cxiemu_cq_event_t *cxiemu_cq_next(cxiemu_cq_t *cq);

/** Add that entry and wake waiters. Lock held. Cannot fail: the ring grows up
 *  to a limit; beyond, or if memory is short, the queue overruns, which reading
 *  reports once (-FI_EOVERRUN). */
void cxiemu_cq_push(cxiemu_cq_t *cq, const cxiemu_cq_event_t *event);

/** What readers wait for has changed: tell them. Lock held. */
void cxiemu_cq_alert(cxiemu_cq_t *cq);

#endif
