/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_coalesce.c - small sends that start together: on emulated cards they
 * are one message, elsewhere each is its own, and all the same for their users.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_cunit.h"
#include "st_flow.h"
#include "st_stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SENDS  9
#define LEN    1024
#define DEPTH  32  /* uses of an inbox, of messages of 1 KiB or less */
#define ROUNDS 3   /* of inboxes, in each case that goes through some */
#define SHORT  120 /* all of these fit into one message */

/* Sends of A, and their receives on B; number 4 takes 4 KiB, the longest that
 * is joined, and number 8 one byte more */
typedef struct {
    st_pair_t   pair;
    uint8_t     sbuf[SENDS][4 * LEN + 1];
    uint8_t     rbuf[SENDS][4 * LEN + 1];
    size_t      length[SENDS];
    ucp_st_op_h send[SENDS];
    ucp_st_op_h recv[SENDS];
} group_t;

static void group_match(group_t *group, int is_ready)
{
    int i;

    for (i = 0; i < SENDS; ++i) {
        group->length[i] = (i == 4) ? 4 * LEN : (i == 8) ? 4 * LEN + 1 :
                           1 + i * SHORT;
        memset(group->rbuf[i], FLOW_GUARD, sizeof(group->rbuf[i]));
        group->send[i] = (is_ready ? st_rsend : st_send)(
                &group->pair.side[ST_A], group->sbuf[i], group->length[i], i);
        group->recv[i] = st_recv(&group->pair.side[ST_B], group->rbuf[i],
                                 group->length[i], i);
        st_match_ok(group->send[i], group->recv[i]);
    }
}

static group_t *group_make(int is_ready)
{
    group_t *group = calloc(1, sizeof(*group));

    if (!st_pair_init(&group->pair)) {
        free(group);
        return NULL;
    }
    group_match(group, is_ready);
    return group;
}

static group_t *group_init(void)
{
    return group_make(0);
}

static void group_cleanup(group_t *group)
{
    int i;

    for (i = 0; i < SENDS; ++i) {
        st_free(group->send[i]);
        st_free(group->recv[i]);
    }
    st_pair_cleanup(&group->pair);
    free(group);
}

static void group_fill(group_t *group, int from, int to, uint64_t seed)
{
    int i;

    for (i = from; i < to; ++i) {
        st_fill(group->sbuf[i], group->length[i], seed + i);
    }
}

/* What B got; then it is spoiled */
static void group_check(group_t *group, int from, int to, uint64_t seed)
{
    int i;

    for (i = from; i < to; ++i) {
        CU_ASSERT_TRUE(st_check(group->rbuf[i], group->length[i], seed + i));
        memset(group->rbuf[i], FLOW_GUARD, group->length[i]);
    }
}

static void start_and_wait(st_side_t *side, const ucp_st_op_h *ops, int count)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(side->queue, ops, count), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(side->queue, ops, count), UCS_OK);
}

/* One use of some of them, hosts in step */
static void group_use(group_t *group, int from, int to, uint64_t seed)
{
    st_pair_t *pair = &group->pair;

    group_fill(group, from, to, seed);
    start_and_wait(&pair->side[ST_B], &group->recv[from], to - from);
    start_and_wait(&pair->side[ST_A], &group->send[from], to - from);
    st_sync(&pair->side[ST_A]);
    st_sync(&pair->side[ST_B]);
    group_check(group, from, to, seed);
}

static uint64_t coalesced(st_pair_t *pair)
{
    ucp_st_worker_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_worker_query(pair->side[ST_A].worker, &attr),
                    UCS_OK);
    return attr.stats.coalesced;
}

/* All but the too long one are joined, and no use of theirs is a write, of
 * whichever round: an inbox has room for 32 uses, of 4 KiB for 8 */
