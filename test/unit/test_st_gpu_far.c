/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu_far.c - messages between kernels of the application in two
 * processes, on the stand-ins. The process of a case starts the second one.
 */
#include "st_cunit.h"
#include "st_far.h"
#include "st_gpu.h"
#include "st_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENGTH 1000
#define USES   5

/** What the processes of a case are told. */
static struct {
    int is_second;
    int is_hip;
    int is_send; /* the first one sends */
    int dies;    /* the second one is killed when it has matched */
    int is_trig; /* on lane trig */
    int where;   /* the first one's buffer; the other one's is in the device */
} task;

static gpu_t gpu; /* its runtime alone */

/** This process. */
typedef struct {
    st_far_t    far;
    st_side_t   side;
    int         is_send;
    gpu_place_t place;
    ucp_st_op_h op;
    st_kernel_t kernel;
} life_t;

static void life_init(life_t *life)
{
    life->is_send = (task.is_send != task.is_second);
    st_side_init(&life->side);
    CU_ASSERT_EQUAL_FATAL(st_far_connect(&life->far, life->side.worker,
                                         &life->side.peer), UCS_OK);
    gpu_place_get(&gpu, &life->place, task.is_second ? 0 : task.where, LENGTH,
                  0);
    life->op = (life->is_send ? st_send : st_recv)(&life->side,
                                                   life->place.buffer, LENGTH,
                                                   1);
    CU_ASSERT_EQUAL_FATAL(ucp_st_match(life->op), UCS_OK);
    st_kernel_init(&life->kernel, gpu.rt, &life->side);
}

static void life_cleanup(life_t *life)
{
    st_free(life->op);
    do {
        (void)ucp_st_worker_progress(life->side.worker);
    } while (st_stats(&life->side).freed > 0);
    st_kernel_cleanup(&life->kernel);
    if (!task.dies) {
        CU_ASSERT_TRUE_FATAL(st_far_meet(&life->far));
    }
    st_side_cleanup(&life->side);
    gpu_place_put(&gpu, &life->place);
}

/* All uses by one kernel; what that has come to */
static test_kernel_result_t use_all(life_t *life)
{
    test_kernel_op_t args = {
        .op     = st_kernel_handle(life->op),
        .what   = TEST_KERNEL_START | TEST_KERNEL_WAIT |
                  (life->is_send ? TEST_KERNEL_FILL : TEST_KERNEL_SUM),
        .rounds = USES,
        .buffer = RT_U64(life->place.buffer)
    };

    CU_ASSERT_EQUAL(ucp_st_op_post_ahead(life->op, life->kernel.queue, USES),
                    UCS_OK);
    return st_kernel_run(&life->kernel, args);
}

