/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step3.c - the messages are on the stream, too. The host enqueues everything
 * and waits once. What changed: each MPI_Isend and MPI_Irecv has a queue, the
 * wait is the stream's, and MPI has threads.
 *
 *     contrib/ucx-st-run mpirun -n 4 build/examples/mpi_steps/step3
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
    static MPI_Request requests[STEPS][4];
    MPIX_Queue queue;
    int step;

    MPIX_Create_queue(stream, &queue);
    for (step = 0; step < STEPS; ++step) {
        MPIX_Enqueue_recv(&u[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, queue,
                          &requests[step][0]);
        MPIX_Enqueue_recv(&u[CELLS + 1], 1, MPI_DOUBLE, right, 2,
                          MPI_COMM_WORLD, queue, &requests[step][1]);
        MPIX_Enqueue_send(&u[CELLS], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD,
                          queue, &requests[step][2]);
        MPIX_Enqueue_send(&u[1], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, queue,
                          &requests[step][3]);
        MPIX_Enqueue_start(queue);
        MPIX_Enqueue_wait(queue);
        MPIX_Host_stream_launch(stream, compute, NULL);
    }
    MPIX_Host_stream_synchronize(stream);
    MPI_Waitall(4 * STEPS, requests[0], MPI_STATUSES_IGNORE);
    MPIX_Free_queue(queue);
}

int main(int argc, char **argv)
{
    double sum = 0, total;
    int i, rank, size, provided;
    void *stream;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
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
