/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_event.c - kernels on one stream, messages on another, on one thread.
 *
 *     contrib/ucx-st-run mpirun -n 4 build/examples/st_host_event
 *
 * The ranks form a ring and pass on what they get, each adding its number. Two
 * streams share the thread of a group; the one with the messages is the more
 * urgent one. Events keep them in order, and tell how long all steps took. The
 * kernels get their arguments copied in, so that each launch has its own.
 */
#include <mpix_queue.h>

#include <stdio.h>

/* Arguments of a kernel: *to = *from + value */
struct add {
    int *to;
    const int *from;
    int value;
};

static void add(void *arg)
{
    const struct add *args = arg;

    *args->to = *args->from + args->value;
}

/* Point 'from' has to be passed before what comes next on 'to'. */
static void order(void *from, void *to, MPIX_Host_event event)
{
    MPIX_Host_event_record(from, event);
    MPIX_Host_event_wait(to, event);
}

static void enqueue(void *kernels, void *messages, MPI_Request requests[],
                    const struct add *step, int ranks)
{
    MPIX_Host_event begin, ready, end;
    MPIX_Queue queue;
    double seconds;
    int i;

    MPIX_Queue_init(MPIX_QUEUE_HOST, messages, &queue);
    MPIX_Host_event_create(&begin);
    MPIX_Host_event_create(&ready);
    MPIX_Host_event_create(&end);

    MPIX_Host_event_record(kernels, begin);
    for (i = 0; i < ranks; ++i) {
        MPIX_Host_stream_launch_copy(kernels, add, step, sizeof(*step));
        order(kernels, messages, ready);
        MPIX_Enqueue_startall(queue, 2, requests);
        MPIX_Enqueue_waitall(queue, 2, requests);
        order(messages, kernels, end);
    }

    MPIX_Host_event_synchronize(end);
    MPIX_Host_event_elapsed(begin, end, &seconds);
    printf("%d steps took %.0f us\n", ranks, seconds * 1e6);
    MPIX_Queue_wait(queue);
    MPIX_Host_stream_synchronize(kernels);
    MPIX_Host_stream_synchronize(messages);

    MPIX_Host_event_free(&begin);
    MPIX_Host_event_free(&ready);
    MPIX_Host_event_free(&end);
    MPIX_Queue_free(&queue);
}

static void run(int rank, int ranks, int *held, int *outgoing)
{
    const struct add step = {outgoing, held, rank};
    MPIX_Host_group group;
    MPI_Request requests[2];
    void *kernels, *messages;
    int least, greatest;

    MPIX_Host_priority_range(&least, &greatest);
    MPIX_Host_group_create(1, 0, NULL, &group);
    MPIX_Host_stream_create_on(group, least, &kernels);
    MPIX_Host_stream_create_on(group, greatest, &messages);

    MPI_Send_init(outgoing, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD,
                  &requests[0]);
    MPI_Recv_init(held, 1, MPI_INT, (rank + ranks - 1) % ranks, 0,
                  MPI_COMM_WORLD, &requests[1]);
    MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE);
    enqueue(kernels, messages, requests, &step, ranks);

    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPIX_Host_stream_free(&kernels);
    MPIX_Host_stream_free(&messages);
    MPIX_Host_group_free(&group);
}

int main(int argc, char **argv)
{
    int held = 0, outgoing = 0;
    int rank, ranks, expected, provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    run(rank, ranks, &held, &outgoing);
    expected = ranks * (ranks - 1) / 2;
    printf("rank %d: %d (%s)\n", rank, held,
           (held == expected) ? "right" : "WRONG");

    MPI_Finalize();
    return (held == expected) ? 0 : 1;
}
