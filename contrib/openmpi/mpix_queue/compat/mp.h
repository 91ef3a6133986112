/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mp.h - the calls of LibMP 2.0 (NVIDIA's GPUDirect Async): programs for them
 * build with this header and -lmpix_queue, and run unchanged over any MPI that
 * the library knows.
 *
 *     mp_init(MPI_COMM_WORLD, &peer, 1, MP_INIT_DEFAULT, 0);
 *     mp_register(in, size, &in_reg), mp_register(out, size, &out_reg);
 *     mp_irecv(in, size, peer, &in_reg, &rreq);
 *     kernel fills out
 *     mp_isend_on_stream(out, size, peer, &out_reg, &sreq, stream);
 *     mp_wait_on_stream(&rreq, stream);
 *     kernel reads in
 *     mp_wait(&rreq), mp_wait(&sreq);
 *     mp_finalize();
 *
 * Messages have no tags: those from one process to another meet the receives
 * there in their order. What the host posts begins at once; what is posted on a
 * stream when that comes to it. A send is over when its receiver has posted the
 * receive and the data is read.
 *
 * Streams are those of CUDA. One of HIP, or of MPIX_Host_stream_create, may be
 * given as well; such a host stream is freed after mp_finalize. A stream of a
 * device that is destroyed earlier is idle then, and another one to which the
 * runtime gives the same handle is not used before the next mp_init. Buffers
 * are in memory of the host or of a device.
 *
 * All calls return MP_SUCCESS or MP_FAILURE, but mp_progress_all. What fails
 * has said why on stderr; nothing of it is posted or enqueued, if no more is
 * said. A message that fails, as its receive is too short, takes those with it
 * that are not over of its queue: there is one for each stream, and one for
 * what the host posts.
 *
 * Ownership: buffers and arrays of blocks stay the caller's. Of an array, what
 *            it names is copied. A buffer belongs to the message until a wait
 *            for the request has passed, or mp_finalize returns. One that the
 *            peer has matched keeps its buffer until its stream has come to it,
 *            and so do blocks to send: also beyond mp_finalize, which does not
 *            wait for streams.
 * Threads: one call of this header at a time, whichever thread makes it.
 *
 * The names below stand for functions of this library, so that they do not meet
 * those of LibMP.
 */
#ifndef MPIX_COMPAT_MP_H_
#define MPIX_COMPAT_MP_H_

#include <mpix_mpi.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Without CUDA's headers a stream is the same pointer */
#ifdef __has_include
#  if __has_include(<cuda_runtime.h>) && __has_include(<cuda.h>)
#    include <cuda.h>
#    include <cuda_runtime.h>
#    define MPIX_MP_HAS_CUDA 1
#  endif
#endif
#ifndef MPIX_MP_HAS_CUDA
typedef struct CUstream_st *cudaStream_t;
#endif

#define MP_SUCCESS 0
#define MP_FAILURE 1

#define MP_API_MAJOR_VERSION 2
#define MP_API_MINOR_VERSION 0
#define MP_API_VERSION ((MP_API_MAJOR_VERSION << 16) | MP_API_MINOR_VERSION)

/** Whether a version has what this one has: the same major number, and a minor
 *  one from 0 on. */
#define MP_API_VERSION_COMPATIBLE(v) \
    ((((v) & 0xffff0000U) >> 16) == MP_API_MAJOR_VERSION)

#ifdef __cplusplus
extern "C" {
#endif

#define mp_query_param MPIX_Mp_query_param
#define mp_init MPIX_Mp_init
#define mp_finalize MPIX_Mp_finalize
#define mp_register MPIX_Mp_register
#define mp_deregister MPIX_Mp_deregister
#define mp_irecv MPIX_Mp_irecv
#define mp_isend MPIX_Mp_isend
#define mp_irecvv MPIX_Mp_irecvv
#define mp_isendv MPIX_Mp_isendv
#define mp_wait MPIX_Mp_wait
#define mp_wait_all MPIX_Mp_wait_all
#define mp_progress_all MPIX_Mp_progress_all
#define mp_send_on_stream MPIX_Mp_send_on_stream
#define mp_isend_on_stream MPIX_Mp_isend_on_stream
#define mp_isendv_on_stream MPIX_Mp_isendv_on_stream
#define mp_wait_on_stream MPIX_Mp_wait_on_stream
#define mp_wait_all_on_stream MPIX_Mp_wait_all_on_stream
#define mp_send_prepare MPIX_Mp_send_prepare
#define mp_sendv_prepare MPIX_Mp_sendv_prepare
#define mp_send_post_on_stream MPIX_Mp_send_post_on_stream
#define mp_isend_post_on_stream MPIX_Mp_isend_post_on_stream
#define mp_send_post_all_on_stream MPIX_Mp_send_post_all_on_stream
#define mp_isend_post_all_on_stream MPIX_Mp_isend_post_all_on_stream
#define mp_window_create MPIX_Mp_window_create
#define mp_window_destroy MPIX_Mp_window_destroy
#define mp_iput MPIX_Mp_iput
#define mp_iget MPIX_Mp_iget
#define mp_iput_on_stream MPIX_Mp_iput_on_stream
#define mp_iget_on_stream MPIX_Mp_iget_on_stream
#define mp_put_prepare MPIX_Mp_put_prepare
#define mp_iput_post_on_stream MPIX_Mp_iput_post_on_stream
#define mp_iput_post_all_on_stream MPIX_Mp_iput_post_all_on_stream
#define mp_wait32 MPIX_Mp_wait32
#define mp_wait32_on_stream MPIX_Mp_wait32_on_stream
#define mp_desc_queue_alloc MPIX_Mp_desc_queue_alloc
#define mp_desc_queue_free MPIX_Mp_desc_queue_free
#define mp_desc_queue_add_send MPIX_Mp_desc_queue_add_send
#define mp_desc_queue_add_wait_send MPIX_Mp_desc_queue_add_wait_send
#define mp_desc_queue_add_wait_recv MPIX_Mp_desc_queue_add_wait_recv
#define mp_desc_queue_add_wait_value32 MPIX_Mp_desc_queue_add_wait_value32
#define mp_desc_queue_add_write_value32 MPIX_Mp_desc_queue_add_write_value32
#define mp_desc_queue_post_on_stream MPIX_Mp_desc_queue_post_on_stream


/** What mp_query_param tells. */
typedef enum mp_param {
    MP_PARAM_VERSION,
    MP_NUM_PARAMS
} mp_param_t;


/** Memory that was registered. */
typedef struct mp_reg *mp_reg_t;

/** A message, or a one-sided operation. Copies of it stand for the same one. */
typedef struct mp_request *mp_request_t;

/** Memory of all processes that others may write and read. */
typedef struct mp_window *mp_window_t;

/** Commands that are posted together. */
typedef struct mp_desc_queue *mp_desc_queue_t;


/** Where LibMP puts what its network card uses; without effect here. */
enum mp_init_flags {
    MP_INIT_DEFAULT = 0,
    MP_INIT_WQ_ON_GPU,
    MP_INIT_RX_CQ_ON_GPU,
    MP_INIT_TX_CQ_ON_GPU,
    MP_INIT_DBREC_ON_GPU
};


/** Flags of puts. */
enum mp_put_flags {
    MP_PUT_INLINE = 1 << 0, /**< The data is copied by the call, or by the one
                                 that prepares the put */
    MP_PUT_NOWAIT = 1 << 1  /**< Nobody waits for it: the call that posts it
                                 sets its request to NULL, and tells as well if
                                 it was not posted whole */
};


/** When a wait for a word passes. */
enum mp_wait_flags {
    MP_WAIT_GEQ = 0, /**< The word is >= the value (unsigned). A stream of a
                          device compares cyclically, and is refused values of
                          2^31 and more. */
    MP_WAIT_EQ,      /**< It is the value */
    MP_WAIT_AND      /**< It has one of the value's bits */
};


/**
 * Tell a parameter of the library. May be called at any time.
 *
 * @param [in]  param MP_PARAM_VERSION.
 * @param [out] value Set to MP_API_VERSION.
 *
 * @return MP_SUCCESS; MP_FAILURE for another parameter, or NULL.
 */
int MPIX_Mp_query_param(mp_param_t param, int *value);


/**
 * Begin, after MPI_Init. Collective over the communicator, which may be freed
 * then: all processes return the same.
 *
 * @param [in] comm   The communicator, whose ranks the calls name.
 * @param [in] peers  Ranks that this process names; may be NULL if there are
 *                    none.
 * @param [in] count  How many, 0 or more.
 * @param [in] flags  Of mp_init_flags; without effect.
 * @param [in] gpu_id 0 or more; without effect: the streams tell.
 *
 * @return MP_SUCCESS; MP_FAILURE also for a rank that is not there, or a second
 *         call without mp_finalize.
 */
int MPIX_Mp_init(MPI_Comm comm, int *peers, int count, int flags, int gpu_id);


/**
 * End, before MPI_Finalize: frees all that is there. Requests that are not over
 * are cancelled, and counted on stderr. Collective, as mp_init: begins when all
 * processes have called it. Waits up to 5 s in all for puts with MP_PUT_NOWAIT,
 * and for windows and registrations that are in use. Does nothing where mp_init
 * was not called.
 */
void MPIX_Mp_finalize(void);


/**
 * Register memory, which only one-sided operations need.
 *
 * @param [in]  addr   First byte.
 * @param [in]  length Bytes, not 0.
 * @param [out] reg_t  Filled on success only.
 *
 * @return MP_SUCCESS, MP_FAILURE.
 *
 * Ownership: the memory must live until mp_deregister.
 */
int MPIX_Mp_register(void *addr, size_t length, mp_reg_t *reg_t);


/**
 * Undo that. No one-sided operation of it may be under way.
 *
 * @param [in,out] reg Set to NULL.
 *
 * @return MP_SUCCESS; MP_FAILURE also while operations use it.
 */
int MPIX_Mp_deregister(mp_reg_t *reg);


/**
 * Post a receive or a send at once. All calls below that have a peer have these
 * parameters, too.
 *
 * @param [in]  buf    The buffer; may be NULL if @a size is 0.
 * @param [in]  size   In bytes, 0 or more; a receive may be longer than what
 *                     comes.
 * @param [in]  peer   The other side's rank, one of those of mp_init.
 * @param [in]  mp_reg The buffer's registration. Messages do without: it is not
 *                     looked at.
 * @param [out] req    Filled on success only.
 *
 * @return MP_SUCCESS; MP_FAILURE also for a send while one that was prepared to
 *         that peer is not posted, which it would overtake.
 */
int MPIX_Mp_irecv(void *buf, int size, int peer, mp_reg_t *mp_reg,
                  mp_request_t *req);
int MPIX_Mp_isend(void *buf, int size, int peer, mp_reg_t *mp_reg,
                  mp_request_t *req);


/**
 * The same of blocks, which are one message: received blocks are filled one
 * after the other.
 *
 * @param [in]  v       The blocks; may be NULL if there are none.
 * @param [in]  nblocks How many, 0 or more.
 * @param [in]  peer    As mp_irecv.
 * @param [in]  mp_reg  As mp_irecv.
 * @param [out] req     As mp_irecv.
 *
 * @return As mp_irecv.
 */
int MPIX_Mp_irecvv(struct iovec *v, int nblocks, int peer, mp_reg_t *mp_reg,
                   mp_request_t *req);
int MPIX_Mp_isendv(struct iovec *v, int nblocks, int peer, mp_reg_t *mp_reg,
                   mp_request_t *req);


/**
 * Have the host wait until requests are over, and the streams have passed their
 * waits for them. They are gone then. The wait for blocks that are sent on a
 * stream lasts until that has come to them, also if it fails.
 *
 * @param [in]     count How many; 0 is legal.
 * @param [in,out] req   The requests; set to NULL. Each once.
 *
 * @return MP_SUCCESS; MP_FAILURE if one has failed, which is gone as well; and,
 *         before anything is waited for, if one is not there, was not posted,
 *         or is NULL, or a queue of commands has a wait for it that is not
 *         posted. A put or get that is over counts as failed if another
 *         operation of its queue has failed since.
 */
int MPIX_Mp_wait(mp_request_t *req);
int MPIX_Mp_wait_all(uint32_t count, mp_request_t *req);


/**
 * Count the requests that are over. Does not free them.
 *
 * @param [in] count How many.
 * @param [in] req   The requests. One that was waited for before counts.
 *
 * @return Their number; -1 for NULL.
 */
int MPIX_Mp_progress_all(uint32_t count, mp_request_t *req);


/**
 * Post a send on a stream. mp_send_on_stream has the stream wait for it, too.
 *
 * @param [in]  buf    As mp_isend, as are the next ones.
 * @param [in]  size   In bytes.
 * @param [in]  peer   Rank.
 * @param [in]  mp_reg Registration.
 * @param [out] req    The request.
 * @param [in]  stream The stream.
 *
 * @return As mp_isend; MP_FAILURE also for what is no stream, or one that is
 *         being captured into a graph. If mp_send_on_stream fails and the
 *         request is filled then the send is posted, and the stream does not
 *         wait for it.
 */
int MPIX_Mp_send_on_stream(void *buf, int size, int peer, mp_reg_t *mp_reg,
                           mp_request_t *req, cudaStream_t stream);
int MPIX_Mp_isend_on_stream(void *buf, int size, int peer, mp_reg_t *mp_reg,
                            mp_request_t *req, cudaStream_t stream);
int MPIX_Mp_isendv_on_stream(struct iovec *v, int nblocks, int peer,
                             mp_reg_t *mp_reg, mp_request_t *req,
                             cudaStream_t stream);


/**
 * Have a stream wait until requests are over, of any thread or stream. The host
 * still waits for them, some time, for them to go. A stream passes the wait for
 * a message that fails, and mp_wait tells it.
 *
 * @param [in] count  How many; 0 is legal.
 * @param [in] req    The requests.
 * @param [in] stream The stream.
 *
 * @return MP_SUCCESS; MP_FAILURE also for a request that is not there, was not
 *         posted, or that a stream waits for already.
 */
int MPIX_Mp_wait_on_stream(mp_request_t *req, cudaStream_t stream);
int MPIX_Mp_wait_all_on_stream(uint32_t count, mp_request_t *req,
                               cudaStream_t stream);


/**
 * Prepare a send, to be posted on a stream. Those to one peer are posted in the
 * order in which they were prepared.
 *
 * @param [in]  buf    As mp_isend, as are the next ones.
 * @param [in]  size   In bytes.
 * @param [in]  peer   Rank.
 * @param [in]  mp_reg Registration.
 * @param [out] req    The request.
 *
 * @return MP_SUCCESS, MP_FAILURE.
 */
int MPIX_Mp_send_prepare(void *buf, int size, int peer, mp_reg_t *mp_reg,
                         mp_request_t *req);
int MPIX_Mp_sendv_prepare(struct iovec *v, int nblocks, int peer,
                          mp_reg_t *mp_reg, mp_request_t *req);


/**
 * Post prepared sends on a stream. Those without i have the stream wait for
 * them, too, once all are posted.
 *
 * @param [in] count  How many; 0 is legal.
 * @param [in] req    The requests.
 * @param [in] stream The stream.
 *
 * @return MP_SUCCESS; MP_FAILURE also for what is not a send that is prepared,
 *         or not the next one to its peer. If the stream takes a part only, it
 *         sends that. If only the wait fails the sends are posted.
 */
int MPIX_Mp_send_post_on_stream(mp_request_t *req, cudaStream_t stream);
int MPIX_Mp_isend_post_on_stream(mp_request_t *req, cudaStream_t stream);
int MPIX_Mp_send_post_all_on_stream(uint32_t count, mp_request_t *req,
                                    cudaStream_t stream);
int MPIX_Mp_isend_post_all_on_stream(uint32_t count, mp_request_t *req,
                                     cudaStream_t stream);


/**
 * Create a window: memory of each process, for the others. Collective over the
 * communicator of mp_init: all processes return the same.
 *
 * @param [in]  addr     First byte.
 * @param [in]  size     Bytes; may be 0.
 * @param [out] window_t Filled on success only.
 *
 * @return MP_SUCCESS; MP_FAILURE also for memory of a device that others do not
 *         reach.
 *
 * Ownership: the memory must live until mp_window_destroy.
 */
int MPIX_Mp_window_create(void *addr, size_t size, mp_window_t *window_t);


/**
 * Destroy a window. Local: all processes have ended their operations on it.
 *
 * @param [in,out] window_t Set to NULL.
 *
 * @return MP_SUCCESS; MP_FAILURE also while operations use it.
 */
int MPIX_Mp_window_destroy(mp_window_t *window_t);


/**
 * Put bytes into a peer's part of a window, or get them from there: at once, or
 * when a stream comes to it. No call of the peer takes part. The stream goes on
 * when the operation is over, so that a message behind a put comes after its
 * data; and so do puts to one peer, one after the other.
 *
 * @param [in]  src          The source, or the destination of a get, in
 *                           registered memory.
 * @param [in]  size         In bytes, 0 or more.
 * @param [in]  src_reg      Its registration.
 * @param [in]  peer         Rank, one of those of mp_init.
 * @param [in]  displ        From the begin of the peer's part, bytes.
 * @param [in]  dst_window_t The window.
 * @param [out] req          Filled on success only.
 * @param [in]  flags        Of mp_put_flags.
 * @param [in]  stream       The stream.
 *
 * @return MP_SUCCESS; MP_FAILURE also for bytes that are not in the
 *         registration, or not in the window.
 */
int MPIX_Mp_iput(void *src, int size, mp_reg_t *src_reg, int peer, size_t displ,
                 mp_window_t *dst_window_t, mp_request_t *req, int flags);
int MPIX_Mp_iget(void *dst, int size, mp_reg_t *dst_reg, int peer, size_t displ,
                 mp_window_t *src_window_t, mp_request_t *req);
int MPIX_Mp_iput_on_stream(void *src, int size, mp_reg_t *src_reg, int peer,
                           size_t displ, mp_window_t *dst_window_t,
                           mp_request_t *req, int flags, cudaStream_t stream);
int MPIX_Mp_iget_on_stream(void *dst, int size, mp_reg_t *dst_reg, int peer,
                           size_t displ, mp_window_t *src_window_t,
                           mp_request_t *req, cudaStream_t stream);


/**
 * Prepare a put, to be posted on a stream.
 *
 * @param [in]  src          As mp_iput, as are the next ones.
 * @param [in]  size         In bytes.
 * @param [in]  src_reg      Registration.
 * @param [in]  peer         Rank.
 * @param [in]  displ        Bytes.
 * @param [in]  dst_window_t The window.
 * @param [out] req          The request.
 * @param [in]  flags        Of mp_put_flags.
 *
 * @return As mp_iput.
 */
int MPIX_Mp_put_prepare(void *src, int size, mp_reg_t *src_reg, int peer,
                        size_t displ, mp_window_t *dst_window_t,
                        mp_request_t *req, int flags);


/**
 * Post prepared puts on a stream, in their order.
 *
 * @param [in]     count  How many; 0 is legal.
 * @param [in,out] req    The requests; set to NULL if they are MP_PUT_NOWAIT.
 * @param [in]     stream The stream.
 *
 * @return MP_SUCCESS; MP_FAILURE also for what is not a prepared put. If the
 *         stream takes a part only, it puts that.
 */
int MPIX_Mp_iput_post_on_stream(mp_request_t *req, cudaStream_t stream);
int MPIX_Mp_iput_post_all_on_stream(uint32_t count, mp_request_t *req,
                                    cudaStream_t stream);


/**
 * Wait for a word of 32 bits, on the host or on a stream. What was stored
 * before the word is visible then. A host, or a host stream, that waits long
 * sleeps, and may see the word up to 50 ms late.
 *
 * @param [in] ptr    The word, aligned, in memory of the host. The page of one
 *                    that a stream's device does not reach is registered with
 *                    the runtime until mp_finalize.
 * @param [in] value  To compare with.
 * @param [in] flags  One of mp_wait_flags.
 * @param [in] stream The stream.
 *
 * @return MP_SUCCESS, MP_FAILURE.
 *
 * Ownership: the word must live until the wait has passed.
 */
int MPIX_Mp_wait32(uint32_t *ptr, uint32_t value, int flags);
int MPIX_Mp_wait32_on_stream(uint32_t *ptr, uint32_t value, int flags,
                             cudaStream_t stream);

static inline int mp_wait_dword_geq_on_stream(uint32_t *ptr, uint32_t value,
                                              cudaStream_t stream)
{
    return mp_wait32_on_stream(ptr, value, MP_WAIT_GEQ, stream);
}

static inline int mp_wait_dword_eq_on_stream(uint32_t *ptr, uint32_t value,
                                             cudaStream_t stream)
{
    return mp_wait32_on_stream(ptr, value, MP_WAIT_EQ, stream);
}


/**
 * Make a queue of commands, or free it. What it holds then is posted no more,
 * which is said on stderr; its sends and puts are prepared ones again, but
 * those of MP_PUT_NOWAIT go.
 *
 * @param [in,out] dq Filled, or set to NULL.
 *
 * @return MP_SUCCESS, MP_FAILURE.
 */
int MPIX_Mp_desc_queue_alloc(mp_desc_queue_t *dq);
int MPIX_Mp_desc_queue_free(mp_desc_queue_t *dq);


/**
 * Add a command: a prepared send or put; the wait for a send, a put or a get,
 * or for a receive; the wait for a word; or a store to one. The request of a
 * wait may be that of a send that was added before.
 *
 * @param [in]     dq    The queue.
 * @param [in,out] req   The request; set to NULL if it is MP_PUT_NOWAIT.
 * @param [in]     ptr   As mp_wait32_on_stream.
 * @param [in]     value Compared with, or stored.
 * @param [in]     flags One of mp_wait_flags.
 *
 * @return MP_SUCCESS; MP_FAILURE as the calls that do it at once.
 */
int MPIX_Mp_desc_queue_add_send(mp_desc_queue_t *dq, mp_request_t *req);
int MPIX_Mp_desc_queue_add_wait_send(mp_desc_queue_t *dq, mp_request_t *req);
int MPIX_Mp_desc_queue_add_wait_recv(mp_desc_queue_t *dq, mp_request_t *req);
int MPIX_Mp_desc_queue_add_wait_value32(mp_desc_queue_t *dq, uint32_t *ptr,
                                        uint32_t value, int flags);
int MPIX_Mp_desc_queue_add_write_value32(mp_desc_queue_t *dq, uint32_t *ptr,
                                         uint32_t value);


/**
 * Post all commands of a queue on a stream, in their order. The queue is empty
 * then, and may be used again.
 *
 * @param [in] stream The stream.
 * @param [in] dq     The queue.
 * @param [in] flags  Not looked at, as in LibMP.
 *
 * @return MP_SUCCESS; MP_FAILURE: the stream has those before the one that it
 *         does not take, and the queue the others. A put of which it has taken
 *         a part is in neither, and has failed.
 */
int MPIX_Mp_desc_queue_post_on_stream(cudaStream_t stream, mp_desc_queue_t *dq,
                                      int flags);

#ifdef __cplusplus
}
#endif

#endif
