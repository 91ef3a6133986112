/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_track.h - which immediate operations are in flight, for flush and
 * fence.
 *
 * Operations complete in any order. A tracker numbers them as they start; a
 * flush waits until the oldest one in flight is younger than itself.
 */
#ifndef UCT_CXI_TRIG_TRACK_H_
#define UCT_CXI_TRIG_TRACK_H_

#include <ucs/datastruct/list.h>
#include <ucs/datastruct/queue.h>
#include <uct/api/uct.h>


/** A tracker: one an endpoint and one an interface. One thread at a time. */
typedef struct uct_cxi_trig_track {
    ucs_list_link_t  ops;     /**< In flight, oldest first */
    ucs_queue_head_t waiters; /**< Flushes, oldest first */
    uint64_t         next;    /**< Number of the next operation */
} uct_cxi_trig_track_t;


/** An operation's place in a tracker. */
typedef struct uct_cxi_trig_track_op {
    ucs_list_link_t list;
    uint64_t        number;
} uct_cxi_trig_track_op_t;


/** Make an empty tracker. */
void uct_cxi_trig_track_init(uct_cxi_trig_track_t *track);

/** An operation starts. */
void uct_cxi_trig_track_start(uct_cxi_trig_track_t *track,
                              uct_cxi_trig_track_op_t *op);

/** An operation is over. The caller then calls uct_cxi_trig_track_wake(). */
static inline void uct_cxi_trig_track_end(uct_cxi_trig_track_op_t *op)
{
    ucs_list_del(&op->list);
}

/**
 * Call the completions of flushes that have nothing to wait for any more. They
 * may do anything but free the tracker; @a status goes to them.
 */
void uct_cxi_trig_track_wake(uct_cxi_trig_track_t *track, ucs_status_t status);

/** Whether all operations numbered below @a number are over. */
int uct_cxi_trig_track_passed(uct_cxi_trig_track_t *track, uint64_t number);

/**
 * Flush: UCS_OK if nothing is in flight; else UCS_INPROGRESS, and @a comp (may
 * be NULL) is completed later; UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_cxi_trig_track_flush(uct_cxi_trig_track_t *track,
                                      uct_completion_t *comp);

/** Complete all waiting flushes with @a status, whatever is in flight. */
void uct_cxi_trig_track_purge(uct_cxi_trig_track_t *track, ucs_status_t status);

#endif
