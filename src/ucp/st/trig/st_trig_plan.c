/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_plan.c - how the trig lane moves the message of a pair.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig_plan.h"

#include <ucs/sys/math.h>

#include <string.h>

/* The deeper an inbox, the fewer clear-to-sends; uses beyond these gain
 * little */
#define UCP_ST_TRIG_DEPTH_MAX 32

/* Data of different uses, and of different rails, is in different cache
 * lines */
#define UCP_ST_TRIG_ALIGN 64

static size_t ucp_st_trig_plan_align(size_t length)
{
    return ucs_div_round_up(length, UCP_ST_TRIG_ALIGN) * UCP_ST_TRIG_ALIGN;
}

void ucp_st_trig_plan_make(const ucp_st_trig_facts_t *facts,
                           ucp_st_trig_plan_t *plan)
{
    const ucp_st_trig_limits_t *limits = &facts->limits;
    /* Pairs are spread evenly, whatever pattern their operations were made
     * in */
    uint64_t hash = (facts->id + 1) * 0x9e3779b97f4a7c15ul;
    size_t room   = UCP_ST_TRIG_DEPTH_MIN * limits->eager_max;
    size_t shares = facts->length / ucs_max(limits->share_min, 1);

    memset(plan, 0, sizeof(*plan));
    plan->num_rails  = limits->num_rails;
    plan->rail       = (hash >> 32) % plan->num_rails;
    plan->length     = facts->length;
    plan->put_max    = limits->put_max;
    plan->share      = facts->length;
    plan->num_shares = 1;
    if ((facts->mode != UCP_ST_MODE_READY) && !facts->shares &&
        (facts->length > 0) &&
        (facts->length <= ucs_min(limits->eager_max, limits->put_max))) {
        /* As many uses as fit into what a few of the longest messages take. An
         * inbox is not split. */
        plan->proto  = UCP_ST_TRIG_EAGER;
        plan->stride = ucp_st_trig_plan_align(facts->length);
        plan->depth  = ucs_min(ucs_max(room / plan->stride,
                                       UCP_ST_TRIG_DEPTH_MIN),
                               UCP_ST_TRIG_DEPTH_MAX);
        plan->depth -= plan->depth % 2;
        return;
    }
    plan->proto = (facts->mode == UCP_ST_MODE_READY) ? UCP_ST_TRIG_READY :
                                                       UCP_ST_TRIG_STANDARD;
    shares      = ucs_min(shares, limits->num_rails);
    if (shares > 1) {
        /* Equal shares, of cache lines, so that the last one may be a little
         * shorter: of share_min bytes, but for that */
        plan->share      = ucp_st_trig_plan_align(
                ucs_div_round_up(facts->length, shares));
        plan->num_shares = ucs_div_round_up(facts->length, plan->share);
    }
}

void ucp_st_trig_plan_share(const ucp_st_trig_plan_t *plan, unsigned index,
                            ucp_st_trig_share_t *share)
{
    share->rail   = (plan->rail + index) % plan->num_rails;
    share->offset = index * plan->share;
    share->length = ucs_min(plan->share, plan->length - share->offset);
    share->puts   = ucs_max(ucs_div_round_up(share->length, plan->put_max), 1);
}
