/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_match.h - pairs persistent requests with their counterparts.
 *
 * A request waits until the address of its peer's st worker is there, in the
 * order of the calls; then the st worker pairs it.
 */
#ifndef MPIX_MATCH_H_
#define MPIX_MATCH_H_

#include "mpix_request.h"


/* Requests that are being matched. Written under the lock, read without it by
 * every progress call of MPI: a stale value only delays matching. */
extern unsigned mpix_match_count;

static inline int mpix_match_is_active(void)
{
    return __atomic_load_n(&mpix_match_count, __ATOMIC_RELAXED) != 0;
}

/* Progress the exchange of addresses, the st worker and all requests but
 * collectives. Returns the number of things done. Needs the lock, which it
 * gives up meanwhile; not from within a UCP callback. */
unsigned mpix_match_progress(void);

/* Begin to match an IDLE request, no collective, whose peer was got. Needs the
 * lock. */
void mpix_match_push(mpix_req_t *req);

/* Take a request that is PENDING or MATCHING out of its list; nothing in
 * another state. Needs the lock. */
void mpix_match_drop(mpix_req_t *req);

/* What to say of a failed matching: a constant, or written to 'buffer'. */
const char *mpix_match_cause(const mpix_req_t *req, char *buffer, size_t max);

/* Non-zero for one half of a message to the own process, if the other was not
 * pushed: to wait for it would take forever. Needs the lock. */
int mpix_match_lacks_half(const mpix_req_t *req);

/* Undo what matching did to a request, no collective, in any state.
 * UCS_ERR_BUSY, with no effect, if the request is in use on a queue. Needs the
 * lock. */
ucs_status_t mpix_match_cancel(mpix_req_t *req);

/* Progress the PML and all that MPI does. Takes no lock. */
void mpix_match_progress_mpi(void);

#endif
