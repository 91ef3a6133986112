/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu_device.c - messages that kernels of the application start and
 * wait for (ucp_st_device.h). test_st_gpu_far has two processes.
 */
#include "st_cunit.h"
#include "st_duo.h"
#include "../../examples/gpu/st_device_kernels.h"

#include "core/st_lane.h"
#include "core/st_op.h"
#include "core/st_worker.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH DUO_LENGTH
#define USES   6
#define MANY   50

#define SENDS    (TEST_KERNEL_FILL | TEST_KERNEL_START)
#define RECEIVES (TEST_KERNEL_START | TEST_KERNEL_WAIT | TEST_KERNEL_SUM)

/* A kernel starts a side's uses and the queue those of the other one, in turns,
 * and both of the same side's; either is the first to start */
static void run_mixed(gpu_t *gpu, unsigned threads, int from, int to)
{
    duo_t duo = {.at = {from, to}};
    uint64_t before;
    uint64_t k;
    int kernels;

    duo_init_as(&duo, gpu);
    before = st_stats(&gpu->side[ST_A]).lanes[st_lane()].starts;
    for (k = 0; k < USES; ++k) {
        kernels = (k / 2) % 2; /* that side has a kernel */
        gpu_fill(duo.places[ST_A].buffer, LENGTH, k);
        if (k % 2) {
            duo_enqueue(&duo, !kernels);
        }
        duo_post(&duo, kernels, 1);
        duo_launch(&duo, kernels, TEST_KERNEL_START | TEST_KERNEL_WAIT, 1,
                   threads);
        if (!(k % 2)) {
            duo_enqueue(&duo, !kernels);
        }
        duo_check(&duo, kernels, 1);
        duo_check_enqueued(&duo, !kernels);
        CU_ASSERT(gpu_check(duo.places[ST_B].buffer, LENGTH, k));
        CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_A]).lanes[st_lane()].starts,
                        before + k + 1);
    }
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_A]).proxied, 0);
    duo_cleanup(&duo);
}

/* Buffers in memory of the host that the device reaches */
static void run_mixed_hosts(gpu_t *gpu)
{
    run_mixed(gpu, 4, GPU_PINNED, GPU_SHARED);
    run_mixed(gpu, 4, GPU_SHARED, GPU_MANAGED);
    run_mixed(gpu, 4, GPU_MANAGED, 0);
}

static void run_mixed_thread(gpu_t *gpu)
{
    run_mixed(gpu, 1, 0, 0);
}

static void run_mixed_block(gpu_t *gpu)
{
    run_mixed(gpu, 4, 0, 0);
}

/* Many uses of one kernel on each side; nothing is enqueued */
static void run_many(gpu_t *gpu)
{
    unsigned threads;
    duo_t duo;

    duo_init(&duo, gpu);
    for (threads = 1; threads <= 4; threads += 3) {
        duo_post(&duo, ST_A, MANY - 1);
        duo_post(&duo, ST_A, 1);
        duo_post(&duo, ST_B, MANY);
        duo_launch(&duo, ST_B, RECEIVES, MANY, threads);
        duo_launch(&duo, ST_A, SENDS | TEST_KERNEL_TEST, MANY, threads);
        duo_check(&duo, ST_A, MANY);
        CU_ASSERT_EQUAL(st_kernel_end(&duo.kernel[ST_B]).sum,
                        MANY * (MANY - 1) / 2);
        duo_check(&duo, ST_B, MANY);
    }
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_A]).start_cmds, 0);
    duo_cleanup(&duo);
}

/* Kernels have begun the first one of the uses that were posted */
static void until_begun(ucp_st_op_h op, uint64_t use)
{
    while (op->lane->op.begun(op) < use) {
        (void)sched_yield();
    }
}

