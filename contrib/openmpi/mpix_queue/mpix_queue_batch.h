/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue_batch.h - messages on a stream that are used once: a part of
 * mpix_queue.h, which includes it. This is the interface that HPE published.
 *
 *     kernel fills the buffer
 *     MPIX_Enqueue_recv(in, n, MPI_INT, left, 1, comm, queue, &requests[0]);
 *     MPIX_Enqueue_send(out, n, MPI_INT, right, 1, comm, queue, &requests[1]);
 *     MPIX_Enqueue_start(queue);              both, when the stream gets here
 *     MPIX_Enqueue_wait(queue);               the stream waits for both
 *     kernel reads what came
 *     MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);   any time later
 *
 * They are ordinary messages of MPI, which take their place among those of
 * their communicator when the stream gets to the start: the other side may be
 * any send or receive of MPI, and a receive may have wildcards. Any datatype
 * will do. A thread of the library calls MPI for them, so that no call of the
 * application takes part. MPI must be initialised with MPI_THREAD_MULTIPLE: the
 * library asks for that, whatever the program asks for, if the program or one
 * of its libraries is linked with these calls. Where they are found by dlsym()
 * the program asks for it itself.
 *
 * Buffers may lie in the memory of a GPU, as MPIX_Match says: that thread
 * copies them, and MPI sees memory of the host.
 *
 * The requests are generalized requests of MPI. The application waits for each
 * or frees it, as for those of MPI_Isend, or it drops it, if the stream waits
 * for the message: of the requests of a process behind whose messages a wait of
 * their queues has passed, and which it has not completed, the library keeps
 * the last MPIX_QUEUE_MAX_DROPPED, and frees older ones. They cannot be
 * cancelled.
 *
 * The texts that HPE published have some calls with and without a communicator,
 * and the matched requests of this library have a start and a wait of the same
 * names. The number of arguments tells them apart: in C by macros, in C++ by
 * overloads.
 *
 *     MPIX_Create_queue(stream, &queue)          MPIX_Create_queue_stream()
 *     MPIX_Create_queue(comm, stream, &queue)    MPIX_Create_queue_comm()
 *     MPIX_Enqueue_send(..., tag, comm, queue, &request)
 *                                                MPIX_Enqueue_send_comm()
 *     MPIX_Enqueue_send(..., tag, queue, &request)
 *                                                MPIX_Enqueue_send_queue()
 *     MPIX_Enqueue_recv()                        likewise
 *     MPIX_Enqueue_start(queue)                  MPIX_Enqueue_start_batch()
 *     MPIX_Enqueue_start(queue, &request)        MPIX_Enqueue_start_req()
 *     MPIX_Enqueue_wait()                        likewise
 */
#ifndef MPIX_QUEUE_BATCH_H_
#define MPIX_QUEUE_BATCH_H_

#include "mpix_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Requests that are kept though the program may have dropped them. */
#define MPIX_QUEUE_MAX_DROPPED 16384


