/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_fifo.h - messages that are used once, on communicators that say that
 * theirs are sent and received by queues only (the info key mpix_queue_only, or
 * MPIX_QUEUE_ONLY=y): messages of FIFOs of the st worker, matched by their
 * numbers, in the place of MPI's. No thread of this library calls MPI for them,
 * so that MPI_THREAD_MULTIPLE is not needed; a stream only fills statuses.
 *
 * The application has a generalized request as for the others. Calls that wait
 * for it, or test it, find it here and complete it. What the application drops
 * is completed by later calls that enqueue.
 */
#ifndef MPIX_FIFO_H_
#define MPIX_FIFO_H_

#include "mpix_batch.h"
#include "request/mpix_queues.h"


/* MPI is initialised: with MPIX_QUEUE_ONLY=y have all processes of
 * MPI_COMM_WORLD agree on it, and exchange addresses. Returns an MPI code,
 * which was raised. Collective over it. */
int mpix_only_begin(void);

/* The environment says it of all communicators. */
int mpix_only_is_forced(void);

/* Whether messages of a communicator are sent and received by queues only. */
int mpix_only_is(const mpix_comm_t *comm);

/* Say it of a communicator: its processes exchange addresses. Returns an MPI
 * code that is not raised, but by MPI. Collective over it. */
int mpix_only_set(const char *func, MPI_Comm handle);

/* Get the st peer of a rank of such a communicator, and the scope of its
 * messages. Returns an MPI code that is not raised. Takes the lock. */
int mpix_only_peer(const char *func, mpix_comm_t *comm, int rank,
                   ucp_st_peer_h *peer_p, uint64_t *scope_p);

/* All processes of a communicator tell each other the addresses of their st
 * workers. Returns an MPI code that is not raised, but by MPI; MPI_SUCCESS at
 * all of them or at none. Collective over it. */
int mpix_only_share(const char *func, MPI_Comm handle);

/* Get the st peer of a process that has told its address; 'rank' is what an
 * error names. Returns an MPI code that is not raised. Takes the lock. */
int mpix_only_connect(const char *func, int world_rank, int rank,
                      ucp_st_peer_h *peer_p);

/* The library is closed: forget the addresses. */
void mpix_only_cleanup(void);


/* Enqueue a message of such a communicator. Returns an MPI code, which was
 * raised. */
int mpix_fifo_enqueue(const mpix_msg_args_t *args, struct mpix_queue *queue,
                      mpix_comm_t *comm, MPI_Request *request);

/* Start, or wait for, what is enqueued on a queue. Return MPI codes that are
 * not raised. */
int mpix_fifo_start(const char *func, struct mpix_queue *queue);
int mpix_fifo_wait(const char *func, struct mpix_queue *queue);

/* Have the stream wait for those of some messages that are of such
 * communicators, if 'is_all_waited' is 0, and store their results, as
 * mpix_batch_wait_some(). */
int mpix_fifo_wait_some(const char *func, struct mpix_queue *queue,
                        mpix_msg_t *const msgs[], MPI_Status *const results[],
                        int count, int is_all_waited);

/* The requests of a call of MPI: complete those that are over. Calls MPI. */
void mpix_fifo_poll(int count, const MPI_Request requests[]);

/* Complete all that are over. Calls MPI. */
void mpix_fifo_sweep(void);

/* The same, however many are not over: a queue has failed, say. */
void mpix_fifo_look(void);

/* The same if a queue has failed: the message that has is the error. */
void mpix_fifo_look_failed(const struct mpix_queue *queue);

/* A queue goes: cancel what it has not started. Calls MPI. */
void mpix_fifo_cancel(mpix_batch_t *batch);

/* MPI_Finalize has begun: end all. Calls MPI. */
void mpix_fifo_stop(void);

/* In a child that was forked. */
void mpix_fifo_forked(void);

/* Messages that streams were given to start. Any thread. */
uint64_t mpix_fifo_count(void);

#endif
