/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_halo.h - the exchange with all neighbours on a stream: a part of
 * mpix_queue.h, which includes it.
 *
 *     MPIX_Halo_side sides[4];        left and right, above and below
 *
 *     sides[0].sendbuf = ...          as for MPI_Send_init and MPI_Recv_init
 *     MPIX_Halo_init(cart, 4, sides, queue, &halo);
 *     for each step {
 *         kernel that fills the send buffers
 *         MPIX_Halo_start(halo);
 *         kernel that needs no neighbour
 *         MPIX_Halo_wait(halo);
 *         kernel that reads the receive buffers
 *     }
 *     MPIX_Queue_wait(queue);
 *     MPIX_Halo_free(&halo);
 *
 * A halo is made of matched persistent requests, one for each message, that are
 * one exchange (mpix_queue_exchange.h): what is said there, and of requests in
 * mpix_queue.h, holds for its messages.
 */
#ifndef MPIX_HALO_H_
#define MPIX_HALO_H_

#include "mpix_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An exchange with all neighbours. */
typedef struct mpix_halo *MPIX_Halo;

/** No halo. */
#define MPIX_HALO_NULL ((MPIX_Halo)0)


/** What goes to one neighbour, and what comes from it. */
typedef struct MPIX_Halo_side {
    const void   *sendbuf;  /**< As MPI_Send_init */
    int          sendcount; /**< As MPI_Send_init */
    MPI_Datatype sendtype;  /**< As MPI_Send_init; may be freed when the halo
                                 is made */
    void         *recvbuf;  /**< As MPI_Recv_init; apart from all other
                                 buffers of the halo */
    int          recvcount; /**< As MPI_Recv_init */
    MPI_Datatype recvtype;  /**< As MPI_Recv_init; may be freed when the halo
                                 is made */
} MPIX_Halo_side;


/**
 * Make the exchange with the neighbours in a cartesian grid, and match it with
 * theirs. Collective: blocks until the neighbours have called it, too.
 *
 * Halos are coupled: as in a collective among neighbours, a rank's messages to
 * other halos go once all of these have been started. So no start may depend on
 * the end of the same use at another rank. What goes to other requests goes
 * once its receive is started.
 *
 * A message that is sent in one direction is received from the opposite one,
 * also if several sides lead to the same rank, or to the own one, as in
 * periodic dimensions of size 2 and 1. A side without a neighbour, at the
 * border of a dimension that is not periodic, is passed over.
 *
 * @param [in]  comm  Communicator of MPI_Cart_create; may be freed before the
 *                    halo. All ranks make their halos on it in the same order.
 *                    The messages have tags from MPI_TAG_UB downwards.
 * @param [in]  count Number of sides, the same at all ranks. With d dimensions,
 *                    2d: those of faces alone, in the order of MPI's neighbour
 *                    collectives, which is, for each dimension, first the
 *                    neighbour at the lower coordinate, then that at the higher
 *                    one. Or 3^d-1: all around, with edges and corners, in the
 *                    order of their offsets, from (-1, ..., -1) to
 *                    (1, ..., 1), without (0, ..., 0); the last dimension
 *                    changes fastest. With d = 1 both are the same.
 * @param [in]  sides The sides; not read if there is no neighbour. May be
 *                    reused on return.
 * @param [in]  queue The queue on which the halo is started.
 * @param [out] halo  Filled on success only.
 *
 * @return MPI_SUCCESS; MPI_ERR_TOPOLOGY if @a comm has no cartesian topology,
 *         or more than 9 dimensions; MPI_ERR_COUNT for another number of sides;
 *         MPI_ERR_ARG for NULL or what is no queue; MPI_ERR_COMM for
 *         MPI_COMM_NULL; otherwise as MPI_Send_init, MPI_Recv_init and
 *         @ref MPIX_Match. Nothing is left behind on error. The neighbours
 *         learn of errors of matching only.
 *
 * Ownership: the caller's until @ref MPIX_Halo_free. Buffers and queue must
 *            outlive it.
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Halo_init(MPI_Comm comm, int count, const MPIX_Halo_side sides[],
                   MPIX_Queue queue, MPIX_Halo *halo);


/**
 * Make the exchange with neighbours that are listed, and match it with theirs.
 * Blocks until the neighbours have called it, or have begun to match requests
 * of their own with the same tags. It is coupled as @ref MPIX_Halo_init: where
 * starts of some ranks depend on the same use of others, use
 * @ref MPIX_Exchange_init.
 *
 * @param [in]  comm     The communicator; may be freed before the halo.
 * @param [in]  count    Number of sides.
 * @param [in]  ranks    Rank of each side's neighbour. One may come several
 *                       times; sides with MPI_PROC_NULL are passed over.
 * @param [in]  sendtags Tag of the message that goes to each neighbour; NULL:
 *                       MPI_TAG_UB for all.
 * @param [in]  recvtags Tag of the message that comes from each neighbour;
 *                       NULL: MPI_TAG_UB for all. Of messages between the same
 *                       ranks with the same tag the n-th that one lists is the
 *                       n-th that the other lists.
 * @param [in]  sides    As @ref MPIX_Halo_init.
 * @param [in]  queue    As @ref MPIX_Halo_init.
 * @param [out] halo     Filled on success only.
 *
 * @return As @ref MPIX_Halo_init; MPI_ERR_COUNT for a negative number.
 *
 * Ownership: as @ref MPIX_Halo_init.
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Halo_init_list(MPI_Comm comm, int count, const int ranks[],
                        const int sendtags[], const int recvtags[],
                        const MPIX_Halo_side sides[], MPIX_Queue queue,
                        MPIX_Halo *halo);


/**
 * Enqueue the start of all messages of a halo: from there on send buffers may
 * be read, and receive buffers written. Never blocks the stream.
 *
 * @param [in] halo The halo, whose last start was waited for.
 *
 * @return As @ref MPIX_Enqueue_start_req; MPI_ERR_ARG if it is no halo. Nothing
 *         is enqueued on error.
 *
 * Threads: MPI's rule for the calling thread; one at a time on its queue.
 */
int MPIX_Halo_start(MPIX_Halo halo);


/**
 * Enqueue the wait for all messages of a halo: later work on the stream sees
 * what the neighbours have sent, and may overwrite the send buffers.
 *
 * @param [in] halo The halo, which was started.
 *
 * @return As @ref MPIX_Enqueue_wait_req; MPI_ERR_ARG if it is no halo. Nothing
 *         is enqueued on error.
 *
 * Threads: MPI's rule for the calling thread; one at a time on its queue.
 */
int MPIX_Halo_wait(MPIX_Halo halo);


/**
 * Free a halo. Local.
 *
 * @param [in,out] halo The halo; set to MPIX_HALO_NULL.
 *
 * @return MPI_SUCCESS; MPI_ERR_ARG if it is no halo; MPI_ERR_PENDING if the
 *         stream has not passed the wait for its last start: it is not freed
 *         then, and cannot be started any more. Call it again after
 *         @ref MPIX_Queue_wait.
 *
 * Threads: MPI's rule for the calling thread; no other call on the halo at the
 *          same time.
 */
int MPIX_Halo_free(MPIX_Halo *halo);

#ifdef __cplusplus
}
#endif

#endif
