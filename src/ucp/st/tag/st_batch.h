/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_batch.h - messages that streams start: given to the worker's UCP worker,
 * and progressed, by the service thread.
 */
#ifndef UCP_ST_BATCH_H_INTERNAL_
#define UCP_ST_BATCH_H_INTERNAL_

#include <ucp_st.h>

#include "core/st_queue.h"
#include "core/st_stack.h"
#include "core/st_worker.h"
#include "ctrl/st_service.h"

#include <ucs/datastruct/list.h>

#include <pthread.h>

/** A worker's part. Protected by its lock but for what says otherwise. */
typedef struct ucp_st_batch {
    pthread_mutex_t         ready_lock; /* one thread makes it ready */
    int                     is_ready;   /* atomic */
    ucp_st_stack_t          begun;      /* starts that streams have reached;
                                           atomic */
    ucs_list_link_t         work;       /* ucp_st_req_t to give to UCP */
    ucs_list_link_t         posted;     /* that UCP has */
    unsigned                handles;    /* that the user has */
    unsigned                cancels;    /* posted, UCP is to be told */
    ucp_ep_h                self_ep;    /* or NULL; the service thread's */
    int                     fd;         /* UCP's; -1 if it cannot sleep */
    unsigned                idle;       /* rounds with nothing to do; the
                                           thread's */
    ucp_st_service_client_t service;    /* its own */
} ucp_st_batch_t;

/** A queue's part. Of the thread that calls for the queue, but for what says
 *  otherwise. */
typedef struct ucp_st_queue_batch {
    ucs_list_link_t   enqueued; /* ucp_st_req_t that are not started */
    uint64_t          started;  /* messages */
    uint64_t          waited;   /* of these, the stream waits for */
    volatile uint64_t word;     /* complete ones, or released: the stream waits
                                   on it; stored with the worker's lock */
    uint64_t          done;     /* complete without error; worker's lock */
    unsigned          receives; /* that UCP has; worker's lock */
    int               is_failing; /* worker's lock */
} ucp_st_queue_batch_t;

extern const ucp_st_component_t ucp_st_tag_component;

static inline ucp_st_batch_t *ucp_st_batch(ucp_st_worker_h worker)
{
    return worker->parts[UCP_ST_PART_TAG];
}

static inline ucp_st_queue_batch_t *ucp_st_queue_batch(ucp_st_queue_h queue)
{
    return queue->parts[UCP_ST_PART_TAG];
}

/** Have the service thread serve it from now on. The lock is not held. */
ucs_status_t ucp_st_batch_serve_start(ucp_st_worker_h worker);

/** Have the service thread look. With the lock held or not. */
void ucp_st_batch_wake(ucp_st_worker_h worker);

#endif
