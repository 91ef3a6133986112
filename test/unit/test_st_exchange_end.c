/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_exchange_end.c - exchanges that find no room, fail or are freed: all
 * of one together.
 */
#include "fab_intercept.h"
#include "st_cunit.h"
#include "st_halves.h"
#include "st_stream.h"

#include <rdma/fi_errno.h>

static const shape_t two   = {.sends = 2, .recvs = 2};
static const shape_t three = {.sends = 3, .recvs = 3};

/* How the match of an exchange has ended */
static ucs_status_t match_ends(half_t halves[2], int k)
{
    ucs_status_t status;

    while ((status = ucp_st_exchange_match_test(halves[k].exchange)) ==
           UCS_INPROGRESS) {
        ucp_st_worker_progress(halves[!k].side->worker);
    }
    return status;
}

/* Two exchanges where the card has `count` more counters; zero if they have not
 * found enough, also at a second attempt. Then nothing stays of them. */
static int try_match(st_pair_t *pair, const shape_t *shape, unsigned count)
{
    uint64_t cntrs[2];
    half_t halves[2];
    ucs_status_t status[2];
    int try, k;

    for (k = 0; k < 2; ++k) {
        cntrs[k] = st_stats(&pair->side[k]).cntrs;
        half_init(&halves[k], &pair->side[k], k, shape);
        half_join(&halves[k], UCP_ST_EXCHANGE_FLAG_COUPLED);
    }
    fab_intercept_fail_after(FAB_CALL_CNTR, count, FI_ENOSPC);
    for (try = 0; try < 2; ++try) {
        for (k = 0; k < 2; ++k) {
            CU_ASSERT_EQUAL(ucp_st_exchange_imatch(halves[k].exchange), UCS_OK);
        }
        for (k = 0; k < 2; ++k) {
            status[k] = match_ends(halves, k);
            CU_ASSERT((status[k] == UCS_OK) ||
                      (status[k] == UCS_ERR_NO_RESOURCE));
        }
        CU_ASSERT_EQUAL(status[0], status[1]);
        if (status[0] == UCS_OK) {
            break;
        }
    }
    /* A use takes some, too, where the provider has no limit */
    fab_intercept_fail_all(FAB_CALL_LAST, 0);
    if (status[0] == UCS_OK) {
        halves_use(halves, pair, 1);
    }
    half_cleanup(&halves[ST_A]);
    half_cleanup(&halves[ST_B]);
    st_drain(pair);
    for (k = 0; k < 2; ++k) {
        CU_ASSERT_EQUAL(st_stats(&pair->side[k]).cntrs, cntrs[k]);
    }
    return status[0] == UCS_OK;
}

/* Counters run out at each of those that two exchanges create: what they have
 * goes with them, and one that needs fewer matches then */
ST_CASE(few_counters)
{
    enum {
        NEEDED = 6,
        FEWER  = 3 /* of a ready send and its receive */
    };
    static const shape_t ready = {.sends = 1, .is_ready = 1};
    int64_t objects;
    st_pair_t pair;
    char *lanes;
    unsigned n;

    if (st_lane() != UCP_ST_LANE_TRIG) {
        st_cunit_skip("about lane trig");
        return;
    }
    lanes = st_env_set("UCX_ST_LANES", "trig");
    for (n = 0; n <= NEEDED; ++n) {
        st_pair_init(&pair);
        CU_ASSERT_EQUAL(try_match(&pair, &three, n), n == NEEDED);
        /* Counters may be kept for others */
        objects = fab_intercept_open();
        CU_ASSERT((n == NEEDED) || !try_match(&pair, &three, 0));
        CU_ASSERT_EQUAL(fab_intercept_open(), objects);
        CU_ASSERT((n < FEWER) || try_match(&pair, &ready, n));
        st_pair_cleanup(&pair);
    }
    st_env_restore("UCX_ST_LANES", lanes);
}

/* S9: counterpart number `index` is freed while the exchange is under way, the
 * others are not started: all fails, its waits pass, and nothing stays */
