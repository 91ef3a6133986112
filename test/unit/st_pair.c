/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_pair.c - two st workers in one process.
 */
#include "st_pair.h"
#include "st_cunit.h"
#include "../integration/st_any.h"

#include "core/st_op.h"
#include "core/st_worker.h"

#include <CUnit/CUnit.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

ucp_st_lane_t st_lane(void)
{
    const char *name = getenv("ST_LANE");

    if (name == NULL) {
        return UCP_ST_LANE_TRIG;
    }
    if (!strcmp(name, "direct")) {
        return UCP_ST_LANE_DIRECT;
    }
    return strcmp(name, "host") ? UCP_ST_LANE_TRIG : UCP_ST_LANE_HOST;
}

ucp_st_queue_h st_queue(st_side_t *side, ucs_gstream_h stream)
{
    ucp_st_queue_params_t params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM,
        .stream     = stream
    };
    ucp_st_queue_h queue         = NULL;

    CU_ASSERT_EQUAL(ucp_st_queue_create(side->worker, &params, &queue), UCS_OK);
    return queue;
}

static int st_side_init_on(st_side_t *side,
                           const ucp_st_worker_params_t *params)
{
    CU_ASSERT_EQUAL_FATAL(st_any_stream(&side->stream), UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_st_worker_create(params, &side->worker), UCS_OK);
    side->queue = st_queue(side, side->stream);
    CU_ASSERT_PTR_NOT_NULL_FATAL(side->queue);
    return 1;
}

int st_side_init(st_side_t *side)
{
    ucp_st_worker_params_t params = {.field_mask = 0};

    memset(side, 0, sizeof(*side));
    return st_side_init_on(side, &params);
}

int st_side_init_user(st_side_t *side, uint64_t features,
                      ucs_thread_mode_t mode)
{
    ucp_params_t ucp_params           = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = features
    };
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = mode
    };
    ucp_st_worker_params_t params     = {
        .field_mask   = UCP_ST_WORKER_PARAM_FIELD_UCP_WORKER |
                        UCP_ST_WORKER_PARAM_FIELD_UCP_FEATURES,
        .ucp_features = features
    };

    memset(side, 0, sizeof(*side));
    CU_ASSERT_EQUAL_FATAL(ucp_init(&ucp_params, NULL, &side->context), UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_worker_create(side->context, &worker_params,
                                            &side->ucp_worker), UCS_OK);
    params.ucp_worker = side->ucp_worker;
    return st_side_init_on(side, &params);
}

void st_more_init(st_side_t *more, const st_side_t *side)
{
    *more = *side;
    CU_ASSERT_EQUAL(st_any_stream(&more->stream), UCS_OK);
    more->queue = st_queue(more, more->stream);
}

void st_more_init_host(st_side_t *more, const st_side_t *side)
{
    char *stream = st_env_set("ST_TEST_STREAM", NULL);

    st_more_init(more, side);
    st_env_restore("ST_TEST_STREAM", stream);
}

void st_more_cleanup(st_side_t *more)
{
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(more->queue), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(more->stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(more->stream), UCS_OK);
}

void st_side_cleanup(st_side_t *side)
{
    if (side->queue != NULL) {
        (void)ucp_st_queue_wait(side->queue, NULL);
        CU_ASSERT_EQUAL(ucp_st_queue_destroy(side->queue), UCS_OK);
    }
    ucp_st_peer_destroy(side->peer);
    ucp_st_peer_destroy(side->self);
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(side->worker), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(side->stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(side->stream), UCS_OK);
    if (side->context != NULL) {
        ucp_worker_destroy(side->ucp_worker);
        ucp_cleanup(side->context);
    }
}

ucp_st_peer_h st_side_peer(st_side_t *from, st_side_t *to)
{
    ucp_st_peer_h peer = NULL;
    void *address      = NULL;
    size_t length      = 0;

    CU_ASSERT_EQUAL(ucp_st_worker_get_address(to->worker, &address, &length),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_peer_create(from->worker, address, length, &peer),
                    UCS_OK);
    ucp_st_worker_release_address(to->worker, address);
    return peer;
}

