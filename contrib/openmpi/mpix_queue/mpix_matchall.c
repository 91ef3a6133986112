/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_matchall.c - the functions of the interface that match requests.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue.h"
#include "mpix_coll.h"
#include "mpix_datatype.h"
#include "mpix_error.h"
#include "mpix_global.h"
#include "mpix_match.h"
#include "mpix_request.h"

#include <ucs_trace.h>

#include <stddef.h>


/* Refuses what can never be matched. */
static int mpix_matchall_check_kind(const char *func, const mpix_req_t *req)
{
    char str[MPIX_REQ_STR_MAX];

    mpix_request_str(req, str, sizeof(str));
    if (req->kind == MPIX_REQ_OTHER) {
        return mpix_fail(func, MPI_ERR_REQUEST,
                         "a %s can not be matched, only those of "
                         "MPI_Send_init, MPI_Rsend_init and MPI_Recv_init",
                         str);
    } else if (req->rank == MPI_ANY_SOURCE) {
        return mpix_fail(func, MPI_ERR_RANK,
                         "a receive from MPI_ANY_SOURCE can not be matched");
    } else if ((req->tag == MPI_ANY_TAG) && (req->rank != MPI_PROC_NULL)) {
        return mpix_fail(func, MPI_ERR_TAG,
                         "a receive of MPI_ANY_TAG can not be matched");
    } else if (!req->is_contig) {
        return mpix_fail(func, MPI_ERR_TYPE,
                         "the datatype of a request made by %s is not "
                         "contiguous", req->maker);
    }
    return MPI_SUCCESS;
}

/* Refuses a request that is in use, or cannot be matched a second time. */
static int mpix_matchall_check_state(const char *func, const mpix_req_t *req)
{
    char str[MPIX_REQ_STR_MAX];
    int is_inactive;

    mpix_request_str(req, str, sizeof(str));
    if (req->is_marked) {
        return mpix_fail(func, MPI_ERR_REQUEST, "%s: given twice", str);
    } else if (req->state == MPIX_REQ_FAILED) {
        return mpix_fail(func, MPI_ERR_REQUEST,
                         "%s: matching failed before, it can only be freed",
                         str);
    } else if (req->state != MPIX_REQ_IDLE) {
        return mpix_fail(func, MPI_ERR_REQUEST, "%s: was given to match before",
                         str);
    }

    if ((PMPI_Request_get_status(req->handle, &is_inactive,
                                 MPI_STATUS_IGNORE) != MPI_SUCCESS) ||
        !is_inactive) {
        return mpix_fail(func, MPI_ERR_REQUEST, "%s: is active", str);
    }
    return MPI_SUCCESS;
}

/* Finds what has to be there before the request is matched. */
static int mpix_matchall_get_peer(const char *func, mpix_req_t *req)
{
    if ((req->rank == MPI_PROC_NULL) || (req->peer != NULL)) {
        return MPI_SUCCESS;
    }

    if (req->comm->handle == MPI_COMM_NULL) {
        return mpix_fail(func, MPI_ERR_COMM,
                         "the request's communicator was freed before the "
                         "first call of this library");
    }
    return mpix_peer_get(func, req->comm, req->rank, &req->peer);
}

/* Checks one request of an array. */
static int mpix_matchall_check(const char *func, MPI_Request handle)
{
    mpix_req_t *req = mpix_request_find(handle);
    int rc;

    if (req == NULL) {
        return mpix_fail(func, MPI_ERR_REQUEST,
                         "the request was not made by MPI_Send_init, "
                         "MPI_Rsend_init or MPI_Recv_init, or is freed");
    }

    rc = mpix_matchall_check_kind(func, req);
    if (rc == MPI_SUCCESS) {
        rc = mpix_matchall_check_state(func, req);
    }
    if ((rc == MPI_SUCCESS) && (req->kind == MPIX_REQ_COLL)) {
        rc = mpix_coll_check(func, req, mpix_matchall_check);
    } else if (rc == MPI_SUCCESS) {
        rc = mpix_matchall_get_peer(func, req);
    }
    if (rc == MPI_SUCCESS) {
        req->is_marked = 1;
    }
    return rc;
}

/* Checks all requests, and gives all or none of them to match. */
static int mpix_matchall_begin_locked(const char *func, int count,
                                      const MPI_Request *requests)
{
    int rc = MPI_SUCCESS;
    int i, checked;

    for (checked = 0; (checked < count) && (rc == MPI_SUCCESS); ++checked) {
        rc = mpix_matchall_check(func, requests[checked]);
    }

    if (rc != MPI_SUCCESS) {
        --checked; /* The last one is not marked */
    }

    for (i = 0; i < checked; ++i) {
        mpix_request_find(requests[i])->is_marked = 0;
    }

    for (i = 0; (i < count) && (rc == MPI_SUCCESS); ++i) {
        mpix_match_push(mpix_request_find(requests[i]));
    }
    return rc;
}

/* The first request that is one half of a message to the own process and lacks
 * the other; NULL if there is none. */
static mpix_req_t *mpix_matchall_find_half(int count,
                                           const MPI_Request *requests)
{
    mpix_req_t *req;
    int i;

    for (i = 0; i < count; ++i) {
        req = mpix_request_find(requests[i]);
        if (mpix_match_lacks_half(req)) {
            return req;
        }
    }
    return NULL;
}

