/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream-triggering.h - the interface of MPI Advance's stream-triggering
 * library, version 0.7, on top of mpix_queue.h: programs for that library build
 * with this header and -lmpix_queue, and run unchanged.
 *
 * What ends the program by an exception there is an error here: one of the
 * codes below, with a line on stderr, or MPI's code of a call that failed,
 * which is raised through MPI's error handlers.
 */
#ifndef MPIX_COMPAT_STREAM_TRIGGERING_H_
#define MPIX_COMPAT_STREAM_TRIGGERING_H_

#include <mpix_mpi.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A queue of stream-triggered messages. */
typedef uintptr_t MPIS_Queue;

/** A message, or the match of one. */
typedef struct MPIS_Request_struct *MPIS_Request;

/** No queue. */
#define MPIS_QUEUE_NULL ((MPIS_Queue)0)

/** No request. */
#define MPIS_REQUEST_NULL ((MPIS_Request)0)


/** Codes. */
enum {
    MPIS_SUCCESS               = 0,
    MPIS_NOT_READY             = -1,
    MPIS_INVALID_REQUEST_STATE = -2,
    MPIS_UNSUPPORTED_BEHAVIOR  = -3
};


/** How a queue is driven. */
typedef enum MPIS_Queue_type {
    THREAD      = 0, /**< By a thread */
    GPU_MEM_OPS = 3, /**< By memory operations of a GPU's stream */
#ifndef MPIX_COMPAT_MPI_QUEUE_PAPER_H_
    CXI         = 4  /**< By a NIC that a GPU's stream triggers */
#endif
} MPIS_Queue_type;

typedef MPIS_Queue_type MPS_Queue_type;


/** Print a greeting. */
void MPIS_Hello_world(void);


/**
 * Create a queue.
 *
 * @param [out] queue  Filled on success only.
 * @param [in]  type   How it is driven. The lane of each message decides here;
 *                     each type works with each kind of stream.
 * @param [in]  stream Place of a hipStream_t, a cudaStream_t or a handle of
 *                     @ref MPIX_Host_stream_create. For THREAD it may be NULL,
 *                     or the handle may: the queue has a host stream of its own
 *                     then. Else NULL is the default stream of the runtime that
 *                     the program has loaded.
 *
 * @return MPIS_SUCCESS; MPIS_UNSUPPORTED_BEHAVIOR, with a line that tells why,
 *         for what is no stream; otherwise as @ref MPIX_Queue_init.
 */
int MPIS_Queue_init(MPIS_Queue *queue, MPIS_Queue_type type, void *stream);


/**
 * Free a queue.
 *
 * @param [in,out] queue The queue; set to MPIS_QUEUE_NULL.
 *
 * @return As @ref MPIX_Queue_free.
 */
int MPIS_Queue_free(MPIS_Queue *queue);


/**
 * Block the host until everything enqueued so far has run.
 *
 * @param [in] queue The queue.
 *
 * @return As @ref MPIX_Queue_wait.
 */
int MPIS_Queue_wait(MPIS_Queue queue);


/**
 * Enqueue the start of a matched request.
 *
 * @param [in] queue   The queue.
 * @param [in] request The request.
 *
 * @return MPIS_INVALID_REQUEST_STATE if it was not given to match; otherwise as
 *         @ref MPIX_Enqueue_start_req.
 */
int MPIS_Enqueue_start(MPIS_Queue queue, MPIS_Request *request);


/**
 * Enqueue the start of several matched requests: all or none.
 *
 * @param [in] queue    The queue.
 * @param [in] count    Number of requests.
 * @param [in] requests The requests, each once.
 *
 * @return As @ref MPIS_Enqueue_start.
 */
int MPIS_Enqueue_startall(MPIS_Queue queue, int count, MPIS_Request requests[]);


/**
 * Enqueue the wait for all that was started on the queue since the last wait.
 *
 * @param [in] queue The queue.
 *
 * @return As @ref MPIX_Enqueue_waitall.
 */
