/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_lane.h - what a data lane does for workers, peers and operations. Nothing
 * above this table knows which lane carries an operation.
 *
 * Two operations that were paired choose their lane together: each side offers
 * what all of its lanes can do (offer), sends that to the other, and both keep
 * the first lane in the order of the send's worker that both offered (bind);
 * the other lanes' offers are given back (release).
 */
#ifndef UCP_ST_LANE_H_
#define UCP_ST_LANE_H_

#include "core/st_component.h"
#include "core/st_lane_attr.h"
#include "core/st_op.h"
#include "core/st_peer.h"

#include <ucs/config/types.h>

/** Stream commands that a start or a wait of one operation may need. */
#define UCP_ST_LANE_MAX_CMDS 16

/** For a worker. Where a function does not say otherwise its lock is held, as
 *  it is for the next ones. */
typedef struct ucp_st_lane_worker_ops {
    /** Get all that operations share. Logs why not, at ucp_st_lane_refuse().
     *  The lock is not held, no other thread uses the worker. */
    ucs_status_t (*open)(ucp_st_worker_h worker);

    /** Give it back. All operations and peers are gone. The lock is not held,
     *  no other thread uses the worker. */
    void (*close)(ucp_st_worker_h worker);

    /** Bytes that address_pack() writes. The lock is not held. */
    size_t (*address_length)(ucp_st_worker_h worker);

    /** Write what a peer needs to reach this worker. The lock is not held. */
    ucs_status_t (*address_pack)(ucp_st_worker_h worker, void *buffer);

    /** Reap what is complete, and go on with what waited for that. Non-zero if
     *  there was something. */
    unsigned (*progress)(ucp_st_worker_h worker);

    /** The host asks whether something is done: do what this side can do for
     *  it, and no stream may be there to do. */
    void (*poll)(ucp_st_worker_h worker);

    /** Add this lane's part to what the user is told. */
    ucs_status_t (*query)(ucp_st_worker_h worker, ucp_st_worker_attr_t *attr);
} ucp_st_lane_worker_ops_t;

/** For a peer. */
typedef struct ucp_st_lane_peer_ops {
    /** Get what reaches a peer, from what its address_pack() wrote.
     *  UCS_ERR_UNREACHABLE if nothing does. The lock is not held. */
    ucs_status_t (*connect)(ucp_st_peer_t *peer, const void *address,
                            size_t length);

    /** Give that back. The lock is not held, no other thread uses the
     *  worker. */
    void (*disconnect)(ucp_st_peer_t *peer);

    /** Find out whether the peer is there; ucp_st_ctrl_ops.lost() if not. */
    void (*check)(ucp_st_peer_t *peer);
} ucp_st_lane_peer_ops_t;

/** For a queue. */
typedef struct ucp_st_lane_queue_ops {
    /** Set the part up, which is all zero. Sets the queue's `helper` if its
     *  stream has something to do while it waits. */
    void (*init)(ucp_st_queue_h queue);

    /** The queue goes; its operations have left it. */
    void (*cleanup)(ucp_st_queue_h queue);
} ucp_st_lane_queue_ops_t;

