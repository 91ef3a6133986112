/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mbw_st.c - windows of matched messages in stream order, by standard and by
 * ready sends.
 *
 * With R(i), S(i), W(i) the start of the receives of window i, that of its
 * sends, and the wait for both, each stream runs for standard sends R(i) S(i)
 * W(i), and for ready sends, with two sets of receives in turn,
 *
 *     R(0)  [host: synchronise, barrier]
 *     for each i:  R(i+1)  S(i)  W(i)
 *
 * which is the order of faces_st.c, whose proof that ready sends are legal
 * holds here: S(i) of a rank follows its W(i-1), which passes only after the
 * peer's S(i-1), before which the peer's R(i) has run. The last window starts
 * no receives, so that every start has its message.
 */
#include "mbw.h"


static void mbw_st_init_set(mbw_exchange_t *ex, int set,
                            bench_send_init_t send_init)
{
    const mbw_data_t *data = ex->data;
    int tag, i;

    for (i = 0; i < data->window; ++i) {
        tag = set * data->window + i;
        bench_check(MPI_Recv_init(data->recv[set] + i * data->size,
                                  (int)data->size, MPI_BYTE, data->peer, tag,
                                  MPI_COMM_WORLD, &ex->recv[set][i]),
                    "MPI_Recv_init");
        bench_check(send_init(data->send + i * data->size, (int)data->size,
                              MPI_BYTE, data->peer, tag, MPI_COMM_WORLD,
                              &ex->send[set][i]), "send init");
    }
}

static void mbw_st_init_common(mbw_exchange_t *ex, bench_send_init_t send_init)
{
    unsigned set;

    for (set = 0; set < ex->ops->num_sets; ++set) {
        mbw_st_init_set(ex, set, send_init);
    }
    bench_matchall(2 * ex->ops->num_sets * ex->data->window, ex->requests);
}

static void mbw_st_init(mbw_exchange_t *ex)
{
    mbw_st_init_common(ex, MPI_Send_init);
}

static void mbw_st_ready_init(mbw_exchange_t *ex)
{
    mbw_st_init_common(ex, MPI_Rsend_init);
}

static void mbw_st_cleanup(mbw_exchange_t *ex)
{
    bench_freeall(2 * ex->ops->num_sets * ex->data->window, ex->requests);
}

/* The part of a window from the sends' start on. */
static void mbw_st_finish(mbw_exchange_t *ex, int set)
{
    bench_startall(ex->queue, ex->data->window, ex->send[set]);
    ex->messages += ex->data->window;
    bench_waitall(ex->queue, ex->data->window, ex->recv[set]);
    bench_waitall(ex->queue, ex->data->window, ex->send[set]);
}

static void mbw_st_block(mbw_exchange_t *ex)
{
    bench_check(MPIX_Queue_wait(ex->queue), "MPIX_Queue_wait");
    bench_check(MPIX_Host_stream_synchronize(ex->stream),
                "MPIX_Host_stream_synchronize");
}

static void mbw_st_prepare(mbw_exchange_t *ex)
{
    (void)ex;
}

static void mbw_st_run(mbw_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        bench_startall(ex->queue, ex->data->window, ex->recv[0]);
        mbw_st_finish(ex, 0);
    }
    mbw_st_block(ex);
}

static void mbw_st_ready_prepare(mbw_exchange_t *ex)
{
    bench_startall(ex->queue, ex->data->window, ex->recv[0]);
    bench_check(MPIX_Host_stream_synchronize(ex->stream),
                "MPIX_Host_stream_synchronize");
}

static void mbw_st_ready_run(mbw_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        if (i + 1 < count) {
            bench_startall(ex->queue, ex->data->window,
                           ex->recv[(i + 1) % MBW_NUM_SETS]);
        }
        mbw_st_finish(ex, i % MBW_NUM_SETS);
    }
    mbw_st_block(ex);
}

const mbw_ops_t mbw_st_ops = {
    .num_sets = 1,
    .init     = mbw_st_init,
    .prepare  = mbw_st_prepare,
    .run      = mbw_st_run,
    .cleanup  = mbw_st_cleanup
};

const mbw_ops_t mbw_st_ready_ops = {
    .num_sets = MBW_NUM_SETS,
    .init     = mbw_st_ready_init,
    .prepare  = mbw_st_ready_prepare,
    .run      = mbw_st_ready_run,
    .cleanup  = mbw_st_cleanup
};
