/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_dev.h - what the direct lane has once for a worker, and once for
 * each of its peers.
 */
#ifndef UCP_ST_DIRECT_DEV_H_
#define UCP_ST_DIRECT_DEV_H_

#include <ucp_st.h>

#include "st_direct.h"
#include "st_direct_seg.h"
#include "st_service.h"

#include <ucs/datastruct/list.h>

/** Protected by the worker's lock but for what says otherwise. */
typedef struct ucp_st_direct_dev {
    ucp_st_direct_seg_t     seg;
    int                     is_open;   /* read-only */
    int                     kick[2];   /* pipe: what wakes the service thread */
    ucp_st_direct_address_t address;   /* read-only */
    ucs_list_link_t         ending;    /* ucp_st_direct_op_t that peers have
                                          left, or that failed */
    ucs_list_link_t         streams;   /* ucp_st_direct_stream_t */
    ucp_st_direct_stream_t  orphans;   /* what has lost its stream; the first
                                          one there */
    unsigned                rounds;    /* until it sleeps; the thread's */
    uint32_t                has_broken;/* an operation is to fail; atomic */
    ucp_st_service_client_t service;   /* its own */
} ucp_st_direct_dev_t;

/** How sends store their pieces; see st_direct_fill.c. */
typedef enum {
    UCP_ST_DIRECT_FILL_ONE,     /* messages of one piece */
    UCP_ST_DIRECT_FILL_SEVERAL,
    UCP_ST_DIRECT_FILL_LONG,    /* of several that are longer */
    UCP_ST_DIRECT_FILL_MAPPED,  /* to their place, without slots */
    UCP_ST_DIRECT_FILL_MAPPED_LONG,
    UCP_ST_DIRECT_FILL_KINDS
} ucp_st_direct_fill_kind_t;

/** What is known of that; streams access it at any time, with atomics. */
typedef struct ucp_st_direct_fill {
    uint32_t time[2]; /* a byte takes, ps: ordinary stores, and others */
    uint32_t turn;    /* pieces that were timed */
} ucp_st_direct_fill_t;

/** Parts of a nanosecond that line_time counts. */
#define UCP_ST_DIRECT_FAR_UNIT 16

/** What reaches a peer; read-only once it is connected. */
typedef struct ucp_st_direct_peer {
    ucp_st_direct_map_t *map;       /* its segment */
    int                 kick_fd;    /* wakes its service thread */
    int                 can_attach; /* its memory can be read and written */
    ucp_st_direct_fill_t fill[UCP_ST_DIRECT_FILL_KINDS]; /* sends to it */
    uint32_t            line_time;  /* to load what it has stored, in parts of
                                       a nanosecond; streams access it at any
                                       time, with atomics */
} ucp_st_direct_peer_t;

/** Non-zero if the peer's processor is far, as far as is known. */
int ucp_st_direct_is_far(const ucp_st_direct_peer_t *peer);

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
 *  or room in the segment, what has lost its stream. The worker's lock is held.
 */
ucp_st_direct_stream_t *ucp_st_direct_dev_get_stream(ucp_st_worker_h worker,
                                                     ucs_gstream_h handle);

/** A queue goes that has got it: the last one's operations have left it. The
 *  worker's lock is held. */
void ucp_st_direct_dev_put_stream(ucp_st_worker_h worker,
                                  ucp_st_direct_stream_t *stream);

/** Have the service thread look. */
void ucp_st_direct_dev_wake(ucp_st_worker_h worker);

/** Have a peer's service thread look. Needs no lock. */
void ucp_st_direct_dev_kick(ucp_st_peer_h peer);

/** Have the service thread fail operations whose pieces cannot be copied. Needs
 *  no lock. */
void ucp_st_direct_dev_break(ucp_st_worker_h worker);

#endif
