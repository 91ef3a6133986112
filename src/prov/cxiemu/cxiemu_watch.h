/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_watch.h - links that are looked at without being told.
 *
 * Who polls looks at the next record, or acknowledgement, of the links that
 * brought something lately, before it looks at the ready bits: the line that
 * the peer wrote is then the only one that goes from core to core. Meanwhile
 * the links' ready bits stand: they are not taken, and a peer that finds its
 * bit set leaves it alone (cxiemu_nic_mark()).
 *
 *   peer                                      owner
 *   ----                                      -----
 *   record's seq                              ready[w] := 0    (seq_cst)
 *   fence                                     look at record's seq
 *   ready[w] & bit? else set it (seq_cst)
 *
 * Either the peer finds the bit clear, or it was set before the owner cleared
 * it, and then the owner sees the record. A bit that stands promises no more
 * than one that was not taken yet: to look at the ring again. So whoever lets
 * nobody look any more, ceases to watch first, and takes the bits; or, if it
 * can be woken, says so and then looks (cxiemu_watch_has_news()), as peers look
 * for sleepers whether or not they find their bit set. test/model has this as
 * ready.pml.
 *
 * A peer that ends a link writes no record: it counts that (shm->ended), and
 * the owner then ceases to watch and takes the bits.
 *
 * All functions are called with the NIC's lock held.
 */
#ifndef CXIEMU_WATCH_H_
#define CXIEMU_WATCH_H_

#include "cxiemu_link.h"


/** A link has brought something: watch it for the next, if it is watched, or if
 *  the application polls and not too many are. */
void cxiemu_watch_next(cxiemu_link_t *link);

/** No more of that: the next look takes its ready bit. */
void cxiemu_watch_remove(cxiemu_link_t *link);

/** The same for all: before nobody looks any more, and now and then, so that
 *  links that bring nothing are not looked at for ever. */
void cxiemu_watch_end(cxiemu_nic_t *nic);

/** Whether what is watched for has come. */
static inline int cxiemu_watch_is_met(const cxiemu_watch_t *watch)
{
    return __atomic_load_n(watch->seq, __ATOMIC_SEQ_CST) == watch->next;
}

/** Take what watched links have, a share of @a budget of each; how much. */
unsigned cxiemu_watch_take(cxiemu_nic_t *nic, unsigned budget);

/** Whether a watched link has something, or another one's bit is set. With the
 *  fence of whoever says before that it can be woken. */
int cxiemu_watch_has_news(const cxiemu_nic_t *nic);

#endif
