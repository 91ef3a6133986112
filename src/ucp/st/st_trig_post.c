/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_post.c - the trig lane: deferred work of the uses of one operation,
 * posted ahead as far as there are entries, and what happens when it is done.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig.h"
#include "st_leave.h"
#include "st_op.h"
#include "st_peer.h"
#include "st_worker.h"

#include <ucs/sys/math.h>

void ucp_st_trig_late_del(ucp_st_trig_op_t *trig)
{
    if (trig->is_late) {
        ucs_list_del(&trig->late_list);
        trig->is_late = 0;
    }
}

/* Count a finished entry; what hung on it may go on */
static void ucp_st_trig_entry_done(ucp_st_trig_part_t *part,
                                   ucp_st_trig_entry_t entry,
                                   ucs_status_t status)
{
    ucp_st_op_t *op = part->op;

    ++part->done[entry];
    if (status != UCS_OK) {
        ucp_st_op_fail(op, status);
    }
    ucp_st_op_reap(op);
}

/* The NIC says that the peer cannot be reached, not that this put is wrong */
static int ucp_st_trig_is_loss(ucs_status_t status)
{
    return (status == UCS_ERR_UNREACHABLE) ||
           (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_ENDPOINT_TIMEOUT);
}

/* A put failed: what the operation's status is then */
static ucs_status_t ucp_st_trig_put_failed(ucp_st_op_t *op, ucs_status_t status)
{
    if (ucp_st_trig_is_loss(status)) {
        /* The operation fails with the peer */
        ucp_st_leave_lost(op->peer, status);
        return UCS_OK;
    }
    if (status == UCS_ERR_INVALID_ADDR) {
        /* The key was good at match: the peer has closed its region since, and
         * its message that says so is on the way */
        return UCS_ERR_CANCELED;
    }
    ucp_st_trig_doubt_add(op, status);
    return UCS_OK;
}

static void ucp_st_trig_put_done(void *arg, ucs_status_t status)
{
    ucp_st_trig_part_t *part = arg;
    ucp_st_op_t *op          = part->op;
    ucp_st_stats_t *stats    = &op->worker->stats;

    if (status != UCS_OK) {
        status = ucp_st_trig_put_failed(op, status);
    } else if (op->dir == UCP_ST_DIR_SEND) {
        ++stats->writes_fired;
    } else {
        ++stats->cts_fired;
    }
    ucp_st_trig_entry_done(part, UCP_ST_TRIG_ENTRY_PUT, status);
}

static void ucp_st_trig_word_done(void *arg, ucs_status_t status)
{
    ucp_st_trig_part_t *part = arg;
    ucp_st_op_t *op          = part->op;

    if (status == UCS_OK) {
        ++op->worker->stats.atomics_fired;
        ucs_gstream_wake(&part->slot->word);
        ucp_st_op_complete_use(op);
    }
    if (op->trig.released) {
        /* A NIC's addition that was under way may have read the word before the
         * release was stored and written it after: each such addition ends up
         * here, so the last one to finish is followed by this store. */
        ucp_st_trig_release_waits(op);
    }
    ucp_st_trig_entry_done(part, UCP_ST_TRIG_ENTRY_WORD, status);
}

/* The same for entries that were not the operation's own */
static void ucp_st_trig_ahead_put_done(void *arg, ucs_status_t status)
{
    ucp_st_trig_part_t *part = arg;

    --part->rail->ahead;
    ucp_st_trig_put_done(arg, status);
}

static void ucp_st_trig_ahead_word_done(void *arg, ucs_status_t status)
{
    ucp_st_trig_part_t *part = arg;

    --part->rail->ahead;
    ucp_st_trig_word_done(arg, status);
}

/* Bytes that go over the network: empty sends write one, because a write of 0
 * bytes is not counted everywhere */
static size_t ucp_st_trig_wire_length(size_t length)
{
    return (length == 0) ? 1 : length;
}

static uint64_t ucp_st_trig_put_threshold(const ucp_st_op_t *op, uint64_t use)
{
    if ((op->dir == UCP_ST_DIR_RECV) ||
        (op->trig.plan.proto == UCP_ST_TRIG_READY)) {
        return use;
    }
    if (op->trig.plan.proto == UCP_ST_TRIG_STANDARD) {
        return 2 * use;
    }
    return (2 * use) + ((use - 1) / op->trig.plan.depth);
}

