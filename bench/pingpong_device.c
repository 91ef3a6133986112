/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong_device.c - messages in the memory of a stream's device: packs and
 * unpacks are copies of the stream.
 *
 * Pinned memory that a copy reads is written by the main thread before the run,
 * or by a function of the stream in front of the copy.
 */
#include "pingpong.h"

#include <stdlib.h>
#include <string.h>


static void pp_device_copy(const pp_data_t *data, void *dst, const void *src,
                           size_t size)
{
    bench_stream_copy(data->stream, dst, src, size);
}

void pp_device_init(pp_data_t *data, size_t max_size, unsigned max_count)
{
    const bench_stream_t *stream = data->stream;
    pp_device_t *device          = bench_alloc(sizeof(*device));
    size_t length                = max_count * sizeof(uint64_t);
    unsigned i;

    data->device   = device;
    data->source   = bench_stream_pinned_alloc(stream, max_size);
    data->sink     = bench_stream_pinned_alloc(stream, max_size);
    data->send     = bench_stream_device_alloc(stream, max_size);
    device->source = bench_stream_device_alloc(stream, max_size);
    device->sink   = bench_stream_device_alloc(stream, max_size);
    device->send   = bench_stream_pinned_alloc(stream, max_size);
    device->stamps = bench_stream_pinned_alloc(stream, length);
    device->seen   = bench_stream_pinned_alloc(stream, length);
    for (i = 0; i < PP_NUM_SETS; ++i) {
        data->recv[i]   = bench_stream_device_alloc(stream, max_size);
        device->recv[i] = bench_stream_pinned_alloc(stream, max_size);
    }
    for (i = 0; i < max_count; ++i) {
        device->stamps[i] = pp_stamp(data->rank, i);
    }
}

void pp_device_cleanup(pp_data_t *data)
{
    const bench_stream_t *stream = data->stream;
    pp_device_t *device          = data->device;
    int set;

    for (set = 0; set < PP_NUM_SETS; ++set) {
        bench_stream_pinned_free(stream, device->recv[set]);
        bench_stream_device_free(stream, data->recv[set]);
    }
    bench_stream_pinned_free(stream, device->seen);
    bench_stream_pinned_free(stream, device->stamps);
    bench_stream_pinned_free(stream, device->send);
    bench_stream_device_free(stream, device->sink);
    bench_stream_device_free(stream, device->source);
    bench_stream_device_free(stream, data->send);
    bench_stream_pinned_free(stream, data->sink);
    bench_stream_pinned_free(stream, data->source);
    free(device);
}

/* The host has filled the source, and spoiled the sink. */
void pp_device_reset(pp_data_t *data)
{
    pp_device_t *device = data->device;
    int set;

    device->packs   = 0;
    device->unpacks = 0;
    pp_device_copy(data, device->source, data->source, data->size);
    pp_device_copy(data, device->sink, data->sink, data->size);
    for (set = 0; set < PP_NUM_SETS; ++set) {
        memset(device->recv[set], 0xee, data->size);
        pp_device_copy(data, data->recv[set], data->sink, data->size);
    }
    bench_stream_synchronize(data->stream);
}

void pp_device_pack(pp_data_t *data)
{
    pp_device_t *device = data->device;

    if (data->full) {
        bench_stream_launch(data->stream, pp_kernel_fill, data);
        pp_device_copy(data, device->source, data->source, data->size);
    }
    pp_device_copy(data, data->send, device->source, data->size);
    pp_device_copy(data, data->send, &device->stamps[device->packs],
                   pp_stamp_size(data));
    if (data->is_mpi) {
        pp_device_copy(data, device->send, data->send, data->size);
    }
    ++device->packs;
}

void pp_device_unpack(pp_data_t *data)
{
    pp_device_t *device = data->device;
    unsigned set        = device->unpacks % data->num_sets;

    if (data->is_mpi) {
        pp_device_copy(data, data->recv[set], device->recv[set], data->size);
    }
    pp_device_copy(data, device->sink, data->recv[set], data->size);
    pp_device_copy(data, &device->seen[device->unpacks], data->recv[set],
                   pp_stamp_size(data));
    if (data->full) {
        pp_device_copy(data, data->sink, device->sink, data->size);
        bench_stream_launch(data->stream, pp_kernel_check, data);
    }
    ++device->unpacks;
}

void pp_device_fetch(pp_data_t *data, unsigned count)
{
    pp_device_t *device = data->device;
    uint64_t stamp;
    unsigned i;

    pp_device_copy(data, data->sink, device->sink, data->size);
    bench_stream_synchronize(data->stream);
    for (i = 0; i < count; ++i) {
        stamp = pp_stamp(!data->rank, i);
        data->errors += (memcmp(&device->seen[i], &stamp,
                                pp_stamp_size(data)) != 0);
    }
    data->received = data->full ? data->received : device->unpacks;
}
