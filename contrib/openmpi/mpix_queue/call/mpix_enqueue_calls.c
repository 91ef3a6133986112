/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_enqueue_calls.c - the functions of the interface that start requests and
 * wait for them on a queue.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue.h"
#include "binding/mpix_error.h"
#include "coll/mpix_coll.h"
#include "request/mpix_queues.h"
#include "request/mpix_request.h"


/* What mpix_enqueue_requests() has left: collectives, and to raise errors. */
static int mpix_enqueue_rest(const mpix_enqueue_call_t *call, int rc)
{
    if (rc == MPIX_COLL_FOUND) {
        rc = mpix_coll_enqueue(call);
    }
    return (rc == MPI_SUCCESS) ?
                   rc :
                   mpix_raise(mpix_request_comm(call->count, call->requests),
                              rc);
}

int MPIX_Enqueue_start_req(MPIX_Queue queue, MPI_Request *request)
{
    const mpix_enqueue_call_t call = {"MPIX_Enqueue_start_req", queue, 1,
                                      request, 0};
    int rc;

    /* As MPI_Start */
    if ((request != NULL) && (*request == MPI_REQUEST_NULL)) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(call.func, MPI_ERR_REQUEST,
                                    "the request is MPI_REQUEST_NULL"));
    }
    rc = mpix_enqueue_requests(&call);
    return ucs_likely(rc == MPI_SUCCESS) ? rc : mpix_enqueue_rest(&call, rc);
}

int MPIX_Enqueue_startall(MPIX_Queue queue, int count, MPI_Request requests[])
{
    const mpix_enqueue_call_t call = {"MPIX_Enqueue_startall", queue, count,
                                      requests, 0};
    int rc = mpix_enqueue_requests(&call);

    return ucs_likely(rc == MPI_SUCCESS) ? rc : mpix_enqueue_rest(&call, rc);
}

int MPIX_Enqueue_wait_req(MPIX_Queue queue, MPI_Request *request)
{
    const mpix_enqueue_call_t call = {"MPIX_Enqueue_wait_req", queue, 1,
                                      request, 1};
    int rc = mpix_enqueue_requests(&call);

    return ucs_likely(rc == MPI_SUCCESS) ? rc : mpix_enqueue_rest(&call, rc);
}

int MPIX_Enqueue_waitall(MPIX_Queue queue, int count, MPI_Request requests[])
{
    const mpix_enqueue_call_t call = {"MPIX_Enqueue_waitall", queue, count,
                                      requests, 1};
    int rc = mpix_enqueue_requests(&call);

    return ucs_likely(rc == MPI_SUCCESS) ? rc : mpix_enqueue_rest(&call, rc);
}
