/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_notice.c - failures that one side's service thread finds while no
 * host makes a call: the streams of both sides go on.
 *
 * What a NIC or a transport would say is said to the library from inside, so
 * that it happens at one side alone and at a known moment.
 */
#include "st_cunit.h"
#include "../integration/st_any.h"
#include "st_hook.h"
#include "st_pair.h"

#include "core/st_leave.h"
#include "core/st_notice.h"
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

/* The control messages of one side, in the order in which UCP is given them */
static uint64_t watched_uuid;
static unsigned num_frames;   /* since it is watched; atomic, as the next */
static unsigned num_answers;  /* BYE_ACKs */
static unsigned num_behind;   /* frames behind one */

static ucs_status_t watch_frames(unsigned id, void *header)
{
    const ucp_st_frame_t *frame = header;
    size_t offset               = sizeof(*frame);
    const ucp_st_msg_hdr_t *hdr;

    if ((id != UCP_ST_AM_ID_DEFAULT) || (frame->src != watched_uuid)) {
        return UCS_OK;
    }
    __atomic_add_fetch(&num_frames, 1, __ATOMIC_RELAXED);
    num_behind += (__atomic_load_n(&num_answers, __ATOMIC_RELAXED) > 0);
    while (offset < frame->length) {
        hdr     = UCS_PTR_BYTE_OFFSET(frame, offset);
        offset += hdr->length;
        if (hdr->type == UCP_ST_MSG_BYE_ACK) {
            __atomic_add_fetch(&num_answers, 1, __ATOMIC_RELAXED);
        }
    }
    return UCS_OK;
}

static void watch(ucp_st_worker_h worker)
{
    watched_uuid = worker->uuid;
    num_frames   = 0;
    num_answers  = 0;
    num_behind   = 0;
    st_hook_am_send(watch_frames);
}

/* Behind a BYE there is only the answer to the peer's: it may close its
 * endpoint then. On Cassini any other message would end the process that sends.
 */
ST_CASE(bye_is_last)
{
    static scene_t scene;
    st_side_t *side = scene.pair.side;
    int is_answered = 0;

    scene_init(&scene, 0);
    ucp_st_leave_say_bye(side[ST_A].worker);
    watch(side[ST_A].worker);
    st_free(scene.op[ST_B]); /* UNMATCH */
    while (!is_answered) {
        (void)ucp_st_worker_progress(side[ST_A].worker);
        ucp_st_worker_lock(side[ST_A].worker);
        is_answered = scene.op[ST_A]->peer_closed;
        ucp_st_worker_unlock(side[ST_A].worker);
    }
    ucp_st_worker_lock(side[ST_A].worker);
    ucp_st_watch_ask_peer(side[ST_A].peer);
    ucp_st_worker_unlock(side[ST_A].worker);
    (void)ucp_st_worker_progress(side[ST_A].worker);
    st_hook_am_send(NULL);
    CU_ASSERT_EQUAL(num_frames, 0);
    scene.op[ST_B] = st_recv(&side[ST_B], scene.rbuf, LEN, 3);
    scene_cleanup(&scene);
}

/* Non-zero if UCP tells that a BYE has arrived although the peer's host makes
 * no call. Over tcp that host has to accept the connection first; what comes
 * when the leaver has closed it does no harm. */
static int bye_arrives(void)
{
    const char *tls = getenv("UCX_TLS");

    return (tls == NULL) || (strstr(tls, "tcp") == NULL);
}