/* A send of so many bytes, which the receive is told of, whichever copies */
static void check_length(duo_t *duo, uint64_t length, int is_recv_last,
                         unsigned threads)
{
    test_kernel_op_t args = duo_does(duo, ST_A, TEST_KERNEL_START |
                                                TEST_KERNEL_LENGTH |
                                                TEST_KERNEL_WAIT);
    uint64_t seed         = (length << 2) + (unsigned)is_recv_last + threads;
    test_kernel_result_t result;

    args.length = length;
    gpu_fill(duo->places[ST_A].buffer, LENGTH, seed);
    gpu_fill(duo->places[ST_B].buffer, LENGTH, seed + 1);
    duo_post(duo, ST_A, 1);
    if (!is_recv_last) {
        duo_enqueue(duo, ST_B);
    }
    st_kernel_launch(&duo->kernel[ST_A], args, threads);
    if (is_recv_last) {
        until_begun(duo->ops[ST_A], duo->ops[ST_A]->started);
        duo_enqueue(duo, ST_B);
    }
    duo_check(duo, ST_A, 1);
    duo_check_enqueued(duo, ST_B);
    result = duo_run(duo, ST_B, 0);
    CU_ASSERT_EQUAL(result.tell, UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(result.length, length);
    CU_ASSERT(gpu_check(duo->places[ST_B].buffer, length, seed));
    if (length < LENGTH) {
        CU_ASSERT_FALSE(gpu_check(duo->places[ST_B].buffer, length + 1, seed));
    }
}

static void run_lengths(gpu_t *gpu)
{
    static const uint64_t lengths[] = {0, 1, 500, LENGTH, 3};
    test_kernel_op_t args;
    duo_t duo;
    unsigned i;

    duo_init(&duo, gpu);
    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        check_length(&duo, lengths[i], i % 2, 1);
        check_length(&duo, lengths[i], i % 2, 4);
        check_length(&duo, lengths[i], !(i % 2), 1);
    }
    /* What is too long, or a receive's, starts nothing */
    duo_post(&duo, ST_A, 1);
    duo_post(&duo, ST_B, 1);
    for (i = 0; i < 2; ++i) {
        args        = duo_does(&duo, (int)i, TEST_KERNEL_LENGTH);
        args.length = LENGTH + !i;
        CU_ASSERT_EQUAL(st_kernel_run(&duo.kernel[i], args).start,
                        UCP_ST_DEVICE_INVALID);
        args.length = UINT64_MAX;
        CU_ASSERT_EQUAL(st_kernel_run(&duo.kernel[i], args).start,
                        UCP_ST_DEVICE_INVALID);
    }
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, SENDS).start, UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_B, RECEIVES).wait, UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, TEST_KERNEL_WAIT).wait,
                    UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_B, 0).length, LENGTH);
    duo_cleanup(&duo);
}

/* What is not posted is not started, and what is started is waited for first:
 * each is said, and nothing else happens */
static void run_rules(gpu_t *gpu)
{
    test_kernel_op_t none = {.what = TEST_KERNEL_START | TEST_KERNEL_WAIT};
    test_kernel_result_t result;
    ucp_st_queue_h queue;
    duo_t duo;

    duo_init(&duo, gpu);
    queue  = duo.kernel[ST_A].queue;
    result = st_kernel_run(&duo.kernel[ST_A], none);
    CU_ASSERT_EQUAL(result.start, UCP_ST_DEVICE_GONE);
    CU_ASSERT_EQUAL(result.wait, UCP_ST_DEVICE_GONE);
    CU_ASSERT_EQUAL(result.tell, UCP_ST_DEVICE_GONE);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, SENDS).start, UCP_ST_DEVICE_NO_USE);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, TEST_KERNEL_WAIT).wait,
                    UCP_ST_DEVICE_NO_USE);
    duo_post(&duo, ST_A, 0);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, SENDS).start, UCP_ST_DEVICE_NO_USE);
    /* A use that was enqueued is none of a kernel's */
    duo_enqueue(&duo, ST_A);
    duo_enqueue(&duo, ST_B);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, SENDS).start, UCP_ST_DEVICE_NO_USE);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, TEST_KERNEL_TEST).wait,
                    UCP_ST_DEVICE_NO_USE);
    duo_check_enqueued(&duo, ST_B);
    duo_post(&duo, ST_A, 1);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, TEST_KERNEL_TEST).wait,
                    UCP_ST_DEVICE_NO_USE);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, SENDS).start, UCP_ST_DEVICE_OK);
    /* The use before */
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, SENDS).start, UCP_ST_DEVICE_BUSY);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(queue, duo.ops[ST_A]), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_enqueue_check(queue, duo.ops[ST_A], 1),
                    UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(queue, duo.ops[ST_A]),
                    UCS_ERR_NO_MESSAGE);
    CU_ASSERT_EQUAL(ucp_st_op_post_ahead(duo.ops[ST_A], gpu->side[ST_A].queue,
                                         1), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_op_test(duo.ops[ST_A]), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucp_st_op_free(duo.ops[ST_A]), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(queue), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(queue, NULL), UCS_OK);
    duo_enqueue(&duo, ST_B);
    duo_check_enqueued(&duo, ST_B);
    CU_ASSERT_EQUAL(ucp_st_op_test(duo.ops[ST_A]), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, TEST_KERNEL_WAIT).wait,
                    UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, TEST_KERNEL_WAIT).wait,
                    UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(ucp_st_op_test(duo.ops[ST_A]), UCS_OK);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, SENDS).start, UCP_ST_DEVICE_NO_USE);
    /* The host: more than can be, and started without a wait */
    CU_ASSERT_EQUAL(ucp_st_op_post_ahead(duo.ops[ST_A], queue, 1ull << 62),
                    UCS_ERR_EXCEEDS_LIMIT);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(queue, duo.ops[ST_A]), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_op_post_ahead(duo.ops[ST_A], queue, 1),
                    UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_op_post_ahead(duo.ops[ST_B], queue, 1),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_op_post_ahead(NULL, queue, 1),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_op_device(duo.ops[ST_A], NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(queue, duo.ops[ST_A]), UCS_OK);
    duo_enqueue(&duo, ST_B);
    duo_check_enqueued(&duo, ST_B);
    duo_check_enqueued(&duo, ST_A);
    duo_cleanup(&duo);
}

