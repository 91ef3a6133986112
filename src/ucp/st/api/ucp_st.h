/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_st.h - stream-ordered tag send and receive.
 *
 * A send and a receive are made once (persistent operations), matched once, and
 * then started and waited for on a stream any number of times. Matching is done
 * by the hosts ahead of time; starts and waits are commands of a stream, and no
 * call of the application takes part in moving the data. On the trig lane the
 * network card moves it, on the direct lane the streams of both processes, on
 * the host lane a thread of the library.
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
 * This file has queues and operations; ucp_st_def.h has handles and counts,
 * ucp_st_worker.h workers and peers, ucp_st_exchange.h sets of operations,
 * ucp_st_device.h what kernels use, ucp_st_batch.h messages that are used once,
 * ucp_st_rma.h one-sided operations. The examples among the comments are
 * functions of a program that is one of the tests.
 *
 * Every call may return UCS_ERR_INVALID_PARAM for a NULL handle or pointer,
 * unless NULL is said to be legal, and UCS_ERR_NO_MEMORY; this is not repeated
 * below. No call aborts, exits or throws. A call that fails has no effect,
 * unless stated, and fills nothing.
 *
 * In a process that was forked from one with st workers every call returns
 * UCS_ERR_UNSUPPORTED and does nothing; those that return no status do nothing.
 *
 * Threads: calls on different queues may come from different threads. Calls on
 * one queue must be serialised by the caller, as those on a stream; below this
 * is "the queue's rule". Matching, and all that makes or frees peers and
 * operations, uses the UCP worker: it may be called from the threads that may
 * use that worker, which below is "as the UCP worker". The library's own UCP
 * worker may be used from all threads.
 */
#ifndef UCP_ST_H_
#define UCP_ST_H_

#include <ucp_st_batch.h>
#include <ucp_st_def.h>
#include <ucp_st_device.h>
#include <ucp_st_exchange.h>
#include <ucp_st_mem.h>
#include <ucp_st_rma.h>
#include <ucp_st_worker.h>
#include <ucs_gstream.h>
#include <ucp/api/ucp.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Fields of @ref ucp_st_queue_params_t that are set. */
enum ucp_st_queue_params_field {
    UCP_ST_QUEUE_PARAM_FIELD_STREAM = 1u << 0
};


/** Parameters of @ref ucp_st_queue_create. */
typedef struct ucp_st_queue_params {
    /** Mask of @ref ucp_st_queue_params_field. */
    uint64_t      field_mask;
    /** The stream that carries the queue's commands; must be set. It is not
     *  destroyed before the queue: @ref ucs_gstream_destroy returns
     *  UCS_ERR_BUSY. */
    ucs_gstream_h stream;
} ucp_st_queue_params_t;


/**
 * Create a queue. Local. Several queues may use one stream.
 *
 * @code
 * static ucs_status_t make_queue(ucp_st_worker_h worker,
 *                                ucs_gstream_h *stream_p,
 *                                ucp_st_queue_h *queue_p)
 * {
 *     ucs_gstream_params_t host    = {.field_mask = 0};
 *     ucp_st_queue_params_t params = {
 *         .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
 *     };
 *     ucs_status_t status;
 *
 *     status = ucs_gstream_create(&host, stream_p);
 *     if (status != UCS_OK) {
 *         return status;
 *     }
 *     params.stream = *stream_p;
 *     status        = ucp_st_queue_create(worker, &params, queue_p);
 *     if (status != UCS_OK) {
 *         (void)ucs_gstream_destroy(*stream_p);
 *     }
 *     return status;
 * }
 * @endcode
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
 * Destroy a queue. Messages (ucp_st_batch.h) that are started go on; others are
 * cancelled. Operations may be started on another queue from then on, or freed:
 * one that was started and not waited for is busy until that use is complete.
 *
 * @param [in] queue The queue.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while commands are in flight,
 *         or one-sided operations of the queue, for which a quiet waits, or
 *         while uses are posted ahead, unless the queue is in error.
 *
 * Ownership: on UCS_OK the handle is gone; the stream stays the caller's.
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_queue_destroy(ucp_st_queue_h queue);


/** Why a queue is in error. */
typedef struct ucp_st_queue_error {
    ucs_status_t status; /**< Cause */
    ucp_st_op_h  op;     /**< First operation that failed; may be freed already,
                              compare only. NULL if a message or a one-sided
                              operation failed first */
    ucp_st_req_h req;    /**< First message that failed, or NULL; the same */
} ucp_st_queue_error_t;


