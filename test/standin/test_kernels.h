/* SPDX-License-Identifier: BSD-3-Clause */
/* test_kernels.h - what the kernels of test_kernels.cu are given. */
#ifndef TEST_KERNELS_H_
#define TEST_KERNELS_H_

#include <ucp_st_device.h>

typedef struct test_kernel_add {
    unsigned long long word;
    unsigned long long value;
} test_kernel_add_t;

/* What a kernel of an operation does in each round, in this order */
#define TEST_KERNEL_FILL   1u /* Stores the round's number, and the seed */
#define TEST_KERNEL_START  2u
#define TEST_KERNEL_LENGTH 4u /* ... of a length */
#define TEST_KERNEL_TEST   8u /* Until it is over */
#define TEST_KERNEL_WAIT   16u
#define TEST_KERNEL_SUM    32u /* Adds what is there */

/* ... until something is not UCP_ST_DEVICE_OK, and in device memory, then */
typedef struct test_kernel_result {
    unsigned long long start;  /* What the last start gave */
    unsigned long long wait;   /* ... the last test or wait */
    unsigned long long tell;   /* ... a call for the length */
    unsigned long long length;
    unsigned long long sum;
    unsigned long long rounds; /* That were good */
} test_kernel_result_t;

typedef struct test_kernel_op {
    ucp_st_device_op_t op;
    unsigned           what;
    unsigned           level;
    unsigned long long length;
    unsigned long long rounds;
    unsigned long long seed;
    unsigned long long buffer;
    unsigned long long result;
} test_kernel_op_t;

#endif