/* A handle outlives its operation, and what comes next has the same place */
static void run_stale(gpu_t *gpu)
{
    ucp_st_device_op_t before[2];
    test_kernel_result_t result;
    test_kernel_op_t args;
    duo_t duo;
    int i, side;

    duo_init(&duo, gpu);
    memcpy(before, duo.handles, sizeof(before));
    CU_ASSERT_EQUAL(st_kernel_handle(duo.ops[ST_A]).key, before[ST_A].key);
    duo_post(&duo, ST_A, 2);
    duo_post(&duo, ST_B, 1);
    duo_launch(&duo, ST_B, RECEIVES, 1, 1);
    duo_launch(&duo, ST_A, SENDS | TEST_KERNEL_WAIT, 1, 1);
    duo_check(&duo, ST_B, 1);
    CU_ASSERT_EQUAL(st_kernel_end(&duo.kernel[ST_A]).wait, UCP_ST_DEVICE_OK);
    duo_free(&duo); /* one of both has a use that no kernel comes to */
    CU_ASSERT_EQUAL(ucp_st_queue_wait(duo.kernel[ST_A].queue, NULL), UCS_OK);
    for (i = 0; i < 2; ++i) {
        for (side = 0; side < 2; ++side) {
            args    = duo_does(&duo, side,
                               TEST_KERNEL_START | TEST_KERNEL_WAIT);
            args.op = before[side];
            result  = st_kernel_run(&duo.kernel[side], args);
            CU_ASSERT((result.start == UCP_ST_DEVICE_GONE) ||
                      (result.start == UCP_ST_DEVICE_FAILED));
            CU_ASSERT_NOT_EQUAL(result.wait, UCP_ST_DEVICE_INPROGRESS);
        }
        if (i == 0) { /* the same again beside a new pair */
            duo_match(&duo);
            duo_post(&duo, ST_A, 1);
            duo_post(&duo, ST_B, 1);
        }
    }
    duo_launch(&duo, ST_B, RECEIVES, 1, 1);
    duo_launch(&duo, ST_A, SENDS | TEST_KERNEL_WAIT, 1, 1);
    duo_check(&duo, ST_A, 1);
    duo_check(&duo, ST_B, 1);
    duo_cleanup(&duo);
}

/* A side fails while a kernel waits: that ends, as do all later calls */
static void run_fails(gpu_t *gpu, int side)
{
    test_kernel_result_t result;
    ucp_st_op_h op;
    duo_t duo;

    duo_init(&duo, gpu);
    duo_post(&duo, ST_A, 3);
    duo_launch(&duo, ST_A, SENDS | TEST_KERNEL_WAIT, 3, 4);
    until_begun(duo.ops[ST_A], 1);
    op = duo.ops[side];
    ucp_st_worker_lock(op->worker);
    ucp_st_op_fail(op, UCS_ERR_IO_ERROR);
    ucp_st_worker_unlock(op->worker);
    while (!st_op_is_ended(duo.ops[ST_A])) {
        (void)ucp_st_worker_progress(gpu->side[ST_A].worker);
        (void)ucp_st_worker_progress(gpu->side[ST_B].worker);
    }
    result = st_kernel_end(&duo.kernel[ST_A]);
    CU_ASSERT_EQUAL(result.wait, UCP_ST_DEVICE_FAILED);
    CU_ASSERT_EQUAL(result.rounds, 0);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, SENDS).start, UCP_ST_DEVICE_FAILED);
    CU_ASSERT_NOT_EQUAL(ucp_st_op_test(duo.ops[ST_A]), UCS_OK);
    CU_ASSERT_NOT_EQUAL(ucp_st_op_post_ahead(duo.ops[ST_A],
                                             duo.kernel[ST_A].queue, 1),
                        UCS_OK);
    CU_ASSERT_NOT_EQUAL(ucp_st_op_device(duo.ops[ST_A], &duo.handles[ST_A]),
                        UCS_OK);
    CU_ASSERT_NOT_EQUAL(ucp_st_queue_wait(duo.kernel[ST_A].queue, NULL),
                        UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(duo.kernel[ST_B].queue, NULL), UCS_OK);
    duo_cleanup(&duo);
}

