/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cntr_pool.h - counters of a memory domain.
 *
 * On Cassini a counter that is closed stays taken until its domain is closed,
 * and the processes of a node share some 2,000. So counters are not closed but
 * set back to 0 and kept for the next user, in the memory domain.
 *
 * A counter that is used again must get no late addition of its life before.
 * What adds to a counter is
 *  - an operation that completes there. It holds a reference until the provider
 *    has reported its end, which the NIC does after it has counted;
 *  - a write to the region that counts there. The region holds a reference
 *    until it is closed, which revokes its key: such regions have keys of their
 *    own, which are not used again;
 *  - a call, and a stream's store to the trigger page. Both are the user's, who
 *    must be through with them before the counter is destroyed. That a use that
 *    they started is complete says that the NIC has counted them.
 * And nothing that waits for it is armed any more: it would hold a reference.
 * An interface that is closed with counters in use closes these in earnest.
 *
 * A trigger page that streams of devices reach stays registered with their
 * runtimes while its counter is free. A runtime that is to end that waits for
 * streams, and these may wait for a lock that the caller holds.
 *
 * They are set back by stores to the trigger page, in the order of which the
 * additions of the next user come; a GPU may have a shorter way. A value is
 * read as it was written back last, which may be long ago: a counter is given
 * out when a mark was read that only one at 0 can have got, and then 0.
 */
#ifndef UCT_CXI_TRIG_CNTR_POOL_H_
#define UCT_CXI_TRIG_CNTR_POOL_H_

#include "cxi_trig_md.h"

#include <rdma/fi_domain.h>


/** The memory domain is opened, or closed: all counters are free then. */
void uct_cxi_trig_cntr_pool_init(uct_cxi_trig_md_t *md);
void uct_cxi_trig_cntr_pool_cleanup(uct_cxi_trig_md_t *md);

/** A counter with value 0, of which nobody knows. 0, or -FI_E*. It may have a
 *  page that streams of devices reach, unless @a has_page_p is NULL. */
int uct_cxi_trig_cntr_pool_get(uct_cxi_trig_md_t *md, void *context,
                               struct fid_cntr **cntr_p, uint8_t *has_page_p);

/** Give it back: nothing adds to it any more, and nothing waits for it. */
void uct_cxi_trig_cntr_pool_put(uct_cxi_trig_md_t *md, struct fid_cntr *cntr,
                                int has_page);

/** Open a counter; the caller closes it by fi_close(). 0, or -FI_E*. Logs
 *  nothing. */
int uct_cxi_trig_cntr_pool_open(uct_cxi_trig_md_t *md, void *context,
                                struct fid_cntr **cntr_p);

/** Close one of pool_get() in earnest; a failure is logged. */
void uct_cxi_trig_cntr_pool_close(struct fid_cntr *cntr, int has_page);

/** As uct_trig_cntr_doorbell(). @a has_page becomes non-zero if streams of
 *  devices reach the page. */
volatile uint64_t *uct_cxi_trig_cntr_pool_doorbell(struct fid_cntr *cntr,
                                                   uint8_t *has_page);

/** As uct_trig_cntr_reset(), of a counter that the host has added @a before
 *  to. */
ucs_status_t uct_cxi_trig_cntr_pool_reset(uct_cxi_trig_md_t *md,
                                          struct fid_cntr *cntr,
                                          uint64_t before);

#endif
