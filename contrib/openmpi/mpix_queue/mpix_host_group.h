/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_host_group.h - threads that host streams share.
 *
 * Every function returns an MPI error code, raised through the error handler of
 * MPI_COMM_WORLD.
 */
#ifndef MPIX_HOST_GROUP_H_
#define MPIX_HOST_GROUP_H_

#include "mpix_mpi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Threads that host streams share. */
typedef struct mpix_host_group *MPIX_Host_group;

/** No group. */
#define MPIX_HOST_GROUP_NULL ((MPIX_Host_group)0)


/**
 * Create a group: threads that run the streams which are created on it.
 *
 * @param [in]  threads Number of threads; 0: what UCX_GSTREAM_GROUP_THREADS
 *                      says, 1 by default.
 * @param [in]  count   Number of processors; 0: the threads run where the
 *                      caller may.
 * @param [in]  cpus    Numbers of processors, as the kernel counts. Thread i
 *                      runs on the i-th of them alone; after the last, the
 *                      first one comes again. Not used if @a count is 0.
 * @param [out] group   Filled with the handle on success only.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for a NULL argument, a number that is out of
 *         range, or a processor that the process cannot use; MPI_ERR_NO_MEM,
 *         also if a thread cannot be started.
 *
 * Ownership: the caller's until @ref MPIX_Host_group_free.
 * Threads: any.
 */
int MPIX_Host_group_create(int threads, int count, const unsigned cpus[],
                           MPIX_Host_group *group);


/**
 * Free a group that has no streams.
 *
 * @param [in,out] group The group; set to MPIX_HOST_GROUP_NULL.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG if it is no group; MPI_ERR_PENDING, with no
 *         effect, while there are streams that were created on it.
 *
 * Threads: no other call on the group at the same time.
 */
int MPIX_Host_group_free(MPIX_Host_group *group);


/**
 * Tell which priorities a stream of a group can have. 0 is one of them.
 *
 * @param [out] least    Filled with the number of the least urgent streams.
 * @param [out] greatest Filled with the number of the most urgent streams,
 *                       which is the lowest.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for NULL.
 *
 * Threads: any.
 */
int MPIX_Host_priority_range(int *least, int *greatest);

#ifdef __cplusplus
}
#endif

#endif
