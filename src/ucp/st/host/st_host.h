/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host.h - the host lane of one operation: the service thread moves its data
 * as UCP active messages, over whatever transports UCP has.
 *
 * A use k of a pair:
 *
 *   sender                                    receiver
 *   stream: start adds 1 to `begun`           stream: start adds 1 to `begun`
 *   thread: DATA(k)  -----------------------> thread: holds it
 *                                                     begun >= k: moves the
 *                                                     data to the buffer,
 *                                                     word = k
 *           word = k  <----------------------         ACK(k)
 *   stream: wait for word >= k                stream: wait for word >= k
 *
 * A send is complete when UCP is done with its buffer and the receiver has said
 * that the data is in place. That it is not complete before, although UCP may
 * have buffered it, is what the rest of the library builds on: a use that one
 * side has completed needs nothing of that side any more, so that it may free
 * the operation, say goodbye and go. As use k+1 is started only once the wait
 * of use k is enqueued on the same stream, the sender is never ahead of the
 * receiver by more than one message. Ready sends need no other way.
 */
#ifndef UCP_ST_HOST_H_
#define UCP_ST_HOST_H_

#include <ucp_st.h>

#include "core/st_op.h"
#include "core/st_proto.h"
#include "core/st_stack.h"

#include <ucs/datastruct/list.h>
#include <ucs/type/status.h>

/** Head of every active message of the lane. */
typedef struct ucp_st_host_hdr {
    uint64_t op_id; /**< Receiver's operation */
    uint64_t use;   /**< Of it, from 1 */
    uint64_t src;   /**< Sender's uuid */
} __attribute__((packed)) ucp_st_host_hdr_t;

_Static_assert(sizeof(ucp_st_host_hdr_t) == 24, "wire format");

/** A message that has arrived, and is not in a buffer yet. */
typedef struct ucp_st_host_msg {
    ucs_list_link_t list;    /* in the device's trash */
    void            *data;   /* UCP's */
    int             is_rndv; /* `data` only tells where the data is */
} ucp_st_host_msg_t;

/**
 * What an operation has from this lane's offer to its release. Protected by the
 * worker's lock, but for what says otherwise. Only the service thread moves
 * data; while it calls UCP for the operation `is_running` is set and the lock
 * is not held.
 */
typedef struct ucp_st_host_op {
    volatile uint64_t   word;      /* streams wait on it; stored with the lock
                                      held */
    uint64_t            begun;     /* uses; streams add to it, atomically */
    struct ucp_st_op    *op;       /* read-only */
    uint8_t             queued;    /* in the device's stack; atomic */
    uint8_t             released;  /* starts must have no effect any more;
                                      stored with the lock, read by streams */
    ucp_st_stack_item_t begun_item; /* there */
    ucs_list_link_t     list;      /* in the device's work */
    uint8_t             is_listed;
    uint8_t             is_running;
    uint8_t             is_bound;  /* the peer has the other half */
    uint8_t             is_revoked;/* receive: no further message is taken */
    uint8_t             release;   /* release the waits once not moving */
    uint8_t             is_moving; /* UCP uses the buffer */
    uint8_t             is_sending;/* UCP uses `header` */
    uint64_t            sent;      /* uses: messages or acknowledgements */
    uint64_t            moved;     /* uses: UCP is done with the buffer */
    uint64_t            acked;     /* send: uses that the receiver has */
    ucp_st_host_hdr_t   header;    /* of the last message sent */
    ucp_st_host_msg_t   *msg;      /* receive: of use `moved` + 1, or NULL */
} ucp_st_host_op_t;

/** The lane's part of an operation; NULL if it holds nothing for it. */
static inline ucp_st_host_op_t *ucp_st_host_op(const ucp_st_op_t *op)
{
    return op->parts[UCP_ST_LANE_HOST];
}

/**
 * Do for an operation what can be done now. In the service thread, with the
 * lock held, which is released meanwhile; `op` may be gone afterwards.
 */
void ucp_st_host_run(struct ucp_st_op *op);

/**
 * Take a DATA message; zero if nobody wants it. In the service thread, with the
 * lock held.
 */
int ucp_st_host_handle_data(ucp_st_worker_h worker,
                            const ucp_st_host_hdr_t *header,
                            ucp_st_host_msg_t *msg, size_t length);

/** Take an ACK message. In the service thread, with the lock held. */
void ucp_st_host_handle_ack(ucp_st_worker_h worker,
                            const ucp_st_host_hdr_t *header);

#endif
