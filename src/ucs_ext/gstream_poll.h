/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_poll.h - functions that waiting host streams call.
 */
#ifndef GSTREAM_POLL_H_
#define GSTREAM_POLL_H_

#include "api/ucs_gstream.h"

#include <stdint.h>

/** Pollers that a thread calls, by slot; zero at first. The thread's own. */
typedef struct gstream_polled {
    uint32_t slots;
} gstream_polled_t;


/** Call all pollers once; those that were added since the last call begin, and
 *  those that were removed end. Returns how many things they have done. Cheap
 *  when there are none. */
int gstream_poll(gstream_polled_t *polled);


/** End all pollers that the thread has begun: it does not poll any more. */
void gstream_poll_end(gstream_polled_t *polled);

#endif
