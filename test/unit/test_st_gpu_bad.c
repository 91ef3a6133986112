/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu_bad.c - what applications do wrong with streams and memory of
 * GPUs, on the stand-ins for the runtimes: an error says what, and other queues
 * go on.
 */
#include "st_cunit.h"
#include "st_gpu.h"
#include "st_stream.h"

#include "core/st_op.h"
#include "core/st_queue.h"

#include <ucs_gstream_memory.h>

#include <ucs/debug/log_def.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define SHORT 1000
#define LONG  (1ul << 20) /* Lane direct copies it from buffer to buffer */
#define USES  40

#define PAIRS 4

static uint8_t bytes[2][LONG];

/* Errors since the handler was pushed, cut if there are too many */
static char errors[4096];

static ucs_log_func_rc_t keep_error(const char *file, unsigned line,
                                    const char *function,
                                    ucs_log_level_t level,
                                    const ucs_log_component_config_t *config,
                                    const char *format, va_list ap)
{
    size_t length = strlen(errors);

    if (level == UCS_LOG_LEVEL_ERROR) {
        vsnprintf(errors + length, sizeof(errors) - length, format, ap);
    }
    return UCS_LOG_FUNC_RC_STOP;
}

static void errors_begin(void)
{
    errors[0] = '\0';
    ucs_log_push_handler(keep_error);
}

/* What was logged names this, a pointer */
static int errors_end(const void *what)
{
    char name[32];

    ucs_log_pop_handler();
    snprintf(name, sizeof(name), "%p", what);
    return strstr(errors, name) != NULL;
}

static ucs_gstream_type_t gpu_type(const gpu_t *gpu)
{
    return gpu->is_hip ? UCS_GSTREAM_TYPE_HIP : UCS_GSTREAM_TYPE_CUDA;
}

/* A pair whose side `dir` has a buffer in a device */
static void match(gpu_t *gpu, uint8_t *memory, size_t length, int dir,
                  ucp_st_op_h op[2])
{
    op[ST_A] = st_send(&gpu->side[ST_A],
                       (dir == UCP_ST_DIR_SEND) ? memory : bytes[ST_A], length,
                       1);
    op[ST_B] = st_recv(&gpu->side[ST_B],
                       (dir == UCP_ST_DIR_RECV) ? memory : bytes[ST_B], length,
                       1);
    st_match_ok(op[ST_A], op[ST_B]);
}

/* A card may still hold what has failed */
static void free_both(gpu_t *gpu, const ucp_st_op_h op[2])
{
    ucs_status_t status;
    int i;

    for (i = 0; i < 2; ++i) {
        while ((status = ucp_st_op_free(op[i])) == UCS_ERR_BUSY) {
            (void)ucp_st_worker_progress(gpu->side[ST_A].worker);
            (void)ucp_st_worker_progress(gpu->side[ST_B].worker);
            (void)sched_yield();
        }
        CU_ASSERT_EQUAL(status, UCS_OK);
    }
}

/* Messages of the pair's own queues go on. A device that is lost may still
 * write to what it wrote to before. */
static void check_others(gpu_t *gpu)
{
    static uint8_t others[2][SHORT];
    ucp_st_op_h op[2];
    int i;

    st_fill(others[ST_A], SHORT, 5);
    op[ST_A] = st_send(&gpu->side[ST_A], others[ST_A], SHORT, 2);
    op[ST_B] = st_recv(&gpu->side[ST_B], others[ST_B], SHORT, 2);
    st_match_ok(op[ST_A], op[ST_B]);
    for (i = 0; i < 2; ++i) {
        st_use(&gpu->side[i], op[i]);
    }
    st_pair_sync(&gpu->pair);
    CU_ASSERT_TRUE(st_check(others[ST_B], SHORT, 5));
    st_free2(op[ST_A], op[ST_B]);
}

