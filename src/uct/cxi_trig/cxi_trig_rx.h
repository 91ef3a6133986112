/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_rx.h - receiving of messages.
 */
#ifndef UCT_CXI_TRIG_RX_H_
#define UCT_CXI_TRIG_RX_H_

#include "cxi_trig_iface.h"


/** Prepare the receiving half; posts nothing. Failures are logged. */
ucs_status_t uct_cxi_trig_rx_init(uct_cxi_trig_iface_t *iface,
                                  const uct_iface_params_t *params,
                                  unsigned queue_len);

/** Undo it; the endpoint is closed. */
void uct_cxi_trig_rx_cleanup(uct_cxi_trig_iface_t *iface);

/** Enable receiving, and post receives. Nothing disables it. */
void uct_cxi_trig_rx_enable(uct_cxi_trig_iface_t *iface);

/** Progress: post receives, once receiving is enabled, as many as have been of
 *  use and the queue's length at most. */
void uct_cxi_trig_rx_fill(uct_cxi_trig_iface_t *iface);

#endif
