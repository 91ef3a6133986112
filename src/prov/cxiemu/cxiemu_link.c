/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_link.c - the rings of a link, from either side. */
#include "cxiemu_link.h"
#include "cxiemu_log.h"
#include "cxiemu_peer.h"
#include "cxiemu_promise.h"
#include "cxiemu_target.h"
#include "cxiemu_txop.h"
#include "cxiemu_watch.h"

#define CXIEMU_CELL_MASK (CXIEMU_CELLS - 1)
#define CXIEMU_ACK_MASK  (CXIEMU_ACKS - 1)

#define CXIEMU_SHORT_SLOTS_MASK ((1u << CXIEMU_SHORT_SLOTS) - 1)

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

/* It is stored to soon, and a peer has read it: have that peer's copy go while
 * other things are done. The compiler's own way only asks for a copy. */
static void cxiemu_link_expect_store(const void *address)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char*)address));
#else
    __builtin_prefetch(address, 1);
#endif
}

static cxiemu_ack_t *cxiemu_link_ack_cell(const cxiemu_link_t *link)
{
    return &link->shm->acks[link->ack_tail & CXIEMU_ACK_MASK];
}

static void cxiemu_link_soil(cxiemu_link_t *link)
{
    if (!link->dirty) {
        link->dirty = 1;
        TAILQ_INSERT_TAIL(&link->nic->dirty, link, unflushed);
    }
}

void cxiemu_link_flush(cxiemu_link_t *link)
{
    uint64_t until;

    if (link->dirty) {
        link->dirty = 0;
        TAILQ_REMOVE(&link->nic->dirty, link, unflushed);
        if ((link->nic_shm == link->nic->shm) && link->nic->in_progress) {
            /* To oneself: the progress that is being made goes on with it */
            cxiemu_nic_mark(link->nic_shm, link->peer_port);
        } else {
            until = cxiemu_nic_ring(link->nic_shm, link->peer_port,
                                    link->is_tx || link->urgent);
            if (until != 0) {
                cxiemu_promise_note(link, until);
            }
        }
        link->urgent = 0;
    }
}


/* Whether cells up to @a end (not included) may be written. */
static int cxiemu_link_has_cells(cxiemu_link_t *link, uint32_t end)
{
    uint32_t head;

    if ((int32_t)(link->tail_limit - end) >= 0) {
        return 1;
    }
    /* The target's reads of these cells come before its store of the head. The
     * order of all is for cxiemu_link_want_cells(). */
    head = __atomic_load_n(&link->shm->head, __ATOMIC_SEQ_CST);
    if (link->tail - head > CXIEMU_CELLS) {
        return 0; /* The target is mad */
    }
    link->tail_limit = head + CXIEMU_CELLS;
    return (int32_t)(link->tail_limit - end) >= 0;
}

/* As above; if not, the target is asked to ring when there is more room. */
static int cxiemu_link_want_cells(cxiemu_link_t *link, uint32_t end)
{
    if (cxiemu_link_has_cells(link, end)) {
        return 1;
    }
    /* Pairs with cxiemu_link_publish_head(): either the target sees the wish,
     * or its new head is seen here */
    __atomic_store_n(&link->shm->stalled, 1, __ATOMIC_SEQ_CST);
    return cxiemu_link_has_cells(link, end);
}

static void cxiemu_link_publish(cxiemu_link_t *link, cxiemu_rec_t *rec)
{
    /* Pairs with the target's load of seq */
    __atomic_store_n(&rec->seq, link->tail + 1, __ATOMIC_RELEASE);
    link->tail += rec->cells;
}

void cxiemu_link_expect(cxiemu_link_t *link)
{
    cxiemu_link_expect_store(cxiemu_link_cell(link, link->tail));
}

