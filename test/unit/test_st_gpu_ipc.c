/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu_ipc.c - lane direct between buffers in memory of devices, with
 * the stand-ins for the runtimes, or on a GPU: nothing is staged where one side
 * reaches both buffers, in one process or in two.
 *
 * Each case runs in a process of its own, as a stand-in reads its settings
 * once; that one starts the second one.
 */
#include "st_cunit.h"
#include "st_far.h"
#include "st_gpu.h"
#include "st_hook.h"
#include "st_pair.h"
#include "st_stream.h"

#include <ucs_gstream_memory.h>

#include "core/st_lane.h"
#include "core/st_op.h"
#include "core/st_stage.h"
#include "core/st_worker.h"
#include "direct/st_direct.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two pieces, the last one short; not at the begin of the allocation; and one
 * that is too short to be mapped */
#define LENGTH  ((5ul << 20) + 100)
#define SKIP    4096
#define SHORT   1000
#define USES    3
#define ROUNDS  3

/** What happens; the process that the case starts is the first one. */
typedef enum {
    MODE_NEAR, /* both sides are in it */
    MODE_HELD, /* ... and copies of streams take long */
    MODE_FAILS,/* ... and an operation fails meanwhile */
    MODE_FAR,  /* the other side is in a second one */
    MODE_DIES, /* ... which is killed when it has matched */
    MODE_STUCK,/* ... or while a copy of the first one takes long */
    MODE_GONE, /* ... and frees its memory before that is opened */
    MODE_LIES, /* ... and says that its buffer is elsewhere */
    MODE_LEAVES, /* ... and frees its operation while the memory is opened */
    MODE_REFUSED /* ... and the pair cannot be of tier K, which is asked for */
} task_mode_t;

/** What the processes of a case are told. */
typedef struct {
    int is_second;
    int mode;
    int is_hip;
    int places[2];   /* of the first side's buffer, and the second's */
    int is_send;     /* the first side sends */
    int is_staged;
    int is_kernel;   /* on tier K; else threads have copies made */
    int second_has;  /* devices that the second process has, 1; 0: the same */
    unsigned length;
} task_t;

static task_t task;
static gpu_t gpu; /* its runtime alone */

/* How often this process has opened memory of the other one, once a thread of
 * the library has */
static void check_opens(unsigned count)
{
    while (!gpu.is_real && (rt_counts(gpu.rt).opens < count)) {
        (void)sched_yield();
    }
    CU_ASSERT(gpu.is_real || (rt_counts(gpu.rt).opens == count));
}

/* A message is staged where the buffer is in a device, unless the pair is moved
 * without */
static unsigned num_staged(int place, unsigned ops)
{
    return (task.is_staged && (place >= 0)) ? ops : 0;
}

static ucp_st_op_h make_op(st_side_t *side, gpu_place_t *place, int is_send)
{
    return (is_send ? st_send : st_recv)(side, place->buffer, task.length, 1);
}

static void check_op(ucp_st_op_h op)
{
    CU_ASSERT_EQUAL(!strcmp(op->lane->op.protocol(op), task.is_kernel ?
                            "kernel" : "device"), !task.is_staged);
    CU_ASSERT_EQUAL(op->stage != NULL,
                    task.is_staged && ucp_st_stage_is_device(&op->memory));
}

/* By kernels each start is a launch, and no thread moves anything but where a
 * stream of the host has started */
static void check_kernels(st_side_t *side, unsigned uses)
{
    int is_device        = (getenv("ST_TEST_STREAM") != NULL);
    ucp_st_stats_t stats = st_stats(side);

    if (task.is_kernel) {
        CU_ASSERT(stats.launches >= (is_device ? uses : 0));
        CU_ASSERT_EQUAL(stats.proxied, is_device ? 0 : uses);
        CU_ASSERT_EQUAL(stats.copies, 0);
    }
}

/* Starts a use on both sides; copies are held, if at all, until it was seen
 * that the worker goes on */
