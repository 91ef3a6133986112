/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_peer.c - remote workers and the addresses they are made from.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_peer.h"
#include "core/st_exchange.h"
#include "core/st_key.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_ucp.h"
#include "core/st_watch.h"
#include "ctrl/st_ctrl.h"

#include <ucs_backoff.h>

#include <ucs/sys/math.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The service thread's part is the first one */
static ucs_status_t ucp_st_address_lanes_pack(ucp_st_worker_h worker,
                                              ucp_st_address_lane_t *head)
{
    ucs_status_t status = UCS_OK;
    unsigned i;

    head->lane   = UCP_ST_PROTO_SERVICE;
    head->length = ucp_st_net(worker)->address_length;
    memcpy(head + 1, ucp_st_net(worker)->address, head->length);
    for (i = 0; (i < worker->num_lanes) && (status == UCS_OK); ++i) {
        head         = UCS_PTR_BYTE_OFFSET(head + 1, head->length);
        head->lane   = worker->lanes[i]->id;
        head->length = worker->lanes[i]->worker.address_length(worker);
        status       = worker->lanes[i]->worker.address_pack(worker, head + 1);
    }
    return status;
}

ucs_status_t ucp_st_worker_get_address(ucp_st_worker_h worker,
                                       void **address_p, size_t *length_p)
{
    ucp_st_address_hdr_t *hdr;
    ucp_address_t *ucp_addr;
    size_t ucp_length, net_length, length;
    ucs_status_t status;
    unsigned i;

    status = ucp_st_check_call((worker != NULL) && (address_p != NULL) &&
                               (length_p != NULL));
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_worker_get_address(worker->ucp_worker, &ucp_addr, &ucp_length);
    if (status != UCS_OK) {
        return status;
    }

    net_length = ucp_st_net(worker)->address_length;
    if ((ucp_length > UINT16_MAX) || (net_length > UINT16_MAX)) {
        ucs_error("UCP's addresses of %zu and %zu bytes are too long for that "
                  "of an st worker: leave UCX fewer devices (UCX_NET_DEVICES) "
                  "or transports (UCX_TLS)", ucp_length, net_length);
        status = UCS_ERR_EXCEEDS_LIMIT;
        goto out;
    }
    length = sizeof(*hdr) + ucp_length + sizeof(ucp_st_address_lane_t) +
             net_length;
    for (i = 0; i < worker->num_lanes; ++i) {
        length += sizeof(ucp_st_address_lane_t) +
                  worker->lanes[i]->worker.address_length(worker);
    }
    hdr = calloc(1, length);
    if (hdr == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto out;
    }
    hdr->magic      = UCP_ST_ADDRESS_MAGIC;
    hdr->version    = UCP_ST_PROTO_VERSION;
    hdr->ucp_length = ucp_length;
    hdr->num_lanes  = worker->num_lanes + 1;
    hdr->uuid       = worker->uuid;
    hdr->place      = worker->place;
    memcpy(hdr + 1, ucp_addr, ucp_length);
    status = ucp_st_address_lanes_pack(worker, UCS_PTR_BYTE_OFFSET(hdr + 1,
                                                                   ucp_length));
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
    free(address);
}

const ucp_st_address_lane_t *
ucp_st_address_next_lane(const uint8_t **p, const uint8_t *end)
{
    const ucp_st_address_lane_t *head = (const ucp_st_address_lane_t*)*p;

    if (((size_t)(end - *p) < sizeof(*head)) ||
        ((size_t)(end - *p) < (sizeof(*head) + head->length))) {
        return NULL;
    }
    *p += sizeof(*head) + head->length;
    return head;
}

static const uint8_t *
ucp_st_address_first_lane(const ucp_st_address_hdr_t *address)
{
    return (const uint8_t*)(address + 1) + address->ucp_length;
}

