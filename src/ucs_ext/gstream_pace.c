/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_pace.c - how a thread spends its time until it goes to sleep. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_pace.h"
#include "gstream_futex.h"

#include <ucs_ext_config.h>

#include <ucs/sys/preprocessor.h>
#include <ucs/sys/string.h>

#include <sched.h>

#define GSTREAM_PACE_YIELD_TIME_MAX 1.0


static ucs_config_field_t gstream_pace_config_table[] = {
    {"SPIN", "50",
     "How many times a host stream that waits for a word pauses before it\n"
     "starts to yield its core.",
     ucs_offsetof(gstream_pace_config_t, spin), UCS_CONFIG_TYPE_UINT},

    {"YIELD_TIME", "100us",
     "How long a host stream that waits, for a word or for commands, yields\n"
     "its core before it sleeps. At most 1 second. The wait begins anew when\n"
     "the stream has moved a part of a message. Also for a thread that\n"
     "synchronizes with a stream.",
     ucs_offsetof(gstream_pace_config_t, yield_time), UCS_CONFIG_TYPE_TIME},

    {.name = NULL}
};
UCS_EXT_CONFIG_REGISTER_TABLE(gstream_pace_config_table, "Streams", "GSTREAM_",
                              gstream_pace_config_t)


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
    pace->start      = 0;
    pace->yield_nsec = (uint64_t)(config->yield_time * GSTREAM_NSEC_PER_SEC);
}

void gstream_pace_begin_spin(gstream_pace_t *pace,
                             const gstream_pace_config_t *config)
{
    gstream_pace_begin_yield(pace, config);
    pace->pauses = config->spin;
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

int gstream_pace_step(gstream_pace_t *pace)
{
    uint64_t now;

    if (pace->pauses > 0) {
        --pace->pauses;
        gstream_pace_pause();
        return 1;
    }

    now = gstream_time();
    if (pace->start == 0) {
        pace->start = now;
    }
    if ((now - pace->start) >= pace->yield_nsec) {
        return 0;
    }

    sched_yield();
    return 1;
}
