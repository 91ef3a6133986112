/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_doubt.c - the trig lane: puts that failed, and nobody knows why yet.
 *
 * A NIC says no more than that a put failed, be it for a fault or because the
 * peer has closed its region. In the latter case the peer has freed its half or
 * failed, and its message that says so was given to UCP together with the
 * closing: it comes soon, and decides what happens to the operation. Where none
 * comes in time it was a fault.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig.h"
#include "core/st_op.h"
#include "core/st_worker.h"

/* How long that message may take, seconds */
#define UCP_ST_TRIG_DOUBT_TIME 1.0

void ucp_st_trig_doubt_add(ucp_st_op_t *op, ucs_status_t status)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    ucp_st_worker_h worker = op->worker;

    if ((trig->doubt != UCS_OK) || (op->state != UCP_ST_OP_MATCHED) ||
        (op->max_uses != UINT64_MAX)) {
        return; /* it is known why */
    }
    trig->doubt = status;
    trig->since = ucp_st_worker_now();
    ucs_list_add_tail(&ucp_st_trig_dev(worker)->doubtful, &trig->doubt_list);
    ucp_st_trig_dev_wake(worker);
}

void ucp_st_trig_doubt_del(ucp_st_trig_op_t *trig)
{
    if (trig->doubt != UCS_OK) {
        ucs_list_del(&trig->doubt_list);
        trig->doubt = UCS_OK;
    }
}

int ucp_st_trig_doubts_settle(ucp_st_worker_h worker)
{
    ucs_list_link_t *doubtful = &ucp_st_trig_dev(worker)->doubtful;
    ucp_st_trig_op_t *trig;
    ucs_status_t status;
    double left;

    /* The oldest is the first; what one brings about may concern others */
    while (!ucs_list_is_empty(doubtful)) {
        trig = ucs_list_head(doubtful, ucp_st_trig_op_t, doubt_list);
        left = trig->since + UCP_ST_TRIG_DOUBT_TIME - ucp_st_worker_now();
        if (left > 0) {
            return 1 + (int)(left * 1e3);
        }
        status = trig->doubt;
        ucp_st_trig_doubt_del(trig);
        if (trig->op->max_uses == UINT64_MAX) {
            ucp_st_op_fail(trig->op, status);
        }
    }
    return -1;
}
