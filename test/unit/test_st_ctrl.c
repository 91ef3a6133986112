/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_ctrl.c - what service threads tell each other while no host makes a
 * call: of failures, after which the streams of both sides go on, and of
 * leaves.
 *
 * What a NIC or a transport would say is said to the library from inside, so
 * that it happens at one side alone and at a known moment.
 */
#include "st_cunit.h"
#include "../integration/st_any.h"
#include "st_hook.h"
#include "st_pair.h"

#include "core/st_leave.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "core/st_watch.h"
#include "core/st_worker.h"
#include "ctrl/st_ctrl.h"

#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#define LEN ST_LONG

/** A pair of operations from A to B, and what tells the hosts that their
 *  streams have passed the wait. */
typedef struct {
    st_pair_t   pair;
    ucp_st_op_h op[2];
    sem_t       passed[2];
    uint64_t    gate;
    uint8_t     sbuf[LEN];
    uint8_t     rbuf[LEN];
} scene_t;

static void scene_init(scene_t *scene, int is_ready)
{
    int i;

    st_pair_init(&scene->pair);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(sem_init(&scene->passed[i], 0, 0), 0);
    }
    scene->gate     = 0;
    scene->op[ST_A] = (is_ready ? st_rsend : st_send)(
            &scene->pair.side[ST_A], scene->sbuf, LEN, 1);
    scene->op[ST_B] = st_recv(&scene->pair.side[ST_B], scene->rbuf, LEN, 1);
    st_match_ok(scene->op[ST_A], scene->op[ST_B]);
}

static void scene_cleanup(scene_t *scene)
{
    int i;

    for (i = 0; i < 2; ++i) {
        st_free(scene->op[i]);
        CU_ASSERT_EQUAL(sem_destroy(&scene->passed[i]), 0);
    }
    st_pair_cleanup(&scene->pair);
}

static void raise_func(void *arg)
{
    (void)sem_post(arg);
}

/* A use of one side's half; its host hears when the stream has passed it */
static void scene_use(scene_t *scene, int i)
{
    st_use(&scene->pair.side[i], scene->op[i]);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_func(scene->pair.side[i].stream,
                                             raise_func, &scene->passed[i]),
                    UCS_OK);
}

/* The host does nothing but wait until its stream says so */
static void scene_block(scene_t *scene, int i)
{
    while (sem_wait(&scene->passed[i]) != 0) {
        /* a signal */
    }
}

static void scene_close_gate(scene_t *scene, int i)
{
    CU_ASSERT_EQUAL(st_any_hold(scene->pair.side[i].stream, &scene->gate),
                    UCS_OK);
}

static void scene_open_gate(scene_t *scene)
{
    st_any_open(&scene->gate);
}

static void scene_fail(scene_t *scene, int i, ucs_status_t status)
{
    ucp_st_worker_h worker = scene->pair.side[i].worker;

    ucp_st_worker_lock(worker);
    ucp_st_op_fail(scene->op[i], status);
    ucp_st_worker_unlock(worker);
}

static void scene_lose(scene_t *scene, int i, ucs_status_t status)
{
    ucp_st_worker_h worker = scene->pair.side[i].worker;

    ucp_st_worker_lock(worker);
    ucp_st_peer_lost(scene->pair.side[i].peer, status);
    ucp_st_worker_unlock(worker);
}

static void scene_check_error(scene_t *scene, int i, ucs_status_t status)
{
    ucp_st_queue_error_t error = {0};

    CU_ASSERT_EQUAL(ucp_st_queue_wait(scene->pair.side[i].queue, &error),
                    status);
    CU_ASSERT_EQUAL(error.status, status);
    CU_ASSERT_PTR_EQUAL(error.op, scene->op[i]);
}

/* An operation fails at one side, whose stream has not come to it yet: the
 * other side's stream waits for it and is released */
