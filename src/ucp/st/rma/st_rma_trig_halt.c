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

void ucp_st_rma_trig_halt(ucp_st_rma_trig_t *trig)
{
    if ((trig->start.doorbell == NULL) || trig->start.is_halted ||
        (ucp_st_trig_trigger_halt(&trig->start) != UCS_OK)) {
        return;
    }
    trig->is_unsettled = 1;
    ucp_st_trig_dev_wake(trig->worker);
}

/* Have all work that waits for the queue be cancelled */
static ucs_status_t ucp_st_rma_trig_cancel_add(ucp_st_rma_trig_t *trig)
{
    ucs_status_t status = ucp_st_trig_cancel_add(trig->rail, trig->start.cntr);
    unsigned i;

    for (i = 0; (i < UCP_ST_RMA_TRIG_SLOTS) && (status == UCS_OK); ++i) {
        if (trig->slots[i].is_used) {
            status = ucp_st_trig_cancel_add(trig->rail,
                                            trig->slots[i].tally.cntr);
        }
    }
    return status;
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
    trig->is_unsettled = 0;
    ucp_st_rma_trig_abort_all(trig, status == UCS_OK);
    ucp_st_rma_trig_post_late(&trig->late); /* quiets */
}

/* Those of one NIC */
static void ucp_st_rma_trig_settle_nic(ucp_st_worker_h worker, unsigned nic)
{
    ucs_list_link_t *trigs = &ucp_st_rma_dev(worker)->trigs;
    ucp_st_rma_trig_t *trig;
    ucs_status_t status;

    ucs_list_for_each(trig, trigs, list) {
        trig->is_canceling = (trig->nic == nic) && trig->is_unsettled &&
                             (ucp_st_rma_trig_cancel_add(trig) == UCS_OK);
    }
    status = ucp_st_trig_cancel(ucp_st_trig_rma_rail(worker, nic));
    ucs_list_for_each(trig, trigs, list) {
        if (trig->is_canceling && (status != UCS_ERR_BUSY)) {
            ucp_st_rma_trig_settle_one(trig, status);
        } else if ((trig->nic == nic) && trig->is_unsettled) {
            ucp_st_trig_refused(worker); /* again, soon */
        }
    }
}

void ucp_st_rma_trig_settle(ucp_st_worker_h worker)
{
    unsigned nic;

    for (nic = 0; nic < ucp_st_trig_rma_num_rails(worker); ++nic) {
        ucp_st_rma_trig_settle_nic(worker, nic);
    }
}
