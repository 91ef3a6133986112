/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_device.c - operations from and to memory of devices, and buffers in
 * blocks, with the stand-ins for the runtimes of GPUs, or on a GPU.
 */
#include "st_cunit.h"
#include "st_gpu.h"
#include "st_stream.h"
#include "st_window.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

#include "core/st_op.h"
#include "core/st_worker.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH 1000

static uint8_t sent[LENGTH], received[LENGTH];

/** Lengths of messages from and to devices, and how long such a buffer is. */
static const size_t device_lengths[] = {0, 1, 100, 4096, 70000, 1 << 20};
#define DEVICE_LENGTH (1 << 20)

static uint8_t host_bytes[DEVICE_LENGTH];

/* Uses of one pair between two places */
static void device_pair(gpu_t *gpu, gpu_place_t places[2], size_t length)
{
    ucp_st_op_h op[2];
    uint64_t k;
    int i;

    op[ST_A] = st_send(&gpu->side[ST_A], places[ST_A].buffer, length, 0);
    op[ST_B] = st_recv(&gpu->side[ST_B], places[ST_B].buffer, length, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    for (k = 0; k < 3; ++k) {
        gpu_fill(places[ST_A].buffer, length, k);
        for (i = 0; i < 2; ++i) {
            st_use(&gpu->side[i], op[i]);
        }
        st_pair_sync(&gpu->pair);
        CU_ASSERT_TRUE(gpu_check(places[ST_B].buffer, length, k));
    }
    st_free2(op[ST_A], op[ST_B]);
}

/* How many of the lengths are staged: all but 0, and on lane direct those that
 * are copied from buffer to buffer in one process */
static unsigned num_staged(void)
{
    unsigned count = 0;
    unsigned k;

    for (k = 0; k < ucs_static_array_size(device_lengths); ++k) {
        count += (device_lengths[k] > 0) &&
                 ((st_lane() != UCP_ST_LANE_DIRECT) ||
                  (device_lengths[k] < (64 << 10)));
    }
    return count;
}

/* On lane direct kernels move messages between two buffers in a device */
static int has_kernels(void)
{
    const char *tier = getenv("UCX_ST_DIRECT_GPU_TIER");

    return (st_lane() == UCP_ST_LANE_DIRECT) &&
           ((tier == NULL) || strcmp(tier, "service"));
}

/* Messages from and to memory of a device: to the lane they are of the host */
static void run_device(gpu_t *gpu)
{
    ucp_st_stats_t stats;
    gpu_place_t places[2];
    unsigned i, k;

    for (i = 1; i < 4; ++i) {
        gpu_place_get(gpu, &places[ST_A], (i & 1) ? 0 : GPU_HOST, DEVICE_LENGTH,
                      0);
        gpu_place_get(gpu, &places[ST_B], (i & 2) ? 0 : GPU_HOST, DEVICE_LENGTH,
                      0);
        for (k = 0; k < ucs_static_array_size(device_lengths); ++k) {
            device_pair(gpu, places, device_lengths[k]);
        }
        gpu_place_put(gpu, &places[ST_A]);
        gpu_place_put(gpu, &places[ST_B]);
    }
    stats = st_stats(&gpu->side[ST_A]);
    CU_ASSERT_EQUAL(stats.staged, (has_kernels() ? 1 : 2) * num_staged());
    CU_ASSERT_EQUAL(stats.lanes[st_lane()].matches, stats.matches);
}

GPU_CASES(device_host, "host", run_device)
GPU_CASES(device_direct, "direct", run_device)

/* ... where threads have copies made */
static void run_service(int is_hip, gpu_body_t body)
{
    char *tier = st_env_set("UCX_ST_DIRECT_GPU_TIER", "service");

    gpu_run(is_hip, "direct", body);
    st_env_restore("UCX_ST_DIRECT_GPU_TIER", tier);
}

ST_CASE_CALL(device_service_hip, run_service(1, run_device))
ST_CASE_CALL(device_service_cuda, run_service(0, run_device))

/* Copies of rows to a device and back, each with its own distance, and of one
 * row; between two places of the host a function copies */
static void run_rows_copy(gpu_t *gpu)
{
    const ucs_gstream_rect_t to   = {24, 40, 10, 6};
    const ucs_gstream_rect_t from = {10, 24, 10, 6};
    const ucs_gstream_rect_t one  = {0, 1, 7, 1};
    ucs_gstream_h stream          = gpu->side[ST_A].stream;
    uint8_t *host                 = ucs_gstream_memory_get(LENGTH);
    uint8_t *copy                 = host + 400;
    standin_counts_t before, after;
    gpu_place_t place;
    unsigned i;

    gpu_place_get(gpu, &place, 0, DEVICE_LENGTH, 0);
    st_fill(host, LENGTH, 0);
    before = rt_counts(gpu->rt);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy2d(stream, place.buffer, host, &to),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy2d(stream, copy, place.buffer,
                                               &from), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy2d(stream, copy + 100,
                                               place.buffer + 24, &one),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy2d(stream, copy + 200, host, &to),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    after = rt_counts(gpu->rt);
    if (!gpu->is_real) {
        CU_ASSERT_EQUAL(after.copies - before.copies, 3);
        CU_ASSERT_EQUAL(after.host_funcs - before.host_funcs, 1);
    }
    for (i = 0; i < 6; ++i) {
        CU_ASSERT_EQUAL(memcmp(copy + (10 * i), host + (40 * i), 10), 0);
        CU_ASSERT_EQUAL(memcmp(copy + 200 + (24 * i), host + (40 * i), 10), 0);
    }
    CU_ASSERT_EQUAL(memcmp(copy + 100, host + 40, 7), 0);
    gpu_place_put(gpu, &place);
    ucs_gstream_memory_put(host, LENGTH);
}

GPU_CASES(rows_copy, "host", run_rows_copy)

/** A buffer whose bytes lie in blocks, or one behind the other (block 0). */
typedef struct rows {
    size_t block;
    size_t stride;
    size_t length;
} rows_t;

#define ROWS_SPAN 20000
static uint8_t rows_image[2][ROWS_SPAN];

/* Send, receive: the last one gets a part of a block, too */
static const rows_t rows_cases[][2] = {
    {{8, 40, 800}, {0, 0, 800}},   {{0, 0, 800}, {8, 40, 800}},
    {{8, 40, 800}, {8, 24, 800}},  {{1000, 6000, 3000}, {100, 101, 3000}},
    {{8, 40, 800}, {12, 50, 1200}}, {{8, 40, 8}, {100, 200, 300}},
    {{16, 48, 800}, {0, 0, 800}},  {{32, 64, 640}, {64, 80, 640}}
};

static uint8_t *rows_at(const rows_t *rows, uint8_t *image, size_t i)
{
    return &image[(rows->block == 0) ?
                          i :
                          ((i / rows->block) * rows->stride) +
                                  (i % rows->block)];
}

static ucp_st_op_h rows_op(st_side_t *side, int is_send, gpu_place_t *place,
                           const rows_t *rows)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER |
                      ((rows->block > 0) ? UCP_ST_OP_PARAM_FIELD_BLOCKS : 0),
        .buffer     = place->buffer,
        .length     = rows->length,
        .peer       = side->peer,
        .block      = rows->block,
        .stride     = rows->stride
    };

    return st_op(side, is_send, &params);
}

