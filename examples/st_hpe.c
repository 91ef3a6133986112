/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_hpe.c - the program of HPE's paper: rank 0 runs a kernel and starts four
 * sends by one start; rank 1 starts four receives and runs a kernel. The
 * published texts have two forms of these calls. Both are in mpix_queue.h, and
 * both are shown.
 *
 *     contrib/ucx-st-run mpirun -n 2 build/examples/st_hpe
 */
#include <mpix_queue.h>
#include <stdio.h>

enum { BUFFERS = 4, SIZE = 100 };

static const int tags[BUFFERS] = {123, 126, 125, 124};
static int data[BUFFERS][SIZE];

/* A kernel of rank 0. */
static void produce(void *arg)
{
    int i, j;

    for (i = 0; i < BUFFERS; ++i) {
        for (j = 0; j < SIZE; ++j) {
            data[i][j] = *(int*)arg + tags[i];
        }
    }
}

/* A kernel of rank 1: sees what came, though no host has waited. */
static void consume(void *arg)
{
    int i;

    for (i = 0; i < BUFFERS; ++i) {
        printf("form %d, tag %d: %d\n", *(int*)arg, tags[i],
               data[i][SIZE - 1]);
    }
}

/* The communicator is an argument of each message. */
static void form_1(int rank, void *stream)
{
    int i, form = 1, base = 1000;
    MPI_Request requests[BUFFERS];
    MPIX_Queue queue;

    MPIX_Create_queue(stream, &queue);
    if (rank == 0) {
        MPIX_Host_stream_launch(stream, produce, &base);
    }
    for (i = 0; i < BUFFERS; ++i) {
        if (rank == 0) {
            MPIX_Enqueue_send(data[i], SIZE, MPI_INT, 1, tags[i],
                              MPI_COMM_WORLD, queue, &requests[i]);
        } else {
            MPIX_Enqueue_recv(data[i], SIZE, MPI_INT, 0, tags[i],
                              MPI_COMM_WORLD, queue, &requests[i]);
        }
    }
    MPIX_Enqueue_start(queue);
    MPIX_Enqueue_wait(queue);
    if (rank == 1) {
        MPIX_Host_stream_launch(stream, consume, &form);
    }
    MPIX_Host_stream_synchronize(stream);
    MPI_Waitall(BUFFERS, requests, MPI_STATUSES_IGNORE);
    MPIX_Free_queue(queue);
}

/* The communicator is the queue's. */
static void form_2(int rank, void *stream)
{
    int i, form = 2, base = 2000;
    MPI_Request requests[BUFFERS];
    MPIX_Queue queue;

    MPIX_Create_queue(MPI_COMM_WORLD, stream, &queue);
    if (rank == 0) {
        MPIX_Host_stream_launch(stream, produce, &base);
    }
    for (i = 0; i < BUFFERS; ++i) {
        if (rank == 0) {
            MPIX_Enqueue_send(data[i], SIZE, MPI_INT, 1, tags[i], queue,
                              &requests[i]);
        } else {
            MPIX_Enqueue_recv(data[i], SIZE, MPI_INT, 0, tags[i], queue,
                              &requests[i]);
        }
    }
    MPIX_Enqueue_start(queue);
    MPIX_Enqueue_wait(queue);
    if (rank == 1) {
        MPIX_Host_stream_launch(stream, consume, &form);
    }
    MPIX_Host_stream_synchronize(stream);
    MPI_Waitall(BUFFERS, requests, MPI_STATUSES_IGNORE);
    MPIX_Free_queue(queue);
}

int main(int argc, char **argv)
{
    int rank, provided;
    void *stream;

    /* A thread of the library sends and receives */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPIX_Host_stream_create(&stream);
    if (rank < 2) {
        form_1(rank, stream);
        form_2(rank, stream);
    }
    MPIX_Host_stream_free(&stream);
    return MPI_Finalize();
}
