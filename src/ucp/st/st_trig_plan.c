/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_plan.c - how the trig lane moves the message of a pair.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig_plan.h"

#include <ucs/sys/math.h>

/* The deeper an inbox, the fewer clear-to-sends; uses beyond these gain
 * little */
#define UCP_ST_TRIG_DEPTH_MAX 8

/* Data of different uses is in different cache lines */
#define UCP_ST_TRIG_ALIGN 64

/* As many uses as fit into what the longest message takes */
static void ucp_st_trig_plan_inbox(const ucp_st_trig_facts_t *facts,
                                   ucp_st_trig_plan_t *plan)
{
    size_t room;

    plan->stride = ucs_align_up(facts->length, UCP_ST_TRIG_ALIGN);
    room         = facts->limits.eager_max / plan->stride;
    plan->depth  = ucs_min(ucs_max(room, 1), UCP_ST_TRIG_DEPTH_MAX);
}

/* Pairs are spread evenly, whatever pattern their operations were made in */
static unsigned ucp_st_trig_plan_rail(const ucp_st_trig_facts_t *facts)
{
    uint64_t hash = (facts->id + 1) * 0x9e3779b97f4a7c15ul;

    return (hash >> 32) % facts->limits.num_rails;
}

void ucp_st_trig_plan_make(const ucp_st_trig_facts_t *facts,
                           ucp_st_trig_plan_t *plan)
{
    plan->rail = ucp_st_trig_plan_rail(facts);
    if (facts->mode == UCP_ST_MODE_READY) {
        plan->proto = UCP_ST_TRIG_READY;
    } else if ((facts->length > 0) &&
               (facts->length <= facts->limits.eager_max)) {
        plan->proto = UCP_ST_TRIG_EAGER;
        ucp_st_trig_plan_inbox(facts, plan);
    } else {
        plan->proto = UCP_ST_TRIG_STANDARD;
    }
}