int MPIS_Enqueue_waitall(MPIS_Queue queue);


/**
 * Match a request with its counterpart and block until that is done.
 *
 * @param [in]  request The request.
 * @param [out] status  As @ref MPIX_Match.
 *
 * @return MPIS_INVALID_REQUEST_STATE if it was given to match before, or is
 *         none; otherwise as @ref MPIX_Match.
 */
int MPIS_Match(MPIS_Request *request, MPI_Status *status);


/**
 * Match several requests and block until all are done.
 *
 * @param [in]  count    Number of requests.
 * @param [in]  requests The requests, each once.
 * @param [out] statuses As @ref MPIX_Matchall.
 *
 * @return As @ref MPIS_Match; requests are checked first.
 */
int MPIS_Matchall(int count, MPIS_Request requests[], MPI_Status statuses[]);


/**
 * Begin to match a request and return at once.
 *
 * @param [in]  request The request.
 * @param [out] match   Filled with a request for @ref MPIS_Wait, which ends
 *                      it; MPIS_REQUEST_NULL if matching cannot begin.
 *
 * @return As @ref MPIS_Match.
 */
int MPIS_Imatch(MPIS_Request *request, MPIS_Request *match);


/**
 * Tell whether a request is matched, and progress matching.
 *
 * @param [in]  request The request.
 * @param [out] matched 1 if it is matched, else 0.
 *
 * @return MPIS_SUCCESS, also for a request that was not given to match; or the
 *         error with which matching ended.
 */
int MPIS_Is_matched(MPIS_Request *request, int *matched);


/**
 * The same as @ref MPIS_Match: a match is not bound to a queue here.
 *
 * @param [in]  queue   A queue.
 * @param [in]  request The request.
 * @param [out] status  As @ref MPIX_Match.
 *
 * @return As @ref MPIS_Match; MPI_ERR_ARG if @a queue is none.
 */
int MPIS_Queue_match(MPIS_Queue queue, MPIS_Request *request,
                     MPI_Status *status);


/**
 * Free a request of any kind.
 *
 * @param [in,out] request The request; set to MPIS_REQUEST_NULL.
 *
 * @return MPIS_SUCCESS, also for MPIS_REQUEST_NULL; otherwise as
 *         MPI_Request_free.
 */
int MPIS_Request_free(MPIS_Request *request);


/**
 * Free several requests.
 *
 * @param [in]     count    Number of requests.
 * @param [in,out] requests The requests; set to MPIS_REQUEST_NULL.
 *
 * @return As @ref MPIS_Request_free; the first error, with which it stops.
 */
int MPIS_Request_freeall(int count, MPIS_Request requests[]);


/**
 * Block until a match that @ref MPIS_Imatch has begun is done.
 *
 * @param [in,out] request The match's request; set to MPIS_REQUEST_NULL.
 * @param [out]    status  As @ref MPIX_Match.
 *
 * @return MPIS_SUCCESS, also for MPIS_REQUEST_NULL; MPIS_UNSUPPORTED_BEHAVIOR
 *         for the request of a message; or the error with which matching ended.
 */
int MPIS_Wait(MPIS_Request *request, MPI_Status *status);


/**
 * Block until several matches are done.
 *
 * @param [in]     count    Number of requests.
 * @param [in,out] requests The matches' requests; set to MPIS_REQUEST_NULL.
 * @param [out]    statuses As @ref MPIX_Matchall.
 *
 * @return As @ref MPIS_Wait; the first error.
 */
int MPIS_Waitall(int count, MPIS_Request requests[], MPI_Status statuses[]);


/**
 * Make a request for a send that is started on queues.
 *
 * @param [in]  buf      As MPI_Send_init.
 * @param [in]  count    Number of elements, of any size.
 * @param [in]  datatype As MPI_Send_init.
 * @param [in]  dest     As MPI_Send_init.
 * @param [in]  tag      As MPI_Send_init.
 * @param [in]  comm     As MPI_Send_init.
 * @param [in]  info     Not used.
 * @param [out] request  Filled on success only.
 *
 * @return As MPI_Send_init.
 */
