/* SPDX-License-Identifier: BSD-3-Clause */
/* test_kernels.c - the kernels of test_kernels.cu on the stand-ins. */
#include "standin_device.h"
#include "test_kernels.cu"


STANDIN_KERNEL(test_kernel_add, test_kernel_add_t)
STANDIN_KERNEL(test_kernel_op, test_kernel_op_t)
STANDIN_KERNEL(halo_inner, halo_args_t)
STANDIN_KERNEL(halo_outer, halo_args_t)
STANDIN_KERNEL(length_send, length_args_t)
STANDIN_KERNEL(length_receive, length_args_t)

const standin_kernel_t standin_kernels[] = {
    STANDIN_KERNEL_ENTRY(test_kernel_add, test_kernel_add_t),
    STANDIN_KERNEL_ENTRY(test_kernel_op, test_kernel_op_t),
    STANDIN_KERNEL_ENTRY(halo_inner, halo_args_t),
    STANDIN_KERNEL_ENTRY(halo_outer, halo_args_t),
    STANDIN_KERNEL_ENTRY(length_send, length_args_t),
    STANDIN_KERNEL_ENTRY(length_receive, length_args_t),
    {NULL, 0, NULL}
};
