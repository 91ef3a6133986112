/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu_rma.c - one-sided operations on streams of GPUs, of the stand-ins
 * for the runtimes: what the streams do themselves, and how that ends.
 */
#include "st_ask.h"
#include "st_cunit.h"
#include "st_gpu.h"
#include "st_stream.h"
#include "st_window.h"

#include "core/st_op.h"
#include "core/st_queue.h"
#include "core/st_worker.h"
#include "direct/st_direct_proto.h"

#include <ucs_gstream_memory.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEN     4096
#define SIGNALS 3
#define ROUNDS  20

/** What a case works on: B waits for signals of A. */
typedef struct {
    gpu_t             *gpu;
    st_side_t         *a, *b;
    st_window_t       windows[2];
    volatile uint64_t *gate; /* B's stream can be made to wait for 1 there */
} case_t;

static void case_init(case_t *c, gpu_t *gpu, size_t length, int is_library)
{
    c->gpu  = gpu;
    c->a    = &gpu->side[ST_A];
    c->b    = &gpu->side[ST_B];
    c->gate = ucs_gstream_word_get();
    CU_ASSERT_PTR_NOT_NULL_FATAL(c->gate);
    st_windows_init(&gpu->pair, c->windows, length, is_library);
}

static void case_cleanup(case_t *c)
{
    ucs_gstream_word_put(c->gate);
    st_windows_cleanup(c->windows);
}

static void gate_close(case_t *c)
{
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(c->b->stream, c->gate, 1),
                    UCS_OK);
}

static void gate_open(case_t *c)
{
    __atomic_store_n(c->gate, 1, __ATOMIC_RELEASE);
}

/* A wait for a signal whose word the library may store to */
static ucp_st_wait_signal_params_t owned(const st_window_t *window,
                                         unsigned index, uint64_t value)
{
    ucp_st_wait_signal_params_t params = st_wait_params(window, index, value);

    params.field_mask |= UCP_ST_WAIT_SIGNAL_PARAM_FIELD_FLAGS;
    params.flags       = UCP_ST_WAIT_SIGNAL_FLAG_OVERWRITE;
    return params;
}

static ucs_status_t wait_owned(ucp_st_queue_h queue, const st_window_t *window,
                               unsigned index, uint64_t value)
{
    ucp_st_wait_signal_params_t params = owned(window, index, value);

    return ucp_st_enqueue_wait_signal(queue, &params);
}

/* Functions of lanes that the service thread was to run for a queue's stream */
static uint64_t num_calls(ucp_st_queue_h queue)
{
    return *queue->marks[UCP_ST_QUEUE_WORD_CALLBACK];
}

/* The wait for some signals, of which the stream waits for all words itself */
static void run_words(gpu_t *gpu)
{
    const ucp_st_wait_signal_params_t *places[SIGNALS];
    ucp_st_wait_signal_params_t waits[SIGNALS];
    standin_counts_t before, after;
    st_work_t check;
    int errors = 0;
    unsigned i, k;
    case_t c;

    case_init(&c, gpu, LEN, 1);
    check = (st_work_t){c.windows[ST_B].memory, LEN, 7, &errors};
    for (k = 1; k <= ROUNDS; ++k) {
        for (i = 0; i < SIGNALS; ++i) {
            waits[i]  = owned(&c.windows[ST_B], i, k);
            places[i] = &waits[i];
        }
        before = rt_counts(gpu->rt);
        CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signals(c.b->queue, places,
                                                    SIGNALS), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signals(c.b->queue, NULL, 0),
                        UCS_OK);
        after = rt_counts(gpu->rt);
        if (!gpu->is_real) {
            CU_ASSERT_EQUAL(after.kernels - before.kernels, gpu->is_hip);
            CU_ASSERT_EQUAL(after.host_funcs, before.host_funcs);
        }
        st_launch(c.b, st_check_func, &check);
        st_fill(c.windows[ST_A].memory, LEN, 7);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(c.b->stream, 0),
                        UCS_INPROGRESS);
        for (i = 0; i < SIGNALS; ++i) {
            st_put_signal(&c.windows[ST_A], (i == SIGNALS - 1) ? LEN : 0, i, k);
        }
        st_quiet(&c.windows[ST_A]);
        st_pair_sync(&gpu->pair);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(c.b->stream), UCS_OK);
    }
    CU_ASSERT_EQUAL(errors, 0);
    CU_ASSERT_EQUAL(num_calls(c.b->queue), 0);
    CU_ASSERT_EQUAL(st_stats(c.b).signal_waits, ROUNDS);
    CU_ASSERT_EQUAL(st_stats(c.b).proxied, 0);
    case_cleanup(&c);
}