/**
 * Block the host until all commands enqueued so far have run (host wait).
 * Progresses the UCP worker meanwhile. A failed operation does not block it:
 * the waits of a queue in error pass, and then the error is returned. What has
 * waited for a peer for UCX_ST_WARN_TIME is warned of, once, whether the host
 * waits or not.
 *
 * @param [in]  queue The queue.
 * @param [out] error Filled if the queue is in error, and only then; may be
 *                    NULL.
 *
 * @return UCS_OK; UCS_ERR_BUSY when called from a command of the queue's
 *         stream; UCS_ERR_IO_ERROR if a device stream failed; else the cause of
 *         the first failed operation or message, once the commands have run:
 *         UCS_ERR_ENDPOINT_TIMEOUT, UCS_ERR_CONNECTION_RESET or
 *         UCS_ERR_CANCELED for a peer, or its half of the operation, that is
 *         gone; UCS_ERR_IO_ERROR or another error of the transport for a write
 *         that failed; for a message as @ref ucp_st_req_test.
 *
 * Threads: the queue's and the UCP worker's rule.
 */
ucs_status_t ucp_st_queue_wait(ucp_st_queue_h queue,
                               ucp_st_queue_error_t *error);


/**
 * Tell whether all commands enqueued so far have run, without waiting.
 * Progresses the UCP worker once while they have not.
 *
 * @param [in]  queue The queue.
 * @param [out] error As @ref ucp_st_queue_wait.
 *
 * @return As @ref ucp_st_queue_wait, but UCS_ERR_BUSY; UCS_INPROGRESS while
 *         commands are in flight.
 *
 * Threads: the queue's and the UCP worker's rule.
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
    UCP_ST_OP_PARAM_FIELD_FLAGS  = 1u << 6,
    UCP_ST_OP_PARAM_FIELD_FUNC   = 1u << 7,
    UCP_ST_OP_PARAM_FIELD_BLOCKS = 1u << 8,
    UCP_ST_OP_PARAM_FIELD_NAME   = 1u << 9
};


/** Flags of an operation. */
enum ucp_st_op_flags {
    /** "Any tag": refused by match. */
    UCP_ST_OP_FLAG_ANY_TAG = 1u << 0
};


/** What an operation sends or receives. Fields that are not set are 0. */
typedef struct ucp_st_op_params {
    uint64_t      field_mask; /**< Mask of @ref ucp_st_op_params_field */
    void          *buffer;    /**< Memory of the host or of a GPU; may be NULL
                                   only if @a length is 0 */
    size_t        length;     /**< Of the message that fills it, in bytes */
    ucp_st_peer_h peer;       /**< The other side; the null peer if not set */
    uint64_t      tag;        /**< Any value */
    uint64_t      scope;      /**< Communicator: matching stays within one */
    ucp_st_mode_t mode;       /**< Of a send; standard if not set */
    uint64_t      flags;      /**< Mask of @ref ucp_st_op_flags */
    /** If not NULL, part of each use but with the null peer. The stream runs it
     *  in a send's start, before the buffer may be read, and in a receive's
     *  wait, once the data is there: to pack and unpack. */
    ucs_gstream_func_t func;
    void          *func_arg;  /**< Passed to @a func and @a func_release */
    /** If not NULL, called once the operation is freed and no command names
     *  @a func any more, from within any call on the worker or its operations;
     *  calls none itself. Not if the operation could not be made. */
    void          (*func_release)(void *func_arg);
    /** If set, the bytes of the buffer are not one behind the other: it has
     *  blocks of @a block bytes, of which @a length is a multiple, and each
     *  begins @a stride bytes behind the one before. The stream copies them, in
     *  a send's start and in a receive's wait, to and from memory of the
     *  library's where they are. */
    size_t        block;
    size_t        stride;     /**< From @a block to UCS_GSTREAM_PITCH_MAX */
    /** What warnings call the operation, in the words of the caller's layer, as
     *  "receive of 4 bytes from rank 1, tag 9"; copied. If not set: bytes, peer
     *  and tag. */
    const char    *name;
} ucp_st_op_params_t;


