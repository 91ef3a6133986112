/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_credit.c - accounting of deferred-work entries.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_credit.h"


void uct_cxi_trig_credit_init(uct_cxi_trig_credit_t *credit, unsigned total)
{
    credit->total = total;
    credit->free  = total;
}

ucs_status_t uct_cxi_trig_credit_reserve(uct_cxi_trig_credit_t *credit,
                                         unsigned count, uct_trig_resv_t *resv)
{
    if (count > credit->free) {
        return UCS_ERR_NO_RESOURCE;
    }

    credit->free -= count;
    resv->total   = count;
    resv->used    = 0;
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_credit_unreserve(uct_cxi_trig_credit_t *credit,
                                           uct_trig_resv_t *resv)
{
    if (resv->used > 0) {
        return UCS_ERR_BUSY;
    }

    credit->free += resv->total;
    resv->total   = 0;
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

    if (credit->free == 0) {
        return UCS_ERR_NO_RESOURCE;
    }
    --credit->free;
    return UCS_OK;
}

void uct_cxi_trig_credit_give(uct_cxi_trig_credit_t *credit,
                              uct_trig_resv_t *resv)
{
    if (resv != NULL) {
        --resv->used;
    } else {
        ++credit->free;
    }
}
