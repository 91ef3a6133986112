/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong_mpich.c - round trips by MPICH's interface: messages that are used
 * once, whose sends and receives the stream blocks for.
 */
#include "pingpong.h"

#include <compat/mpich_stream.h>

/* Of a trial. Main thread only. */
static MPIX_Stream pp_mpich_stream;


static void pp_mpich_init(pp_exchange_t *ex)
{
    pp_mpich_stream = bench_mpich_stream(&ex->stream);
    bench_check(MPIX_Stream_comm_create(ex->comm, pp_mpich_stream, &ex->once),
                "MPIX_Stream_comm_create");
}

static void pp_mpich_prepare(pp_exchange_t *ex)
{
    (void)ex;
}

static void pp_mpich_send(pp_exchange_t *ex)
{
    pp_data_pack(ex->data);
    bench_check(MPIX_Send_enqueue(ex->data->send, (int)ex->data->size, MPI_BYTE,
                                  !ex->rank, PP_TAG, ex->once),
                "MPIX_Send_enqueue");
}

static void pp_mpich_recv(pp_exchange_t *ex)
{
    bench_check(MPIX_Recv_enqueue(ex->data->recv[0], (int)ex->data->size,
                                  MPI_BYTE, !ex->rank, PP_TAG, ex->once,
                                  MPI_STATUS_IGNORE), "MPIX_Recv_enqueue");
    pp_data_unpack(ex->data);
}

static void pp_mpich_run(pp_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        if (ex->rank == 0) {
            pp_mpich_send(ex);
            pp_mpich_recv(ex);
        } else {
            pp_mpich_recv(ex);
            pp_mpich_send(ex);
        }
    }
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
}

static void pp_mpich_cleanup(pp_exchange_t *ex)
{
    MPI_Comm_free(&ex->once);
    bench_check(MPIX_Stream_free(&pp_mpich_stream), "MPIX_Stream_free");
}

const pp_ops_t pp_st_mpich_ops = {
    .name      = "st-mpich",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = pp_mpich_init,
    .prepare   = pp_mpich_prepare,
    .run       = pp_mpich_run,
    .cleanup   = pp_mpich_cleanup
};