/* A side leaves while the other one's host makes no call */
static void run_bye_unread(void)
{
    static scene_t scene;
    st_side_t *side = scene.pair.side;
    ucs_status_t status;

    scene_init(&scene, 0);
    st_free(scene.op[ST_A]);
    watched_uuid = side[ST_B].worker->uuid;
    num_frames   = 0;
    st_side_cleanup(&side[ST_A]);
    ucp_st_worker_lock(side[ST_B].worker);
    CU_ASSERT_TRUE(side[ST_B].peer->told_last);
    ucp_st_watch_ask_peer(side[ST_B].peer);
    ucp_st_worker_unlock(side[ST_B].worker);
    do { /* the host learns it as ever */
        (void)ucp_st_worker_progress(side[ST_B].worker);
        ucp_st_worker_lock(side[ST_B].worker);
        status = side[ST_B].peer->status;
        ucp_st_worker_unlock(side[ST_B].worker);
    } while (status == UCS_OK);
    CU_ASSERT_EQUAL(status, UCS_ERR_CANCELED);
    st_free(scene.op[ST_B]);
    st_side_cleanup(&side[ST_B]);
    CU_ASSERT_EQUAL(num_frames, 0);
}

/* Its service thread answers before any endpoint is closed, and when the host
 * reads of it nothing more is sent */
ST_CASE_IF(bye_unread, bye_arrives(), "the peer's host has to make calls")
{
    st_hook_am_send(watch_frames);
    run_bye_unread();
    st_hook_am_send(NULL);
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
    watch(side[watched].worker);
    for (i = 0; i < 2; ++i) {
        ucp_st_leave_say_bye(side[i].worker);
    }
    st_side_leave(&side[ST_A], &side[ST_B]);
    CU_ASSERT_TRUE(side[ST_B].peer->told_last);
    st_side_cleanup(&side[ST_B]);
    st_hook_am_send(NULL);
    CU_ASSERT_EQUAL(num_answers, 1);
    CU_ASSERT_EQUAL(num_behind, 0);
}

ST_CASE(bye_crosses)
{
    run_bye_crosses(ST_A);
    run_bye_crosses(ST_B);
}

/* A peer to which the service thread is to be held; NULL for none. And that it
 * is; atomic */
static ucp_st_peer_h held_peer;
static int is_held;

/* The service thread is about to make an endpoint for a notice: it stays here
 * until the peer has none to make, or for so many looks. The peer's worker is
 * gone, so nothing is sent. */
static ucs_status_t refuse_ep(void)
{
    unsigned looks = 10000;
    int is_there   = (held_peer != NULL);

    __atomic_store_n(&is_held, 1, __ATOMIC_RELEASE);
    while (is_there && (--looks > 0)) {
        (void)sched_yield();
        ucp_st_worker_lock(held_peer->worker);
        is_there = (held_peer->svc_ep != NULL);
        ucp_st_worker_unlock(held_peer->worker);
    }
    return UCS_ERR_UNREACHABLE;
}

/* The end of a worker comes when the first notice to a peer is on its way, or
 * was not taken by the service thread yet */
static void run_ends_meanwhile(int is_begun)
{
    static scene_t scene;
    st_side_t *side = scene.pair.side;
    ucp_st_worker_h worker;
    ucp_st_peer_h peer;
    int i;

    scene_init(&scene, 0);
    for (i = 0; i < 2; ++i) {
        st_free(scene.op[i]);
    }
    worker = side[ST_A].worker;
    peer   = side[ST_A].peer;
    st_side_leave(&side[ST_B], &side[ST_A]);
    held_peer = is_begun ? peer : NULL;
    is_held   = 0;
    st_hook_ep_create(refuse_ep);
    ucp_st_worker_lock(worker);
    CU_ASSERT_PTR_NULL(peer->svc_ep->notice_ep);
    peer->owes_last = 1;
    ucp_st_notice_answer_bye(peer);
    CU_ASSERT_EQUAL(ucp_st_svc(worker)->num_notices, 1);
    ucp_st_worker_unlock(worker);
    while (is_begun && !__atomic_load_n(&is_held, __ATOMIC_ACQUIRE)) {
        (void)sched_yield();
    }
    ucp_st_svc_ep_disconnect(peer);
    st_hook_ep_create(NULL);
    CU_ASSERT_EQUAL(ucp_st_svc(worker)->num_notices, 0);
    st_side_cleanup(&side[ST_A]);
}

