/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_request.c - persistent requests and their st operations.
 *
 * MPI does not tell what a request was made of, so that the functions that make
 * persistent requests are wrapped and leave a record.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_request.h"
#include "mpix_coll.h"
#include "mpix_datatype.h"
#include "mpix_error.h"
#include "mpix_global.h"
#include "mpix_match.h"

#include <ucs/datastruct/khash.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

KHASH_MAP_INIT_INT64(mpix_req, mpix_req_t*)

/* Records by handle. Protected by the lock. */
static khash_t(mpix_req) mpix_reqs;


/* What MPI_*_init is given. */
typedef struct mpix_req_args {
    const char      *maker;
    mpix_req_kind_t kind;
    ucp_st_mode_t   mode;
    const void      *buffer;
    int             count;
    MPI_Datatype    datatype;
    int             rank;
    int             tag;
    MPI_Comm        comm;
    mpix_coll_t     *coll;
} mpix_req_args_t;


/* A number of its own for each handle. Requests lie at equal distances, which
 * khash's own function makes long chains of. */
static khint64_t mpix_request_key(MPI_Request handle)
{
    uint64_t key = (uintptr_t)handle * 0x9e3779b97f4a7c15ull;

    return key ^ (key >> 32);
}

mpix_req_t *mpix_request_find(MPI_Request handle)
{
    khiter_t iter = kh_get(mpix_req, &mpix_reqs, mpix_request_key(handle));

    return (iter == kh_end(&mpix_reqs)) ? NULL : kh_val(&mpix_reqs, iter);
}

mpix_req_t *mpix_request_find_op(ucp_st_op_h op)
{
    mpix_req_t *req;

    kh_foreach_value(&mpix_reqs, req, {
        if ((req->op == op) && (op != NULL)) {
            return req;
        }
    })
    return NULL;
}

const char *mpix_request_str(const mpix_req_t *req, char *buffer, size_t max)
{
    if ((req->kind == MPIX_REQ_OTHER) || (req->kind == MPIX_REQ_COLL)) {
        snprintf(buffer, max, "request of %s", req->maker);
    } else if (req->rank == MPI_PROC_NULL) {
        snprintf(buffer, max, "%s MPI_PROC_NULL",
                 (req->kind == MPIX_REQ_SEND) ? "send to" : "receive from");
    } else {
        snprintf(buffer, max, "%s of %zu bytes %s rank %d, tag %d",
                 (req->kind == MPIX_REQ_SEND) ? "send" : "receive", req->length,
                 (req->kind == MPIX_REQ_SEND) ? "to" : "from", req->rank,
                 req->tag);
    }
    return buffer;
}

MPI_Comm mpix_request_comm(int count, const MPI_Request *requests)
{
    MPI_Comm comm = MPI_COMM_NULL;
    mpix_req_t *req;
    int i;

    if (requests == NULL) {
        return comm;
    }

    mpix_lock();
    for (i = 0; (i < count) && (comm == MPI_COMM_NULL); ++i) {
        req = mpix_request_find(requests[i]);
        if (req != NULL) {
            comm = req->comm->handle;
        }
    }
    mpix_unlock();
    return comm;
}

void mpix_request_resolve_peers(mpix_comm_t *comm)
{
    mpix_req_t *req;

    if (mpix_global.state != MPIX_STATE_READY) {
        return;
    }

    kh_foreach_value(&mpix_reqs, req, {
        if ((req->comm == comm) && (req->kind != MPIX_REQ_OTHER) &&
            (req->peer == NULL) && (req->rank >= 0)) {
            mpix_peer_get("MPI_Comm_free", comm, req->rank, &req->peer);
        }
    })
}

/* Puts a record into the table, in place of one whose request was freed behind
 * this library's back. */
