/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_host.h - matched requests that the host starts, tests and waits for.
 *
 * MPI itself takes a matched request for inactive, always. It is active from a
 * start, on a queue or by MPI_Start, until the host was told of the end of that
 * use, by a call as MPI_Wait.
 *
 * What the host starts goes to a queue of this library's own, on a stream that
 * has nothing else: each side of a pair may be started either way. Where no
 * wait was enqueued, the host enqueues one as soon as it would pass, so that
 * this never blocks a stream.
 */
#ifndef MPIX_HOST_H_
#define MPIX_HOST_H_

#include "request/mpix_wait_set.h"


/* Find the requests of a call that are given, and those that are active.
 * Returns an MPI code. Takes the lock. */
int mpix_host_set_init(mpix_wait_set_t *set, const char *func, int count,
                       MPI_Request *requests);

/* The call's requests become what MPI has made of its own. */
void mpix_host_set_cleanup(mpix_wait_set_t *set);

/* Progress what requests wait for: MPI and the st worker. */
void mpix_host_progress(void);

/* Test an active request: non-zero if its use is over, in whatever way. */
int mpix_host_is_over(const mpix_req_t *req);

/* Wait until that is so. */
void mpix_host_wait(const mpix_req_t *req);

/* Get the result of a use that is over, and the status, but for its error, if
 * that is not NULL. Returns an MPI code. */
int mpix_host_result(const mpix_wait_set_t *set, int index, MPI_Status *status);

/* The host was told: the request is inactive from now on. */
void mpix_host_told(mpix_req_t *req);

/* The lock of this file, which is taken before that of the library: no call
 * here uses a queue meanwhile. */
void mpix_host_lock(void);
void mpix_host_unlock(void);

/* The library is closed: free the queue. */
void mpix_host_cleanup(void);

/* In a child that was forked. */
void mpix_host_forked(void);

#endif
