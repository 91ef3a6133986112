/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_progress_host.c - P8, P9 and P10: two lanes on one stream, ranks that are
 * stopped, hosts that never call the library.
 */
#include "st_progress.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#define HOST_STOP_TIME      0.4 /* A rank is stopped for so long, seconds */
#define HOST_FALLBACK_PAIRS 12  /* More than find room on the trig lane */


void st_progress_compute(const uint64_t *word, uint64_t value)
{
    volatile double x = 1;
    int i;

    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value) {
        for (i = 0; i < 20000; ++i) {
            x = sqrt(x + i);
        }
        sched_yield(); /* Streams may share the processor */
    }
}

void st_progress_count(void *word)
{
    __atomic_add_fetch((uint64_t*)word, 1, __ATOMIC_RELEASE);
}

/* A rank of a pair with a worker for each lane, all on one stream */
typedef struct {
    st_rank_t      *me;
    st_node_t      node[2];
    ucp_st_queue_h queue[2];
    st_msg_t       out[2];
    st_msg_t       in[2];
} lanes_t;

static void p8_open(st_rank_t *me, lanes_t *lanes)
{
    const char *const *names = st_progress_options(me)->lanes;
    ucs_status_t status;
    int i;

    memset(lanes, 0, sizeof(*lanes));
    lanes->me = me;
    for (i = 0; i < 2; ++i) {
        status = st_rank_open(me, &lanes->node[i], names[i]);
        if (status == UCS_ERR_INVALID_PARAM) {
            st_rank_skip(me, "there is no lane \"%s\"", names[i]);
        }
        ST_OK(me, status);
        lanes->queue[i] = st_rank_queue(me, &lanes->node[i], 0);
    }
}

/* A side of a message to the next rank of a ring, or from the one before */
static void ring_init(st_rank_t *me, st_msg_t *msg, st_node_t *node,
                      int is_send, uint64_t tag)
{
    st_msg_params_t params = {
        .node    = node,
        .is_send = is_send,
        .peer    = (me->index + (is_send ? 1 : me->count - 1)) % me->count,
        .tag     = tag,
        .length  = 700
    };

    st_msg_init(me, msg, &params);
}

/* One out and one in, each waited for before the other is used again */
static void ring_use(st_msg_t *out, st_msg_t *in, ucp_st_queue_h queue,
                     ucs_gstream_h stream)
{
    st_msg_work(out, stream);
    st_msg_start(in, queue);
    st_msg_start(out, queue);
    st_msg_wait(out, queue);
    st_msg_end(in, queue, stream);
}

static void p8_match(lanes_t *lanes)
{
    ucp_st_op_attr_t attr[2];
    st_msg_t msgs[2];
    int i;

    for (i = 0; i < 2; ++i) {
        ring_init(lanes->me, &msgs[0], &lanes->node[i], 1, (uint64_t)i);
        ring_init(lanes->me, &msgs[1], &lanes->node[i], 0, (uint64_t)i);
        st_msg_match(lanes->me, msgs, 2);
        ST_OK(lanes->me, ucp_st_op_query(msgs[0].op, &attr[i]));
        lanes->out[i] = msgs[0];
        lanes->in[i]  = msgs[1];
    }
    if (attr[0].lane == attr[1].lane) {
        st_rank_skip(lanes->me, "both operations took the same lane");
    }
    st_progress_matched(lanes->me);
}

static void p8_close(lanes_t *lanes)
{
    int i;

    for (i = 0; i < 2; ++i) {
        ST_OK(lanes->me, ucp_st_queue_destroy(lanes->queue[i]));
        st_msg_free(&lanes->out[i]);
        st_msg_free(&lanes->in[i]);
        st_rank_settle(lanes->me, &lanes->node[i]);
        st_rank_close(lanes->me, &lanes->node[i]);
    }
}

/* A wait of an operation on one lane, followed on the same stream by a start on
 * the other, both ways, in a ring */
