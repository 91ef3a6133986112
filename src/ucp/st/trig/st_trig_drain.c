/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_drain.c - the trig lane: the end of an operation that failed.
 *
 * A send's puts read the user's buffer, so its waits are let pass only when no
 * put is armed or under way any more. One whose trigger has come goes on by
 * itself; one that is armed is fired (disposed of) once it can reach nothing at
 * the peer. The peer's service thread says so when it has closed its region. A
 * peer that says nothing, and that NICs still reach, is waited for no longer
 * than the streams may be kept: what is armed then stays so, and starts no
 * longer have an effect (docs/protocols.md tells what that leaves open).
 *
 * A receive's puts are clear-to-sends, and read nothing of the user's.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig_use.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

/* How long a silent peer keeps a stream, seconds; not more than a quarter of
 * UCX_ST_ERR_TIMEOUT, the rest of which is for finding out */
#define UCP_ST_TRIG_DRAIN_TIME 2.0

/* The NIC may read the user's buffer */
static int ucp_st_trig_is_reading(const ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    const ucp_st_trig_part_t *part;
    unsigned i;

    for (i = 0; (i < trig->num_parts) && (op->dir == UCP_ST_DIR_SEND); ++i) {
        part = &trig->parts[i];
        if (part->pending[UCP_ST_TRIG_ENTRY_PUT] > 0) {
            return 1;
        }
    }
    return 0;
}

void ucp_st_trig_store_release(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    ucp_st_trig_slot_t *slot;
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        slot = trig->parts[i].slot;
        __atomic_store_n(&slot->word, UCP_ST_RELEASE, __ATOMIC_RELEASE);
        ucs_gstream_wake(&slot->word);
    }
}

/* The entries that count the words up; nobody waits for these any more */
static void ucp_st_trig_fire_words(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    ucp_st_trig_part_t *part;
    uint64_t words;
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        part  = &trig->parts[i];
        words = part->pending[UCP_ST_TRIG_ENTRY_WORD];
        if (words > 0) {
            (void)uct_trig_cntr_add(part->data, words * part->num_puts);
        }
    }
}

/* What is armed fires, and what is posted later fires then. The region that the
 * puts name is closed, so they fail and write nothing; entries cannot be
 * cancelled one by one. The counter may have been reset; thresholds of uses are
 * 3 apart at most. */
static void ucp_st_trig_fire_puts(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    ucp_st_trig_part_t *part;
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        part = &trig->parts[i];
        if (part->start != NULL) {
            (void)uct_trig_cntr_add(part->start,
                                    part->base + (3 * (op->started + 1)));
        }
    }
}

/* Streams look at the flag, or store to a trigger page: their adds alone do not
 * make up the base of a threshold. What was disposed of stays fired. */
void ucp_st_trig_halt(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    ucp_st_trig_part_t *part;
    unsigned i;

    if ((trig == NULL) || trig->halted) {
        return;
    }
    /* Pairs with the acquire load in ucp_st_trig_add_func() */
    __atomic_store_n(&trig->halted, 1, __ATOMIC_RELEASE);
    for (i = 0; i < trig->num_parts; ++i) {
        part = &trig->parts[i];
        if ((part->base > 0) && !trig->disposed) {
            (void)uct_trig_cntr_reset(part->start);
        }
    }
}

static void ucp_st_trig_drain_end(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    ucp_st_trig_drain_del(trig);
    trig->released = 1;
    ucp_st_trig_store_release(op);
    if (trig->disposed) {
        ucp_st_trig_fire_words(op);
    }
}

void ucp_st_trig_drain_del(ucp_st_trig_op_t *trig)
{
    if (trig->is_draining) {
        ucs_list_del(&trig->drain_list);
        trig->is_draining = 0;
    }
}

void ucp_st_trig_drain_check(ucp_st_op_t *op)
{
    if (ucp_st_trig_op(op)->is_draining && !ucp_st_trig_is_reading(op)) {
        ucp_st_trig_drain_end(op);
    }
}

int ucp_st_trig_drains_settle(ucp_st_worker_h worker)
{
    ucs_list_link_t *draining = &ucp_st_trig_dev(worker)->draining;
    double time               = ucs_min(UCP_ST_TRIG_DRAIN_TIME,
                                        worker->config.err_timeout / 4);
    ucp_st_trig_op_t *trig;
    double left;

    /* The oldest is the first */
    while (!ucs_list_is_empty(draining)) {
        trig = ucs_list_head(draining, ucp_st_trig_op_t, drain_list);
        left = trig->since + time - ucp_st_worker_now();
        if (left > 0) {
            return 1 + (int)(left * 1e3);
        }
        ucs_diag("operation %p: its peer does not say that it has failed as "
                 "well", trig->op);
        ucp_st_trig_drain_end(trig->op);
    }
    return -1;
}

void ucp_st_trig_release_waits(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    if ((trig == NULL) || trig->released || trig->is_draining) {
        return;
    }
    ucp_st_trig_late_del(trig);
    ucp_st_trig_doubt_del(trig);
    if (!ucp_st_trig_is_reading(op)) {
        ucp_st_trig_drain_end(op);
        return;
    }
    trig->is_draining = 1;
    trig->since       = ucp_st_worker_now();
    ucs_list_add_tail(&ucp_st_trig_dev(op->worker)->draining,
                      &trig->drain_list);
    ucp_st_trig_dev_wake(op->worker);
}

void ucp_st_trig_dispose(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    if (trig == NULL) {
        return;
    }
    if (!trig->disposed) {
        trig->disposed = 1;
        ucp_st_trig_fire_puts(op);
    }
    if (!trig->is_draining) { /* nor was it ever, where it did not fail */
        ucp_st_trig_fire_words(op);
    }
}
