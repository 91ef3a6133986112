/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu.c - queues on streams of GPUs, with the stand-ins for the
 * runtimes: starts are stores, whose functions the service thread runs, and no
 * host function of the runtime is on the way.
 */
#include "st_cunit.h"
#include "st_gpu.h"
#include "st_stream.h"
#include "../integration/st_any.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

#include "core/st_op.h"
#include "core/st_queue.h"
#include "core/st_worker.h"
#include "trig/st_trig_dev.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NUM_OPS 8
#define LENGTH  1000
#define ROUNDS  20
#define BATCHES 100
#define CALLS   3

/* How long the service thread is looked at, ns, and how often it may look in
 * that time: by no more than its slow pace, and a tenth of a second of others'
 * work; and if nothing is open */
#define OBSERVE_NSEC  300000000l
#define LOOKS_WAITING 500
#define LOOKS_IDLE    30

static uint8_t sent[NUM_OPS][LENGTH], received[NUM_OPS][LENGTH];

static void call(ucs_status_t (*func)(ucp_st_queue_h, const ucp_st_op_h*,
                                      size_t),
                 st_side_t *side, const ucp_st_op_h *ops)
{
    CU_ASSERT_EQUAL(func(side->queue, ops, NUM_OPS), UCS_OK);
}

static void run_rounds(gpu_t *gpu, ucp_st_op_h ops[2][NUM_OPS])
{
    unsigned i, k;
    int j;

    for (k = 0; k < ROUNDS; ++k) {
        for (i = 0; i < NUM_OPS; ++i) {
            st_fill(sent[i], LENGTH, (k * NUM_OPS) + i);
        }
        for (j = 0; j < 2; ++j) {
            call(ucp_st_enqueue_startall, &gpu->side[j], ops[j]);
            call(ucp_st_enqueue_waitall, &gpu->side[j], ops[j]);
        }
        st_pair_sync(&gpu->pair);
        for (i = 0; i < NUM_OPS; ++i) {
            CU_ASSERT_TRUE(st_check(received[i], LENGTH, (k * NUM_OPS) + i));
        }
    }
}

/* A startall stores once, as does a waitall, and no host function runs. With
 * HIP one kernel waits for all words of a waitall. Each use has its start
 * carried out by a thread of the library. */
static void run_counts(gpu_t *gpu)
{
    unsigned kernels = gpu->rt->is_hip ? ROUNDS : 0;
    unsigned waits   = gpu->rt->is_hip ? 0 : NUM_OPS * ROUNDS;
    ucp_st_op_h ops[2][NUM_OPS];
    standin_counts_t before, after;
    unsigned i;
    int j;

    for (i = 0; i < NUM_OPS; ++i) {
        ops[ST_A][i] = st_send(&gpu->side[ST_A], sent[i], LENGTH, i);
        ops[ST_B][i] = st_recv(&gpu->side[ST_B], received[i], LENGTH, i);
        st_match_ok(ops[ST_A][i], ops[ST_B][i]);
    }
    before = rt_counts(gpu->rt);
    run_rounds(gpu, ops);
    after = rt_counts(gpu->rt);
    if (!gpu->is_real) {
        CU_ASSERT_EQUAL(after.host_funcs, before.host_funcs);
        CU_ASSERT_EQUAL(after.kernels - before.kernels, 2 * kernels);
        CU_ASSERT_EQUAL(after.copies, before.copies);
        CU_ASSERT_EQUAL(after.writes - before.writes, 2 * 2 * ROUNDS);
        CU_ASSERT_EQUAL(after.waits - before.waits, 2 * waits);
    }
    for (j = 0; j < 2; ++j) {
        CU_ASSERT_EQUAL(st_stats(&gpu->side[j]).proxied, NUM_OPS * ROUNDS);
        CU_ASSERT_EQUAL(st_stats(&gpu->side[j]).launches, kernels);
        CU_ASSERT_EQUAL(st_stats(&gpu->side[j]).lanes[st_lane()].starts,
                        NUM_OPS * ROUNDS);
    }
    for (i = 0; i < NUM_OPS; ++i) {
        st_free2(ops[ST_A][i], ops[ST_B][i]);
    }
}

