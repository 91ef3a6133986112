/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_op.c - what operations hold: memory that they name, the entry of
 * deferred work, and a place in the endpoint's transmit queue.
 */
#include "op/cxiemu_op.h"
#include "base/cxiemu_dma.h"
#include "op/cxiemu_ep.h"

#include <rdma/fi_errno.h>


int cxiemu_op_map(cxiemu_op_t *op, unsigned place, size_t length,
                  void **address_p)
{
    int ret;

    if (!(op->ep->domain->info->caps & FI_HMEM)) {
        return 0;
    }
    ret = cxiemu_dma_open(*address_p, length, 0, &op->dmas[place]);
    if (ret == 0) {
        *address_p = cxiemu_dma_at(op->dmas[place], *address_p);
    }
    return ret;
}

void cxiemu_op_unmap(cxiemu_op_t *op)
{
    unsigned i;

    for (i = 0; i < CXIEMU_OP_PLACES; ++i) {
        cxiemu_dma_put(op->dmas[i]);
        op->dmas[i] = NULL;
    }
}

void cxiemu_op_keep(const cxiemu_op_t *op)
{
    unsigned i;

    for (i = 0; i < CXIEMU_OP_PLACES; ++i) {
        (void)cxiemu_dma_get(op->dmas[i]);
    }
}


/* Entries are kept: to queue work is on the way of every message. */
void cxiemu_dwq_forget(cxiemu_nic_t *nic, cxiemu_dwq_entry_t *entry)
{
    LIST_REMOVE(entry, list);
    cxiemu_op_unmap(&entry->op);
    LIST_INSERT_HEAD(&nic->dwq_free, entry, list);
}

void cxiemu_dwq_done(cxiemu_dwq_entry_t *entry, int err)
{
    cxiemu_nic_t *nic         = entry->op.ep->domain->nic;
    cxiemu_cntr_t *completion = entry->completion;

    cxiemu_dwq_forget(nic, entry);
    if (completion != NULL) {
        cxiemu_cntr_count(completion, err == 0, err != 0);
    }
}


int cxiemu_ep_take_tx(cxiemu_ep_t *ep)
{
    if (ep->tx_used >= ep->tx_size) {
        return -FI_EAGAIN;
    }
    ++ep->tx_used;
    return 0;
}

void cxiemu_ep_give_tx(cxiemu_ep_t *ep)
{
    if (ep->tx_used > 0) {
        --ep->tx_used;
    }
}

/* Writers hold the lock; pollers look without it whether there is work. */
void cxiemu_ep_done_tx(cxiemu_ep_t *ep)
{
    size_t *total = &ep->domain->tx_done;

    ++ep->tx_done;
    __atomic_store_n(total, *total + 1, __ATOMIC_RELAXED);
}

void cxiemu_ep_return_tx(cxiemu_ep_t *ep)
{
    size_t *total = &ep->domain->tx_done;

    __atomic_store_n(total, *total - ep->tx_done, __ATOMIC_RELAXED);
    ep->tx_used -= ep->tx_done;
    ep->tx_done  = 0;
}

void cxiemu_ep_progressed(cxiemu_domain_t *domain, const void *object)
{
    cxiemu_ep_t *ep;
    unsigned i;

    for (i = 0; (i < CXIEMU_MAX_EPS) && (domain->tx_done > 0); ++i) {
        ep = domain->nic->eps[i];
        if ((ep != NULL) &&
            ((ep->tx_cq == object) || (ep->rx_cq == object) ||
             (ep->tx_cntr == object) || (ep->rx_cntr == object) ||
             (ep->write_cntr == object) || (ep->read_cntr == object))) {
            cxiemu_ep_return_tx(ep);
        }
    }
}
