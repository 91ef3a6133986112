/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_stream.c - the direct lane: who attends to the open uses of a
 * stream, and how peers know.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_direct.h"
#include "st_direct_dev.h"
#include "st_op.h"

static int ucp_st_direct_stream_has_open(const ucp_st_direct_stream_t *stream)
{
    return __atomic_load_n(&stream->num_open, __ATOMIC_RELAXED) > 0;
}

int ucp_st_direct_stream_poll(ucp_st_direct_stream_t *stream,
                              ucp_st_direct_mover_t mover)
{
    unsigned count;

    if (!ucp_st_direct_stream_has_open(stream) ||
        (pthread_mutex_trylock(&stream->lock) != 0)) {
        return 0;
    }
    count = ucp_st_direct_moveall(stream, mover);
    (void)pthread_mutex_unlock(&stream->lock);
    return count > 0;
}

/* The same, after whoever does it now */
static int ucp_st_direct_stream_serve(ucp_st_direct_stream_t *stream,
                                      ucp_st_direct_mover_t mover)
{
    unsigned count;

    (void)pthread_mutex_lock(&stream->lock);
    count = ucp_st_direct_moveall(stream, mover);
    (void)pthread_mutex_unlock(&stream->lock);
    return count > 0;
}

unsigned ucp_st_direct_stream_relieve(ucp_st_direct_stream_t *stream,
                                      int *is_busy_p)
{
    unsigned count;

    if (__atomic_load_n(&stream->desk->is_attended, __ATOMIC_ACQUIRE) ||
        !ucp_st_direct_stream_has_open(stream)) {
        return 0;
    }
    if (pthread_mutex_trylock(&stream->lock) != 0) {
        *is_busy_p = 1;
        return 0;
    }
    count = ucp_st_direct_moveall(stream, UCP_ST_DIRECT_THREAD);
    (void)pthread_mutex_unlock(&stream->lock);
    return count;
}

void ucp_st_direct_stream_kick(ucp_st_direct_stream_t *stream)
{
    ucp_st_direct_op_t *direct;

    if (!ucp_st_direct_stream_has_open(stream)) {
        return;
    }
    (void)pthread_mutex_lock(&stream->lock);
    ucs_list_for_each(direct, &stream->open, list) {
        if (ucp_st_direct_needs_kick(direct)) {
            ucp_st_direct_dev_kick(direct->op->peer);
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

/* What peers are to know of the stream. Its own thread, or one that holds its
 * group's lock. When it ceases to attend, the fence comes before the look that
 * is taken next, which sees what a peer moved before it knew that. Nothing is
 * looked at where nothing is open: only this thread opens anything, and what it
 * opens tells the peer `begun`, which is stored behind these. */
static void ucp_st_direct_stream_tell(ucp_st_direct_stream_t *stream,
                                      int is_attended, int is_parked)
{
    ucp_st_direct_desk_t *desk = stream->desk;

    if ((desk->is_attended == (uint32_t)is_attended) &&
        (desk->is_parked == (uint32_t)is_parked)) {
        return;
    }
    __atomic_store_n(&desk->is_attended, is_attended, __ATOMIC_RELEASE);
    __atomic_store_n(&desk->is_parked, is_parked, __ATOMIC_RELEASE);
    if (!is_attended && ucp_st_direct_stream_has_open(stream)) {
        __sync_synchronize();
    }
}

/* Who moves something calls the stream from when it may sleep until its wait is
 * over */
static void ucp_st_direct_stream_rest(ucp_st_direct_stream_t *stream,
                                      int is_sleepy)
{
    if (stream->is_sleepy != is_sleepy) {
        stream->is_sleepy = is_sleepy;
        __atomic_fetch_add(&stream->segment->sleepers, is_sleepy ? 1 : -1,
                           __ATOMIC_SEQ_CST);
    }
}

void ucp_st_direct_stream_park(ucp_st_direct_stream_t *stream)
{
    ucp_st_direct_stream_tell(stream, 0, 1);
    ucp_st_direct_stream_rest(stream, 1);
}

/* The stream waits, for whatever word, and may not look again soon: from here
 * on it is called. What is left then needs a peer. It does not do to leave that
 * to who has the lock just now, and has looked already. Whether anything was
 * moved. */
static int ucp_st_direct_stream_leave(ucp_st_direct_stream_t *stream,
                                      ucp_st_direct_mover_t mover)
{
    int has_moved = 0;

    ucp_st_direct_stream_rest(stream, 1);
    while (ucp_st_direct_stream_has_open(stream) &&
           ucp_st_direct_stream_serve(stream, mover)) {
        has_moved = 1; /* until nothing is left to move */
    }
    ucp_st_direct_stream_kick(stream);
    return has_moved;
}

/* Called for the stream while it waits; whether it has moved something */
static int ucp_st_direct_stream_help(void *arg, ucs_gstream_help_t when)
{
    ucp_st_direct_stream_t *stream = arg;

    switch (when) {
    case UCS_GSTREAM_HELP_POLL:
        ucp_st_direct_stream_tell(stream, 1, 0);
        return ucp_st_direct_stream_poll(stream, UCP_ST_DIRECT_STREAM);
    case UCS_GSTREAM_HELP_LATE:
        ucp_st_direct_stream_kick(stream);
        break;
    case UCS_GSTREAM_HELP_LAST:
        ucp_st_direct_stream_tell(stream, 1, 0);
        return ucp_st_direct_stream_leave(stream, UCP_ST_DIRECT_STREAM);
    case UCS_GSTREAM_HELP_PARK:
        /* A move wakes it, as that of any other thread does */
        ucp_st_direct_stream_tell(stream, 0, 1);
        (void)ucp_st_direct_stream_leave(stream, UCP_ST_DIRECT_HOST);
        break;
    case UCS_GSTREAM_HELP_END:
        ucp_st_direct_stream_tell(stream, 0, 0);
        ucp_st_direct_stream_rest(stream, 0);
        if (ucp_st_direct_stream_has_open(stream)) {
            (void)ucp_st_direct_stream_serve(stream, UCP_ST_DIRECT_STREAM);
        }
        break;
    }
    return 0;
}

ucs_status_t ucp_st_direct_stream_init(ucp_st_direct_stream_t *stream,
                                       ucp_st_direct_seg_t *seg,
                                       ucs_gstream_h handle)
{
    stream->desk = ucp_st_direct_seg_get_desk(seg);
    if (stream->desk == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }
    (void)pthread_mutex_init(&stream->lock, NULL);
    ucs_list_head_init(&stream->open);
    stream->handle      = handle;
    stream->refs        = 0;
    stream->segment     = seg->map->address;
    stream->desk_offset = UCS_PTR_BYTE_DIFF(stream->segment, stream->desk);
    stream->helper.func = ucp_st_direct_stream_help;
    stream->helper.arg  = stream;
    stream->helper.bell = &stream->desk->bell;
    return UCS_OK;
}

void ucp_st_direct_stream_cleanup(ucp_st_direct_stream_t *stream,
                                  ucp_st_direct_seg_t *seg)
{
    (void)pthread_mutex_destroy(&stream->lock);
    ucp_st_direct_seg_put_desk(seg, stream->desk);
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