static void test_rounds(void)
{
    uint64_t uses   = ROUNDS * DEPTH;
    uint64_t expect = (SENDS - 1) * uses;
    group_t *group  = group_init();
    ucp_st_worker_attr_t attr;
    ucp_st_op_attr_t op_attr;
    uint64_t k;

    if (group == NULL) {
        return;
    }
    for (k = 0; k < uses; ++k) {
        group_use(group, 0, SENDS, k);
    }
    CU_ASSERT_EQUAL(coalesced(&group->pair), flow_is_joining() ? expect : 0);
    flow_query(&group->pair.side[ST_A], SENDS * uses, &attr);
    CU_ASSERT_EQUAL(attr.stats.eager, SENDS * uses);
    CU_ASSERT_EQUAL(attr.stats.writes_fired + attr.stats.coalesced,
                    SENDS * uses);
    CU_ASSERT_EQUAL(ucp_st_op_query(group->send[1], &op_attr), UCS_OK);
    CU_ASSERT_EQUAL(op_attr.completed, uses);
    group_cleanup(group);
}

/* Ready sends have no rounds: all but the too long one go together, to the
 * buffers of their receives, and none is ahead of its receive */
static void test_ready(void)
{
    uint64_t uses  = ROUNDS * DEPTH;
    group_t *group = group_make(1);
    ucp_st_worker_attr_t attr;
    uint64_t k;

    if (group == NULL) {
        return;
    }
    for (k = 0; k < uses; ++k) {
        group_fill(group, 0, SENDS, k);
        CU_ASSERT_EQUAL(ucp_st_enqueue_startall(group->pair.side[ST_B].queue,
                                                group->recv, SENDS), UCS_OK);
        st_sync(&group->pair.side[ST_B]);
        start_and_wait(&group->pair.side[ST_A], group->send, SENDS);
        CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(group->pair.side[ST_B].queue,
                                               group->recv, SENDS), UCS_OK);
        st_sync(&group->pair.side[ST_A]);
        st_sync(&group->pair.side[ST_B]);
        group_check(group, 0, SENDS, k);
    }
    CU_ASSERT_EQUAL(coalesced(&group->pair),
                    flow_is_joining() ? (SENDS - 1) * uses : 0);
    CU_ASSERT_EQUAL(ucp_st_worker_query(group->pair.side[ST_B].worker, &attr),
                    UCS_OK);
    CU_ASSERT_EQUAL(attr.stats.eager, 0);
    group_cleanup(group);
}

/* Joined sends start alone, in parts, in any order; what never starts together
 * is not joined */
static void test_apart(void)
{
    group_t *group = group_init();
    uint64_t k, before;
    unsigned i;

    if (group == NULL) {
        return;
    }
    for (i = 0; i < 3; ++i) { /* too few for that */
        group_use(group, 5, 8, i);
    }
    CU_ASSERT_EQUAL(coalesced(&group->pair), 0);
    group_use(group, 0, 5, 10);
    before = coalesced(&group->pair);
    CU_ASSERT_EQUAL(before, flow_is_joining() ? 5 : 0);
    for (k = 0; k < 4 * DEPTH; ++k) {
        i = (7 * k) % SENDS;
        group_use(group, i, i + 1 + (k % (SENDS - i)), 20 + k);
    }
    CU_ASSERT(!flow_is_joining() || (coalesced(&group->pair) > before));
    group_cleanup(group);
}

/* As far ahead as there is room, with the receiver away: sends complete, and
 * one more does not */
static void test_ahead(void)
{
    group_t *group = group_init();
    uint64_t k;

    if (group == NULL) {
        return;
    }
    for (k = 0; k < DEPTH; ++k) {
        group_fill(group, 0, 4, k);
        start_and_wait(&group->pair.side[ST_A], group->send, 4);
        st_sync(&group->pair.side[ST_A]);
    }
    group_fill(group, 0, 4, k);
    start_and_wait(&group->pair.side[ST_A], group->send, 4);
    CU_ASSERT_EQUAL(ucp_st_queue_query(group->pair.side[ST_A].queue, NULL),
                    UCS_INPROGRESS);
    for (k = 0; k <= DEPTH; ++k) {
        CU_ASSERT_TRUE(flow_is_spoiled(group->rbuf[1], LEN));
        start_and_wait(&group->pair.side[ST_B], group->recv, 4);
        st_sync(&group->pair.side[ST_B]);
        group_check(group, 0, 4, k);
    }
    st_sync(&group->pair.side[ST_A]);
    group_cleanup(group);
}