/* A body for each length and direction */
static void each(gpu_t *gpu, void (*body)(gpu_t *gpu, size_t length, int dir))
{
    int i;

    for (i = 0; i < 4; ++i) {
        body(gpu, (i & 1) ? LONG : SHORT,
             (i & 2) ? UCP_ST_DIR_RECV : UCP_ST_DIR_SEND);
    }
}

#define EACH_LANE(_name, _body) \
    GPU_CASES(_name##_host, "host", _body) \
    GPU_CASES(_name##_direct, "direct", _body) \
    GPU_CASES(_name##_trig, "trig", _body)

/* The buffer is freed before a start, which is refused on every lane */
static void freed(gpu_t *gpu, size_t length, int dir)
{
    st_side_t *side = &gpu->side[dir];
    uint8_t *memory = gpu_alloc(gpu, length);
    ucp_st_op_h op[2];

    match(gpu, memory, length, dir, op);
    gpu_free(gpu, memory);
    errors_begin();
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(side->queue, op[dir]),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_TRUE(errors_end(memory));
    CU_ASSERT_EQUAL(ucp_st_queue_query(side->queue, NULL), UCS_OK);
    st_free2(op[ST_A], op[ST_B]);
}

static void run_freed(gpu_t *gpu)
{
    each(gpu, freed);
    check_others(gpu);
}

EACH_LANE(freed, run_freed)

/* A buffer in another device than the stream's */
static void other_device(gpu_t *gpu, size_t length, int dir)
{
    uint8_t *memory = gpu_alloc_on(gpu, 1, length);
    ucp_st_op_h op[2];
    int i;

    memset(bytes[ST_B], 0, length);
    st_fill(bytes[ST_A], length, 3);
    if (dir == UCP_ST_DIR_SEND) {
        CU_ASSERT_EQUAL(ucs_gstream_memory_copy(memory, bytes[ST_A], length),
                        UCS_OK);
    }
    match(gpu, memory, length, dir, op);
    for (i = 0; i < 2; ++i) {
        st_use(&gpu->side[i], op[i]);
    }
    st_pair_sync(&gpu->pair);
    if (dir == UCP_ST_DIR_RECV) {
        CU_ASSERT_EQUAL(ucs_gstream_memory_copy(bytes[ST_B], memory, length),
                        UCS_OK);
    }
    CU_ASSERT_TRUE(st_check(bytes[ST_B], length, 3));
    st_free2(op[ST_A], op[ST_B]);
    gpu_free(gpu, memory);
}

static void run_other_device(gpu_t *gpu)
{
    each(gpu, other_device);
}

EACH_LANE(other_device, run_other_device)

/* The device loses what a message is longer than its buffer: an error names the
 * buffer, and only the queue of it fails */
static void run_too_long(gpu_t *gpu)
{
    uint8_t *memory = gpu_alloc(gpu, SHORT / 2);
    st_side_t more;
    ucp_st_op_h op[2];

    st_more_init(&more, &gpu->side[ST_B]);
    match(gpu, memory, SHORT, UCP_ST_DIR_RECV, op);
    st_use(&gpu->side[ST_A], op[ST_A]);
    st_start(&more, op[ST_B]);
    errors_begin();
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait(more.queue, op[ST_B]),
                    UCS_ERR_IO_ERROR);
    CU_ASSERT_TRUE(errors_end(memory));
    CU_ASSERT_EQUAL(ucp_st_queue_wait(more.queue, NULL), UCS_ERR_IO_ERROR);
    free_both(gpu, op);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(more.queue), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(more.stream), UCS_OK);
    gpu_free(gpu, memory);
}

GPU_CASES(too_long, "host", run_too_long)

/* A copy of lane direct that the runtime refuses: both sides hear of it */
static void run_refused_copy(gpu_t *gpu)
{
    uint8_t *memory = gpu_alloc(gpu, LONG / 2);
    st_side_t more[2];
    ucp_st_op_h op[2];
    int i;

    match(gpu, memory, LONG, UCP_ST_DIR_SEND, op);
    errors_begin();
    for (i = 0; i < 2; ++i) {
        st_more_init(&more[i], &gpu->side[i]);
        st_start(&more[i], op[i]);
        /* The second one may come too late already */
        (void)ucp_st_enqueue_wait(more[i].queue, op[i]);
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_queue_wait(more[i].queue, NULL),
                        UCS_ERR_IO_ERROR);
    }
    CU_ASSERT_TRUE(errors_end(memory));
    check_others(gpu);
    st_free2(op[ST_A], op[ST_B]);
    for (i = 0; i < 2; ++i) {
        st_more_cleanup(&more[i]);
    }
    gpu_free(gpu, memory);
}