static void run_own_fails(gpu_t *gpu)
{
    run_fails(gpu, ST_A);
}

static void run_other_fails(gpu_t *gpu)
{
    run_fails(gpu, ST_B);
}

/* The peer frees its half behind the last use that both have made: no error of
 * the queue, and a kernel that goes on is told */
static void run_taken_back(gpu_t *gpu)
{
    ucs_status_t status;
    duo_t duo;

    duo_init(&duo, gpu);
    duo_post(&duo, ST_A, 5);
    duo_post(&duo, ST_B, 5);
    duo_launch(&duo, ST_B, RECEIVES, 2, 1);
    duo_launch(&duo, ST_A, SENDS | TEST_KERNEL_WAIT, 2, 1);
    CU_ASSERT_EQUAL(st_kernel_end(&duo.kernel[ST_A]).rounds, 2);
    CU_ASSERT_EQUAL(st_kernel_end(&duo.kernel[ST_B]).rounds, 2);
    CU_ASSERT_EQUAL(ucp_st_op_test(duo.ops[ST_A]), UCS_INPROGRESS);
    st_free(duo.ops[ST_B]);
    while (!st_op_is_ended(duo.ops[ST_A])) {
        (void)ucp_st_worker_progress(gpu->side[ST_A].worker);
        (void)ucp_st_worker_progress(gpu->side[ST_B].worker);
    }
    CU_ASSERT_EQUAL(ucp_st_op_test(duo.ops[ST_A]), UCS_ERR_CANCELED);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, SENDS).start, UCP_ST_DEVICE_FAILED);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(duo.kernel[ST_A].queue, NULL), UCS_OK);
    /* Writes of what was posted end first */
    while ((status = ucp_st_op_free(duo.ops[ST_A])) == UCS_ERR_BUSY) {
        (void)sched_yield();
    }
    CU_ASSERT_EQUAL(status, UCS_OK);
    st_drain(&gpu->pair);
    duo_end(&duo);
}

