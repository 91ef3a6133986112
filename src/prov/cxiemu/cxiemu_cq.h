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
    int                 by_threshold; /**< FI_CQ_COND_THRESHOLD */
    unsigned            signaled;  /**< Calls of fi_cq_signal() */
    int                 overrun;   /**< Entries were lost; atomic */
    cxiemu_cq_event_t   *ring;     /**< Grows when it is full */
    size_t              size;      /**< A power of two */
    size_t              head;      /**< head, tail, num_recvs, num_held: written
                                        with the lock; read without it by
                                        pollers, who take the lock only if there
                                        is work */
    size_t              tail;
    size_t              num_recvs; /**< Entries of receives */
    struct cxiemu_ep    **held;    /**< cxiemu_cq_hold() */
    size_t              num_held;
    size_t              max_held;
    unsigned            refs;      /**< Endpoints */
    cxiemu_cq_event_t   lost;      /**< What finds no memory */
} cxiemu_cq_t;

/** The place of the next entry, zeroed, to be filled in and pushed. Lock held.
 *  (To fill in one elsewhere and copy it would make the copy's loads wait for
 *  narrower stores, and those for all that was stored to memory of peers.) */
cxiemu_cq_event_t *cxiemu_cq_next(cxiemu_cq_t *cq);

/** Add that entry and wake who waits. Lock held. Cannot fail: the ring has been
 *  made large enough, or grows; if memory is short, the queue overruns, which
 *  reading reports once (-FI_EOVERRUN). */
void cxiemu_cq_push(cxiemu_cq_t *cq, const cxiemu_cq_event_t *event);

/** An operation is complete that leaves no entry, but that CXI would report by
 *  an event: its place in the endpoint's transmit queue is given back when the
 *  queue is read next. Without memory it is given back now. Lock held. */
void cxiemu_cq_hold(cxiemu_cq_t *cq, struct cxiemu_ep *ep);

/** Whether there is an entry of a receive, as far as one knows without the
 *  lock: a poller that loses the race with a push finds it the next time; its
 *  own progress, which came before, is seen in any case. */
int cxiemu_cq_has_recv(const cxiemu_cq_t *cq);

/** fi_trywait() for a queue: 0 if it is empty and its descriptor will tell of
 *  the next entry, or -FI_EAGAIN. Takes the lock. */
int cxiemu_cq_trywait(struct fid *fid);

/** Drop what belongs to an endpoint that is closed. Lock held. */
void cxiemu_cq_drop_ep(cxiemu_cq_t *cq, struct cxiemu_ep *ep);

#endif
