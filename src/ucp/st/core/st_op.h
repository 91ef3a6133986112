/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_op.h - a persistent send or receive.
 *
 *            match given            counterpart known
 *   INIT ------------------> MATCHING -----------> MATCHED
 *    |  <------------------     |                     |
 *    |    no lane had room      | error               | error, or more uses
 *    |                          v                     | than the peer's half
 *    |                        FAILED <----------------+ takes part in
 *    |                          |
 *    +---------- free, from every state: gone; or a deferred free, while
 *                commands of a stream name it, and then while a lane or the
 *                peer may still use what it holds
 */
#ifndef UCP_ST_OP_H_
#define UCP_ST_OP_H_

#include <ucp_st.h>

#include "core/st_proto.h"
#include "core/st_waits.h"

#include <ucs_gstream_ipc.h>
#include <ucs_gstream_memory.h>
#include <ucs_gstream_pair.h>

#include <ucs/datastruct/list.h>

/** Stored to a word to let its waits pass. It is above any count, and below
 *  2^63: a NIC may still add to it, and CUDA compares cyclically. */
#define UCP_ST_RELEASE (1ull << 62)

typedef enum {
    UCP_ST_DIR_SEND,
    UCP_ST_DIR_RECV
} ucp_st_dir_t;

typedef enum {
    UCP_ST_OP_INIT,
    UCP_ST_OP_MATCHING,
    UCP_ST_OP_MATCHED,
    UCP_ST_OP_FAILED
} ucp_st_op_state_t;

struct ucp_st_lane_ops;
struct ucp_st_exchange;

/** The device whose kernels start an operation: that of its buffer. Or else, if
 *  there is a cell, one that reaches the buffer and has a stream that the
 *  worker has a queue on. */
typedef struct ucp_st_starter {
    ucs_gstream_type_t type;
    int                device;
    uint8_t            place;   /* of the buffer, st_direct_proto.h's */
    void               *buffer; /* as the device has it */
} ucp_st_starter_t;

/**
 * Protected by the worker's lock, except for the lanes' private data, and for
 * `waited` and `last_seq`. These two belong to the thread that calls for the
 * operation's queue: others read them atomically. They do not change once the
 * operation was freed. `state` is stored with the lock held and may be read
 * without it.
 */