cxiemu_rec_t *cxiemu_link_reserve(cxiemu_link_t *link, size_t behind)
{
    cxiemu_rec_t *rec;
    uint32_t cells, rest, pad;

    if ((link->state != CXIEMU_LINK_UP) || (link->owed >= CXIEMU_ACKS) ||
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

void *cxiemu_link_payload(cxiemu_rec_t *rec)
{
    return (rec->cells == 1) ? cxiemu_rec_small(rec) : (void*)(rec + 1);
}

void cxiemu_link_commit(cxiemu_link_t *link, cxiemu_rec_t *rec)
{
    if (rec->flags & CXIEMU_REC_ACK) {
        ++link->owed;
    }
    link->nic->has_moved = 1;
    cxiemu_link_publish(link, rec);
    cxiemu_link_soil(link);
}

int cxiemu_link_find_slot(const cxiemu_link_t *link, size_t whole)
{
    uint32_t fit = link->free_slots & ((whole >= CXIEMU_LONG_SLOT_MIN) ?
                                               ~CXIEMU_SHORT_SLOTS_MASK :
                                               CXIEMU_SHORT_SLOTS_MASK);

    return (fit == 0) ? -1 : __builtin_ctz(fit);
}

void cxiemu_link_take_slot(cxiemu_link_t *link, int slot)
{
    link->free_slots &= ~(1u << slot);
}

void *cxiemu_link_slot(cxiemu_link_t *link, uint32_t slot)
{
    if ((link->shm == NULL) || (slot >= CXIEMU_SLOTS)) {
        return NULL;
    }
    return (slot < CXIEMU_SHORT_SLOTS) ?
                   link->shm->short_slots[slot] :
                   link->shm->long_slots[slot - CXIEMU_SHORT_SLOTS];
}

size_t cxiemu_link_slot_size(uint32_t slot)
{
    return (slot < CXIEMU_SHORT_SLOTS) ? CXIEMU_SHORT_SLOT_SIZE :
           (slot < CXIEMU_SLOTS)       ? CXIEMU_LONG_SLOT_SIZE :
                                         0;
}


cxiemu_ack_t *cxiemu_link_next_ack(cxiemu_link_t *link)
{
    if (link->ack_tail == link->ack_limit) {
        link->ack_limit = __atomic_load_n(&link->shm->ack_head,
                                          __ATOMIC_ACQUIRE) +
                          CXIEMU_ACKS;
        if (link->ack_tail - (link->ack_limit - CXIEMU_ACKS) >= CXIEMU_ACKS) {
            /* An initiator never has more than that under way */
            cxiemu_warn(EP_DATA, "process %u owes room\n", link->pid);
            link->ack_limit = link->ack_tail;
            return NULL;
        }
    }
    return cxiemu_link_ack_cell(link);
}

void cxiemu_link_ack(cxiemu_link_t *link, cxiemu_ack_t *ack)
{
    /* Pairs with the initiator's load of seq */
    __atomic_store_n(&ack->seq, ++link->ack_tail, __ATOMIC_RELEASE);
    cxiemu_link_soil(link);
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
        link->urgent = 1;
        cxiemu_link_soil(link);
    }
}

/* Whether a record is whole: its cells, and the payload that comes with it. */
static int cxiemu_link_is_sound(const cxiemu_link_t *link,
                                const cxiemu_rec_t *rec)
{
    uint32_t rest  = CXIEMU_CELLS - (link->head & CXIEMU_CELL_MASK);
    uint32_t cells = rec->cells;

    if ((cells == 0) || (cells > rest) || (rec->type > CXIEMU_REC_ATOMIC)) {
        return 0;
    }
    if (rec->flags & CXIEMU_REC_SLOT) {
        return (rec->source < CXIEMU_SLOTS) &&
               (rec->length <= cxiemu_link_slot_size(rec->source));
    }
    if ((rec->flags & CXIEMU_REC_MEM) ||
        ((rec->type != CXIEMU_REC_SEND) && (rec->type != CXIEMU_REC_DATA) &&
         (rec->type != CXIEMU_REC_WRITE))) {
        return 1;
    }
    return rec->length <= cxiemu_rec_room(rec);
}

/* Takes the payload's cells out of use: what is in them must not be mistaken
 * for a number of the ring's next lap. The initiator writes them again only
 * after the head. */
static void cxiemu_link_wipe(cxiemu_link_t *link, uint32_t cells)
{
    uint32_t i;

    for (i = 1; i < cells; ++i) {
        cxiemu_link_cell(link, link->head + i)->seq = link->head + i;
    }
}

const uint32_t *cxiemu_link_next_seq(const cxiemu_link_t *link, uint32_t *seq_p)
{
    if (link->is_tx) {
        *seq_p = link->ack_next + 1;
        return &link->shm->acks[link->ack_next & CXIEMU_ACK_MASK].seq;
    }
    *seq_p = link->head + 1;
    return &cxiemu_link_cell(link, link->head)->seq;
}

/* As the target: the next record, or NULL. */
static cxiemu_rec_t *cxiemu_link_next(cxiemu_link_t *link)
{
    cxiemu_rec_t *rec = cxiemu_link_cell(link, link->head);

    if (__atomic_load_n(&rec->seq, __ATOMIC_ACQUIRE) != link->head + 1) {
        return NULL;
    }
    return rec;
}

/* As the target: take records; whether there may be more. */
static int cxiemu_link_take_records(cxiemu_link_t *link, unsigned budget,
                                    unsigned *count_p)
{
    unsigned count    = 0;
    cxiemu_rec_t *rec = NULL;
    uint32_t cells;

    while ((count < budget) && ((rec = cxiemu_link_next(link)) != NULL)) {
        cells = rec->cells;
        if ((cells == 1) && !(rec->flags & CXIEMU_REC_SLOT)) {
            /* Behind more of a payload it would be gone again by then */
            cxiemu_link_expect_store(cxiemu_link_ack_cell(link));
        }
        if (!cxiemu_link_is_sound(link, rec)) {
            cxiemu_warn(EP_DATA, "broken record from process %u\n", link->pid);
            cxiemu_link_lose(link);
            break;
        }
        if (rec->type != CXIEMU_REC_PAD) {
            cxiemu_target_record(link, rec);
            if (link->state != CXIEMU_LINK_UP) {
                break;
            }
        }
        cxiemu_link_wipe(link, cells);
        link->head += cells;
        ++count;
        if (link->head - link->published >= CXIEMU_HEAD_CELLS) {
            cxiemu_link_publish_head(link);
        }
    }
    *count_p = count;
    return (rec != NULL) && (link->state == CXIEMU_LINK_UP);
}

/* As the initiator: take one acknowledgement; whether there was one. */
static int cxiemu_link_take_ack(cxiemu_link_t *link)
{
    cxiemu_ack_t *cell = &link->shm->acks[link->ack_next & CXIEMU_ACK_MASK];
    cxiemu_ack_t ack;

    if (__atomic_load_n(&cell->seq, __ATOMIC_ACQUIRE) != link->ack_next + 1) {
        return 0;
    }
    ack = *cell;
    ++link->ack_next;
    /* Before anything is sent that may be acknowledged in this place */
    __atomic_store_n(&link->shm->ack_head, link->ack_next, __ATOMIC_RELEASE);
    if (link->owed > 0) {
        --link->owed;
    }
    if (ack.slot < CXIEMU_SLOTS) {
        link->free_slots |= 1u << ack.slot;
    }
    cxiemu_txop_ack(link, &ack);
    return 1;
}

/* As the initiator: take acknowledgements; whether there may be more. */
static int cxiemu_link_take_acks(cxiemu_link_t *link, unsigned budget,
                                 unsigned *count_p)
{
    unsigned count = 0;

    while ((count < budget) && (link->state == CXIEMU_LINK_UP) &&
           cxiemu_link_take_ack(link)) {
        ++count;
    }
    *count_p = count;
    return (count == budget) && (link->state == CXIEMU_LINK_UP);
}

static int cxiemu_link_take(cxiemu_link_t *link, unsigned budget,
                            unsigned *count_p)
{
    return link->is_tx ? cxiemu_link_take_acks(link, budget, count_p) :
                         cxiemu_link_take_records(link, budget, count_p);
}

unsigned cxiemu_link_drain(cxiemu_nic_t *nic, uint32_t port, unsigned budget)
{
    cxiemu_link_t *link = nic->ports[port];
    unsigned count      = 0;
    int closed;

    if (link == NULL) {
        link = cxiemu_link_accept(nic, port);
        if (link == NULL) {
            return 0;
        }
    }
    if (link->is_tx && (link->map->fd >= 0) &&
        __atomic_load_n(&link->shm->attached, __ATOMIC_ACQUIRE)) {
        /* Nobody has to find it any more: one descriptor a peer is enough */
        cxiemu_map_close_fd(link->map);
    }
    /* Read before the rings: who closes has written all that he will */
    closed = cxiemu_link_is_closed(link);
    if (cxiemu_link_take(link, budget, &count)) {
        /* Its turn comes again. Not a ring, as nobody has to be woken. */
        __atomic_fetch_or(&nic->shm->ready[port / 64], 1ull << (port % 64),
                          __ATOMIC_SEQ_CST);
        __atomic_fetch_or(&nic->shm->summary, 1ull << (port / 64),
                          __ATOMIC_SEQ_CST);
    } else if (closed && (link->state == CXIEMU_LINK_UP)) {
        cxiemu_link_lose(link);
    }
    if ((count > 0) && (link->state == CXIEMU_LINK_UP)) {
        cxiemu_watch_next(link);
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
