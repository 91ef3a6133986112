/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong_raw.c - the floor: round trips without MPI's messages, streams or
 * queues. Each rank's main thread packs, copies the message once, straight to
 * where the other one unpacks it, and stores a flag, for which that one spins.
 */
#include "pingpong.h"

#include <string.h>

#define PP_RAW_DATA 64 /* Offset of the data, behind the flag's cache line */


/* The rank's own part of a shared window, and the peer's. Main thread only, but
 * for the flags: a rank's own one is stored by the peer. */
static struct {
    MPI_Win           window;
    volatile uint64_t *flag;
    volatile uint64_t *peer_flag;
    uint8_t           *peer_data;
    uint8_t           *before; /* data->recv[0] */
} pp_raw;


static void pp_raw_init(pp_exchange_t *ex)
{
    uint8_t *mine, *theirs;
    MPI_Aint size;
    int unit;

    bench_check(MPI_Win_allocate_shared(
                        (MPI_Aint)(PP_RAW_DATA + ex->data->size), 1,
                        MPI_INFO_NULL, ex->comm, &mine, &pp_raw.window),
                "MPI_Win_allocate_shared");
    bench_check(MPI_Win_shared_query(pp_raw.window, !ex->rank, &size, &unit,
                                     &theirs), "MPI_Win_shared_query");
    pp_raw.flag       = (volatile uint64_t*)mine;
    pp_raw.peer_flag  = (volatile uint64_t*)theirs;
    pp_raw.peer_data  = theirs + PP_RAW_DATA;
    pp_raw.before     = ex->data->recv[0];
    ex->data->recv[0] = mine + PP_RAW_DATA;
}

static void pp_raw_prepare(pp_exchange_t *ex)
{
    (void)ex;
    *pp_raw.flag = 0;
}

/* The release store pairs with the peer's acquire load */
static void pp_raw_send(pp_exchange_t *ex, int number)
{
    pp_kernel_pack(ex->data);
    memcpy(pp_raw.peer_data, ex->data->send, ex->data->size);
    __atomic_store_n(pp_raw.peer_flag, number, __ATOMIC_RELEASE);
}

static void pp_raw_recv(pp_exchange_t *ex, int number)
{
    while (__atomic_load_n(pp_raw.flag, __ATOMIC_ACQUIRE) < (uint64_t)number) {
        /* it comes soon: both ranks do nothing else */
    }
    pp_kernel_unpack(ex->data);
}

static void pp_raw_run(pp_exchange_t *ex, int count)
{
    int i;

    for (i = 1; i <= count; ++i) {
        if (ex->rank == 0) {
            pp_raw_send(ex, i);
            pp_raw_recv(ex, i);
        } else {
            pp_raw_recv(ex, i);
            pp_raw_send(ex, i);
        }
    }
}

static void pp_raw_cleanup(pp_exchange_t *ex)
{
    ex->data->recv[0] = pp_raw.before;
    bench_check(MPI_Win_free(&pp_raw.window), "MPI_Win_free");
}

const pp_ops_t pp_raw_ops = {
    .name     = "raw",
    .num_sets = 1,
    .init     = pp_raw_init,
    .prepare  = pp_raw_prepare,
    .run      = pp_raw_run,
    .cleanup  = pp_raw_cleanup
};
