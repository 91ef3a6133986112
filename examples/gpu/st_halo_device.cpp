/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_halo_device.cpp - heat in a rod whose ends meet, a part on each rank: the
 * kernel that packs what the neighbours need starts the sends itself. Receives
 * are enqueued. The host posts all sends ahead, enqueues all steps, and waits
 * once.
 *
 *     hipcc or nvcc -x cu; ranks of one node. See docs/gpu.md
 */
#include "gpu.h"

#include "st_device_kernels.h"

#include <mpix_queue_device.h>

enum { COUNT = 1000, STEPS = 100, THREADS = 128, DOUBLES = 2 * COUNT + 5 };

static void run(int rank, int ranks, gpuStream_t stream, double *memory)
{
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    double *out    = memory + 2 * COUNT, *in = out + 2;
    halo_args args = {};
    MPI_Request both[4];
    MPIX_Queue queue;
    int i;

    args.cells = (unsigned long long)memory;
    args.next  = (unsigned long long)(memory + COUNT);
    args.out   = (unsigned long long)out;
    args.in    = (unsigned long long)in;
    args.error = (unsigned long long)(in + 2);
    args.count = COUNT;
    MPIX_Queue_init(MPIX_QUEUE_GPU, stream, &queue);
    MPI_Recv_init(&in[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &both[0]);
    MPI_Recv_init(&in[1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &both[1]);
    MPI_Send_init(&out[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &both[2]);
    MPI_Send_init(&out[1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &both[3]);
    MPIX_Matchall(4, both, MPI_STATUSES_IGNORE);
    for (i = 0; i < 2; ++i) {
        MPIX_Request_device(both[2 + i], &args.send[i]);
        MPIX_Post_ahead(queue, both[2 + i], STEPS);
    }

    for (i = 0; i < STEPS; ++i) {
        MPIX_Enqueue_startall(queue, 2, both);
        halo_inner<<<1, THREADS, 0, stream>>>(args);
        MPIX_Enqueue_waitall(queue, 2, both);
        halo_outer<<<1, THREADS, 0, stream>>>(args);
    }
    gpu_must(gpuGetLastError(), "a kernel was not launched");
    MPIX_Queue_wait(queue);
    gpu_must(gpuStreamSynchronize(stream), "the stream failed");

    for (i = 0; i < 4; ++i) {
        MPI_Request_free(&both[i]);
    }
    MPIX_Queue_free(&queue);
}

int main(int argc, char **argv)
{
    static double values[DOUBLES];
    int ranks, rank, provided, i;
    double sums[2] = {0, 0}, all[2], *memory;
    gpuStream_t stream;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gpu_must(gpuStreamCreateNonBlocking(&stream), "no stream");
    gpu_must(gpuMalloc((void**)&memory, sizeof(values)), "no memory");
    for (i = 0; i < COUNT; ++i) {
        values[i] = (rank == 0) ? i : 0;
        sums[0]  += values[i];
    }
    gpu_must(gpuCopyIn(memory, values, sizeof(values)), "no copy");

    run(rank, ranks, stream, memory);
    gpu_must(gpuCopyOut(values, memory, sizeof(values)), "no copy");
    for (i = 0; i < COUNT; ++i) {
        sums[1] += values[i];
    }
    if (values[DOUBLES - 1] != 0) {
        fprintf(stderr, "rank %d: a kernel's message failed (%g)\n", rank,
                values[DOUBLES - 1]);
    }
    MPI_Reduce(sums, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) { /* What goes out on one side comes in on the other */
        printf("%d ranks, heat before and after %d steps: %g, %g\n", ranks,
               STEPS, all[0], all[1]);
    }
    gpu_must(gpuFree(memory), "memory was not freed");
    gpu_must(gpuStreamDestroy(stream), "the stream was not destroyed");
    return MPI_Finalize();
}
