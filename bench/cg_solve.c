/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cg_solve.c - the iterations: driven by the host, and enqueued on the stream
 * with a halo of matched requests and persistent sums.
 *
 * A tag tells whether a row goes up or down.
 */
#include "cg.h"

#define CG_TAG_UP   1
#define CG_TAG_DOWN 2


static double *cg_row(cg_solver_t *cg, int row)
{
    return &cg->data->p[(size_t)row * cg->data->width];
}

static void cg_launch(cg_solver_t *cg, MPIX_Host_func kernel)
{
    bench_check(MPIX_Host_stream_launch(cg->stream, kernel, cg->data),
                "MPIX_Host_stream_launch");
}

static void cg_synchronize(cg_solver_t *cg)
{
    bench_check(MPIX_Host_stream_synchronize(cg->stream),
                "MPIX_Host_stream_synchronize");
}

static void cg_mpi_none(cg_solver_t *cg)
{
    (void)cg;
}

static void cg_mpi_halo(cg_solver_t *cg)
{
    const cg_data_t *data = cg->data;

    bench_check(MPI_Irecv(cg_row(cg, 0), data->width, MPI_DOUBLE, data->up,
                          CG_TAG_DOWN, MPI_COMM_WORLD, &cg->halo[0]),
                "MPI_Irecv");
    bench_check(MPI_Irecv(cg_row(cg, data->rows + 1), data->width, MPI_DOUBLE,
                          data->down, CG_TAG_UP, MPI_COMM_WORLD, &cg->halo[1]),
                "MPI_Irecv");
    bench_check(MPI_Isend(cg_row(cg, 1), data->width, MPI_DOUBLE, data->up,
                          CG_TAG_UP, MPI_COMM_WORLD, &cg->halo[2]),
                "MPI_Isend");
    bench_check(MPI_Isend(cg_row(cg, data->rows), data->width, MPI_DOUBLE,
                          data->down, CG_TAG_DOWN, MPI_COMM_WORLD,
                          &cg->halo[3]), "MPI_Isend");
    bench_check(MPI_Waitall(4, cg->halo, MPI_STATUSES_IGNORE), "MPI_Waitall");
}

static void cg_mpi_sum(cg_solver_t *cg, int which)
{
    cg_synchronize(cg);
    bench_check(MPI_Allreduce(&cg->data->part[which], &cg->data->sum[which], 1,
                              MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
                "MPI_Allreduce");
}

static void cg_mpi_run(cg_solver_t *cg, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        cg_synchronize(cg);
        cg_mpi_halo(cg);
        cg_launch(cg, cg_kernel_apply);
        cg_mpi_sum(cg, 0);
        cg_launch(cg, cg_kernel_update);
        cg_mpi_sum(cg, 1);
        cg_launch(cg, cg_kernel_direction);
    }
    cg_synchronize(cg);
}

static void cg_st_init(cg_solver_t *cg)
{
    cg_data_t *data = cg->data;
    int i;

    bench_check(MPIX_Queue_init(MPIX_QUEUE_HOST, cg->stream, &cg->queue),
                "MPIX_Queue_init");
    bench_check(MPI_Recv_init(cg_row(cg, 0), data->width, MPI_DOUBLE, data->up,
                              CG_TAG_DOWN, MPI_COMM_WORLD, &cg->halo[0]),
                "MPI_Recv_init");
    bench_check(MPI_Recv_init(cg_row(cg, data->rows + 1), data->width,
                              MPI_DOUBLE, data->down, CG_TAG_UP, MPI_COMM_WORLD,
                              &cg->halo[1]), "MPI_Recv_init");
    bench_check(MPI_Send_init(cg_row(cg, 1), data->width, MPI_DOUBLE, data->up,
                              CG_TAG_UP, MPI_COMM_WORLD, &cg->halo[2]),
                "MPI_Send_init");
    bench_check(MPI_Send_init(cg_row(cg, data->rows), data->width, MPI_DOUBLE,
                              data->down, CG_TAG_DOWN, MPI_COMM_WORLD,
                              &cg->halo[3]), "MPI_Send_init");
    for (i = 0; i < 2; ++i) {
        bench_check(MPIX_Allreduce_init(&data->part[i], &data->sum[i], 1,
                                        MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                                        MPI_INFO_NULL, &cg->sum[i]),
                    "MPIX_Allreduce_init");
    }
    bench_matchall(4, cg->halo);
    bench_matchall(2, cg->sum);
}

static void cg_st_sum(cg_solver_t *cg, int which)
{
    bench_check(MPIX_Enqueue_start(cg->queue, &cg->sum[which]),
                "MPIX_Enqueue_start");
    bench_check(MPIX_Enqueue_wait(cg->queue, &cg->sum[which]),
                "MPIX_Enqueue_wait");
}

static void cg_st_run(cg_solver_t *cg, int count)
{
    const cg_data_t *data = cg->data;
    int i;

    for (i = 0; i < count; ++i) {
        bench_startall(cg->queue, 4, cg->halo);
        bench_waitall(cg->queue, 4, cg->halo);
        cg_launch(cg, cg_kernel_apply);
        cg_st_sum(cg, 0);
        cg_launch(cg, cg_kernel_update);
        cg_st_sum(cg, 1);
        cg_launch(cg, cg_kernel_direction);
        cg->messages += (data->up != MPI_PROC_NULL) +
                        (data->down != MPI_PROC_NULL);
    }
    bench_check(MPIX_Queue_wait(cg->queue), "MPIX_Queue_wait");
    cg_synchronize(cg);
}

static void cg_st_cleanup(cg_solver_t *cg)
{
    bench_freeall(4, cg->halo);
    bench_freeall(2, cg->sum);
    bench_check(MPIX_Queue_free(&cg->queue), "MPIX_Queue_free");
}

const cg_ops_t cg_mpi_ops = {
    .name    = "mpi",
    .init    = cg_mpi_none,
    .run     = cg_mpi_run,
    .cleanup = cg_mpi_none
};

const cg_ops_t cg_st_ops = {
    .name    = "st",
    .init    = cg_st_init,
    .run     = cg_st_run,
    .cleanup = cg_st_cleanup
};
