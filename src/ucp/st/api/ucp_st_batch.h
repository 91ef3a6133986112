/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_st_batch.h - messages on a stream that are used once and matched when
 * they run: a part of ucp_st.h, which includes it.
 *
 * Messages are enqueued one by one and started together by a command of the
 * stream. They are ordinary UCP tagged messages of the worker's UCP worker, so
 * that the other side may use ucp_tag_recv_nbx() and ucp_tag_send_nbx(), or
 * these calls.
 *
 *     kernel fills the buffer
 *     ucp_st_enqueue_recv(queue, &recv_params, &recv_req)
 *     ucp_st_enqueue_send(queue, &send_params, &send_req)
 *     ucp_st_enqueue_batch_start(queue)    both, in this order
 *     ucp_st_enqueue_batch_wait(queue)
 *     kernel reads what came
 *     ucp_st_req_wait(recv_req, &info)     only if the host wants to know
 *     ucp_st_req_free(recv_req), ucp_st_req_free(send_req)
 *
 * When the stream reaches the start, the library's thread gives the messages to
 * UCP; no call of the application takes part. While UCP has some, that thread
 * progresses the UCP worker: callbacks of the application may run in it, and
 * must not create or destroy st workers nor wait for the thread. It sleeps on
 * the worker's descriptor if the UCP worker has the feature UCP_FEATURE_WAKEUP
 * (see ucp_st_worker_params_t.ucp_features), and else looks every millisecond.
 * An application must not sleep on that descriptor meanwhile.
 *
 * The UCP worker must be of UCS_THREAD_MODE_MULTI and its context have
 * UCP_FEATURE_TAG; the library's own is.
 *
 * FIFOs. A message whose `scope` is set is of the FIFO of its peer, scope and
 * tag: message i that one side starts goes to receive i that the other starts,
 * in the order of the calls that enqueue the starts. Both sides set the scope,
 * and name the peer and the whole tag. They have nothing to do with UCP's tags,
 * and need no feature of the UCP worker.
 *
 * So the hosts match such a message while the streams are on the way to it, and
 * where lane trig reaches the peer the NICs move it: no thread of the host
 * takes part once both streams have come to their starts. A start is one store
 * for all its messages, whatever their FIFOs are, and a wait looks at one word.
 * Without that lane the library's threads move the message when both streams
 * have come to it.
 *
 * Its receive may be longer than the message. One that is shorter is an error
 * of both sides.
 */
#ifndef UCP_ST_BATCH_H_
#define UCP_ST_BATCH_H_

#include <ucp_st_def.h>
#include <ucp/api/ucp.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Fields of @ref ucp_st_msg_params_t that are set. */
enum ucp_st_msg_params_field {
    UCP_ST_MSG_PARAM_FIELD_BUFFER   = 1u << 0,
    UCP_ST_MSG_PARAM_FIELD_LENGTH   = 1u << 1,
    UCP_ST_MSG_PARAM_FIELD_PEER     = 1u << 2,
    UCP_ST_MSG_PARAM_FIELD_TAG      = 1u << 3,
    UCP_ST_MSG_PARAM_FIELD_TAG_MASK = 1u << 4,
    UCP_ST_MSG_PARAM_FIELD_SCOPE    = 1u << 5,
    UCP_ST_MSG_PARAM_FIELD_ACTUAL   = 1u << 6,
    UCP_ST_MSG_PARAM_FIELD_NAME     = 1u << 7
};


/** A message. Fields that are not set are 0. */
typedef struct ucp_st_msg_params {
    uint64_t      field_mask; /**< Mask of @ref ucp_st_msg_params_field */
    void          *buffer;    /**< May be NULL only if @a length is 0 */
    size_t        length;     /**< In bytes; of a receive: room */
    /** Of a send: the other side; if not set the null peer, to which nothing is
     *  sent. Of a receive: UCP_ST_PEER_ANY if not set. Messages are matched by
     *  tag alone, whatever their source; a receive that names a peer fails if
     *  that peer is gone. From the null peer nothing is received. */
    ucp_st_peer_h peer;
    ucp_tag_t     tag;        /**< Sent, or to be matched */
    ucp_tag_t     tag_mask;   /**< Of a receive: bits of the tag that must be
                                   equal; all if not set */
    uint64_t      scope;      /**< If set, the message is of a FIFO, see above:
                                   a number that keeps users apart, as an
                                   operation's */
    uint64_t      *actual;    /**< Of a receive: set to the bytes received
                                   before the stream passes a wait for it, so
                                   that the stream may read it then; must live
                                   as long as the buffer. Not set if NULL */
    int           rank;       /**< With UCP_ST_MSG_PARAM_FIELD_NAME, as the next
                                   one, for texts: by what the program knows the
                                   peer of a message of a FIFO */
    const char    *words;     /**< What else it knows it by, behind rank and
                                   tag; must live as long as the worker */
} ucp_st_msg_params_t;


