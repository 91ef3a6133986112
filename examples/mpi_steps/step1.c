/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step1.c - the program to begin with: heat flows along a ring of ranks. Each
 * owns some cells and has a copy of the neighbours' borders. docs/mpi.md makes
 * a program of streams of it, in five steps.
 *
 *     contrib/ucx-st-run mpirun -n 4 build/examples/mpi_steps/step1
 */
#include <mpi.h>
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

static void run(int left, int right)
{
    MPI_Request requests[4];
    int step;

    for (step = 0; step < STEPS; ++step) {
        MPI_Irecv(&u[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&u[CELLS + 1], 1, MPI_DOUBLE, right, 2, MPI_COMM_WORLD,
                  &requests[1]);
        MPI_Isend(&u[CELLS], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD,
                  &requests[2]);
        MPI_Isend(&u[1], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        compute(NULL);
    }
}

int main(int argc, char **argv)
{
    double sum = 0, total;
    int i, rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    u[CELLS / 2] = 1000 * (rank + 1);
    run((rank + size - 1) % size, (rank + 1) % size);

    for (i = 1; i <= CELLS; ++i) {
        sum += u[i] * u[i] * i;
    }
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.15g\n", total);
    }
    return MPI_Finalize();
}
