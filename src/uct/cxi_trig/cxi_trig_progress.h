/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_progress.h - progress of an interface, and sleeping.
 */
#ifndef UCT_CXI_TRIG_PROGRESS_H_
#define UCT_CXI_TRIG_PROGRESS_H_

#include "cxi_trig_iface.h"


/** UCT's progress: completes, delivers, sends what was pending. */
unsigned uct_cxi_trig_progress(uct_iface_h iface);

/** UCT's start of progress; receives are posted by the first one. */
void uct_cxi_trig_progress_enable(uct_iface_h iface, unsigned flags);

/** UCT's descriptor to sleep on. */
ucs_status_t uct_cxi_trig_event_fd_get(uct_iface_h iface, int *fd_p);

/** UCT's preparation to sleep: UCS_ERR_BUSY if there is something to do. */
ucs_status_t uct_cxi_trig_event_arm(uct_iface_h iface, unsigned events);

#endif
