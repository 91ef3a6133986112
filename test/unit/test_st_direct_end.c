/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_direct_end.c - the direct lane's pairs that end with a use under way:
 * a half is freed, an operation fails, a peer is declared lost while one side
 * copies a piece.
 *
 * A copy that takes as long as a case wants is played: the case holds the lock
 * that a mover of that side would hold, and has claimed a piece.
 */
#include "st_cunit.h"
#include "st_hook.h"
#include "st_near.h"
#include "st_stream.h"

#include "direct/st_direct.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_worker.h"
#include "ctrl/st_ctrl.h"

#include <string.h>

#define PIECES 4
#define LEN    (PIECES * NEAR_PIECE_MAPPED)
#define ROUNDS 100

/* As st_direct_move.c packs a claim; not poisoned */
#define CLAIM_USE_SHIFT 25
#define CLAIM_OF(_use, _low, _high) \
    (((uint64_t)(_use) << CLAIM_USE_SHIFT) | ((uint64_t)(_low) << 12) | (_high))

static const size_t lengths[] = {8, 1000, LEN};

/* One side frees its half while the other one waits */
static void run_freed(const char *const *env, size_t length, int waiter)
{
    ucp_st_queue_error_t error = {0};
    near_t near;
    st_side_t *side;

    near_init(&near, env, length);
    side = near.pair.side;
    near_use(&near, 1);
    near_fill(&near, 2);
    st_start(&side[waiter], near.op[waiter]);
    st_begun(&side[waiter]);
    st_wait(&side[waiter], near.op[waiter]);
    st_free(near.op[!waiter]);
    while (ucp_st_queue_query(side[waiter].queue, &error) == UCS_INPROGRESS) {
        ucp_st_worker_progress(side[!waiter].worker);
    }
    if ((waiter == ST_A) && (length < LEN)) {
        /* It was in its slot, and so was sent */
        CU_ASSERT_EQUAL(error.status, UCS_OK);
        CU_ASSERT_TRUE(st_start_becomes(&near.pair, &side[ST_A], near.op[ST_A],
                                        UCS_ERR_CANCELED));
    } else {
        CU_ASSERT_EQUAL(error.status, UCS_ERR_CANCELED);
        CU_ASSERT_PTR_EQUAL(error.op, near.op[waiter]);
    }
    near_check_nothing(&near);
    near.op[!waiter] = st_send(&side[!waiter], near.sbuf, length, 9);
    near_cleanup(&near);
}

ST_CASE(freed)
{
    const char *const slots[] = NEAR_SLOTS;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        run_freed(NULL, lengths[i], ST_A);
        run_freed(NULL, lengths[i], ST_B);
    }
    run_freed(slots, LEN, ST_A);
    run_freed(slots, LEN, ST_B);
}

/* What the sender had sent when it freed its half is received */
ST_CASE(freed_after_send)
{
    near_t near;
    st_side_t *side;

    near_init(&near, NULL, 1000);
    side = near.pair.side;
    near_fill(&near, 5);
    st_use(&side[ST_A], near.op[ST_A]);
    st_sync(&side[ST_A]);
    st_free(near.op[ST_A]);
    do {
        ucp_st_worker_progress(side[ST_A].worker);
        ucp_st_worker_progress(side[ST_B].worker);
    } while (!st_op_is_ended(near.op[ST_B]));
    st_use(&side[ST_B], near.op[ST_B]);
    st_sync(&side[ST_B]);
    near_check(&near, 5);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(side[ST_B].queue, near.op[ST_B]),
                    UCS_ERR_CANCELED);
    near.op[ST_A] = st_send(&side[ST_A], near.sbuf, 8, 9);
    near_cleanup(&near);
}

/** A mover of one side that is in the midst of a piece. */
typedef struct {
    near_t               near;
    int                  who;  /* whose mover it is */
    uint32_t             index;
    ucp_st_direct_pair_t *pair;
} scene_t;

static pthread_mutex_t *scene_mutex(const scene_t *scene)
{
    return &ucp_st_direct_queue(scene->near.pair.side[scene->who].queue)->lock;
}

/* Both sides have begun a use, and one claims its first piece: the receiver at
 * the low end, the sender at the high one */
