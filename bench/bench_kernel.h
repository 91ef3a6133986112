/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_kernel.h - the kernels of bench_kernels.cu in a GPU. */
#ifndef BENCH_KERNEL_H_
#define BENCH_KERNEL_H_

#include "bench_kernels.h"

#include <ucs_gstream.h>

#include <stddef.h>

/* What runtimes load, as the library's (gstream_images.sh). */
extern const unsigned char bench_image_ptx[];
extern const unsigned char bench_image_objects[];
extern const unsigned char bench_image_source[];


/* Kernels. */
typedef enum {
    BENCH_KERNEL_PP_PACK,
    BENCH_KERNEL_PP_UNPACK,
    BENCH_KERNEL_SPIN,
    BENCH_KERNEL_FACES_PACK,
    BENCH_KERNEL_FACES_INTERIOR,
    BENCH_KERNEL_FACES_UNPACK,
    BENCH_KERNEL_LIFE_PACK,
    BENCH_KERNEL_LIFE_STEP,
    BENCH_KERNEL_LAST
} bench_kernel_t;


typedef int (*bench_launch_func_t)(void *function, unsigned grid_x,
                                   unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared,
                                   void *native, void **params, void **extra);

/* Those of a stream's device. */
typedef struct bench_kernels {
    void                *functions[BENCH_KERNEL_LAST];
    bench_launch_func_t launch;
    void                *native;      /* The runtime's stream */
    void                *end;         /* Of a list of arguments */
    unsigned            max_threads;  /* Of a block */
    unsigned            num_blocks;   /* That the device runs at a time */
    unsigned            khz;          /* Of its clock, at most */
} bench_kernels_t;


/* Loads them for a stream of a GPU, whose device is the caller's. Returns NULL,
 * or why it cannot: a text that stays. */
const char *bench_kernels_load(bench_kernels_t *kernels, ucs_gstream_h stream);

/* Enqueues one, with a thread for each of 'count' parts of its work or fewer.
 * Sets the head of its arguments, which are copied. Returns 0, or a result of
 * the runtime. */
int bench_kernels_launch(const bench_kernels_t *kernels, bench_kernel_t kernel,
                         size_t count, void *args, size_t size);

#endif
