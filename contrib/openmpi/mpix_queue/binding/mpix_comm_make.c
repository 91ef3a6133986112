/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_comm_make.c - MPI's functions that make communicators.
 *
 * Those that duplicate are not among them: the copy has its id from the
 * attribute of the original.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_comm.h"
#include "mpix_error.h"
#include "mpix_next.h"


/* All have the new communicator as their last argument, and are collective over
 * it. */
#define MPIX_COMM_MAKE(_name, _params, _args) \
    int MPI_##_name _params \
    { \
        int rc; \
        \
        mpix_comm_set_making(1); \
        rc = MPIX_NEXT(_name) _args; \
        mpix_comm_set_making(0); \
        return (rc == MPI_SUCCESS) ? mpix_comm_made(*newcomm) : rc; \
    }


static int mpix_comm_made(MPI_Comm newcomm)
{
    return mpix_raise(newcomm, mpix_comm_agree(newcomm));
}

MPIX_NEXT_LIST_COMM(MPIX_COMM_MAKE)
