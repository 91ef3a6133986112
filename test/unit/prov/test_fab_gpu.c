/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fab_gpu.c - memory of GPUs, which the stand-ins of their runtimes refuse
 * to processors: a provider that touches it otherwise than by its dma-buf dies.
 *
 * Parties are processes, which start without a runtime; the last cases have two
 * threads, for the sanitizers.
 */
#include "fab.h"
#include "fab_work.h"
#include "standin_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPU_BYTES FAB_MIB
#define GPU_SHIFT 264 /* The range that is used starts there */
#define GPU_KEY   200


/** What a party has, in memory of a GPU if it is to. */
typedef struct gpu {
    const rt_t      *rt;
    uint8_t         *base;   /* GPU_SHIFT + GPU_BYTES, for others */
    uint8_t         *window; /* in it, registered */
    struct fid_mr   *mr;
    fab_place_t     there;
    uint8_t         *own;    /* not registered */
    uint8_t         *host;   /* for comparisons */
} gpu_t;

static const fab_config_t with_hmem = {.caps = FI_HMEM, .mr_mode = FI_MR_HMEM};

static const size_t gpu_sizes[] = {
    1, 4, 8, 24, 192, 193, 4096, 5000, 16384, 16385, 100001, GPU_BYTES
};

static const char *const not_cxi = "the stand-ins have no dma-bufs of a kernel";


/* HIP has dma-bufs from a version on */
static const rt_t *gpu_load(fab_side_t *me, int is_hip)
{
    const rt_t *rt;

    FAB_EQUAL(setenv("STANDIN_VERSION", "60443484", 1), 0);
    rt = rt_open(is_hip);
    FAB_EQUAL(rt_init(rt), RT_OK);
    FAB_EQUAL(rt_set_device(rt, 0), RT_OK);
    return rt;
}

static uint8_t *gpu_alloc(fab_side_t *me, const rt_t *rt, int is_gpus)
{
    void *memory = NULL;

    if (!is_gpus) {
        return fab_alloc(GPU_SHIFT + GPU_BYTES);
    }
    FAB_EQUAL(rt_alloc(rt, &memory, GPU_SHIFT + GPU_BYTES), RT_OK);
    FAB_REQUIRE(memory != NULL);
    return memory;
}

static void gpu_free(fab_side_t *me, const rt_t *rt, uint8_t *memory,
                     int is_gpus)
{
    if (is_gpus) {
        FAB_EQUAL(rt_free(rt, memory), RT_OK);
    } else {
        free(memory);
    }
}

/* In any memory */
static void gpu_fill(fab_side_t *me, gpu_t *gpu, void *to, size_t length,
                     uint64_t number)
{
    fab_fill(gpu->host, length, fab_tint(me->index, number));
    FAB_EQUAL(rt_copy_now(gpu->rt, to, gpu->host, length), RT_OK);
}

static void gpu_filled(fab_side_t *me, gpu_t *gpu, const void *from,
                       size_t length, uint64_t number)
{
    memset(gpu->host, 0, length);
    FAB_EQUAL(rt_copy_now(gpu->rt, gpu->host, from, length), RT_OK);
    FAB_FILLED(me, gpu->host, length, number);
}

static uint64_t gpu_word(fab_side_t *me, const gpu_t *gpu, const void *from)
{
    uint64_t word = 0;

    FAB_EQUAL(rt_copy_now(gpu->rt, &word, from, sizeof(word)), RT_OK);
    return word;
}

static void gpu_open(fab_side_t *me, gpu_t *gpu, int is_hip, int window_is_gpus,
                     int own_is_gpus)
{
    struct {
        uint64_t base, key;
    } mine, theirs;

    gpu->rt     = gpu_load(me, is_hip);
    gpu->base   = gpu_alloc(me, gpu->rt, window_is_gpus);
    gpu->own    = gpu_alloc(me, gpu->rt, own_is_gpus);
    gpu->host   = fab_alloc(GPU_BYTES);
    gpu->window = gpu->base + GPU_SHIFT;
    gpu->mr     = fab_register(me, gpu->window, GPU_BYTES, GPU_KEY, NULL);
    mine.base   = fab_base(me, gpu->window);
    mine.key    = fi_mr_key(gpu->mr);
    fab_swap(me, &mine, &theirs, sizeof(mine));
    gpu->there = (fab_place_t){me->peer, theirs.base, theirs.key};
}