typedef struct ucp_st_op {
    ucs_list_link_t     list;       /* in the worker's ops, on_stream or
                                       deferred */
    ucs_list_link_t     peer_list;  /* in the peer's ops, if it has one */
    ucs_list_link_t     key_list;   /* in its key's local operations */
    struct ucp_st_key   *key;       /* while it waits for its counterpart */
    struct ucp_st_trace_op *trace;  /* st_trace.h's, or NULL */
    ucp_st_peer_h       peer;       /* or NULL, or UCP_ST_PEER_ANY */
    uint64_t            id;         /* unique in the worker */
    uint64_t            remote_id;  /* of the counterpart, once matched */
    uint64_t            tag;
    uint64_t            scope;
    void                *buffer;
    size_t              length;     /* of the buffer */
    ucs_gstream_memory_attr_t memory; /* that it lies in */
    int                 is_gone;    /* ... no more, when last asked; atomic */
    ucs_gstream_ipc_key_t *ipc_key; /* of the buffer for other processes, or
                                       NULL */
    ucp_st_starter_t    starter;
    ucs_gstream_cell_h  cell;       /* of its device, for pairs of streams, or
                                       NULL */
    ucs_gstream_rect_t  blocks;     /* of the buffer, how the stream copies them
                                       to or from `stage`; the height is that of
                                       a use; width 0: it has no blocks */
    void                *stage;     /* st_stage.h's memory in its place, or NULL
                                     */
    size_t              stage_length; /* ... of so many bytes */
    size_t              msg_length; /* of a use, once paired */
    uint64_t            completed;  /* uses whose completion was reaped */
    uint8_t             flags;      /* UCP_ST_OP_FLAG_* */
    uint8_t             freed : 1;  /* by the user */
    uint8_t             peer_closed : 1; /* the peer has closed its region */
    uint8_t             is_told : 1;     /* UNMATCH was posted */
    uint8_t             tells_late : 1;  /* ucp_st_op_settled() posts it */
    uint8_t             acks_late : 1;   /* ... and answers the peer's */
    uint8_t             lane_order[UCP_ST_PROTO_MAX_LANES]; /* that it may use;
                                       once paired, in the order of the send's
                                       side */
    uint8_t             offered;    /* lanes that hold something for it */
    ucp_st_look_t       look;       /* while it waits for the peer */
    uint64_t            asked;      /* use that the host has asked for in vain
                                     */
    char                *name;      /* for messages, or NULL; read-only */
    uint8_t             shares;     /* it or its counterpart is of an exchange;
                                       known once paired */
    uint8_t             is_coupled; /* both are of coupled ones */
    size_t              exchange_index; /* in those of `exchange` */
    uint8_t             is_opening; /* matched, but the lane still opens what it
                                       needs: that is no match yet for the user
                                       */
    uint8_t             is_exact;   /* the lane's uses_done() is exact: no
                                       completion is reaped later */

    /* Starts and waits look at all that follows */
    uint8_t             early;      /* of a receive: a use's data may be here
                                       before it is started */
    ucs_status_t        status;     /* why it failed */
    const char          *reason;    /* why its lane does not move it in its
                                       best way; a constant string, or NULL */
    uint8_t             is_checked; /* of the array that is being checked */
    uint8_t             dir;        /* ucp_st_dir_t */
    uint8_t             mode;       /* ucp_st_mode_t; of the send, once matched
                                     */
    uint8_t             state;      /* ucp_st_op_state_t */
    ucp_st_worker_h     worker;
    struct ucp_st_exchange *exchange; /* that it is of, or NULL */
    ucp_st_queue_h      queue;      /* of the last start */
    uint64_t            started;    /* uses, counted when enqueued */
    uint64_t            waited;     /* waits enqueued */
    uint64_t            last_seq;   /* last submission to `queue` with it */
    uint64_t            start_seq;  /* that of the last start */
    uint64_t            ahead;      /* last use that was posted ahead, or 0 */
    uint64_t            enqueued;   /* last use that was not */
    uint64_t            max_uses;   /* how many the peer takes part in */
    const struct ucp_st_lane_ops *lane; /* NULL: none chosen, or nothing to
                                           move */
    ucs_gstream_func_t  func;       /* of the user, in each use; or NULL */
    void                *func_arg;
    void                (*func_release)(void*); /* NULL once it was called */
    void                *data;      /* what a lane moves: the buffer or `stage`;
                                       set before its offer() and bind() */
    void                *priv[UCP_ST_LANE_LAST]; /* of lanes, from offer() to
                                           release(); or NULL */
} ucp_st_op_t;

/** Tell whether an operation is good for a call on a queue, or without one for
 *  match. Logs why not. */
typedef ucs_status_t (*ucp_st_op_check_t)(ucp_st_queue_h queue,
                                          const ucp_st_op_t *op);

/** Check operations, each of which may be there once: all of the worker of
 *  `queue`, or else of the first one. The lock is held where `check` needs
 *  it. */
ucs_status_t ucp_st_op_check_all(const ucp_st_op_h *ops, size_t count,
                                 ucp_st_op_check_t check, ucp_st_queue_h queue);

/** Uses whose waits pass, whether the stream has come to them or not. */
uint64_t ucp_st_op_uses_done(const ucp_st_op_t *op);

/** Uses in which this side has nothing left to do. */
uint64_t ucp_st_op_uses_ended(const ucp_st_op_t *op);

/** Uses that are started, but those posted ahead (st_ahead.h) that no kernel
 *  has begun. The lock is held. */
uint64_t ucp_st_op_uses_started(const ucp_st_op_t *op);

/** Commands of a stream still name the operation. The lock is held. */
int ucp_st_op_is_on_stream(const ucp_st_op_t *op);

/** The queue of its last start was destroyed before a wait, and the use is
 *  complete: the next start needs no wait. The lock is held. */