/* Send or receive of A to itself */
static ucp_st_op_h self_op(st_side_t *side, int is_send, uint8_t *buffer,
                           uint64_t tag)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_TAG | UCP_ST_OP_PARAM_FIELD_PEER,
        .buffer     = buffer,
        .length     = LEN - 8 * tag,
        .tag        = tag,
        .peer       = side->self
    };

    return st_op(side, is_send, &params);
}

/* Messages to oneself, started in either order, over some rounds */
static void test_self(void)
{
    group_t *group  = calloc(1, sizeof(*group));
    st_side_t *side = &group->pair.side[ST_A];
    ucp_st_op_h ops[8];
    uint64_t k;
    int i;

    if (!st_pair_init(&group->pair)) {
        free(group);
        return;
    }
    for (i = 0; i < 4; ++i) {
        group->length[i] = LEN - 8 * i;
        ops[i]           = self_op(side, 1, group->sbuf[i], i);
        ops[4 + i]       = self_op(side, 0, group->rbuf[i], i);
        st_match_ok(ops[i], ops[4 + i]);
    }
    for (k = 0; k < ROUNDS * DEPTH; ++k) {
        group_fill(group, 0, 4, k);
        CU_ASSERT_EQUAL(ucp_st_enqueue_startall(side->queue, &ops[4 * (k % 2)],
                                                4), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_startall(side->queue,
                                                &ops[4 - 4 * (k % 2)], 4),
                        UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(side->queue, ops, 8), UCS_OK);
        st_sync(side);
        group_check(group, 0, 4, k);
    }
    CU_ASSERT_EQUAL(coalesced(&group->pair),
                    flow_is_joining() ? 4 * ROUNDS * DEPTH : 0);
    for (i = 0; i < 8; ++i) {
        st_free(ops[i]);
    }
    st_pair_cleanup(&group->pair);
    free(group);
}

typedef struct {
    group_t  *group;
    uint64_t seed;
    int      errors;
} step_t;

static void fill_all_func(void *arg)
{
    step_t *step = arg;

    group_fill(step->group, 0, SENDS, step->seed);
}

static void check_all_func(void *arg)
{
    step_t *step = arg;
    int i;

    for (i = 0; i < SENDS; ++i) {
        step->errors += !st_check(step->group->rbuf[i], step->group->length[i],
                                  step->seed + i);
        memset(step->group->rbuf[i], FLOW_GUARD, step->group->length[i]);
    }
}

/* Hosts that never wait, and meanwhile hold the workers' locks time and again,
 * so that streams find them taken */
static void run_ahead(group_t *group, unsigned uses)
{
    st_side_t *a  = &group->pair.side[ST_A];
    st_side_t *b  = &group->pair.side[ST_B];
    step_t *fill  = calloc(uses, sizeof(*fill));
    step_t *check = calloc(uses, sizeof(*check));
    ucp_st_worker_attr_t attr;
    unsigned k;

    for (k = 0; k < uses; ++k) {
        fill[k] = check[k] = (step_t){.group = group, .seed = k};
        st_launch(a, fill_all_func, &fill[k]);
        start_and_wait(a, group->send, SENDS);
        start_and_wait(b, group->recv, SENDS);
        st_launch(b, check_all_func, &check[k]);
        CU_ASSERT_EQUAL(ucp_st_worker_query(a->worker, &attr), UCS_OK);
    }
    st_sync(a);
    st_sync(b);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(b->stream), UCS_OK);
    for (k = 0; k < uses; ++k) {
        CU_ASSERT_EQUAL(check[k].errors, 0);
    }
    free(fill);
    free(check);
}

static void test_run_ahead(void)
{
    group_t *group = group_init();

    if (group != NULL) {
        run_ahead(group, 200);
        group_cleanup(group);
    }
}

/* The transport has room for one message at a time: the rest goes when that is
 * over */