GPU_CASES(words_host, "host", run_words)
GPU_CASES(words_direct, "direct", run_words)
GPU_CASES(words_trig, "trig", run_words)

/* Memory of the runtime serves, too; a stream waits for no word that it does
 * not reach, nor for one to be equal */
static void run_kinds(gpu_t *gpu)
{
    ucp_st_wait_signal_params_t wait;
    st_window_t window;
    uint64_t calls;
    case_t c;

    case_init(&c, gpu, LEN, 0);
    *st_signal(&c.windows[ST_B], 0) = 2;
    wait = owned(&c.windows[ST_B], 0, 2);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(c.b->queue, &wait), UCS_OK);
    st_sync(c.b);
    calls = num_calls(c.b->queue);
    CU_ASSERT(calls > 0);

    gpu_set_device(gpu, 0);
    window        = c.windows[ST_B];
    window.memory = rt_host_alloc(gpu->rt, LEN + 4096);
    CU_ASSERT_PTR_NOT_NULL_FATAL(window.memory);
    CU_ASSERT_EQUAL_FATAL(ucp_st_mem_reg(c.b->worker, window.memory, LEN + 4096,
                                         &window.memh), UCS_OK);
    *st_signal(&window, 0) = 2;
    wait = owned(&window, 0, 2);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(c.b->queue, &wait), UCS_OK);
    st_sync(c.b);
    CU_ASSERT_EQUAL(num_calls(c.b->queue), calls);
    wait.field_mask |= UCP_ST_WAIT_SIGNAL_PARAM_FIELD_CMP;
    wait.cmp         = UCP_ST_SIGNAL_EQ;
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(c.b->queue, &wait), UCS_OK);
    st_sync(c.b);
    CU_ASSERT(num_calls(c.b->queue) > calls);
    wait.flags = 1u << 7;
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(c.b->queue, &wait),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_dereg(window.memh), UCS_OK);
    CU_ASSERT_EQUAL(rt_host_free(gpu->rt, window.memory), RT_OK);
    case_cleanup(&c);
}

GPU_CASES(kinds, "host", run_kinds)

static void queue_fail(ucp_st_queue_h queue)
{
    ucp_st_worker_lock(queue->worker);
    ucp_st_queue_fail(queue, NULL, UCS_ERR_IO_ERROR);
    ucp_st_worker_unlock(queue->worker);
}

static void until_stored(uint64_t *word)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != UCP_ST_RELEASE) {
        (void)sched_yield();
    }
}

static void check_failed(const st_side_t *side)
{
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(side->stream), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(side->queue, NULL), UCS_ERR_IO_ERROR);
}

/* A queue fails whose stream has not come to its wait. Late signals take the
 * place of what the library stores, as often as they like. */
static void run_late(gpu_t *gpu)
{
    uint64_t *word;
    st_side_t more;
    unsigned i;
    case_t c;

    case_init(&c, gpu, LEN, 1);
    word = st_signal(&c.windows[ST_B], 0);
    st_more_init(&more, c.b);
    gate_close(&c);
    CU_ASSERT_EQUAL(wait_owned(c.b->queue, &c.windows[ST_B], 0, 5), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_mem_dereg(c.windows[ST_B].memh), UCS_ERR_BUSY);
    queue_fail(c.b->queue);
    for (i = 1; i < 5; ++i) {
        until_stored(word);
        __atomic_store_n(word, i, __ATOMIC_RELEASE);
    }
    gate_open(&c);
    check_failed(c.b);
    /* Signals there mean nothing any more */
    CU_ASSERT_EQUAL(wait_owned(more.queue, &c.windows[ST_B], 1, 1),
                    UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucp_st_mem_dereg(c.windows[ST_B].memh), UCS_OK);
    *word = 5;
    CU_ASSERT_EQUAL(ucp_st_mem_reg(c.b->worker, c.windows[ST_B].memory,
                                   LEN + 512, &c.windows[ST_B].memh), UCS_OK);
    CU_ASSERT_EQUAL(wait_owned(more.queue, &c.windows[ST_B], 0, 5), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(more.queue, NULL), UCS_OK);
    CU_ASSERT_EQUAL(*word, 5);
    st_more_cleanup(&more);
    case_cleanup(&c);
}

