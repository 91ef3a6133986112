/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mbw_rma.c - windows of one-sided operations in stream order, by puts and by
 * gets, relaxed and strict.
 *
 * A window ends with a signal from each rank of a pair to the other one: what
 * it had to put is there, or what it had to get is here. The stream runs
 *
 *     put, strict:  puts, the last of which has the signal   quiet  wait
 *     all others:   puts or gets                     quiet  signal  wait
 *
 * A strict put takes effect behind those before it, so that the signal of the
 * last one tells of all; relaxed ones have to be waited for before it is sent.
 *
 * And registration alone.
 */
#include "mbw.h"

#include <ucp_st.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MBW_MAX_REGS 1024
#define MBW_PAGE     4096

/* What is registered: the words, what is sent, where what is sent arrives. */
enum {
    MBW_RMA_WORD,
    MBW_RMA_SEND,
    MBW_RMA_RECV,
    MBW_RMA_LAST
};


static const char *const mbw_rma_lanes[UCP_ST_LANE_LAST] = {
    [UCP_ST_LANE_NONE]   = "",
    [UCP_ST_LANE_TRIG]   = "trig",
    [UCP_ST_LANE_HOST]   = "host",
    [UCP_ST_LANE_DIRECT] = "direct"
};


/* Main thread only, but for the word, which the peer's signals change. */
static struct {
    ucp_st_worker_h worker;
    ucp_st_peer_h   peer;
    ucs_gstream_h   stream;
    ucp_st_queue_h  queue;
    uint64_t        *word;               /* Windows that the peer has ended */
    uint64_t        round;               /* Windows of this rank */
    ucp_st_mem_h    memhs[MBW_RMA_LAST]; /* Of one trial, as are the keys */
    ucp_st_rkey_h   rkeys[MBW_RMA_LAST];
    ucp_st_lane_t   lane;
    ucp_st_mem_h    regs[MBW_MAX_REGS];  /* Of registration alone */
    int             num_regs;
} mbw_rma;


static void mbw_rma_must(const char *what, ucs_status_t status)
{
    if (status == UCS_OK) {
        return;
    }
    fprintf(stderr, "rank %d: %s failed: %s\n", bench_rank(), what,
            ucs_status_string(status));
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/* Gives bytes to the peer and returns the peer's; free() them. */
static void *mbw_rma_swap(int peer, const void *mine, size_t length,
                          size_t *their_length_p)
{
    int lengths[2] = {(int)length, 0};
    void *theirs;

    bench_check(MPI_Sendrecv(&lengths[0], 1, MPI_INT, peer, 0, &lengths[1], 1,
                             MPI_INT, peer, 0, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE), "MPI_Sendrecv");
    theirs = bench_alloc(lengths[1]);
    bench_check(MPI_Sendrecv(mine, lengths[0], MPI_BYTE, peer, 0, theirs,
                             lengths[1], MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE), "MPI_Sendrecv");
    *their_length_p = lengths[1];
    return theirs;
}

static void mbw_rma_connect(int peer)
{
    size_t length, their_length;
    void *mine, *theirs;

    mbw_rma_must("ucp_st_worker_get_address",
                 ucp_st_worker_get_address(mbw_rma.worker, &mine, &length));
    theirs = mbw_rma_swap(peer, mine, length, &their_length);
    mbw_rma_must("ucp_st_peer_create",
                 ucp_st_peer_create(mbw_rma.worker, theirs, their_length,
                                    &mbw_rma.peer));
    free(theirs);
    ucp_st_worker_release_address(mbw_rma.worker, mine);
}

void mbw_rma_open(const mbw_data_t *data)
{
    ucp_st_worker_params_t worker_params = {.field_mask = 0};
    ucs_gstream_params_t stream_params   = {.field_mask = 0};
    ucp_st_queue_params_t queue_params   = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
    };

    mbw_rma_must("ucp_st_worker_create",
                 ucp_st_worker_create(&worker_params, &mbw_rma.worker));
    mbw_rma_connect(data->peer);
    mbw_rma_must("ucs_gstream_create",
                 ucs_gstream_create(&stream_params, &mbw_rma.stream));
    queue_params.stream = mbw_rma.stream;
    mbw_rma_must("ucp_st_queue_create",
                 ucp_st_queue_create(mbw_rma.worker, &queue_params,
                                     &mbw_rma.queue));
    mbw_rma.word = bench_message_alloc(sizeof(*mbw_rma.word), data->by_mpi);
}