/* Both sides know each other, and themselves */
static void st_pair_meet(st_side_t *side)
{
    int i;

    for (i = 0; i < 2; ++i) {
        side[i].peer = st_side_peer(&side[i], &side[1 - i]);
        side[i].self = st_side_peer(&side[i], &side[i]);
    }
}

int st_pair_init(st_pair_t *pair)
{
    st_side_init(&pair->side[ST_A]);
    st_side_init(&pair->side[ST_B]);
    st_pair_meet(pair->side);
    return 1;
}

int st_pair_init_user(st_pair_t *pair, uint64_t features)
{
    st_side_init_user(&pair->side[ST_A], features, UCS_THREAD_MODE_MULTI);
    st_side_init_user(&pair->side[ST_B], features, UCS_THREAD_MODE_MULTI);
    st_pair_meet(pair->side);
    return 1;
}

/** A thread that makes the calls of a side. */
typedef struct {
    st_side_t *side;
    int       stop;
    pthread_t thread;
} caller_t;

static void *caller_main(void *arg)
{
    caller_t *caller = arg;

    while (!__atomic_load_n(&caller->stop, __ATOMIC_ACQUIRE)) {
        ucp_st_worker_progress(caller->side->worker);
        (void)sched_yield();
    }
    return NULL;
}

void st_side_leave(st_side_t *side, st_side_t *other)
{
    caller_t caller = {.side = other};

    CU_ASSERT_EQUAL(pthread_create(&caller.thread, NULL, caller_main, &caller),
                    0);
    st_side_cleanup(side);
    __atomic_store_n(&caller.stop, 1, __ATOMIC_RELEASE);
    CU_ASSERT_EQUAL(pthread_join(caller.thread, NULL), 0);
}

void st_pair_cleanup(st_pair_t *pair)
{
    st_side_leave(&pair->side[ST_A], &pair->side[ST_B]);
    st_side_cleanup(&pair->side[ST_B]);
}

void st_pair_run(st_pair_body_t body)
{
    st_pair_t pair;

    st_pair_init(&pair);
    body(&pair, &pair.side[ST_A], &pair.side[ST_B]);
    st_pair_cleanup(&pair);
}

ucp_st_op_h st_op(st_side_t *side, int is_send,
                  const ucp_st_op_params_t *params)
{
    ucp_st_op_h op = NULL;

    CU_ASSERT_EQUAL((is_send ? ucp_st_send_init : ucp_st_recv_init)(
                            side->worker, params, &op), UCS_OK);
    return op;
}

static ucp_st_op_params_t st_op_params(st_side_t *side, void *buffer,
                                       size_t length, uint64_t tag)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG,
        .buffer     = buffer,
        .length     = length,
        .peer       = side->peer,
        .tag        = tag
    };

    return params;
}

ucp_st_op_h st_send(st_side_t *side, void *buffer, size_t length, uint64_t tag)
{
    ucp_st_op_params_t params = st_op_params(side, buffer, length, tag);

    return st_op(side, 1, &params);
}

ucp_st_op_h st_rsend(st_side_t *side, void *buffer, size_t length, uint64_t tag)
{
    ucp_st_op_params_t params = st_op_params(side, buffer, length, tag);

    params.field_mask |= UCP_ST_OP_PARAM_FIELD_MODE;
    params.mode        = UCP_ST_MODE_READY;
    return st_op(side, 1, &params);
}

ucp_st_op_h st_recv(st_side_t *side, void *buffer, size_t length, uint64_t tag)
{
    ucp_st_op_params_t params = st_op_params(side, buffer, length, tag);

    return st_op(side, 0, &params);
}

void st_match2(ucp_st_op_h op_a, ucp_st_op_h op_b, ucs_status_t *status_a,
               ucs_status_t *status_b)
{
    CU_ASSERT_EQUAL(ucp_st_imatchall(&op_a, 1), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&op_b, 1), UCS_OK);
    do {
        *status_a = ucp_st_match_test(op_a);
        *status_b = ucp_st_match_test(op_b);
    } while ((*status_a == UCS_INPROGRESS) || (*status_b == UCS_INPROGRESS));
}

