/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_link.c - the rings of a link, as either side writes to them. */
#include "nic/cxiemu_link.h"
#include "base/cxiemu_log.h"

#include <rdma/fi_errno.h>


void cxiemu_link_flush(cxiemu_link_t *link)
{
    if (link->dirty) {
        link->dirty = 0;
        TAILQ_REMOVE(&link->nic->dirty, link, unflushed);
        if ((link->nic_shm == link->nic->shm) && link->nic->in_progress) {
            /* To oneself: the progress that is being made goes on with it */
            cxiemu_nic_mark(link->nic_shm, link->peer_port);
        } else {
            cxiemu_nic_notify(link->nic_shm, link->peer_port);
        }
    }
}


/* Whether cells up to @a end (not included) may be written; if not, the target
 * is asked to notify when there is more room. */
static int cxiemu_link_want_cells(cxiemu_link_t *link, uint32_t end)
{
    uint32_t head;
    int i;

    for (i = 0; (int32_t)(link->tail_limit - end) < 0; ++i) {
        if (i == 2) {
            return 0;
        }
        if (i == 1) {
            __atomic_store_n(&link->shm->stalled, 1, __ATOMIC_SEQ_CST);
        }
        /* The target's reads of these cells come before its store of the head.
         * Pairs with cxiemu_link_publish_head(): either the target sees
         * `stalled`, or its new head is seen here the second time. */
        head = __atomic_load_n(&link->shm->head, __ATOMIC_SEQ_CST);
        if (link->tail - head > CXIEMU_CELLS) {
            return 0; /* The target breaks the protocol */
        }
        link->tail_limit = head + CXIEMU_CELLS;
    }
    return 1;
}

static void cxiemu_link_publish(cxiemu_link_t *link, cxiemu_rec_t *rec)
{
    /* Pairs with the target's load of seq */
    __atomic_store_n(&rec->seq, link->tail + 1, __ATOMIC_RELEASE);
    link->tail += rec->cells;
}

cxiemu_rec_t *cxiemu_link_reserve(cxiemu_link_t *link, size_t behind)
{
    cxiemu_rec_t *rec;
    uint32_t cells, rest, pad;

    if ((link->state != CXIEMU_LINK_UP) || (link->unacked >= CXIEMU_ACKS) ||
        (behind > CXIEMU_INLINE_MAX)) {
        return NULL;
    }
    cells = 1 + (uint32_t)((behind + CXIEMU_CELL_SIZE - 1) / CXIEMU_CELL_SIZE);
    /* A record does not wrap */
    rest = CXIEMU_CELLS - (link->tail & CXIEMU_CELL_MASK);
    pad  = (rest < cells) ? rest : 0;
    if (!cxiemu_link_want_cells(link, link->tail + pad + cells)) {
        return NULL;
    }
    if (pad > 0) {
        rec        = cxiemu_link_cell(link, link->tail);
        rec->type  = CXIEMU_REC_PAD;
        rec->flags = 0;
        rec->cells = (uint8_t)pad;
        cxiemu_link_publish(link, rec);
    }
    rec        = cxiemu_link_cell(link, link->tail);
    rec->cells = (uint8_t)cells;
    return rec;
}

void cxiemu_link_commit(cxiemu_link_t *link, cxiemu_rec_t *rec)
{
    if (rec->flags & CXIEMU_REC_ACK) {
        ++link->unacked;
    }
    cxiemu_link_publish(link, rec);
    cxiemu_link_set_dirty(link);
}


/* As the target: the next acknowledgement, to be filled in in its place, but
 * for seq; NULL if the initiator breaks the protocol, as there is always room
 * otherwise. */
static cxiemu_ack_t *cxiemu_link_next_ack(cxiemu_link_t *link)
{
    if (link->ack_tail == link->ack_limit) {
        link->ack_limit = __atomic_load_n(&link->shm->ack_head,
                                          __ATOMIC_ACQUIRE) +
                          CXIEMU_ACKS;
        if (link->ack_tail - (link->ack_limit - CXIEMU_ACKS) >= CXIEMU_ACKS) {
            /* An initiator never has more than that under way */
            cxiemu_warn(EP_DATA, "process %u has sent more than the link has "
                        "room for\n", link->pid);
            link->ack_limit = link->ack_tail;
            return NULL;
        }
    }
    return &link->shm->acks[link->ack_tail & CXIEMU_ACK_MASK];
}

void cxiemu_link_answer(const cxiemu_arrival_t *arrival, cxiemu_ack_type_t type,
                        int status, uint64_t value)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_link_t *link     = arrival->link;
    cxiemu_ack_t *ack;

    if (!(rec->flags & CXIEMU_REC_ACK) || (link == NULL) ||
        (link->state != CXIEMU_LINK_UP)) {
        return;
    }

    ack = cxiemu_link_next_ack(link);
    if (ack == NULL) {
        return;
    }
    ack->type   = type;
    ack->status = status;
    ack->op     = rec->op;
    ack->slot   = (rec->flags & CXIEMU_REC_SLOT) ? rec->source : UINT32_MAX;
    ack->value  = value;
    /* Pairs with the initiator's load of seq */
    __atomic_store_n(&ack->seq, ++link->ack_tail, __ATOMIC_RELEASE);
    cxiemu_link_set_dirty(link);
}

/* Words are stored as a whole, and after everything before: somebody may poll
 * them. */
static void cxiemu_link_store(void *to, const void *from, size_t length)
{
    uint64_t word;
    uint32_t half;

    if ((length == sizeof(word)) && ((uintptr_t)to % sizeof(word) == 0)) {
        memcpy(&word, from, sizeof(word));
        __atomic_store_n((uint64_t*)to, word, __ATOMIC_RELEASE);
    } else if ((length == sizeof(half)) &&
               ((uintptr_t)to % sizeof(half) == 0)) {
        memcpy(&half, from, sizeof(half));
        __atomic_store_n((uint32_t*)to, half, __ATOMIC_RELEASE);
    } else {
        memcpy(to, from, length);
    }
}

/* Payload may change until it is copied: that harms only the peer's data. */
int cxiemu_link_fetch(const cxiemu_arrival_t *arrival, uint64_t offset,
                      void *to, size_t length)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_link_t *link     = arrival->link;

    if (length == 0) {
        return 0;
    }
    if (link != NULL) {
        link->nic->copied += length;
    }
    if (arrival->payload != NULL) {
        cxiemu_link_store(to, arrival->payload + offset, length);
        return 0;
    }
    if ((link == NULL) || (link->state != CXIEMU_LINK_UP)) {
        return FI_EHOSTUNREACH;
    }
    if (link->same_process) {
        memcpy(to, (void*)(uintptr_t)(rec->source + offset), length);
        return 0;
    }
    return -cxiemu_map_copy(link->pid, to, rec->source + offset, length, 0);
}


int cxiemu_link_is_attached(cxiemu_link_t *link)
{
    if (link->attached == CXIEMU_ATTACHED_NOT) {
        link->attached = __atomic_load_n(&link->shm->attached,
                                         __ATOMIC_ACQUIRE);
    }
    return link->attached != CXIEMU_ATTACHED_NOT;
}

int cxiemu_link_target_copies(cxiemu_link_t *link)
{
    return link->nic->may_attach && cxiemu_link_is_attached(link) &&
           (link->attached == CXIEMU_ATTACHED_COPIES);
}

void cxiemu_link_stall(cxiemu_link_t *link)
{
    if (!link->is_stalled && (link->state == CXIEMU_LINK_UP)) {
        link->is_stalled = 1;
        TAILQ_INSERT_TAIL(&link->nic->stalled, link, stalled);
    }
}
