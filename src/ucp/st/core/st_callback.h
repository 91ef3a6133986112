/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_callback.h - functions of lanes that the stream of a GPU announces.
 *
 * A host stream runs the functions of lanes itself. The stream of a GPU would
 * stop for each, until a thread of its runtime has woken up. It stores a number
 * instead, to the queue's callback word, and goes on. The service thread looks
 * at the word while callbacks are open, and runs them up to that number, in
 * order; so does a host call on the queue. So a callback may be late, and the
 * stream never waits for one: what has to be over before the stream goes on is
 * waited for by a word.
 */
#ifndef UCP_ST_CALLBACK_H_
#define UCP_ST_CALLBACK_H_

#include <ucp_st.h>

#include "ctrl/st_service.h"

#include <ucs/datastruct/list.h>

#include <pthread.h>

/**
 * The callbacks of a queue of a GPU's stream. They are made for a submission,
 * and open from just before it is enqueued until they have run: a submission
 * has not passed before they have. A submission that ends with a callback has
 * passed then.
 *
 * The stream's store of a number, a release for the whole system, pairs with an
 * acquire load of the word: a function sees all that the stream did before, but
 * for stores right in front of this one (gstream_gpu_relax_stores()).
 */
typedef struct ucp_st_callbacks {
    ucs_list_link_t   list;       /* in the worker's; its lock */
    ucp_st_worker_h   worker;     /* read-only */
    volatile uint64_t *word;      /* read-only */
    ucs_list_link_t   made;       /* ucp_st_callback_t, of the next submission;
                                     used by the thread that calls for the
                                     queue alone, as the next three fields */
    uint64_t          number;     /* of the last open one */
    uint64_t          last_made;  /* ... made */
    int               is_short;   /* one could not be made */
    pthread_mutex_t   lock;       /* protects the rest; not held while a
                                     function runs, no other is taken with it */
    ucs_list_link_t   open UCS_V_ALIGNED(16); /* in order of their numbers;
                                     aligned as its members, as list macros
                                     take the list's end for one */
    ucs_list_link_t   unused;
    int               is_running; /* a thread runs the first one */
    uint64_t          first_seq;  /* submission of the first open one, or
                                     UINT64_MAX; atomic: read without the lock,
                                     as the next one */
    uint64_t          passed;     /* submissions that have passed with them */
    uint64_t          wakeups;    /* of the thread; ucp_st_queue_count() */
} ucp_st_callbacks_t;

/** Make the callbacks of a new queue, if its stream is a GPU's. The worker's
 *  lock is not held, as it is not for the next one. */
ucs_status_t ucp_st_callbacks_init(ucp_st_queue_h queue);

/** Undo ucp_st_callbacks_init(). No callback is open. */
void ucp_st_callbacks_cleanup(ucp_st_queue_h queue);

/** Drop the callbacks that were made for a submission that was not enqueued. */
void ucp_st_callbacks_drop(ucp_st_callbacks_t *callbacks);

/** Make a callback: its number. If `size` is not 0 `arg` is so many bytes,
 *  which are copied. Sets `is_short` without memory: the submission must be
 *  refused. */
uint64_t ucp_st_callbacks_add(ucp_st_callbacks_t *callbacks,
                              ucs_gstream_func_t func, void *arg, size_t size);

/** The callbacks that were made are open: they are of this submission, which is
 *  about to be enqueued, and which ends with the last one if `is_end`. */
void ucp_st_callbacks_commit(ucp_st_callbacks_t *callbacks, uint64_t seq,
                             int is_end);

/** The last submission was not enqueued: drop its callbacks. The stream has not
 *  come to them, so that none runs. */
void ucp_st_callbacks_undo(ucp_st_callbacks_t *callbacks, uint64_t seq);

/** Run the callbacks that the stream has come to, unless another thread does:
 *  how many were run. No lock is held. */
unsigned ucp_st_callbacks_run(ucp_st_callbacks_t *callbacks);

/** A worker's private data. */
typedef struct ucp_st_callback_worker {
    pthread_mutex_t         lock;    /* protects the list; taken before that of
                                        a queue's callbacks, and held while they
                                        run */
    ucs_list_link_t         queues;  /* ucp_st_callbacks_t */
    int                     has_news;/* a queue has open ones that had none;
                                        atomic */
    double                  time;    /* of the last news, s; the thread's */
    ucp_st_service_client_t service; /* its own */
} ucp_st_callback_worker_t;

/** Set the data up, and undo that. No other thread uses the worker, nor for the
 *  next ones. */
void ucp_st_callback_init(ucp_st_worker_h worker);
void ucp_st_callback_cleanup(ucp_st_worker_h worker);

/** Have the service thread serve it, and end that. There are no queues. */
ucs_status_t ucp_st_callback_start(ucp_st_worker_h worker);
void ucp_st_callback_stop(ucp_st_worker_h worker);

#endif
