/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_many.c - what a card has room for, between processes: a thousand
 * pairs, and messages while another process holds all entries for deferred
 * work. A match never takes another lane, or fails, for want of entries.
 */
#include "st_cunit.h"
#include "uct_pair.h"
#include "../integration/st_msg.h"

#include <stdio.h>
#include <stdlib.h>

#define LIMIT   300 /* seconds; on a busy machine */
#define USES    3
#define LONG    16384 /* more than is sent ahead of its receive */
#define TAKER   2     /* the rank that holds entries */
#define ENTRIES "96"

/* Of the exchange of a rank: sends, then receives */
#define SENDS  3
#define JOINED (2 * SENDS)

/** One of the two ranks that send to each other. */
typedef struct {
    st_rank_t         *me;
    ucp_st_queue_h    queue;
    ucs_gstream_h     stream;
    ucp_st_exchange_h exchange;
    st_msg_t          joined[JOINED];
    st_msg_t          alone[2];
} side_t;


/* A counter is this process's, or, on cxi, of a card of both */
static size_t count_pairs(void)
{
    return st_env_has_provider("cxi") ? 250 : 1000;
}

/* The host enqueues all uses at once */
static void use_all(st_rank_t *me, st_msg_t *msgs, size_t count,
                    ucp_st_queue_h queue)
{
    ucs_gstream_h stream = st_rank_stream(me, 0);
    size_t i, k;

    for (k = 0; k < USES; ++k) {
        for (i = 0; (i < count) && msgs[0].is_send; ++i) {
            st_msg_work(&msgs[i], stream);
        }
        st_msg_startall(msgs, count, queue);
        st_msg_waitall(msgs, count, queue);
        for (i = 0; (i < count) && !msgs[0].is_send; ++i) {
            st_msg_work(&msgs[i], stream);
        }
    }
    st_msg_sync_stream(me, queue, stream);
}

static void pairs_main(st_rank_t *me)
{
    size_t count           = count_pairs();
    st_msg_t *msgs         = calloc(count, sizeof(*msgs));
    st_msg_params_t params = {
        .is_send = (me->index == 0),
        .peer    = !me->index
    };
    ucp_st_worker_attr_t attr;
    ucp_st_queue_h queue;
    size_t i;

    ST_CHECK(me, msgs != NULL);
    for (i = 0; i < count; ++i) {
        params.tag    = i;
        params.length = (i % 2) ? LONG : 64;
        st_msg_init(me, &msgs[i], &params);
    }
    queue = st_rank_queue(me, &me->node, 0);
    st_rank_at(me, "matching");
    st_msg_match(me, msgs, count);
    ST_OK(me, ucp_st_worker_query(me->node.worker, &attr));
    ST_CHECK(me, attr.stats.fallbacks == 0);
    ST_CHECK(me, attr.stats.lanes[UCP_ST_LANE_TRIG].matches == count);
    ST_CHECK(me, attr.stats.cntrs == (2 * count));
    ST_CHECK(me, attr.stats.entries == 0);
    st_rank_at(me, "using");
    use_all(me, msgs, count, queue);
    ST_OK(me, ucp_st_queue_destroy(queue));
    for (i = 0; i < count; ++i) {
        st_msg_free(&msgs[i]);
    }
    free(msgs);
    st_rank_settle(me, &me->node);
}

static void side_init(side_t *side, st_rank_t *me)
{
    st_msg_params_t params = {.peer = !me->index, .length = LONG};
    ucp_st_op_h ops[JOINED];
    int i;

    side->me     = me;
    side->queue  = st_rank_queue(me, &me->node, 0);
    side->stream = st_rank_stream(me, 0);
    for (i = 0; i < JOINED; ++i) {
        params.is_send = (i < SENDS);
        params.tag     = i % SENDS;
        st_msg_init(me, &side->joined[i], &params);
        ops[i] = side->joined[i].op;
    }
    ST_OK(me, ucp_st_exchange_create(me->node.worker, ops, JOINED,
                                     UCP_ST_EXCHANGE_FLAG_COUPLED,
                                     &side->exchange));
    for (i = 0; i < 2; ++i) {
        params.is_send = (i == 0);
        params.tag     = SENDS;
        st_msg_init(me, &side->alone[i], &params);
    }
    st_rank_at(me, "matching");
    ST_OK(me, ucp_st_exchange_match(side->exchange));
    st_msg_match(me, side->alone, 2);
}

