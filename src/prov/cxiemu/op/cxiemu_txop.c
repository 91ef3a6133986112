/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_txop.c - operations as their initiator has them: start to completion.
 *
 * What of an operation goes into which records is cxiemu_emit.c's.
 */
#include "op/cxiemu_txop.h"
#include "base/cxiemu_error.h"
#include "base/cxiemu_log.h"
#include "op/cxiemu_dwq.h"
#include "op/cxiemu_emit.h"
#include "op/cxiemu_ep.h"
#include "op/cxiemu_target.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>

/* Operations are allocated so many at a time, and found by their number */
#define CXIEMU_TXOP_CHUNK 256


typedef struct cxiemu_txop_pool {
    cxiemu_txop_t           **chunks;
    uint32_t                num_chunks;
    struct cxiemu_txop_list free;
} cxiemu_txop_pool_t;


static int cxiemu_pool_grow(cxiemu_txop_pool_t *pool)
{
    cxiemu_txop_t **chunks, *chunk;
    uint32_t i;

    chunks = realloc(pool->chunks, (pool->num_chunks + 1) * sizeof(*chunks));
    if (chunks == NULL) {
        return -FI_ENOMEM;
    }
    pool->chunks = chunks;

    chunk = calloc(CXIEMU_TXOP_CHUNK, sizeof(*chunk));
    if (chunk == NULL) {
        return -FI_ENOMEM;
    }
    for (i = 0; i < CXIEMU_TXOP_CHUNK; ++i) {
        chunk[i].id = pool->num_chunks * CXIEMU_TXOP_CHUNK + i;
        TAILQ_INSERT_TAIL(&pool->free, &chunk[i], list);
    }
    chunks[pool->num_chunks++] = chunk;
    return 0;
}

/* An operation with nothing set but its number, or NULL without memory. */
static cxiemu_txop_t *cxiemu_pool_get(cxiemu_nic_t *nic)
{
    cxiemu_txop_pool_t *pool = nic->txops;
    cxiemu_txop_t *txop;

    if (pool == NULL) {
        pool = calloc(1, sizeof(*pool));
        if (pool == NULL) {
            return NULL;
        }
        TAILQ_INIT(&pool->free);
        nic->txops = pool;
    }
    if (TAILQ_EMPTY(&pool->free) && (cxiemu_pool_grow(pool) != 0)) {
        return NULL;
    }

    /* The one used last is the one in the cache */
    txop = TAILQ_FIRST(&pool->free);
    TAILQ_REMOVE(&pool->free, txop, list);
    return txop;
}

/* The operation that an acknowledgement names, if it is one of that link that
 * waits for one; else NULL. */
static cxiemu_txop_t *cxiemu_pool_find(cxiemu_link_t *link, uint32_t id)
{
    cxiemu_txop_pool_t *pool = link->nic->txops;
    cxiemu_txop_t *txop;

    if ((pool == NULL) || (id / CXIEMU_TXOP_CHUNK >= pool->num_chunks)) {
        return NULL;
    }

    txop = &pool->chunks[id / CXIEMU_TXOP_CHUNK][id % CXIEMU_TXOP_CHUNK];
    return ((txop->link == link) && (txop->unacked > 0)) ? txop : NULL;
}

void cxiemu_txop_cleanup(cxiemu_nic_t *nic)
{
    cxiemu_txop_pool_t *pool = nic->txops;
    uint32_t i;

    if (pool == NULL) {
        return;
    }
    for (i = 0; i < pool->num_chunks; ++i) {
        free(pool->chunks[i]);
    }
    free(pool->chunks);
    free(pool);
    nic->txops = NULL;
}


/* Moves an operation to a list of its link, or for NULL to none. */
static void cxiemu_txop_list(cxiemu_txop_t *txop, struct cxiemu_txop_list *list)
{
    if (txop->listed == list) {
        return;
    }
    if (txop->listed != NULL) {
        TAILQ_REMOVE(txop->listed, txop, list);
    }
    if (list != NULL) {
        TAILQ_INSERT_TAIL(list, txop, list);
    }
    txop->listed = list;
}

