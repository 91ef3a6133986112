/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cancel.h - the end of deferred work that waits for its trigger.
 */
#ifndef UCT_CXI_TRIG_CANCEL_H_
#define UCT_CXI_TRIG_CANCEL_H_

#include "cxi_trig_iface.h"


/** The interface closes: have the provider drop what waits, if it is alone in
 *  its domain. Nobody is told. */
void uct_cxi_trig_cancel_quietly(uct_cxi_trig_iface_t *iface);

#endif
