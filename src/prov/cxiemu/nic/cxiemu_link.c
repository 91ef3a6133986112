/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_link.c - the rings of a link, from either side. */
#include "nic/cxiemu_link.h"
#include "base/cxiemu_log.h"
#include "nic/cxiemu_peer.h"
#include "op/cxiemu_target.h"
#include "op/cxiemu_txop.h"

#define CXIEMU_CELL_MASK (CXIEMU_CELLS - 1)
#define CXIEMU_ACK_MASK  (CXIEMU_ACKS - 1)

/* The head is published after so many cells: a store takes the line from the
 * initiator. One that finds no room has left more than that to be taken, so it
 * learns of room when there is some. */
#define CXIEMU_HEAD_CELLS (CXIEMU_CELLS / 4)


static cxiemu_rec_t *cxiemu_link_cell(const cxiemu_link_t *link,
                                      uint32_t position)
{
    return (cxiemu_rec_t*)&link->shm->cells[(position & CXIEMU_CELL_MASK) *
                                            CXIEMU_CELL_SIZE];
}

static void cxiemu_link_set_dirty(cxiemu_link_t *link)
{
    if (!link->dirty) {
        link->dirty = 1;
        TAILQ_INSERT_TAIL(&link->nic->dirty, link, unflushed);
    }
}

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


cxiemu_ack_t *cxiemu_link_next_ack(cxiemu_link_t *link)
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

void cxiemu_link_ack(cxiemu_link_t *link, cxiemu_ack_t *ack)
{
    /* Pairs with the initiator's load of seq */
    __atomic_store_n(&ack->seq, ++link->ack_tail, __ATOMIC_RELEASE);
    cxiemu_link_set_dirty(link);
}

/* As the target: say which records are done with. */
static void cxiemu_link_publish_head(cxiemu_link_t *link)
{
    link->published = link->head;
    /* Pairs with cxiemu_link_want_cells(). No fence: the thread sanitizer knows
     * none. */
    __atomic_store_n(&link->shm->head, link->head, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&link->shm->stalled, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&link->shm->stalled, 0, __ATOMIC_RELAXED);
        cxiemu_link_set_dirty(link);
    }
}

/* Whether a record is whole: its cells, and the payload that comes with it. */
static int cxiemu_link_is_sound(const cxiemu_link_t *link,
                                const cxiemu_rec_t *rec)
{
    uint32_t rest = CXIEMU_CELLS - (link->head & CXIEMU_CELL_MASK);
    int brings    = cxiemu_rec_brings(rec->type);

    if ((rec->cells == 0) || (rec->cells > rest) ||
        (rec->type > CXIEMU_REC_ATOMIC)) {
        return 0;
    }
    if (rec->flags & CXIEMU_REC_SLOT) {
        return (brings || (rec->type == CXIEMU_REC_READ)) &&
               (rec->source < CXIEMU_SLOTS) &&
               (rec->length <= CXIEMU_SLOT_SIZE);
    }
    return !brings || (rec->length <= cxiemu_rec_room(rec));
}

