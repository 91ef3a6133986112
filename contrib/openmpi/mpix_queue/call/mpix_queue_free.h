/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue_free.h - how queues go.
 */
#ifndef MPIX_QUEUE_FREE_H_
#define MPIX_QUEUE_FREE_H_

#include "request/mpix_queues.h"


/* Destroy the queues that were freed and have run everything meanwhile. Returns
 * how many have not. Takes the locks of the host's calls and of the library. */
unsigned mpix_queues_reap(void);

/* The application frees a stream. UCS_ERR_BUSY if it has a queue;
 * UCS_ERR_NO_PROGRESS if it has work left for a window; UCS_INPROGRESS if a
 * queue was freed that is under way, which has the stream from now on. Takes
 * the locks. */
ucs_status_t mpix_queues_take_stream(ucs_gstream_h stream);

/* MPI_Finalize has begun: cancel the messages that are not started. MPI calls
 * back: without the lock. */
void mpix_queues_cancel(void);

/* Wait, for some seconds at most, for queues that were freed; destroy those
 * that the application has left, and warn of what stays. MPI may not be called
 * any more. Takes the locks. */
void mpix_queues_cleanup(void);

#endif