GPU_CASES(refused_copy, "direct", run_refused_copy)

/* A side with a queue on an application's stream */
static void more_on(gpu_t *gpu, st_side_t *more, const st_side_t *side,
                    void *native)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE |
                      UCS_GSTREAM_PARAM_FIELD_NATIVE,
        .type       = gpu_type(gpu),
        .native     = native
    };

    *more = *side;
    CU_ASSERT_EQUAL_FATAL(ucs_gstream_create(&params, &more->stream), UCS_OK);
    more->queue = st_queue(more, more->stream);
}

/* The queue whose stream is gone while it waits, or before its next start */
static void check_gone(gpu_t *gpu, st_side_t *more, const ucp_st_op_h op[2])
{
    errors_begin();
    CU_ASSERT_NOT_EQUAL(ucp_st_enqueue_start(more->queue, op[ST_A]), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(more->queue, NULL), UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(more->queue), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(more->stream), UCS_OK);
    (void)errors_end(NULL);
    free_both(gpu, op);
    check_others(gpu);
}

/* Put a gate and a batch of no operation into a stream, which goes on with them
 * after it counts as lost: what operations have there would be given back
 * before */
static void hold_batch(st_side_t *side, uint64_t *gate)
{
    st_hold(side, gate);
    CU_ASSERT_EQUAL(ucp_st_queue_prepare(side->queue, 0), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_enqueue(side->queue, 0), UCS_OK);
}

/* The application destroys its stream, with and without something to do */
static void run_gone(gpu_t *gpu)
{
    uint64_t gates[2] = {0, 0};
    st_side_t more;
    ucp_st_op_h op[2];
    void *native;
    int i;

    gpu_set_device(gpu, 0);
    for (i = 0; i < 2; ++i) {
        native = rt_stream(gpu->rt);
        more_on(gpu, &more, &gpu->side[ST_A], native);
        match(gpu, bytes[ST_A], SHORT, UCP_ST_DIR_SEND, op);
        if (i == 1) {
            hold_batch(&more, &gates[i]);
        }
        CU_ASSERT_EQUAL(rt_stream_destroy(gpu->rt, native), RT_OK);
        check_gone(gpu, &more, op);
        st_let_go(&gates[i]);
    }
}

EACH_LANE(gone, run_gone)

/* A context of the application's, on another device, works without being
 * current; and is destroyed while a stream of it waits */
static void run_context(gpu_t *gpu)
{
    uint64_t gate = 0;
    st_side_t more;
    void *context, *native;
    ucp_st_op_h op[2];

    CU_ASSERT_EQUAL_FATAL(gpu->rt->cu.cuCtxCreate_v2(&context, 0, 1), RT_OK);
    native = rt_stream(gpu->rt);
    CU_ASSERT_EQUAL_FATAL(gpu->rt->cu.cuCtxPopCurrent_v2(&context), RT_OK);
    more_on(gpu, &more, &gpu->side[ST_A], native);
    match(gpu, bytes[ST_A], SHORT, UCP_ST_DIR_SEND, op);
    st_use(&more, op[ST_A]);
    st_use(&gpu->side[ST_B], op[ST_B]);
    st_sync(&more);
    st_sync(&gpu->side[ST_B]);
    st_hold(&more, &gate);
    st_use(&more, op[ST_A]);
    CU_ASSERT_EQUAL(gpu->rt->cu.cuCtxDestroy_v2(context), RT_OK);
    check_gone(gpu, &more, op);
}

