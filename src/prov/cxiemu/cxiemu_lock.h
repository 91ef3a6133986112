/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_lock.h - the lock of a NIC: a futex, taken and given back in line, as
 * a poll that finds nothing does little else.
 *
 *            try, lock            lock
 *   FREE ----------------> TAKEN ------> AWAITED
 *    ^                       |              |
 *    +-----------------------+--------------+
 *            unlock           ... and wakes one
 *
 * Who comes while it is taken pauses a little, as it is held shortly, and then
 * sleeps. Who was woken takes it as AWAITED: others may still sleep.
 */
#ifndef CXIEMU_LOCK_H_
#define CXIEMU_LOCK_H_

#include <stdint.h>

enum {
    CXIEMU_LOCK_FREE,
    CXIEMU_LOCK_TAKEN,
    CXIEMU_LOCK_AWAITED /**< Taken, and somebody sleeps until it is not */
};

/** Zeroed it is free. */
typedef struct cxiemu_lock {
    uint32_t state; /**< Atomic; the futex */
} cxiemu_lock_t;


/** What cxiemu_lock_take() does if the lock is not free. */
void cxiemu_lock_wait(cxiemu_lock_t *lock);

/** Wake one who sleeps in cxiemu_lock_wait(). */
void cxiemu_lock_wake(cxiemu_lock_t *lock);

/** Take it without waiting; whether it succeeded. */
static inline int cxiemu_lock_try(cxiemu_lock_t *lock)
{
    uint32_t state = CXIEMU_LOCK_FREE;

    /* A look first: who fails takes the line from nobody */
    return (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) == state) &&
           __atomic_compare_exchange_n(&lock->state, &state, CXIEMU_LOCK_TAKEN,
                                       0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void cxiemu_lock_take(cxiemu_lock_t *lock)
{
    if (!cxiemu_lock_try(lock)) {
        cxiemu_lock_wait(lock);
    }
}

static inline void cxiemu_lock_give(cxiemu_lock_t *lock)
{
    if (__atomic_exchange_n(&lock->state, CXIEMU_LOCK_FREE, __ATOMIC_RELEASE) ==
        CXIEMU_LOCK_AWAITED) {
        cxiemu_lock_wake(lock);
    }
}

#endif
