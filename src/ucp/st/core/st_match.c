/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_match.c - the pairing of operations, and their choice of a lane.
 *
 * Each side announces its operations to the other in the order in which they
 * are given to match (MATCH), and keeps for every tag and scope of a peer, in
 * that order, its own operations and the peer's announced ones that have no
 * counterpart yet. Two entries with the same key pair as soon as both are
 * there; as each list has the same order on both sides, both sides make the
 * same pairs, without a further message.
 *
 *   A                                    B
 *   imatch: MATCH          <-------->    imatch: MATCH
 *   paired: offer of all lanes           paired: offer of all lanes
 *           BIND           <-------->            BIND
 *   first lane that both offered         first lane that both offered
 *
 * What a pair becomes follows from the four messages alone. A pair whose send
 * is too long ends on both sides after the first two. Resources of lanes are
 * taken once a pair is made, so an operation that waits for its counterpart
 * holds none.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_match.h"
#include "core/st_exchange.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_progress.h"
#include "core/st_stage.h"
#include "core/st_trace.h"
#include "core/st_worker.h"
#include "ctrl/st_ctrl.h"

#include <ucs_trace.h>

#include <stdlib.h>
#include <string.h>

/* The operation leaves the state MATCHING without a lane */
static void ucp_st_match_end(ucp_st_op_t *op, ucs_status_t status)
{
    ucp_st_lanes_revoke(op);
    if ((status == UCS_ERR_NO_RESOURCE) || (status == UCS_ERR_NO_MEMORY)) {
        ucp_st_lanes_release(op, 0);
        ucp_st_stage_release(op);
        ucp_st_op_set_state(op, UCP_ST_OP_INIT); /* may be tried again */
        op->status = status;
    } else {
        ucp_st_op_fail(op, status);
    }
    ucp_st_op_reap(op);
}

/* Send the offers of all lanes that both sides have, one behind the other */
static void ucp_st_match_offer(ucp_st_op_t *op, unsigned lanes)
{
    ucp_st_worker_h worker     = op->worker;
    ucp_st_ctrl_op_t msg       = {.op_id = op->remote_id, .src_op_id = op->id};
    uint8_t data[UCP_ST_CTRL_MAX];
    ucp_st_ctrl_offer_t *offer = (ucp_st_ctrl_offer_t*)data;
    const ucp_st_lane_ops_t *lane;
    ucs_status_t status;
    size_t length;
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        lane = worker->lanes[i];
        if (!(lanes & UCS_BIT(lane->id))) {
            continue;
        }
        status = ucp_st_stage_set(op, lane);
        if (status == UCS_OK) {
            status = lane->op.offer(op, offer + 1, &length);
        }
        if (status != UCS_OK) {
            ucs_diag("operation %p: lane %s cannot serve: %s", op, lane->name,
                     ucs_status_string(status));
            continue;
        }
        op->offered  |= UCS_BIT(lane->id);
        offer->lane   = lane->id;
        offer->length = length;
        offer         = UCS_PTR_BYTE_OFFSET(offer + 1, length);
    }
    ucp_st_ctrl_post_with(op->peer, UCP_ST_CTRL_BIND, &msg, data,
                          UCS_PTR_BYTE_DIFF(data, offer));
}

