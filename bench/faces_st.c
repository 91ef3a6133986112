/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces_st.c - the halo in stream order, by standard and by ready sends, which
 * are exchanges; and by standard sends that are started one by one.
 *
 * The host enqueues all iterations and waits once, at the end. Each start is
 * followed by its wait on the same queue before the next start of the request,
 * and a kernel that writes a buffer is enqueued after the wait of the message
 * that last used it.
 *
 * Ready sends. A ready send may be started only after its receive has been, so
 * receives are started one iteration ahead, into two sets of requests and
 * buffers: those of a set are an exchange, and its sends another one. With
 * R(r,i), S(r,i), W(r,i) the start of rank r's receives, of its
 * sends, and the wait for both, in iteration i, the stream of r runs
 *
 *     R(r,0)  [host: synchronise, barrier]
 *     for each i:  pack  R(r,i+1)  S(r,i)  interior  W(r,i)  unpack
 *
 * Claim: whenever a send of S(r,i) to a neighbour n starts, R(n,i) has run.
 * i = 0: R(n,0) had run when n entered the barrier, which r has left.
 * i > 0: r receives from each neighbour to which it sends. W(r,i-1), which runs
 * on r's stream before S(r,i), passes only after the message of S(n,i-1) has
 * arrived. On n's stream R(n,i) runs before S(n,i-1), hence before that
 * arrival.
 *
 * Buffers of set i % 2 are free again for R(r,i): their last use was that of
 * iteration i - 2, whose wait and unpack precede R(r,i) (in iteration i - 1) on
 * r's stream. The last iteration starts no receives, so that every start has
 * its message.
 */
#include "faces.h"


/* A tag tells direction and set: with two ranks in a dimension, or one, several
 * messages go to the same neighbour. */
static int faces_st_tag(int dir, int set)
{
    return set * FACES_NUM_DIRS + dir;
}

static void faces_st_init_set(faces_exchange_t *ex, int set,
                              bench_send_init_t send_init)
{
    const faces_field_t *field = ex->field;
    int dir, peer;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        peer = ex->grid->neighbour[dir];
        bench_check(MPI_Recv_init(field->in[set][dir], field->length[dir],
                                  MPI_DOUBLE, peer,
                                  faces_st_tag(faces_opposite(dir), set),
                                  MPI_COMM_WORLD, &ex->recv[set][dir]),
                    "MPI_Recv_init");
        bench_check(send_init(field->out[dir], field->length[dir], MPI_DOUBLE,
                              peer, faces_st_tag(dir, set), MPI_COMM_WORLD,
                              &ex->send[set][dir]), "send init");
    }
}

static void faces_st_init_common(faces_exchange_t *ex,
                                 bench_send_init_t send_init)
{
    unsigned set;

    bench_check(MPIX_Queue_init(ex->stream.queue, ex->stream.handle,
                                &ex->queue), "MPIX_Queue_init");
    for (set = 0; set < ex->ops->num_sets; ++set) {
        faces_st_init_set(ex, set, send_init);
        ex->all[set]   = MPI_REQUEST_NULL;
        ex->sends[set] = MPI_REQUEST_NULL;
    }
}

/* Both halves' requests one behind the other: returns how many. */
static int faces_st_collect(const faces_exchange_t *ex, MPI_Request *requests)
{
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        requests[dir]                  = ex->recv[0][dir];
        requests[FACES_NUM_DIRS + dir] = ex->send[0][dir];
    }
    return 2 * FACES_NUM_DIRS;
}

static void faces_st_init(faces_exchange_t *ex)
{
    MPI_Request requests[2 * FACES_NUM_DIRS];
    int count;

    faces_st_init_common(ex, MPI_Send_init);
    count = faces_st_collect(ex, requests);
    bench_exchange_init(count, requests, &ex->all[0]);
    bench_matchall(1, ex->all);
}

static void faces_st_single_init(faces_exchange_t *ex)
{
    MPI_Request requests[2 * FACES_NUM_DIRS];
    int count;

    faces_st_init_common(ex, MPI_Send_init);
    count = faces_st_collect(ex, requests);
    bench_matchall(count, requests);
}

