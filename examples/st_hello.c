/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_hello.c - two ranks greet each other, in the order of a stream.
 *
 *     contrib/ucx-st-run mpirun -n 2 build/examples/st_hello
 */
#include <mpix_queue.h>

#include <stdio.h>

enum { SIZE = 64, SEND = 0, RECV = 1 };

/* A kernel: runs on the stream once the message is there. */
static void print_greeting(void *arg)
{
    printf("got: %s\n", (char*)arg);
}

static void exchange(int rank)
{
    char text[SIZE], greeting[SIZE] = "";
    MPI_Request requests[2];
    MPIX_Queue queue;
    void *stream;

    snprintf(text, SIZE, "hello from rank %d", rank);

    /* A host stream, and a queue that puts messages on it */
    MPIX_Host_stream_create(&stream);
    MPIX_Queue_init(MPIX_QUEUE_HOST, stream, &queue);

    /* Ordinary persistent requests, matched once: the peers now know each
     * other's buffers, and messages need the hosts no more */
    MPI_Send_init(text, SIZE, MPI_CHAR, !rank, 0, MPI_COMM_WORLD,
                  &requests[SEND]);
    MPI_Recv_init(greeting, SIZE, MPI_CHAR, !rank, 0, MPI_COMM_WORLD,
                  &requests[RECV]);
    MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE);

    /* Enqueued at once, run by the stream one after the other. In a loop, start
     * and wait may follow any number of times */
    MPIX_Enqueue_startall(queue, 2, requests);
    MPIX_Enqueue_waitall(queue, 2, requests);
    MPIX_Host_stream_launch(stream, print_greeting, greeting);

    /* The host's only wait */
    MPIX_Queue_wait(queue);
    MPIX_Host_stream_synchronize(stream);

    MPI_Request_free(&requests[SEND]);
    MPI_Request_free(&requests[RECV]);
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
    MPI_Finalize();
    return 0;
}
