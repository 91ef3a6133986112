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
 * processes that wait here enter it after their error: it progresses the PML's
 * worker meanwhile, and with it the answers. What is matched goes on.
 */
#ifndef MPIX_LEAVE_H_
#define MPIX_LEAVE_H_

#include <ucp/api/ucp.h>

/* Be able to answer also where the library was never used. Called before
 * MPI_Finalize; does nothing if MPI is not active or does not run over pml/ucx.
 * Takes the lock. */
void mpix_leave_prepare(void);

/* MPI_Finalize has begun: match nothing more. Needs the lock. */
void mpix_leave_begin(void);

/* Answer peers that ask, up to so many a call. MPI may not be called any more.
 * Needs the lock, which it gives up meanwhile. */
void mpix_leave_progress(void);

/* A UCP worker is about to be destroyed, maybe the PML's: complete what was
 * sent there, as far as that goes within a second. Takes the lock for that
 * one. */
void mpix_leave_end(ucp_worker_h worker);

#endif
