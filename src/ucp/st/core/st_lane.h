/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_lane.h - the functions of a data lane, for workers, peers, queues and
 * operations. Nothing above these tables knows which lane carries an operation.
 *
 * Two operations that were paired choose their lane together: each side offers
 * all its lanes (offer) and sends the offers to the other one. Both keep the
 * first lane, in the order of the send's worker, that both have offered (bind),
 * and release the others (release).
 */
#ifndef UCP_ST_LANE_H_
#define UCP_ST_LANE_H_

#include "core/st_component.h"
#include "core/st_op.h"
#include "core/st_peer.h"

#include <ucs/config/types.h>
#include <ucs/sys/compiler_def.h>

/** Stream commands that a start or a wait of one operation may need. */
#define UCP_ST_LANE_MAX_CMDS 16

/** Result of peer_uses(): the lane cannot tell. */
#define UCP_ST_USES_UNKNOWN UINT64_MAX

/** For a worker. In this and the next tables the worker's lock is held, unless
 *  a function says otherwise. */
typedef struct ucp_st_lane_worker_ops {
    /** Allocate what operations share; calls ucp_st_lane_refuse() on errors.
     *  The lock is not held, no other thread uses the worker. */
    ucs_status_t (*open)(ucp_st_worker_h worker);

    /** Undo open(). All operations and peers are gone. The lock is not held, no
     *  other thread uses the worker. */
    void (*close)(ucp_st_worker_h worker);

    /** Bytes that address_pack() writes. The lock is not held. */
    size_t (*address_length)(ucp_st_worker_h worker);

    /** Write what a peer needs to reach this worker. The lock is not held. */
    ucs_status_t (*address_pack)(ucp_st_worker_h worker, void *buffer);

    /** Reap completions, and go on with what waited for them. Non-zero if there
     *  were some. */
    unsigned (*progress)(ucp_st_worker_h worker);

    /** The host asks for progress: do what the streams of this side would do,
     *  which may not be waiting. */
    void (*poll)(ucp_st_worker_h worker);

    /** The worker is being destroyed: what still waits for a stream or a peer
     *  ends without effect. */
    void (*cancel)(ucp_st_worker_h worker);

    /** Streams of this type will be used: ask their runtime what serves()
     *  needs, which may take long. The worker's lock is not held. */
    void (*prepare)(ucp_st_worker_h worker, ucs_gstream_type_t type);

    /** Non-zero if streams of this type start messages on the lane, and wait
     *  for them, with no thread of the host on the way. */
    int (*serves)(ucp_st_worker_h worker, ucs_gstream_type_t type);

    /** Add this lane's part to the worker's attributes. */
    ucs_status_t (*query)(ucp_st_worker_h worker, ucp_st_worker_attr_t *attr);
} ucp_st_lane_worker_ops_t;

/** For a peer. */
typedef struct ucp_st_lane_peer_ops {
    /** Connect to a peer, by what its address_pack() wrote.
     *  UCS_ERR_UNREACHABLE if it cannot be reached. The lock is not held. */
    ucs_status_t (*connect)(ucp_st_peer_t *peer, const void *address,
                            size_t length);

    /** Undo connect(). The lock is not held, and no other thread uses the
     *  worker. */
    void (*disconnect)(ucp_st_peer_t *peer);

    /** Find out whether the peer is there; ucp_st_peer_lost() if not. */
    void (*check)(ucp_st_peer_t *peer);
} ucp_st_lane_peer_ops_t;

/** For a queue. */
typedef struct ucp_st_lane_queue_ops {
    /** Set the private data up, which is all zero. Sets the queue's `helper` if
     *  its stream has something to do while it waits. */
    void (*init)(ucp_st_queue_h queue);

    /** The queue is being destroyed; its operations have left it. */
    void (*cleanup)(ucp_st_queue_h queue);
} ucp_st_lane_queue_ops_t;

/** For an operation whose uses kernels of the application may start. */
typedef struct ucp_st_lane_ahead_ops {
    /** Fill in a handle for kernels. UCS_ERR_UNSUPPORTED, logged. The lock is
     *  released meanwhile. */
    ucs_status_t (*device)(ucp_st_op_t *op, ucp_st_device_op_t *device);

    /** The record by which the host tells kernels what they may start; there
     *  once device() was successful. */
    ucs_gstream_pair_record_t *(*record)(const ucp_st_op_t *op);

    /** Have the next uses, so many, ready for kernels on the queue's stream.
     *  UCS_ERR_UNSUPPORTED, UCS_ERR_BUSY, logged. */
    ucs_status_t (*post)(ucp_st_op_t *op, ucp_st_queue_h queue, uint64_t uses);
} ucp_st_lane_ahead_ops_t;

