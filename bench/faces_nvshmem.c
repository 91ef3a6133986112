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
static struct {
    faces_device_t others;  /* The messages of the other variants */
    bench_area_t   signals; /* A word for each direction that a message goes */
    uint64_t       count;   /* Iterations so far */
} faces_nvshmem;


static void faces_nvshmem_init(faces_exchange_t *ex)
{
    faces_device_t *device = ex->field->device;
    int set;

    faces_nvshmem.others = *device;
    faces_nvshmem.count  = 0;
    bench_nvshmem_area_init(&ex->stream, &device->out,
                            faces_nvshmem.others.out.size);
    for (set = 0; set < FACES_MAX_SETS; ++set) {
        bench_nvshmem_area_init(&ex->stream, &device->in[set],
                                faces_nvshmem.others.in[set].size);
    }
    bench_nvshmem_area_init(&ex->stream, &faces_nvshmem.signals,
                            FACES_NUM_DIRS * sizeof(uint64_t));
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

static void faces_nvshmem_cleanup(faces_exchange_t *ex)
{
    faces_device_t *device = ex->field->device;
    int set;

    bench_nvshmem_area_cleanup(&ex->stream, &faces_nvshmem.signals);
    for (set = 0; set < FACES_MAX_SETS; ++set) {
        bench_nvshmem_area_cleanup(&ex->stream, &device->in[set]);
        device->in[set] = faces_nvshmem.others.in[set];
    }
    bench_nvshmem_area_cleanup(&ex->stream, &device->out);
    device->out = faces_nvshmem.others.out;
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
    uint64_t *signals          = faces_nvshmem.signals.message;
    bench_nvshmem_put_t put;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        put = (bench_nvshmem_put_t){
            .dst    = faces_nvshmem_at(field, in, faces_opposite(dir)),
            .src    = faces_nvshmem_at(field, out, dir),
            .size   = field->length[dir] * sizeof(double),
            .signal = &signals[dir],
            .value  = faces_nvshmem.count,
            .peer   = ex->grid->neighbour[dir]
        };
        bench_nvshmem_put(&ex->stream, &put);
    }
}

static void faces_nvshmem_run(faces_exchange_t *ex, int count)
{
    uint64_t *signals = faces_nvshmem.signals.message;
    int i, dir;

    for (i = 0; i < count; ++i) {
        ++faces_nvshmem.count;
        faces_pack(ex);
        faces_nvshmem_puts(ex, i % FACES_MAX_SETS);
        faces_interior(ex);
        for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
            bench_nvshmem_wait(&ex->stream, &signals[dir],
                               faces_nvshmem.count);
        }
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
