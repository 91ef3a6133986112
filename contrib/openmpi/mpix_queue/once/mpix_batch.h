/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_batch.h - messages on a stream that are used once.
 *
 *   ENQUEUED --- its start is a command of the stream ---> STARTED
 *       |                                                     |
 *       | its queue is freed               the stream got there; the library's
 *       |                                  thread has begun it, and MPI says
 *       v                                  that it is over
 *     DONE <--------------------------------------------------+
 *
 * A message is a persistent request of MPI, which the thread starts, and a
 * generalized request, which the application has. It may have dropped that one:
 * once a wait of the queue has passed behind the message, the request is one of
 * those of which the library keeps the last MPIX_QUEUE_MAX_DROPPED.
 *
 * On communicators that are for queues only there is no thread, and no request
 * of MPI's: see mpix_fifo.h.
 */
#ifndef MPIX_BATCH_H_
#define MPIX_BATCH_H_

#include "binding/mpix_comm.h"
#include "binding/mpix_waits.h"
#include "request/mpix_buffer.h"

#include <mpi.h>

#include <ucp_st.h>
#include <ucs_gstream.h>
#include <ucs_gstream_gate.h>
#include <ucs_gstream_memory.h>
#include <ucs/datastruct/list.h>

#include <stdint.h>
#include <stdio.h>

struct mpix_queue;


/* What the application gives. */
typedef struct mpix_msg_args {
    const char   *func;
    int          is_recv;
    const void   *buffer;
    int          count;
    MPI_Datatype datatype;
    int          rank;
    int          tag;
    MPI_Comm     comm;
    struct mpix_once_coll *coll; /* Of a collective, whose ranks and tag are 0;
                                    or NULL */
} mpix_msg_args_t;


/* A queue's part. Outlives the queue until its messages are over. */
typedef struct mpix_batch {
    unsigned          refs;     /* The queue's, and its messages' that are not
                                   over; atomic */
    ucs_list_link_t   enqueued; /* mpix_msg_t that are not started; of the
                                   thread that calls for the queue, as are the
                                   next eight */
    ucs_list_link_t   fifo_enqueued; /* The same, of mpix_fifo.h */
    uint64_t          num_unpacks; /* Of those, ever, that are unpacked */
    uint64_t          num_given; /* Messages of this file so far, */
    uint64_t          given;    /* and those whose starts were enqueued */
    uint64_t          count;    /* Messages so far */
    uint64_t          started;  /* Of these, those whose starts were enqueued */
    uint64_t          waited;   /* Of these, those whose waits were, too */
    uint64_t          left;     /* Others behind these that were waited for, by
                                   waits for some */
    ucs_list_link_t   over;     /* mpix_msg_t that the application has not
                                   completed; protected by their own lock */
    uint64_t          settled;  /* Messages that were waited for, when the list
                                   was last looked through; the same lock */
    uint64_t          commands; /* mpix_batch_command() so far */
    volatile uint64_t *passed;  /* Of these, those that the stream has run;
                                   stored by it */
    int               is_lost;  /* The stream is, and runs no more; atomic */
    volatile uint64_t *done;    /* Of these, those that are over: the stream
                                   waits for it; atomic */
    ucs_gstream_gates_t gates;  /* Of waits for some messages; the same lock */
    struct mpix_msg   *failed;  /* The first one that has, a reference; or NULL;
                                   atomic */
} mpix_batch_t;


/* A message. Constant but for the list, until the thread has stored how it
 * ended, which it does before it completes the outer request. That request is
 * freed after that but in MPICH 4.0, which frees at once what the application
 * frees. */
