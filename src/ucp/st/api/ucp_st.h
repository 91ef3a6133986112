/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_st.h - stream-ordered tag send and receive.
 *
 * A send and a receive are made once (persistent operations), matched once, and
 * then started and waited for on a stream any number of times. Matching is done
 * by the hosts ahead of time; starts and waits are commands of a stream, and no
 * call of the application takes part in moving the data. On the trig lane the
 * network card moves it, on the host lane a thread of the library.
 *
 *     sender                               receiver
 *     ucp_st_send_init(...)                ucp_st_recv_init(...)
 *     ucp_st_match(op)         <------->   ucp_st_match(op)
 *     loop:                                loop:
 *       kernel fills the buffer
 *       ucp_st_enqueue_start(queue, op)      ucp_st_enqueue_start(queue, op)
 *       ucp_st_enqueue_wait(queue, op)       ucp_st_enqueue_wait(queue, op)
 *                                            kernel reads the buffer
 *     ucp_st_queue_wait(queue, NULL)       ucp_st_queue_wait(queue, NULL)
 *
 * Status codes that every call may return and that are not repeated below:
 * UCS_ERR_INVALID_PARAM for a NULL handle or pointer, UCS_ERR_NO_MEMORY.
 * No call aborts, exits or throws. In a process that was forked from one with
 * st workers every call returns UCS_ERR_UNSUPPORTED and does nothing.
 *
 * Threads: calls on different queues may come from different threads. Calls on
 * one queue must be serialised by the caller, as those on a stream. Matching,
 * and all that makes or frees peers and operations, uses the UCP worker: it may
 * be called from the threads that may use that worker.
 */
#ifndef UCP_ST_H_
#define UCP_ST_H_

#include <ucp_st_batch.h>
#include <ucp_st_def.h>
#include <ucs_gstream.h>
#include <ucp/api/ucp.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Fields of @ref ucp_st_worker_params_t that are set. */
enum ucp_st_worker_params_field {
    UCP_ST_WORKER_PARAM_FIELD_UCP_WORKER   = 1u << 0,
    UCP_ST_WORKER_PARAM_FIELD_AM_ID        = 1u << 1,
    UCP_ST_WORKER_PARAM_FIELD_UCP_FEATURES = 1u << 2
};


/** Parameters of @ref ucp_st_worker_create. */
typedef struct ucp_st_worker_params {
    /** Mask of @ref ucp_st_worker_params_field. */
    uint64_t     field_mask;
    /** Carries control messages. Its context must have UCP_FEATURE_AM. Must
     *  outlive the st worker. If not set, a context and a worker are made. */
    ucp_worker_h ucp_worker;
    /** Active message id for control messages, the same at all peers and used
     *  for nothing else on @a ucp_worker; UCP_ST_AM_ID_DEFAULT if not set. */
    unsigned     am_id;
    /** Features of the context of @a ucp_worker: UCP does not tell them. With
     *  UCP_FEATURE_WAKEUP in them the library's thread sleeps while messages of
     *  ucp_st_batch.h are under way, and else looks every millisecond. */
    uint64_t     ucp_features;
} ucp_st_worker_params_t;

/** Active message id of control messages unless another is given. */
#define UCP_ST_AM_ID_DEFAULT 23


/** What @ref ucp_st_worker_query tells. */
typedef struct ucp_st_worker_attr {
    ucp_st_stats_t stats;                     /**< Counts since the creation */
    unsigned       num_lanes;                 /**< Lanes that are open */
    ucp_st_lane_t  lanes[UCP_ST_LANE_LAST];   /**< In order of preference */
    char           provider[UCP_ST_NAME_MAX]; /**< libfabric provider of trig */
    char           device[UCP_ST_NAME_MAX];   /**< Device of the trig lane, or
                                                   several: "a,b" */
} ucp_st_worker_attr_t;


