/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_post.c - the trig lane: deferred work of the uses of one operation,
 * posted ahead as far as there are entries.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig_use.h"
#include "st_leave.h"
#include "st_op.h"
#include "st_worker.h"

#include <ucs/sys/math.h>

void ucp_st_trig_late_del(ucp_st_trig_op_t *trig)
{
    if (trig->is_late) {
        ucs_list_del(&trig->late_list);
        trig->is_late = 0;
    }
}

/* Puts up to a use. A joined send has none. The clear-to-sends of an
 * eager-ahead receive are one for half as many uses as the inbox holds, ahead
 * of these: what follows the last use of the sender is not wanted. Its data may
 * be here although it is gone. */
static uint64_t ucp_st_trig_puts_wanted(const ucp_st_trig_part_t *part,
                                        uint64_t uses)
{
    const ucp_st_op_t *op = part->op;

    if (op->trig.joined) {
        return 0;
    }
    if (!ucp_st_trig_has_inbox(op)) {
        return uses * ucp_st_trig_puts_per_use(part);
    }
    if (op->max_uses > 0) {
        uses = ucs_min(uses, op->max_uses - 1);
    }
    return uses / ucp_st_trig_plan_round(&op->trig.plan);
}

static ucs_status_t ucp_st_trig_post_to_lost(ucp_st_trig_part_t *part,
                                             ucs_status_t status)
{
    if (!ucp_st_trig_has_inbox(part->op) || !ucp_st_trig_is_loss(status)) {
        return status;
    }
    ucp_st_leave_lost(part->op->peer, status);
    ++part->posted[UCP_ST_TRIG_ENTRY_PUT];
    return UCS_OK;
}

static ucs_status_t ucp_st_trig_post_puts(ucp_st_trig_part_t *part,
                                          uint64_t uses)
{
    const ucp_st_op_t *op = part->op;
    uint64_t puts         = ucp_st_trig_puts_wanted(part, uses);
    ucs_status_t status;

    while (part->posted[UCP_ST_TRIG_ENTRY_PUT] < puts) {
        status = ucp_st_trig_entry_post(part, UCP_ST_TRIG_ENTRY_PUT);
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

    while (!part->is_mirrored &&
           (part->posted[UCP_ST_TRIG_ENTRY_WORD] < uses)) {
        status = ucp_st_trig_entry_post(part, UCP_ST_TRIG_ENTRY_WORD);
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

/* Quick, and zero where that takes a closer look: most uses of eager-ahead
 * receives and of joined sends need nothing */
static int ucp_st_trig_is_posted(const ucp_st_op_t *op, uint64_t uses)
{
    const ucp_st_trig_part_t *part = &op->trig.parts[0];

    return op->is_exact && (op->trig.num_parts == 1) &&
           (!ucp_st_trig_has_put(op) ||
            (part->posted[UCP_ST_TRIG_ENTRY_PUT] >=
             ucp_st_trig_puts_wanted(part, uses)));
}

/* A counter gets 3 a use at most, or one for each write; no other part has more
 * of these than the first one. */
static uint64_t ucp_st_trig_last_use(const ucp_st_op_t *op)
{
    const ucp_st_trig_part_t *part = &op->trig.parts[0];

    return part->rail->attr.max_count / ucs_max(part->num_puts, 3);
}

/* Where starts take no more than a look at the operation: a joined send's are
 * items of a list, those of a receive that puts nothing are nothing at all */
static int ucp_st_trig_is_plain(const ucp_st_op_t *op)
{
    return op->is_exact && (op->trig.num_parts == 1) &&
           (op->trig.joined || !ucp_st_trig_has_put(op));
}

ucs_status_t ucp_st_trig_post(ucp_st_op_t *op, uint64_t uses)
{
    ucp_st_trig_dev_t *dev = &op->worker->trig;
    ucs_status_t status;

    if (uses > ucp_st_trig_last_use(op)) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    status = ucp_st_trig_is_posted(op, uses) ?
             UCS_OK : ucp_st_trig_try_post(op, uses);
    if ((status == UCS_OK) && ucp_st_trig_is_plain(op)) {
        op->trig.plain_end = ucp_st_trig_last_use(op) + 1;
    }
    if (status != UCS_ERR_NO_RESOURCE) {
        return status;
    }
    if (!op->trig.is_late) {
        op->trig.is_late = 1;
        ucs_list_add_tail(&dev->late, &op->trig.late_list);
        ucp_st_trig_dev_late(op->worker);
    }
    return UCS_OK;
}

static uint64_t ucp_st_trig_part_posted(const ucp_st_trig_part_t *part)
{
    if (!part->is_mirrored) {
        return part->posted[UCP_ST_TRIG_ENTRY_WORD];
    }
    return part->posted[UCP_ST_TRIG_ENTRY_PUT] / ucp_st_trig_puts_per_use(part);
}

/* Uses that are posted whole */
static uint64_t ucp_st_trig_uses_posted(const ucp_st_op_t *op)
{
    uint64_t uses = UINT64_MAX;
    unsigned i;

    for (i = 0; i < op->trig.num_parts; ++i) {
        uses = ucs_min(uses, ucp_st_trig_part_posted(&op->trig.parts[i]));
    }
    return uses;
}

int ucp_st_trig_post_more(ucp_st_op_t *op)
{
    uint64_t before     = ucp_st_trig_uses_posted(op);
    ucs_status_t status = ucp_st_trig_try_post(op, op->started);

    op->worker->stats.late_posts += ucp_st_trig_uses_posted(op) - before;
    if (status == UCS_ERR_NO_RESOURCE) {
        return 0;
    }
    ucp_st_trig_late_del(&op->trig);
    if (status == UCS_OK) {
        return 0;
    }
    ucp_st_op_fail(op, status);
    return 1;
}

/* Non-zero if an operation failed, and others with it */
static int ucp_st_trig_try_post_late(ucp_st_worker_h worker)
{
    ucp_st_op_t *op, *tmp;

    /* All of them, not only the first: each has entries of its own, and the
     * first may wait for what a later one does (protocol-rules: a common
     * first-in-first-out list deadlocks) */
    ucs_list_for_each_safe(op, tmp, &worker->trig.late, trig.late_list) {
        if (ucp_st_trig_post_more(op)) {
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
