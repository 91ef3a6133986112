/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_host_stream.h - host streams for MPI programs.
 *
 * Every function returns an MPI error code, raised through the error handler of
 * MPI_COMM_WORLD.
 */
#ifndef MPIX_HOST_STREAM_H_
#define MPIX_HOST_STREAM_H_

#include "mpix_host_group.h"

#include "mpix_mpi.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Longest arguments of @ref MPIX_Host_stream_launch_copy, in bytes. */
#define MPIX_HOST_ARGS_MAX 4096


/** A function that a host stream runs. */
typedef void (*MPIX_Host_func)(void *arg);


/**
 * Create a host stream: a thread that runs functions and messages in order.
 *
 * @param [out] stream Filled with the handle.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for NULL; MPI_ERR_NO_MEM.
 *
 * Ownership: the caller's until @ref MPIX_Host_stream_free.
 * Threads: any.
 */
int MPIX_Host_stream_create(void **stream);


/**
 * Create a host stream whose thread runs on certain processors.
 *
 * @param [in]  count  Number of processors, at least 1.
 * @param [in]  cpus   Their numbers, as the kernel counts; those are ignored
 *                     that the process cannot use.
 * @param [out] stream Filled with the handle on success only.
 *
 * @return As @ref MPIX_Host_stream_create; MPI_ERR_ARG, too, if the process can
 *         use none of them.
 *
 * Ownership: the caller's until @ref MPIX_Host_stream_free.
 * Threads: any.
 */
int MPIX_Host_stream_create_bound(int count, const unsigned cpus[],
                                  void **stream);


/**
 * Create a host stream that the threads of a group run. One that waits for
 * messages or for an event leaves them to the group's other streams.
 *
 * @param [in]  group    The group.
 * @param [in]  priority In the range of @ref MPIX_Host_priority_range. Of the
 *                       streams that could run the one with the lowest number
 *                       goes first.
 * @param [out] stream   Filled with the handle on success only.
 *
 * @return As @ref MPIX_Host_stream_create; MPI_ERR_ARG, too, if @a group is no
 *         group or @a priority is out of range.
 *
 * Ownership: the caller's until @ref MPIX_Host_stream_free. The group must
 *            outlive it.
 * Threads: any.
 */
int MPIX_Host_stream_create_on(MPIX_Host_group group, int priority,
                               void **stream);


/**
 * Free a host stream that has run everything, and whose queues are freed. One
 * that has work of queues that were freed goes when that has run.
 *
 * @param [in,out] stream The handle; set to NULL.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG if it is no host stream; MPI_ERR_PENDING,
 *         with no effect, while it has a queue, idle or not, or other work.
 *
 * Threads: no other call on the stream at the same time.
 */
int MPIX_Host_stream_free(void **stream);


/**
 * Run a function in stream order. Returns at once.
 *
 * @param [in] stream The host stream.
 * @param [in] func   The function; must not call MPI.
 * @param [in] arg    Passed to it; must live until it has run.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG if it is no host stream; MPI_ERR_NO_MEM.
 *
 * Threads: any.
 */
int MPIX_Host_stream_launch(void *stream, MPIX_Host_func func, void *arg);


/**
 * Run a kernel in stream order: a function with its arguments copied in.
 * Returns at once.
 *
 * @param [in] stream The host stream.
 * @param [in] func   The function; must not call MPI. It is passed a copy of
 *                    the arguments, which it may change and which is gone when
 *                    it returns, aligned as for malloc(); if @a size is 0,
 *                    NULL.
 * @param [in] args   The arguments; may be reused on return. May be NULL if
 *                    @a size is 0.
 * @param [in] size   Bytes of the arguments, at most MPIX_HOST_ARGS_MAX.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG if it is no host stream, for a NULL function
 *         or arguments that are NULL or too long; MPI_ERR_NO_MEM.
 *
 * Ownership: what the arguments point to must live until the kernel has run.
 * Threads: any.
 */
int MPIX_Host_stream_launch_copy(void *stream, MPIX_Host_func func,
                                 const void *args, size_t size);


/**
 * Block until a host stream has run everything enqueued so far.
 *
 * @param [in] stream The host stream.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG if it is no host stream; MPI_ERR_PENDING
 *         when called from a function of this stream or of another one of its
 *         group.
 *
 * Threads: any.
 */
int MPIX_Host_stream_synchronize(void *stream);

#ifdef __cplusplus
}
#endif

#endif
