/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_exchange.c - exchanges: data, what they cost on lane trig, what is
 * refused, and that they fail as a whole.
 */
#include "../integration/st_any.h"
#include "fab_intercept.h"
#include "st_cunit.h"
#include "st_pair.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>

#define HALO 26   /* neighbours */
#define LEN  1000
#define USES 20

/* How many of each, of which mode; and of the exchange */
typedef struct {
    int      sends;
    int      recvs;
    int      is_ready;
    uint64_t flags;
} shape_t;

/* One side's operations, and buffers */
typedef struct {
    st_side_t         *side;
    int               sends;
    int               recvs;
    uint8_t           (*sbuf)[LEN];
    uint8_t           (*rbuf)[LEN];
    ucp_st_op_h       *ops; /* sends, then receives */
    ucp_st_exchange_h exchange; /* NULL: the operations are used alone */
} half_t;

static size_t half_count(const half_t *half)
{
    return half->sends + half->recvs;
}

/* Tags of side A's sends are even, those of B's odd. `shape` is that of A,
 * whose sends B receives. */
static void half_init(half_t *half, st_side_t *side, int index,
                      const shape_t *shape)
{
    int sends    = (index == ST_A) ? shape->sends : shape->recvs;
    int recvs    = (index == ST_A) ? shape->recvs : shape->sends;
    int is_ready = (index == ST_A) && shape->is_ready;
    int i;

    *half = (half_t){.side = side, .sends = sends, .recvs = recvs};
    half->sbuf = calloc(sends + 1, LEN);
    half->rbuf = calloc(recvs + 1, LEN);
    half->ops  = calloc(sends + recvs + 1, sizeof(*half->ops));
    CU_ASSERT_FATAL((half->sbuf != NULL) && (half->rbuf != NULL) &&
                    (half->ops != NULL));
    for (i = 0; i < sends; ++i) {
        half->ops[i] = (is_ready ? st_rsend : st_send)(side, half->sbuf[i], LEN,
                                                       (2 * i) + index);
    }
    for (i = 0; i < recvs; ++i) {
        half->ops[sends + i] = st_recv(side, half->rbuf[i], LEN,
                                       (2 * i) + !index);
    }
}

static void half_join(half_t *half, uint64_t flags)
{
    CU_ASSERT_EQUAL_FATAL(ucp_st_exchange_create(half->side->worker, half->ops,
                                                 half_count(half), flags,
                                                 &half->exchange), UCS_OK);
}

static void half_start(half_t *half)
{
    CU_ASSERT_EQUAL((half->exchange == NULL) ?
                    ucp_st_enqueue_startall(half->side->queue, half->ops,
                                            half_count(half)) :
                    ucp_st_enqueue_exchange_start(half->side->queue,
                                                  half->exchange), UCS_OK);
}

static void half_wait(half_t *half)
{
    CU_ASSERT_EQUAL((half->exchange == NULL) ?
                    ucp_st_enqueue_waitall(half->side->queue, half->ops,
                                           half_count(half)) :
                    ucp_st_enqueue_exchange_wait(half->side->queue,
                                                 half->exchange), UCS_OK);
}

static void half_cleanup(half_t *half)
{
    size_t i;

    if (half->exchange != NULL) {
        CU_ASSERT_EQUAL(ucp_st_exchange_free(half->exchange), UCS_OK);
    }
    for (i = 0; (half->exchange == NULL) && (i < half_count(half)); ++i) {
        st_free(half->ops[i]);
    }
    free(half->ops);
    free(half->sbuf);
    free(half->rbuf);
}

static void halves_match(half_t halves[2])
{
    size_t i;
    int k;

    for (k = 0; k < 2; ++k) {
        CU_ASSERT_EQUAL((halves[k].exchange == NULL) ?
                        ucp_st_imatchall(halves[k].ops,
                                         half_count(&halves[k])) :
                        ucp_st_exchange_imatch(halves[k].exchange), UCS_OK);
    }
    for (k = 0; k < 2; ++k) {
        for (i = 0; i < half_count(&halves[k]); ++i) {
            while (ucp_st_match_test(halves[k].ops[i]) == UCS_INPROGRESS) {
                ucp_st_worker_progress(halves[!k].side->worker);
            }
            CU_ASSERT_EQUAL(ucp_st_match_test(halves[k].ops[i]), UCS_OK);
        }
        if (halves[k].exchange != NULL) {
            CU_ASSERT_EQUAL(ucp_st_exchange_match_test(halves[k].exchange),
                            UCS_OK);
        }
    }
}

