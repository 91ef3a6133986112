/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_progress.h - what a host that makes calls does for a worker.
 */
#ifndef UCP_ST_PROGRESS_H_
#define UCP_ST_PROGRESS_H_

#include <ucp_st.h>

/**
 * Progress the UCP worker once, answer peers that leave, ask now and then about
 * those that something waits for, and end freed operations; non-zero if UCP did
 * something. The lock is not held.
 */
unsigned ucp_st_progress(ucp_st_worker_h worker);

/** Yield, or sleep a moment, between two rounds of progress, the first of which
 *  returned `progressed`. `idle_rounds` is 0 at first. The lock is not held. */
void ucp_st_progress_pause(unsigned *idle_rounds, unsigned progressed);

#endif
