/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_target.h - the endpoint by which peers reach a memory domain's
 * regions.
 *
 * On Cassini a region belongs to one endpoint, and is reached by its address.
 * UCX registers memory before there is an interface, and uses it with all of
 * them: the domain has an endpoint of its own for it. Nothing is posted to that
 * one; addresses of interfaces name it too.
 */
#ifndef UCT_CXI_TRIG_TARGET_H_
#define UCT_CXI_TRIG_TARGET_H_

#include "cxi_trig_md.h"
#include "cxi_trig_mr.h"
#include "cxi_trig_net.h"


/**
 * Open it on the domain if the provider needs one and there is none yet: not
 * before memory is registered or an interface made, as UCX opens domains only
 * to ask what they can do. Failures are logged. Any thread; a thread that
 * has called this may use the endpoint.
 */
ucs_status_t uct_cxi_trig_target_open(uct_cxi_trig_md_t *md);

/**
 * Register memory that all peers are to reach: open the endpoint, and a region
 * of it, as uct_cxi_trig_mr_open() does. Sets the endpoint in @a params. Any
 * thread.
 */
ucs_status_t uct_cxi_trig_target_reg(uct_cxi_trig_md_t *md,
                                     uct_cxi_trig_mr_params_t *params,
                                     struct fid_mr **mr_p);

/**
 * Let the provider take the events of its NIC for the endpoint, which there is.
 * With cxi each access by a key that is not, or no longer, good is one; their
 * queue has room for some 256, and its overflow aborts the process. Any thread.
 */
void uct_cxi_trig_target_progress(uct_cxi_trig_md_t *md);

/** Close it, if there is one; no region is left. */
void uct_cxi_trig_target_close(uct_cxi_trig_md_t *md);

/** In a child of a fork, where no other thread is: the lock is free. */
void uct_cxi_trig_target_forked(void);

#endif
