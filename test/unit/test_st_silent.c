/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_silent.c - an operation fails while its peer's process is stopped,
 * which lives, but says nothing: a send that is armed at the NIC is released
 * all the same. What is armed is cancelled then; where the provider cannot, it
 * stays armed. Nothing that either side does later makes it write to the peer's
 * buffer.
 *
 * What a NIC would say is said to the library from inside, at a known moment.
 */
#include "st_cunit.h"
#include "../integration/st_any.h"
#include "../integration/st_rank.h"

#include "core/st_op.h"
#include "trig/st_trig.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LEN        16384 /* more than is sent ahead of its receive */
#define DRAIN_TIME 2.0   /* seconds that a silent peer has, at most */
#define CLEAN      0xee
#define LIMIT      300   /* seconds; on a busy machine */

/** What ranks see of each other. */
typedef struct {
    uint8_t buffer[LEN]; /* that the armed send is to */
} shared_t;

/** What the group is to do. */
typedef struct {
    int is_ready; /* the send that is armed */
    int is_behind;/* it stands behind a receive, and that one fails */
} scene_t;

/** One of the two ranks: the first sends, the second is stopped. */
typedef struct {
    st_rank_t      *me;
    const scene_t  *scene;
    shared_t       *shared;
    ucp_st_queue_h queue;
    ucp_st_op_h    op;      /* the send, its receive */
    ucp_st_op_h    reverse; /* a message the other way, with `is_behind` */
    uint8_t        sbuf[LEN];
    uint8_t        rbuf[LEN];
    uint64_t       gate;
} side_t;


static ucp_st_op_h make_op(side_t *side, int is_send, ucp_st_mode_t mode,
                           void *buffer)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_MODE,
        .buffer     = buffer,
        .length     = LEN,
        .peer       = side->me->node.peers[!side->me->index],
        .mode       = mode
    };
    ucp_st_op_h op            = NULL;

    ST_OK(side->me, (is_send ? ucp_st_send_init :
                               ucp_st_recv_init)(side->me->node.worker, &params,
                                                 &op));
    return op;
}

static void side_init(side_t *side, st_rank_t *me)
{
    int is_sender      = (me->index == 0);
    ucp_st_op_h ops[2] = {NULL};

    side->me      = me;
    side->scene   = me->arg;
    side->shared  = me->shared;
    side->gate    = 0;
    side->reverse = NULL;
    side->queue   = st_rank_queue(me, &me->node, 0);
    memset(side->sbuf, 1, LEN);
    ops[0] = side->op = make_op(side, is_sender, side->scene->is_ready ?
                                UCP_ST_MODE_READY : UCP_ST_MODE_STANDARD,
                                is_sender ? side->sbuf : side->shared->buffer);
    if (side->scene->is_behind) {
        ops[1] = side->reverse = make_op(side, !is_sender, UCP_ST_MODE_STANDARD,
                                         is_sender ? side->rbuf : side->sbuf);
    }
    st_rank_at(me, "matching");
    ST_OK(me, ucp_st_matchall(ops, 1 + side->scene->is_behind, NULL));
}

static void side_cleanup(side_t *side)
{
    st_rank_t *me = side->me;

    ST_OK(me, ucp_st_queue_destroy(side->queue));
    ST_OK(me, ucp_st_op_free(side->op));
    if (side->reverse != NULL) {
        ST_OK(me, ucp_st_op_free(side->reverse));
    }
    st_rank_settle(me, &me->node);
}

static void side_use(side_t *side, ucp_st_op_h op)
{
    ST_OK(side->me, ucp_st_enqueue_start(side->queue, op));
    ST_OK(side->me, ucp_st_enqueue_wait(side->queue, op));
}

static int is_clean(const shared_t *shared)
{
    size_t i;

    for (i = 0; (i < LEN) && (shared->buffer[i] == CLEAN); ++i) {
        /* look on */
    }
    return i == LEN;
}

/* Puts wait for their trigger, to which nobody has added but a start: one that
 * a stream stored to a trigger page counts from 0 behind a failure, and may
 * come then. The lock is held. */
static void check_armed(side_t *side, int is_released)
{
    const ucp_st_trig_part_t *part = &ucp_st_trig_op(side->op)->parts[0];
    uint64_t count                 = 0;

    ST_OK(side->me, uct_trig_cntr_read(part->start->trigger.cntr, &count));
    ST_CHECK(side->me, (part->start->trigger.base > 0) ? (count <= 1) :
                       (count == !side->scene->is_behind));
    ST_CHECK(side->me, (is_released && (part->start->trigger.base > 0)) ==
                       (part->line.pending == 0));
}

static void set_func(void *arg)
{
    __atomic_store_n((uint64_t*)arg, 1, __ATOMIC_RELEASE);
}

/* The peer's NIC has taken the clear-to-send: what a stopped peer has not, an
 * emulated NIC cannot cancel */
static int is_cleared(side_t *side)
{
    ucp_st_worker_h worker = side->me->node.worker;
    const ucp_st_trig_part_t *part;
    int result;

    ucp_st_worker_lock(worker);
    part   = &ucp_st_trig_op(side->reverse)->parts[0];
    result = part->line.posted > part->line.pending;
    ucp_st_worker_unlock(worker);
    return result;
}

