/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_match.c - pairs persistent requests with their counterparts.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_match.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "mpix_joint.h"

#include <stdio.h>

/* Of this library's own messages, those of MPI have another tag */
#define MPIX_MATCH_TAG_NEVER 1

unsigned mpix_match_count;

/* Both protected by the lock, in the order of the application's calls. */
static UCS_LIST_HEAD(mpix_match_pending);
static UCS_LIST_HEAD(mpix_match_running);


static void mpix_match_enlist(mpix_req_t *req, mpix_req_state_t state,
                              ucs_list_link_t *list)
{
    mpix_request_set_state(req, state);
    ucs_list_add_tail(list, &req->list);
    __atomic_store_n(&mpix_match_count, mpix_match_count + 1,
                     __ATOMIC_RELAXED);
}

static void mpix_match_delist(mpix_req_t *req)
{
    mpix_waits_end(&req->waits);
    ucs_list_del(&req->list);
    __atomic_store_n(&mpix_match_count, mpix_match_count - 1,
                     __ATOMIC_RELAXED);
}

void mpix_match_push(mpix_req_t *req)
{
    if (req->kind == MPIX_REQ_EXCHANGE) {
        mpix_joint_push(req);
        return;
    }

    req->match_status = UCS_OK;
    mpix_match_enlist(req, MPIX_REQ_PENDING, &mpix_match_pending);
}

const char *mpix_match_cause(const mpix_req_t *req, char *buffer, size_t max)
{
    switch (req->match_status) {
    case UCS_ERR_CANCELED:
        return "the peer has entered MPI_Finalize, or has freed its half";
    case UCS_ERR_MESSAGE_TRUNCATED:
        if ((req->buffer == NULL) ||
            (req->buffer->actual <= req->buffer->length)) {
            return "the send is larger than the receive";
        }
        snprintf(buffer, max, "the send is larger: %zu bytes",
                 req->buffer->actual);
        return buffer;
    default:
        return ucs_status_string(req->match_status);
    }
}

/* Matching of a request, which is in no list any more, has failed. Where only
 * resources were short the request stays what it was. An exchange ends when the
 * matching of all its members has, and frees the operations. */
static void mpix_match_fail(mpix_req_t *req, ucs_status_t status)
{
    if (req->joint != NULL) {
        req->match_status = status;
        mpix_request_set_state(req, MPIX_REQ_FAILED);
        return;
    }
    if (req->op != NULL) {
        ucp_st_op_free(req->op);
        req->op = NULL;
    }

    req->match_status = status;
    mpix_request_set_state(req, (mpix_status_code(status) == MPI_ERR_NO_MEM) ?
                                        MPIX_REQ_IDLE :
                                        MPIX_REQ_FAILED);
}

static ucs_status_t mpix_match_make_op(mpix_req_t *req)
{
    const int is_send         = (req->kind == MPIX_REQ_SEND);
    mpix_buffer_t *buffer     = req->buffer;
    const int has_func        = (buffer->map != NULL) &&
                                (buffer->blocks.count == 0);
    ucs_status_t status       = mpix_buffer_stage(buffer);
    char name[MPIX_REQ_NAME_MAX];
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG |
                      UCP_ST_OP_PARAM_FIELD_SCOPE |
                      UCP_ST_OP_PARAM_FIELD_MODE | UCP_ST_OP_PARAM_FIELD_NAME,
        .buffer     = buffer->start,
        .length     = buffer->length,
        .peer       = (req->peer == NULL) ? UCP_ST_PEER_NULL :
                                            req->peer->st_peer,
        .tag        = (uint64_t)req->tag,
        .scope      = req->scope |
                      ((req->peer == NULL) ? 0 : req->peer->context),
        .mode       = req->mode,
        .name       = mpix_request_name(req, name, sizeof(name))
    };

    if (has_func) {
        params.field_mask  |= UCP_ST_OP_PARAM_FIELD_FUNC;
        params.func         = is_send ? mpix_buffer_pack : mpix_buffer_unpack;
        params.func_arg     = buffer;
        params.func_release = mpix_buffer_put;
    } else if (buffer->map != NULL) {
        params.field_mask |= UCP_ST_OP_PARAM_FIELD_BLOCKS;
        params.block       = buffer->blocks.block;
        params.stride      = (size_t)buffer->blocks.stride;
    }

    if (status == UCS_OK) {
        status = is_send ? ucp_st_send_init(mpix_global.st_worker, &params,
                                            &req->op) :
                           ucp_st_recv_init(mpix_global.st_worker, &params,
                                            &req->op);
    }
    if ((status == UCS_OK) && has_func) {
        __atomic_add_fetch(&buffer->refs, 1, __ATOMIC_RELAXED);
    }
    return status;
}

/* A member of an exchange that is matched once more has one. */
static ucs_status_t mpix_match_get_op(mpix_req_t *req)
{
    ucs_status_t status;

    if (req->op != NULL) {
        return UCS_OK;
    }

    status = mpix_match_make_op(req);
    if ((status != UCS_OK) || (req->joint == NULL)) {
        return status;
    }

    status = mpix_joint_add(req);
    if (status != UCS_OK) {
        (void)ucp_st_op_free(req->op);
        req->op = NULL;
    }
    return status;
}

/* Gives a request whose peer is known to the st worker. */
static void mpix_match_run(mpix_req_t *req)
{
    ucs_status_t status;

    status = mpix_match_get_op(req);
    if (status == UCS_OK) {
        status = ucp_st_imatchall(&req->op, 1);
    }

    if (status != UCS_OK) {
        mpix_match_fail(req, status);
        return;
    }
    mpix_match_enlist(req, MPIX_REQ_MATCHING, &mpix_match_running);
}

