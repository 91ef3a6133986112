/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patterns_buckets.c - data-parallel learning: a kernel makes the gradients of
 * one bucket after the other, the sum of each over all ranks begins when it is
 * ready, and an update follows all of them. Gradients are small integers, so
 * that their sums do not depend on the order.
 */
#include "patterns.h"

#include <string.h>

#define BK_VALUES 64 /* Gradients are below that, and repeat so */


typedef struct bk_bucket {
    int first;
    int count;
} bk_bucket_t;

static struct {
    const pt_options_t *opts;
    bk_bucket_t        buckets[PT_MAX_SUMS];
    int                step;
    float              *gradients;
    float              *sums;
    float              *weights;
} bk;


static int bk_value(int rank, int step, int i)
{
    return (rank * 7 + step * 5 + i * 3) % BK_VALUES;
}

static void bk_backward(void *arg)
{
    const bk_bucket_t *bucket = arg;
    int i;

    for (i = bucket->first; i < bucket->first + bucket->count; ++i) {
        bk.gradients[i] = (float)bk_value(bk.opts->rank, bk.step,
                                          i % BK_VALUES);
    }
}

static void bk_update(void *arg)
{
    int i;

    (void)arg;
    for (i = 0; i < bk.opts->size; ++i) {
        bk.weights[i] += bk.sums[i];
    }
    ++bk.step;
}

/* The sum of bucket i, when it is ready, and the wait for it. */
static void bk_add_sum(pt_plan_t *plan, int i)
{
    const bk_bucket_t *bucket = &bk.buckets[i];

    pt_add_kernel(plan, bk_backward, &bk.buckets[i]);
    pt_add(plan, PT_SUM_START, pt_add_sum(plan, &(const pt_sum_t){
        .part  = &bk.gradients[bucket->first],
        .sum   = &bk.sums[bucket->first],
        .count = bucket->count,
        .type  = MPI_FLOAT
    }));
}

static int bk_open(pt_plan_t *plan, const pt_options_t *opts)
{
    const size_t length = opts->size * sizeof(float);
    const int buckets   = opts->buckets;
    int i;

    if (opts->size < buckets) {
        bench_error("%d gradients are too few for %d buckets\n", opts->size,
                    buckets);
        return -1;
    }
    bk.opts      = opts;
    bk.gradients = bench_alloc(length);
    bk.sums      = bench_alloc(length);
    bk.weights   = bench_alloc(length);
    for (i = 0; i < buckets; ++i) {
        bk.buckets[i].first = (int)((int64_t)opts->size * i / buckets);
        bk.buckets[i].count = (int)((int64_t)opts->size * (i + 1) / buckets) -
                              bk.buckets[i].first;
        bk_add_sum(plan, i);
    }
    for (i = 0; i < buckets; ++i) {
        pt_add(plan, PT_SUM_WAIT, &plan->sums[i]);
    }
    pt_add_kernel(plan, bk_update, NULL);
    return 0;
}

static void bk_reset(void)
{
    bk.step = 0;
    memset(bk.weights, 0, bk.opts->size * sizeof(*bk.weights));
}

/* Weights that are wrong. */
static uint64_t bk_check(int count)
{
    float expected[BK_VALUES] = {0};
    uint64_t wrong            = 0;
    int64_t sum;
    int step, rank, i;

    /* Rounded as bk_update() does; a sum over ranks is exact */
    for (i = 0; i < BK_VALUES; ++i) {
        for (step = 0; step < count; ++step) {
            for (rank = 0, sum = 0; rank < bk.opts->ranks; ++rank) {
                sum += bk_value(rank, step, i);
            }
            expected[i] += (float)sum;
        }
    }
    for (i = 0; i < bk.opts->size; ++i) {
        wrong += bk.weights[i] != expected[i % BK_VALUES];
    }
    return wrong;
}

const pt_pattern_t pt_buckets = {
    .name     = "buckets",
    .variants = BENCH_VARIANT_MPI | BENCH_VARIANT_ST,
    .size     = 1 << 20,
    .open     = bk_open,
    .reset    = bk_reset,
    .check    = bk_check
};
