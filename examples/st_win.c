/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_win.c - a halo by windows, in epochs that a stream opens and closes: heat
 * flows along a ring of ranks. Each puts the cells at its borders beside those
 * of its neighbours. The host enqueues all steps, and takes no part in them.
 *
 *     contrib/ucx-st-mpicc examples/st_win.c -o st_win -lm
 *     contrib/ucx-st-run mpirun -n 4 ./st_win
 */
#include <math.h>
#include <mpix_host_stream.h> /* In place of a GPU's */
#include <mpix_win.h>
#include <stdio.h>
#include <string.h>

enum { CELLS = 100, STEPS = 1000 };

/* A kernel. What the neighbours have put is at both ends of the cells. */
static void flow(void *arg)
{
    double *cell = arg;
    double next[CELLS + 2];
    int i;

    for (i = 1; i <= CELLS; ++i) {
        next[i] = (cell[i - 1] + (2 * cell[i]) + cell[i + 1]) / 4;
    }
    memcpy(&cell[1], &next[1], CELLS * sizeof(*cell));
}

static void enqueue_step(MPI_Win win, MPI_Group neighbours, void *stream,
                         double *cell, const int rank[2])
{
    MPIX_Win_post_stream(neighbours, win, stream); /* They may put */
    MPI_Win_start(neighbours, MPIX_MODE_STREAM, win);
    MPI_Put(&cell[1], 1, MPI_DOUBLE, rank[0], CELLS + 1, 1, MPI_DOUBLE, win);
    MPI_Put(&cell[CELLS], 1, MPI_DOUBLE, rank[1], 0, 1, MPI_DOUBLE, win);
    MPIX_Win_complete_stream(win, stream);
    MPIX_Win_wait_stream(win, stream); /* They have */
    MPIX_Host_stream_launch(stream, flow, cell);
}

int main(int argc, char **argv)
{
    double heat = 0, sum = 0;
    MPI_Group world, neighbours;
    int rank[2], me, size, i;
    double *cell;
    void *stream;
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rank[0] = (me + size - 1) % size;
    rank[1] = (me + 1) % size;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, (rank[0] == rank[1]) ? 1 : 2, rank, &neighbours);

    MPIX_Host_stream_create(&stream);
    MPI_Win_allocate((CELLS + 2) * sizeof(*cell), sizeof(*cell), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &cell, &win);
    memset(cell, 0, (CELLS + 2) * sizeof(*cell));
    cell[1] = (me == 0) ? 1000 : 0;

    for (i = 0; i < STEPS; ++i) {
        enqueue_step(win, neighbours, stream, cell, rank);
    }
    MPIX_Host_stream_synchronize(stream);

    for (i = 1; i <= CELLS; ++i) {
        heat += cell[i];
    }
    MPI_Allreduce(&heat, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0) {
        printf("st_win: rank 0 has kept %.3f of %.3f\n", heat, sum);
    }

    MPI_Win_free(&win);
    MPIX_Host_stream_free(&stream);
    MPI_Group_free(&neighbours);
    MPI_Group_free(&world);
    MPI_Finalize();
    return fabs(sum - 1000) > 1e-6;
}
