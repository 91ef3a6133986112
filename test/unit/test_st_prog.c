/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_prog.c - programs P3, P4, P5 and P10 of the semantics: nothing that
 * one side does late, or not at all, may hold up what has been started.
 */
#include "st_cunit.h"
#include "st_stream.h"

#include <stdlib.h>
#include <string.h>

#define OPS   64
#define USES  160 /* of 64 operations: more than 10,000 starts */
#define P5_OPS  26
#define P5_USES 50

/* P2 with message 1 on a queue of its own, at A alone or on both sides */
static void run_p3(int is_both)
{
    static st_message_t one, y;
    st_side_t *first[2];
    st_side_t more[2];
    st_pair_t pair;
    int i;

    if (!st_pair_init(&pair)) {
        return;
    }
    st_message_init(&pair, &one, ST_A, 1);
    st_message_init(&pair, &y, ST_B, 2);
    for (i = 0; i < 2; ++i) {
        st_more_init(&more[i], &pair.side[i]);
    }
    first[ST_A] = &more[ST_A];
    first[ST_B] = is_both ? &more[ST_B] : &pair.side[ST_B];
    st_start(first[ST_A], one.op[ST_A]);
    st_use(&pair.side[ST_A], y.op[ST_A]);
    st_start(first[ST_B], one.op[ST_B]);
    if (!is_both) {
        st_wait(first[ST_B], one.op[ST_B]);
    }
    st_use(&pair.side[ST_B], y.op[ST_B]);
    st_sync(&pair.side[ST_A]);
    st_sync(&pair.side[ST_B]);
    st_wait(first[ST_A], one.op[ST_A]);
    if (is_both) {
        st_wait(first[ST_B], one.op[ST_B]);
    }
    for (i = 0; i < 2; ++i) {
        st_sync(first[i]);
        st_sync(&more[i]);
    }
    st_message_cleanup(&one, ST_A, 1);
    st_message_cleanup(&y, ST_B, 2);
    for (i = 0; i < 2; ++i) {
        st_more_cleanup(&more[i]);
    }
    st_pair_cleanup(&pair);
}

ST_CASE_CALL(p3_one_side, run_p3(0))
ST_CASE_CALL(p3_both_sides, run_p3(1))

/* P3: no stream waits for anything, the hosts look */
ST_PAIR_CASE(p3_query)
{
    static st_message_t one;
    ucp_st_op_attr_t attr;
    int i;

    st_message_init(pair, &one, ST_A, 1);
    for (i = 0; i < 2; ++i) {
        st_start(&pair->side[i], one.op[i]);
    }
    for (i = 0; i < 2; ++i) {
        do {
            CU_ASSERT_EQUAL(ucp_st_op_query(one.op[i], &attr), UCS_OK);
        } while (attr.completed == 0);
    }
    /* It has arrived; the wait passes at once and puts it into the buffer */
    for (i = 0; i < 2; ++i) {
        st_wait(&pair->side[i], one.op[i]);
        st_sync(&pair->side[i]);
    }
    CU_ASSERT_TRUE(st_check(one.buffer[ST_B], ST_MESSAGE_LEN, 1));
    st_message_cleanup(&one, ST_A, 1);
}

/* P10: both hosts compute, and make no call until their streams are through */
ST_PAIR_CASE(p10_compute)
{
    static st_message_t one, y;
    int done[2] = {0, 0};
    int i;

    st_message_init(pair, &one, ST_A, 1);
    st_message_init(pair, &y, ST_B, 2);
    st_use(a, one.op[ST_A]);
    st_use(a, y.op[ST_A]);
    st_use(b, one.op[ST_B]);
    st_use(b, y.op[ST_B]);
    for (i = 0; i < 2; ++i) {
        st_launch(&pair->side[i], st_raise_func, &done[i]);
    }
    st_compute_until(done);
    for (i = 0; i < 2; ++i) {
        st_sync(&pair->side[i]);
    }
    st_message_cleanup(&one, ST_A, 1);
    st_message_cleanup(&y, ST_B, 2);
}

/** Many pairs from A to B, and what the streams do with their data. */
typedef struct {
    size_t      count;
    ucp_st_op_h op[2][OPS];
    uint64_t    value[2][OPS];
    uint64_t    filled;  /* uses, by A's stream */
    uint64_t    checked; /* uses, by B's stream */
    int         errors;
} many_t;

static void many_fill(void *arg)
{
    many_t *many = arg;
    size_t i;

    ++many->filled;
    for (i = 0; i < many->count; ++i) {
        many->value[ST_A][i] = (many->filled * OPS) + i;
    }
}

