/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_recv.h - receives, as matching has them.
 *
 * A multi-receive buffer stays posted while it has room; each message that it
 * takes has a receive of its own, a child. All functions are called with the
 * NIC's lock held.
 */
#ifndef CXIEMU_RECV_H_
#define CXIEMU_RECV_H_

#include "cxiemu_cntr.h"
#include "cxiemu_rx.h"
#include "cxiemu_target.h"


typedef struct cxiemu_recv {
    TAILQ_ENTRY(cxiemu_recv) list;
    cxiemu_rx_t              *rx;
    uint8_t                  *buffer;
    size_t                   length;
    uint64_t                 tag;
    uint64_t                 ignore;
    uint64_t                 flags;     /* FI_COMPLETION, FI_MULTI_RECV */
    void                     *context;
    cxiemu_cntr_t            *completion;
    int                      any;       /* From anybody; else from: */
    uint64_t                 peer;
    uint16_t                 src_ep;
    /* Multi-receive */
    struct cxiemu_recv       *parent;
    size_t                   used;      /* Bytes that children have */
    unsigned                 children;  /* Not over */
    int                      closed;    /* Takes no more */
    int                      canceled;
    /* Matched */
    int                      is_active; /* In rx->active */
    uint32_t                 id;        /* For DATA records */
    uint64_t                 total;     /* Bytes of the message */
    uint64_t                 done;      /* Bytes that have come */
    cxiemu_arrival_t         arrival;
} cxiemu_recv_t;

/** A receive with all counts zero, or NULL without memory. */
cxiemu_recv_t *cxiemu_recv_get(cxiemu_rx_t *rx);

/** Without a word: its memory is free, its counter let go. */
void cxiemu_recv_put(cxiemu_recv_t *recv);

/** Bytes of its message that it has room for. */
size_t cxiemu_recv_taken(const cxiemu_recv_t *recv);

/** It is over, matched as it was: count, tell the completion queue, free. */
void cxiemu_recv_finish(cxiemu_recv_t *recv, int err);

/** It is over, as it was canceled. */
void cxiemu_recv_cancel(cxiemu_recv_t *recv);

/** A child is over; whether the buffer is the user's again with it. */
int cxiemu_recv_leave(cxiemu_recv_t *parent);

#endif
