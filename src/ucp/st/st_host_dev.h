/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_dev.h - the UCP worker behind the host lane. It is the lane's own,
 * and the service thread alone uses it: no lock of UCP's is ever waited for,
 * and UCP's callbacks find the worker's lock free.
 */
#ifndef UCP_ST_HOST_DEV_H_
#define UCP_ST_HOST_DEV_H_

#include <ucp_st.h>
#include <ucp/api/ucp.h>

#include <ucs/datastruct/list.h>

#include "st_service.h"

struct ucp_st_op;
struct ucp_st_host_msg;

/** Active messages of the lane. */
enum {
    UCP_ST_HOST_AM_DATA, /**< A use's data */
    UCP_ST_HOST_AM_ACK   /**< It is in place */
};

/**
 * What reaches a peer. `ep` is made when the first pair is bound; the service
 * thread alone uses it, and stores it with the lock held. The rest is protected
 * by the worker's lock.
 */
typedef struct ucp_st_host_ep {
    ucs_list_link_t list;    /* in the device's closing */
    ucp_st_peer_h   peer;
    ucp_ep_h        ep;      /* or NULL */
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
    int                     is_awake;   /* looks at the lists once more */
    int                     is_served;  /* by the service thread; owner's */
    double                  stop_time;  /* when flushing ends; owner's */
    unsigned                idle;       /* times it could not sleep although
                                           there was nothing; the thread's */
    ucp_st_service_client_t service;    /* its own */
} ucp_st_host_dev_t;

/** The lane's functions for workers and peers: see st_lane.h. */
ucs_status_t ucp_st_host_dev_init(ucp_st_worker_h worker);
void ucp_st_host_dev_cleanup(ucp_st_worker_h worker);
size_t ucp_st_host_dev_address_length(ucp_st_worker_h worker);
ucs_status_t ucp_st_host_dev_address_pack(ucp_st_worker_h worker, void *buffer);
ucs_status_t ucp_st_host_dev_connect(ucp_st_peer_h peer, const void *address,
                                     size_t length);
void ucp_st_host_dev_disconnect(ucp_st_peer_h peer);
void ucp_st_host_dev_check(ucp_st_peer_h peer);

/** A stream has started a use: have the service thread look. Lock-free, and
 *  without a system call unless that thread sleeps. */
void ucp_st_host_dev_push(struct ucp_st_op *op);

/** Have the service thread call ucp_st_host_run(). The lock is held. */
void ucp_st_host_dev_add(struct ucp_st_op *op);

/** Have the service thread give a message back. The lock is held. */
void ucp_st_host_dev_drop(ucp_st_worker_h worker, struct ucp_st_host_msg *msg);

/** UCP could not do something for want of something here: non-zero; else it is
 *  because of the peer. */
int ucp_st_host_dev_is_local(ucs_status_t status);

/**
 * The endpoint to an operation's peer, made if it is not there yet. In the
 * service thread, without the lock.
 */
ucs_status_t ucp_st_host_dev_get_ep(const struct ucp_st_op *op, ucp_ep_h *ep_p);

#endif
