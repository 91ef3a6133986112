/* SPDX-License-Identifier: BSD-3-Clause */
/* mbw_mpi.c - windows of two-sided messages of MPI: the baseline. */
#include "mbw.h"


static void mbw_mpi_none(mbw_exchange_t *ex)
{
    (void)ex;
}

static void mbw_mpi_window(mbw_exchange_t *ex)
{
    const mbw_data_t *data = ex->data;
    size_t offset;
    int i;

    for (i = 0; i < data->window; ++i) {
        offset = i * data->size;
        bench_check(MPI_Irecv(data->recv[0] + offset, (int)data->size, MPI_BYTE,
                              data->peer, i, MPI_COMM_WORLD, &ex->recv[0][i]),
                    "MPI_Irecv");
    }
    for (i = 0; i < data->window; ++i) {
        offset = i * data->size;
        bench_check(MPI_Isend(data->send + offset, (int)data->size, MPI_BYTE,
                              data->peer, i, MPI_COMM_WORLD, &ex->send[0][i]),
                    "MPI_Isend");
    }
    bench_check(MPI_Waitall(data->window, ex->recv[0], MPI_STATUSES_IGNORE),
                "MPI_Waitall");
    bench_check(MPI_Waitall(data->window, ex->send[0], MPI_STATUSES_IGNORE),
                "MPI_Waitall");
}

static void mbw_mpi_run(mbw_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        mbw_mpi_window(ex);
    }
}

const mbw_ops_t mbw_mpi_ops = {
    .num_sets = 1,
    .init     = mbw_mpi_none,
    .prepare  = mbw_mpi_none,
    .run      = mbw_mpi_run,
    .cleanup  = mbw_mpi_none
};