static void use_near(st_pair_t *pair, const ucp_st_op_h *ops)
{
    unsigned long held = rt_counts(gpu.rt).held;
    int is_held        = (task.mode == MODE_HELD);
    int i;

    gpu_hold(&gpu, is_held ? STANDIN_HOLD_COPY : 0);
    for (i = 0; i < 2; ++i) {
        st_use(&pair->side[i], ops[i]);
    }
    if (is_held) {
        gpu_until_held(&gpu, held);
        gpu_check_goes_on(&pair->side[0]);
        gpu_check_goes_on(&pair->side[1]);
        gpu_hold(&gpu, 0);
    }
    st_pair_sync(pair);
}

/* A pair whose sides are both in this process, matched */
static void near_init(st_pair_t *pair, gpu_place_t *places, ucp_st_op_h *ops)
{
    int i;

    st_pair_init(pair);
    for (i = 0; i < 2; ++i) {
        gpu_place_get(&gpu, &places[i], task.places[i], LENGTH, SKIP);
        ops[i] = make_op(&pair->side[i], &places[i], (i == 0) == task.is_send);
    }
    st_match_ok(ops[0], ops[1]);
}

static void near_end(st_pair_t *pair, gpu_place_t *places, ucp_st_op_h *ops)
{
    st_free2(ops[0], ops[1]);
    st_pair_cleanup(pair);
    gpu_place_put(&gpu, &places[0]);
    gpu_place_put(&gpu, &places[1]);
}

static void run_near(void)
{
    int is_send = task.is_send;
    st_pair_t pair;
    gpu_place_t places[2];
    ucp_st_op_h ops[2];
    uint64_t k;
    int i;

    near_init(&pair, places, ops);
    check_op(ops[0]);
    check_op(ops[1]);
    for (k = 0; k < USES; ++k) {
        gpu_fill(places[is_send ? 0 : 1].buffer, task.length, k);
        use_near(&pair, ops);
        CU_ASSERT_TRUE(gpu_check(places[is_send ? 1 : 0].buffer, task.length,
                                 k));
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(st_stats(&pair.side[i]).staged,
                        num_staged(task.places[i], 1));
    }
    check_opens(0);
    near_end(&pair, places, ops);
}

static int is_copying(ucp_st_op_h op)
{
    ucp_st_direct_stream_t *stream = ucp_st_direct_queue(op->queue);
    int result;

    (void)pthread_mutex_lock(&stream->lock);
    result = ucp_st_direct_op(op)->is_copying;
    (void)pthread_mutex_unlock(&stream->lock);
    return result;
}

/* One side fails while copies take long: no wait passes, and the other side is
 * told behind its own copy, as it may reuse what both have then */
static void run_fails(void)
{
    unsigned long held = rt_counts(gpu.rt).held;
    st_pair_t pair;
    gpu_place_t places[2];
    ucp_st_op_h ops[2];
    unsigned i, k;
    double start;

    near_init(&pair, places, ops);
    gpu_hold(&gpu, STANDIN_HOLD_COPY);
    for (i = 0; i < 2; ++i) {
        st_use(&pair.side[i], ops[i]);
    }
    gpu_until_held(&gpu, held);
    while (!is_copying(ops[0])) {
        (void)sched_yield();
    }
    start = ucp_st_worker_now();
    ucp_st_worker_lock(pair.side[0].worker);
    ucp_st_op_fail(ops[0], UCS_ERR_IO_ERROR);
    ucp_st_worker_unlock(pair.side[0].worker);
    /* A wait that is to pass does so after two seconds in any case */
    for (k = 0; (k < 20) && (ucp_st_worker_now() < (start + 1)); ++k) {
        for (i = 0; i < 2; ++i) {
            (void)ucp_st_worker_progress(pair.side[i].worker);
            CU_ASSERT_EQUAL(ucp_st_queue_query(pair.side[i].queue, NULL),
                            UCS_INPROGRESS);
        }
        CU_ASSERT_EQUAL(ucp_st_op_free(ops[0]), UCS_ERR_BUSY);
        CU_ASSERT_EQUAL(gpu_op_status(ops[1]), UCS_OK);
    }
    gpu_hold(&gpu, 0);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(pair.side[0].queue, NULL),
                    UCS_ERR_IO_ERROR);
    while (gpu_op_status(ops[1]) == UCS_OK) {
        (void)ucp_st_worker_progress(pair.side[1].worker);
    }
    /* Both pieces were copied: the use is complete there */
    (void)ucp_st_queue_wait(pair.side[1].queue, NULL);
    near_end(&pair, places, ops);
}

