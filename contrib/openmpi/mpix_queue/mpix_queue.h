/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue.h - stream-triggered MPI messages.
 *
 * Persistent requests of MPI_Send_init, MPI_Rsend_init and MPI_Recv_init are
 * matched once and then started and waited for on a stream. Messages that are
 * used once, and matched when they run, are in mpix_queue_batch.h; requests
 * that are started together, which takes less of the network card, are in
 * mpix_queue_exchange.h; the exchange with all neighbours is in mpix_halo.h.
 * Link with -lmpix_queue, before the MPI library and any -lucp (mpicc puts the
 * MPI library last by itself).
 *
 * Every function returns an MPI error code, raised through the error handler of
 * the request's communicator (of MPI_COMM_WORLD where there is none), exactly
 * as MPI's own functions do. Its class is one of MPI's: MPI_Error_class gives
 * those that are named below. MPI_Error_string names the call, the request and
 * its index in an array, and the cause; the texts of the last 16 errors of a
 * class are there. Where MPI has no codes for that (MPICH, and before MPI_Init)
 * the class is the code, and the text is printed.
 */
#ifndef MPIX_QUEUE_H_
#define MPIX_QUEUE_H_

#include "mpix_host_event.h"
#include "mpix_host_group.h"
#include "mpix_host_stream.h"
#include "mpix_mpi.h"

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
    MPIX_QUEUE_HOST        = 0, /**< A host stream of
                                     @ref MPIX_Host_stream_create */
    MPIX_QUEUE_HIP         = 1, /**< A hipStream_t; NULL is the default one */
    MPIX_QUEUE_CUDA        = 2, /**< A cudaStream_t; NULL is the default one */
    MPIX_QUEUE_GPU_MEM_OPS = 3, /**< Any of these: a type of MPI Advance's
                                     library. The lane of each message decides
                                     how it is started */
    MPIX_QUEUE_CXI         = 4  /**< The same */
};


