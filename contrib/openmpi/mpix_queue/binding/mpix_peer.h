/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_peer.h - the process behind a rank of a communicator.
 *
 * All functions are to be called with the lock held.
 */
#ifndef MPIX_PEER_H_
#define MPIX_PEER_H_

#include "mpix_comm.h"

#include <ucp_st.h>

#include <stdint.h>


/* Protected by the lock. */
typedef struct mpix_peer {
    ucs_list_link_t list;       /* In the communicator's peers */
    ucs_list_link_t waiting;    /* In the list of those without an address, or
                                   of those to connect; else alone */
    mpix_comm_t     *comm;
    int             rank;       /* In the communicator */
    int             world_rank; /* In MPI_COMM_WORLD, or -1 */
    int             is_self;
    uint64_t        context;    /* Of the communicator, the same at all ranks */
    ucp_st_peer_h   st_peer;    /* Once status is UCS_OK */
    ucs_status_t    status;     /* UCS_INPROGRESS until it is connected */
    struct mpix_exchange_in *in; /* Its address, while it is to be connected;
                                    NULL for the process itself */
} mpix_peer_t;


/* Get the peer of a rank. The first call sends the own address there. 'func' is
 * named in messages. Returns an MPI code. */
int mpix_peer_get(const char *func, mpix_comm_t *comm, int rank,
                  mpix_peer_t **peer_p);

/* Called by the communicator, whose last request is gone. */
void mpix_peer_destroy(mpix_peer_t *peer);

/* Receive addresses, and connect peers. Returns the number of things done.
 * Gives the lock up meanwhile, as that may take seconds where a peer is
 * gone. */
unsigned mpix_peer_progress(void);

#endif