/** For an operation. */
typedef struct ucp_st_lane_op_ops {
    /** Non-zero if the lane moves data of the memory that the operation's
     *  buffer lies in; else it is given memory of the host in its place. */
    int (*reaches)(const ucp_st_op_t *op);

    /** The operation is being made, or is about to be matched: ask runtimes
     *  what offer() needs, which may take long. Not twice, if the answer is
     *  there. The worker's lock is not held. */
    void (*prepare)(ucp_st_op_t *op);

    /** The operation was paired: set the lane's entry of its `priv`, allocate
     *  what one use needs, and describe it to the peer in `blob`, of
     *  UCP_ST_PROTO_MAX_BLOB bytes, or what the lane has instead; `length_p` is
     *  set to the bytes written.
     *  UCS_ERR_NO_RESOURCE if the lane has no room now. Nothing is held on
     *  error. */
    ucs_status_t (*offer)(ucp_st_op_t *op, void *blob, size_t *length_p);

    /** Both sides use this lane: learn what the peer's offer() wrote. Sets
     *  `early` and `is_exact` if they hold, and `data` to the buffer if the
     *  lane does without the memory in its place. */
    ucs_status_t (*bind)(ucp_st_op_t *op, const void *blob, size_t length);

    /** Post use number `use`, and those before it. UCS_OK also if they can only
     *  be posted later. */
    ucs_status_t (*post)(ucp_st_op_t *op, uint64_t use);

    /** Write the pages of registers that starts on streams of this type may
     *  store to, at most UCP_ST_LANE_MAX_CMDS, unless it has done so before;
     *  returns how many. The caller looks them up without the lock. */
    size_t (*pages)(ucp_st_op_t *op, ucs_gstream_type_t type,
                    ucs_gstream_word_t *pages);

    /** Write stream commands that start use number `use` on a queue; returns
     *  how many, at most UCP_ST_LANE_MAX_CMDS. */
    size_t (*start)(ucp_st_op_t *op, ucp_st_queue_h queue, uint64_t use,
                    ucs_gstream_cmd_t *cmds);

    /** Write the words that the wait for the last use enqueued looks at, with
     *  their values; returns how many, at most UCP_ST_LANE_MAX_CMDS. The lock
     *  is not held. */
    size_t (*wait_words)(const ucp_st_op_t *op, ucs_gstream_word_t *words);

    /** Write stream commands that follow the wait for the last use; returns how
     *  many, at most UCP_ST_LANE_MAX_CMDS. The lock is not held. */
    size_t (*land)(ucp_st_op_t *op, ucs_gstream_cmd_t *cmds);

    /** What kernels of the application start; NULL: nothing. */
    const struct ucp_st_lane_ahead_ops *ahead;

    /** A queue is being destroyed. The operation may have used it last. */
    void (*leave_queue)(ucp_st_op_t *op, ucp_st_queue_h queue);

    /** Uses whose waits pass; 0 once they were released. */
    uint64_t (*uses_done)(const ucp_st_op_t *op);

    /** Uses that the stream has started, or UCP_ST_USES_UNKNOWN. */
    uint64_t (*begun)(const ucp_st_op_t *op);

    /** Uses that the peer's half has started, as far as this side can see, or
     *  UCP_ST_USES_UNKNOWN. `use` is the last one that the stream has started.
     */
    uint64_t (*peer_uses)(const ucp_st_op_t *op, uint64_t use);

    /** Starts have no effect any more from now on; may be called again.
     *  release_waits() follows before the lock is released. */
    void (*halt)(ucp_st_op_t *op);

    /** Let all waits pass, now and later, as soon as the buffer is not used any
     *  more; may be called again. */
    void (*release_waits)(ucp_st_op_t *op);

    /** The peer must not reach this side any more; may be called again. */
    void (*revoke)(ucp_st_op_t *op);

    /** Nothing of the peer can be reached any more: get rid of posted work that
     *  is still to be put there. */
    void (*dispose)(ucp_st_op_t *op);

    /** Non-zero while the NIC, a stream or another thread uses what offer()
     *  allocated. */
    int (*is_busy)(const ucp_st_op_t *op);

    /** Non-zero while the user's buffer is read or written, which cannot be
     *  stopped. */
    int (*uses_buffer)(const ucp_st_op_t *op);

    /** Non-zero while this side still reads or writes what is the peer's, which
     *  cannot be stopped. Asked after halt(): the peer is told of an end, or
     *  answered, behind that, by ucp_st_op_settled(). */
    int (*is_reaching)(const ucp_st_op_t *op);

    /** Undo offer(). The operation is not busy. */
    void (*release)(ucp_st_op_t *op);

    /** Name of the protocol that a matched operation uses. */
    const char *(*protocol)(const ucp_st_op_t *op);
} ucp_st_lane_op_ops_t;