/* Fill what use k sends */
static void half_fill(half_t *half, uint64_t use)
{
    int i;

    for (i = 0; i < half->sends; ++i) {
        st_fill(half->sbuf[i], LEN, (use * 1000) + i);
    }
}

static void half_check(const half_t *half, uint64_t use)
{
    int i;

    for (i = 0; i < half->recvs; ++i) {
        CU_ASSERT_TRUE(st_check(half->rbuf[i], LEN, (use * 1000) + i));
    }
}

/* Receives are started before the sends are, as ready ones need */
static void halves_use(half_t halves[2], st_pair_t *pair, uint64_t use)
{
    half_fill(&halves[ST_A], use);
    half_fill(&halves[ST_B], use);
    half_start(&halves[ST_B]);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(pair->side[ST_B].stream), UCS_OK);
    half_start(&halves[ST_A]);
    half_wait(&halves[ST_A]);
    half_wait(&halves[ST_B]);
    st_pair_sync(pair);
    half_check(&halves[ST_A], use);
    half_check(&halves[ST_B], use);
}

/* What a use of a side has cost so far, by its statistics */
typedef struct {
    uint64_t stores;
    uint64_t words;
    uint64_t deferred;
} cost_t;

static cost_t cost_of(const st_side_t *side)
{
    ucp_st_stats_t stats = st_stats(side);

    return (cost_t){
        .stores   = stats.start_cmds,
        .words    = stats.wait_words,
        .deferred = stats.writes_fired + stats.cts_fired + stats.atomics_fired
    };
}

/* Side A's operations are of an exchange, B's are or are not. With ready sends
 * A only sends, and B only receives. */
static void run_shape(const shape_t *shape, int both)
{
    int is_trig      = (st_lane() == UCP_ST_LANE_TRIG);
    int is_coupled   = !!(shape->flags & UCP_ST_EXCHANGE_FLAG_COUPLED);
    int standard     = shape->is_ready ? 0 : shape->sends;
    uint64_t starts  = (is_coupled ? (standard > 0) : standard) +
                       ((shape->recvs > 0) ||
                        (shape->is_ready && (shape->sends > 0)));
    uint64_t ops     = shape->sends + shape->recvs;
    /* Other lanes have a word for each operation, and a function that starts
     * all */
    uint64_t words   = is_trig ? (ops > 0) : ops;
    /* No stream of a GPU reaches the emulated card: one word tells a thread of
     * all starts of a call */
    uint64_t stores  = (is_trig && (st_any_type() == UCS_GSTREAM_TYPE_HOST)) ?
                       starts : (starts > 0);
    uint64_t cntrs;
    half_t halves[2];
    cost_t before, after;
    st_pair_t pair;
    int k;

    if (!st_pair_init(&pair)) {
        return;
    }
    cntrs = st_stats(&pair.side[ST_A]).cntrs;
    half_init(&halves[ST_A], &pair.side[ST_A], ST_A, shape);
    half_init(&halves[ST_B], &pair.side[ST_B], ST_B, shape);
    half_join(&halves[ST_A], shape->flags);
    if (both) {
        half_join(&halves[ST_B], shape->flags);
    }
    halves_match(halves);
    CU_ASSERT_EQUAL(st_stats(&pair.side[ST_A]).fallbacks, 0);
    if (is_trig) {
        CU_ASSERT_EQUAL(st_stats(&pair.side[ST_A]).cntrs - cntrs,
                        starts + words);
        CU_ASSERT_EQUAL(st_stats(&pair.side[ST_A]).entries, 0);
    }
    before = cost_of(&pair.side[ST_A]);
    for (k = 0; k < USES; ++k) {
        halves_use(halves, &pair, k);
    }
    after = cost_of(&pair.side[ST_A]);
    CU_ASSERT_EQUAL(after.stores - before.stores, stores * USES);
    CU_ASSERT_EQUAL(after.words - before.words, words * USES);
    if (is_trig) {
        CU_ASSERT_EQUAL(after.deferred - before.deferred,
                        (ops + words) * USES);
    }
    half_cleanup(&halves[ST_A]);
    half_cleanup(&halves[ST_B]);
    st_pair_cleanup(&pair);
}

