/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_matchall.c - the functions of the interface that match requests.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue.h"
#include "binding/mpix_binding.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "coll/mpix_coll.h"
#include "mpix_init.h"
#include "mpix_match_thread.h"
#include "mpix_matchall.h"
#include "request/mpix_joint.h"
#include "request/mpix_match.h"
#include "request/mpix_request.h"

#include <ucs_backoff.h>
#include <ucs_trace.h>

#include <stddef.h>


/* Refuses what can never be matched. */
static int mpix_matchall_check_kind(const mpix_where_t *where)
{
    const mpix_req_t *req = where->req;

    if (req->kind == MPIX_REQ_OTHER) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "can not be matched, only those of "
                                 "MPI_Send_init, MPI_Rsend_init and "
                                 "MPI_Recv_init");
    } else if (req->rank == MPI_ANY_SOURCE) {
        return mpix_request_fail(where, MPI_ERR_RANK,
                                 "can not be matched: its source is "
                                 "MPI_ANY_SOURCE");
    } else if ((req->tag == MPI_ANY_TAG) && (req->rank != MPI_PROC_NULL)) {
        return mpix_request_fail(where, MPI_ERR_TAG,
                                 "can not be matched: its tag is MPI_ANY_TAG");
    } else if (req->is_in_place) {
        return mpix_request_fail(where, MPI_ERR_BUFFER,
                                 "can not be matched: its buffer is "
                                 "MPI_IN_PLACE");
    } else if ((req->buffer == NULL) && (req->kind != MPIX_REQ_COLL) &&
               (req->kind != MPIX_REQ_EXCHANGE)) {
        return mpix_request_fail(where, MPI_ERR_TYPE,
                                 "can not be matched: its datatype, a %s one, "
                                 "is not known", req->type);
    }
    return MPI_SUCCESS;
}

/* Refuses a buffer in a device whose data the library cannot move. */
static int mpix_matchall_check_memory(const mpix_where_t *where)
{
    const mpix_req_t *req = where->req;
    const char *refusal;

    if ((req->kind == MPIX_REQ_COLL) || (req->rank == MPI_PROC_NULL)) {
        return MPI_SUCCESS;
    }

    refusal = mpix_buffer_check(req->buffer);
    return (refusal == NULL) ?
                   MPI_SUCCESS :
                   mpix_request_fail(where, MPI_ERR_TYPE,
                                     "is in memory of %s %s",
                                     ucs_gstream_type_name(req->buffer->memory),
                                     refusal);
}

/* Refuses a request that is in use, or cannot be matched a second time. */
static int mpix_matchall_check_state(const mpix_where_t *where)
{
    const mpix_req_t *req = where->req;
    int is_inactive;

    if (req->is_marked) {
        return mpix_request_fail(where, MPI_ERR_REQUEST, "is given twice");
    } else if (req->state == MPIX_REQ_FAILED) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "can only be freed: matching failed before");
    } else if (req->state != MPIX_REQ_IDLE) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "was given to match before");
    }

    if ((req->kind == MPIX_REQ_COLL) && req->coll->seems_active) {
        return MPI_SUCCESS; /* MPI cannot tell */
    }
    if ((PMPI_Request_get_status(req->handle, &is_inactive,
                                 MPI_STATUS_IGNORE) != MPI_SUCCESS) ||
        !is_inactive) {
        return mpix_request_fail(where, MPI_ERR_REQUEST, "is active");
    }
    return MPI_SUCCESS;
}

/* Finds what has to be there before the request is matched. */
static int mpix_matchall_get_peer(const mpix_where_t *where, mpix_req_t *req)
{
    if (req->kind == MPIX_REQ_COLL) {
        return mpix_coll_for_each(where, req->coll, mpix_matchall_get_peer);
    } else if (req->kind == MPIX_REQ_EXCHANGE) {
        return mpix_joint_for_each(where, req->joint, mpix_matchall_get_peer);
    }
    if ((req->rank == MPI_PROC_NULL) || (req->peer != NULL)) {
        return MPI_SUCCESS;
    }

    if (req->comm->handle == MPI_COMM_NULL) {
        return mpix_request_fail(where, MPI_ERR_COMM,
                                 "can not be matched: its communicator was "
                                 "freed before the first call of this library");
    }
    return mpix_peer_get(where->func, req->comm, req->rank, &req->peer);
}

