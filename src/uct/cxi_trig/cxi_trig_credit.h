/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_credit.h - accounting of deferred-work entries.
 *
 * Running out of entries in the NIC is undefined, so that every operation takes
 * one of these first.
 *
 *   free --reserve--> set aside --take(resv)--> posted
 *   free ------------------------ take(NULL)--> posted
 *
 * What an interface sets aside or posts comes out of its own allowance and out
 * of the pool that all interfaces of the process share.
 */
#ifndef UCT_CXI_TRIG_CREDIT_H_
#define UCT_CXI_TRIG_CREDIT_H_

#include "uct_trig.h"


/** Entries of a NIC that the process may use. Atomic. */
typedef struct uct_cxi_trig_credit_pool {
    unsigned used;
} uct_cxi_trig_credit_pool_t;


/** Entries of one interface. One thread at a time. */
typedef struct uct_cxi_trig_credit {
    uct_cxi_trig_credit_pool_t *pool;
    unsigned                   max;   /**< Of the pool */
    unsigned                   total; /**< The interface's allowance */
    unsigned                   free;  /**< Neither posted nor set aside */
} uct_cxi_trig_credit_t;


/** Start with an allowance of @a total entries; @a max are in the pool. */
void uct_cxi_trig_credit_init(uct_cxi_trig_credit_t *credit,
                              uct_cxi_trig_credit_pool_t *pool, unsigned max,
                              unsigned total);

/** Entries that can be had now. */
unsigned uct_cxi_trig_credit_avail(const uct_cxi_trig_credit_t *credit);

/** Set entries aside: UCS_OK, or UCS_ERR_NO_RESOURCE with no effect. */
ucs_status_t uct_cxi_trig_credit_reserve(uct_cxi_trig_credit_t *credit,
                                         unsigned count, uct_trig_resv_t *resv);

/** Give them back: UCS_OK, or UCS_ERR_BUSY while some are posted. */
ucs_status_t uct_cxi_trig_credit_unreserve(uct_cxi_trig_credit_t *credit,
                                           uct_trig_resv_t *resv);

/** Take an entry to post, set aside (@a resv) or free (NULL). */
ucs_status_t uct_cxi_trig_credit_take(uct_cxi_trig_credit_t *credit,
                                      uct_trig_resv_t *resv);

/** Give an entry back to where it was taken from. */
void uct_cxi_trig_credit_give(uct_cxi_trig_credit_t *credit,
                              uct_trig_resv_t *resv);

#endif
