/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_entry.c - the trig lane: the deferred work of one use, and what
 * happens when it is done.
 *
 * The work of one use is an operation's own, described once and posted for use
 * after use. While it is armed for one use, what is posted for the next ones
 * takes free entries, as far as these go (`ahead`).
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig_use.h"
#include "ctrl/st_leave.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "core/st_trace.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

/* For the trace */
static const char *ucp_st_trig_entry_name(const ucp_st_op_t *op,
                                          ucp_st_trig_entry_t entry)
{
    if (entry == UCP_ST_TRIG_ENTRY_WORD) {
        return "word";
    }
    return (op->dir == UCP_ST_DIR_SEND) ? "write" : "clear-to-send";
}

/* Count a finished entry; what hung on it may go on */
static void ucp_st_trig_entry_done(ucp_st_trig_part_t *part,
                                   ucp_st_trig_entry_t entry,
                                   ucs_status_t status)
{
    ucp_st_op_t *op = part->op;

    --part->pending[entry];
    ucp_st_trace_nic(op, UCP_ST_TRACE_REAP, ucp_st_trig_entry_name(op, entry),
                     ucp_st_trig_done(part, entry));
    if (status != UCS_OK) {
        ucp_st_op_fail(op, status);
    }
    if (ucp_st_trig_op(op)->is_late) {
        (void)ucp_st_trig_post_more(op); /* with this entry */
    }
    ucp_st_trig_drain_check(op);
    ucp_st_op_reap(op);
}

int ucp_st_trig_is_loss(ucs_status_t status)
{
    return (status == UCS_ERR_UNREACHABLE) ||
           (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_ENDPOINT_TIMEOUT);
}

/* The word was counted up for one more use of a part: the use is complete once
 * those of all parts are */
static void ucp_st_trig_word_counted(ucp_st_trig_part_t *part)
{
    ucp_st_op_t *op        = part->op;
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    unsigned i;

    ++part->words;
    for (i = 0; i < trig->num_parts; ++i) {
        if (trig->parts[i].words <= trig->uses) {
            return;
        }
    }
    ++trig->uses;
    op->worker->stats.eager += (trig->plan.proto == UCP_ST_TRIG_EAGER);
    ucp_st_op_complete_uses(op, 1);
}

static void ucp_st_trig_put_done(void *arg, ucs_status_t status)
{
    ucp_st_trig_part_t *part = arg;
    ucp_st_op_t *op          = part->op;
    ucp_st_stats_t *stats    = &op->worker->stats;

    if (ucp_st_trig_is_loss(status)) {
        /* The operation fails with the peer */
        ucp_st_leave_lost(op->peer, status);
    } else if (status != UCS_OK) {
        /* Where the NIC tells of a bad key: it was good at match, so the peer
         * has closed its region since. Its message says whether this side
         * misses anything by that; a clear-to-send behind the last use is not
         * missed. */
        ucp_st_trig_doubt_add(op, (status == UCS_ERR_INVALID_ADDR) ?
                                  UCS_ERR_CANCELED : status);
    } else if (op->dir == UCP_ST_DIR_SEND) {
        ++stats->writes_fired;
        /* Of a use's writes all are chunks but one */
        stats->chunks += (part != ucp_st_trig_op(op)->parts) ||
                         ((ucp_st_trig_done(part, UCP_ST_TRIG_ENTRY_PUT) %
                           part->num_puts) != 0);
    } else {
        ++stats->cts_fired;
    }
    ucp_st_trig_entry_done(part, UCP_ST_TRIG_ENTRY_PUT, UCS_OK);
}