/* What is of the exchange is freed with it */
static void side_cleanup(side_t *side)
{
    int i;

    ST_OK(side->me, ucp_st_exchange_free(side->exchange));
    for (i = 0; i < JOINED; ++i) {
        st_place_put(&side->joined[i].place);
    }
    for (i = 0; i < 2; ++i) {
        st_msg_free(&side->alone[i]);
    }
    ST_OK(side->me, ucp_st_queue_destroy(side->queue));
}

static void side_work(side_t *side, int is_send)
{
    int i;

    for (i = 0; i < SENDS; ++i) {
        st_msg_work(&side->joined[is_send ? i : SENDS + i], side->stream);
    }
    st_msg_work(&side->alone[!is_send], side->stream);
}

/* Some uses; how many pieces of work a host has had carried out meanwhile */
static uint64_t side_use(side_t *side)
{
    st_rank_t *me = side->me;
    ucp_st_worker_attr_t before, after;
    int i;

    ST_OK(me, ucp_st_worker_query(me->node.worker, &before));
    for (i = 0; i < USES; ++i) {
        side_work(side, 1);
        ST_OK(me, ucp_st_enqueue_exchange_start(side->queue, side->exchange));
        st_msg_startall(side->alone, 2, side->queue);
        ST_OK(me, ucp_st_enqueue_exchange_wait(side->queue, side->exchange));
        st_msg_waitall(side->alone, 2, side->queue);
        side_work(side, 0);
    }
    st_msg_sync_stream(me, side->queue, side->stream);
    ST_OK(me, ucp_st_worker_query(me->node.worker, &after));
    ST_CHECK(me, after.stats.fallbacks == 0);
    return after.stats.proxied - before.stats.proxied;
}

static void taker_main(st_rank_t *me)
{
    uct_pair_hold_t hold;
    uct_trig_iface_attr_t attr;
    uct_pair_t pair;

    st_rank_at(me, "taking all entries");
    ST_CHECK(me, uct_pair_create(&pair, NULL) == 0);
    ST_OK(me, uct_trig_iface_query(pair.a.iface, &attr));
    ST_OK(me, uct_pair_hold(&pair, (unsigned)attr.max_entries, &hold));
    st_rank_barrier(me);
    st_rank_barrier(me);
    uct_pair_unhold(&pair, &hold);
    st_rank_barrier(me);
    st_rank_barrier(me);
    uct_pair_destroy(&pair);
}

/* They match, start and wait while there is no entry, and then with some */
static void taken_main(st_rank_t *me)
{
    side_t *side;

    if (me->index == TAKER) {
        taker_main(me);
        st_rank_settle(me, &me->node);
        return;
    }
    side = calloc(1, sizeof(*side));
    ST_CHECK(me, side != NULL);
    st_rank_barrier(me);
    side_init(side, me);
    st_rank_at(me, "using what has no entries");
    ST_CHECK(me, side_use(side) > 0);
    st_rank_barrier(me);
    st_rank_barrier(me);
    st_rank_at(me, "using what has entries");
    ST_CHECK(me, side_use(side) == 0);
    st_rank_barrier(me);
    side_cleanup(side);
    free(side);
    st_rank_settle(me, &me->node);
}

static void run(int count, void (*main)(st_rank_t *me), const char *lanes,
                const char *service)
{
    const char *const env[]  = {
        "UCX_ST_LANES", lanes, "FI_CXIEMU_SERVICE", service, NULL
    };
    st_world_params_t params = {
        .count = count,
        .limit = LIMIT,
        .env   = env,
        .main  = main
    };
    char reason[ST_WORLD_REASON];
    int result               = st_world_run(&params, reason);

    CU_ASSERT_EQUAL(result, 0);
    if (result != 0) {
        puts(reason);
    }
}

ST_CASE(thousand_pairs)
{
    run(2, pairs_main, "trig", "own");
    run(2, pairs_main, "trig,host", "own");
}

ST_CASE_IF(taken, !st_env_has_provider("sockets"),
           "the provider has no limit that processes share")
{
    char *entries = st_env_set("FI_CXIEMU_DWQ_ENTRIES", ENTRIES);

    run(3, taken_main, "trig,host", "");
    st_env_restore("FI_CXIEMU_DWQ_ENTRIES", entries);
}

int main(int argc, char **argv)
{
    st_world_prepare(argv);
    return st_cunit_main("st_many", argc, argv);
}
