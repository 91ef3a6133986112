/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork.c - locks of tables that a forked child goes on with.
 */
#include "ucs_fork.h"

#include <time.h>

/* How long a fork waits for a lock, seconds */
#define UCS_FORK_TIME 1


int ucs_fork_lock(pthread_mutex_t *lock)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += UCS_FORK_TIME;
    return pthread_mutex_timedlock(lock, &end) == 0;
}

void ucs_fork_unlock(pthread_mutex_t *lock, int has_lock, int is_child)
{
    if (has_lock) {
        pthread_mutex_unlock(lock);
    } else if (is_child) {
        pthread_mutex_init(lock, NULL);
    }
}
