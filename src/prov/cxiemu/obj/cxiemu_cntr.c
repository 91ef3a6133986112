/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_cntr.c - counters, as the NIC counts with them.
 */
#include "obj/cxiemu_cntr.h"
#include "obj/cxiemu_event.h"

#include <stdlib.h>


cxiemu_cntr_more_t *cxiemu_cntr_need_more(cxiemu_cntr_t *cntr)
{
    cxiemu_cntr_more_t *more = cntr->more;

    if (more == NULL) {
        more = calloc(1, sizeof(*more));
        if (more == NULL) {
            return NULL;
        }
        more->event_fd = -1;
        more->trap     = -1;
        /* A reader without the lock sees it whole */
        __atomic_store_n(&cntr->more, more, __ATOMIC_RELEASE);
    }
    return more;
}

/* The user's buffer may be polled: data that was counted is stored before. */
void cxiemu_cntr_write_back_now(cxiemu_cntr_t *cntr)
{
    uint64_t word = cxiemu_cntr_word(cntr);

    __atomic_store_n(&cntr->written, word, __ATOMIC_RELEASE);
    if ((cntr->more != NULL) && (cntr->more->wb != NULL)) {
        __atomic_store_n(cntr->more->wb, word, __ATOMIC_RELEASE);
    }
}

void cxiemu_cntr_want_writeback(cxiemu_cntr_t *cntr)
{
    cxiemu_nic_t *nic = cntr->domain->nic;

    if (cntr->wb_wanted) {
        return;
    }
    if (!cxiemu_param()->strict || (cxiemu_cntr_need_more(cntr) == NULL)) {
        cxiemu_cntr_write_back_now(cntr);
    } else {
        cntr->wb_wanted = 1;
        SLIST_INSERT_HEAD(&nic->wb_due, cntr, more->wb_due);
    }
}

void cxiemu_cntr_writeback(cxiemu_nic_t *nic)
{
    cxiemu_cntr_t *cntr;

    /* What asks for them is behind what the trigger queue holds */
    while (TAILQ_EMPTY(&nic->held) &&
           ((cntr = SLIST_FIRST(&nic->wb_due)) != NULL)) {
        SLIST_REMOVE_HEAD(&nic->wb_due, more->wb_due);
        cntr->wb_wanted = 0;
        cxiemu_cntr_write_back_now(cntr);
    }
}

void cxiemu_cntr_alert(cxiemu_cntr_t *cntr)
{
    cxiemu_cntr_more_t *more = cntr->more;

    if (cntr->waiters > 0) {
        cxiemu_nic_wake_waiters(cntr->domain->nic);
    }
    if (more != NULL) {
        cxiemu_event_tell(more->event_fd, &more->armed);
    }
}

void cxiemu_cntr_fire(cxiemu_cntr_t *cntr)
{
    cxiemu_nic_t *nic = cntr->domain->nic;

    if ((cntr->heap_count > 0) && !cntr->is_fired &&
        (cntr->heap[0]->threshold <= cntr->success)) {
        cntr->is_fired = 1;
        STAILQ_INSERT_TAIL(&nic->fired, cntr, fired);
    }
}

void cxiemu_cntr_count(cxiemu_cntr_t *cntr, uint64_t success, uint64_t failure)
{
    cntr->success = (cntr->success + success) & CXIEMU_CNTR_SUCCESS_MAX;
    if (failure > CXIEMU_CNTR_FAILURE_MAX - cntr->failure) {
        cntr->failure = CXIEMU_CNTR_FAILURE_MAX;
    } else {
        cntr->failure += (uint8_t)failure;
    }

    if (!cxiemu_param()->strict) {
        cxiemu_cntr_write_back_now(cntr);
    }
    cxiemu_cntr_fire(cntr);
    cxiemu_cntr_alert(cntr);
}

/* To set a counter, unlike to count, has it written back. */
void cxiemu_cntr_assign(cxiemu_cntr_t *cntr, uint64_t success)
{
    cntr->success = success & CXIEMU_CNTR_SUCCESS_MAX;
    cxiemu_cntr_want_writeback(cntr);
    cxiemu_cntr_fire(cntr);
    cxiemu_cntr_alert(cntr);
}
