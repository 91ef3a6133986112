/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_mpich_enqueue.c - the calls of compat/mpich_stream.h that are enqueued.
 *
 * Each message is started with its own call: there is no later one of which it
 * could be known that it comes.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "compat/mpich_stream.h"
#include "compat/mpix_mpich.h"
#include "binding/mpix_error.h"
#include "once/mpix_batch.h"
#include "once/mpix_fifo.h"
#include "request/mpix_buffer.h"
#include "request/mpix_queues.h"

#include <limits.h>
#include <stdlib.h>


/* A call. */
typedef struct mpix_mpich_call {
    mpix_msg_args_t args;
    MPI_Count       count;    /* In place of the arguments' */
    int             is_coll;
    const void      *sendbuf; /* Of a collective, as the next one */
    MPI_Op          op;
} mpix_mpich_call_t;


/* Enqueues a message, and its start. Returns an MPI code, which was raised. */
static int mpix_mpich_start(mpix_mpich_call_t *call, struct mpix_queue *queue,
                            MPI_Request *request_p)
{
    mpix_msg_args_t *args = &call->args;
    MPI_Request request;
    mpix_msg_t *msg;
    int rc;

    rc = call->is_coll ? mpix_once_allreduce(args, call->sendbuf, call->op,
                                             queue, &request) :
                         mpix_batch_enqueue(args, queue, &request);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_batch_start_all(args->func, queue);
    if (rc != MPI_SUCCESS) {
        msg = mpix_msg_find(request);
        mpix_batch_cancel(queue->batch); /* This one alone is not started */
        if (msg != NULL) {
            mpix_msg_leave(msg);
            mpix_msg_put(msg);
        }
        return mpix_raise(args->comm, rc);
    }
    *request_p = request;
    return MPI_SUCCESS;
}

/* The same for any count. */
static int mpix_mpich_enqueue(mpix_mpich_call_t *call, struct mpix_queue *queue,
                              MPI_Request *request)
{
    mpix_msg_args_t *args = &call->args;
    MPI_Datatype type     = MPI_DATATYPE_NULL;
    int rc;

    if ((call->count > INT_MAX) && call->is_coll) {
        return mpix_raise(args->comm,
                          mpix_fail(args->func, MPI_ERR_COUNT, "count %lld is "
                                    "more than MPI's operations take here",
                                    (long long)call->count));
    }
    if ((call->count > INT_MAX) && (args->datatype != MPI_DATATYPE_NULL)) {
        rc = mpix_buffer_large_type(call->count, args->datatype, &type);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
        args->datatype = type;
        call->count    = 1;
    }
    args->count = (call->count < 0) ? -1 : (int)call->count;
    rc          = mpix_mpich_start(call, queue, request);
    if (type != MPI_DATATYPE_NULL) {
        PMPI_Type_free(&type);
    }
    return rc;
}

static int mpix_mpich_get_msg(const char *func, MPI_Request request,
                              mpix_msg_t **msg_p)
{
    mpix_msg_t *msg = mpix_msg_find(request);

    *msg_p = msg;
    if (msg == NULL) {
        return mpix_fail(func, MPI_ERR_REQUEST, "the request is of no message "
                         "that was enqueued on a stream");
    }
    if (!mpix_queue_is_valid(msg->queue) ||
        (msg->queue->serial != msg->serial)) {
        return mpix_fail(func, MPI_ERR_REQUEST, "the request's stream is gone");
    }
    if (msg->number > msg->queue->batch->started) {
        return mpix_fail(func, MPI_ERR_REQUEST, "the request's message is not "
                         "started");
    }
    return MPI_SUCCESS;
}

/* Has the stream wait for a message of a call that is enqueued, whose request
 * is gone then. Returns an MPI code, which was raised. */
static int mpix_mpich_wait_one(const mpix_mpich_call_t *call,
                               struct mpix_queue *queue, MPI_Request request,
                               MPI_Status *status)
{
    MPI_Status *result = (status == MPI_STATUS_IGNORE) ? NULL : status;
    mpix_msg_t *msg;
    int rc;

    rc = mpix_mpich_get_msg(call->args.func, request, &msg);
    if (rc == MPI_SUCCESS) {
        rc = mpix_batch_wait_some(call->args.func, queue, &msg, &result, 1);
    }
    if (msg != NULL) {
        mpix_msg_leave(msg);
        mpix_msg_put(msg);
    }
    return (rc == MPI_SUCCESS) ? rc : mpix_raise(call->args.comm, rc);
}