/* Where the data of a use goes; a clear-to-send always goes to the pad */
static uint64_t ucp_st_trig_put_offset(const ucp_st_op_t *op, uint64_t use)
{
    return ((op->dir == UCP_ST_DIR_SEND) &&
            (op->trig.plan.proto == UCP_ST_TRIG_EAGER)) ?
           ucp_st_trig_inbox_offset(op, use) : 0;
}

static ucs_status_t ucp_st_trig_post_put(ucp_st_trig_part_t *part, uint64_t use,
                                         uct_trig_deferred_t *deferred)
{
    const ucp_st_op_t *op = part->op;
    int is_send           = (op->dir == UCP_ST_DIR_SEND);
    int from_pad          = !is_send || (op->msg_length == 0);
    uct_trig_put_t put    = {
        .buffer      = from_pad ? (const void*)&part->slot->pad : op->buffer,
        .length      = is_send ? ucp_st_trig_wire_length(op->msg_length) :
                                 sizeof(part->slot->pad),
        .local       = part->local,
        .remote_addr = part->remote.address + ucp_st_trig_put_offset(op, use),
        .rkey        = part->remote
    };

    deferred->trigger    = part->start;
    deferred->threshold  = ucp_st_trig_put_threshold(op, use);
    deferred->completion = is_send ? part->data : part->rail->sink;
    deferred->done       = (deferred->resv != NULL) ?
                           ucp_st_trig_put_done : ucp_st_trig_ahead_put_done;
    return uct_trig_ep_put(part->ep, &put, deferred);
}

static ucs_status_t ucp_st_trig_post_word(ucp_st_trig_part_t *part,
                                          uint64_t use,
                                          uct_trig_deferred_t *deferred)
{
    uct_trig_atomic_t atomic = {
        .value       = 1,
        .remote_addr = (uintptr_t)&part->slot->word,
        .rkey        = part->piece.slab->rkey
    };

    deferred->trigger    = part->data;
    deferred->threshold  = use;
    deferred->completion = part->rail->sink;
    deferred->done       = (deferred->resv != NULL) ?
                           ucp_st_trig_word_done : ucp_st_trig_ahead_word_done;
    return uct_trig_ep_atomic_add64(part->rail->self_ep, &atomic, deferred);
}

/* From the operation's own entries if one is free, else from the common ones */
static ucs_status_t ucp_st_trig_post_entry(ucp_st_trig_part_t *part,
                                           ucp_st_trig_entry_t entry)
{
    ucp_st_trig_rail_t *rail     = part->rail;
    uct_trig_resv_t *resv        = &part->resv[entry];
    uint64_t use                 = part->posted[entry] + 1;
    uct_trig_deferred_t deferred = {
        .resv = (resv->used < resv->total) ? resv : NULL,
        .arg  = part
    };
    ucs_status_t status;

    if ((deferred.resv == NULL) && (rail->ahead >= rail->max_ahead)) {
        return UCS_ERR_NO_RESOURCE;
    }
    status = (entry == UCP_ST_TRIG_ENTRY_PUT) ?
             ucp_st_trig_post_put(part, use, &deferred) :
             ucp_st_trig_post_word(part, use, &deferred);
    if (status == UCS_OK) {
        ++part->posted[entry];
        rail->ahead += (deferred.resv == NULL);
    }
    return status;
}

/* Puts up to a use. An eager-ahead receive's clear-to-sends are one for as many
 * uses as the inbox holds, ahead of these: what follows the sender's last use
 * is not wanted. Its data may be here although it is gone. */
static uint64_t ucp_st_trig_puts_wanted(const ucp_st_op_t *op, uint64_t uses)
{
    if (!ucp_st_trig_has_inbox(op)) {
        return uses;
    }
    if (op->max_uses > 0) {
        uses = ucs_min(uses, op->max_uses - 1);
    }
    return uses / op->trig.plan.depth;
}

static ucs_status_t ucp_st_trig_post_to_lost(ucp_st_trig_part_t *part,
                                             ucs_status_t status)
{
    if (!ucp_st_trig_has_inbox(part->op) || !ucp_st_trig_is_loss(status)) {
        return status;
    }
    ucp_st_leave_lost(part->op->peer, status);
    ++part->posted[UCP_ST_TRIG_ENTRY_PUT];
    ++part->done[UCP_ST_TRIG_ENTRY_PUT];
    return UCS_OK;
}

