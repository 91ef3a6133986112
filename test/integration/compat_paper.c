/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_paper.c - a program with the names of the 2026 paper, for MPI itself:
 * a ring, on compat/mpi_queue_paper.h. C and C++.
 */
#include "mpi_queue_paper.h"

#include <stdio.h>

enum { STEPS = 10 };

static int rank, size, wrong, step, in[2], out[2];

static void pack(void *arg)
{
    out[0] = 100 * rank + step;
    out[1] = -out[0];
}

static void verify(void *arg)
{
    wrong += (in[0] != (100 * ((rank + size - 1) % size) + step)) ||
             (in[1] != -in[0]);
    ++step;
}

int main(int argc, char **argv)
{
    MPI_Request requests[4];
    MPI_Status status;
    MPI_Queue queue = MPI_QUEUE_NULL;
    int i, left, right, total, is_matched = 0;
    void *stream;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left  = (rank + size - 1) % size;
    right = (rank + 1) % size;
    MPIX_Host_stream_create(&stream);
    MPI_Queue_init(MPIX_QUEUE_HOST, stream, &queue);

    for (i = 0; i < 2; ++i) {
        MPI_Recv_init(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD,
                      &requests[i]);
        MPI_Send_init(&out[i], 1, MPI_INT, right, i, MPI_COMM_WORLD,
                      &requests[2 + i]);
    }
    MPI_Imatch(&requests[0]);
    MPI_Imatchall(1, &requests[1]);
    if (size == 1) {
        MPI_Matchall(2, &requests[2], MPI_STATUSES_IGNORE);
    } else {
        MPI_Match(&requests[2], MPI_STATUS_IGNORE);
        MPI_Match(&requests[3], &status);
    }
    for (i = 0; i < 2; i += is_matched) {
        MPI_Is_matched(&requests[i], &is_matched, MPI_STATUS_IGNORE);
    }

    for (i = 0; i < STEPS; ++i) {
        MPIX_Host_stream_launch(stream, pack, NULL);
        MPI_Enqueue_startall(queue, 2, requests);
        MPI_Enqueue_start(queue, &requests[2]);
        MPI_Enqueue_start(queue, &requests[3]);
        MPI_Enqueue_waitall(queue, 3, requests);
        MPI_Enqueue_wait(queue, &requests[3]);
        MPIX_Host_stream_launch(stream, verify, NULL);
    }
    MPI_Queue_wait(queue);
    MPIX_Host_stream_synchronize(stream);
    wrong += (step != STEPS);

    for (i = 0; i < 4; ++i) {
        MPI_Request_free(&requests[i]);
    }
    MPI_Queue_free(&queue);
    wrong += (queue != MPI_QUEUE_NULL);
    MPIX_Host_stream_free(&stream);
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("compat_paper: %d ranks, %d wrong\n", size, total);
    }
    MPI_Finalize();
    return total != 0;
}
