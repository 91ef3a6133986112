/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queues.h - the table of live queues.
 */
#ifndef MPIX_QUEUES_H_
#define MPIX_QUEUES_H_

#include "binding/mpix_comm.h"
#include "mpix_queue.h"
#include "once/mpix_batch.h"

#include <ucp_st.h>
#include <ucs_gstream.h>
#include <ucs/datastruct/list.h>

#include <stdint.h>


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
    ucp_st_queue_h   st_queue; /* NULL until needed; of the thread that calls
                                  for the queue */
    ucs_gstream_h    stream;   /* Constant */
    int              is_made;  /* The stream is the queue's: on one of a GPU's
                                  runtime, or the application has freed it,
                                  too. Constant until the queue is freed */
    volatile uint64_t *end;    /* Of a queue that was freed under way: the
                                  stream stores 1 last; NULL if it took no such
                                  command */
    mpix_comm_t      *comm;    /* Of messages without one; NULL if that is
                                  MPI_COMM_WORLD. Constant */
    mpix_batch_t     *batch;   /* Messages that are used once; NULL until
                                  needed; of the same thread */
    ucs_list_link_t  colls;    /* Collectives that were last started here; needs
                                  the lock */
    int              is_internal; /* Of a collective */
    mpix_queue_set_t sets[MPIX_QUEUE_MAX_SETS];
    unsigned         next_set; /* The next one to go, of the same thread */
};


/* Tell whether a handle, of any value, is a live queue. Takes the lock. */
int mpix_queue_is_valid(MPIX_Queue queue);

/* Make a queue on a stream of this library, as MPIX_Queue_init() does for an
 * application. Returns an MPI code that is not raised. Takes the lock. */
int mpix_queue_open(const char *func, ucs_gstream_h stream,
                    MPIX_Queue *queue_p);

/* Have an st queue, where the st worker is there. Returns an MPI code that is
 * not raised. Takes the lock. */
int mpix_queue_get_st(const char *func, struct mpix_queue *queue);

/* Free a queue: it goes at once, or when its last command has run. MPI_ERR_ARG,
 * which is not raised, if there is no such queue. Takes the lock. */
int mpix_queue_free(const char *func, MPIX_Queue queue);

/* Destroy the queues that were freed and have run everything meanwhile. Returns
 * how many have not. Takes the locks of the host's calls and of the library. */
unsigned mpix_queues_reap(void);

/* The application frees a stream. UCS_ERR_BUSY if it has a queue;
 * UCS_INPROGRESS if one was freed that is under way, which has the stream from
 * now on. Takes the locks. */
ucs_status_t mpix_queues_take_stream(ucs_gstream_h stream);

/* Start or wait for requests. Returns an MPI code that is not raised. Takes the
 * lock. */
int mpix_enqueue_requests(const char *func, struct mpix_queue *queue, int count,
                          const MPI_Request *requests, int is_wait);

/* The cause of a refusal, in the words of this interface. */
const char *mpix_enqueue_cause(ucs_status_t status, int is_start);

/* MPI_Finalize has begun: cancel the messages that are not started. MPI calls
 * back: without the lock. */
void mpix_queues_cancel(void);

/* Wait, for some seconds at most, for queues that were freed; destroy those
 * that the application has left, and warn of what stays. MPI may not be called
 * any more. Takes the locks. */
void mpix_queues_cleanup(void);

#endif