static ucs_status_t ucp_st_address_check(const ucp_st_address_hdr_t *address,
                                         size_t length)
{
    const uint8_t *end = (const uint8_t*)address + length;
    const uint8_t *p;
    unsigned i;

    if (length < sizeof(*address)) {
        ucs_error("worker address of %zu bytes is truncated", length);
        return UCS_ERR_INVALID_ADDR;
    }
    if (address->magic != UCP_ST_ADDRESS_MAGIC) {
        ucs_error("not an address of an st worker");
        return UCS_ERR_INVALID_ADDR;
    }
    if (address->version != UCP_ST_PROTO_VERSION) {
        ucs_error("the peer speaks version %d of the st protocol, this library "
                  "version %d", address->version, UCP_ST_PROTO_VERSION);
        return UCS_ERR_UNSUPPORTED;
    }
    if ((address->ucp_length == 0) ||
        (length < (sizeof(*address) + address->ucp_length))) {
        ucs_error("worker address of %zu bytes is truncated", length);
        return UCS_ERR_INVALID_ADDR;
    }
    p = ucp_st_address_first_lane(address);
    for (i = 0; i < address->num_lanes; ++i) {
        if (ucp_st_address_next_lane(&p, end) == NULL) {
            ucs_error("worker address is truncated in lane %u of %u", i + 1,
                      address->num_lanes);
            return UCS_ERR_INVALID_ADDR;
        }
    }
    return UCS_OK;
}

ucp_st_peer_t *ucp_st_peer_find(ucp_st_worker_h worker, uint64_t uuid)
{
    khiter_t iter = kh_get(ucp_st_peers, &worker->peer_table, uuid);

    return (iter == kh_end(&worker->peer_table)) ?
           NULL : kh_value(&worker->peer_table, iter);
}

ucp_st_peer_t *ucp_st_peer_get(ucp_st_worker_h worker, uint64_t uuid)
{
    ucp_st_peer_t *peer = ucp_st_peer_find(worker, uuid);
    const ucp_st_component_t *component;
    khiter_t iter;
    int ret;

    if (peer != NULL) {
        return peer;
    }
    peer = ucp_st_object_alloc(UCP_ST_OBJECT_PEER, sizeof(*peer),
                               offsetof(ucp_st_peer_t, priv));
    if (peer == NULL) {
        return NULL;
    }
    iter = kh_put(ucp_st_peers, &worker->peer_table, uuid, &ret);
    if (ret < 0) {
        free(peer);
        return NULL;
    }
    kh_value(&worker->peer_table, iter) = peer;
    peer->worker  = worker;
    peer->uuid    = uuid;
    peer->is_self = (uuid == worker->uuid);
    peer->status  = UCS_OK;
    peer->lost    = UCS_OK;
    ucs_list_head_init(&peer->ops);
    kh_init_inplace(ucp_st_keys, &peer->keys);
    ucp_st_for_each_component(component) {
        component->peer.init(peer);
    }
    ucs_list_add_tail(&worker->peers, &peer->list);
    if (worker->leaving) {
        ucp_st_ctrl_post(peer, UCP_ST_CTRL_LEAVE, 0, 0);
    }
    return peer;
}

/* The peer is lost or leaving: something is to be decided about it */
static int ucp_st_peer_is_going(const ucp_st_peer_t *peer)
{
    return (peer->state == UCP_ST_PEER_LEAVING) ||
           (peer->state == UCP_ST_PEER_LEFT) ||
           (peer->state == UCP_ST_PEER_LOST);
}

void ucp_st_peer_set_state(ucp_st_peer_t *peer, ucp_st_peer_state_t state)
{
    static const uint8_t legal_from[] = {
        [UCP_ST_PEER_ACTIVE]  = 0,
        [UCP_ST_PEER_QUIET]   = UCS_BIT(UCP_ST_PEER_ACTIVE),
        [UCP_ST_PEER_LEAVING] = UCS_BIT(UCP_ST_PEER_ACTIVE) |
                                UCS_BIT(UCP_ST_PEER_QUIET),
        [UCP_ST_PEER_LEFT]    = UCS_BIT(UCP_ST_PEER_LEAVING),
        [UCP_ST_PEER_LOST]    = UCS_MASK(UCP_ST_PEER_LOST),
        [UCP_ST_PEER_GONE]    = UCS_MASK(UCP_ST_PEER_GONE)
    };

    if (!(legal_from[state] & UCS_BIT(peer->state))) {
        ucs_error("peer 0x%lx: state %d cannot follow %d", peer->uuid, state,
                  peer->state);
    }
    if (ucp_st_peer_is_going(peer)) {
        ucs_list_del(&peer->going_list);
    }
    peer->state = state;
    if (ucp_st_peer_is_going(peer)) {
        ucs_list_add_tail(&ucp_st_watch(peer->worker)->going_peers,
                          &peer->going_list);
    }
}