/**
 * Create an st worker, with the lanes that UCX_ST_LANES names and that can be
 * opened here. A pair takes the first one that can serve it on both sides.
 *
 * - trig: its own interface on the transport cxi_trig, on the first device that
 *   UCX_NET_DEVICES allows (a loop-back device only if named or if there is no
 *   other), or on the first few (UCX_ST_TRIG_DEVICES).
 * - host: a UCP context and worker of its own, with UCX's settings of the
 *   environment. What the application set in the context of @a ucp_worker is
 *   not known here: with it the lane's transports may be others.
 *
 * The first worker of a process starts one thread, which sleeps unless a lane
 * has something for it to do.
 *
 * @param [in]  params   Parameters.
 * @param [out] worker_p Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED if UCX_TLS or UCX_ST_LANES leave no lane;
 *         UCS_ERR_NO_DEVICE if no device can serve the lanes that are asked for
 *         (logged with the reason); UCS_ERR_INVALID_PARAM if the UCP worker's
 *         context lacks UCP_FEATURE_AM; UCS_ERR_NO_RESOURCE; an error of
 *         ucp_init() or ucp_worker_create().
 *
 * Ownership: the caller's until @ref ucp_st_worker_destroy.
 * Threads: may be called from any thread that may use the UCP worker.
 */
ucs_status_t ucp_st_worker_create(const ucp_st_worker_params_t *params,
                                  ucp_st_worker_h *worker_p);


/**
 * Match nothing more, and let peers know: what they gave or will give to match
 * with this worker fails there with UCS_ERR_CANCELED. Matched operations, and
 * those given to match here before, go on. For a process that waits for others
 * before it may destroy the worker; progress must go on meanwhile. A second
 * call has no effect.
 *
 * @param [in] worker The worker.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM for NULL.
 *
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_worker_leave(ucp_st_worker_h worker);


/**
 * Destroy an st worker. Says goodbye to its peers, whose remaining operations
 * with it fail with UCS_ERR_CANCELED once the uses that this side has completed
 * are complete there. Waits a short time for their answers.
 *
 * @param [in] worker The worker.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while a queue exists, or an
 *         operation or a request of a message that was not freed.
 *
 * Ownership: on UCS_OK the handle and all peers made on it are gone.
 * Threads: no other call on this worker may run at the same time.
 */
ucs_status_t ucp_st_worker_destroy(ucp_st_worker_h worker);


/**
 * Get the address of a worker, to be carried to the peers.
 *
 * @param [in]  worker    The worker.
 * @param [out] address_p Filled with the address.
 * @param [out] length_p  Filled with its length, bytes.
 *
 * @return UCS_OK, or an error of ucp_worker_get_address().
 *
 * Ownership: release with @ref ucp_st_worker_release_address.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_worker_get_address(ucp_st_worker_h worker,
                                       void **address_p, size_t *length_p);


/**
 * Release an address.
 *
 * @param [in] worker  The worker it came from.
 * @param [in] address The address; NULL is legal.
 *
 * Threads: may be called from any thread.
 */
void ucp_st_worker_release_address(ucp_st_worker_h worker, void *address);


/**
 * Progress the UCP worker, and with it matching and the detection of failed
 * peers. Starts and waits progress without it.
 *
 * @param [in] worker The worker.
 *
 * @return Non-zero if something was done.
 *
 * Threads: as the UCP worker.
 */
unsigned ucp_st_worker_progress(ucp_st_worker_h worker);


/**
 * Query counts and names.
 *
 * @param [in]  worker The worker.
 * @param [out] attr   Filled on success only.
 *
 * @return UCS_OK.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucp_st_worker_query(ucp_st_worker_h worker,
                                 ucp_st_worker_attr_t *attr);


/**
 * Make a peer from its worker's address. The address of the own worker makes a
 * peer for messages to oneself. A second peer of one address is the same peer.
 *
 * @param [in]  worker  The worker.
 * @param [in]  address What the peer's @ref ucp_st_worker_get_address gave.
 * @param [in]  length  Its length, bytes.
 * @param [out] peer_p  Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_ADDR if the bytes are no address;
 *         UCS_ERR_UNSUPPORTED if it is of another version (both are logged);
 *         UCS_ERR_UNREACHABLE if no lane reaches it; or an error of
 *         ucp_ep_create().
 *
 * Ownership: the worker's; returned by @ref ucp_st_peer_destroy.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_peer_create(ucp_st_worker_h worker, const void *address,
                                size_t length, ucp_st_peer_h *peer_p);


/**
 * Return a peer that @ref ucp_st_peer_create made. Operations made with it go
 * on, and what was set up to reach it stays until the worker goes.
 *
 * @param [in] peer The peer; UCP_ST_PEER_NULL and UCP_ST_PEER_ANY do nothing.
 *
 * Ownership: the handle must not be used once it was returned as often as it
 *            was made.
 * Threads: as the UCP worker.
 */
