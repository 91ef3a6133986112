/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_joint.c - requests that are matched, started and waited for together.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_joint.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "mpix_match.h"
#include "mpix_queues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those that are being matched, in the order of the calls. Protected by the
 * lock. */
static UCS_LIST_HEAD(mpix_joints_matching);


int mpix_joint_refuse(const mpix_where_t *where)
{
    return mpix_request_fail(where, MPI_ERR_REQUEST,
                             "is of an exchange: it is matched, started, "
                             "waited for and freed with that");
}

/* Refuses what cannot become a member. */
static int mpix_joint_check(const mpix_where_t *where)
{
    const mpix_req_t *req = where->req;
    int is_inactive;

    if (req == NULL) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "is no persistent one of libmpix_queue, or is "
                                 "freed");
    } else if ((req->kind != MPIX_REQ_SEND) && (req->kind != MPIX_REQ_RECV)) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "can not be of an exchange, only those of "
                                 "MPI_Send_init, MPI_Rsend_init and "
                                 "MPI_Recv_init");
    } else if (req->is_marked) {
        return mpix_request_fail(where, MPI_ERR_REQUEST, "is given twice");
    } else if (req->joint != NULL) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "is of an exchange already");
    } else if (req->state != MPIX_REQ_IDLE) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "was given to match before");
    }

    if ((PMPI_Request_get_status(req->handle, &is_inactive,
                                 MPI_STATUS_IGNORE) != MPI_SUCCESS) ||
        !is_inactive) {
        return mpix_request_fail(where, MPI_ERR_REQUEST, "is active");
    }
    return MPI_SUCCESS;
}

/* Finds and checks the members. With the lock. */
static int mpix_joint_find(const char *func, int count,
                           const MPI_Request *requests, mpix_joint_t *joint)
{
    mpix_where_t where = {func, count};
    int rc             = MPI_SUCCESS;
    mpix_req_t *req;
    int i;

    for (i = 0; (i < count) && (rc == MPI_SUCCESS); ++i) {
        req         = mpix_request_find(requests[i]);
        where.index = i;
        where.req   = req;
        rc          = mpix_joint_check(&where);
        if (rc == MPI_SUCCESS) {
            req->is_marked                 = 1;
            joint->members[joint->count++] = req;
        }
    }
    for (i = 0; i < joint->count; ++i) {
        joint->members[i]->is_marked = 0;
    }
    return rc;
}

/* Makes the request and its record. */
static int mpix_joint_make(const char *func, MPI_Comm comm, mpix_joint_t *joint,
                           MPI_Request *request)
{
    const mpix_req_args_t args = {
        .maker    = func,
        .kind     = MPIX_REQ_EXCHANGE,
        .datatype = MPI_BYTE,
        .rank     = MPI_PROC_NULL,
        .comm     = comm,
        .joint    = joint,
        .req_p    = &joint->req
    };
    MPI_Request made;
    int rc;

    rc = PMPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, &made);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_request_record(&args, made);
    if (rc != MPI_SUCCESS) {
        PMPI_Request_free(&made);
        return rc;
    }
    *request = made;
    return MPI_SUCCESS;
}

int mpix_joint_create(const char *func, MPI_Comm comm, int count,
                      const MPI_Request *requests, int is_coupled,
                      MPI_Request *request)
{
    mpix_joint_t *joint;
    int rc, i;

    joint = calloc(1, sizeof(*joint) + (count * sizeof(*joint->members)));
    if (joint == NULL) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory for an exchange");
    }

    joint->is_coupled = is_coupled;
    ucs_list_head_init(&joint->matching);
    mpix_lock();
    rc = mpix_joint_find(func, count, requests, joint);
    mpix_unlock();
    if (rc == MPI_SUCCESS) {
        rc = mpix_joint_make(func, comm, joint, request);
    }
    if (rc != MPI_SUCCESS) {
        free(joint);
        return rc;
    }

    mpix_lock();
    for (i = 0; i < joint->count; ++i) {
        mpix_request_set_joint(joint->members[i], joint);
    }
    mpix_unlock();
    return MPI_SUCCESS;
}

void mpix_joint_free(mpix_joint_t *joint)
{
    int i;

    for (i = 0; (joint != NULL) && (i < joint->count); ++i) {
        joint->members[i]->match_status = UCS_OK;
        mpix_request_set_joint(joint->members[i], NULL);
    }
    free(joint);
}