/** This process's side of two. */
typedef struct {
    st_far_t  far;
    st_side_t side;
    int       where;
    int       is_send;
    gpu_place_t   place;
} life_t;

static void life_init(life_t *life)
{
    life->where   = task.places[task.is_second];
    life->is_send = (task.is_send != task.is_second);
    st_side_init(&life->side);
    CU_ASSERT_EQUAL_FATAL(st_far_connect(&life->far, life->side.worker,
                                         &life->side.peer), UCS_OK);
}

/* Whether this side opens the other one's memory: it is in a device that this
 * process has, and which its own one reaches */
static int opens(void)
{
    int other = task.places[!task.is_second];

    return !task.is_staged && (other >= 0) &&
           (!task.is_second || (task.second_has == 0) ||
            (other < task.second_has));
}

/* ... or has it registered, which takes as long */
static int registers(void)
{
    return task.is_kernel && (task.places[!task.is_second] == GPU_SHARED);
}

/* Until both sides have given up the operations, which needs calls of both */
static void await_freed(life_t *life)
{
    do {
        (void)ucp_st_worker_progress(life->side.worker);
    } while (st_stats(&life->side).freed > 0);
}

/* ... and what was open is closed */
static void await_closed(life_t *life)
{
    standin_counts_t all;

    await_freed(life);
    do {
        (void)sched_yield();
        all = rt_counts(gpu.rt);
    } while (all.closes != all.opens);
}

/* At the exit, behind the library's handler: no thread is about to close */
static void check_closed(void)
{
    standin_counts_t all = rt_counts(gpu.rt);

    if (all.closes != all.opens) {
        fprintf(stderr, "%lu of %lu handles are open at the exit\n",
                all.opens - all.closes, all.opens);
        _exit(1);
    }
}

/* A copy goes on while a stream waits and memory is to be closed, which waits
 * for the streams of devices: it is not begun */
static void check_copies(life_t *life, ucp_st_op_h ops[2])
{
    static uint8_t copy[64];
    uint64_t gate = 0;
    unsigned long closes;

    st_hold(&life->side, &gate);
    st_free(ops[0]);
    st_free(ops[1]);
    await_freed(life);
    closes = rt_counts(gpu.rt).closes;
    CU_ASSERT_EQUAL(ucs_gstream_memory_copy(copy, life->place.buffer,
                                            sizeof(copy)), UCS_OK);
    CU_ASSERT((rt_counts(gpu.rt).closes == closes) ||
              (getenv("ST_TEST_STREAM") == NULL));
    st_let_go(&gate);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(life->side.stream), UCS_OK);
}

static ucs_status_t await_match(life_t *life, ucp_st_op_h op)
{
    ucs_status_t status;

    while ((status = ucp_st_match_test(op)) == UCS_INPROGRESS) {
        (void)ucp_st_worker_progress(life->side.worker);
    }
    return status;
}

/* By kernels a match is complete when all is open: a start is refused before */
static void match_held(life_t *life, const ucp_st_op_h *ops,
                       unsigned long before)
{
    CU_ASSERT_EQUAL(ucp_st_imatchall(ops, 2), UCS_OK);
    while (((rt_counts(gpu.rt).held == before) && (opens() || registers())) ||
           (ops[0]->state != UCP_ST_OP_MATCHED)) {
        (void)ucp_st_worker_progress(life->side.worker);
    }
    if (task.is_kernel) {
        CU_ASSERT(ucp_st_match_test(ops[0]) == UCS_INPROGRESS);
        CU_ASSERT(ucp_st_enqueue_start(life->side.queue, ops[0]) ==
                  UCS_ERR_NOT_CONNECTED);
    }
}

