/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trig_cntr.c - counters that are set back. */
#include "trig_util.h"

/* Where thresholds count from */
#define BASE 1000000


/* What is armed waits for all of its threshold again; what has fired has */
TRIG_CASE(reset, NULL)
{
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, BASE) == UCS_OK);
    trig_put(trig, 0, BASE + 1, NULL);
    trig_put(trig, 1, BASE + 2, NULL);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);

    CU_ASSERT(uct_trig_cntr_reset(trig->trigger) == UCS_OK);
    CU_ASSERT(trig_count(trig, trig->trigger) == 0);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, BASE - 1) == UCS_OK);
    CU_ASSERT(trig_count(trig, trig->trigger) == BASE - 1);
    CU_ASSERT(trig_count(trig, trig->completion) == 1);
    CU_ASSERT(!trig_arrived(trig, 1));

    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 3) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 2);
    CU_ASSERT(trig_arrived(trig, 1));
}

/* What was added before a reset does not count for the limit */
TRIG_CASE(reset_limit, NULL)
{
    uct_trig_iface_attr_t attr;

    CU_ASSERT_FATAL(uct_trig_iface_query(trig->pair.a.iface, &attr) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->words, attr.max_count) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->words, 1) == UCS_ERR_EXCEEDS_LIMIT);
    CU_ASSERT(uct_trig_cntr_reset(trig->words) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->words, attr.max_count) == UCS_OK);
    CU_ASSERT(trig_count(trig, trig->words) == attr.max_count);
}

ST_SUITE("trig_cntr")
