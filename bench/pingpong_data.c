/* SPDX-License-Identifier: BSD-3-Clause */
/* pingpong_data.c - payload of the round trips, kernels and checks. */
#include "pingpong.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* A message starts with its stamp: its sender, and which use it is. */
static size_t pp_stamp_size(const pp_data_t *data)
{
    return (data->size < sizeof(uint64_t)) ? data->size : sizeof(uint64_t);
}

uint64_t pp_stamp(int rank, unsigned use)
{
    return (((uint64_t)rank + 1) << 7) + ((uint64_t)use << 16) + use % 127;
}

/* The rest depends on sender, use and place. */
uint8_t pp_byte(int rank, unsigned use, size_t i)
{
    return (uint8_t)(i * 13 + (i >> 8) * 7 + use * 31 + rank * 101);
}

static void pp_fill(pp_data_t *data, unsigned use)
{
    size_t i;

    for (i = 0; i < data->size; ++i) {
        data->source[i] = pp_byte(data->rank, use, i);
    }
}

static int pp_is_wrong(const pp_data_t *data, unsigned use, unsigned stamp_use)
{
    int peer       = !data->rank;
    uint64_t stamp = pp_stamp(peer, stamp_use);
    size_t i       = pp_stamp_size(data);

    if (memcmp(data->sink, &stamp, i) != 0) {
        return 1;
    }
    for (; i < data->size; ++i) {
        if (data->sink[i] != pp_byte(peer, use, i)) {
            return 1;
        }
    }
    return 0;
}

void pp_data_init(pp_data_t *data, int rank, const bench_stream_t *stream,
                  size_t max_size, unsigned max_count)
{
    int by_mpi = (stream->kind == BENCH_MEMORY_MPI);
    int set;

    memset(data, 0, sizeof(*data));
    data->rank   = rank;
    data->stream = stream;
    if (bench_stream_is_gpu(stream)) {
        pp_device_init(data, max_size, max_count);
        return;
    }
    data->source = bench_alloc(max_size);
    data->sink   = bench_alloc(max_size);
    data->send   = bench_message_alloc(max_size, by_mpi);
    for (set = 0; set < PP_NUM_SETS; ++set) {
        data->recv[set] = bench_message_alloc(max_size, by_mpi);
    }
}

void pp_data_cleanup(pp_data_t *data)
{
    int by_mpi = (data->stream->kind == BENCH_MEMORY_MPI);
    int set;

    if (data->device != NULL) {
        pp_device_cleanup(data);
        return;
    }
    for (set = 0; set < PP_NUM_SETS; ++set) {
        bench_message_free(data->recv[set], by_mpi);
    }
    bench_message_free(data->send, by_mpi);
    free(data->sink);
    free(data->source);
}

void pp_data_reset(pp_data_t *data, size_t size, const pp_ops_t *ops, int full)
{
    int set;

    data->size      = size;
    data->num_sets  = ops->num_sets;
    data->is_staged = ops->is_staged;
    data->sent      = 0;
    data->received  = 0;
    data->full      = full;
    data->is_packed = 1;
    data->errors    = 0;
    pp_fill(data, 0);
    memset(data->sink, 0xee, size);
    if (data->device != NULL) {
        pp_device_reset(data);
    } else {
        for (set = 0; set < PP_NUM_SETS; ++set) {
            memset(data->recv[set], 0xee, size);
        }
    }
    if (!full && (data->kernel_us >= 0)) { /* One message for all uses */
        pp_data_pack(data);
        bench_stream_synchronize(data->stream);
        data->is_packed = 0;
    }
}

void pp_kernel_pack(void *arg)
{
    pp_data_t *data = arg;
    uint64_t stamp  = pp_stamp(data->rank, data->sent);

    if (data->full) {
        pp_fill(data, data->sent);
    }
    memcpy(data->send, data->source, data->size);
    memcpy(data->send, &stamp, pp_stamp_size(data));
    ++data->sent;
}

void pp_kernel_unpack(void *arg)
{
    pp_data_t *data     = arg;
    const uint8_t *recv = data->recv[data->received % data->num_sets];
    uint64_t stamp      = pp_stamp(!data->rank, data->received);

    memcpy(data->sink, recv, data->size);
    if (memcmp(data->sink, &stamp, pp_stamp_size(data)) != 0) {
        ++data->errors;
    } else if (data->full &&
               pp_is_wrong(data, data->received, data->received)) {
        ++data->errors;
    }
    ++data->received;
}

void pp_data_pack(pp_data_t *data)
{
    if (data->device != NULL) {
        pp_device_pack(data);
    } else if (data->is_packed) {
        bench_stream_launch(data->stream, pp_kernel_pack, data);
    }
}

void pp_data_unpack(pp_data_t *data)
{
    if (data->device != NULL) {
        pp_device_unpack(data);
    } else if (data->is_packed) {
        bench_stream_launch(data->stream, pp_kernel_unpack, data);
    } else {
        ++data->received;
    }
    if (!data->is_packed && (data->kernel_us > 0)) {
        bench_stream_spin(data->stream, data->kernel_us);
    }
}

int pp_data_is_bare(const pp_data_t *data)
{
    return !data->is_packed && (data->kernel_us == 0) &&
           ((data->device == NULL) || !data->is_staged);
}

uint8_t *pp_data_mpi_send(const pp_data_t *data)
{
    return ((data->device != NULL) && data->is_staged) ?
                   data->device->send.host :
                   data->send;
}

uint8_t *pp_data_mpi_recv(const pp_data_t *data, unsigned use)
{
    unsigned set = use % data->num_sets;

    return ((data->device != NULL) && data->is_staged) ?
                   data->device->recv[set].host :
                   data->recv[set];
}

uint64_t pp_data_check(pp_data_t *data, unsigned count)
{
    unsigned last = count - 1;
    unsigned set  = last % data->num_sets;

    if (!data->is_packed) {
        if (data->device != NULL) {
            pp_device_fetch_message(data, set);
        }
        memcpy(data->sink, (data->device != NULL) ?
                                   data->device->recv[set].host :
                                   data->recv[set], data->size);
    } else if (data->device != NULL) {
        pp_device_fetch(data, count);
    }
    if ((data->received != count) ||
        pp_is_wrong(data, data->full ? last : 0,
                    data->is_packed ? last : 0)) {
        ++data->errors;
    }
    if (data->errors > 0) {
        fprintf(stderr, "rank %d: %zu bytes: %llu of %u messages are wrong\n",
                data->rank, data->size, (unsigned long long)data->errors,
                count);
    }
    return data->errors;
}
