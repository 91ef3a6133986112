/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_wait.c - MPI's calls that test requests and wait for them.
 *
 * MPI takes matched requests for inactive and so passes them over. Those that
 * are active are tested here; the rest of an array is left to MPI. A call
 * without a matched request, or one of a message that is used once, goes
 * straight to MPI. Else MPI only tests, and its calls that wait are made of
 * that: a thread or stream of this library, which does what they wait for,
 * needs a processor and MPI's locks.
 *
 * Messages that are used once are generalized requests, whose errors MPI raises
 * through MPI_COMM_WORLD. So MPI is told of success, and the call raises the
 * error, through the message's communicator.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_next.h"
#include "mpix_host.h"
#include "mpix_matchall.h"
#include "once/mpix_fifo.h"
#include "request/mpix_match.h"

#include <ucs_backoff.h>


/* Ends the use of one active request. Returns its code, which is not raised. */
static int mpix_wait_end(mpix_wait_set_t *set, int index, MPI_Status *status)
{
    int rc = mpix_host_result(set, index, status);

    mpix_wait_set_fail(set, index, set->active[index]->comm, rc);
    mpix_host_told(set->active[index]);
    return rc;
}

/* The n-th status of an array, or NULL. */
static MPI_Status *mpix_wait_status(MPI_Status *statuses, int n)
{
    return (statuses == MPI_STATUSES_IGNORE) ? NULL : &statuses[n];
}

static MPI_Status *mpix_wait_one_status(MPI_Status *status)
{
    return (status == MPI_STATUS_IGNORE) ? NULL : status;
}

static int mpix_wait_is_in_status(int rc)
{
    int class = rc;

    PMPI_Error_class(rc, &class);
    return (rc == MPI_SUCCESS) || (class == MPI_ERR_IN_STATUS);
}

/* MPI sets the errors in statuses if there is one; so do we for its. */
static void mpix_wait_set_errors(MPI_Status *statuses, int count, int mpi)
{
    int i;

    for (i = 0; (i < count) && (statuses != MPI_STATUSES_IGNORE) &&
                (mpi == MPI_SUCCESS); ++i) {
        statuses[i].MPI_ERROR = MPI_SUCCESS;
    }
}

/* What a call that has an array of statuses returns: 'mpi' is what MPI has said
 * of its requests and raised; errors of ours are raised once it has not. */
static int mpix_wait_codes(mpix_wait_set_t *set, int mpi)
{
    if (set->failed == MPI_SUCCESS) {
        return mpi;
    }
    if (mpi != MPI_SUCCESS) {
        set->failed = MPI_SUCCESS;
    }
    return MPI_ERR_IN_STATUS;
}

/* Ends all active requests of an array, where MPI's own are complete. */
static int mpix_wait_end_all(mpix_wait_set_t *set, MPI_Status *statuses,
                             int mpi)
{
    MPI_Status *status;
    int i;

    mpix_wait_set_errors(statuses, set->count, mpi);
    for (i = 0; i < set->count; ++i) {
        status = mpix_wait_status(statuses, i);
        if (set->active[i] != NULL) {
            mpix_wait_end(set, i, status);
        } else if (set->codes[i] == MPI_SUCCESS) {
            continue;
        }
        if (status != NULL) {
            status->MPI_ERROR = set->codes[i];
        }
    }
    return mpix_wait_codes(set, mpi);
}

/* The first active request whose use is over; -1 if there is none. */
static int mpix_wait_find(const mpix_wait_set_t *set)
{
    int i;

    for (i = 0; i < set->count; ++i) {
        if ((set->active[i] != NULL) && mpix_host_is_over(set->active[i])) {
            return i;
        }
    }
    return -1;
}

static int mpix_wait_all_over(const mpix_wait_set_t *set)
{
    int i;

    for (i = 0; i < set->count; ++i) {
        if ((set->active[i] != NULL) && !mpix_host_is_over(set->active[i])) {
            return 0;
        }
    }
    return 1;
}

/* Completes generalized requests of this library that are over. */
static void mpix_wait_poll(int count, const MPI_Request *requests)
{
    mpix_fifo_poll(count, requests);
    mpix_match_request_poll(count, requests);
}

/* Begins a call, which must end by mpix_wait_finish(). Returns an MPI code,
 * which has been raised. Not inline: compilers warn of a caller's variable. */
static UCS_F_NOINLINE int
mpix_wait_begin(mpix_wait_set_t *set, const char *func, int count,
                MPI_Request *requests)
{
    int rc = mpix_host_set_init(set, func, count, requests);

    if (rc != MPI_SUCCESS) {
        return mpix_raise(mpix_request_comm(count, requests), rc);
    }

    mpix_wait_set_enter(set);
    mpix_wait_poll(count, requests);
    return MPI_SUCCESS;
}

