/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu_tier.c - which tier of lane direct moves buffers in a device, and
 * what is said of it; what no better one takes goes on by threads, and what is
 * wrong with a device on tier K ends in an error.
 */
#include "st_cunit.h"
#include "st_far.h"
#include "st_gpu.h"
#include "gstream_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENGTH 1000
#define MANY   26
#define USES   3

/* What the library says */
#define SERVICE "UCX_ST_DIRECT_GPU_TIER=service"
#define NO_PEER "the two devices do not reach each other"
#define NO_CODE "the device runs no kernels of the library, or had no room"
#define NO_IPC  "memory has no handle for other processes, nor is it of " \
                "ucp_st_mem_alloc()"


/** Pairs between two buffers in devices. */
typedef struct {
    gpu_t       *gpu;
    gpu_place_t places[2]; /* LENGTH bytes for each pair */
    ucp_st_op_h ops[2][MANY];
    size_t      count;
} pairs_t;

static void pairs_init(pairs_t *pairs, gpu_t *gpu, size_t count, int device)
{
    size_t i;

    pairs->gpu   = gpu;
    pairs->count = count;
    gpu_place_get(gpu, &pairs->places[ST_A], 0, MANY * LENGTH, 0);
    gpu_place_get(gpu, &pairs->places[ST_B], device, MANY * LENGTH, 0);
    for (i = 0; i < count; ++i) {
        pairs->ops[ST_A][i] = st_send(&gpu->side[ST_A],
                                      pairs->places[ST_A].buffer + i * LENGTH,
                                      LENGTH, i);
        pairs->ops[ST_B][i] = st_recv(&gpu->side[ST_B],
                                      pairs->places[ST_B].buffer + i * LENGTH,
                                      LENGTH, i);
        st_match_ok(pairs->ops[ST_A][i], pairs->ops[ST_B][i]);
    }
}

static void pairs_free(pairs_t *pairs)
{
    size_t i;

    for (i = 0; i < pairs->count; ++i) {
        st_free2(pairs->ops[ST_A][i], pairs->ops[ST_B][i]);
    }
}

static void pairs_cleanup(pairs_t *pairs)
{
    pairs_free(pairs);
    st_drain(&pairs->gpu->pair);
    gpu_place_put(pairs->gpu, &pairs->places[ST_A]);
    gpu_place_put(pairs->gpu, &pairs->places[ST_B]);
}

/* One use of all on one side, in so many batches */
static void start_all(pairs_t *pairs, ucp_st_queue_h queue, int side)
{
    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(queue, pairs->ops[side],
                                            pairs->count), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(queue, pairs->ops[side],
                                           pairs->count), UCS_OK);
}

static void use_all(pairs_t *pairs, uint64_t seed)
{
    size_t length = pairs->count * LENGTH;
    int i;

    gpu_fill(pairs->places[ST_A].buffer, length, seed);
    for (i = 0; i < 2; ++i) {
        start_all(pairs, pairs->gpu->side[i].queue, i);
    }
    st_pair_sync(&pairs->gpu->pair);
    CU_ASSERT(gpu_check(pairs->places[ST_B].buffer, length, seed));
}

/* What is said of an operation and of a worker; "" where kernels move it */
static void check_side(st_side_t *side, ucp_st_op_h op, const char *reason,
                       size_t count)
{
    int is_kernel = (*reason == '\0');
    ucp_st_worker_attr_t worker;
    ucp_st_op_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_op_query(op, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.lane, UCP_ST_LANE_DIRECT);
    CU_ASSERT_STRING_EQUAL(attr.reason, reason);
    CU_ASSERT_EQUAL(!strcmp(attr.protocol, "kernel"), is_kernel);
    CU_ASSERT_EQUAL(ucp_st_worker_query(side->worker, &worker), UCS_OK);
    CU_ASSERT_STRING_EQUAL(worker.tier_reason, reason);
    CU_ASSERT_EQUAL(worker.stats.tier_kernel, is_kernel ? count : 0);
    CU_ASSERT_EQUAL(worker.stats.tier_service, is_kernel ? 0 : count);
}

static void check_said(pairs_t *pairs, const char *reason)
{
    st_side_t *side = pairs->gpu->side;
    int i;

    for (i = 0; i < 2; ++i) {
        check_side(&side[i], pairs->ops[i][0], reason, pairs->count);
    }
}

/* A call of starts is one kernel, one of waits one batch or, with HIP, one
 * kernel; no thread is woken, and none moves anything */