int MPIS_Send_init(const void *buf, MPI_Count count, MPI_Datatype datatype,
                   int dest, int tag, MPI_Comm comm, MPI_Info info,
                   MPIS_Request *request);


/**
 * Make a request for a ready send.
 *
 * @param [in]  buf      As @ref MPIS_Send_init.
 * @param [in]  count    As @ref MPIS_Send_init.
 * @param [in]  datatype As @ref MPIS_Send_init.
 * @param [in]  dest     As @ref MPIS_Send_init.
 * @param [in]  tag      As @ref MPIS_Send_init.
 * @param [in]  comm     As @ref MPIS_Send_init.
 * @param [in]  info     Not used.
 * @param [out] request  Filled on success only.
 *
 * @return As MPI_Rsend_init.
 */
int MPIS_Rsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype,
                    int dest, int tag, MPI_Comm comm, MPI_Info info,
                    MPIS_Request *request);


/**
 * Make a request for a receive.
 *
 * @param [out] buf      As MPI_Recv_init.
 * @param [in]  count    Number of elements, of any size.
 * @param [in]  datatype As MPI_Recv_init.
 * @param [in]  source   As MPI_Recv_init.
 * @param [in]  tag      As MPI_Recv_init.
 * @param [in]  comm     As MPI_Recv_init.
 * @param [in]  info     Not used.
 * @param [out] request  Filled on success only.
 *
 * @return As MPI_Recv_init.
 */
int MPIS_Recv_init(void *buf, MPI_Count count, MPI_Datatype datatype,
                   int source, int tag, MPI_Comm comm, MPI_Info info,
                   MPIS_Request *request);


/**
 * Make a request for a barrier.
 *
 * @param [in]  comm    The communicator.
 * @param [in]  info    As MPIX_Barrier_init.
 * @param [out] request Filled on success only.
 *
 * @return As MPIX_Barrier_init.
 */
int MPIS_Barrier_init(MPI_Comm comm, MPI_Info info, MPIS_Request *request);


/**
 * Make a request for a reduction whose result all ranks get.
 *
 * @param [in]  sendbuf  As MPI_Allreduce.
 * @param [out] recvbuf  As MPI_Allreduce.
 * @param [in]  count    As MPI_Allreduce.
 * @param [in]  datatype As MPI_Allreduce.
 * @param [in]  op       As MPI_Allreduce.
 * @param [in]  comm     As MPI_Allreduce.
 * @param [in]  info     As MPIX_Allreduce_init.
 * @param [out] request  Filled on success only.
 *
 * @return As MPIX_Allreduce_init.
 */
int MPIS_Allreduce_init(const void *sendbuf, void *recvbuf, int count,
                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                        MPI_Info info, MPIS_Request *request);


/**
 * Allocate memory.
 *
 * @param [in]  size    Bytes.
 * @param [in]  info    Its key mpi_memory_alloc_kinds tells the kind of memory:
 *                      "system", which is the default, or "mpi"; "rocm:device",
 *                      "rocm:device:coarse", "rocm:device:fine" or
 *                      "cuda:device" of the thread's current device.
 * @param [out] baseptr Filled on success only.
 *
 * @return MPIS_SUCCESS; MPIS_UNSUPPORTED_BEHAVIOR, with a line that tells why,
 *         for another kind, or where the runtime is missing; otherwise as
 *         MPI_Alloc_mem.
 */
int MPIS_Alloc_mem(MPI_Aint size, MPI_Info info, void **baseptr);


/**
 * Free memory of @ref MPIS_Alloc_mem.
 *
 * @param [in] base The memory.
 *
 * @return As MPI_Free_mem.
 */
int MPIS_Free_mem(void *base);

#ifdef __cplusplus
}
#endif

#endif