/* Uses of one pair; what lies between blocks stays as it was */
static void rows_pair(gpu_t *gpu, gpu_place_t places[2], const rows_t rows[2])
{
    ucp_st_op_h op[2];
    uint64_t k;
    size_t i;
    int j;

    for (j = 0; j < 2; ++j) {
        op[j] = rows_op(&gpu->side[j], j == ST_A, &places[j], &rows[j]);
    }
    st_match_ok(op[ST_A], op[ST_B]);
    for (k = 0; k < 3; ++k) {
        st_fill(rows_image[ST_A], ROWS_SPAN, k);
        memset(rows_image[ST_B], ST_SPOILED, ROWS_SPAN);
        for (j = 0; j < 2; ++j) {
            CU_ASSERT_EQUAL(ucs_gstream_memory_copy(places[j].buffer,
                                                    rows_image[j], ROWS_SPAN),
                            UCS_OK);
            st_use(&gpu->side[j], op[j]);
        }
        for (i = 0; i < rows[ST_A].length; ++i) {
            *rows_at(&rows[ST_B], rows_image[ST_B], i) =
                    *rows_at(&rows[ST_A], rows_image[ST_A], i);
        }
        st_pair_sync(&gpu->pair);
        CU_ASSERT_EQUAL(ucs_gstream_memory_copy(host_bytes,
                                                places[ST_B].buffer, ROWS_SPAN),
                        UCS_OK);
        CU_ASSERT_EQUAL(memcmp(host_bytes, rows_image[ST_B], ROWS_SPAN), 0);
    }
    st_free2(op[ST_A], op[ST_B]);
}

