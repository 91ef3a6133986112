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
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_next.h"
#include "binding/mpix_upcalls.h"
#include "mpix_joint.h"
#include "mpix_match.h"

#include <ucs/datastruct/khash.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

KHASH_MAP_INIT_INT64(mpix_req, mpix_req_t*)

/* Records by handle. Protected by the lock. */
static khash_t(mpix_req) mpix_reqs;

unsigned mpix_request_given;
unsigned mpix_request_filter[1 << MPIX_REQ_FILTER_BITS];


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
           req->is_stand_in;
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
        snprintf(bytes, sizeof(bytes), " of %zu bytes (%.31s)",
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
             (req->scope & MPIX_COMM_SCOPE_COLL) ? "a collective's " : "",
             mpix_request_str(req, str, sizeof(str)), world);
    return buffer;
}

const char *mpix_request_cause(ucs_status_t status)
{
    return (status == UCS_ERR_CANCELED) ?
                   "the peer has freed its half, has ended or had an error "
                   "before it started this use" :
                   ucs_status_string(status);
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

void mpix_request_destroy(mpix_req_t *req)
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

/* Puts a record into the table, in place of one whose request was freed behind
 * this library's back. */
static int mpix_request_insert(mpix_req_t *req)
{
    mpix_req_t *old = NULL;
    khiter_t iter;
    int ret;

    mpix_lock();
    iter = kh_put(mpix_req, &mpix_reqs, mpix_request_key(req->handle), &ret);
    if (ret >= 0) {
        old                      = ret ? NULL : kh_val(&mpix_reqs, iter);
        kh_val(&mpix_reqs, iter) = req;
    }

    if (old != NULL) {
        mpix_upcalls.request_lost(old);
    }
    mpix_unlock();
    return (ret >= 0) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int mpix_request_make(const mpix_req_args_t *args, MPI_Request handle)
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
    req->is_stand_in = args->is_stand_in;
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
        if (args->req_p != NULL) {
            *args->req_p = req;
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

int mpix_request_record(const mpix_req_args_t *args, MPI_Request handle)
{
    int rc = mpix_request_make(args, handle);

    return (rc == MPI_SUCCESS) ?
                   rc :
                   mpix_fail(args->maker, rc, "no memory for a record of the "
                             "request");
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
            .maker = "MPI_" #_name, .kind = _kind, .mode = _mode, \
            .buffer = buf, .count = count, .datatype = datatype, \
            .rank = rank, .tag = tag, .comm = comm \
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

void mpix_request_remove(mpix_req_t *req)
{
    mpix_joint_t *joint = (req->kind == MPIX_REQ_EXCHANGE) ? req->joint : NULL;

    kh_del(mpix_req, &mpix_reqs,
           kh_get(mpix_req, &mpix_reqs, mpix_request_key(req->handle)));
    mpix_request_destroy(req);
    mpix_joint_free(joint);
}

void mpix_request_free(MPI_Request *request)
{
    mpix_req_t *req;

    mpix_lock();
    req = mpix_request_find(*request);
    if (req != NULL) {
        mpix_request_remove(req);
    }
    mpix_unlock();
    MPIX_NEXT(Request_free)(request);
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
