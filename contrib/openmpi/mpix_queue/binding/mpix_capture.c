/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_capture.c - endpoints, worker and tags that pml/ucx uses.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_capture.h"

#include <ucs/sys/compiler_def.h>

#include <dlfcn.h>
#include <stddef.h>

/* A receive with this tag is never matched: MPI has neither such a rank nor
 * such a context. */
#define MPIX_CAPTURE_TAG_NEVER UINT64_MAX

/* Any tag that an application may use will do; bits far apart. */
#define MPIX_CAPTURE_PROBE_TAG 0x5a5a5


mpix_real_t mpix_real;

/* What a thread captures. */
typedef struct mpix_capture {
    const void   *buffer;  /* Only a call with this buffer is captured */
    int          done;
    ucp_ep_h     ep;       /* Of a send */
    ucp_worker_h worker;   /* Of a receive */
    ucp_tag_t    tag;
} mpix_capture_t;

/* Set while the thread captures. Initial-exec: a plain load on MPI's path. */
static __thread mpix_capture_t *mpix_capture
        __attribute__((tls_model("initial-exec")));


static void __attribute__((constructor)) mpix_capture_load(void)
{
    mpix_real.tag_send_nb       = dlsym(RTLD_NEXT, "ucp_tag_send_nb");
    mpix_real.tag_send_nbx      = dlsym(RTLD_NEXT, "ucp_tag_send_nbx");
    mpix_real.tag_send_sync_nb  = dlsym(RTLD_NEXT, "ucp_tag_send_sync_nb");
    mpix_real.tag_send_sync_nbx = dlsym(RTLD_NEXT, "ucp_tag_send_sync_nbx");
    mpix_real.tag_recv_nb       = dlsym(RTLD_NEXT, "ucp_tag_recv_nb");
    mpix_real.tag_recv_nbx      = dlsym(RTLD_NEXT, "ucp_tag_recv_nbx");
    mpix_real.worker_progress   = dlsym(RTLD_NEXT, "ucp_worker_progress");
    mpix_real.worker_destroy    = dlsym(RTLD_NEXT, "ucp_worker_destroy");
}

/* Ends the capture if the call is the expected one. */
static int mpix_capture_take(const void *buffer, ucp_ep_h ep,
                             ucp_worker_h worker, ucp_tag_t tag)
{
    mpix_capture_t *capture = mpix_capture;

    if (buffer != capture->buffer) {
        return 0;
    }

    capture->done   = 1;
    capture->ep     = ep;
    capture->worker = worker;
    capture->tag    = tag;
    mpix_capture    = NULL;
    return 1;
}

static inline int mpix_capture_send(ucp_ep_h ep, const void *buffer,
                                    ucp_tag_t tag)
{
    return ucs_unlikely(mpix_capture != NULL) &&
           mpix_capture_take(buffer, ep, NULL, tag);
}

static inline int mpix_capture_recv(ucp_worker_h worker, const void *buffer,
                                    ucp_tag_t tag)
{
    return ucs_unlikely(mpix_capture != NULL) &&
           mpix_capture_take(buffer, NULL, worker, tag);
}

ucs_status_ptr_t ucp_tag_send_nb(ucp_ep_h ep, const void *buffer, size_t count,
                                 ucp_datatype_t datatype, ucp_tag_t tag,
                                 ucp_send_callback_t cb)
{
    if (mpix_capture_send(ep, buffer, tag)) {
        return NULL;
    }
    return mpix_real.tag_send_nb(ep, buffer, count, datatype, tag, cb);
}

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                                  ucp_tag_t tag,
                                  const ucp_request_param_t *param)
{
    if (mpix_capture_send(ep, buffer, tag)) {
        return NULL;
    }
    return mpix_real.tag_send_nbx(ep, buffer, count, tag, param);
}

ucs_status_ptr_t ucp_tag_send_sync_nb(ucp_ep_h ep, const void *buffer,
                                      size_t count, ucp_datatype_t datatype,
                                      ucp_tag_t tag, ucp_send_callback_t cb)
{
    if (mpix_capture_send(ep, buffer, tag)) {
        return NULL;
    }
    return mpix_real.tag_send_sync_nb(ep, buffer, count, datatype, tag, cb);
}

ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buffer,
                                       size_t count, ucp_tag_t tag,
                                       const ucp_request_param_t *param)
{
    if (mpix_capture_send(ep, buffer, tag)) {
        return NULL;
    }
    return mpix_real.tag_send_sync_nbx(ep, buffer, count, tag, param);
}