ST_CASE_CALL(context_host, gpu_run(0, "host", run_context))
ST_CASE_CALL(context_direct, gpu_run(0, "direct", run_context))
ST_CASE_CALL(context_trig, gpu_run(0, "trig", run_context))

/* The default streams by their three handles, each with the thread's own one */
static void run_default(gpu_t *gpu)
{
    st_side_t more[2];
    ucp_st_op_h op[2];
    uintptr_t handle;
    int i;

    gpu_set_device(gpu, 0);
    for (handle = 0; handle < 3; ++handle) {
        more_on(gpu, &more[ST_A], &gpu->side[ST_A], (void*)handle);
        more_on(gpu, &more[ST_B], &gpu->side[ST_B], (void*)2);
        match(gpu, bytes[ST_A], SHORT, UCP_ST_DIR_SEND, op);
        st_fill(bytes[ST_A], SHORT, handle);
        for (i = 0; i < 2; ++i) { /* they wait for each other */
            st_start(&more[i], op[i]);
        }
        for (i = 0; i < 2; ++i) {
            st_wait(&more[i], op[i]);
        }
        st_sync(&more[ST_A]);
        st_sync(&more[ST_B]);
        CU_ASSERT_TRUE(st_check(bytes[ST_B], SHORT, handle));
        st_free2(op[ST_A], op[ST_B]);
        st_more_cleanup(&more[ST_A]);
        st_more_cleanup(&more[ST_B]);
    }
}

GPU_CASES(default, "host", run_default)

/** A thread that starts and waits. */
typedef struct user {
    st_side_t   side;
    gpu_t       gpu; /* its runtime alone */
    uint8_t     *memory;
    ucp_st_op_h op;
    int         failed;
    pthread_t   thread;
} user_t;

static void *user_main(void *arg)
{
    user_t *user       = arg;
    ucp_st_queue_h run = user->side.queue;
    unsigned k;

    for (k = 0; k < USES; ++k) {
        user->failed |= (ucp_st_enqueue_start(run, user->op) != UCS_OK) ||
                        (ucp_st_enqueue_wait(run, user->op) != UCS_OK) ||
                        (((k % 8) == 7) &&
                         (ucp_st_queue_wait(run, NULL) != UCS_OK));
    }
    return NULL;
}

static void user_init(gpu_t *gpu, user_t *user, int i)
{
    size_t length = (i < PAIRS) ? LONG : SHORT;
    char *stream;

    user->gpu    = (gpu_t){.is_hip = (i >> 1) & 1};
    user->failed = 0;
    gpu_load(&user->gpu);
    stream = st_env_set("ST_TEST_STREAM", user->gpu.is_hip ? "hip" : "cuda");
    st_more_init(&user->side, &gpu->side[i & 1]);
    st_env_restore("ST_TEST_STREAM", stream);
    user->memory = gpu_alloc(&user->gpu, length);
    user->op     = ((i & 1) ? st_recv : st_send)(&user->side, user->memory,
                                                 length, i / 2);
}

static void user_cleanup(user_t *user)
{
    st_free(user->op);
    st_more_cleanup(&user->side);
    gpu_free(&user->gpu, user->memory);
}

/* Threads on streams of both runtimes, with memory of both */
static void run_threads(gpu_t *gpu)
{
    user_t users[2 * PAIRS];
    unsigned i;

    if (gpu->is_real) {
        st_cunit_skip("a machine has GPUs of one vendor");
        return;
    }
    for (i = 0; i < 2 * PAIRS; ++i) {
        user_init(gpu, &users[i], i);
        if (i & 1) {
            st_match_ok(users[i - 1].op, users[i].op);
        }
    }
    for (i = 0; i < 2 * PAIRS; ++i) {
        CU_ASSERT_EQUAL_FATAL(pthread_create(&users[i].thread, NULL, user_main,
                                             &users[i]), 0);
    }
    for (i = 0; i < 2 * PAIRS; ++i) {
        CU_ASSERT_EQUAL(pthread_join(users[i].thread, NULL), 0);
        CU_ASSERT_FALSE(users[i].failed);
    }
    for (i = 0; i < 2 * PAIRS; ++i) {
        user_cleanup(&users[i]);
    }
}

