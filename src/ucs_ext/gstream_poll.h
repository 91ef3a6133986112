/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_poll.h - functions that waiting host streams call.
 */
#ifndef GSTREAM_POLL_H_
#define GSTREAM_POLL_H_

/** Call all pollers once; any thread. Cheap when there are none. @a is_last:
 *  the caller is about to sleep. */
void gstream_poll(int is_last);

#endif
