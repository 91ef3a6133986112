/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_gpu_trig.c - memory of devices on lane trig: the emulated card
 * reaches what the stand-ins of the runtimes refuse to processors, and nobody
 * copies.
 */
#include "st_cunit.h"
#include "st_gpu.h"
#include "st_window.h"
#include "../integration/st_any.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

#define GPU_BYTES (1 << 20)
#define GPU_SHIFT 264 /* The buffer starts there in its allocation */
#define USES      4

/** What a case works on. */
typedef struct here {
    gpu_t       gpu; /* its runtime and its pair */
    gpu_place_t place[2];
} here_t;

typedef void (*here_body_t)(here_t *here);

static const size_t gpu_lengths[] = {
    0, 1, 8, 100, 1000, 4096, 5000, 70001, GPU_BYTES
};


/* HIP has dma-bufs from a version on; both are read when a runtime is loaded */
static void here_run(int is_hip, const char *setting, here_body_t body)
{
    here_t here  = {.gpu = {.is_hip = is_hip}};
    char *memory = st_env_set("UCX_CXI_TRIG_GPU_MEMORY", setting);
    char *stream, *lane, *lanes;

    if (setenv("STANDIN_VERSION", "60443484", 1) != 0) {
        CU_FAIL("setenv");
    }
    stream = st_env_set("ST_TEST_STREAM", is_hip ? "hip" : "cuda");
    lane   = st_env_set("ST_LANE", "trig");
    lanes  = st_env_set("UCX_ST_LANES", "trig");
    gpu_load(&here.gpu);
    gpu_set_device(&here.gpu, 0);
    st_pair_init(&here.gpu.pair);
    here.gpu.side = here.gpu.pair.side;
    body(&here);
    st_pair_cleanup(&here.gpu.pair);
    st_env_restore("UCX_ST_LANES", lanes);
    st_env_restore("ST_LANE", lane);
    st_env_restore("ST_TEST_STREAM", stream);
    st_env_restore("UCX_CXI_TRIG_GPU_MEMORY", memory);
}

/* Where the NIC reaches that memory */
static void here_reach(int is_hip, here_body_t body)
{
    if (st_env_has_provider("cxi") && !gpu_is_open()) {
        st_cunit_skip("the NIC does not reach that memory");
        return;
    }
    here_run(is_hip, NULL, body);
}

static void here_get(here_t *here, int i, int on_gpu)
{
    gpu_place_get(&here->gpu, &here->place[i], on_gpu ? 0 : GPU_HOST, GPU_BYTES,
                  GPU_SHIFT);
}

static void here_put(here_t *here, int i)
{
    gpu_place_put(&here->gpu, &here->place[i]);
}