/**
 * Make a persistent send. Local.
 *
 * @param [in]  worker The worker.
 * @param [in]  params What to send.
 * @param [out] op_p   Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM also for a NULL buffer with a length,
 *         an unknown mode or flag, blocks that make no buffer, or a peer of
 *         another worker.
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
 * unmatched receive from there with the same, for the life of both. Two sides
 * that each match a send, and only then a receive, block for ever: give all to
 * one @ref ucp_st_matchall. What is not matched after UCX_ST_WARN_TIME is
 * warned of, once, with what the peer has announced.
 *
 * @param [in] op Not matched yet.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM for a wildcard, or for one half of a
 *         message to oneself (match both in one @ref ucp_st_matchall);
 *         UCS_ERR_BUSY if the operation was given to match before;
 *         UCS_ERR_CANCELED after @ref ucp_st_worker_leave.
 *         On both sides: UCS_ERR_MESSAGE_TRUNCATED if the send is larger than
 *         the receive; UCS_ERR_UNREACHABLE if they have no lane in common;
 *         UCS_ERR_NO_RESOURCE if no lane has the counters or regions that the
 *         pair needs.
 *         UCS_ERR_ENDPOINT_TIMEOUT, UCS_ERR_CONNECTION_RESET or
 *         UCS_ERR_CANCELED if the peer, or its half, is gone; UCS_ERR_IO_ERROR
 *         if what it sent makes no sense.
 *         UCS_ERR_INVALID_PARAM and UCS_ERR_BUSY leave the operation as it was.
 *         After UCS_ERR_NO_RESOURCE both halves may be given to match again.
 *         After any other error the operation is consumed: it can only be
 *         freed.
 *
 * Threads: as the UCP worker; progresses it.
 */
ucs_status_t ucp_st_match(ucp_st_op_h op);


/**
 * Match several operations and block until all are done. Every operation is
 * checked before any is given to match.
 *
 * @code
 * static ucs_status_t make_ops(ucp_st_worker_h worker, ucp_st_peer_h peer,
 *                              double value[2], ucp_st_op_h ops[2])
 * {
 *     ucp_st_op_params_t params = {
 *         .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
 *                       UCP_ST_OP_PARAM_FIELD_LENGTH |
 *                       UCP_ST_OP_PARAM_FIELD_PEER |
 *                       UCP_ST_OP_PARAM_FIELD_TAG,
 *         .length     = sizeof(double),
 *         .peer       = peer,
 *         .tag        = 7
 *     };
 *     ucs_status_t status;
 *
 *     params.buffer = &value[0];
 *     status        = ucp_st_send_init(worker, &params, &ops[0]);
 *     if (status != UCS_OK) {
 *         return status;
 *     }
 *     params.buffer = &value[1];
 *     status        = ucp_st_recv_init(worker, &params, &ops[1]);
 *     if (status != UCS_OK) {
 *         goto err_send;
 *     }
 *     status = ucp_st_matchall(ops, 2, NULL);
 *     if (status == UCS_OK) {
 *         return UCS_OK;
 *     }
 *     (void)ucp_st_op_free(ops[1]);
 * err_send:
 *     (void)ucp_st_op_free(ops[0]);
 *     return status;
 * }
 * @endcode
 *
 * @param [in]  ops      Operations of one worker, not matched yet, each once.
 * @param [in]  count    How many; 0 is legal.
 * @param [out] statuses Status of each, as @ref ucp_st_match; may be NULL.
 *
 * @return UCS_OK if all matched, else the first error in the order of @a ops,
 *         as @ref ucp_st_match; UCS_ERR_INVALID_PARAM also if an operation is
 *         there twice or belongs to another worker than the first one. If the
 *         check failed, nothing was given to match and @a statuses is not
 *         written.
 *
 * Threads: as the UCP worker; progresses it.
 */
