/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_backoff.c - loops that wait for something which wakes nobody.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_backoff.h"

#include <sched.h>
#include <time.h>

/* How long to wait when nothing happens: first by polling, then by giving the
 * processor away, then by sleeping. */
#define MPIX_BACKOFF_POLLS    16
#define MPIX_BACKOFF_YIELDS   64
#define MPIX_BACKOFF_SLEEP_NS 100000l


double mpix_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}

void mpix_backoff(unsigned *spins)
{
    const struct timespec pause = {.tv_nsec = MPIX_BACKOFF_SLEEP_NS};

    ++*spins;
    if (*spins <= MPIX_BACKOFF_POLLS) {
        return;
    } else if (*spins <= (MPIX_BACKOFF_POLLS + MPIX_BACKOFF_YIELDS)) {
        sched_yield();
    } else {
        nanosleep(&pause, NULL);
    }
}
