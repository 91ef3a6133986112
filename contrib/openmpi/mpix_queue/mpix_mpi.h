/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_mpi.h - MPI's header, which may have declarations of C++, for the others
 * here, which may be included in extern "C".
 */
#ifndef MPIX_MPI_H_
#define MPIX_MPI_H_

#ifdef __cplusplus
extern "C++" {
#endif

#include <mpi.h>

#ifdef __cplusplus
}
#endif

#endif
