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
    ucp_st_trig_drain_check(op);
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
    /* Where the NIC tells of a bad key: it was good at match, so the peer has
     * closed its region since. Its message says whether this side misses
     * anything by that; a clear-to-send behind the last use is not missed. */
    ucp_st_trig_doubt_add(op, (status == UCS_ERR_INVALID_ADDR) ?
                              UCS_ERR_CANCELED : status);
    return UCS_OK;
}

/* Of a use's writes all count but one */
static int ucp_st_trig_is_chunk(const ucp_st_trig_part_t *part)
{
    return (part != part->op->trig.parts) ||
           ((part->done[UCP_ST_TRIG_ENTRY_PUT] % part->share.puts) != 0);
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
        stats->chunks += ucp_st_trig_is_chunk(part);
    } else {
        ++stats->cts_fired;
    }
    ucp_st_trig_entry_done(part, UCP_ST_TRIG_ENTRY_PUT, status);
}

/* Uses that all parts have counted up */
static uint64_t ucp_st_trig_uses_counted(const ucp_st_trig_op_t *trig)
{
    uint64_t uses = UINT64_MAX;
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        uses = ucs_min(uses, trig->parts[i].words);
    }
    return uses;
}

static void ucp_st_trig_word_done(void *arg, ucs_status_t status)
{
    ucp_st_trig_part_t *part = arg;
    ucp_st_op_t *op          = part->op;

    if (status == UCS_OK) {
        ++op->worker->stats.atomics_fired;
        ucs_gstream_wake(&part->slot->word);
        ++part->words;
        if (ucp_st_trig_uses_counted(&op->trig) > op->trig.uses) {
            ++op->trig.uses;
            op->worker->stats.eager +=
                    (op->trig.plan.proto == UCP_ST_TRIG_EAGER);
            ucp_st_op_complete_use(op);
        }
    }
    if (op->trig.released) {
        /* A NIC's addition that was under way may have read the word before the
         * release was stored and written it after: each such addition ends up
         * here, so the last one to finish is followed by this store. */
        ucp_st_trig_store_release(op);
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

/* See st_trig.h. What a start adds and the clear-to-sends that there are. */
static uint64_t ucp_st_trig_put_threshold(const ucp_st_op_t *op, uint64_t use)
{
    if (op->dir == UCP_ST_DIR_RECV) {
        return use;
    }
    return (use * ucp_st_trig_weight(op)) + ucp_st_trig_cts_needed(op, use);
}

/* One write of a use's data. An empty message is a byte, because a write of 0
 * bytes is not counted everywhere. */
static void ucp_st_trig_fill_data(const ucp_st_trig_part_t *part, uint64_t use,
                                  size_t chunk, uct_trig_put_t *put)
{
    const ucp_st_op_t *op = part->op;
    size_t offset         = chunk * op->trig.plan.put_max;

    if (part->share.length == 0) {
        put->buffer = &part->slot->pad;
        put->length = 1;
        return;
    }
    put->buffer       = UCS_PTR_BYTE_OFFSET(op->buffer,
                                            part->share.offset + offset);
    put->length       = ucs_min(part->share.length - offset,
                                op->trig.plan.put_max);
    put->remote_addr += offset;
    if (op->trig.plan.proto == UCP_ST_TRIG_EAGER) {
        put->remote_addr += ucp_st_trig_inbox_offset(op, use);
    }
}

/* Put number `index` of the part, counted from 0 */
static ucs_status_t ucp_st_trig_post_put(ucp_st_trig_part_t *part,
                                         uint64_t index,
                                         uct_trig_deferred_t *deferred)
{
    const ucp_st_op_t *op = part->op;
    size_t puts           = ucp_st_trig_puts_per_use(part);
    uint64_t use          = (index / puts) + 1;
    uct_trig_put_t put    = {
        .buffer      = &part->slot->pad,
        .length      = sizeof(part->slot->pad),
        .local       = part->local,
        .remote_addr = part->remote.address,
        .rkey        = part->remote
    };

    if (op->dir == UCP_ST_DIR_SEND) {
        ucp_st_trig_fill_data(part, use, index % puts, &put);
        deferred->completion = part->data;
    }
    deferred->trigger   = part->start;
    deferred->threshold = ucp_st_trig_put_threshold(op, use);
    deferred->done      = (deferred->resv != NULL) ?
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

    deferred->trigger   = part->data;
    deferred->threshold = use * part->share.puts;
    deferred->done      = (deferred->resv != NULL) ?
                          ucp_st_trig_word_done : ucp_st_trig_ahead_word_done;
    return uct_trig_ep_atomic_add64(part->rail->self_ep, &atomic, deferred);
}

/* From the operation's own entries if one is free, else from the common ones */
static ucs_status_t ucp_st_trig_post_entry(ucp_st_trig_part_t *part,
                                           ucp_st_trig_entry_t entry)
{
    ucp_st_trig_rail_t *rail     = part->rail;
    uct_trig_resv_t *resv        = &part->resv[entry];
    uint64_t index               = part->posted[entry];
    uct_trig_deferred_t deferred = {
        .resv = (resv->used < resv->total) ? resv : NULL,
        .arg  = part
    };
    ucs_status_t status;

    if ((deferred.resv == NULL) && (rail->ahead >= rail->max_ahead)) {
        return UCS_ERR_NO_RESOURCE;
    }
    status = (entry == UCP_ST_TRIG_ENTRY_PUT) ?
             ucp_st_trig_post_put(part, index, &deferred) :
             ucp_st_trig_post_word(part, index + 1, &deferred);
    if (status == UCS_OK) {
        ++part->posted[entry];
        rail->ahead += (deferred.resv == NULL);
    }
    return status;
}

/* Puts up to a use. An eager-ahead receive's clear-to-sends are one for as many
 * uses as the inbox holds, ahead of these: what follows the sender's last use
 * is not wanted. Its data may be here although it is gone. */
static uint64_t ucp_st_trig_puts_wanted(const ucp_st_trig_part_t *part,
                                        uint64_t uses)
{
    const ucp_st_op_t *op = part->op;

    if (!ucp_st_trig_has_inbox(op)) {
        return uses * ucp_st_trig_puts_per_use(part);
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
    uint64_t puts         = ucp_st_trig_puts_wanted(part, uses);
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

/* A counter gets 3 a use at most, or one for each write; no other part has more
 * of these than the first one */
static int ucp_st_trig_exceeds(const ucp_st_op_t *op, uint64_t uses)
{
    const ucp_st_trig_part_t *part = &op->trig.parts[0];

    return uses > (part->rail->attr.max_count / ucs_max(part->share.puts, 3));
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

/* Non-zero if an operation failed, and others with it */
static int ucp_st_trig_try_post_late(ucp_st_worker_h worker)
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
            return 1;
        }
    }
    return 0;
}

void ucp_st_trig_post_late(ucp_st_worker_h worker)
{
    while (ucp_st_trig_try_post_late(worker)) {
        /* the list is another one */
    }
}