ucs_status_t mpix_joint_forget(mpix_req_t *req)
{
    mpix_joint_t *joint = req->joint;
    ucs_status_t status = mpix_joint_cancel(joint->req);
    int i;

    if (status != UCS_OK) {
        return status;
    }
    if (req == joint->req) {
        mpix_joint_free(joint);
        mpix_request_set_joint(req, NULL);
        return UCS_OK;
    }

    for (i = 0; joint->members[i] != req; ++i) {
    }
    joint->members[i] = joint->members[--joint->count];
    mpix_request_set_joint(req, NULL);
    return UCS_OK;
}

int mpix_joint_for_each(const mpix_where_t *where, const mpix_joint_t *joint,
                        int (*func)(const mpix_where_t *where,
                                    mpix_req_t *req))
{
    mpix_where_t member = *where;
    int rc              = MPI_SUCCESS;
    int i;

    for (i = 0; (i < joint->count) && (rc == MPI_SUCCESS); ++i) {
        member.req = joint->members[i];
        rc         = func(&member, joint->members[i]);
    }
    return rc;
}

void mpix_joint_push(mpix_req_t *req)
{
    mpix_joint_t *joint = req->joint;
    int i;

    req->match_status = UCS_OK;
    joint->failed     = NULL;
    mpix_request_set_state(req, MPIX_REQ_PENDING);
    ucs_list_add_tail(&mpix_joints_matching, &joint->matching);
    for (i = 0; i < joint->count; ++i) {
        if (joint->members[i]->state != MPIX_REQ_MATCHED) {
            mpix_match_push(joint->members[i]);
        }
    }
}

/* Matching has ended. */
static void mpix_joint_leave_matching(mpix_joint_t *joint)
{
    ucs_list_del(&joint->matching);
    ucs_list_head_init(&joint->matching);
}

/* Gives the operations back. UCS_ERR_BUSY, with no effect, if they are in
 * use. */
static ucs_status_t mpix_joint_free_ops(mpix_joint_t *joint)
{
    ucs_status_t status = UCS_OK;
    mpix_req_t *member;
    int i;

    ++mpix_global.cancels;
    if (joint->st != NULL) {
        status = ucp_st_exchange_free(joint->st);
    }
    if (status != UCS_OK) {
        return status;
    }

    for (i = 0; i < joint->count; ++i) {
        member = joint->members[i];
        member->op = NULL;
        mpix_match_drop(member);
        mpix_request_set_state(member, MPIX_REQ_IDLE);
    }
    joint->st = NULL;
    return UCS_OK;
}

ucs_status_t mpix_joint_cancel(mpix_req_t *req)
{
    mpix_joint_t *joint = req->joint;
    ucs_status_t status = mpix_joint_free_ops(joint);

    if (status == UCS_OK) {
        mpix_joint_leave_matching(joint);
        mpix_request_set_state(req, MPIX_REQ_FAILED);
    }
    return status;
}

/* Has an exchange at the st worker. */
static ucs_status_t mpix_joint_get_st(mpix_joint_t *joint)
{
    const uint64_t flags = joint->is_coupled ? UCP_ST_EXCHANGE_FLAG_COUPLED : 0;

    return (joint->st != NULL) ?
                   UCS_OK :
                   ucp_st_exchange_create(mpix_global.st_worker, NULL, 0, flags,
                                          &joint->st);
}

ucs_status_t mpix_joint_add(mpix_req_t *member)
{
    ucs_status_t status = mpix_joint_get_st(member->joint);

    return (status == UCS_OK) ?
                   ucp_st_exchange_add(member->joint->st, &member->op, 1) :
                   status;
}

/* Of those that have failed: what tells most. The others were cancelled as one
 * failed, and where one is short of resources another may be at fault. */
static const mpix_req_t *mpix_joint_find_failed(const mpix_joint_t *joint)
{
    const mpix_req_t *found = NULL;
    const mpix_req_t *member;
    int rank, best = 0;
    int i;

    for (i = 0; i < joint->count; ++i) {
        member = joint->members[i];
        rank   = (member->match_status == UCS_OK)           ? 0 :
                 (mpix_status_code(member->match_status) ==
                  MPI_ERR_NO_MEM)                           ? 1 :
                 (member->match_status == UCS_ERR_CANCELED) ? 2 :
                                                              3;
        if (rank > best) {
            best  = rank;
            found = member;
        }
    }
    return found;
}

