/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_any.h - streams of tests: of the host, or of what ST_TEST_STREAM names
 * (host, hip or cuda) in the environment.
 */
#ifndef ST_ANY_H_
#define ST_ANY_H_

#include <ucs_gstream.h>

/** Type of the tests' streams; anything else than the names is the host. */
ucs_gstream_type_t st_any_type(void);

/** Create a stream of that type. */
ucs_status_t st_any_stream(ucs_gstream_h *stream_p);

/** How many of so many uses of an operation, each a start and a wait beside
 *  functions, a stream of that type takes while it waits for a gate: all on the
 *  host. On a GPU a call that finds no room would block, and with it the thread
 *  that is to open the gate. */
unsigned st_any_ahead(unsigned uses);

/** Whether so many streams of that type in a process wait without holding each
 *  other up: on a GPU its hardware queues are enough for them. */
int st_any_apart(unsigned streams);

/** Have a stream wait until a gate, which is 0 until then, is opened. It lives
 *  until the stream has passed. */
ucs_status_t st_any_hold(ucs_gstream_h stream, uint64_t *gate);

/** Open a gate: it is 1. */
void st_any_open(uint64_t *gate);

#endif