/* Memory is given back between operations, and what comes next is likely to
 * have the same address */
static void run_round(life_t *life, unsigned round)
{
    standin_counts_t before = rt_counts(gpu.rt);
    ucp_st_op_h ops[2];
    uint64_t k;

    gpu_place_get(&gpu, &life->place, life->where, LENGTH, SKIP);
    ops[0] = make_op(&life->side, &life->place, life->is_send);
    ops[1] = make_op(&life->side, &life->place, life->is_send);
    /* Which may take long */
    gpu_hold(&gpu, STANDIN_HOLD_OPEN | STANDIN_HOLD_REGISTER);
    if (gpu.is_real) {
        CU_ASSERT_EQUAL(ucp_st_matchall(ops, 2, NULL), UCS_OK);
    } else {
        match_held(life, ops, before.held);
    }
    check_op(ops[0]);
    gpu_check_goes_on(&life->side);
    gpu_hold(&gpu, 0);
    CU_ASSERT_EQUAL(await_match(life, ops[0]), UCS_OK);
    CU_ASSERT_EQUAL(await_match(life, ops[1]), UCS_OK);
    for (k = 0; k < USES; ++k) {
        if (life->is_send) {
            gpu_fill(life->place.buffer, task.length, (round * USES) + k);
        }
        st_use(&life->side, ops[k % 2]);
        st_sync(&life->side);
        CU_ASSERT_TRUE(gpu_check(life->place.buffer, task.length,
                                 (round * USES) + k));
        CU_ASSERT_TRUE_FATAL(st_far_meet(&life->far));
    }
    /* Once for both operations; a side that copies nothing may be late */
    check_opens((unsigned)before.opens + (unsigned)opens());
    check_copies(life, ops);
    if (task.is_second && (round == (ROUNDS - 1))) {
        await_freed(life); /* the exit follows */
    } else {
        await_closed(life);
    }
    CU_ASSERT_TRUE_FATAL(st_far_meet(&life->far));
    gpu_place_put(&gpu, &life->place);
}

static void run_far(life_t *life)
{
    unsigned i;

    for (i = 0; i < ROUNDS; ++i) {
        run_round(life, i);
    }
    CU_ASSERT_EQUAL(st_stats(&life->side).staged,
                    num_staged(life->where, 2 * ROUNDS));
    check_opens(ROUNDS * (unsigned)opens());
    check_kernels(&life->side, ROUNDS * USES);
    st_side_cleanup(&life->side);
}

/* An operation that is matched, on a buffer that is got for it */
static ucp_st_op_h life_make(life_t *life)
{
    gpu_place_get(&gpu, &life->place, life->where, LENGTH, SKIP);
    return make_op(&life->side, &life->place, life->is_send);
}

static ucp_st_op_h life_match(life_t *life)
{
    ucp_st_op_h op = life_make(life);

    CU_ASSERT_EQUAL(ucp_st_match(op), UCS_OK);
    check_op(op);
    CU_ASSERT_EQUAL(await_match(life, op), UCS_OK);
    return op;
}

/* Both have come here: the second process stays, until it is killed */
static void life_meet_last(life_t *life)
{
    CU_ASSERT_TRUE_FATAL(st_far_meet(&life->far));
    while (task.is_second) {
        pause();
    }
}

/* The second process is killed while its memory is open here */
static void run_dies(life_t *life)
{
    ucs_status_t status;
    ucp_st_op_h op = life_match(life);

    check_opens((unsigned)opens());
    life_meet_last(life);
    st_far_kill(&life->far);
    st_use(&life->side, op);
    status = ucp_st_queue_wait(life->side.queue, NULL);
    CU_ASSERT_TRUE(st_far_is_death(status));
    st_free(op);
    await_closed(life);
    st_side_cleanup(&life->side);
    gpu_place_put(&gpu, &life->place);
}

