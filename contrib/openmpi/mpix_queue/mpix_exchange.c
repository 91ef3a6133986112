/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_exchange.c - sends and receives st addresses over pml/ucx's worker.
 *
 * UCP's callbacks run whenever the PML's worker is progressed, also without the
 * lock: they only set a flag, which mpix_exchange_progress() looks at.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_exchange.h"
#include "mpix_capture.h"
#include "mpix_error.h"
#include "mpix_global.h"
#include "mpix_proto.h"

#include <ucs/datastruct/list.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* Messages that a call takes out: they may come faster than that */
#define MPIX_EXCHANGE_MAX_PROBES 64


/* What is in flight, sent or received. */
typedef struct mpix_exchange_msg {
    ucs_list_link_t list;
    void            *request; /* UCP's; NULL if it completed at once */
    int             done;     /* Release-stored by the callback, last; pairs
                                 with the acquire in mpix_exchange_is_done() */
    ucs_status_t    status;
} mpix_exchange_msg_t;


typedef struct mpix_exchange_out {
    mpix_exchange_msg_t  msg;
    mpix_proto_address_t header;
    uint8_t              address[];
} mpix_exchange_out_t;


struct mpix_exchange_in {
    mpix_exchange_msg_t  msg;
    uint64_t             tag;
    size_t               length; /* Of header and address */
    mpix_proto_address_t header;
    uint8_t              address[];
};


/* Protected by the lock. */
static struct {
    ucs_list_link_t out; /* mpix_exchange_out_t in flight */
    ucs_list_link_t in;  /* mpix_exchange_in_t not taken yet, oldest first */
} mpix_exchange = {
    .out = UCS_LIST_INITIALIZER(&mpix_exchange.out, &mpix_exchange.out),
    .in  = UCS_LIST_INITIALIZER(&mpix_exchange.in, &mpix_exchange.in)
};


static void mpix_exchange_done(mpix_exchange_msg_t *msg, ucs_status_t status)
{
    msg->status = status;
    __atomic_store_n(&msg->done, 1, __ATOMIC_RELEASE);
}

static int mpix_exchange_is_done(const mpix_exchange_msg_t *msg)
{
    return __atomic_load_n(&msg->done, __ATOMIC_ACQUIRE);
}

static void mpix_exchange_sent(void *request, ucs_status_t status,
                               void *user_data)
{
    mpix_exchange_done(user_data, status);
}

static void mpix_exchange_received(void *request, ucs_status_t status,
                                   const ucp_tag_recv_info_t *info,
                                   void *user_data)
{
    mpix_exchange_done(user_data, status);
}

/* Keeps what a UCP call returned. */
static ucs_status_t mpix_exchange_posted(mpix_exchange_msg_t *msg,
                                         ucs_status_ptr_t ptr)
{
    if (UCS_PTR_IS_PTR(ptr)) {
        msg->request = ptr;
        return UCS_OK;
    }

    mpix_exchange_done(msg, UCS_PTR_RAW_STATUS(ptr));
    return UCS_PTR_RAW_STATUS(ptr);
}

static void mpix_exchange_msg_release(mpix_exchange_msg_t *msg)
{
    if (msg->request != NULL) {
        ucp_request_free(msg->request);
        msg->request = NULL;
    }
}

/* Makes a message with room for addresses. */
static mpix_exchange_out_t *mpix_exchange_out_create(size_t length,
                                                     size_t pml_length)
{
    mpix_exchange_out_t *out = calloc(1, sizeof(*out) + length + pml_length);

    if (out != NULL) {
        out->header.magic      = MPIX_PROTO_MAGIC;
        out->header.version    = MPIX_PROTO_VERSION;
        out->header.world_rank = mpix_global_world_rank();
        out->header.length     = length;
        out->header.pml_length = pml_length;
    }
    return out;
}

/* Sends a message and owns it from now on. */
static ucs_status_t mpix_exchange_post(mpix_exchange_out_t *out, ucp_ep_h ep,
                                       uint64_t tag)
{
    const size_t length = sizeof(out->header) + out->header.length +
                          out->header.pml_length;
    ucp_request_param_t param;
    ucs_status_t status;

    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                         UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send      = mpix_exchange_sent;
    param.user_data    = &out->msg;

    status = mpix_exchange_posted(
            &out->msg, mpix_capture_real_send(ep, &out->header, length, tag,
                                              &param));
    if (status != UCS_OK) {
        free(out);
        return status;
    }

    ucs_list_add_tail(&mpix_exchange.out, &out->msg.list);
    return UCS_OK;
}

