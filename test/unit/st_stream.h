/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_stream.h - what the cases have their streams do beside messages.
 */
#ifndef ST_STREAM_H_
#define ST_STREAM_H_

#include "st_pair.h"

/** What st_fill_func() and st_check_func() work on. */
typedef struct {
    uint8_t  *buffer;
    size_t   length;
    uint64_t seed;
    int      *errors; /* of checks */
} st_work_t;

/** Stream functions: fill a buffer; check one, then spoil it, as a second look
 *  at stale data must not pass. */
void st_fill_func(void *arg);
void st_check_func(void *arg);

/** Stream function: set an int to 1. */
void st_raise_func(void *arg);

/** Compute, and make no call, until both have been set. */
void st_compute_until(const int done[2]);

/** Enqueue a function on the side's stream; asserts. */
void st_launch(st_side_t *side, ucs_gstream_func_t func, void *arg);

/** Have the side's stream, which is idle, refuse what is enqueued, as one does
 *  that is captured into a graph; and take it again. */
void st_capture_begin(st_side_t *side);
void st_capture_end(st_side_t *side);

/** Wait until the stream of a side, which comes to no wait, has run all starts:
 *  one that does not run functions of lanes itself may be over before that. */
void st_begun(st_side_t *side);

/** Skip the case, and return 1, if streams are not of the host: for what only
 *  those do. */
int st_needs_host(void);

/** Let the side's stream wait for a gate, which is 0; asserts. */
void st_hold(st_side_t *side, uint64_t *gate);

/** Open it. */
void st_let_go(uint64_t *gate);

#endif