GPU_CASES(counts, "host", run_counts)
GPU_CASES(counts_direct, "direct", run_counts)

/** What the functions of calls are called for. */
typedef struct order {
    unsigned num_called;
    unsigned num_bad;
} order_t;

/** The arguments of one, and more bytes that tell whether they were copied. */
typedef struct item {
    order_t  *order;
    unsigned number;
    size_t   size;
    uint8_t  more[600];
} item_t;

static void in_turn(void *arg)
{
    const item_t *item = arg;

    item->order->num_bad += (item->number != item->order->num_called) ||
                            !st_check(item->more,
                                      item->size - offsetof(item_t, more),
                                      item->number);
    __atomic_store_n(&item->order->num_called, item->order->num_called + 1,
                     __ATOMIC_RELEASE);
}

static void enqueue_calls(ucp_st_queue_h queue, order_t *order, unsigned first)
{
    size_t num_cmds = 0;
    item_t item     = {.order = order};
    unsigned i;

    CU_ASSERT_EQUAL(ucp_st_queue_prepare(queue, CALLS), UCS_OK);
    for (i = first; i < (first + CALLS); ++i) {
        item.number = i;
        item.size   = offsetof(item_t, more) + 8 + (i % 590);
        st_fill(item.more, item.size - offsetof(item_t, more), i);
        num_cmds   += ucp_st_queue_add_func(queue, in_turn, &item, item.size,
                                            &queue->cmds[num_cmds]);
    }
    CU_ASSERT_EQUAL(num_cmds, 1); /* one store serves all */
    CU_ASSERT_EQUAL(ucp_st_queue_enqueue(queue, num_cmds), UCS_OK);
}

/* Calls run in order, once, with their own arguments, and not before the stream
 * has come to them; those of a batch that was not enqueued do not run */
static void run_order(gpu_t *gpu)
{
    ucp_st_queue_h queue = gpu->side[ST_A].queue;
    uint64_t gate        = 0;
    order_t order        = {0};
    order_t dropped      = {0};
    item_t item          = {.order = &dropped, .size = sizeof(item)};
    unsigned i;

    st_hold(&gpu->side[ST_A], &gate);
    for (i = 0; i < BATCHES; ++i) {
        CU_ASSERT_EQUAL(ucp_st_queue_prepare(queue, 1), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_queue_add_func(queue, in_turn, &item,
                                              sizeof(item), queue->cmds), 1);
        enqueue_calls(queue, &order, i * CALLS);
    }
    CU_ASSERT_EQUAL(__atomic_load_n(&order.num_called, __ATOMIC_ACQUIRE), 0);
    CU_ASSERT_EQUAL(ucp_st_queue_query(queue, NULL), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(queue), UCS_ERR_BUSY);
    st_let_go(&gate);
    st_sync(&gpu->side[ST_A]);
    CU_ASSERT_EQUAL(order.num_called, BATCHES * CALLS);
    CU_ASSERT_EQUAL(order.num_bad, 0);
    CU_ASSERT_EQUAL(dropped.num_called, 0);
}

GPU_CASES(order, "host", run_order)

/** A function that does not return until it may. */
typedef struct slow {
    int is_there;
    int may_end;
} slow_t;

static void be_slow(void *arg)
{
    slow_t *slow = arg;

    __atomic_store_n(&slow->is_there, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&slow->may_end, __ATOMIC_ACQUIRE)) {
        (void)sched_yield();
    }
}

/* The stream is idle, and the service thread still runs a call: the batch has
 * not passed */
static void run_slow(gpu_t *gpu)
{
    ucp_st_queue_h queue = gpu->side[ST_A].queue;
    slow_t slow          = {0};

    CU_ASSERT_EQUAL(ucp_st_queue_prepare(queue, 1), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_add_func(queue, be_slow, &slow, 0,
                                          queue->cmds), 1);
    CU_ASSERT_EQUAL(ucp_st_queue_enqueue(queue, 1), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(gpu->side[ST_A].stream), UCS_OK);
    while (!__atomic_load_n(&slow.is_there, __ATOMIC_ACQUIRE)) {
        (void)sched_yield();
    }
    CU_ASSERT_EQUAL(ucp_st_queue_query(queue, NULL), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(queue), UCS_ERR_BUSY);
    __atomic_store_n(&slow.may_end, 1, __ATOMIC_RELEASE);
    st_sync(&gpu->side[ST_A]);
}

