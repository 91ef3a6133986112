/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_upcalls.h - what lower folders see happen, and a higher one deals with.
 * All other calls go from higher folders to lower ones.
 */
#ifndef MPIX_UPCALLS_H_
#define MPIX_UPCALLS_H_

#include <mpi.h>

struct mpix_comm;
struct mpix_req;


typedef struct mpix_upcalls {
    /* The application frees a communicator, which still works at this moment:
     * find the peers of its requests. With the lock. */
    void (*comm_freed)(struct mpix_comm *comm);

    /* A request was freed behind this library's back: a new one has its handle,
     * and its place in the table. With the lock, which may be given up. */
    void (*request_lost)(struct mpix_req *req);

    /* Make the st worker, if there is none. Returns an MPI code that is not
     * raised. Without the lock. */
    int (*make_worker)(const char *func);

    /* MPI_Finalize has begun. */
    MPI_Comm_delete_attr_function *finalized;
} mpix_upcalls_t;

extern const mpix_upcalls_t mpix_upcalls;

#endif