static void run_lost_half(uint64_t flags, size_t index)
{
    ucp_st_queue_error_t error;
    half_t halves[2];
    ucp_st_op_attr_t attr;
    st_pair_t pair;
    size_t i;

    if (!st_pair_init(&pair)) {
        return;
    }
    half_init(&halves[ST_A], &pair.side[ST_A], ST_A, &three);
    half_init(&halves[ST_B], &pair.side[ST_B], ST_B, &three);
    half_join(&halves[ST_A], flags);
    halves_match(halves);
    halves_use(halves, &pair, 1);
    half_start(&halves[ST_A]);
    half_wait(&halves[ST_A]);
    st_free(halves[ST_B].ops[index]);
    while (ucp_st_queue_query(pair.side[ST_A].queue, &error) ==
           UCS_INPROGRESS) {
        ucp_st_worker_progress(pair.side[ST_B].worker);
    }
    CU_ASSERT_EQUAL(error.status, UCS_ERR_CANCELED);
    for (i = 0; i < 6; ++i) {
        CU_ASSERT_EQUAL(ucp_st_op_query(halves[ST_A].ops[i], &attr), UCS_OK);
        CU_ASSERT_EQUAL(attr.status, UCS_ERR_CANCELED);
    }
    CU_ASSERT_NOT_EQUAL(ucp_st_enqueue_exchange_start(pair.side[ST_A].queue,
                                                      halves[ST_A].exchange),
                        UCS_OK);
    /* The others' halves cannot be started any more */
    for (i = 0; i < 6; ++i) {
        if (i != index) {
            CU_ASSERT_TRUE(st_start_becomes(&pair, &pair.side[ST_B],
                                            halves[ST_B].ops[i],
                                            UCS_ERR_CANCELED));
            st_free(halves[ST_B].ops[i]);
        }
    }
    halves[ST_B].sends = halves[ST_B].recvs = 0;
    half_cleanup(&halves[ST_A]);
    half_cleanup(&halves[ST_B]);
    st_drain(&pair);
    st_pair_cleanup(&pair);
}

ST_CASE(lost_half)
{
    run_lost_half(0, 0);
    run_lost_half(0, 5);
}

ST_CASE(lost_half_coupled)
{
    run_lost_half(UCP_ST_EXCHANGE_FLAG_COUPLED, 0);
    run_lost_half(UCP_ST_EXCHANGE_FLAG_COUPLED, 5);
}

/* A and B as in other cases; B's exchange, of that mode, has one more send, to
 * C, which is on its own */
typedef struct {
    half_t      halves[2];
    ucp_st_op_h ops[5];
    st_side_t   b_of_c; /* B, as C's peer */
    st_side_t   c;
    ucp_st_op_h recv;   /* of C */
    uint8_t     sent[ST_LONG]; /* it needs both sides */
    uint8_t     received[ST_LONG];
} third_t;

static void third_init(third_t *third, st_pair_t *pair, uint64_t flags)
{
    st_side_t *b = &pair->side[ST_B];
    int i;

    st_side_init(&third->c);
    third->c.peer      = st_side_peer(&third->c, b);
    third->b_of_c      = *b;
    third->b_of_c.peer = st_side_peer(b, &third->c);
    st_fill(third->sent, ST_LONG, 7);
    half_init(&third->halves[ST_A], &pair->side[ST_A], ST_A, &two);
    half_init(&third->halves[ST_B], b, ST_B, &two);
    for (i = 0; i < 4; ++i) {
        third->ops[i] = third->halves[ST_B].ops[i];
    }
    third->ops[4] = st_send(&third->b_of_c, third->sent, ST_LONG, 7);
    third->recv   = st_recv(&third->c, third->received, ST_LONG, 7);
    CU_ASSERT_EQUAL(ucp_st_exchange_create(b->worker, third->ops, 5, flags,
                                           &third->halves[ST_B].exchange),
                    UCS_OK);
}

/* A has or has not an exchange */
static void third_match(third_t *third)
{
    st_match_ok(third->ops[4], third->recv);
    halves_match(third->halves);
}

static void third_cleanup(third_t *third)
{
    half_cleanup(&third->halves[ST_B]);
    ucp_st_peer_destroy(third->b_of_c.peer);
}

/* S9: what B has with C fails before B's stream comes to its start, and so all
 * that B has with A in the same exchange: A's fails in the midst of a use */