ST_CASE(ends_meanwhile)
{
    run_ends_meanwhile(1);
    run_ends_meanwhile(0);
}

/* By their type; atomic */
static unsigned num_sent[UCP_ST_NOTICE_LAST];

/* UCP has no memory for the first notice of each type. An answer is not sent
 * again: the control message says the same. */
static ucs_status_t refuse_first(unsigned id, void *header)
{
    const ucp_st_notice_msg_t *msg = header;

    if ((id != UCP_ST_SVC_AM_NOTICE) ||
        (msg->type == UCP_ST_NOTICE_UNMATCH_ACK)) {
        return UCS_OK;
    }
    return (__atomic_fetch_add(&num_sent[msg->type], 1,
                               __ATOMIC_RELAXED) == 0) ? UCS_ERR_NO_MEMORY :
                                                         UCS_OK;
}

static void check_sent_again(ucp_st_notice_type_t type)
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
    check_sent_again(UCP_ST_NOTICE_UNMATCH);
    st_hook_am_send(refuse_first);
    run_freed(ST_B);
    check_sent_again(UCP_ST_NOTICE_UNMATCH);
    st_hook_am_send(refuse_first);
    run_declared_gone(ST_A);
    check_sent_again(UCP_ST_NOTICE_GONE);
    if (!bye_arrives()) {
        return;
    }
    st_hook_am_send(refuse_first);
    run_bye_unread();
    CU_ASSERT(__atomic_load_n(&num_sent[UCP_ST_NOTICE_BYE_ACK],
                              __ATOMIC_RELAXED) > 1);
    check_sent_again(UCP_ST_NOTICE_BYE);
}

static int scene_has_asked(scene_t *scene, int i)
{
    st_side_t *side = &scene->pair.side[i];
    int has_asked;

    ucp_st_worker_lock(side->worker);
    has_asked = (side->peer->svc_ep->notice_ep != NULL);
    ucp_st_worker_unlock(side->worker);
    return has_asked;
}

/* A stream waits for a peer whose process cannot be asked for, as if it were on
 * another node: it is sent something, which would fail if it were gone, and
 * goes on in its own time */
ST_CASE_IF(asked, st_lane() == UCP_ST_LANE_HOST,
           "other lanes ask in their own ways")
{
    static scene_t scene;

    scene_init(&scene, 0);
    ucp_st_worker_lock(scene.pair.side[ST_A].worker);
    ucp_st_process_close(&scene.pair.side[ST_A].peer->process);
    ucp_st_worker_unlock(scene.pair.side[ST_A].worker);
    scene_use(&scene, ST_A);
    while (!scene_has_asked(&scene, ST_A)) {
        (void)sched_yield();
    }
    scene_use(&scene, ST_B);
    scene_block(&scene, ST_A);
    scene_block(&scene, ST_B);
    st_pair_sync(&scene.pair);
    scene_cleanup(&scene);
}

/* One side has lost the other one, and has nothing to wait for itself */
ST_CASE_IF(lost_idle, st_lane() == UCP_ST_LANE_HOST,
           "other lanes ask in their own ways")
{
    static scene_t scene;

    scene_init(&scene, 0);
    scene_lose(&scene, ST_B, UCS_ERR_CONNECTION_RESET);
    scene_use(&scene, ST_A);
    scene_block(&scene, ST_A);
    scene_check_error(&scene, ST_A, UCS_ERR_CONNECTION_RESET);
    scene_cleanup(&scene);
}

/* Take a notice as if it had come from the other side */
static void scene_handle(scene_t *scene, int i, ucp_st_notice_msg_t *msg)
{
    ucp_st_worker_h worker = scene->pair.side[i].worker;

    ucp_st_worker_lock(worker);
    ucp_st_notice_receive(worker, msg, sizeof(*msg));
    ucp_st_worker_unlock(worker);
}

