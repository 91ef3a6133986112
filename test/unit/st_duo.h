/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_duo.h - a send and a receive that kernels of the application start, on two
 * streams of a stand-in.
 */
#ifndef ST_DUO_H_
#define ST_DUO_H_

#include "st_gpu.h"
#include "st_kernel.h"

#define DUO_LENGTH 1000

/** A send and a receive, each with a kernel and a buffer. */
typedef struct {
    gpu_t              *gpu;
    int                at[2];    /* places, as gpu_place_t says them */
    int                is_ready; /* a ready send */
    int                is_ahead; /* lane trig sends it ahead, to an inbox */
    st_kernel_t        kernel[2];
    gpu_place_t        places[2];
    ucp_st_op_h        ops[2]; /* matched; handles */
    ucp_st_device_op_t handles[2];
} duo_t;

/** Make it, with `at`, `is_ready` and `is_ahead` as they are, or 0, and match
 *  it; asserts. */
void duo_init_as(duo_t *duo, gpu_t *gpu);
void duo_init(duo_t *duo, gpu_t *gpu);

/** Match another pair in place of one that was freed. */
void duo_match(duo_t *duo);

/** Free the operations; what else there is; or both. */
void duo_free(duo_t *duo);
void duo_end(duo_t *duo);
void duo_cleanup(duo_t *duo);

/** Post uses of a side ahead; asserts. */
void duo_post(duo_t *duo, int side, uint64_t uses);

/** What a side's kernel is to do, for st_kernel_launch(); launch it, for so
 *  many rounds. */
test_kernel_op_t duo_does(const duo_t *duo, int side, unsigned what);
void duo_launch(duo_t *duo, int side, unsigned what, uint64_t rounds,
                unsigned threads);

/** One kernel of a thread; what it has come to. */
test_kernel_result_t duo_run(duo_t *duo, int side, unsigned what);

/** A side's kernel has made so many rounds, and all that was posted. */
void duo_check(duo_t *duo, int side, uint64_t rounds);

/** A queue's own start and wait of a use; and that they have passed. */
void duo_enqueue(duo_t *duo, int side);
void duo_check_enqueued(duo_t *duo, int side);

#endif
