/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_progress.h - what the emulated NIC of a domain does: its life
 * (cxiemu_card.c), its progress, and stores to its trigger pages.
 */
#ifndef CXIEMU_PROGRESS_H_
#define CXIEMU_PROGRESS_H_

#include "op/cxiemu_target.h"


/** Make the NIC of a domain, with its thread. 0, or -FI_E*. No lock. */
int cxiemu_nic_create(cxiemu_nic_t **nic_p);

/** End the thread, tell the peers, close the links, free. No endpoint, counter
 *  or region is left. No lock. */
void cxiemu_nic_destroy(cxiemu_nic_t *nic);


/**
 * Do all that can be done now: records and acknowledgements that came,
 * operations that found no room, doorbells, counters that fired. Lock held.
 * Bounded: a peer that sends without end is left after a share, and so is all
 * when so much was copied, but for one record of each link.
 * Returns how many things were done.
 */
unsigned cxiemu_nic_progress(cxiemu_nic_t *nic);

/** Carry out what has come, as a NIC would have done by now: an endpoint or a
 *  region closes, and what was sent to it before is not to fail. The lock is
 *  held, but for moments in between. */
void cxiemu_nic_drain(cxiemu_nic_t *nic);

/** Progress where a queue or a counter is read: whether the lock, which is not
 *  waited for, was free, and is held now. Its holder makes progress, too. */
int cxiemu_nic_read_begin(cxiemu_nic_t *nic);

/** The program is about to sleep where the NIC does not see it: from now on
 *  peers wake the thread. Makes progress a last time. Lock held. */
void cxiemu_nic_arm(cxiemu_nic_t *nic);

/** Whether something is left that no peer notifies of: room that a peer has to
 *  make, writes that were put off, bits that progress left. Lock held. */
static inline int cxiemu_nic_unfinished(const cxiemu_nic_t *nic)
{
    return !TAILQ_EMPTY(&nic->stalled) || cxiemu_late_has_more(nic) ||
           !STAILQ_EMPTY(&nic->fired) || !TAILQ_EMPTY(&nic->held) ||
           (__atomic_load_n(&nic->shm->summary, __ATOMIC_SEQ_CST) != 0);
}

/** For a thread that waits and polls: progress, unless another thread has the
 *  lock; how many things were done. @a arg: the NIC. */
int cxiemu_nic_poll(void *arg);


/* Trigger pages (cxiemu_window.c) */

/** The counter's trigger page, made by the first call; 0, or -FI_E*. Lock
 *  held. */
int cxiemu_window_expose(struct cxiemu_cntr *cntr, void **address);

/** The counter is closed, and nothing waits for it: the page goes. Lock
 *  held. */
void cxiemu_window_remove(struct cxiemu_cntr *cntr);

/** The NIC ends: so do its trigger pages. No lock. */
void cxiemu_window_cleanup(cxiemu_nic_t *nic);

#endif
