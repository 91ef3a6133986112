/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_device.c - matched requests that kernels start and wait for.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue_device.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "mpix_queues.h"
#include "mpix_request.h"


/* The operation of a matched request */
static int mpix_device_op(const mpix_where_t *call, MPI_Request request,
                          ucp_st_op_h *op_p)
{
    mpix_where_t where = *call;
    int rc             = MPI_SUCCESS;

    if (request == MPI_REQUEST_NULL) {
        return mpix_fail(where.func, MPI_ERR_REQUEST,
                         "the request is MPI_REQUEST_NULL");
    }
    mpix_lock();
    where.req = mpix_request_find(request);
    if (where.req == NULL) {
        rc = mpix_request_fail(&where, MPI_ERR_REQUEST,
                               "is no persistent one, or is freed");
    } else if ((where.req->kind == MPIX_REQ_COLL) ||
               (where.req->kind == MPIX_REQ_EXCHANGE) ||
               (where.req->joint != NULL)) {
        rc = mpix_request_fail(&where, MPI_ERR_UNSUPPORTED_OPERATION,
                               "is a collective, an exchange or of one: "
                               "kernels start single requests");
    } else if (where.req->state != MPIX_REQ_MATCHED) {
        rc = mpix_request_fail(&where, MPI_ERR_REQUEST,
                               "is not matched (MPIX_Matchall first)");
    } else {
        *op_p = where.req->op;
    }
    mpix_unlock();
    return rc;
}

static const char *mpix_device_cause(ucs_status_t status)
{
    switch (status) {
    case UCS_ERR_UNSUPPORTED:
        return "cannot be started by this stream's kernels: the log says why "
               "(buffers on GPUs, lanes direct and trig)";
    case UCS_ERR_BUSY:
    case UCS_ERR_CANCELED:
        return mpix_enqueue_cause(status, 1);
    default:
        return ucs_status_string(status);
    }
}

static int mpix_device_fail(const mpix_where_t *call, MPI_Request request,
                            ucs_status_t status)
{
    mpix_where_t where = *call;
    int code           = (status == UCS_ERR_UNSUPPORTED) ?
                         MPI_ERR_UNSUPPORTED_OPERATION :
                         mpix_status_code(status);
    int rc;

    mpix_lock();
    where.req = mpix_request_find(request);
    rc        = (where.req == NULL) ?
                mpix_fail(where.func, code, "the request %s",
                          mpix_device_cause(status)) :
                mpix_request_fail(&where, code, "%s",
                                  mpix_device_cause(status));
    mpix_unlock();
    return rc;
}

int MPIX_Request_device(MPI_Request request, MPIX_Device_handle *handle)
{
    const mpix_where_t call = {"MPIX_Request_device", 1};
    ucs_status_t status;
    ucp_st_op_h op;
    int rc;

    rc = (handle == NULL) ?
         mpix_fail(call.func, MPI_ERR_ARG, "the handle is NULL") :
         mpix_device_op(&call, request, &op);
    if (rc == MPI_SUCCESS) {
        status = ucp_st_op_device(op, handle);
        rc     = (status == UCS_OK) ? MPI_SUCCESS :
                                      mpix_device_fail(&call, request, status);
    }
    return (rc == MPI_SUCCESS) ? rc :
                                 mpix_raise(mpix_request_comm(1, &request), rc);
}

static int mpix_device_post(const mpix_where_t *call, struct mpix_queue *queue,
                            MPI_Request request, int uses)
{
    ucs_status_t status;
    ucp_st_op_h op;
    int rc;

    if (!mpix_queue_is_valid(queue)) {
        return mpix_fail(call->func, MPI_ERR_ARG, "%p is no live queue",
                         (void*)queue);
    }
    if (uses < 0) {
        return mpix_fail(call->func, MPI_ERR_COUNT, "the count of uses is %d",
                         uses);
    }
    rc = mpix_device_op(call, request, &op);
    if ((rc == MPI_SUCCESS) && (queue->st_queue == NULL)) {
        rc = mpix_queue_get_st(call->func, queue);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    status = ucp_st_op_post_ahead(op, queue->st_queue, (uint64_t)uses);
    return (status == UCS_OK) ? MPI_SUCCESS :
                                mpix_device_fail(call, request, status);
}

int MPIX_Post_ahead(MPIX_Queue queue, MPI_Request request, int uses)
{
    const mpix_where_t call = {"MPIX_Post_ahead", 1};
    int rc                  = mpix_device_post(&call, queue, request, uses);

    return (rc == MPI_SUCCESS) ? rc :
                                 mpix_raise(mpix_request_comm(1, &request), rc);
}
