/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_nic_fails.c - the NIC of one of two processes fails, or loses the
 * other one, in the midst of a message's uses. The host of the other process
 * makes no call of the library, and its stream waits: both streams go on, and
 * both hosts are told.
 */
#include "st_cunit.h"
#include "../integration/st_any.h"
#include "st_pair.h"
#include "../integration/st_rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USES  16000 /* eager-ahead receives trigger the NIC once in 16 */
#define LEN   ST_LONG
#define SHORT 64
#define LIMIT 300   /* seconds; on a busy machine */

/** What the group is to do. */
typedef struct {
    int    is_send;   /* what is on the side whose NIC fails */
    int    is_called; /* the host there waits for its queue */
    size_t length;
} scene_t;

/** One of the two ranks: that of the first one fails. */
typedef struct {
    st_rank_t      *me;
    const scene_t  *scene;
    ucp_st_queue_h queue;
    ucp_st_op_h    op;
    uint64_t       gate;
    uint32_t       passed; /* the stream has run everything */
    int            uses;   /* enqueued before the other side was lost */
    ucs_status_t   status; /* of enqueueing */
    uint8_t        buffer[LEN];
    uint8_t        copy[LEN];
} side_t;


static void side_init(side_t *side, st_rank_t *me)
{
    const scene_t *scene      = me->arg;
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER,
        .buffer     = side->buffer,
        .length     = scene->length,
        .peer       = me->node.peers[!me->index]
    };

    side->me     = me;
    side->scene  = scene;
    side->uses   = 0;
    side->status = UCS_OK;
    side->queue  = st_rank_queue(me, &me->node, 0);
    st_rank_at(me, "matching");
    ST_OK(me, ((me->index == 0) == scene->is_send ?
               ucp_st_send_init : ucp_st_recv_init)(me->node.worker, &params,
                                                    &side->op));
    ST_OK(me, ucp_st_match(side->op));
}

static void side_cleanup(side_t *side)
{
    ST_OK(side->me, ucp_st_queue_destroy(side->queue));
    ST_OK(side->me, ucp_st_op_free(side->op));
}

static void passed_func(void *arg)
{
    __atomic_store_n((uint32_t*)arg, 1, __ATOMIC_RELEASE);
    st_world_wake(arg);
}

/* What a NIC that fails can end in: an operation failed, or the other side
 * cannot be reached */
static int is_allowed(ucs_status_t status)
{
    return (status == UCS_ERR_IO_ERROR) ||
           (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_ENDPOINT_TIMEOUT);
}

/* Uses up to a number; or, on a slow machine, those until questions and answers
 * have had the NIC fail. Behind the last one the stream tells. */
static void side_enqueue(side_t *side, int uses)
{
    st_rank_t *me = side->me;

    while ((side->status == UCS_OK) && (side->uses < uses)) {
        side->status = ucp_st_enqueue_start(side->queue, side->op);
        if (side->status == UCS_OK) {
            ++side->uses;
            side->status = ucp_st_enqueue_wait(side->queue, side->op);
        }
    }
    ST_CHECK(me, (side->status == UCS_OK) || is_allowed(side->status));
    if (uses == USES) {
        ST_OK(me, ucs_gstream_enqueue_func(st_rank_stream(me, 0), passed_func,
                                           &side->passed));
    }
}

static void side_open_gate(side_t *side)
{
    st_any_open(&side->gate);
}

/* Without a call */
static void side_await_passed(side_t *side)
{
    st_rank_at(side->me, "waiting until its stream has run everything");
    while (!__atomic_load_n(&side->passed, __ATOMIC_ACQUIRE)) {
        st_world_sleep(&side->passed, 0, 1000);
    }
}