void st_p8(st_rank_t *me)
{
    int uses             = st_progress_iterations(me, 300);
    ucs_gstream_h stream = st_rank_stream(me, 0);
    lanes_t lanes;
    int i, k;

    p8_open(me, &lanes);
    p8_match(&lanes);
    for (k = 0; k < uses; ++k) {
        for (i = 0; i < 2; ++i) {
            ring_use(&lanes.out[i], &lanes.in[i], lanes.queue[i], stream);
        }
    }
    st_rank_at(me, "waiting for its queues");
    for (i = 0; i < 2; ++i) {
        st_msg_sync_stream(me, lanes.queue[i], stream);
    }
    p8_close(&lanes);
}

/* Both lanes have some of these; the card has room for a few */
static int p8_is_mixed(st_rank_t *me, const st_msg_t *msgs, int count)
{
    int counts[UCP_ST_LANE_LAST] = {0};
    ucp_st_op_attr_t attr;
    int i;

    for (i = 0; i < count; ++i) {
        ST_OK(me, ucp_st_op_query(msgs[i].op, &attr));
        ++counts[attr.lane];
    }
    return (counts[UCP_ST_LANE_TRIG] > 0) && (counts[UCP_ST_LANE_HOST] > 0);
}

/* The same with one worker and one queue, where the first messages of a ring
 * take the trig lane, and those that find no entries the host lane */
void st_p8_fallback(st_rank_t *me)
{
    int uses             = st_progress_iterations(me, 100);
    ucs_gstream_h stream = st_rank_stream(me, 0);
    ucp_st_queue_h queue = st_rank_queue(me, &me->node, 0);
    st_msg_t msgs[2 * HOST_FALLBACK_PAIRS]; /* each one out, one in */
    int i, k;

    for (i = 0; i < 2 * HOST_FALLBACK_PAIRS; ++i) {
        ring_init(me, &msgs[i], NULL, (i % 2) == 0, (uint64_t)i / 2);
    }
    st_msg_match(me, msgs, 2 * HOST_FALLBACK_PAIRS);
    if (!p8_is_mixed(me, msgs, 2 * HOST_FALLBACK_PAIRS)) {
        st_rank_skip(me, "all operations took the same lane");
    }
    st_progress_matched(me);
    for (k = 0; k < uses; ++k) {
        for (i = 0; i < 2 * HOST_FALLBACK_PAIRS; i += 2) {
            ring_use(&msgs[i], &msgs[i + 1], queue, stream);
        }
    }
    st_rank_at(me, "waiting for its queue");
    st_msg_sync_stream(me, queue, stream);
    ST_OK(me, ucp_st_queue_destroy(queue));
    for (i = 0; i < 2 * HOST_FALLBACK_PAIRS; ++i) {
        st_msg_free(&msgs[i]);
    }
}

/* Until a rank stands still; then for some time, in which nothing is to fail,
 * and on it goes */
static void p9_hold(st_rank_t *me, ucp_st_queue_h queue, int rank)
{
    pid_t pid = me->world->rank[rank].pid;
    double until;
    ucs_status_t status;

    st_rank_at(me, "waiting for rank %d to be stopped", rank);
    while (!st_world_is_stopped(pid)) {
        st_rank_pause(me);
    }
    until = st_world_now() + HOST_STOP_TIME;
    while (st_world_now() < until) {
        status = ucp_st_queue_query(queue, NULL);
        if (status != UCS_INPROGRESS) {
            ST_OK(me, status);
        }
        st_rank_pause(me);
    }
    ST_CHECK(me, kill(pid, SIGCONT) == 0);
    st_rank_alive(me);
}

static void p9_stop_self(void *arg)
{
    (void)arg;
    (void)kill(getpid(), SIGSTOP);
}

/* B's part of one use: it stops itself as a whole, before its start, on its
 * stream between start and wait, or before its host wait */
static void p9_victim(st_rank_t *me, st_msg_t *msg, ucp_st_queue_h queue,
                      int when)
{
    ucs_gstream_h stream = st_rank_stream(me, 0);

    if (when == 0) {
        p9_stop_self(NULL);
    }
    st_msg_begin(msg, queue, stream);
    if (when == 1) {
        ST_OK(me, ucs_gstream_enqueue_func(stream, p9_stop_self, NULL));
    }
    st_msg_end(msg, queue, stream);
    if (when == 2) {
        p9_stop_self(NULL);
    }
    st_msg_sync_stream(me, queue, stream);
}

