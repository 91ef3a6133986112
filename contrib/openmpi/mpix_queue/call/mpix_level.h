/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_level.h - the level of threads that MPI is asked for.
 */
#ifndef MPIX_LEVEL_H_
#define MPIX_LEVEL_H_

#include <mpi.h>

/* The level that MPI is asked for in place of what the program asks for: more,
 * if it is linked with functions that need more. */
int mpix_level_required(int required);

#endif
