/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_coll.h - persistent collectives that are started on queues.
 *
 * The application has a persistent request: the MPI library's own, where it has
 * persistent collectives, so that MPI_Start works on it until it is matched.
 * Its record points to a collective: a list of steps, of which a round is a
 * number of matched sends and receives that are started and waited for
 * together: one exchange where there are several of both. They are requests of
 * MPI_Send_init and MPI_Recv_init on the communicator, with a scope of their
 * own, so that they pair with nothing of the application's.
 *
 * A collective of one round runs on the queue's stream, if that is one of the
 * host: its start is the steps before the round and the round's start, its wait
 * the round's wait and the steps behind it, then done = k, passed = k. So it
 * wakes no other thread, and blocks no more than messages that the application
 * starts and waits for there. All others have a stream of their own:
 *
 *    the queue's stream            the collective's own stream
 *    start of use k:  go = k  ---->  wait for go >= k
 *    (anything)                      round, copy, reduction, round ...
 *    wait of use k:                  done = k
 *      wait for done >= k     <----
 *      passed = k
 *
 * Why nothing deadlocks. A start is one store: it blocks no stream. From there
 * on the collective needs its own stream alone, which has the commands of its
 * uses in their order and no others. So a use waits for its start here, for the
 * use before, and for the same use on other ranks. No other collective,
 * communicator, queue or message is in its way, whatever the order in which
 * ranks start and wait for them. Within a use all sends and receives of a round
 * are started before the rank waits for any of them, and the rounds of all
 * ranks are those of an algorithm that ends where a send waits for its receive.
 * The streams of all collectives share one thread: one that waits leaves it to
 * the others, and a reduction waits for nothing.
 *
 * Why data is in order. The stream's store to 'go' releases what it has done
 * before, and the wait acquires it; the same holds for 'done'. A use begins
 * when the one before has ended, so that buffers of the collective are free
 * again.
 *
 * A host may enqueue any number of uses ahead: 'go' counts them, and is stored
 * by one stream, or by another one after the first has.
 */
#ifndef MPIX_COLL_H_
#define MPIX_COLL_H_

#include "mpix_coll_op.h"
#include "request/mpix_queues.h"
#include "request/mpix_request.h"

#include <mpi.h>

#include <ucs_gstream.h>
#include <ucs_gstream_memory.h>
#include <ucs/datastruct/list.h>

#include <stddef.h>
#include <stdint.h>

#define MPIX_COLL_MAX_TMPS 4


typedef enum {
    MPIX_COLL_BARRIER,
    MPIX_COLL_BCAST,
    MPIX_COLL_ALLREDUCE,
    MPIX_COLL_REDUCE,
    MPIX_COLL_ALLGATHER,
    MPIX_COLL_ALLTOALL,
    MPIX_COLL_NEIGHBOR_ALLTOALL,
    MPIX_COLL_NEIGHBOR_ALLTOALLV
} mpix_coll_kind_t;


/* What the application gave. */
typedef struct mpix_coll_args {
    const char       *func;      /* The function that it called */
    mpix_coll_kind_t kind;
    const void       *sendbuf;
    MPI_Count        sendcount;
    const int        *sendcounts; /* Neighbor_alltoallv, and the next three */
    const int        *sdispls;
    const int        *recvcounts;
    const int        *rdispls;
    MPI_Datatype     sendtype;
    void             *recvbuf;   /* Bcast: the buffer */
    MPI_Count        recvcount;  /* Reductions and Bcast: the count */
    MPI_Datatype     recvtype;   /* The same: the datatype */
    MPI_Op           op;
    int              root;
    MPI_Comm         comm;
    MPI_Info         info;
} mpix_coll_args_t;


typedef enum {
    MPIX_COLL_STEP_ROUND,
    MPIX_COLL_STEP_COPY,
    MPIX_COLL_STEP_REDUCE
} mpix_coll_step_kind_t;

typedef struct mpix_coll_step {
    mpix_coll_step_kind_t kind;
    int                   first;  /* Round: its messages */
    int                   count;
    const void            *src;   /* Copy, and left operand of a reduction */
    void                  *dst;
    size_t                length; /* Bytes, or elements of a reduction */
    const mpix_coll_op_t  *op;    /* Reduction */
    int                   *failed; /* Copy: the collective's */
} mpix_coll_step_t;


/* A collective. What is built by its init call is constant, but for the states
 * of the messages' records. The last group is of the thread that calls for the
 * queue; the words are stored by streams. */