/* Where only resources were short matching may be tried again: members that are
 * matched stay so. */
static void mpix_joint_fail(mpix_joint_t *joint, ucs_status_t status)
{
    const int is_short = (mpix_status_code(status) == MPI_ERR_NO_MEM);
    int i;

    if (!is_short) {
        (void)mpix_joint_free_ops(joint);
    }
    for (i = 0; i < joint->count; ++i) {
        if (joint->members[i]->state != MPIX_REQ_MATCHED) {
            mpix_request_set_state(joint->members[i], MPIX_REQ_IDLE);
        }
    }
    joint->req->match_status = status;
    mpix_request_set_state(joint->req, is_short ? MPIX_REQ_IDLE :
                                                  MPIX_REQ_FAILED);
}

/* The matching of all members has ended. */
static void mpix_joint_end(mpix_joint_t *joint)
{
    ucs_status_t status;

    joint->failed = mpix_joint_find_failed(joint);
    status        = (joint->failed == NULL) ? mpix_joint_get_st(joint) :
                                              joint->failed->match_status;
    mpix_joint_leave_matching(joint);
    if (status == UCS_OK) {
        mpix_request_set_state(joint->req, MPIX_REQ_MATCHED);
    } else {
        mpix_joint_fail(joint, status);
    }
}

/* Returns 1 if something was done. */
static unsigned mpix_joint_look(mpix_joint_t *joint)
{
    int i;

    for (i = 0; i < joint->count; ++i) {
        if ((joint->members[i]->state == MPIX_REQ_PENDING) ||
            (joint->members[i]->state == MPIX_REQ_MATCHING)) {
            return 0;
        }
    }
    mpix_joint_end(joint);
    return 1;
}

unsigned mpix_joint_progress(void)
{
    unsigned count = 0;
    mpix_joint_t *joint, *tmp;

    ucs_list_for_each_safe(joint, tmp, &mpix_joints_matching, matching) {
        count += mpix_joint_look(joint);
    }
    return count;
}

const char *mpix_joint_cause(const mpix_joint_t *joint, char *buffer,
                             size_t max)
{
    char str[MPIX_REQ_STR_MAX], cause[64];

    if (joint->failed == NULL) {
        return mpix_match_cause(joint->req, buffer, max);
    }
    snprintf(buffer, max, "its %s: %s",
             mpix_request_str(joint->failed, str, sizeof(str)),
             mpix_match_cause(joint->failed, cause, sizeof(cause)));
    return buffer;
}

ucp_st_queue_h mpix_joint_queue(const mpix_joint_t *joint)
{
    ucp_st_op_attr_t attr;

    return ((joint->count > 0) &&
            (ucp_st_op_query(joint->members[0]->op, &attr) == UCS_OK)) ?
                   attr.queue :
                   NULL;
}

ucs_status_t mpix_joint_start(ucp_st_queue_h queue, mpix_joint_t *joint)
{
    ucs_status_t status = ucp_st_enqueue_exchange_start(queue, joint->st);

    if (status == UCS_OK) {
        joint->is_started = 1;
        ++joint->started;
    }
    return status;
}

ucs_status_t mpix_joint_wait(ucp_st_queue_h queue, mpix_joint_t *joint)
{
    ucs_status_t status = ucp_st_enqueue_exchange_wait(queue, joint->st);

    if (status == UCS_OK) {
        joint->is_started = 0;
    }
    return status;
}

/* Refuses, before anything of a call is enqueued, what can be told by now. With
 * the lock. */
