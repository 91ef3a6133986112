/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_cq.h - completion queues.
 */
#ifndef CXIEMU_CQ_H_
#define CXIEMU_CQ_H_

#include "cxiemu_domain.h"

#include <rdma/fi_eq.h>


/** One entry, in the widest format. */
typedef struct cxiemu_cq_event {
    struct fi_cq_err_entry entry; /**< err = 0: a success */
    fi_addr_t              src;   /**< Of a receive */
    struct cxiemu_ep       *tx;   /**< Whose transmit queue gets a place back
                                       when the entry is read; or NULL */
} cxiemu_cq_event_t;

typedef struct cxiemu_cq {
    struct fid_cq       fid;
    cxiemu_domain_t     *domain;
    enum fi_cq_format   format;
    enum fi_wait_obj    wait_obj;
    int                 event_fd;  /**< FI_WAIT_FD, else -1 */
    int                 armed;     /**< fi_trywait() said that it is empty */
    int                 signaled;  /**< fi_cq_signal() */
    cxiemu_cq_event_t   *ring;     /**< Grows when it is full: no entry is lost */
    size_t              size;      /**< A power of two */
    size_t              head;
    size_t              tail;
    unsigned            refs;      /**< Endpoints */
} cxiemu_cq_t;

/** Add an entry and wake who waits. Lock held. Cannot fail: the ring has been
 *  made large enough, or grows; if memory is short, the queue overruns, which
 *  reading reports once (-FI_EOVERRUN). */
void cxiemu_cq_push(cxiemu_cq_t *cq, const cxiemu_cq_event_t *event);

/** Drop what belongs to an endpoint that is closed. Lock held. */
void cxiemu_cq_drop_ep(cxiemu_cq_t *cq, struct cxiemu_ep *ep);

#endif
