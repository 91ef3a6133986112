/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_worker.h - everything that belongs to one UCP worker.
 */
#ifndef UCP_ST_WORKER_H_INTERNAL_
#define UCP_ST_WORKER_H_INTERNAL_

#include <ucp_st.h>

#include "st_batch.h"
#include "st_config.h"
#include "st_direct_dev.h"
#include "st_host_dev.h"
#include "st_proto.h"
#include "st_rma.h"
#include "st_trig_dev.h"

#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/list.h>

#include <pthread.h>
#include <time.h>

/**
 * Locks: `lock` protects all fields below it, and every peer, operation and
 * trig-lane object of the worker, unless their fields say otherwise. UCP is
 * never called with it held: UCP's callbacks take it, possibly under a lock of
 * UCP's. Streams never wait for it.
 */
struct ucp_st_lane_ops;

KHASH_MAP_INIT_INT64(ucp_st_ops, struct ucp_st_op*)

struct ucp_st_worker {
    ucp_st_config_t   config;     /* read-only */
    ucp_context_h     own_context;/* read-only; NULL on a user's worker */
    ucp_worker_h      ucp_worker; /* read-only */
    uint64_t          ucp_features;/* of its context, as far as known; read-only
                                     */
    unsigned          am_id;      /* read-only */
    uint64_t          uuid;       /* read-only */
    ucp_st_place_t    place;      /* of this process; read-only */
    size_t            max_frame;  /* longest active message; read-only */
    const struct ucp_st_lane_ops *lanes[UCP_ST_PROTO_MAX_LANES]; /* that are
                                     open, in order of preference; read-only */
    unsigned          num_lanes;
    ucs_log_level_t   lane_log_level; /* while lanes are opened, as is */
    ucp_st_lanes_attr_t *lanes_attr; /* who wants to know of them, or NULL */

    pthread_mutex_t   lock;
    ucs_list_link_t   peers;      /* ucp_st_peer_t */
    ucs_list_link_t   ops;        /* live, not freed: ucp_st_op_t */
    ucs_list_link_t   limbo;      /* freed, may be named by a stream */
    ucs_list_link_t   zombies;    /* freed, kept for a lane or the peer */
    khash_t(ucp_st_ops) op_table; /* all of them by id */
    ucs_list_link_t   queues;     /* ucp_st_queue */
    uint64_t          next_op_id;
    ucs_list_link_t   outbox;     /* ucp_st_frame_buf_t, in order of sending */
    int               outbox_busy;/* some thread is sending from it */
    unsigned          sends;      /* given to UCP, not completed */
    double            last_ping;  /* time, seconds */
    ucp_st_service_client_t watch;/* its own */
    double            watch_time; /* of its last questions; its own */
    uint64_t          round;      /* calls of ucp_st_ctrl_progress() begun */
    unsigned          going_peers;/* not gone, but lost or leaving */
    int               leaving;    /* nothing more is matched */
    int               is_ending;  /* no peer is waited for any more */
    ucp_st_batch_t    batch;
    ucp_st_rma_dev_t  rma;
    ucp_st_direct_dev_t direct;
    ucp_st_trig_dev_t trig;
    ucp_st_host_dev_t host;
    ucp_st_stats_t    stats;
    ucs_list_link_t   stats_list; /* st_stats.c's; its lock */
    unsigned          number;     /* in the process, from 0; read-only */
};

/** See st_trig_coalesce.h. */
void ucp_st_trig_coalesce_hand_over(ucp_st_worker_h worker);

/** Take the worker's lock. */
static inline void ucp_st_worker_lock(ucp_st_worker_h worker)
{
    (void)pthread_mutex_lock(&worker->lock);
}

/** Take the worker's lock if that is possible at once; non-zero if so. */
static inline int ucp_st_worker_trylock(ucp_st_worker_h worker)
{
    return pthread_mutex_trylock(&worker->lock) == 0;
}

/** Release the worker's lock, and send what streams wanted to meanwhile. */
static inline void ucp_st_worker_unlock(ucp_st_worker_h worker)
{
    (void)pthread_mutex_unlock(&worker->lock);
    /* Pairs with the fence in ucp_st_trig_coalesce_push(): a stream that finds
     * the lock taken has pushed before this looks */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&worker->trig.pushed, __ATOMIC_RELAXED) != NULL) {
        ucp_st_trig_coalesce_hand_over(worker);
    }
}

/** Monotonic time, seconds. */
static inline double ucp_st_worker_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + (ts.tv_nsec * 1e-9);
}

#endif