void st_match_ok(ucp_st_op_h op_a, ucp_st_op_h op_b)
{
    ucs_status_t status_a, status_b;

    st_match2(op_a, op_b, &status_a, &status_b);
    CU_ASSERT_EQUAL(status_a, UCS_OK);
    CU_ASSERT_EQUAL(status_b, UCS_OK);
}

ucs_status_t st_match_end(ucp_st_op_h op)
{
    ucs_status_t status;

    do {
        status = ucp_st_match_test(op);
    } while (status == UCS_INPROGRESS);
    return status;
}

int st_start_becomes(st_pair_t *pair, st_side_t *side, ucp_st_op_h op,
                     ucs_status_t status)
{
    ucs_status_t result = UCS_OK;
    int i;

    for (i = 0; i < 1000000; ++i) {
        ucp_st_worker_progress(pair->side[ST_A].worker);
        ucp_st_worker_progress(pair->side[ST_B].worker);
        result = ucp_st_enqueue_start(side->queue, op);
        if (result != UCS_OK) {
            break;
        }
        /* The service thread may have heard of it since */
        result = ucp_st_enqueue_wait(side->queue, op);
        if (result != UCS_OK) {
            break;
        }
    }
    /* The stream is over with what was started: the operation can be freed */
    (void)ucp_st_queue_wait(side->queue, NULL);
    return result == status;
}

void st_start(st_side_t *side, ucp_st_op_h op)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(side->queue, op), UCS_OK);
}

void st_wait(st_side_t *side, ucp_st_op_h op)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(side->queue, op), UCS_OK);
}

void st_use(st_side_t *side, ucp_st_op_h op)
{
    st_start(side, op);
    st_wait(side, op);
}

void st_sync(st_side_t *side)
{
    CU_ASSERT_EQUAL(ucp_st_queue_wait(side->queue, NULL), UCS_OK);
}

void st_pair_sync(st_pair_t *pair)
{
    st_sync(&pair->side[ST_A]);
    st_sync(&pair->side[ST_B]);
}

ucp_st_stats_t st_stats(const st_side_t *side)
{
    ucp_st_worker_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_worker_query(side->worker, &attr), UCS_OK);
    return attr.stats;
}

int st_op_is_ended(ucp_st_op_h op)
{
    int is_ended;

    ucp_st_worker_lock(op->worker);
    is_ended = (op->state == UCP_ST_OP_FAILED) ||
               (op->max_uses != UINT64_MAX);
    ucp_st_worker_unlock(op->worker);
    return is_ended;
}

void st_free2(ucp_st_op_h op_a, ucp_st_op_h op_b)
{
    st_free(op_a);
    st_free(op_b);
}

void st_free(ucp_st_op_h op)
{
    CU_ASSERT_EQUAL(ucp_st_op_free(op), UCS_OK);
}

void st_drain(st_pair_t *pair)
{
    ucp_st_stats_t stats[2];
    int i;

    do {
        for (i = 0; i < 2; ++i) {
            ucp_st_worker_progress(pair->side[i].worker);
            stats[i] = st_stats(&pair->side[i]);
        }
    } while ((stats[ST_A].freed > 0) || (stats[ST_B].freed > 0) ||
             (stats[ST_A].entries > 0) || (stats[ST_B].entries > 0));
}

int st_is_spoiled(const void *buffer, size_t length)
{
    const uint8_t *p = buffer;
    size_t i;

    for (i = 0; (i < length) && (p[i] == ST_SPOILED); ++i) {
        /* look on */
    }
    return i == length;
}

static uint8_t st_pattern(uint64_t seed, size_t i)
{
    uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull;

    return (uint8_t)(x >> 37) ^ (uint8_t)x;
}

void st_fill(void *buffer, size_t length, uint64_t seed)
{
    uint8_t *p = buffer;
    size_t i;

    for (i = 0; i < length; ++i) {
        p[i] = st_pattern(seed, i);
    }
}

int st_check(const void *buffer, size_t length, uint64_t seed)
{
    const uint8_t *p = buffer;
    size_t i;

    for (i = 0; i < length; ++i) {
        if (p[i] != st_pattern(seed, i)) {
            return 0;
        }
    }
    return 1;
}
