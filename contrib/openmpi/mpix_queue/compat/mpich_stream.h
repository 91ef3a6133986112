/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpich_stream.h - MPICH's calls for streams (MPICH 4.2), on top of
 * mpix_queue.h: programs for them build with this header and -lmpix_queue, and
 * run unchanged over any MPI that the library knows.
 *
 *     MPI_Info_set(info, "type", "cudaStream_t");
 *     MPIX_Info_set_hex(info, "value", &cuda_stream, sizeof(cuda_stream));
 *     MPIX_Stream_create(info, &stream);
 *     MPIX_Stream_comm_create(MPI_COMM_WORLD, stream, &comm);
 *     kernel fills the buffer
 *     MPIX_Irecv_enqueue(in, n, MPI_INT, left, 1, comm, &requests[0]);
 *     MPIX_Isend_enqueue(out, n, MPI_INT, right, 1, comm, &requests[1]);
 *     MPIX_Waitall_enqueue(2, requests, MPI_STATUSES_IGNORE);
 *     kernel reads what came
 *
 * All calls whose names end in enqueue return at once: the stream does the
 * rest, in its order. The messages are those of mpix_queue_batch.h: ordinary
 * messages of MPI, which a thread of the library begins when the stream gets to
 * them, or messages without such a thread where the communicator says that it
 * is for queues only (docs/mpi.md). Of these a blocking send ends only when the
 * receiver's stream has come to the receive. What is said there of buffers in a
 * GPU's memory, of MPI_THREAD_MULTIPLE, and of errors holds here: a message
 * that fails is told by the next call for its stream.
 *
 * The names below stand for functions of this library, so that they do not meet
 * those of an MPI that has such calls. Those that end in enqueue are declared
 * and are no macros: a program may have macros of these names around them.
 */
#ifndef MPIX_COMPAT_MPICH_STREAM_H_
#define MPIX_COMPAT_MPICH_STREAM_H_

#include <mpix_mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#undef MPIX_STREAM_NULL

#define MPIX_Stream MPIX_Mpich_stream
#define MPIX_STREAM_NULL ((MPIX_Mpich_stream)0)

#define MPIX_Info_set_hex MPIX_Mpich_info_set_hex
#define MPIX_Stream_create MPIX_Mpich_stream_create
#define MPIX_Stream_free MPIX_Mpich_stream_free
#define MPIX_Stream_comm_create MPIX_Mpich_stream_comm_create
#define MPIX_Stream_comm_create_multiplex MPIX_Mpich_stream_comm_create_multi
#define MPIX_Comm_get_stream MPIX_Mpich_comm_get_stream
#define MPIX_Stream_progress MPIX_Mpich_stream_progress
#define MPIX_Start_progress_thread MPIX_Mpich_start_progress_thread
#define MPIX_Stop_progress_thread MPIX_Mpich_stop_progress_thread


/** A stream. */
typedef struct mpix_mpich_stream *MPIX_Mpich_stream;


