/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_hello.c - two ranks greet each other, in the order of a stream.
 *
 *     contrib/ucx-st-run mpirun -n 2 build/examples/st_hello
 */
#include <mpix_queue.h>
#include <stdio.h>

enum { SIZE = 64 };

/* A kernel: runs on the stream once the message is there. */
static void print_greeting(void *arg)
{
    printf("got: %s\n", (char*)arg);
}

static void exchange(int rank)
{
    char text[SIZE], greeting[SIZE] = "";
    MPI_Request both[2];
    MPIX_Queue queue;
    void *stream;

    snprintf(text, SIZE, "hello from rank %d", rank);
    /* A host stream, and a queue that puts messages on it */
    MPIX_Host_stream_create(&stream);
    MPIX_Queue_init(MPIX_QUEUE_HOST, stream, &queue);

    /* Ordinary persistent requests, matched once for any number of uses */
    MPI_Send_init(text, SIZE, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Recv_init(greeting, SIZE, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, &both[1]);
    MPIX_Matchall(2, both, MPI_STATUSES_IGNORE);

    /* Enqueued at once, run by the stream one after the other */
    MPIX_Enqueue_startall(queue, 2, both);
    MPIX_Enqueue_waitall(queue, 2, both);
    MPIX_Host_stream_launch(stream, print_greeting, greeting);

    /* The host waits for the messages, then for the kernel behind them */
    MPIX_Queue_wait(queue);
    MPIX_Host_stream_synchronize(stream);

    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
    MPIX_Queue_free(&queue);
    MPIX_Host_stream_free(&stream);
}

int main(int argc, char **argv)
{
    int rank, provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank < 2) {
        exchange(rank);
    }
    return MPI_Finalize();
}
