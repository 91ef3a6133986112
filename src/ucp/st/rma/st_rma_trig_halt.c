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
    if ((trig->doorbell == NULL) || trig->is_halting ||
        (uct_trig_cntr_reset(trig->start) != UCS_OK)) {
        return;
    }
    trig->is_halting = 1;
    ucp_st_trig_dev_wake(trig->worker);
}

/* What had fired is over when this has succeeded, and nothing else fires. So it
 * does not matter in which order the host counts the rest. */
static ucs_status_t ucp_st_rma_trig_cancel(ucp_st_rma_trig_t *trig)
{
    uct_trig_cntr_h triggers[1 + UCP_ST_RMA_TRIG_SLOTS] = {trig->start};
    unsigned count                                      = 1;
    unsigned i;

    for (i = 0; i < UCP_ST_RMA_TRIG_SLOTS; ++i) {
        if (trig->slots[i].is_used) {
            triggers[count++] = trig->slots[i].data;
        }
    }
    return uct_trig_iface_cancel(trig->rail->iface, triggers, count);
}

void ucp_st_rma_trig_settle(ucp_st_worker_h worker)
{
    ucp_st_rma_trig_t *trig;
    ucs_status_t status;

    ucs_list_for_each(trig, &ucp_st_rma_dev(worker)->trigs, list) {
        if (!trig->is_halting || trig->is_settled) {
            continue;
        }
        status = ucp_st_rma_trig_cancel(trig);
        if (status == UCS_ERR_BUSY) {
            ucp_st_trig_refused(worker); /* again, soon */
            continue;
        }
        if (status != UCS_OK) {
            /* They fire, as they cannot be got rid of otherwise */
            ucs_error("queue %p: the one-sided operations that its stream has "
                      "not come to cannot be cancelled, and take effect: %s",
                      trig->queue, ucs_status_string(status));
            ucp_st_rma_trig_count(trig->start, 2 * trig->base);
        } else {
            ucp_st_rma_trig_abort_list(&trig->posted, NULL);
            ucp_st_rma_trig_abort_list(&trig->late, NULL);
        }
        trig->is_settled = 1;
        ucp_st_rma_trig_post_late(trig); /* quiets */
    }
}