static void test_no_room(void)
{
    group_t *group;

    setenv("UCX_CXI_TRIG_TX_QUEUE_LEN", "1", 1);
    setenv("UCX_CXI_TRIG_DEFERRED_ENTRIES", "32", 1);
    group = group_init();
    unsetenv("UCX_CXI_TRIG_TX_QUEUE_LEN");
    unsetenv("UCX_CXI_TRIG_DEFERRED_ENTRIES");
    if (group != NULL) {
        run_ahead(group, 100);
        CU_ASSERT_EQUAL(coalesced(&group->pair) > 0, flow_is_joining());
        group_cleanup(group);
    }
}

/* Another stream goes on with sends that the first one has begun */
static void test_queues(void)
{
    group_t *group = group_init();
    st_side_t more;
    uint64_t k;

    if (group == NULL) {
        return;
    }
    st_more_init(&more, &group->pair.side[ST_A]);
    for (k = 0; k < 3 * DEPTH; ++k) {
        group_fill(group, 0, SENDS, k);
        start_and_wait(&group->pair.side[ST_B], group->recv, SENDS);
        start_and_wait((k % 2) ? &more : &group->pair.side[ST_A], group->send,
                       SENDS);
        st_sync(&more);
        st_sync(&group->pair.side[ST_A]);
        st_sync(&group->pair.side[ST_B]);
        group_check(group, 0, SENDS, k);
    }
    st_more_cleanup(&more);
    group_cleanup(group);
}

/* Sends that are complete arrive although the sender goes at once */
static void test_sender_gone(void)
{
    group_t *group;
    int how, i;

    for (how = 0; how < 3; ++how) {
        group = group_init();
        if (group == NULL) {
            return;
        }
        group_use(group, 0, 8, 5);
        group_fill(group, 0, 8, 6);
        start_and_wait(&group->pair.side[ST_A], group->send, 8);
        st_sync(&group->pair.side[ST_A]);
        for (i = 0; i < SENDS; ++i) {
            st_free(group->send[i]);
        }
        if (how > 0) {
            st_side_cleanup(&group->pair.side[ST_A]);
        }
        if (how != 1) {
            ucp_st_worker_progress(group->pair.side[ST_B].worker);
        }
        start_and_wait(&group->pair.side[ST_B], group->recv, 8);
        st_sync(&group->pair.side[ST_B]);
        group_check(group, 0, 8, 6);
        for (i = 0; i < SENDS; ++i) {
            st_free(group->recv[i]);
        }
        if (how == 0) {
            st_side_cleanup(&group->pair.side[ST_A]);
        }
        st_side_cleanup(&group->pair.side[ST_B]);
        free(group);
    }
}

/* The receiver waits for a use more than the sender takes part in, which it
 * hears while the last one is on its way: that one's data comes, and then the
 * stream is released */
static void test_one_too_many(void)
{
    step_t check;
    ucs_status_t status;
    group_t *group;
    int round, i;

    for (round = 0; round < 30; ++round) {
        group = group_init();
        if (group == NULL) {
            return;
        }
        check = (step_t){.group = group, .seed = round};
        group_fill(group, 0, SENDS, round);
        start_and_wait(&group->pair.side[ST_B], group->recv, SENDS);
        st_launch(&group->pair.side[ST_B], check_all_func, &check);
        start_and_wait(&group->pair.side[ST_B], group->recv, SENDS);
        start_and_wait(&group->pair.side[ST_A], group->send, SENDS);
        st_sync(&group->pair.side[ST_A]);
        for (i = 0; i < SENDS; ++i) {
            st_free(group->send[i]);
        }
        status = ucp_st_queue_wait(group->pair.side[ST_B].queue, NULL);
        CU_ASSERT_EQUAL(status, UCS_ERR_CANCELED);
        CU_ASSERT_EQUAL(check.errors, 0);
        for (i = 0; i < SENDS; ++i) {
            st_free(group->recv[i]);
        }
        st_pair_cleanup(&group->pair);
        free(group);
    }
}

/* One of the receives goes in the middle: its send fails, and with it the queue
 * that it is started on; what came for the others stays */
