/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi.h - the MPI's own, and MPICH's calls for streams, for programs that have
 * them in their MPI and include nothing else. ucx-st-mpicc --api mpich finds
 * it.
 */
#ifndef MPIX_COMPAT_MPICH_MPI_H_
#define MPIX_COMPAT_MPICH_MPI_H_

#pragma GCC system_header /* #include_next is no standard C */
#include_next <mpi.h>
#include <compat/mpich_stream.h>

#endif