/* A waits for B, which is stopped, in both directions and at three moments:
 * that is slow, not dead. Both are matched before that: B's last words of it
 * may still be with threads of its provider, which would be stopped as well,
 * and A, which is to let B go on, waits for them. */
void st_p9_stop(st_rank_t *me)
{
    ucs_gstream_h stream = st_rank_stream(me, 0);
    ucp_st_queue_h queue = st_rank_queue(me, &me->node, 0);
    st_msg_t msgs[2];
    int i;

    st_progress_pair(me, &msgs[0], 0, 1);
    st_progress_pair(me, &msgs[1], 1, 2);
    st_rank_at(me, "matching");
    st_msg_match(me, msgs, 2);
    st_rank_barrier(me);
    for (i = 0; i < 6; ++i) {
        if (me->index == 0) {
            st_msg_use(&msgs[i / 3], queue, stream);
            p9_hold(me, queue, 1);
            st_rank_at(me, "waiting for its queue, moment %d", i);
            st_msg_sync_stream(me, queue, stream);
        } else {
            st_rank_at(me, "moment %d", i);
            p9_victim(me, &msgs[i / 3], queue, i % 3);
        }
    }
    ST_OK(me, ucp_st_queue_destroy(queue));
    for (i = 0; i < 2; ++i) {
        st_msg_free(&msgs[i]);
    }
}

/* Far more ranks than processors; one of them stops the others, each for some
 * time, while all exchange with all their neighbours */
void st_p9_many(st_rank_t *me)
{
    int iterations       = st_progress_iterations(me, 80);
    ucs_gstream_h stream = st_rank_stream(me, 0);
    ucp_st_queue_h queue = st_rank_queue(me, &me->node, 0);
    st_halo_t halo;
    int k, victim;

    st_halo_init(me, &halo, 64);
    for (k = 0; k < iterations; ++k) {
        st_halo_enqueue(&halo, queue, stream);
    }
    for (victim = 1; (me->index == 0) && (victim < me->count); ++victim) {
        ST_CHECK(me, kill(me->world->rank[victim].pid, SIGSTOP) == 0);
        p9_hold(me, queue, victim);
    }
    st_rank_at(me, "waiting for its queue");
    st_msg_sync_stream(me, queue, stream);
    ST_OK(me, ucp_st_queue_destroy(queue));
    st_halo_free(&halo);
}

/* Plain work of a stream, some tens of microseconds */
static void p10_kernel(void *arg)
{
    volatile double x = 1;
    int i;

    (void)arg;
    for (i = 0; i < 10000; ++i) {
        x = sqrt(x + i);
    }
}

/* Exchanges and plain kernels are enqueued; then the hosts compute until their
 * streams have run all of it */
void st_p10_halo(st_rank_t *me)
{
    int iterations       = st_progress_iterations(me, 100);
    ucs_gstream_h stream = st_rank_stream(me, 0);
    ucp_st_queue_h queue = st_rank_queue(me, &me->node, 0);
    uint64_t done        = 0;
    st_halo_t halo;
    int k;

    st_halo_init(me, &halo, 500);
    st_rank_barrier(me);
    for (k = 0; k < iterations; ++k) {
        st_halo_enqueue(&halo, queue, stream);
        ST_OK(me, ucs_gstream_enqueue_func(stream, p10_kernel, NULL));
    }
    ST_OK(me, ucs_gstream_enqueue_func(stream, st_progress_count, &done));
    st_rank_at(me, "computing until its stream has run everything");
    st_progress_compute(&done, 1);
    st_rank_barrier_idle(me);
    st_msg_sync_stream(me, queue, stream);
    ST_OK(me, ucp_st_queue_destroy(queue));
    st_halo_free(&halo);
}

/* A use whose end the stream counts */
static void p10_counted_use(st_rank_t *me, st_msg_t *msg, ucp_st_queue_h queue,
                            uint64_t *word)
{
    ucs_gstream_h stream = st_rank_stream(me, 0);

    st_msg_use(msg, queue, stream);
    ST_OK(me, ucs_gstream_enqueue_func(stream, st_progress_count, word));
}

