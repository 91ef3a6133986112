/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_kernels.h - what the kernels of bench_kernels.cu are given. It includes
 * nothing: hipRTC compiles this text. Addresses are the device's.
 */
#ifndef BENCH_KERNELS_H_
#define BENCH_KERNELS_H_

/** The first member of all arguments. */
typedef struct bench_kernel_head {
    unsigned num_threads; /**< Of a block */
    unsigned num_all;     /**< Threads of all blocks */
} bench_kernel_head_t;

/** Arguments of bench_pp_pack() and _unpack(). */
typedef struct bench_kernel_pp {
    bench_kernel_head_t head;
    unsigned long long from;   /**< The data, or a message */
    unsigned long long to;     /**< The other one */
    unsigned long long size;   /**< Bytes */
    unsigned long long stamp;  /**< A message's first bytes */
    unsigned long long result; /**< Unpack: a word, to which a thread that sees
                                    wrong data adds BENCH_KERNEL_WRONG, and the
                                    first one 1 */
    unsigned           first;  /**< Byte of a payload that is made */
    unsigned           full;   /**< 1: make it, check all of it */
} bench_kernel_pp_t;

#define BENCH_KERNEL_WRONG (1ull << 32)

/** Arguments of bench_spin(). */
typedef struct bench_kernel_spin {
    bench_kernel_head_t head;
    unsigned long long cycles; /**< Of the device's clock, at least */
} bench_kernel_spin_t;

/** Arguments of bench_faces_pack(), _interior() and _unpack(). A value is a
 *  double, an index is an unsigned. The nodes at place i are those of `nodes`
 *  from `first[i]` to before `first[i + 1]`, ascending. */
typedef struct bench_kernel_faces {
    bench_kernel_head_t head;
    unsigned long long value;       /**< Of nodes */
    unsigned long long source;
    unsigned long long updated;
    unsigned long long sum;         /**< Of places */
    unsigned long long first;
    unsigned long long nodes;
    unsigned long long message;     /**< Messages, as one array of values */
    unsigned long long out_place;   /**< Of each value that is sent, its place,
                                         and its index in the messages */
    unsigned long long out_at;
    unsigned long long in_first;    /**< As `first` and `nodes`: the indexes in
                                         the messages of what is added */
    unsigned long long in_at;
    unsigned           num_values;
    unsigned           num_places;
    unsigned           num_out;
    unsigned           reserved;
    double             drift;
} bench_kernel_faces_t;

/** Arguments of bench_life_pack() and _step(). The grids have a row or column
 *  more on each side, which is not used here. */
typedef struct bench_kernel_life {
    bench_kernel_head_t head;
    unsigned long long cells;
    unsigned long long next;
    unsigned long long message; /**< Those of the 8 directions, */
    unsigned long long stride;  /**< so many bytes from one to the next */
    unsigned           width;   /**< Own cells */
    unsigned           height;
} bench_kernel_life_t;

#endif