/* A peer that has sent BYE is CANCELED, also if a transport has seen its
 * endpoints close meanwhile */
void ucp_st_peer_lost(ucp_st_peer_t *peer, ucs_status_t status)
{
    if (peer->state >= UCP_ST_PEER_LOST) {
        return;
    }
    ucs_debug("peer 0x%lx is lost: %s", peer->uuid, ucs_status_string(status));
    /* Transports report a lost peer by many codes */
    peer->lost       = (peer->state >= UCP_ST_PEER_LEAVING) ?
                               UCS_ERR_CANCELED :
                       (status == UCS_ERR_ENDPOINT_TIMEOUT) ?
                               status :
                               UCS_ERR_CONNECTION_RESET;
    peer->lost_round = ucp_st_net(peer->worker)->round;
    ucp_st_peer_set_state(peer, UCP_ST_PEER_LOST);
    ucp_st_net_wake(peer->worker);
}

/* The peer has freed its half after so many uses, and these do not need it any
 * more. Data of an early receive is here. Of an exchange a use may be under way
 * with others; it is over with this peer, if that has left in order: what a
 * process that died has said to be done may not have been acknowledged. */
static int ucp_st_peer_has_done(const ucp_st_op_t *op)
{
    return (op->state == UCP_ST_OP_MATCHED) && (op->max_uses != UINT64_MAX) &&
           (op->early ||
            ((op->exchange != NULL) &&
             (op->peer->status == UCS_ERR_CANCELED) &&
             (op->started <= op->max_uses)));
}

void ucp_st_peer_fail(ucp_st_peer_t *peer, ucs_status_t status)
{
    ucp_st_worker_h worker = peer->worker;
    const ucp_st_component_t *component;
    ucp_st_op_t *op, *tmp;
    ucp_st_peer_state_t before = peer->state;

    if (peer->state == UCP_ST_PEER_GONE) {
        return;
    }
    ucp_st_lanes_progress_all(worker); /* its last messages may be here */
    ucs_diag("peer 0x%lx is gone: %s", peer->uuid, ucs_status_string(status));
    ucp_st_peer_set_state(peer, UCP_ST_PEER_GONE);
    peer->status = status;
    ucs_list_for_each_safe(op, tmp, &peer->ops, peer_list) {
        if (op->freed) {
            ucp_st_op_peer_gone(op);
        } else if (ucp_st_peer_has_done(op)) {
            /* A further use than those fails */
        } else if (op->state != UCP_ST_OP_INIT) {
            ucp_st_op_fail(op, status);
        }
    }
    ucp_st_for_each_component(component) {
        component->peer.gone(peer);
    }
    /* Closing the endpoint ends UCP's work on operations with the peer */
    if ((before == UCP_ST_PEER_LEAVING) || (before == UCP_ST_PEER_LEFT)) {
        ucp_st_ctrl_end(peer);
    } else if ((status == UCS_ERR_CANCELED) || worker->said_bye) {
        ucp_st_ctrl_cut(peer);
    } else {
        ucp_st_ctrl_tell_gone(peer);
    }
    /* Some NICs drop what they cannot deliver, and tell only when asked */
    ucp_st_peer_check(peer);
}

