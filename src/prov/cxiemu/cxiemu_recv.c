/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_recv.c - receives: their memory, and how they end.
 */
#include "cxiemu_recv.h"
#include "cxiemu_ep.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>


cxiemu_recv_t *cxiemu_recv_get(cxiemu_rx_t *rx)
{
    cxiemu_recv_t *recv = rx->spare;

    if (recv == NULL) {
        recv = malloc(sizeof(*recv));
        if (recv == NULL) {
            return NULL;
        }
    } else {
        rx->spare = recv->parent;
    }

    recv->rx        = rx;
    recv->parent    = NULL;
    recv->used      = 0;
    recv->children  = 0;
    recv->closed    = 0;
    recv->canceled  = 0;
    recv->is_active = 0;
    recv->done      = 0;
    return recv;
}

void cxiemu_recv_put(cxiemu_recv_t *recv)
{
    if ((recv->completion != NULL) && (recv->parent == NULL)) {
        --recv->completion->refs;
    }
    recv->parent    = recv->rx->spare;
    recv->rx->spare = recv;
}

size_t cxiemu_recv_taken(const cxiemu_recv_t *recv)
{
    return (recv->total < recv->length) ? recv->total : recv->length;
}


static void cxiemu_recv_count(const cxiemu_recv_t *recv, int err)
{
    cxiemu_cntr_t *cntr = (recv->completion != NULL) ? recv->completion :
                                                       recv->rx->ep->rx_cntr;

    if (cntr != NULL) {
        cxiemu_cntr_count(cntr, err == 0, err != 0);
    }
}

static void cxiemu_recv_event(const cxiemu_recv_t *recv, int err,
                              uint64_t flags)
{
    const cxiemu_rx_t *rx = recv->rx;
    cxiemu_ep_t *ep       = rx->ep;
    cxiemu_cq_event_t *event;

    if ((ep->rx_cq == NULL) ||
        ((err == 0) && !(recv->flags & FI_COMPLETION) &&
         !(flags & FI_MULTI_RECV))) {
        return;
    }

    event                   = cxiemu_cq_next(ep->rx_cq);
    event->entry.op_context = recv->context;
    event->entry.flags      = flags | FI_RECV |
                              (rx->is_tagged ? FI_TAGGED : FI_MSG);
    event->entry.err        = err;
    event->entry.prov_errno = err;
    event->entry.buf        = recv->buffer;
    if (err != FI_ECANCELED) {
        event->entry.len = cxiemu_recv_taken(recv);
        event->entry.tag = rx->is_tagged ? recv->arrival.rec.tag : 0;
        if (recv->arrival.rec.flags & CXIEMU_REC_CQ_DATA) {
            event->entry.flags |= FI_REMOTE_CQ_DATA;
            event->entry.data   = recv->arrival.rec.data;
        }
        if (err == FI_ETRUNC) {
            event->entry.olen = recv->total - recv->length;
        }
        if (ep->caps & FI_SOURCE) {
            event->src = cxiemu_av_find(ep->av, recv->arrival.peer,
                                        recv->arrival.rec.src_ep);
        }
    }
    cxiemu_cq_push(ep->rx_cq, event);
}

void cxiemu_recv_cancel(cxiemu_recv_t *recv)
{
    cxiemu_recv_count(recv, FI_ECANCELED);
    cxiemu_recv_event(recv, FI_ECANCELED, recv->flags & FI_MULTI_RECV);
    cxiemu_recv_put(recv);
}

int cxiemu_recv_leave(cxiemu_recv_t *parent)
{
    return (--parent->children == 0) && parent->closed;
}

void cxiemu_recv_finish(cxiemu_recv_t *recv, int err)
{
    cxiemu_recv_t *parent = recv->parent;
    int last              = (parent != NULL) && cxiemu_recv_leave(parent);
    int canceled          = last && parent->canceled;

    if (recv->is_active) {
        TAILQ_REMOVE(&recv->rx->active, recv, list);
    }
    if ((err == 0) && (recv->total > recv->length)) {
        err = FI_ETRUNC;
    }
    cxiemu_recv_count(recv, err);
    cxiemu_recv_event(recv, err, (last && !canceled) ? FI_MULTI_RECV : 0);
    cxiemu_recv_put(recv);

    if (canceled) {
        cxiemu_recv_cancel(parent);
    } else if (last) {
        cxiemu_recv_put(parent);
    }
}
