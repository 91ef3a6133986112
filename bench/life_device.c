/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life_device.c - the Game of Life with the stream of a GPU. Messages are at
 * equal distances, the same on all ranks, so that one copy moves them to and
 * from pinned memory.
 */
#include "life.h"

#include <stdlib.h>

#define LIFE_ALIGN 64


static void life_area_init(const life_field_t *field, bench_area_t *area,
                           uint8_t **host, uint8_t **message)
{
    size_t stride = field->device->stride;
    int dir;

    bench_area_init(field->stream, area, LIFE_NUM_DIRS * stride,
                    field->stream->kind == BENCH_MEMORY_DEVICE);
    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        host[dir]    = (uint8_t*)area->host + dir * stride;
        message[dir] = (uint8_t*)area->message + dir * stride;
    }
}

void life_device_init(life_field_t *field)
{
    life_device_t *device = bench_alloc(sizeof(*device));
    size_t cells          = (size_t)(field->size[0] + 2) * (field->size[1] + 2);
    size_t most[2]        = {
        (size_t)(field->total[0] + field->ranks[0] - 1) / field->ranks[0],
        (size_t)(field->total[1] + field->ranks[1] - 1) / field->ranks[1]
    };
    size_t longest        = (most[0] > most[1]) ? most[0] : most[1];
    int set;

    field->device  = device;
    device->stride = (longest + LIFE_ALIGN - 1) / LIFE_ALIGN * LIFE_ALIGN;
    bench_area_init(field->stream, &device->cells, cells, 1);
    bench_area_init(field->stream, &device->next, cells, 1);
    field->cells = device->cells.host;
    life_area_init(field, &device->out, field->send, field->out);
    for (set = 0; set < LIFE_MAX_SETS; ++set) {
        life_area_init(field, &device->in[set], field->recv[set],
                       field->in[set]);
    }
}

void life_device_cleanup(life_field_t *field)
{
    const bench_stream_t *stream = field->stream;
    life_device_t *device        = field->device;
    int set;

    for (set = 0; set < LIFE_MAX_SETS; ++set) {
        bench_area_cleanup(stream, &device->in[set]);
    }
    bench_area_cleanup(stream, &device->out);
    bench_area_cleanup(stream, &device->next);
    bench_area_cleanup(stream, &device->cells);
    free(device);
}

void life_device_store(life_field_t *field)
{
    bench_area_store(field->stream, &field->device->cells);
    bench_stream_synchronize(field->stream);
}

void life_device_fetch(life_field_t *field)
{
    bench_area_fetch(field->stream, &field->device->cells);
    bench_stream_synchronize(field->stream);
}

static void life_device_run(const life_field_t *field, bench_kernel_t kernel,
                            size_t count, const bench_area_t *message)
{
    const life_device_t *device = field->device;
    bench_kernel_life_t args    = {
        .cells   = bench_address(device->cells.message),
        .next    = bench_address(device->next.message),
        .message = bench_address(message->message),
        .stride  = device->stride,
        .width   = (unsigned)field->size[0],
        .height  = (unsigned)field->size[1]
    };

    bench_stream_run(field->stream, kernel, count, &args, sizeof(args));
}

void life_device_pack(life_exchange_t *ex)
{
    const life_field_t *field = ex->field;

    life_device_run(field, BENCH_KERNEL_LIFE_PACK, field->device->stride,
                    &field->device->out);
    if (ex->ops->is_staged) {
        bench_area_fetch(field->stream, &field->device->out);
    }
}

void life_device_step(life_exchange_t *ex)
{
    life_field_t *field    = ex->field;
    life_device_t *device  = field->device;
    const bench_area_t *in = &device->in[field->step++ % field->num_sets];
    bench_area_t last      = device->cells;

    if (ex->ops->is_staged) {
        bench_area_store(field->stream, in);
    }
    life_device_run(field, BENCH_KERNEL_LIFE_STEP,
                    (size_t)field->size[0] * field->size[1], in);
    device->cells = device->next;
    device->next  = last;
    field->cells  = device->cells.host;
}
