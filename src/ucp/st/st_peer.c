/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_peer.c - remote workers and the addresses they are made from.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_peer.h"
#include "st_ctrl.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_worker.h"

#include <stdlib.h>
#include <string.h>

/** What an address holds, as pointers into it. */
typedef struct ucp_st_address {
    uint64_t   uuid;
    const void *ucp_addr;
    const void *dev_addr;
    const void *iface_addr;
} ucp_st_address_t;

ucs_status_t ucp_st_worker_get_address(ucp_st_worker_h worker,
                                       void **address_p, size_t *length_p)
{
    ucp_st_address_hdr_t *hdr;
    ucp_address_t *ucp_addr;
    size_t ucp_length, dev_length, iface_length, length;
    ucs_status_t status;
    uint8_t *p;

    if ((worker == NULL) || (address_p == NULL) || (length_p == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    status = ucp_worker_get_address(worker->ucp_worker, &ucp_addr, &ucp_length);
    if (status != UCS_OK) {
        return status;
    }

    dev_length   = worker->trig.iface_attr.device_addr_len;
    iface_length = worker->trig.iface_attr.iface_addr_len;
    length       = sizeof(*hdr) + ucp_length + dev_length + iface_length;
    hdr          = calloc(1, length);
    if (hdr == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto out;
    }
    hdr->magic        = UCP_ST_ADDRESS_MAGIC;
    hdr->version      = UCP_ST_PROTO_VERSION;
    hdr->ucp_length   = ucp_length;
    hdr->dev_length   = dev_length;
    hdr->iface_length = iface_length;
    hdr->uuid         = worker->uuid;
    p                 = (uint8_t*)(hdr + 1);
    memcpy(p, ucp_addr, ucp_length);
    p     += ucp_length;
    status = ucp_st_trig_dev_address(worker, p, p + dev_length);
    if (status != UCS_OK) {
        free(hdr);
        goto out;
    }
    *address_p = hdr;
    *length_p  = length;

out:
    ucp_worker_release_address(worker->ucp_worker, ucp_addr);
    return status;
}

void ucp_st_worker_release_address(ucp_st_worker_h worker, void *address)
{
    (void)worker;
    free(address);
}

static ucs_status_t ucp_st_address_parse(ucp_st_worker_h worker,
                                         const void *buffer, size_t length,
                                         ucp_st_address_t *address)
{
    const uct_iface_attr_t *attr = &worker->trig.iface_attr;
    ucp_st_address_hdr_t hdr;
    const uint8_t *p = buffer;

    if (length < sizeof(hdr)) {
        ucs_error("worker address of %zu bytes is truncated", length);
        return UCS_ERR_INVALID_ADDR;
    }
    memcpy(&hdr, buffer, sizeof(hdr));
    if (hdr.magic != UCP_ST_ADDRESS_MAGIC) {
        ucs_error("not an address of an st worker");
        return UCS_ERR_INVALID_ADDR;
    }
    if (hdr.version != UCP_ST_PROTO_VERSION) {
        ucs_error("the peer speaks version %d of the st protocol, this library "
                  "version %d", hdr.version, UCP_ST_PROTO_VERSION);
        return UCS_ERR_UNSUPPORTED;
    }
    if (length < (sizeof(hdr) + (size_t)hdr.ucp_length + hdr.dev_length +
                  hdr.iface_length)) {
        ucs_error("worker address of %zu bytes is truncated", length);
        return UCS_ERR_INVALID_ADDR;
    }
    if ((hdr.dev_length != attr->device_addr_len) ||
        (hdr.iface_length != attr->iface_addr_len)) {
        ucs_error("the peer's trig lane uses another provider");
        return UCS_ERR_UNREACHABLE;
    }

    address->uuid       = hdr.uuid;
    address->ucp_addr   = p + sizeof(hdr);
    address->dev_addr   = p + sizeof(hdr) + hdr.ucp_length;
    address->iface_addr = (const uint8_t*)address->dev_addr + hdr.dev_length;
    return UCS_OK;
}

ucp_st_peer_t *ucp_st_peer_get(ucp_st_worker_h worker, uint64_t uuid)
{
    ucp_st_msg_op_t msg = {.op_id = 0};
    ucp_st_peer_t *peer;

    ucs_list_for_each(peer, &worker->peers, list) {
        if (peer->uuid == uuid) {
            return peer;
        }
    }

    peer = calloc(1, sizeof(*peer));
    if (peer == NULL) {
        return NULL;
    }
    peer->worker  = worker;
    peer->uuid    = uuid;
    peer->is_self = (uuid == worker->uuid);
    peer->status  = UCS_OK;
    peer->lost    = UCS_OK;
    ucs_list_head_init(&peer->unmatched);
    ucs_list_head_init(&peer->remote_ops);
    ucs_list_add_tail(&worker->peers, &peer->list);
    if (worker->leaving) {
        ucp_st_ctrl_post(peer, UCP_ST_MSG_LEAVE, &msg);
    }
    return peer;
}

void ucp_st_peer_check_nic(ucp_st_peer_t *peer)
{
    if (peer->trig_ep != NULL) {
        /* An error is told by the endpoint's error handler */
        (void)uct_ep_check(peer->trig_ep, 0, NULL);
    }
}

void ucp_st_peer_fail(ucp_st_peer_t *peer, ucs_status_t status)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_op_t *op, *tmp;

    if (peer->status != UCS_OK) {
        return;
    }
    ucs_diag("peer 0x%lx is gone: %s", peer->uuid, ucs_status_string(status));
    peer->status         = status;
    worker->going_peers -= peer->going;
    ucs_list_for_each_safe(op, tmp, &worker->ops, list) {
        if ((op->peer == peer) && (op->state != UCP_ST_OP_INIT)) {
            ucp_st_op_fail(op, status);
        }
    }
    ucs_list_for_each_safe(op, tmp, &worker->zombies, list) {
        if (op->peer == peer) {
            ucp_st_op_peer_done(op);
        }
    }
    /* Some NICs drop what they cannot deliver without a word until then */
    ucp_st_peer_check_nic(peer);
}

/* UCP's error callback: the control endpoint is dead */
static void ucp_st_peer_err_handler(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ucp_st_peer_t *peer    = arg;
    ucp_st_worker_h worker = peer->worker;

    (void)ep;
    ucp_st_worker_lock(worker);
    ucp_st_leave_lost(peer, status);
    ucp_st_worker_unlock(worker);
}

static ucs_status_t ucp_st_peer_ucp_connect(ucp_st_peer_t *peer,
                                            const ucp_st_address_t *address,
                                            ucp_ep_h *ep_p)
{
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address         = address->ucp_addr,
        .err_mode        = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = ucp_st_peer_err_handler,
        .err_handler.arg = peer
    };

    *ep_p = NULL;
    if (peer->is_self) {
        return UCS_OK;
    }
    return ucp_ep_create(peer->worker->ucp_worker, &params, ep_p);
}