typedef struct mpix_coll {
    ucs_list_link_t   list;       /* In the table of all; needs the lock */
    ucs_list_link_t   matching;   /* In the list of those; needs the lock */
    mpix_req_t        *req;       /* The application's */
    const char        *func;      /* That made it */
    int               is_native;  /* The request is MPI's own collective */
    int               seems_active; /* MPI took it for active when it was new,
                                     as MPICH 4.0 does until its first use */

    int               rank;       /* Own, in the communicator */
    int               size;
    int               tag;        /* Of all messages */
    MPI_Comm          comm;       /* During the init call only */
    mpix_coll_op_t    op;
    int               code;       /* Of the init call: MPI_SUCCESS, or an error
                                     that was raised */
    const char        *refusal;   /* Why it cannot be matched, or NULL */
    MPI_Request       *messages;  /* And exchanges of messages */
    mpix_req_t        **records;  /* Of these */
    int               num_messages;
    MPI_Request       *members;   /* Of the exchanges */
    int               num_members;
    mpix_coll_step_t  *steps;
    int               num_steps;
    int               num_rounds; /* Of the steps */
    int               round;      /* Place of the first one; num_steps if there
                                     is none */
    int               place;      /* Step with which the wait for a use on the
                                     queue's stream goes on */
    int               is_open;    /* The last step is a round that grows */
    void              *tmps[MPIX_COLL_MAX_TMPS];
    int               num_tmps;

    ucs_gstream_h     stream;     /* Own; NULL before the first start */
    MPIX_Queue        queue;      /* On it */
    struct mpix_queue *user;      /* Queue of the last start; NULL if there was
                                     none, or it is gone */
    ucs_list_link_t   user_link;  /* In its list; needs the lock */
    struct mpix_queue *runner;    /* Queue of the last use's messages: the
                                     user's, or the own one; NULL as 'user' */
    uint64_t          stored;     /* Stores to 'go' enqueued */
    uint64_t          started;    /* Of these, those whose uses are on the own
                                     stream: all but one that failed */
    uint64_t          waited;     /* Of these, those whose waits are enqueued */
    int               copy_status; /* ucs_status_t: a copy that failed;
                                     atomic */
    int               is_failed;  /* A use is on the own stream only in part */
    int               first_left; /* Messages of that which are started, and */
    int               num_left;   /* whose waits are not enqueued */
    volatile uint64_t *go;
    volatile uint64_t *done;
    volatile uint64_t *passed;
    struct mpix_coll  *next;      /* Of the same call */
} mpix_coll_t;


/* A word that a stream stores, after what it has done before. */
static inline uint64_t mpix_coll_word(const volatile uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Whether the last use runs on the own stream. */
static inline int mpix_coll_is_apart(const mpix_coll_t *coll)
{
    return (coll->runner != NULL) && (coll->runner == coll->queue);
}

/* An empty collective in the table of all; NULL if there is no memory. Takes
 * the lock. */
mpix_coll_t *mpix_coll_create(const char *func);


/* The matching. With the lock. */

/* Refuse a collective that cannot be matched. Returns an MPI code. */
int mpix_coll_check(const mpix_where_t *where);

/* Call a function for each message, until one returns an error. Returns that
 * MPI code. */
int mpix_coll_for_each(const mpix_where_t *where, const mpix_coll_t *coll,
                       int (*func)(const mpix_where_t *where,
                                   mpix_req_t *req));

/* As mpix_match_push(), of any request. */
void mpix_coll_push(mpix_req_t *req);

/* As mpix_match_progress(), of all requests. */
unsigned mpix_coll_progress(void);

/* As mpix_match_cancel(), of any request. UCS_INPROGRESS if that has no effect
 * yet, but will have in a moment: everything has run. */
ucs_status_t mpix_coll_cancel(mpix_req_t *req);

/* The host's calls as MPI_Wait: how the last use stands, UCS_INPROGRESS while
 * it is not over; and that the host was told of its end. */
ucs_status_t mpix_coll_status(mpix_coll_t *coll);
void mpix_coll_told(mpix_coll_t *coll);

/* Give back a cancelled collective. May be NULL. Without the lock. */
void mpix_coll_destroy(mpix_coll_t *coll);

/* Give back all collectives, after MPI_Finalize, when their queues are gone.
 * With the lock. */
void mpix_colls_cleanup(void);


/* The calls that enqueue. */

/* Start or wait for requests of which some are collectives. Returns an MPI code
 * that is not raised. Takes the lock. */
int mpix_coll_enqueue(const mpix_enqueue_call_t *call);

/* Non-zero if the queue's stream has run the starts and waits of collectives.
 * With the lock. */
int mpix_coll_is_idle(const struct mpix_queue *queue);

/* A queue that is idle goes. With the lock. */
void mpix_coll_leave_queue(struct mpix_queue *queue);

/* Whether a collective that was last started on the queue has failed. Returns
 * an MPI code that is not raised. Takes the lock. */
int mpix_coll_check_queue(const char *func, struct mpix_queue *queue);

/* Have the own stream and queue. Returns an MPI code that is not raised. Takes
 * the lock. */
int mpix_coll_get_queue(const char *func, mpix_coll_t *coll);


/* The construction. All but the first do nothing after an error or a
 * refusal. */

/* Make all steps. Returns an MPI code, which has been raised. */
int mpix_coll_build(mpix_coll_t *coll, const mpix_coll_args_t *args);

/* The same for collectives among neighbours. */
void mpix_coll_build_neighbor(mpix_coll_t *coll, const mpix_coll_args_t *args);

/* Add a message to the round that is open, or opens. The n-th send of a
 * collective to a rank is paired with the n-th receive from there. */
void mpix_coll_send(mpix_coll_t *coll, const void *buffer, MPI_Count count,
                    MPI_Datatype datatype, int rank);
void mpix_coll_recv(mpix_coll_t *coll, void *buffer, MPI_Count count,
                    MPI_Datatype datatype, int rank);

/* End the round: what follows comes after its messages. */
void mpix_coll_end_round(mpix_coll_t *coll);

/* Add a copy of bytes; nothing if 'src' is 'dst'. */
void mpix_coll_copy(mpix_coll_t *coll, void *dst, const void *src,
                    size_t length);

/* Add a reduction: inout = in op inout. */
void mpix_coll_reduce(mpix_coll_t *coll, const void *in, void *inout,
                      size_t count);

/* A buffer of the collective's own; NULL after an error. */
void *mpix_coll_tmp(mpix_coll_t *coll, size_t length);

/* Refuse to match, with a text that is constant. */
void mpix_coll_refuse(mpix_coll_t *coll, const char *refusal);

/* End the construction by an MPI code, which is raised with the text. */
void mpix_coll_fail(mpix_coll_t *coll, int code, const char *text);

#endif
