/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_match.c - matching.
 *
 * Each side announces its operations to the other in the order in which they
 * are given to match, and keeps two lists a peer, both in that order: its own
 * operations and the peer's announced ones that have no counterpart yet. Two
 * entries with the same key pair as soon as both are there; as each list has
 * the same order on both sides, both sides make the same pairs, without a
 * further message. What a pair becomes follows from its two announcements
 * alone.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_match.h"
#include "st_ctrl.h"
#include "st_lane.h"
#include "st_log.h"
#include "st_worker.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* Empty rounds of progress before a blocked match sleeps, and for how long */
#define UCP_ST_MATCH_YIELDS   200
#define UCP_ST_MATCH_SLEEP_NS 50000

static int ucp_st_match_is_pair(const ucp_st_op_t *op,
                                const ucp_st_msg_match_t *msg)
{
    return (op->tag == msg->tag) && (op->scope == msg->scope) &&
           ((uint8_t)op->dir != msg->dir);
}

/* The operation leaves the state MATCHING without a lane */
static void ucp_st_match_end(ucp_st_op_t *op, ucs_status_t status)
{
    if (op->lane != NULL) {
        op->lane->release(op);
        op->lane = NULL;
    }
    if (status == UCS_ERR_NO_RESOURCE) {
        ucp_st_op_set_state(op, UCP_ST_OP_INIT); /* may be tried again */
        op->status = status;
    } else {
        ucp_st_op_fail(op, status);
    }
    ucp_st_op_reap(op);
}

static void ucp_st_match_success(ucp_st_op_t *op)
{
    ucp_st_msg_op_t msg = {
        .op_id     = op->remote_id,
        .src_op_id = op->id,
        .status    = UCS_ERR_CANCELED
    };

    ucp_st_op_set_state(op, UCP_ST_OP_MATCHED);
    ++op->worker->stats.matches;
    if (op->freed) {
        /* Freed while its announcement was on the way */
        op->lane->revoke(op);
        ucp_st_ctrl_post(op->peer, UCP_ST_MSG_UNMATCH, &msg);
        ucp_st_op_reap(op);
    }
}

/* The receive's buffer must not get the byte that an empty send writes: the
 * receiver offers another region, and the sender waits for it */
static void ucp_st_match_empty_send(ucp_st_op_t *op)
{
    ucp_st_msg_op_t msg = {.op_id = op->remote_id, .src_op_id = op->id};
    ucs_status_t status;

    if (op->dir == UCP_ST_DIR_SEND) {
        return; /* ucp_st_match_handle_rekey() goes on */
    }
    status     = op->lane->rekey(op, &msg.region);
    msg.status = status;
    ucp_st_ctrl_post(op->peer, UCP_ST_MSG_REKEY, &msg);
    if (status == UCS_OK) {
        ucp_st_match_success(op);
    } else {
        ucp_st_match_end(op, status);
    }
}

/* Both announcements are known, and the operation is in no list any more */
static void ucp_st_match_pair(ucp_st_op_t *op, const ucp_st_msg_match_t *msg)
{
    int is_send        = (op->dir == UCP_ST_DIR_SEND);
    size_t send_length = is_send ? op->length : msg->length;
    size_t recv_length = is_send ? msg->length : op->length;
    ucs_status_t status;

    op->remote_id  = msg->op_id;
    op->msg_length = send_length;
    op->mode       = is_send ? op->mode : (ucp_st_mode_t)msg->mode;
    if (send_length > recv_length) {
        ucs_diag("tag 0x%lx: send of %zu bytes for a receive of %zu", op->tag,
                 send_length, recv_length);
        ucp_st_match_end(op, UCS_ERR_MESSAGE_TRUNCATED);
        return;
    }
    if ((op->lane == NULL) || !(msg->lanes & (1u << op->lane->id))) {
        ucp_st_match_end(op, UCS_ERR_NO_RESOURCE);
        return;
    }
    status = op->lane->bind(op, &msg->region);
    if (status != UCS_OK) {
        ucp_st_match_end(op, status);
    } else if ((send_length == 0) && (recv_length > 0)) {
        ucp_st_match_empty_send(op);
    } else {
        ucp_st_match_success(op);
    }
}

void ucp_st_match_handle(ucp_st_peer_t *peer, const ucp_st_msg_match_t *msg)
{
    ucp_st_remote_op_t *remote;
    ucp_st_op_t *op;

    ucs_list_for_each(op, &peer->unmatched, match_list) {
        if (ucp_st_match_is_pair(op, msg)) {
            ucs_list_del(&op->match_list);
            ucs_list_head_init(&op->match_list);
            ucp_st_match_pair(op, msg);
            return;
        }
    }

    remote = malloc(sizeof(*remote));
    if (remote == NULL) {
        ucp_st_peer_fail(peer, UCS_ERR_NO_MEMORY);
        return;
    }
    remote->msg = *msg;
    ucs_list_add_tail(&peer->remote_ops, &remote->list);
}