static void run_uses(life_t *life)
{
    test_kernel_result_t result = use_all(life);

    CU_ASSERT_EQUAL(result.start, UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(result.wait, UCP_ST_DEVICE_OK);
    CU_ASSERT_EQUAL(result.rounds, USES);
    CU_ASSERT_EQUAL(result.length, LENGTH);
    CU_ASSERT_EQUAL(result.sum, life->is_send ? 0 : USES * (USES - 1) / 2);
    CU_ASSERT_EQUAL(ucp_st_op_test(life->op), UCS_OK);
    CU_ASSERT_TRUE_FATAL(st_far_meet(&life->far));
}

/* The host makes no call of the library: a wait of a kernel ends all the same
 */
static void run_dies(life_t *life)
{
    test_kernel_result_t result;

    CU_ASSERT_TRUE_FATAL(st_far_meet(&life->far));
    while (task.is_second) {
        pause();
    }
    st_far_kill(&life->far);
    result = use_all(life);
    CU_ASSERT((result.wait == UCP_ST_DEVICE_FAILED) ||
              (result.start == UCP_ST_DEVICE_FAILED));
    CU_ASSERT_TRUE(st_far_is_death(ucp_st_op_test(life->op)));
}

static void task_start(st_far_t *far)
{
    char text[64];

    snprintf(text, sizeof(text), "%d %d %d %d %d %d", task.is_second,
             task.is_hip, task.is_send, task.dies, task.is_trig, task.where);
    st_far_start(far, text);
}

static void set_direct(void)
{
    setenv("ST_LANE", "direct", 1);
    setenv("UCX_ST_LANES", "direct", 1);
    setenv("UCX_MM_ERROR_HANDLING", "y", 1);
    setenv("UCX_TLS", "posix,self", 1);
    setenv("UCX_ST_DIRECT_GPU_TIER", "kernel", 1);
}

/* As in test_st_gpu_device */
static void set_trig(void)
{
    setenv("ST_LANE", "trig", 1);
    setenv("UCX_ST_LANES", "trig", 1);
    setenv("UCX_ST_EAGER_MAX", "0", 1);
    setenv("FI_CXIEMU_TRAP", "y", 1);
    if (task.is_hip) {
        setenv("STANDIN_VERSION", "60443484", 1);
    }
}

/* In a process that a case, or another such process, has started */
static void run_process(void)
{
    life_t life = {.is_send = 0};

    CU_ASSERT_EQUAL_FATAL(sscanf(st_far_task(&life.far), "%d %d %d %d %d %d",
                                 &task.is_second, &task.is_hip, &task.is_send,
                                 &task.dies, &task.is_trig, &task.where), 6);
    st_kernel_prepare();
    if (task.is_trig) {
        set_trig();
    } else {
        set_direct();
    }
    if (!task.is_second) {
        task.is_second = 1;
        task_start(&life.far);
        task.is_second = 0;
    }
    gpu.is_hip = task.is_hip;
    gpu_load(&gpu);
    gpu_set_device(&gpu, 0);
    life_init(&life);
    (task.dies ? run_dies : run_uses)(&life);
    life_cleanup(&life);
    if (!task.is_second && !task.dies) {
        st_far_end(&life.far);
    }
}

static void run_case(int is_hip, int is_send, int dies, int is_trig)
{
    const char *name = is_hip ? "hip" : "cuda";
    const char *only = getenv("ST_TEST_STREAM");
    char *before;
    st_far_t far;

    if ((getenv("ST_HIP_DIR") != NULL) || (getenv("ST_CUDA_DIR") != NULL) ||
        ((only != NULL) && (strcmp(only, name) != 0))) {
        st_cunit_skip("needs a stand-in, of the runtime that is named");
        return;
    }
    if (is_trig && st_env_has_provider("cxi") && !gpu_is_open()) {
        st_cunit_skip("the NIC does not reach that memory");
        return;
    }
    before       = st_env_set("ST_TEST_STREAM", name);
    task.is_hip  = is_hip;
    task.is_send = is_send;
    task.dies    = dies;
    task.is_trig = is_trig;
    task_start(&far);
    st_far_end(&far);
    close(far.fd);
    st_env_restore("ST_TEST_STREAM", before);
}

ST_CASE_CALL(uses_hip, run_case(1, 1, 0, 0))
ST_CASE_CALL(uses_cuda, run_case(0, 0, 0, 0))
static void run_shared(int is_hip, int is_send)
{
    task.where = GPU_SHARED;
    run_case(is_hip, is_send, 0, 0);
    task.where = 0;
}

ST_CASE_CALL(shared_hip, run_shared(1, 1))
ST_CASE_CALL(shared_cuda, run_shared(0, 0))
ST_CASE_CALL(dies_hip, run_case(1, 0, 1, 0))
ST_CASE_CALL(dies_cuda, run_case(0, 1, 1, 0))
ST_CASE_CALL(trig_uses_hip, run_case(1, 1, 0, 1))
ST_CASE_CALL(trig_uses_cuda, run_case(0, 0, 0, 1))
ST_CASE_CALL(trig_dies_hip, run_case(1, 0, 1, 1))
ST_CASE_CALL(trig_dies_cuda, run_case(0, 1, 1, 1))

ST_FAR_SUITE("st_gpu_far", run_process)
