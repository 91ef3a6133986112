/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces_nvshmem.c - the halo by puts with a signal in the order of the stream.
 *
 * There are two sets of receive buffers, used in turn. A put to set i % 2 of a
 * neighbour comes behind the wait for its message of iteration i - 1, which it
 * has sent behind its unpack of iteration i - 2, the last one of that set.
 */
#include "bench_gpu.h"
#include "faces.h"


/* While the variant is used. Main thread only. */
static bench_nvshmem_halo_t faces_nvshmem;

_Static_assert(FACES_MAX_SETS == BENCH_NVSHMEM_SETS, "sets of a halo");


static void faces_nvshmem_init(faces_exchange_t *ex)
{
    faces_device_t *device = ex->field->device;

    bench_nvshmem_halo_init(&ex->stream, &faces_nvshmem, &device->out,
                            device->in, FACES_NUM_DIRS);
}

static void faces_nvshmem_cleanup(faces_exchange_t *ex)
{
    bench_nvshmem_halo_cleanup(&ex->stream, &faces_nvshmem);
}

static void faces_nvshmem_none(faces_exchange_t *ex)
{
    (void)ex;
}

/* Where a direction's message lies in an area, which is alike on all ranks. */
static char *faces_nvshmem_at(const faces_field_t *field,
                              const bench_area_t *area, int dir)
{
    return (char*)area->message +
           ((char*)field->out[dir] - (char*)field->out[0]);
}

static void faces_nvshmem_puts(faces_exchange_t *ex, int set)
{
    const faces_field_t *field = ex->field;
    const bench_area_t *in     = &field->device->in[set];
    const bench_area_t *out    = &field->device->out;
    bench_nvshmem_put_t put;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        put = (bench_nvshmem_put_t){
            .dst    = faces_nvshmem_at(field, in, faces_opposite(dir)),
            .src    = faces_nvshmem_at(field, out, dir),
            .size   = field->length[dir] * sizeof(double),
            .signal = bench_nvshmem_signal(&faces_nvshmem, dir),
            .value  = faces_nvshmem.count,
            .peer   = ex->grid->neighbour[dir]
        };
        bench_nvshmem_put(&ex->stream, &put);
    }
}

static void faces_nvshmem_run(faces_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        ++faces_nvshmem.count;
        faces_pack(ex);
        faces_nvshmem_puts(ex, i % FACES_MAX_SETS);
        faces_interior(ex);
        bench_nvshmem_halo_wait(&ex->stream, &faces_nvshmem);
        faces_unpack(ex);
    }
    bench_stream_synchronize(&ex->stream);
}

const faces_ops_t faces_nvshmem_ops = {
    .name      = "nvshmem",
    .num_sets  = FACES_MAX_SETS,
    .is_staged = 0,
    .init      = faces_nvshmem_init,
    .prepare   = faces_nvshmem_none,
    .run       = faces_nvshmem_run,
    .cleanup   = faces_nvshmem_cleanup
};
