/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_life.h - the life of two st workers in one process: they are made, match,
 * use and free operations, and are destroyed. Something on the way may fail.
 */
#ifndef ST_LIFE_H_
#define ST_LIFE_H_

#include <ucp_st.h>

/** Operations of each worker. */
#define ST_LIFE_OPS 4

/** Live it once. Asserts that data is right, and that in the end all can be
 *  freed; the first error, or UCS_OK. */
ucs_status_t st_life(void);

/** Make a stream, a worker and a queue; what was made stays where something
 *  fails. */
ucs_status_t st_life_open(ucs_gstream_h *stream_p, ucp_st_worker_h *worker_p,
                          ucp_st_queue_h *queue_p);

/** Non-zero if that is what may be said where room is missing. */
int st_life_is_fair(ucs_status_t status);

#endif