static int mpix_mpich_block(mpix_mpich_call_t *call, MPI_Status *status)
{
    struct mpix_queue *queue;
    MPI_Request request;
    int rc;

    rc = mpix_mpich_get_queue(call->args.func, call->args.comm, &queue);
    if (rc == MPI_SUCCESS) {
        rc = mpix_mpich_enqueue(call, queue, &request);
    }
    return (rc == MPI_SUCCESS) ?
                   mpix_mpich_wait_one(call, queue, request, status) :
                   rc;
}

static int mpix_mpich_begin(mpix_mpich_call_t *call, MPI_Request *request)
{
    struct mpix_queue *queue;
    int rc;

    rc = mpix_mpich_get_queue(call->args.func, call->args.comm, &queue);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (request == NULL) {
        return mpix_raise(call->args.comm,
                          mpix_fail(call->args.func, MPI_ERR_ARG,
                                    "the request is NULL"));
    }
    return mpix_mpich_enqueue(call, queue, request);
}

int MPIX_Mpich_send_enqueue_c(const void *buf, MPI_Count count,
                              MPI_Datatype datatype, int dest, int tag,
                              MPI_Comm comm)
{
    mpix_mpich_call_t call = {
        .args  = {"MPIX_Send_enqueue", 0, buf, 0, datatype, dest, tag, comm,
                  NULL},
        .count = count
    };

    return mpix_mpich_block(&call, MPI_STATUS_IGNORE);
}

int MPIX_Mpich_send_enqueue(const void *buf, int count, MPI_Datatype datatype,
                            int dest, int tag, MPI_Comm comm)
{
    return MPIX_Mpich_send_enqueue_c(buf, count, datatype, dest, tag, comm);
}

int MPIX_Mpich_recv_enqueue_c(void *buf, MPI_Count count, MPI_Datatype datatype,
                              int source, int tag, MPI_Comm comm,
                              MPI_Status *status)
{
    mpix_mpich_call_t call = {
        .args  = {"MPIX_Recv_enqueue", 1, buf, 0, datatype, source, tag, comm,
                  NULL},
        .count = count
    };

    return mpix_mpich_block(&call, status);
}

int MPIX_Mpich_recv_enqueue(void *buf, int count, MPI_Datatype datatype,
                            int source, int tag, MPI_Comm comm,
                            MPI_Status *status)
{
    return MPIX_Mpich_recv_enqueue_c(buf, count, datatype, source, tag, comm,
                                     status);
}

int MPIX_Mpich_isend_enqueue_c(const void *buf, MPI_Count count,
                               MPI_Datatype datatype, int dest, int tag,
                               MPI_Comm comm, MPI_Request *request)
{
    mpix_mpich_call_t call = {
        .args  = {"MPIX_Isend_enqueue", 0, buf, 0, datatype, dest, tag, comm,
                  NULL},
        .count = count
    };

    return mpix_mpich_begin(&call, request);
}

int MPIX_Mpich_isend_enqueue(const void *buf, int count, MPI_Datatype datatype,
                             int dest, int tag, MPI_Comm comm,
                             MPI_Request *request)
{
    return MPIX_Mpich_isend_enqueue_c(buf, count, datatype, dest, tag, comm,
                                      request);
}

int MPIX_Mpich_irecv_enqueue_c(void *buf, MPI_Count count,
                               MPI_Datatype datatype, int source, int tag,
                               MPI_Comm comm, MPI_Request *request)
{
    mpix_mpich_call_t call = {
        .args  = {"MPIX_Irecv_enqueue", 1, buf, 0, datatype, source, tag, comm,
                  NULL},
        .count = count
    };

    return mpix_mpich_begin(&call, request);
}

int MPIX_Mpich_irecv_enqueue(void *buf, int count, MPI_Datatype datatype,
                             int source, int tag, MPI_Comm comm,
                             MPI_Request *request)
{
    return MPIX_Mpich_irecv_enqueue_c(buf, count, datatype, source, tag, comm,
                                      request);
}

int MPIX_Mpich_allreduce_enqueue_c(const void *sendbuf, void *recvbuf,
                                   MPI_Count count, MPI_Datatype datatype,
                                   MPI_Op op, MPI_Comm comm)
{
    mpix_mpich_call_t call = {
        .args    = {"MPIX_Allreduce_enqueue", 0, recvbuf, 0, datatype, 0, 0,
                    comm, NULL},
        .count   = count,
        .is_coll = 1,
        .sendbuf = sendbuf,
        .op      = op
    };

    return mpix_mpich_block(&call, MPI_STATUS_IGNORE);
}