void ucp_st_peer_destroy(ucp_st_peer_h peer);


/** Fields of @ref ucp_st_queue_params_t that are set. */
enum ucp_st_queue_params_field {
    UCP_ST_QUEUE_PARAM_FIELD_STREAM = 1u << 0
};


/** Parameters of @ref ucp_st_queue_create. */
typedef struct ucp_st_queue_params {
    /** Mask of @ref ucp_st_queue_params_field. */
    uint64_t      field_mask;
    /** The stream that carries the queue's commands; must be set, and must
     *  outlive the queue. */
    ucs_gstream_h stream;
} ucp_st_queue_params_t;


/**
 * Create a queue. Local. Several queues may use one stream.
 *
 * @param [in]  worker  The worker.
 * @param [in]  params  Parameters.
 * @param [out] queue_p Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM if the stream is missing or not a live
 *         stream.
 *
 * Ownership: the caller's until @ref ucp_st_queue_destroy.
 * Threads: may be called from any thread.
 */
ucs_status_t ucp_st_queue_create(ucp_st_worker_h worker,
                                 const ucp_st_queue_params_t *params,
                                 ucp_st_queue_h *queue_p);


/**
 * Destroy a queue. Messages that are started go on; others are cancelled.
 *
 * @param [in] queue The queue.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while commands are in flight.
 *
 * Ownership: on UCS_OK the handle is gone; the stream stays the caller's.
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_queue_destroy(ucp_st_queue_h queue);


/** Why a queue is in error. */
typedef struct ucp_st_queue_error {
    ucs_status_t status; /**< Cause */
    ucp_st_op_h  op;     /**< First operation that failed; may be freed already,
                              compare only. NULL if a message failed first */
    ucp_st_req_h req;    /**< First message that failed, or NULL; the same */
} ucp_st_queue_error_t;


/**
 * Block the host until all commands enqueued so far have run (host wait).
 * Progresses the UCP worker meanwhile.
 *
 * @param [in]  queue The queue.
 * @param [out] error Filled if the queue is in error; may be NULL.
 *
 * @return UCS_OK; UCS_ERR_BUSY when called from a command of the queue's
 *         stream; else the cause of the first failed operation, once the
 *         commands have run: UCS_ERR_ENDPOINT_TIMEOUT, UCS_ERR_CONNECTION_RESET
 *         or UCS_ERR_CANCELED for a peer that is gone, UCS_ERR_IO_ERROR for a
 *         NIC operation that failed.
 *
 * Threads: the queue's and the UCP worker's rule.
 */
ucs_status_t ucp_st_queue_wait(ucp_st_queue_h queue,
                               ucp_st_queue_error_t *error);


/**
 * Tell whether all commands enqueued so far have run, without waiting.
 *
 * @param [in]  queue The queue.
 * @param [out] error Filled if the queue is in error; may be NULL.
 *
 * @return As @ref ucp_st_queue_wait; UCS_INPROGRESS while commands are in
 *         flight.
 *
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_queue_query(ucp_st_queue_h queue,
                                ucp_st_queue_error_t *error);


/** How a send relates to its receive. */
typedef enum {
    /** The receive's buffer is written once both have been started; a short
     *  message may be sent ahead of that (UCX_ST_EAGER_MAX), and the send then
     *  completes without its receive. */
    UCP_ST_MODE_STANDARD,
    /** Data moves once the send has been started; the program guarantees that
     *  the receive was started before. Sends only: a receive takes either. */
    UCP_ST_MODE_READY
} ucp_st_mode_t;


/** Fields of @ref ucp_st_op_params_t that are set. */
enum ucp_st_op_params_field {
    UCP_ST_OP_PARAM_FIELD_BUFFER = 1u << 0,
    UCP_ST_OP_PARAM_FIELD_LENGTH = 1u << 1,
    UCP_ST_OP_PARAM_FIELD_PEER   = 1u << 2,
    UCP_ST_OP_PARAM_FIELD_TAG    = 1u << 3,
    UCP_ST_OP_PARAM_FIELD_SCOPE  = 1u << 4,
    UCP_ST_OP_PARAM_FIELD_MODE   = 1u << 5,
    UCP_ST_OP_PARAM_FIELD_FLAGS  = 1u << 6
};