/** For an operation. */
typedef struct ucp_st_lane_op_ops {
    /** The operation was paired: set the lane's entry of its `parts`, get all
     *  that one use needs, and describe it to the peer in `blob`, of
     *  UCP_ST_PROTO_MAX_BLOB bytes; `length_p` is set to what it takes.
     *  UCS_ERR_NO_RESOURCE if the lane has no room now. Nothing is held on
     *  error. */
    ucs_status_t (*offer)(ucp_st_op_t *op, void *blob, size_t *length_p);

    /** Both sides use this lane: learn what the peer's offer() wrote. Sets
     *  `early` and `is_exact` if they hold. */
    ucs_status_t (*bind)(ucp_st_op_t *op, const void *blob, size_t length);

    /** Get use number `use`, and those before it, ready to be started. UCS_OK
     *  also if they are not yet, and will be when they can. */
    ucs_status_t (*post)(ucp_st_op_t *op, uint64_t use);

    /** Stream commands that start use number `use` on a queue; how many, at
     *  most UCP_ST_LANE_MAX_CMDS. */
    size_t (*start)(ucp_st_op_t *op, ucp_st_queue_h queue, uint64_t use,
                    ucs_gstream_cmd_t *cmds);

    /** Words that say that the last use enqueued is complete; how many, at most
     *  UCP_ST_LANE_MAX_CMDS. The lock is not held. */
    size_t (*wait_words)(const ucp_st_op_t *op, ucs_gstream_word_t *words);

    /** Stream commands that follow the wait of the last use enqueued; how many,
     *  at most UCP_ST_LANE_MAX_CMDS. The lock is not held. */
    size_t (*land)(ucp_st_op_t *op, ucs_gstream_cmd_t *cmds);

    /** A queue goes, on which the operation may have been started last. */
    void (*leave_queue)(ucp_st_op_t *op, ucp_st_queue_h queue);

    /** Uses whose waits pass; 0 once they were released. */
    uint64_t (*uses_done)(const ucp_st_op_t *op);

    /** Starts have no effect any more from now on; may be called again.
     *  release_waits() follows before the lock is released. */
    void (*halt)(ucp_st_op_t *op);

    /** Let all waits pass, now and later, as soon as nothing uses the buffer;
     *  may be called again. */
    void (*release_waits)(ucp_st_op_t *op);

    /** The peer must not reach this side any more; may be called again. */
    void (*revoke)(ucp_st_op_t *op);

    /** The peer cannot be reached any more: get rid of what still waits to. */
    void (*dispose)(ucp_st_op_t *op);

    /** Non-zero while something outside holds a part of this operation. */
    int (*is_busy)(const ucp_st_op_t *op);

    /** Non-zero while the user's buffer is read or written by what cannot be
     *  stopped. */
    int (*uses_buffer)(const ucp_st_op_t *op);

    /** Give back all that offer() got. The operation is not busy. */
    void (*release)(ucp_st_op_t *op);

    /** Name of the protocol that a matched operation uses. */
    const char *(*protocol)(const ucp_st_op_t *op);
} ucp_st_lane_op_ops_t;

/** A lane: no entry is empty. */
typedef struct ucp_st_lane_ops {
    const char               *name;
    ucp_st_lane_t            id;
    ucp_st_part_sizes_t      sizes;
    ucp_st_lane_worker_ops_t worker;
    ucp_st_lane_peer_ops_t   peer;
    ucp_st_lane_queue_ops_t  queue;
    ucp_st_lane_op_ops_t     op;
} ucp_st_lane_ops_t;

/** For entries of lanes that have nothing to do there. */
ucs_status_t ucp_st_lane_no_post(ucp_st_op_t *op, uint64_t use);
size_t ucp_st_lane_no_land(ucp_st_op_t *op, ucs_gstream_cmd_t *cmds);
void ucp_st_lane_no_leave_queue(ucp_st_op_t *op, ucp_st_queue_h queue);
void ucp_st_lane_no_op(ucp_st_op_t *op);

/** All lanes by id; st_components.c. */
extern const ucp_st_lane_ops_t *const ucp_st_lane_table[UCP_ST_LANE_LAST];

/** A lane's functions by its id; NULL where there is no such lane. */
const ucp_st_lane_ops_t *ucp_st_lane_get(ucp_st_lane_t id);

/** A lane's functions by its name in UCX_ST_LANES; NULL if there is none. */
const ucp_st_lane_ops_t *ucp_st_lane_find(const char *name);

/** Names of all lanes, for messages; st_components.c. */
extern const char ucp_st_lane_names[];

/**
 * Open the lanes that UCX_ST_LANES asks for and UCX_TLS leaves. UCS_OK if there
 * is at least one; else why the first of them cannot serve, logged; or
 * UCS_ERR_INVALID_PARAM if one has a setting that is wrong.
 */
ucs_status_t ucp_st_lanes_open(ucp_st_worker_h worker);

/** Close all open lanes. */
void ucp_st_lanes_close(ucp_st_worker_h worker);

/** progress() of all open lanes until there is nothing, or a bound is reached:
 *  what was there before the call has been reaped. The lock is held. */
void ucp_st_lanes_progress_all(ucp_st_worker_h worker);

/** revoke() by all lanes that hold something for the operation; the lock is
 *  held. */
void ucp_st_lanes_revoke(ucp_st_op_t *op);

/** Non-zero if is_busy() for one of them; the lock is held. */
int ucp_st_lanes_are_busy(const ucp_st_op_t *op);

/** release() by all of them but those in the bit mask `keep`; the lock is
 *  held. */
void ucp_st_lanes_release(ucp_st_op_t *op, unsigned keep);

/** poll() of all open lanes. The lock is held. */
void ucp_st_lanes_poll(ucp_st_worker_h worker);

/** check() of all lanes that reach a peer. The lock is held. */
void ucp_st_lanes_check(ucp_st_peer_t *peer);

#endif
