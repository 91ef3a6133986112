/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step5.c - the halo is made, matched and started by one call each, and the
 * largest change of a step is found on the stream. The host looks at it every
 * CHECK steps.
 *
 *     contrib/ucx-st-run mpirun -n 4 build/examples/mpi_steps/step5
 */
#include <mpix_queue.h>
#include <math.h>
#include <stdio.h>

enum { CELLS = 1000, STEPS = 500, CHECK = 50 };

#define SMALL 1e-9

/* Cells 1 to CELLS are the rank's; the first and the last one are copies */
static double u[CELLS + 2], next[CELLS + 2];

/* Of the last step: on this rank, and on all */
static double change, largest;

static void compute(void *arg)
{
    int i;

    for (i = 1; i <= CELLS; ++i) {
        next[i] = u[i] + 0.25 * (u[i - 1] - 2 * u[i] + u[i + 1]);
    }
    change = 0;
    for (i = 1; i <= CELLS; ++i) {
        change = fmax(change, fabs(next[i] - u[i]));
        u[i]   = next[i];
    }
    (void)arg;
}

static void run(MPI_Comm ring, void *stream)
{
    const MPIX_Halo_side sides[2] = {
        {&u[1], 1, MPI_DOUBLE, &u[0], 1, MPI_DOUBLE},
        {&u[CELLS], 1, MPI_DOUBLE, &u[CELLS + 1], 1, MPI_DOUBLE}
    };
    MPI_Request reduce;
    MPIX_Queue queue;
    MPIX_Halo halo;
    int step;

    MPIX_Queue_init(MPIX_QUEUE_HOST, stream, &queue);
    MPIX_Halo_init(ring, 2, sides, queue, &halo);
    MPIX_Allreduce_init(&change, &largest, 1, MPI_DOUBLE, MPI_MAX, ring,
                        MPI_INFO_NULL, &reduce);
    MPIX_Match(&reduce, MPI_STATUS_IGNORE);

    for (step = 1, largest = 1; (step <= STEPS) && (largest > SMALL); ++step) {
        MPIX_Halo_start(halo);
        MPIX_Halo_wait(halo);
        MPIX_Host_stream_launch(stream, compute, NULL);
        if ((step % CHECK) == 0) {
            MPIX_Enqueue_start(queue, &reduce);
            MPIX_Enqueue_wait(queue, &reduce);
            MPIX_Queue_wait(queue);
        }
    }
    MPIX_Host_stream_synchronize(stream);

    MPI_Request_free(&reduce);
    MPIX_Halo_free(&halo);
    MPIX_Queue_free(&queue);
}

int main(int argc, char **argv)
{
    double sum = 0, total;
    int i, rank, size, wraps = 1;
    MPI_Comm ring;
    void *stream;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &wraps, 0, &ring);

    MPIX_Host_stream_create(&stream);
    u[CELLS / 2] = 1000 * (rank + 1);
    run(ring, stream);
    MPIX_Host_stream_free(&stream);

    for (i = 1; i <= CELLS; ++i) {
        sum += u[i] * u[i] * i;
    }
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.15g\n", total);
    }
    MPI_Comm_free(&ring);
    return MPI_Finalize();
}
