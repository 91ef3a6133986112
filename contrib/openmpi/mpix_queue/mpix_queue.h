/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue.h - stream-triggered MPI messages.
 *
 * Persistent requests of MPI_Send_init, MPI_Rsend_init and MPI_Recv_init are
 * matched once and then started and waited for on a stream. Messages that are
 * used once, and matched when they run, are in mpix_queue_batch.h. Link with
 * -lmpix_queue, before the MPI library and any -lucp (mpicc puts the MPI
 * library last by itself).
 *
 * Every function returns an MPI error code, raised through the error handler of
 * the request's communicator (of MPI_COMM_WORLD where there is none), exactly
 * as MPI's own functions do. MPI_Error_string describes it.
 */
#ifndef MPIX_QUEUE_H_
#define MPIX_QUEUE_H_

#include "mpix_host_event.h"
#include "mpix_host_group.h"
#include "mpix_host_stream.h"

#include <mpi.h>

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A queue of stream-triggered messages. */
typedef struct mpix_queue *MPIX_Queue;

/** No queue. */
#define MPIX_QUEUE_NULL ((MPIX_Queue)0)


/** Kind of a queue's stream. */
enum {
    MPIX_QUEUE_HOST = 0, /**< A host stream of @ref MPIX_Host_stream_create */
    MPIX_QUEUE_HIP  = 1, /**< A hipStream_t; not supported yet */
    MPIX_QUEUE_CUDA = 2  /**< A cudaStream_t; not supported yet */
};


