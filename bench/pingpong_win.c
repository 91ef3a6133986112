/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong_win.c - round trips by HPE's interface for windows: each message is
 * a put in an epoch of its own.
 */
#include "pingpong.h"

#include <mpix_win.h>

/* Of a trial. Main thread only. */
static struct {
    MPI_Win   win;
    MPI_Group peer;
    uint8_t   *recv; /* In whose place the window is, where it is the host's */
} pp_win;


static void pp_win_init(pp_exchange_t *ex)
{
    const MPI_Aint size = (MPI_Aint)ex->data->size;
    const int peer      = !ex->rank;
    MPI_Group group;

    pp_win.recv = ex->data->recv[0];
    if (ex->data->device == NULL) {
        bench_check(MPI_Win_allocate(size, 1, MPI_INFO_NULL, ex->comm,
                                     &ex->data->recv[0], &pp_win.win),
                    "MPI_Win_allocate");
    } else {
        bench_check(MPI_Win_create(pp_win.recv, size, 1, MPI_INFO_NULL,
                                   ex->comm, &pp_win.win), "MPI_Win_create");
    }
    MPI_Win_set_errhandler(pp_win.win, MPI_ERRORS_RETURN);
    MPI_Comm_group(ex->comm, &group);
    MPI_Group_incl(group, 1, &peer, &pp_win.peer);
    MPI_Group_free(&group);
}

static void pp_win_prepare(pp_exchange_t *ex)
{
    (void)ex;
}

static void pp_win_send(pp_exchange_t *ex)
{
    pp_data_pack(ex->data);
    bench_check(MPI_Win_start(pp_win.peer, MPIX_MODE_STREAM, pp_win.win),
                "MPI_Win_start");
    bench_check(MPI_Put(ex->data->send, (int)ex->data->size, MPI_BYTE,
                        !ex->rank, 0, (int)ex->data->size, MPI_BYTE,
                        pp_win.win), "MPI_Put");
    bench_check(MPIX_Win_complete_stream(pp_win.win, ex->stream.handle),
                "MPIX_Win_complete_stream");
}

static void pp_win_post(pp_exchange_t *ex)
{
    bench_check(MPIX_Win_post_stream(pp_win.peer, pp_win.win,
                                     ex->stream.handle),
                "MPIX_Win_post_stream");
}

static void pp_win_recv(pp_exchange_t *ex)
{
    bench_check(MPIX_Win_wait_stream(pp_win.win, ex->stream.handle),
                "MPIX_Win_wait_stream");
    pp_data_unpack(ex->data);
}

static void pp_win_run(pp_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        pp_win_post(ex);
        if (ex->rank == 0) {
            pp_win_send(ex);
        }
        pp_win_recv(ex);
        if (ex->rank == 1) {
            pp_win_send(ex);
        }
    }
    bench_check(MPIX_Host_stream_synchronize(ex->stream.handle),
                "MPIX_Host_stream_synchronize");
}

static void pp_win_cleanup(pp_exchange_t *ex)
{
    MPI_Group_free(&pp_win.peer);
    bench_check(MPI_Win_free(&pp_win.win), "MPI_Win_free");
    ex->data->recv[0] = pp_win.recv;
}

const pp_ops_t pp_st_win_ops = {
    .name      = "st-win",
    .num_sets  = 1,
    .is_staged = 0,
    .init      = pp_win_init,
    .prepare   = pp_win_prepare,
    .run       = pp_win_run,
    .cleanup   = pp_win_cleanup
};
