/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue_coll.h - persistent collectives on a stream: a part of
 * mpix_queue.h, which includes it.
 *
 *     MPIX_Allreduce_init(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, comm,
 *                         MPI_INFO_NULL, &request);
 *     MPIX_Match(&request, MPI_STATUS_IGNORE);      on all ranks
 *     loop:
 *       kernel computes part
 *       MPIX_Enqueue_start(queue, &request);
 *       anything else
 *       MPIX_Enqueue_wait(queue, &request);
 *       kernel reads sum
 *     MPI_Request_free(&request);
 *
 * The arguments are those of MPI 4's functions MPI_*_init, which are wrapped
 * where the MPI library has them: their requests can be matched as well. The
 * calls are collective, in the same order on all ranks of the communicator.
 *
 * The request is matched by MPIX_Match, MPIX_Matchall, MPIX_Imatch or
 * MPIX_Imatchall on all ranks, alone or with others. From then on it is started
 * and waited for on queues only. A start does not block the stream, and the
 * messages of what was started go on without it. Ranks may start and wait for
 * several collectives in any order. Buffers belong to the collective from the
 * start's to the wait's place in the stream. A use may be started again on the
 * same queue once the wait for the last one is enqueued, and one whose queue
 * was freed without a wait once it is over.
 *
 * Collectives of several rounds run on a stream of the library's own. Those of
 * one round run on the queue's, if that is of the host: collectives among
 * neighbours, Alltoall of up to 16 ranks, and, where all ranks are in one node
 * and not more than MPIX_QUEUE_FLAT_MAX of the environment (16), a Barrier and
 * an Allreduce of up to 1 KiB. The first such call for a communicator finds out
 * by MPI_Comm_split_type whether they are.
 *
 * Before it is matched MPI_Start starts it on the host, if the MPI library has
 * persistent collectives (OpenMPI 4.1 and later, MPICH 4). With
 * MPIX_QUEUE_NATIVE_COLLECTIVES=n in the environment its own are not made,
 * which saves the memory that they take; OpenMPI 4.1 does not give all of it
 * back. Nor are they where a count, of the functions MPIX_*_init_c, is larger
 * than an int: such a request is started on queues only.
 *
 * All ranks get the same result, which is that of MPI's function where the
 * operation is exact. Predefined operations on integers and floating-point
 * numbers of C are computed by this library; others, such as MPI_MINLOC and
 * those of MPI_Op_create, by MPI_Reduce_local in a thread of the library, for
 * which MPI must be initialised with MPI_THREAD_MULTIPLE. The operation and the
 * datatype of a reduction must not be freed before the request.
 *
 * Buffers may lie in the memory of a GPU, as MPIX_Match says; those of a
 * reduction are allocated when its request is made. The host reduces, in
 * memory of its own.
 *
 * Refused by match, with MPI_ERR_REQUEST and a text that says why:
 * intercommunicators, and of reductions operations that need
 * MPI_THREAD_MULTIPLE without it and datatypes with a lower bound other than 0
 * or with data beyond their extent. They may have gaps, as MPI_DOUBLE_INT has.
 * Other collectives take any datatype that MPIX_Match takes. If one message
 * does not match, the collective fails on the ranks that have a part in it, and
 * can only be freed.
 *
 * If a rank dies, collectives end with an error of MPIX_Queue_wait on the ranks
 * that exchange messages with it. Others may not notice: their results are
 * undefined.
 */
#ifndef MPIX_QUEUE_COLL_H_
#define MPIX_QUEUE_COLL_H_

#include "mpix_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Make a persistent barrier: a rank passes the wait when all ranks have passed
 * the start.
 *
 * @param [in]  comm    An intracommunicator; may be freed before
 *                      the request.
 * @param [in]  info    Passed to MPI, if it makes the request.
 * @param [out] request An inactive persistent request, on success only.
 *
 * @return MPI_SUCCESS; the errors of MPI's function for arguments that are not
 *         legal; MPI_ERR_NO_MEM.
 *
 * Ownership: the request is the caller's until MPI_Request_free, which returns
 *            MPI_ERR_PENDING while a use is in flight.
 * Threads: MPI's rule for the calling thread, and for collective calls.
 */
int MPIX_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request);


