/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_wait_set.h - the requests of a call that tests them or waits for them.
 */
#ifndef MPIX_WAIT_SET_H_
#define MPIX_WAIT_SET_H_

#include "mpix_request.h"


/* The requests of a call. MPI sees null requests in place of those that are
 * given, which it passes over as it does inactive ones: MPICH 4.0 takes a
 * collective for active until its first use. */
typedef struct mpix_wait_set {
    const char  *func;
    int         count;
    MPI_Request *requests;
    MPI_Request *mpi;       /* For MPI, in place of 'requests' */
    char        *is_given;  /* Of each */
    int         *codes;     /* Of each: with which it has failed */
    mpix_req_t  **active;   /* Each NULL if it is MPI's, or not active */
    int         num_given;
    int         num_active;
    int         failed;     /* The first failure, which the call raises */
    mpix_comm_t *comm;      /* Its communicator; a reference, or NULL */
    struct mpix_wait_set *outer; /* The call that this one is a part of */
    void        *few[24];   /* The arrays' memory for few requests */
} mpix_wait_set_t;


/* This thread is in a call from now on, or in it no longer. */
void mpix_wait_set_enter(mpix_wait_set_t *set);
void mpix_wait_set_leave(mpix_wait_set_t *set);

/* A request has failed, unless the code is MPI_SUCCESS: the first one's
 * communicator is told. */
void mpix_wait_set_fail(mpix_wait_set_t *set, int index, mpix_comm_t *comm,
                        int code);

/* MPI asks, in a function that it calls, about a request of ours that has
 * failed. If this thread is in a call of this library on the request, that call
 * raises an error of the class through the communicator, with the words behind
 * the request's, and this is 1. MPI is to be told of success then. */
int mpix_wait_set_take(MPI_Request request, mpix_comm_t *comm, int class,
                       const char *text);

#endif
