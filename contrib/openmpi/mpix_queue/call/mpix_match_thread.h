/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_match_thread.h - a thread that matches while the application is in MPI.
 *
 * Only where nothing else does, and MPI lets threads call it.
 */
#ifndef MPIX_MATCH_THREAD_H_
#define MPIX_MATCH_THREAD_H_

/* There is something to match: wake the thread, or start it. Where it cannot be
 * had, calls of this library match. */
void mpix_match_thread_wake(void);

/* MPI_Finalize has begun: wait for its end. */
void mpix_match_thread_stop(void);

/* In a child that was forked. */
void mpix_match_thread_forked(void);

#endif
