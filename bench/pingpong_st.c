/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong_st.c - round trips in stream order, by standard and by ready sends.
 *
 * The streams run, for i = 0, 1, ... (R start of the receive, S of the send, W
 * wait for it):
 *
 *     rank 0:                 R0(i)  pack  S0(i)  W(S0, R0)  unpack
 *     rank 1:  R1(0) barrier  W(S1(i-1), R1)  unpack  pack  (R1(i+1), S1(i))
 *
 * Both kinds of send use this order, in which ready sends are legal with one
 * buffer a side:
 * S0(0): R1(0) had run when rank 1 entered the barrier, which rank 0 has left.
 * S0(i+1): follows W(R0(i)), which needs the message of S1(i), before which
 * R1(i+1) has run.
 * S1(i): follows W(R1(i)), which needs the message of S0(i), before which R0(i)
 * has run.
 * A receive is started again only after the unpack kernel of its last use. The
 * last round trip starts no R1, so that every start has its message.
 */
#include "pingpong.h"


static void pp_st_init_recv(pp_exchange_t *ex)
{
    bench_check(MPI_Recv_init(ex->data->recv[0], (int)ex->data->size, MPI_BYTE,
                              !ex->rank, PP_TAG, ex->comm, &ex->recv),
                "MPI_Recv_init");
}

static void pp_st_match(pp_exchange_t *ex)
{
    MPI_Request both[] = {ex->recv, ex->send};

    bench_matchall(2, both);
}

static void pp_st_init(pp_exchange_t *ex)
{
    pp_st_init_recv(ex);
    bench_check(MPI_Send_init(ex->data->send, (int)ex->data->size, MPI_BYTE,
                              !ex->rank, PP_TAG, ex->comm, &ex->send),
                "MPI_Send_init");
    pp_st_match(ex);
}

static void pp_st_ready_init(pp_exchange_t *ex)
{
    pp_st_init_recv(ex);
    bench_check(MPI_Rsend_init(ex->data->send, (int)ex->data->size, MPI_BYTE,
                               !ex->rank, PP_TAG, ex->comm, &ex->send),
                "MPI_Rsend_init");
    pp_st_match(ex);
}

static void pp_st_cleanup(pp_exchange_t *ex)
{
    bench_freeall(1, &ex->recv);
    bench_freeall(1, &ex->send);
}

static void pp_st_start(pp_exchange_t *ex, MPI_Request *request)
{
    bench_check(MPIX_Enqueue_start_req(ex->queue, request),
                "MPIX_Enqueue_start_req");
}

static void pp_st_wait(pp_exchange_t *ex, MPI_Request *request)
{
    bench_check(MPIX_Enqueue_wait_req(ex->queue, request),
                "MPIX_Enqueue_wait_req");
}

static void pp_st_start_both(pp_exchange_t *ex)
{
    MPI_Request both[] = {ex->recv, ex->send};

    bench_startall(ex->queue, 2, both);
}

static void pp_st_wait_both(pp_exchange_t *ex)
{
    MPI_Request both[] = {ex->send, ex->recv};

    bench_waitall(ex->queue, 2, both);
}

static void pp_st_prepare(pp_exchange_t *ex)
{
    if (ex->rank == 1) {
        pp_st_start(ex, &ex->recv);
    }
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
    bench_check(MPI_Barrier(ex->comm), "MPI_Barrier");
}

static void pp_st_ping(pp_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        pp_st_start(ex, &ex->recv);
        pp_data_pack(ex->data);
        pp_st_start(ex, &ex->send);
        ++ex->messages;
        pp_st_wait_both(ex);
        pp_data_unpack(ex->data);
    }
}

static void pp_st_pong(pp_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        if (i == 0) {
            pp_st_wait(ex, &ex->recv);
        } else {
            pp_st_wait_both(ex);
        }
        pp_data_unpack(ex->data);
        pp_data_pack(ex->data);
        if (i + 1 < count) {
            pp_st_start_both(ex);
        } else {
            pp_st_start(ex, &ex->send);
        }
        ++ex->messages;
    }
    pp_st_wait(ex, &ex->send);
}

static void pp_st_run(pp_exchange_t *ex, int count)
{
    if (ex->rank == 0) {
        pp_st_ping(ex, count);
    } else {
        pp_st_pong(ex, count);
    }
    bench_check(MPIX_Queue_wait(ex->queue), "MPIX_Queue_wait");
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
}

const pp_ops_t pp_st_ops = {
    .name      = "st",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = pp_st_init,
    .prepare   = pp_st_prepare,
    .run       = pp_st_run,
    .cleanup   = pp_st_cleanup
};

const pp_ops_t pp_st_ready_ops = {
    .name      = "st-ready",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = pp_st_ready_init,
    .prepare   = pp_st_prepare,
    .run       = pp_st_run,
    .cleanup   = pp_st_cleanup
};