static void run_counts(gpu_t *gpu)
{
    standin_counts_t before, after;
    ucp_st_stats_t stats;
    pairs_t pairs;
    int i;

    pairs_init(&pairs, gpu, MANY, 0);
    check_said(&pairs, "");
    before = rt_counts(gpu->rt);
    for (i = 0; i < USES; ++i) {
        use_all(&pairs, i);
    }
    after = rt_counts(gpu->rt);
    for (i = 0; i < 2; ++i) {
        stats = st_stats(&gpu->side[i]);
        CU_ASSERT_EQUAL(stats.wakeups, 0);
        CU_ASSERT_EQUAL(stats.proxied, 0);
        CU_ASSERT_EQUAL(stats.start_cmds, USES);
        CU_ASSERT_EQUAL(stats.launches, USES * (1 + gpu->is_hip));
    }
    if (!gpu->is_real) {
        CU_ASSERT_EQUAL(after.host_funcs, before.host_funcs);
        CU_ASSERT_EQUAL(after.batches - before.batches,
                        gpu->is_hip ? 0 : 2 * USES);
        CU_ASSERT_EQUAL(after.kernels - before.kernels,
                        2 * USES * (1 + (unsigned)gpu->is_hip));
    }
    pairs_cleanup(&pairs);
}

GPU_CASES(counts, "direct", run_counts)

/* Threads move it, and are woken: the reason is told, and the data is right */
static void run_threads(gpu_t *gpu, const char *reason, int device)
{
    pairs_t pairs;
    char *text  = NULL;
    size_t size = 0;
    FILE *file;

    pairs_init(&pairs, gpu, 2, device);
    check_said(&pairs, reason);
    use_all(&pairs, 1);
    use_all(&pairs, 2);
    CU_ASSERT(st_stats(&gpu->side[ST_A]).wakeups > 0);
    CU_ASSERT(st_stats(&gpu->side[ST_B]).proxied > 0);
    file = open_memstream(&text, &size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    ucp_st_worker_print_stats(gpu->side[ST_A].worker, file);
    fclose(file);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, reason));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\ntier_service 2\n"));
    free(text);
    pairs_cleanup(&pairs);
}

static void run_service(gpu_t *gpu)
{
    run_threads(gpu, SERVICE, 0);
}

static void run_no_code(gpu_t *gpu)
{
    run_threads(gpu, NO_CODE, 0);
}

static void run_no_peer(gpu_t *gpu)
{
    run_threads(gpu, NO_PEER, 1);
}

/* ... but not where kernels are asked for */
static void run_asked(gpu_t *gpu)
{
    st_side_t *side = gpu->side;
    ucs_status_t status[2];
    gpu_place_t places[2];
    ucp_st_op_h ops[2];
    int i;

    for (i = 0; i < 2; ++i) {
        gpu_place_get(gpu, &places[i], 0, LENGTH, 0);
    }
    ops[ST_A] = st_send(&side[ST_A], places[ST_A].buffer, LENGTH, 1);
    ops[ST_B] = st_recv(&side[ST_B], places[ST_B].buffer, LENGTH, 1);
    st_match2(ops[ST_A], ops[ST_B], &status[ST_A], &status[ST_B]);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(status[i], UCS_ERR_UNSUPPORTED);
        CU_ASSERT_EQUAL(st_stats(&side[i]).tier_service, 0);
    }
    st_free2(ops[ST_A], ops[ST_B]);
    st_drain(&gpu->pair);
    for (i = 0; i < 2; ++i) {
        gpu_place_put(gpu, &places[i]);
    }
}

/* The queue's stream is of a context that is not the device's primary one,
 * where the other side's memory is not open: a thread has another stream start
 * the use */
static void run_context(gpu_t *gpu)
{
    const rt_t *rt = gpu->rt;
    void *context  = NULL;
    ucs_gstream_h stream;
    ucp_st_queue_h queue;
    pairs_t pairs;
    void *native;
    int i;

    pairs_init(&pairs, gpu, 1, 0);
    check_said(&pairs, "");
    CU_ASSERT_EQUAL_FATAL(rt->cu.cuCtxCreate_v2(&context, 0, 0), RT_OK);
    native = rt_stream(rt);
    stream = gstream_util_create_native(0, native);
    queue  = st_queue(&gpu->side[ST_A], stream);
    CU_ASSERT_EQUAL(rt_set_device(rt, 0), RT_OK);
    for (i = 0; i < USES; ++i) {
        gpu_fill(pairs.places[ST_A].buffer, LENGTH, i);
        start_all(&pairs, queue, ST_A);
        start_all(&pairs, gpu->side[ST_B].queue, ST_B);
        CU_ASSERT_EQUAL(ucp_st_queue_wait(queue, NULL), UCS_OK);
        st_sync(&gpu->side[ST_B]);
        CU_ASSERT(gpu_check(pairs.places[ST_B].buffer, LENGTH, i));
    }
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_A]).proxied, USES);
    CU_ASSERT(st_stats(&gpu->side[ST_A]).wakeups >= USES);
    CU_ASSERT_EQUAL(st_stats(&gpu->side[ST_B]).proxied, 0);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(queue), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, native), RT_OK);
    CU_ASSERT_EQUAL(rt->cu.cuCtxDestroy_v2(context), RT_OK);
    CU_ASSERT_EQUAL(rt_set_device(rt, 0), RT_OK);
    pairs_cleanup(&pairs);
}

