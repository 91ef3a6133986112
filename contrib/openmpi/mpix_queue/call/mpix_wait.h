/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_wait.h - MPI's calls that test requests and wait for them.
 */
#ifndef MPIX_WAIT_H_
#define MPIX_WAIT_H_

#include "binding/mpix_comm.h"

#include <mpi.h>


/* MPI asks, in a function that it calls, about a request of ours that has
 * failed. If this thread is in a call of this library on the request, that call
 * raises an error of the class through the communicator, with the words behind
 * the request's, and this is 1. MPI is to be told of success then. */
int mpix_wait_take(MPI_Request request, mpix_comm_t *comm, int class,
                   const char *text);

#endif