static void run_op_fails(int failing, int is_ready)
{
    static scene_t scene;

    scene_init(&scene, is_ready);
    memset(scene.rbuf, 0xee, LEN);
    scene_close_gate(&scene, failing);
    scene_use(&scene, failing);
    scene_use(&scene, !failing);
    scene_fail(&scene, failing, UCS_ERR_IO_ERROR);
    scene_block(&scene, !failing);
    /* What the stream starts now does not happen */
    scene_open_gate(&scene);
    scene_block(&scene, failing);
    scene_check_error(&scene, ST_A, UCS_ERR_IO_ERROR);
    scene_check_error(&scene, ST_B, UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(scene.rbuf[0], 0xee);
    CU_ASSERT_EQUAL(scene.rbuf[LEN - 1], 0xee);
    scene_cleanup(&scene);
}

ST_CASE(send_fails)
{
    run_op_fails(ST_A, 0);
    run_op_fails(ST_A, 1);
}

ST_CASE_CALL(recv_fails, run_op_fails(ST_B, 0))

/* One side has declared the other one gone, which lives: both streams wait,
 * each for something that the other side has not started */
static void run_declared_gone(int declaring)
{
    static scene_t scene;
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_op_h other[2];
    int i;

    scene_init(&scene, 0);
    other[ST_A] = st_send(&scene.pair.side[ST_A], sbuf, LEN, 2);
    other[ST_B] = st_recv(&scene.pair.side[ST_B], rbuf, LEN, 2);
    st_match_ok(other[ST_A], other[ST_B]);
    scene_use(&scene, ST_A);
    st_use(&scene.pair.side[ST_B], other[ST_B]);
    scene_use(&scene, ST_B);
    scene_lose(&scene, declaring, UCS_ERR_ENDPOINT_TIMEOUT);
    scene_block(&scene, declaring);
    scene_block(&scene, !declaring);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(scene.pair.side[declaring].queue, NULL),
                    UCS_ERR_ENDPOINT_TIMEOUT);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(scene.pair.side[!declaring].queue, NULL),
                    UCS_ERR_CONNECTION_RESET);
    for (i = 0; i < 2; ++i) {
        st_free(other[i]);
    }
    scene_cleanup(&scene);
}

ST_CASE(declared_gone)
{
    run_declared_gone(ST_A);
    run_declared_gone(ST_B);
}

/* What stands behind a failed receive in its queue sends what was not received:
 * it sends nothing, and its peer is told, whose stream waits for it */
static void run_queue_halts(int is_ready)
{
    static scene_t scene;
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_queue_error_t error = {0};
    ucp_st_op_h on[2];
    st_side_t *side;
    int i;

    scene_init(&scene, 0);
    side = scene.pair.side;
    memset(rbuf, 0xee, LEN);
    on[ST_B] = (is_ready ? st_rsend : st_send)(&side[ST_B], sbuf, LEN, 2);
    on[ST_A] = st_recv(&side[ST_A], rbuf, LEN, 2);
    st_match_ok(on[ST_A], on[ST_B]);
    st_use(&side[ST_A], on[ST_A]);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_func(side[ST_A].stream, raise_func,
                                             &scene.passed[ST_A]), UCS_OK);
    st_use(&side[ST_B], scene.op[ST_B]);
    st_use(&side[ST_B], on[ST_B]);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_func(side[ST_B].stream, raise_func,
                                             &scene.passed[ST_B]), UCS_OK);
    scene_fail(&scene, ST_B, UCS_ERR_IO_ERROR);
    scene_block(&scene, ST_B);
    scene_block(&scene, ST_A);
    scene_check_error(&scene, ST_B, UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(side[ST_A].queue, &error),
                    UCS_ERR_CANCELED);
    CU_ASSERT_PTR_EQUAL(error.op, on[ST_A]);
    CU_ASSERT_EQUAL(rbuf[0], 0xee);
    CU_ASSERT_EQUAL(rbuf[LEN - 1], 0xee);
    for (i = 0; i < 2; ++i) {
        st_free(on[i]);
    }
    scene_cleanup(&scene);
}

ST_CASE(queue_halts)
{
    run_queue_halts(0);
    run_queue_halts(1);
}

/* A side frees its half, and its peer's host computes */
static void run_freed(int freeing)
{
    static scene_t scene;
    ucp_st_stats_t stats;

    scene_init(&scene, 0);
    scene_use(&scene, !freeing);
    st_free(scene.op[freeing]);
    scene_block(&scene, !freeing);
    /* What was freed does not wait for that host either */
    do {
        stats = st_stats(&scene.pair.side[freeing]);
    } while (stats.freed > 0);
    scene_check_error(&scene, !freeing, UCS_ERR_CANCELED);
    scene.op[freeing] = st_send(&scene.pair.side[freeing], scene.sbuf, LEN, 3);
    scene_cleanup(&scene);
}