/**
 * Set a value of an info object to bytes, as hexadecimal digits.
 *
 * @param [in] info       The object.
 * @param [in] key        The key.
 * @param [in] value      The bytes.
 * @param [in] value_size How many; (MPI_MAX_INFO_VAL - 1) / 2 at most.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for a NULL @a value or a size that is
 *         negative or too large; as MPI_Info_set.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Mpich_info_set_hex(MPI_Info info, const char *key, const void *value,
                            int value_size);


/**
 * Create a stream. Local.
 *
 * @param [in]  info   MPI_INFO_NULL, or without a "type": a stream that no call
 *                     is enqueued on. Else "type" is "cudaStream_t",
 *                     "hipStream_t" or "MPIX_Host_stream", and "value" a stream
 *                     of that type, a pointer, as MPIX_Info_set_hex writes it:
 *                     for the last one a handle of
 *                     @ref MPIX_Host_stream_create. The null stream of a
 *                     runtime is legal.
 * @param [out] stream Filled on success only.
 *
 * @return MPI_SUCCESS; MPI_ERR_INFO_VALUE for a type that is unknown, and a
 *         value that is missing, no number of a pointer's length or no stream
 *         of that type; MPI_ERR_ARG for a NULL @a stream; MPI_ERR_NO_MEM;
 *         MPI_ERR_OTHER if MPI is not initialised, or finalised; an error of
 *         @ref MPIX_Create_queue_stream.
 *
 * Ownership: the caller's until MPIX_Stream_free; the runtime's stream must
 *            outlive it, and the communicators that have it.
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Mpich_stream_create(MPI_Info info, MPIX_Mpich_stream *stream);


/**
 * Free a stream. What is enqueued goes on. It goes once no communicator has it
 * any more.
 *
 * @param [in,out] stream The stream; set to MPIX_STREAM_NULL.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for what is no stream.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Mpich_stream_free(MPIX_Mpich_stream *stream);


/**
 * Create a communicator that has a stream of each process. Collective. It is a
 * duplicate, on which all of MPI works as on another one; MPI_Comm_dup's
 * duplicates of it have the stream, too.
 *
 * @param [in]  comm    The communicator.
 * @param [in]  stream  The own one; MPIX_STREAM_NULL is legal.
 * @param [out] newcomm Filled on success only.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for what is no stream, and for a NULL
 *         @a newcomm; as MPI_Comm_dup.
 *
 * Ownership: the caller's until MPI_Comm_free.
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Mpich_stream_comm_create(MPI_Comm comm, MPIX_Mpich_stream stream,
                                  MPI_Comm *newcomm);


/**
 * The same with several streams, on which no call is enqueued.
 *
 * @param [in]  comm             The communicator.
 * @param [in]  count            How many; 0 stands for one MPIX_STREAM_NULL.
 * @param [in]  array_of_streams The own ones.
 * @param [out] newcomm          Filled on success only.
 *
 * @return As MPIX_Stream_comm_create; MPI_ERR_COUNT for a negative @a count.
 *
 * Ownership, threads: as MPIX_Stream_comm_create.
 */
int MPIX_Mpich_stream_comm_create_multi(MPI_Comm comm, int count,
                                        MPIX_Mpich_stream array_of_streams[],
                                        MPI_Comm *newcomm);


/**
 * Tell which stream of this process a communicator has.
 *
 * @param [in]  comm   The communicator.
 * @param [in]  idx    Which one, from 0.
 * @param [out] stream The stream; MPIX_STREAM_NULL if there is no such one.
 *
 * @return MPI_SUCCESS; MPI_ERR_COMM; MPI_ERR_ARG for a NULL @a stream.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Mpich_comm_get_stream(MPI_Comm comm, int idx,
                               MPIX_Mpich_stream *stream);


/**
 * Have MPI and the library look after what is under way. Nothing needs it.
 *
 * @param [in] stream The stream; MPIX_STREAM_NULL is legal.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for what is no stream; an error of MPI.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Mpich_stream_progress(MPIX_Mpich_stream stream);


/**
 * Have a thread look after a stream, or no longer. The library has such a
 * thread in any case: no effect.
 *
 * @param [in] stream The stream; MPIX_STREAM_NULL is legal.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG for what is no stream.
 *
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Mpich_start_progress_thread(MPIX_Mpich_stream stream);
int MPIX_Mpich_stop_progress_thread(MPIX_Mpich_stream stream);


/**
 * Enqueue a send, and have the stream wait until its buffer may be reused.
 *
 * @param [in] buf      As MPI_Send; read when the stream gets to the call.
 * @param [in] count    As MPI_Send.
 * @param [in] datatype As MPI_Send; may be freed at once.
 * @param [in] dest     As MPI_Send.
 * @param [in] tag      As MPI_Send.
 * @param [in] comm     One of MPIX_Stream_comm_create; may be freed at once.
 *
 * @return As @ref MPIX_Enqueue_send_comm; MPI_ERR_COMM also for a communicator
 *         without a stream that calls are enqueued on.
 *
 * Threads: MPI's rule for the calling thread; one at a time on a stream.
 */
int MPIX_Mpich_send_enqueue(const void *buf, int count, MPI_Datatype datatype,
                            int dest, int tag, MPI_Comm comm);
