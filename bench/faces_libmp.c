/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces_libmp.c - the halo by LibMP's interface. Messages of a pair of ranks
 * have no tags: both sides name them in the order of the directions that they
 * go.
 *
 * The host posts the receives. It waits for the messages of an iteration, which
 * frees their requests: no iteration is ahead of the stream.
 */
#include "faces.h"

#include <compat/mp.h>


static void faces_libmp_check(int ret, const char *what)
{
    bench_check((ret == MP_SUCCESS) ? MPI_SUCCESS : MPI_ERR_OTHER, what);
}

static void faces_libmp_init(faces_exchange_t *ex)
{
    faces_libmp_check(mp_init(MPI_COMM_WORLD, ex->grid->neighbour,
                              FACES_NUM_DIRS, MP_INIT_DEFAULT, 0), "mp_init");
}

static void faces_libmp_prepare(faces_exchange_t *ex)
{
    (void)ex;
}

static void faces_libmp_run(faces_exchange_t *ex, int count)
{
    const faces_field_t *field = ex->field;
    const int *neighbour       = ex->grid->neighbour;
    cudaStream_t stream        = (cudaStream_t)ex->stream.handle;
    mp_reg_t none              = NULL; /* Messages do without */
    mp_request_t requests[2 * FACES_NUM_DIRS];
    mp_request_t *sends        = &requests[FACES_NUM_DIRS];
    int i, dir, from;

    for (i = 0; i < count; ++i) {
        for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
            from = faces_opposite(dir);
            faces_libmp_check(mp_irecv(field->in[0][from],
                                       (int)(field->length[from] *
                                             sizeof(double)), neighbour[from],
                                       &none, &requests[dir]), "mp_irecv");
        }
        faces_pack(ex);
        for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
            faces_libmp_check(mp_send_prepare(field->out[dir],
                                              (int)(field->length[dir] *
                                                    sizeof(double)),
                                              neighbour[dir], &none,
                                              &sends[dir]), "mp_send_prepare");
        }
        faces_libmp_check(mp_isend_post_all_on_stream(FACES_NUM_DIRS, sends,
                                                      stream),
                          "mp_isend_post_all_on_stream");
        faces_interior(ex);
        faces_libmp_check(mp_wait_all_on_stream(2 * FACES_NUM_DIRS, requests,
                                                stream),
                          "mp_wait_all_on_stream");
        faces_unpack(ex);
        faces_libmp_check(mp_wait_all(2 * FACES_NUM_DIRS, requests),
                          "mp_wait_all");
        bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                    "MPIX_Host_stream_synchronize");
    }
}

static void faces_libmp_cleanup(faces_exchange_t *ex)
{
    (void)ex;
    mp_finalize();
}

const faces_ops_t faces_st_libmp_ops = {
    .name      = "st-libmp",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = faces_libmp_init,
    .prepare   = faces_libmp_prepare,
    .run       = faces_libmp_run,
    .cleanup   = faces_libmp_cleanup
};