static void cxiemu_txop_free(cxiemu_txop_t *txop)
{
    cxiemu_nic_t *nic = txop->link->nic;

    cxiemu_txop_list(txop, NULL);
    if (txop->fencing) {
        --txop->link->fencing;
    }
    free(txop->copy);
    cxiemu_op_unmap(&txop->op);
    txop->copy    = NULL;
    txop->link    = NULL;
    txop->unacked = 0;
    TAILQ_INSERT_HEAD(&nic->txops->free, txop, list);
}


/* What the completion queue says of operations. */
static const uint64_t cxiemu_txop_event_flags[] = {
    [CXIEMU_OP_SEND]           = FI_SEND | FI_MSG,
    [CXIEMU_OP_TSEND]          = FI_SEND | FI_TAGGED,
    [CXIEMU_OP_READ]           = FI_READ | FI_RMA,
    [CXIEMU_OP_WRITE]          = FI_WRITE | FI_RMA,
    [CXIEMU_OP_ATOMIC]         = FI_WRITE | FI_ATOMIC,
    [CXIEMU_OP_FETCH_ATOMIC]   = FI_READ | FI_ATOMIC,
    [CXIEMU_OP_COMPARE_ATOMIC] = FI_READ | FI_ATOMIC
};

/* Tell the completion queue, and give the place in the transmit queue back:
 * now, or in strict mode when the user makes progress. CXI has no event for
 * what is injected. */
static void cxiemu_txop_complete_cq(const cxiemu_op_t *op, int err)
{
    cxiemu_ep_t *ep = op->ep;
    int is_told     = (err != 0) || (op->flags & FI_COMPLETION);
    cxiemu_cq_event_t *event;

    if (cxiemu_param()->strict && (ep->tx_cq != NULL) &&
        (is_told || !(op->flags & FI_INJECT))) {
        cxiemu_ep_done_tx(ep);
    } else {
        cxiemu_ep_give_tx(ep);
    }
    if (is_told && (ep->tx_cq != NULL)) {
        event                   = cxiemu_cq_next(ep->tx_cq);
        event->entry.op_context = op->context;
        event->entry.flags      = cxiemu_txop_event_flags[op->kind];
        cxiemu_error_set(&event->entry, err);
        cxiemu_cq_push(ep->tx_cq, event);
    }
}

/* The operation is over as far as the user is concerned. */
static void cxiemu_txop_report(cxiemu_txop_t *txop, int err)
{
    cxiemu_dwq_entry_t *entry = txop->entry;
    const cxiemu_op_t *op     = &txop->op;
    uint64_t kind             = cxiemu_txop_event_flags[op->kind];
    cxiemu_cntr_t *cntr;

    if (txop->reported) {
        return;
    }
    txop->reported = 1;
    txop->entry    = NULL;

    /* Deferred work's own counter takes the place of the endpoint's */
    if ((entry == NULL) || (entry->completion == NULL)) {
        cntr = (kind & FI_SEND)  ? op->ep->tx_cntr :
               (kind & FI_WRITE) ? op->ep->write_cntr :
                                   op->ep->read_cntr;
        if (cntr != NULL) {
            cxiemu_cntr_count(cntr, err == 0, err != 0);
        }
    }
    cxiemu_txop_complete_cq(op, err);
    if (entry != NULL) {
        cxiemu_dwq_done(entry, err);
    }
}

/* An operation that is over before it is one of a link. */
static void cxiemu_txop_end_early(const cxiemu_op_t *op,
                                  cxiemu_dwq_entry_t *entry, int err)
{
    cxiemu_txop_t txop = {.op = *op, .entry = entry};

    cxiemu_txop_report(&txop, err);
}

/* All records are written: wait for the rest, or that was it. */
static void cxiemu_txop_emitted(cxiemu_txop_t *txop)
{
    if (txop->unacked == 0) {
        cxiemu_txop_report(txop, txop->status);
        cxiemu_txop_free(txop);
    } else {
        cxiemu_txop_list(txop, &txop->link->waiting);
    }
}


/* Write what can be written of an operation at the head of its link's queue;
 * whether that is all there was to write. */
