/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_wait.h - threads that wait for a NIC: its own, those that poll, and
 * those that sleep.
 *
 * A peer that has sent something wakes the NIC's thread if that says that it
 * sleeps and no thread of its process is in a poll loop:
 *
 *   peer [cxiemu_nic_notify]               thread [cxiemu_thread_sleep]
 *   sets bits in ready and summary         thread := ASLEEP
 *   pollers = 0, and thread is ASLEEP?     summary = 0? then sleeps on thread
 *   thread: ASLEEP -> AWAKE, wakes it
 *                                          thread that polls [cxiemu_poll_end]
 *                                          subtracts 1 from pollers
 *                                          summary = 0? else makes progress
 *
 * All of these are seq-cst. So either the peer sees what the owner has written,
 * or the owner's last look finds the peer's bits. What is written to thread is
 * the futex: the peer that changes ASLEEP to AWAKE, and no other one, wakes. If
 * it is stopped in between, the thread sleeps until its time is over.
 *
 * Poll loops are those that begin and end as such: a host stream that waits
 * (cxiemu_hooks_t), and a thread in fi_cntr_wait() or fi_cq_sread() before it
 * sleeps. A program that reads a queue or a counter by itself does not say
 * whether it will again. The NIC's thread then is TIMED instead of ASLEEP: it
 * looks once a millisecond, and peers do not wake it. That ends when it has
 * slept so long and nothing was read, or when fi_trywait() was called.
 *
 * Threads that sleep in the NIC are woken by the thread that makes the progress
 * that they wait for, by a futex of the process.
 */
#ifndef CXIEMU_WAIT_H_
#define CXIEMU_WAIT_H_

#include "run/cxiemu_progress.h"

#define CXIEMU_FOREVER UINT64_MAX

/** Peers are looked at so often, and on demand. */
#define CXIEMU_CHECK_NS (500 * CXIEMU_NSEC_PER_MSEC)


/** The calling thread polls the NIC @a arg from now on, until it says that it
 *  does not. No lock. */
void cxiemu_poll_begin(void *arg);
void cxiemu_poll_end(void *arg);

/** Start the NIC's thread; 0, or -FI_E*. */
int cxiemu_thread_start(cxiemu_nic_t *nic);

/** End it, and wait for that. No lock. */
void cxiemu_thread_stop(cxiemu_nic_t *nic);

/**
 * Sleep until @a ready(arg) says so; it is called with the lock held after
 * progress. The lock is held on entry and on return, not in between. Polls
 * shortly, then sleeps. @a timeout_ms < 0: for ever; 0: one look.
 * Returns 0, or -FI_ETIMEDOUT (-FI_EAGAIN for a time-out of 0).
 */
int cxiemu_nic_wait(cxiemu_nic_t *nic, int (*ready)(void *arg), void *arg,
                    int timeout_ms);

#endif