static void side_check(side_t *side)
{
    st_rank_t *me              = side->me;
    ucp_st_queue_error_t error = {0};
    ucs_status_t status;

    st_rank_at(me, "waiting for its queue");
    status = ucp_st_queue_wait(side->queue, &error);
    memcpy(side->copy, side->buffer, side->scene->length);
    if (side->uses == 0) {
        ST_OK(me, status);
        return;
    }
    ST_CHECK(me, status != UCS_OK); /* else nothing has failed */
    if (!is_allowed(status)) {
        st_rank_fail(me, "the queue's error: %s", ucs_status_string(status));
    }
    ST_CHECK(me, error.status == status);
    ST_CHECK(me, error.op == side->op);
    ST_IS(me, status, ucp_st_enqueue_start(side->queue, side->op));
    st_rank_alive(me);
}

static void rank_main(st_rank_t *me)
{
    const int ahead = (int)st_any_ahead(USES);
    static side_t side;

    side_init(&side, me);
    ST_OK(me, st_any_hold(st_rank_stream(me, 0), &side.gate));
    side_enqueue(&side, ahead);
    st_rank_barrier(me);
    side_open_gate(&side);
    if (ahead < USES) { /* There was no room for the others */
        side_enqueue(&side, USES);
    }
    if ((me->index != 0) || !side.scene->is_called) {
        side_await_passed(&side);
    }
    side_check(&side);
    st_rank_at(me, "the barrier before its end");
    st_rank_barrier(me);
    /* Nothing was written after the host was told */
    ST_CHECK(me, !memcmp(side.copy, side.buffer, side.scene->length));
    side_cleanup(&side);
}

static void run(const scene_t *scene, const char *const *env_first)
{
    st_world_params_t params = {
        .count     = 2,
        .limit     = LIMIT,
        .env_first = env_first,
        .arg       = scene,
        .main      = rank_main
    };
    char reason[ST_WORLD_REASON];
    int result;

    result = st_world_run(&params, reason);
    CU_ASSERT_EQUAL(result, 0);
    if (result != 0) {
        puts(reason);
    }
}

/* Non-zero with a reason if it cannot be tested */
static int is_skipped(void)
{
    const char *provider = getenv("UCX_CXI_TRIG_PROVIDER");
    const char *tls      = getenv("UCX_TLS");

    if ((provider != NULL) && strcmp(provider, "cxiemu")) {
        st_cunit_skip("only cxiemu's NIC can be made to fail");
        return 1;
    }
    if ((tls != NULL) && (strstr(tls, "cxi_trig") == NULL)) {
        st_cunit_skip("UCX_TLS leaves the transport out");
        return 1;
    }
    return 0;
}

/* Whichever side's NIC it is, and whether its host makes calls or not. Short
 * messages are something else for the trig lane alone. */
static void run_all(const char *const *env_first)
{
    const size_t lengths[] = {LEN, SHORT};
    unsigned count         = (st_lane() == UCP_ST_LANE_TRIG) ? 8 : 4;
    scene_t scene;
    unsigned i;

    for (i = 0; i < count; ++i) {
        scene.is_send   = (i & 1) != 0;
        scene.is_called = (i & 2) != 0;
        scene.length    = lengths[i / 4];
        run(&scene, env_first);
    }
}

/* With another seed the first failure may come before the first use */
ST_CASE(fails)
{
    const char *seed        = getenv("FI_CXIEMU_SEED");
    const char *const env[] = {
        "FI_CXIEMU_FAIL", "300",
        "FI_CXIEMU_SEED", (seed != NULL) ? seed : "17",
        NULL
    };

    if (!is_skipped()) {
        run_all(env);
    }
}

ST_CASE(vanishes)
{
    const char *const env[] = {"FI_CXIEMU_VANISH", "300", NULL};

    if (!is_skipped()) {
        run_all(env);
    }
}

/* The question whether the other side is there is lost as well, so that what
 * this side says last has to find another way */
ST_CASE(vanishes_asked)
{
    const char *const env[] = {
        "FI_CXIEMU_VANISH", "300",
        "UCX_ST_PING_INTERVAL", "1ms",
        NULL
    };

    if (!is_skipped()) {
        run_all(env);
    }
}

int main(int argc, char **argv)
{
    st_world_prepare(argv);
    return st_cunit_main("st_nic_fails", argc, argv);
}
