/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces_hpe.c - the halo by messages that are used once: HPE's interface, by a
 * thread that gives them to MPI, or on a communicator for queues only.
 *
 * Nothing is matched before. One start begins the 26 receives of an iteration,
 * before the pack kernel, and one the 26 sends.
 *
 * st-paper is the form of the paper of 2022: sends are enqueued, and the host
 * receives by MPI_Irecv, into two sets of buffers in turn. What comes for
 * iteration i was sent behind the sends of iteration i - 1, and so behind the
 * unpack of iteration i - 2, which had the same set.
 */
#include "faces.h"


static void faces_hpe_none(faces_exchange_t *ex)
{
    (void)ex;
}

static void faces_hpe_init(faces_exchange_t *ex)
{
    ex->once = MPI_COMM_WORLD;
    bench_check(MPIX_Create_queue(ex->stream.handle, &ex->queue),
                "MPIX_Create_queue");
}

static void faces_hpe_cleanup(faces_exchange_t *ex)
{
    bench_check(MPIX_Free_queue(ex->queue), "MPIX_Free_queue");
}

static void faces_fifo_init(faces_exchange_t *ex)
{
    faces_hpe_init(ex);
    ex->once = bench_only_comm(MPI_COMM_WORLD);
}

static void faces_fifo_cleanup(faces_exchange_t *ex)
{
    faces_hpe_cleanup(ex);
    MPI_Comm_free(&ex->once);
}

/* A tag is the direction that the message goes. */
static void faces_hpe_recvs(faces_exchange_t *ex)
{
    const faces_field_t *field = ex->field;
    MPI_Request request;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        bench_check(MPIX_Enqueue_recv(field->in[0][dir], field->length[dir],
                                      MPI_DOUBLE, ex->grid->neighbour[dir],
                                      faces_opposite(dir), ex->once,
                                      ex->queue, &request),
                    "MPIX_Enqueue_recv");
        bench_check(MPI_Request_free(&request), "MPI_Request_free");
    }
    bench_check(MPIX_Enqueue_start(ex->queue), "MPIX_Enqueue_start");
}

static void faces_hpe_sends(faces_exchange_t *ex)
{
    const faces_field_t *field = ex->field;
    MPI_Request request;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        bench_check(MPIX_Enqueue_send(field->out[dir], field->length[dir],
                                      MPI_DOUBLE, ex->grid->neighbour[dir], dir,
                                      ex->once, ex->queue, &request),
                    "MPIX_Enqueue_send");
        bench_check(MPI_Request_free(&request), "MPI_Request_free");
    }
    bench_check(MPIX_Enqueue_start(ex->queue), "MPIX_Enqueue_start");
}

static void faces_hpe_run(faces_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        faces_hpe_recvs(ex);
        faces_pack(ex);
        faces_hpe_sends(ex);
        faces_interior(ex);
        bench_check(MPIX_Enqueue_wait(ex->queue), "MPIX_Enqueue_wait");
        faces_unpack(ex);
    }
    bench_check(MPIX_Queue_wait(ex->queue), "MPIX_Queue_wait");
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
}

const faces_ops_t faces_st_hpe_ops = {
    .name      = "st-hpe",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = faces_hpe_init,
    .prepare   = faces_hpe_none,
    .run       = faces_hpe_run,
    .cleanup   = faces_hpe_cleanup
};

const faces_ops_t faces_st_fifo_ops = {
    .name      = "st-fifo",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = faces_fifo_init,
    .prepare   = faces_hpe_none,
    .run       = faces_hpe_run,
    .cleanup   = faces_fifo_cleanup
};

static void faces_paper_post_recvs(faces_exchange_t *ex, int set)
{
    const faces_field_t *field = ex->field;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        bench_check(MPI_Irecv(field->in[set][dir], field->length[dir],
                              MPI_DOUBLE, ex->grid->neighbour[dir],
                              faces_opposite(dir), MPI_COMM_WORLD,
                              &ex->recv[set][dir]), "MPI_Irecv");
    }
}

static void faces_paper_run(faces_exchange_t *ex, int count)
{
    int i, set;

    for (i = 0; i < count; ++i) {
        set = i % FACES_MAX_SETS;
        faces_paper_post_recvs(ex, set);
        faces_pack(ex);
        faces_hpe_sends(ex);
        faces_interior(ex);
        bench_check(MPIX_Enqueue_wait(ex->queue), "MPIX_Enqueue_wait");
        bench_check(MPI_Waitall(FACES_NUM_DIRS, ex->recv[set],
                                MPI_STATUSES_IGNORE), "MPI_Waitall");
        faces_unpack(ex);
    }
    bench_check(MPIX_Queue_wait(ex->queue), "MPIX_Queue_wait");
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
}

const faces_ops_t faces_st_paper_ops = {
    .name      = "st-paper",
    .num_sets  = FACES_MAX_SETS,
    .is_staged = 0,
    .init      = faces_hpe_init,
    .prepare   = faces_hpe_none,
    .run       = faces_paper_run,
    .cleanup   = faces_hpe_cleanup
};