ST_PAIR_CASE(lost_third)
{
    static third_t third;
    half_t *halves = third.halves;
    uint64_t gate  = 0;
    ucp_st_queue_error_t error;
    ucp_st_op_attr_t attr;
    int i;

    third_init(&third, pair, UCP_ST_EXCHANGE_FLAG_COUPLED);
    half_join(&halves[ST_A], 0);
    third_match(&third);
    st_use(&third.c, third.recv);
    halves_use(halves, pair, 1);
    st_sync(&third.c);
    CU_ASSERT_TRUE(st_check(third.received, ST_LONG, 7));

    half_start(&halves[ST_A]);
    half_wait(&halves[ST_A]);
    st_hold(b, &gate);
    half_start(&halves[ST_B]);
    half_wait(&halves[ST_B]);
    st_free(third.recv);
    do {
        ucp_st_worker_progress(b->worker);
        ucp_st_worker_progress(third.c.worker);
        CU_ASSERT_EQUAL(ucp_st_op_query(third.ops[0], &attr), UCS_OK);
    } while (attr.status == UCS_OK);
    st_let_go(&gate);
    for (i = 0; i < 2; ++i) {
        while (ucp_st_queue_query(pair->side[i].queue, &error) ==
               UCS_INPROGRESS) {
            ucp_st_worker_progress(pair->side[!i].worker);
            ucp_st_worker_progress(third.c.worker);
        }
        CU_ASSERT_EQUAL(error.status, UCS_ERR_CANCELED);
    }
    for (i = 0; i < 4; ++i) {
        CU_ASSERT_EQUAL(ucp_st_op_query(halves[ST_A].ops[i], &attr), UCS_OK);
        CU_ASSERT_EQUAL(attr.status, UCS_ERR_CANCELED);
    }
    half_cleanup(&halves[ST_A]);
    third_cleanup(&third);
    st_side_leave(&third.c, b);
    st_drain(pair);
    (void)a;
}

/* A is through with all that it has with B, and goes, while B's exchange waits
 * for C: that is no error of the exchange, which cannot be started again. On
 * lane trig A goes when it has waited for its time. */
ST_CASE(gone_third)
{
    static third_t third;
    char *old = st_env_set("UCX_ST_ERR_TIMEOUT", "500ms");
    st_side_t *a, *b;
    st_pair_t pair;
    int i;

    st_pair_init(&pair);
    st_env_restore("UCX_ST_ERR_TIMEOUT", old);
    a = &pair.side[ST_A];
    b = &pair.side[ST_B];
    third_init(&third, &pair, 0);
    third_match(&third);
    half_fill(&third.halves[ST_A], 1);
    half_fill(&third.halves[ST_B], 1);
    half_start(&third.halves[ST_B]);
    half_wait(&third.halves[ST_B]);
    half_start(&third.halves[ST_A]);
    half_wait(&third.halves[ST_A]);
    st_sync(a);
    half_check(&third.halves[ST_A], 1);
    half_cleanup(&third.halves[ST_A]);
    st_side_leave(a, b);
    for (i = 0; i < 100; ++i) {
        ucp_st_worker_progress(b->worker);
        CU_ASSERT_EQUAL(ucp_st_queue_query(b->queue, NULL), UCS_INPROGRESS);
    }
    st_use(&third.c, third.recv);
    st_sync(b);
    st_sync(&third.c);
    half_check(&third.halves[ST_B], 1);
    CU_ASSERT_TRUE(st_check(third.received, ST_LONG, 7));
    CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_start(b->queue,
                                                  third.halves[ST_B].exchange),
                    UCS_ERR_CANCELED);
    third_cleanup(&third);
    st_free(third.recv);
    st_side_leave(&third.c, b);
    st_side_cleanup(b);
}

/* S12: freed in every state before */
ST_PAIR_CASE(freed_early)
{
    half_t halves[2];

    half_init(&halves[ST_A], a, ST_A, &two);
    half_join(&halves[ST_A], 0);
    half_cleanup(&halves[ST_A]);

    half_init(&halves[ST_A], a, ST_A, &two);
    half_join(&halves[ST_A], UCP_ST_EXCHANGE_FLAG_COUPLED);
    CU_ASSERT_EQUAL(ucp_st_exchange_imatch(halves[ST_A].exchange), UCS_OK);
    half_cleanup(&halves[ST_A]);
    st_drain(pair); /* the peer has forgotten them */

    half_init(&halves[ST_A], a, ST_A, &two);
    half_init(&halves[ST_B], b, ST_B, &two);
    half_join(&halves[ST_A], UCP_ST_EXCHANGE_FLAG_COUPLED);
    halves_match(halves);
    half_cleanup(&halves[ST_A]);
    half_cleanup(&halves[ST_B]);
    st_drain(pair);
}

ST_SUITE("st_exchange_end")