static void many_check(void *arg)
{
    many_t *many = arg;
    size_t i;

    ++many->checked;
    for (i = 0; i < many->count; ++i) {
        many->errors         += many->value[ST_B][i] !=
                                ((many->checked * OPS) + i);
        many->value[ST_B][i]  = 0;
    }
}

static void many_init(many_t *many, st_pair_t *pair, size_t count)
{
    size_t i;

    memset(many, 0, sizeof(*many));
    many->count = count;
    for (i = 0; i < count; ++i) {
        many->op[ST_A][i] = st_send(&pair->side[ST_A], &many->value[ST_A][i],
                                    sizeof(uint64_t), i);
        many->op[ST_B][i] = st_recv(&pair->side[ST_B], &many->value[ST_B][i],
                                    sizeof(uint64_t), i);
        st_match_ok(many->op[ST_A][i], many->op[ST_B][i]);
    }
}

/* One use of all pairs, as one side sees it */
static void many_use(many_t *many, st_pair_t *pair, int i)
{
    st_side_t *side = &pair->side[i];

    if (i == ST_A) {
        st_launch(side, many_fill, many);
    }
    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(side->queue, many->op[i],
                                            many->count), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(side->queue, many->op[i],
                                           many->count), UCS_OK);
    if (i == ST_B) {
        st_launch(side, many_check, many);
    }
}

static void many_cleanup(many_t *many, st_pair_t *pair, uint64_t uses)
{
    size_t i;

    st_sync(&pair->side[ST_A]);
    st_sync(&pair->side[ST_B]);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(pair->side[ST_B].stream), UCS_OK);
    CU_ASSERT_EQUAL(many->checked, uses);
    CU_ASSERT_EQUAL(many->errors, 0);
    for (i = 0; i < many->count; ++i) {
        st_free(many->op[ST_A][i]);
        st_free(many->op[ST_B][i]);
    }
}

/* P4: more than 10,000 starts of 64 operations before the peer enqueues
 * anything. 64 pairs take 128 entries and counters of each side's NIC; with the
 * few that the next case leaves only some pairs get theirs. */
static void run_p4(void)
{
    static many_t many;
    st_pair_t pair;
    int k;

    if (!st_pair_init(&pair)) {
        return;
    }
    many_init(&many, &pair, OPS);
    for (k = 0; k < USES; ++k) {
        many_use(&many, &pair, ST_A);
    }
    for (k = 0; k < USES; ++k) {
        many_use(&many, &pair, ST_B);
    }
    many_cleanup(&many, &pair, USES);
    st_pair_cleanup(&pair);
}

ST_CASE_CALL(p4_ahead, run_p4())

ST_CASE(p4_few_entries)
{
    char *lanes = st_env_set("UCX_ST_LANES", (st_lane() == UCP_ST_LANE_TRIG) ?
                                             "trig,host" : "host");

    setenv("UCX_CXI_TRIG_DEFERRED_ENTRIES", "16", 1);
    run_p4();
    unsetenv("UCX_CXI_TRIG_DEFERRED_ENTRIES");
    st_env_restore("UCX_ST_LANES", lanes);
}

/* P4: many uses of message 1 on one queue of A, then Y on another one, which B
 * needs before it starts the first use; with few entries */
ST_CASE(p4_other_queue)
{
    static st_message_t one, y;
    st_side_t more;
    st_pair_t pair;
    int k;

    setenv("UCX_CXI_TRIG_DEFERRED_ENTRIES", "16", 1);
    if (st_pair_init(&pair)) {
        st_message_init(&pair, &one, ST_A, 1);
        st_message_init(&pair, &y, ST_A, 2);
        st_more_init(&more, &pair.side[ST_A]);
        for (k = 0; k < USES; ++k) {
            st_use(&pair.side[ST_A], one.op[ST_A]);
        }
        st_use(&more, y.op[ST_A]);
        st_use(&pair.side[ST_B], y.op[ST_B]);
        for (k = 0; k < USES; ++k) {
            st_use(&pair.side[ST_B], one.op[ST_B]);
        }
        st_sync(&pair.side[ST_A]);
        st_sync(&pair.side[ST_B]);
        st_sync(&more);
        st_message_cleanup(&one, ST_A, 1);
        st_message_cleanup(&y, ST_A, 2);
        st_more_cleanup(&more);
        st_pair_cleanup(&pair);
    }
    unsetenv("UCX_CXI_TRIG_DEFERRED_ENTRIES");
}

/* P5: 26 neighbours, both sides as far ahead as they like */
ST_PAIR_CASE(p5)
{
    static many_t many;
    int k;

    many_init(&many, pair, P5_OPS);
    for (k = 0; k < P5_USES; ++k) {
        many_use(&many, pair, ST_B);
        many_use(&many, pair, ST_A);
    }
    many_cleanup(&many, pair, P5_USES);
}

ST_SUITE("st_prog")
