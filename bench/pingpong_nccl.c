/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong_nccl.c - round trips by ncclSend() and ncclRecv() in the order of
 * the stream. What a rank may do at the same time is one group: its send, and
 * the receive that follows.
 */
#include "bench_gpu.h"
#include "pingpong.h"


static void pp_nccl_none(pp_exchange_t *ex)
{
    (void)ex;
}

/* One group, of a send and a receive, or of one of them */
static void pp_nccl_group(pp_exchange_t *ex, int has_send, int has_recv)
{
    const pp_data_t *data = ex->data;

    bench_nccl_begin();
    if (has_send) {
        bench_nccl_send(&ex->stream, data->send, data->size, !ex->rank);
    }
    if (has_recv) {
        bench_nccl_recv(&ex->stream, data->recv[0], data->size, !ex->rank);
    }
    bench_nccl_end();
}

static void pp_nccl_run(pp_exchange_t *ex, int count)
{
    int i;

    if (ex->rank == 1) {
        pp_nccl_group(ex, 0, 1);
    }
    for (i = 0; i < count; ++i) {
        if (ex->rank == 1) {
            pp_data_unpack(ex->data);
        }
        pp_data_pack(ex->data);
        pp_nccl_group(ex, 1, (ex->rank == 0) || (i + 1 < count));
        if (ex->rank == 0) {
            pp_data_unpack(ex->data);
        }
    }
    bench_stream_synchronize(&ex->stream);
}

const pp_ops_t pp_nccl_ops = {
    .name      = "nccl",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = pp_nccl_none,
    .prepare   = pp_nccl_none,
    .run       = pp_nccl_run,
    .cleanup   = pp_nccl_none
};
