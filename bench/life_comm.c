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
static struct {
    life_device_t others;  /* The messages of the other variants */
    bench_area_t  signals; /* A word for each direction that a message goes */
    uint64_t      count;   /* Generations so far */
} life_nvshmem;


static void life_comm_none(life_exchange_t *ex)
{
    (void)ex;
}

static void life_comm_prepare(life_exchange_t *ex)
{
    ex->field->step = 0;
}

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
    int set;

    life_nvshmem.others = *device;
    life_nvshmem.count  = 0;
    bench_nvshmem_area_init(&ex->stream, &device->out, device->out.size);
    for (set = 0; set < LIFE_MAX_SETS; ++set) {
        bench_nvshmem_area_init(&ex->stream, &device->in[set],
                                life_nvshmem.others.in[set].size);
    }
    bench_nvshmem_area_init(&ex->stream, &life_nvshmem.signals,
                            LIFE_NUM_DIRS * sizeof(uint64_t));
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

static void life_nvshmem_cleanup(life_exchange_t *ex)
{
    life_device_t *device = ex->field->device;
    int set;

    bench_nvshmem_area_cleanup(&ex->stream, &life_nvshmem.signals);
    for (set = 0; set < LIFE_MAX_SETS; ++set) {
        bench_nvshmem_area_cleanup(&ex->stream, &device->in[set]);
        device->in[set] = life_nvshmem.others.in[set];
    }
    bench_nvshmem_area_cleanup(&ex->stream, &device->out);
    device->out = life_nvshmem.others.out;
}

static void life_nvshmem_puts(life_exchange_t *ex, int set)
{
    const life_field_t *field   = ex->field;
    const life_device_t *device = field->device;
    uint64_t *signals           = life_nvshmem.signals.message;
    bench_nvshmem_put_t put;
    int dir;

    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        put = (bench_nvshmem_put_t){
            .dst    = (char*)device->in[set].message +
                      life_opposite(dir) * device->stride,
            .src    = (char*)device->out.message + dir * device->stride,
            .size   = field->length[dir],
            .signal = &signals[dir],
            .value  = life_nvshmem.count,
            .peer   = field->neighbour[dir]
        };
        bench_nvshmem_put(&ex->stream, &put);
    }
}

static void life_nvshmem_run(life_exchange_t *ex, int count)
{
    uint64_t *signals = life_nvshmem.signals.message;
    int i, dir;

    for (i = 0; i < count; ++i) {
        ++life_nvshmem.count;
        life_pack(ex);
        life_nvshmem_puts(ex, i % LIFE_MAX_SETS);
        for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
            bench_nvshmem_wait(&ex->stream, &signals[dir], life_nvshmem.count);
        }
        life_step(ex);
    }
    bench_stream_synchronize(&ex->stream);
}

const life_ops_t life_nccl_ops = {
    .name      = "nccl",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = life_comm_none,
    .prepare   = life_comm_prepare,
    .run       = life_nccl_run,
    .cleanup   = life_comm_none
};

const life_ops_t life_nvshmem_ops = {
    .name      = "nvshmem",
    .num_sets  = LIFE_MAX_SETS,
    .is_staged = 0,
    .init      = life_nvshmem_init,
    .prepare   = life_comm_prepare,
    .run       = life_nvshmem_run,
    .cleanup   = life_nvshmem_cleanup
};
