/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_win.h - MPI's windows on streams: HPE's calls, in which streams open and
 * close epochs.
 *
 *     origin                                   target
 *     MPI_Win_start(group, MPIX_MODE_STREAM,   MPIX_Win_post_stream(group, win,
 *                   win)                                            stream)
 *     MPI_Put(...)
 *     kernel fills what is put
 *     MPIX_Win_complete_stream(win, stream)    MPIX_Win_wait_stream(win,
 *     stream) kernel overwrites it                     kernel reads what came
 *
 * All of these calls return at once. The streams do the rest, in their order:
 * that of the target tells the origins that the window is exposed; that of the
 * origin waits for that, puts and gets, tells the targets, and waits until its
 * own buffers may be used again; the target's then waits for all origins. No
 * call of MPI is made for it, and no MPI_THREAD_MULTIPLE needed. Data moves as
 * one-sided operations of ucp_st_rma.h: by the network card, by the stream to
 * memory of MPI_Alloc_mem and MPI_Win_allocate of the same node, or by
 * messages between threads of the library.
 *
 * Access by streams: MPI_Put, MPI_Get, and MPI_Accumulate with MPI_SUM on
 * numbers of one type, or MPI_REPLACE. MPI_SUM is the work of the library's
 * threads at the target, on memory of the host. What else an epoch of a stream
 * does not allow, such as MPI_Fetch_and_op, is refused with MPI_ERR_RMA_SYNC,
 * and so is a plain epoch while one of a stream of that kind is open, and the
 * other way round: an epoch of MPI_Win_fence is open once this process has
 * accessed the window in it. Other epochs are MPI's own.
 *
 * An epoch belongs to the host's calls: it is closed for them when the call for
 * the stream returns. Epochs of a stream on one window are in the order of the
 * calls; with several streams the program orders them.
 *
 * The names of MPI below stand for functions of this library, as calls of MPI
 * have to be told from those for a stream. Windows that are made by source that
 * does not include this header are MPI's alone.
 */
#ifndef MPIX_WIN_H_
#define MPIX_WIN_H_

#include <mpix_mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** For MPI_Win_start: the accesses are a stream's. */
#define MPIX_MODE_STREAM (1 << 28)

#ifndef MPIX_WIN_MPI_NAMES
#  define MPI_Win_create MPIX_Win_create
#  define MPI_Win_allocate MPIX_Win_allocate
#  define MPI_Win_free MPIX_Win_free
#  define MPI_Win_start MPIX_Win_start
#  define MPI_Win_complete MPIX_Win_complete
#  define MPI_Win_post MPIX_Win_post
#  define MPI_Win_wait MPIX_Win_wait
#  define MPI_Win_test MPIX_Win_test
#  define MPI_Win_fence MPIX_Win_fence
#  define MPI_Win_lock MPIX_Win_lock
#  define MPI_Win_unlock MPIX_Win_unlock
#  define MPI_Win_lock_all MPIX_Win_lock_all
#  define MPI_Win_unlock_all MPIX_Win_unlock_all
#  define MPI_Put MPIX_Win_put
#  define MPI_Get MPIX_Win_get
#  define MPI_Accumulate MPIX_Win_accumulate
#  define MPI_Get_accumulate MPIX_Win_get_accumulate
#  define MPI_Fetch_and_op MPIX_Win_fetch_and_op
#  define MPI_Compare_and_swap MPIX_Win_compare_and_swap
#  define MPI_Rput MPIX_Win_rput
#  define MPI_Rget MPIX_Win_rget
#  define MPI_Raccumulate MPIX_Win_raccumulate
#  define MPI_Rget_accumulate MPIX_Win_rget_accumulate
#endif


/**
 * Expose the window to the processes of a group, when the stream comes to it.
 *
 * @param [in] group  Processes of the window, which may access it. The calling
 *                    one may be among them.
 * @param [in] win    The window.
 * @param [in] stream A stream of MPIX_Host_stream_create, CUDA or HIP.
 *
 * @return MPI_SUCCESS; MPI_ERR_WIN; MPI_ERR_ARG for what is no stream;
 *         MPI_ERR_GROUP for a group with others;
 *         MPI_ERR_RMA_SYNC if the window is exposed, by MPI_Win_post, too;
 *         MPI_ERR_UNSUPPORTED_OPERATION if the window was made by another call
 *         than MPI_Win_create and MPI_Win_allocate, or by source without this
 *         header, or has no part for streams, with the cause; MPI_ERR_NO_MEM;
 *         MPI_ERR_OTHER if the stream, or an operation on it, has failed.
 *
 * Ownership: the memory is the origins' to access until the stream has passed
 *            MPIX_Win_wait_stream. The stream must live until it has run what
 *            was enqueued.
 * Threads: MPI's rule for the calling thread; one at a time on a window, and on
 *          a stream.
 */
int MPIX_Win_post_stream(MPI_Group group, MPI_Win win, void *stream);


