/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_end.c - the trig lane: puts that failed, and the end of an operation.
 *
 * Doubt. A NIC reports that a put failed, but not why: it may be a fault, or
 * the peer has closed its region. In the latter case the peer has freed its
 * half, or failed, and gave the message about that to UCP when it closed the
 * region. That message comes soon and decides what happens to the operation.
 * If none comes in time it was a fault.
 *
 * Drain. A send's puts read the user's buffer, so its waits pass only when no
 * put is armed or under way any more. A put that has fired ends by itself. One
 * that is armed is fired (disposed of) when the peer's service thread has said
 * that its region is closed, so that the put reaches nothing. If the peer says
 * nothing, and NICs still reach it, what is armed is cancelled after a time.
 * That stops all of the NIC's deferred work for a moment, so it is not the way
 * of every failure. Where the provider does not cancel what is armed stays
 * armed, and starts have no effect any more (docs/protocols.md, "Known
 * limits"). The puts of a receive are clear-to-sends, and read nothing of the
 * user's.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig.h"
#include "core/st_log.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

/* How long the message about a failed put may take, seconds */
#define UCP_ST_TRIG_DOUBT_TIME 1.0

/* How long a silent peer holds up a stream, seconds; at most a quarter of
 * UCX_ST_ERR_TIMEOUT, of which the rest is for detection */
#define UCP_ST_TRIG_DRAIN_TIME 2.0

static void ucp_st_trig_end_add(ucp_st_trig_op_t *trig, double time)
{
    ucp_st_worker_h worker = trig->op->worker;

    trig->deadline = ucp_st_worker_now() + time;
    ucs_list_add_tail(&ucp_st_trig_dev(worker)->ending, &trig->end_list);
    ucp_st_trig_dev_wake(worker);
}

/* An operation that drains has failed, and is not in doubt */
void ucp_st_trig_end_del(ucp_st_trig_op_t *trig)
{
    if ((trig->doubt != UCS_OK) || trig->is_draining) {
        ucs_list_del(&trig->end_list);
        trig->doubt       = UCS_OK;
        trig->is_draining = 0;
    }
}

void ucp_st_trig_doubt_add(ucp_st_op_t *op, ucs_status_t status)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    if ((trig->doubt != UCS_OK) || (op->state != UCP_ST_OP_MATCHED) ||
        (op->max_uses != UINT64_MAX)) {
        return; /* the reason is known */
    }
    trig->doubt = status;
    ucp_st_trig_end_add(trig, UCP_ST_TRIG_DOUBT_TIME);
}

/* The NIC may read the user's buffer */
static int ucp_st_trig_is_reading(const ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    unsigned i;

    for (i = 0; (i < trig->num_parts) && (op->dir == UCP_ST_DIR_SEND); ++i) {
        if (trig->parts[i].line.pending > 0) {
            return 1;
        }
    }
    return 0;
}

/* Fire the additions to the words, which are not waited for any more */
static void ucp_st_trig_fire_words(ucp_st_trig_op_t *trig)
{
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        ucp_st_trig_shared_settle(&trig->parts[i]);
    }
}

void ucp_st_trig_halt(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    unsigned i;

    if (trig != NULL) {
        ucp_st_trig_ahead_halt(trig);
    }
    for (i = 0; (trig != NULL) && (i < trig->num_parts); ++i) {
        if (trig->parts[i].start != NULL) {
            (void)ucp_st_trig_trigger_halt(&trig->parts[i].start->trigger);
        }
    }
}

static void ucp_st_trig_release_words(ucp_st_trig_op_t *trig)
{
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        ucp_st_trig_shared_release(&trig->parts[i]);
    }
}

static void ucp_st_trig_drain_end(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    ucp_st_trig_end_del(trig);
    trig->is_canceling = 0;
    trig->released     = 1;
    ucp_st_trig_release_words(trig);
    if (trig->disposed) {
        ucp_st_trig_fire_words(trig);
    }
}

void ucp_st_trig_drain_check(ucp_st_op_t *op)
{
    if (ucp_st_trig_op(op)->is_draining && !ucp_st_trig_is_reading(op)) {
        ucp_st_trig_drain_end(op);
    }
}

