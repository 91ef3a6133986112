/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_pace.h - how a thread spends its time until it goes to sleep.
 *
 *   begin --> pause (SPIN times) --> yield (YIELD_TIME) --> sleep
 *
 * A thread that polls calls gstream_pace_step() between two looks at what it
 * waits for, until that returns 0; then it sleeps until it is woken, unlike in
 * ucs_backoff().
 */
#ifndef GSTREAM_PACE_H_
#define GSTREAM_PACE_H_

#include <ucs/type/status.h>

#include <stdint.h>


/** Settings, constant once read. */
typedef struct gstream_pace_config {
    unsigned spin;       /**< Pauses */
    double   yield_time; /**< Seconds */
} gstream_pace_config_t;


/** One polling wait; belongs to the thread that waits. */
typedef struct gstream_pace {
    unsigned pauses;     /**< Left before yielding */
    uint64_t yield_nsec;
    uint64_t start;      /**< Of the yields, ns; 0: before the first one */
} gstream_pace_t;


/**
 * Read the UCX_GSTREAM_* settings.
 *
 * @return UCS_OK, or the error of a value that cannot be read (logged by UCX).
 */
ucs_status_t gstream_pace_config_read(gstream_pace_config_t *config);


/** Begin a wait that yields at once: for waits that are seldom short. */
void gstream_pace_begin_yield(gstream_pace_t *pace,
                              const gstream_pace_config_t *config);


/** Begin a wait that pauses first. */
void gstream_pace_begin_spin(gstream_pace_t *pace,
                             const gstream_pace_config_t *config);


/** Pass a little time. Returns 0, at once, when it is time to sleep. */
int gstream_pace_step(gstream_pace_t *pace);


/** One pause instruction. */
void gstream_pace_pause(void);

#endif
