/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_dev.h - what the direct lane has once for a worker, and once for
 * each of its peers.
 */
#ifndef UCP_ST_DIRECT_DEV_H_
#define UCP_ST_DIRECT_DEV_H_

#include <ucp_st.h>

#include "core/st_peer.h"
#include "core/st_worker.h"
#include "direct/st_direct.h"
#include "direct/st_direct_seg.h"
#include "ctrl/st_service.h"

#include <ucs/datastruct/list.h>

/** Protected by the worker's lock but for what says otherwise. */
typedef struct ucp_st_direct_dev {
    ucp_st_direct_seg_t     seg;
    int                     is_open;   /* read-only */
    int                     pipe[2];   /* peers wake the service thread by it */
    ucp_st_direct_address_t address;   /* read-only */
    ucs_list_link_t         ending;    /* ucp_st_direct_op_t that peers have
                                          left, or that failed */
    ucs_list_link_t         streams;   /* ucp_st_direct_stream_t */
    ucp_st_direct_stream_t  parked;    /* of operations that have lost theirs;
                                          the first one there */
    unsigned                rounds;    /* until it sleeps; the thread's */
    uint32_t                has_broken;/* an operation is to fail; atomic */
    void (*look_rma)(ucp_st_worker_h worker); /* see st_direct_rma.h */
    ucp_st_service_client_t service;   /* its own */
} ucp_st_direct_dev_t;

static inline ucp_st_direct_dev_t *ucp_st_direct_dev(ucp_st_worker_h worker)
{
    return worker->parts[UCP_ST_PART_LANES + UCP_ST_LANE_DIRECT];
}

/** What reaches a peer; read-only once it is connected. */
typedef struct ucp_st_direct_peer {
    ucp_st_direct_map_t *map;       /* its segment */
    int                 notify_fd;    /* wakes its service thread */
    int                 can_attach; /* its memory can be read and written */
} ucp_st_direct_peer_t;

extern const ucp_st_lane_ops_t ucp_st_direct_lane;

static inline ucp_st_direct_peer_t *
ucp_st_direct_peer(const ucp_st_peer_t *peer)
{
    return peer->parts[UCP_ST_PART_LANES + UCP_ST_LANE_DIRECT];
}

/** The lane's functions of these names: see st_lane.h. */
ucs_status_t ucp_st_direct_dev_open(ucp_st_worker_h worker);
void ucp_st_direct_dev_close(ucp_st_worker_h worker);
size_t ucp_st_direct_dev_address_length(ucp_st_worker_h worker);
ucs_status_t ucp_st_direct_dev_address_pack(ucp_st_worker_h worker,
                                            void *buffer);
ucs_status_t ucp_st_direct_dev_connect(ucp_st_peer_h peer, const void *address,
                                       size_t length);
void ucp_st_direct_dev_disconnect(ucp_st_peer_h peer);
unsigned ucp_st_direct_dev_progress(ucp_st_worker_h worker);
void ucp_st_direct_dev_poll(ucp_st_worker_h worker);

/** What the queues of a stream share, made for the first one; without memory,
 *  or room in the segment, `parked`. The worker's lock is held. */
ucp_st_direct_stream_t *ucp_st_direct_dev_get_stream(ucp_st_worker_h worker,
                                                     ucs_gstream_h handle);

/** A queue goes that has got it: the last one's operations have left it. The
 *  worker's lock is held. */
void ucp_st_direct_dev_put_stream(ucp_st_worker_h worker,
                                  ucp_st_direct_stream_t *stream);

/** Have the service thread look. */
void ucp_st_direct_dev_wake(ucp_st_worker_h worker);

/** Have a peer's service thread look. Needs no lock. */
void ucp_st_direct_dev_notify(ucp_st_peer_h peer);

/** Have the service thread fail operations whose pieces cannot be copied. Needs
 *  no lock. */
void ucp_st_direct_dev_break(ucp_st_worker_h worker);

#endif
