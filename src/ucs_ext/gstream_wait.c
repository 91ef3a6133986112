/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_wait.c - how a thread that runs a host stream waits for words. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_wait.h"
#include "gstream_poll.h"
#include "gstream_ring.h"
#include "gstream_sleep.h"
#include "gstream_trace.h"


static int gstream_wait_help(const ucs_gstream_helper_t *helper,
                             ucs_gstream_help_t when)
{
    return (helper != NULL) && helper->func(helper->arg, when);
}

/* Until all words are met, which they are not yet; returns how the wait ended,
 * for the trace. */
static const char *gstream_wait_poll(const gstream_pace_config_t *config,
                                     gstream_wait_t *wait)
{
    gstream_polled_t polled = {0};
    const char *how         = "polled";
    gstream_pace_t pace;
    int num_done;

    gstream_pace_begin_spin(&pace, config);
    for (;;) {
        num_done = gstream_poll(&polled);
        if (gstream_wait_help(wait->helper, UCS_GSTREAM_HELP_POLL) ||
            (num_done > 0)) {
            gstream_pace_begin_spin(&pace, config);
        }
        if (gstream_wait_is_met(wait)) {
            break;
        }
        if (gstream_pace_step(&pace)) {
            continue;
        }
        gstream_poll_end(&polled);
        gstream_sleep_until(wait->words->address, wait->words->value,
                            wait->how, wait->helper);
        how = "slept";
        if (gstream_wait_is_met(wait)) {
            break;
        }
        /* The next word is another wait */
        gstream_pace_begin_spin(&pace, config);
    }
    gstream_poll_end(&polled);
    (void)gstream_wait_help(wait->helper, UCS_GSTREAM_HELP_END);
    return how;
}

size_t gstream_wait_run(const gstream_pace_config_t *config,
                        const ucs_gstream_cmd_t *cmds, size_t count)
{
    size_t done     = 0;
    uint64_t begin  = ucs_trace_begin();
    const char *how = "at once";
    gstream_wait_t wait;

    gstream_wait_begin(&wait, cmds, 0);
    if (!gstream_wait_is_met(&wait)) {
        how = gstream_wait_poll(config, &wait);
    }

    for (;;) {
        gstream_trace_wait_end(begin, how, wait.words - 1);
        done += gstream_ring_slots(&cmds[done]);
        if ((done == count) || !gstream_wait_is_one(&cmds[done])) {
            return done;
        }

        begin = ucs_trace_begin();
        how   = "at once";
        gstream_wait_begin(&wait, &cmds[done], 0);
        if (!gstream_wait_is_met(&wait)) {
            return done;
        }
    }
}
