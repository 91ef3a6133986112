/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_target.c - one-sided operations on lane host: the target's side. All
 * of it is in the service thread.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "ctrl/st_ctrl.h"
#include "ctrl/st_leave.h"
#include "core/st_log.h"
#include "rma/st_rma.h"
#include "rma/st_rma_host.h"

#include <stdlib.h>
#include <string.h>

/** A request that is carried out. */
typedef struct ucp_st_rma_job {
    ucp_st_worker_h      worker;
    ucp_ep_h             ep;      /* to the origin; valid in UCP's callbacks */
    ucp_st_rma_request_t request;
    ucp_st_rma_reply_t   reply;
    ucp_st_memh_t        *mem;    /* held; or NULL */
    ucp_st_memh_t        *signal; /* the same */
} ucp_st_rma_job_t;

/* UCP is done with the reply */
static void ucp_st_rma_job_end(ucp_st_rma_job_t *job)
{
    if (job->mem != NULL) {
        ucp_st_rma_release(&job->mem->refs);
    }
    if (job->signal != NULL) {
        ucp_st_rma_release(&job->signal->refs);
    }
    free(job);
}

static void ucp_st_rma_job_replied_cb(void *request, ucs_status_t status,
                                      void *arg)
{
    (void)status; /* an origin that is gone is found so by others */
    ucp_st_rma_job_end(arg);
    ucp_request_free(request);
}

/* Tell the origin how it ended, with the data of a get */
static void ucp_st_rma_job_reply(ucp_st_rma_job_t *job, ucs_status_t status)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = ucp_st_rma_job_replied_cb,
        .user_data    = job
    };
    size_t length             = 0;
    void *data                = NULL;
    ucs_status_ptr_t request;

    if ((job->request.type == UCP_ST_RMA_GET) && (status == UCS_OK)) {
        data   = job->mem->address + job->request.offset;
        length = job->request.length;
    }
    job->reply = (ucp_st_rma_reply_t){
        .src    = job->worker->uuid,
        .dst    = job->request.src,
        .id     = job->request.id,
        .status = status
    };
    request = ucp_am_send_nbx(job->ep, UCP_ST_SVC_AM_RMA_REPLY, &job->reply,
                              sizeof(job->reply), data, length, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_rma_job_end(job);
    }
}

/* The data is in place */
static void ucp_st_rma_job_moved(ucp_st_rma_job_t *job, ucs_status_t status)
{
    const ucp_st_rma_request_t *request = &job->request;

    if ((status == UCS_OK) && (job->signal != NULL)) {
        ucp_st_rma_signal((uint64_t*)(job->signal->address +
                                      request->signal_offset),
                          (ucp_st_signal_op_t)request->signal_op,
                          request->signal_value);
        ucp_st_rma_signaled(job->worker);
    }
    ucp_st_rma_job_reply(job, status);
}

/* UCP has moved a put's data, or failed to because the origin is gone, which
 * then needs no answer */
static void ucp_st_rma_job_moved_cb(void *request, ucs_status_t status,
                                    size_t length, void *arg)
{
    (void)length;
    if (status == UCS_OK) {
        ucp_st_rma_job_moved(arg, UCS_OK);
    } else {
        ucp_st_rma_job_end(arg);
    }
    ucp_request_free(request);
}

/* What the request names; the lock is held */
static ucs_status_t ucp_st_rma_job_get_mem(ucp_st_rma_job_t *job)
{
    const ucp_st_rma_request_t *request = &job->request;
    ucp_st_worker_h worker              = job->worker;
    uintptr_t word;

    if (request->length > 0) {
        job->mem = ucp_st_rma_mem_get(worker, request->mem_id, request->offset,
                                      request->length);
        if (job->mem == NULL) {
            return UCS_ERR_INVALID_ADDR;
        }
    }
    if (request->has_signal) {
        job->signal = ucp_st_rma_mem_get(worker, request->signal_mem_id,
                                         request->signal_offset,
                                         sizeof(uint64_t));
        if (job->signal == NULL) {
            return UCS_ERR_INVALID_ADDR;
        }
        word = (uintptr_t)job->signal->address + request->signal_offset;
        return ((word % sizeof(uint64_t)) == 0) ? UCS_OK : UCS_ERR_INVALID_ADDR;
    }
    return UCS_OK;
}

