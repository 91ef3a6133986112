/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork_util.h - children that are forked while other threads have locks.
 */
#ifndef FORK_UTIL_H_
#define FORK_UTIL_H_

#include <stddef.h>

/** How many children each case forks. */
#define FORK_CHILDREN 40


/**
 * Fork children one after the other while a thread for each of these functions
 * calls it again and again. Asserts that each child ends with status 0; one
 * that hangs is ended by SIGALRM, and is the last.
 *
 * @param [in] users Called by threads: each takes and gives back a lock.
 * @param [in] count How many.
 * @param [in] child Called in the child, which then exits, with its functions
 *                   for that. Returns 0, or the line that failed.
 */
void fork_among(void (*const *users)(void), size_t count, int (*child)(void));

/** Fork one child, as fork_among() does. 0 if it did not end with status 0.
 *  Skips the case under TSan, which has no threads in such a child. */
int fork_one(int (*child)(void));

#endif
