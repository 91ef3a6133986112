/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu_pair.c - lane direct between buffers in a device, or in memory of
 * the host that it reaches, moved by kernels of the streams (tier K): how many
 * launches calls take, which streams start uses, and how pairs end.
 * test_st_gpu_ipc has two processes.
 */
#include "st_cunit.h"
#include "st_gpu.h"
#include "st_pair.h"
#include "st_stream.h"
#include "../integration/st_any.h"

#include "core/st_op.h"
#include "direct/st_direct.h"

#include <ucs_gstream_copy.h>
#include <ucs_gstream_memory.h>
#include <ucs_gstream_pair.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LENGTH 1000
#define MANY   57 /* One more than a launch starts */
#define BLOCK  (1ul << 20) /* It has a file of its own */
#define HALO   26

/* More than the cells of an area */
#define ROUNDS 1100

/* A result of the runtimes */
#define UNKNOWN 999

/** Pairs between two buffers. */
typedef struct {
    gpu_t       *gpu;
    size_t      count;
    gpu_place_t places[2]; /* LENGTH bytes for each pair, or more */
    ucp_st_op_h ops[2][MANY];
} pairs_t;

/* What a program says that uses streams of the runtime */
static uint64_t gpu_types(const gpu_t *gpu)
{
    return UCS_BIT(gpu->is_hip ? UCS_GSTREAM_TYPE_HIP : UCS_GSTREAM_TYPE_CUDA);
}

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

/* Between two places, as gpu_place_t says them */
static void pairs_init_at(pairs_t *pairs, gpu_t *gpu, size_t count, int from,
                          int to)
{
    pairs->gpu = gpu;
    gpu_place_get(gpu, &pairs->places[ST_A], from, MANY * LENGTH, 0);
    gpu_place_get(gpu, &pairs->places[ST_B], to, MANY * LENGTH, 0);
    pairs_match(pairs, count);
}

