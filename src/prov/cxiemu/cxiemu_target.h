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

/** strict: carry out what was put off and is due; how many. Lock held. */
unsigned cxiemu_target_late(cxiemu_nic_t *nic);

/** A peer is gone: forget what was put off for it. Lock held. */
void cxiemu_target_lost(cxiemu_link_t *link);

#endif
