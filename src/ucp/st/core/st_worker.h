/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_worker.h - everything that belongs to one UCP worker.
 */
#ifndef UCP_ST_WORKER_H_INTERNAL_
#define UCP_ST_WORKER_H_INTERNAL_

#include <ucp_st.h>

#include "core/st_component.h"
#include "core/st_config.h"
#include "core/st_fork.h"
#include "core/st_proto.h"

#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/list.h>

#include <pthread.h>
#include <time.h>

struct ucp_st_lane_ops;

KHASH_MAP_INIT_INT64(ucp_st_ops, struct ucp_st_op*)
KHASH_MAP_INIT_INT64(ucp_st_peers, ucp_st_peer_h)

/**
 * Locks: `lock` protects all fields below it, every peer and operation, and all
 * private data of the worker, unless their fields say otherwise. UCP is never
 * called with it held: UCP's callbacks take it, possibly under a lock of UCP's.
 * Streams never wait for it.
 */
struct ucp_st_worker {
    void              *priv[UCP_ST_PRIV_LAST]; /* read-only */
    ucp_st_config_t   config;     /* read-only */
    ucp_context_h     own_context;/* read-only; NULL on a user's worker */
    ucp_worker_h      ucp_worker; /* read-only */
    uint64_t          ucp_features;/* of its context, as far as known; read-only
                                     */
    uint64_t          uuid;       /* read-only */
    ucp_st_place_t    place;      /* of this process; read-only */
    const struct ucp_st_lane_ops *lanes[UCP_ST_PROTO_MAX_LANES]; /* that are
                                     open, in order of preference; read-only */
    unsigned          num_lanes;
    int               is_ordered; /* ... by the user; read-only */
    uint64_t          stream_types; /* given by the user, or 0; read-only */
    ucs_log_level_t   refuse_level; /* of what a start or wait is refused for;
                                       read-only */
    ucs_log_level_t   lane_log_level; /* while lanes are opened, as is */
    ucp_st_lanes_attr_t *lanes_attr; /* to be filled in, or NULL */

    pthread_mutex_t   connect_lock; /* one thread connects a peer; taken before
                                       `lock` */
    pthread_mutex_t   lock;
    ucs_list_link_t   peers;      /* ucp_st_peer_t */
    khash_t(ucp_st_peers) peer_table; /* the same by uuid */
    ucs_list_link_t   ops;        /* live, not freed: ucp_st_op_t */
    /* Freed operations: */
    ucs_list_link_t   on_stream;  /* that a stream may name */
    ucs_list_link_t   deferred;   /* kept for a lane or the peer */
    khash_t(ucp_st_ops) op_table; /* all of them by id */
    ucs_list_link_t   queues;     /* ucp_st_queue */
    unsigned          num_queues[UCS_GSTREAM_TYPE_LAST]; /* by their streams */
    uint64_t          next_op_id;
    int               leaving;    /* nothing more is matched */
    int               said_bye;   /* peers were told that all is freed */
    int               is_ending;  /* it does not wait for peers any more */
    double            send_end;   /* until when its end lets UCP send, s */
    ucp_st_stats_t    stats;
    const char        *tier_reason; /* constant, or NULL */
    ucs_list_link_t   stats_list; /* st_stats.c's; its lock */
    unsigned          number;     /* in the process, from 0; read-only */
    char              name[UCP_ST_NAME_MAX]; /* by the user, or empty;
                                     read-only */
};

/** Take the worker's lock. */
static inline void ucp_st_worker_lock(ucp_st_worker_h worker)
{
    (void)pthread_mutex_lock(&worker->lock);
}

/** Release the worker's lock. */
static inline void ucp_st_worker_unlock(ucp_st_worker_h worker)
{
    (void)pthread_mutex_unlock(&worker->lock);
}

/** A worker is open: number it. With UCX_ST_STATS its counts are written if the
 *  process exits before it is destroyed. */
void ucp_st_stats_add_worker(ucp_st_worker_h worker);

/** A worker is about to close, its lanes are still open: write its counts if
 *  UCX_ST_STATS is set. Its lock is not held. */
void ucp_st_stats_remove_worker(ucp_st_worker_h worker);

/** Monotonic time, seconds. */
static inline double ucp_st_worker_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + (ts.tv_nsec * 1e-9);
}

#endif
