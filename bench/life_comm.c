/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life_comm.c - the halo of 8 neighbours by ncclSend() and ncclRecv(), a group
 * of 16, and by NVSHMEM's puts with a signal, in the order of the stream.
 *
 * NCCL's messages between two ranks match in their order: both sides go through
 * the directions as the sender counts them. NVSHMEM's have two sets of receive
 * buffers, with the proof of faces_nvshmem.c. An area is alike on all ranks.
 */
#include "bench_gpu.h"
#include "life.h"


/* While the variant is used. Main thread only. */
static bench_nvshmem_halo_t life_nvshmem;

_Static_assert(LIFE_MAX_SETS == BENCH_NVSHMEM_SETS, "sets of a halo");


static void life_nccl_run(life_exchange_t *ex, int count)
{
    const life_field_t *field = ex->field;
    int i, dir, back;

    for (i = 0; i < count; ++i) {
        life_pack(ex);
        bench_nccl_begin();
        for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
            back = life_opposite(dir);
            bench_nccl_send(&ex->stream, field->out[dir], field->length[dir],
                            field->neighbour[dir]);
            bench_nccl_recv(&ex->stream, field->in[0][back],
                            field->length[back], field->neighbour[back]);
        }
        bench_nccl_end();
        life_step(ex);
    }
    bench_stream_synchronize(&ex->stream);
}

static void life_nvshmem_init(life_exchange_t *ex)
{
    life_device_t *device = ex->field->device;

    bench_nvshmem_halo_init(&ex->stream, &life_nvshmem, &device->out,
                            device->in, LIFE_NUM_DIRS);
}

static void life_nvshmem_cleanup(life_exchange_t *ex)
{
    bench_nvshmem_halo_cleanup(&ex->stream, &life_nvshmem);
}

static void life_nvshmem_puts(life_exchange_t *ex, int set)
{
    const life_field_t *field   = ex->field;
    const life_device_t *device = field->device;
    bench_nvshmem_put_t put;
    int dir;

    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        put = (bench_nvshmem_put_t){
            .dst    = (char*)device->in[set].message +
                      life_opposite(dir) * device->stride,
            .src    = (char*)device->out.message + dir * device->stride,
            .size   = field->length[dir],
            .signal = bench_nvshmem_signal(&life_nvshmem, dir),
            .value  = life_nvshmem.count,
            .peer   = field->neighbour[dir]
        };
        bench_nvshmem_put(&ex->stream, &put);
    }
}

static void life_nvshmem_run(life_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        ++life_nvshmem.count;
        life_pack(ex);
        life_nvshmem_puts(ex, i % LIFE_MAX_SETS);
        bench_nvshmem_halo_wait(&ex->stream, &life_nvshmem);
        life_step(ex);
    }
    bench_stream_synchronize(&ex->stream);
}

const life_ops_t life_nccl_ops = {
    .name      = "nccl",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = life_none,
    .prepare   = life_prepare,
    .run       = life_nccl_run,
    .cleanup   = life_none
};

const life_ops_t life_nvshmem_ops = {
    .name      = "nvshmem",
    .num_sets  = LIFE_MAX_SETS,
    .is_staged = 0,
    .init      = life_nvshmem_init,
    .prepare   = life_prepare,
    .run       = life_nvshmem_run,
    .cleanup   = life_nvshmem_cleanup
};
