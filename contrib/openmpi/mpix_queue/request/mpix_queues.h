/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queues.h - the table of live queues.
 */
#ifndef MPIX_QUEUES_H_
#define MPIX_QUEUES_H_

#include "binding/mpix_comm.h"
#include "mpix_queue.h"

#include <ucp_st.h>
#include <ucs_gstream.h>
#include <ucs/datastruct/list.h>

#include <stdint.h>

struct mpix_batch;


/* Arrays of requests whose operations a queue remembers */
#define MPIX_QUEUE_MAX_SETS 8

/* The operations of an array of requests. Of the thread that enqueues. */
typedef struct mpix_queue_set {
    MPI_Request *requests;
    ucp_st_op_h *ops;
    int         count;   /* Of requests */
    int         num_ops; /* Of those that are not MPI_REQUEST_NULL */
    int         max;     /* There is room for so many */
    uint64_t    cancels; /* mpix_global's when they were looked up */
} mpix_queue_set_t;

/* One queue. What is not in the table is never dereferenced. */
struct mpix_queue {
    ucs_list_link_t  list;     /* In the table; protected by the lock. First:
                                  mpix_handle.h */
    uint64_t         serial;   /* No other queue has it. Constant */
    ucp_st_queue_h   st_queue; /* NULL until needed; of the thread that calls
                                  for the queue */
    ucs_gstream_h    stream;   /* Constant */
    int              is_made;  /* The stream is the queue's: on one of a GPU's
                                  runtime, or the application has freed it,
                                  too. Constant until the queue is freed */
    int              goes_with_stream; /* It is freed with the stream, which the
                                          application does not know it is on;
                                          needs the lock */
    volatile uint64_t *end;    /* Of a queue that was freed under way: the
                                  stream stores 1 last; NULL if it took no such
                                  command */
    mpix_comm_t      *comm;    /* Of messages without one; NULL if that is
                                  MPI_COMM_WORLD. Constant */
    struct mpix_batch *batch;  /* Messages that are used once; NULL until
                                  needed; of the same thread */
    ucs_list_link_t  colls;    /* Collectives that were last started here; needs
                                  the lock */
    int              is_internal; /* The application has not made it */
    mpix_queue_set_t sets[MPIX_QUEUE_MAX_SETS];
    unsigned         next_set; /* The next one to go, of the same thread */
    MPI_Request      *started; /* And not waited for: of interfaces whose waits
                                  need not name them; of the same thread, as
                                  are the next two */
    int              num_started;
    int              max_started; /* There is room for so many */
};


/* Live queues, and those that the application has freed and whose commands are
 * under way. Protected by the lock. */
extern ucs_list_link_t mpix_queues, mpix_queues_freed;

/* Tell whether a handle, of any value, is a live queue. Takes the lock. */
int mpix_queue_is_valid(MPIX_Queue queue);

/* The same of a queue with a serial: another may have its place by now. */
int mpix_queue_is_serial(MPIX_Queue queue, uint64_t serial);

/* Make a queue, without an st queue. The communicator is the queue's. Returns
 * an MPI code that is not raised. Takes the lock. */
int mpix_queue_create(const char *func, ucs_gstream_h stream, mpix_comm_t *comm,
                      MPIX_Queue *queue_p);

/* Make a queue with an st queue, where the st worker is there. Returns an MPI
 * code that is not raised. Takes the lock. */
int mpix_queue_open(const char *func, ucs_gstream_h stream,
                    MPIX_Queue *queue_p);

/* Have an st queue, where the st worker is there. Returns an MPI code that is
 * not raised. Takes the lock. */
int mpix_queue_get_st(const char *func, struct mpix_queue *queue);

/* Give back what a queue has of others, if it is idle. Needs the lock. */
ucs_status_t mpix_queue_close(struct mpix_queue *queue);

/* Take a closed queue out of its list and free it. Needs the lock. */
void mpix_queue_destroy(struct mpix_queue *queue);

/* Leave a queue to mpix_queues_reap(), for which its stream tells that it has
 * run everything. Takes the lock. */
void mpix_queue_retire(struct mpix_queue *queue);

/* Free a queue of mpix_queue_open() without messages that are used once or
 * collectives: it goes at once, or when its last command has run. Takes the
 * lock. */
void mpix_queue_shut(struct mpix_queue *queue);


/* Make room to remember more requests that are started. Returns an MPI code
 * that is not raised. */
int mpix_queue_reserve(const char *func, struct mpix_queue *queue, int count);

/* Enqueue the wait for those that are remembered. Returns an MPI code, which
 * was raised. */
int mpix_queue_wait_started(struct mpix_queue *queue);


/* A start of requests, or a wait. */
typedef struct mpix_enqueue_call {
    const char        *func;
    struct mpix_queue *queue;
    int               count;
    const MPI_Request *requests;
    int               is_wait;
} mpix_enqueue_call_t;

/* What mpix_enqueue_requests() returns, with no effect, where there is a
 * collective. */
#define MPIX_COLL_FOUND (-1)

/* Start or wait for requests. Returns an MPI code that is not raised. Takes the
 * lock. */
int mpix_enqueue_requests(const mpix_enqueue_call_t *call);

/* The cause of a refusal, in the words of this interface. */
const char *mpix_enqueue_cause(ucs_status_t status, int is_start);

#endif
