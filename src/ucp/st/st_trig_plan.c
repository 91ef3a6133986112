/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_plan.c - how the trig lane moves the message of a pair.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig_plan.h"

void ucp_st_trig_plan_make(const ucp_st_trig_facts_t *facts,
                           ucp_st_trig_plan_t *plan)
{
    if (facts->mode == UCP_ST_MODE_READY) {
        plan->proto = UCP_ST_TRIG_READY;
    } else if ((facts->length > 0) &&
               (facts->length <= facts->limits.eager_max)) {
        plan->proto = UCP_ST_TRIG_EAGER;
    } else {
        plan->proto = UCP_ST_TRIG_STANDARD;
    }
}
