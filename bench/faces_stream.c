/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces_stream.c - where the halo's messages are, and its kernels in the order
 * of a stream.
 *
 * Messages in a device lie in areas, one behind the other, each of which one
 * copy of the stream moves: from the pinned memory that the pack kernel writes,
 * and to that which the unpack kernel reads. MPI, which cannot be expected to
 * know the device's memory, works on the pinned memory; the stream copies there
 * and back, as the application's data is in the device.
 */
#include "faces.h"

#include <stdlib.h>

#define FACES_ALIGN 64


static int faces_in_device(const faces_field_t *field)
{
    return field->stream->kind == BENCH_MEMORY_DEVICE;
}

static size_t faces_area_part(const faces_field_t *field, int dir)
{
    size_t size = field->length[dir] * sizeof(double);

    return ((size + FACES_ALIGN - 1) / FACES_ALIGN) * FACES_ALIGN;
}

/* An area in pinned memory, and one in the device. */
static void faces_area_init(const faces_field_t *field, double **host,
                            double **device)
{
    char *pinned = bench_stream_pinned_alloc(field->stream, field->area);
    char *there  = bench_stream_device_alloc(field->stream, field->area);
    size_t part;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        part        = faces_area_part(field, dir);
        host[dir]   = (double*)pinned;
        device[dir] = (double*)there;
        pinned     += part;
        there      += part;
    }
}

static void faces_host_init(const faces_field_t *field, double **host,
                            double **message)
{
    int by_mpi = (field->stream->kind == BENCH_MEMORY_MPI);
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        host[dir]    = bench_message_alloc(field->length[dir] * sizeof(double),
                                           by_mpi);
        message[dir] = host[dir];
    }
}

void faces_messages_init(faces_field_t *field)
{
    void (*init)(const faces_field_t *field, double **host, double **message) =
            faces_in_device(field) ? faces_area_init : faces_host_init;
    int dir, set;

    field->area = 0;
    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        field->area += faces_area_part(field, dir);
    }
    init(field, field->send, field->out);
    for (set = 0; set < FACES_MAX_SETS; ++set) {
        init(field, field->recv[set], field->in[set]);
    }
}

static void faces_messages_free(const faces_field_t *field, double **host,
                                double **message)
{
    int dir;

    if (faces_in_device(field)) {
        bench_stream_device_free(field->stream, message[0]);
        bench_stream_pinned_free(field->stream, host[0]);
        return;
    }
    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        bench_message_free(host[dir], field->stream->kind == BENCH_MEMORY_MPI);
    }
}

void faces_messages_cleanup(faces_field_t *field)
{
    int set;

    for (set = 0; set < FACES_MAX_SETS; ++set) {
        faces_messages_free(field, field->recv[set], field->in[set]);
    }
    faces_messages_free(field, field->send, field->out);
}

void faces_messages_spoil(faces_field_t *field)
{
    int set;

    if (!faces_in_device(field)) {
        return;
    }
    bench_stream_copy(field->stream, field->out[0], field->send[0],
                      field->area);
    for (set = 0; set < FACES_MAX_SETS; ++set) {
        bench_stream_copy(field->stream, field->in[set][0],
                          field->recv[set][0], field->area);
    }
    bench_stream_synchronize(field->stream);
}

void faces_pack(faces_exchange_t *ex)
{
    faces_field_t *field = ex->field;

    bench_stream_launch(field->stream, faces_kernel_pack, field);
    if (!faces_in_device(field)) {
        return;
    }
    bench_stream_copy(field->stream, field->out[0], field->send[0],
                      field->area);
    if (ex->ops->is_mpi) {
        bench_stream_copy(field->stream, field->send[0], field->out[0],
                          field->area);
    }
}

void faces_interior(faces_exchange_t *ex)
{
    bench_stream_launch(ex->field->stream, faces_kernel_interior, ex->field);
}

void faces_unpack(faces_exchange_t *ex)
{
    faces_field_t *field = ex->field;
    unsigned set         = field->unpacks++ % field->num_sets;

    if (faces_in_device(field)) {
        if (ex->ops->is_mpi) {
            bench_stream_copy(field->stream, field->in[set][0],
                              field->recv[set][0], field->area);
        }
        bench_stream_copy(field->stream, field->recv[set][0],
                          field->in[set][0], field->area);
    }
    bench_stream_launch(field->stream, faces_kernel_unpack, field);
}
