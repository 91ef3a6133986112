/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu_fail.c - streams of GPUs, of the stand-ins for the runtimes, that
 * have no room, refuse a call, take a part of one, or are lost.
 */
#include "st_caller.h"
#include "st_cunit.h"
#include "st_gpu.h"
#include "st_stream.h"
#include "st_window.h"
#include "../integration/st_any.h"

#include "core/st_queue.h"

#include <ucs_gstream_memory.h>

#include <pthread.h>
#include <sched.h>

#define NUM_OPS 8
#define LENGTH  1000
#define WORDS   64
#define ASKS    2500

/* Commands that a stream has room for: less than starts of all but one */
#define QUEUE_DEPTH 5

/* A result of the runtimes */
#define UNKNOWN 999

static uint8_t sent[NUM_OPS][LENGTH], received[NUM_OPS][LENGTH];

/** A thread that enqueues more than the stream has room for. */
typedef struct full {
    ucp_st_queue_h            queue;
    ucp_st_op_h               *ops; /* it starts the first and waits for it; */
    const ucp_st_rma_params_t *put; /* then it starts the others, or puts, if
                                       this is not NULL */
    int                       line;
} full_t;

static void *full_main(void *arg)
{
    full_t *full = arg;
    unsigned i;

    CHECK_OK(full, ucp_st_enqueue_start(full->queue, full->ops[0]));
    CHECK_OK(full, ucp_st_enqueue_wait(full->queue, full->ops[0]));
    for (i = 1; i < NUM_OPS; ++i) {
        if (full->put != NULL) {
            CHECK_OK(full, ucp_st_enqueue_put(full->queue, full->put));
        } else {
            CHECK_OK(full, ucp_st_enqueue_start(full->queue, full->ops[i]));
        }
    }
    return NULL;
}

/* A thread is stopped by a stream that has no room, and goes on once that has
 * received: for which the service thread needs what the call must not hold */
static void run_full_with(gpu_t *gpu, const ucp_st_rma_params_t *put)
{
    ucp_st_op_h ops[2][NUM_OPS];
    unsigned long before;
    full_t full = {.queue = gpu->side[ST_A].queue, .ops = ops[ST_A],
                   .put = put};
    unsigned count = (put != NULL) ? 1 : NUM_OPS;
    pthread_t thread;
    unsigned i;

    for (i = 0; i < count; ++i) {
        st_fill(sent[i], LENGTH, i);
        ops[ST_A][i] = (i == 0) ? st_recv(&gpu->side[ST_A], received[i],
                                          LENGTH, i) :
                                  st_send(&gpu->side[ST_A], sent[i], LENGTH, i);
        ops[ST_B][i] = (i == 0) ? st_send(&gpu->side[ST_B], sent[i], LENGTH,
                                          i) :
                                  st_recv(&gpu->side[ST_B], received[i],
                                          LENGTH, i);
        st_match_ok(ops[ST_A][i], ops[ST_B][i]);
    }
    before = rt_counts(gpu->rt).full;
    gpu->rt->control.standin_set_depth(QUEUE_DEPTH);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, full_main, &full), 0);
    while (rt_counts(gpu->rt).full == before) {
        (void)sched_yield();
    }
    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(gpu->side[ST_B].queue, ops[ST_B],
                                            count), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(gpu->side[ST_B].queue, ops[ST_B],
                                           count), UCS_OK);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_EQUAL(full.line, 0);
    gpu->rt->control.standin_set_depth(0);
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(gpu->side[ST_A].queue,
                                           &ops[ST_A][1], count - 1), UCS_OK);
    if (put != NULL) {
        CU_ASSERT_EQUAL(ucp_st_enqueue_quiet(gpu->side[ST_A].queue), UCS_OK);
    }
    st_pair_sync(&gpu->pair);
    for (i = 0; i < count; ++i) {
        CU_ASSERT_TRUE(st_check(received[i], LENGTH, i));
        st_free2(ops[ST_A][i], ops[ST_B][i]);
    }
}