/** What is known about a message. */
typedef struct ucp_st_req_info {
    ucs_status_t status;     /**< As @ref ucp_st_req_test returns it */
    size_t       length;     /**< Bytes sent or received, once complete */
    ucp_tag_t    sender_tag; /**< Tag of a received message, once complete */
} ucp_st_req_info_t;


/**
 * Enqueue a send. It begins when the stream reaches the start that
 * @ref ucp_st_enqueue_batch_start enqueues.
 *
 * @param [in]  queue  The queue.
 * @param [in]  params The message; copied.
 * @param [out] req_p  Filled on success only; NULL if no request is wanted.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM also for a NULL buffer with a length,
 *         UCP_ST_PEER_ANY, or a peer of another worker; UCS_ERR_UNSUPPORTED,
 *         logged with the cause, if the UCP worker is not of
 *         UCS_THREAD_MODE_MULTI or has no UCP_FEATURE_TAG; an error of
 *         ucp_worker_get_efd() for the first message of a worker; the cause if
 *         the queue is in error, or the peer is gone. Nothing is enqueued on
 *         error.
 *
 * Ownership: the request is the caller's until @ref ucp_st_req_free. The buffer
 *            stays the caller's; it must live, and not be changed after the
 *            start's place in the stream, until the request is complete.
 * Threads: the queue's rule; the first message of a worker not from a callback
 *          of UCP.
 */
ucs_status_t ucp_st_enqueue_send(ucp_st_queue_h queue,
                                 const ucp_st_msg_params_t *params,
                                 ucp_st_req_h *req_p);


/**
 * Enqueue a receive. It matches like ucp_tag_recv_nbx(), once the stream has
 * reached its start.
 *
 * @param [in]  queue  The queue.
 * @param [in]  params The message; copied.
 * @param [out] req_p  As @ref ucp_st_enqueue_send.
 *
 * @return As @ref ucp_st_enqueue_send, but UCP_ST_PEER_ANY is legal, and so is
 *         a peer that has left in order: what it has sent before is received.
 *         If there is nothing for it such a receive completes with
 *         UCS_ERR_CANCELED, half a second after the peer has left at the
 *         soonest.
 *
 * Ownership: as @ref ucp_st_enqueue_send; the buffer is written until the
 *            request is complete.
 * Threads: as @ref ucp_st_enqueue_send.
 */
ucs_status_t ucp_st_enqueue_recv(ucp_st_queue_h queue,
                                 const ucp_st_msg_params_t *params,
                                 ucp_st_req_h *req_p);


/**
 * Enqueue one start of all messages that were enqueued since the last one, in
 * the order of these calls. Never blocks the stream.
 *
 * @param [in] queue The queue.
 *
 * @return UCS_OK, also if there are none; UCS_ERR_NO_MEMORY; the cause if the
 *         queue is in error. On error nothing is started and the messages stay
 *         as they are: to be started by another try, or freed.
 *
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_batch_start(ucp_st_queue_h queue);


/**
 * Enqueue the wait for all messages of the queue that were started before: the
 * stream waits until their buffers may be reused, and received data is visible.
 * Messages that are enqueued and not started are not waited for.
 *
 * If a started message fails, or is cancelled, the queue is in error. Receives
 * that UCP has not matched are cancelled. All such waits pass as soon as no
 * receive of the queue writes any more. Messages that the stream starts later
 * are cancelled. Buffers of sends are the caller's again when their requests
 * are complete.
 *
 * This example sends a number to a peer and receives one, which the stream
 * uses. The host gets its length.
 *
 * @code
 * static ucs_status_t swap_once(ucp_st_queue_h queue, ucp_st_peer_h peer,
 *                               uint64_t value[2], size_t *length_p)
 * {
 *     ucp_st_msg_params_t params = {
 *         .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
 *                       UCP_ST_MSG_PARAM_FIELD_LENGTH |
 *                       UCP_ST_MSG_PARAM_FIELD_PEER |
 *                       UCP_ST_MSG_PARAM_FIELD_TAG,
 *         .length     = sizeof(uint64_t),
 *         .peer       = peer,
 *         .tag        = 9
 *     };
 *     ucp_st_req_info_t info;
 *     ucs_status_t status;
 *     ucp_st_req_h req;
 *
 *     params.buffer = &value[1];
 *     status        = ucp_st_enqueue_recv(queue, &params, &req);
 *     if (status != UCS_OK) {
 *         return status;
 *     }
 *     params.buffer = &value[0];
 *     status        = ucp_st_enqueue_send(queue, &params, NULL);
 *     if (status == UCS_OK) {
 *         status = ucp_st_enqueue_batch_start(queue);
 *     }
 *     if (status == UCS_OK) {
 *         status = ucp_st_enqueue_batch_wait(queue);
 *     }
 *     if (status == UCS_OK) {
 *         status    = ucp_st_req_wait(req, &info);
 *         *length_p = info.length;
 *     }
 *     (void)ucp_st_req_free(req);
 *     return status;
 * }
 * @endcode
 *
 * @param [in] queue The queue.
 *
 * @return UCS_OK, also if there is nothing to wait for; UCS_ERR_NO_MEMORY; the
 *         cause if the queue is in error. Nothing is enqueued on error.
 *
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_batch_wait(ucp_st_queue_h queue);


/**
 * Enqueue a wait for some messages, whatever others do: the stream waits until
 * their buffers may be reused, and received data is visible. A message that
 * fails, or is cancelled, does not hold it up, but puts its queue in error, see
 * @ref ucp_st_enqueue_batch_wait.
 *
 * The messages may be of other queues of the worker, whose streams need not
 * have come to them, nor have passed a wait. Then the wait lasts until they are
 * complete, also if this queue is in error meanwhile, and this one stays as it
 * is if they fail: @ref ucp_st_req_test tells it. While the stream of one queue
 * waits for a message, no other one can.
 *
 * A message of a FIFO that is received is known to be complete only when its
 * sender's host has said so: where all started messages are to be waited for,
 * @ref ucp_st_enqueue_batch_wait does without that.
 *
 * @param [in] queue The queue.
 * @param [in] reqs  Requests of messages that are started. They may be
 *                   complete, and may be freed once this returns.
 * @param [in] count How many; 0 is legal.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM, logged, also for a message of another
 *         worker; UCS_ERR_NO_MESSAGE, logged, for one whose start was not
 *         enqueued; UCS_ERR_BUSY, logged, for one that another queue waits for;
 *         UCS_ERR_NO_MEMORY; the cause if the queue is in error. Nothing is
 *         enqueued on error.
 *
 * Threads: the queue's rule; other threads may call for the messages' queues.
 */
