/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_poll.c - functions that waiting host streams call.
 *
 * A slot's users are counted by the callers, without a lock:
 *
 *     caller [gstream_poll_slot]           remover
 *     add 1 to users                       clear func
 *     load func                            wait until users is 0
 *     call it, subtract 1 from users
 *
 * All are seq-cst: either the caller finds func cleared, or the remover finds
 * the caller among the users. arg is written before func (release), and again
 * only after users was 0 with func cleared.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_poll.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

#define GSTREAM_POLL_MAX 16


/* A poller; the slot is free while func is NULL. */
typedef struct gstream_poll_slot {
    _Atomic ucs_gstream_poll_func_t func;
    void                            *arg;
    _Atomic unsigned                users;
} gstream_poll_slot_t;


static struct {
    pthread_mutex_t     lock;  /* Of adding and removing */
    _Atomic unsigned    count; /* Slots that may be in use: 0 to count - 1 */
    gstream_poll_slot_t slots[GSTREAM_POLL_MAX];
} gstream_pollers = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


static int gstream_poll_slot(gstream_poll_slot_t *slot, ucs_gstream_poll_t next)
{
    int has_moved = 0;
    ucs_gstream_poll_func_t func;

    if (atomic_load_explicit(&slot->func, memory_order_relaxed) == NULL) {
        return 0;
    }

    atomic_fetch_add(&slot->users, 1);
    func = atomic_load(&slot->func);
    if (func != NULL) {
        has_moved = func(slot->arg, next);
    }
    atomic_fetch_sub(&slot->users, 1);
    return has_moved;
}

int gstream_poll(ucs_gstream_poll_t next)
{
    unsigned count = atomic_load_explicit(&gstream_pollers.count,
                                          memory_order_relaxed);
    int has_moved  = 0;
    unsigned i;

    for (i = 0; i < count; ++i) {
        has_moved |= gstream_poll_slot(&gstream_pollers.slots[i], next);
    }
    return has_moved;
}

/* The slot of a poller, or a free one for NULL; NULL if there is none. */
static gstream_poll_slot_t *gstream_poll_find(ucs_gstream_poll_func_t func,
                                              void *arg)
{
    gstream_poll_slot_t *slot;
    unsigned i;

    for (i = 0; i < GSTREAM_POLL_MAX; ++i) {
        slot = &gstream_pollers.slots[i];
        if ((atomic_load(&slot->func) == func) &&
            ((func == NULL) || (slot->arg == arg))) {
            return slot;
        }
    }
    return NULL;
}

ucs_status_t ucs_gstream_poller_add(ucs_gstream_poll_func_t func, void *arg)
{
    ucs_status_t status = UCS_ERR_NO_RESOURCE;
    gstream_poll_slot_t *slot;
    unsigned count;

    if (func == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }

    pthread_mutex_lock(&gstream_pollers.lock);
    slot = gstream_poll_find(NULL, NULL);
    if (slot != NULL) {
        slot->arg = arg;
        atomic_store(&slot->func, func);
        count = (unsigned)(slot - gstream_pollers.slots) + 1;
        if (count > atomic_load(&gstream_pollers.count)) {
            atomic_store(&gstream_pollers.count, count);
        }
        status = UCS_OK;
    }
    pthread_mutex_unlock(&gstream_pollers.lock);
    return status;
}

ucs_status_t ucs_gstream_poller_remove(ucs_gstream_poll_func_t func, void *arg)
{
    ucs_status_t status = UCS_ERR_NO_ELEM;
    gstream_poll_slot_t *slot;

    if (func == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }

    pthread_mutex_lock(&gstream_pollers.lock);
    slot = gstream_poll_find(func, arg);
    if (slot != NULL) {
        atomic_store(&slot->func, (ucs_gstream_poll_func_t)NULL);
        while (atomic_load(&slot->users) > 0) {
            sched_yield(); /* pollers return soon */
        }
        status = UCS_OK;
    }
    pthread_mutex_unlock(&gstream_pollers.lock);
    return status;
}
