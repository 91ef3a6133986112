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

#include "st_lane_attr.h"
#include "st_op.h"
#include "st_peer.h"

#include <ucs/config/types.h>

/** Stream commands that a start or a wait of one operation may need. */
#define UCP_ST_LANE_MAX_CMDS 16

/** Where a function does not say otherwise the worker's lock is held. */
typedef struct ucp_st_lane_ops {
    const char    *name;
    ucp_st_lane_t id;

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

    /** UCS_OK once the data of sends that are complete is where their peers
     *  find it, or never will be; UCS_INPROGRESS: not yet, progress() helps.
     *  NULL: it always is. */
    ucs_status_t (*flush)(ucp_st_worker_h worker);

    /** The host asks whether something is done: do what this side can do for
     *  it, and no stream may be there to do. */
    void (*poll)(ucp_st_worker_h worker);

    /** Add this lane's part to what the user is told. */
    ucs_status_t (*query)(ucp_st_worker_h worker, ucp_st_worker_attr_t *attr);

    /** Get what reaches a peer, from what its address_pack() wrote.
     *  UCS_ERR_UNREACHABLE if nothing does. The lock is not held. */
    ucs_status_t (*connect)(ucp_st_peer_t *peer, const void *address,
                            size_t length);

    /** Give that back. The lock is not held, no other thread uses the
     *  worker. */
    void (*disconnect)(ucp_st_peer_t *peer);

    /** Find out whether the peer is there; ucp_st_leave_lost() if not. */
    void (*check)(ucp_st_peer_t *peer);

    /** The operation was paired: get all that one use needs, and describe it to
     *  the peer in `blob`, of UCP_ST_PROTO_MAX_BLOB bytes; `length_p` is set to
     *  what it takes. UCS_ERR_NO_RESOURCE if the lane has no room now.
     *  Nothing is held on error. */
    ucs_status_t (*offer)(ucp_st_op_t *op, void *blob, size_t *length_p);

    /** Both sides use this lane: learn what the peer's offer() wrote. Sets
     *  `early` and `is_exact` if they hold. */
    ucs_status_t (*bind)(ucp_st_op_t *op, const void *blob, size_t length);

    /** One call is about to start these, the first of them for the first
     *  time: the lane may treat its own as belonging together from then on.
     *  NULL: nothing to do. */
    void (*join)(const ucp_st_op_h *ops, size_t count);

    /** Get use number `uses`, and those before it, ready to be started. UCS_OK
     *  also if they are not yet, and will be when they can. NULL, as the next
     *  one, where start_run() does it all. */
    ucs_status_t (*post)(ucp_st_op_t *op, uint64_t uses);

    /** Stream commands that start use number `use` on a queue; how many. */
    size_t (*start_cmds)(ucp_st_op_t *op, ucp_st_queue_h queue, uint64_t use,
                         ucs_gstream_cmd_t *cmds);

    /** Stream commands that start the next use of operations, from the first
     *  one on as far as they have this lane and nothing is to be made ready;
     *  of how many. 0, or NULL: the first one by post() and start_cmds().
     *  `num_cmds` is added to. */
    size_t (*start_run)(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                        size_t count, size_t *num_cmds);

    /** Words that say that the last use enqueued is complete, of operations
     *  from the first one on as far as they have this lane; of how many, 1 or
     *  more. Up to UCP_ST_LANE_MAX_CMDS words each; `num_words` is added to.
     *  The lock is not held. */
    size_t (*wait_words)(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                         size_t count, size_t *num_words);

    /** Stream commands that follow the waits of the last use enqueued, of
     *  operations from the first one on as far as they have this lane; of how
     *  many, 1 or more. `num_cmds` is added to. NULL: none. The lock is not
     *  held. */
    size_t (*land_run)(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                       size_t count, size_t *num_cmds);

    /** A queue goes, on which the operation may have been started last. */
    void (*leave_queue)(ucp_st_op_t *op, ucp_st_queue_h queue);

    /** Uses whose waits pass; 0 once they were released. */
    uint64_t (*uses_done)(const ucp_st_op_t *op);

    /** Uses whose data is here, started or not, of an operation that is
     *  `early`. NULL: all that the peer says it has taken part in. */
    uint64_t (*uses_landed)(const ucp_st_op_t *op);

    /** Uses whose starts the stream has run; all that were enqueued where the
     *  lane cannot tell, or where starts have no effect. */
    uint64_t (*uses_begun)(const ucp_st_op_t *op);

    /** Starts have no effect any more from now on. Let all waits pass, now and
     *  later, as soon as nothing uses the buffer; may be called again. */
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
} ucp_st_lane_ops_t;

extern const ucp_st_lane_ops_t ucp_st_trig_lane_ops;
extern const ucp_st_lane_ops_t ucp_st_host_lane_ops;
extern const ucp_st_lane_ops_t ucp_st_direct_lane_ops;

/** A lane's functions by its id; NULL where there is no such lane. */
const ucp_st_lane_ops_t *ucp_st_lane_get(ucp_st_lane_t id);

/** A lane's functions by its name in UCX_ST_LANES; NULL if there is none. */
const ucp_st_lane_ops_t *ucp_st_lane_find(const char *name);

/** Names of all lanes, for messages. */
const char *ucp_st_lane_names(void);

/**
 * Open the lanes that UCX_ST_LANES asks for and UCX_TLS leaves. UCS_OK if there
 * is at least one; else why the first of them cannot serve, logged; or
 * UCS_ERR_INVALID_PARAM if one has a setting that is wrong.
 */
ucs_status_t ucp_st_lanes_open(ucp_st_worker_h worker);

/** Close all open lanes. */
void ucp_st_lanes_close(ucp_st_worker_h worker);

/** progress() of all open lanes until there is nothing. The lock is held. */
void ucp_st_lanes_progress_all(ucp_st_worker_h worker);

/** revoke() by all lanes that hold something for the operation; the lock is
 *  held. */
void ucp_st_lanes_revoke(ucp_st_op_t *op);

/** UCS_OK if flush() of all open lanes says so, else UCS_INPROGRESS. The lock
 *  is held. */
ucs_status_t ucp_st_lanes_flush(ucp_st_worker_h worker);

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
