/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong_nvshmem.c - round trips by puts with a signal in the order of the
 * stream. One buffer a side does: a put comes behind the wait for the answer to
 * the last one, which was unpacked before that.
 */
#include "bench_gpu.h"
#include "pingpong.h"


/* While the variant is used. Main thread only. */
static struct {
    pp_device_t  others;  /* The messages of the other variants */
    bench_area_t signal;  /* A word */
    uint64_t     count;   /* Messages each way so far */
} pp_nvshmem;


static void pp_nvshmem_init(pp_exchange_t *ex)
{
    pp_data_t *data     = ex->data;
    pp_device_t *device = data->device;

    pp_nvshmem.others = *device;
    pp_nvshmem.count  = 0;
    bench_nvshmem_area_init(&ex->stream, &device->send, data->size);
    bench_nvshmem_area_init(&ex->stream, &device->recv[0], data->size);
    bench_nvshmem_area_init(&ex->stream, &pp_nvshmem.signal, sizeof(uint64_t));
    bench_check(MPI_Barrier(ex->comm), "MPI_Barrier");
}

static void pp_nvshmem_cleanup(pp_exchange_t *ex)
{
    pp_device_t *device = ex->data->device;

    bench_nvshmem_area_cleanup(&ex->stream, &pp_nvshmem.signal);
    bench_nvshmem_area_cleanup(&ex->stream, &device->recv[0]);
    bench_nvshmem_area_cleanup(&ex->stream, &device->send);
    device->send    = pp_nvshmem.others.send;
    device->recv[0] = pp_nvshmem.others.recv[0];
}

static void pp_nvshmem_none(pp_exchange_t *ex)
{
    (void)ex;
}

static void pp_nvshmem_send(pp_exchange_t *ex, uint64_t value)
{
    const pp_device_t *device     = ex->data->device;
    const bench_nvshmem_put_t put = {
        .dst    = device->recv[0].message,
        .src    = device->send.message,
        .size   = ex->data->size,
        .signal = pp_nvshmem.signal.message,
        .value  = value,
        .peer   = !ex->rank
    };

    pp_data_pack(ex->data);
    bench_nvshmem_put(&ex->stream, &put);
}

static void pp_nvshmem_recv(pp_exchange_t *ex, uint64_t value)
{
    bench_nvshmem_wait(&ex->stream, pp_nvshmem.signal.message, value);
    pp_data_unpack(ex->data);
}

static void pp_nvshmem_run(pp_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        ++pp_nvshmem.count;
        if (ex->rank == 0) {
            pp_nvshmem_send(ex, pp_nvshmem.count);
            pp_nvshmem_recv(ex, pp_nvshmem.count);
        } else {
            pp_nvshmem_recv(ex, pp_nvshmem.count);
            pp_nvshmem_send(ex, pp_nvshmem.count);
        }
    }
    bench_stream_synchronize(&ex->stream);
}

const pp_ops_t pp_nvshmem_ops = {
    .name      = "nvshmem",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = pp_nvshmem_init,
    .prepare   = pp_nvshmem_none,
    .run       = pp_nvshmem_run,
    .cleanup   = pp_nvshmem_cleanup
};