/* Both announcements are known, and the operation is not in a list any more */
static void ucp_st_match_pair(ucp_st_op_t *op, const ucp_st_ctrl_match_t *msg)
{
    int is_send        = (op->dir == UCP_ST_DIR_SEND);
    size_t send_length = is_send ? op->length : msg->length;
    size_t recv_length = is_send ? msg->length : op->length;
    unsigned lanes     = 0; /* that the peer named */
    unsigned i;

    op->remote_id  = msg->op_id;
    op->msg_length = send_length;
    op->mode       = is_send ? op->mode : (ucp_st_mode_t)msg->mode;
    op->shares     = (op->exchange != NULL) ||
                     (msg->shares != UCP_ST_SHARES_NONE);
    op->is_coupled = (msg->shares == UCP_ST_SHARES_COUPLED) &&
                     (ucp_st_exchange_shares(op) == UCP_ST_SHARES_COUPLED);
    if (send_length > recv_length) {
        ucs_diag("tag 0x%lx: send of %zu bytes for a receive of %zu", op->tag,
                 send_length, recv_length);
        ucp_st_match_end(op, UCS_ERR_MESSAGE_TRUNCATED);
        return;
    }
    for (i = 0; i < UCP_ST_PROTO_MAX_LANES; ++i) {
        if ((msg->lanes[i] != UCP_ST_LANE_NONE) &&
            (msg->lanes[i] < UCP_ST_LANE_LAST)) {
            lanes |= UCS_BIT(msg->lanes[i]);
        }
    }
    if (!(lanes & op->peer->lanes)) {
        ucs_error("operation %p: no lane of this side (mask 0x%x) is one of "
                  "the peer's (mask 0x%x)", op, op->peer->lanes, lanes);
        ucp_st_match_end(op, UCS_ERR_UNREACHABLE);
        return;
    }
    if (!is_send) {
        /* The order of the send's side counts */
        memcpy(op->lane_order, msg->lanes, sizeof(op->lane_order));
    }
    ucp_st_match_offer(op, lanes & op->peer->lanes);
}

/* The first lane that both sides offered, and the peer's offer, which is among
 * those that follow a BIND message. NULL if there is none. */
static const ucp_st_lane_ops_t *
ucp_st_match_choose(ucp_st_op_t *op, const ucp_st_ctrl_op_t *msg,
                    const ucp_st_ctrl_offer_t **offer_p)
{
    const ucp_st_ctrl_offer_t *offers[UCP_ST_LANE_LAST] = {NULL};
    const ucp_st_ctrl_offer_t *offer = (const ucp_st_ctrl_offer_t*)(msg + 1);
    const void *end                  = UCS_PTR_BYTE_OFFSET(msg,
                                                           msg->hdr.length);
    unsigned i, id;

    while (((const void*)(offer + 1) <= end) &&
           (UCS_PTR_BYTE_OFFSET(offer + 1, offer->length) <= end)) {
        if (offer->lane < UCP_ST_LANE_LAST) {
            offers[offer->lane] = offer;
        }
        offer = UCS_PTR_BYTE_OFFSET(offer + 1, offer->length);
    }
    for (i = 0; i < UCP_ST_PROTO_MAX_LANES; ++i) {
        id = op->lane_order[i];
        if ((id < UCP_ST_LANE_LAST) && (offers[id] != NULL) &&
            (op->offered & UCS_BIT(id))) {
            op->worker->stats.fallbacks += (i > 0);
            *offer_p                     = offers[id];
            return ucp_st_lane_table[id];
        }
    }
    return NULL;
}

void ucp_st_match_handle_bind(ucp_st_peer_t *peer, const ucp_st_ctrl_op_t *msg)
{
    ucp_st_op_t *op = ucp_st_op_find(peer, msg->op_id);
    const ucp_st_ctrl_offer_t *offer;
    const ucp_st_lane_ops_t *lane;
    ucs_status_t status;

    if ((op == NULL) || (op->state != UCP_ST_OP_MATCHING) ||
        (op->key != NULL)) {
        return;
    }
    lane = ucp_st_match_choose(op, msg, &offer);
    if (lane == NULL) {
        ucs_diag("operation %p: no lane has what the pair needs", op);
        ucp_st_match_end(op, UCS_ERR_NO_RESOURCE);
        return;
    }
    ucp_st_lanes_release(op, UCS_BIT(lane->id));
    op->lane   = lane;
    op->reason = NULL;
    (void)ucp_st_stage_set(op, lane); /* as it was for the lane's offer */
    status = lane->op.bind(op, offer + 1, offer->length);
    if (ucp_st_stage_is_used(op)) {
        ++op->worker->stats.staged;
    } else {
        ucp_st_stage_release(op); /* the lane reaches the buffer after all */
    }
    ucp_st_op_set_state(op, UCP_ST_OP_MATCHED);
    ++op->worker->stats.matches;
    ucp_st_trace_match(op);
    ++op->worker->stats.lanes[lane->id].matches;
    ucs_debug("operation %p: tag 0x%lx, %zu bytes: lane %s, %s", op, op->tag,
              op->msg_length, lane->name, lane->op.protocol(op));
    if (status != UCS_OK) {
        /* The peer has matched, and is told as for any failure */
        ucp_st_op_fail(op, status);
    } else if (op->freed) {
        /* It was freed while its announcement was on the way */
        ucp_st_lanes_revoke(op);
        ucp_st_op_tell_unmatched(op);
    }
    ucp_st_op_reap(op); /* it may be gone */
}