/** Flags of an operation. */
enum ucp_st_op_flags {
    /** "Any tag": refused by match. */
    UCP_ST_OP_FLAG_ANY_TAG = 1u << 0
};


/** What an operation sends or receives. Fields that are not set are 0. */
typedef struct ucp_st_op_params {
    uint64_t      field_mask; /**< Mask of @ref ucp_st_op_params_field */
    void          *buffer;    /**< May be NULL only if @a length is 0 */
    size_t        length;     /**< In bytes */
    ucp_st_peer_h peer;       /**< The other side; the null peer if not set */
    uint64_t      tag;        /**< Any value */
    uint64_t      scope;      /**< Communicator: matching stays within one */
    ucp_st_mode_t mode;       /**< Of a send; standard if not set */
    uint64_t      flags;      /**< Mask of @ref ucp_st_op_flags */
} ucp_st_op_params_t;


/**
 * Make a persistent send. Local.
 *
 * @param [in]  worker The worker.
 * @param [in]  params What to send.
 * @param [out] op_p   Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM also for a NULL buffer with a length,
 *         an unknown mode or flag, or a peer of another worker.
 *
 * Ownership: the operation is the caller's until @ref ucp_st_op_free. The
 *            buffer stays the caller's and must live until then.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_send_init(ucp_st_worker_h worker,
                              const ucp_st_op_params_t *params,
                              ucp_st_op_h *op_p);


/**
 * Make a persistent receive. Local. The buffer may be larger than the send.
 *
 * @param [in]  worker The worker.
 * @param [in]  params What to receive; the mode is ignored.
 * @param [out] op_p   Filled on success only.
 *
 * @return As @ref ucp_st_send_init.
 *
 * Ownership: as @ref ucp_st_send_init.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_recv_init(ucp_st_worker_h worker,
                              const ucp_st_op_params_t *params,
                              ucp_st_op_h *op_p);


/**
 * Match an operation with its counterpart and block until that is done. The
 * n-th unmatched send to a peer with a tag and scope is paired with the n-th
 * unmatched receive from there with the same, for the life of both.
 *
 * @param [in] op Not matched yet.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM for a wildcard, or for one half of a
 *         message to oneself (match both in one @ref ucp_st_matchall);
 *         UCS_ERR_BUSY if the operation was given to match before;
 *         UCS_ERR_MESSAGE_TRUNCATED, on both sides, if the send is larger than
 *         the receive; UCS_ERR_NO_RESOURCE, on both sides, if no lane has the
 *         counters, regions or entries that the pair needs;
 *         UCS_ERR_ENDPOINT_TIMEOUT, UCS_ERR_CONNECTION_RESET or
 *         UCS_ERR_CANCELED if the peer is gone. After an error of the latter
 *         three kinds and after truncation the operation is consumed: it can
 *         only be freed.
 *
 * Threads: as the UCP worker; progresses it.
 */
ucs_status_t ucp_st_match(ucp_st_op_h op);


/**
 * Match several operations and block until all are done. Every operation is
 * checked before any is given to match.
 *
 * @param [in]  ops      Operations, not matched yet, each once.
 * @param [in]  count    How many; 0 is legal.
 * @param [out] statuses Status of each, as @ref ucp_st_match; may be NULL.
 *
 * @return UCS_OK if all matched, else the first error. If the check failed,
 *         nothing was given to match and @a statuses is not written.
 *
 * Threads: as the UCP worker; progresses it.
 */
ucs_status_t ucp_st_matchall(const ucp_st_op_h *ops, size_t count,
                             ucs_status_t *statuses);


/**
 * Start matching several operations and return at once.
 *
 * @param [in] ops   Operations, not matched yet, each once.
 * @param [in] count How many; 0 is legal.
 *
 * @return UCS_OK, or the error of the check as @ref ucp_st_matchall; the
 *         outcome is told by @ref ucp_st_match_test.
 *
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_imatchall(const ucp_st_op_h *ops, size_t count);


/**
 * Progress the UCP worker once and tell whether an operation is matched.
 *
 * @param [in] op The operation.
 *
 * @return UCS_OK if it is matched; UCS_INPROGRESS if it was given to match and
 *         is not yet; UCS_ERR_NOT_CONNECTED if it was never given to match;
 *         else the error, as @ref ucp_st_match.
 *
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_match_test(ucp_st_op_h op);


/** What @ref ucp_st_op_query tells. */
typedef struct ucp_st_op_attr {
    ucp_st_lane_t lane;      /**< Lane of a matched operation */
    const char    *protocol; /**< How the lane moves it; a constant string */
    size_t        length;    /**< Bytes that a use moves: those of the send */
    uint64_t      started;   /**< Starts enqueued */
    uint64_t      completed; /**< Uses whose waits pass; a receive has the data
                                  in its buffer once the wait has passed */
    ucs_status_t  status;    /**< UCS_OK, or why the operation failed */
} ucp_st_op_attr_t;


