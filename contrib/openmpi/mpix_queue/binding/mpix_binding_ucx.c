/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_binding_ucx.c - st addresses go over pml/ucx's worker and endpoints.
 *
 * A message has a tag like those of MPI: the sender's rank and the context of
 * the communicator, the top bit of the context set, and a constant in place of
 * the MPI tag.
 *
 * UCP's callbacks run whenever the PML's worker is progressed, also without the
 * lock: they only set a flag, which mpix_ucx_progress() looks at.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_binding.h"
#include "mpix_capture.h"
#include "mpix_error.h"
#include "mpix_global.h"
#include "mpix_peer.h"

#include <ucs_backoff.h>

#include <stdlib.h>

/* Messages that a call takes out: they may come faster than that */
#define MPIX_UCX_MAX_PROBES 64
#define MPIX_UCX_DRAIN_TIME 1.0 /* In seconds */

/* What all these messages' tags have in common, and where. */
#define MPIX_UCX_TAG 0x4d5158ull
#define MPIX_UCX_TAG_VALUE \
    ((MPIX_UCX_TAG << MPIX_TAG_SHIFT) | MPIX_TAG_CONTEXT_BIT)
#define MPIX_UCX_TAG_MASK \
    ((UINT64_MAX << MPIX_TAG_SHIFT) | MPIX_TAG_CONTEXT_BIT)

static const char mpix_ucx_unknown_layout[] =
        "the tags of this OpenMPI's pml/ucx are laid out in a way that is not "
        "known";

/* mpix_exchange_out_t in flight. Protected by the lock. */
static UCS_LIST_HEAD(mpix_ucx_outs);


/* Tag of the message that 'rank' of the communicator with 'context' sends. */
static uint64_t mpix_ucx_tag(int rank, uint64_t context)
{
    return MPIX_UCX_TAG_VALUE | ((uint64_t)rank << MPIX_TAG_RANK_SHIFT) |
           context;
}

static ucs_status_t mpix_ucx_open(const char **cause_p)
{
    ucp_worker_h worker;
    ucs_status_t status;
    MPI_Comm other;

    PMPI_Comm_dup(MPI_COMM_SELF, &other);
    PMPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    status = mpix_capture_check(mpix_global.self, other, &worker);
    PMPI_Comm_free(&other);
    if (status != UCS_OK) {
        *cause_p = (status == UCS_ERR_NO_ELEM) ?
                           "MPI does not run over pml/ucx, or libucp was "
                           "loaded before libmpix_queue: run with --mca pml "
                           "ucx --mca opal_common_ucx_tls any --mca "
                           "opal_common_ucx_devices any, and link "
                           "-lmpix_queue before any -lucp" :
                           mpix_ucx_unknown_layout;
        return UCS_ERR_UNSUPPORTED;
    }

    status = ucp_worker_get_address(worker, &mpix_global.pml_address,
                                    &mpix_global.pml_address_length);
    if (status != UCS_OK) {
        *cause_p = "the address of MPI's worker is not known";
        return status;
    }
    mpix_global_set_pml_worker(worker);
    return UCS_OK;
}

static int mpix_ucx_resolve(const char *func, mpix_peer_t *peer,
                            mpix_route_t *route)
{
    ucs_status_t status;

    status = mpix_capture_peer(peer->comm->handle, peer->rank, &route->ep,
                               &peer->context);
    if (status == UCS_ERR_UNSUPPORTED) {
        return mpix_fail(func, MPI_ERR_UNSUPPORTED_OPERATION, "%s",
                         mpix_ucx_unknown_layout);
    } else if (status != UCS_OK) {
        return mpix_fail(func, MPI_ERR_OTHER,
                         "MPI has no connection to rank %d", peer->rank);
    }

    if (peer->context >= MPIX_TAG_CONTEXT_BIT) {
        return mpix_fail(func, MPI_ERR_UNSUPPORTED_OPERATION,
                         "the communicator's context id is %llu, only ids "
                         "below %llu are supported",
                         (unsigned long long)peer->context,
                         (unsigned long long)MPIX_TAG_CONTEXT_BIT);
    }
    return MPI_SUCCESS;
}

static ucs_status_t mpix_ucx_resolve_reply(const mpix_exchange_in_t *in,
                                           mpix_route_t *route)
{
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (const ucp_address_t*)(in->address + in->header.length)
    };

    /* The answer's tag is made of the header, too */
    if ((in->header.reply_length == 0) ||
        (in->header.context != in->context) ||
        ((uint64_t)in->header.dest_rank > MPIX_TAG_FIELD_MASK)) {
        return UCS_ERR_INVALID_ADDR;
    }
    /* It goes with the PML's worker, as MPI's own endpoints may: whatever UCP
     * joins it to at the other end is not disturbed by its end */
    return ucp_ep_create(mpix_global.pml_worker, &params, &route->ep);
}

