/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life_exchange.c - the halo of 8 neighbours: driven by the host, by matched
 * requests in stream order, and by messages that are used once.
 *
 * A message's tag is the direction that it goes: with one or two ranks in a
 * dimension several go between the same two.
 */
#include "life.h"


static void life_launch(life_exchange_t *ex, MPIX_Host_func kernel)
{
    bench_check(MPIX_Host_stream_launch(ex->stream, kernel, ex->field),
                "MPIX_Host_stream_launch");
}

static void life_synchronize(life_exchange_t *ex)
{
    bench_check(MPIX_Host_stream_synchronize(ex->stream),
                "MPIX_Host_stream_synchronize");
}

static void life_mpi_none(life_exchange_t *ex)
{
    (void)ex;
}

static void life_mpi_run(life_exchange_t *ex, int count)
{
    const life_field_t *field = ex->field;
    int i, dir;

    for (i = 0; i < count; ++i) {
        life_launch(ex, life_kernel_pack);
        life_synchronize(ex);
        for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
            bench_check(MPI_Irecv(field->recv[dir], field->length[dir],
                                  MPI_BYTE, field->neighbour[dir],
                                  life_opposite(dir), MPI_COMM_WORLD,
                                  &ex->requests[dir]), "MPI_Irecv");
        }
        for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
            bench_check(MPI_Isend(field->send[dir], field->length[dir],
                                  MPI_BYTE, field->neighbour[dir], dir,
                                  MPI_COMM_WORLD,
                                  &ex->requests[LIFE_NUM_DIRS + dir]),
                        "MPI_Isend");
        }
        bench_check(MPI_Waitall(2 * LIFE_NUM_DIRS, ex->requests,
                                MPI_STATUSES_IGNORE), "MPI_Waitall");
        life_launch(ex, life_kernel_step);
    }
    life_synchronize(ex);
}

static void life_st_init(life_exchange_t *ex)
{
    const life_field_t *field = ex->field;
    int dir;

    bench_check(MPIX_Queue_init(MPIX_QUEUE_HOST, ex->stream, &ex->queue),
                "MPIX_Queue_init");
    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        bench_check(MPI_Recv_init(field->recv[dir], field->length[dir],
                                  MPI_BYTE, field->neighbour[dir],
                                  life_opposite(dir), MPI_COMM_WORLD,
                                  &ex->requests[dir]), "MPI_Recv_init");
        bench_check(MPI_Send_init(field->send[dir], field->length[dir],
                                  MPI_BYTE, field->neighbour[dir], dir,
                                  MPI_COMM_WORLD,
                                  &ex->requests[LIFE_NUM_DIRS + dir]),
                    "MPI_Send_init");
    }
    bench_check(MPIX_Matchall(2 * LIFE_NUM_DIRS, ex->requests,
                              MPI_STATUSES_IGNORE), "MPIX_Matchall");
}

static void life_st_run(life_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        life_launch(ex, life_kernel_pack);
        bench_check(MPIX_Enqueue_startall(ex->queue, 2 * LIFE_NUM_DIRS,
                                          ex->requests),
                    "MPIX_Enqueue_startall");
        ex->messages += LIFE_NUM_DIRS;
        bench_check(MPIX_Enqueue_waitall(ex->queue, 2 * LIFE_NUM_DIRS,
                                         ex->requests),
                    "MPIX_Enqueue_waitall");
        life_launch(ex, life_kernel_step);
    }
    bench_check(MPIX_Queue_wait(ex->queue), "MPIX_Queue_wait");
    life_synchronize(ex);
}

static void life_st_cleanup(life_exchange_t *ex)
{
    int i;

    for (i = 0; i < 2 * LIFE_NUM_DIRS; ++i) {
        bench_check(MPI_Request_free(&ex->requests[i]), "MPI_Request_free");
    }
    bench_check(MPIX_Queue_free(&ex->queue), "MPIX_Queue_free");
}

static void life_hpe_init(life_exchange_t *ex)
{
    bench_check(MPIX_Create_queue(ex->stream, &ex->queue),
                "MPIX_Create_queue");
}

static void life_hpe_enqueue(life_exchange_t *ex)
{
    const life_field_t *field = ex->field;
    MPI_Request request;
    int dir;

    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        bench_check(MPIX_Enqueue_recv(field->recv[dir], field->length[dir],
                                      MPI_BYTE, field->neighbour[dir],
                                      life_opposite(dir), MPI_COMM_WORLD,
                                      ex->queue, &request),
                    "MPIX_Enqueue_recv");
        bench_check(MPI_Request_free(&request), "MPI_Request_free");
        bench_check(MPIX_Enqueue_send(field->send[dir], field->length[dir],
                                      MPI_BYTE, field->neighbour[dir], dir,
                                      MPI_COMM_WORLD, ex->queue, &request),
                    "MPIX_Enqueue_send");
        bench_check(MPI_Request_free(&request), "MPI_Request_free");
    }
}

static void life_hpe_run(life_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        life_launch(ex, life_kernel_pack);
        life_hpe_enqueue(ex);
        bench_check(MPIX_Enqueue_start(ex->queue), "MPIX_Enqueue_start");
        bench_check(MPIX_Enqueue_wait(ex->queue), "MPIX_Enqueue_wait");
        life_launch(ex, life_kernel_step);
    }
    bench_check(MPIX_Queue_wait(ex->queue), "MPIX_Queue_wait");
    life_synchronize(ex);
}

static void life_hpe_cleanup(life_exchange_t *ex)
{
    bench_check(MPIX_Free_queue(ex->queue), "MPIX_Free_queue");
}

const life_ops_t life_mpi_ops = {
    .name    = "mpi",
    .init    = life_mpi_none,
    .run     = life_mpi_run,
    .cleanup = life_mpi_none
};

const life_ops_t life_st_ops = {
    .name    = "st",
    .init    = life_st_init,
    .run     = life_st_run,
    .cleanup = life_st_cleanup
};

const life_ops_t life_st_hpe_ops = {
    .name    = "st-hpe",
    .init    = life_hpe_init,
    .run     = life_hpe_run,
    .cleanup = life_hpe_cleanup
};