static const shape_t shapes[] = {
    {.sends = HALO, .recvs = HALO},
    {.sends = HALO, .recvs = HALO, .flags = UCP_ST_EXCHANGE_FLAG_COUPLED},
    {.sends = HALO, .recvs = 0, .is_ready = 1},
    {.sends = 3, .recvs = 0},
    {.sends = 0, .recvs = 3},
    {.sends = 1, .recvs = 0, .flags = UCP_ST_EXCHANGE_FLAG_COUPLED},
    {.sends = 0, .recvs = 0}
};

static const shape_t two   = {.sends = 2, .recvs = 2};
static const shape_t three = {.sends = 3, .recvs = 3};
static const shape_t four  = {.sends = 4, .recvs = 4};

/* What a use costs, of the card and of the stream (docs/protocols.md) */
ST_CASE(both_sides)
{
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(shapes); ++i) {
        run_shape(&shapes[i], 1);
    }
}

/* The counterparts are used alone */
ST_CASE(one_side)
{
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(shapes); ++i) {
        run_shape(&shapes[i], 0);
    }
}

/* The hosts are far ahead of their streams, one side of the other */
static void run_ahead(uint64_t flags, unsigned max_uses)
{
    unsigned uses = st_any_ahead(max_uses);
    half_t halves[2];
    st_pair_t pair;
    unsigned i;
    int k;

    if (!st_pair_init(&pair)) {
        return;
    }
    for (k = 0; k < 2; ++k) {
        half_init(&halves[k], &pair.side[k], k, &four);
        half_join(&halves[k], flags);
    }
    halves_match(halves);
    for (k = 0; k < 2; ++k) {
        half_fill(&halves[k], 7);
        for (i = 0; i < uses; ++i) {
            half_start(&halves[k]);
            half_wait(&halves[k]);
        }
    }
    st_pair_sync(&pair);
    for (k = 0; k < 2; ++k) {
        half_check(&halves[k], 7);
        half_cleanup(&halves[k]);
    }
    st_pair_cleanup(&pair);
}

/* A card has entries for less than 60 of these uses */
ST_CASE_CALL(ahead, run_ahead(0, 200))
ST_CASE_CALL(ahead_coupled, run_ahead(UCP_ST_EXCHANGE_FLAG_COUPLED, 200))

/* Over several cards, in several writes, and with two entries a side */
ST_CASE(settings)
{
    static const char *const settings[][2] = {
        {"UCX_ST_TRIG_DEVICES", "2"},
        {"UCX_ST_CHUNK_MAX", "300"},
        {"UCX_CXI_TRIG_DEFERRED_ENTRIES", "2"}
    };
    char *old;
    size_t i;

    setenv("UCX_ST_CHUNK_MIN", "256", 1);
    for (i = 0; i < ST_CUNIT_COUNT(settings); ++i) {
        old = st_env_set(settings[i][0], settings[i][1]);
        run_ahead(0, 60);
        run_ahead(UCP_ST_EXCHANGE_FLAG_COUPLED, 60);
        st_env_restore(settings[i][0], old);
    }
    unsetenv("UCX_ST_CHUNK_MIN");
}

/* Twenty halos of a process, all on the lane, and a thousand operations */
ST_CASE(many)
{
    enum {
        HALOS = 20
    };
    int is_trig = (st_lane() == UCP_ST_LANE_TRIG);
    half_t halves[HALOS][2];
    st_pair_t pair;
    uint64_t cntrs;
    int i, k;

    if (!st_pair_init(&pair)) {
        return;
    }
    cntrs = st_stats(&pair.side[ST_A]).cntrs;
    for (i = 0; i < HALOS; ++i) {
        for (k = 0; k < 2; ++k) {
            half_init(&halves[i][k], &pair.side[k], k, &shapes[0]);
            half_join(&halves[i][k], UCP_ST_EXCHANGE_FLAG_COUPLED);
        }
        halves_match(halves[i]);
    }
    CU_ASSERT_EQUAL(st_stats(&pair.side[ST_A]).matches, 2 * HALO * HALOS);
    CU_ASSERT_EQUAL(st_stats(&pair.side[ST_A]).fallbacks, 0);
    if (is_trig) {
        CU_ASSERT_EQUAL(st_stats(&pair.side[ST_A]).cntrs - cntrs, 3 * HALOS);
        CU_ASSERT_EQUAL(st_stats(&pair.side[ST_A]).entries, 0);
    }
    for (i = 0; i < HALOS; ++i) {
        halves_use(halves[i], &pair, i);
    }
    for (i = 0; i < HALOS; ++i) {
        half_cleanup(&halves[i][ST_A]);
        half_cleanup(&halves[i][ST_B]);
    }
    st_pair_cleanup(&pair);
}

