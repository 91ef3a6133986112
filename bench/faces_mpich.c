/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces_mpich.c - the halo by MPICH's interface: messages that are used once,
 * each of which starts by itself.
 */
#include "faces.h"

#include <compat/mpich_stream.h>

/* Of an outer iteration. Main thread only. */
static MPIX_Stream faces_mpich_stream;


static void faces_mpich_init(faces_exchange_t *ex)
{
    faces_mpich_stream = bench_mpich_stream(&ex->stream);
    bench_check(MPIX_Stream_comm_create(MPI_COMM_WORLD, faces_mpich_stream,
                                        &ex->once), "MPIX_Stream_comm_create");
}

static void faces_mpich_prepare(faces_exchange_t *ex)
{
    (void)ex;
}

/* A tag is the direction that the message goes. */
static void faces_mpich_run(faces_exchange_t *ex, int count)
{
    const faces_field_t *field = ex->field;
    const int *neighbour       = ex->grid->neighbour;
    MPI_Request requests[2 * FACES_NUM_DIRS];
    int i, dir;

    for (i = 0; i < count; ++i) {
        for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
            bench_check(MPIX_Irecv_enqueue(field->in[0][dir],
                                           (int)field->length[dir], MPI_DOUBLE,
                                           neighbour[dir], faces_opposite(dir),
                                           ex->once, &requests[dir]),
                        "MPIX_Irecv_enqueue");
        }
        faces_pack(ex);
        for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
            bench_check(MPIX_Isend_enqueue(field->out[dir],
                                           (int)field->length[dir], MPI_DOUBLE,
                                           neighbour[dir], dir, ex->once,
                                           &requests[FACES_NUM_DIRS + dir]),
                        "MPIX_Isend_enqueue");
        }
        faces_interior(ex);
        bench_check(MPIX_Waitall_enqueue(2 * FACES_NUM_DIRS, requests,
                                         MPI_STATUSES_IGNORE),
                    "MPIX_Waitall_enqueue");
        faces_unpack(ex);
    }
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
}

static void faces_mpich_cleanup(faces_exchange_t *ex)
{
    MPI_Comm_free(&ex->once);
    bench_check(MPIX_Stream_free(&faces_mpich_stream), "MPIX_Stream_free");
}

const faces_ops_t faces_st_mpich_ops = {
    .name      = "st-mpich",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = faces_mpich_init,
    .prepare   = faces_mpich_prepare,
    .run       = faces_mpich_run,
    .cleanup   = faces_mpich_cleanup
};
