/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces_device.c - the halo with the stream of a GPU.
 *
 * A kernel's thread makes a value by itself, so the nodes of each place, and
 * what is added to it, are listed. Messages lie one behind the other, so that
 * one copy moves them to and from pinned memory.
 */
#include "faces.h"

#include <stdlib.h>

#define FACES_ALIGN (64 / sizeof(double))


static size_t faces_area_part(const faces_field_t *field, int dir)
{
    return (field->length[dir] + FACES_ALIGN - 1) / FACES_ALIGN * FACES_ALIGN;
}

static void faces_area_init(const faces_field_t *field, bench_area_t *area,
                            double **host, double **message)
{
    size_t length = 0;
    size_t at     = 0;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        length += faces_area_part(field, dir);
    }
    bench_area_init(field->stream, area, length * sizeof(double),
                    field->stream->kind == BENCH_MEMORY_DEVICE);
    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        host[dir]    = (double*)area->host + at;
        message[dir] = (double*)area->message + at;
        at          += faces_area_part(field, dir);
    }
}

static uint32_t *faces_list_init(const faces_field_t *field, bench_area_t *list,
                                 size_t length)
{
    bench_area_init(field->stream, list, length * sizeof(uint32_t), 1);
    return list->host;
}

/* Sets first[i + 1] to the begin of the list of place i; to fill that list
 * moves it to the list's end. first[0] stays 0. */
static void faces_list_begin(uint32_t *first, size_t num_places,
                             const uint32_t *count)
{
    uint32_t sum = 0;
    size_t i;

    for (i = 0; i < num_places; ++i) {
        first[i + 1] = sum;
        sum         += count[i];
    }
}

/* Nodes are ascending. */
static void faces_list_nodes(faces_field_t *field)
{
    uint32_t *first = faces_list_init(field, &field->device->first,
                                      field->num_places + 1);
    uint32_t *nodes = faces_list_init(field, &field->device->nodes,
                                      field->num_values);
    uint32_t *count = bench_alloc(field->num_places * sizeof(*count));
    size_t i;

    for (i = 0; i < field->num_values; ++i) {
        ++count[field->place[i]];
    }
    faces_list_begin(first, field->num_places, count);
    for (i = 0; i < field->num_values; ++i) {
        nodes[first[field->place[i] + 1]++] = i;
    }
    free(count);
}

/* Of a place in the order of directions. */
static void faces_list_values(faces_field_t *field)
{
    faces_device_t *device = field->device;
    uint32_t *place        = faces_list_init(field, &device->out_place,
                                             device->num_out);
    uint32_t *at           = faces_list_init(field, &device->out_at,
                                             device->num_out);
    uint32_t *first        = faces_list_init(field, &device->in_first,
                                             field->num_places + 1);
    uint32_t *in_at        = faces_list_init(field, &device->in_at,
                                             device->num_out);
    uint32_t *count        = bench_alloc(field->num_places * sizeof(*count));
    size_t num             = 0;
    size_t i;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        for (i = 0; i < field->length[dir]; ++i) {
            place[num] = field->to[dir][i];
            at[num]    = &field->send[dir][i] - field->send[0];
            ++count[place[num++]];
        }
    }
    faces_list_begin(first, field->num_places, count);
    for (i = 0; i < num; ++i) {
        in_at[first[place[i] + 1]++] = at[i];
    }
    free(count);
}

void faces_device_init(faces_field_t *field)
{
    faces_device_t *device = bench_alloc(sizeof(*device));
    const size_t values    = field->num_values * sizeof(double);
    int dir, set;

    field->device = device;
    bench_area_init(field->stream, &device->value, values, 1);
    bench_area_init(field->stream, &device->source, values, 1);
    bench_area_init(field->stream, &device->updated, values, 1);
    bench_area_init(field->stream, &device->sum,
                    field->num_places * sizeof(double), 1);
    field->value  = device->value.host;
    field->source = device->source.host;
    faces_area_init(field, &device->out, field->send, field->out);
    for (set = 0; set < FACES_MAX_SETS; ++set) {
        faces_area_init(field, &device->in[set], field->recv[set],
                        field->in[set]);
    }
    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        device->num_out += field->length[dir];
    }
    faces_list_nodes(field);
    faces_list_values(field);
}

/* Calls a function for each area. */
static void faces_device_each(const faces_field_t *field,
                              void (*func)(const bench_stream_t *stream,
                                           const bench_area_t *area))
{
    const faces_device_t *device = field->device;
    const bench_area_t *areas[]  = {
        &device->value, &device->source, &device->updated, &device->sum,
        &device->first, &device->nodes, &device->out_place, &device->out_at,
        &device->in_first, &device->in_at, &device->out, &device->in[0],
        &device->in[1]
    };
    size_t i;

    for (i = 0; i < sizeof(areas) / sizeof(areas[0]); ++i) {
        func(field->stream, areas[i]);
    }
}

void faces_device_cleanup(faces_field_t *field)
{
    faces_device_each(field, bench_area_cleanup);
    free(field->device);
}

void faces_device_store(faces_field_t *field)
{
    field->device->packs   = 0;
    field->device->unpacks = 0;
    faces_device_each(field, bench_area_store);
    bench_stream_synchronize(field->stream);
}

void faces_device_fetch(faces_field_t *field)
{
    bench_area_fetch(field->stream, &field->device->value);
    bench_stream_synchronize(field->stream);
}

static void faces_device_run(const faces_field_t *field, bench_kernel_t kernel,
                             size_t count, const bench_area_t *message,
                             double drift)
{
    const faces_device_t *device = field->device;
    bench_kernel_faces_t args    = {
        .value      = bench_address(device->value.message),
        .source     = bench_address(device->source.message),
        .updated    = bench_address(device->updated.message),
        .sum        = bench_address(device->sum.message),
        .first      = bench_address(device->first.message),
        .nodes      = bench_address(device->nodes.message),
        .message    = bench_address(message->message),
        .out_place  = bench_address(device->out_place.message),
        .out_at     = bench_address(device->out_at.message),
        .in_first   = bench_address(device->in_first.message),
        .in_at      = bench_address(device->in_at.message),
        .num_values = (unsigned)field->num_values,
        .num_places = (unsigned)field->num_places,
        .num_out    = device->num_out,
        .drift      = drift
    };

    bench_stream_run(field->stream, kernel, count, &args, sizeof(args));
}

void faces_device_pack(faces_exchange_t *ex)
{
    faces_field_t *field   = ex->field;
    faces_device_t *device = field->device;

    faces_device_run(field, BENCH_KERNEL_FACES_PACK, field->num_values,
                     &device->out, faces_drift(device->packs++));
    if (ex->ops->is_staged) {
        bench_area_fetch(field->stream, &device->out);
    }
}

void faces_device_interior(faces_exchange_t *ex)
{
    const faces_field_t *field = ex->field;

    faces_device_run(field, BENCH_KERNEL_FACES_INTERIOR, field->num_places,
                     &field->device->out, 0);
}

void faces_device_unpack(faces_exchange_t *ex)
{
    faces_field_t *field   = ex->field;
    faces_device_t *device = field->device;
    bench_area_t *in       = &device->in[device->unpacks++ % field->num_sets];

    if (ex->ops->is_staged) {
        bench_area_store(field->stream, in);
    }
    faces_device_run(field, BENCH_KERNEL_FACES_UNPACK, field->num_places, in,
                     0);
}
