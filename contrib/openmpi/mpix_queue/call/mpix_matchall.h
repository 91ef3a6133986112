/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_matchall.h - matches that a request of MPI stands for.
 */
#ifndef MPIX_MATCHALL_H_
#define MPIX_MATCHALL_H_

#include <mpi.h>


/* Progress matching. Tells whether all requests are matched, or have failed:
 * then *code_p is the first error, which is not raised. */
int mpix_matchall_look(const char *func, int count, const MPI_Request *requests,
                       int *code_p);

/* The requests of a call of MPI: complete those that stand for a match that is
 * over. Calls MPI. */
void mpix_match_request_poll(int count, const MPI_Request *requests);

/* A request is about to be freed, whatever it is. Calls MPI. */
void mpix_match_request_release(MPI_Request request);

/* In a child that was forked. */
void mpix_match_request_forked(void);

#endif
