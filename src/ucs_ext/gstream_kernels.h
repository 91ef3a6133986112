/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_kernels.h - what the kernels of gstream_kernels.cu are given. It
 * includes nothing of the system: hipRTC compiles this text.
 */
#ifndef GSTREAM_KERNELS_H_
#define GSTREAM_KERNELS_H_

#include "api/ucs_gstream_pair_device.h"

/** A word, as the device addresses it, and the smallest value that ends a wait,
 *  or the value that is stored. */
typedef struct gstream_kernel_op {
    unsigned long long address;
    unsigned long long value;
} gstream_kernel_op_t;

/** Waits, followed by stores. */
typedef struct gstream_kernel_head {
    unsigned num_threads; /**< That the kernel is launched with: one block */
    unsigned num_waits;
    unsigned num_stores;
    unsigned reserved;
} gstream_kernel_head_t;

/** How many of both a kernel takes. Its arguments are copied for each launch,
 *  into a room that queues have little of: so there are two kernels. CUDA takes
 *  4096 bytes. */
#define GSTREAM_KERNEL_FEW  8
#define GSTREAM_KERNEL_MANY 255

/** Arguments of ucs_gstream_waits_few() and _many(). */
typedef struct gstream_kernel_few {
    gstream_kernel_head_t head;
    gstream_kernel_op_t   ops[GSTREAM_KERNEL_FEW];
} gstream_kernel_few_t;

typedef struct gstream_kernel_many {
    gstream_kernel_head_t head;
    gstream_kernel_op_t   ops[GSTREAM_KERNEL_MANY];
} gstream_kernel_many_t;

/** Arguments of ucs_gstream_pairs_few() and _many(); a start has `num_blocks`
 *  blocks. */
typedef struct gstream_kernel_pair_head {
    unsigned num_threads; /**< Of a block */
    unsigned num_blocks;
} gstream_kernel_pair_head_t;

#define GSTREAM_KERNEL_PAIRS_FEW  4
#define GSTREAM_KERNEL_PAIRS_MANY 56

typedef struct gstream_kernel_pairs_few {
    gstream_kernel_pair_head_t head;
    ucs_gstream_device_pair_t  pairs[GSTREAM_KERNEL_PAIRS_FEW];
} gstream_kernel_pairs_few_t;

typedef struct gstream_kernel_pairs_many {
    gstream_kernel_pair_head_t head;
    ucs_gstream_device_pair_t  pairs[GSTREAM_KERNEL_PAIRS_MANY];
} gstream_kernel_pairs_many_t;

/** Arguments of ucs_gstream_move(); as in ucs_gstream_move_t, addresses are the
 *  device's. */
typedef struct gstream_kernel_move {
    gstream_kernel_pair_head_t head;
    unsigned long long         cell;
    unsigned long long         failed;
    unsigned long long         dst;
    unsigned long long         src;
    unsigned long long         length;
    unsigned long long         signal; /**< 0: there is none */
    unsigned long long         value;
} gstream_kernel_move_t;

#endif
