/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_event.c - points in host streams that MPI programs wait for.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_host_event.h"
#include "binding/mpix_handle.h"
#include "mpix_stream.h"

#include <ucs_gstream_event.h>

/* Live events. Protected by the lock. */
static UCS_LIST_HEAD(mpix_events);


static int mpix_event_refuse(const char *func, const void *event)
{
    return mpix_handle_refuse(func, event, "event of MPIX_Host_event_create");
}

static ucs_status_t mpix_event_create(MPIX_Host_event *event_p)
{
    ucs_gstream_event_h object;
    MPIX_Host_event event;
    ucs_status_t status;

    status = ucs_gstream_event_create(&object);
    if (status != UCS_OK) {
        return status;
    }

    event = mpix_handle_create(&mpix_events, object);
    if (event == NULL) {
        (void)ucs_gstream_event_destroy(object);
        return UCS_ERR_NO_MEMORY;
    }

    *event_p = event;
    return UCS_OK;
}

int MPIX_Host_event_create(MPIX_Host_event *event)
{
    return mpix_stream_return("MPIX_Host_event_create",
                              (event == NULL) ? UCS_ERR_INVALID_PARAM :
                                                mpix_event_create(event));
}

int MPIX_Host_event_free(MPIX_Host_event *event)
{
    static const char func[] = "MPIX_Host_event_free";
    ucs_gstream_event_h object;
    ucs_status_t status;

    object = (event == NULL) ? NULL : mpix_handle_object(&mpix_events, *event);
    if (object == NULL) {
        return mpix_event_refuse(func, (event == NULL) ? NULL : *event);
    }

    status = ucs_gstream_event_destroy(object);
    if (status == UCS_OK) {
        mpix_handle_destroy(*event);
        *event = MPIX_HOST_EVENT_NULL;
    }
    return mpix_stream_return(func, status);
}

/* Checks the handles and enqueues one of the two commands. */
static int mpix_event_enqueue(const char *func, void *stream,
                              MPIX_Host_event event,
                              ucs_status_t (*enqueue)(ucs_gstream_h,
                                                      ucs_gstream_event_h))
{
    ucs_gstream_event_h object = mpix_handle_object(&mpix_events, event);

    if (!ucs_gstream_is_valid(stream)) {
        return mpix_stream_refuse(func, stream);
    }
    if (object == NULL) {
        return mpix_event_refuse(func, event);
    }
    return mpix_stream_return(func, enqueue(stream, object));
}

int MPIX_Host_event_record(void *stream, MPIX_Host_event event)
{
    return mpix_event_enqueue("MPIX_Host_event_record", stream, event,
                              ucs_gstream_enqueue_record);
}

int MPIX_Host_event_wait(void *stream, MPIX_Host_event event)
{
    return mpix_event_enqueue("MPIX_Host_event_wait", stream, event,
                              ucs_gstream_enqueue_wait_event);
}

int MPIX_Host_event_query(MPIX_Host_event event, int *flag)
{
    static const char func[]   = "MPIX_Host_event_query";
    ucs_gstream_event_h object = mpix_handle_object(&mpix_events, event);
    ucs_status_t status;

    if (object == NULL) {
        return mpix_event_refuse(func, event);
    }
    if (flag == NULL) {
        return mpix_stream_return(func, UCS_ERR_INVALID_PARAM);
    }

    status = ucs_gstream_event_query(object);
    if ((status == UCS_OK) || (status == UCS_INPROGRESS)) {
        *flag = (status == UCS_OK);
        return MPI_SUCCESS;
    }
    return mpix_stream_return(func, status);
}

int MPIX_Host_event_synchronize(MPIX_Host_event event)
{
    static const char func[]   = "MPIX_Host_event_synchronize";
    ucs_gstream_event_h object = mpix_handle_object(&mpix_events, event);

    if (object == NULL) {
        return mpix_event_refuse(func, event);
    }
    return mpix_stream_return(func, ucs_gstream_event_synchronize(object));
}

int MPIX_Host_event_elapsed(MPIX_Host_event start, MPIX_Host_event end,
                            double *seconds)
{
    static const char func[]  = "MPIX_Host_event_elapsed";
    ucs_gstream_event_h first = mpix_handle_object(&mpix_events, start);
    ucs_gstream_event_h last  = mpix_handle_object(&mpix_events, end);

    if ((first == NULL) || (last == NULL)) {
        return mpix_event_refuse(func, (first == NULL) ? start : end);
    }
    return mpix_stream_return(func,
                              ucs_gstream_event_elapsed(first, last, seconds));
}
