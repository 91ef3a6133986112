/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_svc.h - the UCP worker that the service thread drives: for notices
 * (core/st_notice.h), lane host, and one-sided operations on lane host. Only
 * that thread uses it, so it never waits for a lock of UCP's, and UCP's
 * callbacks find the worker's lock free.
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
    UCP_ST_SVC_AM_NOTICE, /**< See core/st_notice.h */
    UCP_ST_SVC_AM_RMA,    /**< A request for one-sided operations */
    UCP_ST_SVC_AM_RMA_REPLY,
    UCP_ST_SVC_AM_LAST
};

/** So many messages of one kind at most are given to UCP in a round of the
 *  service thread. */
#define UCP_ST_SVC_MAX_SENDS 64

/** Clients: notices, lane host, one-sided operations. */
#define UCP_ST_SVC_MAX_CLIENTS 3

/** A client: work that needs the UCP worker. */
typedef struct ucp_st_svc_client {
    /** One round of the work; how much there was. In the service thread, with
     *  the lock held, which is released meanwhile. */
    unsigned (*work)(ucp_st_worker_h worker);

    /** Non-zero while UCP works on something with that peer. The lock is
     *  held. */
    int (*is_used)(ucp_st_peer_h peer);
} ucp_st_svc_client_t;

/** The two endpoints to a peer. */
typedef enum {
    UCP_ST_SVC_EP_DATA,  /**< For clients */
    UCP_ST_SVC_EP_NOTICE /**< For notices */
} ucp_st_svc_ep_type_t;

/**
 * A peer's part. Each endpoint is made when it is needed first. The one for
 * notices stays when `ep` is closed to end UCP's work on operations. Only the
 * service thread uses the endpoints, and stores them with the lock held. The
 * rest is protected by the worker's lock.
 */
typedef struct ucp_st_svc_ep {
    ucs_list_link_t list;    /* in the worker's closing */
    ucp_ep_h        ep;      /* or NULL */
    ucp_ep_h        notice_ep; /* or NULL */
    int             notice_broken; /* it has failed, or could not be made */
    int             notice_stale;  /* it has failed, and is to be replaced */
    int             is_pinging;    /* a PING is under way */
    unsigned        num_notices;   /* to the peer, of the worker's */
    int             closing; /* in that list */
    char            address[]; /* UCP's; read-only */
} ucp_st_svc_ep_t;

/** A worker's part. Protected by its lock unless a field says otherwise. */
typedef struct ucp_st_svc {
    ucp_context_h           context;    /* read-only */
    ucp_worker_h            ucp_worker; /* the service thread's */
    ucp_address_t           *address;   /* read-only */
    size_t                  address_length;
    const ucp_st_svc_client_t *clients[UCP_ST_SVC_MAX_CLIENTS]; /* read-only */
    unsigned                num_clients;
    ucs_list_link_t         closing;    /* endpoints */
    unsigned                num_closes; /* under way in UCP; the service
                                           thread's */
    ucs_list_link_t         notices;    /* not given to UCP yet */
    unsigned                num_notices;/* these, and those that UCP has */
    ucs_status_t            status;     /* UCS_OK: it is open; UCS_INPROGRESS:
                                           that was not tried; read-only */
    int                     is_awake;   /* the thread will look at the lists */
    int                     is_served;  /* by the service thread; owner's */
    double                  stop_time;  /* when flushing ends; owner's */
    unsigned                idle;       /* times that the thread could not sleep
                                           although it had nothing to do; its
                                           own */
    ucp_st_service_client_t service;    /* its own */
} ucp_st_svc_t;

/** Set the part up. The lock is not held, no other thread uses the worker; nor
 *  for the next ones. */
void ucp_st_svc_init(ucp_st_worker_h worker);

/** Make the UCP worker; if that was tried before, its result. */
ucs_status_t ucp_st_svc_open(ucp_st_worker_h worker);

/** Undo that, if it was done. All peers are gone, and the lanes are closed. */
void ucp_st_svc_close(ucp_st_worker_h worker);

/** Serve a client, too. The thread does not serve yet. */
void ucp_st_svc_add_client(ucp_st_svc_t *svc,
                           const ucp_st_svc_client_t *client);

/** Have `cb` take active messages of a kind. `flags` are UCP's. The UCP worker
 *  is open. */
ucs_status_t ucp_st_svc_set_handler(ucp_st_worker_h worker, unsigned id,
                                    unsigned flags, ucp_am_recv_callback_t cb);

/** Have the service thread drive it from now on, if it is open. */
ucs_status_t ucp_st_svc_start(ucp_st_worker_h worker);

/** From now on only the calling thread drives it. The lock is not held. */
void ucp_st_svc_stop(ucp_st_svc_t *svc);

/** There is something new in a list. The lock is held. */
void ucp_st_svc_wake(ucp_st_svc_t *svc);

/** Length of the service thread's address, bytes; 0 if it has no UCP worker.
 *  The lock is not held, nor for the next ones. */
size_t ucp_st_svc_address_length(ucp_st_worker_h worker);

/** Write the address. */
void ucp_st_svc_address_pack(ucp_st_worker_h worker, void *buffer);

/** Learn how to reach the peer's service thread, unless that is known already;
 *  `length` is 0 if the peer has no UCP worker for it. */
ucs_status_t ucp_st_svc_ep_connect(ucp_st_peer_h peer, const void *address,
                                   size_t length);

/** Undo ucp_st_svc_ep_connect(). The lock is not held, no other thread uses the
 *  worker. */
void ucp_st_svc_ep_disconnect(ucp_st_peer_h peer);

/** UCP's error callback of endpoints, with the peer: it is lost. */
void ucp_st_svc_ep_failed(void *peer, ucp_ep_h ep, ucs_status_t status);

/** An endpoint to a peer, made if it is not there yet. In the service thread,
 *  without the lock. */
ucs_status_t ucp_st_svc_ep_get(ucp_st_peer_h peer, ucp_st_svc_ep_type_t type,
                               ucp_ep_h *ep_p);

#endif
