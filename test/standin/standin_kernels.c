/* SPDX-License-Identifier: BSD-3-Clause */
/* standin_kernels.c - the library's kernels. */
#include "standin_device.h"
#include "../../src/ucs_ext/gstream_kernels.cu"


STANDIN_KERNEL(ucs_gstream_waits_few, gstream_kernel_few_t)
STANDIN_KERNEL(ucs_gstream_waits_many, gstream_kernel_many_t)
STANDIN_KERNEL(ucs_gstream_pairs_few, gstream_kernel_pairs_few_t)
STANDIN_KERNEL(ucs_gstream_pairs_many, gstream_kernel_pairs_many_t)
STANDIN_KERNEL(ucs_gstream_move, gstream_kernel_move_t)

const standin_kernel_t standin_kernels[] = {
    STANDIN_KERNEL_ENTRY(ucs_gstream_waits_few, gstream_kernel_few_t),
    STANDIN_KERNEL_ENTRY(ucs_gstream_waits_many, gstream_kernel_many_t),
    STANDIN_KERNEL_ENTRY(ucs_gstream_pairs_few, gstream_kernel_pairs_few_t),
    STANDIN_KERNEL_ENTRY(ucs_gstream_pairs_many, gstream_kernel_pairs_many_t),
    STANDIN_KERNEL_ENTRY(ucs_gstream_move, gstream_kernel_move_t),
    {NULL, 0, NULL}
};
