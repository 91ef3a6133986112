/* SPDX-License-Identifier: BSD-3-Clause */
/* test_kernels.c - a kernel that is not the library's, of test_standin_module.
 */
#include "standin_device.h"
#include "test_kernels.h"


UCS_GSTREAM_KERNEL test_kernel_add(test_kernel_add_t args)
{
    UCS_GSTREAM_ADD(args.word, args.value);
}

STANDIN_KERNEL(test_kernel_add, test_kernel_add_t)

const standin_kernel_t standin_kernels[] = {
    STANDIN_KERNEL_ENTRY(test_kernel_add, test_kernel_add_t),
    {NULL, 0, NULL}
};
