/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_poll.h - functions that waiting host streams call.
 */
#ifndef GSTREAM_POLL_H_
#define GSTREAM_POLL_H_

#include "api/ucs_gstream.h"

/** Call all pollers once; any thread. Cheap when there are none. @a next: what
 *  the caller does then. Returns whether one has moved something. */
int gstream_poll(ucs_gstream_poll_t next);

#endif
