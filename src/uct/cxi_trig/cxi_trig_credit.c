/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_credit.c - accounting of deferred-work entries.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_credit.h"

#include <ucs/sys/math.h>


void uct_cxi_trig_credit_init(uct_cxi_trig_credit_t *credit,
                              uct_cxi_trig_credit_pool_t *pool, unsigned max,
                              unsigned total)
{
    credit->pool  = pool;
    credit->max   = max;
    credit->total = total;
    credit->free  = total;
}

unsigned uct_cxi_trig_credit_avail(const uct_cxi_trig_credit_t *credit)
{
    unsigned used = __atomic_load_n(&credit->pool->used, __ATOMIC_RELAXED);

    return ucs_min(credit->free, credit->max - used);
}

static ucs_status_t uct_cxi_trig_credit_get(uct_cxi_trig_credit_t *credit,
                                            unsigned count)
{
    unsigned used = __atomic_load_n(&credit->pool->used, __ATOMIC_RELAXED);

    if (count > credit->free) {
        return UCS_ERR_NO_RESOURCE;
    }
    do {
        if (count > (credit->max - used)) {
            return UCS_ERR_NO_RESOURCE;
        }
    } while (!__atomic_compare_exchange_n(&credit->pool->used, &used,
                                          used + count, 1, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    credit->free -= count;
    return UCS_OK;
}

static void uct_cxi_trig_credit_put(uct_cxi_trig_credit_t *credit,
                                    unsigned count)
{
    credit->free += count;
    __atomic_fetch_sub(&credit->pool->used, count, __ATOMIC_RELAXED);
}

ucs_status_t uct_cxi_trig_credit_reserve(uct_cxi_trig_credit_t *credit,
                                         unsigned count, uct_trig_resv_t *resv)
{
    ucs_status_t status = uct_cxi_trig_credit_get(credit, count);

    if (status == UCS_OK) {
        resv->total = count;
        resv->used  = 0;
    }
    return status;
}

ucs_status_t uct_cxi_trig_credit_unreserve(uct_cxi_trig_credit_t *credit,
                                           uct_trig_resv_t *resv)
{
    if (resv->used > 0) {
        return UCS_ERR_BUSY;
    }

    uct_cxi_trig_credit_put(credit, resv->total);
    resv->total = 0;
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_credit_take(uct_cxi_trig_credit_t *credit,
                                      uct_trig_resv_t *resv)
{
    if (resv != NULL) {
        if (resv->used >= resv->total) {
            return UCS_ERR_NO_RESOURCE;
        }
        ++resv->used;
        return UCS_OK;
    }

    return uct_cxi_trig_credit_get(credit, 1);
}

void uct_cxi_trig_credit_give(uct_cxi_trig_credit_t *credit,
                              uct_trig_resv_t *resv)
{
    if (resv != NULL) {
        --resv->used;
    } else {
        uct_cxi_trig_credit_put(credit, 1);
    }
}