ST_CASE(freed)
{
    run_freed(ST_A);
    run_freed(ST_B);
}

/* Looks at, and changes, the control messages that UCP is given */
typedef struct {
    uint64_t src;         /* whose frames are counted */
    unsigned num_frames;  /* atomic, as the next ones */
    unsigned num_answers; /* BYE_ACKs */
    unsigned num_behind;  /* frames behind one */
    unsigned num_pings;
    uint64_t held_src;    /* whose frames stay where they are, or 0 */
} watch_t;

static watch_t seen;

static int watch_has(const ucp_st_frame_t *frame, ucp_st_ctrl_type_t type)
{
    size_t offset = sizeof(*frame);
    const ucp_st_ctrl_hdr_t *hdr;

    for (; offset < frame->length; offset += hdr->length) {
        hdr = UCS_PTR_BYTE_OFFSET(frame, offset);
        if (hdr->type == type) {
            return 1;
        }
    }
    return 0;
}

static ucs_status_t watch_frames(unsigned id, void *header)
{
    const ucp_st_frame_t *frame = header;

    if (id != UCP_ST_NET_AM_CTRL) {
        return UCS_OK;
    }
    if (frame->src == __atomic_load_n(&seen.held_src, __ATOMIC_RELAXED)) {
        return UCS_ERR_NO_MEMORY;
    }
    if (frame->src != seen.src) {
        return UCS_OK;
    }
    seen.num_behind += (seen.num_answers > 0);
    seen.num_answers += watch_has(frame, UCP_ST_CTRL_BYE_ACK);
    __atomic_add_fetch(&seen.num_frames, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&seen.num_pings, watch_has(frame, UCP_ST_CTRL_PING),
                       __ATOMIC_RELAXED);
    return UCS_OK;
}

static void watch(const st_side_t *side)
{
    seen = (watch_t){.src = side->worker->uuid};
    st_hook_am_send(watch_frames);
}

/* Until a side's peer stands so, or further; its host makes no call */
static void until_state(const st_side_t *side, ucp_st_peer_state_t state)
{
    int is_there;

    do {
        (void)sched_yield();
        ucp_st_worker_lock(side->worker);
        is_there = (side->peer->state >= state);
        ucp_st_worker_unlock(side->worker);
    } while (!is_there);
}

/* Behind a BYE there is only the answer to the peer's: it may close its
 * endpoint then. On Cassini any other message would end the process that sends.
 */
ST_CASE(bye_is_last)
{
    static scene_t scene;
    st_side_t *side = scene.pair.side;

    scene_init(&scene, 0);
    watch(&side[ST_A]);
    __atomic_store_n(&seen.held_src, side[ST_B].worker->uuid, __ATOMIC_RELAXED);
    st_free(scene.op[ST_B]); /* UNMATCH */
    ucp_st_leave_say_bye(side[ST_A].worker);
    until_state(&side[ST_B], UCP_ST_PEER_LEFT);
    CU_ASSERT_EQUAL(__atomic_exchange_n(&seen.num_frames, 0, __ATOMIC_RELAXED),
                    1);
    ucp_st_worker_lock(side[ST_A].worker);
    ucp_st_watch_ask_peer(side[ST_A].peer);
    ucp_st_worker_unlock(side[ST_A].worker);
    __atomic_store_n(&seen.held_src, 0, __ATOMIC_RELAXED);
    until_state(&side[ST_A], UCP_ST_PEER_GONE);
    st_hook_am_send(NULL);
    CU_ASSERT_TRUE(scene.op[ST_A]->peer_closed);
    CU_ASSERT_EQUAL(seen.num_frames, 0);
    scene.op[ST_B] = st_recv(&side[ST_B], scene.rbuf, LEN, 3);
    scene_cleanup(&scene);
}

static ucs_status_t no_ep(void)
{
    return UCS_ERR_UNREACHABLE;
}

/* A side leaves while the other one's host makes no call: it is answered, and
 * nothing more is sent to it */
