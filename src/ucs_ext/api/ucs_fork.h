/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_fork.h
 * Locks of tables that a forked child goes on with. Not installed; it needs
 * nothing but the C library, as the emulated card has it, too.
 *
 * Each library has such locks for the time of a fork, and the libraries come
 * one after the other. A thread that has one may wait for another: memory that
 * it gives back under it makes UCX end registrations, with the card's locks. So
 * nobody is waited for without end. A lock that cannot be had is made anew in
 * the child, and what it protects is emptied there, as it may be half changed.
 */
#ifndef UCS_FORK_H_
#define UCS_FORK_H_

#include <pthread.h>
#include <time.h>

/** How long a fork waits for a lock, seconds. */
#define UCS_FORK_TIME 1


/** Before a fork: non-zero if the caller has the lock then. */
static inline int ucs_fork_lock(pthread_mutex_t *lock)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += UCS_FORK_TIME;
    return pthread_mutex_timedlock(lock, &end) == 0;
}

/** Behind it, in both processes; @a has_lock is what ucs_fork_lock() said. */
static inline void
ucs_fork_unlock(pthread_mutex_t *lock, int has_lock, int is_child)
{
    if (has_lock) {
        pthread_mutex_unlock(lock);
    } else if (is_child) {
        pthread_mutex_init(lock, NULL);
    }
}

#endif
