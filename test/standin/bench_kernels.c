/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_kernels.c - the kernels of the benchmarks. */
#include "standin_device.h"
#include "../../bench/bench_kernels.cu"


STANDIN_KERNEL(bench_pp_pack, bench_kernel_pp_t)
STANDIN_KERNEL(bench_pp_unpack, bench_kernel_pp_t)
STANDIN_KERNEL(bench_spin, bench_kernel_spin_t)
STANDIN_KERNEL(bench_faces_pack, bench_kernel_faces_t)
STANDIN_KERNEL(bench_faces_interior, bench_kernel_faces_t)
STANDIN_KERNEL(bench_faces_unpack, bench_kernel_faces_t)
STANDIN_KERNEL(bench_life_pack, bench_kernel_life_t)
STANDIN_KERNEL(bench_life_step, bench_kernel_life_t)

const standin_kernel_t standin_kernels[] = {
    STANDIN_KERNEL_ENTRY(bench_pp_pack, bench_kernel_pp_t),
    STANDIN_KERNEL_ENTRY(bench_pp_unpack, bench_kernel_pp_t),
    STANDIN_KERNEL_ENTRY(bench_spin, bench_kernel_spin_t),
    STANDIN_KERNEL_ENTRY(bench_faces_pack, bench_kernel_faces_t),
    STANDIN_KERNEL_ENTRY(bench_faces_interior, bench_kernel_faces_t),
    STANDIN_KERNEL_ENTRY(bench_faces_unpack, bench_kernel_faces_t),
    STANDIN_KERNEL_ENTRY(bench_life_pack, bench_kernel_life_t),
    STANDIN_KERNEL_ENTRY(bench_life_step, bench_kernel_life_t),
    {NULL, 0, NULL}
};
