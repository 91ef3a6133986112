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
#include "binding/mpix_backoff.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_next.h"
#include "coll/mpix_coll.h"
#include "mpix_joint.h"
#include "mpix_match.h"

#include <ucs/datastruct/khash.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Looks at a collective that ends: some seconds at most */
#define MPIX_REQUEST_MAX_SPINS 10000

KHASH_MAP_INIT_INT64(mpix_req, mpix_req_t*)

/* Records by handle. Protected by the lock. */
static khash_t(mpix_req) mpix_reqs;

unsigned mpix_request_given;
unsigned mpix_request_filter[1 << MPIX_REQ_FILTER_BITS];


/* What MPI_*_init is given. */
typedef struct mpix_req_args {
    const char      *maker;
    mpix_req_kind_t kind;
    ucp_st_mode_t   mode;
    const void      *buffer;
    MPI_Count       count;
    MPI_Datatype    datatype;
    int             rank;
    int             tag;
    MPI_Comm        comm;
    mpix_coll_t     *coll;
    mpix_joint_t    *joint;
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

void mpix_request_count(MPI_Request handle, int change)
{
    __atomic_add_fetch(&mpix_request_given, change, __ATOMIC_RELAXED);
    __atomic_add_fetch(&mpix_request_filter[mpix_request_hash(handle)], change,
                       __ATOMIC_RELAXED);
}

int mpix_request_is_given(const mpix_req_t *req)
{
    return (req->state != MPIX_REQ_IDLE) || (req->joint != NULL) ||
           ((req->coll != NULL) && !req->coll->is_native);
}

/* What was changed may make a difference. */
static void mpix_request_recount(const mpix_req_t *req, int was_given)
{
    const int change = mpix_request_is_given(req) - was_given;

    if (change != 0) {
        mpix_request_count(req->handle, change);
    }
}

void mpix_request_set_state(mpix_req_t *req, mpix_req_state_t state)
{
    const int was_given = mpix_request_is_given(req);

    req->state = state;
    mpix_request_recount(req, was_given);
}

void mpix_request_set_joint(mpix_req_t *req, mpix_joint_t *joint)
{
    const int was_given = mpix_request_is_given(req);

    req->joint = joint;
    mpix_request_recount(req, was_given);
}

void mpix_request_fill_status(const mpix_req_t *req, int code,
                              MPI_Status *status)
{
    const int is_recv = (req->kind == MPIX_REQ_RECV) && (code == MPI_SUCCESS);

    status->MPI_SOURCE = is_recv ? req->rank : MPI_ANY_SOURCE;
    status->MPI_TAG    = (is_recv && (req->rank != MPI_PROC_NULL)) ?
                                 req->tag :
                                 MPI_ANY_TAG;
    PMPI_Status_set_elements_x(status, MPI_BYTE,
                               is_recv ? req->buffer->actual : 0);
    PMPI_Status_set_cancelled(status, 0);
}

void mpix_request_empty_status(MPI_Status *status, int code)
{
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG    = MPI_ANY_TAG;
    status->MPI_ERROR  = code;
    PMPI_Status_set_elements_x(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
}

const char *mpix_request_str(const mpix_req_t *req, char *buffer, size_t max)
{
    const int is_send = (req->kind == MPIX_REQ_SEND);
    char name[MPI_MAX_OBJECT_NAME] = "predefined";
    char bytes[MPI_MAX_OBJECT_NAME + 48] = "";
    int length;
    char rank[16]     = "any";
    char tag[16]      = "any";

    if ((req->kind != MPIX_REQ_SEND) && (req->kind != MPIX_REQ_RECV)) {
        snprintf(buffer, max, "request of %s", req->maker);
        return buffer;
    } else if (req->rank == MPI_PROC_NULL) {
        snprintf(buffer, max, "%s MPI_PROC_NULL",
                 is_send ? "send to" : "receive from");
        return buffer;
    }

    if (req->buffer != NULL) {
        if (req->type == NULL) {
            PMPI_Type_get_name(req->datatype, name, &length);
        }
        snprintf(bytes, sizeof(bytes), " of %zu bytes (%s)",
                 req->buffer->length, (req->type == NULL) ? name : req->type);
    }
    if (req->rank != MPI_ANY_SOURCE) {
        snprintf(rank, sizeof(rank), "%d", req->rank);
    }
    if (req->tag != MPI_ANY_TAG) {
        snprintf(tag, sizeof(tag), "%d", req->tag);
    }
    snprintf(buffer, max, "%s%s %s rank %s, tag %s",
             is_send ? "send" : "receive", bytes, is_send ? "to" : "from", rank,
             tag);
    return buffer;
}

const char *mpix_request_name(const mpix_req_t *req, char *buffer, size_t max)
{
    char str[MPIX_REQ_STR_MAX];
    char world[48] = "";

    if ((req->peer != NULL) && (req->peer->world_rank >= 0) &&
        (req->peer->world_rank != req->rank)) {
        snprintf(world, sizeof(world), " (rank %d of MPI_COMM_WORLD)",
                 req->peer->world_rank);
    }
    snprintf(buffer, max, "%s%s%s",
             (req->scope & MPIX_REQ_SCOPE_COLL) ? "a collective's " : "",
             mpix_request_str(req, str, sizeof(str)), world);
    return buffer;
}

int mpix_request_fail(const mpix_where_t *where, int code, const char *fmt, ...)
{
    char str[MPIX_REQ_STR_MAX], text[256], index[32] = "the request";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    if (where->count != 1) {
        snprintf(index, sizeof(index), "requests[%d]", where->index);
    }
    if (where->req == NULL) {
        return mpix_fail(where->func, code, "%s %s", index, text);
    }
    return mpix_fail(where->func, code, "%s, a %s, %s", index,
                     mpix_request_str(where->req, str, sizeof(str)), text);
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

/* Needs the lock. */
static void mpix_request_destroy(mpix_req_t *req)
{
    mpix_request_set_state(req, MPIX_REQ_IDLE);
    if (mpix_request_is_given(req)) {
        mpix_request_count(req->handle, -1);
    }
    if (req->buffer != NULL) {
        mpix_buffer_put(req->buffer);
    }
    mpix_comm_put(req->comm);
    free(req);
}

/* Ends what a request has. A collective that has run everything may need a
 * moment to say so, for which the lock is given up. Needs the lock. */
static ucs_status_t mpix_request_cancel(mpix_req_t *req)
{
    unsigned spins = 0;
    ucs_status_t status;

    while (((status = mpix_match_cancel(req)) == UCS_INPROGRESS) &&
           (spins < MPIX_REQUEST_MAX_SPINS)) {
        mpix_unlock();
        mpix_backoff(&spins);
        mpix_lock();
    }
    return status;
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

    if ((old != NULL) && (old->joint != NULL)) {
        if (mpix_joint_forget(old) == UCS_OK) {
            mpix_request_destroy(old);
        } /* Else its exchange needs it */
    } else if (old != NULL) {
        if (mpix_request_cancel(old) == UCS_OK) {
            coll = old->coll;
        }
        if (old->coll == coll) {
            mpix_request_destroy(old);
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

    req->handle      = handle;
    req->maker       = args->maker;
    req->kind        = args->kind;
    req->mode        = args->mode;
    req->rank        = args->rank;
    req->tag         = args->tag;
    req->type        = mpix_typemap_kind(args->datatype);
    req->datatype    = args->datatype;
    req->is_in_place = (args->buffer == MPI_IN_PLACE);
    req->coll        = args->coll;
    req->joint       = args->joint;

    rc = mpix_comm_get(args->comm, &req->comm);
    if (rc != MPI_SUCCESS) {
        free(req);
        return rc;
    }

    mpix_lock();
    if (mpix_request_is_given(req)) {
        mpix_request_count(req->handle, 1);
    }
    mpix_unlock();

    /* The application may free the datatype. One that is not known is of no
     * matter unless the request is to be matched. */
    if ((req->kind == MPIX_REQ_SEND) || (req->kind == MPIX_REQ_RECV)) {
        rc = mpix_buffer_create(args->buffer, args->count, args->datatype,
                                &req->buffer);
    }
    if (rc != MPI_ERR_NO_MEM) {
        if (args->coll != NULL) {
            args->coll->req = req;
        }
        if (args->joint != NULL) {
            args->joint->req = req;
        }
        rc = mpix_request_insert(req);
    }
    if (rc != MPI_SUCCESS) {
        mpix_lock();
        mpix_request_destroy(req);
        mpix_unlock();
    }
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
        rc = mpix_fail(args->maker, rc,
                       "no memory for a record of the request");
        return mpix_raise(args->comm, rc);
    }
    return MPI_SUCCESS;
}

/* A function that makes requests. */
#define MPIX_REQUEST_MAKER(_name, _buffer_t, _count_t, _kind, _mode) \
    int MPI_##_name(_buffer_t buf, _count_t count, MPI_Datatype datatype, \
                    int rank, int tag, MPI_Comm comm, MPI_Request *request) \
    { \
        const mpix_req_args_t args = { \
            "MPI_" #_name, _kind, _mode, buf, count, datatype, rank, tag, \
            comm, NULL, NULL \
        }; \
        int rc = MPIX_NEXT(_name)(buf, count, datatype, rank, tag, comm, \
                                  request); \
        \
        return mpix_request_made(&args, rc, request); \
    }

MPIX_REQUEST_MAKER(Send_init, const void*, int, MPIX_REQ_SEND,
                   UCP_ST_MODE_STANDARD)
MPIX_REQUEST_MAKER(Rsend_init, const void*, int, MPIX_REQ_SEND,
                   UCP_ST_MODE_READY)
MPIX_REQUEST_MAKER(Ssend_init, const void*, int, MPIX_REQ_OTHER,
                   UCP_ST_MODE_STANDARD)
MPIX_REQUEST_MAKER(Bsend_init, const void*, int, MPIX_REQ_OTHER,
                   UCP_ST_MODE_STANDARD)
MPIX_REQUEST_MAKER(Recv_init, void*, int, MPIX_REQ_RECV, UCP_ST_MODE_STANDARD)

#if MPI_VERSION >= 4
MPIX_REQUEST_MAKER(Send_init_c, const void*, MPI_Count, MPIX_REQ_SEND,
                   UCP_ST_MODE_STANDARD)
MPIX_REQUEST_MAKER(Rsend_init_c, const void*, MPI_Count, MPIX_REQ_SEND,
                   UCP_ST_MODE_READY)
MPIX_REQUEST_MAKER(Ssend_init_c, const void*, MPI_Count, MPIX_REQ_OTHER,
                   UCP_ST_MODE_STANDARD)
MPIX_REQUEST_MAKER(Bsend_init_c, const void*, MPI_Count, MPIX_REQ_OTHER,
                   UCP_ST_MODE_STANDARD)
MPIX_REQUEST_MAKER(Recv_init_c, void*, MPI_Count, MPIX_REQ_RECV,
                   UCP_ST_MODE_STANDARD)
#endif

int mpix_request_made_coll(mpix_coll_t *coll, MPI_Comm comm, MPI_Request handle)
{
    const mpix_req_args_t args = {
        coll->func, MPIX_REQ_COLL, UCP_ST_MODE_STANDARD, NULL, 0, MPI_BYTE,
        MPI_PROC_NULL, 0, comm, coll, NULL
    };
    int rc = mpix_request_record(&args, handle);

    return (rc == MPI_SUCCESS) ?
                   rc :
                   mpix_raise(comm, mpix_fail(coll->func, rc, "no memory for a "
                                              "record of the request"));
}

int mpix_request_made_joint(mpix_joint_t *joint, const char *maker,
                            MPI_Comm comm, MPI_Request handle)
{
    const mpix_req_args_t args = {
        maker, MPIX_REQ_EXCHANGE, UCP_ST_MODE_STANDARD, NULL, 0, MPI_BYTE,
        MPI_PROC_NULL, 0, comm, NULL, joint
    };
    int rc = mpix_request_record(&args, handle);

    return (rc == MPI_SUCCESS) ?
                   rc :
                   mpix_fail(maker, rc, "no memory for a record of the "
                             "request");
}

/* Drops the record of a request that is about to be freed. MPI_ERR_PENDING,
 * with no effect, if its operation is in use. */
static int mpix_request_drop(MPI_Request handle, MPI_Comm *comm_p)
{
    mpix_where_t where = {"MPI_Request_free", 1};
    mpix_coll_t *coll  = NULL;
    int rc             = MPI_SUCCESS;
    mpix_joint_t *joint;
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

    kh_del(mpix_req, &mpix_reqs,
           kh_get(mpix_req, &mpix_reqs, mpix_request_key(handle)));
    coll  = req->coll;
    joint = req->joint;
    mpix_request_destroy(req);
    mpix_joint_free(joint);

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
    return MPIX_NEXT(Request_free)(request);
}

void mpix_request_cleanup(void)
{
    unsigned busy = 0;
    mpix_joint_t *joint;
    mpix_req_t *req;

    kh_foreach_value(&mpix_reqs, req, {
        if ((req->kind == MPIX_REQ_EXCHANGE) &&
            (mpix_match_cancel(req) == UCS_OK)) {
            joint = req->joint;
            mpix_request_set_joint(req, NULL);
            mpix_joint_free(joint);
            req->kind = MPIX_REQ_OTHER;
        } /* Else its members are found to be busy */
    })
    kh_foreach_value(&mpix_reqs, req, {
        if (mpix_match_cancel(req) != UCS_OK) {
            ++busy;
            continue;
        }
        mpix_request_destroy(req);
    })
    kh_clear(mpix_req, &mpix_reqs);

    if (busy > 0) {
        mpix_warn("%u requests are in use on queues at MPI_Finalize", busy);
    }
}