GPU_CASES(late, "host", run_late)

/* Other queues wait for signals in the same memory: by the stream, by a thread,
 * or, behind a wait that is over, not at all */
static void run_others(gpu_t *gpu)
{
    ucp_st_wait_signal_params_t wait;
    st_side_t others[3], host;
    case_t c;
    int i;

    case_init(&c, gpu, LEN, 1);
    for (i = 0; i < 3; ++i) {
        st_more_init(&others[i], c.b);
    }
    st_more_init_host(&host, c.b);
    *st_signal(&c.windows[ST_B], 3) = 1;
    CU_ASSERT_EQUAL(wait_owned(c.b->queue, &c.windows[ST_B], 0, 1), UCS_OK);
    CU_ASSERT_EQUAL(wait_owned(others[0].queue, &c.windows[ST_B], 0, 2),
                    UCS_OK);
    wait = st_wait_params(&c.windows[ST_B], 1, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(others[1].queue, &wait), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(host.queue, &wait), UCS_OK);
    CU_ASSERT_EQUAL(wait_owned(others[2].queue, &c.windows[ST_B], 3, 1),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(others[2].queue, NULL), UCS_OK);
    queue_fail(c.b->queue);
    check_failed(c.b);
    check_failed(&others[0]);
    check_failed(&others[1]);
    check_failed(&host);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(others[2].queue, NULL), UCS_OK);
    CU_ASSERT_EQUAL(*st_signal(&c.windows[ST_B], 0), UCP_ST_RELEASE);
    CU_ASSERT_EQUAL(*st_signal(&c.windows[ST_B], 1), 0);
    CU_ASSERT_EQUAL(*st_signal(&c.windows[ST_B], 3), 1);
    for (i = 0; i < 3; ++i) {
        st_more_cleanup(&others[i]);
    }
    st_more_cleanup(&host);
    case_cleanup(&c);
}

GPU_CASES(others, "host", run_others)

/* A wait whose signals have come is none that a failure could spoil, and one
 * that a thread looks at stores nothing */
static void run_met(gpu_t *gpu)
{
    ucp_st_wait_signal_params_t wait;
    st_side_t more;
    case_t c;

    case_init(&c, gpu, LEN, 1);
    st_more_init(&more, c.b);
    *st_signal(&c.windows[ST_B], 0) = 1;
    gate_close(&c);
    CU_ASSERT_EQUAL(wait_owned(c.b->queue, &c.windows[ST_B], 0, 1), UCS_OK);
    wait = st_wait_params(&c.windows[ST_B], 1, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(c.b->queue, &wait), UCS_OK);
    queue_fail(c.b->queue);
    gate_open(&c);
    check_failed(c.b);
    CU_ASSERT_EQUAL(*st_signal(&c.windows[ST_B], 0), 1);
    CU_ASSERT_EQUAL(*st_signal(&c.windows[ST_B], 1), 0);
    CU_ASSERT_EQUAL(wait_owned(more.queue, &c.windows[ST_B], 0, 1), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(more.queue, NULL), UCS_OK);
    st_more_cleanup(&more);
    case_cleanup(&c);
}

GPU_CASES(met, "host", run_met)

/* Lengths of one block and of several, at places that differ */
static const size_t lengths[] = {0, 1, 8, 1000, 70000};

#define LONG 70000

static void check_kernels(case_t *c, uint64_t launches)
{
    CU_ASSERT_EQUAL(num_calls(c->a->queue), 0);
    CU_ASSERT_EQUAL(num_calls(c->b->queue), 0);
    CU_ASSERT_EQUAL(st_stats(c->a).launches, launches);
    CU_ASSERT_EQUAL(st_stats(c->a).proxied, 0);
}