static void p10_idle_use(st_rank_t *me, st_msg_t *msg, ucp_st_queue_h queue,
                         uint64_t *received)
{
    ucs_gstream_h stream = st_rank_stream(me, 0);

    if (msg->is_send) {
        st_msg_begin(msg, queue, stream);
        ST_OK(me, ucs_gstream_enqueue_func(stream, p10_kernel, NULL));
    } else {
        p10_counted_use(me, msg, queue, received);
    }
}

/* The sender's stream has nothing to wait for and runs plain kernels; its host
 * computes until the receiver's stream has the message, and so does that one */
void st_p10_idle(st_rank_t *me)
{
    int uses             = st_progress_iterations(me, 200);
    uint64_t *received   = (uint64_t*)me->shared + (me->index / 2);
    ucs_gstream_h stream = st_rank_stream(me, 0);
    ucp_st_queue_h queue;
    st_msg_t msg;
    int k;

    if (st_progress_partner(me) < 0) {
        return;
    }
    queue = st_rank_queue(me, &me->node, 0);
    st_progress_pair(me, &msg, 0, 1);
    st_msg_match(me, &msg, 1);
    for (k = 0; k < uses; ++k) {
        st_rank_at(me, "computing, use %d", k);
        p10_idle_use(me, &msg, queue, received);
        st_progress_compute(received, (uint64_t)k + 1);
        if (msg.is_send) {
            st_msg_wait(&msg, queue);
        }
    }
    st_msg_sync_stream(me, queue, stream);
    ST_OK(me, ucp_st_queue_destroy(queue));
    st_msg_free(&msg);
}

/* A stream's kernel that ends when the other side has its message */
typedef struct held {
    uint64_t *passed; /* Uses that the other side has done with, shared */
    uint64_t use;     /* Of this side */
} held_t;

static void p10_held_kernel(void *arg)
{
    held_t *held = arg;

    ++held->use;
    st_progress_compute(held->passed, held->use);
}

/* A use of which the other side's stream sees the end while this one computes
 */
static void p10_held_use(st_rank_t *me, st_msg_t *msg, ucp_st_queue_h queue,
                         held_t *held)
{
    ucs_gstream_h stream = st_rank_stream(me, 0);

    st_msg_begin(msg, queue, stream);
    ST_OK(me, ucs_gstream_enqueue_func(stream, p10_held_kernel, held));
    st_msg_end(msg, queue, stream);
}

/* Uses of one message; rank `holder` computes in each, until the other one has
 * counted that many */
static void p10_held_run(st_rank_t *me, size_t length, int holder,
                         uint64_t *passed)
{
    st_msg_params_t params = {
        .is_send = (me->index == 0),
        .peer    = 1 - me->index,
        .tag     = length,
        .length  = length
    };
    int uses               = st_progress_iterations(me, 10);
    ucp_st_queue_h queue   = st_rank_queue(me, &me->node, 0);
    held_t held            = {.passed = passed};
    st_msg_t msg;
    int k;

    st_msg_init(me, &msg, &params);
    st_msg_match(me, &msg, 1);
    st_rank_at(me, "%zu bytes, rank %d computes", length, holder);
    for (k = 0; k < uses; ++k) {
        if (me->index == holder) {
            p10_held_use(me, &msg, queue, &held);
        } else {
            p10_counted_use(me, &msg, queue, passed);
        }
    }
    st_msg_sync_stream(me, queue, st_rank_stream(me, 0));
    ST_OK(me, ucp_st_queue_destroy(queue));
    st_msg_free(&msg);
}

/* One side's stream computes from start to wait: messages of all lengths go on
 * meanwhile, be they longer than what lies between the two */
void st_p10_held(st_rank_t *me)
{
    static const size_t lengths[] = {500, 100000, (5ul << 20) + 7};
    uint64_t *passed              = me->shared;
    size_t i;

    for (i = 0; i < (sizeof(lengths) / sizeof(lengths[0])); ++i) {
        p10_held_run(me, lengths[i], 0, passed++);
        p10_held_run(me, lengths[i], 1, passed++);
    }
}
