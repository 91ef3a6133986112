/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_queue_paper.h - the names of "CPU-free two-sided MPI" (Bridges and
 * others, 2026), which proposes the calls for MPI itself: MPI_ in front of what
 * has MPIX_ in mpix_queue.h, with the same arguments.
 *
 * The paper's figures 2 and 3 are simplified, and are not built as printed:
 * MPI_Queue_init(type, stream, &queue) takes its arguments in this order, and
 * the stream itself; MPI_Matchall(count, requests, statuses) and
 * MPI_Enqueue_waitall(queue, count, requests) take the requests.
 */
#ifndef MPIX_COMPAT_MPI_QUEUE_PAPER_H_
#define MPIX_COMPAT_MPI_QUEUE_PAPER_H_

#include <mpix_queue.h>

#define MPI_Queue      MPIX_Queue
#define MPI_QUEUE_NULL MPIX_QUEUE_NULL

#define MPI_Queue_init MPIX_Queue_init
#define MPI_Queue_free MPIX_Queue_free
#define MPI_Queue_wait MPIX_Queue_wait

#define MPI_Match      MPIX_Match
#define MPI_Matchall   MPIX_Matchall
#define MPI_Imatch     MPIX_Imatch
#define MPI_Imatchall  MPIX_Imatchall
#define MPI_Is_matched MPIX_Is_matched

#define MPI_Enqueue_start    MPIX_Enqueue_start
#define MPI_Enqueue_startall MPIX_Enqueue_startall
#define MPI_Enqueue_wait     MPIX_Enqueue_wait
#define MPI_Enqueue_waitall  MPIX_Enqueue_waitall

#endif
