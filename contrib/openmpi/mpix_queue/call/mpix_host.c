/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_host.c - matched requests that the host starts, tests and waits for.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_host.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_next.h"
#include "coll/mpix_coll.h"
#include "request/mpix_joint.h"
#include "request/mpix_match.h"

#include <ucs_backoff.h>
#include <ucs_gstream.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The queue of what the host starts, made at the first start. Its lock also
 * serialises all that is asked and enqueued here; it is taken before that of
 * the library. */
static struct {
    pthread_mutex_t lock;
    ucs_gstream_h   stream; /* NULL if there is none */
    ucp_st_queue_h  queue;  /* The same */
} mpix_host = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


void mpix_host_forked(void)
{
    pthread_mutex_init(&mpix_host.lock, NULL);
}

void mpix_host_lock(void)
{
    pthread_mutex_lock(&mpix_host.lock);
}

void mpix_host_unlock(void)
{
    pthread_mutex_unlock(&mpix_host.lock);
}

static int mpix_host_is_active(const mpix_req_t *req)
{
    ucp_st_op_attr_t attr;

    if (req->kind == MPIX_REQ_COLL) {
        return (req->state == MPIX_REQ_MATCHED) &&
               (req->coll->started > req->told);
    } else if (req->kind == MPIX_REQ_EXCHANGE) {
        return (req->state == MPIX_REQ_MATCHED) &&
               (req->joint->started > req->told);
    }
    return (req->state == MPIX_REQ_MATCHED) &&
           (ucp_st_op_query(req->op, &attr) == UCS_OK) &&
           (attr.started > req->told);
}

/* Memory for the arrays of a set. Returns 0 if there is none. */
static int mpix_host_set_alloc(mpix_wait_set_t *set)
{
    const size_t size = sizeof(*set->active) + sizeof(*set->mpi) +
                        sizeof(*set->codes) + sizeof(*set->is_given);

    set->active = (void*)set->few;
    if ((set->count * size) > sizeof(set->few)) {
        set->active = malloc(set->count * size);
        if (set->active == NULL) {
            return 0;
        }
    }
    set->mpi      = (void*)(set->active + set->count);
    set->codes    = (void*)(set->mpi + set->count);
    set->is_given = (void*)(set->codes + set->count);
    return 1;
}

/* Refuses what is of an exchange. The lock is held. */
static int mpix_host_set_check(const mpix_wait_set_t *set)
{
    mpix_where_t where = {set->func, set->count};

    for (; where.index < set->count; ++where.index) {
        if (set->is_given[where.index]) {
            where.req = mpix_request_find(set->requests[where.index]);
            if (mpix_joint_is_member(where.req)) {
                return mpix_joint_refuse(&where);
            }
        }
    }
    return MPI_SUCCESS;
}

int mpix_host_set_init(mpix_wait_set_t *set, const char *func, int count,
                       MPI_Request *requests)
{
    mpix_req_t *req;
    int i, rc;

    set->func       = func;
    set->count      = count;
    set->requests   = requests;
    set->num_given  = 0;
    set->num_active = 0;
    set->failed     = MPI_SUCCESS;
    set->comm       = NULL;
    if (!mpix_host_set_alloc(set)) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory for %d requests",
                         count);
    }

    mpix_lock();
    for (i = 0; i < count; ++i) {
        req              = mpix_request_may_be_given(&requests[i]) ?
                                   mpix_request_find(requests[i]) :
                                   NULL;
        set->is_given[i] = (req != NULL) && mpix_request_is_given(req);
        set->mpi[i]      = set->is_given[i] ? MPI_REQUEST_NULL : requests[i];
        set->active[i]   = (set->is_given[i] && mpix_host_is_active(req)) ?
                                   req :
                                   NULL;
        set->codes[i]    = MPI_SUCCESS;
        set->num_given  += set->is_given[i];
        set->num_active += (set->active[i] != NULL);
    }
    rc = mpix_host_set_check(set);
    mpix_unlock();
    if ((rc != MPI_SUCCESS) && (set->active != (void*)set->few)) {
        free(set->active);
    }
    return rc;
}