/* Ends a call, which returns 'rc', and raises the first failure of ours. A
 * handler may never return. */
static int mpix_wait_finish(mpix_wait_set_t *set, int rc)
{
    const int failed = set->failed;
    MPI_Comm comm;

    mpix_wait_set_leave(set);
    mpix_host_set_cleanup(set);
    if (set->comm != NULL) {
        comm = mpix_comm_handle(set->comm);
        mpix_comm_drop(set->comm);
        mpix_raise(comm, failed);
    }
    return rc;
}

/* The same for a call that returns the failure itself. */
static int mpix_wait_finish_one(mpix_wait_set_t *set, int mpi)
{
    const int failed = set->failed;

    if (mpi != MPI_SUCCESS) {
        set->failed = MPI_SUCCESS; /* MPI has raised its own */
    }
    return mpix_wait_finish(set, (mpi != MPI_SUCCESS) ? mpi : failed);
}

static int mpix_wait_mpi(MPI_Request *request, MPI_Status *status)
{
    unsigned spins = 0;
    int rc, flag   = 0;

    while (((rc = MPIX_NEXT(Test)(request, &flag, status)) == MPI_SUCCESS) &&
           !flag) {
        mpix_wait_poll(1, request);
        ucs_backoff(&spins);
    }
    return rc;
}

static int mpix_wait_mpi_all(int count, MPI_Request requests[],
                             MPI_Status statuses[])
{
    unsigned spins = 0;
    int rc, flag   = 0;

    while (((rc = MPIX_NEXT(Testall)(count, requests, &flag, statuses)) ==
            MPI_SUCCESS) && !flag) {
        mpix_wait_poll(count, requests);
        ucs_backoff(&spins);
    }
    return rc;
}

static UCS_F_NOINLINE int
mpix_wait_slow_wait(MPI_Request *request, MPI_Status *status)
{
    mpix_wait_set_t set;
    int rc;

    rc = mpix_wait_begin(&set, "MPI_Wait", 1, request);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    if (set.num_active == 0) {
        rc = mpix_wait_mpi(set.mpi, status);
    } else {
        mpix_host_wait(set.active[0]);
        mpix_wait_end(&set, 0, mpix_wait_one_status(status));
    }
    return mpix_wait_finish_one(&set, rc);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    if (ucs_unlikely(mpix_request_may_be_given(request))) {
        return mpix_wait_slow_wait(request, status);
    }
    return MPIX_NEXT(Wait)(request, status);
}

/* An active request, for MPI_Test and for MPI_Request_get_status, which leaves
 * it active. */
static void mpix_wait_test(mpix_wait_set_t *set, int *flag, MPI_Status *status,
                           int is_told)
{
    mpix_req_t *req = set->active[0];

    *flag = mpix_host_is_over(req);
    if (!*flag) {
        mpix_host_progress();
        *flag = mpix_host_is_over(req);
    }
    if (*flag) {
        mpix_wait_set_fail(set, 0, req->comm,
                           mpix_host_result(set, 0,
                                            mpix_wait_one_status(status)));
        if (is_told) {
            mpix_host_told(req);
        }
    }
}

static UCS_F_NOINLINE int
mpix_wait_slow_test(MPI_Request *request, int *flag, MPI_Status *status)
{
    mpix_wait_set_t set;
    int rc;

    rc = mpix_wait_begin(&set, "MPI_Test", 1, request);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    if (set.num_active == 0) {
        rc = MPIX_NEXT(Test)(set.mpi, flag, status);
    } else {
        mpix_wait_test(&set, flag, status, 1);
    }
    return mpix_wait_finish_one(&set, rc);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (ucs_unlikely(mpix_request_may_be_given(request))) {
        return mpix_wait_slow_test(request, flag, status);
    }
    return MPIX_NEXT(Test)(request, flag, status);
}

static UCS_F_NOINLINE int
mpix_wait_slow_request_get_status(MPI_Request request, int *flag,
                                  MPI_Status *status)
{
    mpix_wait_set_t set;
    int rc;

    rc = mpix_wait_begin(&set, "MPI_Request_get_status", 1, &request);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    if (set.num_active == 0) {
        rc = MPIX_NEXT(Request_get_status)(set.mpi[0], flag, status);
    } else {
        mpix_wait_test(&set, flag, status, 0);
    }
    return mpix_wait_finish_one(&set, rc);
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    if (ucs_unlikely(mpix_request_may_be_given(&request))) {
        return mpix_wait_slow_request_get_status(request, flag, status);
    }
    return MPIX_NEXT(Request_get_status)(request, flag, status);
}

