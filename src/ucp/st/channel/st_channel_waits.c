/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_channel_waits.c - channels that wait for their other ends have the process
 * say so.
 *
 * The thread that makes the calls looks, while it finds nothing to do.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "channel/st_channel.h"

#include <ucp_st.h>

#include <stdio.h>
#include <time.h>

/* Rounds of progress that find nothing from one look at the clock to the next,
 * and seconds between two looks at all channels */
#define ST_CHANNEL_WAITS_ROUNDS 256
#define ST_CHANNEL_WAITS_TIME   0.1

/* What a channel waits for: with a number, one of its waits */
enum {
    ST_CHANNEL_WAITS_RECV,
    ST_CHANNEL_WAITS_SEND,
    ST_CHANNEL_WAITS_MOVE
};


void st_channel_waits_end(ucp_st_channel_h channel)
{
    ucp_st_note_end(channel->note);
    channel->note        = NULL;
    channel->is_noted    = 0;
    channel->waits_since = 0;
}

/* Which wait it is, and the words for it; 0 if there is none */
static int st_channel_waits_find(ucp_st_channel_h channel, uint64_t *number_p,
                                 char *text, size_t max)
{
    const st_channel_op_t *op;

    if (channel->state == ST_CHANNEL_MOVING) {
        *number_p = (channel->moves << 2) | ST_CHANNEL_WAITS_MOVE;
        snprintf(text, max, "it is to become quiet; the other end has %s",
                 channel->is_counted ? "answered, and messages are on the way" :
                                       "not answered");
    } else if (!ucs_list_is_empty(&channel->recvs)) {
        op        = ucs_list_head(&channel->recvs, st_channel_op_t, link);
        *number_p = (op->number << 2) | ST_CHANNEL_WAITS_RECV;
        snprintf(text, max, "receive number %lu of %zu bytes, and %lu behind "
                 "it; the other end has sent nothing with this number",
                 op->number, op->msg.length,
                 ucs_list_length(&channel->recvs) - 1);
    } else if (!ucs_list_is_empty(&channel->put_off)) {
        op        = ucs_list_head(&channel->put_off, st_channel_op_t, link);
        *number_p = (op->number << 2) | ST_CHANNEL_WAITS_SEND;
        snprintf(text, max, "send number %lu of %zu bytes, and %lu behind it, "
                 "are put off; the other end %s", op->number, op->msg.length,
                 ucs_list_length(&channel->put_off) - 1,
                 (channel->ep == NULL) ? "is not known" :
                 "is being moved, and was not bound again");
    } else {
        return 0;
    }
    return 1;
}

static void st_channel_waits_look(ucp_st_channel_h channel, double now)
{
    uint64_t number;
    char text[192], who[64];

    if (!st_channel_waits_find(channel, &number, text, sizeof(text))) {
        st_channel_waits_end(channel);
        return;
    }
    if ((channel->waits_since == 0) || (channel->waits_number != number)) {
        st_channel_waits_end(channel);
        channel->waits_since  = now;
        channel->waits_number = number;
    } else if (!channel->is_noted) {
        channel->is_noted = 1;
        snprintf(who, sizeof(who), "channel %lu, end %u", channel->id,
                 channel->end);
        (void)ucp_st_note_begin(who, text, now - channel->waits_since,
                                &channel->note);
    }
}

void st_channel_waits_progress(ucp_st_channel_ctx_h ctx)
{
    ucp_st_channel_h channel;
    struct timespec ts;
    double now;
    unsigned i;

    if ((++ctx->idle % ST_CHANNEL_WAITS_ROUNDS) != 0) {
        return;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    now = ts.tv_sec + (ts.tv_nsec * 1e-9);
    if ((now - ctx->look_time) < ST_CHANNEL_WAITS_TIME) {
        return;
    }
    ctx->look_time = now;
    for (i = 0; i < ST_CHANNEL_BUCKETS; ++i) {
        ucs_list_for_each(channel, &ctx->channels[i], link) {
            st_channel_waits_look(channel, now);
        }
    }
}