void ucp_st_match_handle(ucp_st_peer_t *peer, const ucp_st_ctrl_match_t *msg)
{
    ucp_st_remote_op_t *remote;
    ucp_st_key_t *key;
    ucp_st_op_t *op;
    int dir;

    if ((msg->dir > UCP_ST_DIR_RECV) || (msg->mode > UCP_ST_MODE_READY)) {
        ucs_error("peer 0x%lx gave an operation of direction %u and mode %u to "
                  "match", peer->uuid, msg->dir, msg->mode);
        ucp_st_peer_fail(peer, UCS_ERR_IO_ERROR);
        return;
    }
    key = ucp_st_key_get(peer, msg->tag, msg->scope, 1);
    dir = !msg->dir; /* of the local counterpart */
    if ((key != NULL) && !ucs_list_is_empty(&key->local[dir])) {
        op = ucs_list_head(&key->local[dir], ucp_st_op_t, key_list);
        ucp_st_key_forget(op);
        ucp_st_match_pair(op, msg);
        return;
    }

    remote = (key == NULL) ? NULL : malloc(sizeof(*remote));
    if (remote == NULL) {
        ucp_st_peer_fail(peer, UCS_ERR_NO_MEMORY);
        return;
    }
    remote->msg = *msg;
    ucs_list_add_tail(&key->remote[!dir], &remote->list);
}

void ucp_st_match_handle_cancel(ucp_st_peer_t *peer,
                                const ucp_st_ctrl_op_t *msg)
{
    ucp_st_remote_op_t *remote;
    ucp_st_key_t *key;
    int dir;

    /* Rare, and slow */
    kh_foreach_value(&peer->keys, key, {
        for (dir = 0; dir < 2; ++dir) {
            ucs_list_for_each(remote, &key->remote[dir], list) {
                if (remote->msg.op_id == msg->src_op_id) {
                    ucp_st_key_drop_remote(peer, key, remote);
                    ucp_st_ctrl_post(peer, UCP_ST_CTRL_CANCEL_ACK,
                                     msg->src_op_id, 0);
                    return;
                }
            }
        }
    });
    /* It is paired already. Our announcement is on the way to the peer, which
     * finds the freed operation in its list and undoes the match. */
}

/* Check one operation before anything is given to match; the worker's lock is
 * held */
static ucs_status_t ucp_st_match_check(ucp_st_queue_h queue,
                                       const ucp_st_op_t *op)
{
    if ((op->peer == UCP_ST_PEER_ANY) || (op->flags & UCP_ST_OP_FLAG_ANY_TAG)) {
        ucs_error("operation %p: a wildcard source or tag cannot be matched "
                  "ahead of time", op);
        return UCS_ERR_INVALID_PARAM;
    }
    if (op->state == UCP_ST_OP_FAILED) {
        return op->status;
    }
    if (op->state != UCP_ST_OP_INIT) {
        ucs_error("operation %p was given to match before", op);
        return UCS_ERR_BUSY;
    }
    if (op->worker->leaving) {
        return UCS_ERR_CANCELED;
    }
    if (!ucp_st_peer_is_real(op->peer)) {
        return UCS_OK;
    }
    return (op->peer->state == UCP_ST_PEER_ACTIVE) ? UCS_OK :
           (op->peer->state == UCP_ST_PEER_LOST)   ? op->peer->lost :
           (op->peer->state == UCP_ST_PEER_GONE)   ? op->peer->status :
                                                     UCS_ERR_CANCELED;
}

