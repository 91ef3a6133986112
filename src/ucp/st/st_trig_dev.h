/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_dev.h - what the trig lane has in common in one worker: its NICs, and
 * what the service thread does for them.
 */
#ifndef UCP_ST_TRIG_DEV_H_
#define UCP_ST_TRIG_DEV_H_

#include <ucp_st.h>

#include "st_service.h"
#include "st_trig_rail.h"

#include <ucs/async/async_fwd.h>
#include <ucs/datastruct/list.h>

/** NICs of a worker: as many as the nodes of today have. */
#define UCP_ST_TRIG_MAX_RAILS 4

/** Protected by the worker's lock but for what says otherwise. */
typedef struct ucp_st_trig_dev {
    ucs_async_context_t *async;
    uct_worker_h        uct_worker;
    ucp_st_trig_rail_t  rails[UCP_ST_TRIG_MAX_RAILS];
    unsigned            num_rails; /* that are open; read-only */
    int                 helped;    /* streams drive all of them; read-only */
    int                 is_late;   /* something waits for entries; also read by
                                      streams */
    int                 polled;    /* streams drive the NICs; atomic */
    int                 nap_msec;  /* the thread's last nap; its own */
    unsigned            polls;     /* of streams that look for messages; atomic
                                      */
    int                 is_starved;/* the NIC refused what was set aside */
    ucs_list_link_t     late;      /* operations with uses to post */
    ucs_list_link_t     doubtful;  /* operations with failed puts */
    ucs_list_link_t     draining;  /* failed ones whose puts are not over */
    size_t              coalesce_max; /* longest message that may be joined,
                                      bytes; 0: none; read-only */
    int                 is_coalescing; /* such a message has come; also read by
                                          streams */
    struct ucp_st_trig_part *pushed; /* by streams, to be sent; atomic */
    ucs_list_link_t     unsent;    /* chains of what is to be sent */
    uint64_t            cts_waits; /* see ucp_st_stats_t; atomic, by streams */
    int                 untriggered; /* operations are; atomic, by streams */

    ucp_st_service_client_t service; /* its own */
} ucp_st_trig_dev_t;

/**
 * Open the devices that UCX_NET_DEVICES allows, up to UCP_ST_TRIG_MAX_RAILS.
 * UCT's worker has been created. Logs why there is none, or why one could not
 * be opened; then none is open.
 */
ucs_status_t ucp_st_trig_open_rails(ucp_st_worker_h worker);

/** Something waits for entries: see to it that it gets them. The lock is held.
 */
void ucp_st_trig_dev_late(ucp_st_worker_h worker);

/** Reap completions; operations that are late go on with their entries. How
 *  many there were. The lock is held. */
unsigned ucp_st_trig_dev_reap(ucp_st_worker_h worker);

/** Have the service thread look at the worker again. With the lock held or
 *  not. */
void ucp_st_trig_dev_wake(ucp_st_worker_h worker);

/** The lane's functions for workers: see st_lane.h. If the NIC still holds
 *  operations cleanup() leaves it open, with a warning. */
ucs_status_t ucp_st_trig_dev_init(ucp_st_worker_h worker);
void ucp_st_trig_dev_cleanup(ucp_st_worker_h worker);
unsigned ucp_st_trig_dev_progress(ucp_st_worker_h worker);
ucs_status_t ucp_st_trig_dev_query(ucp_st_worker_h worker,
                                   ucp_st_worker_attr_t *attr);

#endif