/* Until the stream has started the send, or waits for the receive before it */
static void sender_start(side_t *side)
{
    ucs_gstream_h stream = st_rank_stream(side->me, 0);
    uint64_t is_there    = 0;

    if (side->reverse != NULL) {
        ST_OK(side->me, ucp_st_enqueue_start(side->queue, side->reverse));
    } else {
        ST_OK(side->me, ucp_st_enqueue_start(side->queue, side->op));
    }
    ST_OK(side->me, ucs_gstream_enqueue_func(stream, set_func, &is_there));
    if (side->reverse != NULL) {
        ST_OK(side->me, ucp_st_enqueue_wait(side->queue, side->reverse));
        ST_OK(side->me, ucp_st_enqueue_start(side->queue, side->op));
    }
    ST_OK(side->me, ucp_st_enqueue_wait(side->queue, side->op));
    while (!__atomic_load_n(&is_there, __ATOMIC_ACQUIRE)) {
        st_rank_pause(side->me);
    }
    while ((side->reverse != NULL) && !is_cleared(side)) {
        st_rank_pause(side->me);
    }
}

/* The NIC reports a failure; when that was */
static double sender_fail(side_t *side, ucp_st_op_h op)
{
    ucp_st_worker_h worker = side->me->node.worker;
    double now;

    ucp_st_worker_lock(worker);
    now = ucp_st_worker_now();
    ucp_st_op_fail(op, UCS_ERR_IO_ERROR);
    ST_CHECK(side->me, ucp_st_trig_op(side->op)->is_draining);
    check_armed(side, 0);
    ucp_st_worker_unlock(worker);
    return now;
}

/* The wait passes although the put is armed and the peer has said nothing. It
 * was given its time to say something. */
static void sender_check(side_t *side, ucp_st_op_h op, double since)
{
    st_rank_t *me              = side->me;
    ucp_st_worker_h worker     = me->node.worker;
    ucp_st_queue_error_t error = {0};

    st_rank_at(me, "waiting for its queue");
    ST_IS(me, UCS_ERR_IO_ERROR, ucp_st_queue_wait(side->queue, &error));
    ST_CHECK(me, error.op == op);
    ST_CHECK(me, (ucp_st_worker_now() - since) >=
                 ucs_min(DRAIN_TIME, worker->config.err_timeout / 4));
    ucp_st_worker_lock(worker);
    ST_CHECK(me, !ucp_st_trig_op(side->op)->is_draining &&
                 ucp_st_trig_op(side->op)->released);
    ST_CHECK(me, !side->op->peer_closed);
    check_armed(side, 1);
    ucp_st_worker_unlock(worker);
    ST_CHECK(me, is_clean(side->shared));
}

static void sender_main(side_t *side)
{
    st_rank_t *me  = side->me;
    pid_t pid      = me->world->rank[1].pid;
    ucp_st_op_h op = (side->reverse != NULL) ? side->reverse : side->op;
    double since;

    sender_start(side);
    st_rank_barrier(me);
    st_rank_at(me, "waiting for its peer to be stopped");
    while (!st_world_is_stopped(pid)) {
        st_rank_pause(me);
    }
    since = sender_fail(side, op);
    sender_check(side, op, since);
    /* The buffer may be used again */
    memset(side->sbuf, 2, LEN);
    ST_CHECK(me, st_world_is_stopped(pid));
    ST_CHECK(me, kill(pid, SIGCONT) == 0);
}

/* Goes on as if nothing had happened: its receive starts, or has */
static void peer_main(side_t *side)
{
    st_rank_t *me              = side->me;
    ucp_st_queue_error_t error = {0};

    if (!side->scene->is_ready) {
        ST_OK(me, st_any_hold(st_rank_stream(me, 0), &side->gate));
    }
    side_use(side, side->op);
    st_rank_barrier(me);
    st_rank_at(me, "being stopped");
    ST_CHECK(me, raise(SIGSTOP) == 0);
    st_any_open(&side->gate);
    st_rank_at(me, "waiting for its queue");
    (void)ucp_st_queue_wait(side->queue, &error);
    ST_CHECK(me, error.op == side->op);
    ST_IS(me, (side->reverse != NULL) ? UCS_ERR_CANCELED : UCS_ERR_IO_ERROR,
          error.status);
}

static void rank_main(st_rank_t *me)
{
    static side_t side;

    side_init(&side, me);
    if (me->index == 0) {
        sender_main(&side);
    } else {
        peer_main(&side);
    }
    st_rank_at(me, "the barrier before its end");
    st_rank_barrier(me);
    ST_CHECK(me, is_clean(side.shared));
    side_cleanup(&side);
    ST_CHECK(me, is_clean(side.shared));
}

static void run(const scene_t *scene, const char *timeout)
{
    const char *const env[]  = {"UCX_ST_ERR_TIMEOUT", timeout, NULL};
    st_world_params_t params = {
        .count  = 2,
        .limit  = LIMIT,
        .shared = st_world_alloc(sizeof(shared_t)),
        .env    = env,
        .arg    = scene,
        .main   = rank_main
    };
    char reason[ST_WORLD_REASON];
    int result;

    CU_ASSERT_PTR_NOT_NULL_FATAL(params.shared);
    memset(params.shared, CLEAN, sizeof(shared_t));
    result = st_world_run(&params, reason);
    CU_ASSERT_EQUAL(result, 0);
    if (result != 0) {
        puts(reason);
    }
    st_world_free(params.shared, sizeof(shared_t));
}

/* The send was started, and its receive is when the peer goes on */
ST_CASE(started)
{
    const scene_t scene = {0};

    run(&scene, "10s");
    run(&scene, "1s");
}

/* The receive has started, and the stream comes to the send when it has
 * failed */
ST_CASE(behind)
{
    const scene_t standard = {.is_behind = 1};
    const scene_t ready    = {.is_behind = 1, .is_ready = 1};

    run(&standard, "1s");
    run(&ready, "1s");
}

int main(int argc, char **argv)
{
    st_world_prepare(argv);
    return st_cunit_main("st_silent", argc, argv);
}
