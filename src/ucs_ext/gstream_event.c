/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_event.c - points in streams that others wait for.
 *
 * Each recording of an event has a word of its own, since recordings on several
 * streams may pass in any order: a wait is for the word of the recording that
 * was the last one when the wait was enqueued. A recording is used again when
 * neither the event nor a command refers to it:
 *
 *            record             another record         commands have run
 *   (free) ---------> last one ----------------> old ----------------> (free)
 *
 * All commands are functions and waits, so events work on any type of stream.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "api/ucs_gstream_event.h"
#include "api/ucs_gstream_memory.h"
#include "gstream.h"
#include "gstream_fork.h"
#include "gstream_futex.h"
#include "gstream_pace.h"
#include "gstream_sleep.h"

#include <ucs/debug/log_def.h>

#include <pthread.h>
#include <stdlib.h>


typedef struct gstream_record gstream_record_t;

/* One recording. event is constant; stream and its id are while a command or
 * call uses it; next and refs are protected by the event's lock. */
struct gstream_record {
    ucs_gstream_event_h event;
    gstream_record_t    *next;   /* Of those that are free */
    ucs_gstream_h       stream;  /* Where it was enqueued, which may be gone */
    uint64_t            id;      /* Of that stream */
    unsigned            refs;    /* Of the event, if it is the last one, and of
                                    each command and call that uses it */
    uint64_t            time;    /* ns; written before the word becomes 1 */
    volatile uint64_t   *word;   /* 1 once the stream has got there; set to 0
                                    again while nobody refers to it */
};

/* An event. config and forks are constant, the rest is protected by lock. */
struct ucs_gstream_event {
    gstream_pace_config_t config;
    unsigned              forks; /* gstream_forks */
    pthread_mutex_t       lock;
    gstream_record_t      *last; /* NULL: never recorded */
    gstream_record_t      *free;
    unsigned              uses;  /* Commands and calls that are not over */
};


static int gstream_record_is_passed(const gstream_record_t *record)
{
    return __atomic_load_n(record->word, __ATOMIC_ACQUIRE) != 0;
}

/* Drops a reference; the caller holds the lock. */
static void gstream_record_put(gstream_record_t *record)
{
    ucs_gstream_event_h event = record->event;

    if (--record->refs == 0) {
        record->next = event->free;
        event->free  = record;
    }
}

/* For a command or a call; the caller holds the lock. */
static void gstream_record_use(gstream_record_t *record)
{
    ++record->refs;
    ++record->event->uses;
}

/* Undoes gstream_record_use(); the caller holds the lock. With the last use the
 * event may be destroyed as soon as it is unlocked. */
static void gstream_record_unuse(gstream_record_t *record)
{
    --record->event->uses;
    gstream_record_put(record);
}

/* The same without the lock; also a command, behind the wait for the word. */
static void gstream_record_release(void *arg)
{
    gstream_record_t *record  = arg;
    ucs_gstream_event_h event = record->event;

    pthread_mutex_lock(&event->lock);
    gstream_record_unuse(record);
    pthread_mutex_unlock(&event->lock);
}

/* The command of a recording. A thread that has seen it pass may destroy the
 * event, and finds it unused once it has the lock. */
static void gstream_record_pass(void *arg)
{
    gstream_record_t *record  = arg;
    ucs_gstream_event_h event = record->event;

    pthread_mutex_lock(&event->lock);
    record->time = gstream_time();
    __atomic_store_n(record->word, 1, __ATOMIC_RELEASE);
    ucs_gstream_wake(record->word);
    gstream_record_unuse(record);
    pthread_mutex_unlock(&event->lock);
}

/* A recording with one reference, the event's; NULL if there is no memory. The
 * caller holds the lock. */
static gstream_record_t *gstream_record_get(ucs_gstream_event_h event)
{
    gstream_record_t *record = event->free;

    if (record != NULL) {
        event->free = record->next;
    } else {
        record = malloc(sizeof(*record));
        if (record == NULL) {
            return NULL;
        }
        record->event = event;
        record->word  = ucs_gstream_word_get();
        if (record->word == NULL) {
            free(record);
            return NULL;
        }
    }

    record->refs  = 1;
    *record->word = 0;
    return record;
}