static int mpix_joint_check_call(const mpix_enqueue_call_t *call,
                                 const mpix_where_t *where)
{
    const mpix_joint_t *joint = where->req->joint;

    if (where->req->state != MPIX_REQ_MATCHED) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "is not matched (MPIX_Matchall first)");
    } else if (where->req->is_marked) {
        return mpix_request_fail(where, MPI_ERR_REQUEST, "is given twice");
    } else if (call->is_wait && !joint->is_started) {
        return mpix_request_fail(where, MPI_ERR_REQUEST, "%s",
                                 mpix_enqueue_cause(UCS_ERR_NO_MESSAGE, 0));
    } else if (call->is_wait && (joint->count > 0) &&
               (mpix_joint_queue(joint) != call->queue->st_queue)) {
        return mpix_request_fail(where, MPI_ERR_REQUEST, "%s",
                                 mpix_enqueue_cause(UCS_ERR_INVALID_PARAM, 0));
    } else if (!call->is_wait && joint->is_started &&
               (mpix_joint_queue(joint) != NULL)) {
        return mpix_request_fail(where, MPI_ERR_REQUEST, "%s",
                                 mpix_enqueue_cause(UCS_ERR_BUSY, 1));
    }
    return MPI_SUCCESS;
}

/* Tells a call's exchanges, whose places in 'requests' are left, from the
 * rest. */
static int mpix_joint_split(const mpix_enqueue_call_t *call,
                            mpix_joint_t **joints, MPI_Request *rest)
{
    mpix_where_t where = {call->func, call->count};
    int rc             = MPI_SUCCESS;
    mpix_req_t *req;
    int i;

    memset(joints, 0, call->count * sizeof(*joints));
    mpix_lock();
    for (i = 0; (i < call->count) && (rc == MPI_SUCCESS); ++i) {
        rest[i] = call->requests[i];
        req     = mpix_request_find(call->requests[i]);
        if ((req == NULL) || (req->kind != MPIX_REQ_EXCHANGE)) {
            continue;
        }

        where.index = i;
        where.req   = req;
        rc          = mpix_joint_check_call(call, &where);
        if (rc == MPI_SUCCESS) {
            req->is_marked = 1;
            joints[i]      = req->joint;
            rest[i]        = MPI_REQUEST_NULL;
        }
    }
    for (i = 0; i < call->count; ++i) {
        if (joints[i] != NULL) {
            joints[i]->req->is_marked = 0;
        }
    }
    mpix_unlock();
    return rc;
}

static int mpix_joint_enqueue_one(const mpix_enqueue_call_t *call, int index,
                                  mpix_joint_t *joint)
{
    const mpix_where_t where = {call->func, call->count, index, joint->req};
    ucs_status_t status;

    status = call->is_wait ? mpix_joint_wait(call->queue->st_queue, joint) :
                             mpix_joint_start(call->queue->st_queue, joint);
    return (status == UCS_OK) ?
                   MPI_SUCCESS :
                   mpix_request_fail(&where, mpix_status_code(status), "%s",
                                     mpix_enqueue_cause(status,
                                                        !call->is_wait));
}

/* The rest comes first: it is refused as a whole. */
static int mpix_joint_enqueue_split(const mpix_enqueue_call_t *call,
                                    mpix_joint_t **joints, MPI_Request *rest)
{
    int rc = mpix_joint_split(call, joints, rest);
    int i;

    if ((rc == MPI_SUCCESS) && (call->queue->st_queue == NULL)) {
        rc = mpix_queue_get_st(call->func, call->queue);
    }
    if ((rc == MPI_SUCCESS) && (call->count > 1)) {
        rc = mpix_enqueue_requests(&(const mpix_enqueue_call_t){
            call->func, call->queue, call->count, rest, call->is_wait
        });
    }
    for (i = 0; (i < call->count) && (rc == MPI_SUCCESS); ++i) {
        if (joints[i] != NULL) {
            rc = mpix_joint_enqueue_one(call, i, joints[i]);
        }
    }
    return rc;
}

int mpix_joint_enqueue(const mpix_enqueue_call_t *call)
{
    mpix_joint_t *one_joint, **joints = &one_joint;
    MPI_Request one_rest, *rest       = &one_rest;
    int rc;

    if (call->count > 1) {
        joints = malloc(call->count * sizeof(*joints));
        rest   = malloc(call->count * sizeof(*rest));
    }
    rc = ((joints != NULL) && (rest != NULL)) ?
                 mpix_joint_enqueue_split(call, joints, rest) :
                 mpix_fail(call->func, MPI_ERR_NO_MEM,
                           "no memory for %d requests", call->count);
    if (call->count > 1) {
        free(rest);
        free(joints);
    }
    return rc;
}
