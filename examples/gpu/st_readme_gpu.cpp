/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_readme_gpu.cpp - the README's example on a GPU: two ranks count to a
 * thousand. In each step a kernel adds one to what came last, and the ranks
 * exchange the results. The host enqueues everything, then waits once.
 *
 *     hipcc or nvcc -x cu; see docs/gpu.md
 */
#include "gpu.h"

#include <mpix_queue.h>

/* Both lie in memory of the host that the GPU reaches. */
__global__ void add_one(const int *in, int *out)
{
    *out = *in + 1;
}

int main(int argc, char **argv)
{
    int rank, provided, i;
    MPI_Request both[2];
    gpuStream_t stream;
    MPIX_Queue queue;
    int *words;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gpu_must(gpuStreamCreateNonBlocking(&stream), "no stream");
    gpu_must(gpuHostAlloc((void**)&words, 2 * sizeof(*words)), "no memory");
    words[0] = 0;
    MPIX_Queue_init(MPIX_QUEUE_GPU, stream, &queue);
    MPI_Recv_init(&words[0], 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Send_init(&words[1], 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, &both[1]);
    MPIX_Matchall(2, both, MPI_STATUSES_IGNORE); /* once */

    for (i = 0; i < 1000; ++i) { /* nothing blocks here */
        add_one<<<1, 1, 0, stream>>>(&words[0], &words[1]);
        MPIX_Enqueue_startall(queue, 2, both);
        MPIX_Enqueue_waitall(queue, 2, both);
    }
    gpu_must(gpuGetLastError(), "a kernel was not launched");
    MPIX_Queue_wait(queue); /* the only wait */
    printf("rank %d: %d\n", rank, words[0]);

    for (i = 0; i < 2; ++i) {
        MPI_Request_free(&both[i]);
    }
    MPIX_Queue_free(&queue);
    gpu_must(gpuHostFree(words), "memory was not freed");
    gpu_must(gpuStreamDestroy(stream), "the stream was not destroyed");
    return MPI_Finalize();
}
