/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_drain.c - what peers have sent, and whether they are still there. */
#include "nic/cxiemu_peer.h"
#include "base/cxiemu_log.h"

#include <sys/epoll.h>

/* The head is published after so many cells: a store takes the line from the
 * initiator. One that finds no room has left more than that to be taken, so it
 * learns of room when there is some. */
#define CXIEMU_HEAD_CELLS (CXIEMU_CELLS / 4)

#define CXIEMU_PEER_EVENTS 32


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
    const cxiemu_link_events_t *events = link->nic->events;
    cxiemu_arrival_t arrival           = {.link = link, .peer = link->peer};
    unsigned count                     = 0;
    int has_more                       = 0;
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
            events->record(&arrival, rec + 1);
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
    link->nic->events->ack(link, &ack);
    return 1;
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


/* Whether a link is up and must be given up. */
static int cxiemu_link_is_over(const cxiemu_link_t *link)
{
    const cxiemu_port_t *port = &link->nic_shm->ports[link->peer_port];

    return (link->state == CXIEMU_LINK_UP) &&
           (cxiemu_link_is_closed(link) ||
            (link->is_tx && (__atomic_load_n(&port->refused,
                                             __ATOMIC_ACQUIRE) ==
                             link->shm->id.nonce)));
}

/* Takes what a peer left, and gives up its links. */
static void cxiemu_link_lose_all(cxiemu_nic_t *nic, const cxiemu_peer_t *peer)
{
    cxiemu_link_t *link, *next;

    for (link = TAILQ_FIRST(&nic->links); link != NULL; link = next) {
        next = TAILQ_NEXT(link, list);
        if (link->other == peer) {
            /* Whole records of a process that is gone are valid */
            cxiemu_link_drain(nic, link->port, CXIEMU_CELLS);
            cxiemu_link_lose(link);
        }
    }
}

void cxiemu_link_check(cxiemu_nic_t *nic)
{
    struct epoll_event events[CXIEMU_PEER_EVENTS];
    cxiemu_peer_t *peer, *next;
    cxiemu_link_t *link;
    int i, count;

    if (!nic->links_seen) {
        return;
    }
    cxiemu_port_sweep(nic);
    /* Without descriptors of processes; also for links of which no
     * notification came */
    link = TAILQ_FIRST(&nic->links);
    while (link != NULL) {
        if (cxiemu_link_is_over(link)) {
            cxiemu_link_drain(nic, link->port, CXIEMU_CELLS);
            cxiemu_link_lose(link);
            link = TAILQ_FIRST(&nic->links); /* The list is another one now */
        } else {
            link = TAILQ_NEXT(link, list);
        }
    }
    count = epoll_wait(nic->epoll, events, CXIEMU_PEER_EVENTS, 0);
    for (i = 0; i < count; ++i) {
        cxiemu_link_lose_all(nic, events[i].data.ptr);
    }
    for (peer = TAILQ_FIRST(&nic->peers); peer != NULL; peer = next) {
        next = TAILQ_NEXT(peer, list);
        if ((peer->pidfd < 0) && cxiemu_peer_is_dead(peer)) {
            cxiemu_link_lose_all(nic, peer);
        }
    }
}
