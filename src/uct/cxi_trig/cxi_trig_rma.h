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
 * Get the peer's probe word: the endpoint fails if the peer's interface is
 * gone, through the error handler even where that is known at once. A probe
 * takes no receive of the peer. A peer that is closing its endpoint refuses it,
 * where a message can end its sender's process on Cassini. Returns as UCT's
 * short puts; with a completion, which is told as well, as its gets.
 */
ucs_status_t uct_cxi_trig_rma_probe(uct_cxi_trig_ep_t *ep,
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