GPU_CASES(slow, "host", run_slow)

/* An operation fails before the stream has come to its start: that has no
 * effect, and the stream passes the wait */
static void run_fails(gpu_t *gpu)
{
    ucp_st_queue_error_t error = {0};
    uint64_t gate              = 0;
    st_side_t *a               = &gpu->side[ST_A];
    ucp_st_op_h op[2];

    memset(received[0], ST_SPOILED, LENGTH);
    op[ST_A] = st_send(a, sent[0], LENGTH, 0);
    op[ST_B] = st_recv(&gpu->side[ST_B], received[0], LENGTH, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    st_hold(a, &gate);
    st_use(a, op[ST_A]);
    ucp_st_worker_lock(a->worker);
    ucp_st_op_fail(op[ST_A], UCS_ERR_IO_ERROR);
    ucp_st_worker_unlock(a->worker);
    st_let_go(&gate);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(a->queue, &error), UCS_ERR_IO_ERROR);
    CU_ASSERT_PTR_EQUAL(error.op, op[ST_A]);
    CU_ASSERT_EQUAL(st_stats(a).proxied, 0);
    CU_ASSERT_EQUAL(received[0][0], ST_SPOILED);
    st_free2(op[ST_A], op[ST_B]);
}

GPU_CASES(fails, "host", run_fails)
ST_CASE_CALL(fails_direct_hip, gpu_run(1, "direct", run_fails))