static int cxiemu_txop_go_on(cxiemu_txop_t *txop)
{
    if (!txop->started) {
        if ((txop->not_before != 0) && (cxiemu_nic_now() < txop->not_before)) {
            return 0;
        }
        /* With strict order each operation is behind all others */
        if ((txop->link->fencing > 0) &&
            ((txop->op.flags & FI_FENCE) ||
             (cxiemu_param()->order == CXIEMU_ORDER_STRICT))) {
            return 0;
        }
        cxiemu_emit_route(txop);
        txop->started = 1;
        /* A message that waits for its receive would block a fence for ever */
        if (txop->path != CXIEMU_PATH_RENDEZVOUS) {
            txop->fencing = 1;
            ++txop->link->fencing;
        }
    }
    return cxiemu_emit(txop);
}

static unsigned cxiemu_txop_push(cxiemu_link_t *link)
{
    unsigned count = 0;
    cxiemu_txop_t *txop;

    while ((link->state == CXIEMU_LINK_UP) &&
           ((txop = TAILQ_FIRST(&link->pending)) != NULL) &&
           cxiemu_txop_go_on(txop)) {
        cxiemu_txop_emitted(txop);
        ++count;
    }
    return count;
}

unsigned cxiemu_txop_retry(cxiemu_nic_t *nic)
{
    unsigned count = 0;
    cxiemu_link_t *link, *next;

    for (link = TAILQ_FIRST(&nic->stalled); link != NULL; link = next) {
        next   = TAILQ_NEXT(link, stalled);
        count += cxiemu_txop_push(link);
        if (TAILQ_EMPTY(&link->pending) && link->is_stalled) {
            link->is_stalled = 0;
            TAILQ_REMOVE(&nic->stalled, link, stalled);
        }
    }
    return count;
}

/* Let an operation wait for room. Injected data is the user's again, so a copy
 * is kept. */
static int cxiemu_txop_queue(cxiemu_txop_t *txop)
{
    cxiemu_op_t *op = &txop->op;

    if ((op->flags & FI_INJECT) && (op->buffer != NULL) && (op->length > 0) &&
        (txop->offset == 0)) {
        txop->copy = malloc(op->length);
        if (txop->copy == NULL) {
            return -FI_ENOMEM;
        }
        memcpy(txop->copy, op->buffer, op->length);
        op->buffer = txop->copy;
    }
    cxiemu_txop_list(txop, &txop->link->pending);
    cxiemu_link_stall(txop->link);
    return 0;
}

/* The link to where an operation goes. */
static int cxiemu_txop_link(const cxiemu_op_t *op, cxiemu_link_t **link_p,
                            uint16_t *dst_ep_p)
{
    cxiemu_av_entry_t *entry = cxiemu_av_entry(op->ep->av, op->dest);
    int ret;

    if (entry == NULL) {
        return -FI_EINVAL;
    }
    if (entry->link == NULL) {
        ret = cxiemu_link_get(op->ep->domain->nic, &entry->addr, &entry->link);
        if (ret != 0) {
            entry->link = NULL;
            return ret;
        }
    }

    *link_p   = entry->link;
    *dst_ep_p = entry->addr.ep;
    return 0;
}

/* The fault that befalls an operation, or 0. */
static int cxiemu_txop_fault(cxiemu_link_t *link)
{
    const cxiemu_param_t *param = cxiemu_param();
    uint64_t number;

    if ((param->vanish != 0) && (++link->sent > param->vanish) &&
        (link->state == CXIEMU_LINK_UP)) {
        cxiemu_link_lose(link);
    }
    if (link->state != CXIEMU_LINK_UP) {
        return cxiemu_link_error(link);
    }
    if (param->fail_every == 0) {
        return 0;
    }
    /* By its number and the seed alone, so that a run can be repeated. A
     * product's upper bits depend on all of the factor's. */
    number = ++link->nic->num_ops + param->seed;
    number = (number ^ (number >> 32)) * 0x9e3779b97f4a7c15ull;
    return ((number >> 32) % param->fail_every == 0) ? CXIEMU_ERROR_FAULT :
                                                     0;
}

/* Whether what an operation does can be done at once: it is the NIC's own, and
 * behind nothing. Strict mode is for what a NIC may do at worst. */
static int cxiemu_txop_is_local(const cxiemu_op_t *op,
                                const cxiemu_link_t *link)
{
    const cxiemu_param_t *param = cxiemu_param();

    return (link->nic_shm == link->nic->shm) && !param->strict &&
           (param->delay_us == 0) && TAILQ_EMPTY(&link->pending) &&
           TAILQ_EMPTY(&link->waiting) &&
           ((op->kind >= CXIEMU_OP_ATOMIC) ||
            ((op->kind == CXIEMU_OP_WRITE) &&
             (op->length <= CXIEMU_INLINE_MAX)));
}

