/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_enqueue.c - starts and waits for matched requests on a queue.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "mpix_joint.h"
#include "mpix_queues.h"
#include "mpix_request.h"

#include <stdlib.h>
#include <string.h>


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

/* Looks the operations of matched requests up; those that are MPI_REQUEST_NULL
 * have none. Needs the lock. */
static int mpix_enqueue_collect(const char *func, mpix_queue_set_t *set,
                                int count, const MPI_Request *requests)
{
    mpix_where_t where = {func, count};
    mpix_req_t *req;
    int i;

    set->count   = 0; /* Not to be found if this fails */
    set->num_ops = 0;
    for (i = 0; i < count; ++i) {
        set->requests[i] = requests[i];
        if (requests[i] == MPI_REQUEST_NULL) {
            continue;
        }

        req         = mpix_request_find(requests[i]);
        where.index = i;
        where.req   = req;
        if (req == NULL) {
            return mpix_request_fail(&where, MPI_ERR_REQUEST,
                                     "is no persistent one, or is freed");
        }
        if (req->kind == MPIX_REQ_COLL) {
            return MPIX_COLL_FOUND;
        }
        if (req->kind == MPIX_REQ_EXCHANGE) {
            return MPIX_JOINT_FOUND;
        }
        if (req->joint != NULL) {
            return mpix_joint_refuse(&where);
        }
        if (req->state != MPIX_REQ_MATCHED) {
            return mpix_request_fail(&where, MPI_ERR_REQUEST,
                                     "is not matched "
                                     "(MPIX_Matchall first)");
        }
        set->ops[set->num_ops++] = req->op;
    }
    set->count   = count;
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
                            mpix_queue_set_t **set_p)
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
    *set_p = set;
    return rc;
}

const char *mpix_enqueue_cause(ucs_status_t status, int is_start)
{
    switch (status) {
    case UCS_ERR_BUSY:
        return "is started and not waited for (MPIX_Enqueue_waitall), or in "
               "use on another queue (MPIX_Queue_wait)";
    case UCS_ERR_NO_MESSAGE:
        return "is not started, or its wait is enqueued already";
    case UCS_ERR_INVALID_PARAM:
        return is_start ? "is given twice" :
                          "was started on another queue, or is given twice";
    case UCS_ERR_CANCELED:
        return "cannot be started: the peer has freed its half";
    case UCS_ERR_UNSUPPORTED:
        return "is in memory that this stream does not copy: take one of that "
               "memory's runtime, or of the host";
    default:
        return ucs_status_string(status);
    }
}

static int mpix_enqueue_is_twice(const mpix_where_t *where,
                                 const MPI_Request *requests)
{
    int i;

    for (i = 0; i < where->index; ++i) {
        if (requests[i] == requests[where->index]) {
            return 1;
        }
    }
    return 0;
}

/* Enqueueing failed: names the request that it is about. */
static int mpix_enqueue_fail(const mpix_enqueue_call_t *call,
                             ucs_status_t status)
{
    const int is_start = !call->is_wait;
    mpix_where_t where = {call->func, call->count};
    ucs_status_t check;

    mpix_lock();
    for (; where.index < call->count; ++where.index) {
        where.req = mpix_request_find(call->requests[where.index]);
        if (where.req == NULL) {
            continue; /* MPI_REQUEST_NULL */
        }

        check = mpix_enqueue_is_twice(&where, call->requests) ?
                        UCS_ERR_INVALID_PARAM :
                        ucp_st_enqueue_check(call->queue->st_queue,
                                             where.req->op, is_start);
        if (check == status) {
            break;
        }
    }
    mpix_unlock();

    if (where.index == call->count) {
        return mpix_fail(call->func, mpix_status_code(status),
                         "the queue takes nothing: %s",
                         ucs_status_string(status));
    }
    return mpix_request_fail(&where, mpix_status_code(status), "%s",
                             mpix_enqueue_cause(status, is_start));
}

int mpix_enqueue_requests(const mpix_enqueue_call_t *call)
{
    struct mpix_queue *queue = call->queue;
    const char *func         = call->func;
    mpix_queue_set_t *set;
    ucs_status_t status;
    int rc;

    if (!mpix_queue_is_valid(queue)) {
        return mpix_fail(func, MPI_ERR_ARG, "%p is no live queue",
                         (void*)queue);
    }

    if ((call->count < 0) || ((call->count > 0) && (call->requests == NULL))) {
        return mpix_fail(func,
                         (call->count < 0) ? MPI_ERR_COUNT : MPI_ERR_REQUEST,
                         (call->count < 0) ? "the count of requests is %d" :
                                             "%d requests at NULL",
                         call->count);
    }

    rc = mpix_enqueue_ops(func, queue, call->count, call->requests, &set);
    if (rc == MPIX_JOINT_FOUND) {
        return mpix_joint_enqueue(call);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    if (queue->st_queue == NULL) {
        if (set->num_ops == 0) {
            return MPI_SUCCESS;
        }
        rc = mpix_queue_get_st(func, queue);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
    }

    status = call->is_wait ?
                     ucp_st_enqueue_waitall(queue->st_queue, set->ops,
                                            set->num_ops) :
                     ucp_st_enqueue_startall(queue->st_queue, set->ops,
                                             set->num_ops);
    return (status == UCS_OK) ? MPI_SUCCESS : mpix_enqueue_fail(call, status);
}