int MPIX_Mpich_send_enqueue_c(const void *buf, MPI_Count count,
                              MPI_Datatype datatype, int dest, int tag,
                              MPI_Comm comm);


/**
 * Enqueue a receive, and have the stream wait for it.
 *
 * @param [out] buf      As MPI_Recv; written when the stream gets to the call.
 * @param [in]  count    As MPI_Recv.
 * @param [in]  datatype As MPI_Recv; may be freed at once.
 * @param [in]  source   As MPI_Recv.
 * @param [in]  tag      As MPI_Recv.
 * @param [in]  comm     As MPIX_Send_enqueue.
 * @param [out] status   Filled before the stream passes the call; it must live
 *                       until then. MPI_STATUS_IGNORE is legal.
 *
 * @return As MPIX_Send_enqueue.
 *
 * Threads: as MPIX_Send_enqueue.
 */
int MPIX_Mpich_recv_enqueue(void *buf, int count, MPI_Datatype datatype,
                            int source, int tag, MPI_Comm comm,
                            MPI_Status *status);
int MPIX_Mpich_recv_enqueue_c(void *buf, MPI_Count count, MPI_Datatype datatype,
                              int source, int tag, MPI_Comm comm,
                              MPI_Status *status);


/**
 * Enqueue a send for which the stream does not wait.
 *
 * @param [in]  buf      As MPIX_Send_enqueue; not to be changed until the
 *                       stream has passed a wait for the request.
 * @param [in]  count    As MPI_Isend.
 * @param [in]  datatype As MPI_Isend; may be freed at once.
 * @param [in]  dest     As MPI_Isend.
 * @param [in]  tag      As MPI_Isend.
 * @param [in]  comm     As MPIX_Send_enqueue.
 * @param [out] request  Filled on success only. For MPIX_Wait_enqueue and
 *                       MPIX_Waitall_enqueue; MPI's calls that wait and test
 *                       work on it, too.
 *
 * @return As MPIX_Send_enqueue.
 *
 * Ownership: the request is the caller's.
 * Threads: as MPIX_Send_enqueue.
 */
int MPIX_Mpich_isend_enqueue(const void *buf, int count, MPI_Datatype datatype,
                             int dest, int tag, MPI_Comm comm,
                             MPI_Request *request);
int MPIX_Mpich_isend_enqueue_c(const void *buf, MPI_Count count,
                               MPI_Datatype datatype, int dest, int tag,
                               MPI_Comm comm, MPI_Request *request);


/**
 * Enqueue a receive for which the stream does not wait.
 *
 * @param [out] buf      As MPIX_Recv_enqueue.
 * @param [in]  count    As MPI_Irecv.
 * @param [in]  datatype As MPI_Irecv; may be freed at once.
 * @param [in]  source   As MPI_Irecv.
 * @param [in]  tag      As MPI_Irecv.
 * @param [in]  comm     As MPIX_Send_enqueue.
 * @param [out] request  As MPIX_Isend_enqueue.
 *
 * @return As MPIX_Send_enqueue.
 *
 * Ownership: the request is the caller's.
 * Threads: as MPIX_Send_enqueue.
 */
int MPIX_Mpich_irecv_enqueue(void *buf, int count, MPI_Datatype datatype,
                             int source, int tag, MPI_Comm comm,
                             MPI_Request *request);
int MPIX_Mpich_irecv_enqueue_c(void *buf, MPI_Count count,
                               MPI_Datatype datatype, int source, int tag,
                               MPI_Comm comm, MPI_Request *request);


/**
 * Have the stream of a request wait for it, and for no other one.
 *
 * @param [in,out] request Of MPIX_Isend_enqueue or MPIX_Irecv_enqueue; set to
 *                         MPI_REQUEST_NULL, which is legal, too: it has the
 *                         empty status.
 * @param [out]    status  As MPIX_Recv_enqueue.
 *
 * @return MPI_SUCCESS; MPI_ERR_REQUEST for another request, or one whose stream
 *         is gone; MPI_ERR_OTHER if a message of the stream has failed;
 *         MPI_ERR_ARG; MPI_ERR_NO_MEM. Nothing is enqueued on error.
 *
 * Threads: as MPIX_Send_enqueue.
 */