/* What is not for kernels is refused by the host */
static void run_refused(gpu_t *gpu)
{
    ucp_st_device_op_t device = {.place = 0};
    st_side_t *side           = gpu->side;
    uint8_t memory[2][LENGTH];
    ucp_st_op_h ops[2];
    st_side_t host;
    duo_t duo;

    st_more_init_host(&host, &side[ST_A]);
    ops[ST_A] = st_send(&side[ST_A], memory[0], LENGTH, 2);
    ops[ST_B] = st_recv(&side[ST_B], memory[1], LENGTH, 2);
    CU_ASSERT_EQUAL(ucp_st_op_device(ops[ST_A], &device),
                    UCS_ERR_NOT_CONNECTED);
    CU_ASSERT_EQUAL(ucp_st_op_post_ahead(ops[ST_A], side[ST_A].queue, 1),
                    UCS_ERR_NOT_CONNECTED);
    st_match_ok(ops[ST_A], ops[ST_B]);
    CU_ASSERT_EQUAL(ucp_st_op_device(ops[ST_A], &device), UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_op_post_ahead(ops[ST_A], side[ST_A].queue, 1),
                    UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(device.place, 0);
    CU_ASSERT_EQUAL(ops[ST_A]->started, 0);
    st_free2(ops[ST_A], ops[ST_B]);
    if (st_lane() != UCP_ST_LANE_HOST) {
        duo_init(&duo, gpu);
        CU_ASSERT_EQUAL(ucp_st_op_post_ahead(duo.ops[ST_A], host.queue, 1),
                        UCS_ERR_UNSUPPORTED);
        duo_cleanup(&duo);
    }
    st_more_cleanup(&host);
}

/* The examples' kernels. st_halo_device.cpp, of two ranks, each of which has
 * the other one on both sides. */
#define CELLS 7
#define STEPS 4

typedef struct {
    duo_t       *duo;
    double      *memory[2]; /* cells, the next ones, out, in, error */
    halo_args_t args[2];
    ucp_st_op_h sends[2][2];
    ucp_st_op_h recvs[2][2];
} rod_t;

/* With a block of 4 threads */
static void launch_func(duo_t *duo, int side, const char *name, void *args,
                        size_t size)
{
    const rt_t *rt     = duo->gpu->rt;
    rt_launch_t launch = {st_kernel_func(rt, name, size), 4, args, size};

    CU_ASSERT_EQUAL(rt_kernel_block(rt, duo->kernel[side].native, &launch),
                    RT_OK);
}

static void rod_init(rod_t *rod, duo_t *duo)
{
    st_side_t *side = duo->gpu->side;
    unsigned i, end;
    double *out;

    rod->duo = duo;
    for (i = 0; i < 2; ++i) {
        rod->memory[i] = (double*)duo->places[i].buffer;
        rod->args[i]   = (halo_args_t){
            .cells = RT_U64(rod->memory[i]),
            .next  = RT_U64(rod->memory[i] + CELLS),
            .out   = RT_U64(rod->memory[i] + (2 * CELLS)),
            .in    = RT_U64(rod->memory[i] + (2 * CELLS) + 2),
            .count = CELLS,
            .error = RT_U64(rod->memory[i] + (2 * CELLS) + 4)
        };
        for (end = 0; end < 2; ++end) {
            out                = rod->memory[i] + (2 * CELLS) + end;
            rod->sends[i][end] = st_send(&side[i], out, sizeof(*out), 10 + end);
            rod->recvs[i][end] = st_recv(&side[i], out + 2, sizeof(*out),
                                         10 + !end);
        }
    }
    for (i = 0; i < 2; ++i) {
        for (end = 0; end < 2; ++end) {
            st_match_ok(rod->sends[i][end], rod->recvs[!i][!end]);
        }
    }
    for (i = 0; i < 2; ++i) {
        for (end = 0; end < 2; ++end) {
            rod->args[i].send[end] = st_kernel_handle(rod->sends[i][end]);
            CU_ASSERT_EQUAL(ucp_st_op_post_ahead(rod->sends[i][end],
                                                 duo->kernel[i].queue, STEPS),
                            UCS_OK);
        }
    }
}

static void rod_step(rod_t *rod, int side)
{
    duo_t *duo           = rod->duo;
    ucp_st_queue_h queue = duo->kernel[side].queue;

    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(queue, rod->recvs[side], 2),
                    UCS_OK);
    launch_func(duo, side, "halo_inner", &rod->args[side],
                sizeof(halo_args_t));
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(queue, rod->recvs[side], 2), UCS_OK);
    launch_func(duo, side, "halo_outer", &rod->args[side],
                sizeof(halo_args_t));
}

static void run_halo(gpu_t *gpu)
{
    double cells[2 * CELLS], next[2 * CELLS], got[2 * CELLS + 5];
    duo_t duo;
    rod_t rod;
    int i, k, side;

    duo_init(&duo, gpu);
    for (i = 0; i < 2 * CELLS; ++i) {
        cells[i] = i * i;
    }
    for (side = 0; side < 2; ++side) {
        memset(got, 0, sizeof(got));
        memcpy(got, &cells[side * CELLS], CELLS * sizeof(double));
        CU_ASSERT_EQUAL(rt_copy_now(gpu->rt, duo.places[side].buffer, got,
                                    sizeof(got)), RT_OK);
    }
    rod_init(&rod, &duo);
    for (k = 0; k < STEPS; ++k) {
        for (i = 0; i < 2 * CELLS; ++i) {
            next[i] = (cells[(i + 2 * CELLS - 1) % (2 * CELLS)] +
                       cells[(i + 1) % (2 * CELLS)]) / 2;
        }
        memcpy(cells, next, sizeof(cells));
        rod_step(&rod, ST_A);
        rod_step(&rod, ST_B);
    }
    for (side = 0; side < 2; ++side) {
        CU_ASSERT_EQUAL(rt_sync(gpu->rt, duo.kernel[side].native), RT_OK);
        duo_check_enqueued(&duo, side);
        CU_ASSERT_EQUAL(rt_copy_now(gpu->rt, got, duo.places[side].buffer,
                                    sizeof(got)), RT_OK);
        CU_ASSERT(memcmp(got, &cells[side * CELLS], CELLS * sizeof(double)) ==
                  0);
        CU_ASSERT_EQUAL(got[2 * CELLS + 4], 0);
    }
    for (i = 0; i < 2; ++i) {
        st_free2(rod.sends[ST_A][i], rod.recvs[ST_B][!i]);
        st_free2(rod.sends[ST_B][i], rod.recvs[ST_A][!i]);
    }
    duo_cleanup(&duo);
}