static void mpix_ucx_sent(void *request, ucs_status_t status, void *user_data)
{
    mpix_exchange_done(user_data, status);
}

static void mpix_ucx_received(void *request, ucs_status_t status,
                              const ucp_tag_recv_info_t *info, void *user_data)
{
    mpix_exchange_done(user_data, status);
}

/* Keeps what a UCP call returned. */
static ucs_status_t mpix_ucx_posted(mpix_exchange_msg_t *msg,
                                    ucs_status_ptr_t ptr)
{
    if (UCS_PTR_IS_PTR(ptr)) {
        msg->ucp_request = ptr;
        return UCS_OK;
    }

    mpix_exchange_done(msg, UCS_PTR_RAW_STATUS(ptr));
    return UCS_PTR_RAW_STATUS(ptr);
}

static ucs_status_t mpix_ucx_send(mpix_exchange_out_t *out)
{
    const uint64_t tag = mpix_ucx_tag(out->header.source_rank,
                                      out->header.context);
    ucp_request_param_t param;
    ucs_status_t status;

    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                         UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send      = mpix_ucx_sent;
    param.user_data    = &out->msg;

    status = mpix_ucx_posted(
            &out->msg, mpix_real.tag_send_nbx(out->route.ep, &out->header,
                                              mpix_exchange_out_length(out),
                                              tag, &param));
    if (status != UCS_OK) {
        free(out);
        return status;
    }

    ucs_list_add_tail(&mpix_ucx_outs, &out->msg.list);
    return UCS_OK;
}

/* Receives a message that is there. */
static void mpix_ucx_recv(ucp_tag_message_h message,
                          const ucp_tag_recv_info_t *info)
{
    ucp_request_param_t param;
    mpix_exchange_in_t *in;

    in = mpix_exchange_in_create(info->length);
    if (in == NULL) {
        return;
    }

    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                         UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.recv      = mpix_ucx_received;
    param.user_data    = &in->msg;
    in->rank           = (info->sender_tag >> MPIX_TAG_RANK_SHIFT) &
                         MPIX_TAG_FIELD_MASK;
    in->context        = info->sender_tag & (MPIX_TAG_CONTEXT_BIT - 1);

    mpix_exchange_arrived(in);
    mpix_ucx_posted(&in->msg,
                    ucp_tag_msg_recv_nbx(mpix_global.pml_worker, &in->header,
                                         in->length, message, &param));
}

/* Frees the sends that are done. */
static unsigned mpix_ucx_collect(void)
{
    mpix_exchange_out_t *out, *tmp;
    unsigned count = 0;

    ucs_list_for_each_safe(out, tmp, &mpix_ucx_outs, msg.list) {
        if (mpix_exchange_is_done(&out->msg)) {
            ucs_list_del(&out->msg.list);
            mpix_exchange_out_free(out);
            ++count;
        }
    }
    return count;
}

static unsigned mpix_ucx_progress(void)
{
    unsigned count = 0;
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message;

    for (; count < MPIX_UCX_MAX_PROBES; ++count) {
        message = ucp_tag_probe_nb(mpix_global.pml_worker, MPIX_UCX_TAG_VALUE,
                                   MPIX_UCX_TAG_MASK, 1, &info);
        if (message == NULL) {
            break;
        }
        mpix_ucx_recv(message, &info);
    }

    return count + mpix_ucx_collect();
}

/* Gives what was sent some time to get out. */
static void mpix_ucx_drain(void)
{
    const double end = mpix_now() + MPIX_UCX_DRAIN_TIME;
    unsigned spins   = 0;
    int is_done;

    for (;;) {
        mpix_lock();
        mpix_real.worker_progress(mpix_global.pml_worker);
        mpix_ucx_progress();
        is_done = ucs_list_is_empty(&mpix_ucx_outs);
        mpix_unlock();
        if (is_done || (mpix_now() >= end)) {
            return;
        }
        ucs_backoff(&spins);
    }
}

void mpix_binding_ucx_end(ucp_worker_h worker)
{
    if (!mpix_global_is_pml_worker(worker)) {
        return; /* Other workers end here too */
    }

    mpix_ucx_drain();

    mpix_lock();
    mpix_exchange_cleanup();
    if (!ucs_list_is_empty(&mpix_ucx_outs)) {
        mpix_warn("the own address did not get to all peers that want it");
    }
    ucp_worker_release_address(worker, mpix_global.pml_address);
    mpix_global_set_pml_worker(NULL);
    mpix_unlock();
}

const mpix_binding_t mpix_binding_ucx = {
    .name          = "ucx",
    .open          = mpix_ucx_open,
    .resolve       = mpix_ucx_resolve,
    .resolve_reply = mpix_ucx_resolve_reply,
    .send          = mpix_ucx_send,
    .progress      = mpix_ucx_progress
};