static void cxiemu_txop_run_local(const cxiemu_op_t *op,
                                  cxiemu_dwq_entry_t *entry,
                                  cxiemu_link_t *link, uint16_t dst_ep)
{
    cxiemu_arrival_t arrival = {
        .link    = link,
        .peer    = link->nic->nonce,
        .payload = op->buffer
    };
    uint64_t value           = 0;
    int err;

    cxiemu_emit_local(op, dst_ep, &arrival.rec);
    err = cxiemu_target_local(&arrival, &value);
    if ((err == 0) && (op->result != NULL)) {
        memcpy(op->result, &value, op->length);
    }
    cxiemu_txop_end_early(op, entry, err);
}

/* As cxiemu_txop_start(), with the place taken; a positive FI_E* is an
 * operation that fails. */
static int cxiemu_txop_begin(const cxiemu_op_t *op, cxiemu_dwq_entry_t *entry)
{
    cxiemu_nic_t *nic   = op->ep->domain->nic;
    cxiemu_link_t *link = NULL;
    uint16_t dst_ep     = 0;
    size_t delay        = cxiemu_param()->delay_us;
    cxiemu_txop_t *txop;
    int ret;

    ret = cxiemu_txop_link(op, &link, &dst_ep);
    if (ret != 0) {
        return ((ret == -FI_EHOSTUNREACH) || (ret == -CXIEMU_ERROR_WAY)) ?
                       -ret :
                       ret;
    }
    ret = cxiemu_txop_fault(link);
    if (ret != 0) {
        return ret;
    }
    if (cxiemu_txop_is_local(op, link)) {
        cxiemu_txop_run_local(op, entry, link, dst_ep);
        return 0;
    }
    txop = cxiemu_pool_get(nic);
    if (txop == NULL) {
        return -FI_ENOMEM;
    }

    *txop = (cxiemu_txop_t){
        .op         = *op,
        .id         = txop->id,
        .link       = link,
        .dst_ep     = dst_ep,
        .entry      = entry,
        .not_before = (delay == 0) ? 0 : cxiemu_nic_now() + delay * 1000
    };
    cxiemu_op_keep(op);
    if (TAILQ_EMPTY(&link->pending) && cxiemu_txop_go_on(txop)) {
        cxiemu_txop_emitted(txop);
    } else {
        ret = cxiemu_txop_queue(txop);
        if (ret != 0) {
            cxiemu_txop_free(txop);
            return ret;
        }
    }

    /* Progress tells the peers itself, once for all that it did */
    if (!nic->in_progress) {
        cxiemu_link_flush(link);
    }
    return 0;
}

int cxiemu_txop_start(const cxiemu_op_t *op, cxiemu_dwq_entry_t *entry)
{
    cxiemu_ep_t *ep = op->ep;
    int ret;

    if ((entry == NULL) && (cxiemu_ep_take_tx(ep) != 0)) {
        return -FI_EAGAIN;
    }

    ret = cxiemu_txop_begin(op, entry);
    if (ret == 0) {
        return 0;
    }
    if ((ret < 0) && (entry == NULL)) {
        cxiemu_ep_give_tx(ep);
        return ret;
    }
    cxiemu_txop_end_early(op, entry, (ret < 0) ? -ret : ret);
    return 0;
}


/* What has come back with an acknowledgement goes where the user wants it. */
static void cxiemu_txop_take_result(cxiemu_txop_t *txop,
                                    const cxiemu_ack_t *ack)
{
    cxiemu_op_t *op     = &txop->op;
    cxiemu_link_t *link = txop->link;
    size_t offset, length;

    if (op->kind == CXIEMU_OP_READ) {
        if ((txop->path == CXIEMU_PATH_INLINE) && (op->length > 0)) {
            memcpy((void*)op->buffer, &ack->value, op->length);
        } else if ((txop->path == CXIEMU_PATH_SLOTS) &&
                   (ack->slot < CXIEMU_SLOTS)) {
            offset = link->slot_offset[ack->slot];
            if (offset >= op->length) {
                return;
            }
            length = op->length - offset;
            length = (length < CXIEMU_SLOT_SIZE) ? length : CXIEMU_SLOT_SIZE;
            memcpy((uint8_t*)op->buffer + offset,
                   link->shm->slots[ack->slot], length);
        }
    } else if (op->result != NULL) {
        memcpy(op->result, &ack->value, op->length);
    }
}