ucs_status_t ucp_st_matchall(const ucp_st_op_h *ops, size_t count,
                             ucs_status_t *statuses);


/**
 * Give several operations to match and return at once.
 *
 * @param [in] ops   Operations of one worker, not matched yet, each once.
 * @param [in] count How many; 0 is legal.
 *
 * @return UCS_OK, or the error of the check as @ref ucp_st_matchall;
 *         @ref ucp_st_match_test tells the outcome.
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
    const char    *protocol; /**< How the lane moves it, "none" without one; a
                                  constant string */
    size_t        length;    /**< Bytes that a use moves: those of the send, or
                                  fewer if a kernel has started it so.
                                  0 before the match, and for the null peer */
    uint64_t      started;   /**< Starts enqueued, or posted ahead */
    uint64_t      completed; /**< Uses whose waits pass; a receive has the data
                                  in its buffer once the wait has passed */
    ucs_status_t  status;    /**< UCS_OK, or why the operation or its last match
                                  failed */
    ucp_st_queue_h queue;     /**< Of the last start; NULL if there was none, or
                                   the queue was destroyed */
    const char    *reason;   /**< Why lane direct does not move it by kernels of
                                  streams, where a buffer is in a device: a
                                  constant string; else empty */
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
 * Free an operation. Returns at once: what a lane still needs is freed later.
 * The peer's operation cannot be started any more.
 *
 * This example waits for a queue, prints what went wrong, and frees the
 * operations in any case.
 *
 * @code
 * static ucs_status_t finish(ucp_st_worker_h worker, ucp_st_queue_h queue,
 *                            const ucp_st_op_h ops[2])
 * {
 *     ucp_st_queue_error_t error = {.op = NULL};
 *     ucs_status_t result, status;
 *     unsigned i;
 *
 *     result = ucp_st_queue_wait(queue, &error);
 *     if (error.op != NULL) {
 *         fprintf(stderr, "the %s failed: %s\n",
 *                 (error.op == ops[0]) ? "send" : "receive",
 *                 ucs_status_string(error.status));
 *     }
 *     for (i = 0; i < 2; ++i) {
 *         status = ucp_st_op_free(ops[i]);
 *         while ((status == UCS_ERR_BUSY) && (result != UCS_OK)) {
 *             (void)ucp_st_worker_progress(worker);
 *             status = ucp_st_op_free(ops[i]);
 *         }
 *         result = (result == UCS_OK) ? status : result;
 *     }
 *     return result;
 * }
 * @endcode
 *
 * @param [in] op The operation; matched, unmatched, being matched or failed.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, if its last start was not
 *         waited for on the queue, or that wait has not passed, or while a
 *         kernel has started a use and not waited for it. In a queue in
 *         error an operation may be freed before that, but for one whose buffer
 *         is being read or written, or which the stream is yet to copy to or
 *         from: until that is over, or the peer is declared gone; on the trig
 *         lane a NIC's access lasts for two seconds at most. A copy by a device
 *         is waited for in any case.
 *
 * Ownership: on UCS_OK the handle is gone.
 * Threads: as the UCP worker; the queue that it was started on must not be in
 *          use by another thread.
 */
ucs_status_t ucp_st_op_free(ucp_st_op_h op);


