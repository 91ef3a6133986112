/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_hpe.c - a program as codes for HPE's MPI are written: its calls come
 * with mpi.h alone, it drops its requests, and frees its queue at once. C and
 * C++. Its stream is that of ST_TEST_STREAM.
 */
#include <mpi.h>

#include "mpix_test.h"

#include <stdio.h>

enum { BUFFERS = 4 };

static int src[BUFFERS], dst[BUFFERS];

int main(int argc, char **argv)
{
    int rank, size, left, i, provided, total, wrong = 0;
    MPIX_Queue queue;
    void *stream;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = (rank + size - 1) % size;
    mpix_test_stream(&stream);
    MPIX_Create_queue(stream, &queue);
    for (i = 0; i < BUFFERS; ++i) {
        MPI_Request request; /* dropped */

        src[i] = (1000 * rank) + i;
        MPIX_Enqueue_recv(&dst[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, queue,
                          &request);
        MPIX_Enqueue_send(&src[i], 1, MPI_INT, (rank + 1) % size, i,
                          MPI_COMM_WORLD, queue, &request);
    }
    MPIX_Enqueue_start(queue);
    MPIX_Enqueue_wait(queue);
    MPIX_Free_queue(queue);
    MPIX_Host_stream_synchronize(stream);
    for (i = 0; i < BUFFERS; ++i) {
        wrong += (dst[i] != ((1000 * left) + i));
    }
    MPIX_Host_stream_free(&stream);
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("compat_hpe: %d wrong\n", total);
    }
    MPI_Finalize();
    return total != 0;
}