static void faces_st_ready_init(faces_exchange_t *ex)
{
    MPI_Request exchanges[2 * FACES_MAX_SETS];
    unsigned set;

    faces_st_init_common(ex, MPI_Rsend_init);
    for (set = 0; set < FACES_MAX_SETS; ++set) {
        bench_exchange_init(FACES_NUM_DIRS, ex->recv[set], &ex->all[set]);
        bench_exchange_init(FACES_NUM_DIRS, ex->send[set], &ex->sends[set]);
        exchanges[2 * set]     = ex->all[set];
        exchanges[2 * set + 1] = ex->sends[set];
    }
    bench_matchall(2 * FACES_MAX_SETS, exchanges);
}

static void faces_st_cleanup(faces_exchange_t *ex)
{
    const int num_sets = (int)ex->ops->num_sets;
    int set;

    bench_freeall(num_sets, ex->all);
    bench_freeall(num_sets, ex->sends);
    for (set = 0; set < num_sets; ++set) {
        bench_freeall(FACES_NUM_DIRS, ex->recv[set]);
        bench_freeall(FACES_NUM_DIRS, ex->send[set]);
    }
    bench_check(MPIX_Queue_free(&ex->queue), "MPIX_Queue_free");
}

/* The part of an iteration from the sends' start on: what is started and waited
 * for is in the first array, what is only waited for in the second one. */
static void faces_st_finish(faces_exchange_t *ex, int count,
                            MPI_Request *requests, MPI_Request *others)
{
    bench_startall(ex->queue, count, requests);
    ex->messages += FACES_NUM_DIRS;
    faces_interior(ex);
    if (others != NULL) {
        bench_waitall(ex->queue, count, others);
    }
    bench_waitall(ex->queue, count, requests);
    faces_unpack(ex);
}

static void faces_st_end(faces_exchange_t *ex)
{
    bench_check(MPIX_Queue_wait(ex->queue), "MPIX_Queue_wait");
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
}

static void faces_st_prepare(faces_exchange_t *ex)
{
    (void)ex;
}

static void faces_st_run(faces_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        faces_pack(ex);
        faces_st_finish(ex, 1, ex->all, NULL);
    }
    faces_st_end(ex);
}

/* Receives are started before the pack kernel, so that the clear-to-send is on
 * its way early. */
static void faces_st_single_run(faces_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        bench_startall(ex->queue, FACES_NUM_DIRS, ex->recv[0]);
        faces_pack(ex);
        faces_st_finish(ex, FACES_NUM_DIRS, ex->send[0], ex->recv[0]);
    }
    faces_st_end(ex);
}

/* The barrier is what the proof above calls the base case. */
static void faces_st_ready_prepare(faces_exchange_t *ex)
{
    bench_startall(ex->queue, 1, &ex->all[0]);
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

static void faces_st_ready_run(faces_exchange_t *ex, int count)
{
    int i, set;

    for (i = 0; i < count; ++i) {
        set = i % FACES_MAX_SETS;
        faces_pack(ex);
        if (i + 1 < count) {
            bench_startall(ex->queue, 1, &ex->all[(i + 1) % FACES_MAX_SETS]);
        }
        faces_st_finish(ex, 1, &ex->sends[set], &ex->all[set]);
    }
    faces_st_end(ex);
}

const faces_ops_t faces_st_ops = {
    .name      = "st",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = faces_st_init,
    .prepare   = faces_st_prepare,
    .run       = faces_st_run,
    .cleanup   = faces_st_cleanup
};

const faces_ops_t faces_st_single_ops = {
    .name      = "st-single",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = faces_st_single_init,
    .prepare   = faces_st_prepare,
    .run       = faces_st_single_run,
    .cleanup   = faces_st_cleanup
};

const faces_ops_t faces_st_ready_ops = {
    .name      = "st-ready",
    .num_sets  = FACES_MAX_SETS,
    .is_staged = 0,
    .init      = faces_st_ready_init,
    .prepare   = faces_st_ready_prepare,
    .run       = faces_st_ready_run,
    .cleanup   = faces_st_cleanup
};