/**
 * Create a queue on a stream. Local.
 *
 * @param [in]  type   MPIX_QUEUE_HOST; others are refused for now.
 * @param [in]  stream Handle of a stream of that type.
 * @param [out] queue  Filled on success only.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for an unknown type or a handle that is no
 *         stream; MPI_ERR_UNSUPPORTED_OPERATION for a type that is not built
 *         in, or if MPI does not run over pml/ucx; MPI_ERR_OTHER if MPI was
 *         initialised with less than MPI_THREAD_FUNNELED, is not initialised,
 *         or no lane is there (the cause is printed).
 *
 * Ownership: the caller's until @ref MPIX_Queue_free. The stream must outlive
 *            it.
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Queue_init(int type, void *stream, MPIX_Queue *queue);


/**
 * Free a queue.
 *
 * @param [in,out] queue The queue; set to MPIX_QUEUE_NULL.
 *
 * @return MPI_SUCCESS; MPI_ERR_PENDING, with no effect, while commands are in
 *         flight; MPI_ERR_ARG.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Queue_free(MPIX_Queue *queue);


/**
 * Block the host until everything enqueued on the queue so far has run.
 *
 * @param [in] queue The queue.
 *
 * @return MPI_SUCCESS; MPI_ERR_OTHER if an operation failed (the cause is
 *         printed); MPI_ERR_ARG.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Queue_wait(MPIX_Queue queue);


/**
 * Match a persistent request with its counterpart and block until that is done.
 * The n-th unmatched send to (rank, tag, communicator) is paired with the n-th
 * unmatched receive of the same, for the life of both requests. From then on
 * the request is started on queues only; MPI_Start on it is refused.
 * MPI_Request_free ends the match; while a use is in flight it returns
 * MPI_ERR_PENDING and frees nothing.
 *
 * @param [in]  request Inactive request of MPI_Send_init, MPI_Rsend_init or
 *                      MPI_Recv_init, of a contiguous datatype.
 * @param [out] status  Source, tag and actual length of a receive's message
 *                      (MPI_Get_count); may be MPI_STATUS_IGNORE.
 *
 * @return MPI_SUCCESS; MPI_ERR_REQUEST for another kind of request, an active
 *         or a matched one, or one half of a message to the own process;
 *         MPI_ERR_TYPE for a datatype that is not contiguous; MPI_ERR_TAG,
 *         MPI_ERR_RANK for a wildcard; MPI_ERR_TRUNCATE, on both sides, for a
 *         send larger than its receive; MPI_ERR_NO_MEM where no lane has the
 *         resources; MPI_ERR_OTHER if the peer is gone, or has called
 *         MPI_Finalize; otherwise as @ref MPIX_Queue_init. After
 *         MPI_ERR_TRUNCATE and MPI_ERR_OTHER from the peer the request can only
 *         be freed.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Match(MPI_Request *request, MPI_Status *status);


/**
 * Match several requests and block until all are done.
 *
 * @param [in]  count    Number of requests.
 * @param [in]  requests The requests, each once.
 * @param [out] statuses One each; may be MPI_STATUSES_IGNORE.
 *
 * @return As @ref MPIX_Match; the first error, and that of each request in
 *         its status. Requests are checked first: if one may not be matched,
 *         none is.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Matchall(int count, MPI_Request requests[], MPI_Status statuses[]);


/**
 * Begin to match a request and return at once. Matching goes on in all calls
 * of this library and of MPI that wait.
 *
 * @param [in] request As @ref MPIX_Match.
 *
 * @return As @ref MPIX_Match, as far as known at once.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Imatch(MPI_Request *request);


/**
 * Begin to match several requests and return at once.
 *
 * @param [in] count    Number of requests.
 * @param [in] requests The requests, each once.
 *
 * @return As @ref MPIX_Imatch.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Imatchall(int count, MPI_Request requests[]);


/**
 * Tell whether a request is matched, and progress matching.
 *
 * @param [in]  request The request.
 * @param [out] flag    1 if it is matched, else 0.
 * @param [out] status  As @ref MPIX_Match, once matched; may be
 *                      MPI_STATUS_IGNORE.
 *
 * @return MPI_SUCCESS; or the error with which matching ended.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Is_matched(MPI_Request *request, int *flag, MPI_Status *status);


/**
 * Enqueue the start of a matched request.
 *
 * @param [in] queue   The queue.
 * @param [in] request A matched request whose last start was waited for.
 *
 * @return MPI_SUCCESS; MPI_ERR_REQUEST if it is not matched, or started and
 *         not waited for; MPI_ERR_OTHER if the queue is in error. Nothing is
 *         enqueued on error.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Enqueue_start_req(MPIX_Queue queue, MPI_Request *request);


/**
 * Enqueue the start of several matched requests, in the order of the array: all
 * or none.
 *
 * @param [in] queue    The queue.
 * @param [in] count    Number of requests.
 * @param [in] requests The requests, each once.
 *
 * @return As @ref MPIX_Enqueue_start_req.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Enqueue_startall(MPIX_Queue queue, int count, MPI_Request requests[]);


/**
 * Enqueue the wait for a started request: later work on the stream sees a
 * receive's data and may overwrite a send's buffer.
 *
 * @param [in] queue   The queue it was started on.
 * @param [in] request A started request.
 *
 * @return MPI_SUCCESS; MPI_ERR_REQUEST if it is not started, or was started on
 *         another queue; MPI_ERR_OTHER if the queue is in error. Nothing is
 *         enqueued on error.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Enqueue_wait_req(MPIX_Queue queue, MPI_Request *request);


/**
 * Enqueue the wait for several started requests: all or none.
 *
 * @param [in] queue    The queue.
 * @param [in] count    Number of requests.
 * @param [in] requests The requests, each once.
 *
 * @return As @ref MPIX_Enqueue_wait_req.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Enqueue_waitall(MPIX_Queue queue, int count, MPI_Request requests[]);


/** What the process has done so far on all its queues. */
typedef struct MPIX_Queue_stats {
    uint64_t starts;       /**< Starts enqueued */
    uint64_t waits;        /**< Waits enqueued */
    uint64_t writes_fired; /**< Payload writes carried out by the NIC */
    uint64_t chunks;       /**< Of those, all but one of each message that was
                                split */
    uint64_t copies;       /**< Pieces of messages that streams copied to
                                processes of the same node */
    uint64_t proxied;      /**< Messages that a host thread had to move */
    char     provider[64]; /**< libfabric provider */
    char     device[64];   /**< Device */
} MPIX_Queue_stats;


/**
 * Query what the process has done so far.
 *
 * @param [out] stats Filled; all zero before the first queue.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for NULL.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Queue_get_stats(MPIX_Queue_stats *stats);


/**
 * Print all that is counted of what the process has done so far, one "name
 * value" pair a line: what ucp_st_worker_print_stats() prints. For reports;
 * names may come and go with versions.
 *
 * @param [in] stream Where to print; nothing before the first queue.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for NULL.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Queue_print_stats(FILE *stream);

#ifdef __cplusplus
}
#endif

#include "mpix_queue_batch.h"
#include "mpix_queue_coll.h"

#endif
