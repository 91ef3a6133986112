/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_exchange.c - the messages that carry st addresses.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_exchange.h"
#include "mpix_binding.h"
#include "mpix_error.h"
#include "mpix_global.h"
#include "mpix_peer.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* Those not taken yet, oldest first. Protected by the lock. */
static UCS_LIST_HEAD(mpix_exchange_ins);


/* Makes a message with room for addresses. */
static mpix_exchange_out_t *mpix_exchange_out_create(const mpix_route_t *route,
                                                     size_t length,
                                                     size_t reply_length)
{
    mpix_exchange_out_t *out = calloc(1, sizeof(*out) + length + reply_length);

    if (out != NULL) {
        out->route               = *route;
        out->msg.mpi_request     = MPI_REQUEST_NULL;
        out->header.magic        = MPIX_PROTO_MAGIC;
        out->header.version      = MPIX_PROTO_VERSION;
        out->header.world_rank   = mpix_global_world_rank();
        out->header.length       = length;
        out->header.reply_length = reply_length;
    }
    return out;
}

size_t mpix_exchange_out_length(const mpix_exchange_out_t *out)
{
    return sizeof(out->header) + out->header.length + out->header.reply_length;
}

ucs_status_t mpix_exchange_send(const mpix_peer_t *peer,
                                const mpix_route_t *route)
{
    const size_t length       = mpix_global.address_length;
    const size_t reply_length = mpix_global.pml_address_length;
    mpix_exchange_out_t *out;

    out = mpix_exchange_out_create(route, length, reply_length);
    if (out == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    out->header.context     = peer->context;
    out->header.source_rank = peer->comm->rank;
    out->header.dest_rank   = peer->rank;
    memcpy(out->address, mpix_global.address, length);
    if (reply_length > 0) {
        memcpy(out->address + length, mpix_global.pml_address, reply_length);
    }
    return mpix_binding()->send(out);
}

ucs_status_t mpix_exchange_refuse(const mpix_exchange_in_t *in)
{
    mpix_exchange_out_t *out;
    mpix_route_t route;
    ucs_status_t status;

    status = mpix_binding()->resolve_reply(in, &route);
    if (status != UCS_OK) {
        return status;
    }

    out = mpix_exchange_out_create(&route, 0, 0);
    if (out == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    out->header.context     = in->header.context;
    out->header.source_rank = in->header.dest_rank;
    out->header.dest_rank   = in->header.source_rank;
    return mpix_binding()->send(out);
}

mpix_exchange_in_t *mpix_exchange_in_create(size_t length)
{
    const size_t kept = (length > MPIX_PROTO_MAX_LENGTH) ? 0 : length;
    const size_t room = ucs_max(kept, sizeof(mpix_proto_address_t));
    mpix_exchange_in_t *in;

    in = calloc(1, ucs_offsetof(mpix_exchange_in_t, header) + room);
    if (in == NULL) {
        mpix_warn("no memory for the address of a peer: its requests will not "
                  "be matched");
        return NULL;
    }

    in->msg.mpi_request = MPI_REQUEST_NULL;
    in->length          = kept;
    in->world_rank      = -1;
    in->rank            = -1;
    return in;
}

void mpix_exchange_arrived(mpix_exchange_in_t *in)
{
    ucs_list_add_tail(&mpix_exchange_ins, &in->msg.list);
}

static void mpix_exchange_msg_release(mpix_exchange_msg_t *msg)
{
    if (msg->ucp_request != NULL) {
        ucp_request_free(msg->ucp_request);
        msg->ucp_request = NULL;
    }
}

void mpix_exchange_out_free(mpix_exchange_out_t *out)
{
    if (out->msg.status != UCS_OK) {
        mpix_warn("the own address could not be sent to a peer: %s",
                  ucs_status_string(out->msg.status));
    }
    mpix_exchange_msg_release(&out->msg);
    free(out);
}

mpix_exchange_in_t *mpix_exchange_take_any(void)
{
    mpix_exchange_in_t *in;

    ucs_list_for_each(in, &mpix_exchange_ins, msg.list) {
        if (mpix_exchange_is_done(&in->msg)) {
            ucs_list_del(&in->msg.list);
            return in;
        }
    }
    return NULL;
}

/* The sender of a message that is done, or -1. */
static int mpix_exchange_world_rank(const mpix_exchange_in_t *in)
{
    if ((in->world_rank >= 0) || (mpix_exchange_check(in) != UCS_OK)) {
        return in->world_rank;
    }
    return in->header.world_rank;
}

mpix_exchange_in_t *mpix_exchange_take(int rank, uint64_t context,
                                       int world_rank)
{
    mpix_exchange_in_t *in;
    int sender;

    ucs_list_for_each(in, &mpix_exchange_ins, msg.list) {
        if (!mpix_exchange_is_done(&in->msg) ||
            ((in->rank >= 0) &&
             ((in->rank != rank) || (in->context != context)))) {
            continue;
        }

        sender = mpix_exchange_world_rank(in);
        if ((world_rank >= 0) && (sender >= 0) && (sender != world_rank)) {
            continue;
        }

        ucs_list_del(&in->msg.list);
        return in;
    }
    return NULL;
}

ucs_status_t mpix_exchange_check(const mpix_exchange_in_t *in)
{
    if ((in->length < (2 * sizeof(uint32_t))) ||
        (in->header.magic != MPIX_PROTO_MAGIC)) {
        return UCS_ERR_INVALID_ADDR;
    }

    if (in->header.version != MPIX_PROTO_VERSION) {
        return UCS_ERR_UNSUPPORTED;
    }

    if ((in->length < sizeof(in->header)) ||
        (((uint64_t)in->header.length + in->header.reply_length) !=
         (in->length - sizeof(in->header))) ||
        (in->header.source_rank < 0) || (in->header.dest_rank < 0)) {
        return UCS_ERR_INVALID_ADDR;
    }
    return UCS_OK;
}

ucs_status_t mpix_exchange_in_address(const mpix_exchange_in_t *in,
                                      const void **address_p, size_t *length_p)
{
    ucs_status_t status = in->msg.status;

    if (status == UCS_OK) {
        status = mpix_exchange_check(in);
    }
    if (status != UCS_OK) {
        /* Where requests are matched it is their data that is truncated */
        return (status == UCS_ERR_MESSAGE_TRUNCATED) ? UCS_ERR_INVALID_ADDR :
                                                       status;
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

void mpix_exchange_cleanup(void)
{
    mpix_exchange_in_t *in, *tmp;

    ucs_list_for_each_safe(in, tmp, &mpix_exchange_ins, msg.list) {
        if (mpix_exchange_is_done(&in->msg)) {
            ucs_list_del(&in->msg.list);
            mpix_exchange_in_free(in);
        }
    }
}