static void gpu_close(fab_side_t *me, gpu_t *gpu, int window_is_gpus,
                      int own_is_gpus)
{
    fab_barrier(me);
    FAB_EQUAL(fi_close(&gpu->mr->fid), 0);
    gpu_free(me, gpu->rt, gpu->base, window_is_gpus);
    gpu_free(me, gpu->rt, gpu->own, own_is_gpus);
    free(gpu->host);
}

/* Into the peer's window, where it is when this returns */
static void gpu_put(fab_side_t *me, const gpu_t *gpu, size_t length)
{
    struct iovec iov       = {.iov_base = gpu->own, .iov_len = length};
    struct fi_rma_iov riov = {
        .addr = gpu->there.remote,
        .len  = length,
        .key  = gpu->there.key
    };
    struct fi_msg_rma msg  = {
        .msg_iov       = &iov,
        .iov_count     = 1,
        .addr          = gpu->there.addr,
        .rma_iov       = &riov,
        .rma_iov_count = 1
    };

    FAB_MUST(me, fi_writemsg(me->ep, &msg, FI_DELIVERY_COMPLETE |
                             FI_COMPLETION));
    fab_entry(me, &me->tx);
    fab_barrier(me);
}

/* Puts, gets and messages of all lengths */
static void gpu_move(fab_side_t *me, gpu_t *gpu)
{
    fab_place_t to = gpu->there;
    size_t i, length;

    for (i = 0; i < ST_CUNIT_COUNT(gpu_sizes); ++i) {
        length = gpu_sizes[i];
        gpu_fill(me, gpu, gpu->own, length, i);
        gpu_put(me, gpu, length);
        gpu_filled(me, gpu, gpu->window, length, i);
        fab_barrier(me);

        gpu_fill(me, gpu, gpu->window, length, 100 + i);
        fab_barrier(me);
        FAB_MUST(me, fi_read(me->ep, gpu->own, length, NULL, to.addr, to.remote,
                             to.key, gpu->own));
        fab_entry(me, &me->tx);
        gpu_filled(me, gpu, gpu->own, length, 100 + i);
        fab_barrier(me);

        FAB_MUST(me, fi_recv(me->ep, gpu->window, length, NULL, me->peer,
                             gpu->window));
        gpu_fill(me, gpu, gpu->own, length, 200 + i);
        FAB_MUST(me, fi_send(me->ep, gpu->own, length, NULL, me->peer, NULL));
        FAB_CHECK(fab_entry(me, &me->rx).op_context == gpu->window);
        fab_entry(me, &me->tx);
        gpu_filled(me, gpu, gpu->window, length, 200 + i);
        fab_barrier(me);
    }
}

/* Entries read what is there when they fire, and their memory may have been
 * given back since it was named */
static void gpu_defer(fab_side_t *me, gpu_t *gpu)
{
    struct fid_cntr *trigger = fab_cntr(me);
    struct fid_cntr *done    = fab_cntr(me);
    fab_work_t *work         = fab_works(me, 2);
    size_t length            = 5000;

    fab_work_write(me, &work[0], gpu->own, length, gpu->there);
    work[0].op.rma.flags |= FI_DELIVERY_COMPLETE;
    FAB_EQUAL(fab_queue(me, &work[0], fab_at(trigger, 1, done)), 0);
    fab_work_read(me, &work[1], gpu->own + length, length, gpu->there);
    FAB_EQUAL(fab_queue(me, &work[1], fab_at(trigger, 2, done)), 0);
    gpu_fill(me, gpu, gpu->own, length, 300);
    fab_barrier(me);
    FAB_EQUAL(fi_cntr_add(trigger, 1), 0);
    fab_count(me, done, 1);
    fab_barrier(me);
    gpu_filled(me, gpu, gpu->window, length, 300);
    fab_barrier(me);
    gpu_fill(me, gpu, gpu->window, length, 301);
    fab_barrier(me);
    FAB_EQUAL(fi_cntr_add(trigger, 1), 0);
    fab_count(me, done, 2);
    gpu_filled(me, gpu, gpu->own + length, length, 301);
    fab_barrier(me);
    free(work);
    fab_cntr_close(trigger);
    fab_cntr_close(done);
}