/* A thousand operations, which are more than a card has entries for */
ST_CASE(thousand)
{
    static const shape_t thousand = {.sends = 500, .recvs = 500};
    half_t halves[2];
    st_pair_t pair;
    uint64_t cntrs;
    int k;

    if (!st_pair_init(&pair)) {
        return;
    }
    cntrs = st_stats(&pair.side[ST_A]).cntrs;
    for (k = 0; k < 2; ++k) {
        half_init(&halves[k], &pair.side[k], k, &thousand);
        half_join(&halves[k], UCP_ST_EXCHANGE_FLAG_COUPLED);
    }
    halves_match(halves);
    CU_ASSERT_EQUAL(st_stats(&pair.side[ST_A]).fallbacks, 0);
    if (st_lane() == UCP_ST_LANE_TRIG) {
        CU_ASSERT_EQUAL(st_stats(&pair.side[ST_A]).cntrs - cntrs, 3);
        CU_ASSERT_EQUAL(st_stats(&pair.side[ST_A]).entries, 0);
    }
    for (k = 0; k < 3; ++k) {
        halves_use(halves, &pair, k);
    }
    half_cleanup(&halves[ST_A]);
    half_cleanup(&halves[ST_B]);
    st_pair_cleanup(&pair);
}

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

/* S5: what is of an exchange is used with it, and once before its wait */
ST_PAIR_CASE(refused)
{
    ucp_st_exchange_h other;
    half_t halves[2];
    ucp_st_op_h free_op;

    half_init(&halves[ST_A], a, ST_A, &two);
    half_init(&halves[ST_B], b, ST_B, &two);
    CU_ASSERT_EQUAL(ucp_st_exchange_create(a->worker, halves[ST_A].ops, 4, 2,
                                           &other), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_exchange_create(b->worker, halves[ST_A].ops, 4, 0,
                                           &other), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_exchange_create(a->worker, NULL, 4, 0, &other),
                    UCS_ERR_INVALID_PARAM);
    free_op = halves[ST_A].ops[3];
    halves[ST_A].ops[3] = halves[ST_A].ops[0];
    CU_ASSERT_EQUAL(ucp_st_exchange_create(a->worker, halves[ST_A].ops, 4, 0,
                                           &other), UCS_ERR_INVALID_PARAM);
    halves[ST_A].ops[3] = free_op;
    half_join(&halves[ST_A], 0);
    CU_ASSERT_EQUAL(ucp_st_exchange_create(a->worker, &halves[ST_A].ops[1], 1,
                                           0, &other), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_op_free(halves[ST_A].ops[1]), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_start(a->queue,
                                                  halves[ST_A].exchange),
                    UCS_ERR_NOT_CONNECTED);
    halves_match(halves);
    CU_ASSERT_EQUAL(ucp_st_exchange_create(b->worker, halves[ST_B].ops, 4, 0,
                                           &other), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_wait(a->queue,
                                                 halves[ST_A].exchange),
                    UCS_ERR_NO_MESSAGE);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(a->queue, halves[ST_A].ops[0]),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(a->queue, halves[ST_A].ops, 4),
                    UCS_ERR_INVALID_PARAM);
    half_start(&halves[ST_A]);
    CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_start(a->queue,
                                                  halves[ST_A].exchange),
                    UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(a->queue, halves[ST_A].ops[0]),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(a->queue, halves[ST_A].ops, 4),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_exchange_free(halves[ST_A].exchange), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_exchange_test(halves[ST_A].exchange),
                    UCS_INPROGRESS);
    half_start(&halves[ST_B]);
    half_wait(&halves[ST_A]);
    half_wait(&halves[ST_B]);
    st_pair_sync(pair);
    CU_ASSERT_EQUAL(ucp_st_exchange_test(halves[ST_A].exchange), UCS_OK);
    halves_use(halves, pair, 1);
    half_cleanup(&halves[ST_A]);
    half_cleanup(&halves[ST_B]);
}