/* The second process is killed while a copy of this one, which makes all, takes
 * long: the wait passes, as the copy may lie behind it in a hardware queue. The
 * operation stays until the copy is over. */
static void run_stuck(life_t *life)
{
    unsigned long held = rt_counts(gpu.rt).held;
    ucs_status_t status;
    ucp_st_op_h op = life_match(life);

    if (!task.is_second) {
        check_opens((unsigned)opens());
        gpu_hold(&gpu, STANDIN_HOLD_COPY);
    }
    st_use(&life->side, op);
    life_meet_last(life);
    gpu_until_held(&gpu, held);
    gpu_check_goes_on(&life->side);
    st_far_kill(&life->far);
    status = ucp_st_queue_wait(life->side.queue, NULL);
    CU_ASSERT_TRUE(st_far_is_death(status));
    CU_ASSERT_EQUAL(ucp_st_op_free(op), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(rt_counts(gpu.rt).closes, 0);
    gpu_hold(&gpu, 0);
    do {
        (void)ucp_st_worker_progress(life->side.worker);
        status = ucp_st_op_free(op);
    } while (status == UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(status, UCS_OK);
    await_closed(life);
    st_side_cleanup(&life->side);
    gpu_place_put(&gpu, &life->place);
}

/* Memory is gone before it is opened, or is said to be elsewhere */
static void run_gone(life_t *life)
{
    int has_lied   = (task.mode == MODE_LIES);
    ucp_st_op_h op = life_make(life);

    op->ipc_key->offset += (uint64_t)(has_lied && task.is_second) << 40;
    if (task.is_second && !has_lied) {
        st_hook_hold(life->side.worker->uuid, 0); /* the offer comes later */
    }
    CU_ASSERT_EQUAL(ucp_st_imatchall(&op, 1), UCS_OK);
    if (task.is_second && !has_lied) {
        while (op->offered == 0) {
            (void)sched_yield();
        }
        gpu_place_put(&gpu, &life->place);
        st_hook_am_send(NULL);
    }
    CU_ASSERT_TRUE_FATAL(st_far_meet(&life->far));
    while (gpu_op_status(op) == UCS_OK) {
        (void)ucp_st_worker_progress(life->side.worker);
    }
    CU_ASSERT_EQUAL(gpu_op_status(op),
                    has_lied ? UCS_ERR_INVALID_PARAM : UCS_ERR_IO_ERROR);
    check_opens((unsigned)(task.is_second || has_lied));
    st_free(op);
    await_closed(life);
    CU_ASSERT_TRUE_FATAL(st_far_meet(&life->far));
    st_side_cleanup(&life->side);
    if (!task.is_second || has_lied) {
        gpu_place_put(&gpu, &life->place);
    }
}

static void life_end(life_t *life, ucp_st_op_h op)
{
    st_free(op);
    await_freed(life);
    gpu_hold(&gpu, 0);
    CU_ASSERT_TRUE_FATAL(st_far_meet(&life->far));
    st_side_cleanup(&life->side);
    gpu_place_put(&gpu, &life->place);
}

/* The match ends, though the other side never says that all is open there */
static void run_leaves(life_t *life)
{
    ucp_st_op_h op = life_make(life);

    gpu_hold(&gpu, task.is_second ? STANDIN_HOLD_OPEN | STANDIN_HOLD_REGISTER :
                                    0);
    CU_ASSERT_EQUAL(ucp_st_imatchall(&op, 1), UCS_OK);
    while (task.is_second ? (rt_counts(gpu.rt).held == 0) :
                            (ucp_st_match_test(op) != UCS_OK)) {
        (void)ucp_st_worker_progress(life->side.worker);
    }
    life_end(life, op);
}

static void run_refused(life_t *life)
{
    ucp_st_op_h op = life_make(life);

    CU_ASSERT_EQUAL(ucp_st_match(op), UCS_ERR_UNSUPPORTED);
    life_end(life, op);
}

static void task_start(st_far_t *far)
{
    char text[128];

    snprintf(text, sizeof(text), "%d %d %d %d %d %d %d %d %d %u",
             task.is_second, task.mode, task.is_hip, task.places[0],
             task.places[1], task.is_send, task.is_staged, task.is_kernel,
             task.second_has, task.length);
    st_far_start(far, text);
}

/* Before a runtime is loaded */
static void set_environment(void)
{
    if (task.is_second && (task.second_has > 0)) {
        setenv("STANDIN_DEVICES", "1", 1);
    }
    setenv("ST_LANE", "direct", 1);
    setenv("UCX_ST_LANES", "direct", 1);
    setenv("UCX_MM_ERROR_HANDLING", "y", 1);
    setenv("UCX_TLS", "posix,self", 1);
    setenv("UCX_ST_DIRECT_GPU_TIER", task.is_kernel ? "kernel" : "service", 1);
}

/* In a process that a case, or another such process, has started */
static void run_process(void)
{
    static void (*const runs[])(life_t *life) = {
        [MODE_FAR]     = run_far,
        [MODE_DIES]    = run_dies,
        [MODE_STUCK]   = run_stuck,
        [MODE_GONE]    = run_gone,
        [MODE_LIES]    = run_gone,
        [MODE_LEAVES]  = run_leaves,
        [MODE_REFUSED] = run_refused
    };
    life_t life = {.where = 0};

    CU_ASSERT_EQUAL_FATAL(
            sscanf(st_far_task(&life.far), "%d %d %d %d %d %d %d %d %d %u",
                   &task.is_second, &task.mode, &task.is_hip, &task.places[0],
                   &task.places[1], &task.is_send, &task.is_staged,
                   &task.is_kernel, &task.second_has, &task.length), 10);
    set_environment();
    if (!task.is_second && (task.mode >= MODE_FAR)) {
        task.is_second = 1;
        task_start(&life.far);
        task.is_second = 0;
    }
    gpu.is_hip = task.is_hip;
    gpu_load(&gpu);
    (void)atexit(check_closed);
    /* A kernel needs a stream of its buffer's device */
    gpu_set_device(&gpu, task.is_kernel && (task.places[task.is_second] > 0));
    if (task.mode < MODE_FAR) {
        (task.mode == MODE_FAILS ? run_fails : run_near)();
        return;
    }
    life_init(&life);
    runs[task.mode](&life);
    if (!task.is_second && (life.far.fd >= 0)) { /* it was not killed */
        st_far_end(&life.far);
    }
}

/* `stream` NULL: those of the host */
static void run_case(task_t to_do, const char *stream)
{
    char *before = st_env_set("ST_TEST_STREAM", stream);
    st_far_t far;

    task        = to_do;
    task.length = (to_do.length > 0) ? to_do.length : LENGTH;
    task_start(&far);
    st_far_end(&far);
    close(far.fd);
    st_env_restore("ST_TEST_STREAM", before);
}

/* A real GPU is the only one, perhaps, and holds nothing for a case */
static int is_possible(const task_t *to_do)
{
    int is_held = (to_do->mode == MODE_HELD) || (to_do->mode == MODE_FAILS) ||
                  (to_do->mode == MODE_STUCK) || (to_do->mode == MODE_LEAVES);

    if ((getenv("ST_HIP_DIR") == NULL) && (getenv("ST_CUDA_DIR") == NULL)) {
        return 1;
    }
    if (is_held || (to_do->places[0] > 0) || (to_do->places[1] > 0)) {
        st_cunit_skip("needs a stand-in, or two devices");
        return 0;
    }
    return 1;
}

/* On both runtimes; where the sides differ each runtime has its own direction.
 * With ST_TEST_STREAM on that one alone, in both directions. */
static void run_both(task_t to_do)
{
    int is_same      = (to_do.places[0] == to_do.places[1]);
    const char *only = getenv("ST_TEST_STREAM");
    int count        = (is_same || (only == NULL)) ? 2 : 4;
    const char *name;
    int i;

    if (!is_possible(&to_do)) {
        return;
    }
    for (i = 0; i < count; ++i) {
        to_do.is_hip  = i & 1;
        to_do.is_send = (i & 2) ? !to_do.is_hip : to_do.is_hip;
        name          = to_do.is_hip ? "hip" : "cuda";
        if ((only == NULL) || !strcmp(only, name)) {
            run_case(to_do, name);
        }
    }
}

#define CASE(_name, ...) \
    ST_CASE_CALL(_name, run_both((task_t){__VA_ARGS__}))
#define CASE_KERNEL(_name, _mode, _first, _second) \
    CASE(_name, .mode = _mode, .places = {_first, _second}, .is_kernel = 1)

/* In one process a pointer is enough */
CASE(near, .mode = MODE_NEAR, .places = {0, 0})
CASE(near_peers, .mode = MODE_NEAR, .places = {0, 1})
CASE(near_host, .mode = MODE_NEAR, .places = {0, GPU_HOST})
CASE(near_peers_kernel, .mode = MODE_NEAR, .places = {0, 1}, .is_kernel = 1)
CASE(near_short, .mode = MODE_NEAR, .length = SHORT, .is_staged = 1)

/* Both sides open the other one's memory, and copy */
CASE(far, .mode = MODE_FAR, .places = {0, 0})
CASE(far_peers, .mode = MODE_FAR, .places = {0, 1})
CASE(far_short, .mode = MODE_FAR, .length = SHORT, .is_staged = 1)

/* One side copies: memory of the host is not reached from elsewhere, unless it
 * is shared */
CASE(far_host, .mode = MODE_FAR, .places = {0, GPU_HOST})
CASE(far_shared, .mode = MODE_FAR, .places = {0, GPU_SHARED})

/* On tier K: one kernel a start, whose blocks may have to run one by one */
CASE(leaves, .mode = MODE_LEAVES, .is_kernel = 1)
CASE(far_kernel, .mode = MODE_FAR, .is_kernel = 1)
CASE(far_kernel_short, .mode = MODE_FAR, .length = SHORT, .is_kernel = 1)

/* ... also of memory of the host that both processes map and register */
CASE_KERNEL(leaves_shared, MODE_LEAVES, GPU_SHARED, 0)
CASE_KERNEL(far_kernel_shared, MODE_FAR, 0, GPU_SHARED)
CASE_KERNEL(far_kernel_shares, MODE_FAR, GPU_SHARED, GPU_SHARED)
CASE(far_kernel_shared_short, .mode = MODE_FAR, .places = {GPU_SHARED, 0},
     .length = SHORT, .is_kernel = 1)

/* The second process does not have the device of the first one's buffer */
CASE(far_unseen, .mode = MODE_FAR, .places = {1, 0}, .second_has = 1)

/* With a setting of the stand-ins */
static void run_set(const char *name, const char *value, task_t to_do)
{
    char *before = st_env_set(name, value);

    run_both(to_do);
    st_env_restore(name, before);
}

#define CASE_SET(_name, _set, _value, ...) \
    ST_CASE_CALL(_name, run_set(_set, _value, (task_t){__VA_ARGS__}))

/* Neither reaches the other's */
CASE_SET(no_peers_near, "STANDIN_PEER", "0", .mode = MODE_NEAR,
         .places = {0, 1}, .is_staged = 1)
CASE_SET(no_peers, "STANDIN_PEER", "0", .mode = MODE_FAR, .places = {0, 1},
         .is_staged = 1)
CASE_SET(no_peers_same, "STANDIN_PEER", "0", .mode = MODE_FAR)

CASE_SET(far_kernel_elsewhere, "STANDIN_OFFSET", "1", .mode = MODE_FAR,
         .places = {GPU_SHARED, GPU_SHARED}, .is_kernel = 1)

/* Two devices of two processes, if both reach the other one; no other memory of
 * the host, and nothing without kernels */
CASE(far_peers_kernel, .mode = MODE_FAR, .places = {0, 1}, .is_kernel = 1)
CASE_SET(no_peers_kernel, "STANDIN_PEER", "0", .mode = MODE_REFUSED,
         .places = {0, 1}, .is_kernel = 1)
CASE(no_host, .mode = MODE_REFUSED, .places = {0, GPU_HOST}, .is_kernel = 1)
CASE_KERNEL(no_pinned, MODE_REFUSED, 0, GPU_PINNED)
CASE_KERNEL(no_managed, MODE_REFUSED, GPU_MANAGED, 0)
CASE_SET(no_modules, "STANDIN_MODULES", "0", .mode = MODE_REFUSED,
         .is_kernel = 1)
CASE_SET(far_kernel_1_block, "STANDIN_SMS", "1", .mode = MODE_FAR,
         .is_kernel = 1)

/* The flag that opens memory has another number from HIP 6 on */
CASE_SET(hip_6, "STANDIN_VERSION", "60443484", .mode = MODE_FAR)

/* Parts of one device, which have its place on the PCI bus, and do not reach
 * each other */
static void run_parts(void)
{
    char *peer = st_env_set("STANDIN_PEER", "0");

    run_set("STANDIN_MIG", "1", (task_t){.mode = MODE_FAR, .places = {0, 1},
                                         .is_staged = 1});
    run_set("STANDIN_MIG", "1", (task_t){.mode = MODE_FAR, .places = {1, 1}});
    st_env_restore("STANDIN_PEER", peer);
}

ST_CASE_CALL(parts, run_parts())
/* Streams of the host move such pairs themselves */
static void run_on_host(task_t to_do)
{
    const char *only = getenv("ST_TEST_STREAM");

    if (!is_possible(&to_do)) {
        return;
    }
    to_do.is_hip = (only != NULL) && !strcmp(only, "hip");
    run_case(to_do, NULL);
}

#define CASE_ON_HOST(_name, ...) \
    ST_CASE_CALL(_name, run_on_host((task_t){__VA_ARGS__}))
CASE_ON_HOST(on_host, .mode = MODE_FAR)
CASE_ON_HOST(on_host_near, .mode = MODE_NEAR, .places = {0, GPU_HOST})
CASE_ON_HOST(on_host_kernel, .mode = MODE_FAR, .is_kernel = 1)
CASE_ON_HOST(on_host_kernel_near, .mode = MODE_NEAR, .is_kernel = 1)

/* ... while the runtime takes long: of memory that it knows, or not */
CASE(held, .mode = MODE_HELD, .places = {0, 0})
CASE(held_host, .mode = MODE_HELD, .places = {0, GPU_HOST})
CASE_ON_HOST(on_host_held, .mode = MODE_HELD)

CASE(fails, .mode = MODE_FAILS, .places = {0, 0})

CASE(stuck, .mode = MODE_STUCK, .places = {1, 0}, .second_has = 1)
CASE(stuck_host, .mode = MODE_STUCK, .places = {GPU_HOST, 0})
CASE_ON_HOST(on_host_stuck, .mode = MODE_STUCK, .places = {1, 0},
             .second_has = 1)

CASE(dies, .mode = MODE_DIES, .places = {0, 0})
CASE(gone, .mode = MODE_GONE, .places = {0, 0})
CASE(dies_kernel, .mode = MODE_DIES, .is_kernel = 1)
CASE_KERNEL(dies_kernel_shared, MODE_DIES, 0, GPU_SHARED)
CASE_KERNEL(dies_kernel_shares, MODE_DIES, GPU_SHARED, GPU_SHARED)
CASE(gone_kernel, .mode = MODE_GONE, .is_kernel = 1)
CASE(lies_kernel, .mode = MODE_LIES, .is_kernel = 1)
CASE(lies, .mode = MODE_LIES, .places = {0, 0})

ST_FAR_SUITE("st_gpu_ipc", run_process)
