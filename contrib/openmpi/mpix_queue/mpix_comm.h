/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_comm.h - what this library keeps about a communicator.
 *
 * It hangs on the communicator as an attribute, which tells when the
 * application frees the communicator: its requests outlive it.
 */
#ifndef MPIX_COMM_H_
#define MPIX_COMM_H_

#include <mpi.h>

#include <ucs/datastruct/list.h>


/* Protected by the lock. */
typedef struct mpix_comm {
    MPI_Comm        handle; /* MPI_COMM_NULL once the application freed it */
    int             rank;   /* Own */
    unsigned        refs;   /* The attribute's and the requests' */
    ucs_list_link_t peers;  /* mpix_peer_t, each once */
    unsigned        colls;  /* Persistent collectives that were made */
} mpix_comm_t;


/* Get the object of a communicator, made at the first call, with one more
 * reference. Returns an MPI code. Takes the lock. */
int mpix_comm_get(MPI_Comm handle, mpix_comm_t **comm_p);

/* Return a reference. To be called with the lock held. */
void mpix_comm_put(mpix_comm_t *comm);

/* Rank in MPI_COMM_WORLD of a rank of a communicator (of its remote group, for
 * an intercommunicator); -1 if it is not in there. */
int mpix_comm_world_rank(MPI_Comm comm, int rank);

#endif