typedef struct mpix_msg {
    unsigned        refs;    /* The outer request's, one until the message is
                                over, and the batch's if it has failed;
                                atomic */
    ucs_list_link_t list;    /* The batch's; with the others of a start, a ring
                                without a head; the thread's; then the next
                                one's */
    int             is_listed; /* In the batch's list of those that are over, or
                                  in that of all that were waited for; protected
                                  by the lock of these lists */
    int             is_freed; /* The outer request is, in MPICH 4.0 maybe before
                                 the message is over; the same lock */
    int             is_counted; /* mpix_request_count(); the same lock */
    uint64_t        number;  /* In the queue, from 1; 0: never started */
    uint64_t        waited;  /* Of the first of a start: the batch's, whose
                                waits have passed when it is begun; else 0 */
    mpix_batch_t    *batch;  /* Until it is over */
    struct mpix_queue *queue; /* Which may be gone: */
    uint64_t        serial;  /* of it */
    ucs_gstream_gate_t *gate; /* Of a wait for some messages that this one holds
                                up, or NULL; the lock of the lists, as are the
                                next two */
    int             is_awaited; /* By a wait for some messages: the application
                                   has the request no longer */
    MPI_Status      *result; /* The application's, for that wait, or NULL */
    const char      *func;   /* That has enqueued it */
    MPI_Request     inner;   /* Persistent; of a collective MPI's, once it is
                                begun */
    MPI_Request     outer;   /* Generalized */
    int             is_recv;
    int             is_null; /* To or from MPI_PROC_NULL */
    int             count;   /* The next three: what the application gave */
    int             rank;
    int             tag;
    mpix_comm_t     *comm;   /* A reference */
    mpix_waits_t    waits;   /* While MPI has it; the thread's */
    int             is_fifo; /* mpix_fifo.h's, as are the next seven */
    int             is_going; /* Started and not over; protected by its lock, as
                                 is the next one */
    int             is_held; /* A call has it stay so */
    ucp_st_req_h    st_req;  /* NULL to or from MPI_PROC_NULL */
    ucp_st_req_info_t info;  /* Once that is over */
    uint64_t        actual;  /* Bytes received, set by the st worker */
    uint64_t        room;    /* Bytes of the buffer */
    struct mpix_fifo_unpack *unpack; /* Of a receive with gaps, or NULL */
    struct mpix_once_coll *coll; /* It is a collective; or NULL */
    mpix_buffer_t   *buffer; /* In a device: MPI, which may know nothing of
                                devices, has other memory; or NULL */
    void            *stage;  /* That memory */
    MPI_Status      status;  /* Once it is over */
    int             code;    /* The same: a class */
    char            *text;   /* What has failed; NULL if nothing has, or there
                                was no memory */
    int             is_over; /* Stored last, with release order */
} mpix_msg_t;


/* Enqueue commands, the last of which adds 1 to the batch's 'passed'. Returns
 * an MPI code that is not raised. */
int mpix_batch_command(const char *func, struct mpix_queue *queue,
                       const ucs_gstream_cmd_t *cmds, size_t count);

/* Non-zero if the stream has run all of these. */
int mpix_batch_is_idle(const mpix_batch_t *batch);

/* Non-zero if the queue's stream runs none of these any more: it has run all,
 * there is no batch, or it is found to be lost, which is noted in the batch. */
int mpix_batch_has_ended(const struct mpix_queue *queue);

/* Cancel the messages that are not started. MPI calls back: without the
 * lock. */
void mpix_batch_cancel(mpix_batch_t *batch);

/* Return a reference. */
void mpix_batch_put(mpix_batch_t *batch);

/* Refuse a call for a queue of which a message has failed: the error names the
 * message, and the communicator is that whose handler is for it. MPI_SUCCESS if
 * none has; else a code that is not raised. Takes the lock. */
int mpix_batch_check(const char *func, const mpix_batch_t *batch,
                     MPI_Comm *comm_p);

/* Messages that the thread has begun. Any thread. */
uint64_t mpix_batch_begun(void);

/* Print how many these are, and why, if there are any. Any thread. */
void mpix_batch_print_stats(FILE *stream);

/* A message is over: let the stream pass, if the message was started, and drop
 * the message's reference. */
void mpix_batch_release(mpix_batch_t *batch, int is_started);

/* Waits have passed behind so many messages of a queue: their requests may have
 * been dropped. */
void mpix_batch_settle(mpix_batch_t *batch, uint64_t waited);

/* Free the oldest requests that may have been dropped, but for so many. MPI
 * calls back. */
void mpix_batch_trim(unsigned max);

/* The stream waits for some started messages of a queue, however many others
 * there are, and stores how they have ended where 'results' are not NULL. Their
 * requests are the library's from then on. Returns an MPI code that is not
 * raised. */
int mpix_batch_wait_some(const char *func, struct mpix_queue *queue,
                         mpix_msg_t *const msgs[], MPI_Status *const results[],
                         int count);

/* The same for all that are started. */
int mpix_batch_wait_all(const char *func, struct mpix_queue *queue);

/* Enqueue a message that was checked, and start what is enqueued. Return MPI
 * codes: the first one's was raised. */
int mpix_batch_enqueue(const mpix_msg_args_t *args, struct mpix_queue *queue,
                       MPI_Request *request);
