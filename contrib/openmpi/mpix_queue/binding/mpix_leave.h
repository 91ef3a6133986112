/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_leave.h - how a process goes whose peers still wait to match.
 *
 *   waits in MPIX_Match                      in MPI_Finalize
 *   address, answer wanted   ------------->
 *                            <-------------  no address: leaving
 *   or, the address being known,
 *   st match                 ------------->
 *                            <-------------  st leave
 *
 * MPI_Finalize returns only when all processes have entered it, and the
 * processes that wait here enter it after their error. The answers go on as far
 * as the binding lets them: with `ucx` MPI_Finalize progresses the PML's worker
 * and with it the answers; with `mpi` a barrier comes first. What is matched
 * goes on.
 */
#ifndef MPIX_LEAVE_H_
#define MPIX_LEAVE_H_

/* MPI_Finalize has begun: match nothing more. Needs the lock. */
void mpix_leave_begin(void);

/* Progress the st worker, and answer peers that ask, up to so many a call. MPI
 * may not be called any more, but by the binding. Needs the lock, which it
 * gives up meanwhile. */
void mpix_leave_progress(void);

#endif
