/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_request_free.c - how persistent requests go.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_request_free.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_next.h"
#include "coll/mpix_coll.h"
#include "mpix_matchall.h"
#include "request/mpix_joint.h"

#include <ucs_backoff.h>

/* Looks at a collective that ends: some seconds at most */
#define MPIX_REQUEST_MAX_SPINS 20000


/* Ends what a request has. A collective that has run everything may need a
 * moment to say so, for which the lock is given up. Needs the lock. */
static ucs_status_t mpix_request_cancel(mpix_req_t *req)
{
    unsigned spins = 0;
    ucs_status_t status;

    while (((status = mpix_coll_cancel(req)) == UCS_INPROGRESS) &&
           (spins < MPIX_REQUEST_MAX_SPINS)) {
        mpix_unlock();
        ucs_backoff(&spins);
        mpix_lock();
    }
    return status;
}

void mpix_request_lost(mpix_req_t *req)
{
    mpix_coll_t *coll = NULL;

    if (req->joint != NULL) {
        if (mpix_joint_forget(req) == UCS_OK) {
            mpix_request_destroy(req);
        } /* Else its exchange needs it */
        return;
    }

    if (mpix_request_cancel(req) == UCS_OK) {
        coll = req->coll;
    }
    if (req->coll != coll) {
        return; /* A collective that is in use needs it */
    }
    mpix_request_destroy(req);
    mpix_unlock();
    mpix_coll_destroy(coll);
    mpix_lock();
}

/* Drops the record of a request that is about to be freed. MPI_ERR_PENDING,
 * with no effect, if its operation is in use. */
static int mpix_request_drop(MPI_Request handle, MPI_Comm *comm_p)
{
    mpix_where_t where = {"MPI_Request_free", 1};
    mpix_coll_t *coll  = NULL;
    int rc             = MPI_SUCCESS;
    mpix_req_t *req;

    *comm_p = MPI_COMM_NULL;

    mpix_lock();
    req = mpix_request_find(handle);
    if (req == NULL) {
        goto out;
    }

    *comm_p   = req->comm->handle;
    where.req = req;
    if (mpix_joint_is_member(req)) {
        rc = mpix_joint_refuse(&where);
        goto out;
    }
    if (mpix_request_cancel(req) != UCS_OK) {
        rc        = mpix_request_fail(&where, MPI_ERR_PENDING,
                                      "is started, and its wait has not "
                                      "passed (MPIX_Queue_wait first)");
        goto out;
    }

    coll = req->coll;
    mpix_request_remove(req);

out:
    mpix_unlock();
    mpix_coll_destroy(coll);
    return rc;
}

int MPI_Request_free(MPI_Request *request)
{
    MPI_Comm comm;
    int rc;

    if (request != NULL) {
        rc = mpix_request_drop(*request, &comm);
        if (rc != MPI_SUCCESS) {
            return mpix_raise(comm, rc);
        }
        mpix_match_request_release(*request);
    }
    return MPIX_NEXT(Request_free)(request);
}