/* S5: waited for on the queue of its start, and on another queue once the host
 * has seen that wait pass; on the same one it may be ahead */
ST_PAIR_CASE(other_queue)
{
    half_t halves[2];
    st_side_t more;
    int k;

    for (k = 0; k < 2; ++k) {
        half_init(&halves[k], &pair->side[k], k, &two);
        half_join(&halves[k], 0);
        half_fill(&halves[k], 3);
    }
    halves_match(halves);
    st_more_init(&more, a);
    half_start(&halves[ST_A]);
    CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_wait(more.queue,
                                                 halves[ST_A].exchange),
                    UCS_ERR_INVALID_PARAM);
    half_wait(&halves[ST_A]);
    CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_start(more.queue,
                                                  halves[ST_A].exchange),
                    UCS_ERR_BUSY);
    half_start(&halves[ST_A]);
    half_wait(&halves[ST_A]);
    for (k = 0; k < 2; ++k) {
        half_start(&halves[ST_B]);
        half_wait(&halves[ST_B]);
    }
    st_pair_sync(pair);
    halves[ST_A].side = &more;
    half_start(&halves[ST_A]);
    half_start(&halves[ST_B]);
    half_wait(&halves[ST_A]);
    half_wait(&halves[ST_B]);
    st_sync(&more);
    st_pair_sync(pair);
    half_check(&halves[ST_A], 3);
    half_check(&halves[ST_B], 3);
    half_cleanup(&halves[ST_A]);
    half_cleanup(&halves[ST_B]);
    st_more_cleanup(&more);
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

/* S9: what B has with C fails, and so all that B has with A in the same
 * exchange, whose sends wait for C: A's exchange fails in the midst of a use */
ST_PAIR_CASE(lost_third)
{
    uint8_t sent = 1, received = 0;
    ucp_st_queue_error_t error;
    ucp_st_op_h ops[5], recv;
    ucp_st_op_attr_t attr;
    half_t halves[2];
    st_side_t b_of_c; /* B, as C's peer */
    st_side_t c;
    size_t i;

    st_side_init(&c);
    c.peer      = st_side_peer(&c, b);
    b_of_c      = *b;
    b_of_c.peer = st_side_peer(b, &c);
    half_init(&halves[ST_A], a, ST_A, &two);
    half_init(&halves[ST_B], b, ST_B, &two);
    half_join(&halves[ST_A], 0);
    memcpy(ops, halves[ST_B].ops, 4 * sizeof(*ops));
    ops[4] = st_send(&b_of_c, &sent, 1, 7);
    recv   = st_recv(&c, &received, 1, 7);
    CU_ASSERT_EQUAL(ucp_st_exchange_create(b->worker, ops, 5,
                                           UCP_ST_EXCHANGE_FLAG_COUPLED,
                                           &halves[ST_B].exchange), UCS_OK);
    st_match_ok(ops[4], recv);
    halves_match(halves);

    st_use(&c, recv);
    halves_use(halves, pair, 1);
    st_sync(&c);
    CU_ASSERT_EQUAL(received, 1);

    half_start(&halves[ST_A]);
    half_start(&halves[ST_B]);
    half_wait(&halves[ST_A]);
    half_wait(&halves[ST_B]);
    st_free(recv);
    for (i = 0; i < 2; ++i) {
        while (ucp_st_queue_query(pair->side[i].queue, &error) ==
               UCS_INPROGRESS) {
            ucp_st_worker_progress(pair->side[!i].worker);
            ucp_st_worker_progress(c.worker);
        }
        CU_ASSERT_EQUAL(error.status, UCS_ERR_CANCELED);
    }
    for (i = 0; i < 4; ++i) {
        CU_ASSERT_EQUAL(ucp_st_op_query(halves[ST_A].ops[i], &attr), UCS_OK);
        CU_ASSERT_EQUAL(attr.status, UCS_ERR_CANCELED);
    }
    half_cleanup(&halves[ST_A]);
    half_cleanup(&halves[ST_B]);
    ucp_st_peer_destroy(b_of_c.peer);
    st_side_leave(&c, b);
    st_drain(pair);
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

int main(int argc, char **argv)
{
    setenv("FI_CXIEMU_DEVICES", "2", 0);
    return st_cunit_main("st_exchange", argc, argv);
}
