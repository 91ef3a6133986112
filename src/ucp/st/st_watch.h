/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_watch.h - the service thread looks after peers in place of hosts that make
 * no calls: it asks whether those are alive that streams wait for, and decides
 * about those that are lost.
 */
#ifndef UCP_ST_WATCH_H_
#define UCP_ST_WATCH_H_

#include "st_worker.h"

/** Begin. The lock is not held. */
ucs_status_t ucp_st_watch_start(ucp_st_worker_h worker);

/** End, before the peers go. The lock is not held. */
void ucp_st_watch_stop(ucp_st_worker_h worker);

/**
 * Tell peers that do not know yet what failed, and ask, if it is time, about
 * those that streams wait for and those that are gone: some NICs drop what they
 * cannot deliver without a word, and tell only who asks once nobody is there.
 * Non-zero if there are peers to look after. The lock is held.
 */
int ucp_st_watch_ask(ucp_st_worker_h worker, int is_time);

/** Look now: there is a new peer, or one is lost. With the lock held or not. */
void ucp_st_watch_wake(ucp_st_worker_h worker);

#endif