void mpix_host_set_cleanup(mpix_wait_set_t *set)
{
    int i;

    for (i = 0; i < set->count; ++i) {
        if (!set->is_given[i]) {
            set->requests[i] = set->mpi[i];
        }
    }
    if (set->active != (void*)set->few) {
        free(set->active);
    }
}

void mpix_host_progress(void)
{
    mpix_match_progress_mpi();
    ucp_st_worker_progress(mpix_global.st_worker);
}

/* A wait of an exchange would pass: the same. */
static ucs_status_t mpix_host_test_joint(mpix_joint_t *joint)
{
    ucs_status_t status  = ucp_st_exchange_test(joint->st);
    ucp_st_queue_h queue = (status == UCS_ERR_NO_MESSAGE) ?
                                   mpix_joint_queue(joint) :
                                   NULL;

    if (queue != NULL) {
        status = mpix_joint_wait(queue, joint);
        return (status == UCS_OK) ? UCS_INPROGRESS : status;
    }
    return status;
}

/* The status of the last use; UCS_INPROGRESS while it is not over. The lock of
 * the queue is held. */
static ucs_status_t mpix_host_test(const mpix_req_t *req)
{
    ucp_st_op_attr_t attr;
    ucs_status_t status;

    if (req->kind == MPIX_REQ_COLL) {
        return mpix_coll_status(req->coll);
    } else if (req->kind == MPIX_REQ_EXCHANGE) {
        return mpix_host_test_joint(req->joint);
    }

    status = ucp_st_op_test(req->op);
    if (status != UCS_ERR_NO_MESSAGE) {
        return status;
    }

    /* A wait would pass: the stream has to see the data, too */
    ucp_st_op_query(req->op, &attr);
    if (attr.queue != NULL) {
        status = ucp_st_enqueue_wait(attr.queue, req->op);
    }
    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}

int mpix_host_is_over(const mpix_req_t *req)
{
    ucs_status_t status;

    pthread_mutex_lock(&mpix_host.lock);
    status = mpix_host_test(req);
    pthread_mutex_unlock(&mpix_host.lock);
    return status != UCS_INPROGRESS;
}

void mpix_host_wait(const mpix_req_t *req)
{
    unsigned spins = 0;

    while (!mpix_host_is_over(req)) {
        mpix_host_progress();
        ucs_backoff(&spins);
    }
}

/* A use has not begun, as its queue failed before: that is not the peer's. */
static int mpix_host_is_unbegun(const mpix_req_t *req)
{
    ucp_st_queue_error_t error = {.status = UCS_OK};
    ucp_st_op_attr_t attr;

    mpix_lock();
    if ((req->op != NULL) && (ucp_st_op_query(req->op, &attr) == UCS_OK) &&
        (attr.status == UCS_ERR_CANCELED) && (attr.queue != NULL)) {
        (void)ucp_st_queue_query(attr.queue, &error);
    }
    mpix_unlock();
    return (error.status != UCS_OK) && (error.op != req->op);
}

int mpix_host_result(const mpix_wait_set_t *set, int index, MPI_Status *status)
{
    const mpix_req_t *req    = set->active[index];
    const mpix_where_t where = {set->func, set->count, index, req};
    int rc                   = MPI_SUCCESS;
    ucs_status_t result;

    pthread_mutex_lock(&mpix_host.lock);
    result = mpix_host_test(req);
    pthread_mutex_unlock(&mpix_host.lock);

    if (result == UCS_ERR_NO_MESSAGE) {
        rc = mpix_request_fail(&where, MPI_ERR_OTHER,
                               "was started on a queue that was freed before "
                               "a wait: its data may not be there");
    } else if ((result != UCS_OK) && mpix_host_is_unbegun(req)) {
        rc = mpix_request_fail(&where, MPI_ERR_OTHER, "has not begun: its "
                               "queue is in error (MPIX_Queue_wait says why)");
    } else if (result != UCS_OK) {
        rc = mpix_request_fail(&where, MPI_ERR_OTHER, "failed: %s",
                               mpix_request_cause(result));
    }
    if (status != NULL) {
        mpix_request_fill_status(req, rc, status);
    }
    return rc;
}

