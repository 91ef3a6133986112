/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backoff.c - loops that wait for something which wakes nobody.
 */
#include "ucs_backoff.h"

#include <sched.h>
#include <time.h>

/* Rounds that return at once, rounds that yield, and how long others sleep */
#define UCS_BACKOFF_POLLS    16
#define UCS_BACKOFF_YIELDS   200
#define UCS_BACKOFF_SLEEP_NS 50000


void ucs_backoff(unsigned *rounds_p)
{
    const struct timespec pause = {.tv_nsec = UCS_BACKOFF_SLEEP_NS};

    if (++*rounds_p <= UCS_BACKOFF_POLLS) {
        return;
    }
    if (*rounds_p <= (UCS_BACKOFF_POLLS + UCS_BACKOFF_YIELDS)) {
        (void)sched_yield();
    } else {
        (void)nanosleep(&pause, NULL);
    }
}