/* st_length_device.cpp */
#define NUMBERS 40
#define LARGE   30

static void run_picked(gpu_t *gpu)
{
    double values[NUMBERS];
    length_args_t args;
    uint8_t *numbers;
    duo_t duo;
    int i, side;

    duo_init(&duo, gpu);
    for (i = 0; i < NUMBERS; ++i) {
        values[i] = i;
    }
    for (side = 0; side < 2; ++side) {
        /* The last of the buffer's bytes, which no message is as long as */
        numbers = duo.places[side].buffer + LENGTH -
                  ((NUMBERS + 3) * sizeof(double));
        args    = (length_args_t){
            .numbers = RT_U64(numbers),
            .count   = NUMBERS,
            .message = RT_U64(duo.places[side].buffer),
            .limit   = LARGE,
            .op      = duo.handles[side]
        };
        args.result = args.numbers + sizeof(values);
        CU_ASSERT_EQUAL(rt_copy_now(gpu->rt, numbers, values, sizeof(values)),
                        RT_OK);
        if (side == ST_A) {
            duo_post(&duo, ST_A, 1);
        } else {
            duo_enqueue(&duo, ST_B);
        }
        launch_func(&duo, side, (side == ST_A) ? "length_send" :
                                                 "length_receive",
                    &args, sizeof(args));
    }
    CU_ASSERT_EQUAL(rt_sync(gpu->rt, duo.kernel[ST_A].native), RT_OK);
    duo_check_enqueued(&duo, ST_B);
    CU_ASSERT_EQUAL(rt_sync(gpu->rt, duo.kernel[ST_B].native), RT_OK);
    CU_ASSERT_EQUAL(rt_copy_now(gpu->rt, values, numbers + sizeof(values),
                                3 * sizeof(double)), RT_OK);
    CU_ASSERT_EQUAL(values[0], UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(values[1], NUMBERS - 1 - LARGE);
    CU_ASSERT_EQUAL(values[2], (LARGE + 1 + NUMBERS - 1) *
                               (NUMBERS - 1 - LARGE) / 2);
    CU_ASSERT_EQUAL(ucp_st_op_test(duo.ops[ST_A]), UCS_OK);
    duo_cleanup(&duo);
}

static void run_case(int is_hip, const char *lane, gpu_body_t body)
{
    st_kernel_prepare();
    if (gpu_is_named(is_hip) && !st_kernel_can_run(rt_open(is_hip))) {
        st_cunit_skip("there is no code of the tests' kernels for this GPU");
        return;
    }
    gpu_run(is_hip, lane, body);
}

#define CASES(_name, _lane, _body) \
    ST_CASE_CALL(_name##_hip, run_case(1, _lane, _body)) \
    ST_CASE_CALL(_name##_cuda, run_case(0, _lane, _body))

CASES(mixed_thread, "direct", run_mixed_thread)
CASES(mixed_block, "direct", run_mixed_block)
CASES(mixed_hosts, "direct", run_mixed_hosts)
CASES(many, "direct", run_many)
CASES(lengths, "direct", run_lengths)
CASES(rules, "direct", run_rules)
CASES(stale, "direct", run_stale)
CASES(own_fails, "direct", run_own_fails)
CASES(other_fails, "direct", run_other_fails)
CASES(taken_back, "direct", run_taken_back)
CASES(refused_direct, "direct", run_refused)
CASES(halo, "direct", run_halo)
CASES(picked, "direct", run_picked)
CASES(refused_host, "host", run_refused)

/* Lane trig. The emulated card takes stores of kernels to its trigger pages
 * where they trap, and reaches memory of HIP's devices where that has dma-bufs:
 * settings that are read once. Nothing is sent ahead, but in some cases. */

#define TRIG_SETTINGS "FI_CXIEMU_TRAP=y STANDIN_VERSION=60443484"

static void run_trig(int is_hip, const char *tcase, const char *settings,
                     const char *eager_max, gpu_body_t body)
{
    char *before;

    if (st_env_has_provider("cxi") &&
        (!gpu_is_open() || (strstr(settings, "FI_CXIEMU_D") != NULL))) {
        st_cunit_skip("the NIC does not reach that memory, or is another one");
    } else if (gpu_is_named(is_hip) && rt_is_real(rt_open(is_hip))) {
        st_cunit_skip("no GPU maps the emulated card's trigger pages");
    } else if (rt_is_child(tcase, settings)) {
        before = st_env_set("UCX_ST_EAGER_MAX", eager_max);
        if (!is_hip) {
            unsetenv("STANDIN_VERSION");
        }
        run_case(is_hip, "trig", body);
        st_env_restore("UCX_ST_EAGER_MAX", before);
    }
}

#define TRIG_CASES(_name, _settings, _eager_max, _body) \
    ST_CASE_CALL(_name##_hip, run_trig(1, #_name "_hip", _settings, \
                                       _eager_max, _body)) \
    ST_CASE_CALL(_name##_cuda, run_trig(0, #_name "_cuda", _settings, \
                                        _eager_max, _body))

/* A NIC sends the whole message */
static void run_whole(gpu_t *gpu)
{
    test_kernel_op_t args;
    duo_t duo;

    duo_init(&duo, gpu);
    duo_post(&duo, ST_A, 1);
    duo_post(&duo, ST_B, 1);
    args        = duo_does(&duo, ST_A, TEST_KERNEL_LENGTH);
    args.length = LENGTH - 1;
    CU_ASSERT_EQUAL(st_kernel_run(&duo.kernel[ST_A], args).start,
                    UCP_ST_DEVICE_WHOLE);
    args.length = LENGTH + 1;
    CU_ASSERT_EQUAL(st_kernel_run(&duo.kernel[ST_A], args).start,
                    UCP_ST_DEVICE_INVALID);
    CU_ASSERT_EQUAL(duo_run(&duo, ST_A, TEST_KERNEL_WAIT).wait,
                    UCP_ST_DEVICE_NO_USE);
    duo_launch(&duo, ST_B, RECEIVES, 1, 1);
    args.what  |= TEST_KERNEL_FILL | TEST_KERNEL_WAIT;
    args.length = LENGTH;
    CU_ASSERT_EQUAL(st_kernel_run(&duo.kernel[ST_A], args).wait,
                    UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(st_kernel_end(&duo.kernel[ST_B]).length, LENGTH);
    duo_check(&duo, ST_B, 1);
    duo_cleanup(&duo);
}

/* A ready send, whose receive's start stores to no page */
static void run_ready(gpu_t *gpu)
{
    duo_t duo = {.is_ready = 1};
    uint64_t k;

    duo_init_as(&duo, gpu);
    duo_post(&duo, ST_A, USES);
    duo_post(&duo, ST_B, USES);
    for (k = 0; k < USES; ++k) {
        CU_ASSERT_EQUAL(duo_run(&duo, ST_B, TEST_KERNEL_START).start,
                        UCP_ST_DEVICE_OK);
        gpu_fill(duo.places[ST_A].buffer, LENGTH, k);
        CU_ASSERT_EQUAL(duo_run(&duo, ST_A, TEST_KERNEL_START |
                                            TEST_KERNEL_WAIT).wait,
                            UCP_ST_DEVICE_OK);
        CU_ASSERT_EQUAL(duo_run(&duo, ST_B, TEST_KERNEL_WAIT).wait,
                        UCP_ST_DEVICE_OK);
        CU_ASSERT(gpu_check(duo.places[ST_B].buffer, LENGTH, k));
    }
    CU_ASSERT_EQUAL(ucp_st_op_test(duo.ops[ST_B]), UCS_OK);
    duo_cleanup(&duo);
}

/* A send goes ahead to an inbox, out of which a queue's wait alone copies */
static void run_ahead(gpu_t *gpu)
{
    duo_t duo                 = {.is_ahead = 1};
    ucp_st_device_op_t device = {.place = 0};
    uint64_t k;

    duo_init_as(&duo, gpu);
    CU_ASSERT_EQUAL(ucp_st_op_device(duo.ops[ST_B], &device),
                    UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_op_post_ahead(duo.ops[ST_B],
                                         duo.kernel[ST_B].queue, 1),
                    UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(device.place, 0);
    duo_post(&duo, ST_A, MANY);
    for (k = 0; k < MANY; ++k) {
        gpu_fill(duo.places[ST_A].buffer, LENGTH, k);
        CU_ASSERT_EQUAL(duo_run(&duo, ST_A, TEST_KERNEL_START |
                                            TEST_KERNEL_WAIT).wait,
                            UCP_ST_DEVICE_OK);
        duo_enqueue(&duo, ST_B);
        duo_check_enqueued(&duo, ST_B);
        CU_ASSERT(gpu_check(duo.places[ST_B].buffer, LENGTH, k));
    }
    duo_cleanup(&duo);
}

/* Many more uses than the card has entries: they are late, and go all the same.
 * Some are taken back in the end. */
static void run_few(gpu_t *gpu)
{
    duo_t duo;

    duo_init(&duo, gpu);
    duo_post(&duo, ST_A, MANY);
    duo_post(&duo, ST_B, MANY);
    duo_launch(&duo, ST_B, RECEIVES, MANY / 2, 1);
    duo_launch(&duo, ST_A, SENDS | TEST_KERNEL_WAIT, MANY / 2, 4);
    CU_ASSERT_EQUAL(st_kernel_end(&duo.kernel[ST_A]).rounds, MANY / 2);
    CU_ASSERT_EQUAL(st_kernel_end(&duo.kernel[ST_B]).sum,
                    (MANY / 2) * (MANY / 2 - 1) / 2);
    CU_ASSERT(st_stats(&gpu->side[ST_A]).late_posts > 0);
    duo_cleanup(&duo);
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_A]).entries, 0);
}