static void run_full(gpu_t *gpu)
{
    run_full_with(gpu, NULL);
}

GPU_CASES(full, "host", run_full)
ST_CASE_CALL(full_direct_hip, gpu_run(1, "direct", run_full))

static void run_full_put(gpu_t *gpu)
{
    ucp_st_rma_params_t put;
    st_window_t windows[2];

    st_windows_init(&gpu->pair, windows, LENGTH, 1);
    st_fill(windows[ST_A].memory, LENGTH, 7);
    put = st_rma_params(&windows[ST_A], 0, LENGTH);
    run_full_with(gpu, &put);
    CU_ASSERT_TRUE(st_check(windows[ST_B].memory, LENGTH, 7));
    st_windows_cleanup(windows);
}

ST_CASE_CALL(full_put_hip, gpu_run(1, "host", run_full_put))
ST_CASE_CALL(full_put_direct_cuda, gpu_run(0, "direct", run_full_put))

/* Has calls of the runtime with a stream fail: after `skip` of them `count` */
static void fail_calls(gpu_t *gpu, unsigned skip, unsigned count, int error)
{
    gpu->rt->control.standin_fail_calls(skip, count, error);
}

static void refused_start(gpu_t *gpu, ucp_st_op_h op)
{
    fail_calls(gpu, 1, 1, RT_NO_MEMORY); /* behind that about a capture */
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(gpu->side[ST_A].queue, op),
                    UCS_ERR_NO_MEMORY);
}

/* The runtime refuses a whole batch: all is as before, and the next try is
 * good */
static void run_refused(gpu_t *gpu)
{
    st_side_t *a   = &gpu->side[ST_A];
    uint64_t seq   = a->queue->seq;
    ucp_st_op_attr_t attr;
    ucp_st_op_h op[2];
    unsigned i;

    op[ST_A] = st_send(a, sent[0], LENGTH, 0);
    op[ST_B] = st_recv(&gpu->side[ST_B], received[0], LENGTH, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    for (i = 0; i < 3; ++i) {
        st_fill(sent[0], LENGTH, i);
        refused_start(gpu, op[ST_A]);
        CU_ASSERT_EQUAL(a->queue->seq, seq);
        CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, NULL), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_op_query(op[ST_A], &attr), UCS_OK);
        CU_ASSERT_EQUAL(attr.started, i);
        CU_ASSERT_EQUAL(st_stats(a).lanes[st_lane()].starts, i);
        CU_ASSERT_EQUAL(ucp_st_enqueue_wait(a->queue, op[ST_A]),
                        UCS_ERR_NO_MESSAGE);
        st_use(a, op[ST_A]);
        st_use(&gpu->side[ST_B], op[ST_B]);
        st_pair_sync(&gpu->pair);
        CU_ASSERT_TRUE(st_check(received[0], LENGTH, i));
        CU_ASSERT_EQUAL(a->queue->seq, seq + 2);
        seq = a->queue->seq;
    }
    refused_start(gpu, op[ST_A]);
    st_free2(op[ST_A], op[ST_B]);
}

GPU_CASES(refused, "host", run_refused)
ST_CASE_CALL(refused_direct_hip, gpu_run(1, "direct", run_refused))

/* The same for puts and quiets */
static void run_refused_put(gpu_t *gpu)
{
    st_side_t *a = &gpu->side[ST_A];
    ucp_st_rma_params_t put;
    st_window_t windows[2];
    unsigned i;

    st_windows_init(&gpu->pair, windows, LENGTH, 1);
    put = st_rma_params(&windows[ST_A], 0, LENGTH);
    for (i = 0; i < 3; ++i) {
        st_fill(windows[ST_A].memory, LENGTH, i);
        fail_calls(gpu, 1, 1, RT_NO_MEMORY);
        CU_ASSERT_EQUAL(ucp_st_enqueue_put(a->queue, &put), UCS_ERR_NO_MEMORY);
        CU_ASSERT_EQUAL(ucp_st_enqueue_put(a->queue, &put), UCS_OK);
        fail_calls(gpu, 1, 1, RT_NO_MEMORY);
        CU_ASSERT_EQUAL(ucp_st_enqueue_quiet(a->queue), UCS_ERR_NO_MEMORY);
        CU_ASSERT_EQUAL(ucp_st_enqueue_quiet(a->queue), UCS_OK);
        st_sync(a);
        CU_ASSERT_EQUAL(st_stats(a).puts, i + 1);
        CU_ASSERT_TRUE(st_check(windows[ST_B].memory, LENGTH, i));
    }
    st_windows_cleanup(windows);
}

