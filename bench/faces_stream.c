/* SPDX-License-Identifier: BSD-3-Clause */
/* faces_stream.c - the halo's kernels in the order of a stream, and its
 * messages in the host's memory. */
#include "faces.h"


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
    int set;

    faces_host_init(field, field->send, field->out);
    for (set = 0; set < FACES_MAX_SETS; ++set) {
        faces_host_init(field, field->recv[set], field->in[set]);
    }
}

static void faces_messages_free(const faces_field_t *field, double **host)
{
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        bench_message_free(host[dir], field->stream->kind == BENCH_MEMORY_MPI);
    }
}

void faces_messages_cleanup(faces_field_t *field)
{
    int set;

    for (set = 0; set < FACES_MAX_SETS; ++set) {
        faces_messages_free(field, field->recv[set]);
    }
    faces_messages_free(field, field->send);
}

void faces_pack(faces_exchange_t *ex)
{
    if (ex->field->device != NULL) {
        faces_device_pack(ex);
    } else {
        bench_stream_launch(ex->field->stream, faces_kernel_pack, ex->field);
    }
}

void faces_interior(faces_exchange_t *ex)
{
    if (ex->field->device != NULL) {
        faces_device_interior(ex);
    } else {
        bench_stream_launch(ex->field->stream, faces_kernel_interior,
                            ex->field);
    }
}

void faces_unpack(faces_exchange_t *ex)
{
    if (ex->field->device != NULL) {
        faces_device_unpack(ex);
    } else {
        bench_stream_launch(ex->field->stream, faces_kernel_unpack, ex->field);
    }
}
