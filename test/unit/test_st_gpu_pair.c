/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu_pair.c - lane direct between buffers in a device, moved by
 * kernels of the streams (tier K): how many launches calls take, which streams
 * start uses, and how pairs end. test_st_gpu_ipc has two processes.
 */
#include "st_cunit.h"
#include "st_gpu.h"
#include "st_pair.h"
#include "../integration/st_any.h"

#include "core/st_op.h"
#include "direct/st_direct.h"

#include <ucs_gstream_copy.h>
#include <ucs_gstream_memory.h>
#include <ucs_gstream_pair.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH 1000
#define MANY   57 /* One more than a launch starts */
#define HALO   26

/* More than the cells of an area */
#define ROUNDS 1100

/* A result of the runtimes */
#define UNKNOWN 999

/** Pairs between two buffers in a device. */
typedef struct {
    gpu_t       *gpu;
    size_t      count;
    gpu_place_t places[2]; /* LENGTH bytes for each pair */
    ucp_st_op_h ops[2][MANY];
} pairs_t;

static uint8_t *buffer(const pairs_t *pairs, int side, size_t i)
{
    return pairs->places[side].buffer + (i * LENGTH);
}

static void pairs_match(pairs_t *pairs, size_t count)
{
    gpu_t *gpu = pairs->gpu;
    size_t i;

    pairs->count = count;
    for (i = 0; i < count; ++i) {
        pairs->ops[ST_A][i] = st_send(&gpu->side[ST_A], buffer(pairs, ST_A, i),
                                      LENGTH, i);
        pairs->ops[ST_B][i] = st_recv(&gpu->side[ST_B], buffer(pairs, ST_B, i),
                                      LENGTH, i);
        st_match_ok(pairs->ops[ST_A][i], pairs->ops[ST_B][i]);
        CU_ASSERT_STRING_EQUAL(pairs->ops[ST_A][i]->lane->op.protocol(
                                       pairs->ops[ST_A][i]), "kernel");
    }
}

static void pairs_init(pairs_t *pairs, gpu_t *gpu, size_t count)
{
    int i;

    pairs->gpu = gpu;
    for (i = 0; i < 2; ++i) {
        gpu_place_get(gpu, &pairs->places[i], 0, MANY * LENGTH, 0);
    }
    pairs_match(pairs, count);
}

static void pairs_free(pairs_t *pairs)
{
    size_t i;

    for (i = 0; i < pairs->count; ++i) {
        st_free2(pairs->ops[ST_A][i], pairs->ops[ST_B][i]);
    }
    pairs->count = 0;
}

static void pairs_cleanup(pairs_t *pairs)
{
    pairs_free(pairs);
    st_drain(&pairs->gpu->pair);
    gpu_place_put(pairs->gpu, &pairs->places[ST_A]);
    gpu_place_put(pairs->gpu, &pairs->places[ST_B]);
}

static void fill(pairs_t *pairs, uint64_t seed)
{
    size_t i;

    for (i = 0; i < pairs->count; ++i) {
        gpu_fill(buffer(pairs, ST_A, i), LENGTH, seed + i);
    }
}

static void check(pairs_t *pairs, uint64_t seed)
{
    size_t i;

    for (i = 0; i < pairs->count; ++i) {
        CU_ASSERT(gpu_check(buffer(pairs, ST_B, i), LENGTH, seed + i));
    }
}

static void start_all(pairs_t *pairs, int side)
{
    ucp_st_queue_h queue = pairs->gpu->side[side].queue;

    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(queue, pairs->ops[side],
                                            pairs->count), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(queue, pairs->ops[side],
                                           pairs->count), UCS_OK);
}

/* A use of all, in which each side starts them by so many kernels */
static void use_many(pairs_t *pairs, uint64_t seed, unsigned launches)
{
    standin_counts_t before = rt_counts(pairs->gpu->rt);
    unsigned waits;

    fill(pairs, seed);
    start_all(pairs, ST_A);
    start_all(pairs, ST_B);
    /* HIP's waits for several words are a kernel, too */
    waits = pairs->gpu->is_hip && (pairs->count > 1) ? 1 : 0;
    if (!pairs->gpu->is_real) {
        CU_ASSERT_EQUAL(rt_counts(pairs->gpu->rt).kernels - before.kernels,
                        2 * (launches + waits));
        CU_ASSERT_EQUAL(rt_counts(pairs->gpu->rt).host_funcs,
                        before.host_funcs);
    }
    st_pair_sync(&pairs->gpu->pair);
    check(pairs, seed);
}