/* The key of an operation to oneself; NULL for others, or if there is none */
static ucp_st_key_t *ucp_st_match_self_key(const ucp_st_op_t *op, int add)
{
    if (!ucp_st_peer_is_real(op->peer) || !op->peer->is_self) {
        return NULL;
    }
    return ucp_st_key_get(op->peer, op->tag, op->scope, add);
}

/* A blocking match of one half of a message to oneself would never return */
static ucs_status_t ucp_st_match_check_self(const ucp_st_op_h *ops,
                                            size_t count)
{
    ucs_status_t status = UCS_OK;
    ucp_st_key_t *key;
    size_t i;

    for (i = 0; i < count; ++i) {
        key = ucp_st_match_self_key(ops[i], 1);
        if (key != NULL) {
            ++key->added[ops[i]->dir];
        }
    }
    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        key = ucp_st_match_self_key(ops[i], 0);
        if ((key != NULL) &&
            ((key->count[UCP_ST_DIR_SEND] + key->added[UCP_ST_DIR_SEND]) !=
             (key->count[UCP_ST_DIR_RECV] + key->added[UCP_ST_DIR_RECV]))) {
            ucs_error("a blocking match of one half of a message to oneself "
                      "(tag 0x%lx)", ops[i]->tag);
            status = UCS_ERR_INVALID_PARAM;
        }
    }
    for (i = 0; i < count; ++i) {
        key = ucp_st_match_self_key(ops[i], 0);
        if (key != NULL) {
            key->added[UCP_ST_DIR_SEND] = 0;
            key->added[UCP_ST_DIR_RECV] = 0;
            ucp_st_key_put(ops[i]->peer, key);
        }
    }
    return status;
}

/* Post the match message of an operation. The lock is held. */
static ucs_status_t ucp_st_match_announce(ucp_st_op_t *op)
{
    ucp_st_ctrl_match_t *msg;

    msg = ucp_st_ctrl_reserve(op->peer, UCP_ST_CTRL_MATCH, sizeof(*msg));
    if (msg == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    msg->op_id    = op->id;
    msg->tag      = op->tag;
    msg->scope    = op->scope;
    msg->length   = op->length;
    msg->dir      = op->dir;
    msg->mode     = op->mode;
    msg->shares   = ucp_st_exchange_shares(op);
    msg->reserved = 0;
    ucp_st_lanes_order(op);
    memcpy(msg->lanes, op->lane_order, sizeof(msg->lanes));
    return UCS_OK;
}

/* Announce one operation, and pair it with the peer's first announced
 * counterpart if that is there; the lock is held */
static void ucp_st_match_start(ucp_st_op_t *op)
{
    ucp_st_remote_op_t *remote;
    ucs_list_link_t *remotes;
    ucp_st_ctrl_match_t msg;
    ucs_status_t status;
    ucp_st_key_t *key;

    ucp_st_op_set_state(op, UCP_ST_OP_MATCHING);
    op->status     = UCS_OK;
    op->look.since = 0;
    if (!ucp_st_peer_is_real(op->peer)) {
        ucp_st_op_set_state(op, UCP_ST_OP_MATCHED);
        return;
    }
    key = ucp_st_key_get(op->peer, op->tag, op->scope, 1);
    if (key == NULL) {
        ucp_st_op_fail(op, UCS_ERR_NO_MEMORY);
        return;
    }
    op->key = key;
    ++key->count[op->dir];
    ucs_list_add_tail(&key->local[op->dir], &op->key_list);
    status = ucp_st_match_announce(op);
    if (status != UCS_OK) {
        ucp_st_op_fail(op, status);
        return;
    }
    remotes = &key->remote[!op->dir];
    if (!ucs_list_is_empty(remotes)) {
        remote = ucs_list_head(remotes, ucp_st_remote_op_t, list);
        msg    = remote->msg;
        ucp_st_key_drop_remote(op->peer, key, remote);
        ucp_st_key_forget(op);
        ucp_st_match_pair(op, &msg);
    }
}

/* Check all, then announce all; the lock is not held */
static ucs_status_t ucp_st_match_startall(const ucp_st_op_h *ops, size_t count,
                                          int blocking)
{
    ucp_st_worker_h worker;
    ucs_status_t status;
    size_t i;

    if (count == 0) {
        return UCS_OK;
    }
    status = ucp_st_check_call((ops != NULL) && (ops[0] != NULL));
    if (status != UCS_OK) {
        return status;
    }

    /* Queues may have come since they were made */
    for (i = 0; i < count; ++i) {
        if ((ops[i] != NULL) &&
            (__atomic_load_n(&ops[i]->state, __ATOMIC_RELAXED) ==
             UCP_ST_OP_INIT)) {
            ucp_st_lanes_prepare(ops[i]);
        }
    }
    worker = ops[0]->worker;
    ucp_st_worker_lock(worker);
    /* Free what complete uses hold */
    ucp_st_lanes_progress_all(worker);
    status = ucp_st_op_check_all(ops, count, ucp_st_match_check, NULL);
    if ((status == UCS_OK) && blocking) {
        status = ucp_st_match_check_self(ops, count);
    }
    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        ucp_st_match_start(ops[i]);
    }
    ucp_st_worker_unlock(worker);
    return status;
}