void mbw_rma_close(const mbw_data_t *data)
{
    bench_message_free(mbw_rma.word, data->by_mpi);
    mbw_rma_must("ucp_st_queue_destroy", ucp_st_queue_destroy(mbw_rma.queue));
    mbw_rma_must("ucs_gstream_destroy", ucs_gstream_destroy(mbw_rma.stream));
    ucp_st_peer_destroy(mbw_rma.peer);
    bench_check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    mbw_rma_must("ucp_st_worker_destroy",
                 ucp_st_worker_destroy(mbw_rma.worker));
}

const char *mbw_rma_lane(void)
{
    return mbw_rma_lanes[mbw_rma.lane];
}

/* Registers memory, and gets the key of the peer's. */
static void mbw_rma_expose(int peer, int what, void *address, size_t length)
{
    size_t key_length, their_length;
    void *mine, *theirs;

    mbw_rma_must("ucp_st_mem_reg",
                 ucp_st_mem_reg(mbw_rma.worker, address, length,
                                &mbw_rma.memhs[what]));
    mbw_rma_must("ucp_st_rkey_pack",
                 ucp_st_rkey_pack(mbw_rma.memhs[what], &mine, &key_length));
    theirs = mbw_rma_swap(peer, mine, key_length, &their_length);
    mbw_rma_must("ucp_st_rkey_unpack",
                 ucp_st_rkey_unpack(mbw_rma.peer, theirs, their_length,
                                    &mbw_rma.rkeys[what]));
    free(theirs);
    ucp_st_rkey_buffer_release(mine);
}

static void mbw_rma_init(mbw_exchange_t *ex)
{
    const mbw_data_t *data = ex->data;
    ucp_st_rkey_attr_t attr;

    *mbw_rma.word = 0;
    mbw_rma.round = 0;
    mbw_rma_expose(data->peer, MBW_RMA_WORD, mbw_rma.word,
                   sizeof(*mbw_rma.word));
    mbw_rma_expose(data->peer, MBW_RMA_SEND, data->send, data->length);
    mbw_rma_expose(data->peer, MBW_RMA_RECV, data->recv[0], data->length);
    mbw_rma_must("ucp_st_rkey_query",
                 ucp_st_rkey_query(mbw_rma.rkeys[MBW_RMA_RECV], &attr));
    mbw_rma.lane = attr.lane;
}

/* All ranks have ended their last run. On lane host the answer to a peer's get
 * may be under way for a moment more. */
static void mbw_rma_cleanup(mbw_exchange_t *ex)
{
    ucs_status_t status;
    int i;

    (void)ex;
    for (i = 0; i < MBW_RMA_LAST; ++i) {
        mbw_rma_must("ucp_st_rkey_destroy",
                     ucp_st_rkey_destroy(mbw_rma.rkeys[i]));
        while ((status = ucp_st_mem_dereg(mbw_rma.memhs[i])) == UCS_ERR_BUSY) {
            (void)ucp_st_worker_progress(mbw_rma.worker);
        }
        mbw_rma_must("ucp_st_mem_dereg", status);
    }
}

static void mbw_rma_prepare(mbw_exchange_t *ex)
{
    (void)ex;
}