static void scene_init(scene_t *scene, int who)
{
    st_side_t *side = scene->near.pair.side;
    int i;

    near_init(&scene->near, NULL, LEN);
    scene->who   = who;
    scene->pair  = ucp_st_direct_op(scene->near.op[who])->pair;
    scene->index = (who == ST_B) ? 0 : (PIECES - 1);
    near_check_protocol(&scene->near, "mapped");
    near_fill(&scene->near, 3);
    for (i = 0; i < 2; ++i) {
        st_start(&side[i], scene->near.op[i]);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(side[i].stream), UCS_OK);
    }
    (void)pthread_mutex_lock(scene_mutex(scene));
    CU_ASSERT_EQUAL(__atomic_load_n(&scene->pair->claim, __ATOMIC_ACQUIRE), 0);
    __atomic_store_n(&scene->pair->claim,
                     (who == ST_B) ? CLAIM_OF(1, 1, PIECES) :
                                     CLAIM_OF(1, 0, PIECES - 1),
                     __ATOMIC_RELEASE);
}

/* It has copied the piece */
static void scene_copy(const scene_t *scene)
{
    volatile uint64_t *count = &scene->pair->side[scene->who].count;
    size_t offset            = scene->index * NEAR_PIECE_MAPPED;

    memcpy(scene->near.rbuf + offset, scene->near.sbuf + offset,
           NEAR_PIECE_MAPPED);
    __atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
}

static void lose(st_side_t *side)
{
    ucp_st_worker_lock(side->worker);
    ucp_st_peer_lost(side->peer, UCS_ERR_ENDPOINT_TIMEOUT);
    ucp_st_worker_unlock(side->worker);
}

/* Until a side has told its peer that it is declared lost. If the peer's worker
 * went first UCX would connect to nothing, and forget memory. */
static void lose_until_told(st_side_t *side)
{
    int is_told;

    do {
        ucp_st_worker_progress(side->worker);
        ucp_st_worker_lock(side->worker);
        is_told = (side->peer->state == UCP_ST_PEER_GONE) &&
                  !ucp_st_ctrl_is_sending(side->peer);
        ucp_st_worker_unlock(side->worker);
    } while (!is_told);
}

static ucs_status_t op_status(ucp_st_op_h op)
{
    ucp_st_op_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_op_query(op, &attr), UCS_OK);
    return attr.status;
}

/* One side has declared the other one lost, which is copying: the stream passes
 * its wait when that is over, and what it starts after that does nothing */
static void run_lost_claimed(int who)
{
    ucp_st_queue_error_t error = {0};
    scene_t scene;
    st_side_t *other;
    ucp_st_op_h op;
    int i;

    scene_init(&scene, who);
    other = &scene.near.pair.side[!who];
    op    = scene.near.op[!who];
    st_wait(other, op);
    st_use(other, op);
    st_wait(&scene.near.pair.side[who], scene.near.op[who]);
    lose(other);
    while (op_status(op) == UCS_OK) {
        ucp_st_worker_progress(other->worker);
    }
    for (i = 0; i < ROUNDS; ++i) {
        ucp_st_worker_progress(other->worker);
        CU_ASSERT_EQUAL(ucp_st_queue_query(other->queue, NULL), UCS_INPROGRESS);
        CU_ASSERT_EQUAL(ucp_st_op_free(op), UCS_ERR_BUSY);
    }
    scene_copy(&scene);
    (void)pthread_mutex_unlock(scene_mutex(&scene));
    CU_ASSERT_EQUAL(ucp_st_queue_wait(other->queue, &error),
                    UCS_ERR_ENDPOINT_TIMEOUT);
    CU_ASSERT_PTR_EQUAL(error.op, op);
    /* The use is complete there, if nobody has said otherwise yet */
    if (ucp_st_queue_wait(scene.near.pair.side[who].queue, NULL) == UCS_OK) {
        near_check(&scene.near, 3);
    }
    /* Nothing of the second use */
    CU_ASSERT_EQUAL(__atomic_load_n(&scene.pair->claim, __ATOMIC_ACQUIRE) >>
                    CLAIM_USE_SHIFT, 1);
    lose_until_told(other);
    /* It answers that it has lost the other one, too */
    lose_until_told(&scene.near.pair.side[who]);
    near_cleanup(&scene.near);
}

ST_CASE(lost_claimed)
{
    if (st_needs_host()) {
        return; /* the service thread moves the use of another one at once */
    }
    run_lost_claimed(ST_A);
    run_lost_claimed(ST_B);
}

static void fail_op(st_side_t *side, ucp_st_op_h op)
{
    ucp_st_worker_lock(side->worker);
    ucp_st_op_fail(op, UCS_ERR_IO_ERROR);
    ucp_st_worker_unlock(side->worker);
}