ucs_status_t ucs_gstream_event_create(ucs_gstream_event_h *event_p)
{
    ucs_gstream_event_h event;
    ucs_status_t status;

    if (event_p == NULL) {
        ucs_error("cannot create an event: NULL argument");
        return UCS_ERR_INVALID_PARAM;
    }

    event = malloc(sizeof(*event));
    if (event == NULL) {
        ucs_error("cannot create an event: no memory");
        return UCS_ERR_NO_MEMORY;
    }

    status = gstream_pace_config_read(&event->config);
    if (status != UCS_OK) {
        free(event);
        return status;
    }

    pthread_mutex_init(&event->lock, NULL);
    event->forks = gstream_forks;
    event->last  = NULL;
    event->free  = NULL;
    event->uses  = 0;
    *event_p     = event;
    return UCS_OK;
}

/* Checks the event of a call and locks it. UCS_ERR_NO_ELEM, and not locked, if
 * it was never recorded but has to be; UCS_ERR_UNSUPPORTED if it is of a
 * process that this one was forked from. */
static ucs_status_t gstream_event_lock(ucs_gstream_event_h event,
                                       int has_record)
{
    if (event == NULL) {
        ucs_error("NULL event");
        return UCS_ERR_INVALID_PARAM;
    }
    if (event->forks != gstream_forks) {
        return gstream_fork_refuse("event", event);
    }

    pthread_mutex_lock(&event->lock);
    if (has_record && (event->last == NULL)) {
        pthread_mutex_unlock(&event->lock);
        ucs_error("event %p was never recorded", (void*)event);
        return UCS_ERR_NO_ELEM;
    }
    return UCS_OK;
}

ucs_status_t ucs_gstream_event_destroy(ucs_gstream_event_h event)
{
    gstream_record_t *record;
    ucs_status_t status;
    int is_used;

    status = gstream_event_lock(event, 0);
    if (status != UCS_OK) {
        return status;
    }

    is_used = (event->uses > 0);
    if (!is_used && (event->last != NULL)) {
        gstream_record_put(event->last);
    }
    pthread_mutex_unlock(&event->lock);
    if (is_used) {
        ucs_debug("event %p: not destroyed, it is in use", (void*)event);
        return UCS_ERR_BUSY;
    }

    while ((record = event->free) != NULL) {
        event->free = record->next;
        ucs_gstream_word_put(record->word);
        free(record);
    }
    pthread_mutex_destroy(&event->lock);
    free(event);
    return UCS_OK;
}

/* Enqueues a new recording, which becomes the last one. The lock is not held
 * meanwhile: a stream of a device may have no room until it has run functions
 * that take the lock. */
static ucs_status_t gstream_event_record(ucs_gstream_event_h event,
                                         gstream_record_t *record)
{
    ucs_status_t status;

    status = ucs_gstream_enqueue_func(record->stream, gstream_record_pass,
                                      record);
    pthread_mutex_lock(&event->lock);
    if (status != UCS_OK) {
        gstream_record_unuse(record);
        gstream_record_put(record);
    } else {
        if (event->last != NULL) {
            gstream_record_put(event->last);
        }
        event->last = record;
    }
    pthread_mutex_unlock(&event->lock);
    return status;
}

ucs_status_t ucs_gstream_enqueue_record(ucs_gstream_h stream,
                                        ucs_gstream_event_h event)
{
    gstream_record_t *record;
    ucs_status_t status;

    status = gstream_event_lock(event, 0);
    if (status != UCS_OK) {
        return status;
    }

    record = gstream_record_get(event);
    if (record != NULL) {
        record->stream = stream;
        record->id     = (stream != NULL) ? stream->id : 0;
        gstream_record_use(record);
    }
    pthread_mutex_unlock(&event->lock);
    if (record == NULL) {
        ucs_error("event %p: no memory", (void*)event);
        return UCS_ERR_NO_MEMORY;
    }
    return gstream_event_record(event, record);
}

