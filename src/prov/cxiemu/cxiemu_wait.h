/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_wait.h - sleeping on a NIC's futex, and the NIC's thread.
 *
 * The futex counts kicks: a sleeper reads it, announces itself, looks whether
 * there is work, and sleeps only while no kick has come since. Nobody has to
 * take a kick back, so it does no harm if a waker dies half-way: the next one
 * wakes whoever is still announced.
 */
#ifndef CXIEMU_WAIT_H_
#define CXIEMU_WAIT_H_

#include "cxiemu_nic.h"

#define CXIEMU_NSEC_PER_MSEC 1000000ull
#define CXIEMU_FOREVER       UINT64_MAX

/** Peers are looked at so often, and on demand. */
#define CXIEMU_CHECK_NS (500 * CXIEMU_NSEC_PER_MSEC)


/** Wake up to @a count sleepers of a class (CXIEMU_KICK_*). Any thread, any
 *  process. */
void cxiemu_kick(cxiemu_nic_shm_t *shm, uint32_t who, int count);

/** Sleep until a kick after the futex read @a seen, at most @a nsec from now
 *  (CXIEMU_FOREVER: no limit). Returns for no reason, too. */
void cxiemu_doze(cxiemu_nic_shm_t *shm, uint32_t who, uint32_t seen,
                 uint64_t nsec);

/** Say that the application polls; @a yields: as cxiemu_nic_poll_shared().
 *  Lock held. */
void cxiemu_nic_polled(cxiemu_nic_t *nic, int yields);

/** Start the NIC's thread; 0, or -FI_E*. */
int cxiemu_thread_start(cxiemu_nic_t *nic);

/** End it, and wait for that. No lock. */
void cxiemu_thread_stop(cxiemu_nic_t *nic);

#endif