/* Takes back what was begun if it would wait forever. */
static int mpix_matchall_check_halves(const char *func, int count,
                                      const MPI_Request *requests)
{
    mpix_req_t *req = mpix_matchall_find_half(count, requests);
    char str[MPIX_REQ_STR_MAX];
    int i;

    if (req == NULL) {
        return MPI_SUCCESS;
    }

    mpix_fail(func, MPI_ERR_REQUEST,
              "%s is one half of a message to the own process: match both in "
              "one call, or begin with MPIX_Imatch",
              mpix_request_str(req, str, sizeof(str)));
    for (i = 0; i < count; ++i) {
        req = mpix_request_find(requests[i]);
        mpix_match_cancel(req);
        req->state = MPIX_REQ_IDLE;
    }
    return MPI_ERR_REQUEST;
}

static int mpix_matchall_begin(const char *func, int count,
                               const MPI_Request *requests, int is_blocking)
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
    rc = mpix_matchall_begin_locked(func, count, requests);
    if ((rc == MPI_SUCCESS) && is_blocking) {
        rc = mpix_matchall_check_halves(func, count, requests);
    }
    if (rc == MPI_SUCCESS) {
        mpix_match_progress();
    }
    mpix_unlock();
    return rc;
}

/* Fills what MPI_Recv would fill, and for a send what MPI_Send's request
 * has. */
static void mpix_matchall_fill_status(const mpix_req_t *req, MPI_Status *status)
{
    const int is_recv = (req->kind == MPIX_REQ_RECV) &&
                        (req->code == MPI_SUCCESS);

    status->MPI_SOURCE = is_recv ? req->rank : MPI_ANY_SOURCE;
    status->MPI_TAG    = (is_recv && (req->rank != MPI_PROC_NULL)) ?
                                 req->tag :
                                 MPI_ANY_TAG;
    mpix_datatype_set_elements(status, MPI_BYTE, is_recv ? req->actual : 0);
    PMPI_Status_set_cancelled(status, 0);
}

/* Tells how matching of a request stands; 'status' may be NULL. */
static int mpix_matchall_test(MPI_Request handle, int *flag, MPI_Status *status)
{
    mpix_req_t *req = mpix_request_find(handle);

    *flag = (req->state == MPIX_REQ_MATCHED);
    if (*flag && (status != NULL)) {
        mpix_matchall_fill_status(req, status);
    }
    return req->code;
}

static int mpix_matchall_is_done(int count, const MPI_Request *requests)
{
    mpix_req_state_t state;
    int i;

    for (i = 0; i < count; ++i) {
        state = mpix_request_find(requests[i])->state;
        if ((state == MPIX_REQ_PENDING) || (state == MPIX_REQ_MATCHING)) {
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
        if (mpix_match_progress() > 0) {
            spins = 0;
        }
        is_done = mpix_matchall_is_done(count, requests);
        mpix_unlock();
        if (is_done) {
            break;
        }

        mpix_match_progress_mpi();
        mpix_match_backoff(&spins);
    }
}

/* Fills the statuses, and returns the first error. */
static int mpix_matchall_finish(int count, const MPI_Request *requests,
                                MPI_Status *statuses)
{
    int rc = MPI_SUCCESS;
    int i, ret, flag;

    mpix_lock();
    for (i = 0; i < count; ++i) {
        ret = mpix_matchall_test(requests[i], &flag,
                                 (statuses == NULL) ? NULL : &statuses[i]);
        if (statuses != NULL) {
            statuses[i].MPI_ERROR = ret;
        }
        if (rc == MPI_SUCCESS) {
            rc = ret;
        }
    }
    mpix_unlock();
    return rc;
}

int MPIX_Match(MPI_Request *request, MPI_Status *status)
{
    uint64_t begin = ucs_trace_begin();
    int rc         = mpix_matchall_begin("MPIX_Match", 1, request, 1);

    if (rc == MPI_SUCCESS) {
        mpix_matchall_wait(1, request);
        rc = mpix_matchall_finish(
                1, request, (status == MPI_STATUS_IGNORE) ? NULL : status);
    }
    ucs_trace_end("MPIX_Match", begin);
    return mpix_raise(mpix_request_comm(1, request), rc);
}

int MPIX_Matchall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    uint64_t begin = ucs_trace_begin();
    int rc         = mpix_matchall_begin("MPIX_Matchall", count, requests, 1);

    if (rc == MPI_SUCCESS) {
        mpix_matchall_wait(count, requests);
        rc = mpix_matchall_finish(
                count, requests,
                (statuses == MPI_STATUSES_IGNORE) ? NULL : statuses);
    }
    ucs_trace_end("MPIX_Matchall", begin);
    return mpix_raise(mpix_request_comm(count, requests), rc);
}

int MPIX_Imatch(MPI_Request *request)
{
    return mpix_raise(mpix_request_comm(1, request),
                      mpix_matchall_begin("MPIX_Imatch", 1, request, 0));
}

int MPIX_Imatchall(int count, MPI_Request requests[])
{
    return mpix_raise(mpix_request_comm(count, requests),
                      mpix_matchall_begin("MPIX_Imatchall", count, requests,
                                          0));
}

/* Progresses matching and looks at a request. */
static int mpix_matchall_poll(MPI_Request handle, int *flag, MPI_Status *status)
{
    int rc;

    mpix_match_progress_mpi();

    mpix_lock();
    if (mpix_request_find(handle) == NULL) {
        rc = mpix_fail("MPIX_Is_matched", MPI_ERR_REQUEST,
                       "the request is no persistent one, or is freed");
    } else {
        mpix_match_progress();
        rc = mpix_matchall_test(handle, flag, status);
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