ST_CASE_CALL(threads_host, gpu_run(1, "host", run_threads))
ST_CASE_CALL(threads_direct, gpu_run(0, "direct", run_threads))
ST_CASE_CALL(threads_trig, gpu_run(0, "trig", run_threads))

/* A use whose receive is started, and waited for, before its send is: no call
 * waits for the message. Its streams and a buffer are of one runtime. */
static void use_ahead(gpu_t *gpu, int is_hip)
{
    user_t users[2];
    int i;

    for (i = 0; i < 2; ++i) {
        user_init(gpu, &users[i], (2 * PAIRS) + (is_hip ? 2 : 0) + i);
    }
    st_match_ok(users[0].op, users[1].op);
    for (i = 1; i >= 0; --i) {
        st_use(&users[i].side, users[i].op);
    }
    for (i = 0; i < 2; ++i) {
        st_sync(&users[i].side);
    }
    for (i = 0; i < 2; ++i) {
        user_cleanup(&users[i]);
    }
}

/* Memory in place of buffers goes from one runtime to the other, which knows
 * nothing of it */
static void run_staged(gpu_t *gpu)
{
    int i;

    if (gpu->is_real) {
        st_cunit_skip("a machine has GPUs of one vendor");
        return;
    }
    for (i = 0; i < 4; ++i) {
        use_ahead(gpu, (i & 1) == gpu->is_hip);
    }
}

GPU_CASES(staged, "host", run_staged)

/* A runtime that finds no device any more has lost the stream */
static void run_no_device(gpu_t *gpu)
{
    uint64_t gate = 0;
    st_side_t more;
    ucs_status_t status;

    st_more_init(&more, &gpu->side[ST_A]);
    hold_batch(&more, &gate);
    errors_begin();
    gpu->rt->control.standin_fail_calls(0, UINT32_MAX, RT_NO_DEVICE);
    do {
        status = ucp_st_queue_query(more.queue, NULL);
    } while (status == UCS_INPROGRESS);
    CU_ASSERT_EQUAL(status, UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(more.queue, NULL), UCS_ERR_IO_ERROR);
    gpu->rt->control.standin_fail_calls(0, 0, 0);
    (void)errors_end(NULL);
    st_let_go(&gate);
    st_more_cleanup(&more);
    check_others(gpu);
}

GPU_CASES(no_device, "host", run_no_device)

/* A device is lost while it copies for lane direct */
static void run_lost(gpu_t *gpu)
{
    uint8_t *memory = gpu_alloc_on(gpu, 1, LONG);
    unsigned long held;
    st_side_t more[2];
    ucp_st_op_h op[2];
    int i;

    gpu_set_device(gpu, 1);
    st_more_init(&more[ST_A], &gpu->side[ST_A]);
    st_more_init(&more[ST_B], &gpu->side[ST_B]);
    gpu_set_device(gpu, 0);
    match(gpu, memory, LONG, UCP_ST_DIR_SEND, op);
    held = rt_counts(gpu->rt).held;
    gpu->rt->control.standin_hold(STANDIN_HOLD_COPY);
    st_use(&more[ST_A], op[ST_A]);
    st_use(&more[ST_B], op[ST_B]);
    while (rt_counts(gpu->rt).held == held) {
        (void)sched_yield();
    }
    errors_begin();
    gpu->rt->control.standin_lose_device(1);
    gpu->rt->control.standin_hold(0);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_queue_wait(more[i].queue, NULL),
                        UCS_ERR_IO_ERROR);
    }
    free_both(gpu, op);
    check_others(gpu);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_queue_destroy(more[i].queue), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_destroy(more[i].stream), UCS_OK);
    }
    (void)errors_end(NULL);
}

/* The last ones of their runtimes */
GPU_CASES(lost, "direct", run_lost)

ST_SUITE("st_gpu_bad")
