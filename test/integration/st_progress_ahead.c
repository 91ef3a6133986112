/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_progress_ahead.c - P4 and P5: hosts far ahead of their streams, and of the
 * hosts of their peers.
 */
#include "st_any.h"
#include "st_progress.h"

#include <stdio.h>
#include <string.h>

#define AHEAD_OPS    64
#define AHEAD_STARTS 10000


/** Many messages of a pair of ranks. */
typedef struct {
    st_rank_t      *me;
    int            is_a;
    size_t         count;
    st_msg_t       msgs[AHEAD_OPS];
    ucs_gstream_h  stream;
    ucp_st_queue_h queue;
} ahead_t;

/* With fewer pairs than asked for the program is still one, if any is left */
static void ahead_some(st_rank_t *me, size_t matched, size_t count)
{
    if (matched == count) {
        return;
    }
    printf("rank %d: %zu of %zu operations found a lane\n", me->index, matched,
           count);
    if (st_progress_options(me)->needs_all) {
        st_rank_fail(me, "%zu of %zu operations found no lane", count - matched,
                     count);
    }
}

static int ahead_init(st_rank_t *me, ahead_t *ahead, int from)
{
    size_t i;

    memset(ahead, 0, sizeof(*ahead));
    if (st_progress_partner(me) < 0) {
        return 0;
    }
    ahead->me     = me;
    ahead->is_a   = (me->index % 2) == 0;
    ahead->stream = st_rank_stream(me, 0);
    ahead->queue  = st_rank_queue(me, &me->node, 0);
    for (i = 0; i < AHEAD_OPS; ++i) {
        st_progress_pair(me, &ahead->msgs[i], from, i);
    }
    st_rank_at(me, "matching");
    ahead->count = st_msg_match_some(me, ahead->msgs, AHEAD_OPS);
    ahead_some(me, ahead->count, AHEAD_OPS);
    return 1;
}

/* As many as a stream takes before the peer begins, which is behind them */
static int p4_iterations(const st_rank_t *me, int iterations)
{
    return (int)st_any_ahead((unsigned)st_progress_iterations(me, iterations));
}

static void ahead_enqueue(ahead_t *ahead)
{
    int starts   = p4_iterations(ahead->me, AHEAD_STARTS);
    size_t count = 0;
    size_t i, part;

    if (ahead->count == 0) {
        return;
    }
    while (count < (size_t)starts) {
        part = ((size_t)starts - count < ahead->count) ? (starts - count) :
                                                         ahead->count;
        for (i = 0; i < part; ++i) {
            st_msg_begin(&ahead->msgs[i], ahead->queue, ahead->stream);
        }
        for (i = 0; i < part; ++i) {
            st_msg_end(&ahead->msgs[i], ahead->queue, ahead->stream);
        }
        count += part;
    }
}

static void ahead_end(ahead_t *ahead)
{
    size_t i;

    if (ahead->me == NULL) {
        return;
    }
    st_rank_at(ahead->me, "waiting for its queue");
    st_msg_sync_stream(ahead->me, ahead->queue, ahead->stream);
    ST_OK(ahead->me, ucp_st_queue_destroy(ahead->queue));
    for (i = 0; i < ahead->count; ++i) {
        ST_CHECK(ahead->me, ahead->msgs[i].use == ahead->msgs[i].started);
        st_msg_free(&ahead->msgs[i]);
    }
}

/* A has enqueued all before B's host enqueues anything */
static void p4_ahead(st_rank_t *me, int from)
{
    ahead_t ahead;
    int paired = ahead_init(me, &ahead, from);

    st_rank_barrier(me);
    if (paired && ahead.is_a) {
        st_rank_at(me, "enqueueing ahead of its peer");
        ahead_enqueue(&ahead);
    }
    st_rank_at(me, "the barrier between the hosts");
    st_rank_barrier_idle(me);
    if (paired && !ahead.is_a) {
        ahead_enqueue(&ahead);
    }
    ahead_end(&ahead);
}

void st_p4_sends(st_rank_t *me)
{
    p4_ahead(me, 0);
}

void st_p4_recvs(st_rank_t *me)
{
    p4_ahead(me, 1);
}

/* A enqueues many uses of 1 on one queue, then s(Y) on the other; B needs Y
 * before it starts 1 */
void st_p4_second(st_rank_t *me)
{
    int uses = p4_iterations(me, 2000);
    ucp_st_queue_h queue[2];
    st_msg_t msgs[2];
    int is_a = (me->index % 2) == 0;
    size_t matched;
    int i, k;

    if (st_progress_partner(me) < 0) {
        st_progress_matched(me);
        return;
    }
    for (i = 0; i < 2; ++i) {
        queue[i] = st_rank_queue(me, &me->node, i);
        st_progress_pair(me, &msgs[i], 0, i);
    }
    st_rank_at(me, "matching");
    matched = st_msg_match_some(me, msgs, 2);
    ahead_some(me, matched, 2);
    if (matched < 2) {
        st_rank_skip(me, "only %zu of 2 operations found a lane", matched);
    }
    st_progress_matched(me);
    if (!is_a) {
        st_msg_use(&msgs[1], queue[1], st_rank_stream(me, 1));
        st_rank_at(me, "waiting for the second message");
        st_msg_sync(me, queue[1]);
    }
    for (k = 0; k < uses; ++k) {
        st_msg_use(&msgs[0], queue[0], st_rank_stream(me, 0));
    }
    if (is_a) {
        st_msg_use(&msgs[1], queue[1], st_rank_stream(me, 1));
    }
    st_rank_at(me, "waiting for its queues");
    for (i = 0; i < 2; ++i) {
        st_msg_sync_stream(me, queue[i], st_rank_stream(me, i));
        ST_OK(me, ucp_st_queue_destroy(queue[i]));
        ST_CHECK(me, msgs[i].use == msgs[i].started);
        st_msg_free(&msgs[i]);
    }
}

