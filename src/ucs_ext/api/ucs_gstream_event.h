/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucs_gstream_event.h - points in streams that other streams and the host can
 * wait for, and the time between them.
 */
#ifndef UCS_GSTREAM_EVENT_H_
#define UCS_GSTREAM_EVENT_H_

#include <ucs_gstream.h>
#include <ucs/type/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A point in a stream. Created by @ref ucs_gstream_event_create. */
typedef struct ucs_gstream_event *ucs_gstream_event_h;


/**
 * Create an event: a point in a stream that other streams and the host can wait
 * for, with the time at which the stream passed it.
 *
 * @param [out] event_p Filled with the event on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM if @a event_p is NULL or a setting
 *         cannot be read; UCS_ERR_NO_MEMORY.
 *
 * Ownership: the caller owns the event until @ref ucs_gstream_event_destroy.
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_event_create(ucs_gstream_event_h *event_p);


/**
 * Destroy an event that no stream and no thread uses any more.
 *
 * @param [in] event The event.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while a recording or a wait
 *         that was enqueued has not run, or a thread is in
 *         @ref ucs_gstream_event_synchronize; UCS_ERR_INVALID_PARAM if @a event
 *         is NULL.
 *
 * Ownership: on UCS_OK the handle is gone.
 * Threads: no other call on this event may begin at the same time.
 */
ucs_status_t ucs_gstream_event_destroy(ucs_gstream_event_h event);


/**
 * Enqueue a recording of an event: it stands for this point of this stream
 * until it is recorded again.
 *
 * @param [in] stream The stream.
 * @param [in] event  The event; may be recorded again, also on another stream,
 *                    before its last recording has run.
 *
 * @return As @ref ucs_gstream_enqueue; UCS_ERR_NO_MEMORY, too, if more
 *         recordings than ever before have not run. On an error the event is as
 *         it was.
 *
 * Ownership: the event stays the caller's and must live until the command ran.
 * Threads: as @ref ucs_gstream_enqueue.
 */
ucs_status_t ucs_gstream_enqueue_record(ucs_gstream_h stream,
                                        ucs_gstream_event_h event);


/**
 * Enqueue a wait for an event: what is enqueued after it runs after, and sees,
 * what was enqueued on the event's stream before the event was recorded. The
 * wait is for the recording that was enqueued last before this call, and for
 * that one even if the event is recorded again.
 *
 * @param [in] stream The stream that waits.
 * @param [in] event  The event.
 *
 * @return As @ref ucs_gstream_enqueue; UCS_ERR_NO_ELEM if the event was never
 *         recorded.
 *
 * Ownership: the event stays the caller's and must live until the command ran.
 * Threads: as @ref ucs_gstream_enqueue.
 */
ucs_status_t ucs_gstream_enqueue_wait_event(ucs_gstream_h stream,
                                            ucs_gstream_event_h event);


/**
 * Tell whether a stream has passed an event.
 *
 * @param [in] event The event.
 *
 * @return UCS_OK if the recording that was enqueued last has run;
 *         UCS_INPROGRESS if it has not; UCS_ERR_NO_ELEM if the event was never
 *         recorded; UCS_ERR_INVALID_PARAM if @a event is NULL.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_event_query(ucs_gstream_event_h event);


/**
 * Block the caller until a stream has passed an event: until the recording has
 * run that was enqueued last before this call.
 *
 * @param [in] event The event.
 *
 * @return As @ref ucs_gstream_event_query, but for UCS_INPROGRESS; UCS_ERR_BUSY
 *         when called from a command that @ref ucs_gstream_synchronize would
 *         refuse on the event's stream; UCS_ERR_IO_ERROR if a device stream
 *         failed.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_event_synchronize(ucs_gstream_event_h event);


/**
 * Time from one event to another: of their recordings that were enqueued last,
 * by the machine's monotonic clock, in steps of a nanosecond.
 *
 * @param [in]  start     The earlier event.
 * @param [in]  end       The later event, may be the same; recorded on any
 *                        stream.
 * @param [out] seconds_p Filled with the time in seconds on success only; below
 *                        0 if @a end was passed first.
 *
 * @return UCS_OK; UCS_INPROGRESS if one of the recordings has not run;
 *         UCS_ERR_NO_ELEM if an event was never recorded;
 *         UCS_ERR_INVALID_PARAM for a NULL argument.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_event_elapsed(ucs_gstream_event_h start,
                                       ucs_gstream_event_h end,
                                       double *seconds_p);

#ifdef __cplusplus
}
#endif

#endif