/** A lane: no entry is empty, but `ahead` may be. */
typedef struct ucp_st_lane_ops {
    const char               *name;
    ucp_st_lane_t            id;
    ucp_st_priv_sizes_t      sizes;
    ucp_st_lane_worker_ops_t worker;
    ucp_st_lane_peer_ops_t   peer;
    ucp_st_lane_queue_ops_t  queue;
    ucp_st_lane_op_ops_t     op;
} ucp_st_lane_ops_t;

/** Functions that do nothing, for entries of lanes. */
ucs_status_t ucp_st_lane_no_post(ucp_st_op_t *op, uint64_t use);
size_t ucp_st_lane_no_land(ucp_st_op_t *op, ucs_gstream_cmd_t *cmds);

/** pages() of a lane that has no registers. */
size_t ucp_st_lane_no_pages(ucp_st_op_t *op, ucs_gstream_type_t type,
                            ucs_gstream_word_t *pages);

/** prepare() of a lane that asks nothing. */
void ucp_st_lane_no_prepare(ucp_st_worker_h worker, ucs_gstream_type_t type);
void ucp_st_lane_no_leave_queue(ucp_st_op_t *op, ucp_st_queue_h queue);
void ucp_st_lane_no_op(ucp_st_op_t *op);
int ucp_st_lane_no_reaching(const ucp_st_op_t *op);

/** reaches() of a lane that reads and writes by the host. */
int ucp_st_lane_reaches_host(const ucp_st_op_t *op);

/** All lanes by id, from UCP_ST_LANE_NONE + 1 on; st_components.c. */
extern const ucp_st_lane_ops_t *const ucp_st_lane_table[UCP_ST_LANE_LAST];

/** Names of all lanes, for messages; st_components.c. */
extern const char ucp_st_lane_names[];

/** Say why a lane cannot be opened, in the log and in what
 *  ucp_st_lanes_query() tells: an error if nothing is left without it.
 *  UCP_ST_LANE_NONE: why no lane can be, an error. */
void ucp_st_lane_refuse(ucp_st_worker_h worker, ucp_st_lane_t lane,
                        const char *format, ...) UCS_F_PRINTF(3, 4);

/** Set why a lane, or for UCP_ST_LANE_NONE each, is not open, unless a reason
 *  is there already. `attr` may be NULL. */
void ucp_st_lanes_attr_set(ucp_st_lanes_attr_t *attr, ucp_st_lane_t id,
                           const char *reason);

/**
 * Check UCX_ST_LANES: UCS_ERR_INVALID_PARAM for an unknown or repeated name,
 * UCS_ERR_UNSUPPORTED for an empty list, after ucp_st_lane_refuse().
 */
ucs_status_t ucp_st_lanes_check_names(ucp_st_worker_h worker);

/**
 * Open the lanes that UCX_ST_LANES asks for and UCX_TLS leaves. UCS_OK if there
 * is at least one; else why the first of them cannot serve, logged; or
 * UCS_ERR_INVALID_PARAM if one has a setting that is wrong.
 */
ucs_status_t ucp_st_lanes_open(ucp_st_worker_h worker);

/** A bit for each kind of streams that operations of the worker are started on,
 *  as far as it is known. The lock is held. */
uint64_t ucp_st_lanes_stream_types(ucp_st_worker_h worker);

/** Set the order in which the operation tries the lanes that the peer has. The
 *  lock is held. */
void ucp_st_lanes_order(ucp_st_op_t *op);

/** Close all open lanes. */
void ucp_st_lanes_close(ucp_st_worker_h worker);

/** Call progress() of all open lanes until it returns 0, or a bound is reached:
 *  what was complete before the call has been reaped. The lock is held. */
void ucp_st_lanes_progress_all(ucp_st_worker_h worker);

/** Call prepare() of all lanes for a type of streams, unless these run
 *  functions of lanes themselves. The lock is not held. */
void ucp_st_lanes_prepare_type(ucp_st_worker_h worker, ucs_gstream_type_t type);

/** Call prepare() of all lanes. The lock is not held. */
void ucp_st_lanes_prepare(ucp_st_op_t *op);

/** Call revoke() of all lanes that hold something for the operation. The lock
 *  is held. */
void ucp_st_lanes_revoke(ucp_st_op_t *op);

/** Non-zero if is_busy() of a lane that holds something for the operation. The
 *  lock is held. */
int ucp_st_lanes_are_busy(const ucp_st_op_t *op);

/** Call release() of all lanes that hold something for the operation, but those
 *  in the bit mask `keep`. The lock is held. */
void ucp_st_lanes_release(ucp_st_op_t *op, unsigned keep);

/** Call poll() of all open lanes. The lock is held. */
void ucp_st_lanes_poll(ucp_st_worker_h worker);

/** Call cancel() of all open lanes. The lock is held. */
void ucp_st_lanes_cancel(ucp_st_worker_h worker);

#endif