static void run_rows(gpu_t *gpu)
{
    gpu_place_t places[2];
    unsigned i, k;

    for (i = 0; i < 4; ++i) {
        gpu_place_get(gpu, &places[ST_A], (i & 1) ? 0 : GPU_HOST, DEVICE_LENGTH,
                      0);
        gpu_place_get(gpu, &places[ST_B], (i & 2) ? 0 : GPU_HOST, DEVICE_LENGTH,
                      0);
        for (k = 0; k < ucs_static_array_size(rows_cases); ++k) {
            rows_pair(gpu, places, rows_cases[k]);
        }
        gpu_place_put(gpu, &places[ST_A]);
        gpu_place_put(gpu, &places[ST_B]);
    }
}

/* On a device's stream, a use with both buffers in the device is one copy on
 * each side, and no function of the host */
static void run_rows_gpu(gpu_t *gpu)
{
    standin_counts_t before, after;
    gpu_place_t places[2];
    int i;

    run_rows(gpu);
    for (i = 0; i < 2; ++i) {
        gpu_place_get(gpu, &places[i], 0, DEVICE_LENGTH, 0);
    }
    before = rt_counts(gpu->rt);
    rows_pair(gpu, places, rows_cases[2]);
    after = rt_counts(gpu->rt);
    if (!gpu->is_real) {
        CU_ASSERT_EQUAL(after.host_funcs, before.host_funcs);
        CU_ASSERT_EQUAL(after.copies - before.copies, 3 * (2 + 3));
    }
    for (i = 0; i < 2; ++i) {
        gpu_place_put(gpu, &places[i]);
    }
}

/* Kernels move rows where they are, also those of the host that the device
 * reaches */
static void run_rows_kernel(gpu_t *gpu)
{
    static const int where[][2] = {{0, 0}, {GPU_PINNED, 0}, {0, GPU_SHARED},
                                   {GPU_MANAGED, GPU_PINNED}};
    standin_counts_t before     = rt_counts(gpu->rt);
    gpu_place_t places[2];
    unsigned k, w;
    int i;

    for (w = 0; w < ucs_static_array_size(where); ++w) {
        for (i = 0; i < 2; ++i) {
            gpu_place_get(gpu, &places[i], where[w][i], DEVICE_LENGTH, 0);
        }
        for (k = 0; k < ucs_static_array_size(rows_cases); ++k) {
            rows_pair(gpu, places, rows_cases[k]);
        }
        for (i = 0; i < 2; ++i) {
            CU_ASSERT_EQUAL(st_stats(&gpu->side[i]).staged, 0);
            CU_ASSERT_EQUAL(st_stats(&gpu->side[i]).proxied, 0);
            gpu_place_put(gpu, &places[i]);
        }
    }
    CU_ASSERT_EQUAL(rt_counts(gpu->rt).host_funcs, before.host_funcs);
}

