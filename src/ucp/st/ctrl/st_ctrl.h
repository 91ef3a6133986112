/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ctrl.h - control messages: a worker's outbox is sent as UCP active
 * messages, without the worker's lock.
 */
#ifndef UCP_ST_CTRL_H_
#define UCP_ST_CTRL_H_

#include "core/st_peer.h"
#include "core/st_worker.h"
#include "ctrl/st_call.h"
#include "ctrl/st_svc.h"

/** A worker's part. Protected by its lock unless a field says otherwise. */
typedef struct ucp_st_ctrl_worker {
    int                     outbox_busy; /* a thread sends from it */
    unsigned                sends;       /* that UCP has not completed */
    uint64_t                round;       /* calls of progress() begun */
    unsigned                going_peers; /* not gone, but lost or leaving */
    double                  interval;    /* of questions about peers, s;
                                            read-only */
    double                  look_interval; /* of looks for what waits, at least,
                                            s; read-only */
    double                  look_time;   /* of the last one, s */
    unsigned                look_count;  /* what it has seen */
    double                  last_time;   /* of these by the host, s */
    ucp_st_peer_t           *last_asked; /* since then; only compared */
    ucp_st_service_client_t watch;       /* its own */
    double                  watch_time;  /* of its last questions; its own */
    int                     is_watching; /* it will look again; atomic */
    ucp_st_svc_t            svc;         /* see there */
    ucp_st_call_worker_t    calls;       /* likewise */
    ucs_list_link_t         answering;   /* st_answer.c's; its lock */
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

/** Have `cb` take active messages of a kind; NULL: drop them. `flags` are
 *  UCP's. */
ucs_status_t ucp_st_ctrl_set_handler(ucp_st_worker_h worker,
                                     ucp_worker_h ucp_worker, unsigned id,
                                     unsigned flags, ucp_am_recv_callback_t cb);

/** Drop active messages of all kinds, of which the first `count` ones may get a
 *  handler later. */
ucs_status_t ucp_st_ctrl_drop_all(ucp_st_worker_h worker,
                                  ucp_worker_h ucp_worker, unsigned count);

/** Make an endpoint to a peer that calls `cb` with the peer should it fail. */
ucs_status_t ucp_st_ctrl_ep_create(ucp_st_peer_t *peer, ucp_worker_h ucp_worker,
                                   const void *address, ucp_err_handler_cb_t cb,
                                   ucp_ep_h *ep_p);

/** Such a callback: the peer is lost. */
void ucp_st_ctrl_ep_failed(void *peer, ucp_ep_h ep, ucs_status_t status);

/** Warn of what has waited for UCX_ST_WARN_TIME; how much waits, also for less
 *  long. Unless `is_forced`, that is what the last look has seen if it was a
 *  moment ago: a look goes through all operations. The lock is not held. */
unsigned ucp_st_ctrl_look(ucp_st_worker_h worker, int is_forced);

/** UCP has completed one of `sends`. The lock is not held. */
void ucp_st_ctrl_sent(ucp_st_peer_t *peer, ucs_status_t status);

#endif
