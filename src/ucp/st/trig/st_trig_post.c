/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_post.c - the trig lane: the deferred work of the uses of one
 * operation, posted ahead as far as there are entries, and what happens when it
 * is done.
 *
 * The work of one use is described once and posted for use after use, also
 * ahead of uses that are not over. It takes entries of the NIC when it is
 * posted, and a use that finds none is late: it is posted when others are over.
 * Its trigger may be there before: then the host has the NIC carry it out with
 * no entry. Either is done with the lock held, and so only one of the two.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig.h"
#include "core/st_peer.h"
#include "core/st_trace.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

int ucp_st_trig_is_loss(ucs_status_t status)
{
    return (status == UCS_ERR_UNREACHABLE) ||
           (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_ENDPOINT_TIMEOUT);
}

/* For the trace */
static const char *ucp_st_trig_put_name(const ucp_st_op_t *op)
{
    return (op->dir == UCP_ST_DIR_SEND) ? "write" : "clear-to-send";
}

/* Uses that are posted whole */
static uint64_t ucp_st_trig_uses_posted(const ucp_st_trig_op_t *trig)
{
    uint64_t uses = UINT64_MAX;
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        uses = ucs_min(uses, trig->parts[i].done->line.posted);
    }
    return uses;
}

void ucp_st_trig_post_more(ucp_st_trig_late_t *late)
{
    ucp_st_trig_op_t *trig = ucs_container_of(late, ucp_st_trig_op_t, late);
    ucp_st_op_t *op        = trig->op;
    uint64_t before        = ucp_st_trig_uses_posted(trig);
    ucs_status_t status    = ucp_st_trig_post(op, op->started);

    op->worker->stats.late_posts += ucp_st_trig_uses_posted(trig) - before;
    if (status != UCS_OK) {
        ucp_st_trig_late_del(late);
        ucp_st_op_fail(op, status);
    }
}

/* Something of an operation has ended: go on with what waited for that. The
 * operation may be gone afterwards. */
static void ucp_st_trig_go_on(ucp_st_op_t *op)
{
    ucp_st_trig_late_t *late = &ucp_st_trig_op(op)->late;

    if (late->is_late) {
        late->post(late); /* with this entry */
    }
    ucp_st_trig_drain_check(op);
    ucp_st_op_reap(op);
}

static void ucp_st_trig_put_done(void *arg, ucs_status_t status)
{
    ucp_st_trig_part_t *part = arg;
    ucp_st_trig_line_t *line = &part->line;
    ucp_st_op_t *op          = part->op;
    ucp_st_stats_t *stats    = &op->worker->stats;

    if (ucp_st_trig_is_loss(status)) {
        /* The operation fails with the peer */
        ucp_st_peer_lost(op->peer, status);
    } else if (status == UCS_ERR_CANCELED) {
        /* By this side, in place of its disposal */
    } else if (status != UCS_OK) {
        /* Where the NIC reports a bad key: it was good at match, so the peer
         * has closed its region since. Its message says whether this side
         * misses anything by that; a clear-to-send behind the last use is not
         * missed. */
        ucp_st_trig_doubt_add(op, (status == UCS_ERR_INVALID_ADDR) ?
                                  UCS_ERR_CANCELED : status);
    } else if (op->dir == UCP_ST_DIR_SEND) {
        ++stats->writes_fired;
        /* Of a use's writes all are chunks but one */
        stats->chunks += (part != ucp_st_trig_op(op)->parts) ||
                         (((line->posted - line->pending) % part->num_puts) !=
                          0);
    } else {
        ++stats->cts_fired;
    }
    ucp_st_trig_line_over(line, part->rail);
    ucp_st_trace_nic(op, UCP_ST_TRACE_REAP, ucp_st_trig_put_name(op),
                     line->posted - line->pending);
    ucp_st_trig_go_on(op);
}

/* Uses that all parts have counted up */
static uint64_t ucp_st_trig_uses_counted(const ucp_st_trig_op_t *trig)
{
    uint64_t uses = trig->parts[0].done->words;
    unsigned i;

    for (i = 1; i < trig->num_parts; ++i) {
        uses = ucs_min(uses, trig->parts[i].done->words);
    }
    return uses;
}

/* The word that a part waits on was counted up, or that has failed */
static void ucp_st_trig_part_counted(ucp_st_trig_part_t *part,
                                     ucs_status_t status)
{
    ucp_st_op_t *op        = part->op;
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    if (status == UCS_OK) {
        if (ucp_st_trig_uses_counted(trig) > op->completed) {
            op->worker->stats.eager += (trig->plan.proto == UCP_ST_TRIG_EAGER);
            ucp_st_op_complete_uses(op, 1);
        }
    } else if (status != UCS_ERR_CANCELED) {
        ucp_st_op_fail(op, status);
    }
    ucp_st_trig_go_on(op);
}

