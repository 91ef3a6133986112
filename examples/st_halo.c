/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_halo.c - heat in a grid of ranks: each step takes the average of the
 * neighbours' values. First with requests that are made by hand, then with
 * MPIX_Halo. Both give the same.
 *
 *     contrib/ucx-st-run mpirun -n 4 build/examples/st_halo
 */
#include <mpix_queue.h>
#include <stdio.h>

enum { SIDES = 4, STEPS = 50 };

/* Up and down, left and right, as MPI's neighbour collectives have them. Beyond
 * the border it is cold: what is never received stays 0. */
static double value, send[SIDES], recv[SIDES];

/* Kernel: the values for the neighbours. */
static void pack(void *arg)
{
    int i;

    for (i = 0; i < SIDES; ++i) {
        send[i] = value;
    }
}

/* Kernel: the next step. */
static void average(void *arg)
{
    value = (recv[0] + recv[1] + recv[2] + recv[3]) / SIDES;
}

/* Before: requests by hand. A tag tells the direction: where a periodic
 * dimension has two ranks, two messages go to the same one. */
static void by_hand(MPI_Comm cart, MPIX_Queue queue, void *stream)
{
    MPI_Request requests[2 * SIDES];
    int ranks[SIDES], count = 0, i;

    MPI_Cart_shift(cart, 0, 1, &ranks[0], &ranks[1]);
    MPI_Cart_shift(cart, 1, 1, &ranks[2], &ranks[3]);
    for (i = 0; i < SIDES; ++i) {
        if (ranks[i] == MPI_PROC_NULL) {
            continue;
        }
        /* What comes from the left was sent to the right */
        MPI_Recv_init(&recv[i], 1, MPI_DOUBLE, ranks[i], i ^ 1, cart,
                      &requests[count++]);
        MPI_Send_init(&send[i], 1, MPI_DOUBLE, ranks[i], i, cart,
                      &requests[count++]);
    }
    MPIX_Matchall(count, requests, MPI_STATUSES_IGNORE);

    for (i = 0; i < STEPS; ++i) {
        MPIX_Host_stream_launch(stream, pack, NULL);
        MPIX_Enqueue_startall(queue, count, requests);
        MPIX_Enqueue_waitall(queue, count, requests);
        MPIX_Host_stream_launch(stream, average, NULL);
    }
    MPIX_Queue_wait(queue);
    MPIX_Host_stream_synchronize(stream);

    for (i = 0; i < count; ++i) {
        MPI_Request_free(&requests[i]);
    }
}

/* After: the library knows the neighbours. */
static void by_halo(MPI_Comm cart, MPIX_Queue queue, void *stream)
{
    MPIX_Halo_side sides[SIDES];
    MPIX_Halo halo;
    int i;

    for (i = 0; i < SIDES; ++i) {
        sides[i] = (MPIX_Halo_side){&send[i], 1, MPI_DOUBLE,
                                    &recv[i], 1, MPI_DOUBLE};
    }
    MPIX_Halo_init(cart, SIDES, sides, queue, &halo);

    for (i = 0; i < STEPS; ++i) {
        MPIX_Host_stream_launch(stream, pack, NULL);
        MPIX_Halo_start(halo);
        MPIX_Halo_wait(halo);
        MPIX_Host_stream_launch(stream, average, NULL);
    }
    MPIX_Queue_wait(queue);
    MPIX_Host_stream_synchronize(stream);

    MPIX_Halo_free(&halo);
}

int main(int argc, char **argv)
{
    int ranks, rank, provided, size[2] = {0, 0}, periodic[2] = {0, 1};
    double first, heat[2], all[2];
    MPIX_Queue queue;
    MPI_Comm cart;
    void *stream;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, size);
    MPI_Cart_create(MPI_COMM_WORLD, 2, size, periodic, 0, &cart);
    MPI_Comm_rank(cart, &rank);
    MPIX_Host_stream_create(&stream);
    MPIX_Queue_init(MPIX_QUEUE_HOST, stream, &queue);

    first = 100.0 + rank;
    value = first;
    by_hand(cart, queue, stream);
    heat[0] = value;
    value   = first;
    by_halo(cart, queue, stream);
    heat[1] = value;

    MPI_Reduce(heat, all, 2, MPI_DOUBLE, MPI_SUM, 0, cart);
    if (rank == 0) {
        printf("%d x %d ranks, heat after %d steps: %g by hand, %g by halo\n",
               size[0], size[1], STEPS, all[0], all[1]);
    }

    MPIX_Queue_free(&queue);
    MPIX_Host_stream_free(&stream);
    MPI_Comm_free(&cart);
    MPI_Finalize();
    return heat[0] != heat[1];
}