static void test_receive_gone(void)
{
    group_t *group = group_init();
    ucp_st_queue_error_t error;
    ucs_status_t status;
    uint64_t k;

    if (group == NULL) {
        return;
    }
    group_use(group, 0, 8, 1);
    st_free(group->recv[2]);
    group->recv[2] = NULL;
    for (k = 0, status = UCS_OK; status == UCS_OK; ++k) {
        ucp_st_worker_progress(group->pair.side[ST_A].worker);
        ucp_st_worker_progress(group->pair.side[ST_B].worker);
        status = ucp_st_enqueue_startall(group->pair.side[ST_A].queue,
                                         group->send, 8);
        if (status == UCS_OK) {
            (void)ucp_st_enqueue_waitall(group->pair.side[ST_A].queue,
                                         group->send, 8);
            status = ucp_st_queue_wait(group->pair.side[ST_A].queue, &error);
        }
    }
    CU_ASSERT_EQUAL(status, UCS_ERR_CANCELED);
    CU_ASSERT(k <= (DEPTH + 1));
    st_free(group->send[2]);
    group->recv[2] = st_recv(&group->pair.side[ST_B], group->rbuf[2], LEN, 99);
    group->send[2] = st_send(&group->pair.side[ST_A], group->sbuf[2], LEN, 98);
    group_cleanup(group);
}

/* Let both make calls until A's queue is in error */
static void until_error(st_pair_t *pair)
{
    ucs_status_t status;

    do {
        ucp_st_worker_progress(pair->side[ST_B].worker);
        ucp_st_worker_progress(pair->side[ST_A].worker);
        status = ucp_st_enqueue_startall(pair->side[ST_A].queue, NULL, 0);
    } while (status == UCS_OK);
    CU_ASSERT_EQUAL(status, UCS_ERR_CANCELED);
}

/* The receives of uses that wait for room are freed, one first; a send is freed
 * meanwhile */
static void test_no_room_ever(void)
{
    group_t *group = group_init();
    st_side_t *side;
    uint64_t k;
    int i;

    if (group == NULL) {
        return;
    }
    side = &group->pair.side[ST_A];
    for (k = 0; k < DEPTH; ++k) {
        start_and_wait(side, group->send, 4);
    }
    st_sync(side);
    start_and_wait(side, group->send, 4);
    st_free(group->recv[1]);
    until_error(&group->pair);
    if (flow_is_joining()) { /* else a write may be under way */
        st_free(group->send[0]);
    }
    st_free(group->recv[0]);
    st_free(group->recv[2]);
    st_free(group->recv[3]);
    while (ucp_st_queue_query(side->queue, NULL) == UCS_INPROGRESS) {
        ucp_st_worker_progress(group->pair.side[ST_B].worker);
    }
    for (i = 0; i < SENDS; ++i) {
        if ((i > 0) || !flow_is_joining()) {
            st_free(group->send[i]);
        }
        if (i > 3) {
            st_free(group->recv[i]);
        }
    }
    st_pair_cleanup(&group->pair);
    free(group);
}

/* One side says how long messages may be that are joined, and 0 is none */
static void test_limit(void)
{
    static const struct {
        const char *max;
        uint64_t   joined;
    } limits[] = {{"0", 0}, {"120", 0}, {"500", 4}, {"1m", SENDS}};
    char *before;
    group_t *group;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(limits); ++i) {
        before = st_env_set("UCX_ST_COALESCE_MAX", limits[i].max);
        group  = group_init();
        st_env_restore("UCX_ST_COALESCE_MAX", before);
        if (group == NULL) {
            return;
        }
        group_use(group, 0, SENDS, i);
        CU_ASSERT_EQUAL(coalesced(&group->pair),
                        flow_is_joining() ? limits[i].joined : 0);
        group_cleanup(group);
    }
}

static const st_cunit_case_t cases[] = {
    {"rounds", test_rounds},
    {"ready", test_ready},
    {"apart", test_apart},
    {"ahead", test_ahead},
    {"self", test_self},
    {"run_ahead", test_run_ahead},
    {"no_room", test_no_room},
    {"queues", test_queues},
    {"sender_gone", test_sender_gone},
    {"one_too_many", test_one_too_many},
    {"receive_gone", test_receive_gone},
    {"no_room_ever", test_no_room_ever},
    {"limit", test_limit}
};

int main(int argc, char **argv)
{
    return st_cunit_main("st_coalesce", cases, ST_CUNIT_COUNT(cases), argc,
                         argv);
}