/**
 * Create a queue on a stream. Local.
 *
 * @param [in]  type   Kind of the stream.
 * @param [in]  stream Handle of a stream of that type.
 * @param [out] queue  Filled on success only.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for an unknown type or a handle that is no
 *         stream; MPI_ERR_UNSUPPORTED_OPERATION for a type that is not built
 *         in, or if no binding can be used (@ref MPIX_Queue_get_info);
 *         MPI_ERR_OTHER if MPI was initialised with less than
 *         MPI_THREAD_FUNNELED, is not initialised, or no lane is there.
 *
 * Ownership: the caller's until @ref MPIX_Queue_free. The stream must outlive
 *            it.
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Queue_init(int type, void *stream, MPIX_Queue *queue);


/**
 * Free a queue, at any time. What is enqueued runs: uses of matched requests
 * end as they would, and the requests stay valid. Messages that are used once
 * are as MPIX_Free_queue says. The stream may be freed next. MPI_Finalize waits
 * some seconds for the queues that were freed.
 *
 * @param [in,out] queue The queue; set to MPIX_QUEUE_NULL.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Queue_free(MPIX_Queue *queue);


/**
 * Block the host until everything enqueued on the queue so far has run. What
 * waits for another rank for UCX_ST_WARN_TIME says so on the standard error
 * output, once, with what that rank has done.
 *
 * @param [in] queue The queue.
 *
 * @return MPI_SUCCESS; MPI_ERR_OTHER if an operation failed; MPI_ERR_ARG.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Queue_wait(MPIX_Queue queue);


/**
 * Match a persistent request with its counterpart and block until that is done.
 * The n-th unmatched send to (rank, tag, communicator) is paired with the n-th
 * unmatched receive of the same, for the life of both requests.
 * MPI_Request_free ends the match; while a use is in flight it returns
 * MPI_ERR_PENDING and frees nothing.
 *
 * From then on each use is started on a queue, or by the host with MPI_Start
 * and MPI_Startall, whichever way the other side does it. MPI_Wait, MPI_Test,
 * their forms for several requests and MPI_Request_get_status wait for a use,
 * or test it, however it was started, and give its status; the request is
 * active for MPI until one of them has told of its end, and may then be started
 * on any queue. A stream need not wait for a use that the host waits for; such
 * a call then counts as one for the queue. MPI_Cancel is refused.
 *
 * The datatype may be any, and freed once the request is made. If the data is
 * not contiguous the stream packs it in each start of a send and unpacks it in
 * each wait for a receive, with as much memory as the message has.
 *
 * The buffer may lie in the memory of a GPU, and is allocated by now: where the
 * card does not reach it the stream copies it by way of memory of the host.
 * There the data is contiguous, or blocks of one length, at equal distances of
 * at most 2^31-1 bytes. It is started on a stream of that GPU's runtime, or of
 * the host.
 *
 * Two ranks that each match a send, and only then their receives, block for
 * ever: give all requests to one @ref MPIX_Matchall. What has waited for
 * UCX_ST_WARN_TIME says so on the standard error output, once, with what the
 * other rank has given to match.
 *
 * The stream uses the buffer as long as a use is under way: free it after the
 * request, and the request once its uses are waited for.
 *
 * @param [in]  request Inactive request of MPI_Send_init, MPI_Rsend_init or
 *                      MPI_Recv_init, or of their forms for large counts,
 *                      where MPI has them.
 * @param [out] status  Source, tag and actual length of a receive's message
 *                      (MPI_Get_count); may be MPI_STATUS_IGNORE.
 *
 * @return MPI_SUCCESS; MPI_ERR_REQUEST for another kind of request, an active
 *         or a matched one, or one half of a message to the own process;
 *         MPI_ERR_TYPE for a datatype that MPI tells nothing about, or for
 *         other gaps in a GPU's memory; MPI_ERR_BUFFER for MPI_IN_PLACE;
 *         MPI_ERR_TAG, MPI_ERR_RANK for a wildcard; MPI_ERR_TRUNCATE, on both
 *         sides, for a send larger than its receive; MPI_ERR_NO_MEM where no
 *         lane has the resources; MPI_ERR_OTHER if the peer is gone, or has
 *         called MPI_Finalize; otherwise as @ref MPIX_Queue_init. After
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
 * @param [in]  requests The requests, each once; those that are
 *                       MPI_REQUEST_NULL are passed over.
 * @param [out] statuses One each; may be MPI_STATUSES_IGNORE.
 *
 * @return As @ref MPIX_Match; the first error, and that of each request in
 *         its status. Requests are checked first: if one may not be matched,
 *         none is, and the good ones have MPI_ERR_PENDING in their statuses.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Matchall(int count, MPI_Request requests[], MPI_Status *statuses);


/**
 * Begin to match a request and return at once. Matching goes on in all calls
 * of this library that wait and, with the binding "ucx", in those of MPI, too.
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
 * @param [in] requests The requests, each once; those that are
 *                      MPI_REQUEST_NULL are passed over.
 *
 * @return As @ref MPIX_Imatch.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Imatchall(int count, MPI_Request requests[]);


/**
 * The same as @ref MPIX_Imatch, with a request that is complete when matching
 * is done. MPI's calls that wait or test, and MPI_Request_free, work on it; it
 * cannot be cancelled.
 *
 * @param [in]  request As @ref MPIX_Match; it is to live until @a match is
 *                      complete.
 * @param [out] match   An active request, on success only.
 *
 * @return As @ref MPIX_Imatch; MPI_ERR_ARG for a NULL @a match. What is known
 *         later is raised by the call that completes @a match.
 *
 * Ownership: @a match is the caller's.
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Imatch_request(MPI_Request *request, MPI_Request *match);


/**
 * The same for several requests: one request is complete when all are matched.
 *
 * @param [in]  count    Number of requests.
 * @param [in]  requests As @ref MPIX_Imatchall; they are to live until @a match
 *                       is complete.
 * @param [out] match    As @ref MPIX_Imatch_request.
 *
 * @return As @ref MPIX_Imatch_request.
 *
 * Ownership, threads: as @ref MPIX_Imatch_request.
 */
int MPIX_Imatchall_request(int count, MPI_Request requests[],
                           MPI_Request *match);