/* How often the service thread has gone to sleep */
static unsigned long service_sleeps(void)
{
    unsigned long sleeps = 0;
    char path[300], line[256];
    int is_it;
    struct dirent *entry;
    FILE *file;
    DIR *dir;

    dir = opendir("/proc/self/task");
    CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
    while ((entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "/proc/self/task/%s/status",
                 entry->d_name);
        file  = fopen(path, "r");
        is_it = 0;
        while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
            is_it |= !strcmp(line, "Name:\tucp-st\n");
            if (is_it) {
                (void)sscanf(line, "voluntary_ctxt_switches: %lu", &sleeps);
            }
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(dir);
    CU_ASSERT(sleeps > 0);
    return sleeps;
}

static unsigned long observe(void)
{
    struct timespec ts   = {.tv_nsec = OBSERVE_NSEC};
    unsigned long before = service_sleeps();

    nanosleep(&ts, NULL);
    return service_sleeps() - before;
}

/* The service thread looks seldom for a call that is long in coming, and not at
 * all if there is none */
static void run_pace(gpu_t *gpu)
{
    uint64_t gate = 0;
    order_t order = {0};

    st_hold(&gpu->side[ST_A], &gate);
    enqueue_calls(gpu->side[ST_A].queue, &order, 0);
    (void)observe();
    CU_ASSERT(observe() <= LOOKS_WAITING);
    st_let_go(&gate);
    st_sync(&gpu->side[ST_A]);
    CU_ASSERT_EQUAL(order.num_called, CALLS);
    CU_ASSERT(observe() <= LOOKS_IDLE);
}

ST_CASE_CALL(pace, gpu_run(1, "host", run_pace))

/* The lane of a new pair */
static ucp_st_lane_t lane_of_pair(st_pair_t *pair)
{
    ucp_st_op_attr_t attr = {.lane = UCP_ST_LANE_NONE};
    ucp_st_op_h op[2];

    op[ST_A] = st_send(&pair->side[ST_A], sent[0], LENGTH, 0);
    op[ST_B] = st_recv(&pair->side[ST_B], received[0], LENGTH, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    CU_ASSERT_EQUAL(ucp_st_op_query(op[ST_A], &attr), UCS_OK);
    st_free2(op[ST_A], op[ST_B]);
    return attr.lane;
}

/* The pages of the emulated card become such that a runtime takes */
static void show_pages(ucp_st_worker_h worker)
{
    uintptr_t address = (uintptr_t)uct_trig_cntr_doorbell(
            ucp_st_trig_dev(worker)->probe);

    address -= address % (uintptr_t)sysconf(_SC_PAGESIZE);
    CU_ASSERT_EQUAL(ucs_gstream_device_remove((void*)address), UCS_OK);
}

/* Streams of the stand-ins reach those of the NIC below the provider cxi, where
 * a store traps as any processor's does */
static int has_pages(void)
{
    return st_env_has_provider("cxi");
}

/* The worker's queues decide on the lane: streams of a device move nothing on
 * lane direct, nor on lane trig unless they reach the card's trigger pages.
 * None reaches those of the emulated card. That is asked again, as the reason
 * may pass: a stand-in takes the pages, which are not a device's, and a GPU
 * does not. */
static void run_lane(gpu_t *gpu)
{
    ucp_st_lane_t lane     = gpu->is_real ? UCP_ST_LANE_DIRECT :
                                            UCP_ST_LANE_TRIG;
    ucp_st_worker_h worker = gpu->side[ST_A].worker;
    st_side_t more;
    char *stream;

    if (!has_pages()) {
        CU_ASSERT_EQUAL(lane_of_pair(&gpu->pair), UCP_ST_LANE_DIRECT);
        show_pages(worker);
    }
    CU_ASSERT_EQUAL(lane_of_pair(&gpu->pair), lane);
    stream = st_env_set("ST_TEST_STREAM", NULL);
    st_more_init(&more, &gpu->side[ST_A]);
    CU_ASSERT_EQUAL(lane_of_pair(&gpu->pair), lane);
    worker->stream_types = UCS_BIT(UCS_GSTREAM_TYPE_HOST);
    CU_ASSERT_EQUAL(lane_of_pair(&gpu->pair), UCP_ST_LANE_DIRECT);
    worker->stream_types = 0;
    worker->is_ordered   = 1;
    CU_ASSERT_EQUAL(lane_of_pair(&gpu->pair), UCP_ST_LANE_DIRECT);
    st_more_cleanup(&more);
    st_env_restore("ST_TEST_STREAM", stream);
}

GPU_CASES(lane, NULL, run_lane)

/* The device is lost while the stream waits: the queue is in error and can be
 * destroyed, and its peer's stream, on another device, passes its wait */
static void run_lost(gpu_t *gpu)
{
    ucp_st_queue_error_t error = {0};
    uint64_t gate              = 0;
    st_side_t *a               = &gpu->side[ST_A];
    st_side_t *b               = &gpu->side[ST_B];
    ucs_status_t status;
    ucp_st_op_h op[2];
    st_side_t more;
    int i;

    if (gpu->is_real) {
        st_cunit_skip("no GPU can be lost at will");
        return;
    }
    op[ST_A] = st_send(a, sent[0], LENGTH, 0);
    op[ST_B] = st_recv(b, received[0], LENGTH, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    gpu_set_device(gpu, 1);
    st_more_init(&more, a);
    gpu_set_device(gpu, 0);
    st_hold(b, &gate);
    st_use(b, op[ST_B]);
    st_use(&more, op[ST_A]);
    gpu->rt->control.standin_lose_device(0);
    do {
        status = ucp_st_queue_query(b->queue, &error);
    } while (status == UCS_INPROGRESS);
    CU_ASSERT_EQUAL(status, UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(error.status, UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(b->queue, op[ST_B]), UCS_ERR_IO_ERROR);
    /* The receive was not begun: its peer hears of it */
    CU_ASSERT_NOT_EQUAL(ucp_st_queue_wait(more.queue, NULL), UCS_OK);
    st_free2(op[ST_A], op[ST_B]);
    st_more_cleanup(&more);
    gpu_set_device(gpu, 1);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_queue_destroy(gpu->side[i].queue), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_destroy(gpu->side[i].stream), UCS_OK);
        CU_ASSERT_EQUAL(st_any_stream(&gpu->side[i].stream), UCS_OK);
        gpu->side[i].queue = NULL;
    }
}

/* The last case of its runtime */
ST_CASE_CALL(lost, gpu_run(1, "host", run_lost))

ST_SUITE("st_gpu")