void mpix_match_drop(mpix_req_t *req)
{
    if ((req->state == MPIX_REQ_PENDING) || (req->state == MPIX_REQ_MATCHING)) {
        mpix_match_delist(req);
    }
}

static ucs_status_t mpix_match_peer_status(const mpix_req_t *req)
{
    return (req->peer == NULL) ? UCS_OK : req->peer->status;
}

/* The peer has not sent its address: it has given nothing of this process to
 * match. */
static void mpix_match_look_pending(mpix_req_t *req, double now)
{
    char name[MPIX_REQ_NAME_MAX];
    char text[MPIX_REQ_NAME_MAX + 280];

    if (!mpix_waits_is_due(&req->waits, now)) {
        return;
    }
    snprintf(text, sizeof(text), "%s; rank %d has announced nothing to this "
             "process: it has not come to its match, waits in an earlier one "
             "(give all requests to one MPIX_Matchall), matches with other "
             "ranks only (is the rank right?), or uses other calls of MPI",
             mpix_request_name(req, name, sizeof(name)), req->rank);
    mpix_waits_note(&req->waits, now, "matching", text);
}

/* Requests of one peer leave the list in its order: they wait for the same. */
static unsigned mpix_match_progress_pending(void)
{
    unsigned count = 0;
    double now     = 0;
    mpix_req_t *req, *tmp;
    ucs_status_t status;

    ucs_list_for_each_safe(req, tmp, &mpix_match_pending, list) {
        status = mpix_match_peer_status(req);
        if (status == UCS_INPROGRESS) {
            now = (now == 0) ? mpix_now() : now;
            mpix_match_look_pending(req, now);
            continue;
        }
        mpix_match_delist(req);
        if (status == UCS_OK) {
            mpix_match_run(req);
        } else {
            mpix_match_fail(req, status);
        }
        ++count;
    }
    return count;
}

static void mpix_match_end(mpix_req_t *req, ucs_status_t status)
{
    ucp_st_op_attr_t attr;
    ucs_status_t query;

    mpix_match_delist(req);
    if ((status == UCS_OK) || (status == UCS_ERR_MESSAGE_TRUNCATED)) {
        query               = ucp_st_op_query(req->op, &attr);
        status              = (query == UCS_OK) ? status : query;
        req->buffer->actual = (query == UCS_OK) ? attr.length : 0;
    }

    if (status != UCS_OK) {
        mpix_match_fail(req, status);
        return;
    }
    mpix_request_set_state(req, MPIX_REQ_MATCHED);
}

static unsigned mpix_match_progress_running(void)
{
    unsigned count = 0;
    mpix_req_t *req, *tmp;
    ucs_status_t status;

    ucs_list_for_each_safe(req, tmp, &mpix_match_running, list) {
        status = ucp_st_match_test(req->op);
        if (status != UCS_INPROGRESS) {
            mpix_match_end(req, status);
            ++count;
        }
    }
    return count;
}

unsigned mpix_match_progress(void)
{
    return mpix_peer_progress() + mpix_match_progress_pending() +
           ucp_st_worker_progress(mpix_global.st_worker) +
           mpix_match_progress_running() + mpix_joint_progress();
}

ucs_status_t mpix_match_cancel(mpix_req_t *req)
{
    ucs_status_t status;

    if (req->kind == MPIX_REQ_EXCHANGE) {
        return mpix_joint_cancel(req);
    } else if (req->joint != NULL) {
        return UCS_ERR_BUSY;
    }

    ++mpix_global.cancels;
    if (req->op != NULL) {
        status = ucp_st_op_free(req->op);
        if (status != UCS_OK) {
            return status;
        }
        req->op = NULL;
    }

    mpix_match_drop(req);
    mpix_request_set_state(req, MPIX_REQ_FAILED);
    return UCS_OK;
}

/* Counts the requests of one kind that would meet this one, a message to the
 * process itself. */
static int mpix_match_count_self(const ucs_list_link_t *list,
                                 const mpix_req_t *req, mpix_req_kind_t kind)
{
    int count = 0;
    const mpix_req_t *other;

    ucs_list_for_each(other, list, list) {
        count += (other->kind == kind) && (other->peer == req->peer) &&
                 (other->tag == req->tag) && (other->scope == req->scope);
    }
    return count;
}

/* The same for one that is not an exchange. */
static int mpix_match_lacks_own_half(const mpix_req_t *req)
{
    const mpix_req_kind_t counter = (req->kind == MPIX_REQ_SEND) ?
                                            MPIX_REQ_RECV :
                                            MPIX_REQ_SEND;

    if ((req->peer == NULL) || !req->peer->is_self) {
        return 0;
    }

    return (mpix_match_count_self(&mpix_match_pending, req, req->kind) +
            mpix_match_count_self(&mpix_match_running, req, req->kind)) >
           (mpix_match_count_self(&mpix_match_pending, req, counter) +
            mpix_match_count_self(&mpix_match_running, req, counter));
}

int mpix_match_lacks_half(const mpix_req_t *req)
{
    int lacks = 0;
    int i;

    if (req->kind != MPIX_REQ_EXCHANGE) {
        return mpix_match_lacks_own_half(req);
    }
    for (i = 0; (i < req->joint->count) && !lacks; ++i) {
        lacks = mpix_match_lacks_own_half(req->joint->members[i]);
    }
    return lacks;
}

void mpix_match_progress_mpi(void)
{
    int flag;

    /* Nobody sends such a message: the probe finds nothing, and progresses
     * everything of MPI */
    if (mpix_global.probed != MPI_COMM_NULL) {
        PMPI_Iprobe(0, MPIX_MATCH_TAG_NEVER, mpix_global.probed, &flag,
                    MPI_STATUS_IGNORE);
    }
}