static int mpix_request_insert(mpix_req_t *req)
{
    mpix_coll_t *coll = NULL;
    mpix_req_t *old   = NULL;
    khiter_t iter;
    int ret;

    mpix_lock();
    iter = kh_put(mpix_req, &mpix_reqs, mpix_request_key(req->handle), &ret);
    if (ret >= 0) {
        old                      = ret ? NULL : kh_val(&mpix_reqs, iter);
        kh_val(&mpix_reqs, iter) = req;
    }

    if (old != NULL) {
        if (mpix_match_cancel(old) == UCS_OK) {
            coll = old->coll;
        }
        mpix_comm_put(old->comm);
        if (old->coll == coll) {
            free(old);
        } /* Else a collective that is in use needs it */
    }
    mpix_unlock();
    mpix_coll_destroy(coll);
    return (ret >= 0) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Leaves a record of a request that MPI has made. */
static int mpix_request_record(const mpix_req_args_t *args, MPI_Request handle)
{
    mpix_req_t *req;
    int rc;

    req = calloc(1, sizeof(*req));
    if (req == NULL) {
        return MPI_ERR_NO_MEM;
    }

    req->handle    = handle;
    req->maker     = args->maker;
    req->kind      = args->kind;
    req->mode      = args->mode;
    req->rank      = args->rank;
    req->tag       = args->tag;
    req->coll      = args->coll;
    req->is_contig = mpix_datatype_is_contig(args->buffer, args->count,
                                             args->datatype, &req->buffer,
                                             &req->length);

    rc = mpix_comm_get(args->comm, &req->comm);
    if (rc != MPI_SUCCESS) {
        goto err_free;
    }

    if (args->coll != NULL) {
        args->coll->req = req;
    }
    rc = mpix_request_insert(req);
    if (rc != MPI_SUCCESS) {
        goto err_put_comm;
    }
    return MPI_SUCCESS;

err_put_comm:
    mpix_lock();
    mpix_comm_put(req->comm);
    mpix_unlock();
err_free:
    free(req);
    return rc;
}

/* The common end of the functions that make requests: 'rc' is what MPI said. */
static int mpix_request_made(const mpix_req_args_t *args, int rc,
                             MPI_Request *request)
{
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_request_record(args, *request);
    if (rc != MPI_SUCCESS) {
        PMPI_Request_free(request);
        mpix_fail(args->maker, rc, "no memory for a record of the request");
        return mpix_raise(args->comm, rc);
    }
    return MPI_SUCCESS;
}

int MPI_Send_init(const void *buf, int count, MPI_Datatype datatype, int dest,
                  int tag, MPI_Comm comm, MPI_Request *request)
{
    mpix_req_args_t args = {
        "MPI_Send_init", MPIX_REQ_SEND, UCP_ST_MODE_STANDARD, buf, count,
        datatype, dest, tag, comm, NULL
    };

    return mpix_request_made(&args, PMPI_Send_init(buf, count, datatype, dest,
                                                   tag, comm, request),
                             request);
}

int MPI_Rsend_init(const void *buf, int count, MPI_Datatype datatype, int dest,
                   int tag, MPI_Comm comm, MPI_Request *request)
{
    mpix_req_args_t args = {
        "MPI_Rsend_init", MPIX_REQ_SEND, UCP_ST_MODE_READY, buf, count,
        datatype, dest, tag, comm, NULL
    };

    return mpix_request_made(&args, PMPI_Rsend_init(buf, count, datatype, dest,
                                                    tag, comm, request),
                             request);
}

int MPI_Recv_init(void *buf, int count, MPI_Datatype datatype, int source,
                  int tag, MPI_Comm comm, MPI_Request *request)
{
    mpix_req_args_t args = {
        "MPI_Recv_init", MPIX_REQ_RECV, UCP_ST_MODE_STANDARD, buf, count,
        datatype, source, tag, comm, NULL
    };

    return mpix_request_made(&args, PMPI_Recv_init(buf, count, datatype, source,
                                                   tag, comm, request),
                             request);
}

int MPI_Ssend_init(const void *buf, int count, MPI_Datatype datatype, int dest,
                   int tag, MPI_Comm comm, MPI_Request *request)
{
    mpix_req_args_t args = {
        "MPI_Ssend_init", MPIX_REQ_OTHER, UCP_ST_MODE_STANDARD, buf, count,
        datatype, dest, tag, comm, NULL
    };

    return mpix_request_made(&args, PMPI_Ssend_init(buf, count, datatype, dest,
                                                    tag, comm, request),
                             request);
}

int MPI_Bsend_init(const void *buf, int count, MPI_Datatype datatype, int dest,
                   int tag, MPI_Comm comm, MPI_Request *request)
{
    mpix_req_args_t args = {
        "MPI_Bsend_init", MPIX_REQ_OTHER, UCP_ST_MODE_STANDARD, buf, count,
        datatype, dest, tag, comm, NULL
    };

    return mpix_request_made(&args, PMPI_Bsend_init(buf, count, datatype, dest,
                                                    tag, comm, request),
                             request);
}

int mpix_request_made_coll(mpix_coll_t *coll, MPI_Comm comm, MPI_Request handle)
{
    const mpix_req_args_t args = {
        coll->func, MPIX_REQ_COLL, UCP_ST_MODE_STANDARD, NULL, 0, MPI_BYTE,
        MPI_PROC_NULL, 0, comm, coll
    };
    int rc = mpix_request_record(&args, handle);

    return (rc == MPI_SUCCESS) ?
                   rc :
                   mpix_raise(comm, mpix_fail(coll->func, rc, "no memory for a "
                                              "record of the request"));
}

/* Drops the record of a request that is about to be freed. MPI_ERR_PENDING,
 * with no effect, if its operation is in use. */
static int mpix_request_drop(MPI_Request handle, MPI_Comm *comm_p)
{
    mpix_coll_t *coll = NULL;
    int rc            = MPI_SUCCESS;
    char str[MPIX_REQ_STR_MAX];
    mpix_req_t *req;

    *comm_p = MPI_COMM_NULL;

    mpix_lock();
    req = mpix_request_find(handle);
    if (req == NULL) {
        goto out;
    }

    *comm_p = req->comm->handle;
    if (mpix_match_cancel(req) == UCS_ERR_BUSY) {
        rc = mpix_fail("MPI_Request_free", MPI_ERR_PENDING,
                       "%s is started on a queue, and its wait has not passed",
                       mpix_request_str(req, str, sizeof(str)));
        goto out;
    }

    kh_del(mpix_req, &mpix_reqs,
           kh_get(mpix_req, &mpix_reqs, mpix_request_key(handle)));
    mpix_comm_put(req->comm);
    coll = req->coll;
    free(req);

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
    }
    return PMPI_Request_free(request);
}