/* What a window's operations have in common: memory here and at the peer. */
static void mbw_rma_params_set(ucp_st_rma_params_t *params,
                               const mbw_data_t *data, int here, int there)
{
    memset(params, 0, sizeof(*params));
    params->field_mask = UCP_ST_RMA_PARAM_FIELD_MEMH |
                         UCP_ST_RMA_PARAM_FIELD_OFFSET |
                         UCP_ST_RMA_PARAM_FIELD_LENGTH |
                         UCP_ST_RMA_PARAM_FIELD_RKEY |
                         UCP_ST_RMA_PARAM_FIELD_REMOTE_OFFSET |
                         UCP_ST_RMA_PARAM_FIELD_FLAGS;
    params->memh       = mbw_rma.memhs[here];
    params->rkey       = mbw_rma.rkeys[there];
    params->length     = data->size;
}

static void mbw_rma_place_set(ucp_st_rma_params_t *params, int message)
{
    params->offset        = message * params->length;
    params->remote_offset = params->offset;
}

static void mbw_rma_quiet(void)
{
    mbw_rma_must("ucp_st_enqueue_quiet", ucp_st_enqueue_quiet(mbw_rma.queue));
}

/* Puts, if there is anything to put, and tells the peer of the window's end. */
static void mbw_rma_signal(const ucp_st_rma_params_t *params)
{
    ucp_st_signal_params_t signal = {
        .field_mask = UCP_ST_SIGNAL_PARAM_FIELD_RKEY |
                      UCP_ST_SIGNAL_PARAM_FIELD_VALUE,
        .rkey       = mbw_rma.rkeys[MBW_RMA_WORD],
        .value      = mbw_rma.round
    };

    mbw_rma_must("ucp_st_enqueue_put_signal",
                 ucp_st_enqueue_put_signal(mbw_rma.queue, params, &signal));
}

/* Until the peer has told it. */
static void mbw_rma_wait(void)
{
    ucp_st_wait_signal_params_t wait = {
        .field_mask = UCP_ST_WAIT_SIGNAL_PARAM_FIELD_MEMH |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_VALUE |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER,
        .memh       = mbw_rma.memhs[MBW_RMA_WORD],
        .value      = mbw_rma.round,
        .peer       = mbw_rma.peer
    };

    mbw_rma_must("ucp_st_enqueue_wait_signal",
                 ucp_st_enqueue_wait_signal(mbw_rma.queue, &wait));
}

static void mbw_rma_finish(void)
{
    ucp_st_rma_params_t nothing = {.field_mask = 0};

    mbw_rma_quiet();
    mbw_rma_signal(&nothing);
    mbw_rma_wait();
}

static void mbw_put_window(const mbw_data_t *data)
{
    ucp_st_rma_params_t params;
    int i;

    mbw_rma_params_set(&params, data, MBW_RMA_SEND, MBW_RMA_RECV);
    for (i = 0; i < data->window; ++i) {
        mbw_rma_place_set(&params, i);
        mbw_rma_must("ucp_st_enqueue_put",
                     ucp_st_enqueue_put(mbw_rma.queue, &params));
    }
    mbw_rma_finish();
}

static void mbw_put_strict_window(const mbw_data_t *data)
{
    ucp_st_rma_params_t params;
    int i;

    mbw_rma_params_set(&params, data, MBW_RMA_SEND, MBW_RMA_RECV);
    params.flags = UCP_ST_RMA_FLAG_STRICT;
    for (i = 0; i < data->window - 1; ++i) {
        mbw_rma_place_set(&params, i);
        mbw_rma_must("ucp_st_enqueue_put",
                     ucp_st_enqueue_put(mbw_rma.queue, &params));
    }
    mbw_rma_place_set(&params, i);
    mbw_rma_signal(&params);
    mbw_rma_quiet();
    mbw_rma_wait();
}

static void mbw_rma_get_all(const mbw_data_t *data, uint64_t flags)
{
    ucp_st_rma_params_t params;
    int i;

    mbw_rma_params_set(&params, data, MBW_RMA_RECV, MBW_RMA_SEND);
    params.flags = flags;
    for (i = 0; i < data->window; ++i) {
        mbw_rma_place_set(&params, i);
        mbw_rma_must("ucp_st_enqueue_get",
                     ucp_st_enqueue_get(mbw_rma.queue, &params));
    }
    mbw_rma_finish();
}