static ucs_status_t ucp_st_trig_post_puts(ucp_st_trig_part_t *part,
                                          uint64_t uses)
{
    const ucp_st_op_t *op = part->op;
    uint64_t puts         = ucp_st_trig_puts_wanted(op, uses);
    ucs_status_t status;

    while (part->posted[UCP_ST_TRIG_ENTRY_PUT] < puts) {
        status = ucp_st_trig_post_entry(part, UCP_ST_TRIG_ENTRY_PUT);
        if (status != UCS_OK) {
            status = ucp_st_trig_post_to_lost(part, status);
        }
        if (status != UCS_OK) {
            return status;
        }
        op->worker->stats.writes_posted += (op->dir == UCP_ST_DIR_SEND);
    }
    return UCS_OK;
}

static ucs_status_t ucp_st_trig_post_words(ucp_st_trig_part_t *part,
                                           uint64_t uses)
{
    ucs_status_t status;

    while (part->posted[UCP_ST_TRIG_ENTRY_WORD] < uses) {
        status = ucp_st_trig_post_entry(part, UCP_ST_TRIG_ENTRY_WORD);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

/* The worse of two results: want of entries passes */
static ucs_status_t ucp_st_trig_worse(ucs_status_t a, ucs_status_t b)
{
    return ((a == UCS_OK) || ((a == UCS_ERR_NO_RESOURCE) && (b != UCS_OK))) ?
           b : a;
}

/* As far as there are entries; UCS_ERR_NO_RESOURCE if that is not all */
static ucs_status_t ucp_st_trig_try_post(ucp_st_op_t *op, uint64_t uses)
{
    ucs_status_t result = UCS_OK;
    ucp_st_trig_part_t *part;
    unsigned i;

    for (i = 0; i < op->trig.num_parts; ++i) {
        part = &op->trig.parts[i];
        if (ucp_st_trig_has_put(op)) {
            result = ucp_st_trig_worse(result,
                                       ucp_st_trig_post_puts(part, uses));
        }
        result = ucp_st_trig_worse(result, ucp_st_trig_post_words(part, uses));
    }
    return result;
}

/* A send's counter gets 3 a use at most */
static int ucp_st_trig_exceeds(const ucp_st_op_t *op, uint64_t uses)
{
    return uses > (op->trig.parts[0].rail->attr.max_count / 3);
}

ucs_status_t ucp_st_trig_post(ucp_st_op_t *op, uint64_t uses)
{
    ucp_st_trig_dev_t *dev = &op->worker->trig;
    ucs_status_t status;

    if (ucp_st_trig_exceeds(op, uses)) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    status = ucp_st_trig_try_post(op, uses);
    if (status != UCS_ERR_NO_RESOURCE) {
        return status;
    }
    if (!op->trig.is_late) {
        op->trig.is_late = 1;
        if (dev->helped && ucs_list_is_empty(&dev->late)) {
            /* The thread takes its time while nobody is late */
            ucp_st_trig_dev_wake(op->worker);
        }
        ucs_list_add_tail(&dev->late, &op->trig.late_list);
    }
    return UCS_OK;
}

/* Uses that are posted whole */
static uint64_t ucp_st_trig_uses_posted(const ucp_st_op_t *op)
{
    uint64_t uses = UINT64_MAX;
    unsigned i;

    for (i = 0; i < op->trig.num_parts; ++i) {
        uses = ucs_min(uses,
                       op->trig.parts[i].posted[UCP_ST_TRIG_ENTRY_WORD]);
    }
    return uses;
}

void ucp_st_trig_post_late(ucp_st_worker_h worker)
{
    ucp_st_op_t *op, *tmp;
    ucs_status_t status;
    uint64_t before;

    /* All of them, not only the first: each has entries of its own, and the
     * first may wait for what a later one does (protocol-rules: a common
     * first-in-first-out list deadlocks) */
    ucs_list_for_each_safe(op, tmp, &worker->trig.late, trig.late_list) {
        before = ucp_st_trig_uses_posted(op);
        status = ucp_st_trig_try_post(op, op->started);
        worker->stats.late_posts += ucp_st_trig_uses_posted(op) - before;
        if (status == UCS_ERR_NO_RESOURCE) {
            continue;
        }
        ucp_st_trig_late_del(&op->trig);
        if (status != UCS_OK) {
            ucp_st_op_fail(op, status);
        }
    }
}