void ucp_st_match_handle_rekey(ucp_st_peer_t *peer, const ucp_st_msg_op_t *msg)
{
    ucp_st_op_t *op = ucp_st_op_find(peer->worker, msg->op_id);
    ucs_status_t status;

    if ((op == NULL) || (op->peer != peer) ||
        (op->state != UCP_ST_OP_MATCHING) || (op->lane == NULL)) {
        return;
    }
    status = (ucs_status_t)msg->status;
    if (status == UCS_OK) {
        status = op->lane->bind(op, &msg->region);
    }
    if (status == UCS_OK) {
        ucp_st_match_success(op);
    } else {
        ucp_st_match_end(op, status);
    }
}

void ucp_st_match_handle_cancel(ucp_st_peer_t *peer, const ucp_st_msg_op_t *msg)
{
    ucp_st_msg_op_t ack = {.op_id = msg->src_op_id};
    ucp_st_remote_op_t *remote;

    ucs_list_for_each(remote, &peer->remote_ops, list) {
        if (remote->msg.op_id == msg->src_op_id) {
            ucs_list_del(&remote->list);
            free(remote);
            ucp_st_ctrl_post(peer, UCP_ST_MSG_CANCEL_ACK, &ack);
            return;
        }
    }
    /* Paired already: our announcement is on the way to the peer, which finds
     * the freed operation in its list and undoes the match */
}

/* Take the peer's first announced counterpart, if it is there */
static void ucp_st_match_try(ucp_st_op_t *op)
{
    ucp_st_remote_op_t *remote;

    ucs_list_for_each(remote, &op->peer->remote_ops, list) {
        if (ucp_st_match_is_pair(op, &remote->msg)) {
            ucs_list_del(&remote->list);
            ucs_list_del(&op->match_list);
            ucs_list_head_init(&op->match_list);
            ucp_st_match_pair(op, &remote->msg);
            free(remote);
            return;
        }
    }
}

static ucs_status_t ucp_st_match_check_peer(const ucp_st_op_t *op)
{
    if (!ucp_st_op_has_peer(op)) {
        return UCS_OK;
    }
    return ((op->peer->status == UCS_OK) && op->peer->said_leave) ?
           UCS_ERR_CANCELED : op->peer->status;
}

/* Check one operation before anything is given to match; the lock is held */
static ucs_status_t ucp_st_match_check(ucp_st_op_t *op)
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
    if (op->marked) {
        ucs_error("operation %p is there twice", op);
        return UCS_ERR_INVALID_PARAM;
    }
    if (op->worker->leaving) {
        return UCS_ERR_CANCELED;
    }
    return ucp_st_match_check_peer(op);
}

static ucs_status_t ucp_st_match_checkall(const ucp_st_op_h *ops, size_t count)
{
    ucs_status_t status = UCS_OK;
    size_t i, checked;

    for (checked = 0; (checked < count) && (status == UCS_OK); ++checked) {
        status = (ops[checked] == NULL) ? UCS_ERR_INVALID_PARAM :
                                          ucp_st_match_check(ops[checked]);
        if (status == UCS_OK) {
            ops[checked]->marked = 1;
        }
    }
    for (i = 0; i < checked; ++i) {
        if (ops[i] != NULL) {
            ops[i]->marked = 0;
        }
    }
    return status;
}

/* Operations with the same key as `op`, in one direction */
static size_t ucp_st_match_count_self(const ucp_st_op_h *ops, size_t count,
                                      const ucp_st_op_t *op, ucp_st_dir_t dir)
{
    size_t result = 0;
    ucp_st_op_t *other;
    size_t i;

    for (i = 0; i < count; ++i) {
        result += (ops[i]->peer == op->peer) && (ops[i]->dir == dir) &&
                  (ops[i]->tag == op->tag) && (ops[i]->scope == op->scope);
    }
    ucs_list_for_each(other, &op->peer->unmatched, match_list) {
        result += (other->dir == dir) && !other->freed &&
                  (other->tag == op->tag) && (other->scope == op->scope);
    }
    return result;
}

/* A blocking match of one half of a message to oneself would never return */
static ucs_status_t ucp_st_match_check_self(const ucp_st_op_h *ops,
                                            size_t count)
{
    const ucp_st_op_t *op;
    size_t i;

    for (i = 0; i < count; ++i) {
        op = ops[i];
        if (ucp_st_op_has_peer(op) && op->peer->is_self &&
            (ucp_st_match_count_self(ops, count, op, UCP_ST_DIR_SEND) !=
             ucp_st_match_count_self(ops, count, op, UCP_ST_DIR_RECV))) {
            ucs_error("a blocking match of one half of a message to oneself "
                      "(tag 0x%lx)", op->tag);
            return UCS_ERR_INVALID_PARAM;
        }
    }
    return UCS_OK;
}

