/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_pending.h - requests that wait until something can be sent.
 */
#ifndef UCT_CXI_TRIG_PENDING_H_
#define UCT_CXI_TRIG_PENDING_H_

#include "cxi_trig_ep.h"


/** UCT's queueing of a request: UCS_ERR_BUSY if it can be sent now. */
ucs_status_t uct_cxi_trig_pending_add(uct_ep_h ep, uct_pending_req_t *req,
                                      unsigned flags);

/** UCT's removal of an endpoint's requests; @a cb may be NULL. */
void uct_cxi_trig_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb,
                                void *arg);

/** Run what can be run, endpoints in turn; returns how many requests left. */
unsigned uct_cxi_trig_pending_dispatch(uct_cxi_trig_iface_t *iface);

#endif
