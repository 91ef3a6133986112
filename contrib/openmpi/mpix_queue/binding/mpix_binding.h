/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_binding.h - how processes find each other and exchange st addresses.
 *
 *   ucx  over pml/ucx's own worker and endpoints, which calls of UCP that it
 *        makes give away; context ids are MPI's own
 *   mpi  by MPI's own interface, on a communicator of this library; ids that
 *        processes agree on when a communicator is made
 *
 * Data goes over the st worker with both. All processes must use the same one:
 * an address does not get from one to the other.
 */
#ifndef MPIX_BINDING_H_
#define MPIX_BINDING_H_

#include "mpix_exchange.h"

#include <mpi.h>

#include <stdint.h>

struct mpix_peer;


/* All but open() and finalize() need the lock, and a thread that may call
 * MPI. */
typedef struct mpix_binding {
    const char   *name;

    /* Begin to use it; a sentence with the cause if it cannot be. Collective
     * over MPI_COMM_WORLD if is_collective. */
    ucs_status_t (*open)(const char **cause_p);
    int          is_collective;

    /* Find the way to a peer, whose communicator and rank are set, and set its
     * context. Returns an MPI code that is not raised. */
    int          (*resolve)(const char *func, struct mpix_peer *peer,
                            mpix_route_t *route);

    /* Find the way back to the sender of a message. Does not call MPI if
     * is_collective is not set. */
    ucs_status_t (*resolve_reply)(const mpix_exchange_in_t *in,
                                  mpix_route_t *route);

    /* Send a message, which it owns from now on. */
    ucs_status_t (*send)(mpix_exchange_out_t *out);

    /* Take out what has arrived, up to so many messages a call, and drop what
     * has been sent. Returns the number of messages handled. May give the lock
     * up meanwhile. */
    unsigned     (*progress)(void);

    int          needs_thread; /* MPI does not call progress() by itself */

    /* MPI_Finalize has begun, and still MPI may be called: answer peers until
     * nobody asks any more. NULL if that happens elsewhere. Takes the lock. */
    void         (*finalize)(void);
} mpix_binding_t;

extern const mpix_binding_t mpix_binding_ucx;
extern const mpix_binding_t mpix_binding_mpi;


/* The binding in use; NULL if none was chosen yet, or none can be used. Written
 * once. */
const mpix_binding_t *mpix_binding(void);

/* Choose one, if that was not done: by MPIX_QUEUE_BINDING, else the first one
 * that can be used; of those that are collective only if 'is_collective'. One
 * thread at a time. A sentence with the cause if there is none. */
ucs_status_t mpix_binding_choose(int is_collective, const char **cause_p);

/* Why it was chosen. */
const char *mpix_binding_reason(void);

/* Non-zero if the binding needs ids of communicators. */
static inline int mpix_binding_needs_ids(void)
{
    return mpix_binding() == &mpix_binding_mpi;
}

/* The PML's worker is about to be destroyed: complete what was sent there, as
 * far as that goes within a second. Takes the lock for that one. */
void mpix_binding_ucx_end(ucp_worker_h worker);

#endif
