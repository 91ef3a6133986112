/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_pace.c - how a thread spends its time until it goes to sleep. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_pace.h"
#include "gstream_futex.h"

#include <ucs_ext_config.h>

#include <ucs/sys/math.h>
#include <ucs/sys/preprocessor.h>
#include <ucs/sys/string.h>

#include <sched.h>

/* With a core to itself, a thread that another core answers within some
 * microseconds is best served by pausing; where it keeps that other thread from
 * running, pausing is lost time. */
#define GSTREAM_PACE_SPIN_MAX 200
#define GSTREAM_PACE_SPIN_MIN 4

/* By how much auto grows with a wait that yielded in vain. Slowly: two threads
 * that take turns on one core switch fast now and then. */
#define GSTREAM_PACE_SPIN_STEP 5

/* A yield that takes longer than this let another thread run. */
#define GSTREAM_PACE_SWITCH_NSEC 1000

/* On a busy core one yield may take the whole YIELD_TIME; a thread that gave
 * its core away so few times has not waited long in terms of its own time. */
#define GSTREAM_PACE_YIELDS_MIN 20

#define GSTREAM_PACE_YIELD_TIME_MAX 1.0

/* A patient thread sleeps once it has let others run so often. */
#define GSTREAM_PACE_NEEDED_MAX 4


static ucs_config_field_t gstream_pace_config_table[] = {
    {"SPIN", "auto",
     "How many times a host stream that waits for a word pauses before it\n"
     "starts to yield its core. \"auto\" is 200 on a core of its own, down to\n"
     "4 where yielding is seen to let other threads run, unless these only\n"
     "synchronize with the stream.",
     ucs_offsetof(gstream_pace_config_t, spin), UCS_CONFIG_TYPE_ULUNITS},

    {"YIELD_TIME", "100us",
     "For how long a host stream that waits, for a word or for commands, and\n"
     "a thread that synchronizes with a host stream, yield their core before\n"
     "they sleep; a few yields at least unless it is 0. At most 1 second. A\n"
     "stream that moves a part of a message meanwhile begins anew, and one\n"
     "whose last sleep was over soon yields up to 16 times as long, unless\n"
     "others need its core; a thread sleeps earlier if some waits of the\n"
     "stream have yielded to it.",
     ucs_offsetof(gstream_pace_config_t, yield_time), UCS_CONFIG_TYPE_TIME},

    {.name = NULL}
};
UCS_CONFIG_REGISTER_TABLE(gstream_pace_config_table, "Streams", "GSTREAM_",
                          gstream_pace_config_t, &ucs_config_global_list)


ucs_status_t gstream_pace_config_read(gstream_pace_config_t *config)
{
    ucs_status_t status;

    status = ucs_ext_config_fill(
            config, UCS_CONFIG_GET_TABLE(gstream_pace_config_table), 0);
    if (status != UCS_OK) {
        return status;
    }

    if (!(config->yield_time >= 0)) {
        config->yield_time = 0;
    } else if (config->yield_time > GSTREAM_PACE_YIELD_TIME_MAX) {
        config->yield_time = GSTREAM_PACE_YIELD_TIME_MAX;
    }
    return UCS_OK;
}

void gstream_pace_begin_yield(gstream_pace_t *pace,
                              const gstream_pace_config_t *config)
{
    pace->pauses     = 0;
    pace->yields     = 0;
    pace->yielded    = 0;
    pace->contended  = 0;
    pace->is_wanted  = 0;
    pace->turns      = NULL;
    pace->yield_nsec = (uint64_t)(config->yield_time * GSTREAM_NSEC_PER_SEC);
    pace->yields_min = (pace->yield_nsec > 0) ? GSTREAM_PACE_YIELDS_MIN : 0;

    pace->patient_nsec = GSTREAM_PACE_PATIENCE * pace->yield_nsec;
    pace->is_patient   = 0;
    pace->needed       = 0;
    pace->is_late      = 0;
}

