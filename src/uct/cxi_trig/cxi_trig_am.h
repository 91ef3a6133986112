/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_am.h - active messages.
 */
#ifndef UCT_CXI_TRIG_AM_H_
#define UCT_CXI_TRIG_AM_H_

#include "cxi_trig_ep.h"
#include "cxi_trig_proto.h"
#include "cxi_trig_tx.h"


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

/**
 * UCT's active message of a header, which is copied, and pieces that are not.
 * There where the provider takes two pieces of memory for a message.
 */
ucs_status_t uct_cxi_trig_ep_am_zcopy(uct_ep_h ep, uint8_t id,
                                      const void *header,
                                      unsigned header_length,
                                      const uct_iov_t *iov, size_t iovcnt,
                                      unsigned flags, uct_completion_t *comp);

#endif
