/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_trig_halt.c - one-sided operations on lane trig of a queue that has
 * failed: its stream goes on, and comes to operations that must not take
 * effect, as their data may depend on what failed.
 *
 * A stream that stores to a trigger page cannot look whether it is to do so. T
 * begins at a base there, and is reset when the queue fails, before any wait of
 * it is released. What a stream adds from then on does not come to a threshold.
 * The service thread cancels what waits for T, and counts it in the NIC's
 * place. Until then no quiet passes that has such an operation before it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma_trig.h"
#include "core/st_log.h"

#include <stdlib.h>

void ucp_st_rma_trig_halt(ucp_st_rma_trig_t *trig)
{
    if ((trig->start.doorbell == NULL) || trig->is_halting ||
        (ucp_st_trig_trigger_halt(&trig->start) != UCS_OK)) {
        return;
    }
    trig->is_halting = 1;
    ucp_st_trig_dev_wake(trig->worker);
}

static unsigned ucp_st_rma_trig_add_triggers(const ucp_st_rma_trig_t *trig,
                                             uct_trig_cntr_h *triggers)
{
    unsigned count = 0;
    unsigned i;

    triggers[count++] = trig->start.cntr;
    for (i = 0; i < UCP_ST_RMA_TRIG_SLOTS; ++i) {
        if (trig->slots[i].is_used) {
            triggers[count++] = trig->slots[i].tally.cntr;
        }
    }
    return count;
}

/* Cancel what waits for queues that were halted: it costs the same for one and
 * for many */
static ucs_status_t ucp_st_rma_trig_cancel(const ucs_list_link_t *trigs)
{
    const ucp_st_rma_trig_t *first = NULL;
    unsigned num_queues            = 0;
    unsigned count                 = 0;
    ucp_st_rma_trig_t *trig;
    uct_trig_cntr_h *triggers;
    ucs_status_t status;

    ucs_list_for_each(trig, trigs, list) {
        if (ucp_st_rma_trig_is_unsettled(trig)) {
            ++num_queues;
            first = trig;
        }
    }
    if (first == NULL) {
        return UCS_OK;
    }
    triggers = malloc(num_queues * (1 + UCP_ST_RMA_TRIG_SLOTS) *
                      sizeof(*triggers));
    if (triggers == NULL) {
        return UCS_ERR_BUSY;
    }
    ucs_list_for_each(trig, trigs, list) {
        if (ucp_st_rma_trig_is_unsettled(trig)) {
            count += ucp_st_rma_trig_add_triggers(trig, &triggers[count]);
            trig->is_canceling = 1;
        }
    }
    status = uct_trig_iface_cancel(first->rail->iface, triggers, count);
    free(triggers);
    return status;
}

/* All that the NIC does not end: what was cancelled; or else what has failed,
 * or goes to a peer that is gone */
static void
ucp_st_rma_trig_abort_rest(ucs_list_link_t *ops, int is_canceled)
{
    ucp_st_rma_trig_op_t *op, *tmp;

    ucs_list_for_each_safe(op, tmp, ops, list) {
        if (!op->is_quiet && (is_canceled || op->is_failed ||
                              (op->rma.peer->status != UCS_OK))) {
            ucp_st_rma_trig_abort(op);
        }
    }
}

/* What had fired is over if `status` is good, and nothing else fires. So it
 * does not matter in which order the host counts the rest. */
static void ucp_st_rma_trig_settle_one(ucp_st_rma_trig_t *trig,
                                       ucs_status_t status)
{
    if (status != UCS_OK) {
        /* They fire, as they cannot be got rid of otherwise */
        ucs_error("queue %p: the one-sided operations that its stream has not "
                  "come to cannot be cancelled, and take effect: %s",
                  trig->queue, ucs_status_string(status));
        ucp_st_trig_trigger_fire(&trig->start, trig->start.base);
    }
    trig->is_canceling = 0;
    trig->is_settled   = 1;
    ucp_st_rma_trig_abort_rest(&trig->posted, status == UCS_OK);
    ucp_st_rma_trig_abort_rest(&trig->waiting, status == UCS_OK);
    ucp_st_rma_trig_post_late(&trig->late); /* quiets */
}

void ucp_st_rma_trig_settle(ucp_st_worker_h worker)
{
    ucs_list_link_t *trigs = &ucp_st_rma_dev(worker)->trigs;
    ucp_st_rma_trig_t *trig;
    ucs_status_t status;

    ucs_list_for_each(trig, trigs, list) {
        if (trig->queue != NULL) {
            ucp_st_rma_trig_fail_untriggered(trig);
        }
    }
    status = ucp_st_rma_trig_cancel(trigs);
    if (status == UCS_ERR_BUSY) {
        ucp_st_trig_refused(worker); /* again, soon */
        return;
    }
    ucs_list_for_each(trig, trigs, list) {
        if (trig->is_canceling) {
            ucp_st_rma_trig_settle_one(trig, status);
        } else if (ucp_st_rma_trig_is_unsettled(trig)) {
            ucp_st_trig_dev_wake(worker); /* halted since then */
        }
    }
}
