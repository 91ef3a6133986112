/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi.h - the MPI's own, and HPE's calls, for programs that have them in their
 * MPI and include nothing else. ucx-st-mpicc --api hpe finds it.
 */
#ifndef MPIX_COMPAT_HPE_MPI_H_
#define MPIX_COMPAT_HPE_MPI_H_

#pragma GCC system_header /* #include_next is no standard C */
#include_next <mpi.h>
#include <mpix_queue.h>
#include <mpix_win.h>

#endif