static void mbw_get_window(const mbw_data_t *data)
{
    mbw_rma_get_all(data, 0);
}

static void mbw_get_strict_window(const mbw_data_t *data)
{
    mbw_rma_get_all(data, UCP_ST_RMA_FLAG_STRICT);
}

static void mbw_rma_run(mbw_exchange_t *ex, int count,
                        void (*window)(const mbw_data_t *data))
{
    int i;

    for (i = 0; i < count; ++i) {
        ++mbw_rma.round;
        window(ex->data);
    }
    mbw_rma_quiet();
    mbw_rma_must("ucp_st_queue_wait", ucp_st_queue_wait(mbw_rma.queue, NULL));
    mbw_rma_must("ucs_gstream_synchronize",
                 ucs_gstream_synchronize(mbw_rma.stream));
}

static void mbw_put_run(mbw_exchange_t *ex, int count)
{
    mbw_rma_run(ex, count, mbw_put_window);
}

static void mbw_put_strict_run(mbw_exchange_t *ex, int count)
{
    mbw_rma_run(ex, count, mbw_put_strict_window);
}

static void mbw_get_run(mbw_exchange_t *ex, int count)
{
    mbw_rma_run(ex, count, mbw_get_window);
}

static void mbw_get_strict_run(mbw_exchange_t *ex, int count)
{
    mbw_rma_run(ex, count, mbw_get_strict_window);
}

const mbw_ops_t mbw_put_ops = {
    .num_sets = 1,
    .init     = mbw_rma_init,
    .prepare  = mbw_rma_prepare,
    .run      = mbw_put_run,
    .cleanup  = mbw_rma_cleanup
};

const mbw_ops_t mbw_put_strict_ops = {
    .num_sets = 1,
    .init     = mbw_rma_init,
    .prepare  = mbw_rma_prepare,
    .run      = mbw_put_strict_run,
    .cleanup  = mbw_rma_cleanup
};

const mbw_ops_t mbw_get_ops = {
    .num_sets = 1,
    .init     = mbw_rma_init,
    .prepare  = mbw_rma_prepare,
    .run      = mbw_get_run,
    .cleanup  = mbw_rma_cleanup
};

const mbw_ops_t mbw_get_strict_ops = {
    .num_sets = 1,
    .init     = mbw_rma_init,
    .prepare  = mbw_rma_prepare,
    .run      = mbw_get_strict_run,
    .cleanup  = mbw_rma_cleanup
};

static void mbw_reg_cleanup(mbw_exchange_t *ex)
{
    (void)ex;
    while (mbw_rma.num_regs > 0) {
        mbw_rma_must("ucp_st_mem_dereg",
                     ucp_st_mem_dereg(mbw_rma.regs[--mbw_rma.num_regs]));
    }
}

static void mbw_reg_init(mbw_exchange_t *ex)
{
    (void)ex;
}

/* The same memory each time, from the begin of a page if there is room. It is
 * given back when the time is over, unless there are very many. */
static void mbw_reg_run(mbw_exchange_t *ex, int count)
{
    const mbw_data_t *data = ex->data;
    const size_t skip      = -(uintptr_t)data->send % MBW_PAGE;
    uint8_t *const memory  = data->send +
                             ((skip + data->size <= data->length) ? skip : 0);

    for (; count > 0; --count) {
        if (mbw_rma.num_regs == MBW_MAX_REGS) {
            mbw_reg_cleanup(ex);
        }
        mbw_rma_must("ucp_st_mem_reg",
                     ucp_st_mem_reg(mbw_rma.worker, memory, data->size,
                                    &mbw_rma.regs[mbw_rma.num_regs++]));
    }
}

const mbw_ops_t mbw_reg_ops = {
    .num_sets = 1,
    .is_still = 1,
    .init     = mbw_reg_init,
    .prepare  = mbw_reg_cleanup,
    .run      = mbw_reg_run,
    .cleanup  = mbw_reg_cleanup
};
