/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_progress.h - the completion queue, and sleeping on it.
 */
#ifndef UCT_CXI_TRIG_PROGRESS_H_
#define UCT_CXI_TRIG_PROGRESS_H_

#include "cxi_trig_iface.h"
#include "cxi_trig_peer.h"


/** UCT's progress: completes, delivers, sends what was pending. */
unsigned uct_cxi_trig_progress(uct_iface_h iface);

/**
 * Progress for an endpoint's end: completes what goes to @a peer and sends what
 * waits. All other completions are left to progress.
 */
void uct_cxi_trig_progress_drain(uct_cxi_trig_iface_t *iface,
                                 uct_cxi_trig_peer_t *peer);

/** Complete all that is in the queue now, and perhaps more. */
void uct_cxi_trig_progress_reap(uct_cxi_trig_iface_t *iface);

/** UCT's start of progress; receives are posted by the first one. */
void uct_cxi_trig_progress_enable(uct_iface_h iface, unsigned flags);

/** UCT's descriptor to sleep on. */
ucs_status_t uct_cxi_trig_event_fd_get(uct_iface_h iface, int *fd_p);

/** UCT's preparation to sleep: UCS_ERR_BUSY if there is something to do. */
ucs_status_t uct_cxi_trig_event_arm(uct_iface_h iface, unsigned events);

#endif
