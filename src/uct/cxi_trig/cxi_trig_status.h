/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_status.h - libfabric's error codes as UCX's.
 */
#ifndef UCT_CXI_TRIG_STATUS_H_
#define UCT_CXI_TRIG_STATUS_H_

#include <ucs/type/status.h>

/** Convert a libfabric return value (0 or negative) or positive error code. */
ucs_status_t uct_cxi_trig_status(long fi_code);

/** Whether an error of an operation means that its peer is lost. */
int uct_cxi_trig_status_is_peer(ucs_status_t status);

#endif
