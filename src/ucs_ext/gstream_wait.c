/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_wait.c - how a thread that runs a host stream waits for words. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_wait.h"
#include "gstream_poll.h"
#include "gstream_sleep.h"
#include "gstream_trace.h"


static void gstream_wait_help(const ucs_gstream_helper_t *helper,
                              ucs_gstream_help_t when)
{
    if (helper != NULL) {
        helper->func(helper->arg, when);
    }
}

/* Returns how the wait ended, for the trace. */
static const char *gstream_wait_one(const gstream_pace_config_t *config,
                                    gstream_pace_memory_t *memory,
                                    const ucs_gstream_cmd_t *wait)
{
    const ucs_gstream_helper_t *helper = gstream_wait_helper(wait);
    const char *how                    = "polled";
    gstream_pace_t pace;

    if (gstream_wait_is_met(wait)) {
        return "at once";
    }

    gstream_pace_begin_spin(&pace, config, memory);
    for (;;) {
        gstream_poll(gstream_pace_next(&pace, memory));
        gstream_wait_help(helper, UCS_GSTREAM_HELP_POLL);
        if (gstream_wait_is_met(wait)) {
            break;
        }
        if (!gstream_pace_step(&pace)) {
            gstream_poll(UCS_GSTREAM_POLL_LAST);
            gstream_sleep_until(wait->u.word.address, wait->u.word.value,
                                helper);
            how = "slept";
            break;
        }
    }
    gstream_pace_end_spin(&pace, memory);
    gstream_wait_help(helper, UCS_GSTREAM_HELP_END);
    return how;
}

size_t gstream_wait_run(const gstream_pace_config_t *config,
                        gstream_pace_memory_t *memory,
                        const ucs_gstream_cmd_t *cmds, size_t count)
{
    size_t done = 0;
    uint64_t begin;
    const char *how;

    do {
        begin = ucs_trace_begin();
        how   = gstream_wait_one(config, memory, &cmds[done]);
        gstream_trace_wait_end(begin, how, &cmds[done]);
        ++done;
    } while ((done < count) && gstream_wait_is_one(&cmds[done]) &&
             gstream_wait_is_met(&cmds[done]));
    return done;
}