int ucp_st_op_is_left(const ucp_st_op_t *op);

/** Find an operation, live or freed, by id; NULL if it is gone. The lock is
 *  held. */
ucp_st_op_t *ucp_st_op_get(ucp_st_worker_h worker, uint64_t id);

/** Find an operation of the peer, live or freed, by id; NULL if it is gone. The
 *  lock is held. */
ucp_st_op_t *ucp_st_op_find(ucp_st_peer_h peer, uint64_t id);

/**
 * Fail an operation and, if it was matched, all of its exchange: stop their
 * use, release the streams that wait for them, put the queue in error if a use
 * is incomplete, and tell the peers if they were matched. Later calls for the
 * same operation do nothing. The lock is held.
 */
void ucp_st_op_fail(ucp_st_op_t *op, ucs_status_t status);

/** The queue is in error, and its stream will run starts whose buffers may
 *  depend on what failed: these starts have no effect, and their waits pass.
 *  The lock is held. */
void ucp_st_op_fail_unbegun(ucp_st_queue_h queue);

/** Tell the peer that this half ends. The lock is held. */
void ucp_st_op_tell_unmatched(ucp_st_op_t *op);

/** The lane of an operation that was halted reaches nothing of the peer's any
 *  more: tell the peer, or answer it, if that is still to be done. The lock is
 *  held. */
void ucp_st_op_settled(ucp_st_op_t *op);

/** Get rid of posted work if it cannot reach the peer's memory any more. The
 *  lock is held. */
void ucp_st_op_dispose(ucp_st_op_t *op);

/** So many uses are complete: the word was counted up. The lock is held. */
void ucp_st_op_complete_uses(ucp_st_op_t *op, uint64_t count);

/**
 * Destroy a freed operation if neither the NIC nor the peer uses what it holds.
 * The lock is held; `op` may be gone afterwards.
 */
void ucp_st_op_reap(ucp_st_op_t *op);

/** Try ucp_st_op_reap() for all operations that commands of streams may name:
 *  the stream may have passed the last such command. The lock is held. */
void ucp_st_op_reap_freed(ucp_st_worker_h worker);

/** The worker is being destroyed: destroy all freed operations even if peers
 *  have not answered; those that a lane holds stay. The lock is held. */
void ucp_st_op_drop_all(ucp_st_worker_h worker);

/**
 * An operation's counterpart has closed its region: get rid of what the NIC
 * still holds for it. The lock is held; `op` may be gone afterwards.
 */
void ucp_st_op_peer_done(ucp_st_op_t *op);

/** A freed operation's peer is gone and will not answer. The lock is held; `op`
 *  may be gone afterwards. */
void ucp_st_op_peer_gone(ucp_st_op_t *op);

/** The peer freed its half, or it failed. The lock is held. */
void ucp_st_op_handle_unmatch(ucp_st_peer_h peer, const ucp_st_ctrl_op_t *msg);

/** Change the state along an edge of the diagram. The lock is held. */
void ucp_st_op_set_state(ucp_st_op_t *op, ucp_st_op_state_t state);

/** Begin to free an operation: UCS_OK, or UCS_ERR_BUSY. Fails it if its queue
 *  is in error, and no wait follows. The lock is held. */
ucs_status_t ucp_st_op_free_begin(ucp_st_op_t *op);

/** Free an operation for which ucp_st_op_free_begin() was UCS_OK; it may be
 *  gone then. The lock is held. */
void ucp_st_op_free_end(ucp_st_op_t *op);

/** Non-zero while the user's match goes on. */
static inline int ucp_st_op_is_matching(const ucp_st_op_t *op)
{
    return (op->state == UCP_ST_OP_MATCHING) ||
           ((op->state == UCP_ST_OP_MATCHED) && op->is_opening);
}

/** Non-zero for a peer that can be sent to. */
static inline int ucp_st_peer_is_real(ucp_st_peer_h peer)
{
    return (peer != UCP_ST_PEER_NULL) && (peer != UCP_ST_PEER_ANY);
}

#endif
