/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_pool.h - memory of operations.
 *
 * All functions are called with the NIC's lock held. cxiemu_txop_cleanup()
 * frees the pool.
 */
#ifndef CXIEMU_POOL_H_
#define CXIEMU_POOL_H_

#include "cxiemu_txop.h"


/** An operation with nothing set but its number, or NULL without memory. */
cxiemu_txop_t *cxiemu_pool_get(cxiemu_nic_t *nic);

/** It is over; link is NULL and nothing is owed. */
void cxiemu_pool_put(cxiemu_nic_t *nic, cxiemu_txop_t *txop);

/** The operation that an acknowledgement names, if it is one of that link that
 *  waits for one; else NULL. */
cxiemu_txop_t *cxiemu_pool_find(cxiemu_link_t *link, uint32_t id);

#endif