static void ucp_st_ep_close(ucp_worker_h ucp_worker, ucp_ep_h ep)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_EP_CLOSE_FLAG_FORCE
    };
    ucs_status_ptr_t request;

    if (ep == NULL) {
        return;
    }
    request = ucp_ep_close_nbx(ep, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        return;
    }
    /* A forced close waits for nothing remote */
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(ucp_worker);
    }
    ucp_request_free(request);
}

static ucs_status_t ucp_st_peer_connect(ucp_st_peer_t *peer,
                                        const ucp_st_address_t *address)
{
    ucp_st_worker_h worker = peer->worker;
    ucs_status_t status;
    uct_ep_h trig_ep;
    ucp_ep_h ucp_ep;

    status = ucp_st_peer_ucp_connect(peer, address, &ucp_ep);
    if (status != UCS_OK) {
        ucs_error("failed to connect to peer 0x%lx: %s", peer->uuid,
                  ucs_status_string(status));
        return status;
    }

    ucp_st_worker_lock(worker);
    status = ucp_st_trig_dev_connect(worker, address->dev_addr,
                                     address->iface_addr, &trig_ep);
    if (status == UCS_OK) {
        peer->ucp_ep  = ucp_ep;
        peer->trig_ep = trig_ep;
    }
    ucp_st_worker_unlock(worker);
    if (status != UCS_OK) {
        ucs_error("lane 'trig' on device %s does not reach peer 0x%lx: %s",
                  worker->trig.attr.device, peer->uuid,
                  ucs_status_string(status));
        ucp_st_ep_close(worker->ucp_worker, ucp_ep);
    }
    return status;
}

ucs_status_t ucp_st_peer_create(ucp_st_worker_h worker, const void *address,
                                size_t length, ucp_st_peer_h *peer_p)
{
    ucp_st_address_t parsed;
    ucp_st_peer_t *peer;
    ucs_status_t status;

    if ((worker == NULL) || (address == NULL) || (peer_p == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    status = ucp_st_address_parse(worker, address, length, &parsed);
    if (status != UCS_OK) {
        return status;
    }

    ucp_st_worker_lock(worker);
    peer = ucp_st_peer_get(worker, parsed.uuid);
    ucp_st_worker_unlock(worker);
    if (peer == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    if (peer->trig_ep == NULL) {
        status = ucp_st_peer_connect(peer, &parsed);
        if (status != UCS_OK) {
            return status;
        }
    }
    *peer_p = peer;
    return UCS_OK;
}

void ucp_st_peer_destroy(ucp_st_peer_h peer)
{
    /* It stays until the worker goes: a peer is often made again, and its
     * operations and messages may still come */
    (void)peer;
}

void ucp_st_peers_cleanup(ucp_st_worker_h worker)
{
    ucp_st_remote_op_t *remote, *tmp_remote;
    ucp_st_peer_t *peer, *tmp;
    int trig_busy;

    ucp_st_worker_lock(worker);
    trig_busy = ucp_st_trig_dev_is_busy(worker);
    ucp_st_worker_unlock(worker);
    ucs_list_for_each_safe(peer, tmp, &worker->peers, list) {
        ucp_st_ep_close(worker->ucp_worker, peer->ucp_ep);
        if ((peer->trig_ep != NULL) && !trig_busy) {
            uct_ep_destroy(peer->trig_ep);
        }
        ucs_list_for_each_safe(remote, tmp_remote, &peer->remote_ops, list) {
            free(remote);
        }
        ucs_list_del(&peer->list);
        free(peer);
    }
}