/* A send fails while its receive copies. When that is over the receiver gives
 * the pair to another sender, before the first one was answered. */
ST_CASE(failed_claimed)
{
    ucp_st_op_h next[2];
    st_side_t third = {0};
    scene_t scene;
    st_side_t *a, *b;
    st_pair_t pair;

    if (st_needs_host()) {
        return;
    }
    scene_init(&scene, ST_B);
    near_side_init(&third, NULL);
    a = &scene.near.pair.side[ST_A];
    b = &scene.near.pair.side[ST_B];
    st_wait(a, scene.near.op[ST_A]);
    st_hook_hold(b->worker->uuid, a->worker->uuid);
    fail_op(a, scene.near.op[ST_A]);
    scene_copy(&scene);
    (void)pthread_mutex_unlock(scene_mutex(&scene));
    while (op_status(scene.near.op[ST_B]) == UCS_OK) {
        ucp_st_worker_progress(b->worker);
    }
    st_free(scene.near.op[ST_B]);

    pair.side[ST_A]      = third;
    pair.side[ST_A].peer = st_side_peer(&third, b);
    pair.side[ST_B]      = *b;
    pair.side[ST_B].peer = st_side_peer(b, &third);
    next[ST_A]           = st_send(&pair.side[ST_A], scene.near.sbuf, LEN, 1);
    next[ST_B]           = st_recv(&pair.side[ST_B], scene.near.rbuf, LEN, 1);
    st_match_ok(next[ST_A], next[ST_B]);
    CU_ASSERT_PTR_EQUAL(ucp_st_direct_op(next[ST_B])->pair, scene.pair);
    CU_ASSERT_FALSE(scene.near.op[ST_A]->peer_closed);
    st_hook_am_send(NULL);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(a->queue, NULL), UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(__atomic_load_n(&scene.pair->claim, __ATOMIC_ACQUIRE), 0);

    st_free2(next[ST_A], next[ST_B]);
    st_side_leave(&pair.side[ST_A], b);
    scene.near.op[ST_B] = st_send(b, scene.near.sbuf, 8, 9);
    near_cleanup(&scene.near);
}

/* The queue of a send goes whose receive was freed, and whose pair another
 * sender has by now: nothing of that one's changes */
ST_CASE(queue_gone)
{
    st_side_t third = {0};
    ucp_st_direct_pair_t *memory;
    ucp_st_op_h next[2];
    st_side_t more;
    near_t near;
    st_side_t *a, *b;
    st_pair_t pair;
    uint64_t record;

    near_init(&near, NULL, LEN);
    near_side_init(&third, NULL);
    a      = &near.pair.side[ST_A];
    b      = &near.pair.side[ST_B];
    memory = ucp_st_direct_op(near.op[ST_B])->pair;
    near_fill(&near, 1);
    st_more_init(&more, a);
    st_use(&more, near.op[ST_A]);
    st_use(b, near.op[ST_B]);
    st_sync(&more);
    st_sync(b);
    st_free(near.op[ST_B]);
    do {
        ucp_st_worker_progress(a->worker);
        ucp_st_worker_progress(b->worker);
    } while (st_stats(b).freed > 0);

    pair.side[ST_A]      = third;
    pair.side[ST_A].peer = st_side_peer(&third, b);
    pair.side[ST_B]      = *b;
    pair.side[ST_B].peer = st_side_peer(b, &third);
    next[ST_A]           = st_send(&pair.side[ST_A], near.sbuf, LEN, 1);
    next[ST_B]           = st_recv(&pair.side[ST_B], near.rbuf, LEN, 1);
    st_match_ok(next[ST_A], next[ST_B]);
    CU_ASSERT_PTR_EQUAL(ucp_st_direct_op(next[ST_B])->pair, memory);
    st_use(&pair.side[ST_A], next[ST_A]);
    st_use(&pair.side[ST_B], next[ST_B]);
    st_pair_sync(&pair);
    record = memory->side[UCP_ST_DIR_SEND].record;
    CU_ASSERT_NOT_EQUAL(record, 0);
    st_more_cleanup(&more);
    CU_ASSERT_EQUAL(memory->side[UCP_ST_DIR_SEND].record, record);

    st_free2(next[ST_A], next[ST_B]);
    st_side_leave(&pair.side[ST_A], b);
    near.op[ST_B] = st_send(b, near.sbuf, 8, 9);
    near_cleanup(&near);
}

ST_SUITE("st_direct_end")
