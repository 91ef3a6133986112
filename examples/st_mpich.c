/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_mpich.c - a program for MPICH's streams, over any MPI: a number goes
 * around a ring of ranks, each of whose streams adds one. On a GPU the "type"
 * is "cudaStream_t" or "hipStream_t", and its stream is the "value".
 *
 *     contrib/ucx-st-mpicc --api mpich examples/st_mpich.c -o st_mpich
 *     contrib/ucx-st-run mpirun -n 4 ./st_mpich
 */
#include <mpi.h>
#include <mpix_host_stream.h> /* In place of a GPU's */
#include <stdio.h>

/* A kernel. */
static void add_one(void *arg)
{
    ++*(int*)arg;
}

int main(int argc, char **argv)
{
    int rank, size, sent = 0, received = -1;
    MPI_Request requests[2];
    MPIX_Stream stream;
    MPI_Info info;
    MPI_Comm comm;
    void *native;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    MPIX_Host_stream_create(&native);
    MPI_Info_create(&info);
    MPI_Info_set(info, "type", "MPIX_Host_stream");
    MPIX_Info_set_hex(info, "value", &native, sizeof(native));
    MPIX_Stream_create(info, &stream);
    MPI_Info_free(&info);
    MPIX_Stream_comm_create(MPI_COMM_WORLD, stream, &comm);

    /* The host enqueues all of this, and takes no part in it */
    MPIX_Irecv_enqueue(&received, 1, MPI_INT, (rank + size - 1) % size, 0, comm,
                       &requests[0]);
    if (rank > 0) {
        MPIX_Wait_enqueue(&requests[0], MPI_STATUS_IGNORE);
        MPIX_Host_stream_launch(native, add_one, &received);
    }
    MPIX_Isend_enqueue((rank == 0) ? &sent : &received, 1, MPI_INT,
                       (rank + 1) % size, 0, comm, &requests[1]);
    MPIX_Waitall_enqueue(2, requests, MPI_STATUSES_IGNORE);

    MPIX_Host_stream_synchronize(native);
    if (rank == 0) {
        printf("st_mpich: %d of %d ranks have added one\n", received, size - 1);
    }

    MPI_Comm_free(&comm);
    MPIX_Stream_free(&stream);
    MPIX_Host_stream_free(&native);
    return MPI_Finalize();
}
