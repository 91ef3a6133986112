/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_kernels.h - what the kernels of gstream_kernels.cu are given. It
 * includes nothing: hipRTC compiles this text.
 */
#ifndef GSTREAM_KERNELS_H_
#define GSTREAM_KERNELS_H_

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

/** What each side of a pair has in memory of a device. Kernels alone look at
 *  it; all is 0 at first. */
typedef struct gstream_kernel_cell {
    unsigned long long tickets;  /**< Blocks of the start that runs */
    unsigned long long decision; /**< Twice the use; 1 more: this side copies */
    unsigned long long out;      /**< Blocks that are done */
    unsigned long long reserved[5];
} gstream_kernel_cell_t;

/** ... and in memory of the host. */
typedef struct gstream_kernel_record {
    unsigned long long word;   /**< Uses that are complete; streams wait */
    unsigned long long begun;  /**< Uses that the stream has begun to start */
    unsigned long long ended;  /**< ... and whose kernels have ended */
    unsigned long long halted; /**< Not 0: starts have no effect */
    unsigned long long decided; /**< The send's: twice the use that it has
                                     looked at; 1 more: it copies */
    unsigned long long reserved[3];
} gstream_kernel_record_t;

/** The start of a use of one side; addresses are the device's. */
typedef struct gstream_kernel_pair {
    unsigned long long is_send;
    unsigned long long cell;   /**< Of this side, as the next one */
    unsigned long long record;
    unsigned long long other;  /**< The other side's record */
    unsigned long long dst;
    unsigned long long src;
    unsigned long long length; /**< Bytes */
    unsigned long long use;    /**< From 1 */
    unsigned dst_width;        /**< Bytes of a row, and from one to the next; */
    unsigned dst_pitch;        /**< 0: it has none */
    unsigned src_width;
    unsigned src_pitch;
} gstream_kernel_pair_t;

/** Arguments of ucs_gstream_pairs_few() and _many(); a start has `num_blocks`
 *  blocks. */
typedef struct gstream_kernel_pair_head {
    unsigned num_threads; /**< Of a block */
    unsigned num_blocks;
} gstream_kernel_pair_head_t;

#define GSTREAM_KERNEL_PAIRS_FEW  4
#define GSTREAM_KERNEL_PAIRS_MANY 51

typedef struct gstream_kernel_pairs_few {
    gstream_kernel_pair_head_t head;
    gstream_kernel_pair_t      pairs[GSTREAM_KERNEL_PAIRS_FEW];
} gstream_kernel_pairs_few_t;

typedef struct gstream_kernel_pairs_many {
    gstream_kernel_pair_head_t head;
    gstream_kernel_pair_t      pairs[GSTREAM_KERNEL_PAIRS_MANY];
} gstream_kernel_pairs_many_t;

#endif
