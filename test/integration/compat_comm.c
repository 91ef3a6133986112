/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_comm.c - a program in the form of HPE's example, in which the queue
 * has the communicator, on compat/mpix_queue_comm.h. C and C++.
 */
#include "mpix_queue_comm.h"

#include <stdio.h>

enum { BUFFERS = 4 };

static const int tags[BUFFERS] = {123, 126, 125, 124};
static int src[BUFFERS], dst[BUFFERS], rank;

static void fill(void *arg)
{
    int i;

    for (i = 0; i < BUFFERS; ++i) {
        src[i] = 1000 * rank + tags[i];
    }
}

int main(int argc, char **argv)
{
    int size, i, provided, level, total, wrong = 0;
    MPI_Request requests[2 * BUFFERS];
    MPIX_Queue queue;
    MPI_Comm comm;
    void *stream;

    if (argc > 1) {
        MPI_Init(&argc, &argv);
        MPI_Query_thread(&provided);
    } else {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    }
    MPI_Query_thread(&level);
    wrong += (provided != level) || (level < MPI_THREAD_FUNNELED);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPIX_Host_stream_create(&stream);
    MPIX_Create_queue(comm, stream, &queue);

    MPIX_Host_stream_launch(stream, fill, NULL);
    for (i = 0; i < BUFFERS; ++i) {
        MPIX_Enqueue_recv(&dst[i], 1, MPI_INT, (rank + size - 1) % size,
                          tags[i], queue, &requests[i]);
    }
    for (i = 0; i < BUFFERS; ++i) {
        MPIX_Enqueue_send(&src[i], 1, MPI_INT, (rank + 1) % size, tags[i],
                          queue, &requests[BUFFERS + i]);
    }
    MPIX_Enqueue_start(queue);
    MPIX_Enqueue_wait(queue);
    MPIX_Host_stream_synchronize(stream);
    for (i = 0; i < BUFFERS; ++i) {
        wrong += (dst[i] != (1000 * ((rank + size - 1) % size) + tags[i]));
    }
    MPI_Waitall(2 * BUFFERS, requests, MPI_STATUSES_IGNORE);

    MPIX_Free_queue(queue);
    MPIX_Host_stream_free(&stream);
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, comm);
    if (rank == 0) {
        printf("compat_comm: %d ranks, %d wrong\n", size, total);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return total != 0;
}