/**
 * Create a queue on a stream, whose kind is found out. Local. Messages that are
 * enqueued without a communicator use MPI_COMM_WORLD.
 *
 * @param [in]  stream A stream of @ref MPIX_Host_stream_create, a hipStream_t
 *                     or a cudaStream_t; NULL is the default one of the runtime
 *                     that the program has loaded.
 * @param [out] queue  Filled on success only. Everything that is done with a
 *                     queue of @ref MPIX_Queue_init can be done with it.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for a NULL @a queue or a handle that is no
 *         stream; MPI_ERR_OTHER if MPI is not initialised, or finalised;
 *         MPI_ERR_NO_MEM.
 *
 * Ownership: the caller's until @ref MPIX_Free_queue or @ref MPIX_Queue_free.
 *            The stream must outlive it.
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Create_queue_stream(void *stream, MPIX_Queue *queue);


/**
 * Create a queue on a stream, with the communicator of messages that are
 * enqueued without one.
 *
 * @param [in]  comm   The communicator. It may be freed before the queue: such
 *                     messages are refused then.
 * @param [in]  stream As @ref MPIX_Create_queue_stream.
 * @param [out] queue  As @ref MPIX_Create_queue_stream.
 *
 * @return As @ref MPIX_Create_queue_stream; MPI_ERR_COMM for MPI_COMM_NULL.
 *
 * Ownership: as @ref MPIX_Create_queue_stream.
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Create_queue_comm(MPI_Comm comm, void *stream, MPIX_Queue *queue);


/**
 * Free a queue, at any time. Messages whose start is enqueued go on, and their
 * requests stay valid; those that are not started never are, and are complete,
 * as cancelled ones. The same holds at MPI_Finalize, for which MPI's rule is
 * that all are complete: receives that have not matched are cancelled then, and
 * a start that the stream comes to later begins nothing, so that its requests
 * are never complete.
 *
 * @param [in] queue The queue.
 *
 * @return As @ref MPIX_Queue_free.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Free_queue(MPIX_Queue queue);


/**
 * Enqueue a send. It begins when the stream gets to the start that
 * @ref MPIX_Enqueue_start_batch enqueues behind it.
 *
 * @param [in]  buf      As MPI_Isend; not read before the start's place in the
 *                       stream, and not to be changed from there on until the
 *                       wait's place, or until the request is complete.
 * @param [in]  count    As MPI_Isend.
 * @param [in]  datatype As MPI_Isend; may be freed at once.
 * @param [in]  dest     As MPI_Isend; MPI_PROC_NULL is legal.
 * @param [in]  tag      As MPI_Isend.
 * @param [in]  comm     As MPI_Isend; may be freed at once.
 * @param [in]  queue    The queue.
 * @param [out] request  An active request, on success only. MPI's calls that
 *                       wait, test and free work on it. To wait before the
 *                       start was enqueued is to wait forever. Valid until one
 *                       of these has completed or freed it, or until
 *                       MPIX_QUEUE_MAX_DROPPED later ones have been waited for
 *                       by @ref MPIX_Enqueue_wait_batch and not completed.
 *
 * @return MPI_SUCCESS; MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_RANK, MPI_ERR_TAG,
 *         MPI_ERR_COMM for the arguments of that name; MPI_ERR_TYPE also for
 *         gaps in a GPU's memory that are not equal; MPI_ERR_ARG for a queue
 *         that is none, MPI_IN_PLACE or a NULL request; MPI_ERR_OTHER if MPI
 *         was initialised with less than MPI_THREAD_MULTIPLE, or a message of
 *         the queue has failed; MPI_ERR_NO_MEM. Nothing is enqueued on error.
 *
 * Ownership: the request is the caller's.
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Enqueue_send_comm(const void *buf, int count, MPI_Datatype datatype,
                           int dest, int tag, MPI_Comm comm, MPIX_Queue queue,
                           MPI_Request *request);


/**
 * Enqueue a send on the queue's communicator.
 *
 * @param [in]  buf      As @ref MPIX_Enqueue_send_comm.
 * @param [in]  count    As @ref MPIX_Enqueue_send_comm.
 * @param [in]  datatype As @ref MPIX_Enqueue_send_comm.
 * @param [in]  dest     As @ref MPIX_Enqueue_send_comm.
 * @param [in]  tag      As @ref MPIX_Enqueue_send_comm.
 * @param [in]  queue    The queue.
 * @param [out] request  As @ref MPIX_Enqueue_send_comm.
 *
 * @return As @ref MPIX_Enqueue_send_comm; MPI_ERR_COMM also if the queue's
 *         communicator was freed.
 *
 * Ownership: as @ref MPIX_Enqueue_send_comm.
 * Threads: as @ref MPIX_Enqueue_send_comm.
 */
int MPIX_Enqueue_send_queue(const void *buf, int count, MPI_Datatype datatype,
                            int dest, int tag, MPIX_Queue queue,
                            MPI_Request *request);


/**
 * Enqueue a receive. It begins when the stream gets to the start that
 * @ref MPIX_Enqueue_start_batch enqueues behind it.
 *
 * @param [out] buf      As MPI_Irecv; written between the start's place in the
 *                       stream and the wait's.
 * @param [in]  count    As MPI_Irecv.
 * @param [in]  datatype As MPI_Irecv; may be freed at once.
 * @param [in]  source   As MPI_Irecv; MPI_ANY_SOURCE and MPI_PROC_NULL are
 *                       legal.
 * @param [in]  tag      As MPI_Irecv; MPI_ANY_TAG is legal.
 * @param [in]  comm     As MPI_Irecv; may be freed at once.
 * @param [in]  queue    The queue.
 * @param [out] request  As @ref MPIX_Enqueue_send_comm; its status has the
 *                       source, the tag and the length of what came.
 *
 * @return As @ref MPIX_Enqueue_send_comm. A message that is too long is an
 *         error of the request, MPI_ERR_TRUNCATE, and of the queue. MPI_Wait
 *         and the like raise it through the communicator, and so do the calls
 *         for the queue.
 *
 * Ownership: the request is the caller's.
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Enqueue_recv_comm(void *buf, int count, MPI_Datatype datatype,
                           int source, int tag, MPI_Comm comm, MPIX_Queue queue,
                           MPI_Request *request);


/**
 * Enqueue a receive on the queue's communicator.
 *
 * @param [out] buf      As @ref MPIX_Enqueue_recv_comm.
 * @param [in]  count    As @ref MPIX_Enqueue_recv_comm.
 * @param [in]  datatype As @ref MPIX_Enqueue_recv_comm.
 * @param [in]  source   As @ref MPIX_Enqueue_recv_comm.
 * @param [in]  tag      As @ref MPIX_Enqueue_recv_comm.
 * @param [in]  queue    The queue.
 * @param [out] request  As @ref MPIX_Enqueue_recv_comm.
 *
 * @return As @ref MPIX_Enqueue_recv_comm; MPI_ERR_COMM also if the queue's
 *         communicator was freed.
 *
 * Ownership: as @ref MPIX_Enqueue_recv_comm.
 * Threads: as @ref MPIX_Enqueue_recv_comm.
 */