/**
 * Query an operation.
 *
 * @param [in]  op   The operation.
 * @param [out] attr Filled on success only.
 *
 * @return UCS_OK.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucp_st_op_query(ucp_st_op_h op, ucp_st_op_attr_t *attr);


/**
 * Free an operation. Returns at once: what a lane still needs is kept until it
 * is done with it. The peer's operation can not be started any more.
 *
 * @param [in] op The operation; matched, unmatched, being matched or failed.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, if its last start was not
 *         waited for on the queue, or that wait has not passed. In a queue in
 *         error an operation may be freed before that, but for one whose buffer
 *         is being read or written on the host lane: until that is over, or the
 *         peer is declared dead.
 *
 * Ownership: on UCS_OK the handle is gone.
 * Threads: as the UCP worker; the queue that it was started on must not be in
 *          use by another thread.
 */
ucs_status_t ucp_st_op_free(ucp_st_op_h op);


/**
 * Enqueue the start of an operation: when the stream gets there, a send may
 * read its buffer and a receive's buffer may be written. Never blocks the
 * stream.
 *
 * @param [in] queue The queue.
 * @param [in] op    A matched operation.
 *
 * @return UCS_OK; UCS_ERR_NOT_CONNECTED if it is not matched; UCS_ERR_BUSY if
 *         it was started and no wait has been enqueued, or if its last use was
 *         on another queue and the host has not seen that wait pass;
 *         UCS_ERR_EXCEEDS_LIMIT after as many uses as a NIC counter can count;
 *         the cause if the operation or the queue has failed. Nothing is
 *         enqueued on error.
 *
 * Ownership: the buffer belongs to the operation from the start's to the wait's
 *            place in the stream; a send's may be read meanwhile.
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_start(ucp_st_queue_h queue, ucp_st_op_h op);


/**
 * Enqueue the start of several operations: all, or none.
 *
 * @param [in] queue The queue.
 * @param [in] ops   Matched operations, each once.
 * @param [in] count How many; 0 is legal.
 *
 * @return As @ref ucp_st_enqueue_start; UCS_ERR_INVALID_PARAM if an operation
 *         is there twice.
 *
 * Ownership: as @ref ucp_st_enqueue_start.
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_startall(ucp_st_queue_h queue,
                                     const ucp_st_op_h *ops, size_t count);


/**
 * Enqueue the wait for an operation: the stream waits there until a send's
 * buffer may be reused, or a receive's data is visible.
 *
 * @param [in] queue The queue that the operation was started on.
 * @param [in] op    A started operation.
 *
 * @return UCS_OK; UCS_ERR_NO_MESSAGE if it is not started, or its wait is
 *         enqueued already; UCS_ERR_INVALID_PARAM for another queue than the
 *         start's; the cause if the queue is in error. Nothing is enqueued on
 *         error.
 *
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_wait(ucp_st_queue_h queue, ucp_st_op_h op);


/**
 * Enqueue the wait for several operations: all, or none.
 *
 * @param [in] queue The queue.
 * @param [in] ops   Started operations, each once.
 * @param [in] count How many; 0 is legal.
 *
 * @return As @ref ucp_st_enqueue_wait; UCS_ERR_INVALID_PARAM also if an
 *         operation is there twice.
 *
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_waitall(ucp_st_queue_h queue,
                                    const ucp_st_op_h *ops, size_t count);


/**
 * Print the counts of a worker, one "name value" pair a line.
 *
 * @param [in] worker The worker.
 * @param [in] stream Where to print.
 *
 * Threads: may be called from any thread.
 */
void ucp_st_worker_print_stats(ucp_st_worker_h worker, FILE *stream);

#ifdef __cplusplus
}
#endif

#endif