/* Announce one operation; the lock is held */
static void ucp_st_match_start(ucp_st_op_t *op)
{
    ucp_st_trig_region_t region;
    ucs_status_t status;

    ucp_st_op_set_state(op, UCP_ST_OP_MATCHING);
    op->status = UCS_OK;
    if (!ucp_st_op_has_peer(op)) {
        ucp_st_op_set_state(op, UCP_ST_OP_MATCHED);
        return;
    }

    status = ucp_st_trig_lane_ops.offer(op, &region);
    if (status == UCS_OK) {
        op->lane = &ucp_st_trig_lane_ops;
    } else {
        ucs_diag("operation %p: lane %s cannot serve: %s", op,
                 ucp_st_trig_lane_ops.name, ucs_status_string(status));
    }
    ucs_list_add_tail(&op->peer->unmatched, &op->match_list);
    status = ucp_st_ctrl_post_match(op, (op->lane == NULL) ? NULL : &region);
    if (status != UCS_OK) {
        ucp_st_op_fail(op, status);
        return;
    }
    ucp_st_match_try(op);
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
    if ((ops == NULL) || (ops[0] == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }

    worker = ops[0]->worker;
    ucp_st_worker_lock(worker);
    /* Entries of uses that are over must not be missing here */
    while (ucp_st_trig_dev_progress(worker) > 0) {
        /* finite: nothing new is posted */
    }
    status = ucp_st_match_checkall(ops, count);
    if ((status == UCS_OK) && blocking) {
        status = ucp_st_match_check_self(ops, count);
    }
    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        ucp_st_match_start(ops[i]);
    }
    ucp_st_worker_unlock(worker);
    ucp_st_ctrl_flush(worker);
    return status;
}

ucs_status_t ucp_st_imatchall(const ucp_st_op_h *ops, size_t count)
{
    return ucp_st_match_startall(ops, count, 0);
}

/* Outcome as far as known; the lock is held */
static ucs_status_t ucp_st_match_status(const ucp_st_op_t *op)
{
    switch (op->state) {
    case UCP_ST_OP_MATCHED:
        return UCS_OK;
    case UCP_ST_OP_MATCHING:
        return UCS_INPROGRESS;
    case UCP_ST_OP_INIT:
        return (op->status == UCS_OK) ? UCS_ERR_NOT_CONNECTED : op->status;
    default:
        return op->status;
    }
}

ucs_status_t ucp_st_match_test(ucp_st_op_h op)
{
    ucs_status_t status;

    if (op == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_st_ctrl_progress(op->worker);
    ucp_st_worker_lock(op->worker);
    status = ucp_st_match_status(op);
    ucp_st_worker_unlock(op->worker);
    return status;
}

static size_t ucp_st_match_count_pending(const ucp_st_op_h *ops, size_t count)
{
    size_t pending = 0;
    size_t i;

    ucp_st_worker_lock(ops[0]->worker);
    for (i = 0; i < count; ++i) {
        pending += (ops[i]->state == UCP_ST_OP_MATCHING);
    }
    ucp_st_worker_unlock(ops[0]->worker);
    return pending;
}

/* Give the processor away: peers may share it */
static void ucp_st_match_pause(unsigned *idle_rounds, unsigned progressed)
{
    struct timespec ts = {.tv_nsec = UCP_ST_MATCH_SLEEP_NS};

    *idle_rounds = (progressed > 0) ? 0 : (*idle_rounds + 1);
    if (*idle_rounds > UCP_ST_MATCH_YIELDS) {
        (void)nanosleep(&ts, NULL);
    } else {
        (void)sched_yield();
    }
}

static void ucp_st_match_wait(const ucp_st_op_h *ops, size_t count)
{
    unsigned idle_rounds = 0;

    while (ucp_st_match_count_pending(ops, count) > 0) {
        ucp_st_match_pause(&idle_rounds, ucp_st_ctrl_progress(ops[0]->worker));
    }
}

ucs_status_t ucp_st_matchall(const ucp_st_op_h *ops, size_t count,
                             ucs_status_t *statuses)
{
    ucs_status_t result = UCS_OK;
    ucs_status_t status;
    size_t i;

    status = ucp_st_match_startall(ops, count, 1);
    if ((status != UCS_OK) || (count == 0)) {
        return status;
    }
    ucp_st_match_wait(ops, count);

    ucp_st_worker_lock(ops[0]->worker);
    for (i = 0; i < count; ++i) {
        status = ucp_st_match_status(ops[i]);
        if (statuses != NULL) {
            statuses[i] = status;
        }
        if (result == UCS_OK) {
            result = status;
        }
    }
    ucp_st_worker_unlock(ops[0]->worker);
    return result;
}

ucs_status_t ucp_st_match(ucp_st_op_h op)
{
    return ucp_st_matchall(&op, 1, NULL);
}