/**
 * Have the stream do the accesses of an epoch that MPI_Win_start with
 * MPIX_MODE_STREAM began, each behind its target's MPIX_Win_post_stream, and
 * wait until they are complete here and there.
 *
 * @param [in] win    The window.
 * @param [in] stream As in @ref MPIX_Win_post_stream.
 *
 * @return MPI_SUCCESS; MPI_ERR_RMA_SYNC if there is no such epoch; else as
 *         @ref MPIX_Win_post_stream. On MPI_ERR_OTHER the epoch is closed, if
 *         the stream has failed, and stream and window are of no more use; else
 *         it stays open.
 *
 * Ownership: buffers of the accesses are the stream's until it has passed this.
 * Threads: as @ref MPIX_Win_post_stream.
 */
int MPIX_Win_complete_stream(MPI_Win win, void *stream);


/**
 * Have the stream wait until the epoch that @ref MPIX_Win_post_stream opened is
 * complete: all processes of its group have come to MPIX_Win_complete_stream.
 *
 * @param [in] win    The window.
 * @param [in] stream As in @ref MPIX_Win_post_stream.
 *
 * @return As @ref MPIX_Win_complete_stream.
 *
 * Threads: as @ref MPIX_Win_post_stream.
 */
int MPIX_Win_wait_stream(MPI_Win win, void *stream);


/* As the functions of MPI. A window of MPIX_Win_allocate says that it is of the
 * flavor MPI_WIN_FLAVOR_CREATE; its memory goes with it, so that kernels that
 * use it must be over. A window is freed when the streams have run its epochs;
 * MPIX_Win_free waits for that. */
int MPIX_Win_create(void *base, MPI_Aint size, int disp_unit, MPI_Info info,
                    MPI_Comm comm, MPI_Win *win);
int MPIX_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info,
                      MPI_Comm comm, void *baseptr, MPI_Win *win);
int MPIX_Win_free(MPI_Win *win);
int MPIX_Win_start(MPI_Group group, int mode, MPI_Win win);
int MPIX_Win_complete(MPI_Win win);
int MPIX_Win_post(MPI_Group group, int mode, MPI_Win win);
int MPIX_Win_wait(MPI_Win win);
int MPIX_Win_test(MPI_Win win, int *flag);
int MPIX_Win_fence(int mode, MPI_Win win);
int MPIX_Win_lock(int type, int rank, int mode, MPI_Win win);
int MPIX_Win_unlock(int rank, MPI_Win win);
int MPIX_Win_lock_all(int mode, MPI_Win win);
int MPIX_Win_unlock_all(MPI_Win win);

/* In an epoch of a stream: MPI_ERR_RANK for a process that is not in its group;
 * MPI_ERR_RMA_RANGE for bytes outside the target's window; MPI_ERR_TYPE if the
 * two sides have not as many bytes, or for an accumulation of anything but
 * numbers of one type of 8 bytes at most; MPI_ERR_OP; MPI_ERR_NO_MEM;
 * MPI_ERR_BUFFER for memory that cannot be registered, or that is a device's
 * and the card does not bring to the target. Datatypes may be freed
 * when the call returns; each run of bytes that they have is an operation of
 * its own. */
int MPIX_Win_put(const void *buf, int count, MPI_Datatype datatype, int target,
                 MPI_Aint disp, int target_count, MPI_Datatype target_datatype,
                 MPI_Win win);
int MPIX_Win_get(void *buf, int count, MPI_Datatype datatype, int target,
                 MPI_Aint disp, int target_count, MPI_Datatype target_datatype,
                 MPI_Win win);
int MPIX_Win_accumulate(const void *buf, int count, MPI_Datatype datatype,
                        int target, MPI_Aint disp, int target_count,
                        MPI_Datatype target_datatype, MPI_Op op, MPI_Win win);

/* Refused in an epoch of a stream. */
int MPIX_Win_get_accumulate(const void *buf, int count, MPI_Datatype datatype,
                            void *result, int result_count,
                            MPI_Datatype result_datatype, int target,
                            MPI_Aint disp, int target_count,
                            MPI_Datatype target_datatype, MPI_Op op,
                            MPI_Win win);
int MPIX_Win_fetch_and_op(const void *buf, void *result, MPI_Datatype datatype,
                          int target, MPI_Aint disp, MPI_Op op, MPI_Win win);
int MPIX_Win_compare_and_swap(const void *buf, const void *compare,
                              void *result, MPI_Datatype datatype, int target,
                              MPI_Aint disp, MPI_Win win);
int MPIX_Win_rput(const void *buf, int count, MPI_Datatype datatype, int target,
                  MPI_Aint disp, int target_count, MPI_Datatype target_datatype,
                  MPI_Win win, MPI_Request *request);
int MPIX_Win_rget(void *buf, int count, MPI_Datatype datatype, int target,
                  MPI_Aint disp, int target_count, MPI_Datatype target_datatype,
                  MPI_Win win, MPI_Request *request);
int MPIX_Win_raccumulate(const void *buf, int count, MPI_Datatype datatype,
                         int target, MPI_Aint disp, int target_count,
                         MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                         MPI_Request *request);
int MPIX_Win_rget_accumulate(const void *buf, int count, MPI_Datatype datatype,
                             void *result, int result_count,
                             MPI_Datatype result_datatype, int target,
                             MPI_Aint disp, int target_count,
                             MPI_Datatype target_datatype, MPI_Op op,
                             MPI_Win win, MPI_Request *request);

#ifdef __cplusplus
}
#endif

#endif
