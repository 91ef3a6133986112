/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_mpich.h - what lies behind the calls of compat/mpich_stream.h.
 */
#ifndef MPIX_MPICH_H_
#define MPIX_MPICH_H_

#include <mpix_mpi.h>

struct mpix_queue;


/* Get the queue of the stream of a communicator. Returns an MPI code, which was
 * raised: that it has none, or that a message of the queue has failed. */
int mpix_mpich_get_queue(const char *func, MPI_Comm comm,
                         struct mpix_queue **queue_p);

#endif