static void run_bye_unread(void)
{
    static scene_t scene;
    st_side_t *side = scene.pair.side;

    scene_init(&scene, 0);
    st_free(scene.op[ST_A]);
    st_side_cleanup(&side[ST_A]);
    ucp_st_worker_lock(side[ST_B].worker);
    CU_ASSERT_EQUAL(side[ST_B].peer->state, UCP_ST_PEER_GONE);
    CU_ASSERT_EQUAL(side[ST_B].peer->status, UCS_ERR_CANCELED);
    seen.src        = side[ST_B].worker->uuid;
    seen.num_frames = 0;
    ucp_st_watch_ask_peer(side[ST_B].peer);
    ucp_st_worker_unlock(side[ST_B].worker);
    st_free(scene.op[ST_B]);
    st_side_cleanup(&side[ST_B]);
    CU_ASSERT_EQUAL(seen.num_frames, 0);
}

ST_CASE(bye_unread)
{
    st_hook_am_send(watch_frames);
    run_bye_unread();
    st_hook_am_send(NULL);
}

/* More than a frame waits for a leaver: all of it, and the answer behind, goes
 * over the endpoint that is there */
ST_CASE(bye_behind_much)
{
    static scene_t scene;
    st_side_t *side = scene.pair.side;
    int i;

    scene_init(&scene, 0);
    st_free(scene.op[ST_A]);
    st_hook_ep_create(no_ep);
    st_hook_hold(side[ST_B].worker->uuid, 0);
    for (i = 0; i < 1000; ++i) {
        ucp_st_worker_lock(side[ST_B].worker);
        ucp_st_ctrl_post(side[ST_B].peer, UCP_ST_CTRL_PING, 0, 0);
        ucp_st_worker_unlock(side[ST_B].worker);
    }
    ucp_st_leave_say_bye(side[ST_A].worker);
    until_state(&side[ST_B], UCP_ST_PEER_LEFT);
    st_hook_am_send(NULL);
    until_state(&side[ST_A], UCP_ST_PEER_GONE);
    ucp_st_worker_lock(side[ST_A].worker);
    CU_ASSERT_EQUAL(side[ST_A].peer->status, UCS_ERR_CANCELED);
    ucp_st_worker_unlock(side[ST_A].worker);
    CU_ASSERT_EQUAL(st_hook_num_eps(), 0);
    st_hook_ep_create(NULL);
    st_side_cleanup(&side[ST_A]);
    st_free(scene.op[ST_B]);
    st_side_cleanup(&side[ST_B]);
}

/* The same, and a stream waits for the one that leaves */
ST_CASE(bye_awaited)
{
    static scene_t scene;
    st_side_t *side = scene.pair.side;

    scene_init(&scene, 0);
    scene_use(&scene, ST_B);
    st_free(scene.op[ST_A]);
    st_side_cleanup(&side[ST_A]);
    scene_block(&scene, ST_B);
    scene_check_error(&scene, ST_B, UCS_ERR_CANCELED);
    st_free(scene.op[ST_B]);
    st_side_cleanup(&side[ST_B]);
}

/* Both leave: each answers once, last, and waits for the other's answer */
static void run_bye_crosses(int watched)
{
    static scene_t scene;
    st_side_t *side = scene.pair.side;
    int i;

    scene_init(&scene, 0);
    for (i = 0; i < 2; ++i) {
        st_free(scene.op[i]);
    }
    watch(&side[watched]);
    for (i = 0; i < 2; ++i) { /* neither hears the other before it says so */
        ucp_st_worker_lock(side[i].worker);
    }
    for (i = 0; i < 2; ++i) {
        ucp_st_ctrl_post(side[i].peer, UCP_ST_CTRL_BYE, 0, 0);
        side[i].worker->said_bye = 1;
    }
    for (i = 0; i < 2; ++i) {
        ucp_st_worker_unlock(side[i].worker);
    }
    for (i = 0; i < 2; ++i) {
        until_state(&side[i], UCP_ST_PEER_GONE);
    }
    st_side_leave(&side[ST_A], &side[ST_B]);
    st_side_cleanup(&side[ST_B]);
    st_hook_am_send(NULL);
    CU_ASSERT_EQUAL(seen.num_answers, 1);
    CU_ASSERT_EQUAL(seen.num_behind, 0);
}