int MPIX_Mpich_allreduce_enqueue(const void *sendbuf, void *recvbuf, int count,
                                 MPI_Datatype datatype, MPI_Op op,
                                 MPI_Comm comm)
{
    return MPIX_Mpich_allreduce_enqueue_c(sendbuf, recvbuf, count, datatype, op,
                                          comm);
}

static void mpix_mpich_set_empty(MPI_Status *status)
{
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG    = MPI_ANY_TAG;
    status->MPI_ERROR  = MPI_SUCCESS;
    PMPI_Status_set_cancelled(status, 0);
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
}

/* What a wait is for: the messages of requests that are not null. */
typedef struct mpix_mpich_set {
    int        count;
    mpix_msg_t **msgs;    /* References */
    MPI_Status **results; /* Where each status goes, or NULL */
} mpix_mpich_set_t;

static void mpix_mpich_set_free(mpix_mpich_set_t *set)
{
    int i;

    for (i = 0; i < set->count; ++i) {
        mpix_msg_put(set->msgs[i]);
    }
    free(set->msgs);
    free(set->results);
}

/* Returns an MPI code that is not raised. */
static int mpix_mpich_set_init(const char *func, mpix_mpich_set_t *set,
                               int count, const MPI_Request *requests,
                               MPI_Status *statuses)
{
    int rc = MPI_SUCCESS;
    mpix_msg_t *msg;
    int i;

    set->count   = 0;
    set->msgs    = malloc(count * sizeof(*set->msgs));
    set->results = malloc(count * sizeof(*set->results));
    if ((set->msgs == NULL) || (set->results == NULL)) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory for %d requests",
                         count);
    }
    for (i = 0; (i < count) && (rc == MPI_SUCCESS); ++i) {
        if (requests[i] == MPI_REQUEST_NULL) {
            continue;
        }
        rc = mpix_mpich_get_msg(func, requests[i], &msg);
        if (msg == NULL) {
            break;
        }
        set->results[set->count] = (statuses == MPI_STATUSES_IGNORE) ?
                                           NULL :
                                           &statuses[i];
        set->msgs[set->count++]  = msg;
        if ((rc == MPI_SUCCESS) && (msg->queue != set->msgs[0]->queue)) {
            rc = mpix_fail(func, MPI_ERR_REQUEST,
                           "the requests are of several streams");
        }
    }
    return rc;
}

static int mpix_mpich_wait(const char *func, int count, MPI_Request *requests,
                           MPI_Status *statuses)
{
    MPI_Comm comm = MPI_COMM_NULL;
    mpix_mpich_set_t set;
    int i, rc;

    rc = mpix_mpich_set_init(func, &set, count, requests, statuses);
    if ((rc == MPI_SUCCESS) && (set.count > 0)) {
        mpix_fifo_look_failed(set.msgs[0]->queue);
        rc = mpix_batch_check(func, set.msgs[0]->queue->batch, &comm);
        rc = (rc == MPI_SUCCESS) ?
                     mpix_batch_wait_some(func, set.msgs[0]->queue, set.msgs,
                                          set.results, set.count) :
                     rc;
    }
    mpix_mpich_set_free(&set);
    if (rc != MPI_SUCCESS) {
        return mpix_raise(comm, rc);
    }

    for (i = 0; i < count; ++i) {
        if ((requests[i] == MPI_REQUEST_NULL) &&
            (statuses != MPI_STATUSES_IGNORE)) {
            mpix_mpich_set_empty(&statuses[i]);
        }
        requests[i] = MPI_REQUEST_NULL;
    }
    return MPI_SUCCESS;
}

int MPIX_Mpich_wait_enqueue(MPI_Request *request, MPI_Status *status)
{
    static const char func[] = "MPIX_Wait_enqueue";

    if (request == NULL) {
        return mpix_raise(MPI_COMM_NULL, mpix_fail(func, MPI_ERR_REQUEST,
                                                   "the request is NULL"));
    }
    return mpix_mpich_wait(func, 1, request, (status == MPI_STATUS_IGNORE) ?
                                                     MPI_STATUSES_IGNORE :
                                                     status);
}

int MPIX_Mpich_waitall_enqueue(int count, MPI_Request array_of_requests[],
                               MPI_Status array_of_statuses[])
{
    static const char func[] = "MPIX_Waitall_enqueue";

    if ((count < 0) || ((count > 0) && (array_of_requests == NULL))) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, (count < 0) ? MPI_ERR_COUNT :
                                                        MPI_ERR_REQUEST,
                                    "invalid array of %d requests", count));
    }
    return (count == 0) ? MPI_SUCCESS :
                          mpix_mpich_wait(func, count, array_of_requests,
                                          array_of_statuses);
}
