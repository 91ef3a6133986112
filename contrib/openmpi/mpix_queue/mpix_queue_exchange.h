/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue_exchange.h - persistent requests that are always matched, started
 * and waited for together: a part of mpix_queue.h, which includes it.
 *
 *     MPI_Recv_init(...), MPI_Send_init(...)     as many as there are messages
 *     MPIX_Exchange_init(2 * n, requests, MPI_INFO_NULL, &exchange);
 *     MPIX_Match(&exchange, MPI_STATUS_IGNORE);
 *     for each step {
 *         kernel that fills the send buffers
 *         MPIX_Enqueue_start_req(queue, &exchange);
 *         MPIX_Enqueue_wait_req(queue, &exchange);
 *         kernel that reads the receive buffers
 *     }
 *     MPIX_Queue_wait(queue);
 *     MPI_Request_free(&exchange);
 *     MPI_Request_free(&requests[i])             each
 *
 * On a network card a message that is alone takes two counters, a store of the
 * stream to start it and a word that the stream waits for. Those of an exchange
 * share them: one word in all, and one store for all that need no start of
 * their own, or two stores in all if it is coupled. docs/mpi.md has the
 * numbers.
 */
#ifndef MPIX_QUEUE_EXCHANGE_H_
#define MPIX_QUEUE_EXCHANGE_H_

#include "mpix_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Make an exchange of persistent requests: a request for all of them. Local.
 *
 * It is given to @ref MPIX_Match, @ref MPIX_Enqueue_start_req,
 * @ref MPIX_Enqueue_wait_req and their forms for several requests, to
 * MPI_Start, MPI_Wait, MPI_Test and theirs, and to MPI_Request_free, in place
 * of its members. A status of it is empty; @ref MPIX_Is_matched tells a
 * member's. It is never MPI's own: MPI_Start needs it matched, and MPI_Cancel
 * is refused.
 *
 * The counterparts may be of any exchange, or of none, and are found as if the
 * members were matched one by one, in the order of the array. An error of one
 * member, of matching or of a use, is one of the exchange.
 *
 * @param [in]  count    Number of requests; 0 is legal.
 * @param [in]  requests Inactive requests of MPI_Send_init, MPI_Rsend_init or
 *                       MPI_Recv_init, or of their forms for large counts, not
 *                       matched, each once and of no other exchange; those that
 *                       are MPI_REQUEST_NULL are passed over. The array may be
 *                       reused on return.
 * @param [in]  info     MPI_INFO_NULL, or an info whose key "mpix_coupled" is
 *                       "true" or "false", which is the default: whether of
 *                       the sends whose counterparts are of such exchanges,
 *                       too, none goes before all these have been started. That
 *                       takes the least of the card, and is right where each
 *                       process starts everything at once, as in a halo
 *                       exchange. Where the start of a receive depends on
 *                       another send of the same use it never ends.
 * @param [out] exchange Filled on success only.
 *
 * @return MPI_SUCCESS; MPI_ERR_COUNT for a negative number; MPI_ERR_ARG for
 *         NULL; MPI_ERR_INFO_VALUE for another value of the key;
 *         MPI_ERR_REQUEST for another kind of request, one that is given twice,
 *         active, matched, or of an exchange; MPI_ERR_NO_MEM; MPI_ERR_OTHER if
 *         MPI is not initialised. Nothing is changed on error.
 *
 * Ownership: the exchange is the caller's until MPI_Request_free, which gives
 *            the members back as requests that are not matched, or is
 *            MPI_ERR_PENDING while a use is in flight. Until then a call that
 *            would match, start, wait for, test or free a member is
 *            MPI_ERR_REQUEST. Errors are raised through the communicator of the
 *            first member.
 * Threads: MPI's rule for the calling thread.
 */
int MPIX_Exchange_init(int count, MPI_Request requests[], MPI_Info info,
                       MPI_Request *exchange);

#ifdef __cplusplus
}
#endif

#endif
