/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_queue_paper.h - the calls of "CPU-free two-sided MPI" (Bridges and
 * others, 2026), which proposes them for MPI itself: MPI_ in front of what has
 * MPIX_ in mpix_queue.h.
 *
 * Where the paper's tables and figures differ from mpix_queue.h both forms are
 * here: the types or the number of arguments tell them apart, in C by macros,
 * in C++ by overloads.
 *
 *     MPI_Queue_init(type, stream, &queue)      as MPIX_Queue_init
 *     MPI_Queue_init(&queue, CXI, &stream)      with the place of the stream's
 *                                               handle
 *     MPI_Imatch(&request)                      MPI_Is_matched tells when
 *     MPI_Imatch(&request, &match)              match is complete then
 *     MPI_Imatchall(n, requests)                likewise
 *     MPI_Imatchall(n, requests, &match)
 *     MPI_Enqueue_waitall(queue, n, requests)
 *     MPI_Enqueue_waitall(queue)                for all that was started by the
 *                                               calls of this header and not
 *                                               waited for
 *
 * Figure 2 has MPI_Matchall without a number of requests, which cannot be: it
 * takes number, requests and statuses.
 */
#ifndef MPIX_COMPAT_MPI_QUEUE_PAPER_H_
#define MPIX_COMPAT_MPI_QUEUE_PAPER_H_

#include <mpix_queue.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MPI_Queue      MPIX_Queue
#define MPI_QUEUE_NULL MPIX_QUEUE_NULL

#ifndef MPIX_COMPAT_STREAM_TRIGGERING_H_
/** A type of queue. */
enum {
    CXI = MPIX_QUEUE_CXI /**< As MPIX_QUEUE_CXI */
};
#endif

#define MPI_Queue_free MPIX_Queue_free
#define MPI_Queue_wait MPIX_Queue_wait

#define MPI_Match      MPIX_Match
#define MPI_Matchall   MPIX_Matchall
#define MPI_Is_matched MPIX_Is_matched

#define MPI_Enqueue_start    MPIX_Paper_enqueue_start
#define MPI_Enqueue_startall MPIX_Paper_enqueue_startall
#define MPI_Enqueue_wait     MPIX_Paper_enqueue_wait


/**
 * Create a queue, with the arguments in the order of the paper's figure 2.
 *
 * @param [out] queue  As @ref MPIX_Queue_init.
 * @param [in]  type   As @ref MPIX_Queue_init.
 * @param [in]  stream Place of the stream's handle.
 *
 * @return As @ref MPIX_Queue_init; MPI_ERR_ARG for NULL.
 *
 * Ownership, threads: as @ref MPIX_Queue_init.
 */
int MPIX_Paper_queue_init(MPIX_Queue *queue, int type, void *stream);


/**
 * Enqueue the start of a request, or of several, as @ref MPIX_Enqueue_startall,
 * and remember them for MPI_Enqueue_waitall(queue).
 *
 * @param [in] queue    The queue.
 * @param [in] request  As @ref MPIX_Enqueue_start_req.
 * @param [in] count    Number of requests.
 * @param [in] requests As @ref MPIX_Enqueue_startall.
 *
 * @return As @ref MPIX_Enqueue_startall; MPI_ERR_NO_MEM.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Paper_enqueue_start(MPIX_Queue queue, MPI_Request *request);
int MPIX_Paper_enqueue_startall(MPIX_Queue queue, int count,
                                MPI_Request requests[]);


/**
 * Enqueue the wait for a request, or for several, as
 * @ref MPIX_Enqueue_waitall.
 *
 * @param [in] queue    The queue.
 * @param [in] request  As @ref MPIX_Enqueue_wait_req.
 * @param [in] count    Number of requests.
 * @param [in] requests As @ref MPIX_Enqueue_waitall.
 *
 * @return As @ref MPIX_Enqueue_waitall.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Paper_enqueue_wait(MPIX_Queue queue, MPI_Request *request);
int MPIX_Paper_enqueue_waitall(MPIX_Queue queue, int count,
                               MPI_Request requests[]);


/**
 * Enqueue the wait for all requests that were started on the queue by
 * MPI_Enqueue_start and MPI_Enqueue_startall, and not waited for by
 * MPI_Enqueue_wait and MPI_Enqueue_waitall. They must not be freed before.
 *
 * @param [in] queue The queue.
 *
 * @return As @ref MPIX_Enqueue_waitall, also if there are none.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Paper_enqueue_waitall_queue(MPIX_Queue queue);

#ifdef __cplusplus
}

extern "C++" {

static inline int MPI_Queue_init(int type, void *stream, MPIX_Queue *queue)
{
    return MPIX_Queue_init(type, stream, queue);
}

static inline int MPI_Queue_init(MPIX_Queue *queue, int type, void *stream)
{
    return MPIX_Paper_queue_init(queue, type, stream);
}

static inline int MPI_Imatch(MPI_Request *request)
{
    return MPIX_Imatch(request);
}

static inline int MPI_Imatch(MPI_Request *request, MPI_Request *match)
{
    return MPIX_Imatch_request(request, match);
}

static inline int MPI_Imatchall(int count, MPI_Request *requests)
{
    return MPIX_Imatchall(count, requests);
}

static inline int MPI_Imatchall(int count, MPI_Request *requests,
                                MPI_Request *match)
{
    return MPIX_Imatchall_request(count, requests, match);
}

static inline int MPI_Enqueue_waitall(MPIX_Queue queue, int count,
                                      MPI_Request *requests)
{
    return MPIX_Paper_enqueue_waitall(queue, count, requests);
}

static inline int MPI_Enqueue_waitall(MPIX_Queue queue)
{
    return MPIX_Paper_enqueue_waitall_queue(queue);
}

}

#else

#define MPI_Queue_init(_first, _second, _third) \
    _Generic((_first), MPIX_Queue*: MPIX_Paper_queue_init, \
             default: MPIX_Queue_init)(_first, _second, _third)

#define MPI_Imatch(...) \
    MPIX_ARG_3_(__VA_ARGS__, MPIX_Imatch_request, MPIX_Imatch, 0)(__VA_ARGS__)

#define MPI_Imatchall(...) \
    MPIX_ARG_4_(__VA_ARGS__, MPIX_Imatchall_request, MPIX_Imatchall, \
                0)(__VA_ARGS__)

#define MPI_Enqueue_waitall(...) \
    MPIX_ARG_4_(__VA_ARGS__, MPIX_Paper_enqueue_waitall, 0, \
                MPIX_Paper_enqueue_waitall_queue, 0)(__VA_ARGS__)

#endif

#endif