/**
 * Enqueue the start of an operation: from there on a send may read its buffer,
 * and a receive's buffer may be written. Never blocks the stream.
 *
 * @param [in] queue The queue.
 * @param [in] op    A matched operation.
 *
 * @return UCS_OK; UCS_ERR_NOT_CONNECTED if it is not matched; UCS_ERR_BUSY if
 *         it was started and no wait has been enqueued, or if its last use was
 *         on another queue and the host has not seen that wait pass, or if
 *         kernels have uses ahead (@ref ucp_st_op_post_ahead);
 *         UCS_ERR_INVALID_PARAM if it belongs to another worker than the queue,
 *         or its buffer in a GPU is found to be freed; UCS_ERR_CANCELED if the
 *         peer has freed its half;
 *         UCS_ERR_EXCEEDS_LIMIT after as many uses as a NIC counter can count;
 *         UCS_ERR_UNSUPPORTED while the stream is being captured into a graph,
 *         or if the buffer is another runtime's than the stream; the cause if
 *         the operation or the queue has failed; an error of the NIC that does
 *         not take the work. Nothing is enqueued on error.
 *
 * Ownership: the buffer belongs to the operation from the start's to the wait's
 *            place in the stream; a send's may be read meanwhile.
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_start(ucp_st_queue_h queue, ucp_st_op_h op);


/**
 * Enqueue the start of several operations: all, or none. They start in the
 * order of the array.
 *
 * In this example a kernel computes each value that is sent from the one that
 * was received before. The host enqueues all of it without waiting.
 *
 * @code
 * static ucs_status_t iterate(ucp_st_queue_h queue, ucs_gstream_h stream,
 *                             const ucp_st_op_h ops[2],
 *                             ucs_gstream_func_t kernel, double value[2])
 * {
 *     ucs_status_t status = UCS_OK;
 *     unsigned i;
 *
 *     for (i = 0; (i < 100) && (status == UCS_OK); ++i) {
 *         status = ucs_gstream_enqueue_func(stream, kernel, value);
 *         if (status == UCS_OK) {
 *             status = ucp_st_enqueue_startall(queue, ops, 2);
 *         }
 *         if (status == UCS_OK) {
 *             status = ucp_st_enqueue_waitall(queue, ops, 2);
 *         }
 *     }
 *     return status;
 * }
 * @endcode
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
 * Enqueue the wait for an operation: the stream waits until a send's buffer may
 * be reused, or a receive's data is visible.
 *
 * @param [in] queue The queue that the operation was started on.
 * @param [in] op    A started operation.
 *
 * @return UCS_OK; UCS_ERR_NO_MESSAGE if it is not started, or its wait is
 *         enqueued already; UCS_ERR_INVALID_PARAM for another queue than the
 *         start's, or another worker's; the cause if the queue is in error.
 *         Nothing is enqueued on error.
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
 * Tell whether a start, or a wait, of an operation would be refused: which one
 * of several it was.
 *
 * @param [in] queue    The queue.
 * @param [in] op       The operation.
 * @param [in] is_start Non-zero for a start, 0 for a wait.
 *
 * @return UCS_OK; else as @ref ucp_st_enqueue_start or @ref
 *         ucp_st_enqueue_wait, unless the queue is in error.
 *
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_check(ucp_st_queue_h queue, ucp_st_op_h op,
                                  int is_start);


/**
 * Tell whether an operation's last use is over for the host, without waiting.
 * Other operations of its queue may be under way. Once this has returned UCS_OK
 * the operation may be started on any queue.
 *
 * @param [in] op The operation.
 *
 * @return UCS_OK if the stream has passed the wait for the last start, or if it
 *         was never started, and kernels have waited for all uses that were
 *         posted ahead; UCS_INPROGRESS if not; UCS_ERR_NO_MESSAGE if its
 *         start is complete, and a wait would pass, but none was enqueued, nor
 *         can be if its queue is gone; else why the use, or the queue, failed,
 *         once the stream has passed.
 *
 * Threads: the rule of the queue of its last start.
 */
