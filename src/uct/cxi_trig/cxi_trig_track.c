/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_track.c - operations in flight, and flushes that wait for them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_track.h"
#include "compat.h"

#include <ucs/debug/memtrack_int.h>


typedef struct uct_cxi_trig_waiter {
    ucs_queue_elem_t queue;
    uint64_t         number; /* Waits for all operations below this */
    uct_completion_t *comp;
} uct_cxi_trig_waiter_t;


void uct_cxi_trig_track_init(uct_cxi_trig_track_t *track)
{
    ucs_list_head_init(&track->ops);
    ucs_queue_head_init(&track->waiters);
    track->next = 0;
}

void uct_cxi_trig_track_start(uct_cxi_trig_track_t *track,
                              uct_cxi_trig_track_op_t *op)
{
    op->number = track->next++;
    ucs_list_add_tail(&track->ops, &op->list);
}

int uct_cxi_trig_track_passed(uct_cxi_trig_track_t *track, uint64_t number)
{
    return ucs_list_is_empty(&track->ops) ||
           (ucs_list_head(&track->ops, uct_cxi_trig_track_op_t,
                          list)->number >= number);
}

static void uct_cxi_trig_track_wake_first(uct_cxi_trig_track_t *track,
                                          ucs_status_t status)
{
    uct_cxi_trig_waiter_t *waiter =
            ucs_queue_pull_elem_non_empty(&track->waiters,
                                          uct_cxi_trig_waiter_t, queue);
    uct_completion_t *comp        = waiter->comp;

    ucs_free(waiter);
    uct_invoke_completion(comp, status);
}

void uct_cxi_trig_track_wake(uct_cxi_trig_track_t *track, ucs_status_t status)
{
    while (!ucs_queue_is_empty(&track->waiters) &&
           uct_cxi_trig_track_passed(
                   track, ucs_queue_head_elem_non_empty(
                                  &track->waiters, uct_cxi_trig_waiter_t,
                                  queue)->number)) {
        uct_cxi_trig_track_wake_first(track, status);
    }
}

ucs_status_t uct_cxi_trig_track_flush(uct_cxi_trig_track_t *track,
                                      uct_completion_t *comp)
{
    uct_cxi_trig_waiter_t *waiter;

    if (ucs_list_is_empty(&track->ops)) {
        return UCS_OK;
    }
    if (comp == NULL) {
        return UCS_INPROGRESS;
    }

    waiter = ucs_malloc(sizeof(*waiter), "cxi_trig_waiter");
    if (waiter == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    waiter->number = track->next;
    waiter->comp   = comp;
    ucs_queue_push(&track->waiters, &waiter->queue);
    return UCS_INPROGRESS;
}

void uct_cxi_trig_track_purge(uct_cxi_trig_track_t *track, ucs_status_t status)
{
    while (!ucs_queue_is_empty(&track->waiters)) {
        uct_cxi_trig_track_wake_first(track, status);
    }
}