GPU_CASES(rows_host, "host", run_rows_gpu)
GPU_CASES(rows_direct, "direct", run_rows)
GPU_CASES(rows_kernel, "direct", run_rows_kernel)
ST_CASE_CALL(rows_service_hip, run_service(1, run_rows_gpu))

/* Blocks that make no buffer */
static void run_rows_bad(gpu_t *gpu)
{
    static const rows_t bad[] = {
        {0, 8, 800}, {8, 7, 800}, {8, 1ull << 31, 800}, {8, 8, 801}
    };
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_BLOCKS,
        .buffer     = host_bytes
    };
    ucp_st_op_h op;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(bad); ++i) {
        params.length = bad[i].length;
        params.block  = bad[i].block;
        params.stride = bad[i].stride;
        CU_ASSERT_EQUAL(ucp_st_send_init(gpu->side[ST_A].worker, &params, &op),
                        UCS_ERR_INVALID_PARAM);
    }
}

ST_CASE_CALL(rows_bad, gpu_run(1, "host", run_rows_bad))

/* The same on streams of the host: these have the runtime copy */
static void on_host(gpu_t *gpu, gpu_body_t body)
{
    char *stream = st_env_set("ST_TEST_STREAM", NULL);
    st_pair_t outer;
    int i;

    outer = gpu->pair;
    for (i = 0; i < 2; ++i) {
        gpu->side = gpu->pair.side;
        st_more_init(&gpu->side[i], &outer.side[i]);
        CU_ASSERT_EQUAL(ucs_gstream_type(gpu->side[i].stream),
                        UCS_GSTREAM_TYPE_HOST);
    }
    body(gpu);
    for (i = 0; i < 2; ++i) {
        st_more_cleanup(&gpu->side[i]);
    }
    gpu->pair = outer;
    st_env_restore("ST_TEST_STREAM", stream);
}

static void run_on_host(gpu_t *gpu)
{
    on_host(gpu, run_device);
}

static void run_rows_on_host(gpu_t *gpu)
{
    on_host(gpu, run_rows);
}

ST_CASE_CALL(device_on_host_hip, gpu_run(1, "host", run_on_host))
ST_CASE_CALL(device_on_host_cuda, gpu_run(0, "direct", run_on_host))
ST_CASE_CALL(rows_on_host, gpu_run(1, "host", run_rows_on_host))

/* A stream of one runtime does not copy memory of the other */
static void run_device_other(gpu_t *gpu)
{
    gpu_t other  = {.is_hip = !gpu->is_hip};
    st_side_t *a = &gpu->side[ST_A];
    st_side_t *b = &gpu->side[ST_B];
    gpu_place_t place;
    ucp_st_op_h op[2];

    if (gpu->is_real) {
        st_cunit_skip("a machine has GPUs of one vendor");
        return;
    }
    gpu_load(&other);
    gpu_place_get(&other, &place, 0, DEVICE_LENGTH, 0);
    op[ST_A] = st_send(a, place.buffer, LENGTH, 0);
    op[ST_B] = st_recv(b, received, LENGTH, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(a->queue, op[ST_A]),
                    UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, NULL), UCS_OK);
    st_free2(op[ST_A], op[ST_B]);
    gpu_place_put(&other, &place);
}

ST_CASE_CALL(device_other, gpu_run(0, "host", run_device_other))

/* The runtime refuses to copy memory that was freed: the start has no effect,
 * and the queue is as good as before */