/* The rank at an offset of -1, 0, 1 in each dimension of a periodic grid */
static int halo_rank(const st_rank_t *me, int direction)
{
    static const int grids[ST_WORLD_MAX_RANKS + 1][3] = {
        {0, 0, 0}, {1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {2, 2, 1}, {5, 1, 1},
        {3, 2, 1}, {7, 1, 1}, {2, 2, 2}
    };
    const int *grid = grids[me->count];
    int offset[3]   = {direction / 9, (direction / 3) % 3, direction % 3};
    int place[3]    = {
        me->index / (grid[1] * grid[2]), (me->index / grid[2]) % grid[1],
        me->index % grid[2]
    };
    int i;

    for (i = 0; i < 3; ++i) {
        place[i] = (place[i] + offset[i] - 1 + grid[i]) % grid[i];
    }
    return (place[0] * grid[1] + place[1]) * grid[2] + place[2];
}

/* Describe the messages: receives, then sends, by direction; how many each */
static size_t halo_describe(st_rank_t *me, st_msg_t *msgs, size_t length)
{
    st_msg_params_t params = {.node = NULL};
    size_t count           = 0;
    int direction;

    for (direction = 0; direction < 27; ++direction) {
        if (direction == 13) {
            continue; /* The rank itself */
        }
        params.tag     = (uint64_t)direction;
        params.length  = length + 10 * (size_t)direction;
        params.is_send = 1;
        params.peer    = halo_rank(me, direction);
        st_msg_init(me, &msgs[26 + count], &params);
        /* What goes in a direction comes from the opposite one */
        params.is_send = 0;
        params.peer    = halo_rank(me, 26 - direction);
        st_msg_init(me, &msgs[count], &params);
        ++count;
    }
    return count;
}

void st_halo_init_some(st_rank_t *me, st_halo_t *halo, size_t length)
{
    st_msg_t msgs[2 * 26];
    size_t count, matched, i;

    memset(halo, 0, sizeof(*halo));
    halo->me = me;
    count    = halo_describe(me, msgs, length);
    st_rank_at(me, "matching with its neighbours");
    matched = st_msg_match_some(me, msgs, 2 * count);
    ahead_some(me, matched, 2 * count);
    for (i = 0; i < matched; ++i) {
        if (msgs[i].is_send) {
            halo->sends[halo->num_sends++] = msgs[i];
        } else {
            halo->recvs[halo->num_recvs++] = msgs[i];
        }
    }
    st_progress_matched(me);
}

void st_halo_init(st_rank_t *me, st_halo_t *halo, size_t length)
{
    st_halo_init_some(me, halo, length);
    ST_CHECK(me, (halo->num_recvs == 26) && (halo->num_sends == 26));
}

void st_halo_enqueue(st_halo_t *halo, ucp_st_queue_h queue,
                     ucs_gstream_h stream)
{
    size_t i;

    st_msg_startall(halo->recvs, halo->num_recvs, queue);
    for (i = 0; i < halo->num_sends; ++i) {
        st_msg_work(&halo->sends[i], stream);
    }
    st_msg_startall(halo->sends, halo->num_sends, queue);
    st_msg_waitall(halo->recvs, halo->num_recvs, queue);
    st_msg_waitall(halo->sends, halo->num_sends, queue);
    for (i = 0; i < halo->num_recvs; ++i) {
        st_msg_work(&halo->recvs[i], stream);
    }
}

void st_halo_free(st_halo_t *halo)
{
    size_t i;

    for (i = 0; i < halo->num_recvs; ++i) {
        ST_CHECK(halo->me, halo->recvs[i].use == halo->recvs[i].started);
        st_msg_free(&halo->recvs[i]);
    }
    for (i = 0; i < halo->num_sends; ++i) {
        st_msg_free(&halo->sends[i]);
    }
}

/* All ranks: r from all neighbours, s to all neighbours, waitall; the host does
 * not look back */
void st_p5(st_rank_t *me)
{
    int iterations       = st_progress_iterations(me, 1000);
    ucs_gstream_h stream = st_rank_stream(me, 0);
    ucp_st_queue_h queue = st_rank_queue(me, &me->node, 0);
    st_halo_t halo;
    int k;

    st_halo_init_some(me, &halo, 128);
    for (k = 0; k < iterations; ++k) {
        st_halo_enqueue(&halo, queue, stream);
    }
    st_rank_at(me, "waiting for its queue");
    st_msg_sync_stream(me, queue, stream);
    ST_OK(me, ucp_st_queue_destroy(queue));
    st_halo_free(&halo);
}