/* Enqueues the wait for a recording that the caller uses. */
static ucs_status_t gstream_record_wait(gstream_record_t *record,
                                        ucs_gstream_h stream)
{
    const ucs_gstream_cmd_t cmds[] = {
        {.type = UCS_GSTREAM_CMD_WAIT64, .u.word = {record->word, 1}},
        {.type = UCS_GSTREAM_CMD_FUNC,
         .u.func = {gstream_record_release, record}}
    };

    return ucs_gstream_enqueue(stream, cmds, 2);
}

ucs_status_t ucs_gstream_enqueue_wait_event(ucs_gstream_h stream,
                                            ucs_gstream_event_h event)
{
    gstream_record_t *record;
    ucs_status_t status;

    status = gstream_event_lock(event, 1);
    if (status != UCS_OK) {
        return status;
    }

    record = event->last;
    gstream_record_use(record);
    pthread_mutex_unlock(&event->lock);

    status = gstream_record_wait(record, stream);
    if (status != UCS_OK) {
        gstream_record_release(record);
    }
    return status;
}

/* When the last recording was passed, in ns. UCS_INPROGRESS if it was not. */
static ucs_status_t gstream_event_time(ucs_gstream_event_h event,
                                       uint64_t *time_p)
{
    ucs_status_t status;

    status = gstream_event_lock(event, 1);
    if (status != UCS_OK) {
        return status;
    }

    if (gstream_record_is_passed(event->last)) {
        *time_p = event->last->time;
    } else {
        status = UCS_INPROGRESS;
    }
    pthread_mutex_unlock(&event->lock);
    return status;
}

ucs_status_t ucs_gstream_event_query(ucs_gstream_event_h event)
{
    uint64_t time;

    return gstream_event_time(event, &time);
}

ucs_status_t ucs_gstream_event_elapsed(ucs_gstream_event_h start,
                                       ucs_gstream_event_h end,
                                       double *seconds_p)
{
    uint64_t start_time, end_time;
    ucs_status_t status;

    if (seconds_p == NULL) {
        ucs_error("cannot tell the time between events: NULL argument");
        return UCS_ERR_INVALID_PARAM;
    }

    status = gstream_event_time(start, &start_time);
    if (status == UCS_OK) {
        status = gstream_event_time(end, &end_time);
    }
    if (status == UCS_OK) {
        *seconds_p = (double)(int64_t)(end_time - start_time) /
                     GSTREAM_NSEC_PER_SEC;
    }
    return status;
}

/* Whether a recording that the caller uses has run: UCS_OK, UCS_INPROGRESS, or
 * why the caller cannot wait for it. A stream that is gone and has not run it
 * was lost. No lock is held: a runtime may wait for a function of a stream, and
 * that for the lock. */
static ucs_status_t gstream_record_test(const gstream_record_t *record)
{
    ucs_status_t status;

    if (gstream_record_is_passed(record)) {
        return UCS_OK;
    }
    if (!gstream_ask_begin(record->stream, record->id)) {
        return gstream_record_is_passed(record) ? UCS_OK : UCS_ERR_IO_ERROR;
    }
    status = record->stream->ops->synchronize(record->stream, 0);
    gstream_ask_end(record->stream);
    return status;
}

ucs_status_t ucs_gstream_event_synchronize(ucs_gstream_event_h event)
{
    gstream_record_t *record;
    gstream_pace_t pace;
    ucs_status_t status;

    status = gstream_event_lock(event, 1);
    if (status != UCS_OK) {
        return status;
    }

    record = event->last;
    gstream_record_use(record);
    pthread_mutex_unlock(&event->lock);

    gstream_pace_begin_yield(&pace, &event->config);
    status = gstream_record_test(record);
    while ((status == UCS_INPROGRESS) && !gstream_record_is_passed(record)) {
        if (!gstream_pace_step(&pace)) {
            gstream_sleep_until(record->word, 1, GSTREAM_SLEEP_64, NULL);
            status = gstream_record_test(record);
        }
    }
    gstream_record_release(record);
    return (status == UCS_INPROGRESS) ? UCS_OK : status;
}