/* Until what a side has to tell has left it, while there is somebody to hear
 * it */
static void scene_until_told(scene_t *scene, int i)
{
    ucp_st_worker_h worker = scene->pair.side[i].worker;
    unsigned num_notices;

    do {
        (void)sched_yield();
        ucp_st_worker_lock(worker);
        num_notices = ucp_st_svc(worker)->num_notices;
        ucp_st_worker_unlock(worker);
    } while (num_notices > 0);
}

/* Both sides free. One hears that of the other, whose host makes no calls any
 * more and does not answer: it needs no answer. */
static void run_both_freed(int i)
{
    static scene_t scene;
    ucp_st_worker_h worker;
    ucp_st_notice_msg_t msg;

    scene_init(&scene, 0);
    worker = scene.pair.side[i].worker;
    msg    = (ucp_st_notice_msg_t){
        .type      = UCP_ST_NOTICE_UNMATCH,
        .status    = UCS_ERR_CANCELED,
        .src       = scene.pair.side[!i].worker->uuid,
        .dst       = worker->uuid,
        .op_id     = scene.op[i]->id,
        .src_op_id = scene.op[!i]->id
    };
    CU_ASSERT_EQUAL(ucp_st_op_free(scene.op[i]), UCS_OK);
    scene_handle(&scene, i, &msg);
    while (st_stats(&scene.pair.side[i]).freed > 0) {
        (void)ucp_st_worker_progress(worker);
        (void)sched_yield();
    }
    scene_until_told(&scene, i);
    scene.op[i] = st_send(&scene.pair.side[i], scene.sbuf, LEN, 3);
    scene_cleanup(&scene);
}

ST_CASE(both_freed)
{
    run_both_freed(ST_A);
    run_both_freed(ST_B);
}

/* Notices of somebody's former life, of other pairs, and of no type at all do
 * nothing */
ST_CASE(strangers)
{
    static scene_t scene;
    ucp_st_notice_msg_t good, msg;
    st_side_t *side;

    scene_init(&scene, 0);
    side = scene.pair.side;
    good = (ucp_st_notice_msg_t){
        .type      = UCP_ST_NOTICE_UNMATCH,
        .status    = UCS_ERR_IO_ERROR,
        .src       = side[ST_A].worker->uuid,
        .dst       = side[ST_B].worker->uuid,
        .op_id     = scene.op[ST_B]->id,
        .src_op_id = scene.op[ST_A]->id
    };
    msg     = good;
    msg.src = good.src + 1;
    scene_handle(&scene, ST_B, &msg);
    msg     = good;
    msg.dst = good.dst + 1;
    scene_handle(&scene, ST_B, &msg);
    msg.type = UCP_ST_NOTICE_GONE;
    scene_handle(&scene, ST_B, &msg);
    msg           = good;
    msg.src_op_id = good.src_op_id + 1;
    scene_handle(&scene, ST_B, &msg);
    msg      = good;
    msg.type = 99;
    scene_handle(&scene, ST_B, &msg);
    msg      = good;
    msg.type = UCP_ST_NOTICE_UNMATCH_ACK; /* of what was not told */
    scene_handle(&scene, ST_B, &msg);

    st_start(&side[ST_B], scene.op[ST_B]);
    st_use(&side[ST_A], scene.op[ST_A]);
    st_wait(&side[ST_B], scene.op[ST_B]);
    st_sync(&side[ST_A]);
    st_sync(&side[ST_B]);

    /* The good one counts, and may come again */
    good.uses = 1;
    scene_handle(&scene, ST_B, &good);
    scene_handle(&scene, ST_B, &good);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(side[ST_B].queue, scene.op[ST_B]),
                    UCS_ERR_IO_ERROR);
    scene_until_told(&scene, ST_B);
    scene_cleanup(&scene);
}

ST_SUITE("st_notice")