/* A call is a launch, up to 56 starts; no thread moves anything */
static void run_many(gpu_t *gpu)
{
    pairs_t pairs;
    int i;

    pairs_init(&pairs, gpu, HALO);
    use_many(&pairs, 1000, 1);
    use_many(&pairs, 2000, 1);
    pairs_free(&pairs);
    pairs_match(&pairs, MANY);
    use_many(&pairs, 3000, 2);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(st_stats(&gpu->side[i]).proxied, 0);
        CU_ASSERT_EQUAL(st_stats(&gpu->side[i]).copies, 0);
        CU_ASSERT_EQUAL(st_stats(&gpu->side[i]).staged, 0);
    }
    pairs_cleanup(&pairs);
}

GPU_CASES(many, "direct", run_many)

/* Cells and records are used again, and know nothing of before: also where one
 * side alone has started */
static void run_again(gpu_t *gpu)
{
    unsigned long pageable = 0;
    pairs_t pairs;
    unsigned i;

    pairs_init(&pairs, gpu, 0);
    for (i = 0; i < ROUNDS; ++i) {
        pairs_match(&pairs, 1);
        if ((i % 100) == 0) {
            use_many(&pairs, i, 1);
            pageable = rt_counts(gpu->rt).pageable;
        }
        pairs_free(&pairs);
        if ((i % 50) == 0) {
            st_drain(&gpu->pair);
        }
        /* What clears cells waits for no stream */
        CU_ASSERT_EQUAL(rt_counts(gpu->rt).pageable, pageable);
    }
    pairs_cleanup(&pairs);
}

GPU_CASES(again, "direct", run_again)

/* A stream of the host starts uses by a thread, before and behind those that a
 * stream of the device starts, or the other way round */
static void run_mixed(gpu_t *gpu, int is_host_first)
{
    char *stream = st_env_set("ST_TEST_STREAM", NULL);
    pairs_t pairs;
    st_side_t host;
    st_side_t *side;
    uint64_t k;

    st_more_init(&host, &gpu->side[ST_A]);
    st_env_restore("ST_TEST_STREAM", stream);
    pairs_init(&pairs, gpu, 1);
    for (k = 0; k < 6; ++k) {
        fill(&pairs, k);
        side = ((k / 2) % 2 == !is_host_first) ? &host : &gpu->side[ST_A];
        st_use(side, pairs.ops[ST_A][0]);
        st_use(&gpu->side[ST_B], pairs.ops[ST_B][0]);
        st_sync(side);
        st_sync(&gpu->side[ST_B]);
        check(&pairs, k);
    }
    /* From the first use by a thread on all are */
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_A]).proxied, is_host_first ? 6 : 4);
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_B]).proxied, 0);
    st_more_cleanup(&host);
    pairs_cleanup(&pairs);
}

static void run_host_first(gpu_t *gpu)
{
    run_mixed(gpu, 1);
}

static void run_device_first(gpu_t *gpu)
{
    run_mixed(gpu, 0);
}

GPU_CASES(host_first, "direct", run_host_first)
GPU_CASES(device_first, "direct", run_device_first)

/* The runtime refuses the kernel: nothing was started, and the next start is
 * good */
static void run_refused(gpu_t *gpu)
{
    ucp_st_op_attr_t attr;
    pairs_t pairs;

    if (gpu->rt->control.standin_fail_calls == NULL) {
        st_cunit_skip("needs a stand-in");
        return;
    }
    pairs_init(&pairs, gpu, 2);
    gpu->rt->control.standin_fail_calls(1, 1, UNKNOWN); /* not the first */
    CU_ASSERT_NOT_EQUAL(ucp_st_enqueue_startall(gpu->side[ST_A].queue,
                                                pairs.ops[ST_A], 2), UCS_OK);
    gpu->rt->control.standin_fail_calls(0, 0, 0);
    CU_ASSERT_EQUAL(ucp_st_op_query(pairs.ops[ST_A][0], &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.started, 0);
    use_many(&pairs, 7, 1);
    pairs_cleanup(&pairs);
}

GPU_CASES(refused, "direct", run_refused)

/* One side has started, and either fails: both streams go on, and neither
 * side's kernel does anything later */
static void run_fails(gpu_t *gpu, int who)
{
    pairs_t pairs;
    ucp_st_op_h op;

    pairs_init(&pairs, gpu, 1);
    start_all(&pairs, ST_A);
    op = pairs.ops[who][0];
    ucp_st_worker_lock(op->worker);
    ucp_st_op_fail(op, UCS_ERR_IO_ERROR);
    ucp_st_worker_unlock(op->worker);
    CU_ASSERT_NOT_EQUAL(ucp_st_queue_wait(gpu->side[ST_A].queue, NULL), UCS_OK);
    op = pairs.ops[ST_B][0];
    while (!st_op_is_ended(op)) {
        (void)ucp_st_worker_progress(op->worker); /* until it is told */
    }
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(gpu->side[ST_B].queue, op),
                    UCS_ERR_IO_ERROR);
    pairs_free(&pairs);
    st_drain(&gpu->pair);
    gpu_place_put(gpu, &pairs.places[ST_A]);
    gpu_place_put(gpu, &pairs.places[ST_B]);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(gpu->side[ST_A].queue), UCS_OK);
    gpu->side[ST_A].queue = st_queue(&gpu->side[ST_A], gpu->side[ST_A].stream);
}