/* Target, operand and result */
static void gpu_count(fab_side_t *me, gpu_t *gpu)
{
    const uint64_t start[] = {7, 1000, 0};
    fab_place_t to         = gpu->there;
    uint64_t *word         = (uint64_t*)gpu->own;

    FAB_EQUAL(rt_copy_now(gpu->rt, gpu->window, &start[1], 8), RT_OK);
    FAB_EQUAL(rt_copy_now(gpu->rt, word, start, sizeof(start)), RT_OK);
    fab_barrier(me);
    FAB_MUST(me, fi_fetch_atomic(me->ep, word, 1, NULL, word + 1, NULL, to.addr,
                                 to.remote, to.key, FI_UINT64, FI_SUM, NULL));
    fab_entry(me, &me->tx);
    FAB_EQUAL(gpu_word(me, gpu, word + 1), 1000);
    FAB_MUST(me, fi_compare_atomic(me->ep, word, 1, NULL, word + 1, NULL,
                                   word + 2, NULL, to.addr, to.remote, to.key,
                                   FI_UINT64, FI_CSWAP, NULL));
    fab_entry(me, &me->tx);
    FAB_EQUAL(gpu_word(me, gpu, word + 2), 1007);
    fab_barrier(me);
    FAB_EQUAL(gpu_word(me, gpu, gpu->window), 1007);
}

/* Memory that is freed and allocated again is not taken for the old one */
static void gpu_again(fab_side_t *me, gpu_t *gpu, int own_is_gpus)
{
    unsigned i;

    for (i = 0; i < 4; ++i) {
        fab_barrier(me);
        gpu_free(me, gpu->rt, gpu->own, own_is_gpus);
        gpu->own = gpu_alloc(me, gpu->rt, own_is_gpus);
        gpu_fill(me, gpu, gpu->own, 5000, 400 + i);
        gpu_put(me, gpu, 5000);
        gpu_filled(me, gpu, gpu->window, 5000, 400 + i);
        fab_barrier(me);
    }
}

static void gpu_all(fab_side_t *me, int is_hip, int window_is_gpus,
                    int own_is_gpus)
{
    gpu_t gpu;

    gpu_open(me, &gpu, is_hip, window_is_gpus, own_is_gpus);
    gpu_move(me, &gpu);
    gpu_defer(me, &gpu);
    gpu_count(me, &gpu);
    gpu_again(me, &gpu, own_is_gpus);
    gpu_close(me, &gpu, window_is_gpus, own_is_gpus);
}

#define GPU_CASE(_name, _parties, _call) \
    FAB_CASE_CALL(_name, _call, .config = &with_hmem, .parties = _parties, \
                  .sockets = "not without a libfabric of its own for GPUs", \
                  .cxi = not_cxi)

GPU_CASE(cuda, FAB_PROCESSES, gpu_all(me, 0, 1, 1))
GPU_CASE(cuda_target, FAB_PROCESSES, gpu_all(me, 0, 1, 0))
GPU_CASE(cuda_source, FAB_PROCESSES, gpu_all(me, 0, 0, 1))
GPU_CASE(hip, FAB_PROCESSES, gpu_all(me, 1, 1, 1))
GPU_CASE(hip_target, FAB_PROCESSES, gpu_all(me, 1, 1, 0))
GPU_CASE(hip_source, FAB_PROCESSES, gpu_all(me, 1, 0, 1))
GPU_CASE(hip_and_host, FAB_PROCESSES, gpu_all(me, 1, me->index, !me->index))

