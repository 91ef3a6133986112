/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_help.h - the trig lane: what host streams that wait do for it.
 */
#ifndef UCP_ST_TRIG_HELP_H_
#define UCP_ST_TRIG_HELP_H_

#include <ucp_st.h>

/** Have host streams drive the worker's NICs if all are emulated, and be woken
 *  by them. Without that the NICs' own threads and ours do it, later. */
void ucp_st_trig_help_start(ucp_st_worker_h worker);

/** Undo that; no stream does anything for the worker any more. */
void ucp_st_trig_help_stop(ucp_st_worker_h worker);

#endif
