/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_enqueue.c - starts and waits for matched requests on a queue.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue.h"
#include "mpix_coll.h"
#include "mpix_error.h"
#include "mpix_global.h"
#include "mpix_queues.h"
#include "mpix_request.h"

#include <stdlib.h>
#include <string.h>


typedef ucs_status_t (*mpix_enqueue_func_t)(ucp_st_queue_h queue,
                                            const ucp_st_op_h *ops,
                                            size_t count);


/* Room in a set. Grows with the largest call only. */
static int mpix_enqueue_reserve(const char *func, mpix_queue_set_t *set,
                                int count)
{
    MPI_Request *requests;
    ucp_st_op_h *ops;

    if (count <= set->max) {
        return MPI_SUCCESS;
    }

    requests = malloc(count * sizeof(*requests));
    ops      = malloc(count * sizeof(*ops));
    if ((requests == NULL) || (ops == NULL)) {
        free(requests);
        free(ops);
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory for %d requests",
                         count);
    }

    free(set->requests);
    free(set->ops);
    set->requests = requests;
    set->ops      = ops;
    set->max      = count;
    return MPI_SUCCESS;
}

/* Looks the operations of matched requests up. Needs the lock. */
static int mpix_enqueue_collect(const char *func, mpix_queue_set_t *set,
                                int count, const MPI_Request *requests)
{
    char str[MPIX_REQ_STR_MAX];
    mpix_req_t *req;

    for (set->count = 0; set->count < count; ++set->count) {
        req = mpix_request_find(requests[set->count]);
        if (req == NULL) {
            return mpix_fail(func, MPI_ERR_REQUEST,
                             "the request is no persistent one, or is freed");
        }
        if (req->kind == MPIX_REQ_COLL) {
            return MPIX_COLL_FOUND;
        }
        if (req->state != MPIX_REQ_MATCHED) {
            return mpix_fail(func, MPI_ERR_REQUEST, "%s is not matched",
                             mpix_request_str(req, str, sizeof(str)));
        }
        set->requests[set->count] = requests[set->count];
        set->ops[set->count]      = req->op;
    }
    set->cancels = mpix_global.cancels;
    return MPI_SUCCESS;
}

/* The same array of before, if nothing has been freed since; else NULL. Those
 * of one request are found as fast in the table of all. Needs the lock. */
static mpix_queue_set_t *mpix_enqueue_recall(struct mpix_queue *queue,
                                             int count,
                                             const MPI_Request *requests)
{
    mpix_queue_set_t *set;

    for (set = queue->sets;
         (count > 1) && (set < (queue->sets + MPIX_QUEUE_MAX_SETS)); ++set) {
        if ((set->count == count) && (set->cancels == mpix_global.cancels) &&
            !memcmp(set->requests, requests, count * sizeof(*requests))) {
            return set;
        }
    }
    return NULL;
}

/* The operations of matched requests. Programs give the same arrays over and
 * over, so that the last ones are remembered. */
static int mpix_enqueue_ops(const char *func, struct mpix_queue *queue,
                            int count, const MPI_Request *requests,
                            const ucp_st_op_h **ops_p)
{
    int rc = MPI_SUCCESS;
    mpix_queue_set_t *set;

    mpix_lock();
    set = mpix_enqueue_recall(queue, count, requests);
    if (set == NULL) {
        set = &queue->sets[queue->next_set];
        rc  = mpix_enqueue_reserve(func, set, count);
        if (rc == MPI_SUCCESS) {
            rc = mpix_enqueue_collect(func, set, count, requests);
        }
        queue->next_set = (queue->next_set + (count > 1)) %
                          MPIX_QUEUE_MAX_SETS;
    }
    mpix_unlock();
    *ops_p = set->ops;
    return rc;
}

/* The cause of a refusal, in the words of this interface. */
static const char *mpix_enqueue_cause(ucs_status_t status)
{
    switch (status) {
    case UCS_ERR_BUSY:
        return "a request is started already and not waited for, or was last "
               "used on another queue and the host has not seen its wait pass";
    case UCS_ERR_NO_MESSAGE:
        return "a request is not started, or its wait is enqueued already";
    case UCS_ERR_INVALID_PARAM:
        return "a request was started on another queue, or is given twice";
    case UCS_ERR_NOT_CONNECTED:
        return "a request is not matched";
    default:
        return ucs_status_string(status);
    }
}

static int mpix_enqueue(const char *func, struct mpix_queue *queue, int count,
                        const MPI_Request *requests,
                        mpix_enqueue_func_t enqueue)
{
    const mpix_coll_call_t call = {
        func, queue, count, requests, enqueue == ucp_st_enqueue_waitall
    };
    const ucp_st_op_h *ops;
    ucs_status_t status;
    int rc;

    if (!mpix_queue_is_valid(queue)) {
        return mpix_fail(func, MPI_ERR_ARG, "%p is no live queue",
                         (void*)queue);
    }

    if ((count < 0) || ((count > 0) && (requests == NULL))) {
        return mpix_fail(func, (count < 0) ? MPI_ERR_COUNT : MPI_ERR_REQUEST,
                         "invalid array of %d requests", count);
    }

    rc = mpix_enqueue_ops(func, queue, count, requests, &ops);
    if ((rc == MPI_SUCCESS) && (queue->st_queue == NULL)) {
        rc = mpix_queue_get_st(func, queue);
    }
    if (rc == MPIX_COLL_FOUND) {
        return mpix_coll_enqueue(&call);
    } else if (rc != MPI_SUCCESS) {
        return rc;
    }

    status = enqueue(queue->st_queue, ops, count);
    if (status != UCS_OK) {
        return mpix_fail(func, mpix_status_code(status), "%s",
                         mpix_enqueue_cause(status));
    }
    return MPI_SUCCESS;
}

int mpix_enqueue_requests(const char *func, struct mpix_queue *queue, int count,
                          const MPI_Request *requests, int is_wait)
{
    return mpix_enqueue(func, queue, count, requests,
                        is_wait ? ucp_st_enqueue_waitall :
                                  ucp_st_enqueue_startall);
}

/* The way out of all functions here: the usual one does not look up
 * anything. */
static int mpix_enqueue_return(int count, const MPI_Request *requests, int rc)
{
    if (ucs_likely(rc == MPI_SUCCESS)) {
        return rc;
    }
    return mpix_raise(mpix_request_comm(count, requests), rc);
}

int MPIX_Enqueue_start_req(MPIX_Queue queue, MPI_Request *request)
{
    int rc = mpix_enqueue("MPIX_Enqueue_start_req", queue, 1, request,
                          ucp_st_enqueue_startall);

    return mpix_enqueue_return(1, request, rc);
}

int MPIX_Enqueue_startall(MPIX_Queue queue, int count, MPI_Request requests[])
{
    int rc = mpix_enqueue("MPIX_Enqueue_startall", queue, count, requests,
                          ucp_st_enqueue_startall);

    return mpix_enqueue_return(count, requests, rc);
}

int MPIX_Enqueue_wait_req(MPIX_Queue queue, MPI_Request *request)
{
    int rc = mpix_enqueue("MPIX_Enqueue_wait_req", queue, 1, request,
                          ucp_st_enqueue_waitall);

    return mpix_enqueue_return(1, request, rc);
}

int MPIX_Enqueue_waitall(MPIX_Queue queue, int count, MPI_Request requests[])
{
    int rc = mpix_enqueue("MPIX_Enqueue_waitall", queue, count, requests,
                          ucp_st_enqueue_waitall);

    return mpix_enqueue_return(count, requests, rc);
}