/* Uses of one pair, in turn and all ahead of the receive */
static void here_pair(here_t *here, size_t length, int is_ready)
{
    st_side_t *side = here->gpu.pair.side;
    uint8_t *from   = here->place[ST_A].buffer;
    uint8_t *to     = here->place[ST_B].buffer;
    ucp_st_op_h op[2];
    uint64_t k;

    op[ST_A] = is_ready ? st_rsend(&side[ST_A], from, length, 0) :
                          st_send(&side[ST_A], from, length, 0);
    op[ST_B] = st_recv(&side[ST_B], to, length, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    for (k = 0; k < USES; ++k) {
        gpu_fill(from, length, k);
        st_start(&side[ST_B], op[ST_B]);
        if (is_ready) {
            st_sync(&side[ST_B]); /* The start has passed */
        }
        st_use(&side[ST_A], op[ST_A]);
        st_wait(&side[ST_B], op[ST_B]);
        st_pair_sync(&here->gpu.pair);
        CU_ASSERT_TRUE(gpu_check(to, length, k));
    }
    st_free2(op[ST_A], op[ST_B]);
    st_drain(&here->gpu.pair);
}

static void here_pairs(here_t *here)
{
    unsigned i, k;

    for (i = 1; i < 4; ++i) {
        here_get(here, ST_A, (i & 1) != 0);
        here_get(here, ST_B, (i & 2) != 0);
        for (k = 0; k < ucs_static_array_size(gpu_lengths); ++k) {
            here_pair(here, gpu_lengths[k], 0);
            here_pair(here, gpu_lengths[k], 1);
        }
        here_put(here, ST_A);
        here_put(here, ST_B);
    }
}

static void here_zero_copy(here_t *here)
{
    ucp_st_stats_t stats;
    int i;

    here_pairs(here);
    for (i = 0; i < 2; ++i) {
        stats = st_stats(&here->gpu.pair.side[i]);
        CU_ASSERT_EQUAL(stats.staged, 0);
        CU_ASSERT_EQUAL(stats.lanes[UCP_ST_LANE_TRIG].matches, stats.matches);
    }
}

ST_CASE_CALL(reached_hip, here_reach(1, here_zero_copy))
ST_CASE_CALL(reached_cuda, here_reach(0, here_zero_copy))

/* The same on streams of the host */
static void here_on_host(here_t *here)
{
    char *stream    = st_env_set("ST_TEST_STREAM", NULL);
    st_pair_t outer = here->gpu.pair;
    int i;

    for (i = 0; i < 2; ++i) {
        st_more_init(&here->gpu.pair.side[i], &outer.side[i]);
        CU_ASSERT_EQUAL(ucs_gstream_type(here->gpu.pair.side[i].stream),
                        UCS_GSTREAM_TYPE_HOST);
    }
    here_zero_copy(here);
    for (i = 0; i < 2; ++i) {
        st_more_cleanup(&here->gpu.pair.side[i]);
    }
    here->gpu.pair = outer;
    st_env_restore("ST_TEST_STREAM", stream);
}

ST_CASE_CALL(on_host_hip, here_reach(1, here_on_host))
ST_CASE_CALL(on_host_cuda, here_reach(0, here_on_host))

/* Memory that is freed and allocated again is not taken for the old one */
static void here_again(here_t *here)
{
    unsigned i;

    for (i = 0; i < 6; ++i) {
        here_get(here, ST_A, 1);
        here_get(here, ST_B, 1);
        here_pair(here, (i % 2) ? 100 : 70001, 0);
        here_put(here, ST_A);
        here_put(here, ST_B);
    }
    CU_ASSERT_EQUAL(st_stats(&here->gpu.pair.side[ST_A]).staged, 0);
}

ST_CASE_CALL(again_hip, here_reach(1, here_again))
ST_CASE_CALL(again_cuda, here_reach(0, here_again))

/* A setting, or a provider, that does not have it: by way of the host */
static void here_refused(here_t *here)
{
    here_pairs(here);
    CU_ASSERT_EQUAL(st_stats(&here->gpu.pair.side[ST_A]).staged,
                    2 * 2 * (ucs_static_array_size(gpu_lengths) - 1));
    CU_ASSERT_EQUAL(st_stats(&here->gpu.pair.side[ST_B]).staged,
                    2 * 2 * (ucs_static_array_size(gpu_lengths) - 1));
}

ST_CASE_CALL(off_hip, here_run(1, "n", here_refused))
ST_CASE_CALL(off_cuda, here_run(0, "n", here_refused))

/* What the driver of a real device gives an emulated card: a descriptor that it
 * cannot map. Settings of the stand-ins are read once. */
static void gpu_not_mapped(int is_hip, const char *tcase)
{
    if (st_env_has_provider("cxi") && gpu_is_open()) {
        st_cunit_skip("the NIC reaches all memory");
    } else if (rt_is_child(tcase, "STANDIN_DMABUF=2")) {
        here_run(is_hip, NULL, here_refused);
    }
}

ST_CASE_CALL(not_mapped_hip, gpu_not_mapped(1, "not_mapped_hip"))
ST_CASE_CALL(not_mapped_cuda, gpu_not_mapped(0, "not_mapped_cuda"))

/* One side's NIC does not, the other one's does */
static void here_mixed(here_t *here)
{
    st_side_t own, *side = here->gpu.pair.side;
    char *setting = st_env_set("UCX_CXI_TRIG_GPU_MEMORY", "n");
    st_pair_t outer = here->gpu.pair;

    st_side_init(&own);
    st_env_restore("UCX_CXI_TRIG_GPU_MEMORY", setting);
    own.peer         = st_side_peer(&own, &side[ST_A]);
    side[ST_A].peer  = st_side_peer(&side[ST_A], &own);
    side[ST_B]       = own;
    here_get(here, ST_A, 1);
    here_get(here, ST_B, 1);
    here_pair(here, 70001, 0);
    here_pair(here, 100, 0);
    here_put(here, ST_A);
    here_put(here, ST_B);
    CU_ASSERT_EQUAL(st_stats(&side[ST_A]).staged, 0);
    CU_ASSERT_EQUAL(st_stats(&side[ST_B]).staged, 2);
    st_side_leave(&side[ST_B], &side[ST_A]);
    here->gpu.pair = outer;
}

ST_CASE_CALL(mixed, here_reach(0, here_mixed))

/* A window of a side, in an allocation */
static void window_init(here_t *here, int i, st_window_t *window)
{
    *window = (st_window_t){
        .side   = &here->gpu.pair.side[i],
        .memory = here->place[i].buffer,
        .length = GPU_BYTES
    };
    CU_ASSERT_EQUAL_FATAL(ucp_st_mem_reg(window->side->worker, window->memory,
                                         window->length, &window->memh),
                          UCS_OK);
}

/* A put and a get of one length, and a signal in memory of the host */
static void window_use(st_window_t windows[2], st_window_t signals[2],
                       size_t length)
{
    ucp_st_rma_params_t params    = st_rma_params(&windows[ST_A], 0, length);
    ucp_st_signal_params_t signal = st_signal_params(&signals[ST_A], 0, 1);
    static uint64_t seed          = 1;
    uint64_t zero                 = 0;

    gpu_fill(windows[ST_A].memory, length, ++seed);
    memcpy(st_signal(&signals[ST_B], 0), &zero, sizeof(zero));
    CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(windows[ST_A].side->queue,
                                              &params, &signal), UCS_OK);
    st_wait_signal(&signals[ST_B], 0, 1);
    st_sync(windows[ST_B].side);
    CU_ASSERT_TRUE(gpu_check(windows[ST_B].memory, length, seed));
    st_quiet(&windows[ST_A]);
    st_sync(windows[ST_A].side);

    gpu_fill(windows[ST_B].memory, length, ++seed);
    st_get(&windows[ST_A], 0, length, 0);
    st_quiet(&windows[ST_A]);
    st_sync(windows[ST_A].side);
    CU_ASSERT_TRUE(gpu_check(windows[ST_A].memory, length, seed));
}

