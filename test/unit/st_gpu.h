/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_gpu.h - a pair of sides with streams of a GPU, of the stand-ins for the
 * runtimes, or of a GPU.
 */
#ifndef ST_GPU_H_
#define ST_GPU_H_

#include "st_pair.h"

#include "standin_control.h"

/** What a case works on. */
typedef struct gpu {
    void      *runtime; /* the stand-in, or the runtime of a GPU */
    int       is_real;  /* it is a GPU's, whose counts are all 0 */
    void      (*counts)(standin_counts_t *counts);
    int       is_hip;
    st_pair_t pair;
    st_side_t *side;
} gpu_t;

typedef void (*gpu_body_t)(gpu_t *gpu);

/** Load the stand-in for a runtime, as a program does that uses a GPU; or the
 *  library in the folder that ST_HIP_DIR or ST_CUDA_DIR names, or if that is
 *  empty the one that the loader finds. Asserts; NULL if it is not there. */
void *gpu_open(int is_hip);

/** The same, with what it counts. Non-zero if it is there. */
int gpu_load(gpu_t *gpu);

/** A call of the runtime, by its HIP name or by CUDA's; asserts. */
void *gpu_func(const gpu_t *gpu, const char *hip, const char *cuda);

/** Make a device the caller's current one, or the primary context of CUDA's;
 *  asserts. */
void gpu_set_device(const gpu_t *gpu, int device);

/** Get memory in device 0, for which CUDA's context is made current, or managed
 *  memory; asserts. And give it back. */
uint8_t *gpu_alloc(const gpu_t *gpu, size_t length);
uint8_t *gpu_alloc_managed(const gpu_t *gpu, size_t length);
void gpu_free(const gpu_t *gpu, uint8_t *memory);

/** Run the body of a case on a pair whose streams are of HIP or else of CUDA,
 *  with this lane alone; NULL: all of them are there, in no order of the
 *  user's. With ST_TEST_STREAM in the environment only that runtime's cases
 *  run. */
void gpu_run(int is_hip, const char *lane, gpu_body_t body);

#endif
