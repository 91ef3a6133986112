/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_svc.h - the UCP worker that the service thread drives: for notices
 * (st_notice.h), lane host, and one-sided operations over that. That thread
 * alone uses it: no lock of UCP's is ever waited for, and UCP's callbacks find
 * the worker's lock free.
 */
#ifndef UCP_ST_SVC_H_
#define UCP_ST_SVC_H_

#include <ucp_st.h>
#include <ucp/api/ucp.h>

#include "ctrl/st_service.h"

#include <ucs/datastruct/list.h>

/** Active messages of the UCP worker. */
enum {
    UCP_ST_SVC_AM_DATA,   /**< Lane host: a use's data */
    UCP_ST_SVC_AM_ACK,    /**< ... it is in place */
    UCP_ST_SVC_AM_NOTICE, /**< See st_notice.h */
    UCP_ST_SVC_AM_RMA,    /**< A request for one-sided operations */
    UCP_ST_SVC_AM_RMA_REPLY
};

/** Clients: lane host, one-sided operations. */
#define UCP_ST_SVC_MAX_CLIENTS 2

/** A user of it. */
typedef struct ucp_st_svc_client {
    /** Do what there is to do, once; how much it was. In the service thread,
     *  with the lock held, which is released meanwhile. */
    unsigned (*work)(ucp_st_worker_h worker);

    /** Non-zero while UCP works for something with that peer. The lock is
     *  held. */
    int (*is_used)(ucp_st_peer_h peer);
} ucp_st_svc_client_t;

/**
 * What reaches a peer. `ep` is made when a client needs it first, `notice_ep`
 * for the first notice: it is one of its own, so that it stays when the other
 * one is closed to end what UCP does for operations. The service thread alone
 * uses both, and stores them with the lock held. The rest is protected by the
 * worker's lock.
 */
typedef struct ucp_st_svc_ep {
    ucs_list_link_t list;    /* in the worker's closing */
    ucp_st_peer_h   peer;
    ucp_ep_h        ep;      /* or NULL */
    ucp_ep_h        notice_ep; /* or NULL */
    int             notice_broken; /* it has failed, or could not be made */
    int             notice_stale;  /* it had failed: another one may do */
    int             is_pinging;    /* a PING is not through yet */
    int             closing; /* in that list */
    char            address[]; /* UCP's; read-only */
} ucp_st_svc_ep_t;

/** A worker's part. Protected by its lock but for what says otherwise. */
typedef struct ucp_st_svc {
    ucp_context_h           context;    /* read-only */
    ucp_worker_h            ucp_worker; /* the service thread's */
    ucp_address_t           *address;   /* read-only */
    size_t                  address_length;
    const ucp_st_svc_client_t *clients[UCP_ST_SVC_MAX_CLIENTS]; /* read-only */
    unsigned                num_clients;
    ucs_list_link_t         closing;    /* endpoints */
    unsigned                num_closes; /* of these that UCP goes on with; the
                                           service thread's */
    ucs_list_link_t         notices;    /* that UCP has not been given */
    unsigned                num_notices;/* these, and those that it has */
    unsigned                refs;       /* opened so many times; owner's */
    ucs_status_t            status;     /* UCS_OK if it is open; read-only */
    int                     is_awake;   /* looks at the lists once more */
    int                     is_served;  /* by the service thread; owner's */
    double                  stop_time;  /* when flushing ends; owner's */
    unsigned                idle;       /* times it could not sleep although
                                           there was nothing; the thread's */
    ucp_st_service_client_t service;    /* its own */
} ucp_st_svc_t;

/** Set the part up. The lock is not held, no other thread uses the worker; nor
 *  for the next ones. */
void ucp_st_svc_init(ucp_st_worker_h worker);

/** Make the UCP worker, or say how that ended before. */
ucs_status_t ucp_st_svc_open(ucp_st_worker_h worker);

/** Undo that, as often as it was done. All peers are gone. */
void ucp_st_svc_close(ucp_st_worker_h worker);

/** It is open: serve a client, too. */
void ucp_st_svc_add_client(ucp_st_svc_t *svc,
                           const ucp_st_svc_client_t *client);

/** It is open: `cb` takes messages of a kind. `flags` are UCP's. */
ucs_status_t ucp_st_svc_set_handler(ucp_st_worker_h worker, unsigned id,
                                    unsigned flags, ucp_am_recv_callback_t cb);

/** Have the service thread drive it from now on, if it is open. */
ucs_status_t ucp_st_svc_start(ucp_st_worker_h worker);

/** From now on the calling thread, and no other, drives it. The lock is not
 *  held. */
void ucp_st_svc_stop(ucp_st_svc_t *svc);

/** Bytes of its address; 0 if it is not open. */
size_t ucp_st_svc_address_length(ucp_st_worker_h worker);

/** Write the address. */
void ucp_st_svc_address_pack(ucp_st_worker_h worker, void *buffer);

/** Do what is there to do, once; how much it was. In the service thread, or the
 *  one that has called ucp_st_svc_stop(); the lock is not held. */
unsigned ucp_st_svc_work(ucp_st_worker_h worker);

/** There is something new in a list; the lock is held. */
void ucp_st_svc_wake(ucp_st_svc_t *svc);

/** Learn a peer's address, of which a length of 0 is none. The lock is not
 *  held. */
ucs_status_t ucp_st_svc_ep_connect(ucp_st_peer_h peer, const void *address,
                                   size_t length);

/** Undo that. The lock is not held, no other thread uses the worker. */
void ucp_st_svc_ep_disconnect(ucp_st_peer_h peer);

/** Ask whether the peer is there, and close the endpoint of one that is gone.
 *  The lock is held. */
void ucp_st_svc_ep_check(ucp_st_peer_h peer);

/**
 * The endpoint to a peer, made if it is not there yet. In the service thread,
 * without the lock.
 */
ucs_status_t ucp_st_svc_ep_get(ucp_st_peer_h peer, ucp_ep_h *ep_p);

/** The same for notices. */
ucs_status_t ucp_st_svc_ep_get_notice(ucp_st_peer_h peer, ucp_ep_h *ep_p);

/** Have the next notice take another endpoint: the one it has is broken, and
 *  the peer is there all the same. The lock is held. */
void ucp_st_svc_ep_renew_notice(ucp_st_peer_h peer);

/** No notice reaches the peer any more. The lock is held. */
void ucp_st_svc_ep_lost_notice(ucp_st_peer_h peer, ucs_status_t status);

#endif