/* Looks at a message of a collective. */
static int mpix_matchall_check_message(const mpix_where_t *where,
                                       mpix_req_t *req)
{
    int rc = mpix_matchall_check_kind(where);

    (void)req;
    if (rc == MPI_SUCCESS) {
        rc = mpix_matchall_check_state(where);
    }
    return (rc == MPI_SUCCESS) ? mpix_matchall_check_memory(where) : rc;
}

/* Looks at a member of an exchange, which was idle when that was made. */
static int mpix_matchall_check_member(const mpix_where_t *where,
                                      mpix_req_t *req)
{
    int rc = mpix_matchall_check_kind(where);

    (void)req;
    return (rc == MPI_SUCCESS) ? mpix_matchall_check_memory(where) : rc;
}

/* Looks at one request of an array. */
static int mpix_matchall_check(const mpix_where_t *where, mpix_req_t *req)
{
    int rc;

    if (req == NULL) {
        return mpix_request_fail(where, MPI_ERR_REQUEST,
                                 "was not made by MPI_Send_init, "
                                 "MPI_Rsend_init or MPI_Recv_init of "
                                 "libmpix_queue, or is freed: where the "
                                 "library is loaded late, as by dlopen, call "
                                 "its functions of these names");
    } else if (mpix_joint_is_member(req)) {
        return mpix_joint_refuse(where);
    }

    rc = mpix_matchall_check_kind(where);
    if (rc == MPI_SUCCESS) {
        rc = mpix_matchall_check_state(where);
    }
    if (rc == MPI_SUCCESS) {
        rc = mpix_matchall_check_memory(where);
    }
    if ((rc == MPI_SUCCESS) && (req->kind == MPIX_REQ_COLL)) {
        rc = mpix_coll_check(where);
        if (rc == MPI_SUCCESS) {
            rc = mpix_coll_for_each(where, req->coll,
                                    mpix_matchall_check_message);
        }
    }
    if ((rc == MPI_SUCCESS) && (req->kind == MPIX_REQ_EXCHANGE)) {
        rc = mpix_joint_for_each(where, req->joint, mpix_matchall_check_member);
    }
    if (rc == MPI_SUCCESS) {
        req->is_marked = 1;
    }
    return rc;
}

/* Keeps the code of a request of an array, and the first error of all. */
static void mpix_matchall_note(int code, int *rc_p, MPI_Status *status)
{
    if (code == MPI_SUCCESS) {
        return;
    }

    if (*rc_p == MPI_SUCCESS) {
        *rc_p = code;
    }
    if (status != NULL) {
        status->MPI_ERROR = code;
    }
}

/* Checks all requests. On an error each status, if there are any, has its
 * request's, and MPI_ERR_PENDING for those without one. */
static int mpix_matchall_check_all(const char *func, int count,
                                   const MPI_Request *requests,
                                   MPI_Status *statuses)
{
    mpix_where_t where = {func, count};
    int rc             = MPI_SUCCESS;
    mpix_req_t *req;
    int i;

    for (i = 0; (i < count) && (statuses != NULL); ++i) {
        mpix_request_empty_status(&statuses[i], MPI_ERR_PENDING);
    }

    for (i = 0; i < count; ++i) {
        if (requests[i] != MPI_REQUEST_NULL) {
            req         = mpix_request_find(requests[i]);
            where.index = i;
            where.req   = req;
            mpix_matchall_note(mpix_matchall_check(&where, req), &rc,
                               (statuses == NULL) ? NULL : &statuses[i]);
        }
    }

    for (i = 0; i < count; ++i) {
        req = mpix_request_find(requests[i]);
        if (req != NULL) {
            req->is_marked = 0;
        }
    }

    for (i = 0; (i < count) && (rc == MPI_SUCCESS); ++i) {
        req = mpix_request_find(requests[i]);
        if (req != NULL) {
            where.index = i;
            where.req   = req;
            mpix_matchall_note(mpix_matchall_get_peer(&where, req), &rc,
                               (statuses == NULL) ? NULL : &statuses[i]);
        }
    }
    return rc;
}

static void mpix_matchall_push(int count, const MPI_Request *requests)
{
    mpix_req_t *req;
    int i;

    for (i = 0; i < count; ++i) {
        req = mpix_request_find(requests[i]);
        if (req != NULL) {
            mpix_coll_push(req);
        }
    }
    if (mpix_binding()->needs_thread) {
        mpix_match_thread_wake();
    }
}

/* The first request that is one half of a message to the own process and lacks
 * the other; its index, or 'count' if there is none. */
