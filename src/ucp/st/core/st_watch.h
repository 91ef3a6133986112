/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_watch.h - the service thread, and a host that makes calls, look after
 * peers, and after what waits for them.
 */
#ifndef UCP_ST_WATCH_H_
#define UCP_ST_WATCH_H_

#include "core/st_callback.h"
#include "core/st_peer.h"
#include "core/st_worker.h"
#include "ctrl/st_service.h"

/** A worker's private data. Protected by its lock unless a field says
 *  otherwise. */
typedef struct ucp_st_watch {
    ucs_list_link_t         going_peers; /* not gone, but lost or leaving */
    double                  interval;    /* of questions about peers, s;
                                            read-only */
    double                  look_interval; /* of looks for what waits, at least,
                                            s; read-only */
    double                  look_time;   /* of the last one, s */
    unsigned                look_count;  /* what it has seen */
    double                  last_time;   /* when a host last asked, s */
    ucp_st_peer_t           *last_asked; /* peer that was; only compared */
    ucp_st_service_client_t service;     /* its own */
    double                  asked_time;  /* of its last questions; its own */
    int                     is_watching; /* it will look again; atomic */
    ucp_st_callback_worker_t callbacks;  /* see there */
    ucs_list_link_t         answering;   /* st_answer.c's; its lock */
} ucp_st_watch_t;

extern const ucp_st_component_t ucp_st_watch_component;

static inline ucp_st_watch_t *ucp_st_watch(ucp_st_worker_h worker)
{
    return worker->priv[UCP_ST_PRIV_WATCH];
}

/** Have the service thread look after peers now. With the lock held or not. */
static inline void ucp_st_watch_wake(ucp_st_worker_h worker)
{
    ucp_st_service_wake(&ucp_st_watch(worker)->service);
}

/** Something waits that the waits hook tells of: have the service thread look
 *  from now on, if it does not. With the lock held or not. */
void ucp_st_watch_begin(ucp_st_worker_h worker);

/**
 * If it is time, ask about peers that streams wait for, and about those that
 * are gone: some NICs silently drop messages that they cannot deliver, and
 * report that the peer is gone only if asked. Non-zero if there are peers to
 * watch. The lock is held.
 */
int ucp_st_watch_ask(ucp_st_worker_h worker, int is_time);

/** Ask all transports about a peer, once in a round of questions. The lock is
 *  held. */
void ucp_st_watch_ask_peer(ucp_st_peer_t *peer);

/** Warn of what has waited for UCX_ST_WARN_TIME; how much waits, also for less
 *  long. Unless `is_forced`, that is what the last look has seen if it was a
 *  moment ago: a look goes through all operations. The lock is not held. */
unsigned ucp_st_watch_look(ucp_st_worker_h worker, int is_forced);

#endif