static void pairs_init(pairs_t *pairs, gpu_t *gpu, size_t count)
{
    pairs_init_at(pairs, gpu, count, 0, 0);
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

/* Memory of the host that the device reaches, in one process */
static void run_hosts(gpu_t *gpu)
{
    static const int places[] = {0, GPU_PINNED, GPU_MANAGED, GPU_SHARED};
    size_t from, to;
    pairs_t pairs;
    int i;

    for (from = 0; from < ST_CUNIT_COUNT(places); ++from) {
        for (to = 0; to < ST_CUNIT_COUNT(places); ++to) {
            pairs_init_at(&pairs, gpu, 3, places[from], places[to]);
            use_many(&pairs, 10 * from + to, 1);
            use_many(&pairs, 20 * from + to, 1);
            pairs_cleanup(&pairs);
        }
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(st_stats(&gpu->side[i]).proxied, 0);
        CU_ASSERT_EQUAL(st_stats(&gpu->side[i]).copies, 0);
        CU_ASSERT_EQUAL(st_stats(&gpu->side[i]).staged, 0);
    }
}

GPU_CASES(hosts, "direct", run_hosts)

/* Registered memory that the device has elsewhere */
static void run_offset(const char *tcase, int is_hip)
{
    if (rt_is_child(tcase, "STANDIN_OFFSET=1")) {
        gpu_run(is_hip, "direct", run_hosts);
    }
}

ST_CASE_CALL(offset_hip, run_offset("offset_hip", 1))
ST_CASE_CALL(offset_cuda, run_offset("offset_cuda", 0))

/* Whether kernels move a message between two buffers, which is told on both
 * sides */
static int is_kernel(gpu_t *gpu, void *from, void *to)
{
    ucp_st_op_h send = st_send(&gpu->side[ST_A], from, LENGTH, 0);
    ucp_st_op_h recv = st_recv(&gpu->side[ST_B], to, LENGTH, 0);
    int result;

    st_match_ok(send, recv);
    result = !strcmp(send->lane->op.protocol(send), "kernel");
    CU_ASSERT_EQUAL(!strcmp(recv->lane->op.protocol(recv), "kernel"), result);
    gpu_fill(from, LENGTH, 5);
    st_use(&gpu->side[ST_A], send);
    st_use(&gpu->side[ST_B], recv);
    st_pair_sync(&gpu->pair);
    CU_ASSERT(gpu_check(to, LENGTH, 5));
    st_free2(send, recv);
    return result;
}

/* What kernels do not reach, and workers whose streams do not say that they
 * would: threads move it, as before */
static void run_hosts_not(gpu_t *gpu)
{
    static uint8_t plain[2][4096] __attribute__((aligned(4096)));
    gpu_place_t places[2];
    st_side_t host;
    void *block;

    gpu_place_get(gpu, &places[0], 0, LENGTH, 0);
    gpu_place_get(gpu, &places[1], GPU_PINNED, 4096, 0);
    CU_ASSERT(is_kernel(gpu, places[0].buffer, places[1].buffer));
    CU_ASSERT_FALSE(is_kernel(gpu, places[0].buffer, plain[0]));
    CU_ASSERT_FALSE(is_kernel(gpu, plain[0], places[1].buffer));
    /* Registered by the application, all of it or a part */
    CU_ASSERT_EQUAL(rt_register(gpu->rt, plain[1], 4096, 0), RT_OK);
    CU_ASSERT(is_kernel(gpu, plain[1] + 4096 - LENGTH, places[0].buffer));
    CU_ASSERT_FALSE(is_kernel(gpu, plain[1] + 4097 - LENGTH,
                              places[0].buffer));
    CU_ASSERT_EQUAL(rt_unregister(gpu->rt, plain[1]), RT_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(BLOCK, &block), UCS_OK);
    CU_ASSERT_EQUAL(rt_register(gpu->rt, block, 4096, 0), RT_OK);
    CU_ASSERT(is_kernel(gpu, block, places[0].buffer));
    st_drain(&gpu->pair);
    CU_ASSERT_EQUAL(rt_unregister(gpu->rt, block), RT_OK);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_OK);
    /* Streams of the host, too, unless the program has said which it uses */
    st_more_init_host(&host, &gpu->side[ST_A]);
    CU_ASSERT_FALSE(is_kernel(gpu, places[1].buffer, places[0].buffer));
    CU_ASSERT(is_kernel(gpu, places[0].buffer, places[1].buffer));
    gpu->side[ST_A].worker->stream_types = gpu_types(gpu);
    CU_ASSERT(is_kernel(gpu, places[1].buffer, places[0].buffer));
    gpu->side[ST_A].worker->stream_types = UCS_BIT(UCS_GSTREAM_TYPE_HOST);
    CU_ASSERT_FALSE(is_kernel(gpu, places[1].buffer, places[0].buffer));
    gpu->side[ST_A].worker->stream_types = 0;
    st_more_cleanup(&host);
    st_drain(&gpu->pair);
    gpu_place_put(gpu, &places[0]);
    gpu_place_put(gpu, &places[1]);
}

GPU_CASES(hosts_not, "direct", run_hosts_not)

/* The settings ask for kernels: what cannot be fails, but for memory of the
 * host that has nothing to do with devices */
static void run_asked(gpu_t *gpu)
{
    static uint8_t plain[2][LENGTH];
    gpu_place_t pinned;
    ucp_st_op_h ops[2];
    int i;

    gpu_place_get(gpu, &pinned, GPU_PINNED, LENGTH, 0);
    CU_ASSERT_FALSE(is_kernel(gpu, plain[0], plain[1]));
    ops[ST_A] = st_send(&gpu->side[ST_A], pinned.buffer, LENGTH, 0);
    ops[ST_B] = st_recv(&gpu->side[ST_B], plain[1], LENGTH, 0);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&ops[ST_A], 1), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&ops[ST_B], 1), UCS_OK);
    for (i = 0; i < 2; ++i) {
        while (!st_op_is_ended(ops[i])) {
            (void)ucp_st_worker_progress(gpu->side[i].worker);
        }
        CU_ASSERT_EQUAL(ucp_st_match_test(ops[i]), UCS_ERR_UNSUPPORTED);
    }
    st_free2(ops[ST_A], ops[ST_B]);
    st_drain(&gpu->pair);
    gpu_place_put(gpu, &pinned);
}

