/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_enqueue.c - starts and waits for matched requests on a queue.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue.h"
#include "mpix_error.h"
#include "mpix_global.h"
#include "mpix_queues.h"
#include "mpix_request.h"

#include <stdlib.h>


typedef ucs_status_t (*mpix_enqueue_func_t)(ucp_st_queue_h queue,
                                            const ucp_st_op_h *ops,
                                            size_t count);


/* Memory for the operations of one call. Grows with the largest call only. */
static int mpix_enqueue_reserve(const char *func, struct mpix_queue *queue,
                                int count)
{
    ucp_st_op_h *ops;

    if (count <= queue->max_ops) {
        return MPI_SUCCESS;
    }

    ops = realloc(queue->ops, count * sizeof(*ops));
    if (ops == NULL) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory for %d requests",
                         count);
    }

    queue->ops     = ops;
    queue->max_ops = count;
    return MPI_SUCCESS;
}

/* Collects the operations of matched requests. */
static int mpix_enqueue_collect(const char *func, struct mpix_queue *queue,
                                int count, const MPI_Request *requests)
{
    int rc = MPI_SUCCESS;
    char str[MPIX_REQ_STR_MAX];
    mpix_req_t *req;
    int i;

    mpix_lock();
    for (i = 0; (i < count) && (rc == MPI_SUCCESS); ++i) {
        req = mpix_request_find(requests[i]);
        if (req == NULL) {
            rc = mpix_fail(func, MPI_ERR_REQUEST,
                           "the request is no persistent one, or is freed");
        } else if (req->state != MPIX_REQ_MATCHED) {
            rc = mpix_fail(func, MPI_ERR_REQUEST, "%s is not matched",
                           mpix_request_str(req, str, sizeof(str)));
        } else {
            queue->ops[i] = req->op;
        }
    }
    mpix_unlock();
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
    ucs_status_t status;
    int rc;

    if (!mpix_queue_is_valid(queue)) {
        return mpix_fail(func, MPI_ERR_ARG, "no live queue");
    }

    if ((count < 0) || ((count > 0) && (requests == NULL))) {
        return mpix_fail(func, (count < 0) ? MPI_ERR_COUNT : MPI_ERR_REQUEST,
                         "invalid array of %d requests", count);
    }

    rc = mpix_enqueue_reserve(func, queue, count);
    if (rc == MPI_SUCCESS) {
        rc = mpix_enqueue_collect(func, queue, count, requests);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    status = enqueue(queue->st_queue, queue->ops, count);
    if (status != UCS_OK) {
        return mpix_fail(func, mpix_status_code(status), "%s",
                         mpix_enqueue_cause(status));
    }
    return MPI_SUCCESS;
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
