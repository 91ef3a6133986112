/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_post.c - the trig lane: deferred work of the uses of one operation,
 * posted ahead as far as there are entries.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig_use.h"
#include "ctrl/st_leave.h"
#include "core/st_op.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

void ucp_st_trig_late_del(ucp_st_trig_op_t *trig)
{
    if (trig->is_late) {
        ucs_list_del(&trig->late_list);
        trig->is_late = 0;
    }
}

/* Puts up to a use. The clear-to-sends of an eager-ahead receive are one for
 * half as many uses as the inbox holds, ahead of these: what follows the last
 * use of the sender is not wanted. Its data may be here although it is gone. */
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

    while (part->posted[UCP_ST_TRIG_ENTRY_PUT] < puts) {
        status = ucp_st_trig_entry_post(part, UCP_ST_TRIG_ENTRY_PUT);
        if (ucp_st_trig_has_inbox(op) && ucp_st_trig_is_loss(status)) {
            /* A clear-to-send: what was sent ahead may be here all the same */
            ucp_st_leave_lost(op->peer, status);
            ++part->posted[UCP_ST_TRIG_ENTRY_PUT];
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

/* As far as there are entries; UCS_ERR_NO_RESOURCE if that is not all */
static ucs_status_t ucp_st_trig_try_post(ucp_st_op_t *op, uint64_t uses)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    ucs_status_t result    = UCS_OK;
    ucp_st_trig_part_t *part;
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        part   = &trig->parts[i];
        status = UCS_OK;
        if (ucp_st_trig_has_put(op)) {
            result = ucp_st_trig_worse(result,
                                       ucp_st_trig_post_puts(part, uses));
        }
        while ((part->posted[UCP_ST_TRIG_ENTRY_WORD] < uses) &&
               (status == UCS_OK)) {
            status = ucp_st_trig_entry_post(part, UCP_ST_TRIG_ENTRY_WORD);
        }
        result = ucp_st_trig_worse(result, status);
    }
    return result;
}

ucs_status_t ucp_st_trig_post(ucp_st_op_t *op, uint64_t use)
{
    ucp_st_trig_op_t *trig         = ucp_st_trig_op(op);
    ucp_st_trig_dev_t *dev         = ucp_st_trig_dev(op->worker);
    const ucp_st_trig_part_t *part = &trig->parts[0];
    uint64_t max                   = part->rail->attr.max_count;
    uint64_t max_starts            = (part->base > 0) ? (part->base - 1) :
                                                        (max / 2);
    ucs_status_t status;

    /* T gets 3 a use at most, and all of them together are less than its base,
     * if it has one; else it gets as much again where an operation is disposed
     * of. C and D get one for each write, and no other part has more of these
     * than the first one. */
    if (use > ucs_min(max_starts / 3, max / part->num_puts)) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    status = ucp_st_trig_try_post(op, use);
    if (status != UCS_ERR_NO_RESOURCE) {
        return status;
    }
    if (!trig->is_late) {
        trig->is_late = 1;
        ucs_list_add_tail(&dev->late, &trig->late_list);
        ucp_st_trig_dev_wake(op->worker);
    }
    return UCS_OK;
}

/* Uses that are posted whole */
static uint64_t ucp_st_trig_uses_posted(const ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    uint64_t uses          = UINT64_MAX;
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        uses = ucs_min(uses,
                       trig->parts[i].posted[UCP_ST_TRIG_ENTRY_WORD]);
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
    ucp_st_trig_late_del(ucp_st_trig_op(op));
    if (status == UCS_OK) {
        return 0;
    }
    ucp_st_op_fail(op, status);
    return 1;
}

void ucp_st_trig_post_late(ucp_st_worker_h worker)
{
    ucs_list_link_t *late = &ucp_st_trig_dev(worker)->late;
    ucp_st_trig_op_t *trig, *tmp;
    int has_failed;

    /* All of them, not only the first: each has entries of its own, and the
     * first may wait for what a later one does (protocol-rules: a common
     * first-in-first-out list deadlocks). When one failed, and others with it,
     * the list is another one. */
    do {
        has_failed = 0;
        ucs_list_for_each_safe(trig, tmp, late, late_list) {
            has_failed = ucp_st_trig_post_more(trig->op);
            if (has_failed) {
                break;
            }
        }
    } while (has_failed);
}
