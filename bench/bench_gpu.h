/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_gpu.h - what messages of a GPU's stream are compared with besides: MPI
 * on the GPU's memory, and NCCL (RCCL with HIP).
 */
#ifndef BENCH_GPU_H_
#define BENCH_GPU_H_

#include "bench_stream.h"


/* Takes variants out that this machine has not; rank 0 prints a line for each.
 * Collective over 'comm', whose ranks NCCL's are. */
void bench_gpu_open(bench_stream_t *stream, bench_options_t *options,
                    MPI_Comm comm);

/* Ends what it has begun. Collective. */
void bench_gpu_close(void);

/* Messages of NCCL in the order of the stream, which belong together: begin(),
 * any number of send() and recv(), end(). Between two ranks they match in their
 * order. */
void bench_nccl_begin(void);
void bench_nccl_send(const bench_stream_t *stream, const void *message,
                     size_t size, int peer);
void bench_nccl_recv(const bench_stream_t *stream, void *message, size_t size,
                     int peer);
void bench_nccl_end(void);

#endif
