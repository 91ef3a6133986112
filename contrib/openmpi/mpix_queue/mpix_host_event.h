/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_host_event.h - points in host streams.
 *
 * Every function returns an MPI error code, raised through the error handler of
 * MPI_COMM_WORLD.
 */
#ifndef MPIX_HOST_EVENT_H_
#define MPIX_HOST_EVENT_H_

#include "mpix_mpi.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A point in a host stream. */
typedef struct mpix_host_event *MPIX_Host_event;

/** No event. */
#define MPIX_HOST_EVENT_NULL ((MPIX_Host_event)0)


/**
 * Create an event: a point in a host stream that other streams and the host can
 * wait for, with the time at which the stream passed it.
 *
 * @param [out] event Filled with the handle on success only.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for NULL; MPI_ERR_NO_MEM.
 *
 * Ownership: the caller's until @ref MPIX_Host_event_free.
 * Threads: any.
 */
int MPIX_Host_event_create(MPIX_Host_event *event);


/**
 * Free an event that nobody uses any more.
 *
 * @param [in,out] event The event; set to MPIX_HOST_EVENT_NULL.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG if it is no event; MPI_ERR_PENDING, with no
 *         effect, while a recording or a wait that was enqueued has not run.
 *
 * Threads: no other call on the event at the same time.
 */
int MPIX_Host_event_free(MPIX_Host_event *event);


/**
 * Enqueue a recording of an event: it stands for this point of this stream
 * until it is recorded again.
 *
 * @param [in] stream The host stream.
 * @param [in] event  The event; must not be freed until the stream is there.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG if one is no stream or no event;
 *         MPI_ERR_NO_MEM. Nothing is enqueued on error.
 *
 * Threads: any.
 */
int MPIX_Host_event_record(void *stream, MPIX_Host_event event);


/**
 * Enqueue a wait for an event: what is enqueued after it runs after, and sees,
 * what was enqueued before the event's last recording. The wait is for that one
 * even if the event is recorded again.
 *
 * @param [in] stream The host stream that waits.
 * @param [in] event  The event.
 *
 * @return As @ref MPIX_Host_event_record; MPI_ERR_ARG, too, if the event was
 *         never recorded.
 *
 * Threads: any.
 */
int MPIX_Host_event_wait(void *stream, MPIX_Host_event event);


/**
 * Tell whether a stream has passed an event.
 *
 * @param [in]  event The event.
 * @param [out] flag  1 if its last recording has run, else 0.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG if it is no event or was never recorded, or
 *         for NULL.
 *
 * Threads: any.
 */
int MPIX_Host_event_query(MPIX_Host_event event, int *flag);


/**
 * Block until a stream has passed an event.
 *
 * @param [in] event The event.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG if it is no event or was never recorded;
 *         MPI_ERR_PENDING where @ref MPIX_Host_stream_synchronize on the
 *         event's stream would return it.
 *
 * Threads: any.
 */
int MPIX_Host_event_synchronize(MPIX_Host_event event);


/**
 * Time from one event to another: of their last recordings, by the machine's
 * monotonic clock.
 *
 * @param [in]  start   The earlier event.
 * @param [in]  end     The later event; may be of another stream, or the same.
 * @param [out] seconds Filled on success only; below 0 if @a end was passed
 *                      first.
 *
 * @return MPI_SUCCESS; MPI_ERR_PENDING if one of the recordings has not run;
 *         MPI_ERR_ARG if one is no event or was never recorded, or for NULL.
 *
 * Threads: any.
 */
int MPIX_Host_event_elapsed(MPIX_Host_event start, MPIX_Host_event end,
                            double *seconds);

#ifdef __cplusplus
}
#endif

#endif