/* A kernel for each operation, of the stream alone */
static void run_moves(gpu_t *gpu)
{
    standin_counts_t before;
    st_window_t *from, *to;
    uint64_t launches = 0;
    uint64_t k        = 0;
    unsigned i, is_get;
    case_t c;

    case_init(&c, gpu, LONG + 8, 1);
    before = rt_counts(gpu->rt);
    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        for (is_get = 0; is_get < 2; ++is_get) {
            from = &c.windows[is_get ? ST_B : ST_A];
            to   = &c.windows[is_get ? ST_A : ST_B];
            st_fill(from->memory + i, lengths[i], ++k);
            memset(to->memory, 0xee, LONG + 8);
            (is_get ? st_get : st_put)(&c.windows[ST_A], i, lengths[i], i % 2);
            st_put_signal(&c.windows[ST_A], 0, 1, k);
            st_quiet(&c.windows[ST_A]);
            CU_ASSERT_EQUAL(wait_owned(c.b->queue, &c.windows[ST_B], 1, k),
                            UCS_OK);
            st_pair_sync(&gpu->pair);
            CU_ASSERT_TRUE(st_check(to->memory + i, lengths[i], k));
            CU_ASSERT_EQUAL(to->memory[i + lengths[i]], 0xee);
            launches += 1 + (lengths[i] > 0);
        }
    }
    if (!gpu->is_real) {
        CU_ASSERT_EQUAL(rt_counts(gpu->rt).host_funcs, before.host_funcs);
        CU_ASSERT_EQUAL(rt_counts(gpu->rt).copies, before.copies);
    }
    check_kernels(&c, launches);
    CU_ASSERT_EQUAL(st_stats(c.a).lanes[UCP_ST_LANE_DIRECT].rmas, launches);
    CU_ASSERT_EQUAL(st_stats(c.a).puts, ST_CUNIT_COUNT(lengths));
    CU_ASSERT_EQUAL(st_stats(c.a).gets, ST_CUNIT_COUNT(lengths));
    case_cleanup(&c);
}

GPU_CASES(moves, "direct", run_moves)

/* A window that is a file of its own, as long ones are, is given back while a
 * stream waits for what its caller does next */
static void run_long(gpu_t *gpu)
{
    case_t c;

    case_init(&c, gpu, 1u << 20, 1);
    st_fill(c.windows[ST_A].memory, 100, 3);
    st_put_signal(&c.windows[ST_A], 100, 1, 1);
    CU_ASSERT_EQUAL(wait_owned(c.b->queue, &c.windows[ST_B], 1, 1), UCS_OK);
    st_pair_sync(&gpu->pair);
    CU_ASSERT_TRUE(st_check(c.windows[ST_B].memory, 100, 3));
    check_kernels(&c, 1);
    gate_close(&c);
    st_windows_cleanup(c.windows);
    gate_open(&c);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(c.b->stream), UCS_OK);
    ucs_gstream_word_put(c.gate);
}

GPU_CASES(long, "direct", run_long)

/* Data with its signal; what they name stays until the stream has passed */
static void run_held(gpu_t *gpu)
{
    case_t c;

    case_init(&c, gpu, LEN, 1);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(c.a->stream, c.gate, 1), UCS_OK);
    st_fill(c.windows[ST_A].memory, LEN, 3);
    st_put_signal(&c.windows[ST_A], LEN, 2, 9);
    CU_ASSERT_EQUAL(ucp_st_mem_dereg(c.windows[ST_A].memh), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_rkey_destroy(c.windows[ST_A].rkey), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(c.a->queue), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(*st_signal(&c.windows[ST_B], 2), 0);
    gate_open(&c);
    st_pair_sync(&gpu->pair);
    CU_ASSERT_EQUAL(*st_signal(&c.windows[ST_B], 2), 9);
    CU_ASSERT_TRUE(st_check(c.windows[ST_B].memory, LEN, 3));
    check_kernels(&c, 1);
    /* A quiet behind what the application's stream waits for is none that waits
     */
    *c.gate = 0;
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(c.a->stream, c.gate, 1), UCS_OK);
    st_quiet(&c.windows[ST_A]);
    CU_ASSERT_PTR_NULL(strstr(st_ask(getpid()), "a quiet has waited"));
    gate_open(&c);
    st_sync(c.a);
    case_cleanup(&c);
}

GPU_CASES(held, "direct", run_held)

/* What kernels do not reach, or cannot do, the service thread does; a strict
 * signal by a kernel waits for that */