void mpix_host_told(mpix_req_t *req)
{
    ucp_st_op_attr_t attr;

    mpix_lock();
    if (req->kind == MPIX_REQ_COLL) {
        mpix_coll_told(req->coll);
        req->told = req->coll->started;
    } else if (req->kind == MPIX_REQ_EXCHANGE) {
        req->told = req->joint->started;
    } else if (ucp_st_op_query(req->op, &attr) == UCS_OK) {
        req->told = attr.started;
    }
    req->is_on_host = 0;
    mpix_unlock();
}

/* Makes the queue. Its lock is held. */
static ucs_status_t mpix_host_queue_create(void)
{
    const ucs_gstream_params_t stream_params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = UCS_GSTREAM_TYPE_HOST
    };
    ucp_st_queue_params_t params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
    };
    ucs_status_t status = UCS_OK;

    if (mpix_host.stream == NULL) {
        status = ucs_gstream_create(&stream_params, &mpix_host.stream);
    }
    if (status == UCS_OK) {
        params.stream = mpix_host.stream;
        status        = ucp_st_queue_create(mpix_global.st_worker, &params,
                                            &mpix_host.queue);
    }
    return status;
}

/* The queue, in place of one in error, which never comes out of it. The lock is
 * held. */
static ucs_status_t mpix_host_queue_get(ucp_st_queue_h *queue_p)
{
    ucs_status_t status;

    if (mpix_host.queue != NULL) {
        status = ucp_st_queue_query(mpix_host.queue, NULL);
        if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
            status = ucp_st_queue_destroy(mpix_host.queue);
            if (status != UCS_OK) {
                return status;
            }
            mpix_host.queue = NULL;
        }
    }

    status   = (mpix_host.queue == NULL) ? mpix_host_queue_create() : UCS_OK;
    *queue_p = mpix_host.queue;
    return status;
}

void mpix_host_cleanup(void)
{
    if ((mpix_host.queue != NULL) &&
        (ucp_st_queue_destroy(mpix_host.queue) == UCS_OK)) {
        mpix_host.queue = NULL;
    }
    if ((mpix_host.queue == NULL) && (mpix_host.stream != NULL) &&
        (ucs_gstream_destroy(mpix_host.stream) == UCS_OK)) {
        mpix_host.stream = NULL;
    }
}

/* What a call of MPI_Start(all) starts. */
typedef struct mpix_host_start {
    const char  *func;
    int         count;
    MPI_Request *requests;
    mpix_req_t  **reqs;  /* Of each, if it is matched; NULL: MPI's */
    ucp_st_op_h *ops;    /* Of those that are matched, but for exchanges */
    size_t      num_ops;
    int         num_reqs; /* That are matched */
} mpix_host_start_t;

/* Non-zero if the last use of a request, if any, is over. */
static int mpix_host_is_idle(const mpix_req_t *req)
{
    ucp_st_op_attr_t attr;
    ucs_status_t status;

    if (req->kind == MPIX_REQ_EXCHANGE) {
        status = ucp_st_exchange_test(req->joint->st);
        return (status == UCS_OK) || ((status == UCS_ERR_NO_MESSAGE) &&
                                      (mpix_joint_queue(req->joint) == NULL));
    }

    status = ucp_st_op_test(req->op);
    return (status == UCS_OK) ||
           ((status == UCS_ERR_NO_MESSAGE) &&
            (ucp_st_op_query(req->op, &attr) == UCS_OK) &&
            (attr.queue == NULL));
}

/* Looks at one request. The locks are held. */
static int mpix_host_start_check(const mpix_where_t *where)
{
    const mpix_req_t *req = where->req;

    if (req->kind == MPIX_REQ_COLL) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "can be started on a queue only");
    } else if (mpix_joint_is_member(req)) {
        return mpix_joint_refuse(where);
    } else if ((req->kind == MPIX_REQ_EXCHANGE) &&
               (req->state == MPIX_REQ_IDLE)) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "is not matched (MPIX_Matchall first)");
    } else if ((req->state == MPIX_REQ_PENDING) ||
               (req->state == MPIX_REQ_MATCHING)) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "is being matched: MPIX_Is_matched tells when "
                                 "that is done");
    } else if (req->state == MPIX_REQ_FAILED) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "can only be freed: matching failed");
    } else if (req->is_on_host && mpix_host_is_active(req)) {
        return mpix_request_fail(where, MPI_ERR_REQUEST, "is active");
    } else if (!mpix_host_is_idle(req)) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "is under way, or failed, on a queue");
    }
    return MPI_SUCCESS;
}

