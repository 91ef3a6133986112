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


/* The usual way out does not look up anything. */
static int mpix_enqueue_any(const char *func, MPIX_Queue queue, int count,
                            MPI_Request *requests, int is_wait)
{
    const mpix_enqueue_call_t call = {func, queue, count, requests, is_wait};
    int rc = mpix_enqueue_requests(func, queue, count, requests, is_wait);

    if (rc == MPIX_COLL_FOUND) {
        rc = mpix_coll_enqueue(&call);
    }
    if (ucs_likely(rc == MPI_SUCCESS)) {
        return rc;
    }
    return mpix_raise(mpix_request_comm(count, requests), rc);
}

int MPIX_Enqueue_start_req(MPIX_Queue queue, MPI_Request *request)
{
    static const char func[] = "MPIX_Enqueue_start_req";

    /* As MPI_Start */
    if ((request != NULL) && (*request == MPI_REQUEST_NULL)) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_REQUEST,
                                    "the request is MPI_REQUEST_NULL"));
    }
    return mpix_enqueue_any(func, queue, 1, request, 0);
}

int MPIX_Enqueue_startall(MPIX_Queue queue, int count, MPI_Request requests[])
{
    return mpix_enqueue_any("MPIX_Enqueue_startall", queue, count, requests, 0);
}

int MPIX_Enqueue_wait_req(MPIX_Queue queue, MPI_Request *request)
{
    return mpix_enqueue_any("MPIX_Enqueue_wait_req", queue, 1, request, 1);
}

int MPIX_Enqueue_waitall(MPIX_Queue queue, int count, MPI_Request requests[])
{
    return mpix_enqueue_any("MPIX_Enqueue_waitall", queue, count, requests, 1);
}