/**
 * Tell whether a request is matched, and progress matching.
 *
 * @param [in]  request The request; or MPI_REQUEST_NULL, which counts as
 *                      matched.
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
 *         not waited for; MPI_ERR_OTHER if the queue is in error, or the buffer
 *         in memory that its stream does not copy. Nothing is enqueued on
 *         error.
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
 * @param [in] requests The requests, each once; those that are
 *                      MPI_REQUEST_NULL are passed over.
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
 * @param [in] request A started request; or MPI_REQUEST_NULL, for which there
 *                     is nothing to wait.
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
 * @param [in] requests The requests, each once; those that are
 *                      MPI_REQUEST_NULL are passed over.
 *
 * @return As @ref MPIX_Enqueue_wait_req.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Enqueue_waitall(MPIX_Queue queue, int count, MPI_Request requests[]);


/**
 * Let all processes of a communicator use the library on it. Only for programs
 * that load it after MPI_Init, as by dlopen or from Python, or where others
 * make communicators past it; else everything is attached when it is made.
 *
 * Call it once on MPI_COMM_WORLD, and then on each communicator of which
 * @ref MPIX_Match says so. Collective over the communicator.
 *
 * @param [in] comm MPI_COMM_WORLD or, after that, any other communicator.
 *
 * @return MPI_SUCCESS, also if nothing was to be done; MPI_ERR_COMM for
 *         what is no communicator, or for another one than MPI_COMM_WORLD where
 *         that was not attached; MPI_ERR_UNSUPPORTED_OPERATION if no binding
 *         can be used; MPI_ERR_OTHER if MPI is not initialised.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Queue_attach(MPI_Comm comm);


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
    uint64_t messages;     /**< Messages of MPIX_Enqueue_send and
                                MPIX_Enqueue_recv that were begun: a thread of
                                the library gives them to MPI */
    char     provider[64]; /**< libfabric provider */
    char     device[64];   /**< Device */
    uint64_t queue_messages; /**< Messages of these calls that were started on
                                  communicators that are for queues only: none
                                  of them is given to MPI */
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
 * Print all that is counted of what the process has done so far, a line in
 * words, one with "waits_for" for what streams and matches wait for (messages
 * that MPI moves: MPIX_Queue_get_info()), and one "name value" pair a line:
 * what ucp_st_worker_print_stats() prints, and the same of messages that a
 * thread of the library gave to MPI, if there are any (thread_msgs). For
 * reports; names may come and go with versions.
 *
 * @param [in] stream Where to print; nothing before the first queue.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for NULL.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Queue_print_stats(FILE *stream);


/** Lanes that @ref MPIX_Queue_info has room for. */
#define MPIX_QUEUE_MAX_LANES 8

/** How the library works in this process. Texts are empty where there is
 *  nothing to tell. */
typedef struct MPIX_Queue_info {
    char binding[16];      /**< How processes find each other: "ucx", over
                                pml/ucx, or "mpi", by MPI's own messages */
    char reason[256];      /**< Why that one, or why none */
    char mpi_library[128]; /**< The first line of MPI_Get_library_version */
    int  thread_level;     /**< Of MPI, MPI_THREAD_SINGLE and so on */
    int  num_lanes;        /**< Lanes for data, in the order of preference */
    char lanes[MPIX_QUEUE_MAX_LANES][16]; /**< Their names */
    char provider[64];     /**< libfabric provider */
    char device[64];       /**< Device */
    int  num_waits;        /**< What waits in this process now */
    char waits_for[256];   /**< The first of it, in words */
    char tier_reason[256]; /**< Why lane direct has threads, and not kernels of
                                the streams, move buffers that a GPU reaches: of
                                the last request that it was so for. How many
                                there are MPIX_Queue_print_stats() tells */
} MPIX_Queue_info;


/**
 * Query how the library works in this process. Lanes, provider and device are
 * known once the first queue was made.
 *
 * The binding is chosen in MPI_Init (or @ref MPIX_Queue_attach), and is the
 * same in all processes: "ucx" where MPI runs over pml/ucx, else "mpi". The
 * variable MPIX_QUEUE_BINDING in the environment of all processes forces one of
 * them; if that cannot be used, the first call that needs it says why. With
 * "mpi" all processes of MPI_COMM_WORLD must use this library: MPI_Init waits
 * for all others, and says so after ten seconds. Below MPI_THREAD_MULTIPLE,
 * matching with "mpi" goes on in calls of this library only.
 *
 * What waits are streams, the host, and what matches; those of a message that
 * MPI moves, once they have waited for 0.1 seconds. The text says for whom, and
 * what the other side has done: "rank 0: a queue has waited for 2.5 s: receive
 * of 4 bytes (MPI_INT) from rank 1, tag 9, ...". "ucx_st_info -p" tells all.
 *
 * @param [out] info Filled.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for NULL; MPI_ERR_OTHER if MPI is not
 *         initialised.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Queue_get_info(MPIX_Queue_info *info);


#ifdef __cplusplus
}
#endif

#include "mpix_queue_batch.h"
#include "mpix_queue_coll.h"
#include "mpix_queue_exchange.h"
#include "mpix_halo.h"

#endif