void ucp_st_trig_word_done(void *arg, ucs_status_t status)
{
    ucp_st_trig_done_t *done = arg;
    ucp_st_trig_part_t *part = ucs_list_head(&done->parts, ucp_st_trig_part_t,
                                             done_list);
    uint32_t left            = done->num_parts;
    ucp_st_trig_part_t *next;

    ucp_st_trig_line_over(&done->line, done->rail);
    ucp_st_trace_nic(part->op, UCP_ST_TRACE_REAP, "word",
                     done->line.posted - done->line.pending);
    if (status == UCS_OK) {
        ++part->op->worker->stats.atomics_fired;
        ucs_gstream_wake(done->tally.word);
        ++done->words;
    }
    /* A NIC's addition that was under way may have read the word before the
     * release was stored and written it after: each such addition ends up here,
     * so the last one to finish is followed by this store. */
    ucp_st_trig_done_store(done);
    /* Each may go, and with the last one `done` */
    for (; left > 0; --left, part = next) {
        next = (left > 1) ? ucs_list_next(&part->done_list, ucp_st_trig_part_t,
                                          done_list) : NULL;
        ucp_st_trig_part_counted(part, status);
    }
}

/* Put number `chunk` of a use, counted from 0, to where the first use has it */
static void ucp_st_trig_fill_put(ucp_st_trig_part_t *part, size_t chunk,
                                 ucp_st_trig_work_t *work)
{
    const ucp_st_op_t *op = part->op;
    uct_trig_put_t *put   = &work->put;
    ucp_st_trig_share_t share;
    size_t offset;

    work->type     = UCP_ST_TRIG_WORK_PUT;
    work->ep       = part->ep;
    work->put      = (uct_trig_put_t){
        .buffer      = part->pad.address,
        .length      = sizeof(uint64_t),
        .remote_addr = part->remote.address,
        .rkey        = part->remote
    };
    work->deferred = (uct_trig_deferred_t){
        .trigger = (part->start == NULL) ? NULL :
                   part->start->trigger.cntr,
        .done    = ucp_st_trig_put_done,
        .arg     = part
    };
    if (op->dir == UCP_ST_DIR_RECV) {
        return;
    }
    work->deferred.completion = part->done->tally.cntr;
    put->local                = part->local;
    ucp_st_trig_share(part, &share);
    if (share.length == 0) {
        put->length = 1; /* a write of 0 bytes is not counted everywhere */
        return;
    }
    offset            = chunk * ucp_st_trig_op(op)->plan.put_max;
    put->buffer       = UCS_PTR_BYTE_OFFSET(op->data, share.offset + offset);
    put->length       = ucs_min(share.length - offset,
                                ucp_st_trig_op(op)->plan.put_max);
    put->remote_addr += offset;
}

