/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_late.c - what is carried out later than it came.
 *
 * Strict mode: a write waits for a random number of progress calls; then its
 * payload lands in pieces, in random order. Cassini guarantees no more, unless
 * order is asked for. What does not write is put off only if it has to stay
 * behind something that is. Nor does Cassini guarantee that a write is in
 * memory when it is acknowledged, unless FI_DELIVERY_COMPLETE is asked for:
 * some are acknowledged before they land.
 *
 * Both modes: long messages are fetched in shares, one after the other, as the
 * NIC's lock is held while one is copied.
 */
#include "op/cxiemu_mr.h"
#include "op/cxiemu_rx.h"
#include "op/cxiemu_target.h"

#include <stdlib.h>

/* A write waits for fewer progress calls than that */
#define CXIEMU_LATE_MAX 8

/* Payload lands in so many pieces at most, of whole cache lines */
#define CXIEMU_LATE_PIECES 8
#define CXIEMU_LATE_PIECE_MIN 64


typedef struct cxiemu_pending {
    TAILQ_ENTRY(cxiemu_pending) list;
    cxiemu_arrival_t            arrival;
    int                         ordered; /* Behind all before on the link */
    unsigned                    wait;    /* Progress calls to go */
    unsigned                    missing; /* Pieces: a bit mask */
    size_t                      piece;   /* Bytes of a piece */
    uint8_t                     data[];  /* Payload that came in the record */
} cxiemu_pending_t;


static int cxiemu_late_writes(const cxiemu_arrival_t *arrival)
{
    return (arrival->rec.type == CXIEMU_REC_WRITE) ||
           (arrival->rec.type == CXIEMU_REC_PULL);
}

static void cxiemu_late_free(cxiemu_nic_t *nic, cxiemu_pending_t *pending)
{
    cxiemu_link_t *link = pending->arrival.link;

    TAILQ_REMOVE(&nic->late, pending, list);
    --link->late;
    link->late_other -= !cxiemu_late_writes(&pending->arrival);
    free(pending);
}

/* A record with its payload, if that must not stay where it is; or NULL. Some
 * writes are acknowledged before they land, but none that cannot: its initiator
 * is to learn of it. */
static cxiemu_pending_t *cxiemu_late_keep(const cxiemu_arrival_t *arrival)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_pending_t *pending;
    cxiemu_mr_t *mr;
    int early, aside;

    early   = cxiemu_late_writes(arrival) &&
              !(rec->flags & (CXIEMU_REC_DELIVERY | CXIEMU_REC_FENCE)) &&
              (cxiemu_nic_random(arrival->link->nic) % 2 == 0) &&
              (cxiemu_target_land(arrival, 0, 0, &mr) == 0);
    aside   = early || ((arrival->payload != NULL) &&
                        !(rec->flags & CXIEMU_REC_SLOT));
    pending = calloc(1, sizeof(*pending) + (aside ? rec->length : 0));
    if (pending == NULL) {
        return NULL;
    }
    if (aside && (cxiemu_link_fetch(arrival, 0, pending->data,
                                    rec->length) != 0)) {
        free(pending);
        return NULL;
    }

    pending->arrival = *arrival;
    if (aside) {
        pending->arrival.payload = pending->data;
    }
    if (early) {
        cxiemu_link_answer(arrival, CXIEMU_ACK_DONE, 0, 0);
        pending->arrival.rec.flags &= ~CXIEMU_REC_ACK;
    }
    return pending;
}

static int cxiemu_late_takes(const cxiemu_arrival_t *arrival)
{
    cxiemu_link_t *link = arrival->link;
    cxiemu_nic_t *nic   = link->nic;
    int writes          = cxiemu_late_writes(arrival);
    size_t length       = arrival->rec.length;
    size_t lines        = (length + CXIEMU_LATE_PIECE_MIN - 1) /
                          CXIEMU_LATE_PIECE_MIN;
    cxiemu_pending_t *pending;
    size_t per_piece;
    int behind;

    behind = (link->late > 0) &&
             ((arrival->rec.flags & (CXIEMU_REC_FENCE | CXIEMU_REC_ORDERED)) ||
              (!writes && (link->late_other > 0)));

    if (!writes && !behind) {
        return 0;
    }

    pending = cxiemu_late_keep(arrival);
    if (pending == NULL) {
        return 0; /* In time is no worse than late */
    }
    pending->ordered = behind;
    if (writes) {
        pending->wait    = cxiemu_nic_random(nic) % CXIEMU_LATE_MAX;
        /* One of no length has one piece */
        lines            = (lines > 0) ? lines : 1;
        per_piece        = (lines + CXIEMU_LATE_PIECES - 1) /
                           CXIEMU_LATE_PIECES;
        pending->piece   = per_piece * CXIEMU_LATE_PIECE_MIN;
        pending->missing = (1u << ((lines + per_piece - 1) / per_piece)) - 1;
    }
    TAILQ_INSERT_TAIL(&nic->late, pending, list);
    ++link->late;
    link->late_other += !writes;
    return 1;
}