/* Refuses requests that are started on queues only. */
static int mpix_request_check_start(const char *func, int count,
                                    const MPI_Request *requests)
{
    int rc = MPI_SUCCESS;
    char str[MPIX_REQ_STR_MAX];
    mpix_req_t *req;
    int i;

    mpix_lock();
    for (i = 0; (i < count) && (rc == MPI_SUCCESS); ++i) {
        req = mpix_request_find(requests[i]);
        if ((req != NULL) && mpix_coll_is_queue_only(req)) {
            rc = mpix_fail(func, MPI_ERR_REQUEST,
                           "the MPI library has no persistent collectives: %s "
                           "can be started on a queue only",
                           mpix_request_str(req, str, sizeof(str)));
        } else if ((req != NULL) && (req->state != MPIX_REQ_IDLE)) {
            rc = mpix_fail(func, MPI_ERR_REQUEST,
                           "%s was given to match: it can be started on a "
                           "queue only",
                           mpix_request_str(req, str, sizeof(str)));
        }
    }
    mpix_unlock();
    return rc;
}

int MPI_Start(MPI_Request *request)
{
    int rc = (request == NULL) ?
                     MPI_SUCCESS :
                     mpix_request_check_start("MPI_Start", 1, request);

    if (rc != MPI_SUCCESS) {
        return mpix_raise(mpix_request_comm(1, request), rc);
    }
    return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[])
{
    int rc = (requests == NULL) ?
                     MPI_SUCCESS :
                     mpix_request_check_start("MPI_Startall", count, requests);

    if (rc != MPI_SUCCESS) {
        return mpix_raise(mpix_request_comm(count, requests), rc);
    }
    return PMPI_Startall(count, requests);
}

void mpix_request_cleanup(void)
{
    unsigned busy = 0;
    mpix_req_t *req;

    kh_foreach_value(&mpix_reqs, req, {
        if (mpix_match_cancel(req) == UCS_ERR_BUSY) {
            ++busy;
            continue;
        }
        mpix_comm_put(req->comm);
        free(req);
    })
    kh_clear(mpix_req, &mpix_reqs);

    if (busy > 0) {
        mpix_warn("%u requests are in use on queues at MPI_Finalize", busy);
    }
}