int mpix_batch_start_all(const char *func, struct mpix_queue *queue);

/* The batch goes: its messages that are over stay until the application
 * completes them. */
void mpix_batch_forget(mpix_batch_t *batch);

/* Make a message, with neither of its requests; NULL without memory. */
mpix_msg_t *mpix_msg_alloc(const mpix_msg_args_t *args, mpix_batch_t *batch);

/* The message, with its requests, is enqueued, in this list of the queue's
 * batch. */
void mpix_msg_enlist(mpix_msg_t *msg, struct mpix_queue *queue,
                     ucs_list_link_t *list);

/* Have mpix_msg_find() find the message. Without memory it does not. */
void mpix_msg_add(mpix_msg_t *msg);

/* Make the request that the application has. Returns an MPI code, which was
 * raised. */
int mpix_msg_make_outer(mpix_msg_t *msg);

/* Free a message whose requests were not made. */
void mpix_msg_destroy(mpix_msg_t *msg);

/* Take a reference, or return one. */
void mpix_msg_ref(mpix_msg_t *msg);
void mpix_msg_put(mpix_msg_t *msg);

/* The message of a request, with one more reference; NULL if it is of none. */
mpix_msg_t *mpix_msg_find(MPI_Request request);

/* Whether a message is over, as its request. */
int mpix_msg_is_over(const mpix_msg_t *msg);

/* MPI has ended a message: store how. */
void mpix_msg_get_result(const mpix_msg_t *msg, MPI_Status *result);

/* Have that stored when the message ends, before the stream passes a wait for
 * it; NULL: nowhere. 0 if it is over. */
int mpix_msg_set_result(mpix_msg_t *msg, MPI_Status *result);

/* The application has the request no longer. */
void mpix_msg_leave(mpix_msg_t *msg);

/* Make a gate of a batch, held by those of some messages that MPI has, and by
 * the caller; NULL without memory. */
ucs_gstream_gate_t *mpix_batch_hold(mpix_batch_t *batch,
                                    mpix_msg_t *const msgs[], int count);

/* The caller holds it no longer; unless the code is MPI_SUCCESS the stream has
 * not taken the wait, and the gate goes. */
void mpix_batch_hold_end(ucs_gstream_gate_t *gate, mpix_msg_t *const msgs[],
                         int count, int code);

/* A message is never begun: it holds up no wait. */
void mpix_msg_pass(mpix_msg_t *msg);

/* Whom it is for: "from rank 0, tag 7". */
#define MPIX_MSG_PEER_MAX 64

void mpix_msg_peer_str(const mpix_msg_t *msg, char *buffer, size_t max);

/* Why one has failed, as words behind a noun. */
const char *mpix_msg_why(const mpix_msg_t *msg);

/* Copy what a message in a device sends, or has received with this status,
 * between the device and the memory that MPI has. MPI_SUCCESS, also if it is in
 * none, or the code of the failure. */
int mpix_batch_copy(mpix_msg_t *msg, const MPI_Status *status);

/* Enqueue an allreduce, as MPI_Iallreduce, which MPI begins when the stream
 * gets to its start: a message, as the others. Returns an MPI code, which was
 * raised. */
int mpix_once_allreduce(mpix_msg_args_t *args, const void *sendbuf, MPI_Op op,
                        struct mpix_queue *queue, MPI_Request *request);

/* For the thread: begin a collective, and copy what has come to where it
 * belongs. MPI codes. */
int mpix_once_coll_begin(mpix_msg_t *msg);
int mpix_once_coll_end(mpix_msg_t *msg);

/* Free it; NULL is legal. */
void mpix_once_coll_destroy(struct mpix_once_coll *coll);

/* A message is over, with a code of MPI: tell the stream and the application.
 * It may be gone on return. */
void mpix_batch_end(mpix_msg_t *msg, int code, const MPI_Status *status);


/* Have the thread, which is made if there is none. Returns an MPI code that is
 * not raised. */
int mpix_batch_thread_get(const char *func);

/* Run by a stream, with the first message of a start: the thread begins all of
 * them, which are the thread's from now on. The stream has passed the start. */
void mpix_batch_thread_begin(void *arg);

/* MPI_Finalize has begun: end the thread, and what it has. Receives that have
 * not matched are cancelled. */
void mpix_batch_thread_stop(void);

/* In a child that was forked. */
void mpix_batch_thread_forked(void);

#endif