static int mpix_matchall_find_half(int count, const MPI_Request *requests)
{
    mpix_req_t *req;
    int i;

    for (i = 0; i < count; ++i) {
        req = mpix_request_find(requests[i]);
        if ((req != NULL) && mpix_match_lacks_half(req)) {
            break;
        }
    }
    return i;
}

/* Takes back what was begun if it would wait forever. */
static int mpix_matchall_check_halves(const char *func, int count,
                                      const MPI_Request *requests,
                                      MPI_Status *statuses)
{
    int half           = mpix_matchall_find_half(count, requests);
    mpix_where_t where = {func, count, half};
    int rc             = MPI_SUCCESS;
    mpix_req_t *req;
    int i, code;

    if (half == count) {
        return MPI_SUCCESS;
    }

    where.req = mpix_request_find(requests[half]);
    code      = mpix_request_fail(&where, MPI_ERR_REQUEST,
                                  "is one half of a message to the own "
                                  "process: match both in one call, or begin "
                                  "with MPIX_Imatch");
    mpix_matchall_note(code, &rc, (statuses == NULL) ? NULL : &statuses[half]);
    for (i = 0; i < count; ++i) {
        req = mpix_request_find(requests[i]);
        if (req != NULL) {
            mpix_coll_cancel(req);
            mpix_request_set_state(req, MPIX_REQ_IDLE);
        }
    }
    return rc;
}

static int mpix_matchall_begin(const char *func, int count,
                               const MPI_Request *requests, int is_blocking,
                               MPI_Status *statuses)
{
    int rc;

    if ((count < 0) || ((count > 0) && (requests == NULL))) {
        return mpix_fail(func, (count < 0) ? MPI_ERR_COUNT : MPI_ERR_REQUEST,
                         "invalid array of %d requests", count);
    }

    rc = mpix_global_init(func);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    mpix_lock();
    rc = mpix_matchall_check_all(func, count, requests, statuses);
    if (rc == MPI_SUCCESS) {
        mpix_matchall_push(count, requests);
    }
    if ((rc == MPI_SUCCESS) && is_blocking) {
        rc = mpix_matchall_check_halves(func, count, requests, statuses);
    }
    if (rc == MPI_SUCCESS) {
        mpix_coll_progress();
    }
    mpix_unlock();
    return rc;
}

/* The same for one request, which may not be MPI_REQUEST_NULL: as MPI_Start. */
static int mpix_matchall_begin_one(const char *func, const MPI_Request *request,
                                   int is_blocking)
{
    if ((request != NULL) && (*request == MPI_REQUEST_NULL)) {
        return mpix_fail(func, MPI_ERR_REQUEST,
                         "the request is MPI_REQUEST_NULL");
    }
    return mpix_matchall_begin(func, 1, request, is_blocking, NULL);
}

/* Tells how matching of a request stands; 'status' may be NULL. The request of
 * MPI_REQUEST_NULL is NULL: it counts as matched, as for MPI_Test. */
static int mpix_matchall_test(const mpix_where_t *where, int *flag,
                              MPI_Status *status)
{
    const mpix_req_t *req = where->req;
    int rc                = MPI_SUCCESS;
    char cause[MPIX_REQ_NAME_MAX + 64];

    *flag = (req == NULL) || (req->state == MPIX_REQ_MATCHED);
    if ((req != NULL) && (req->match_status != UCS_OK)) {
        rc = mpix_request_fail(where, mpix_status_code(req->match_status),
                               "can not be matched: %s",
                               (req->kind == MPIX_REQ_EXCHANGE) ?
                                       mpix_joint_cause(req->joint, cause,
                                                        sizeof(cause)) :
                                       mpix_match_cause(req, cause,
                                                        sizeof(cause)));
    }

    if (status == NULL) {
        return rc;
    } else if (req == NULL) {
        mpix_request_empty_status(status, MPI_SUCCESS);
    } else if (*flag || (rc != MPI_SUCCESS)) {
        mpix_request_fill_status(req, rc, status);
    }
    return rc;
}

static int mpix_matchall_is_done(int count, const MPI_Request *requests)
{
    mpix_req_t *req;
    int i;

    for (i = 0; i < count; ++i) {
        req = mpix_request_find(requests[i]);
        if ((req != NULL) && ((req->state == MPIX_REQ_PENDING) ||
                              (req->state == MPIX_REQ_MATCHING))) {
            return 0;
        }
    }
    return 1;
}