static void run_device_freed(gpu_t *gpu)
{
    st_side_t *a = &gpu->side[ST_A];
    st_side_t *b = &gpu->side[ST_B];
    gpu_place_t place;
    ucp_st_op_h op[2];
    int i;

    for (i = 0; i < 2; ++i) {
        gpu_place_get(gpu, &place, 0, DEVICE_LENGTH, 0);
        op[ST_A] = st_send(a, place.buffer, LENGTH, 0);
        op[ST_B] = st_recv(b, received, LENGTH, 0);
        st_match_ok(op[ST_A], op[ST_B]);
        if (i == 0) {
            gpu_place_put(gpu, &place);
            CU_ASSERT_EQUAL(ucp_st_enqueue_start(a->queue, op[ST_A]),
                            UCS_ERR_INVALID_PARAM);
            CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, NULL), UCS_OK);
        } else {
            st_use(a, op[ST_A]);
            st_use(b, op[ST_B]);
            st_pair_sync(&gpu->pair);
            gpu_place_put(gpu, &place);
        }
        st_free2(op[ST_A], op[ST_B]);
    }
}

GPU_CASES(device_freed, "host", run_device_freed)

/* The stream is yet to copy a failed receive's data: the buffer is not the
 * user's before it has passed that */
static void run_device_fails(gpu_t *gpu)
{
    uint64_t gate = 0;
    st_side_t *b  = &gpu->side[ST_B];
    gpu_place_t place;
    ucp_st_op_h op[2];

    gpu_place_get(gpu, &place, 0, DEVICE_LENGTH, 0);
    op[ST_A] = st_send(&gpu->side[ST_A], sent, LENGTH, 0);
    op[ST_B] = st_recv(b, place.buffer, LENGTH, 0);
    st_match_ok(op[ST_A], op[ST_B]);
    st_hold(b, &gate);
    st_use(b, op[ST_B]);
    ucp_st_worker_lock(b->worker);
    ucp_st_op_fail(op[ST_B], UCS_ERR_IO_ERROR);
    ucp_st_worker_unlock(b->worker);
    CU_ASSERT_EQUAL(ucp_st_op_free(op[ST_B]), UCS_ERR_BUSY);
    st_let_go(&gate);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(b->queue, NULL), UCS_ERR_IO_ERROR);
    st_free2(op[ST_A], op[ST_B]);
    gpu_place_put(gpu, &place);
}

ST_CASE_CALL(device_fails_hip, gpu_run(1, "host", run_device_fails))

/* Messages that are used once, of UCP's tags or of FIFOs; the receive is longer
 * than what it gets, and the rest of it stays as it was */
static void device_once(gpu_t *gpu, uint64_t field)
{
    ucp_st_msg_params_t params = {
        .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
                      UCP_ST_MSG_PARAM_FIELD_LENGTH |
                      UCP_ST_MSG_PARAM_FIELD_PEER | field,
        .length     = LENGTH,
        .scope      = 1
    };
    st_side_t *a = &gpu->side[ST_A];
    st_side_t *b = &gpu->side[ST_B];
    gpu_place_t places[2];
    int i;

    for (i = 0; i < 2; ++i) {
        gpu_place_get(gpu, &places[i], 0, DEVICE_LENGTH, 0);
    }
    gpu_fill(places[ST_A].buffer, LENGTH, 1);
    gpu_fill(places[ST_B].buffer, DEVICE_LENGTH, 2);
    params.buffer = places[ST_A].buffer;
    params.peer   = a->peer;
    CU_ASSERT_EQUAL(ucp_st_enqueue_send(a->queue, &params, NULL), UCS_OK);
    params.buffer = places[ST_B].buffer;
    params.length = DEVICE_LENGTH;
    params.peer   = b->peer;
    CU_ASSERT_EQUAL(ucp_st_enqueue_recv(b->queue, &params, NULL), UCS_OK);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(gpu->side[i].queue), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_enqueue_batch_wait(gpu->side[i].queue), UCS_OK);
    }
    st_pair_sync(&gpu->pair);
    CU_ASSERT_TRUE(gpu_check(places[ST_B].buffer, LENGTH, 1));
    CU_ASSERT_EQUAL(ucs_gstream_memory_copy(host_bytes, places[ST_B].buffer,
                                            DEVICE_LENGTH), UCS_OK);
    st_fill(host_bytes, LENGTH, 2);
    CU_ASSERT_TRUE(st_check(host_bytes, DEVICE_LENGTH, 2));
    for (i = 0; i < 2; ++i) {
        gpu_place_put(gpu, &places[i]);
    }
}