static void ucp_st_trig_word_done(void *arg, ucs_status_t status)
{
    ucp_st_trig_part_t *part = arg;
    ucp_st_op_t *op          = part->op;

    if (status == UCS_OK) {
        ++op->worker->stats.atomics_fired;
        ucs_gstream_wake(&part->slot->word);
        ucp_st_trig_word_counted(part);
    }
    if (ucp_st_trig_op(op)->released) {
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

/* One write of a use's data. An empty message is a byte, because a write of 0
 * bytes is not counted everywhere. */
static void ucp_st_trig_fill_data(const ucp_st_trig_part_t *part, size_t chunk,
                                  uct_trig_put_t *put)
{
    const ucp_st_op_t *op  = part->op;
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    size_t offset          = chunk * trig->plan.put_max;
    size_t length          = ucp_st_trig_length(part);

    put->local = part->local;
    if (length == 0) {
        put->buffer = &part->slot->pad;
        put->length = 1;
        return;
    }
    put->buffer       = UCS_PTR_BYTE_OFFSET(op->buffer,
                                            ucp_st_trig_offset(part) + offset);
    put->length       = ucs_min(length - offset, trig->plan.put_max);
    put->remote_addr += offset;
}

/* Put number `chunk` of a use, counted from 0, to where the first use has it */
static void ucp_st_trig_fill_put(ucp_st_trig_part_t *part, size_t chunk,
                                 uct_trig_put_t *put,
                                 uct_trig_deferred_t *deferred)
{
    *put = (uct_trig_put_t){
        .buffer      = &part->slot->pad,
        .length      = sizeof(part->slot->pad),
        .remote_addr = part->remote.address,
        .rkey        = part->remote
    };
    *deferred = (uct_trig_deferred_t){
        .trigger = part->start,
        .resv    = &part->resv[UCP_ST_TRIG_ENTRY_PUT],
        .done    = ucp_st_trig_put_done,
        .arg     = part
    };
    if (part->op->dir == UCP_ST_DIR_SEND) {
        ucp_st_trig_fill_data(part, chunk, put);
        deferred->completion = part->data;
    }
}

static void ucp_st_trig_fill_word(ucp_st_trig_part_t *part,
                                  uct_trig_atomic_t *atomic,
                                  uct_trig_deferred_t *deferred)
{
    *atomic = (uct_trig_atomic_t){
        .value       = 1,
        .remote_addr = (uintptr_t)&part->slot->word,
        .rkey        = part->slot_slab->rkey
    };
    *deferred = (uct_trig_deferred_t){
        .trigger = part->data,
        .resv    = &part->resv[UCP_ST_TRIG_ENTRY_WORD],
        .done    = ucp_st_trig_word_done,
        .arg     = part
    };
}

ucs_status_t ucp_st_trig_entries_create(ucp_st_trig_part_t *part)
{
    size_t count = ucp_st_trig_has_put(part->op) *
                   ucp_st_trig_puts_per_use(part);
    uct_trig_deferred_t deferred;
    uct_trig_atomic_t atomic;
    ucs_status_t status;
    uct_trig_put_t put;
    size_t i;

    for (i = 0; i < count; ++i) {
        ucp_st_trig_fill_put(part, i, &put, &deferred);
        status = uct_trig_op_create_put(part->ep, &put, &deferred,
                                        &part->puts[i]);
        if (status != UCS_OK) {
            return status;
        }
    }
    ucp_st_trig_fill_word(part, &atomic, &deferred);
    return uct_trig_op_create_add64(part->rail->self_ep, &atomic, &deferred,
                                    &part->word_add);
}

static void ucp_st_trig_entry_destroy(uct_trig_op_h entry)
{
    if (entry != NULL) {
        (void)uct_trig_op_destroy(entry);
    }
}

void ucp_st_trig_entries_destroy(ucp_st_trig_part_t *part)
{
    size_t i;

    for (i = 0; i < ucp_st_trig_puts_per_use(part); ++i) {
        ucp_st_trig_entry_destroy(part->puts[i]);
    }
    ucp_st_trig_entry_destroy(part->word_add);
}

/* The operation's own entry: it goes on when that is reaped, but for what the
 * NIC had no room for */
static ucs_status_t ucp_st_trig_entry_post_own(ucp_st_trig_part_t *part,
                                               uct_trig_op_h entry,
                                               uint64_t threshold,
                                               size_t offset)
{
    ucs_status_t status = uct_trig_op_post(entry, threshold, offset);

    if (status == UCS_ERR_NO_RESOURCE) {
        ucp_st_trig_dev(part->op->worker)->is_starved = 1;
    }
    return status;
}

/* Put number `index` of the part, counted from 0 */
static ucs_status_t ucp_st_trig_entry_post_put(ucp_st_trig_part_t *part,
                                               uint64_t index)
{
    size_t puts        = ucp_st_trig_puts_per_use(part);
    uint64_t use       = 1 + (index / puts);
    size_t chunk       = index % puts;
    uint64_t threshold = ucp_st_trig_put_threshold(part, use);
    size_t offset      = ucp_st_trig_put_offset(part->op, use);
    uct_trig_deferred_t deferred;
    ucs_status_t status;
    uct_trig_put_t put;

    status = ucp_st_trig_entry_post_own(part, part->puts[chunk], threshold,
                                        offset);
    if (status != UCS_ERR_BUSY) {
        return status;
    }
    if (part->rail->ahead >= part->rail->max_ahead) {
        return UCS_ERR_NO_RESOURCE;
    }
    ucp_st_trig_fill_put(part, chunk, &put, &deferred);
    put.remote_addr   += offset;
    deferred.threshold = threshold;
    deferred.resv      = NULL;
    deferred.done      = ucp_st_trig_ahead_put_done;
    status             = uct_trig_ep_put(part->ep, &put, &deferred);
    part->rail->ahead += (status == UCS_OK);
    return status;
}

static ucs_status_t ucp_st_trig_entry_post_word(ucp_st_trig_part_t *part,
                                                uint64_t use)
{
    uint64_t threshold = use * part->num_puts;
    uct_trig_deferred_t deferred;
    uct_trig_atomic_t atomic;
    ucs_status_t status;

    status = ucp_st_trig_entry_post_own(part, part->word_add, threshold, 0);
    if (status != UCS_ERR_BUSY) {
        return status;
    }
    if (part->rail->ahead >= part->rail->max_ahead) {
        return UCS_ERR_NO_RESOURCE;
    }
    ucp_st_trig_fill_word(part, &atomic, &deferred);
    deferred.threshold = threshold;
    deferred.resv      = NULL;
    deferred.done      = ucp_st_trig_ahead_word_done;
    status             = uct_trig_ep_atomic_add64(part->rail->self_ep, &atomic,
                                                  &deferred);
    part->rail->ahead += (status == UCS_OK);
    return status;
}

ucs_status_t ucp_st_trig_entry_post(ucp_st_trig_part_t *part,
                                    ucp_st_trig_entry_t entry)
{
    uint64_t index = part->posted[entry];
    ucs_status_t status;

    status = (entry == UCP_ST_TRIG_ENTRY_PUT) ?
             ucp_st_trig_entry_post_put(part, index) :
             ucp_st_trig_entry_post_word(part, index + 1);
    if (status == UCS_OK) {
        ++part->posted[entry];
        ++part->pending[entry];
        ucp_st_trace_nic(part->op, UCP_ST_TRACE_POST,
                         ucp_st_trig_entry_name(part->op, entry), index + 1);
    }
    return status;
}