static void mpix_matchall_wait(int count, const MPI_Request *requests)
{
    unsigned spins = 0;
    int is_done;

    for (;;) {
        mpix_lock();
        if (mpix_coll_progress() > 0) {
            spins = 0;
        }
        is_done = mpix_matchall_is_done(count, requests);
        mpix_unlock();
        if (is_done) {
            break;
        }

        mpix_match_progress_mpi();
        ucs_backoff(&spins);
    }
}

/* Fills the statuses, and returns the first error. It is made last: MPI keeps
 * only so many texts. */
static int mpix_matchall_finish(const char *func, int count,
                                const MPI_Request *requests,
                                MPI_Status *statuses)
{
    mpix_where_t where = {func, count};
    int rc             = MPI_SUCCESS;
    int i, ret, flag;

    mpix_lock();
    for (i = count - 1; i >= 0; --i) {
        where.index = i;
        where.req   = mpix_request_find(requests[i]);
        ret         = mpix_matchall_test(&where, &flag,
                                         (statuses == NULL) ? NULL :
                                                              &statuses[i]);
        if (statuses != NULL) {
            statuses[i].MPI_ERROR = ret;
        }
        rc = (ret == MPI_SUCCESS) ? rc : ret;
    }
    mpix_unlock();
    return rc;
}

int MPIX_Match(MPI_Request *request, MPI_Status *status)
{
    uint64_t begin = ucs_trace_begin();
    int rc         = mpix_matchall_begin_one("MPIX_Match", request, 1);

    if (rc == MPI_SUCCESS) {
        mpix_matchall_wait(1, request);
        rc = mpix_matchall_finish("MPIX_Match", 1, request,
                                  (status == MPI_STATUS_IGNORE) ? NULL :
                                                                  status);
    }
    ucs_trace_end("MPIX_Match", begin);
    return mpix_raise(mpix_request_comm(1, request), rc);
}

int MPIX_Matchall(int count, MPI_Request requests[], MPI_Status *statuses)
{
    MPI_Status *filled = (statuses == MPI_STATUSES_IGNORE) ? NULL : statuses;
    uint64_t begin     = ucs_trace_begin();
    int rc             = mpix_matchall_begin("MPIX_Matchall", count, requests,
                                             1, filled);

    if (rc == MPI_SUCCESS) {
        mpix_matchall_wait(count, requests);
        rc = mpix_matchall_finish("MPIX_Matchall", count, requests, filled);
    }
    ucs_trace_end("MPIX_Matchall", begin);
    return mpix_raise(mpix_request_comm(count, requests), rc);
}

int MPIX_Imatch(MPI_Request *request)
{
    return mpix_raise(mpix_request_comm(1, request),
                      mpix_matchall_begin_one("MPIX_Imatch", request, 0));
}

int MPIX_Imatchall(int count, MPI_Request requests[])
{
    return mpix_raise(mpix_request_comm(count, requests),
                      mpix_matchall_begin("MPIX_Imatchall", count, requests, 0,
                                          NULL));
}

int mpix_matchall_look(const char *func, int count, const MPI_Request *requests,
                       int *code_p)
{
    int is_done;

    mpix_match_progress_mpi();

    mpix_lock();
    mpix_coll_progress();
    is_done = mpix_matchall_is_done(count, requests);
    mpix_unlock();
    if (is_done) {
        *code_p = mpix_matchall_finish(func, count, requests, NULL);
    }
    return is_done;
}

/* Progresses matching and looks at a request. */
static int mpix_matchall_poll(MPI_Request handle, int *flag, MPI_Status *status)
{
    mpix_where_t where = {"MPIX_Is_matched", 1};
    int rc;

    mpix_match_progress_mpi();

    mpix_lock();
    mpix_coll_progress();
    where.req = mpix_request_find(handle);
    if ((where.req == NULL) && (handle != MPI_REQUEST_NULL)) {
        rc = mpix_request_fail(&where, MPI_ERR_REQUEST,
                               "is no persistent one, or is freed");
    } else {
        rc = mpix_matchall_test(&where, flag, status);
    }
    mpix_unlock();
    return rc;
}

int MPIX_Is_matched(MPI_Request *request, int *flag, MPI_Status *status)
{
    int rc;

    if ((request == NULL) || (flag == NULL)) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail("MPIX_Is_matched", MPI_ERR_ARG,
                                    "NULL argument"));
    }

    *flag = 0;
    rc    = mpix_global_init("MPIX_Is_matched");
    if (rc == MPI_SUCCESS) {
        rc = mpix_matchall_poll(*request, flag,
                                (status == MPI_STATUS_IGNORE) ? NULL : status);
    }
    return mpix_raise(mpix_request_comm(1, request), rc);
}
