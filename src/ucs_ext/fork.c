/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork.c - locks of tables that a forked child goes on with.
 */
#include "ucs_fork.h"

#include <time.h>

/* How long a fork waits for a lock, seconds */
#define UCS_FORK_TIME 1


/* The locks that this thread has for its fork: two threads may fork at once */
static __thread pthread_mutex_t *ucs_fork_locks[UCS_FORK_MAX_LOCKS];


/* Where a lock is in the list; NULL: where there is room. */
static pthread_mutex_t **ucs_fork_find(const pthread_mutex_t *lock)
{
    unsigned i;

    for (i = 0; i < UCS_FORK_MAX_LOCKS; ++i) {
        if (ucs_fork_locks[i] == lock) {
            return &ucs_fork_locks[i];
        }
    }
    return NULL;
}

void ucs_fork_lock(pthread_mutex_t *lock)
{
    pthread_mutex_t **place = ucs_fork_find(NULL);
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += UCS_FORK_TIME;
    if ((place != NULL) && (pthread_mutex_timedlock(lock, &end) == 0)) {
        *place = lock;
    }
}

int ucs_fork_has(const pthread_mutex_t *lock)
{
    return ucs_fork_find(lock) != NULL;
}

void ucs_fork_unlock(pthread_mutex_t *lock, int is_child)
{
    pthread_mutex_t **place = ucs_fork_find(lock);

    if (place != NULL) {
        *place = NULL;
        pthread_mutex_unlock(lock);
    } else if (is_child) {
        pthread_mutex_init(lock, NULL);
    }
}