ST_CASE_CALL(context_cuda, gpu_run(0, "direct", run_context))

/* The device is lost behind a start of a side's own stream: its wait ends with
 * an error, as does what either side starts later, and all can be freed */
static void run_lost(gpu_t *gpu, int first)
{
    ucs_status_t status;
    pairs_t pairs;
    int i;

    pairs_init(&pairs, gpu, 1, 0);
    start_all(&pairs, gpu->side[ST_A].queue, ST_A);
    gpu->rt->control.standin_lose_device(0);
    for (i = first; i < 2; ++i) { /* or the other side's failure is told */
        CU_ASSERT_NOT_EQUAL(ucp_st_enqueue_start(gpu->side[!i].queue,
                                                 pairs.ops[!i][0]), UCS_OK);
    }
    status = ucp_st_queue_wait(gpu->side[ST_A].queue, NULL);
    CU_ASSERT_NOT_EQUAL(status, UCS_OK);
    CU_ASSERT((status == UCS_ERR_IO_ERROR) || (first == 0));
    CU_ASSERT_NOT_EQUAL(ucp_st_enqueue_start(gpu->side[ST_B].queue,
                                             pairs.ops[ST_B][0]), UCS_OK);
    pairs_free(&pairs);
    for (i = 0; i < 2; ++i) { /* these ask whether the stream is lost */
        CU_ASSERT_EQUAL(ucp_st_queue_destroy(gpu->side[i].queue), UCS_OK);
    }
    st_drain(&gpu->pair);
    gpu_set_device(gpu, 1);
    for (i = 0; i < 2; ++i) { /* the cleanup of all wants a device */
        CU_ASSERT_EQUAL(ucs_gstream_destroy(gpu->side[i].stream), UCS_OK);
        gpu->side[i].stream = gstream_util_create_gpu(gpu->is_hip);
        gpu->side[i].queue  = NULL;
    }
}

/* The host looks at the queue next */
static void run_lost_queue(gpu_t *gpu)
{
    run_lost(gpu, 2);
}

/* ... or the other side starts, and then the same one; or that alone */
static void run_lost_starts(gpu_t *gpu)
{
    run_lost(gpu, 0);
}

static void run_lost_start(gpu_t *gpu)
{
    run_lost(gpu, 1);
}

/* With settings of the library and of a stand-in, which are read once */
static void run_set(int is_hip, const char *tcase, const char *settings,
                    gpu_body_t body)
{
    if (!gpu_is_named(is_hip)) {
        st_cunit_skip("ST_TEST_STREAM names the other runtime");
    } else if ((strstr(settings, "STANDIN_") != NULL) &&
               rt_is_real(rt_open(is_hip))) {
        st_cunit_skip("needs a stand-in");
    } else if (rt_is_child(tcase, settings)) {
        gpu_run(is_hip, "direct", body);
    }
}