/* The PML needs a request to return: one of a receive that never matches, which
 * the capturing function cancels. */
ucs_status_ptr_t ucp_tag_recv_nb(ucp_worker_h worker, void *buffer,
                                 size_t count, ucp_datatype_t datatype,
                                 ucp_tag_t tag, ucp_tag_t tag_mask,
                                 ucp_tag_recv_callback_t cb)
{
    if (mpix_capture_recv(worker, buffer, tag)) {
        return mpix_real.tag_recv_nb(worker, buffer, 0, datatype,
                                     MPIX_CAPTURE_TAG_NEVER, UINT64_MAX, cb);
    }
    return mpix_real.tag_recv_nb(worker, buffer, count, datatype, tag, tag_mask,
                                 cb);
}

ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer,
                                  size_t count, ucp_tag_t tag,
                                  ucp_tag_t tag_mask,
                                  const ucp_request_param_t *param)
{
    if (mpix_capture_recv(worker, buffer, tag)) {
        return mpix_real.tag_recv_nbx(worker, buffer, 0, MPIX_CAPTURE_TAG_NEVER,
                                      UINT64_MAX, param);
    }
    return mpix_real.tag_recv_nbx(worker, buffer, count, tag, tag_mask, param);
}

static int mpix_capture_irecv(MPI_Comm comm, mpix_capture_t *capture)
{
    char byte = 0;
    MPI_Request request;
    int rc;

    *capture     = (mpix_capture_t){.buffer = &byte};
    mpix_capture = capture;
    rc           = PMPI_Irecv(&byte, 0, MPI_BYTE, 0, 0, comm, &request);
    mpix_capture = NULL;
    if (rc != MPI_SUCCESS) {
        return 0;
    }

    PMPI_Cancel(&request);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    return capture->done;
}

static int mpix_capture_isend(MPI_Comm comm, int rank, int tag,
                              mpix_capture_t *capture)
{
    char byte = 0;
    MPI_Request request;
    int rc;

    *capture     = (mpix_capture_t){.buffer = &byte};
    mpix_capture = capture;
    rc           = PMPI_Isend(&byte, 0, MPI_BYTE, rank, tag, comm, &request);
    mpix_capture = NULL;
    if (rc != MPI_SUCCESS) {
        return 0;
    }

    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    return capture->done;
}

/* The own rank is 0 in both communicators, so that only tag and context show;
 * where the rank is, is checked with each peer. */
static int mpix_capture_layout_is_known(MPI_Comm self, MPI_Comm other)
{
    mpix_capture_t base, tagged, moved;

    if (!mpix_capture_isend(self, 0, 0, &base) ||
        !mpix_capture_isend(self, 0, MPIX_CAPTURE_PROBE_TAG, &tagged) ||
        !mpix_capture_isend(other, 0, 0, &moved)) {
        return 0;
    }

    return (base.tag <= MPIX_TAG_FIELD_MASK) &&
           (moved.tag <= MPIX_TAG_FIELD_MASK) && (moved.tag != base.tag) &&
           (tagged.tag == (base.tag | ((uint64_t)MPIX_CAPTURE_PROBE_TAG
                                       << MPIX_TAG_SHIFT)));
}

ucs_status_t mpix_capture_check(MPI_Comm self, MPI_Comm other,
                                ucp_worker_h *worker_p)
{
    mpix_capture_t capture;

    if (!mpix_capture_irecv(self, &capture)) {
        return UCS_ERR_NO_ELEM;
    }

    if (!mpix_capture_layout_is_known(self, other)) {
        return UCS_ERR_UNSUPPORTED;
    }

    *worker_p = capture.worker;
    return UCS_OK;
}

ucs_status_t mpix_capture_peer(MPI_Comm comm, int rank, ucp_ep_h *ep_p,
                               uint64_t *context_p)
{
    mpix_capture_t capture;
    int own_rank;

    PMPI_Comm_rank(comm, &own_rank);
    if (!mpix_capture_isend(comm, rank, 0, &capture)) {
        return UCS_ERR_UNREACHABLE;
    }

    if ((capture.tag >> MPIX_TAG_RANK_SHIFT) != (uint64_t)own_rank) {
        return UCS_ERR_UNSUPPORTED;
    }

    *ep_p      = capture.ep;
    *context_p = capture.tag & MPIX_TAG_FIELD_MASK;
    return UCS_OK;
}