static void run_mixed(gpu_t *gpu)
{
    ucp_st_signal_params_t signal;
    ucp_st_rma_params_t params;
    st_window_t plain;
    uint64_t k;
    case_t c;

    case_init(&c, gpu, LEN, 1);
    st_window_init(c.a, &plain, LEN, 0);
    for (k = 1; k <= ROUNDS; ++k) {
        params             = st_rma_params(&c.windows[ST_A], 0, LEN);
        params.memh        = plain.memh;
        st_fill(plain.memory, LEN, k);
        CU_ASSERT_EQUAL(ucp_st_enqueue_put(c.a->queue, &params), UCS_OK);
        params             = st_rma_params(&c.windows[ST_A], 0, 0);
        params.field_mask |= UCP_ST_RMA_PARAM_FIELD_FLAGS;
        params.flags       = UCP_ST_RMA_FLAG_STRICT;
        signal             = st_signal_params(&c.windows[ST_A], 1, k);
        CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(c.a->queue, &params, &signal),
                        UCS_OK);
        CU_ASSERT_EQUAL(wait_owned(c.b->queue, &c.windows[ST_B], 1, k), UCS_OK);
        st_sync(c.b);
        CU_ASSERT_TRUE(st_check(c.windows[ST_B].memory, LEN, k));
        st_sync(c.a);
    }
    CU_ASSERT_EQUAL(num_calls(c.a->queue), ROUNDS);
    params             = st_rma_params(&c.windows[ST_A], 0, 0);
    signal             = st_signal_params(&c.windows[ST_A], 2, 5);
    signal.field_mask |= UCP_ST_SIGNAL_PARAM_FIELD_OP;
    signal.op          = UCP_ST_SIGNAL_ADD;
    CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(c.a->queue, &params, &signal),
                    UCS_OK);
    st_quiet(&c.windows[ST_A]);
    st_sync(c.a);
    CU_ASSERT_EQUAL(*st_signal(&c.windows[ST_B], 2), 5);
    CU_ASSERT_EQUAL(num_calls(c.a->queue), ROUNDS + 1);
    st_window_cleanup(&plain);
    case_cleanup(&c);
}

GPU_CASES(mixed, "direct", run_mixed)

/* Operations that the stream comes to when its queue has failed */
static void run_move_fails(gpu_t *gpu)
{
    case_t c;

    case_init(&c, gpu, LONG, 1);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait64(c.a->stream, c.gate, 1), UCS_OK);
    st_fill(c.windows[ST_A].memory, LONG, 3);
    st_put_signal(&c.windows[ST_A], LONG, 2, 9);
    st_get(&c.windows[ST_A], 0, 8, 0);
    queue_fail(c.a->queue);
    gate_open(&c);
    check_failed(c.a);
    CU_ASSERT_EQUAL(*st_signal(&c.windows[ST_B], 2), 0);
    CU_ASSERT_EQUAL(c.windows[ST_B].memory[0], 0);
    CU_ASSERT_TRUE(st_check(c.windows[ST_A].memory, LONG, 3));
    case_cleanup(&c);
}

GPU_CASES(move_fails, "direct", run_move_fails)

/* A stream of the host that sleeps, and one that a thread serves, find a signal
 * that no notification comes with */
static void run_sleepers(gpu_t *gpu)
{
    ucp_st_wait_signal_params_t wait;
    st_side_t host;
    case_t c;

    case_init(&c, gpu, LEN, 1);
    st_more_init_host(&host, c.b);
    wait = st_wait_params(&c.windows[ST_B], 0, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(c.b->queue, &wait), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(host.queue, &wait), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(host.stream, 0.1),
                    UCS_INPROGRESS);
    st_put_signal(&c.windows[ST_A], 0, 0, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(host.stream), UCS_OK);
    st_pair_sync(&gpu->pair);
    CU_ASSERT_EQUAL(num_calls(c.a->queue), 0);
    st_more_cleanup(&host);
    case_cleanup(&c);
}

GPU_CASES(sleepers, "direct", run_sleepers)

/* The setting that has threads move what kernels could */
static void run_service(gpu_t *gpu)
{
    case_t c;

    case_init(&c, gpu, LEN, 1);
    c.a->worker->config.direct_gpu_tier = UCP_ST_DIRECT_TIER_SERVICE;
    st_fill(c.windows[ST_A].memory, LEN, 3);
    st_put_signal(&c.windows[ST_A], LEN, 2, 9);
    st_quiet(&c.windows[ST_A]);
    st_sync(c.a);
    CU_ASSERT_EQUAL(*st_signal(&c.windows[ST_B], 2), 9);
    CU_ASSERT_TRUE(st_check(c.windows[ST_B].memory, LEN, 3));
    CU_ASSERT_EQUAL(num_calls(c.a->queue), 1);
    CU_ASSERT_EQUAL(st_stats(c.a).launches, 0);
    case_cleanup(&c);
}

GPU_CASES(service, "direct", run_service)

ST_SUITE("st_gpu_rma")
