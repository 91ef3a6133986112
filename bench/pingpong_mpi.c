/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong_mpi.c - round trips driven by the host: the baseline; with a GPU by
 * way of pinned memory, or on the GPU's memory.
 *
 * Receives are posted early, into two buffers in turn: one is posted again only
 * after the stream was synchronised once more, so after its unpack.
 */
#include "pingpong.h"

#include <ucs_trace.h>


static void pp_mpi_none(pp_exchange_t *ex)
{
    (void)ex;
}

static void pp_mpi_post(pp_exchange_t *ex, unsigned use)
{
    uint64_t begin = ucs_trace_begin();

    bench_check(MPI_Irecv(pp_data_mpi_recv(ex->data, use), (int)ex->data->size,
                          MPI_BYTE, !ex->rank, PP_TAG, ex->comm, &ex->recv),
                "MPI_Irecv");
    ucs_trace_end("MPI_Irecv", begin);
}

static void pp_mpi_prepare(pp_exchange_t *ex)
{
    if (ex->rank == 1) {
        pp_mpi_post(ex, 0);
    }
}

static void pp_mpi_synchronize(pp_exchange_t *ex)
{
    if (pp_data_is_bare(ex->data)) {
        return;
    }
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
}

static void pp_mpi_send(pp_exchange_t *ex)
{
    uint64_t begin = ucs_trace_begin();

    bench_check(MPI_Send(pp_data_mpi_send(ex->data), (int)ex->data->size,
                         MPI_BYTE, !ex->rank, PP_TAG, ex->comm), "MPI_Send");
    ucs_trace_end("MPI_Send", begin);
}

static void pp_mpi_wait(pp_exchange_t *ex)
{
    uint64_t begin = ucs_trace_begin();

    bench_check(MPI_Wait(&ex->recv, MPI_STATUS_IGNORE), "MPI_Wait");
    ucs_trace_end("MPI_Wait", begin);
}

static void pp_mpi_ping(pp_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        pp_data_pack(ex->data);
        pp_mpi_post(ex, i);
        pp_mpi_synchronize(ex);
        pp_mpi_send(ex);
        pp_mpi_wait(ex);
        pp_data_unpack(ex->data);
    }
}

static void pp_mpi_pong(pp_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        pp_mpi_wait(ex);
        pp_data_unpack(ex->data);
        pp_data_pack(ex->data);
        if (i + 1 < count) {
            pp_mpi_post(ex, i + 1);
        }
        pp_mpi_synchronize(ex);
        pp_mpi_send(ex);
    }
}

static void pp_mpi_run(pp_exchange_t *ex, int count)
{
    if (ex->rank == 0) {
        pp_mpi_ping(ex, count);
    } else {
        pp_mpi_pong(ex, count);
    }
    pp_mpi_synchronize(ex);
}

const pp_ops_t pp_mpi_ops = {
    .name      = "mpi",
    .num_sets  = PP_NUM_SETS,
    .is_staged = 1,
    .init      = pp_mpi_none,
    .prepare   = pp_mpi_prepare,
    .run       = pp_mpi_run,
    .cleanup   = pp_mpi_none
};

const pp_ops_t pp_mpi_device_ops = {
    .name      = "mpi-device",
    .num_sets  = PP_NUM_SETS,
    .is_staged = 0,
    .init      = pp_mpi_none,
    .prepare   = pp_mpi_prepare,
    .run       = pp_mpi_run,
    .cleanup   = pp_mpi_none
};
