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

/** Locks of a library that a fork takes, at most. */
#define UCS_FORK_MAX_LOCKS 8

#pragma GCC visibility push(hidden)

/**
 * Before a fork: take a lock, for which the caller waits a second at most.
 *
 * Threads: the one that forks; several may do so at the same time.
 *
 * @param [in] lock The lock; UCS_FORK_MAX_LOCKS of a library at most.
 */
void ucs_fork_lock(pthread_mutex_t *lock);

/**
 * Behind it, in both processes: whether the calling thread has the lock.
 *
 * Threads: the one that forks.
 *
 * @param [in] lock The lock.
 *
 * @return Non-zero if so.
 */
int ucs_fork_has(const pthread_mutex_t *lock);

/**
 * Give the lock back that the calling thread has, or make it anew in the child.
 *
 * Threads: the one that forks.
 *
 * @param [in] lock     The lock.
 * @param [in] is_child Whether this is the child.
 */
void ucs_fork_unlock(pthread_mutex_t *lock, int is_child);

#pragma GCC visibility pop

#endif
