/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_poll.c - functions that waiting host streams call.
 *
 * A thread uses a slot from when it begins the poller until it ends it. The
 * users of a slot are counted without a lock:
 *
 *     user [gstream_poll_begin]            remover
 *     add 1 to users                       clear is_open
 *     load is_open: begin the poller,      wait until users is 0
 *     or subtract 1 from users again
 *
 * All are seq-cst: either the user finds the slot closed, or the remover finds
 * the user. A user that finds a slot closed later, in its next round, ends the
 * poller and subtracts 1. The poller is written before is_open (release), and
 * again only after users was 0 with is_open cleared. The remover waits without
 * the lock. That ends: whoever uses a slot comes to its next round, or ends.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_poll.h"
#include "gstream_fork.h"
#include "api/ucs_backoff.h"

#include <ucs/sys/math.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define GSTREAM_POLL_MAX 16


typedef struct gstream_poll_slot {
    int                  is_taken; /* Under the lock */
    _Atomic int          is_open;
    _Atomic unsigned     users;
    ucs_gstream_poller_t poller;
} gstream_poll_slot_t;


static struct {
    pthread_mutex_t     lock;  /* Of adding and removing */
    _Atomic unsigned    count; /* Slots that may be open: 0 to count - 1 */
    gstream_poll_slot_t slots[GSTREAM_POLL_MAX];
} gstream_pollers = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


/* Whether the slot's poller is one that the caller calls now. */
static int gstream_poll_begin(gstream_poll_slot_t *slot)
{
    if (!atomic_load_explicit(&slot->is_open, memory_order_relaxed)) {
        return 0;
    }

    atomic_fetch_add(&slot->users, 1);
    if (!atomic_load(&slot->is_open)) {
        atomic_fetch_sub(&slot->users, 1);
        return 0;
    }
    if (slot->poller.begin != NULL) {
        slot->poller.begin(slot->poller.arg);
    }
    return 1;
}

static void gstream_poll_end_slot(gstream_polled_t *polled, unsigned i)
{
    gstream_poll_slot_t *slot = &gstream_pollers.slots[i];

    if (slot->poller.end != NULL) {
        slot->poller.end(slot->poller.arg);
    }
    atomic_fetch_sub(&slot->users, 1);
    polled->slots &= ~UCS_BIT(i);
}

int gstream_poll(gstream_polled_t *polled)
{
    unsigned count = atomic_load_explicit(&gstream_pollers.count,
                                          memory_order_relaxed);
    int num_done   = 0;
    gstream_poll_slot_t *slot;
    unsigned i;

    for (i = 0; i < count; ++i) {
        slot = &gstream_pollers.slots[i];
        if (!(polled->slots & UCS_BIT(i))) {
            if (!gstream_poll_begin(slot)) {
                continue;
            }
            polled->slots |= UCS_BIT(i);
        } else if (!atomic_load(&slot->is_open)) {
            gstream_poll_end_slot(polled, i);
            continue;
        }
        num_done += slot->poller.poll(slot->poller.arg);
    }
    return num_done;
}

void gstream_poll_end(gstream_polled_t *polled)
{
    unsigned i;

    for (i = 0; polled->slots != 0; ++i) {
        if (polled->slots & UCS_BIT(i)) {
            gstream_poll_end_slot(polled, i);
        }
    }
}

void gstream_poll_forked(void)
{
    unsigned i;

    pthread_mutex_init(&gstream_pollers.lock, NULL);
    atomic_store(&gstream_pollers.count, 0);
    for (i = 0; i < GSTREAM_POLL_MAX; ++i) {
        gstream_pollers.slots[i].is_taken = 0;
        atomic_store(&gstream_pollers.slots[i].is_open, 0);
        atomic_store(&gstream_pollers.slots[i].users, 0);
    }
}

static int gstream_poller_is_same(const ucs_gstream_poller_t *a,
                                  const ucs_gstream_poller_t *b)
{
    return (a->poll == b->poll) && (a->arg == b->arg);
}

ucs_status_t ucs_gstream_poller_add(const ucs_gstream_poller_t *poller)
{
    ucs_status_t status = UCS_ERR_NO_RESOURCE;
    unsigned i;

    if ((poller == NULL) || (poller->poll == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }

    pthread_mutex_lock(&gstream_pollers.lock);
    for (i = 0; i < GSTREAM_POLL_MAX; ++i) {
        if (!gstream_pollers.slots[i].is_taken) {
            gstream_pollers.slots[i].is_taken = 1;
            gstream_pollers.slots[i].poller   = *poller;
            atomic_store(&gstream_pollers.slots[i].is_open, 1);
            if (i >= atomic_load(&gstream_pollers.count)) {
                atomic_store(&gstream_pollers.count, i + 1);
            }
            status = UCS_OK;
            break;
        }
    }
    pthread_mutex_unlock(&gstream_pollers.lock);
    return status;
}

/* Close the slot of a poller; NULL if there is none. */
static gstream_poll_slot_t *
gstream_poller_close(const ucs_gstream_poller_t *poller)
{
    gstream_poll_slot_t *found = NULL;
    gstream_poll_slot_t *slot;
    unsigned i;

    pthread_mutex_lock(&gstream_pollers.lock);
    for (i = 0; (i < GSTREAM_POLL_MAX) && (found == NULL); ++i) {
        slot = &gstream_pollers.slots[i];
        if (atomic_load(&slot->is_open) &&
            gstream_poller_is_same(&slot->poller, poller)) {
            atomic_store(&slot->is_open, 0);
            found = slot;
        }
    }
    pthread_mutex_unlock(&gstream_pollers.lock);
    return found;
}

ucs_status_t ucs_gstream_poller_remove(const ucs_gstream_poller_t *poller)
{
    unsigned rounds = 0;
    gstream_poll_slot_t *slot;

    if ((poller == NULL) || (poller->poll == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }

    slot = gstream_poller_close(poller);
    if (slot == NULL) {
        return UCS_ERR_NO_ELEM;
    }

    while (atomic_load(&slot->users) > 0) {
        ucs_backoff(&rounds);
    }
    pthread_mutex_lock(&gstream_pollers.lock);
    slot->is_taken = 0;
    pthread_mutex_unlock(&gstream_pollers.lock);
    return UCS_OK;
}