/**
 * Make a persistent broadcast.
 *
 * @param [in,out] buffer   As MPI_Bcast.
 * @param [in]     count    As MPI_Bcast.
 * @param [in]     datatype As MPI_Bcast.
 * @param [in]     root     As MPI_Bcast.
 * @param [in]     comm     An intracommunicator; may be freed before
 *                          the request.
 * @param [in]     info     Passed to MPI, if it makes the request.
 * @param [out]    request  An inactive persistent request, on success only.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Bcast_init(void *buffer, int count, MPI_Datatype datatype, int root,
                    MPI_Comm comm, MPI_Info info, MPI_Request *request);


/**
 * Make a persistent reduction whose result all ranks get.
 *
 * @param [in]  sendbuf  As MPI_Allreduce; MPI_IN_PLACE is legal.
 * @param [out] recvbuf  As MPI_Allreduce.
 * @param [in]  count    As MPI_Allreduce.
 * @param [in]  datatype As MPI_Allreduce.
 * @param [in]  op       As MPI_Allreduce.
 * @param [in]  comm     An intracommunicator; may be freed before
 *                       the request.
 * @param [in]  info     Passed to MPI, if it makes the request.
 * @param [out] request  An inactive persistent request, on success only.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Allreduce_init(const void *sendbuf, void *recvbuf, int count,
                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                        MPI_Info info, MPI_Request *request);


/**
 * Make a persistent reduction whose result one rank gets.
 *
 * @param [in]  sendbuf  As MPI_Reduce; MPI_IN_PLACE is legal at the root.
 * @param [out] recvbuf  As MPI_Reduce.
 * @param [in]  count    As MPI_Reduce.
 * @param [in]  datatype As MPI_Reduce.
 * @param [in]  op       As MPI_Reduce.
 * @param [in]  root     As MPI_Reduce.
 * @param [in]  comm     An intracommunicator; may be freed before
 *                       the request.
 * @param [in]  info     Passed to MPI, if it makes the request.
 * @param [out] request  An inactive persistent request, on success only.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Reduce_init(const void *sendbuf, void *recvbuf, int count,
                     MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                     MPI_Info info, MPI_Request *request);


/**
 * Make a persistent gathering of blocks that all ranks get.
 *
 * @param [in]  sendbuf   As MPI_Allgather; MPI_IN_PLACE is legal.
 * @param [in]  sendcount As MPI_Allgather.
 * @param [in]  sendtype  As MPI_Allgather.
 * @param [out] recvbuf   As MPI_Allgather.
 * @param [in]  recvcount As MPI_Allgather.
 * @param [in]  recvtype  As MPI_Allgather.
 * @param [in]  comm      An intracommunicator; may be freed before
 *                        the request.
 * @param [in]  info      Passed to MPI, if it makes the request.
 * @param [out] request   An inactive persistent request, on success only.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Allgather_init(const void *sendbuf, int sendcount,
                        MPI_Datatype sendtype, void *recvbuf, int recvcount,
                        MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                        MPI_Request *request);


/**
 * Make a persistent exchange of blocks between all ranks.
 *
 * @param [in]  sendbuf   As MPI_Alltoall; MPI_IN_PLACE is legal.
 * @param [in]  sendcount As MPI_Alltoall.
 * @param [in]  sendtype  As MPI_Alltoall.
 * @param [out] recvbuf   As MPI_Alltoall.
 * @param [in]  recvcount As MPI_Alltoall.
 * @param [in]  recvtype  As MPI_Alltoall.
 * @param [in]  comm      An intracommunicator; may be freed before
 *                        the request.
 * @param [in]  info      Passed to MPI, if it makes the request.
 * @param [out] request   An inactive persistent request, on success only.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Alltoall_init(const void *sendbuf, int sendcount,
                       MPI_Datatype sendtype, void *recvbuf, int recvcount,
                       MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                       MPI_Request *request);


/**
 * Make a persistent exchange of blocks with the neighbours of a topology.
 *
 * @param [in]  sendbuf   As MPI_Neighbor_alltoall; MPI_IN_PLACE is not legal.
 * @param [in]  sendcount As MPI_Neighbor_alltoall.
 * @param [in]  sendtype  As MPI_Neighbor_alltoall.
 * @param [out] recvbuf   As MPI_Neighbor_alltoall.
 * @param [in]  recvcount As MPI_Neighbor_alltoall.
 * @param [in]  recvtype  As MPI_Neighbor_alltoall.
 * @param [in]  comm      Has a topology; may be freed before
 *                        the request.
 * @param [in]  info      Passed to MPI, if it makes the request.
 * @param [out] request   An inactive persistent request, on success only.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Neighbor_alltoall_init(const void *sendbuf, int sendcount,
                                MPI_Datatype sendtype, void *recvbuf,
                                int recvcount, MPI_Datatype recvtype,
                                MPI_Comm comm, MPI_Info info,
                                MPI_Request *request);


/**
 * Make a persistent exchange of blocks of different lengths with the neighbours
 * of a topology.
 *
 * @param [in]  sendbuf    As MPI_Neighbor_alltoallv.
 * @param [in]  sendcounts As MPI_Neighbor_alltoallv; unchanged while the
 *                         request lives.
 * @param [in]  sdispls    As MPI_Neighbor_alltoallv; unchanged while the
 *                         request lives.
 * @param [in]  sendtype   As MPI_Neighbor_alltoallv.
 * @param [out] recvbuf    As MPI_Neighbor_alltoallv.
 * @param [in]  recvcounts As MPI_Neighbor_alltoallv; unchanged while the
 *                         request lives.
 * @param [in]  rdispls    As MPI_Neighbor_alltoallv; unchanged while the
 *                         request lives.
 * @param [in]  recvtype   As MPI_Neighbor_alltoallv.
 * @param [in]  comm       Has a topology; may be freed before
 *                         the request.
 * @param [in]  info       Passed to MPI, if it makes the request.
 * @param [out] request    An inactive persistent request, on success only.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Neighbor_alltoallv_init(const void *sendbuf, const int sendcounts[],
                                 const int sdispls[], MPI_Datatype sendtype,
                                 void *recvbuf, const int recvcounts[],
                                 const int rdispls[], MPI_Datatype recvtype,
                                 MPI_Comm comm, MPI_Info info,
                                 MPI_Request *request);


/**
 * Make a persistent broadcast of any count.
 *
 * @param [in,out] buffer   As @ref MPIX_Bcast_init.
 * @param [in]     count    As @ref MPIX_Bcast_init.
 * @param [in]     datatype As @ref MPIX_Bcast_init.
 * @param [in]     root     As @ref MPIX_Bcast_init.
 * @param [in]     comm     As @ref MPIX_Bcast_init.
 * @param [in]     info     As @ref MPIX_Bcast_init.
 * @param [out]    request  As @ref MPIX_Bcast_init.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Bcast_init_c(void *buffer, MPI_Count count, MPI_Datatype datatype,
                      int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request *request);


/**
 * Make a persistent reduction of any count whose result all ranks get.
 *
 * @param [in]  sendbuf  As @ref MPIX_Allreduce_init.
 * @param [out] recvbuf  As @ref MPIX_Allreduce_init.
 * @param [in]  count    As @ref MPIX_Allreduce_init.
 * @param [in]  datatype As @ref MPIX_Allreduce_init.
 * @param [in]  op       As @ref MPIX_Allreduce_init.
 * @param [in]  comm     As @ref MPIX_Allreduce_init.
 * @param [in]  info     As @ref MPIX_Allreduce_init.
 * @param [out] request  As @ref MPIX_Allreduce_init.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Allreduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count,
                          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                          MPI_Info info, MPI_Request *request);


/**
 * Make a persistent reduction of any count whose result one rank gets.
 *
 * @param [in]  sendbuf  As @ref MPIX_Reduce_init.
 * @param [out] recvbuf  As @ref MPIX_Reduce_init.
 * @param [in]  count    As @ref MPIX_Reduce_init.
 * @param [in]  datatype As @ref MPIX_Reduce_init.
 * @param [in]  op       As @ref MPIX_Reduce_init.
 * @param [in]  root     As @ref MPIX_Reduce_init.
 * @param [in]  comm     As @ref MPIX_Reduce_init.
 * @param [in]  info     As @ref MPIX_Reduce_init.
 * @param [out] request  As @ref MPIX_Reduce_init.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Reduce_init_c(const void *sendbuf, void *recvbuf, MPI_Count count,
                       MPI_Datatype datatype, MPI_Op op, int root,
                       MPI_Comm comm, MPI_Info info, MPI_Request *request);


/**
 * Make a persistent gathering of blocks of any length that all ranks get.
 *
 * @param [in]  sendbuf   As @ref MPIX_Allgather_init.
 * @param [in]  sendcount As @ref MPIX_Allgather_init.
 * @param [in]  sendtype  As @ref MPIX_Allgather_init.
 * @param [out] recvbuf   As @ref MPIX_Allgather_init.
 * @param [in]  recvcount As @ref MPIX_Allgather_init.
 * @param [in]  recvtype  As @ref MPIX_Allgather_init.
 * @param [in]  comm      As @ref MPIX_Allgather_init.
 * @param [in]  info      As @ref MPIX_Allgather_init.
 * @param [out] request   As @ref MPIX_Allgather_init.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Allgather_init_c(const void *sendbuf, MPI_Count sendcount,
                          MPI_Datatype sendtype, void *recvbuf,
                          MPI_Count recvcount, MPI_Datatype recvtype,
                          MPI_Comm comm, MPI_Info info, MPI_Request *request);


/**
 * Make a persistent exchange of blocks of any length between all ranks.
 *
 * @param [in]  sendbuf   As @ref MPIX_Alltoall_init.
 * @param [in]  sendcount As @ref MPIX_Alltoall_init.
 * @param [in]  sendtype  As @ref MPIX_Alltoall_init.
 * @param [out] recvbuf   As @ref MPIX_Alltoall_init.
 * @param [in]  recvcount As @ref MPIX_Alltoall_init.
 * @param [in]  recvtype  As @ref MPIX_Alltoall_init.
 * @param [in]  comm      As @ref MPIX_Alltoall_init.
 * @param [in]  info      As @ref MPIX_Alltoall_init.
 * @param [out] request   As @ref MPIX_Alltoall_init.
 *
 * @return As @ref MPIX_Barrier_init.
 *
 * Ownership: as @ref MPIX_Barrier_init.
 * Threads: as @ref MPIX_Barrier_init.
 */
int MPIX_Alltoall_init_c(const void *sendbuf, MPI_Count sendcount,
                         MPI_Datatype sendtype, void *recvbuf,
                         MPI_Count recvcount, MPI_Datatype recvtype,
                         MPI_Comm comm, MPI_Info info, MPI_Request *request);

#ifdef __cplusplus
}
#endif

#endif