ucs_status_t mpix_exchange_send(ucp_ep_h ep, uint64_t tag, int dest_rank)
{
    mpix_exchange_out_t *out;

    out = mpix_exchange_out_create(mpix_global.address_length,
                                   mpix_global.pml_address_length);
    if (out == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    out->header.dest_rank = dest_rank;
    memcpy(out->address, mpix_global.address, mpix_global.address_length);
    memcpy(out->address + mpix_global.address_length, mpix_global.pml_address,
           mpix_global.pml_address_length);
    return mpix_exchange_post(out, ep, tag);
}

ucs_status_t mpix_exchange_refuse(const mpix_exchange_in_t *in)
{
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (const ucp_address_t*)(in->address + in->header.length)
    };
    mpix_exchange_out_t *out;
    ucs_status_t status;
    ucp_ep_h ep;

    /* It goes with the PML's worker, as MPI's own endpoints may: whatever UCP
     * joins it to at the other end is not disturbed by its end */
    status = ucp_ep_create(mpix_global.pml_worker, &params, &ep);
    if (status != UCS_OK) {
        return status;
    }

    out = mpix_exchange_out_create(0, 0);
    if (out == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    return mpix_exchange_post(out, ep,
                              mpix_proto_tag(in->header.dest_rank,
                                             in->tag & MPIX_TAG_FIELD_MASK));
}

/* Receives a message that is there. */
static void mpix_exchange_recv(ucp_tag_message_h message,
                               const ucp_tag_recv_info_t *info)
{
    const size_t length = ucs_max(info->length, sizeof(mpix_proto_address_t));
    ucp_request_param_t param;
    mpix_exchange_in_t *in;

    in = calloc(1, ucs_offsetof(mpix_exchange_in_t, header) + length);
    if (in == NULL) {
        mpix_warn("no memory for the address of a peer: its requests will not "
                  "be matched");
        return;
    }

    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                         UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.recv      = mpix_exchange_received;
    param.user_data    = &in->msg;
    in->tag            = info->sender_tag;
    in->length         = info->length;

    ucs_list_add_tail(&mpix_exchange.in, &in->msg.list);
    mpix_exchange_posted(&in->msg,
                         ucp_tag_msg_recv_nbx(mpix_global.pml_worker,
                                              &in->header, info->length,
                                              message, &param));
}

/* Frees the sends that are done. */
static unsigned mpix_exchange_collect(void)
{
    mpix_exchange_out_t *out, *tmp;
    unsigned count = 0;

    ucs_list_for_each_safe(out, tmp, &mpix_exchange.out, msg.list) {
        if (!mpix_exchange_is_done(&out->msg)) {
            continue;
        }

        if (out->msg.status != UCS_OK) {
            mpix_warn("the own address could not be sent to a peer: %s",
                      ucs_status_string(out->msg.status));
        }
        ucs_list_del(&out->msg.list);
        mpix_exchange_msg_release(&out->msg);
        free(out);
        ++count;
    }
    return count;
}

unsigned mpix_exchange_progress(void)
{
    unsigned count = 0;
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message;

    for (; count < MPIX_EXCHANGE_MAX_PROBES; ++count) {
        message = ucp_tag_probe_nb(mpix_global.pml_worker, MPIX_PROTO_TAG_VALUE,
                                   MPIX_PROTO_TAG_MASK, 1, &info);
        if (message == NULL) {
            break;
        }
        mpix_exchange_recv(message, &info);
    }

    return count + mpix_exchange_collect();
}

mpix_exchange_in_t *mpix_exchange_take_any(void)
{
    mpix_exchange_in_t *in;

    ucs_list_for_each(in, &mpix_exchange.in, msg.list) {
        if (mpix_exchange_is_done(&in->msg)) {
            ucs_list_del(&in->msg.list);
            return in;
        }
    }
    return NULL;
}

mpix_exchange_in_t *mpix_exchange_take(uint64_t tag, int world_rank)
{
    mpix_exchange_in_t *in;

    ucs_list_for_each(in, &mpix_exchange.in, msg.list) {
        if ((in->tag != tag) || !mpix_exchange_is_done(&in->msg)) {
            continue;
        }

        if ((in->header.magic == MPIX_PROTO_MAGIC) && (world_rank >= 0) &&
            (in->header.world_rank != world_rank)) {
            continue;
        }

        ucs_list_del(&in->msg.list);
        return in;
    }
    return NULL;
}

ucs_status_t mpix_exchange_in_address(const mpix_exchange_in_t *in,
                                      const void **address_p, size_t *length_p)
{
    if (in->msg.status != UCS_OK) {
        return in->msg.status;
    }

    if ((in->length < (2 * sizeof(uint32_t))) ||
        (in->header.magic != MPIX_PROTO_MAGIC)) {
        return UCS_ERR_INVALID_ADDR;
    }

    if (in->header.version != MPIX_PROTO_VERSION) {
        return UCS_ERR_UNSUPPORTED;
    }

    if ((in->length < sizeof(in->header)) ||
        (((uint64_t)in->header.length + in->header.pml_length) !=
         (in->length - sizeof(in->header)))) {
        return UCS_ERR_INVALID_ADDR;
    }

    if (in->header.length == 0) {
        return UCS_ERR_CANCELED;
    }

    *address_p = in->address;
    *length_p  = in->header.length;
    return UCS_OK;
}

void mpix_exchange_in_free(mpix_exchange_in_t *in)
{
    mpix_exchange_msg_release(&in->msg);
    free(in);
}

int mpix_exchange_drain(void)
{
    ucp_worker_progress(mpix_global.pml_worker);
    mpix_exchange_progress();
    return ucs_list_is_empty(&mpix_exchange.out);
}

void mpix_exchange_cleanup(void)
{
    mpix_exchange_in_t *in, *tmp;

    ucs_list_for_each_safe(in, tmp, &mpix_exchange.in, msg.list) {
        if (mpix_exchange_is_done(&in->msg)) {
            ucs_list_del(&in->msg.list);
            mpix_exchange_in_free(in);
        }
    }

    if (!ucs_list_is_empty(&mpix_exchange.out)) {
        mpix_warn("the own address did not get to all peers that want it");
    }
}