/* Over two NICs */
static void run_parts(gpu_t *gpu)
{
    ucp_st_op_attr_t attr;
    duo_t duo;

    duo_init(&duo, gpu);
    CU_ASSERT_EQUAL(ucp_st_op_query(duo.ops[ST_A], &attr), UCS_OK);
    CU_ASSERT_STRING_EQUAL(attr.protocol, "chunked-2");
    duo_cleanup(&duo);
    run_many(gpu);
    run_fails(gpu, ST_A);
}

/* The device does not reach the trigger pages, or a kernel does not see what a
 * NIC has written */
static void run_no_kernel(gpu_t *gpu, int is_send_good)
{
    ucp_st_device_op_t device;
    gpu_place_t places[2];
    ucp_st_op_h ops[2];
    int i;

    for (i = 0; i < 2; ++i) {
        gpu_place_get(gpu, &places[i], 0, LENGTH, 0);
    }
    ops[ST_A] = st_send(&gpu->side[ST_A], places[ST_A].buffer, LENGTH, 1);
    ops[ST_B] = st_recv(&gpu->side[ST_B], places[ST_B].buffer, LENGTH, 1);
    st_match_ok(ops[ST_A], ops[ST_B]);
    CU_ASSERT_EQUAL(ucp_st_op_device(ops[ST_A], &device),
                    is_send_good ? UCS_OK : UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_op_device(ops[ST_B], &device), UCS_ERR_UNSUPPORTED);
    st_free2(ops[ST_A], ops[ST_B]);
    st_drain(&gpu->pair);
    for (i = 0; i < 2; ++i) {
        gpu_place_put(gpu, &places[i]);
    }
}