static void run_tier(int is_hip)
{
    char *tier = st_env_set("UCX_ST_DIRECT_GPU_TIER", "kernel");

    gpu_run(is_hip, "direct", run_asked);
    st_env_restore("UCX_ST_DIRECT_GPU_TIER", tier);
}

ST_CASE_CALL(asked_hip, run_tier(1))
ST_CASE_CALL(asked_cuda, run_tier(0))

/* Managed memory from which a device keeps the host out is staged */
static void run_kept_out(gpu_t *gpu)
{
    gpu_place_t places[2];

    gpu_place_get(gpu, &places[ST_A], GPU_MANAGED, LENGTH, 0);
    gpu_place_get(gpu, &places[ST_B], 0, LENGTH, 0);
    CU_ASSERT_FALSE(is_kernel(gpu, places[ST_A].buffer, places[ST_B].buffer));
    st_drain(&gpu->pair);
    gpu_place_put(gpu, &places[ST_A]);
    gpu_place_put(gpu, &places[ST_B]);
}

ST_CASE(kept_out)
{
    if (rt_is_child("kept_out", "STANDIN_MANAGED=0")) {
        gpu_run(0, "direct", run_kept_out);
    }
}

/* An operation that was made before there was a queue */
static void run_early(gpu_t *gpu)
{
    st_side_t *side = &gpu->side[ST_A];
    gpu_place_t place;
    ucp_st_op_h ops[2];

    gpu_place_get(gpu, &place, GPU_PINNED, 2 * LENGTH, 0);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(side->queue), UCS_OK);
    ops[ST_A]   = st_send(side, place.buffer, LENGTH, 0);
    ops[ST_B]   = st_recv(&gpu->side[ST_B], place.buffer + LENGTH, LENGTH, 0);
    side->queue = st_queue(side, side->stream);
    st_match_ok(ops[ST_A], ops[ST_B]);
    CU_ASSERT_STRING_EQUAL(ops[ST_A]->lane->op.protocol(ops[ST_A]), "kernel");
    st_free2(ops[ST_A], ops[ST_B]);
    st_drain(&gpu->pair);
    gpu_place_put(gpu, &place);
}

GPU_CASES(early, "direct", run_early)

/* The first side's queue is on a stream of device 1, which starts what that has
 * in memory of the host: the other side's buffer is in device 0 */
static void run_two_devices(gpu_t *gpu, int is_reached)
{
    st_side_t *side = &gpu->side[ST_A];
    gpu_place_t places[3];

    gpu_place_get(gpu, &places[0], GPU_PINNED, LENGTH, 0);
    gpu_place_get(gpu, &places[1], GPU_SHARED, LENGTH, 0);
    gpu_place_get(gpu, &places[2], 0, LENGTH, 0);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(side->queue), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(side->stream), UCS_OK);
    gpu_set_device(gpu, 1);
    CU_ASSERT_EQUAL(st_any_stream(&side->stream), UCS_OK);
    side->queue = st_queue(side, side->stream);
    gpu_set_device(gpu, 0);
    CU_ASSERT_EQUAL(is_kernel(gpu, places[0].buffer, places[2].buffer),
                    is_reached);
    CU_ASSERT_EQUAL(is_kernel(gpu, places[1].buffer, places[2].buffer),
                    is_reached);
    CU_ASSERT(is_kernel(gpu, places[0].buffer, places[1].buffer));
    st_drain(&gpu->pair);
    gpu_place_put(gpu, &places[0]);
    gpu_place_put(gpu, &places[1]);
    gpu_place_put(gpu, &places[2]);
}