void cxiemu_late_record(cxiemu_arrival_t *arrival, const void *behind)
{
    cxiemu_rec_t *rec = &arrival->rec;

    arrival->payload = !cxiemu_rec_brings(rec->type) ? NULL :
                       (rec->flags & CXIEMU_REC_SLOT) ?
                                     arrival->link->shm->slots[rec->source] :
                       (rec->cells == 1) ? cxiemu_rec_small(rec) :
                                           behind;
    if (!cxiemu_param()->strict || !cxiemu_late_takes(arrival)) {
        cxiemu_target_execute(arrival);
    }
}


/* Whether the write has chunks that came before and are still to land: the last
 * one is counted after them. */
static int cxiemu_late_has_chunks(cxiemu_nic_t *nic,
                                  const cxiemu_pending_t *pending)
{
    const cxiemu_pending_t *other;

    if (!(pending->arrival.rec.flags & CXIEMU_REC_LAST)) {
        return 0;
    }
    TAILQ_FOREACH(other, &nic->late, list) {
        if (other == pending) {
            break;
        }
        if ((other->arrival.link == pending->arrival.link) &&
            (other->arrival.rec.op == pending->arrival.rec.op)) {
            return 1;
        }
    }
    return 0;
}

/* One piece of a write, or what follows the last one; whether it is over, and
 * freed. */
static int cxiemu_late_land(cxiemu_nic_t *nic, cxiemu_pending_t *pending)
{
    size_t length   = pending->arrival.rec.length;
    cxiemu_mr_t *mr = NULL;
    unsigned piece;
    size_t offset, share;
    int err;

    piece = cxiemu_nic_random(nic) % CXIEMU_LATE_PIECES;
    while (!(pending->missing & (1u << piece))) {
        piece = (piece + 1) % CXIEMU_LATE_PIECES;
    }
    if ((pending->missing == (1u << piece)) &&
        cxiemu_late_has_chunks(nic, pending)) {
        return 0;
    }

    offset = piece * pending->piece;
    share  = length - offset;
    share  = (share < pending->piece) ? share : pending->piece;
    err    = cxiemu_target_land(&pending->arrival, offset, share, &mr);

    pending->missing &= ~(1u << piece);
    if ((pending->missing != 0) && (err == 0)) {
        return 0;
    }
    cxiemu_target_landed(&pending->arrival, mr, err);
    cxiemu_late_free(nic, pending);
    return 1;
}

static unsigned cxiemu_late_pass(cxiemu_nic_t *nic)
{
    uint64_t pass  = ++nic->late_pass;
    unsigned count = 0;
    cxiemu_pending_t *pending, *next;
    cxiemu_link_t *link;
    int is_first;

    for (pending = TAILQ_FIRST(&nic->late); pending != NULL; pending = next) {
        if ((count > 0) && (nic->copied >= CXIEMU_COPY_SHARE)) {
            break;
        }
        next            = TAILQ_NEXT(pending, list);
        link            = pending->arrival.link;
        is_first        = (link->late_pass != pass);
        link->late_pass = pass;
        if (pending->wait > 0) {
            --pending->wait;
            continue;
        }
        if (pending->ordered && !is_first) {
            continue;
        }
        ++count;
        if (cxiemu_late_writes(&pending->arrival)) {
            (void)cxiemu_late_land(nic, pending);
        } else {
            cxiemu_target_execute(&pending->arrival);
            cxiemu_late_free(nic, pending);
        }
    }
    return count;
}

unsigned cxiemu_late_go_on(cxiemu_nic_t *nic)
{
    unsigned count = cxiemu_late_pass(nic);

    /* Neither waits for ever while there is enough of the other */
    return count + cxiemu_rx_pull(nic);
}

void cxiemu_late_lost(cxiemu_link_t *link)
{
    cxiemu_nic_t *nic = link->nic;
    cxiemu_pending_t *pending, *next;
    int is_over;

    for (pending = TAILQ_FIRST(&nic->late); pending != NULL; pending = next) {
        next = TAILQ_NEXT(pending, list);
        if (pending->arrival.link != link) {
            continue;
        }
        is_over = 0;
        if (cxiemu_late_writes(&pending->arrival) &&
            !(pending->arrival.rec.flags & CXIEMU_REC_ACK)) {
            /* What has been acknowledged lands, whatever becomes of its
             * initiator; but not the last piece of one whose chunks are lost */
            while (!is_over && ((pending->missing & (pending->missing - 1)) ||
                                !cxiemu_late_has_chunks(nic, pending))) {
                is_over = cxiemu_late_land(nic, pending);
            }
        }
        if (!is_over) {
            cxiemu_late_free(nic, pending);
        }
    }
}