ucs_status_t ucp_st_op_test(ucp_st_op_h op);


/**
 * Get a handle of an operation for kernels of the application: ucp_st_device.h
 * has what they call. Local. The same one each time.
 *
 * Kernels start and wait for messages on lane direct, where the pair is moved
 * by kernels ("kernel" is its protocol), as GPUs reach both buffers; and on
 * lane trig, where the NIC reaches the operation's buffer in memory of a GPU,
 * and that GPU reaches the NIC's trigger pages. There a receive whose data is
 * sent ahead (UCX_ST_EAGER_MAX) is none of kernels, and each use is of the
 * matched length. The kernels run on the GPU that has the operation's buffer;
 * if that is the host's, on the one that has the worker's queues.
 *
 * @param [in]  op     The operation, matched.
 * @param [out] device Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_NOT_CONNECTED if it is not matched;
 *         UCS_ERR_UNSUPPORTED, and the log has the lane, or the protocol, and
 *         what to do, if kernels cannot start it: also for the null peer, one
 *         of an exchange, and one with a function; the cause if the operation
 *         has failed; UCS_ERR_NO_MEMORY; UCS_ERR_IO_ERROR if the runtime
 *         fails.
 *
 * Ownership: the handle is good until the operation is freed, and gives
 *            UCP_ST_DEVICE_GONE or UCP_ST_DEVICE_FAILED from then on, for the
 *            life of the process.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_op_device(ucp_st_op_h op, ucp_st_device_op_t *device);


/**
 * Post uses ahead: the next ones, so many, are started *and* waited for by
 * kernels of the application, one after the other. Enqueues nothing: the
 * kernels go to the queue's stream, or to others that come behind it. They may
 * be launched before or after this call; a start for which there is no use yet
 * says so (UCP_ST_DEVICE_NO_USE).
 *
 * For the host these uses are started and waited for: an operation may be
 * posted again at any time, which adds to what is there. @ref ucp_st_op_test
 * says when kernels have waited for the last one. Until then a start cannot be
 * enqueued. @ref ucp_st_queue_wait waits for what was enqueued alone. An error
 * puts the queue in error as if the uses had been enqueued there; the kernels'
 * waits pass and return UCP_ST_DEVICE_FAILED.
 *
 * A use that no kernel has begun may be taken back, by @ref ucp_st_op_free; so
 * it is no error if the peer frees its half before it. On lane trig a send that
 * has failed cannot be freed (UCS_ERR_BUSY) while the NIC holds writes that
 * were posted for it, which is not for long unless the peer is stopped. Each
 * operation that is freed so, or has failed before kernels have waited for all,
 * keeps some 400 bytes for the life of the process, as kernels may still look
 * there; on lane trig some 500 and a page for each NIC.
 *
 * @param [in] op    A matched operation.
 * @param [in] queue The queue; its stream is of the GPU that has the buffer.
 * @param [in] uses  How many; 0 is legal, and no effect.
 *
 * @return As @ref ucp_st_op_device and @ref ucp_st_enqueue_start; UCS_ERR_BUSY
 *         also if the last use was started by the library's thread, as on a
 *         stream of the host, and is about to end; UCS_ERR_UNSUPPORTED also for
 *         a stream of the host, of another GPU or of another context;
 *         UCS_ERR_CANCELED if the peer takes part in fewer uses;
 *         UCS_ERR_EXCEEDS_LIMIT beyond 2^60 uses.
 *
 * Ownership: the buffer belongs to the operation from a kernel's start to its
 *            wait.
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_op_post_ahead(ucp_st_op_h op, ucp_st_queue_h queue,
                                  uint64_t uses);


/**
 * Print the counts of a worker, a line in words, one with "waits_for" for
 * what its streams and matches wait for, in 4 KiB at most (all of the process:
 * @ref ucp_st_waits_get), and one "name value" pair a line.
 * See also UCX_ST_STATS at @ref ucp_st_worker_destroy.
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
