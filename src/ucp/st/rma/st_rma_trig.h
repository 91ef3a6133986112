/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_trig.h - one-sided operations on lane trig: deferred work of the NIC.
 *
 * Each queue has on the NIC a counter T, to which its stream adds 1 for every
 * operation, a counter C and a word:
 *
 *   put, get:         T >= n: the data        C counts it
 *   put with signal:  T >= n: the data        S counts it
 *                     S >= m: the signal      C counts it
 *   signal alone:     T >= n: the signal      C counts it
 *   quiet:            C >= all that operations before it count:
 *                                             word = their number
 *
 * The n-th operation of the queue has threshold n. S is a counter of the pair
 * of data and signal, lent by the queue while both are under way; m is what it
 * has counted before, and the writes of this data. A strict operation has the
 * stream wait as a quiet does, if there are others with the peer.
 *
 * A queue sets entries aside for itself when it needs the first one, and takes
 * more as far as uses of others may be posted ahead, too. What finds none free
 * waits here, in order, and is posted when one before it is complete: a
 * threshold that is reached already fires at once. So no queue holds what
 * another one needs.
 *
 * What fails is counted in the NIC's place, when the queue is in error: quiets
 * pass.
 */
#ifndef UCP_ST_RMA_TRIG_H_
#define UCP_ST_RMA_TRIG_H_

#include "rma/st_rma.h"

/** A queue's part, made for its first operation. */
typedef struct ucp_st_rma_trig ucp_st_rma_trig_t;

/** Post what waits for entries, and give back what queues have left. The lock
 *  is held, as it is for the rest. */
void ucp_st_rma_trig_progress(ucp_st_worker_h worker);

/** Non-zero while operations have not ended here that their queue's stream has
 *  passed a quiet of. */
int ucp_st_rma_trig_is_behind(ucp_st_worker_h worker);

/** What start() and wait() made was enqueued: give it to the NIC. */
void ucp_st_rma_trig_commit(ucp_st_rma_trig_t *trig);

/** The queue goes: its part is given back when the NIC is done with it. */
void ucp_st_rma_trig_leave(ucp_st_rma_trig_t *trig);

/** The peer is gone: end what is with it. */
void ucp_st_rma_trig_peer_gone(ucp_st_peer_h peer);

#endif
