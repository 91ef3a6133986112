/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_stream_queue.h - the queue of a stream, for interfaces whose calls name
 * no queue.
 */
#ifndef MPIX_STREAM_QUEUE_H_
#define MPIX_STREAM_QUEUE_H_

#include "request/mpix_queues.h"

#include <ucs/datastruct/list.h>

#include <stdint.h>


/* A queue that all users of a stream share. Protected by the lock. */
typedef struct mpix_stream_queue {
    ucs_list_link_t list;
    void            *stream;  /* The application's handle */
    MPIX_Queue      queue;
    uint64_t        serial;   /* The queue's: another may have its place */
    unsigned        refs;
} mpix_stream_queue_t;


/* Whether it is a stream's, which was not freed meanwhile. Takes the lock. */
static inline int mpix_stream_queue_is(const mpix_stream_queue_t *entry,
                                       const void *stream)
{
    return (entry->stream == stream) &&
           mpix_queue_is_serial(entry->queue, entry->serial);
}

/* Get the queue of a stream of any kind, with a reference; it has an st queue,
 * and goes with its stream. Returns an MPI code that is not raised. Takes the
 * locks. */
int mpix_stream_queue_get(const char *func, void *stream,
                          mpix_stream_queue_t **entry_p);

/* Give a reference back: with the last one the queue goes, once it has run all
 * its commands. Takes the lock. */
void mpix_stream_queue_put(mpix_stream_queue_t *entry);

#endif
