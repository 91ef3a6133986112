/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_stream.h - host streams for MPI programs.
 */
#ifndef MPIX_STREAM_H_
#define MPIX_STREAM_H_

#include "mpix_queue.h"

#include <ucs/type/status.h>


/* Raise why a call on streams, groups or events failed, if it did; returns an
 * MPI code. */
int mpix_stream_return(const char *func, ucs_status_t status);

/* Raise that a handle is no stream; returns the code. */
int mpix_stream_refuse(const char *func, const void *stream);

/* Make a queue on a stream of any kind. Returns an MPI code that is not raised.
 * Takes the locks. */
int mpix_stream_get_queue(const char *func, void *stream, MPIX_Queue *queue_p);

#endif