void ucp_st_peer_check(ucp_st_peer_t *peer)
{
    unsigned id;

    if (!peer->closed && ucp_st_process_is_dead(&peer->process)) {
        ucp_st_peer_lost(peer, UCS_ERR_CONNECTION_RESET);
        ucp_st_peer_closed(peer); /* nothing there reads or writes any more */
    }
    ucs_for_each_bit(id, peer->lanes) {
        ucp_st_lane_table[id]->peer.check(peer);
    }
}

void ucp_st_peer_closed(ucp_st_peer_t *peer)
{
    const ucp_st_component_t *component;
    ucp_st_op_t *op, *tmp;

    peer->closed = 1;
    if (peer->state != UCP_ST_PEER_GONE) {
        return;
    }
    ucs_list_for_each_safe(op, tmp, &peer->ops, peer_list) {
        if ((op->state == UCP_ST_OP_FAILED) || op->freed) {
            ucp_st_op_peer_gone(op);
        }
    }
    ucp_st_for_each_component(component) {
        component->peer.closed(peer);
    }
}

/* No other thread uses the worker */
static void ucp_st_peer_disconnect(ucp_st_peer_t *peer)
{
    unsigned id;

    ucs_for_each_bit(id, peer->lanes) {
        ucp_st_lane_table[id]->peer.disconnect(peer);
    }
    peer->lanes = 0;
    ucp_st_ctrl_disconnect(peer);
    free(peer->ucp_address);
    ucp_st_process_close(&peer->process);
}

/* Connect one lane if both sides have it, and it is not connected yet */
static void ucp_st_peer_connect_lane(ucp_st_peer_t *peer,
                                     const ucp_st_address_lane_t *head)
{
    ucp_st_worker_h worker = peer->worker;
    const ucp_st_lane_ops_t *lane;
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        lane = worker->lanes[i];
        if ((lane->id != (ucp_st_lane_t)head->lane) ||
            (peer->lanes & UCS_BIT(lane->id))) {
            continue;
        }
        status = lane->peer.connect(peer, head + 1, head->length);
        if (status == UCS_OK) {
            ucp_st_worker_lock(worker);
            peer->lanes |= UCS_BIT(lane->id);
            ucp_st_worker_unlock(worker);
        } else {
            ucs_diag("lane %s does not reach peer 0x%lx: %s", lane->name,
                     peer->uuid, ucs_status_string(status));
        }
    }
}

/* Connect what the parts of the address lead to: the service thread, and lanes
 */
static ucs_status_t ucp_st_peer_connect_all(ucp_st_peer_t *peer,
                                            const ucp_st_address_hdr_t *address,
                                            size_t length)
{
    const uint8_t *p                     = ucp_st_address_first_lane(address);
    const ucp_st_address_lane_t *service = NULL;
    const ucp_st_address_lane_t *head;
    unsigned i;

    for (i = 0; i < address->num_lanes; ++i) {
        head = ucp_st_address_next_lane(&p, (const uint8_t*)address + length);
        if (head->lane == UCP_ST_PROTO_SERVICE) {
            service = head;
        } else {
            ucp_st_peer_connect_lane(peer, head);
        }
    }
    if (service == NULL) {
        ucs_error("the address of peer 0x%lx lacks that of its service thread",
                  peer->uuid);
        return UCS_ERR_INVALID_ADDR;
    }
    if (peer->lanes == 0) {
        ucs_error("no lane reaches peer 0x%lx: it has none of this side's (see "
                  "UCX_ST_LANES), or uses another provider", peer->uuid);
        return UCS_ERR_UNREACHABLE;
    }
    return ucp_st_net_connect(peer, service + 1, service->length);
}

/* Wait until the service thread has made the peer's endpoint. A peer that has
 * left by then needs none. The service thread itself, in a function of the
 * user's, makes it later. */
static ucs_status_t ucp_st_peer_await_ep(ucp_st_peer_t *peer)
{
    double end      = ucp_st_worker_now() + peer->worker->config.err_timeout;
    unsigned rounds = 0;
    ucs_status_t status;

    do {
        ucs_backoff(&rounds);
        ucp_st_worker_lock(peer->worker);
        status = ((peer->state >= UCP_ST_PEER_LEFT) ||
                  ucp_st_service_is_self()) ?
                         UCS_OK : ucp_st_net_connect_status(peer);
        ucp_st_worker_unlock(peer->worker);
    } while ((status == UCS_INPROGRESS) && (ucp_st_worker_now() < end));
    return (status == UCS_INPROGRESS) ? UCS_ERR_TIMED_OUT : status;
}

