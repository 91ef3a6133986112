/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_move.c - one-sided copies by kernels of the library. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_gpu_stream.h"
#include "gstream_kernels.h"
#include "gstream_memory.h"
#include "api/ucs_gstream_move.h"

#include <ucs/debug/log_def.h>


ucs_status_t ucs_gstream_move_prepare(ucs_gstream_h stream,
                                      ucs_gstream_cell_h *cell_p)
{
    int device = ucs_gstream_pair_device(stream);
    ucs_gstream_cell_h cell;
    ucs_status_t status;

    status = (device < 0) ? UCS_ERR_UNSUPPORTED :
                            ucs_gstream_pair_prepare(stream->type, device);
    if (status != UCS_OK) {
        return status;
    }
    cell = ucs_gstream_cell_get(stream->type, device);
    if (cell == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    *cell_p = cell;
    return UCS_OK;
}

int ucs_gstream_move_is_likely(void)
{
    return (gstream_gpu_open(UCS_GSTREAM_TYPE_HIP, 1) != NULL) ||
           (gstream_gpu_open(UCS_GSTREAM_TYPE_CUDA, 1) != NULL);
}

ucs_status_t gstream_move_set(const gstream_gpu_t *gpu,
                              const ucs_gstream_move_t *move,
                              gstream_kernel_move_t *args)
{
    uint64_t failed;

    if (gstream_memory_map(gpu, move->failed, &failed) != UCS_OK) {
        ucs_error("%s: the device does not reach the word %p of a move",
                  gpu->name, (void*)move->failed);
        return UCS_ERR_INVALID_PARAM;
    }
    *args = (gstream_kernel_move_t){
        .cell   = move->cell,
        .failed = failed,
        .dst    = (uintptr_t)move->dst,
        .src    = (uintptr_t)move->src,
        .length = move->length,
        .signal = (uintptr_t)move->signal,
        .value  = move->value
    };
    return UCS_OK;
}

int gstream_move_launch(const gstream_kernels_t *kernels, void *native,
                        const ucs_gstream_move_t *move)
{
    gstream_kernel_move_t args;
    gstream_launch_t launch;

    if (gstream_move_set(kernels->gpu, move, &args) != UCS_OK) {
        return GSTREAM_GPU_INVALID;
    }
    gstream_pair_size(kernels, move->length, &args.head);
    launch = (gstream_launch_t){
        .function = kernels->move,
        .blocks   = args.head.num_blocks,
        .threads  = args.head.num_threads,
        .args     = &args,
        .size     = sizeof(args)
    };
    return gstream_kernels_launch(kernels->gpu, native, &launch);
}
