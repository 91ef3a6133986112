/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces_nccl.c - the halo by ncclSend() and ncclRecv(), one group of 52.
 *
 * Messages between two ranks match in their order: both sides go through the
 * directions as the sender counts them.
 */
#include "bench_gpu.h"
#include "faces.h"


static void faces_nccl_none(faces_exchange_t *ex)
{
    (void)ex;
}

static void faces_nccl_group(faces_exchange_t *ex)
{
    const faces_field_t *field = ex->field;
    int dir, back;

    bench_nccl_begin();
    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        back = faces_opposite(dir);
        bench_nccl_send(&ex->stream, field->out[dir],
                        field->length[dir] * sizeof(double),
                        ex->grid->neighbour[dir]);
        bench_nccl_recv(&ex->stream, field->in[0][back],
                        field->length[back] * sizeof(double),
                        ex->grid->neighbour[back]);
    }
    bench_nccl_end();
}

static void faces_nccl_run(faces_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        faces_pack(ex);
        faces_nccl_group(ex);
        faces_interior(ex);
        faces_unpack(ex);
    }
    bench_stream_synchronize(&ex->stream);
}

const faces_ops_t faces_nccl_ops = {
    .name      = "nccl",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = faces_nccl_none,
    .prepare   = faces_nccl_none,
    .run       = faces_nccl_run,
    .cleanup   = faces_nccl_none
};
