/* SPDX-License-Identifier: BSD-3-Clause */
/* st_gpu.c - a pair of sides with streams of a GPU. */
#include "st_gpu.h"
#include "st_cunit.h"

#include <ucs_gstream_memory.h>

#include <CUnit/CUnit.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

void gpu_load(gpu_t *gpu)
{
    gpu->rt      = rt_open(gpu->is_hip);
    gpu->is_real = rt_is_real(gpu->rt);
}

void gpu_set_device(const gpu_t *gpu, int device)
{
    CU_ASSERT_EQUAL(rt_init(gpu->rt), RT_OK);
    CU_ASSERT_EQUAL(rt_set_device(gpu->rt, device), RT_OK);
}

int gpu_is_open(void)
{
    const char *protect = getenv("STANDIN_PROTECT");

    return (protect != NULL) && !strcmp(protect, "0");
}

uint8_t *gpu_alloc_on(const gpu_t *gpu, int device, size_t length)
{
    void *memory = NULL;

    gpu_set_device(gpu, device);
    CU_ASSERT_EQUAL_FATAL(rt_alloc(gpu->rt, &memory, length), RT_OK);
    gpu_set_device(gpu, 0);
    return memory;
}

uint8_t *gpu_alloc(const gpu_t *gpu, size_t length)
{
    return gpu_alloc_on(gpu, 0, length);
}

uint8_t *gpu_alloc_managed(const gpu_t *gpu, size_t length)
{
    void *memory = NULL;

    gpu_set_device(gpu, 0);
    CU_ASSERT_EQUAL_FATAL(rt_alloc_managed(gpu->rt, &memory, length), RT_OK);
    return memory;
}

void gpu_free(const gpu_t *gpu, uint8_t *memory)
{
    CU_ASSERT_EQUAL(rt_free(gpu->rt, memory), RT_OK);
}

void gpu_place_get(const gpu_t *gpu, gpu_place_t *place, int where,
                   size_t length, size_t skip)
{
    place->where = where;
    if (where == GPU_HOST) {
        place->start = malloc(length + skip);
        CU_ASSERT_PTR_NOT_NULL_FATAL(place->start);
    } else if (where == GPU_SHARED) {
        CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(length + skip,
                                               (void**)&place->start), UCS_OK);
    } else if (where == GPU_PINNED) {
        gpu_set_device(gpu, 0);
        place->start = rt_host_alloc(gpu->rt, length + skip);
        CU_ASSERT_PTR_NOT_NULL_FATAL(place->start);
    } else if (where == GPU_MANAGED) {
        place->start = gpu_alloc_managed(gpu, length + skip);
    } else {
        place->start = gpu_alloc_on(gpu, where, length + skip);
    }
    place->buffer = place->start + skip;
}

void gpu_place_put(const gpu_t *gpu, gpu_place_t *place)
{
    if (place->where == GPU_HOST) {
        free(place->start);
    } else if (place->where == GPU_SHARED) {
        CU_ASSERT_EQUAL(ucp_st_mem_free(place->start), UCS_OK);
    } else if (place->where == GPU_PINNED) {
        CU_ASSERT_EQUAL(rt_host_free(gpu->rt, place->start), RT_OK);
    } else {
        gpu_free(gpu, place->start);
    }
}

void gpu_fill(void *to, size_t length, uint64_t seed)
{
    uint8_t *bytes = malloc(length + 1);

    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    st_fill(bytes, length, seed);
    CU_ASSERT_EQUAL(ucs_gstream_memory_copy(to, bytes, length), UCS_OK);
    free(bytes);
}

int gpu_check(const void *from, size_t length, uint64_t seed)
{
    uint8_t *bytes = calloc(1, length + 1);
    int result;

    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    CU_ASSERT_EQUAL(ucs_gstream_memory_copy(bytes, from, length), UCS_OK);
    result = st_check(bytes, length, seed);
    free(bytes);
    return result;
}

int gpu_is_named(int is_hip)
{
    const char *name = getenv("ST_TEST_STREAM");

    return (name == NULL) || !strcmp(name, is_hip ? "hip" : "cuda");
}

void gpu_run(int is_hip, const char *lane, gpu_body_t body)
{
    gpu_t gpu        = {.is_hip = is_hip};
    const char *name = is_hip ? "hip" : "cuda";
    char *stream, *st_lane, *lanes, *errors, *tls;

    if (!gpu_is_named(is_hip)) {
        st_cunit_skip("ST_TEST_STREAM names the other runtime");
        return;
    }
    stream  = st_env_set("ST_TEST_STREAM", name);
    st_lane = st_env_set("ST_LANE", lane);
    lanes   = st_env_set("UCX_ST_LANES", lane);
    errors  = st_env_set("UCX_MM_ERROR_HANDLING", "y");
    tls     = st_env_set("UCX_TLS", ((lane != NULL) && strcmp(lane, "trig")) ?
                                            "posix,self" :
                                            "posix,self,cxi_trig");
    gpu_load(&gpu);
    st_pair_init(&gpu.pair);
    gpu.side = gpu.pair.side;
    body(&gpu);
    st_pair_cleanup(&gpu.pair);
    st_env_restore("UCX_TLS", tls);
    st_env_restore("UCX_MM_ERROR_HANDLING", errors);
    st_env_restore("UCX_ST_LANES", lanes);
    st_env_restore("ST_LANE", st_lane);
    st_env_restore("ST_TEST_STREAM", stream);
}

void gpu_check_goes_on(st_side_t *side)
{
    ucp_st_queue_h queue;
    unsigned i;

    for (i = 0; i < 10; ++i) {
        (void)ucp_st_worker_progress(side->worker);
        (void)st_stats(side);
    }
    queue = st_queue(side, side->stream);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(queue), UCS_OK);
}

ucs_status_t gpu_op_status(ucp_st_op_h op)
{
    ucp_st_op_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_op_query(op, &attr), UCS_OK);
    return attr.status;
}

ucs_status_t gpu_try_use(st_side_t *side, ucp_st_op_h op)
{
    ucs_status_t status = ucp_st_enqueue_start(side->queue, op);

    if (status == UCS_OK) {
        status = ucp_st_enqueue_wait(side->queue, op);
    }
    return (status == UCS_OK) ? ucp_st_queue_wait(side->queue, NULL) : status;
}

void gpu_hold(const gpu_t *gpu, unsigned what)
{
    if (!gpu->is_real) {
        gpu->rt->control.standin_hold(what);
    }
}

void gpu_until_held(const gpu_t *gpu, unsigned long before)
{
    while (!gpu->is_real && (rt_counts(gpu->rt).held == before)) {
        (void)sched_yield();
    }
}
