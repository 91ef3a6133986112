/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ctrl.h - control messages. Any thread posts them; the service thread sends
 * and receives them, as UCP active messages over st_net.h. So no call of a host
 * is needed.
 *
 * This folder is below core: it carries messages, and calls core by
 * ucp_st_ctrl_up alone.
 */
#ifndef UCP_ST_CTRL_H_
#define UCP_ST_CTRL_H_

#include "core/st_peer.h"
#include "core/st_worker.h"
#include "ctrl/st_net.h"

/** A worker's private data. Protected by its lock. */
typedef struct ucp_st_ctrl_worker {
    ucs_list_link_t ready; /* peers with frames that can be sent */
    int             is_new;/* there are more of them than were looked at */
    unsigned        sends; /* that UCP has not completed */
    size_t          max_frame; /* longest one, bytes; read-only */
    ucp_st_net_t    net;   /* see there */
} ucp_st_ctrl_worker_t;

/** A peer's private data. Protected by its worker's lock. */
typedef struct ucp_st_ctrl_peer {
    ucs_list_link_t   list;      /* in the worker's ready */
    int               is_listed;
    ucs_list_link_t   frames;    /* not given to UCP, in order of sending */
    unsigned          sends;     /* of the worker's */
    int               is_ending; /* nothing is posted any more */
    uint32_t          next_tx_seq;
    uint32_t          next_rx_seq;
    ucp_st_net_peer_t net;       /* see there */
} ucp_st_ctrl_peer_t;

/** What core does about what comes. The worker's lock is held. */
typedef struct ucp_st_ctrl_up {
    /** Find a peer, or make one; NULL without memory. */
    ucp_st_peer_h (*get_peer)(ucp_st_worker_h worker, uint64_t uuid);

    /** Handle the first of the messages; its length, or 0 if it is
     *  malformed. */
    size_t (*receive)(ucp_st_peer_h peer, const uint8_t *data, size_t length);

    /** A transport has lost a peer; one that is gone already: no transport
     *  reaches it. */
    void (*lost)(ucp_st_peer_h peer, ucs_status_t status);

    /** Decide about lost peers, after the progress of a round; how many it
     *  found. `is_idle` says that the progress found nothing. */
    unsigned (*settle)(ucp_st_worker_h worker, uint64_t round, int is_idle);

    /** The peer has sent what it must not, or there is no memory for what it
     *  has to know. */
    void (*fail)(ucp_st_peer_h peer, ucs_status_t status);
} ucp_st_ctrl_up_t;

/** Core's, in core/st_receive.c. */
extern const ucp_st_ctrl_up_t ucp_st_ctrl_up;

extern const ucp_st_component_t ucp_st_ctrl_component;

static inline ucp_st_ctrl_worker_t *ucp_st_ctrl(ucp_st_worker_h worker)
{
    return worker->priv[UCP_ST_PRIV_CTRL];
}

static inline ucp_st_ctrl_peer_t *ucp_st_ctrl_peer(ucp_st_peer_h peer)
{
    return peer->priv[UCP_ST_PRIV_CTRL];
}

static inline ucp_st_net_t *ucp_st_net(ucp_st_worker_h worker)
{
    return &ucp_st_ctrl(worker)->net;
}

static inline ucp_st_net_peer_t *ucp_st_net_peer(ucp_st_peer_h peer)
{
    return &ucp_st_ctrl_peer(peer)->net;
}

/** Room for a message to a peer, whose head is filled in; NULL without memory.
 *  The lock is held, as for the next ones. */
void *ucp_st_ctrl_reserve(ucp_st_peer_h peer, ucp_st_ctrl_type_t type,
                          size_t length);

/** What may be posted: behind BYE only BYE_ACK, nothing behind that, or to a
 *  lost peer. */
int ucp_st_ctrl_is_open(ucp_st_peer_h peer, ucp_st_ctrl_type_t type);

/**
 * Post a message and the bytes that follow it; type and length of the head of
 * `msg` are filled in. Without memory the peer is declared gone. Nothing is
 * posted behind the last message to a peer.
 */
void ucp_st_ctrl_post_with(ucp_st_peer_h peer, ucp_st_ctrl_type_t type,
                           const ucp_st_ctrl_op_t *msg, const void *data,
                           size_t length);

/** Post a message with nothing behind it, and the ids that the type needs. */
static inline void ucp_st_ctrl_post(ucp_st_peer_h peer, ucp_st_ctrl_type_t type,
                                    uint64_t op_id, uint64_t src_op_id)
{
    ucp_st_ctrl_op_t msg = {.op_id = op_id, .src_op_id = src_op_id};

    ucp_st_ctrl_post_with(peer, type, &msg, NULL, 0);
}

/** Have a message under way to the peer, which fails where the peer is gone. */
void ucp_st_ctrl_ping(ucp_st_peer_h peer);

/** The peer has left: close its endpoint once it was sent what is posted. */
void ucp_st_ctrl_end(ucp_st_peer_h peer);

/** The peer was declared gone: send nothing of what was posted, and close its
 *  endpoint. */
void ucp_st_ctrl_cut(ucp_st_peer_h peer);

/** ucp_st_ctrl_cut(), and tell the peer over another endpoint, if it ever had
 *  one and its process has not ended. */
void ucp_st_ctrl_tell_gone(ucp_st_peer_h peer);

/** What waits to be sent to the peer can be, if it is known how to reach it. */
void ucp_st_ctrl_list(ucp_st_peer_h peer);

/** Non-zero while messages to the peer have not left. */
int ucp_st_ctrl_is_sending(ucp_st_peer_h peer);

/** Non-zero once a message has come from the peer. */
int ucp_st_ctrl_has_heard(ucp_st_peer_h peer);

/** Undo ucp_st_net_connect(), and drop what was not sent. The lock is not held,
 *  no other thread uses the worker. */
void ucp_st_ctrl_disconnect(ucp_st_peer_h peer);

#endif