int MPIX_Mpich_wait_enqueue(MPI_Request *request, MPI_Status *status);


/**
 * The same for several requests, which are of one stream.
 *
 * @param [in]     count             How many; 0 is legal.
 * @param [in,out] array_of_requests As MPIX_Wait_enqueue.
 * @param [out]    array_of_statuses As MPIX_Recv_enqueue; MPI_STATUSES_IGNORE
 *                                   is legal.
 *
 * @return As MPIX_Wait_enqueue; MPI_ERR_COUNT for a negative @a count;
 *         MPI_ERR_REQUEST also for requests of several streams.
 *
 * Threads: as MPIX_Send_enqueue.
 */
int MPIX_Mpich_waitall_enqueue(int count, MPI_Request array_of_requests[],
                               MPI_Status array_of_statuses[]);


/**
 * Enqueue an allreduce, and have the stream wait for it. A thread of the
 * library calls MPI for it on every communicator. What MPI finds wrong with the
 * arguments it tells that thread, and the communicator's error handler.
 *
 * @param [in]  sendbuf  As MPI_Allreduce; MPI_IN_PLACE is legal.
 * @param [out] recvbuf  As MPI_Allreduce.
 * @param [in]  count    As MPI_Allreduce.
 * @param [in]  datatype As MPI_Allreduce; may be freed at once.
 * @param [in]  op       As MPI_Allreduce; must live until the stream has
 *                       passed.
 * @param [in]  comm     As MPIX_Send_enqueue, but must live as long.
 *
 * @return As MPIX_Send_enqueue; MPI_ERR_OP for MPI_OP_NULL.
 *
 * Threads: as MPIX_Send_enqueue.
 */
int MPIX_Mpich_allreduce_enqueue(const void *sendbuf, void *recvbuf, int count,
                                 MPI_Datatype datatype, MPI_Op op,
                                 MPI_Comm comm);
int MPIX_Mpich_allreduce_enqueue_c(const void *sendbuf, void *recvbuf,
                                   MPI_Count count, MPI_Datatype datatype,
                                   MPI_Op op, MPI_Comm comm);


/* MPICH's name of a function of this library. */
#define MPIX_MPICH_CALL(_name, _function) \
    extern __typeof__(_function) _name __asm__(#_function)

MPIX_MPICH_CALL(MPIX_Send_enqueue, MPIX_Mpich_send_enqueue);
MPIX_MPICH_CALL(MPIX_Send_enqueue_c, MPIX_Mpich_send_enqueue_c);
MPIX_MPICH_CALL(MPIX_Recv_enqueue, MPIX_Mpich_recv_enqueue);
MPIX_MPICH_CALL(MPIX_Recv_enqueue_c, MPIX_Mpich_recv_enqueue_c);
MPIX_MPICH_CALL(MPIX_Isend_enqueue, MPIX_Mpich_isend_enqueue);
MPIX_MPICH_CALL(MPIX_Isend_enqueue_c, MPIX_Mpich_isend_enqueue_c);
MPIX_MPICH_CALL(MPIX_Irecv_enqueue, MPIX_Mpich_irecv_enqueue);
MPIX_MPICH_CALL(MPIX_Irecv_enqueue_c, MPIX_Mpich_irecv_enqueue_c);
MPIX_MPICH_CALL(MPIX_Wait_enqueue, MPIX_Mpich_wait_enqueue);
MPIX_MPICH_CALL(MPIX_Waitall_enqueue, MPIX_Mpich_waitall_enqueue);
MPIX_MPICH_CALL(MPIX_Allreduce_enqueue, MPIX_Mpich_allreduce_enqueue);
MPIX_MPICH_CALL(MPIX_Allreduce_enqueue_c, MPIX_Mpich_allreduce_enqueue_c);

#undef MPIX_MPICH_CALL

#ifdef __cplusplus
}
#endif

#endif