static void run_device_once(gpu_t *gpu)
{
    device_once(gpu, 0);
}

static void run_device_fifo(gpu_t *gpu)
{
    const ucp_st_stats_t *stats;
    ucp_st_worker_attr_t attr;
    int i;

    device_once(gpu, UCP_ST_MSG_PARAM_FIELD_SCOPE);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_worker_query(gpu->side[i].worker, &attr),
                        UCS_OK);
        /* A NIC may reach the device */
        stats = &attr.stats;
        CU_ASSERT_EQUAL(stats->fifo_nic + stats->fifo_put_device,
                        attr.lanes[0] == UCP_ST_LANE_TRIG);
        CU_ASSERT_EQUAL(stats->fifo_ucp, attr.lanes[0] != UCP_ST_LANE_TRIG);
        CU_ASSERT_EQUAL(stats->fifos, 1);
    }
}

GPU_CASES(device_once, "host", run_device_once)
GPU_CASES(device_fifo, "trig", run_device_fifo)
GPU_CASES(device_fifo_host, "host", run_device_fifo)

/* Windows in memory that the runtime moves: the host reaches it */
static void run_managed(gpu_t *gpu)
{
    st_window_t windows[2];
    gpu_place_t places[2];
    int i;

    for (i = 0; i < 2; ++i) {
        places[i].where  = 0;
        places[i].start  = gpu_alloc_managed(gpu, 2 * LENGTH);
        places[i].buffer = places[i].start;
        memset(places[i].buffer, 0, 2 * LENGTH);
        windows[i] = (st_window_t){
            .side   = &gpu->side[i],
            .memory = places[i].buffer,
            .length = LENGTH
        };
        CU_ASSERT_EQUAL_FATAL(ucp_st_mem_reg(gpu->side[i].worker,
                                             places[i].buffer, 2 * LENGTH,
                                             &windows[i].memh), UCS_OK);
    }
    for (i = 0; i < 2; ++i) {
        windows[i].rkey = st_window_key(gpu->side[i].peer, &windows[!i]);
    }
    gpu_fill(places[ST_A].buffer, LENGTH, 7);
    st_put_signal(&windows[ST_A], LENGTH, 0, 1);
    st_wait_signal(&windows[ST_B], 0, 1);
    st_quiet(&windows[ST_A]);
    st_pair_sync(&gpu->pair);
    CU_ASSERT_TRUE(gpu_check(places[ST_B].buffer, LENGTH, 7));
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_rkey_destroy(windows[i].rkey), UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_mem_dereg(windows[i].memh), UCS_OK);
        gpu_place_put(gpu, &places[i]);
    }
}

GPU_CASES(managed_host, "host", run_managed)
GPU_CASES(managed_direct, "direct", run_managed)

/* Others are of the host's memory */
static void run_memory(gpu_t *gpu)
{
    st_side_t *a = &gpu->side[ST_A];
    ucp_st_mem_h memh;
    gpu_place_t place;

    gpu_place_get(gpu, &place, 0, DEVICE_LENGTH, 0);
    CU_ASSERT_EQUAL(ucp_st_mem_reg(a->worker, place.buffer, LENGTH, &memh),
                    UCS_ERR_UNSUPPORTED);
    gpu_place_put(gpu, &place);
}

ST_CASE_CALL(memory, gpu_run(1, "host", run_memory))

ST_SUITE("st_device")