/* Windows, on either side */
static void here_windows(here_t *here)
{
    st_window_t windows[2], signals[2];
    unsigned i, k;
    int j;

    st_windows_init(&here->gpu.pair, signals, 64, 0);
    for (i = 1; i < 4; ++i) {
        for (j = 0; j < 2; ++j) {
            here_get(here, j, (i & (1u << j)) != 0);
            window_init(here, j, &windows[j]);
        }
        for (j = 0; j < 2; ++j) {
            windows[j].rkey = st_window_key(windows[j].side->peer,
                                            &windows[!j]);
        }
        for (k = 1; k < ucs_static_array_size(gpu_lengths); ++k) {
            window_use(windows, signals, gpu_lengths[k]);
        }
        for (j = 0; j < 2; ++j) {
            CU_ASSERT_EQUAL(ucp_st_rkey_destroy(windows[j].rkey), UCS_OK);
            CU_ASSERT_EQUAL(ucp_st_mem_dereg(windows[j].memh), UCS_OK);
            here_put(here, j);
        }
    }
    st_windows_cleanup(signals);
}

ST_CASE_CALL(windows_hip, here_reach(1, here_windows))
ST_CASE_CALL(windows_cuda, here_reach(0, here_windows))

/* Nobody but the NIC looks at a device's memory, so no stream waits there */
static void here_wait_refused(here_t *here)
{
    st_window_t window;
    ucp_st_wait_signal_params_t params;

    here_get(here, ST_A, 1);
    window_init(here, ST_A, &window);
    params = (ucp_st_wait_signal_params_t){
        .field_mask = UCP_ST_WAIT_SIGNAL_PARAM_FIELD_MEMH,
        .memh       = window.memh
    };
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(window.side->queue, &params),
                    UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_mem_dereg(window.memh), UCS_OK);
    here_put(here, ST_A);
}

ST_CASE_CALL(wait_refused, here_reach(1, here_wait_refused))

/* No lane has it */
static void here_window_refused(here_t *here)
{
    st_side_t *a = &here->gpu.pair.side[ST_A];
    ucp_st_mem_h memh;

    here_get(here, ST_A, 1);
    CU_ASSERT_EQUAL(ucp_st_mem_reg(a->worker, here->place[ST_A].start,
                                   GPU_BYTES, &memh), UCS_ERR_UNSUPPORTED);
    here_put(here, ST_A);
}

ST_CASE_CALL(window_refused, here_run(0, "n", here_window_refused))

ST_SUITE("st_gpu_trig")
