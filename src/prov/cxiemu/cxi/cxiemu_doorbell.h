/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_doorbell.h - what is stored to trigger pages of counters.
 */
#ifndef CXIEMU_DOORBELL_H_
#define CXIEMU_DOORBELL_H_

#include "obj/cxiemu_cntr.h"

/* Programs reset by storing 0: the word has to tell 0 from nothing. */
#define CXIEMU_DOORBELL_NO_RESET UINT64_MAX



/** Whether something was stored that was not taken yet; no lock needed. */
int cxiemu_doorbell_has(const cxiemu_cntr_t *cntr);

/** Take what was stored to a counter's doorbell; whether there was anything.
 *  Lock held. */
int cxiemu_doorbell_take(cxiemu_cntr_t *cntr);

/** The same for all that are watched; how many had something. Lock held. */
unsigned cxiemu_doorbell_take_all(cxiemu_nic_t *nic);

/** Something that a store could set off has come or gone: watch the doorbell,
 *  or cease to. Lock held. */
void cxiemu_doorbell_update(cxiemu_cntr_t *cntr);

#endif
