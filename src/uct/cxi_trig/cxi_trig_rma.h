/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_rma.h - puts and gets.
 *
 * A put is over when its data is in the peer's memory, a get when it is in
 * ours. There is no short get: it would have to wait for the data. An empty
 * operation is complete at once, as not every provider carries one out.
 */
#ifndef UCT_CXI_TRIG_RMA_H_
#define UCT_CXI_TRIG_RMA_H_

#include "cxi_trig_ep.h"


/**
 * Get the word that tells whether the peer's interface is there: the endpoint
 * fails if not, by the error handler even where that is known at once. Unlike a
 * message it takes no receive of the peer. And where the peer is just closing
 * its endpoint it is only refused: on Cassini a message may end its sender's
 * process then. Returns as UCT's short puts, and with a completion, which is
 * told as well, as its gets.
 */
ucs_status_t uct_cxi_trig_rma_ask(uct_cxi_trig_ep_t *ep,
                                  uct_completion_t *comp);

/** UCT's put of a buffer. */
ucs_status_t uct_cxi_trig_ep_put_short(uct_ep_h ep, const void *buffer,
                                       unsigned length, uint64_t remote_addr,
                                       uct_rkey_t rkey);

/** UCT's put of what a callback writes. */
ssize_t uct_cxi_trig_ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack_cb,
                                  void *arg, uint64_t remote_addr,
                                  uct_rkey_t rkey);

/** UCT's put of pieces of memory, without a copy. */
ucs_status_t uct_cxi_trig_ep_put_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                       size_t iovcnt, uint64_t remote_addr,
                                       uct_rkey_t rkey, uct_completion_t *comp);

/** UCT's get that a callback takes the data of. */
ucs_status_t uct_cxi_trig_ep_get_bcopy(uct_ep_h ep,
                                       uct_unpack_callback_t unpack_cb,
                                       void *arg, size_t length,
                                       uint64_t remote_addr, uct_rkey_t rkey,
                                       uct_completion_t *comp);

/** UCT's get into pieces of memory, without a copy. */
ucs_status_t uct_cxi_trig_ep_get_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                       size_t iovcnt, uint64_t remote_addr,
                                       uct_rkey_t rkey, uct_completion_t *comp);

#endif
