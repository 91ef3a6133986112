/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life_exchange.c - the halo of 8 neighbours: driven by the host, with a GPU by
 * way of pinned memory or on the GPU's memory; by matched
 * requests in stream order, which are an exchange, or single ones; and by
 * messages that are used once.
 *
 * A message's tag tells its set and the direction that it goes: with one or two
 * ranks in a dimension several go between the same two. Ready sends are those
 * of faces_st.c, with its proof: receives are started a generation ahead, into
 * two sets of requests and buffers.
 */
#include "life.h"


void life_pack(life_exchange_t *ex)
{
    if (ex->field->device != NULL) {
        life_device_pack(ex);
    } else {
        bench_stream_launch(&ex->stream, life_kernel_pack, ex->field);
    }
}

void life_step(life_exchange_t *ex)
{
    if (ex->field->device != NULL) {
        life_device_step(ex);
    } else {
        bench_stream_launch(&ex->stream, life_kernel_step, ex->field);
    }
}

static void life_synchronize(life_exchange_t *ex)
{
    bench_stream_synchronize(&ex->stream);
}

void life_none(life_exchange_t *ex)
{
    (void)ex;
}

void life_prepare(life_exchange_t *ex)
{
    ex->field->step = 0;
}

static void life_mpi_run(life_exchange_t *ex, int count)
{
    const life_field_t *field = ex->field;
    uint8_t *const *recv      = ex->ops->is_staged ? field->recv[0] :
                                                     field->in[0];
    uint8_t *const *send      = ex->ops->is_staged ? field->send : field->out;
    int i, dir;

    for (i = 0; i < count; ++i) {
        life_pack(ex);
        life_synchronize(ex);
        for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
            bench_check(MPI_Irecv(recv[dir], field->length[dir],
                                  MPI_BYTE, field->neighbour[dir],
                                  life_opposite(dir), MPI_COMM_WORLD,
                                  &ex->requests[0][dir]), "MPI_Irecv");
        }
        for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
            bench_check(MPI_Isend(send[dir], field->length[dir],
                                  MPI_BYTE, field->neighbour[dir], dir,
                                  MPI_COMM_WORLD,
                                  &ex->requests[0][LIFE_NUM_DIRS + dir]),
                        "MPI_Isend");
        }
        bench_check(MPI_Waitall(2 * LIFE_NUM_DIRS, ex->requests[0],
                                MPI_STATUSES_IGNORE), "MPI_Waitall");
        life_step(ex);
    }
    life_synchronize(ex);
}

static void life_st_init_set(life_exchange_t *ex, unsigned set,
                             bench_send_init_t send_init)
{
    const life_field_t *field = ex->field;
    MPI_Request *requests     = ex->requests[set];
    const int first_tag       = (int)set * LIFE_NUM_DIRS;
    int dir;

    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        bench_check(MPI_Recv_init(field->in[set][dir], field->length[dir],
                                  MPI_BYTE, field->neighbour[dir],
                                  first_tag + life_opposite(dir),
                                  MPI_COMM_WORLD, &requests[dir]),
                    "MPI_Recv_init");
        bench_check(send_init(field->out[dir], field->length[dir], MPI_BYTE,
                              field->neighbour[dir], first_tag + dir,
                              MPI_COMM_WORLD, &requests[LIFE_NUM_DIRS + dir]),
                    "send init");
    }
}

static void life_st_init_common(life_exchange_t *ex,
                                bench_send_init_t send_init)
{
    unsigned set;

    bench_check(MPIX_Queue_init(ex->stream.queue, ex->stream.handle,
                                &ex->queue), "MPIX_Queue_init");
    for (set = 0; set < ex->ops->num_sets; ++set) {
        life_st_init_set(ex, set, send_init);
        ex->all[set]   = MPI_REQUEST_NULL;
        ex->sends[set] = MPI_REQUEST_NULL;
    }
}

static void life_st_init(life_exchange_t *ex)
{
    life_st_init_common(ex, MPI_Send_init);
    bench_exchange_init(2 * LIFE_NUM_DIRS, ex->requests[0], &ex->all[0]);
    bench_matchall(1, ex->all);
}

static void life_st_ready_init(life_exchange_t *ex)
{
    MPI_Request exchanges[2 * LIFE_MAX_SETS];
    unsigned set;

    life_st_init_common(ex, MPI_Rsend_init);
    for (set = 0; set < LIFE_MAX_SETS; ++set) {
        bench_exchange_init(LIFE_NUM_DIRS, ex->requests[set], &ex->all[set]);
        bench_exchange_init(LIFE_NUM_DIRS, &ex->requests[set][LIFE_NUM_DIRS],
                            &ex->sends[set]);
        exchanges[2 * set]     = ex->all[set];
        exchanges[2 * set + 1] = ex->sends[set];
    }
    bench_matchall(2 * LIFE_MAX_SETS, exchanges);
}

static void life_st_single_init(life_exchange_t *ex)
{
    life_st_init_common(ex, MPI_Send_init);
    bench_matchall(2 * LIFE_NUM_DIRS, ex->requests[0]);
}

static void life_st_end(life_exchange_t *ex)
{
    bench_check(MPIX_Queue_wait(ex->queue), "MPIX_Queue_wait");
    life_synchronize(ex);
}

/* The first generation's receives: the barrier that follows is the base case of
 * the proof in faces_st.c. */