static UCS_F_NOINLINE int
mpix_wait_slow_waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    mpix_wait_set_t set;
    int rc, i;

    rc = mpix_wait_begin(&set, "MPI_Waitall", count, requests);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    for (i = 0; i < count; ++i) {
        if (set.active[i] != NULL) {
            mpix_host_wait(set.active[i]);
        }
    }
    rc = mpix_wait_mpi_all(count, set.mpi, statuses);
    if (mpix_wait_is_in_status(rc)) {
        rc = mpix_wait_end_all(&set, statuses, rc);
    }
    return mpix_wait_finish(&set, rc);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    if (ucs_unlikely(mpix_request_any_given(count, requests))) {
        return mpix_wait_slow_waitall(count, requests, statuses);
    }
    return MPIX_NEXT(Waitall)(count, requests, statuses);
}

static UCS_F_NOINLINE int
mpix_wait_slow_testall(int count, MPI_Request requests[], int *flag,
                       MPI_Status statuses[])
{
    mpix_wait_set_t set;
    int rc;

    rc = mpix_wait_begin(&set, "MPI_Testall", count, requests);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    *flag = mpix_wait_all_over(&set);
    if (*flag) {
        rc = MPIX_NEXT(Testall)(count, set.mpi, flag, statuses);
        if (*flag && mpix_wait_is_in_status(rc)) {
            rc = mpix_wait_end_all(&set, statuses, rc);
        }
    } else {
        mpix_host_progress();
    }
    return mpix_wait_finish(&set, rc);
}

int MPI_Testall(int count, MPI_Request requests[], int *flag,
                MPI_Status statuses[])
{
    if (ucs_unlikely(mpix_request_any_given(count, requests))) {
        return mpix_wait_slow_testall(count, requests, flag, statuses);
    }
    return MPIX_NEXT(Testall)(count, requests, flag, statuses);
}

/* One round of MPI_Waitany or MPI_Testany. Returns MPI's code, and sets '*flag'
 * if there is a result, or if MPI has an error. */
static int mpix_wait_any(mpix_wait_set_t *set, int *index, int *flag,
                         MPI_Status *status)
{
    const int found = mpix_wait_find(set);
    int rc;

    if (found >= 0) {
        *flag  = 1;
        *index = found;
        mpix_wait_end(set, found, mpix_wait_one_status(status));
        return MPI_SUCCESS;
    }

    rc = MPIX_NEXT(Testany)(set->count, set->mpi, index, flag, status);
    if (rc != MPI_SUCCESS) {
        *flag = 1;
    } else if ((*index == MPI_UNDEFINED) && (set->num_active > 0)) {
        *flag = 0;
    }
    return rc;
}

static UCS_F_NOINLINE int
mpix_wait_slow_testany(int count, MPI_Request requests[], int *index, int *flag,
                       MPI_Status *status)
{
    mpix_wait_set_t set;
    int rc;

    rc = mpix_wait_begin(&set, "MPI_Testany", count, requests);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_wait_any(&set, index, flag, status);
    if (!*flag && (set.num_given > 0)) {
        mpix_host_progress();
    }
    return mpix_wait_finish_one(&set, rc);
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag,
                MPI_Status *status)
{
    if (ucs_unlikely(mpix_request_any_given(count, requests))) {
        return mpix_wait_slow_testany(count, requests, index, flag, status);
    }
    return MPIX_NEXT(Testany)(count, requests, index, flag, status);
}

static UCS_F_NOINLINE int
mpix_wait_slow_waitany(int count, MPI_Request requests[], int *index,
                       MPI_Status *status)
{
    unsigned spins = 0;
    mpix_wait_set_t set;
    int rc, flag;

    rc = mpix_wait_begin(&set, "MPI_Waitany", count, requests);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    for (;;) {
        rc = mpix_wait_any(&set, index, &flag, status);
        if (flag) {
            break;
        }
        if (set.num_given > 0) {
            mpix_host_progress();
        }
        mpix_wait_poll(count, set.mpi);
        ucs_backoff(&spins);
    }
    return mpix_wait_finish_one(&set, rc);
}

int MPI_Waitany(int count, MPI_Request requests[], int *index,
                MPI_Status *status)
{
    if (ucs_unlikely(mpix_request_any_given(count, requests))) {
        return mpix_wait_slow_waitany(count, requests, index, status);
    }
    return MPIX_NEXT(Waitany)(count, requests, index, status);
}

