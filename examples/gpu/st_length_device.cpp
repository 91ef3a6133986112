/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_length_device.cpp - a message whose length only the GPU knows: rank 0's
 * kernel picks the numbers that are large and sends these, and rank 1's kernel
 * adds up as many as have come. No host learns how many.
 *
 *     hipcc or nvcc -x cu; two ranks of one node. See docs/gpu.md
 */
#include "gpu.h"

#include "st_device_kernels.h"

#include <mpix_queue_device.h>

enum { COUNT = 1000, DOUBLES = 2 * COUNT + 3 };

int main(int argc, char **argv)
{
    static double values[DOUBLES];
    double *memory, *message;
    length_args args = {};
    int rank, provided, i;
    gpuStream_t stream;
    MPI_Request request;
    MPIX_Queue queue;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gpu_must(gpuStreamCreateNonBlocking(&stream), "no stream");
    gpu_must(gpuMalloc((void**)&memory, sizeof(values)), "no memory");
    for (i = 0; i < COUNT; ++i) {
        values[i] = i;
    }
    gpu_must(gpuCopyIn(memory, values, sizeof(values)), "no copy");
    message      = memory + COUNT;
    args.numbers = (unsigned long long)memory;
    args.message = (unsigned long long)message;
    args.result  = (unsigned long long)(message + COUNT);
    args.count   = COUNT;
    args.limit   = 900;
    MPIX_Queue_init(MPIX_QUEUE_GPU, stream, &queue);
    if (rank == 0) { /* At most all of them */
        MPI_Send_init(message, COUNT, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD,
                      &request);
    } else {
        MPI_Recv_init(message, COUNT, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD,
                      &request);
    }
    MPIX_Match(&request, MPI_STATUS_IGNORE);
    MPIX_Request_device(request, &args.op);

    if (rank == 0) {
        MPIX_Post_ahead(queue, request, 1);
        length_send<<<1, 1, 0, stream>>>(args);
    } else {
        MPIX_Enqueue_startall(queue, 1, &request);
        MPIX_Enqueue_waitall(queue, 1, &request);
        length_receive<<<1, 1, 0, stream>>>(args);
    }
    gpu_must(gpuGetLastError(), "a kernel was not launched");
    gpu_must(gpuStreamSynchronize(stream), "the stream failed");
    gpu_must(gpuCopyOut(values, memory, sizeof(values)), "no copy");
    printf("rank %d: %g numbers, sum %g, status %g\n", rank,
           values[2 * COUNT + 1], values[2 * COUNT + 2], values[2 * COUNT]);

    MPI_Request_free(&request);
    MPIX_Queue_free(&queue);
    gpu_must(gpuFree(memory), "memory was not freed");
    gpu_must(gpuStreamDestroy(stream), "the stream was not destroyed");
    return MPI_Finalize();
}
