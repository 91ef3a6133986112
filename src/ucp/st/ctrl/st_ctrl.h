/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ctrl.h - control messages: what is in a worker's outbox is sent as UCP
 * active messages, without the worker's lock.
 */
#ifndef UCP_ST_CTRL_H_
#define UCP_ST_CTRL_H_

#include "core/st_peer.h"
#include "core/st_worker.h"
#include "ctrl/st_svc.h"

/** A worker's part. Protected by its lock but for what says otherwise. */
typedef struct ucp_st_ctrl_worker {
    int                     outbox_busy; /* some thread is sending from it */
    unsigned                sends;       /* given to UCP, not completed */
    uint64_t                round;       /* calls of progress() begun */
    unsigned                going_peers; /* not gone, but lost or leaving */
    double                  last_time;   /* of questions about peers, s */
    ucp_st_peer_t           *last_asked; /* since then; only compared */
    ucp_st_service_client_t watch;       /* its own */
    double                  watch_time;  /* of its last questions; its own */
    ucp_st_svc_t            svc;         /* see there */
} ucp_st_ctrl_worker_t;

extern const ucp_st_component_t ucp_st_ctrl_component;

static inline ucp_st_ctrl_worker_t *ucp_st_ctrl(ucp_st_worker_h worker)
{
    return worker->parts[UCP_ST_PART_CTRL];
}

static inline ucp_st_svc_t *ucp_st_svc(ucp_st_worker_h worker)
{
    return &ucp_st_ctrl(worker)->svc;
}

/** Ask all transports about a peer, once in a round of questions. The lock is
 *  held. */
void ucp_st_ctrl_ask(ucp_st_peer_t *peer);

/** Have the service thread look after peers in place of hosts that make no
 *  calls (st_watch.c). The lock is not held. */
ucs_status_t ucp_st_watch_start(ucp_st_worker_h worker);

/** End that, before the peers go. The lock is not held. */
void ucp_st_watch_stop(ucp_st_worker_h worker);

/**
 * Tell peers that do not know yet what failed, and ask, if it is time, about
 * those that streams wait for and those that are gone: some NICs drop what they
 * cannot deliver without a word, and tell that the peer is gone only if asked.
 * Non-zero if there are peers to look after. The lock is held.
 */
int ucp_st_watch_ask(ucp_st_worker_h worker, int is_time);

/** Have the thread look now: there is a new peer, or one is lost. With the lock
 *  held or not. */
void ucp_st_watch_wake(ucp_st_worker_h worker);

/** Send the outbox. The lock is not held. */
void ucp_st_ctrl_flush(ucp_st_worker_h worker);

/**
 * Progress the UCP worker once, decide about peers that are going, ask now and
 * then about those that something waits for, let go of freed operations, and
 * send the outbox; non-zero if UCP did something. The lock is not held.
 */
unsigned ucp_st_ctrl_progress(ucp_st_worker_h worker);

#endif