static void run_no_pages(gpu_t *gpu)
{
    run_no_kernel(gpu, 0);
}

static void run_no_order(gpu_t *gpu)
{
    run_no_kernel(gpu, 1);
}

TRIG_CASES(trig_mixed_thread, TRIG_SETTINGS, "0", run_mixed_thread)
TRIG_CASES(trig_mixed_block, TRIG_SETTINGS, "0", run_mixed_block)
TRIG_CASES(trig_many, TRIG_SETTINGS, "0", run_many)
TRIG_CASES(trig_rules, TRIG_SETTINGS, "0", run_rules)
TRIG_CASES(trig_stale, TRIG_SETTINGS, "0", run_stale)
TRIG_CASES(trig_own_fails, TRIG_SETTINGS, "0", run_own_fails)
TRIG_CASES(trig_other_fails, TRIG_SETTINGS, "0", run_other_fails)
TRIG_CASES(trig_taken_back, TRIG_SETTINGS, "0", run_taken_back)
TRIG_CASES(trig_refused, TRIG_SETTINGS, "0", run_refused)
TRIG_CASES(trig_halo, TRIG_SETTINGS, "0", run_halo)
TRIG_CASES(trig_whole, TRIG_SETTINGS, "0", run_whole)
TRIG_CASES(trig_ready, TRIG_SETTINGS, NULL, run_ready)
TRIG_CASES(trig_ahead, TRIG_SETTINGS, NULL, run_ahead)
TRIG_CASES(trig_few, TRIG_SETTINGS " FI_CXIEMU_DWQ_ENTRIES=24", "0", run_few)
TRIG_CASES(trig_parts, TRIG_SETTINGS " FI_CXIEMU_DEVICES=2 "
           "UCX_ST_TRIG_DEVICES=2 UCX_ST_CHUNK_MIN=256", "0", run_parts)
TRIG_CASES(trig_no_pages, TRIG_SETTINGS " STANDIN_IOMEMORY=0", "0",
           run_no_pages)
ST_CASE_CALL(trig_no_order, run_trig(0, "trig_no_order", TRIG_SETTINGS
                                     " STANDIN_ORDERED=0", "0", run_no_order))

ST_SUITE("st_gpu_device")
