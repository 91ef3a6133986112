/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_waits.h - what waits for a peer and the st worker does not know of: it
 * is noted there (ucp_st_note_begin()) once it has waited for a moment.
 */
#ifndef MPIX_WAITS_H_
#define MPIX_WAITS_H_

#include <ucp_st.h>

#include <stddef.h>


/* A wait; all zero while there is none. */
typedef struct mpix_waits {
    double        since; /* When it was first seen, as mpix_now() */
    ucp_st_note_h note;  /* Or NULL */
} mpix_waits_t;


/* Something still waits. Non-zero if that is to be noted now. */
int mpix_waits_is_due(mpix_waits_t *wait, double now);

/* Note it: 'what' waits for 'text'. */
void mpix_waits_note(mpix_waits_t *wait, double now, const char *what,
                     const char *text);

/* The wait is over, or there was none. */
void mpix_waits_end(mpix_waits_t *wait);

#endif