static int gpu_register(fab_side_t *me, void *buffer, size_t length,
                        enum fi_hmem_iface iface)
{
    struct iovec iov       = {.iov_base = buffer, .iov_len = length};
    struct fi_mr_attr attr = {.mr_iov        = &iov,
                              .iov_count     = 1,
                              .access        = FI_REMOTE_WRITE,
                              .requested_key = GPU_KEY,
                              .iface         = iface};
    struct fid_mr *mr      = NULL;
    int ret                = fi_mr_regattr(me->domain, &attr, 0, &mr);

    if (ret == 0) {
        FAB_EQUAL(fi_close(&mr->fid), 0);
    }
    return ret;
}

/* Ranges that are not there; and what is the host's whatever is said */
static void gpu_bounds(fab_side_t *me, int is_hip)
{
    enum fi_hmem_iface iface = is_hip ? FI_HMEM_ROCR : FI_HMEM_CUDA;
    uint64_t word            = 0;
    const rt_t *rt           = gpu_load(me, is_hip);
    uint8_t *memory          = gpu_alloc(me, rt, 1);
    size_t length            = GPU_SHIFT + GPU_BYTES;

    FAB_EQUAL(gpu_register(me, memory, length, iface), 0);
    FAB_EQUAL(gpu_register(me, memory + 100, length - 100, iface), 0);
    FAB_EQUAL(gpu_register(me, memory + 1, length, iface), -FI_EFAULT);
    FAB_EQUAL(gpu_register(me, &word, sizeof(word), iface), -FI_EOPNOTSUPP);
    FAB_EQUAL(gpu_register(me, &word, sizeof(word), FI_HMEM_SYSTEM), 0);
    gpu_free(me, rt, memory, 1);
    FAB_CHECK(gpu_register(me, memory, length, iface) != 0);
}

GPU_CASE(bounds_cuda, FAB_PROCESSES, gpu_bounds(me, 0))
GPU_CASE(bounds_hip, FAB_PROCESSES, gpu_bounds(me, 1))

/* A runtime that gives no descriptors, or those that cannot be mapped: the
 * memory is refused, the host's is not */
static void gpu_without(fab_side_t *me, int is_hip, const char *dmabuf)
{
    enum fi_hmem_iface iface = is_hip ? FI_HMEM_ROCR : FI_HMEM_CUDA;
    uint64_t word            = 0;
    const rt_t *rt;
    uint8_t *memory;

    FAB_EQUAL(setenv("STANDIN_DMABUF", dmabuf, 1), 0);
    rt     = gpu_load(me, is_hip);
    memory = gpu_alloc(me, rt, 1);
    FAB_EQUAL(gpu_register(me, memory, 100, iface), -FI_EOPNOTSUPP);
    FAB_EQUAL(fi_write(me->ep, memory, 100, NULL, me->peer, me->theirs.base,
                       me->theirs.key, NULL), -FI_EOPNOTSUPP);
    FAB_EQUAL(gpu_register(me, &word, sizeof(word), FI_HMEM_SYSTEM), 0);
    gpu_free(me, rt, memory, 1);
}

GPU_CASE(without_cuda, FAB_PROCESSES, gpu_without(me, 0, "0"))
GPU_CASE(without_hip, FAB_PROCESSES, gpu_without(me, 1, "0"))
GPU_CASE(not_mapped_cuda, FAB_PROCESSES, gpu_without(me, 0, "2"))
GPU_CASE(not_mapped_hip, FAB_PROCESSES, gpu_without(me, 1, "2"))

/* From here on this process has the runtimes */
GPU_CASE(threads_cuda, FAB_THREADS, gpu_all(me, 0, 1, 1))
GPU_CASE(threads_hip, FAB_THREADS, gpu_all(me, 1, 1, 1))

FAB_SUITE("fab_gpu")
