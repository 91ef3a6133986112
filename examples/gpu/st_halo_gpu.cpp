/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_halo_gpu.cpp - heat in a grid of ranks on GPUs, as st_halo.c has it on
 * streams of the host: each step takes the average of the neighbours' values.
 *
 *     hipcc or nvcc -x cu; see docs/gpu.md
 */
#include "gpu.h"

#include <mpix_queue.h>

enum { SIDES = 4, STEPS = 50 };

/* A rank's part, in memory of the host that the GPU reaches. Up and down, left
 * and right, as MPI's neighbour collectives have them. Beyond the border it is
 * cold: what is never received stays 0. */
struct part {
    double value, send[SIDES], recv[SIDES];
};

__global__ void pack(part *own)
{
    own->send[threadIdx.x] = own->value;
}

__global__ void average(part *own)
{
    own->value = (own->recv[0] + own->recv[1] + own->recv[2] + own->recv[3]) /
                 SIDES;
}

static void run(MPI_Comm cart, gpuStream_t stream, part *own)
{
    MPIX_Halo_side sides[SIDES];
    MPIX_Queue queue;
    MPIX_Halo halo;
    int i;

    for (i = 0; i < SIDES; ++i) {
        sides[i].sendbuf   = &own->send[i];
        sides[i].sendcount = 1;
        sides[i].sendtype  = MPI_DOUBLE;
        sides[i].recvbuf   = &own->recv[i];
        sides[i].recvcount = 1;
        sides[i].recvtype  = MPI_DOUBLE;
    }
    MPIX_Queue_init(MPIX_QUEUE_GPU, stream, &queue);
    MPIX_Halo_init(cart, SIDES, sides, queue, &halo);
    for (i = 0; i < STEPS; ++i) {
        pack<<<1, SIDES, 0, stream>>>(own);
        MPIX_Halo_start(halo);
        MPIX_Halo_wait(halo);
        average<<<1, 1, 0, stream>>>(own);
    }
    gpu_must(gpuGetLastError(), "a kernel was not launched");
    MPIX_Queue_wait(queue);
    MPIX_Halo_free(&halo);
    MPIX_Queue_free(&queue);
}

int main(int argc, char **argv)
{
    int ranks, rank, provided, i, size[2] = {0, 0}, periodic[2] = {0, 1};
    gpuStream_t stream;
    double all;
    MPI_Comm cart;
    part *own;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, size);
    MPI_Cart_create(MPI_COMM_WORLD, 2, size, periodic, 0, &cart);
    MPI_Comm_rank(cart, &rank);
    gpu_must(gpuStreamCreateNonBlocking(&stream), "no stream");
    gpu_must(gpuHostAlloc((void**)&own, sizeof(*own)), "no memory");
    own->value = 100.0 + rank;
    for (i = 0; i < SIDES; ++i) {
        own->recv[i] = 0;
    }

    run(cart, stream, own);
    /* The last kernel comes behind the queue's last command */
    gpu_must(gpuStreamSynchronize(stream), "the stream failed");
    MPI_Reduce(&own->value, &all, 1, MPI_DOUBLE, MPI_SUM, 0, cart);
    if (rank == 0) {
        printf("%d x %d ranks, heat after %d steps: %g\n", size[0], size[1],
               STEPS, all);
    }

    gpu_must(gpuHostFree(own), "memory was not freed");
    gpu_must(gpuStreamDestroy(stream), "the stream was not destroyed");
    MPI_Comm_free(&cart);
    return MPI_Finalize();
}
