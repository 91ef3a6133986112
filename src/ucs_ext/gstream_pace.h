/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_pace.h - how a thread spends its time until it goes to sleep.
 *
 *   begin --> pause (SPIN times) --> yield (YIELD_TIME) --> sleep
 *
 * A stream is patient, and yields GSTREAM_PACE_PATIENCE times as long, where
 * its last sleep was over within that time: to be woken takes tens of
 * microseconds, and who wakes it has more to do than if it were awake.
 *
 * A thread that polls calls gstream_pace_step() between two looks at what it
 * waits for, until that returns 0; then it sleeps.
 */
#ifndef GSTREAM_PACE_H_
#define GSTREAM_PACE_H_

#include <ucs/type/status.h>

#include "api/ucs_gstream.h"

#include <stdatomic.h>
#include <stdint.h>


/** So many times as long a patient thread yields. */
#define GSTREAM_PACE_PATIENCE 16


/** Settings, constant once read. */
typedef struct gstream_pace_config {
    unsigned long spin;       /**< Pauses, or UCS_ULUNITS_AUTO */
    double        yield_time; /**< Seconds */
} gstream_pace_config_t;


/** One polling wait; belongs to the thread that waits. */
typedef struct gstream_pace {
    unsigned long pauses;    /**< Left before yielding */
    unsigned      yields;    /**< Since the begin, or since it was renewed */
    unsigned      yields_min;
    uint64_t      yield_nsec;
    uint64_t      patient_nsec; /**< So long if it is patient */
    int           is_patient;
    unsigned      needed;       /**< Yields behind yield_nsec by which others
                                     ran */
    int           is_late;      /**< The last step was behind yield_nsec */
    uint64_t      start;     /**< Of the yields, ns; valid if yields > 0 */
    int           yielded;   /**< At least once since the begin */
    int           contended; /**< A yield let somebody else run, before
                                  yield_nsec */
    int           is_wanted; /**< ... who has something to do */

    const _Atomic uint64_t *turns; /**< Of the memory, or NULL */
} gstream_pace_t;


/** What a thread has learned about its core; belongs to that thread. */
typedef struct gstream_pace_memory {
    unsigned long    auto_spin; /**< Pauses where the setting is auto */
    int              is_patient;
    _Atomic uint64_t contended; /**< Waits that let somebody else run; others
                                     may read it */

    /** Where threads that wait for this one count their looks: to let them run
     *  is of no use. Constant; NULL if nobody counts. */
    const _Atomic uint64_t *turns;
} gstream_pace_memory_t;


/**
 * Read the UCX_GSTREAM_* settings.
 *
 * @return UCS_OK, or the error of a value that cannot be read (logged by UCX).
 */
ucs_status_t gstream_pace_config_read(gstream_pace_config_t *config);


/** Begin a wait that yields at once: for waits that are seldom short. */
void gstream_pace_begin_yield(gstream_pace_t *pace,
                              const gstream_pace_config_t *config);


/** Begin a wait that pauses first, as often as the setting or, where that is
 *  auto, the memory says. Memory starts zeroed. */
void gstream_pace_begin_spin(gstream_pace_t *pace,
                             const gstream_pace_config_t *config,
                             gstream_pace_memory_t *memory);


/** Something was moved that is waited for: the time to yield starts anew. */
void gstream_pace_renew(gstream_pace_t *pace);


/** Pass a little time. Returns 0, at once, when it is time to sleep. */
int gstream_pace_step(gstream_pace_t *pace);


/** The thread slept, as a step said, and was woken: it learns how long that
 *  took in all, unless others needed its core. */
void gstream_pace_woken(const gstream_pace_t *pace,
                        gstream_pace_memory_t *memory);


/** What the thread does next, unless its wait is over: UCS_GSTREAM_POLL_YIELD
 *  only where other threads are known to need its processor. */
ucs_gstream_poll_t gstream_pace_next(const gstream_pace_t *pace,
                                     const gstream_pace_memory_t *memory);


/** End a wait of gstream_pace_begin_spin() and learn from it. */
void gstream_pace_end_spin(const gstream_pace_t *pace,
                           gstream_pace_memory_t *memory);


/** One pause instruction. */
void gstream_pace_pause(void);

#endif
