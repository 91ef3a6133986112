/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_call.h - functions that lanes give to a queue's stream.
 *
 * A stream whose host functions are cheap runs them itself. Any other one would
 * stop for each, until a thread of its runtime has woken up. It stores a number
 * instead, to the queue's call word, and goes on; the service thread, which
 * looks at the word while calls are open, or a host call on the queue then runs
 * the functions up to that number, in order. So a function of a lane may be
 * late, and the stream never waits for one: what has to be over before the
 * stream goes on is waited for by a word.
 */
#ifndef UCP_ST_CALL_H_
#define UCP_ST_CALL_H_

#include <ucp_st.h>

#include "ctrl/st_service.h"

#include <ucs/datastruct/list.h>

#include <pthread.h>

/**
 * The calls of a queue whose stream runs no functions. Calls are made for a
 * batch, and open from just before it is enqueued until they have run: a batch
 * has not passed before they have. One that ends with a call has passed then.
 *
 * The stream's store of a number, a release for the whole system, pairs with an
 * acquire load of the word: a function sees all that the stream did before, but
 * for stores right in front of this one (gstream_gpu_relax_stores()).
 */
typedef struct ucp_st_calls {
    ucs_list_link_t   list;       /* in the worker's; its lock */
    ucp_st_worker_h   worker;     /* read-only */
    volatile uint64_t *word;      /* read-only */
    ucs_list_link_t   made;       /* ucp_st_call_t, of the next batch; used by
                                     the thread that calls for the queue alone,
                                     as the next three */
    uint64_t          number;     /* of the last open call */
    uint64_t          last_made;  /* ... made */
    int               is_short;   /* one could not be made: likewise */
    pthread_mutex_t   lock;       /* protects the rest; not held while a
                                     function runs, no other is taken with it */
    ucs_list_link_t   open;       /* in order of their numbers */
    ucs_list_link_t   unused;
    int               is_running; /* a thread runs the first one */
    uint64_t          first_seq;  /* batch of the first open one, or UINT64_MAX;
                                     atomic: read without the lock, as the next
                                     one */
    uint64_t          passed;     /* batches that have passed, as calls tell */
} ucp_st_calls_t;

/** Make the calls of a new queue, if its stream needs them. The worker's lock
 *  is not held, as it is not for the next one. */
ucs_status_t ucp_st_calls_init(ucp_st_queue_h queue);

/** Undo that. None is open. */
void ucp_st_calls_cleanup(ucp_st_queue_h queue);

/** Drop the calls that were made for a batch which was not enqueued. */
void ucp_st_calls_drop(ucp_st_calls_t *calls);

/** Make a call: its number. If `size` is not 0 `arg` is so many bytes, which
 *  are copied. Sets `is_short` without memory: the batch must be refused. */
uint64_t ucp_st_calls_add(ucp_st_calls_t *calls, ucs_gstream_func_t func,
                          void *arg, size_t size);

/** The calls that were made are open: they are of this batch, which is about to
 *  be enqueued, and which ends with the last one if `is_end`. */
void ucp_st_calls_commit(ucp_st_calls_t *calls, uint64_t seq, int is_end);

/** That batch, the last one, was not enqueued: drop its calls. The stream has
 *  not come to them, so that none runs. */
void ucp_st_calls_undo(ucp_st_calls_t *calls, uint64_t seq);

/** Run those that the stream has come to, unless another thread does: how many
 *  were run. With no lock. */
unsigned ucp_st_calls_run(ucp_st_calls_t *calls);

/** A worker's private data. */
typedef struct ucp_st_call_worker {
    pthread_mutex_t         lock;    /* protects the list; taken before that of
                                        a queue's calls, and held while they are
                                        run */
    ucs_list_link_t         queues;  /* ucp_st_calls_t */
    int                     has_news;/* a queue has open calls that had none;
                                        atomic */
    double                  time;    /* of the last news, s; the thread's */
    ucp_st_service_client_t service; /* its own */
} ucp_st_call_worker_t;

/** Set the data up, and undo that. No other thread uses the worker, nor for the
 *  next ones. */
void ucp_st_call_init(ucp_st_worker_h worker);
void ucp_st_call_cleanup(ucp_st_worker_h worker);

/** Have the service thread serve it, and end that. There are no queues. */
ucs_status_t ucp_st_call_start(ucp_st_worker_h worker);
void ucp_st_call_stop(ucp_st_worker_h worker);

#endif