ST_CASE_CALL(refused_put_hip, gpu_run(1, "host", run_refused_put))
ST_CASE_CALL(refused_put_direct_cuda, gpu_run(0, "direct", run_refused_put))

/* Another queue and stream in place of one that has failed */
static void renew(gpu_t *gpu, st_side_t *side)
{
    ucs_status_t status;

    while ((status = ucp_st_queue_destroy(side->queue)) == UCS_ERR_BUSY) {
        (void)sched_yield();
    }
    CU_ASSERT_EQUAL(status, UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(side->stream), UCS_OK);
    CU_ASSERT_EQUAL(st_any_stream(&side->stream), UCS_OK);
    side->queue = st_queue(side, side->stream);
}

/* A part of a batch is in the stream: the queue is in error. It is not over
 * before the stream has run that part, and what is there passes. */
static void run_cut(gpu_t *gpu)
{
    ucp_st_queue_error_t error = {0};
    uint64_t gate              = 0;
    st_side_t *a               = &gpu->side[ST_A];
    gpu_place_t place;
    ucp_st_op_h op[2];

    gpu_place_get(gpu, &place, 0, LENGTH, 0);
    op[ST_A] = st_send(a, place.buffer, LENGTH, 0);
    op[ST_B] = st_recv(&gpu->side[ST_B], received[0], LENGTH, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    st_hold(a, &gate);
    fail_calls(gpu, 2, 1, UNKNOWN); /* the store behind the copy */
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(a->queue, op[ST_A]), UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, &error), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(a->queue), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(a->queue, op[ST_A]), UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucp_st_op_test(op[ST_A]), UCS_INPROGRESS);
    st_let_go(&gate);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(a->queue, &error), UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(error.status, UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, NULL), UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(st_stats(a).proxied, 0);
    st_free2(op[ST_A], op[ST_B]);
    renew(gpu, a);
    gpu_place_put(gpu, &place);
}

ST_CASE_CALL(cut_hip, gpu_run(1, "host", run_cut))
ST_CASE_CALL(cut_direct_hip, gpu_run(1, "direct", run_cut))

/* The wait of a batch is in the stream, and not what follows */
static void run_cut_wait(gpu_t *gpu)
{
    st_side_t *a = &gpu->side[ST_A];
    uint64_t gate = 0;
    ucp_st_op_h op[2];

    op[ST_A] = st_recv(a, received[0], LENGTH, 0);
    op[ST_B] = st_send(&gpu->side[ST_B], sent[0], LENGTH, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    st_hold(a, &gate);
    st_start(a, op[ST_A]);
    fail_calls(gpu, 2, 1, UNKNOWN);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(a->queue, op[ST_A]), UCS_ERR_IO_ERROR);
    st_let_go(&gate);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(a->queue, NULL), UCS_ERR_IO_ERROR);
    st_free2(op[ST_A], op[ST_B]);
    renew(gpu, a);
}

ST_CASE_CALL(cut_wait_hip, gpu_run(1, "host", run_cut_wait))
ST_CASE_CALL(cut_wait_direct_hip, gpu_run(1, "direct", run_cut_wait))

/* The same for a quiet, a wait for a signal, and one for messages that are used
 * once: what the call names is given back all the same */
