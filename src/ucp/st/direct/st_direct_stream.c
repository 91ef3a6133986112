/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_stream.c - the direct lane: when a stream moves its open uses, and
 * how peers know.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "direct/st_direct.h"
#include "core/st_log.h"
#include "core/st_op.h"

#include <stdlib.h>

/* How often a thread moves what it can before it leaves the rest to the service
 * thread: it has another stream to run */
#define UCP_ST_DIRECT_PARK_MOVES 16

static int ucp_st_direct_stream_has_open(const ucp_st_direct_stream_t *stream)
{
    return __atomic_load_n(&stream->num_open, __ATOMIC_RELAXED) > 0;
}

/* Move what can be moved now: how many moves; -1 if another thread does. Where
 * that one may have looked already, this one waits for the lock and looks
 * behind it (`is_last`). */
static int ucp_st_direct_stream_move(ucp_st_direct_stream_t *stream,
                                     ucp_st_direct_mover_t mover, int is_last)
{
    unsigned count;

    if (!ucp_st_direct_stream_has_open(stream)) {
        return 0;
    }
    if (is_last) {
        (void)pthread_mutex_lock(&stream->lock);
    } else if (pthread_mutex_trylock(&stream->lock) != 0) {
        return -1;
    }
    count = ucp_st_direct_moveall(stream, mover);
    (void)pthread_mutex_unlock(&stream->lock);
    return (int)count;
}

int ucp_st_direct_stream_relieve(ucp_st_direct_stream_t *stream)
{
    return __atomic_load_n(&stream->record->is_attended, __ATOMIC_ACQUIRE) ?
           0 : ucp_st_direct_stream_move(stream, UCP_ST_DIRECT_PROXY, 0);
}