ucs_status_t ucp_st_enqueue_req_waitall(ucp_st_queue_h queue,
                                        const ucp_st_req_h *reqs, size_t count);


/**
 * Tell whether a message is complete. Progresses the UCP worker once if it is
 * not.
 *
 * @param [in]  req  The request.
 * @param [out] info Filled in any case; may be NULL.
 *
 * @return UCS_INPROGRESS, also before it is started; UCS_OK if it is complete;
 *         UCS_ERR_MESSAGE_TRUNCATED if what came was longer than the buffer;
 *         UCS_ERR_CANCELED if it was cancelled, or not begun because its queue
 *         was in error or is gone; UCS_ERR_ENDPOINT_TIMEOUT or
 *         UCS_ERR_CONNECTION_RESET if the peer is gone; or another error of
 *         UCP.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucp_st_req_test(ucp_st_req_h req, ucp_st_req_info_t *info);


/**
 * Tell whether a message is complete, as @ref ucp_st_req_test, but without
 * progress, and without a question to the peer.
 *
 * @param [in]  req  The request.
 * @param [out] info Filled in any case; may be NULL.
 *
 * @return As @ref ucp_st_req_test.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucp_st_req_query(ucp_st_req_h req, ucp_st_req_info_t *info);


/**
 * Block the host until a message is complete, and progress the UCP worker
 * meanwhile.
 *
 * @param [in]  req  The request.
 * @param [out] info Filled in any case; may be NULL.
 *
 * @return As @ref ucp_st_req_test, but UCS_INPROGRESS; UCS_ERR_NO_MESSAGE, at
 *         once, if its start was not enqueued.
 *
 * Threads: may be called from any thread, but not from a stream or a callback.
 */
ucs_status_t ucp_st_req_wait(ucp_st_req_h req, ucp_st_req_info_t *info);


/**
 * Cancel a message. One that is not started is complete on return. A started
 * receive that has not matched, and a send that the stream has not reached,
 * will be complete soon; the queue is then in error, see
 * @ref ucp_st_enqueue_batch_wait. What has matched is received all the same.
 *
 * @param [in] req The request.
 *
 * @return UCS_OK: @ref ucp_st_req_test tells the outcome;
 *         UCS_ERR_UNSUPPORTED, with no effect, for a send that UCP has.
 *
 * Threads: may be called from any thread; for one whose start was not enqueued
 *          the queue's rule.
 */
ucs_status_t ucp_st_req_cancel(ucp_st_req_h req);


/**
 * Release a request. Returns at once: a message that is started goes on, and
 * its buffer must live as long. One that is not started is cancelled.
 *
 * @param [in] req The request; NULL is legal.
 *
 * @return UCS_OK.
 *
 * Ownership: the handle is gone.
 * Threads: as @ref ucp_st_req_cancel.
 */
ucs_status_t ucp_st_req_free(ucp_st_req_h req);

#ifdef __cplusplus
}
#endif

#endif