#define SET_CASES(_name, _settings, _body) \
    ST_CASE_CALL(_name##_hip, run_set(1, #_name "_hip", _settings, _body)) \
    ST_CASE_CALL(_name##_cuda, run_set(0, #_name "_cuda", _settings, _body))

#define KERNEL " UCX_ST_DIRECT_GPU_TIER=kernel"

SET_CASES(service, SERVICE, run_service)
SET_CASES(no_module, "STANDIN_MODULES=0", run_no_code)
SET_CASES(no_module_asked, "STANDIN_MODULES=0" KERNEL, run_asked)
SET_CASES(no_peer, "STANDIN_PEER=0", run_no_peer)
/* A device that the text or the objects are not for */
ST_CASE_CALL(old_cuda, run_set(0, "old_cuda", "STANDIN_ARCH=sm_60",
                               run_no_code))
ST_CASE_CALL(old_asked_cuda, run_set(0, "old_asked_cuda", "STANDIN_ARCH=sm_60"
                                     KERNEL, run_asked))
ST_CASE_CALL(unknown_hip, run_set(1, "unknown_hip", "STANDIN_ARCH=gfx000 "
                                  "STANDIN_RTC=0", run_no_code))
SET_CASES(lost_queue, "STANDIN_DEVICES=2", run_lost_queue)
SET_CASES(lost_start, "STANDIN_DEVICES=2", run_lost_start)
SET_CASES(lost_starts, "STANDIN_DEVICES=2", run_lost_starts)

/* Two processes. A task: whether it is of HIP, which side this one is, and
 * whether kernels are asked for */
typedef struct {
    int is_hip;
    int is_send;
    int is_asked;
} far_task_t;

static void far_start(st_far_t *far, const far_task_t *task)
{
    char text[32];

    snprintf(text, sizeof(text), "%d %d %d", task->is_hip, task->is_send,
             task->is_asked);
    st_far_start(far, text);
}

static void far_use(const far_task_t *task, st_side_t *side, ucp_st_op_h op,
                    uint8_t *buffer)
{
    check_side(side, op, NO_IPC, 1);
    if (task->is_send) {
        gpu_fill(buffer, LENGTH, 5);
    }
    st_use(side, op);
    st_sync(side);
    CU_ASSERT(gpu_check(buffer, LENGTH, 5));
}

static void far_run(const far_task_t *task, st_far_t *far)
{
    gpu_t gpu = {.is_hip = task->is_hip};
    gpu_place_t place;
    st_side_t side;
    ucp_st_op_h op;

    gpu_load(&gpu);
    gpu_set_device(&gpu, 0);
    st_side_init(&side);
    CU_ASSERT_EQUAL_FATAL(st_far_connect(far, side.worker, &side.peer), UCS_OK);
    gpu_place_get(&gpu, &place, 0, LENGTH, 0);
    op = (task->is_send ? st_send : st_recv)(&side, place.buffer, LENGTH, 1);
    CU_ASSERT_EQUAL(ucp_st_match(op), task->is_asked ? UCS_ERR_UNSUPPORTED :
                                                       UCS_OK);
    if (!task->is_asked) {
        far_use(task, &side, op, place.buffer);
    }
    st_free(op);
    while (st_stats(&side).freed > 0) {
        (void)ucp_st_worker_progress(side.worker);
    }
    CU_ASSERT_TRUE_FATAL(st_far_meet(far));
    st_side_cleanup(&side);
    gpu_place_put(&gpu, &place);
}

/* In a process that a case, or another such process, has started; the first one
 * sends */
static void run_process(void)
{
    far_task_t task;
    st_far_t far;

    CU_ASSERT_EQUAL_FATAL(sscanf(st_far_task(&far), "%d %d %d", &task.is_hip,
                                 &task.is_send, &task.is_asked), 3);
    if (task.is_send) {
        task.is_send = 0;
        far_start(&far, &task);
        task.is_send = 1;
    }
    far_run(&task, &far);
    if (task.is_send) {
        st_far_end(&far);
    }
}

/* Memory of which the runtime gives no handle, as that of a pool */
static void run_far(int is_hip, int is_asked)
{
    const far_task_t task   = {is_hip, 1, is_asked};
    const char *settings[6][2] = {
        {"ST_TEST_STREAM", is_hip ? "hip" : "cuda"},
        {"ST_LANE", "direct"},
        {"UCX_ST_LANES", "direct"},
        {"UCX_TLS", "posix,self"},
        {"UCX_ST_DIRECT_GPU_TIER", is_asked ? "kernel" : NULL},
        {"STANDIN_IPC", "0"}
    };
    char *before[6];
    st_far_t far;
    int i;

    if (!gpu_is_named(is_hip) || rt_is_real(rt_open(is_hip))) {
        st_cunit_skip("needs a stand-in, of the runtime that is named");
        return;
    }
    for (i = 0; i < 6; ++i) {
        before[i] = st_env_set(settings[i][0], settings[i][1]);
    }
    far_start(&far, &task);
    st_far_end(&far);
    close(far.fd);
    for (i = 0; i < 6; ++i) {
        st_env_restore(settings[i][0], before[i]);
    }
}

ST_CASE_CALL(no_handle_hip, run_far(1, 0))
ST_CASE_CALL(no_handle_cuda, run_far(0, 0))
ST_CASE_CALL(no_handle_asked_hip, run_far(1, 1))
ST_CASE_CALL(no_handle_asked_cuda, run_far(0, 1))

ST_FAR_SUITE("st_gpu_tier", run_process)
