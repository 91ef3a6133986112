/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step4.c - the messages of all steps are the same: persistent requests, which
 * are matched once. Nothing is left to be matched while the streams run, and no
 * thread of a host moves the data where there is a lane without one.
 *
 *     contrib/ucx-st-run mpirun -n 4 build/examples/mpi_steps/step4
 */
#include <mpix_queue.h>
#include <stdio.h>

enum { CELLS = 1000, STEPS = 500 };

/* Cells 1 to CELLS are the rank's; the first and the last one are copies */
static double u[CELLS + 2], next[CELLS + 2];

static void compute(void *arg)
{
    int i;

    for (i = 1; i <= CELLS; ++i) {
        next[i] = u[i] + 0.25 * (u[i - 1] - 2 * u[i] + u[i + 1]);
    }
    for (i = 1; i <= CELLS; ++i) {
        u[i] = next[i];
    }
    (void)arg;
}

static void run(int left, int right, void *stream)
{
    MPI_Request requests[4];
    MPIX_Queue queue;
    int i, step;

    MPIX_Queue_init(MPIX_QUEUE_HOST, stream, &queue);
    MPI_Recv_init(&u[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&u[CELLS + 1], 1, MPI_DOUBLE, right, 2, MPI_COMM_WORLD,
                  &requests[1]);
    MPI_Send_init(&u[CELLS], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD,
                  &requests[2]);
    MPI_Send_init(&u[1], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[3]);
    MPIX_Matchall(4, requests, MPI_STATUSES_IGNORE);

    for (step = 0; step < STEPS; ++step) {
        MPIX_Enqueue_startall(queue, 4, requests);
        MPIX_Enqueue_waitall(queue, 4, requests);
        MPIX_Host_stream_launch(stream, compute, NULL);
    }
    MPIX_Queue_wait(queue);
    MPIX_Host_stream_synchronize(stream);

    for (i = 0; i < 4; ++i) {
        MPI_Request_free(&requests[i]);
    }
    MPIX_Queue_free(&queue);
}

int main(int argc, char **argv)
{
    double sum = 0, total;
    int i, rank, size;
    void *stream;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    MPIX_Host_stream_create(&stream);
    u[CELLS / 2] = 1000 * (rank + 1);
    run((rank + size - 1) % size, (rank + 1) % size, stream);
    MPIX_Host_stream_free(&stream);

    for (i = 1; i <= CELLS; ++i) {
        sum += u[i] * u[i] * i;
    }
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.15g\n", total);
    }
    return MPI_Finalize();
}
