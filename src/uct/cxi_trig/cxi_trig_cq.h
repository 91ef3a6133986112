/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cq.h - the completion queue.
 */
#ifndef UCT_CXI_TRIG_CQ_H_
#define UCT_CXI_TRIG_CQ_H_

#include "cxi_trig_iface.h"
#include "cxi_trig_peer.h"

/** Entries that are read at once. */
#define UCT_CXI_TRIG_CQ_BATCH 16


/** Complete what was read before, and a batch of what is in the queue; returns
 *  how many. */
unsigned uct_cxi_trig_cq_progress(uct_cxi_trig_iface_t *iface);

/**
 * Progress for an endpoint's end: completes what goes to @a peer and sends what
 * waits. All other completions are left to progress.
 */
void uct_cxi_trig_cq_drain(uct_cxi_trig_iface_t *iface,
                           uct_cxi_trig_peer_t *peer);

/** Complete all that is in the queue now, and perhaps more. */
void uct_cxi_trig_cq_reap(uct_cxi_trig_iface_t *iface);

#endif
