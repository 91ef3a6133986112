/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_f08.h - what the C functions behind the module mpix_queue_f08 share.
 *
 * The module declares the functions, which are not described once more. For a
 * handle of MPI they take the place of its number, for one of this library the
 * place of the handle in C; ierror may be NULL.
 */
#ifndef MPIX_F08_H_
#define MPIX_F08_H_

#include <mpix_queue.h>

#include <ISO_Fortran_binding.h>
#include <stddef.h>

/* Requests of an array that are converted without memory of their own. */
#define MPIX_F08_SHORT 64


/* An array of requests as C has it. */
typedef struct mpix_f08_requests {
    MPI_Request *array;
    MPI_Request few[MPIX_F08_SHORT];
} mpix_f08_requests_t;


#pragma GCC visibility push(hidden)

/* Convert 'count' requests; a negative number is left to the call to refuse.
 * Returns an MPI code, which has been raised. */
int mpix_f08_requests_init(mpix_f08_requests_t *requests, int count,
                           const MPI_Fint *handles);

/* Free what mpix_f08_requests_init() has made. */
void mpix_f08_requests_cleanup(mpix_f08_requests_t *requests);

/* The address of a buffer. Returns an MPI code, which has been raised, for one
 * whose elements are not one after the other: what counts and types mean there
 * nobody can tell. */
int mpix_f08_buffer(const CFI_cdesc_t *desc, void **buffer_p);

#pragma GCC visibility pop

/* Return a code. */
static inline void mpix_f08_return(MPI_Fint *ierror, int rc)
{
    if (ierror != NULL) {
        *ierror = rc;
    }
}

#endif
