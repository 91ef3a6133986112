/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_am.h - UCT's sending operations.
 */
#ifndef UCT_CXI_TRIG_AM_H_
#define UCT_CXI_TRIG_AM_H_

#include <uct/api/uct.h>


/** UCT's active message of a header and a payload. */
ucs_status_t uct_cxi_trig_ep_am_short(uct_ep_h ep, uint8_t id, uint64_t header,
                                      const void *payload, unsigned length);

/** UCT's active message of several pieces. */
ucs_status_t uct_cxi_trig_ep_am_short_iov(uct_ep_h ep, uint8_t id,
                                          const uct_iov_t *iov, size_t iovcnt);

/** UCT's active message that a callback writes. */
ssize_t uct_cxi_trig_ep_am_bcopy(uct_ep_h ep, uint8_t id,
                                 uct_pack_callback_t pack_cb, void *arg,
                                 unsigned flags);

/** UCT's put of a buffer. */
ucs_status_t uct_cxi_trig_ep_put_short(uct_ep_h ep, const void *buffer,
                                       unsigned length, uint64_t remote_addr,
                                       uct_rkey_t rkey);

/** UCT's put of what a callback writes. */
ssize_t uct_cxi_trig_ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack_cb,
                                  void *arg, uint64_t remote_addr,
                                  uct_rkey_t rkey);

#endif
