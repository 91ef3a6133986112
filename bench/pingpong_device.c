/* SPDX-License-Identifier: BSD-3-Clause */
/* pingpong_device.c - round trips with the stream of a GPU. */
#include "pingpong.h"

#include <stdlib.h>
#include <string.h>


void pp_device_init(pp_data_t *data, size_t max_size, unsigned max_count)
{
    const bench_stream_t *stream = data->stream;
    const int in_device          = (stream->kind == BENCH_MEMORY_DEVICE);
    pp_device_t *device          = bench_alloc(sizeof(*device));
    int set;

    bench_area_init(stream, &device->source, max_size, 1);
    bench_area_init(stream, &device->sink, max_size, 1);
    bench_area_init(stream, &device->results, max_count * sizeof(uint64_t), 1);
    bench_area_init(stream, &device->send, max_size, in_device);
    for (set = 0; set < PP_NUM_SETS; ++set) {
        bench_area_init(stream, &device->recv[set], max_size, in_device);
        data->recv[set] = device->recv[set].message;
    }
    data->device = device;
    data->source = device->source.host;
    data->sink   = device->sink.host;
    data->send   = device->send.message;
}

void pp_device_cleanup(pp_data_t *data)
{
    const bench_stream_t *stream = data->stream;
    pp_device_t *device          = data->device;
    int set;

    for (set = 0; set < PP_NUM_SETS; ++set) {
        bench_area_cleanup(stream, &device->recv[set]);
    }
    bench_area_cleanup(stream, &device->send);
    bench_area_cleanup(stream, &device->results);
    bench_area_cleanup(stream, &device->sink);
    bench_area_cleanup(stream, &device->source);
    free(device);
}

/* The host has filled the source, and spoiled the sink. */
void pp_device_reset(pp_data_t *data)
{
    pp_device_t *device = data->device;
    int set;

    device->packs   = 0;
    device->unpacks = 0;
    memset(device->results.host, 0, device->results.size);
    bench_area_store(data->stream, &device->results);
    bench_area_store_part(data->stream, &device->source, data->size);
    bench_area_store_part(data->stream, &device->sink, data->size);
    for (set = 0; set < PP_NUM_SETS; ++set) {
        memset(device->recv[set].host, 0xee, data->size);
        bench_area_store_part(data->stream, &device->recv[set], data->size);
    }
    bench_stream_synchronize(data->stream);
}

/* A thread for each four words of 8 bytes. */
static void pp_device_run(const pp_data_t *data, bench_kernel_t kernel,
                          int rank, unsigned use, bench_kernel_pp_t *args)
{
    args->size  = data->size;
    args->stamp = pp_stamp(rank, use);
    args->first = pp_byte(rank, use, 0);
    args->full  = (data->full != 0);
    bench_stream_run(data->stream, kernel, data->size / (4 * sizeof(uint64_t)),
                     args, sizeof(*args));
}

void pp_device_pack(pp_data_t *data)
{
    pp_device_t *device    = data->device;
    bench_kernel_pp_t args = {
        .from = bench_address(device->source.message),
        .to   = bench_address(device->send.message)
    };

    if (data->is_packed) {
        pp_device_run(data, BENCH_KERNEL_PP_PACK, data->rank, device->packs,
                      &args);
    }
    ++device->packs;
    if (data->is_staged) {
        bench_area_fetch_part(data->stream, &device->send, data->size);
    }
}

void pp_device_unpack(pp_data_t *data)
{
    pp_device_t *device      = data->device;
    const bench_area_t *recv = &device->recv[device->unpacks % data->num_sets];
    uint64_t *results        = device->results.message;
    bench_kernel_pp_t args   = {
        .from   = bench_address(recv->message),
        .to     = bench_address(device->sink.message),
        .result = bench_address(&results[device->unpacks])
    };

    if (data->is_staged) {
        bench_area_store_part(data->stream, recv, data->size);
    }
    if (data->is_packed) {
        pp_device_run(data, BENCH_KERNEL_PP_UNPACK, !data->rank,
                      device->unpacks, &args);
    }
    ++device->unpacks;
}

void pp_device_fetch_message(pp_data_t *data, unsigned set)
{
    pp_device_t *device = data->device;

    bench_area_fetch_part(data->stream, &device->recv[set], data->size);
    bench_stream_synchronize(data->stream);
    data->received = device->unpacks;
}

void pp_device_fetch(pp_data_t *data, unsigned count)
{
    pp_device_t *device     = data->device;
    const uint64_t *results = device->results.host;
    unsigned i;

    bench_area_fetch_part(data->stream, &device->sink, data->size);
    bench_area_fetch(data->stream, &device->results);
    bench_stream_synchronize(data->stream);
    for (i = 0; i < count; ++i) {
        data->errors += (results[i] != 1);
    }
    data->received = device->unpacks;
}