ST_CASE(bye_crosses)
{
    run_bye_crosses(ST_A);
    run_bye_crosses(ST_B);
}

/* The service thread is about to make an endpoint, over which a peer is told
 * that it is gone; atomic */
static int is_held;

/* It stays here for so many looks */
static ucs_status_t refuse_ep(void)
{
    unsigned looks = 10000;

    __atomic_store_n(&is_held, 1, __ATOMIC_RELEASE);
    while (--looks > 0) {
        (void)sched_yield();
    }
    return UCS_ERR_UNREACHABLE;
}

/* The end of a worker comes meanwhile */
ST_CASE(ends_meanwhile)
{
    static scene_t scene;
    st_side_t *side = scene.pair.side;
    int i;

    scene_init(&scene, 0);
    for (i = 0; i < 2; ++i) {
        st_free(scene.op[i]);
    }
    is_held = 0;
    st_hook_ep_create(refuse_ep);
    scene_lose(&scene, ST_A, UCS_ERR_CONNECTION_RESET);
    while (!__atomic_load_n(&is_held, __ATOMIC_ACQUIRE)) {
        (void)sched_yield();
    }
    st_side_cleanup(&side[ST_A]);
    st_hook_ep_create(NULL);
    st_side_cleanup(&side[ST_B]);
}

/* A peer that was declared gone for want of memory gets no new endpoint: that
 * status of an endpoint alone would mean to try again */
ST_CASE(gone_no_memory)
{
    static scene_t scene;
    st_side_t *side = scene.pair.side;
    ucp_ep_h ep;
    int i;

    scene_init(&scene, 0);
    for (i = 0; i < 2; ++i) {
        st_free(scene.op[i]);
    }
    ucp_st_net_stop(side[ST_A].worker);
    ucp_st_worker_lock(side[ST_A].worker);
    ucp_st_peer_fail(side[ST_A].peer, UCS_ERR_NO_MEMORY);
    ucp_st_net_drop_ep(side[ST_A].peer);
    ucp_st_worker_unlock(side[ST_A].worker);
    CU_ASSERT_EQUAL(ucp_st_net_ep_get(side[ST_A].peer, UCP_ST_NET_USE_DATA,
                                      &ep), UCS_ERR_NO_MEMORY);
    CU_ASSERT_PTR_NULL(ep);
    st_side_cleanup(&side[ST_A]);
    st_side_cleanup(&side[ST_B]);
}

/* By their type; atomic */
static unsigned num_sent[UCP_ST_CTRL_LAST];

/* UCP has no memory for the first frame with a message of each type */
static ucs_status_t refuse_first(unsigned id, void *header)
{
    const ucp_st_frame_t *frame = header;
    ucs_status_t status         = UCS_OK;
    int type;

    for (type = 0; (id == UCP_ST_NET_AM_CTRL) && (type < UCP_ST_CTRL_LAST);
         ++type) {
        if (watch_has(frame, (ucp_st_ctrl_type_t)type) &&
            (__atomic_fetch_add(&num_sent[type], 1, __ATOMIC_RELAXED) == 0)) {
            status = UCS_ERR_NO_MEMORY;
        }
    }
    return status;
}

static void check_sent_again(ucp_st_ctrl_type_t type)
{
    st_hook_am_send(NULL);
    CU_ASSERT(__atomic_load_n(&num_sent[type], __ATOMIC_RELAXED) > 1);
    memset(num_sent, 0, sizeof(num_sent));
}

/* What could not be sent for want of memory is sent again: no stream waits for
 * ever */
ST_CASE(sent_again)
{
    st_hook_am_send(refuse_first);
    run_op_fails(ST_A, 0);
    check_sent_again(UCP_ST_CTRL_UNMATCH);
    st_hook_am_send(refuse_first);
    run_freed(ST_B);
    check_sent_again(UCP_ST_CTRL_UNMATCH_ACK);
    st_hook_am_send(refuse_first);
    run_declared_gone(ST_A);
    check_sent_again(UCP_ST_CTRL_GONE);
    st_hook_am_send(refuse_first);
    run_bye_unread();
    CU_ASSERT(__atomic_load_n(&num_sent[UCP_ST_CTRL_BYE], __ATOMIC_RELAXED) >
              1);
    check_sent_again(UCP_ST_CTRL_BYE_ACK);
}

