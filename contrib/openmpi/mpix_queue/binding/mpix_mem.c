/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_mem.c - MPI's allocation calls: memory that streams of the node's other
 * processes can copy to and from. What is not to be had is left to MPI.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_global.h"
#include "mpix_next.h"

int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
    void *address;

    if (!mpix_mpi_is_active() || (size <= 0) || (baseptr == NULL) ||
        (ucp_st_mem_alloc((size_t)size, &address) != UCS_OK)) {
        return MPIX_NEXT(Alloc_mem)(size, info, baseptr);
    }
    *(void**)baseptr = address;
    return MPI_SUCCESS;
}

int MPI_Free_mem(void *base)
{
    /* Any other status is that of a forked process, whose copy stays */
    return (ucp_st_mem_free(base) == UCS_ERR_INVALID_PARAM) ?
                   MPIX_NEXT(Free_mem)(base) :
                   MPI_SUCCESS;
}