static void run_own_fails(gpu_t *gpu)
{
    run_fails(gpu, ST_A);
}

static void run_other_fails(gpu_t *gpu)
{
    run_fails(gpu, ST_B);
}

GPU_CASES(own_fails, "direct", run_own_fails)
GPU_CASES(other_fails, "direct", run_other_fails)

/* The device is lost behind a start that a thread has made: the stream of the
 * host passes, and all can be freed. The last case of its runtime. */
static void run_lost(gpu_t *gpu)
{
    char *stream = st_env_set("ST_TEST_STREAM", NULL);
    pairs_t pairs;
    st_side_t host;
    int i;

    st_more_init(&host, &gpu->side[ST_A]);
    st_env_restore("ST_TEST_STREAM", stream);
    if (gpu->rt->control.standin_lose_device == NULL) {
        st_more_cleanup(&host);
        st_cunit_skip("no GPU can be lost at will");
        return;
    }
    pairs_init(&pairs, gpu, 1);
    st_use(&host, pairs.ops[ST_A][0]);
    gpu->rt->control.standin_lose_device(0);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(host.queue, NULL), UCS_ERR_IO_ERROR);
    pairs_free(&pairs);
    st_more_cleanup(&host);
    st_drain(&gpu->pair);
    gpu_set_device(gpu, 1);
    for (i = 0; i < 2; ++i) { /* the cleanup of all wants a device */
        CU_ASSERT_EQUAL(ucp_st_queue_destroy(gpu->side[i].queue), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_destroy(gpu->side[i].stream), UCS_OK);
        CU_ASSERT_EQUAL(st_any_stream(&gpu->side[i].stream), UCS_OK);
        gpu->side[i].queue = NULL;
    }
}

/* A copy is over although the stream that made it goes on: there a receive
 * waits for what its send decides */
static void run_copy(gpu_t *gpu)
{
    ucs_gstream_type_t type            = gpu->is_hip ? UCS_GSTREAM_TYPE_HIP :
                                                       UCS_GSTREAM_TYPE_CUDA;
    size_t size                        = 2 * sizeof(ucs_gstream_pair_record_t);
    ucs_gstream_pair_record_t *records = ucs_gstream_memory_get(size);
    ucs_gstream_copy_params_t params   = {.type = type, .length = LENGTH / 2};
    ucs_gstream_pair_t pair            = {.length = 8, .use = 1};
    ucs_gstream_cell_h cell;
    ucs_gstream_copy_t copy;
    gpu_place_t place;
    ucs_status_t status;

    memset(records, 0, size);
    records[1].begun = 1;
    gpu_place_get(gpu, &place, 0, LENGTH, 0);
    CU_ASSERT_EQUAL(ucs_gstream_pair_prepare(type, 0), UCS_OK);
    cell        = ucs_gstream_cell_get(type, 0);
    pair.cell   = ucs_gstream_cell_address(cell);
    pair.record = &records[0];
    pair.other  = &records[1];
    pair.dst    = place.buffer;
    pair.src    = place.buffer + 8;
    params.dst  = place.buffer;
    params.src  = place.buffer + params.length;
    status      = ucs_gstream_copy_begin(&params, &copy);
    CU_ASSERT_EQUAL(status, UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucs_gstream_pair_start(type, 0, &pair), UCS_OK);
    while (status == UCS_INPROGRESS) {
        (void)sched_yield();
        status = ucs_gstream_copy_look(&copy);
    }
    CU_ASSERT_EQUAL(status, UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_pair_look(type, 0), UCS_INPROGRESS);
    __atomic_store_n(&records[0].halted, 1, __ATOMIC_SEQ_CST);
    while (ucs_gstream_pair_look(type, 0) == UCS_INPROGRESS) {
        (void)sched_yield();
    }
    CU_ASSERT_EQUAL(records[0].ended, 1);
    CU_ASSERT_EQUAL(records[0].word, 0);
    ucs_gstream_cell_put(cell);
    gpu_place_put(gpu, &place);
    ucs_gstream_memory_put(records, size);
}

GPU_CASES(copy, "direct", run_copy)
GPU_CASES(lost, "direct", run_lost)

ST_SUITE("st_gpu_pair")