/* Non-zero if the request is for this worker, and makes sense. The lock is
 * held. */
static int ucp_st_rma_job_is_good(const ucp_st_rma_job_t *job, size_t length)
{
    const ucp_st_rma_request_t *request = &job->request;
    int is_put                          = (request->type == UCP_ST_RMA_PUT);

    if (!ucp_st_svc(job->worker)->is_served ||
        (request->dst != job->worker->uuid)) {
        return 0; /* to somebody's former life */
    }
    if ((request->type > UCP_ST_RMA_GET) ||
        (request->signal_op > UCP_ST_SIGNAL_ADD) ||
        (length != (is_put ? request->length : 0))) {
        ucs_error("dropped a one-sided operation of peer 0x%lx that makes no "
                  "sense", request->src);
        return 0;
    }
    return 1;
}

/* Carry a good request out: UCS_INPROGRESS if UCP's data is used later */
static ucs_status_t ucp_st_rma_job_run(ucp_st_rma_job_t *job, void *data,
                                       int is_rndv)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am   = ucp_st_rma_job_moved_cb,
        .user_data    = job
    };
    uint64_t length           = job->request.length;
    uint8_t *place;
    ucs_status_ptr_t request;

    if ((job->request.type == UCP_ST_RMA_GET) || (length == 0)) {
        ucp_st_rma_job_moved(job, UCS_OK);
        return UCS_OK;
    }
    place = job->mem->address + job->request.offset;
    if (!is_rndv) {
        memcpy(place, data, length);
        ucp_st_rma_job_moved(job, UCS_OK);
        return UCS_OK;
    }
    request = ucp_am_recv_data_nbx(ucp_st_svc(job->worker)->ucp_worker, data,
                                   place, length, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_rma_job_moved(job, UCS_PTR_STATUS(request));
    }
    return UCS_INPROGRESS;
}

/* Without memory no answer is possible: the origin is told that it is gone. The
 * lock is not held. */
static void ucp_st_rma_host_no_memory(ucp_st_worker_h worker,
                                      const ucp_st_rma_request_t *request)
{
    ucp_st_peer_t *peer;

    ucs_error("no memory for a one-sided operation of peer 0x%lx",
              request->src);
    ucp_st_worker_lock(worker);
    peer = ucp_st_svc(worker)->is_served ?
           ucp_st_peer_find(worker, request->src) : NULL;
    if (peer != NULL) {
        ucp_st_leave_lost(peer, UCS_ERR_NO_MEMORY);
    }
    ucp_st_worker_unlock(worker);
}

ucs_status_t
ucp_st_rma_request_am_handler(void *arg, const void *header,
                              size_t header_length, void *data, size_t length,
                              const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;
    int is_rndv            = !!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    ucp_st_rma_job_t *job;
    ucs_status_t status;
    int is_good;

    if ((header_length != sizeof(job->request)) ||
        !(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) {
        ucs_error("dropped a one-sided operation with a header of %zu bytes",
                  header_length);
        return UCS_OK;
    }
    job = calloc(1, sizeof(*job));
    if (job == NULL) {
        ucp_st_rma_host_no_memory(worker, header);
        return UCS_OK;
    }
    job->worker = worker;
    job->ep     = param->reply_ep;
    memcpy(&job->request, header, sizeof(job->request));
    ucp_st_worker_lock(worker);
    is_good = ucp_st_rma_job_is_good(job, length);
    status  = is_good ? ucp_st_rma_job_get_mem(job) : UCS_OK;
    ucp_st_worker_unlock(worker);
    if (!is_good) {
        free(job);
        return UCS_OK;
    }
    if (status != UCS_OK) {
        ucs_error("a one-sided operation of peer 0x%lx names memory that is "
                  "not registered (any more)", job->request.src);
        ucp_st_rma_job_reply(job, status);
        return UCS_OK;
    }
    return ucp_st_rma_job_run(job, data, is_rndv);
}
