/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_target.h - carrying out what peers ask for.
 *
 * In strict mode payload of writes lands in random order and late: a write is
 * put off, with a random number of progress calls to go, and its payload copied
 * in pieces in random order; fences, ordered records and atomics on the same
 * link keep behind what they must keep behind.
 */
#ifndef CXIEMU_TARGET_H_
#define CXIEMU_TARGET_H_

#include "cxiemu_link.h"

/** A record of a link has come; it is the ring's until this returns. Checks
 *  everything in it: it comes from another process. Lock held. */
void cxiemu_target_record(cxiemu_link_t *link, cxiemu_rec_t *rec);

/** Go on with what was put off (strict), and with messages that are pulled in
 *  shares; to be called by every progress, whatever the temperament. Returns
 *  how much there was: not 0 as long as nobody may sleep. Lock held. */
unsigned cxiemu_target_late(cxiemu_nic_t *nic);

/** A peer is gone, or the link is about to be freed: forget what was put off for
 *  it, and mappings of its memory. Lock held. */
void cxiemu_target_lost(cxiemu_link_t *link);

#endif
