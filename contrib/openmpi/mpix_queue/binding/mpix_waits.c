/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_waits.c - what waits for a peer and the st worker does not know of.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_waits.h"
#include "mpix_global.h"

#include <stdio.h>
#include <string.h>

/* A wait is noted after so many seconds: most are over before */
#define MPIX_WAITS_MOMENT 0.1


int mpix_waits_is_due(mpix_waits_t *wait, double now)
{
    if (wait->since == 0) {
        wait->since = now;
    }
    return (wait->note == NULL) && ((now - wait->since) >= MPIX_WAITS_MOMENT);
}

void mpix_waits_note(mpix_waits_t *wait, double now, const char *what,
                     const char *text)
{
    char who[64];

    snprintf(who, sizeof(who), "rank %d: %s", mpix_global_world_rank(), what);
    /* Without memory the next look tries again */
    (void)ucp_st_note_begin(who, text, now - wait->since, &wait->note);
}

void mpix_waits_end(mpix_waits_t *wait)
{
    ucp_st_note_end(wait->note);
    memset(wait, 0, sizeof(*wait));
}
