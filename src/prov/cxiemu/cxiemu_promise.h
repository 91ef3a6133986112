/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_promise.h - peers that have said that they will poll, and whether they
 * do.
 *
 * A peer's application that polls says until when it will again, so that nobody
 * need wake its NIC's thread (polls_until, cxiemu_nic.h). It may go on with
 * something longer all the same: a kernel, behind a send that needs an answer
 * from here. Nobody rings for that again, and the thread looks by itself only
 * within milliseconds. So who has rung where a promise held looks once more
 * when it is over: if there was no new one since, the thread is woken then.
 * That is done by whoever waits here, as nobody else misses the answer: polls,
 * waiters, and the thread for those who rest.
 *
 * All functions are called with the NIC's lock held.
 */
#ifndef CXIEMU_PROMISE_H_
#define CXIEMU_PROMISE_H_

#include "cxiemu_link.h"


/** A link's peer was rung, and has promised a poll until then. */
void cxiemu_promise_note(cxiemu_link_t *link, uint64_t until);

/** The link ends. */
void cxiemu_promise_forget(cxiemu_link_t *link);

/** Wake the threads of those peers whose promise is over and was not kept.
 *  @a now: of CLOCK_MONOTONIC, nanoseconds. */
void cxiemu_promise_check(cxiemu_nic_t *nic, uint64_t now);

/** For how long there is nothing to check, nanoseconds; CXIEMU_FOREVER if there
 *  is nothing at all. */
uint64_t cxiemu_promise_left(const cxiemu_nic_t *nic, uint64_t now);

#endif
