/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_kernel.c - kernels and messages on one stream; the host runs ahead.
 *
 *     contrib/ucx-st-run mpirun -n 4 build/examples/st_host_kernel
 *
 * The ranks form a ring. In each step every rank adds its number to what it
 * holds and passes it on. After as many steps as there are ranks each value has
 * been around and holds the sum of all rank numbers. The host enqueues all
 * steps and then waits once.
 */
#include <mpix_queue.h>

#include <stdio.h>

/* What the kernels work on; the stream's until the host has waited. */
struct ring {
    int rank;
    int held;     /* Computed by the kernels */
    int outgoing; /* Send buffer */
    int incoming; /* Receive buffer */
    int steps;    /* Run so far */
};

static void add_own(void *arg)
{
    struct ring *ring = arg;

    ring->held    += ring->rank;
    ring->outgoing = ring->held;
}

static void take_over(void *arg)
{
    struct ring *ring = arg;

    ring->held = ring->incoming;
    ++ring->steps;
}

static void enqueue_step(void *stream, MPIX_Queue queue, MPI_Request *requests,
                         struct ring *ring)
{
    MPIX_Host_stream_launch(stream, add_own, ring);
    MPIX_Enqueue_startall(queue, 2, requests);
    MPIX_Enqueue_waitall(queue, 2, requests);
    MPIX_Host_stream_launch(stream, take_over, ring);
}

static void run(struct ring *ring, int ranks)
{
    int next = (ring->rank + 1) % ranks;
    int prev = (ring->rank + ranks - 1) % ranks;
    MPI_Request requests[2];
    MPIX_Queue queue;
    void *stream;
    int i;

    MPIX_Host_stream_create(&stream);
    MPIX_Queue_init(MPIX_QUEUE_HOST, stream, &queue);
    MPI_Send_init(&ring->outgoing, 1, MPI_INT, next, 0, MPI_COMM_WORLD,
                  &requests[0]);
    MPI_Recv_init(&ring->incoming, 1, MPI_INT, prev, 0, MPI_COMM_WORLD,
                  &requests[1]);
    MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE);

    for (i = 0; i < ranks; ++i) {
        enqueue_step(stream, queue, requests, ring);
    }
    printf("rank %d: %d steps enqueued\n", ring->rank, ranks);

    MPIX_Queue_wait(queue);
    MPIX_Host_stream_synchronize(stream);

    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPIX_Queue_free(&queue);
    MPIX_Host_stream_free(&stream);
}

int main(int argc, char **argv)
{
    struct ring ring = {0};
    int ranks, expected, provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &ring.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    run(&ring, ranks);
    expected = ranks * (ranks - 1) / 2;
    printf("rank %d: sum after %d steps: %d (%s)\n", ring.rank, ring.steps,
           ring.held, (ring.held == expected) ? "right" : "WRONG");

    MPI_Finalize();
    return (ring.held == expected) ? 0 : 1;
}
