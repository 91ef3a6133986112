/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_net.h - the UCP worker that the service thread drives, with one endpoint
 * to each peer: for control messages (st_ctrl.h), lane host, and one-sided
 * operations on lane host. Only that thread uses it, so it never waits for a
 * lock of UCP's, and UCP's callbacks find the worker's lock free.
 */
#ifndef UCP_ST_NET_H_
#define UCP_ST_NET_H_

#include <ucp_st.h>
#include <ucp/api/ucp.h>

#include "ctrl/st_service.h"

#include <ucs/datastruct/list.h>

/** Active messages of the UCP worker. */
enum {
    UCP_ST_NET_AM_DATA,   /**< Lane host: a use's data */
    UCP_ST_NET_AM_ACK,    /**< ... it is in place */
    UCP_ST_NET_AM_CTRL,   /**< A frame of control messages */
    UCP_ST_NET_AM_RMA,    /**< A request for one-sided operations */
    UCP_ST_NET_AM_RMA_REPLY,
    UCP_ST_NET_AM_FIFO,   /**< The data of a message of a FIFO */
    UCP_ST_NET_AM_LAST
};

/** So many one-sided operations at most are given to UCP in a round of the
 *  service thread. */
#define UCP_ST_NET_MAX_SENDS 64

/** Clients: control messages, lane host, one-sided operations, FIFOs. */
#define UCP_ST_NET_MAX_CLIENTS 4

/** A client: work that needs the UCP worker. */
typedef struct ucp_st_net_client {
    /** One round of the work; how much there was. In the service thread, with
     *  the lock held, which is released meanwhile. */
    unsigned (*work)(ucp_st_worker_h worker);

    /** Non-zero while UCP works on something with that peer. The lock is
     *  held. */
    int (*is_used)(ucp_st_peer_h peer);
} ucp_st_net_client_t;

/**
 * A peer's endpoint. Only the service thread uses it, and makes it when it is
 * needed first. Protected by the worker's lock unless a field says otherwise.
 */
typedef struct ucp_st_net_peer {
    ucp_st_peer_h   peer;     /* read-only */
    ucs_list_link_t list;     /* in the worker's work */
    int             is_listed;
    int             is_wanted;/* `ep`, before there is something to send */
    int             was_made; /* there has been one */
    void            *address; /* UCP's, read-only once it is known; or NULL */
    ucp_ep_h        ep;       /* or NULL */
    ucp_ep_h        old_ep;   /* to be closed; or NULL */
    ucs_status_t    status;   /* UCS_INPROGRESS: `ep` is to be made; else how
                                 that has ended, or why it has failed since */
} ucp_st_net_peer_t;

/** A worker's UCP worker for all this. Protected by the worker's lock unless a
 *  field says otherwise. */
typedef struct ucp_st_net {
    ucp_context_h           context;    /* read-only */
    ucp_worker_h            ucp_worker; /* the service thread's */
    ucp_address_t           *address;   /* read-only */
    size_t                  address_length;
    const ucp_st_net_client_t *clients[UCP_ST_NET_MAX_CLIENTS]; /* read-only */
    unsigned                num_clients;
    ucs_list_link_t         work;       /* peers whose endpoint is to be made or
                                           closed */
    unsigned                num_closes; /* under way in UCP; the service
                                           thread's */
    uint64_t                round;      /* that has begun */
    int                     is_awake;   /* the thread will look at the lists */
    int                     is_served;  /* by the service thread; owner's */
    double                  stop_time;  /* when flushing ends; owner's */
    unsigned                idle;       /* times that the thread could not sleep
                                           although it had nothing to do; its
                                           own */
    ucp_st_service_client_t service;    /* its own */
} ucp_st_net_t;

/** Make the UCP worker; logged if that fails. The lock is not held, no other
 *  thread uses the worker; nor for the next ones. */
ucs_status_t ucp_st_net_open(ucp_st_worker_h worker);

/** Undo ucp_st_net_open(). All peers are gone, and the lanes are closed. */
void ucp_st_net_close(ucp_st_worker_h worker);

/** Serve a client, too. The thread does not serve yet. */
void ucp_st_net_add_client(ucp_st_worker_h worker,
                           const ucp_st_net_client_t *client);

/** Have `cb` take active messages of a kind. `flags` are UCP's. */
ucs_status_t ucp_st_net_set_handler(ucp_st_worker_h worker, unsigned id,
                                    unsigned flags, ucp_am_recv_callback_t cb);

/** Have the service thread drive it from now on. */
ucs_status_t ucp_st_net_start(ucp_st_worker_h worker);

/** From now on only the calling thread drives it. The lock is not held. */
void ucp_st_net_stop(ucp_st_worker_h worker);

/** There is something new in a list. The lock is held. */
void ucp_st_net_wake(ucp_st_worker_h worker);

/**
 * Learn how to reach the peer's service thread, unless that is known already,
 * and have this side's connect. UCS_ERR_NO_MEMORY. The lock is not held.
 */
ucs_status_t ucp_st_net_connect(ucp_st_peer_h peer, const void *address,
                                size_t length);

/** How ucp_st_net_connect() has ended, or UCS_INPROGRESS. The lock is held. */
ucs_status_t ucp_st_net_connect_status(ucp_st_peer_h peer);

/** Undo ucp_st_net_connect(), until ucp_st_net_t.stop_time at most. The lock is
 *  not held, no other thread uses the worker. */
void ucp_st_net_disconnect(ucp_st_peer_h peer);

/** Have the service thread close the endpoint to a peer, which ends UCP's work
 *  on it; if it is needed again another one is made. The lock is held. */
void ucp_st_net_drop_ep(ucp_st_peer_h peer);

/** What an endpoint is asked for. */
typedef enum {
    UCP_ST_NET_USE_DATA,  /**< Not if nothing more is sent to the peer */
    UCP_ST_NET_USE_FRAME, /**< A control message that was posted before */
    UCP_ST_NET_USE_GONE   /**< To tell the peer that it was declared gone */
} ucp_st_net_use_t;

/** The endpoint to a peer, made if it is not there. In the service thread,
 *  without the lock. */
ucs_status_t ucp_st_net_ep_get(ucp_st_peer_h peer, ucp_st_net_use_t use,
                               ucp_ep_h *ep_p);

#endif