void gstream_pace_begin_spin(gstream_pace_t *pace,
                             const gstream_pace_config_t *config,
                             gstream_pace_memory_t *memory)
{
    gstream_pace_begin_yield(pace, config);
    if (memory->auto_spin == 0) {
        memory->auto_spin = GSTREAM_PACE_SPIN_MAX;
    }
    pace->pauses = (config->spin == UCS_ULUNITS_AUTO) ? memory->auto_spin :
                                                        config->spin;
    pace->turns  = memory->turns;

    pace->is_patient = memory->is_patient;
}

void gstream_pace_renew(gstream_pace_t *pace)
{
    pace->yields  = 0;
    pace->is_late = 0;
}

void gstream_pace_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    /* yield is a no-op on most cores; isb costs about what x86's pause does */
    __asm__ volatile("isb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

static uint64_t gstream_pace_turns(const gstream_pace_t *pace)
{
    return (pace->turns == NULL) ?
           0 : atomic_load_explicit(pace->turns, memory_order_relaxed);
}

/* Yields, and sees for whom. A thread that had this one's core has counted its
 * turn before it gave that back, by a switch of threads, which orders both.
 * Behind yield_nsec there are so many yields that some take long because of an
 * interrupt: these say less of the core. */
static void gstream_pace_yield(gstream_pace_t *pace, uint64_t now)
{
    uint64_t turns = gstream_pace_turns(pace);
    int is_wanted;

    ++pace->yields;
    pace->yielded = 1;
    sched_yield();
    /* At once: looks may take long, too, if they move something */
    if ((gstream_time() - now) <= GSTREAM_PACE_SWITCH_NSEC) {
        return;
    }

    is_wanted = (gstream_pace_turns(pace) == turns);
    if (pace->is_late) {
        pace->needed += is_wanted;
    } else {
        pace->contended  = 1;
        pace->is_wanted |= is_wanted;
    }
}

/* Behind yield_nsec: whether it does not sleep yet */
static int gstream_pace_stays(const gstream_pace_t *pace, uint64_t now)
{
    return pace->is_patient && (pace->needed < GSTREAM_PACE_NEEDED_MAX) &&
           ((now - pace->start) < pace->patient_nsec);
}

int gstream_pace_step(gstream_pace_t *pace)
{
    uint64_t now;

    if (pace->pauses > 0) {
        --pace->pauses;
        gstream_pace_pause();
        return 1;
    }

    now = gstream_time();
    if (pace->yields == 0) {
        pace->start = now;
    }

    pace->is_late = (pace->yields >= pace->yields_min) &&
                    ((now - pace->start) >= pace->yield_nsec);
    if (pace->is_late && !gstream_pace_stays(pace, now)) {
        return 0;
    }

    gstream_pace_yield(pace, now);
    return 1;
}

void gstream_pace_woken(const gstream_pace_t *pace,
                        gstream_pace_memory_t *memory)
{
    memory->is_patient = !pace->is_wanted &&
                         (pace->needed < GSTREAM_PACE_NEEDED_MAX) &&
                         ((gstream_time() - pace->start) < pace->patient_nsec);
}

ucs_gstream_poll_t gstream_pace_next(const gstream_pace_t *pace,
                                     const gstream_pace_memory_t *memory)
{
    int is_shared = pace->contended ||
                    (memory->auto_spin == GSTREAM_PACE_SPIN_MIN);

    return ((pace->pauses == 0) && is_shared) ? UCS_GSTREAM_POLL_YIELD :
                                                UCS_GSTREAM_POLL_SPIN;
}

void gstream_pace_end_spin(const gstream_pace_t *pace,
                           gstream_pace_memory_t *memory)
{
    if (!pace->yielded) {
        return;
    }

    if (pace->is_wanted) {
        memory->auto_spin = GSTREAM_PACE_SPIN_MIN;
    }
    if (pace->contended) {
        /* Nobody else writes it */
        atomic_store_explicit(&memory->contended, memory->contended + 1,
                              memory_order_relaxed);
    } else {
        memory->auto_spin = ucs_min(memory->auto_spin + GSTREAM_PACE_SPIN_STEP,
                                    GSTREAM_PACE_SPIN_MAX);
    }
}