static void life_st_ready_prepare(life_exchange_t *ex)
{
    ex->field->step = 0;
    bench_startall(ex->queue, 1, &ex->all[0]);
    life_synchronize(ex);
}

/* All that there is at once: the exchange, or its requests. */
static void life_st_run_requests(life_exchange_t *ex, int count,
                                 int num_requests, MPI_Request *requests)
{
    int i;

    for (i = 0; i < count; ++i) {
        life_pack(ex);
        bench_startall(ex->queue, num_requests, requests);
        ex->messages += LIFE_NUM_DIRS;
        bench_waitall(ex->queue, num_requests, requests);
        life_step(ex);
    }
    life_st_end(ex);
}

static void life_st_run(life_exchange_t *ex, int count)
{
    life_st_run_requests(ex, count, 1, ex->all);
}

static void life_st_single_run(life_exchange_t *ex, int count)
{
    life_st_run_requests(ex, count, 2 * LIFE_NUM_DIRS, ex->requests[0]);
}

/* Receives are started a generation ahead. */
static void life_st_ready_run(life_exchange_t *ex, int count)
{
    int i, set;

    for (i = 0; i < count; ++i) {
        set = i % LIFE_MAX_SETS;
        life_pack(ex);
        if (i + 1 < count) {
            bench_startall(ex->queue, 1, &ex->all[(i + 1) % LIFE_MAX_SETS]);
        }
        bench_startall(ex->queue, 1, &ex->sends[set]);
        ex->messages += LIFE_NUM_DIRS;
        bench_waitall(ex->queue, 1, &ex->all[set]);
        bench_waitall(ex->queue, 1, &ex->sends[set]);
        life_step(ex);
    }
    life_st_end(ex);
}

/* Members are the application's again once their exchange is freed. */
static void life_st_cleanup(life_exchange_t *ex)
{
    const int num_sets = (int)ex->ops->num_sets;
    int set;

    bench_freeall(num_sets, ex->all);
    bench_freeall(num_sets, ex->sends);
    for (set = 0; set < num_sets; ++set) {
        bench_freeall(2 * LIFE_NUM_DIRS, ex->requests[set]);
    }
    bench_check(MPIX_Queue_free(&ex->queue), "MPIX_Queue_free");
}

static void life_hpe_init(life_exchange_t *ex)
{
    bench_check(MPIX_Create_queue(ex->stream.handle, &ex->queue),
                "MPIX_Create_queue");
}

static void life_hpe_enqueue(life_exchange_t *ex)
{
    const life_field_t *field = ex->field;
    MPI_Request request;
    int dir;

    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        bench_check(MPIX_Enqueue_recv(field->in[0][dir], field->length[dir],
                                      MPI_BYTE, field->neighbour[dir],
                                      life_opposite(dir), MPI_COMM_WORLD,
                                      ex->queue, &request),
                    "MPIX_Enqueue_recv");
        bench_check(MPI_Request_free(&request), "MPI_Request_free");
        bench_check(MPIX_Enqueue_send(field->out[dir], field->length[dir],
                                      MPI_BYTE, field->neighbour[dir], dir,
                                      MPI_COMM_WORLD, ex->queue, &request),
                    "MPIX_Enqueue_send");
        bench_check(MPI_Request_free(&request), "MPI_Request_free");
    }
}

static void life_hpe_run(life_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        life_pack(ex);
        life_hpe_enqueue(ex);
        bench_check(MPIX_Enqueue_start(ex->queue), "MPIX_Enqueue_start");
        bench_check(MPIX_Enqueue_wait(ex->queue), "MPIX_Enqueue_wait");
        life_step(ex);
    }
    bench_check(MPIX_Queue_wait(ex->queue), "MPIX_Queue_wait");
    life_synchronize(ex);
}

static void life_hpe_cleanup(life_exchange_t *ex)
{
    bench_check(MPIX_Free_queue(ex->queue), "MPIX_Free_queue");
}

const life_ops_t life_mpi_ops = {
    .name      = "mpi",
    .num_sets  = 1,
    .is_staged = 1,
    .init      = life_none,
    .prepare   = life_prepare,
    .run       = life_mpi_run,
    .cleanup   = life_none
};

const life_ops_t life_mpi_device_ops = {
    .name      = "mpi-device",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = life_none,
    .prepare   = life_prepare,
    .run       = life_mpi_run,
    .cleanup   = life_none
};

const life_ops_t life_st_ops = {
    .name      = "st",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = life_st_init,
    .prepare   = life_prepare,
    .run       = life_st_run,
    .cleanup   = life_st_cleanup
};

const life_ops_t life_st_ready_ops = {
    .name      = "st-ready",
    .num_sets  = LIFE_MAX_SETS,
    .is_staged = 0,
    .init      = life_st_ready_init,
    .prepare   = life_st_ready_prepare,
    .run       = life_st_ready_run,
    .cleanup   = life_st_cleanup
};

const life_ops_t life_st_single_ops = {
    .name      = "st-single",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = life_st_single_init,
    .prepare   = life_prepare,
    .run       = life_st_single_run,
    .cleanup   = life_st_cleanup
};

const life_ops_t life_st_hpe_ops = {
    .name      = "st-hpe",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = life_hpe_init,
    .prepare   = life_prepare,
    .run       = life_hpe_run,
    .cleanup   = life_hpe_cleanup
};
