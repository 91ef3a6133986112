/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_dev.h - what the trig lane has in common in one worker: its NICs, and
 * what the service thread does for them.
 */
#ifndef UCP_ST_TRIG_DEV_H_
#define UCP_ST_TRIG_DEV_H_

#include <ucp_st.h>

#include "core/st_worker.h"
#include "ctrl/st_service.h"
#include "trig/st_trig_rail.h"
#include "trig/st_trig_rma.h"

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
    int                 is_starved;/* the NIC refused what was set aside */
    ucs_list_link_t     late;      /* operations with uses to post */
    ucs_list_link_t     doubtful;  /* operations with failed puts */
    ucs_list_link_t     draining;  /* failed ones whose puts are not over */
    int                 untriggered; /* operations are; atomic, by streams */

    void                (*progress_rma)(ucp_st_worker_h worker); /* see
                                      st_trig_rma.h; read-only */
    ucp_st_service_client_t service; /* its own */
} ucp_st_trig_dev_t;

static inline ucp_st_trig_dev_t *ucp_st_trig_dev(ucp_st_worker_h worker)
{
    return worker->parts[UCP_ST_PART_LANES + UCP_ST_LANE_TRIG];
}

/**
 * Open the devices that UCX_NET_DEVICES allows, up to UCP_ST_TRIG_MAX_RAILS.
 * UCT's worker has been created. Logs why there is none, or why one could not
 * be opened; then none is open.
 */
ucs_status_t ucp_st_trig_open_rails(ucp_st_worker_h worker);

/** The lane's functions for workers: see st_lane.h. If the NIC still holds
 *  operations cleanup() leaves it open, with a warning. */
ucs_status_t ucp_st_trig_dev_init(ucp_st_worker_h worker);
void ucp_st_trig_dev_cleanup(ucp_st_worker_h worker);
unsigned ucp_st_trig_dev_progress(ucp_st_worker_h worker);
ucs_status_t ucp_st_trig_dev_query(ucp_st_worker_h worker,
                                   ucp_st_worker_attr_t *attr);

#endif