void ucp_st_direct_stream_notify(ucp_st_direct_stream_t *stream)
{
    ucp_st_direct_op_t *direct;

    if (!ucp_st_direct_stream_has_open(stream)) {
        return;
    }
    (void)pthread_mutex_lock(&stream->lock);
    ucs_list_for_each(direct, &stream->open, list) {
        if (ucp_st_direct_needs_notify(direct)) {
            ucp_st_direct_notify(direct);
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

/* Fill in the wait record. Called by the stream's own thread, or by the one
 * thread of a group that calls its helper. When the stream ceases to attend,
 * the caller looks once more, behind the fence: it sees what a peer moved
 * before the peer saw these stores. If nothing is open no look is needed: only
 * this stream opens a use, and `begun`, which the peer reads, is stored behind
 * these. */
static void ucp_st_direct_stream_set(ucp_st_direct_stream_t *stream,
                                     int is_attended, int is_parked)
{
    ucp_st_direct_record_t *record = stream->record;

    if ((record->is_attended == (uint32_t)is_attended) &&
        (record->is_parked == (uint32_t)is_parked)) {
        return;
    }
    __atomic_store_n(&record->is_attended, is_attended, __ATOMIC_RELEASE);
    __atomic_store_n(&record->is_parked, is_parked, __ATOMIC_RELEASE);
    if (!is_attended && ucp_st_direct_stream_has_open(stream)) {
        __sync_synchronize();
    }
}

/* A peer that moves something notifies the stream from when it may sleep until
 * its wait is over */
static void ucp_st_direct_stream_count_sleeper(ucp_st_direct_stream_t *stream,
                                               int is_counted)
{
    if (stream->is_counted != is_counted) {
        stream->is_counted = is_counted;
        __atomic_fetch_add(&stream->segment->sleepers, is_counted ? 1 : -1,
                           __ATOMIC_SEQ_CST);
    }
}

/* Leave all its uses to the service thread, which peers notify whenever they
 * have moved something */
static void ucp_st_direct_stream_park(ucp_st_direct_stream_t *stream)
{
    ucp_st_direct_stream_set(stream, 0, 1);
    ucp_st_direct_stream_count_sleeper(stream, 1);
}

/* The stream does not look for the end of its copies: the service thread does
 */
static void ucp_st_direct_stream_wake_copying(ucp_st_direct_stream_t *stream)
{
    if (ucp_st_direct_stream_is_copying(stream)) {
        ucp_st_direct_stream_wake(stream);
    }
}

/* Called for the stream while it waits; non-zero if it has moved something */
static int ucp_st_direct_stream_help(void *arg, ucs_gstream_help_t when)
{
    ucp_st_direct_stream_t *stream = arg;
    unsigned moves                 = 0;

    switch (when) {
    case UCS_GSTREAM_HELP_POLL:
        ucp_st_direct_stream_set(stream, 1, 0);
        return ucp_st_direct_stream_move(stream, UCP_ST_DIRECT_STREAM, 0) > 0;
    case UCS_GSTREAM_HELP_SLEEP:
        /* From here on the stream is notified. What it cannot move now needs a
         * peer. If it has moved something it does not sleep yet. */
        ucp_st_direct_stream_set(stream, 1, 0);
        ucp_st_direct_stream_count_sleeper(stream, 1);
        if (ucp_st_direct_stream_move(stream, UCP_ST_DIRECT_STREAM, 1)) {
            return 1;
        }
        if (!ucp_st_direct_stream_is_copying(stream)) {
            ucp_st_direct_stream_notify(stream);
            break;
        }
        /* No peer tells of the end of an own copy: the service thread looks
         * for it, and wakes the stream as it does a parked one */
        /* Fall through */
    case UCS_GSTREAM_HELP_PARK:
        /* The thread that has polled for the stream goes on to another one, or
         * sleeps, but not on the stream's wait record. A move wakes the stream,
         * as that of any other thread does. */
        ucp_st_direct_stream_park(stream);
        while (ucp_st_direct_stream_move(stream, UCP_ST_DIRECT_PARKED, 1)) {
            if (++moves == UCP_ST_DIRECT_PARK_MOVES) {
                ucp_st_direct_stream_wake(stream);
                break;
            }
        }
        ucp_st_direct_stream_wake_copying(stream);
        ucp_st_direct_stream_notify(stream);
        break;
    case UCS_GSTREAM_HELP_END:
        ucp_st_direct_stream_set(stream, 0, 0);
        ucp_st_direct_stream_count_sleeper(stream, 0);
        (void)ucp_st_direct_stream_move(stream, UCP_ST_DIRECT_STREAM, 1);
        ucp_st_direct_stream_wake_copying(stream);
        break;
    }
    return 0;
}

ucs_status_t ucp_st_direct_stream_init(ucp_st_direct_stream_t *stream,
                                       ucp_st_worker_h worker,
                                       ucs_gstream_h handle)
{
    ucp_st_direct_seg_t *seg = &ucp_st_direct_dev(worker)->seg;

    stream->record = ucp_st_direct_seg_get_record(seg);
    if (stream->record == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }
    (void)pthread_mutex_init(&stream->lock, NULL);
    ucs_list_head_init(&stream->open);
    stream->worker        = worker;
    stream->handle        = handle;
    stream->refs          = 0;
    stream->is_served     = (handle != NULL) &&
                            !(ucs_gstream_caps(handle) & UCS_GSTREAM_CAP_HELP);
    stream->segment       = seg->map->address;
    stream->record_offset = UCS_PTR_BYTE_DIFF(stream->segment, stream->record);
    stream->helper.func   = ucp_st_direct_stream_help;
    stream->helper.arg    = stream;
    stream->helper.notify = &stream->record->notify;
    if (stream->is_served) {
        ucp_st_direct_stream_park(stream);
    }
    return UCS_OK;
}

void ucp_st_direct_stream_cleanup(ucp_st_direct_stream_t *stream)
{
    ucp_st_direct_stream_set(stream, 0, 0);
    ucp_st_direct_stream_count_sleeper(stream, 0);
    (void)pthread_mutex_destroy(&stream->lock);
    ucp_st_direct_seg_put_record(&ucp_st_direct_dev(stream->worker)->seg,
                                 stream->record);
}

ucp_st_op_t *ucp_st_direct_stream_broken(ucp_st_direct_stream_t *stream,
                                         ucs_status_t *status_p)
{
    ucp_st_op_t *op = NULL;
    ucp_st_direct_op_t *direct;

    (void)pthread_mutex_lock(&stream->lock);
    ucs_list_for_each(direct, &stream->open, list) {
        if (direct->broken != UCS_OK) {
            *status_p      = direct->broken;
            direct->broken = UCS_OK;
            op             = direct->op;
            break;
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
    return op;
}

void ucp_st_direct_stream_count(ucp_st_direct_stream_t *stream,
                                ucp_st_stats_t *stats)
{
    (void)pthread_mutex_lock(&stream->lock);
    stats->copies  += stream->copies;
    stats->proxied += stream->proxied;
    stats->wakeups += __atomic_load_n(&stream->wakeups, __ATOMIC_RELAXED);
    (void)pthread_mutex_unlock(&stream->lock);
}

/* What the queues of a stream share, made for the first one; without memory, or
 * room in the segment, `parked`. The worker's lock is held. */
static ucp_st_direct_stream_t *
ucp_st_direct_stream_get(ucp_st_worker_h worker, ucs_gstream_h handle)
{
    ucp_st_direct_dev_t *dev = ucp_st_direct_dev(worker);
    ucp_st_direct_stream_t *stream;

    ucs_list_for_each(stream, &dev->streams, list) {
        if (stream->handle == handle) {
            return stream;
        }
    }
    stream = calloc(1, sizeof(*stream));
    if ((stream != NULL) &&
        (ucp_st_direct_stream_init(stream, worker, handle) == UCS_OK)) {
        ucs_list_add_tail(&dev->streams, &stream->list);
        return stream;
    }
    free(stream);
    ucs_diag("stream %p: no room in shared memory (UCX_ST_DIRECT_SIZE): the "
             "service thread moves its messages", handle);
    ucp_st_direct_stream_park(&dev->parked);
    return &dev->parked;
}

void ucp_st_direct_queue_init(ucp_st_queue_h queue)
{
    ucp_st_direct_stream_t *stream;

    stream = ucp_st_direct_stream_get(queue->worker, queue->stream);
    ++stream->refs;
    if ((stream->handle != NULL) && !stream->is_served) {
        queue->helper = &stream->helper;
    }
    *(ucp_st_direct_stream_t**)
            queue->priv[UCP_ST_PRIV_LANES + UCP_ST_LANE_DIRECT] = stream;
}

/* The operations of the last queue have left the stream */
void ucp_st_direct_queue_cleanup(ucp_st_queue_h queue)
{
    ucp_st_direct_stream_t *stream = ucp_st_direct_queue(queue);
    ucp_st_worker_h worker         = queue->worker;

    if ((--stream->refs > 0) ||
        (stream == &ucp_st_direct_dev(worker)->parked)) {
        return;
    }
    ucp_st_direct_stream_count(stream, &worker->stats);
    ucs_list_del(&stream->list);
    ucp_st_direct_stream_cleanup(stream);
    free(stream);
}
