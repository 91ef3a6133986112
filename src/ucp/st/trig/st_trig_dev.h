/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_dev.h - what the trig lane has once for a worker, and once for each
 * of its peers: its NICs, what the service thread does for them, and endpoints.
 */
#ifndef UCP_ST_TRIG_DEV_H_
#define UCP_ST_TRIG_DEV_H_

#include <ucp_st.h>

#include "core/st_peer.h"
#include "core/st_worker.h"
#include "ctrl/st_service.h"
#include "trig/st_trig_plan.h"
#include "trig/st_trig_rail.h"
#include "trig/st_trig_rma.h"

#include <ucs/async/async_fwd.h>
#include <ucs/datastruct/list.h>

/** Protected by the worker's lock, except where a field says otherwise. */
typedef struct ucp_st_trig_dev {
    ucs_async_context_t *async;
    uct_worker_h        uct_worker;
    ucp_st_trig_rail_t  rails[UCP_ST_TRIG_MAX_RAILS];
    unsigned            num_rails; /* that are open; read-only */
    ucs_list_link_t     triggers;  /* ucp_st_trig_trigger_t */
    ucs_list_link_t     late;      /* ucp_st_trig_late_t */
    int                 is_refused; /* see ucp_st_trig_refused() */
    int                 is_retry_timed; /* the service thread tries soon */
    ucs_list_link_t     ending;    /* operations with failed puts, and failed
                                      ones whose puts are not over */
    uct_trig_iface_attr_t few;     /* of a device that has too few entries for
                                      the lane, or zeroes; read-only */
    uct_trig_cntr_h     probe;     /* ucp_st_trig_dev_serves()'s, or NULL */
    uint64_t            serves;    /* bits of types that do; others are asked
                                      again, as what failed may pass */
    uint64_t            proxied;   /* triggers by another thread than a
                                      stream's; atomic */
    int                 untriggered; /* a trigger is; atomic, by streams */
    void                (*settle)(ucp_st_worker_h worker); /* see
                                      st_trig_rma.h; or NULL */
    ucp_st_service_client_t service; /* its own */
} ucp_st_trig_dev_t;

static inline ucp_st_trig_dev_t *ucp_st_trig_dev(ucp_st_worker_h worker)
{
    return worker->priv[UCP_ST_PRIV_LANES + UCP_ST_LANE_TRIG];
}

/** The lane's functions for workers: see st_lane.h. If the NIC still holds
 *  operations cleanup() leaves it open, with a warning. */
ucs_status_t ucp_st_trig_dev_init(ucp_st_worker_h worker);
void ucp_st_trig_dev_cleanup(ucp_st_worker_h worker);
unsigned ucp_st_trig_dev_progress(ucp_st_worker_h worker);
void ucp_st_trig_dev_cancel(ucp_st_worker_h worker);
void ucp_st_trig_dev_prepare(ucp_st_worker_h worker, ucs_gstream_type_t type);
int ucp_st_trig_dev_serves(ucp_st_worker_h worker, ucs_gstream_type_t type);
ucs_status_t ucp_st_trig_dev_query(ucp_st_worker_h worker,
                                   ucp_st_worker_attr_t *attr);

/** A peer's private data; protected by the worker's lock. */
typedef struct ucp_st_trig_peer {
    ucp_st_trig_limits_t limits;        /* of both sides */
    uct_ep_h             eps[UCP_ST_TRIG_MAX_RAILS]; /* to its rail of that
                                           number, for as many as both sides
                                           have */
    unsigned             lost;          /* bit mask: the rail has lost it */
} ucp_st_trig_peer_t;

static inline ucp_st_trig_peer_t *ucp_st_trig_peer(const ucp_st_peer_t *peer)
{
    return peer->priv[UCP_ST_PRIV_LANES + UCP_ST_LANE_TRIG];
}

/** A NIC has lost a peer; uct_error_handler_t. Called from progress, with the
 *  lock held. */
ucs_status_t ucp_st_trig_peer_err_handler(void *arg, uct_ep_h ep,
                                          ucs_status_t status);

/** The lane's functions for peers: see st_lane.h. */
size_t ucp_st_trig_address_length(ucp_st_worker_h worker);
ucs_status_t ucp_st_trig_address_pack(ucp_st_worker_h worker, void *buffer);
ucs_status_t ucp_st_trig_peer_connect(ucp_st_peer_h peer, const void *address,
                                      size_t length);
void ucp_st_trig_peer_disconnect(ucp_st_peer_h peer);
void ucp_st_trig_peer_check(ucp_st_peer_h peer);

#endif
