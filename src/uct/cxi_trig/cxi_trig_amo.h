/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_amo.h - atomics of 32 and 64 bits, carried out by the NIC.
 *
 * What was at the target is read into the operation's descriptor and copied to
 * the user from there: an operation that was given up does not write there.
 */
#ifndef UCT_CXI_TRIG_AMO_H_
#define UCT_CXI_TRIG_AMO_H_

#include "cxi_trig_iface.h"


/** Ask the provider which atomics it has; the endpoint is open. */
void uct_cxi_trig_amo_init(uct_cxi_trig_iface_t *iface);

/** UCT's atomic that brings nothing back, 32 bits. */
ucs_status_t uct_cxi_trig_ep_atomic32_post(uct_ep_h ep, unsigned opcode,
                                           uint32_t value, uint64_t remote_addr,
                                           uct_rkey_t rkey);

/** UCT's atomic that brings nothing back, 64 bits. */
ucs_status_t uct_cxi_trig_ep_atomic64_post(uct_ep_h ep, unsigned opcode,
                                           uint64_t value, uint64_t remote_addr,
                                           uct_rkey_t rkey);

/** UCT's atomic that brings back what was there, 32 bits. */
ucs_status_t uct_cxi_trig_ep_atomic32_fetch(uct_ep_h ep, unsigned opcode,
                                            uint32_t value, uint32_t *result,
                                            uint64_t remote_addr,
                                            uct_rkey_t rkey,
                                            uct_completion_t *comp);

/** UCT's atomic that brings back what was there, 64 bits. */
ucs_status_t uct_cxi_trig_ep_atomic64_fetch(uct_ep_h ep, unsigned opcode,
                                            uint64_t value, uint64_t *result,
                                            uint64_t remote_addr,
                                            uct_rkey_t rkey,
                                            uct_completion_t *comp);

/** UCT's compare and swap, 32 bits. */
ucs_status_t uct_cxi_trig_ep_atomic_cswap32(uct_ep_h ep, uint32_t compare,
                                            uint32_t swap, uint64_t remote_addr,
                                            uct_rkey_t rkey, uint32_t *result,
                                            uct_completion_t *comp);

/** UCT's compare and swap, 64 bits. */
ucs_status_t uct_cxi_trig_ep_atomic_cswap64(uct_ep_h ep, uint64_t compare,
                                            uint64_t swap, uint64_t remote_addr,
                                            uct_rkey_t rkey, uint64_t *result,
                                            uct_completion_t *comp);

#endif
