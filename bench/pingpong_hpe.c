/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong_hpe.c - round trips by messages that are used once: HPE's interface,
 * by a thread that gives them to MPI, or on a communicator for queues only.
 *
 * Nothing is matched before. Each message has a start of its own, as the order
 * of the stream is that of the other variants.
 */
#include "pingpong.h"


static void pp_hpe_none(pp_exchange_t *ex)
{
    (void)ex;
}

static void pp_hpe_init(pp_exchange_t *ex)
{
    ex->once = ex->comm;
}

static void pp_fifo_init(pp_exchange_t *ex)
{
    ex->once = bench_only_comm(ex->comm);
}

static void pp_fifo_cleanup(pp_exchange_t *ex)
{
    MPI_Comm_free(&ex->once);
}

static void pp_hpe_start(pp_exchange_t *ex, MPI_Request *request)
{
    bench_check(MPIX_Enqueue_start(ex->queue), "MPIX_Enqueue_start");
    bench_check(MPI_Request_free(request), "MPI_Request_free");
}

static void pp_hpe_recv(pp_exchange_t *ex)
{
    MPI_Request request;

    bench_check(MPIX_Enqueue_recv(ex->data->recv[0], (int)ex->data->size,
                                  MPI_BYTE, !ex->rank, PP_TAG, ex->once,
                                  ex->queue, &request), "MPIX_Enqueue_recv");
    pp_hpe_start(ex, &request);
}

static void pp_hpe_send(pp_exchange_t *ex)
{
    MPI_Request request;

    bench_check(MPIX_Enqueue_send(ex->data->send, (int)ex->data->size, MPI_BYTE,
                                  !ex->rank, PP_TAG, ex->once, ex->queue,
                                  &request), "MPIX_Enqueue_send");
    pp_hpe_start(ex, &request);
}

static void pp_hpe_run(pp_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        pp_hpe_recv(ex);
        if (ex->rank == 0) {
            pp_data_pack(ex->data);
            pp_hpe_send(ex);
        }
        bench_check(MPIX_Enqueue_wait(ex->queue), "MPIX_Enqueue_wait");
        pp_data_unpack(ex->data);
        if (ex->rank == 1) {
            pp_data_pack(ex->data);
            pp_hpe_send(ex);
        }
    }
    bench_check(MPIX_Enqueue_wait(ex->queue), "MPIX_Enqueue_wait");
    bench_check(MPIX_Queue_wait(ex->queue), "MPIX_Queue_wait");
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
}

const pp_ops_t pp_st_hpe_ops = {
    .name      = "st-hpe",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = pp_hpe_init,
    .prepare   = pp_hpe_none,
    .run       = pp_hpe_run,
    .cleanup   = pp_hpe_none
};

const pp_ops_t pp_st_fifo_ops = {
    .name      = "st-fifo",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = pp_fifo_init,
    .prepare   = pp_hpe_none,
    .run       = pp_hpe_run,
    .cleanup   = pp_fifo_cleanup
};