/* As the target: take records; whether there may be more. */
static int cxiemu_link_take_records(cxiemu_link_t *link, unsigned budget,
                                    unsigned *count_p)
{
    cxiemu_arrival_t arrival = {.link = link, .peer = link->peer};
    unsigned count           = 0;
    int has_more             = 0;
    cxiemu_rec_t *rec;
    uint32_t i;

    while ((count < budget) &&
           ((count == 0) || (link->nic->copied < CXIEMU_COPY_SHARE))) {
        rec      = cxiemu_link_cell(link, link->head);
        has_more = __atomic_load_n(&rec->seq, __ATOMIC_ACQUIRE) ==
                   link->head + 1;
        if (!has_more) {
            break;
        }
        cxiemu_copy_out(&arrival.rec, rec, sizeof(*rec));
        if (!cxiemu_link_is_sound(link, &arrival.rec)) {
            cxiemu_warn(EP_DATA, "process %u has sent a malformed record: its "
                        "link is closed\n", link->pid);
            cxiemu_link_lose(link);
            break;
        }
        if (arrival.rec.type != CXIEMU_REC_PAD) {
            cxiemu_target_record(&arrival, rec + 1);
            if (link->state != CXIEMU_LINK_UP) {
                break;
            }
        }
        /* What is in the payload's cells must not be mistaken for a number of
         * the ring's next lap. The initiator writes them again only after the
         * head. */
        for (i = 1; i < arrival.rec.cells; ++i) {
            cxiemu_link_cell(link, link->head + i)->seq = link->head + i;
        }
        link->head += arrival.rec.cells;
        ++count;
        if (link->head - link->published >= CXIEMU_HEAD_CELLS) {
            cxiemu_link_publish_head(link);
        }
    }
    *count_p = count;
    return has_more && (link->state == CXIEMU_LINK_UP);
}

/* As the initiator: take one acknowledgement; whether there was one. */
static int cxiemu_link_take_ack(cxiemu_link_t *link)
{
    cxiemu_ack_t *cell = &link->shm->acks[link->ack_next & CXIEMU_ACK_MASK];
    cxiemu_ack_t ack;

    if (__atomic_load_n(&cell->seq, __ATOMIC_ACQUIRE) != link->ack_next + 1) {
        return 0;
    }
    cxiemu_copy_out(&ack, cell, sizeof(ack));
    ++link->ack_next;
    /* Before anything is sent that may be acknowledged in this place */
    __atomic_store_n(&link->shm->ack_head, link->ack_next, __ATOMIC_RELEASE);
    if (link->unacked > 0) {
        --link->unacked;
    }
    if (ack.slot < CXIEMU_SLOTS) {
        link->free_slots |= 1u << ack.slot;
    }
    cxiemu_txop_ack(link, &ack);
    return 1;
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

unsigned cxiemu_link_drain(cxiemu_nic_t *nic, uint32_t port, unsigned budget)
{
    cxiemu_link_t *link = nic->ports[port];
    unsigned count      = 0;
    int closed, has_more;

    if (link == NULL) {
        link = cxiemu_link_accept(nic, port);
        if (link == NULL) {
            return 0;
        }
    }
    if (link->is_tx && (link->map->fd >= 0) && cxiemu_link_is_attached(link)) {
        /* Nobody has to find it any more: one descriptor a peer is enough */
        cxiemu_map_close_fd(link->map);
    }
    /* Read before the rings: a side that closes has written all that it will */
    closed   = cxiemu_link_is_closed(link);
    if (link->is_tx) {
        while ((count < budget) && (link->state == CXIEMU_LINK_UP) &&
               cxiemu_link_take_ack(link)) {
            ++count;
        }
        has_more = (count == budget) && (link->state == CXIEMU_LINK_UP);
    } else {
        has_more = cxiemu_link_take_records(link, budget, &count);
    }
    if (has_more) {
        /* Its turn comes again. No notification: nobody has to be woken. */
        __atomic_fetch_or(&nic->shm->ready[port / 64], 1ull << (port % 64),
                          __ATOMIC_SEQ_CST);
        __atomic_fetch_or(&nic->shm->summary, 1ull << (port / 64),
                          __ATOMIC_SEQ_CST);
    } else if (closed && (link->state == CXIEMU_LINK_UP)) {
        cxiemu_link_lose(link);
    }
    return count;
}

void cxiemu_link_stall(cxiemu_link_t *link)
{
    if (!link->is_stalled && (link->state == CXIEMU_LINK_UP)) {
        link->is_stalled = 1;
        TAILQ_INSERT_TAIL(&link->nic->stalled, link, stalled);
    }
}

unsigned cxiemu_link_retry(cxiemu_nic_t *nic)
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
