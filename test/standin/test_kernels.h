/* SPDX-License-Identifier: BSD-3-Clause */
/* test_kernels.h - what the kernel of test_kernels.c is given. */
#ifndef TEST_KERNELS_H_
#define TEST_KERNELS_H_

typedef struct test_kernel_add {
    unsigned long long word;
    unsigned long long value;
} test_kernel_add_t;

#endif
