/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_exchange.c - exchanges: data, what they cost, and what is refused.
 * test_st_exchange_end.c has how they end.
 */
#include "../integration/st_any.h"
#include "st_cunit.h"
#include "st_halves.h"

#include <stdlib.h>

#define HALO 26   /* neighbours */
#define USES 20

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

/* Side A's operations are of an exchange, B's are of the one that is given, if
 * any. With ready sends A only sends, and B only receives. */
static void run_shape(const shape_t *shape, const uint64_t *flags_b)
{
    int is_trig      = (st_lane() == UCP_ST_LANE_TRIG);
    uint64_t both    = shape->flags & ((flags_b == NULL) ? 0 : *flags_b);
    int is_coupled   = !!(both & UCP_ST_EXCHANGE_FLAG_COUPLED);
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
    if (flags_b != NULL) {
        half_join(&halves[ST_B], *flags_b);
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

static const shape_t two  = {.sends = 2, .recvs = 2};
static const shape_t four = {.sends = 4, .recvs = 4};

/* What a use costs, of the card and of the stream (docs/protocols.md) */
ST_CASE(both_sides)
{
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(shapes); ++i) {
        run_shape(&shapes[i], &shapes[i].flags);
    }
}

/* The counterparts are used alone */
ST_CASE(one_side)
{
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(shapes); ++i) {
        run_shape(&shapes[i], NULL);
    }
}

/* The counterparts are of an exchange that is not coupled: no side's is */
ST_CASE(one_is_coupled)
{
    static const uint64_t flags = 0;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(shapes); ++i) {
        run_shape(&shapes[i], &flags);
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

/* Twenty halos of a process, all on the lane */
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

int main(int argc, char **argv)
{
    setenv("FI_CXIEMU_DEVICES", "2", 0);
    return st_cunit_main("st_exchange", argc, argv);
}