ucs_status_t ucp_st_imatchall(const ucp_st_op_h *ops, size_t count)
{
    return ucp_st_match_startall(ops, count, 0);
}

/* Outcome as far as known; the lock is held */
static ucs_status_t ucp_st_match_status(const ucp_st_op_t *op)
{
    if (ucp_st_op_is_matching(op)) {
        return UCS_INPROGRESS;
    }
    switch (op->state) {
    case UCP_ST_OP_MATCHED:
        return UCS_OK;
    case UCP_ST_OP_INIT:
        return (op->status == UCS_OK) ? UCS_ERR_NOT_CONNECTED : op->status;
    default:
        return op->status;
    }
}

ucs_status_t ucp_st_match_test(ucp_st_op_h op)
{
    ucs_status_t status;

    status = ucp_st_check_call(op != NULL);
    if (status != UCS_OK) {
        return status;
    }
    (void)ucp_st_progress(op->worker);
    ucp_st_worker_lock(op->worker);
    status = ucp_st_match_status(op);
    ucp_st_worker_unlock(op->worker);
    return status;
}

ucs_status_t ucp_st_matchall(const ucp_st_op_h *ops, size_t count,
                             ucs_status_t *statuses)
{
    uint64_t begin       = ucs_trace_begin();
    ucs_status_t result  = UCS_OK;
    unsigned idle_rounds = 0;
    ucp_st_worker_h worker;
    ucs_status_t status;
    size_t i;

    status = ucp_st_match_startall(ops, count, 1);
    if ((status != UCS_OK) || (count == 0)) {
        return status;
    }
    worker = ops[0]->worker;
    ucp_st_worker_lock(worker);
    for (i = 0; i < count; ++i) {
        while (ucp_st_op_is_matching(ops[i])) {
            ucp_st_worker_unlock(worker);
            ucp_st_progress_pause(&idle_rounds, ucp_st_progress(worker));
            ucp_st_worker_lock(worker);
        }
    }
    for (i = 0; i < count; ++i) {
        status = ucp_st_match_status(ops[i]);
        if (statuses != NULL) {
            statuses[i] = status;
        }
        if (result == UCS_OK) {
            result = status;
        }
    }
    ucp_st_worker_unlock(worker);
    ucs_trace_end("ucp_st_matchall", begin);
    return result;
}

ucs_status_t ucp_st_match(ucp_st_op_h op)
{
    return ucp_st_matchall(&op, 1, NULL);
}