void cxiemu_txop_ack(cxiemu_link_t *link, const cxiemu_ack_t *ack)
{
    cxiemu_txop_t *txop = cxiemu_pool_find(link, ack->op);

    if (txop == NULL) {
        cxiemu_info(EP_DATA, "process %u acknowledges operation %u unasked\n",
                    link->pid, ack->op);
        return;
    }

    --txop->unacked;
    if ((ack->status != 0) && (txop->status == 0)) {
        txop->status = ack->status;
    }
    if ((ack->type == CXIEMU_ACK_GO) && (ack->status == 0) &&
        (txop->path == CXIEMU_PATH_RENDEZVOUS) && !txop->go && txop->op.ep) {
        txop->go = 1;
        txop->rx = ack->value;
        cxiemu_txop_list(txop, &link->pending);
        cxiemu_link_stall(link);
    } else {
        if ((ack->status == 0) && (txop->op.ep != NULL)) {
            cxiemu_txop_take_result(txop, ack);
        }
        if ((txop->unacked == 0) && (txop->listed != &link->pending)) {
            cxiemu_txop_report(txop, txop->status);
            cxiemu_txop_free(txop);
        }
    }

    if (!TAILQ_EMPTY(&link->pending)) {
        cxiemu_txop_push(link);
    }
}


void cxiemu_txop_fail_all(cxiemu_link_t *link, int err)
{
    cxiemu_txop_t *txop;

    while (((txop = TAILQ_FIRST(&link->waiting)) != NULL) ||
           ((txop = TAILQ_FIRST(&link->pending)) != NULL)) {
        cxiemu_txop_report(txop, err);
        cxiemu_txop_free(txop);
    }
}

static void cxiemu_txop_drop_list(struct cxiemu_txop_list *list,
                                  cxiemu_ep_t *ep)
{
    cxiemu_txop_t *txop, *next;
    cxiemu_dwq_entry_t *entry;

    for (txop = TAILQ_FIRST(list); txop != NULL; txop = next) {
        next = TAILQ_NEXT(txop, list);
        if (txop->op.ep != ep) {
            continue;
        }
        /* Nothing more is read from or written to memory of its user here; its
         * acknowledgements are still to come */
        entry          = txop->entry;
        txop->reported = 1;
        txop->entry    = NULL;
        txop->op.ep    = NULL;
        txop->status   = FI_ECANCELED;
        if (entry != NULL) {
            cxiemu_dwq_done(entry, FI_ECANCELED);
        }
        if (txop->unacked == 0) {
            cxiemu_txop_free(txop);
        } else {
            cxiemu_txop_list(txop, &txop->link->waiting);
        }
    }
}

void cxiemu_txop_drop_ep(cxiemu_ep_t *ep)
{
    cxiemu_link_t *link;

    TAILQ_FOREACH(link, &ep->domain->nic->links, list) {
        if (link->is_tx) {
            cxiemu_txop_drop_list(&link->pending, ep);
            cxiemu_txop_drop_list(&link->waiting, ep);
        }
    }
}

/* Whether the target accesses memory of a user's operations by itself. */
static int cxiemu_txop_list_exposed(struct cxiemu_txop_list *list,
                                    cxiemu_ep_t *ep)
{
    cxiemu_txop_t *txop;

    TAILQ_FOREACH(txop, list, list) {
        if ((txop->op.ep == ep) && (txop->unacked > 0) &&
            ((txop->path == CXIEMU_PATH_DIRECT) ||
             (txop->path == CXIEMU_PATH_RENDEZVOUS))) {
            return 1;
        }
    }
    return 0;
}

int cxiemu_txop_exposed(cxiemu_ep_t *ep)
{
    cxiemu_link_t *link;

    TAILQ_FOREACH(link, &ep->domain->nic->links, list) {
        if (link->is_tx && (cxiemu_txop_list_exposed(&link->pending, ep) ||
                            cxiemu_txop_list_exposed(&link->waiting, ep))) {
            return 1;
        }
    }
    return 0;
}
