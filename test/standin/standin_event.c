/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_event.c - events: an event is the place of its last record in a
 * stream, and the time at which the stream came there.
 */
#include "standin.h"

#include <stdlib.h>


static standin_event_t *standin_events;


void standin_event_put(standin_event_t *event)
{
    if (--event->refs == 0) {
        if (event->stream != NULL) {
            standin_stream_put(event->stream);
        }
        free(event);
    }
}

void standin_event_end_ctx(const standin_ctx_t *ctx)
{
    standin_event_t **event_p = &standin_events;
    standin_event_t *event;

    while ((event = *event_p) != NULL) {
        if (event->ctx == ctx) {
            *event_p = event->next;
            standin_event_put(event);
        } else {
            event_p = &event->next;
        }
    }
}

static standin_event_t *standin_event_find(const void *handle)
{
    standin_event_t *event = standin_events;

    while ((event != NULL) && (event != handle)) {
        event = event->next;
    }
    return event;
}

/* A call with an event; takes the lock if it returns STANDIN_OK */
static int standin_enter_event(void *handle, standin_event_t **event_p)
{
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter_any(&ctx));
    *event_p = standin_event_find(handle);
    err      = (*event_p == NULL) ? STANDIN_ERR_HANDLE :
               standin_devices[(*event_p)->device].error;
    return (err == STANDIN_OK) ? STANDIN_OK : standin_leave(err);
}

int standin_event_create(int has_time, void **handle)
{
    standin_event_t *event;
    standin_ctx_t *ctx;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    event = calloc(1, sizeof(*event));
    if (event == NULL) {
        return standin_leave(STANDIN_ERR_NO_MEMORY);
    }
    event->ctx      = ctx;
    event->device   = ctx->device;
    event->has_time = has_time;
    event->refs     = 1;
    event->next     = standin_events;
    standin_events  = event;
    *handle         = event;
    return standin_leave(STANDIN_OK);
}

int standin_event_destroy(void *handle)
{
    standin_event_t **event_p = &standin_events;
    standin_event_t *event;
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter_any(&ctx));
    while ((*event_p != NULL) && (*event_p != handle)) {
        event_p = &(*event_p)->next;
    }
    event = *event_p;
    if (event == NULL) {
        return standin_leave(STANDIN_ERR_HANDLE);
    }
    *event_p = event->next;
    err      = standin_devices[event->device].error;
    standin_event_put(event);
    return standin_leave(err);
}

static int standin_event_put_into(standin_event_t *event,
                                  standin_stream_t *stream)
{
    standin_cmd_t *cmd;
    int is_captured = (stream->capture == STANDIN_CAPTURE_ACTIVE);

    if (event->ctx != stream->ctx) {
        return STANDIN_ERR_HANDLE;
    }
    cmd = standin_cmd_new(stream, STANDIN_CMD_RECORD, 0);
    if (cmd == NULL) {
        return STANDIN_ERR_NO_MEMORY;
    }
    cmd->event = event;
    ++event->refs;
    STANDIN_TRY(standin_enqueue(cmd));
    event->is_captured = is_captured;
    if (!is_captured) {
        ++stream->refs;
        if (event->stream != NULL) {
            standin_stream_put(event->stream);
        }
        event->stream = stream;
        event->seq    = stream->enqueued;
    }
    return STANDIN_OK;
}

int standin_event_record(void *handle, void *stream_handle)
{
    standin_event_t *event;
    standin_stream_t *stream;

    STANDIN_TRY(standin_enter_stream(stream_handle, &stream));
    event = standin_event_find(handle);
    return standin_leave((event == NULL) ? STANDIN_ERR_HANDLE :
                         standin_event_put_into(event, stream));
}

static int standin_event_state(const standin_event_t *event)
{
    if (event->is_captured) {
        return STANDIN_ERR_CAPTURED;
    }
    return ((event->stream == NULL) || (event->stream->done >= event->seq)) ?
           STANDIN_OK : STANDIN_ERR_NOT_READY;
}

int standin_event_query(void *handle)
{
    standin_event_t *event;
    int err = standin_enter_event(handle, &event);

    return (err != STANDIN_OK) ? err :
           standin_leave(standin_event_state(event));
}

int standin_event_sync(void *handle)
{
    standin_event_t *event;
    int err;

    STANDIN_TRY(standin_enter_event(handle, &event));
    err = standin_event_state(event);
    if (err == STANDIN_ERR_NOT_READY) {
        err = standin_wait(event->stream, event->seq);
    }
    return standin_leave(err);
}

int standin_event_time(void *start_handle, void *end_handle, float *ms)
{
    standin_event_t *start, *end;
    int err;

    STANDIN_TRY(standin_enter_event(start_handle, &start));
    end = standin_event_find(end_handle);
    if ((end == NULL) || !start->has_time || !end->has_time ||
        (start->stream == NULL) || (end->stream == NULL)) {
        return standin_leave(STANDIN_ERR_HANDLE);
    }
    err = standin_event_state(start);
    if (err == STANDIN_OK) {
        err = standin_event_state(end);
    }
    if (err == STANDIN_OK) {
        *ms = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
    }
    return standin_leave(err);
}

int standin_stream_wait_event(void *stream_handle, void *handle)
{
    standin_event_t *event;
    standin_stream_t *stream;
    int err = STANDIN_OK;

    STANDIN_TRY(standin_enter_stream(stream_handle, &stream));
    event = standin_event_find(handle);
    if (event == NULL) {
        err = STANDIN_ERR_HANDLE;
    } else if (event->is_captured) {
        err = STANDIN_ERR_ISOLATION;
    } else if (stream->capture != STANDIN_CAPTURE_NONE) {
        ++stream->nodes;
    } else if (event->stream != NULL) {
        err = standin_push_order(stream);
        if (err == STANDIN_OK) {
            err = standin_push_after(stream, event->stream, event->seq);
        }
    }
    return standin_leave(err);
}
