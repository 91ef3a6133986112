/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_dev.h - the UCP worker that the service thread drives, for the host
 * lane and for notices (st_notice.h). That thread alone uses it: no lock of
 * UCP's is ever waited for, and UCP's callbacks find the worker's lock free.
 */
#ifndef UCP_ST_HOST_DEV_H_
#define UCP_ST_HOST_DEV_H_

#include <ucp_st.h>
#include <ucp/api/ucp.h>

#include <ucs/datastruct/list.h>

#include "st_service.h"

struct ucp_st_op;
struct ucp_st_host_msg;

/** Active messages of the UCP worker. */
enum {
    UCP_ST_HOST_AM_DATA,   /**< A use's data */
    UCP_ST_HOST_AM_ACK,    /**< It is in place */
    UCP_ST_HOST_AM_NOTICE, /**< See st_notice.h */
    UCP_ST_HOST_AM_RMA,    /**< See st_rma_proto.h: a request */
    UCP_ST_HOST_AM_RMA_REPLY
};

/**
 * What reaches a peer. `ep` is made when the first pair of the lane is bound,
 * `notice_ep` for the first notice: it is one of its own, so that it stays when
 * the other one is closed to end what UCP does for operations. The service
 * thread alone uses both, and stores them with the lock held. The rest is
 * protected by the worker's lock.
 */
typedef struct ucp_st_host_ep {
    ucs_list_link_t list;    /* in the device's closing */
    ucp_st_peer_h   peer;
    ucp_ep_h        ep;      /* or NULL */
    ucp_ep_h        notice_ep; /* or NULL */
    int             notice_broken; /* it has failed, or could not be made */
    int             notice_stale;  /* it had failed: another one may do */
    int             is_pinging;    /* a PING is not through yet */
    int             closing; /* in that list */
    char            address[]; /* UCP's; read-only */
} ucp_st_host_ep_t;

/** Protected by the worker's lock but for what says otherwise. */
typedef struct ucp_st_host_dev {
    ucp_context_h           context;    /* read-only */
    ucp_worker_h            ucp_worker; /* the service thread's */
    ucp_address_t           *address;   /* read-only */
    size_t                  address_length;
    struct ucp_st_op        *begun;     /* a stack of those that streams have
                                           started; atomic */
    ucs_list_link_t         work;       /* operations with something to do */
    ucs_list_link_t         trash;      /* messages to give back to UCP */
    ucs_list_link_t         closing;    /* endpoints */
    ucs_list_link_t         notices;    /* that UCP has not been given */
    unsigned                num_notices;/* these, and those that it has */
    int                     is_tried;   /* to be opened; owner's */
    ucs_status_t            status;     /* UCS_OK if it is open; read-only */
    int                     is_awake;   /* looks at the lists once more */
    int                     is_served;  /* by the service thread; owner's */
    double                  stop_time;  /* when flushing ends; owner's */
    unsigned                idle;       /* times it could not sleep although
                                           there was nothing; the thread's */
    ucp_st_service_client_t service;    /* its own */
} ucp_st_host_dev_t;

/** Make it, unless that was tried before; how that ended. The lock is not held,
 *  no other thread uses the worker; nor for the next one. */
ucs_status_t ucp_st_host_dev_open(ucp_st_worker_h worker);

/** Give it back. All peers are gone. */
void ucp_st_host_dev_close(ucp_st_worker_h worker);

/** Bytes of its address; 0 if it is not open. */
size_t ucp_st_host_dev_address_length(ucp_st_worker_h worker);

/** Write the address. */
void ucp_st_host_dev_address_pack(ucp_st_worker_h worker, void *buffer);

/** Learn a peer's address, of which a length of 0 is none. The lock is not
 *  held. */
ucs_status_t ucp_st_host_dev_connect(ucp_st_peer_h peer, const void *address,
                                     size_t length);

/** Undo that. The lock is not held, no other thread uses the worker. */
void ucp_st_host_dev_disconnect(ucp_st_peer_h peer);

/** The lane's function for peers: see st_lane.h. */
void ucp_st_host_dev_check(ucp_st_peer_h peer);

/** Do what is there to do, once; how much it was. In the service thread, or the
 *  one that has called ucp_st_host_dev_stop(); the lock is not held. */
unsigned ucp_st_host_dev_work(ucp_st_worker_h worker);

/** From now on the calling thread, and no other, works for the device. The lock
 *  is not held. */
void ucp_st_host_dev_stop(ucp_st_host_dev_t *dev);

/** There is something new in a list; the lock is held. */
void ucp_st_host_dev_wake(ucp_st_host_dev_t *dev);

/**
 * The endpoint for notices to a peer, made if it is not there yet. In the
 * service thread, without the lock.
 */
ucs_status_t ucp_st_host_dev_notice_ep(ucp_st_peer_h peer, ucp_ep_h *ep_p);

/** Have the next notice take another endpoint: the one it has is broken, and
 *  the peer is there all the same. The lock is held. */
void ucp_st_host_dev_notice_renew(ucp_st_peer_h peer);

/** No notice reaches the peer any more. The lock is held. */
void ucp_st_host_dev_notice_lost(ucp_st_peer_h peer, ucs_status_t status);

/** A stream has started a use: have the service thread look. Lock-free, and
 *  without a system call unless that thread sleeps. */
void ucp_st_host_dev_push(struct ucp_st_op *op);

/** Have the service thread call ucp_st_host_run(). The lock is held. */
void ucp_st_host_dev_add(struct ucp_st_op *op);

/** Have the service thread give a message back. The lock is held. */
void ucp_st_host_dev_drop(ucp_st_worker_h worker, struct ucp_st_host_msg *msg);

/**
 * The endpoint to a peer, made if it is not there yet. In the service thread,
 * without the lock.
 */
ucs_status_t ucp_st_host_dev_get_ep(ucp_st_peer_h peer, ucp_ep_h *ep_p);

#endif
