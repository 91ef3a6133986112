/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_call.h - the service thread's part of core/st_call.h.
 */
#ifndef UCP_ST_CTRL_CALL_H_
#define UCP_ST_CTRL_CALL_H_

#include "core/st_call.h"
#include "ctrl/st_service.h"

/** A worker's part. */
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

/** Set the part up, and undo that. No other thread uses the worker, nor for the
 *  next ones. */
void ucp_st_call_init(ucp_st_worker_h worker);
void ucp_st_call_cleanup(ucp_st_worker_h worker);

/** Have the service thread serve it, and end that. There are no queues. */
ucs_status_t ucp_st_call_start(ucp_st_worker_h worker);
void ucp_st_call_stop(ucp_st_worker_h worker);

#endif
