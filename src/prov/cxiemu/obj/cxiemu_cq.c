/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_cq.c - completion queues, as the NIC writes to them.
 */
#include "obj/cxiemu_cq.h"
#include "base/cxiemu_log.h"
#include "obj/cxiemu_event.h"

#include <stdlib.h>


static int cxiemu_cq_grow(cxiemu_cq_t *cq)
{
    size_t size = cq->size * 2;
    cxiemu_cq_event_t *ring;
    size_t i;

    ring = (size <= CXIEMU_CQ_MAX) ? malloc(size * sizeof(*ring)) : NULL;
    if (ring == NULL) {
        return -FI_ENOMEM;
    }

    for (i = cq->head; i != cq->tail; ++i) {
        ring[i & (size - 1)] = *cxiemu_cq_at(cq, i);
    }
    free(cq->ring);
    cq->ring = ring;
    cq->size = size;
    return 0;
}

void cxiemu_cq_alert(cxiemu_cq_t *cq)
{
    cxiemu_nic_wake_waiters(cq->domain->nic);
    cxiemu_event_tell(cq->event_fd, &cq->armed);
}

cxiemu_cq_event_t *cxiemu_cq_next(cxiemu_cq_t *cq)
{
    cxiemu_cq_event_t *event;

    event  = ((cq->tail - cq->head == cq->size) && (cxiemu_cq_grow(cq) != 0)) ?
                     &cq->lost :
                     cxiemu_cq_at(cq, cq->tail);
    *event = (cxiemu_cq_event_t){.src = FI_ADDR_NOTAVAIL};
    return event;
}

void cxiemu_cq_push(cxiemu_cq_t *cq, const cxiemu_cq_event_t *event)
{
    if (event == &cq->lost) {
        cxiemu_warn(CQ, "queue %p has %zu entries that nobody reads, or memory "
                    "is short: an entry is lost\n", (void*)cq,
                    cq->tail - cq->head);
        __atomic_store_n(&cq->overrun, 1, __ATOMIC_RELAXED);
    } else {
        /* Pollers read it without the lock, see cxiemu_cq_is_idle() */
        __atomic_store_n(&cq->tail, cq->tail + 1, __ATOMIC_RELAXED);
    }
    cxiemu_cq_alert(cq);
}