void ucp_st_trig_release_waits(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    if ((trig == NULL) || trig->released || trig->is_draining) {
        return;
    }
    ucp_st_trig_late_del(&trig->late);
    ucp_st_trig_end_del(trig);
    if (!ucp_st_trig_is_reading(op)) {
        ucp_st_trig_drain_end(op);
        return;
    }
    trig->is_draining = 1;
    ucp_st_trig_end_add(trig, ucs_min(UCP_ST_TRIG_DRAIN_TIME,
                                      op->worker->config.err_timeout / 4));
}

void ucp_st_trig_dispose(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    unsigned i;

    if (trig == NULL) {
        return;
    }
    /* What is armed fires now, and what is posted later fires at once */
    for (i = 0; (i < trig->num_parts) && !trig->disposed; ++i) {
        ucp_st_trig_shared_dispose(&trig->parts[i]);
    }
    trig->disposed = 1;
    if (!trig->is_draining) { /* else at the end of that */
        if (trig->record != NULL) { /* a kernel may have begun one meanwhile */
            ucp_st_trig_release_words(trig);
        }
        ucp_st_trig_fire_words(trig);
    }
}

/* Mark what drains and was not disposed of */
static void ucp_st_trig_cancel_mark(ucp_st_trig_op_t *trig)
{
    unsigned i;

    trig->is_canceling = 1;
    trig->disposed     = 1;
    for (i = 0; i < trig->num_parts; ++i) {
        /* Without memory it stays armed */
        (void)ucp_st_trig_cancel_add(trig->parts[i].rail,
                                     trig->parts[i].start->trigger.cntr);
    }
}

/* Peers do not help. What is armed is cancelled, and with its last write the
 * waits of an operation pass: nothing reads the buffer any more. */
static void ucp_st_trig_cancel_overdue(ucp_st_trig_dev_t *dev)
{
    double now     = ucp_st_worker_now();
    int is_overdue = 0;
    ucp_st_trig_op_t *trig;
    ucs_status_t status;
    unsigned i;

    ucs_list_for_each(trig, &dev->ending, end_list) {
        is_overdue |= trig->is_draining && !trig->disposed &&
                      (trig->deadline <= now);
    }
    ucs_list_for_each(trig, &dev->ending, end_list) {
        if (is_overdue && trig->is_draining && !trig->disposed) {
            ucp_st_trig_cancel_mark(trig);
        }
    }
    for (i = 0; i < dev->num_rails; ++i) {
        status = ucp_st_trig_cancel(&dev->rails[i]);
        if (status != UCS_OK) {
            ucs_diag("device %s does not cancel: %s", dev->rails[i].attr.device,
                     ucs_status_string(status));
        }
    }
    /* Those that are left. They are not freed while they drain. */
    ucs_list_for_each(trig, &dev->ending, end_list) {
        if (trig->is_canceling) {
            trig->is_canceling = 0;
            trig->disposed     = 0;
        }
    }
}

int ucp_st_trig_settle(ucp_st_worker_h worker)
{
    ucs_list_link_t *ending = &ucp_st_trig_dev(worker)->ending;
    int timeout             = -1;
    ucs_list_link_t unseen;
    ucp_st_trig_op_t *trig;
    ucs_status_t status;
    double left;

    ucp_st_trig_cancel_overdue(ucp_st_trig_dev(worker));
    /* One that fails may take others from either list */
    ucs_list_head_init(&unseen);
    ucs_list_splice_tail(&unseen, ending);
    ucs_list_head_init(ending);
    while (!ucs_list_is_empty(&unseen)) {
        trig = ucs_list_extract_head(&unseen, ucp_st_trig_op_t, end_list);
        ucs_list_add_tail(ending, &trig->end_list);
        left = trig->deadline - ucp_st_worker_now();
        if (left > 0) {
            timeout = ucp_st_trig_sooner(timeout, 1 + (int)(left * 1e3));
        } else if (trig->is_draining) {
            ucs_diag("operation %p: the peer has not closed its region in "
                     "time; its waits pass, but writes stay armed", trig->op);
            ucp_st_trig_drain_end(trig->op);
        } else {
            status = trig->doubt;
            ucp_st_trig_end_del(trig);
            if (trig->op->max_uses == UINT64_MAX) {
                ucp_st_op_fail(trig->op, status);
            }
        }
    }
    return timeout;
}