static void run_reached(gpu_t *gpu)
{
    run_two_devices(gpu, 1);
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_A]).proxied, 0);
}

static void run_apart(gpu_t *gpu)
{
    run_two_devices(gpu, 0);
}

static void run_devices(const char *tcase, int is_hip, int is_reached)
{
    if (rt_is_child(tcase, is_reached ? "STANDIN_PEER=1" : "STANDIN_PEER=0")) {
        gpu_run(is_hip, "direct", is_reached ? run_reached : run_apart);
    }
}

ST_CASE_CALL(reached_hip, run_devices("reached_hip", 1, 1))
ST_CASE_CALL(reached_cuda, run_devices("reached_cuda", 0, 1))
ST_CASE_CALL(apart_hip, run_devices("apart_hip", 1, 0))
ST_CASE_CALL(apart_cuda, run_devices("apart_cuda", 0, 0))

/* Memory of ucp_st_mem_alloc() with a file of its own is unmapped when it was
 * freed, its operations are gone, and no stream waits */
static void run_unmapped(gpu_t *gpu)
{
    uint64_t gate = 0;
    unsigned char in_core;
    ucp_st_op_h ops[2];
    void *block;

    CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(BLOCK, &block), UCS_OK);
    ops[ST_A] = st_send(&gpu->side[ST_A], block, LENGTH, 0);
    ops[ST_B] = st_recv(&gpu->side[ST_B], UCS_PTR_BYTE_OFFSET(block, LENGTH),
                        LENGTH, 0);
    st_match_ok(ops[ST_A], ops[ST_B]);
    CU_ASSERT_STRING_EQUAL(ops[ST_A]->lane->op.protocol(ops[ST_A]), "kernel");
    st_hold(&gpu->side[ST_A], &gate);
    st_free2(ops[ST_A], ops[ST_B]);
    st_drain(&gpu->pair);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_OK);
    CU_ASSERT_EQUAL(mincore(block, 4096, &in_core), 0);
    st_let_go(&gate);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(gpu->side[ST_A].stream), UCS_OK);
    while (mincore(block, 4096, &in_core) == 0) {
        (void)sched_yield();
    }
}

GPU_CASES(unmapped, "direct", run_unmapped)

/* A stream of the host starts uses by a thread, before and behind those that a
 * stream of the device starts, or the other way round */
static void run_mixed(gpu_t *gpu, int is_host_first, int from, int to)
{
    uint64_t before = st_stats(&gpu->side[ST_A]).proxied;
    pairs_t pairs;
    st_side_t host;
    st_side_t *side;
    uint64_t k;

    st_more_init_host(&host, &gpu->side[ST_A]);
    gpu->side[ST_A].worker->stream_types = gpu_types(gpu);
    pairs_init_at(&pairs, gpu, 1, from, to);
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
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_A]).proxied - before,
                    is_host_first ? 6 : 4);
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_B]).proxied, 0);
    st_more_cleanup(&host);
    pairs_cleanup(&pairs);
}

static void run_host_first(gpu_t *gpu)
{
    run_mixed(gpu, 1, 0, 0);
    run_mixed(gpu, 1, GPU_PINNED, GPU_SHARED);
}

static void run_device_first(gpu_t *gpu)
{
    run_mixed(gpu, 0, 0, 0);
    run_mixed(gpu, 0, GPU_SHARED, GPU_MANAGED);
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
static void run_fails_at(gpu_t *gpu, int who, int from, int to)
{
    pairs_t pairs;
    ucp_st_op_h op;

    pairs_init_at(&pairs, gpu, 1, from, to);
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

static void run_fails(gpu_t *gpu, int who)
{
    run_fails_at(gpu, who, 0, 0);
    run_fails_at(gpu, who, GPU_SHARED, GPU_PINNED);
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
    pairs_t pairs;
    st_side_t host;
    int i;

    st_more_init_host(&host, &gpu->side[ST_A]);
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