/* Other threads may look at the peer meanwhile, if its own message has made it
 * known: what they see is set with the lock held. It stays if a later step
 * fails, as they may be using it, and serves the next try. */
static ucs_status_t ucp_st_peer_connect(ucp_st_peer_t *peer,
                                        const ucp_st_address_hdr_t *address,
                                        size_t length)
{
    ucp_st_worker_h worker = peer->worker;
    ucp_st_process_t process;
    ucs_status_t status;
    void *ucp_address;

    /* Before the peer is connected: if another process has got this one's
     * number by then, connecting fails */
    if (!ucp_st_process_is_here(&peer->process)) {
        ucp_st_process_open(&process, &address->place, &worker->place);
        ucp_st_worker_lock(worker);
        peer->process = process;
        ucp_st_worker_unlock(worker);
    }
    status = ucp_st_peer_connect_all(peer, address, length);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_peer_await_ep(peer);
    if (status != UCS_OK) {
        ucs_error("failed to connect to peer 0x%lx: %s", peer->uuid,
                  ucs_status_string(status));
        return ucp_st_ucp_connect_status(status);
    }
    ucp_address = malloc(address->ucp_length);
    if (ucp_address == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    memcpy(ucp_address, address + 1, address->ucp_length);
    ucp_st_worker_lock(worker);
    peer->ucp_address = ucp_address;
    peer->connected   = 1;
    ucp_st_worker_unlock(worker);
    ucp_st_watch_wake(worker);
    return UCS_OK;
}

ucs_status_t ucp_st_peer_create(ucp_st_worker_h worker, const void *address,
                                size_t length, ucp_st_peer_h *peer_p)
{
    const ucp_st_address_hdr_t *hdr = address;
    ucp_st_peer_t *peer;
    ucs_status_t status;

    status = ucp_st_check_call((worker != NULL) && (address != NULL) &&
                               (peer_p != NULL));
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_address_check(hdr, length);
    if (status != UCS_OK) {
        return status;
    }

    ucp_st_worker_lock(worker);
    peer = ucp_st_peer_get(worker, hdr->uuid);
    ucp_st_worker_unlock(worker);
    if (peer == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    /* A second thread waits, and finds it connected. The worker's lock cannot
     * serve for that, as UCP is called without it. */
    (void)pthread_mutex_lock(&worker->connect_lock);
    status = peer->connected ? UCS_OK : ucp_st_peer_connect(peer, hdr, length);
    (void)pthread_mutex_unlock(&worker->connect_lock);
    if (status == UCS_OK) {
        *peer_p = peer;
    }
    return status;
}

void ucp_st_peer_destroy(ucp_st_peer_h peer)
{
    /* The peer stays until the worker is destroyed: peers are often made again,
     * and their messages may still come */
}

void ucp_st_peers_cleanup(ucp_st_worker_h worker)
{
    ucp_st_peer_t *peer;

    ucp_st_net_stop(worker); /* no message makes another peer any more */
    ucp_st_worker_lock(worker);
    while (!ucs_list_is_empty(&worker->peers)) {
        peer = ucs_list_head(&worker->peers, ucp_st_peer_t, list);
        ucp_st_worker_unlock(worker);
        ucp_st_peer_disconnect(peer);
        ucp_st_keys_cleanup(peer);
        ucp_st_worker_lock(worker);
        ucs_list_del(&peer->list);
        if (ucp_st_peer_is_going(peer)) {
            ucs_list_del(&peer->going_list);
        }
        kh_del(ucp_st_peers, &worker->peer_table,
               kh_get(ucp_st_peers, &worker->peer_table, peer->uuid));
        free(peer);
    }
    ucp_st_worker_unlock(worker);
}
