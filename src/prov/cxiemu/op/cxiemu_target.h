/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_target.h - carrying out what peers ask for.
 */
#ifndef CXIEMU_TARGET_H_
#define CXIEMU_TARGET_H_

#include "nic/cxiemu_link.h"

struct cxiemu_mr;


/** Carry a record out. Lock held. */
void cxiemu_target_execute(const cxiemu_arrival_t *arrival);

/** Carry out a write with its payload, or an atomic, of this NIC's own. It has
 *  no acknowledgement: 0, with the value before the atomic, or FI_E*. Lock
 *  held. */
int cxiemu_target_local(const cxiemu_arrival_t *arrival, uint64_t *value_p);

/** A write: store @a length bytes of it from @a offset on, in the region that
 *  is returned; 0, or FI_E*. Then, when all is stored or has failed, count and
 *  acknowledge. Lock held. */
int cxiemu_target_land(const cxiemu_arrival_t *arrival, uint64_t offset,
                       size_t length, struct cxiemu_mr **mr_p);
void cxiemu_target_landed(const cxiemu_arrival_t *arrival,
                          struct cxiemu_mr *mr, int err);


/* When it is carried out (cxiemu_late.c): at once or later. In strict mode
 * payload of writes lands in random order and late. */

/** A record has come: carry it out, or put it off (cxiemu_link_events_t). Lock
 *  held. */
void cxiemu_late_record(cxiemu_arrival_t *arrival, const void *behind);

/** Go on with what was put off (strict), and with messages that are pulled in
 *  shares; to be called by every progress, in either mode. Returns how many
 *  were gone on with; as long as cxiemu_late_has_more(), nobody may sleep for
 *  long. Lock held. */
unsigned cxiemu_late_go_on(cxiemu_nic_t *nic);

/** Whether there is something to go on with. Lock held. */
static inline int cxiemu_late_has_more(const cxiemu_nic_t *nic)
{
    return !TAILQ_EMPTY(&nic->late) || !TAILQ_EMPTY(&nic->pulled);
}

/** A peer is gone, or the link is about to be freed: forget what was put off
 *  for it. Lock held. */
void cxiemu_late_lost(cxiemu_link_t *link);

#endif