int MPIX_Enqueue_recv_queue(void *buf, int count, MPI_Datatype datatype,
                            int source, int tag, MPIX_Queue queue,
                            MPI_Request *request);


/**
 * Enqueue one start of all messages that were enqueued on the queue since the
 * last one: they begin in that order. Never blocks the stream.
 *
 * @param [in] queue The queue.
 *
 * @return MPI_SUCCESS, also if there are none; MPI_ERR_ARG; MPI_ERR_NO_MEM;
 *         MPI_ERR_OTHER if a message of the queue has failed. Nothing is
 *         started on error.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Enqueue_start_batch(MPIX_Queue queue);


/**
 * Enqueue the wait for all messages whose starts were enqueued on the queue
 * before: later work on the stream sees received data and may overwrite what
 * was sent. A message that failed does not hold the stream up.
 *
 * @param [in] queue The queue.
 *
 * @return MPI_SUCCESS, also if there are none; MPI_ERR_ARG; MPI_ERR_NO_MEM;
 *         MPI_ERR_OTHER if a message of the queue has failed. Nothing is
 *         enqueued on error.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a queue.
 */
int MPIX_Enqueue_wait_batch(MPIX_Queue queue);

#ifdef __cplusplus
}

extern "C++" {

static inline int MPIX_Create_queue(void *stream, MPIX_Queue *queue)
{
    return MPIX_Create_queue_stream(stream, queue);
}

static inline int MPIX_Create_queue(MPI_Comm comm, void *stream,
                                    MPIX_Queue *queue)
{
    return MPIX_Create_queue_comm(comm, stream, queue);
}

static inline int MPIX_Enqueue_send(const void *buf, int count,
                                    MPI_Datatype datatype, int dest, int tag,
                                    MPI_Comm comm, MPIX_Queue queue,
                                    MPI_Request *request)
{
    return MPIX_Enqueue_send_comm(buf, count, datatype, dest, tag, comm, queue,
                                  request);
}

static inline int MPIX_Enqueue_send(const void *buf, int count,
                                    MPI_Datatype datatype, int dest, int tag,
                                    MPIX_Queue queue, MPI_Request *request)
{
    return MPIX_Enqueue_send_queue(buf, count, datatype, dest, tag, queue,
                                   request);
}

static inline int MPIX_Enqueue_recv(void *buf, int count, MPI_Datatype datatype,
                                    int source, int tag, MPI_Comm comm,
                                    MPIX_Queue queue, MPI_Request *request)
{
    return MPIX_Enqueue_recv_comm(buf, count, datatype, source, tag, comm,
                                  queue, request);
}

static inline int MPIX_Enqueue_recv(void *buf, int count, MPI_Datatype datatype,
                                    int source, int tag, MPIX_Queue queue,
                                    MPI_Request *request)
{
    return MPIX_Enqueue_recv_queue(buf, count, datatype, source, tag, queue,
                                   request);
}

static inline int MPIX_Enqueue_start(MPIX_Queue queue)
{
    return MPIX_Enqueue_start_batch(queue);
}

static inline int MPIX_Enqueue_start(MPIX_Queue queue, MPI_Request *request)
{
    return MPIX_Enqueue_start_req(queue, request);
}

static inline int MPIX_Enqueue_wait(MPIX_Queue queue)
{
    return MPIX_Enqueue_wait_batch(queue);
}

static inline int MPIX_Enqueue_wait(MPIX_Queue queue, MPI_Request *request)
{
    return MPIX_Enqueue_wait_req(queue, request);
}

}

#else

/* The third, fourth or ninth argument. A list with commas in braces, as of a
 * compound literal, needs parentheses around it. */
#define MPIX_ARG_3_(_1, _2, _3, ...) _3
#define MPIX_ARG_4_(_1, _2, _3, _4, ...) _4
#define MPIX_ARG_9_(_1, _2, _3, _4, _5, _6, _7, _8, _9, ...) _9

#define MPIX_Create_queue(...) \
    MPIX_ARG_4_(__VA_ARGS__, MPIX_Create_queue_comm, \
                MPIX_Create_queue_stream, 0)(__VA_ARGS__)

#define MPIX_Enqueue_send(...) \
    MPIX_ARG_9_(__VA_ARGS__, MPIX_Enqueue_send_comm, MPIX_Enqueue_send_queue, \
                0)(__VA_ARGS__)

#define MPIX_Enqueue_recv(...) \
    MPIX_ARG_9_(__VA_ARGS__, MPIX_Enqueue_recv_comm, MPIX_Enqueue_recv_queue, \
                0)(__VA_ARGS__)

#define MPIX_Enqueue_start(...) \
    MPIX_ARG_3_(__VA_ARGS__, MPIX_Enqueue_start_req, MPIX_Enqueue_start_batch, \
                0)(__VA_ARGS__)

#define MPIX_Enqueue_wait(...) \
    MPIX_ARG_3_(__VA_ARGS__, MPIX_Enqueue_wait_req, MPIX_Enqueue_wait_batch, \
                0)(__VA_ARGS__)

#endif

#endif