/* One round of MPI_Waitsome or MPI_Testsome. */
static int mpix_wait_some(mpix_wait_set_t *set, int *outcount, int indices[],
                          MPI_Status statuses[])
{
    MPI_Status *status;
    int rc, i;

    rc = MPIX_NEXT(Testsome)(set->count, set->mpi, outcount, indices, statuses);
    if (!mpix_wait_is_in_status(rc) ||
        ((set->num_active == 0) && (set->failed == MPI_SUCCESS))) {
        return rc;
    }

    if (*outcount == MPI_UNDEFINED) {
        *outcount = 0; /* Ours are active */
    }
    mpix_wait_set_errors(statuses, *outcount, rc);
    for (i = 0; (i < *outcount) && (statuses != MPI_STATUSES_IGNORE); ++i) {
        if (set->codes[indices[i]] != MPI_SUCCESS) {
            statuses[i].MPI_ERROR = set->codes[indices[i]];
        }
    }
    for (i = 0; i < set->count; ++i) {
        if ((set->active[i] == NULL) || !mpix_host_is_over(set->active[i])) {
            continue;
        }

        status = mpix_wait_status(statuses, *outcount);
        mpix_wait_end(set, i, status);
        if (status != NULL) {
            status->MPI_ERROR = set->codes[i];
        }
        indices[(*outcount)++] = i;
    }
    return mpix_wait_codes(set, rc);
}

static UCS_F_NOINLINE int
mpix_wait_slow_testsome(int incount, MPI_Request requests[], int *outcount,
                        int indices[], MPI_Status statuses[])
{
    mpix_wait_set_t set;
    int rc;

    rc = mpix_wait_begin(&set, "MPI_Testsome", incount, requests);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_wait_some(&set, outcount, indices, statuses);
    if ((*outcount == 0) && (set.num_given > 0)) {
        mpix_host_progress();
    }
    return mpix_wait_finish(&set, rc);
}

int MPI_Testsome(int incount, MPI_Request requests[], int *outcount,
                 int indices[], MPI_Status statuses[])
{
    if (ucs_unlikely(mpix_request_any_given(incount, requests))) {
        return mpix_wait_slow_testsome(incount, requests, outcount, indices,
                                       statuses);
    }
    return MPIX_NEXT(Testsome)(incount, requests, outcount, indices, statuses);
}

static UCS_F_NOINLINE int
mpix_wait_slow_waitsome(int incount, MPI_Request requests[], int *outcount,
                        int indices[], MPI_Status statuses[])
{
    unsigned spins = 0;
    mpix_wait_set_t set;
    int rc;

    rc = mpix_wait_begin(&set, "MPI_Waitsome", incount, requests);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    for (;;) {
        rc = mpix_wait_some(&set, outcount, indices, statuses);
        if ((rc != MPI_SUCCESS) || (*outcount != 0)) {
            break;
        }
        if (set.num_given > 0) {
            mpix_host_progress();
        }
        mpix_wait_poll(incount, set.mpi);
        ucs_backoff(&spins);
    }
    return mpix_wait_finish(&set, rc);
}

int MPI_Waitsome(int incount, MPI_Request requests[], int *outcount,
                 int indices[], MPI_Status statuses[])
{
    if (ucs_unlikely(mpix_request_any_given(incount, requests))) {
        return mpix_wait_slow_waitsome(incount, requests, outcount, indices,
                                       statuses);
    }
    return MPIX_NEXT(Waitsome)(incount, requests, outcount, indices, statuses);
}

static UCS_F_NOINLINE int mpix_wait_slow_cancel(MPI_Request *request)
{
    mpix_where_t where = {"MPI_Cancel", 1};
    mpix_wait_set_t set;
    int rc;

    rc = mpix_wait_begin(&set, where.func, 1, request);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    mpix_lock();
    where.req = mpix_request_find(*request);
    if ((where.req != NULL) && ((where.req->state != MPIX_REQ_IDLE) ||
                                (where.req->kind == MPIX_REQ_EXCHANGE))) {
        mpix_wait_set_fail(&set, 0, where.req->comm,
                           mpix_request_fail(&where, MPI_ERR_REQUEST,
                                             "cannot be cancelled: it was "
                                             "given to match, or is an "
                                             "exchange"));
    }
    mpix_unlock();
    if (set.failed == MPI_SUCCESS) {
        set.mpi[0] = *request; /* A collective of an MPI that has none, too */
        rc         = MPIX_NEXT(Cancel)(set.mpi);
    }
    return mpix_wait_finish_one(&set, rc);
}

int MPI_Cancel(MPI_Request *request)
{
    if (ucs_unlikely(mpix_request_may_be_given(request))) {
        return mpix_wait_slow_cancel(request);
    }
    return MPIX_NEXT(Cancel)(request);
}
