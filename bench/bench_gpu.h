/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_gpu.h - what messages of a GPU's stream are compared with besides: MPI
 * on the GPU's memory, NCCL (RCCL with HIP), and NVSHMEM (with CUDA).
 */
#ifndef BENCH_GPU_H_
#define BENCH_GPU_H_

#include "bench_stream.h"


/* Takes variants out that this machine has not; rank 0 prints a line for each.
 * Collective over 'comm', whose ranks those of NCCL and NVSHMEM are. */
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

/* A put; 'dst' and 'signal' are the addresses of the own ones. */
typedef struct bench_nvshmem_put {
    void       *dst;
    const void *src;
    size_t     size;
    uint64_t   *signal;
    uint64_t   value;
    int        peer;
} bench_nvshmem_put_t;

/* An area whose message is in NVSHMEM's symmetric memory, both parts zeroed; of
 * one size on all ranks. Collective. */
void bench_nvshmem_area_init(const bench_stream_t *stream, bench_area_t *area,
                             size_t size);
void bench_nvshmem_area_cleanup(const bench_stream_t *stream,
                                bench_area_t *area);

/* Puts a message to such memory of a peer in the order of the stream, and sets
 * the peer's signal behind it. */
void bench_nvshmem_put(const bench_stream_t *stream,
                       const bench_nvshmem_put_t *put);

/* Waits until the own signal is no less. */
void bench_nvshmem_wait(const bench_stream_t *stream, uint64_t *signal,
                        uint64_t value);

#define BENCH_NVSHMEM_SETS 2

/* The messages of a halo in such memory, in the place of others. */
typedef struct bench_nvshmem_halo {
    bench_area_t *out;    /* The places: of what is sent, */
    bench_area_t *in;     /* ... and of sets of what comes */
    bench_area_t others[1 + BENCH_NVSHMEM_SETS];
    bench_area_t signals; /* A word for each direction that a message goes */
    int          num_dirs;
    uint64_t     count;   /* Iterations so far */
} bench_nvshmem_halo_t;

/* Collective, as for an area. */
void bench_nvshmem_halo_init(const bench_stream_t *stream,
                             bench_nvshmem_halo_t *halo, bench_area_t *out,
                             bench_area_t in[BENCH_NVSHMEM_SETS], int num_dirs);
void bench_nvshmem_halo_cleanup(const bench_stream_t *stream,
                                bench_nvshmem_halo_t *halo);

/* The own signal of a direction. */
static inline uint64_t *bench_nvshmem_signal(const bench_nvshmem_halo_t *halo,
                                             int dir)
{
    return (uint64_t*)halo->signals.message + dir;
}

/* Waits for all messages of the iteration. */
void bench_nvshmem_halo_wait(const bench_stream_t *stream,
                             const bench_nvshmem_halo_t *halo);

#endif
