/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces_mpi.c - the halo driven by the host: the baseline; with a GPU by way of
 * pinned memory, or on the GPU's memory.
 *
 * Receives are posted before the pack kernel is waited for, into two sets of
 * buffers in turn: set i % 2 is posted again only after the stream was
 * synchronised in iteration i + 1, so after the unpack of iteration i.
 */
#include "faces.h"

#include <ucs_trace.h>


static void faces_mpi_none(faces_exchange_t *ex)
{
    (void)ex;
}

static void faces_mpi_post_recvs(faces_exchange_t *ex, unsigned set)
{
    const faces_field_t *field = ex->field;
    double *const *recv        = ex->ops->is_staged ? field->recv[set] :
                                                      field->in[set];
    uint64_t begin             = ucs_trace_begin();
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        bench_check(MPI_Irecv(recv[dir], field->length[dir],
                              MPI_DOUBLE, ex->grid->neighbour[dir],
                              faces_opposite(dir), MPI_COMM_WORLD,
                              &ex->recv[0][dir]), "MPI_Irecv");
    }
    ucs_trace_end("MPI_Irecv", begin);
}

static void faces_mpi_post_sends(faces_exchange_t *ex)
{
    const faces_field_t *field = ex->field;
    double *const *send        = ex->ops->is_staged ? field->send : field->out;
    uint64_t begin             = ucs_trace_begin();
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        bench_check(MPI_Isend(send[dir], field->length[dir], MPI_DOUBLE,
                              ex->grid->neighbour[dir], dir, MPI_COMM_WORLD,
                              &ex->send[0][dir]), "MPI_Isend");
    }
    ucs_trace_end("MPI_Isend", begin);
}

static void faces_mpi_waitall(faces_exchange_t *ex)
{
    uint64_t begin = ucs_trace_begin();

    bench_check(MPI_Waitall(FACES_NUM_DIRS, ex->recv[0], MPI_STATUSES_IGNORE),
                "MPI_Waitall");
    bench_check(MPI_Waitall(FACES_NUM_DIRS, ex->send[0], MPI_STATUSES_IGNORE),
                "MPI_Waitall");
    ucs_trace_end("MPI_Waitall", begin);
}

static void faces_mpi_synchronize(faces_exchange_t *ex)
{
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
}

static void faces_mpi_run(faces_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        faces_pack(ex);
        faces_mpi_post_recvs(ex, i % ex->ops->num_sets);
        faces_mpi_synchronize(ex);
        faces_mpi_post_sends(ex);
        faces_interior(ex);
        faces_mpi_waitall(ex);
        faces_unpack(ex);
    }
    faces_mpi_synchronize(ex);
}

const faces_ops_t faces_mpi_ops = {
    .name      = "mpi",
    .num_sets  = 2,
    .is_staged = 1,
    .init      = faces_mpi_none,
    .prepare   = faces_mpi_none,
    .run       = faces_mpi_run,
    .cleanup   = faces_mpi_none
};

const faces_ops_t faces_mpi_device_ops = {
    .name      = "mpi-device",
    .num_sets  = 2,
    .is_staged = 0,
    .init      = faces_mpi_none,
    .prepare   = faces_mpi_none,
    .run       = faces_mpi_run,
    .cleanup   = faces_mpi_none
};