ucs_status_t ucp_st_trig_puts_create(ucp_st_trig_part_t *part)
{
    ucp_st_trig_work_t work;
    ucs_status_t status;
    size_t i;

    for (i = 0; i < ucp_st_trig_puts_per_use(part); ++i) {
        ucp_st_trig_fill_put(part, i, &work);
        status = uct_trig_op_create_put(work.ep, &work.put, &work.deferred,
                                        &part->puts[i]);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

void ucp_st_trig_puts_destroy(ucp_st_trig_part_t *part)
{
    size_t count = (part->puts == NULL) ? 0 : ucp_st_trig_puts_per_use(part);
    size_t i;

    for (i = 0; i < count; ++i) {
        if (part->puts[i] != NULL) {
            (void)uct_trig_op_destroy(part->puts[i]);
        }
    }
}

/* What the puts of a use wait for: what starts add, and of a send the
 * clear-to-sends that the use needs, of all that there were */
static uint64_t ucp_st_trig_put_threshold(const ucp_st_trig_part_t *part,
                                          uint64_t use)
{
    const ucp_st_op_t *op          = part->op;
    const ucp_st_trig_plan_t *plan = &ucp_st_trig_op(op)->plan;
    const ucp_st_trig_start_t *start = part->start;
    uint64_t value                   = start->trigger.base +
                                       (use * (start->trigger.weight +
                                               start->num_clears));

    return ((op->dir == UCP_ST_DIR_SEND) &&
            (plan->proto == UCP_ST_TRIG_EAGER)) ?
           (value + ucp_st_trig_plan_clears(plan, use)) : value;
}

/* What has been described already, for another use */
static void ucp_st_trig_fill_own(uct_trig_op_h op, uct_trig_cntr_h trigger,
                                 uint64_t threshold, size_t offset,
                                 ucp_st_trig_work_t *work)
{
    work->type               = UCP_ST_TRIG_WORK_OWN;
    work->own.op             = op;
    work->own.offset         = offset;
    work->deferred.trigger   = trigger;
    work->deferred.threshold = threshold;
    work->deferred.is_due    = 0;
}

/* Post the next put: UCS_OK, UCS_ERR_NO_RESOURCE if no entry is free for it and
 * it is not due, or another error; no effect then */
static ucs_status_t ucp_st_trig_put_post(ucp_st_trig_part_t *part)
{
    const ucp_st_op_t *op = part->op;
    size_t per_use        = ucp_st_trig_puts_per_use(part);
    uint64_t use          = 1 + (part->line.posted / per_use);
    size_t chunk          = part->line.posted % per_use;
    uint64_t threshold    = ucp_st_trig_put_threshold(part, use);
    size_t offset         = 0;
    ucp_st_trig_work_t work;
    ucs_status_t status;

    if ((op->dir == UCP_ST_DIR_SEND) &&
        (ucp_st_trig_op(op)->plan.proto == UCP_ST_TRIG_EAGER)) {
        offset = ucp_st_trig_inbox_offset(op, use);
    }
    ucp_st_trig_fill_own(part->puts[chunk], part->start->trigger.cntr,
                         threshold, offset, &work);
    status = ucp_st_trig_line_post(&part->line, part->rail, &work, 0);
    if (status == UCS_ERR_BUSY) {
        /* Another one; or the provider has lost it */
        ucp_st_trig_fill_put(part, chunk, &work);
        work.put.remote_addr    += offset;
        work.deferred.threshold  = threshold;
        status = ucp_st_trig_line_post(&part->line, part->rail, &work, 0);
    }
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_trace_nic(op, UCP_ST_TRACE_POST, ucp_st_trig_put_name(op),
                     part->line.posted);
    return UCS_OK;
}

/* The same for the next addition to a word */
static ucs_status_t ucp_st_trig_word_post(const ucp_st_op_t *op,
                                          ucp_st_trig_done_t *done)
{
    uint64_t threshold = (done->line.posted + 1) * done->num_puts;
    ucp_st_trig_work_t work;
    ucs_status_t status;

    ucp_st_trig_fill_own(done->word_add, done->tally.cntr, threshold, 0,
                         &work);
    status = ucp_st_trig_line_post(&done->line, done->rail, &work, 0);
    if (status == UCS_ERR_BUSY) {
        ucp_st_trig_done_fill(done, &work);
        work.deferred.threshold = threshold;
        status = ucp_st_trig_line_post(&done->line, done->rail, &work, 0);
    }
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_trace_nic(op, UCP_ST_TRACE_POST, "word", done->line.posted);
    return UCS_OK;
}

/* Puts up to a use. An eager-ahead receive has one clear-to-send for each round
 * of uses, ahead of these. The one that follows the last use of the sender is
 * not wanted: the data may be here although the sender is gone. */
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
    return uses / ucp_st_trig_plan_round(&ucp_st_trig_op(op)->plan);
}

static ucs_status_t ucp_st_trig_post_puts(ucp_st_trig_part_t *part,
                                          uint64_t uses)
{
    const ucp_st_op_t *op = part->op;
    uint64_t puts         = ucp_st_trig_puts_wanted(part, uses);
    ucs_status_t status;

    while (part->line.posted < puts) {
        status = ucp_st_trig_put_post(part);
        if (ucp_st_trig_has_inbox(op) && ucp_st_trig_is_loss(status)) {
            /* A clear-to-send: what was sent ahead may be here all the same */
            ucp_st_peer_lost(op->peer, status);
            ++part->line.posted;
        } else if (status != UCS_OK) {
            return status;
        }
        op->worker->stats.writes_posted += (op->dir == UCP_ST_DIR_SEND);
    }
    return UCS_OK;
}

/* The worse of two results: want of entries passes */
static ucs_status_t ucp_st_trig_worse(ucs_status_t a, ucs_status_t b)
{
    return ((a == UCS_OK) || ((a == UCS_ERR_NO_RESOURCE) && (b != UCS_OK))) ?
           b : a;
}

/* All that T gets is less than its base, if it has one; else it gets as much
 * again where an operation is disposed of. C and D get one for each write. */
static uint64_t ucp_st_trig_uses_max(const ucp_st_trig_part_t *part)
{
    const ucp_st_trig_start_t *start = part->start;
    uint64_t max                     = part->rail->attr.max_count;
    uint64_t uses                    = max / part->done->num_puts;
    uint64_t base;

    if (start == NULL) {
        return uses;
    }
    base = start->trigger.base;
    return ucs_min(uses, ((base > 0) ? (base - 1) : (max / 2)) /
                         ucp_st_trig_start_max(start));
}

/* As far as there are entries: the operation is late if that is not all */
ucs_status_t ucp_st_trig_post(ucp_st_op_t *op, uint64_t use)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    ucs_status_t result    = UCS_OK;
    ucp_st_trig_part_t *part;
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        if (use > ucp_st_trig_uses_max(&trig->parts[i])) {
            return UCS_ERR_EXCEEDS_LIMIT;
        }
    }
    for (i = 0; i < trig->num_parts; ++i) {
        part   = &trig->parts[i];
        status = UCS_OK;
        result = ucp_st_trig_worse(result, ucp_st_trig_post_puts(part, use));
        while ((part->done->line.posted < use) && (status == UCS_OK)) {
            status = ucp_st_trig_word_post(op, part->done);
        }
        result = ucp_st_trig_worse(result, status);
    }
    if (result == UCS_OK) {
        ucp_st_trig_late_del(&trig->late);
    } else if (result == UCS_ERR_NO_RESOURCE) {
        ucp_st_trig_late_add(op->worker, &trig->late);
        result = UCS_OK;
    }
    return result;
}