/* Finds the matched requests, and checks them. The locks are held. */
static int mpix_host_start_sort(mpix_host_start_t *start)
{
    mpix_where_t where = {start->func, start->count};
    mpix_req_t *req;
    int i, rc;

    for (i = 0; i < start->count; ++i) {
        start->reqs[i] = NULL;
        req            = mpix_request_find(start->requests[i]);
        if ((req == NULL) || !mpix_request_is_given(req)) {
            continue;
        }

        where.index = i;
        where.req   = req;
        rc          = mpix_host_start_check(&where);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
        start->reqs[i] = req;
        ++start->num_reqs;
        if (req->kind != MPIX_REQ_EXCHANGE) {
            start->ops[start->num_ops++] = req->op;
        }
    }
    return MPI_SUCCESS;
}

/* Starts the matched requests, which were checked: all or none, but where there
 * is no memory or a peer goes. The queue's lock is held. */
static int mpix_host_start_matched(mpix_host_start_t *start)
{
    ucp_st_queue_h queue;
    ucs_status_t status;
    mpix_req_t *req;
    int i;

    status = mpix_host_queue_get(&queue);
    if (status == UCS_OK) {
        status = ucp_st_enqueue_startall(queue, start->ops, start->num_ops);
    }
    for (i = 0; (i < start->count) && (status == UCS_OK); ++i) {
        req = start->reqs[i];
        if ((req != NULL) && (req->kind == MPIX_REQ_EXCHANGE)) {
            status = mpix_joint_start(queue, req->joint);
        }
        if ((req != NULL) && (status == UCS_OK)) {
            req->is_on_host = 1;
        }
    }
    return (status == UCS_OK) ?
                   MPI_SUCCESS :
                   mpix_fail(start->func, mpix_status_code(status),
                             "%d matched requests cannot be started: %s",
                             start->num_reqs, (status == UCS_ERR_CANCELED) ?
                             "a peer has freed its half" :
                             ucs_status_string(status));
}

static int mpix_host_start(mpix_host_start_t *start)
{
    int rc;
    int i;

    pthread_mutex_lock(&mpix_host.lock);
    mpix_lock();
    rc = mpix_host_start_sort(start);
    mpix_unlock();
    if ((rc == MPI_SUCCESS) && (start->num_reqs > 0)) {
        rc = mpix_host_start_matched(start);
    }
    pthread_mutex_unlock(&mpix_host.lock);
    if (rc != MPI_SUCCESS) {
        return mpix_raise(mpix_request_comm(start->count, start->requests), rc);
    }

    for (i = 0; (i < start->count) && (rc == MPI_SUCCESS); ++i) {
        if (start->reqs[i] == NULL) {
            rc = MPIX_NEXT(Start)(&start->requests[i]);
        }
    }
    return rc;
}

static int mpix_host_startall(const char *func, int count,
                              MPI_Request *requests)
{
    mpix_host_start_t start = {
        .func     = func,
        .count    = count,
        .requests = requests,
        .reqs     = malloc(count * sizeof(*start.reqs)),
        .ops      = malloc(count * sizeof(*start.ops))
    };
    int rc;

    if ((start.reqs != NULL) && (start.ops != NULL)) {
        rc = mpix_host_start(&start);
    } else {
        rc = mpix_fail(func, MPI_ERR_NO_MEM, "no memory for %d requests",
                       count);
        mpix_raise(MPI_COMM_NULL, rc);
    }
    free(start.ops);
    free(start.reqs);
    return rc;
}

int MPI_Start(MPI_Request *request)
{
    if (ucs_likely(!mpix_request_may_be_given(request))) {
        return MPIX_NEXT(Start)(request);
    }
    return mpix_host_startall("MPI_Start", 1, request);
}

int MPI_Startall(int count, MPI_Request requests[])
{
    if (ucs_likely(!mpix_request_any_given(count, requests))) {
        return MPIX_NEXT(Startall)(count, requests);
    }
    return mpix_host_startall("MPI_Startall", count, requests);
}
