/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_gpu.h - a pair of sides with streams of a GPU, of the stand-ins for the
 * runtimes, or of a GPU.
 */
#ifndef ST_GPU_H_
#define ST_GPU_H_

#include "st_pair.h"
#include "standin_util.h"

/** What a case works on. */
typedef struct gpu {
    const rt_t *rt;
    int        is_real; /* it is a GPU's, whose counts are all 0 */
    int        is_hip;
    st_pair_t  pair;
    st_side_t  *side;
} gpu_t;

typedef void (*gpu_body_t)(gpu_t *gpu);

/** Load the runtime, as a program does that uses a GPU. */
void gpu_load(gpu_t *gpu);

/** Make a device the caller's current one, or the primary context of CUDA's;
 *  asserts. */
void gpu_set_device(const gpu_t *gpu, int device);

/** Get memory in a device, or in device 0, which is the current one afterwards,
 *  or managed memory; asserts. And give it back. */
uint8_t *gpu_alloc_on(const gpu_t *gpu, int device, size_t length);
uint8_t *gpu_alloc(const gpu_t *gpu, size_t length);
uint8_t *gpu_alloc_managed(const gpu_t *gpu, size_t length);
void gpu_free(const gpu_t *gpu, uint8_t *memory);

/** Whether processors reach memory of a stand-in's devices, as its setting
 *  says: the emulated Cassini has no dma-bufs, and reaches what processors do.
 */
int gpu_is_open(void);

/** Where a buffer is: the number of a device, or one of these. */
#define GPU_HOST    (-1)
#define GPU_SHARED  (-2) /* memory of ucp_st_mem_alloc() */
#define GPU_PINNED  (-3) /* of the host, of the runtime */
#define GPU_MANAGED (-4)

/** A buffer, so many bytes behind the begin of its allocation. */
typedef struct gpu_place {
    int     where;
    uint8_t *start;
    uint8_t *buffer;
} gpu_place_t;

/** Get a buffer, and give it back; assert. */
void gpu_place_get(const gpu_t *gpu, gpu_place_t *place, int where,
                   size_t length, size_t skip);
void gpu_place_put(const gpu_t *gpu, gpu_place_t *place);

/** st_fill() and st_check() for memory wherever it is. */
void gpu_fill(void *to, size_t length, uint64_t seed);
int gpu_check(const void *from, size_t length, uint64_t seed);

/** Zero if ST_TEST_STREAM names the other runtime. */
int gpu_is_named(int is_hip);

/** Run the body of a case on a pair whose streams are of HIP or else of CUDA,
 *  with this lane alone; NULL: all of them are there, in no order of the
 *  user's. With ST_TEST_STREAM in the environment only that runtime's cases
 *  run. */
void gpu_run(int is_hip, const char *lane, gpu_body_t body);

/** While something takes long a side's worker, and what else is done with it,
 *  goes on: its lock is free, and that of its stream; asserts. */
void gpu_check_goes_on(st_side_t *side);

/** Why an operation has failed, or UCS_OK. */
ucs_status_t gpu_op_status(ucp_st_op_h op);

/** Start a use, and wait for it; the first error of the calls. */
ucs_status_t gpu_try_use(st_side_t *side, ucp_st_op_h op);

/** Have a stand-in hold what takes long on a GPU (STANDIN_HOLD_*); 0: nothing
 *  more. A GPU does as it likes. */
void gpu_hold(const gpu_t *gpu, unsigned what);

/** Until it holds one more than it has held before. */
void gpu_until_held(const gpu_t *gpu, unsigned long before);

/** Such a case of each runtime. */
#define GPU_CASES(_name, _lane, _body) \
    ST_CASE_CALL(_name##_hip, gpu_run(1, _lane, _body)) \
    ST_CASE_CALL(_name##_cuda, gpu_run(0, _lane, _body))

#endif