/* A stream waits for a peer that goes on in its own time: it is sent something,
 * which would fail if it were gone */
ST_CASE(asked)
{
    static scene_t scene;

    scene_init(&scene, 0);
    watch(&scene.pair.side[ST_A]);
    scene_use(&scene, ST_A);
    while (__atomic_load_n(&seen.num_pings, __ATOMIC_RELAXED) == 0) {
        (void)sched_yield();
    }
    st_hook_am_send(NULL);
    scene_use(&scene, ST_B);
    scene_block(&scene, ST_A);
    scene_block(&scene, ST_B);
    st_pair_sync(&scene.pair);
    scene_cleanup(&scene);
}

/* One side has lost the other one, and has nothing to wait for itself */
ST_CASE(lost_idle)
{
    static scene_t scene;

    scene_init(&scene, 0);
    scene_use(&scene, ST_A);
    scene_lose(&scene, ST_B, UCS_ERR_CONNECTION_RESET);
    scene_block(&scene, ST_A);
    scene_check_error(&scene, ST_A, UCS_ERR_CONNECTION_RESET);
    scene_cleanup(&scene);
}

/* Both sides free, at once: neither needs a call of a host */
ST_CASE(both_freed)
{
    static scene_t scene;
    int i;

    scene_init(&scene, 0);
    for (i = 0; i < 2; ++i) {
        ucp_st_worker_lock(scene.pair.side[i].worker);
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_op_free_begin(scene.op[i]), UCS_OK);
        ucp_st_op_free_end(scene.op[i]);
    }
    for (i = 0; i < 2; ++i) {
        ucp_st_worker_unlock(scene.pair.side[i].worker);
    }
    for (i = 0; i < 2; ++i) {
        while (st_stats(&scene.pair.side[i]).freed > 0) {
            (void)sched_yield();
        }
        scene.op[i] = st_send(&scene.pair.side[i], scene.sbuf, LEN, 3);
    }
    scene_cleanup(&scene);
}

/* Take a message as if it had come from the other side */
static void scene_handle(scene_t *scene, int i, const ucp_st_ctrl_op_t *msg)
{
    st_side_t *side = &scene->pair.side[i];

    ucp_st_worker_lock(side->worker);
    CU_ASSERT_EQUAL(ucp_st_ctrl_up.receive(side->peer, (const uint8_t*)msg,
                                           sizeof(*msg)), sizeof(*msg));
    ucp_st_worker_unlock(side->worker);
}

/* Messages of other pairs do nothing */
ST_CASE(strangers)
{
    static scene_t scene;
    ucp_st_ctrl_op_t good, msg;
    st_side_t *side;

    scene_init(&scene, 0);
    side = scene.pair.side;
    good = (ucp_st_ctrl_op_t){
        .hdr       = {.type = UCP_ST_CTRL_UNMATCH, .length = sizeof(good)},
        .status    = UCS_ERR_IO_ERROR,
        .op_id     = scene.op[ST_B]->id,
        .src_op_id = scene.op[ST_A]->id
    };
    msg           = good;
    msg.src_op_id = good.src_op_id + 1;
    scene_handle(&scene, ST_B, &msg);
    msg       = good;
    msg.op_id = good.op_id + 1;
    scene_handle(&scene, ST_B, &msg);
    msg          = good;
    msg.hdr.type = UCP_ST_CTRL_UNMATCH_ACK; /* of what was not told */
    scene_handle(&scene, ST_B, &msg);

    st_start(&side[ST_B], scene.op[ST_B]);
    st_use(&side[ST_A], scene.op[ST_A]);
    st_wait(&side[ST_B], scene.op[ST_B]);
    st_sync(&side[ST_A]);
    st_sync(&side[ST_B]);

    /* The good one counts */
    good.uses = 1;
    scene_handle(&scene, ST_B, &good);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(side[ST_B].queue, scene.op[ST_B]),
                    UCS_ERR_IO_ERROR);
    scene_cleanup(&scene);
}

ST_SUITE("st_ctrl")
