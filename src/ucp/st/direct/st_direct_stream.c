/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_stream.c - the direct lane: when a stream moves its open uses, and
 * how peers know.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "direct/st_direct.h"
#include "direct/st_direct_dev.h"
#include "core/st_op.h"
#include "core/st_worker.h"

/* How often a thread moves what it can before it leaves the rest to the service
 * thread: it has another stream to run */
#define UCP_ST_DIRECT_PARK_MOVES 16

static int ucp_st_direct_stream_has_open(const ucp_st_direct_stream_t *stream)
{
    return __atomic_load_n(&stream->num_open, __ATOMIC_RELAXED) > 0;
}

int ucp_st_direct_stream_poll(ucp_st_direct_stream_t *stream,
                              ucp_st_direct_mover_t mover)
{
    unsigned count;

    if (!ucp_st_direct_stream_has_open(stream) ||
        ((mover == UCP_ST_DIRECT_HOST) &&
         __atomic_load_n(&stream->record->is_attended, __ATOMIC_ACQUIRE)) ||
        (pthread_mutex_trylock(&stream->lock) != 0)) {
        return 0;
    }
    count = ucp_st_direct_moveall(stream, mover);
    (void)pthread_mutex_unlock(&stream->lock);
    return count > 0;
}

/* The same behind another mover, which may have looked already */
static int ucp_st_direct_stream_move(ucp_st_direct_stream_t *stream,
                                     ucp_st_direct_mover_t mover)
{
    unsigned count;

    if (!ucp_st_direct_stream_has_open(stream)) {
        return 0;
    }
    (void)pthread_mutex_lock(&stream->lock);
    count = ucp_st_direct_moveall(stream, mover);
    (void)pthread_mutex_unlock(&stream->lock);
    return count > 0;
}

/* The lock is held */
static void ucp_st_direct_stream_notify_peers(ucp_st_direct_stream_t *stream)
{
    ucp_st_direct_op_t *direct;

    ucs_list_for_each(direct, &stream->open, list) {
        if (ucp_st_direct_needs_notify(direct)) {
            ucp_st_direct_dev_notify(direct->op->peer);
        }
    }
}

void ucp_st_direct_stream_notify(ucp_st_direct_stream_t *stream)
{
    if (ucp_st_direct_stream_has_open(stream)) {
        (void)pthread_mutex_lock(&stream->lock);
        ucp_st_direct_stream_notify_peers(stream);
        (void)pthread_mutex_unlock(&stream->lock);
    }
}

unsigned ucp_st_direct_stream_relieve(ucp_st_direct_stream_t *stream,
                                      int is_last, int *is_busy_p)
{
    const ucp_st_direct_record_t *record = stream->record;
    unsigned count;

    if (__atomic_load_n(&record->is_attended, __ATOMIC_ACQUIRE) ||
        !ucp_st_direct_stream_has_open(stream)) {
        return 0;
    }
    if (pthread_mutex_trylock(&stream->lock) != 0) {
        *is_busy_p = 1;
        return 0;
    }
    count = ucp_st_direct_moveall(stream, UCP_ST_DIRECT_THREAD);
    if ((count == 0) && is_last &&
        __atomic_load_n(&record->is_parked, __ATOMIC_ACQUIRE)) {
        ucp_st_direct_stream_notify_peers(stream);
    }
    (void)pthread_mutex_unlock(&stream->lock);
    return count;
}

/* Fill in the wait record. In the stream's own thread, or in the one thread of
 * a group that calls its helper. When the stream ceases to attend, the fence
 * comes before the look that is taken next, which sees what a peer moved before
 * it knew that. There is no look where nothing is open: only this stream opens
 * anything, and what it opens tells the peer `begun`, which is stored behind
 * these. */
static void ucp_st_direct_stream_tell(ucp_st_direct_stream_t *stream,
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

void ucp_st_direct_stream_park(ucp_st_direct_stream_t *stream)
{
    ucp_st_direct_stream_tell(stream, 0, 1);
    ucp_st_direct_stream_count_sleeper(stream, 1);
}

/* Called for the stream while it waits; whether it has moved something */
static int ucp_st_direct_stream_help(void *arg, ucs_gstream_help_t when)
{
    ucp_st_direct_stream_t *stream = arg;
    unsigned moves                 = 0;

    switch (when) {
    case UCS_GSTREAM_HELP_POLL:
        ucp_st_direct_stream_tell(stream, 1, 0);
        return ucp_st_direct_stream_poll(stream, UCP_ST_DIRECT_STREAM);
    case UCS_GSTREAM_HELP_SLEEP:
        /* From here on the stream is notified. What it cannot move now needs a
         * peer. If it has moved something it does not sleep yet. */
        ucp_st_direct_stream_tell(stream, 1, 0);
        ucp_st_direct_stream_count_sleeper(stream, 1);
        if (ucp_st_direct_stream_move(stream, UCP_ST_DIRECT_STREAM)) {
            return 1;
        }
        ucp_st_direct_stream_notify(stream);
        break;
    case UCS_GSTREAM_HELP_PARK:
        /* The thread that has polled for the stream goes on to another one, or
         * sleeps, but not on the stream's wait record. A move wakes the stream,
         * as that of any other thread does. */
        ucp_st_direct_stream_park(stream);
        while (ucp_st_direct_stream_move(stream, UCP_ST_DIRECT_PARKED)) {
            if (++moves == UCP_ST_DIRECT_PARK_MOVES) {
                ucp_st_direct_dev_wake(stream->worker);
                break;
            }
        }
        ucp_st_direct_stream_notify(stream);
        break;
    case UCS_GSTREAM_HELP_END:
        ucp_st_direct_stream_tell(stream, 0, 0);
        ucp_st_direct_stream_count_sleeper(stream, 0);
        (void)ucp_st_direct_stream_move(stream, UCP_ST_DIRECT_STREAM);
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
    stream->segment       = seg->map->address;
    stream->record_offset = UCS_PTR_BYTE_DIFF(stream->segment, stream->record);
    stream->helper.func   = ucp_st_direct_stream_help;
    stream->helper.arg    = stream;
    stream->helper.notify = &stream->record->notify;
    return UCS_OK;
}

void ucp_st_direct_stream_cleanup(ucp_st_direct_stream_t *stream)
{
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
    (void)pthread_mutex_unlock(&stream->lock);
}