static void run_cut_others(gpu_t *gpu)
{
    st_side_t *a                = &gpu->side[ST_A];
    ucp_st_msg_params_t message = {
        .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
                      UCP_ST_MSG_PARAM_FIELD_LENGTH |
                      UCP_ST_MSG_PARAM_FIELD_PEER,
        .buffer     = sent[0],
        .length     = LENGTH,
        .peer       = a->peer
    };
    ucp_st_wait_signal_params_t wait;
    ucp_st_rma_params_t put;
    st_window_t windows[2];
    ucs_status_t status;
    unsigned i;

    st_windows_init(&gpu->pair, windows, LENGTH, 1);
    put  = st_rma_params(&windows[ST_A], 0, LENGTH);
    wait = st_wait_params(&windows[ST_A], 0, 1);
    for (i = 0; i < 3; ++i) {
        if (i == 0) {
            CU_ASSERT_EQUAL(ucp_st_enqueue_put(a->queue, &put), UCS_OK);
        }
        if (i == 2) {
            CU_ASSERT_EQUAL(ucp_st_enqueue_send(a->queue, &message, NULL),
                            UCS_OK);
            CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(a->queue), UCS_OK);
        }
        fail_calls(gpu, 2, 1, UNKNOWN);
        status = (i == 0) ? ucp_st_enqueue_quiet(a->queue) :
                 (i == 1) ? ucp_st_enqueue_wait_signal(a->queue, &wait) :
                            ucp_st_enqueue_batch_wait(a->queue);
        CU_ASSERT_EQUAL(status, UCS_ERR_IO_ERROR);
        CU_ASSERT_EQUAL(ucp_st_queue_wait(a->queue, NULL), UCS_ERR_IO_ERROR);
        renew(gpu, a);
    }
    st_windows_cleanup(windows);
}

ST_CASE_CALL(cut_others_hip, gpu_run(1, "host", run_cut_others))

/* A runtime that fails to answer once has not lost the stream */
static void run_doubt(gpu_t *gpu)
{
    st_side_t *a  = &gpu->side[ST_A];
    uint64_t gate = 0;
    unsigned i;

    st_hold(a, &gate);
    CU_ASSERT_EQUAL(ucp_st_queue_prepare(a->queue, 0), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_enqueue(a->queue, 0), UCS_OK);
    for (i = 0; i < ASKS; ++i) {
        fail_calls(gpu, 0, 1, UNKNOWN);
        CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, NULL), UCS_INPROGRESS);
    }
    fail_calls(gpu, 0, 1, UNKNOWN);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(a->queue), UCS_ERR_BUSY);
    fail_calls(gpu, 0, 0, 0);
    st_let_go(&gate);
    st_sync(a);
}

GPU_CASES(doubt, "host", run_doubt)

/* What is lost is known when a queue is destroyed, if nobody has asked. The
 * device may still store to its words: nobody gets them. */
static void run_lost_unasked(gpu_t *gpu)
{
    volatile uint64_t *mark, *words[WORDS];
    uint64_t gate = 0;
    st_side_t more;
    unsigned i;

    gpu_set_device(gpu, 1);
    st_more_init(&more, &gpu->side[ST_A]);
    st_hold(&more, &gate);
    CU_ASSERT_EQUAL(ucp_st_queue_prepare(more.queue, 0), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_enqueue(more.queue, 0), UCS_OK);
    mark = more.queue->marks[UCP_ST_QUEUE_WORD_PASSED];
    gpu->rt->control.standin_lose_device(1);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(more.queue), UCS_OK);
    for (i = 0; i < WORDS; ++i) {
        words[i] = ucs_gstream_word_get();
        CU_ASSERT_PTR_NOT_EQUAL(words[i], mark);
    }
    for (i = 0; i < WORDS; ++i) {
        ucs_gstream_word_put(words[i]);
    }
    CU_ASSERT_EQUAL(ucs_gstream_destroy(more.stream), UCS_OK);
    gpu_set_device(gpu, 0);
}

/* The last case of its runtime */
ST_CASE_CALL(lost_unasked, gpu_run(1, "host", run_lost_unasked))

ST_SUITE("st_gpu_fail")
