/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_datatype.h - where the bytes of an MPI buffer are.
 */
#ifndef MPIX_DATATYPE_H_
#define MPIX_DATATYPE_H_

#include <mpi.h>

#include <stddef.h>

/* Calls with counts of type MPI_Count: MPI 4 has others than MPI 3 */
#if MPI_VERSION >= 4
#define mpix_datatype_size         PMPI_Type_size_c
#else
#define mpix_datatype_size         PMPI_Type_size_x
#endif

/* One of MPI 4.1 */
#if (MPI_VERSION > 4) || ((MPI_VERSION == 4) && (MPI_SUBVERSION >= 1))
#define mpix_datatype_set_elements PMPI_Status_set_elements_c
#else
#define mpix_datatype_set_elements PMPI_Status_set_elements_x
#endif


/* Where (buffer, count, datatype) is in memory. Returns non-zero if its bytes
 * are one after the other in memory, in the order in which MPI sends them; then
 * 'start_p' and 'length_p' are filled in. */
int mpix_datatype_is_contig(const void *buffer, int count,
                            MPI_Datatype datatype, void **start_p,
                            size_t *length_p);

#endif
